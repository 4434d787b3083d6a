"""Searches of many questions at a time with a set scorer and a reader, as `bridge-quality` does one
by one, and the states along them that a reader learns from.

It needs no encoder: a `Collection` holds the pools of its questions.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.numeric import log_odds_array
from suffice.retrieval.bridge import WeightedRanker
from suffice.retrieval.candidate_pool import FEATURES, TITLED_FEATURES, CandidatePool
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.name_links import NameLinks
from suffice.types import DocId
from suffice_research.bridge_quality import (
    LEAST_P,
    MAX_LOG_ODDS,
    QUALITY_FEATURES,
    READ_AGAIN,
    READ_FIRST,
    UNREAD,
    PairTokenizer,
    QualityBridgeRetriever,
    TokenPair,
    quality_rows,
    read_count,
    shortlist,
)
from suffice_research.next_hop import NextHopEncoder
from suffice_research.training.scorer_data import ScorerQuestion

__all__ = ["Collection", "States", "Unasked", "fit_reader", "folds", "hand_rank", "search"]

Floats = npt.NDArray[np.floating[Any]]
SETS = ("musique", "hotpotqa", "2wikimultihopqa")
FOLDS, CHOICES, HOPS = 5, 5, 3
Score = Callable[[Sequence[TokenPair]], Floats]  # pairs -> log-odds
Rank = Callable[[Floats], Floats]  # rows -> p


class Unasked:
    """An encoder and a scorer that nobody asks."""

    name, dimension = "nothing", 1

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        raise NotImplementedError

    def score(self, question: str, held: Sequence[str], candidates: Sequence[str]) -> Floats:
        raise NotImplementedError


@dataclass
class Collection:
    """A data set with the pools of its questions, before anything is held."""

    name: str
    questions: list[ScorerQuestion]
    question_ids: list[str]
    gold: list[frozenset[str]]
    pools: list[CandidatePool]
    store: MemoryStore
    places: dict[DocId, int]  # in the corpus
    links: NameLinks

    def bridge(self, next_hop: NextHopEncoder | None) -> QualityBridgeRetriever:
        """The retriever that adds candidates; nobody asks its encoder, scorer and ranker."""
        return QualityBridgeRetriever(
            self.store, Unasked(), self.links, WeightedRanker(),
            scorer=Unasked(), next_hop=next_hop, hops=HOPS,
        )  # fmt: skip

    def some(self, positions: Sequence[int]) -> Collection:
        """The same with some of the questions."""
        return replace(
            self,
            questions=[self.questions[at] for at in positions],
            question_ids=[self.question_ids[at] for at in positions],
            gold=[self.gold[at] for at in positions],
            pools=[self.pools[at] for at in positions],
        )


@dataclass
class States:
    """Rows for the reader: features, and whether the candidate is needed."""

    rows: list[Floats]
    needed: list[npt.NDArray[np.bool_]]

    def arrays(self) -> tuple[Floats, npt.NDArray[np.bool_]]:
        empty = np.zeros((0, len(QUALITY_FEATURES)), np.float32)
        return np.concatenate([empty, *self.rows]), np.concatenate(
            [np.zeros(0, bool), *self.needed]
        )


def folds(questions: Sequence[ScorerQuestion], *, seed: int = 42) -> npt.NDArray[np.int64]:
    """The fold of each question, by a hash of its text, so that it is stable, with each data set in
    equal parts. Questions with the same text are in one fold: HotpotQA's sample repeats some.
    """
    fold = np.zeros(len(questions), np.int64)
    for name in SETS:
        own = [at for at, one in enumerate(questions) if one.set == name]
        texts = {questions[at].text for at in own}
        order = sorted(texts, key=lambda text: _number(text, seed))
        place = {text: at % FOLDS for at, text in enumerate(order)}
        fold[own] = [place[questions[at].text] for at in own]
    return fold


def hand_rank(rows: Floats) -> Floats:
    """The ranker with weights set by hand, over the bridge's features alone."""
    known = np.zeros((len(rows), len(FEATURES)))
    known[:, : len(TITLED_FEATURES)] = rows[:, : len(TITLED_FEATURES)]
    return WeightedRanker().p(known)


def search(
    one: Collection,
    layout: PairTokenizer,
    score: Score | None,
    rank: Rank,
    *,
    oracle: float = 0.0,
    seed: int = 0,
    untaught: bool = False,
    next_hop: NextHopEncoder | None = None,
    states: States | None = None,
    first: int = READ_FIRST,
    again: int | Sequence[int] = READ_AGAIN,
) -> list[list[str]]:
    """Search for all questions together; return the ids held for each.

    With probability `oracle` a missing gold document is held instead. `untaught`: the ranker has
    not learned the value of reading, so the scorer's output is added to its log-odds.
    """
    draws = [np.random.default_rng(_number(q.text, seed)) for q in one.questions]
    pools = [_fresh(pool) for pool in one.pools]
    alone: list[Floats] = [np.zeros(0) for _ in pools]
    bridge = one.bridge(next_hop)
    for step in range(CHOICES):
        if step == 0:
            bridge.look_ahead(pools)
        elif step <= HOPS:
            bridge.follow(pools)
        features = [pool.features()[:, : len(TITLED_FEATURES)] for pool in pools]
        alone = [
            np.concatenate([was, np.full(len(pool) - len(was), UNREAD)])
            for was, pool in zip(alone, pools)
        ]
        ahead = [bridge.ahead_rows(pool) for pool in pools]
        unread = [
            quality_rows(row, was, np.full(len(was), UNREAD), near, pool.held)
            for row, was, near, pool in zip(features, alone, ahead, pools)
        ]
        guess = _ranked(rank, unread, pools)
        count = read_count(step, first, again)
        chosen = [shortlist(p, count) for p in guess]
        now = _read(pools, chosen, layout, score)
        alone = alone if step or score is None else now
        rows = [
            quality_rows(row, was, scores, near, pool.held)
            for row, was, scores, near, pool in zip(features, alone, now, ahead, pools)
        ]
        if untaught:
            odds = [
                log_odds_array(np.maximum(p, 0), least=LEAST_P) + np.where(s > UNREAD, s, -9)
                for p, s in zip(guess, now)
            ]
        else:
            odds = guess if score is None else _ranked(rank, rows, pools)
        for at, pool in enumerate(pools):
            needed = np.array([doc_id in one.gold[at] for doc_id in pool.ids])
            needed[pool.held] = False
            if states is not None:
                some = _some(guess[at], needed, chosen[at], pool, draws[at])
                states.rows.append(unread[at][some])
                states.needed.append(needed[some])
                if score is not None:
                    some = np.unique([*chosen[at], *some])
                    states.rows.append(rows[at][some])
                    states.needed.append(needed[some])
            if draws[at].random() < oracle and needed.any():
                odds[at] = odds[at] + 100 * needed
            odds[at][pool.held] = -1000
            if len(pool.held) < len(pool):
                pool.hold(int(np.argmax(odds[at])))
    return [[pool.ids[at] for at in pool.held] for pool in pools]


def _number(text: str, seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}\0{text}".encode()).digest()[:8], "big")


def _fresh(pool: CandidatePool) -> CandidatePool:
    """A pool to search in, which leaves nothing behind in this one: paths with gold must not."""
    new = copy.copy(pool)
    for name, value in vars(new).items():
        if isinstance(value, list | dict | set | np.ndarray):
            setattr(new, name, copy.copy(value))
    return new


def _ranked(rank: Rank, rows: Sequence[Floats], pools: Sequence[CandidatePool]) -> list[Floats]:
    """What the ranker says of each pool, -1 for what is held."""
    ends = np.cumsum([len(one) for one in rows])[:-1]
    parts = np.split(np.array(rank(np.concatenate(rows)), dtype=float), ends)
    for pool, part in zip(pools, parts):
        part[pool.held] = -1
    return parts


def _some(
    guess: Floats,
    needed: npt.NDArray[np.bool_],
    chosen: Sequence[int],
    pool: CandidatePool,
    draw: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """Candidates to learn from: the likeliest, some of the likely, and all that are needed."""
    likely = draw.permutation(np.argsort(-guess, kind="stable")[:60])[:25]
    kept = np.unique([*likely, *np.flatnonzero(needed), *chosen[:8]]).astype(np.int64)
    return kept[~np.isin(kept, pool.held)]


def _read(
    pools: Sequence[CandidatePool],
    chosen: Sequence[Sequence[int]],
    layout: PairTokenizer,
    score: Score | None,
) -> list[Floats]:
    now: list[Floats] = [np.full(len(pool), UNREAD) for pool in pools]
    if score is None:
        return now
    pairs: list[TokenPair] = []
    for pool, candidates in zip(pools, chosen):
        held = [searchable_text(pool.documents[one]) for one in pool.held]
        texts = [searchable_text(pool.documents[one]) for one in candidates]
        pairs += layout.pairs(pool.question.text, held, texts)
    scores, start = np.clip(score(pairs), -MAX_LOG_ODDS, MAX_LOG_ODDS), 0
    for row, candidates in zip(now, chosen):
        row[list(candidates)] = scores[start : start + len(candidates)]
        start += len(candidates)
    return now


def fit_reader(rows: Floats, needed: npt.NDArray[np.bool_]) -> Any:
    """Boosted trees with monotone constraints: stronger evidence never lowers the output."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    shape = {
        "max_iter": 220,
        "learning_rate": 0.05,
        "max_leaf_nodes": 15,
        "min_samples_leaf": 60,
        "l2_regularization": 5.0,
    }
    directions = [one.direction for one in QUALITY_FEATURES]
    return HistGradientBoostingClassifier(
        **shape, monotonic_cst=directions, early_stopping=False, random_state=0
    ).fit(rows, needed)
