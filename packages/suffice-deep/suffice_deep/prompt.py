"""A list of hits as tokens, as the adapter was trained to read it.

The question, numbered hits, the question again, then " 1?" " 2?" ... " all?". After each of these
the model says yes or no. What is too long is cut: of a long text, the parts that share most words
with the question are read, and of many hits, those that share most.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from suffice.lexicon import FUNCTION_WORDS
from suffice.protocols import HitTexts

Tokens = npt.NDArray[np.integer[Any]]
TITLE, BODY, QUESTION = 120, 640, 160  # characters; tokens of a hit and of the question
MOST_HITS, LONGEST = 12, 3000  # hits and tokens of a list: as many as in training
MAX_CHARS = 40_000  # of a text: bounds what hostile input can cost
PART = 128  # tokens of a part of a long text
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class EncodedList:
    ids: Tokens
    places: list[int]  # where the model is asked: after each hit's number, then after " all?"
    hits: list[int]  # which were read
    notes: tuple[str, ...]  # what was left out


def flat_text(text: str) -> str:
    """One line, with marks where lines ended: only the list itself has line breaks."""
    return " / ".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


class Prompt:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        numbers = range(1, MOST_HITS + 1)
        self._heads = self._encode([f"[{n}] " for n in numbers])
        self._asks = self._encode([f" {n}?" for n in numbers])
        self._all, self._line, self._start = self._encode([" all?", "\n", "Question: "])

    def encode(self, hits: HitTexts) -> EncodedList:
        question, titles, texts = hits
        clean = _clean(question)
        (asked,) = self._encode([clean])
        words = {one for one in _words(clean) if one not in FUNCTION_WORDS}
        shown = list(range(len(texts)))
        if len(shown) > MOST_HITS:
            found = [_words(f"{_clean(t)} {_clean(x)}") & words for t, x in zip(titles, texts)]
            shown = sorted(sorted(shown, key=lambda at: (-len(found[at]), at))[:MOST_HITS])
        heads = [f"{_clean(titles[at])[:TITLE]}: " if titles[at].strip() else "" for at in shown]
        named, read = self._encode(heads), self._encode([_clean(texts[at]) for at in shown])
        fixed = 2 * (len(asked[:QUESTION]) + 8) + sum(len(one) + 12 for one in named)
        room = _fair_share([len(one) for one in read], LONGEST - fixed)
        bodies = [self._best_parts(one, room, words) for one in read]
        ids, places = self._join(
            asked[:QUESTION], [np.concatenate(one) for one in zip(named, bodies, strict=True)]
        )
        cut = sum(
            len(one) > room or len(texts[at]) > MAX_CHARS
            for at, one in zip(shown, read, strict=True)
        )
        notes = (
            (len(shown) < len(texts), f"Read were {len(shown)} of {len(texts):,} hits."),
            (cut > 0, f"Of {cut} long hits, only the parts closest to the question were read."),
            (
                len(asked) > QUESTION or len(question) > MAX_CHARS,
                "Only the question's start was read.",
            ),
        )
        return EncodedList(ids, places, shown, tuple(note for so, note in notes if so))

    def _encode(self, texts: Sequence[str]) -> list[Tokens]:
        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [np.array(one.ids, np.int64) for one in found]

    def _join(self, question: Tokens, hits: Sequence[Tokens]) -> tuple[Tokens, list[int]]:
        asked = [self._start, question, self._line]
        parts = list(asked)
        for head, hit in zip(self._heads, hits):
            parts += [head, hit, self._line]
        parts += asked
        at, places = sum(map(len, parts)), []
        for part in (*self._asks[: len(hits)], self._all):
            parts.append(part)
            at += len(part)
            places.append(at - 1)
        return np.concatenate(parts), places

    def _best_parts(self, text: Tokens, room: int, words: set[str]) -> Tokens:
        """The parts with most words of the question, rare ones before frequent ones."""
        if len(text) <= room:
            return text
        size = min(PART, room)
        parts = [text[at : at + size] for at in range(0, len(text), size)]
        found = [
            _words(one) & words for one in self._tokenizer.decode_batch([p.tolist() for p in parts])
        ]
        count = {word: sum(word in one for one in found) for word in words}
        score = [sum(log(1 + len(parts) / count[word]) for word in one) for one in found]
        order = sorted(range(len(parts)), key=lambda at: (-score[at], at))
        return np.concatenate([parts[at] for at in sorted(order[: room // size])])


def _clean(text: str) -> str:
    """The text as it is read: lone surrogates are no text."""
    return flat_text(text[:MAX_CHARS].encode("utf-8", "replace").decode())


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _fair_share(sizes: Sequence[int], total: int) -> int:
    """How many tokens each hit may have, so that all together fit."""
    room = BODY
    while room > 1 and sum(min(one, room) for one in sizes) > total:
        room = room * 9 // 10
    return room
