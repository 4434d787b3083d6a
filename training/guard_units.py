"""What a guard against stuffing would look at: each title and sentence of a hit beside the question, then the hit as a whole.

A *unit* is a title or a sentence that holds a word of the question. A stuffed one holds much of the question, little else, and
nothing that ties it to its document. See `training.guard_study` and decision 29.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.assess import folding
from suffice.assess.asking import ask
from suffice.assess.folding import OPENERS, QUIET
from suffice.assess.looking import MONTHS
from suffice.assess.words import Words

Floats = npt.NDArray[np.floating[Any]]
Hit = Mapping[str, Any]
_END = re.compile(r"(?<=[\w)\"'’”][\w)\"'’”][.!?])[\"')”]?\s+|\n+|(?<=[?!])\s+")
_CAPITAL = re.compile(rb"(?<![A-Za-z\x80-\xff])[A-Z\xc3-\xc5][A-Za-z0-9\x80-\xff]*")
MOST_UNITS, MAX_CHARS, MAX_TITLE = 60, 4_000, 200
COMMON = 0.5  # rarity below which a word is an ordinary one
OPENING = 0.8  # … below which a capital at the start of a sentence tells no name

UNIT = (
    "is_title", "held", "foreign", "held_of_content", "words_held", "names", "names_foreign", "foreign_of_content", "new",
    "new_rarity", "new_rarest", "new_common", "own_capitals", "own_numbers", "tied", "tied_rarity", "tied_share", "pairs",
    "longest_run", "length", "quiet", "place", "units", "is_last", "twins_elsewhere", "twins_here", "like_the_rest",
    "like_the_question", "held_elsewhere_too", "only_here", "title_borne_out", "repetition", "density",
)  # fmt: skip
WHOLE = (
    "first", "second", "third", "sum", "mean", "units", "characters", "no_title", "hits", "foreign", "most_names_foreign",
    "names_foreign", "title", "sentence", "share_with_foreign",
)  # fmt: skip


class Piece(NamedTuple):
    """A title or sentence, whatever the question."""

    tokens: list[bytes]
    flat: bytes
    content: list[bytes]
    rarity: list[float]
    capitals: list[bytes]
    rows: list[int]
    vector: Floats


@dataclass(frozen=True)
class Seen:
    """A hit: its units that hold words of the question, which pieces they are, and the length of every piece."""

    rows: Floats  # (units, UNIT)
    at: list[int]
    pieces: list[str]  # the title first


class Ear:
    """One question, and the words that it is listened to for."""

    def __init__(self, question: str, words: Words) -> None:
        self.words, self.asked = words, ask(question, words)
        self.exact = {word: at for at, word in enumerate(self.asked.content)}
        self.stems = {stem.strip(): at for at, stem in enumerate(self.asked.stems)}
        self.lengths = sorted({len(stem) for stem in self.stems if len(stem) > 3})
        self.total = sum(self.asked.rarity) or 1.0
        self.pairs = set(zip(self.asked.tokens, self.asked.tokens[1:]))
        self.vector = words.vectors([self.asked.content])[0]
        self._known: dict[bytes, int] = {}
        self.in_names = [[self.which(word) for word in name.split() if word not in QUIET] for name in self.asked.names]

    def which(self, word: bytes) -> int:
        """The place of the question's word that this one is or begins like; -1 without."""
        found = self._known.get(word)
        if found is None:
            begins = (self.stems.get(word[:length], -1) for length in self.lengths) if word not in QUIET else ()
            found = self.exact.get(word, -1)
            found = self._known[word] = found if found >= 0 else next((one for one in begins if one >= 0), -1)
        return found

    def weight(self, held: Iterable[int]) -> float:
        return sum(self.asked.rarity[at] for at in held)


def pieces(hit: Hit) -> list[str]:
    """Its title, and its sentences behind the outlet and the day."""
    day = hit.get("published_at")
    byline = ". ".join(filter(None, (hit.get("source"), f"{MONTHS[day.month - 1]} {day.day}, {day.year}" if day else "")))
    text = [one for one in _END.split(hit["text"][:MAX_CHARS]) if one.strip()]
    return [hit["title"][:MAX_TITLE], *[*filter(None, [byline]), *text][:MOST_UNITS]]


def seen(ear: Ear, hits: Sequence[Hit]) -> list[Seen]:
    """One entry a hit."""
    told = [pieces(hit) for hit in hits]
    read = [[_piece(one, ear.words) for one in each] for each in told]
    twins = Counter(flat for each in read for flat in {one.flat for one in each[1:] if len(one.tokens) > 2})
    return [_seen(ear, each, own, twins) for each, own in zip(told, read, strict=True)]


@lru_cache(200_000)
def _piece(text: str, words: Words) -> Piece:
    raw = folding.plain(text)
    tokens = folding.fold(raw).split()
    content = [word for word in tokens if word not in QUIET and len(word) > 1]
    rows = [words._row.get(word, 0) for word in content]
    vector = words._vectors[rows].sum(0, dtype=np.float32)
    capitals = {one.lower() for one in _CAPITAL.findall(raw)} - OPENERS - QUIET
    first = tokens[0] if tokens else b""
    named = [one for one in sorted(capitals) if one != first or words.rarities([one])[0] >= OPENING]
    return Piece(tokens, b" %b " % b" ".join(tokens), content, words.rarities(content), named, rows, vector)


def _seen(ear: Ear, told: list[str], read: list[Piece], twins: Counter[bytes]) -> Seen:
    which = [[ear.which(word) for word in one.content] for one in read]
    held = [{at for at in one if at >= 0} for one in which]
    in_title = held[0]
    holders, words = Counter(at for one in held for at in one), Counter(word for one in read for word in set(one.tokens))
    here = Counter(one.flat for one in read[1:])
    rest = [_without(one, at, ear.words) for one, at in zip(read, which, strict=True)]
    every = np.sum(rest, axis=0)
    rows, places = [], []
    for place, (one, at, mine) in enumerate(zip(read, which, held, strict=True)):
        if mine:
            foreign = mine - in_title if place else mine
            twin = (twins[one.flat] - 1, here[one.flat] - 1) if place else (0, 0)
            rows.append(
                [
                    *_held(ear, one, at, mine, foreign, in_title if place else set()),
                    *_new(ear, one, at, words),
                    *_form(ear, one),
                    place / max(len(read) - 1, 1), len(read), place == len(read) - 1, *twin,
                    _cosine(rest[place], every - rest[place]), _cosine(rest[place], ear.vector),
                    ear.weight(x for x in mine if holders[x] > 1) / max(ear.weight(mine), 1e-9),
                    ear.weight(x for x in foreign if holders[x] == 1) / ear.total,
                    -1.0 if place else sum(words[word] > 1 for word in one.content) / max(len(one.content), 1),
                    len(one.tokens) / max(len(set(one.tokens)), 1), len(foreign) / max(len(one.tokens), 1),
                ]
            )  # fmt: skip
            rows[-1].insert(0, float(not place))
            places.append(place)
    return Seen(np.array(rows, dtype=np.float32).reshape(-1, len(UNIT)), places, told)


def _held(ear: Ear, one: Piece, at: list[int], mine: set[int], foreign: set[int], in_title: set[int]) -> list[float]:
    """How much of the question a unit holds, and how much of that its title does not."""
    content = max(len(one.content), 1)
    named = [place for place, name in enumerate(ear.asked.names) if name in one.flat]
    strange = [place for place in named if not in_title or any(x not in in_title for x in ear.in_names[place])]
    return [
        ear.weight(mine) / ear.total, ear.weight(foreign) / ear.total, sum(x >= 0 for x in at) / content, len(mine),
        len(named), len(strange), sum(x in foreign for x in at) / content,
    ]  # fmt: skip


def _new(ear: Ear, one: Piece, at: list[int], words: Counter[bytes]) -> list[float]:
    """What else it says, and how far that is tied to the rest of its document."""
    new = [(word, rare) for word, rare, x in zip(one.content, one.rarity, at, strict=True) if x < 0]
    rarity = [rare for _, rare in new]
    tied = {word: rare for word, rare in new if words[word] > 1}
    whole, bound = sum(rarity), sum(tied.values())
    return [
        len(new), whole, max(rarity, default=0.0), sum(rare < COMMON for rare in rarity) / max(len(new), 1),
        sum(ear.which(word) < 0 for word in one.capitals), len({word for word, _ in new if word.isdigit()}),
        len(tied), bound, bound / whole if whole else -1.0,
    ]  # fmt: skip


def _form(ear: Ear, one: Piece) -> list[float]:
    """How far it goes in the question's own order."""
    pairs = list(zip(one.tokens, one.tokens[1:]))
    longest = run = 0
    for pair in pairs:
        run = run + 1 if pair in ear.pairs else 0
        longest = max(longest, run)
    length = max(len(one.tokens), 1)
    quiet = len(one.tokens) - len(one.content)
    return [len(ear.pairs.intersection(pairs)) / max(len(ear.pairs), 1), longest, len(one.tokens), quiet / length]


def _without(one: Piece, at: list[int], words: Words) -> Floats:
    """The sum of its words' vectors, less those of the question's."""
    asked = [row for row, x in zip(one.rows, at, strict=True) if x >= 0]
    return np.asarray(one.vector - words._vectors[asked].sum(0, dtype=np.float32) if asked else one.vector)


def _cosine(one: Floats, other: Floats) -> float:
    length = float(one @ one) * float(other @ other)
    return float(one @ other) / length**0.5 if length > 1e-9 else -1.0


def whole(each: Sequence[Seen], odds: Sequence[Floats]) -> Floats:
    """A row a hit: what the units' log-odds say together, and the unit that is most suspect. (hits, WHOLE + UNIT)."""
    return np.array([_whole(one, mine, len(each)) for one, mine in zip(each, odds, strict=True)], dtype=np.float32)


def _whole(one: Seen, odds: Floats, hits: int) -> list[float]:
    down = np.sort(odds)[::-1]
    top = one.rows[int(np.argmax(odds))] if len(odds) else np.zeros(len(UNIT))
    first = [*down[:3], *[-12.0] * (3 - len(down[:3]))]
    foreign, names = one.rows[:, UNIT.index("foreign")], one.rows[:, UNIT.index("names_foreign")]
    title, text = ([x for x, place in zip(odds, one.at, strict=True) if bool(place) is body] for body in (False, True))
    return [
        *first, np.logaddexp(0, np.clip(down, -12, 12)).sum(), down.mean() if len(down) else -12.0, len(one.pieces),
        sum(map(len, one.pieces)), not one.pieces[0], hits, foreign.sum(), max(names, default=0), names.sum(),
        max(title, default=-12.0), max(text, default=-12.0), (names > 0).mean() if len(names) else 0, *top,
    ]  # fmt: skip
