"""The bridge that reads: a set scorer looks at the best candidates before each choice.

Reading costs some forty milliseconds a candidate, so it is done where it can change something: the best FIRST before anything
is held, the best AGAIN given the first document, and fewer in every later round, where pairs are longer and less is missing. A
second ranker weighs what was read with everything the bridge knows anyway; what a candidate was worth alone is remembered, so
that the next round knows whom to read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.ports import Encoder, Store
from suffice.retrieve.bridge import Bridge
from suffice.retrieve.corpus import searchable
from suffice.retrieve.name_links import NameLinks
from suffice.retrieve.pool import FEATURES, Feature, Pool
from suffice.retrieve.ranker import Ranker
from suffice.types import Hit

__all__ = [
    "AGAIN",
    "FIRST",
    "READING",
    "UNREAD",
    "ReadingBridge",
    "SetScorer",
    "breadth",
    "log_odds",
    "reading_rows",
    "shortlist",
]

Floats = npt.NDArray[np.floating[Any]]

FIRST, AGAIN = 20, (5, 3, 2, 2)
UNREAD = -20.0  # below every log-odds, so that trees tell it from what was read

READING = (
    *FEATURES,
    Feature("alone", "The scorer's log-odds with nothing held.", 1),
    Feature("now", "The scorer's log-odds given what is held.", 1),
    Feature("alone_behind", "How far that is behind the best candidate not held.", -1),
    Feature("now_behind", "How far that is behind the best candidate not held.", -1),
)


@runtime_checkable
class SetScorer(Protocol):
    def score(self, question: str, held: Sequence[str], candidates: Sequence[str]) -> Floats:
        """The probability that each candidate is needed next, given the texts already held: (candidates,)."""
        ...


class ReadingBridge(Bridge):
    """A Bridge whose `ranker`, one over the columns READING, chooses whom the scorer reads and then whom to hold."""

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        links: NameLinks,
        ranker: Ranker,
        *,
        scorer: SetScorer,
        first: int = FIRST,
        again: int | Sequence[int] = AGAIN,
        **options: Any,
    ) -> None:
        super().__init__(store, encoder, links, ranker, **options)
        rounds = [again] if isinstance(again, int) else list(again)
        if first < 1 or min(rounds, default=-1) < 0:
            raise InputError(f"first is {first}, again is {again}: too few to read")
        self.scorer, self.first, self.again = scorer, first, again
        self._alone: WeakKeyDictionary[Pool, Floats] = WeakKeyDictionary()

    def judged(self, pools: Sequence[Pool]) -> list[Floats]:
        """How likely each candidate of each pool is needed next; what is held already counts -1."""
        features = [pool.features() for pool in pools]
        alone = [self._remembered(pool) for pool in pools]
        unread = [np.full(len(pool), UNREAD) for pool in pools]
        guess = self._ranked(pools, _beside(pools, features, alone, unread))
        now = self.read(pools, [shortlist(p, breadth(len(pool.held), self.first, self.again)) for pool, p in zip(pools, guess)])
        for pool, read in zip(pools, now):
            if not pool.held:
                self._alone[pool] = read
        return self._ranked(pools, _beside(pools, features, [self._remembered(pool) for pool in pools], now))

    def read(self, pools: Sequence[Pool], chosen: Sequence[Sequence[int]]) -> list[Floats]:
        """The scorer's log-odds of the chosen candidates, UNREAD for the others: (candidates,) each."""
        found = []
        for pool, at in zip(pools, chosen):
            texts = [searchable(document) for document in pool.documents]
            said = self.scorer.score(pool.asked.text, [texts[one] for one in pool.held], [texts[one] for one in at])
            row = np.full(len(pool), UNREAD)
            row[list(at)] = log_odds(np.asarray(said, dtype=float))
            found.append(row)
        return found

    def _judged_near(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        return _stretched(hits)

    def _remembered(self, pool: Pool) -> Floats:
        """What was read with nothing held; candidates that joined since then are unread."""
        known = self._alone.get(pool, np.zeros(0))
        return np.concatenate([known, np.full(len(pool) - len(known), UNREAD)])


def _stretched(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Scores from 1 (best) to 0 (last): a good encoder's lie close together."""
    scores = np.array([hit.score or 0.0 for hit in hits])
    if not len(scores) or scores[0] <= scores[-1]:
        return hits
    spread = (scores - scores[-1]) / (scores[0] - scores[-1])
    return tuple(replace(hit, score=float(score)) for hit, score in zip(hits, spread))


def _beside(pools: Sequence[Pool], features: Sequence[Floats], alone: Sequence[Floats], now: Sequence[Floats]) -> list[Floats]:
    """The rows of each pool's candidates, with what was read."""
    return [reading_rows(*one) for one in zip(features, alone, now, [pool.held for pool in pools])]


def reading_rows(features: Floats, alone: Floats, now: Floats, held: Sequence[int]) -> Floats:
    """The bridge's features with what was read beside them: (candidates, READING)."""
    free = np.ones(len(features), bool)
    free[list(held)] = False
    behind = [np.where(one > UNREAD, one[free].max(initial=UNREAD) - one, -UNREAD) for one in (alone, now)]
    return np.column_stack([features, alone, now, *behind]).astype(np.float32)


def breadth(held: int, first: int = FIRST, again: int | Sequence[int] = AGAIN) -> int:
    """How many are read when so many are held; `again` for every round, or for one, two, three ... held and more."""
    if not held:
        return first
    return again if isinstance(again, int) else again[min(held, len(again)) - 1]


def shortlist(p: Floats, count: int) -> list[int]:
    """Where the best `count` stand that are not held."""
    return [at for at in np.argsort(-p, kind="stable")[:count].tolist() if p[at] >= 0]


def log_odds(p: Floats) -> Floats:
    """Of a probability; 0 and 1 count as -15 and 15."""
    clipped = np.clip(p, 3e-7, 1 - 3e-7)
    return np.asarray(np.log(clipped / (1 - clipped)))
