"""Mutated inputs: valid ones with something wrong in them, the same for the same seed.

JSON is mutated as JSON: values of another type, missing, duplicated or renamed fields, huge
numbers, invalid characters, deep nesting. Other formats are mutated as cells of lines; and
everything, now and then, as bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

__all__ = ["ODD_TEXTS", "ODD_VALUES", "Input", "Seed", "mutate"]

LARGEST = 64 * 1024  # of one input; larger ones have their own tests
ODD_TEXTS = (
    "", " ", "\0", "\n", "\r\n", "\t", "\ud800", "\udfff", "\ufeff", "\u202e", "\u200b", "\u2028", "é", "İ", "ß", "ﬁ", "😀",
    "0", "-1", "1e999", "NaN", "nan", "inf", "null", "true", "None", "[]", "{}", "[", "{", '"', "'", "\\", "\\u0000", "%00",
    "%ff", "../../etc/passwd", "/etc/passwd", "file:///etc/hosts", "CON", "a" * 5000, "(" * 300, "a b " * 500, "#1", "#999",
    "$in", "$and", "2023-10-07", "9999-12-31", "0001-01-01", "0000-00-00", "2023-02-30", "2023-10-07T99:99:99Z", "10000-01-01",
    "February 30, 2023", "last 99999999999 years", "since 9999", "before January 0001", "१२३", "²", "Ⅷ", "<script>", "{{7*7}}",
    "${x}", "%s%n", "'; drop table", "=cmd()", "\x1b[31m", "https://en.wikipedia.org/wiki/%zz", "Q0", "0x10", "1_000", "١",
    "en.wikipedia.org/w/index.php?title=",
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 5e-324, 1.8e308, math.nan, math.inf, -math.inf,
    [], {}, [[]], [None], {"": None}, [[[[[[]]]]]], {"a": {"b": {"c": {}}}}, ["a", 1, None], {"doc_id": 1}, *ODD_TEXTS,
)  # fmt: skip
# What json.dumps cannot write; each is a placeholder until the text is made.
SPELLINGS = (
    b"9" * 5000, b"1e99999", b"-", b"01", b"+1", b"0x1F", b"nan", b"undefined", b"'a'", b"[" * 3000, b'{"a":' * 3000,
    b"[[]" * 500, b'"\\ud83d"', b'"\\x41"', b'"\xff"', b'"\xed\xa0\x80"', b'"\\u12"', b'"unended', b"/* */1", b"1,", b"[1,]",
    b'{"a":1,"a":2}', b"", b"[" + b"1," * 2000 + b"1]", b'{"k":1' + b"".join(b',"k%d":0' % at for at in range(300)) + b"}",
    b"tru", b"\x00", b"\xef\xbb\xbf1",
)  # fmt: skip
_MARK = "@@%d@@"
PIECES: tuple[bytes, ...] = (
    *(one.encode("utf-8", "surrogatepass") for one in ODD_TEXTS),
    b"\xff", b"\xc3\x28", b"\x80", b"\xf8\x88\x80\x80\x80", b"\r", b"\n\n", b",", b":", b"}", b"]", b"\x1a",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Input:
    """What is read, and which file or form of a target it is."""

    part: str
    content: bytes


@dataclass(frozen=True)
class Seed:
    """A valid input from which others are made. With `lines`, each line is a value of its own."""

    part: str
    content: bytes
    lines: bool = False

    @cached_property
    def values(self) -> tuple[str, ...] | None:
        """Its JSON values as texts; None if it is not JSON."""
        try:
            given = self.content.decode().splitlines() if self.lines else [self.content.decode()]
            return tuple(json.dumps(json.loads(one)) for one in given if one.strip())
        except ValueError:
            return None


def mutate(seeds: Sequence[Seed], key: str) -> Input:
    """One input made from one of the seeds; the same key gives the same input."""
    draw = Random(key)
    seed = seeds[draw.randrange(len(seeds))]
    content = seed.content
    way = draw.random()
    if seed.values and way < 0.7:
        content = _altered_values(seed, draw)
    elif seed.values is None and way < 0.5:
        content = _altered_cells(content, draw)
    if content is seed.content or draw.random() < 0.15:
        for _ in range(draw.choice((1, 1, 2, 3, 8))):
            content = _altered_bytes(content, draw, seeds)
    return Input(seed.part, content[:LARGEST])


# ---- JSON


def _altered_values(seed: Seed, draw: Random) -> bytes:
    known = seed.values or ()
    chosen = draw.randrange(len(known))
    root = [json.loads(known[chosen])]
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        _alter(root, draw)
    # Both spellings of characters beyond ASCII; a lone surrogate has only one that a file can hold.
    text = (
        json.dumps(root[0], ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass")
        if root
        else b""
    )
    lines = [one.encode() for one in known]
    lines[chosen] = _spelt(text)
    if draw.random() < 0.1:
        lines.insert(draw.randrange(len(lines) + 1), draw.choice((b"", b" ", lines[chosen])))
    return b"\n".join(lines) if seed.lines else lines[chosen]


def _alter(root: list[Any], draw: Random) -> None:
    """One change at one place, on the way down from the root."""
    holder: Any = root
    while True:
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        if not keys:
            _grow(holder, draw)
            return
        at = keys[draw.randrange(len(keys))]
        below = holder[at]
        if not isinstance(below, dict | list) or draw.random() < 0.25:
            break
        holder = below
    draw.choice(CHANGES)(holder, at, draw)


def _odd(draw: Random) -> Any:
    if draw.random() < 0.2:
        return _MARK % draw.randrange(len(SPELLINGS))
    return deepcopy(ODD_VALUES[draw.randrange(len(ODD_VALUES))])  # it may be mutated again


def _spelt(text: bytes) -> bytes:
    if b"@@" in text:
        for at, spelling in enumerate(SPELLINGS):
            text = text.replace(b'"@@%d@@"' % at, spelling)
    return text


def _grow(holder: Any, draw: Random) -> None:
    if isinstance(holder, dict):
        holder[draw.choice(ODD_TEXTS)] = _odd(draw)
    else:
        holder.append(_odd(draw))


def _replace(holder: Any, at: Any, draw: Random) -> None:
    holder[at] = _odd(draw)


def _drop(holder: Any, at: Any, draw: Random) -> None:
    del holder[at]


def _again(holder: Any, at: Any, draw: Random) -> None:
    if isinstance(holder, list):
        holder[at:at] = [holder[at]] * draw.choice((1, 1, 2, 40))
    else:
        holder[draw.choice(ODD_TEXTS)] = holder[at]


def _rename(holder: Any, at: Any, draw: Random) -> None:
    if isinstance(holder, dict):
        holder[draw.choice((f"{at}s", str(at).upper(), f" {at}", draw.choice(ODD_TEXTS)))] = (
            holder.pop(at)
        )
    else:
        holder[at] = {"value": holder[at]}


def _wrap(holder: Any, at: Any, draw: Random) -> None:
    holder[at] = draw.choice(([holder[at]], {"a": holder[at]}, str(holder[at]), [holder[at]] * 3))


def _retype(holder: Any, at: Any, draw: Random) -> None:
    """Almost the same value: a text with something inserted, a nearby number."""
    value = holder[at]
    if isinstance(value, str):
        cut = draw.randrange(len(value) + 1)
        holder[at] = value[:cut] + draw.choice(ODD_TEXTS) + value[cut + draw.randrange(3) :]
    elif isinstance(value, int) and abs(value) < 2**70:
        holder[at] = draw.choice(
            (value + 1, -value, value + 0.5, str(value), bool(value), value * 10**30)
        )
    else:
        holder[at] = _odd(draw)


CHANGES: tuple[Callable[[Any, Any, Random], None], ...] = (
    _replace,
    _replace,
    _drop,
    _again,
    _rename,
    _wrap,
    _retype,
    _retype,
)


# ---- cells and bytes


def _altered_cells(content: bytes, draw: Random) -> bytes:
    """Replace a cell of a line, or a whole line."""
    lines = content.split(b"\n")
    at = draw.randrange(len(lines))
    gap = b"\t" if b"\t" in lines[at] else b" "
    cells = lines[at].split(gap)
    place = draw.randrange(len(cells))
    way = draw.randrange(6)
    if way < 3:
        cells[place] = PIECES[draw.randrange(len(PIECES))]
    elif way == 3:
        cells.insert(place, PIECES[draw.randrange(len(PIECES))])
    elif way == 4:
        del cells[place]
    else:
        lines.insert(at, lines[draw.randrange(len(lines))])
    lines[at] = gap.join(cells)
    return b"\n".join(lines)


def _altered_bytes(content: bytes, draw: Random, seeds: Sequence[Seed]) -> bytes:
    size = len(content)
    at = draw.randrange(size + 1)
    to = min(size, at + draw.choice((1, 1, 2, 4, 16, 200)))
    way = draw.randrange(9)
    if way == 0:
        return content[:at]
    if way == 1:
        return content[:at] + content[to:]
    if way == 2:
        return content[:at] + PIECES[draw.randrange(len(PIECES))] + content[at:]
    if way == 3:
        return content[:at] + content[at:to] * draw.choice((2, 3, 100)) + content[to:]
    if way == 4:
        return content[:at] + draw.randbytes(to - at) + content[to:]
    if way == 5:
        other = seeds[draw.randrange(len(seeds))].content
        cut = draw.randrange(len(other) + 1)
        return content[:at] + other[cut : cut + 400]
    if way == 6:
        return content[at:] + content[:at]
    if not size or at == size:
        return content + b"\xff"
    changed = bytearray(content)
    changed[at] = (
        changed[at] ^ (1 << draw.randrange(8))
        if way == 7
        else draw.choice((0, 10, 34, 44, 92, 123, 127, 255))
    )
    return bytes(changed)
