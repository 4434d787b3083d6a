"""Train the set scorer and its reader, and evaluate both on unseen questions: `python -m
suffice_research.training.scorer_study --help`.

Nine scorers: one for each of five folds (fitted on the other four), one for each data set (fitted
on the others), one on all. The reader is trained in three passes over states along searches:
without reading, along a path that mixes gold with predictions, and along the path that it would
take itself. A question's states are always read by the scorer of its own fold, which did not see
it. The reader of a fold is trained only on the other folds' questions; the scorers that read those
had seen the fold, as is usual when stacking on out-of-fold scores.

The outputs are the weights and the reader that ship (see `suffice_research.training.scorer_export`)
and the documents held for every question (see `suffice_research.training.scorer_figures`). About
fifteen minutes on one H200 if the scorers are trained in parallel; it needs a GPU.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from suffice.datasets import load
from suffice.evaluation.result_files import source_commit
from suffice.gate.trees import trees_to_onnx
from suffice.integrations.onnx import bge_small
from suffice.numeric import log_odds_array
from suffice.retrieval.bridge import WeightedRanker
from suffice.retrieval.candidate_pool import BASE_FEATURES, CandidatePool
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.name_links import name_links
from suffice_research.bridge_quality import (
    LEAST_P,
    QUALITY_FEATURES,
    UNREAD,
    PairTokenizer,
    QualityBridgeRetriever,
    TokenPair,
    quality_rows,
    shortlist,
)
from suffice_research.embedding_cache import CachedEncoder
from suffice_research.training.scorer_data import ScorerQuestion, load_questions, training_states

__all__ = ["Collection", "collection", "folds", "reader_of", "roll"]

SETS = ("musique", "hotpotqa", "2wikimultihopqa")
FOLDS, CHOICES, HOPS = 5, 5, 3
# The shipped reader was fitted and evaluated with these numbers, at first and in every later round;
# by default fewer are read late (decision 18).
FIRST, AGAIN = 16, 6
Say = Callable[
    [Sequence[int], Sequence[TokenPair]], np.ndarray
]  # (question of each pair, pairs) -> log-odds
Rank = Callable[[int, np.ndarray], np.ndarray]  # (question, rows) -> p


@dataclass
class Collection:
    """A data set with the pools of its questions, before anything is held."""

    name: str
    bridge: QualityBridgeRetriever
    questions: list[ScorerQuestion]
    gold: list[frozenset[str]]
    pools: list[CandidatePool]
    ids: list[str]


@dataclass
class States:
    """Rows for the reader: features, whether the candidate is needed, and its question."""

    rows: list[np.ndarray] = field(default_factory=list)
    needed: list[np.ndarray] = field(default_factory=list)
    question: list[np.ndarray] = field(default_factory=list)

    def add(self, rows: np.ndarray, needed: np.ndarray, question: int) -> None:
        self.rows.append(rows)
        self.needed.append(needed)
        self.question.append(np.full(len(rows), question))


def collection(data: Path, name: str, vectors: Path) -> Collection:
    found = load(name, data / name)
    documents, examples = list(found.documents()), list(found.questions())
    encoder = CachedEncoder(bge_small(), vectors)
    store = MemoryStore(documents, encoder.encode([searchable_text(one) for one in documents]))
    bridge = QualityBridgeRetriever(
        store,
        encoder,
        name_links(lambda: documents),
        WeightedRanker(),
        scorer=_Nobody(),
        depth=40,
        near=100,
        hops=HOPS,
    )
    pools = bridge.build_pools([one.question.text for one in examples])
    questions = []
    for one, pool in zip(load_questions(data, name), pools, strict=True):
        order = np.argsort(-WeightedRanker().p(pool.features()), kind="stable")[:90]
        questions.append(
            replace(one, pool=tuple(searchable_text(pool.documents[at]) for at in order))
        )
    return Collection(
        name,
        bridge,
        questions,
        [one.gold.doc_ids for one in examples],
        pools,
        [one.doc_id for one in documents],
    )


class _Nobody:
    def score(self, question: str, held: Sequence[str], candidates: Sequence[str]) -> np.ndarray:
        return np.full(len(candidates), 0.5)


def folds(questions: Sequence[ScorerQuestion], *, seed: int = 42) -> np.ndarray:
    """The fold of each question, by a hash of its text, so that it is stable, with each data set in
    equal parts.
    """
    fold = np.zeros(len(questions), int)
    for name in SETS:
        own = [at for at, one in enumerate(questions) if one.set == name]
        own.sort(key=lambda at: hashlib.sha256(f"{seed}\0{questions[at].text}".encode()).digest())
        fold[own] = np.arange(len(own)) % FOLDS
    return fold


# ---- searching


def roll(
    one: Collection,
    layout: PairTokenizer,
    say: Say | None,
    rank: Rank,
    *,
    oracle: float,
    seed: int,
    untaught: bool = False,
    states: States | None = None,
    first: int = FIRST,
    again: int = AGAIN,
) -> list[list[str]]:
    """Search for all questions in parallel; return the ids held for each.

    With probability `oracle` a missing gold document is held instead. `untaught`: the ranker has
    not learned the value of reading, so the scorer's output is added to its log-odds.
    """
    draw = np.random.default_rng(seed)
    pools = [_fresh(pool) for pool in one.pools]
    alone = [np.zeros(0) for _ in pools]
    for step in range(CHOICES):
        if 0 < step <= HOPS:
            one.bridge.expand(pools, None, [pool.held[-1:] for pool in pools])
        features = [pool.features()[:, : len(BASE_FEATURES)] for pool in pools]
        alone = [
            np.concatenate([was, np.full(len(pool) - len(was), UNREAD)])
            for was, pool in zip(alone, pools)
        ]
        unread = [
            quality_rows(row, was, np.full(len(was), UNREAD), pool.held)
            for row, was, pool in zip(features, alone, pools)
        ]
        guess = [_free(rank(at, rows), pools[at]) for at, rows in enumerate(unread)]
        chosen = [shortlist(p, again if step else first) for p in guess]
        now = _read(pools, chosen, layout, say)
        alone = alone if step or say is None else now
        for at, pool in enumerate(pools):
            needed = np.array([doc_id in one.gold[at] for doc_id in pool.ids])
            needed[pool.held] = False
            rows = quality_rows(features[at], alone[at], now[at], pool.held)
            if states is not None:
                some = _some(guess[at], needed, chosen[at], pool, draw)
                states.add(unread[at][some], needed[some], at)
                if say is not None:
                    some = np.unique([*chosen[at], *some])
                    states.add(rows[some], needed[some], at)
            if untaught:
                score = log_odds_array(guess[at], least=LEAST_P) + np.where(
                    now[at] > UNREAD, now[at], -9
                )
            else:
                score = rank(at, rows)
            if draw.random() < oracle and needed.any():
                score = score + 100 * needed
            score[pool.held] = -1000
            if len(pool.held) < len(pool):
                pool.hold(int(np.argmax(score)))
    return [[pool.ids[at] for at in pool.held] for pool in pools]


def _fresh(pool: CandidatePool) -> CandidatePool:
    new = copy.copy(pool)
    for name, value in vars(new).items():
        if isinstance(value, list | dict | set):
            setattr(new, name, copy.copy(value))
    return new


def _free(p: np.ndarray, pool: CandidatePool) -> np.ndarray:
    left = np.array(p, dtype=float)
    left[pool.held] = -1
    return left


def _some(
    guess: np.ndarray,
    needed: np.ndarray,
    chosen: Sequence[int],
    pool: CandidatePool,
    draw: np.random.Generator,
) -> np.ndarray:
    """Candidates to learn from: the likeliest, some of the likely, and all that are needed."""
    likely = draw.permutation(np.argsort(-guess, kind="stable")[:60])[:25]
    kept = np.unique([*likely, *np.flatnonzero(needed), *chosen[:8]]).astype(int)
    return kept[~np.isin(kept, pool.held)]


def _read(
    pools: Sequence[CandidatePool],
    chosen: Sequence[Sequence[int]],
    layout: PairTokenizer,
    say: Say | None,
) -> list[np.ndarray]:
    now = [np.full(len(pool), UNREAD) for pool in pools]
    if say is None:
        return now
    pairs, owner = [], []
    for at, (pool, candidates) in enumerate(zip(pools, chosen)):
        held = [searchable_text(pool.documents[one]) for one in pool.held]
        pairs += layout.pairs(
            pool.question.text, held, [searchable_text(pool.documents[one]) for one in candidates]
        )
        owner += [at] * len(candidates)
    scores, start = np.clip(say(owner, pairs), -15, 15), 0
    for row, candidates in zip(now, chosen):
        row[list(candidates)] = scores[start : start + len(candidates)]
        start += len(candidates)
    return now


def reader_of(rows: np.ndarray, needed: np.ndarray) -> Any:
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


# ---- the whole study


class Study:
    """Scorers by name ("0" to "4", a data set's name, "all"), and the readers of each pass by the
    same names.
    """

    def __init__(
        self, collections: Sequence[Collection], layout: PairTokenizer, scorers: dict[str, Any]
    ) -> None:
        self.collections, self.layout, self.scorers = collections, layout, scorers
        self.questions = [question for one in collections for question in one.questions]
        self.fold = folds(self.questions)
        sizes = [len(one.questions) for one in collections]
        self.start = dict(
            zip([one.name for one in collections], np.cumsum([0, *sizes[:-1]]).tolist())
        )
        self.sets = np.array([one.set for one in self.questions])

    def run(self) -> tuple[dict[str, Any], bytes]:
        """The held documents by protocol and data set, and the shipped reader."""
        names = [str(at) for at in range(FOLDS)]
        hand = WeightedRanker()
        before = self._pass(
            lambda _: lambda at, rows: hand.p(rows[:, :-4]), oracle=0.5, reading=False
        )
        readers = self._fitted([before], names)
        mixed = self._pass(self._by(readers), oracle=0.5, untaught=True)
        own = self._pass(self._by(self._fitted([mixed], names)), oracle=0.0)
        readers = self._fitted([mixed, own], [*names, *SETS, "all"])
        held = {}
        for one in self.collections:
            others = self._fixed(readers[one.name])
            held[one.name] = {
                "folds": self._held(one, self._by(readers)(one), self._say(one, None)),
                "left_out": self._held(one, others, self._say(one, one.name)),
            }
        return held, trees_to_onnx(readers["all"], len(QUALITY_FEATURES))

    def _pass(
        self,
        by: Callable[[Collection], Rank],
        *,
        oracle: float,
        reading: bool = True,
        untaught: bool = False,
    ) -> States:
        whole = States()
        for number, one in enumerate(self.collections):
            states = States()
            say = self._say(one, None) if reading else None
            roll(
                one,
                self.layout,
                say,
                by(one),
                oracle=oracle,
                seed=number,
                untaught=untaught,
                states=states,
            )
            for rows, needed, question in zip(states.rows, states.needed, states.question):
                whole.add(
                    rows, needed, int(question[0]) + self.start[one.name] if len(question) else 0
                )
        return whole

    def _held(self, one: Collection, rank: Rank, say: Say) -> list[list[int]]:
        place = {doc_id: at for at, doc_id in enumerate(one.ids)}
        return [
            [place[doc_id] for doc_id in ids]
            for ids in roll(one, self.layout, say, rank, oracle=0.0, seed=0)
        ]

    def _by(self, readers: dict[str, Any]) -> Callable[[Collection], Rank]:
        def rank_of(one: Collection) -> Rank:
            return lambda at, rows: readers[
                str(self.fold[self.start[one.name] + at])
            ].predict_proba(rows)[:, 1]

        return rank_of

    @staticmethod
    def _fixed(reader: Any) -> Rank:
        return lambda _, rows: reader.predict_proba(rows)[:, 1]

    def _say(self, one: Collection, scorer: str | None) -> Say:
        from suffice_research.training import scorer as trained_scorer

        def say(owner: Sequence[int], pairs: Sequence[TokenPair]) -> np.ndarray:
            names = np.array([scorer or str(self.fold[self.start[one.name] + at]) for at in owner])
            odds = np.zeros(len(pairs), np.float32)
            for name in np.unique(names):
                own = np.flatnonzero(names == name)
                odds[own] = trained_scorer.log_odds(
                    self.scorers[str(name)], [pairs[at] for at in own.tolist()]
                )
            return odds

        return say

    def _unseen(self, name: str) -> np.ndarray:
        """The questions that the scorer or reader of this name is trained on."""
        chosen = self.fold != int(name) if name.isdigit() else self.sets != name
        return np.asarray(chosen)

    def _fitted(self, passes: Iterable[States], names: Iterable[str]) -> dict[str, Any]:
        parts = list(passes)
        rows, needed, question = (
            np.concatenate([x for one in parts for x in getattr(one, name)])
            for name in vars(States())
        )
        kept = {name: self._unseen(name)[question] for name in names}
        return {name: reader_of(rows[use], needed[use]) for name, use in kept.items()}


def trained(
    questions: Sequence[ScorerQuestion], fold: np.ndarray, base: Path, layout: PairTokenizer
) -> dict[str, Any]:
    """Train all nine scorers, one after the other."""
    import torch

    from suffice_research.training import scorer
    from suffice_research.training.reader_weights import base_weights

    weights = base_weights(base)
    teacher, student = (
        scorer.cross_encoder(weights, tuple(range(12))),
        scorer.cross_encoder(weights),
    )
    pairs = unlabelled(questions, layout, count=14_000, seed=0)
    scorer.distil(student, pairs, scorer.log_odds(teacher, pairs), scorer.Schedule(rate=2e-4))
    states, texts = training_states(questions, rounds=5, seed=1), [one.text for one in questions]
    found = {}
    for name in [*map(str, range(FOLDS)), *SETS, "all"]:
        torch.manual_seed(0)
        model = scorer.cross_encoder(weights)
        model.load_state_dict(student.state_dict())
        kept = [
            one
            for one in states
            if name not in (str(fold[one.question]), questions[one.question].set)
        ]
        scorer.fit(model, layout, texts, kept, scorer.Schedule(rate=1e-4))
        found[name] = model
    return found


def unlabelled(
    questions: Sequence[ScorerQuestion], layout: PairTokenizer, *, count: int, seed: int
) -> list[TokenPair]:
    """Sentences of passages as questions, each with passages of one pool: input that a teacher can
    score without labels.
    """
    draw, pairs = np.random.default_rng(seed), []
    for _ in range(count):
        pool = questions[int(draw.integers(len(questions)))].pool
        source = pool[int(draw.integers(min(40, len(pool))))]
        sentences = [one for one in source.partition("\n")[2].split(". ") if len(one.split()) > 5]
        if sentences:
            others = [pool[int(at)] for at in draw.integers(0, len(pool), 4)]
            own = [source] if draw.random() < 0.3 else []
            pairs += layout.pairs(
                sentences[int(draw.integers(len(sentences)))], (), [*own, *others]
            )
    return pairs


def main() -> None:
    from tokenizers import Tokenizer

    arguments = argparse.ArgumentParser(description=__doc__)
    for name in ("data", "vectors", "base", "tokenizer", "out"):
        arguments.add_argument(f"--{name}", type=Path, required=True)
    given = arguments.parse_args()
    layout = PairTokenizer(Tokenizer.from_file(str(given.tokenizer)))
    collections = [collection(given.data, name, given.vectors) for name in SETS]
    questions = [question for one in collections for question in one.questions]
    scorers = trained(questions, folds(questions), given.base, layout)
    held, reader = Study(collections, layout, scorers).run()
    given.out.mkdir(parents=True, exist_ok=True)
    weights = {
        name: one.half().cpu().numpy()
        for name, one in scorers["all"].state_dict().items()
        if "embeddings" not in name
    }
    np.savez(given.out / "weights.npz", **weights)
    (given.out / "reader.onnx").write_bytes(reader)
    record = {"commit": source_commit(), "sets": held}
    (given.out / "held.json").write_text(json.dumps(record) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
