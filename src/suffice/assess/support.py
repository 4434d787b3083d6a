"""Independent support: is what a hit holds of the question borne out by the rest of its document, or was it put there?

Who can write a document can write the question's names into it. Words that were put there stand close together, in the
question's order, say little besides, and are tied to nothing else in their document; or they stand in a title that its text
does not bear out, or in every hit alike. So each hit's *crowd* is looked at: the stretch of its text that holds most of the
question's words beyond those of its title. `assess.screen` learns what these columns are worth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from ahocorasick_rs import BytesAhoCorasick, Implementation

from suffice.assess import folding
from suffice.assess.asking import Asked
from suffice.assess.folding import QUIET
from suffice.assess.pages import MAX_TITLE, Page, page
from suffice.assess.words import Words

__all__ = ["SUPPORT_HIT", "support"]

Floats = npt.NDArray[np.floating[Any]]
Match = tuple[int, int, int]  # which word of the question, from where to where
STRETCH = 160  # bytes of text in which words are a crowd
AROUND = 40  # bytes before and behind a crowd that belong to it
FAR = 400  # bytes from either end of a text beyond which it does not matter how far
# Bounds on the time that a hostile input can take.
MOST_WORDS = 400  # of the question, found in one hit
MOST_HITS = 50  # that a hit is compared with

SUPPORT_HIT = {
    "title_borne_out": "Share of its title's words, by rarity, that stand in its text; -1 without a title or text.",
    "filled": "Share of its text that is words of the question.",
    "length": "How long its text is, in units of 400 bytes, up to 2.5.",
    "crowd": "Share of the question's words, by rarity, that its crowd holds and its title does not.",
    "apart": "The same of its text outside the crowd.",
    "crowd_names": "How many of the question's names stand in its crowd.",
    "crowd_filled": "Share of the crowd, from its first to its last word of the question, that is such words.",
    "crowd_order": "Longest run of words in the crowd that stand so in the question, up to 8.",
    "crowd_tied": "Share of the other words around the crowd, by rarity, that its document has elsewhere; -1 without any.",
    "crowd_new": "How many other words stand around the crowd.",
    "crowd_again": "How often the crowd stands in its text once more, up to 5.",
    "crowd_elsewhere": "How many other hits hold the same crowd, up to 5.",
    "crowd_from_end": "How far the crowd is from the end of the text, in units of 400 bytes, up to 1.",
    "crowd_from_start": "The same from the start.",
    "alike": "Share of its names that the hit most like it has, too.",
}


class _Crowd(NamedTuple):
    weight: float
    start: int
    end: int
    held: frozenset[int]


class _Hit(NamedTuple):
    """One hit, as far as the question's words go: each by its place in the question."""

    flat: bytes
    text_at: int
    filled: float
    apart: frozenset[int]
    crowd: _Crowd
    borne_out: float


def support(asked: Asked, titles: Sequence[str], texts: Sequence[str], words: Words) -> Floats:
    """The columns of each hit: (hits, SUPPORT_HIT), float32."""
    pages = list(map(page, titles, texts))
    if not pages or not asked.stems:
        return np.zeros((len(pages), len(SUPPORT_HIT)), np.float32)
    return _Pass(asked, titles, pages, words).rows()


class _Pass:
    """One question and its hits, while they are looked at."""

    def __init__(self, asked: Asked, titles: Sequence[str], pages: Sequence[Page], words: Words) -> None:
        self.asked, self.words = asked, words
        self.total = sum(asked.rarity) or 1.0
        self.follows = set(pairwise(asked.tokens))
        self.begins = tuple(stem.strip() for stem in asked.stems)
        self.alike = _alike(pages)
        finder = BytesAhoCorasick(asked.stems, implementation=Implementation.NoncontiguousNFA)  # the quickest to make
        self.hits = [
            self._hit(one, title, finder.find_matches_as_indexes(one.flat, overlapping=True)[:MOST_WORDS])
            for one, title in zip(pages, titles, strict=True)
        ]

    def rows(self) -> Floats:
        rows = [self._row(at, hit) for at, hit in enumerate(self.hits)]
        return np.array(rows, dtype=np.float32).reshape(-1, len(SUPPORT_HIT))

    def _hit(self, page: Page, title: str, matches: Sequence[Match]) -> _Hit:
        text_at = len(folding.fold(folding.plain(title[:MAX_TITLE]))) - 1 if title else 0
        in_title = {which for which, start, _ in matches if start < text_at}
        own = [one for one in matches if one[1] >= text_at]
        foreign = [one for one in own if one[0] not in in_title]
        filled = sum([end - start for _, start, end in own]) / max(len(page.flat) - text_at, 1)
        crowd = _crowd(foreign, self.asked.rarity)
        apart = frozenset(which for which, start, end in foreign if end <= crowd.start or start >= crowd.end)
        borne_out = self._share_in(page.words, page.flat[text_at:]) if page.has_text else -1.0
        return _Hit(page.flat, text_at, min(filled, 1.0), apart, crowd, borne_out)

    def _share_in(self, words: Sequence[bytes], text: bytes) -> float:
        """The share of the words, by rarity, that stand in a text; -1 without any."""
        rare = self.words.rarities(words)
        whole = sum(rare)
        return sum([one for word, one in zip(words, rare, strict=True) if b" %b " % word in text]) / whole if whole else -1.0

    def _row(self, at: int, hit: _Hit) -> list[float]:
        crowd, flat = hit.crowd, hit.flat
        whole = hit.borne_out, hit.filled, min((len(flat) - hit.text_at) / FAR, 2.5)
        if not crowd.held:
            return [*whole, *[0.0] * 5, -1.0, 0, 0, 0, 1, 1, self.alike[at]]
        core, several = flat[crowd.start : crowd.end], len(crowd.held) > 1
        filled = sum(len(self.asked.stems[which]) for which in crowd.held) / max(len(core), 1)
        others = [other.flat for place, other in enumerate(self.hits[:MOST_HITS]) if place != at]
        near_names = flat[max(crowd.start - 1, 0) : crowd.end + AROUND]
        return [
            *whole, crowd.weight / self.total, sum(map(self.asked.rarity.__getitem__, hit.apart)) / self.total,
            sum(name in near_names for name in self.asked.names), min(filled, 1.0), self._run(core.split()),
            *self._tied(hit),
            min(flat.count(core) - 1, 5) if several else 0, min(sum(core in other for other in others), 5) if several else 0,
            min((len(flat) - crowd.end) / FAR, 1.0), min((crowd.start - hit.text_at) / FAR, 1.0), self.alike[at],
        ]  # fmt: skip

    def _run(self, tokens: Sequence[bytes]) -> int:
        """How long the words follow one another as they do in the question."""
        longest = run = 0
        for pair in pairwise(tokens):
            run = run + 1 if pair in self.follows else 0
            longest = max(longest, run)
        return min(longest, 8)

    def _tied(self, hit: _Hit) -> tuple[float, int]:
        """The share of the other words around the crowd that the document has elsewhere, and how many they are."""
        start, end = max(hit.crowd.start - AROUND, hit.text_at), hit.crowd.end + AROUND
        around = dict.fromkeys(hit.flat[start:end].split()[1:-1])  # the words at its ends may be cut
        new = [word for word in around if word not in QUIET and not word.startswith(self.begins)]
        return self._share_in(new, hit.flat[:start] + b" " + hit.flat[end:]), len(new)


def _crowd(matches: Iterable[Match], rarity: Sequence[float]) -> _Crowd:
    """The stretch that holds most of the question, by rarity; the first of equals, from its first word to its last."""
    best, first, weight, told = _Crowd(0.0, 0, 0, frozenset()), 0, 0.0, list(matches)
    inside: Counter[int] = Counter()
    for which, _, end in told:
        weight += 0.0 if inside[which] else rarity[which]
        inside[which] += 1
        while end - told[first][1] > STRETCH and told[first][2] < end:
            gone = told[first][0]
            inside[gone] -= 1
            weight -= 0.0 if inside[gone] else rarity[gone]
            first += 1
        if weight > best.weight + 1e-9:
            best = _Crowd(weight, told[first][1], end, frozenset(one for one, count in inside.items() if count))
    return best


def _alike(pages: Sequence[Page]) -> list[float]:
    """For each hit, the share of names that the hit most like it has in common with it."""
    every = [one.names for one in pages]
    return [
        max((_common(own, other) for place, other in enumerate(every[:MOST_HITS]) if place != at), default=0.0)
        for at, own in enumerate(every)
    ]


def _common(one: frozenset[bytes], other: frozenset[bytes]) -> float:
    return len(one & other) / max(len(one), len(other), 1)
