"""Fit the ranker of the `bridge` retriever, and measure whether it beats the shipped one.

The ranker learns from states: a question, the documents held, and the candidates. Gold candidates
that are not held yet are needed next. States come from the paths of an unfitted ranker, and from
sets that hold part of the gold. These do not depend on what was learned, and folds can share them.
More states come from the paths of fitted rankers (`fitted_path_states`). The ranker has few
monotone features and strong regularization, since it must work on unseen corpora.

    fitted = fit_own_ranker(datasets.load("jsonl", "folder"), encoder)
    fitted.ranker.save(Path("my-ranker"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import GoldQuestion, draw_key
from suffice.errors import InputError
from suffice.evaluation.metrics import judge_rankings
from suffice.evaluation.searching import index_documents
from suffice.evaluation.significance import Interval, interval
from suffice.gate.trees import trees_to_onnx
from suffice.protocols import Encoder, Progress
from suffice.retrieval.bridge import (
    CHOSEN_SINGLY,
    BridgeRetriever,
    Ranker,
    RankerByTitles,
    TreeRanker,
    WeightedRanker,
)
from suffice.retrieval.builtin import bridge
from suffice.retrieval.candidate_pool import COLUMN, FEATURES, TITLED_FEATURES, CandidatePool
from suffice.retrieval.soft_filter import several_named, spread_hits
from suffice.types import DocId

__all__ = ["BridgeQuestions", "CandidateStates", "FittedRanker", "fit_own_ranker", "fit_ranker"]

Floats = npt.NDArray[np.float32]
SEED = 42
FOLDS = 5
MIN_QUESTIONS = 20  # with gold: folds of fewer are meaningless
STEPS, PARTS = 5, 2  # picks along a path, and states that hold part of the gold
BEST, OTHERS = 30, 8  # candidates kept per state: the best-ranked, and some of the rest
BATCH = 32
LEVELS = 200  # per feature: fewer than the 255 bins of the trees
TREES: Mapping[str, Any] = {
    "max_iter": 150,
    "max_leaf_nodes": 12,
    "learning_rate": 0.08,
    "l2_regularization": 20.0,
    "min_samples_leaf": 60,
    "max_features": 0.5,
    "early_stopping": False,
}


@dataclass(frozen=True)
class BridgeQuestions:
    """A data set to train on: its questions with gold, and their initial candidates."""

    name: str
    bridge: BridgeRetriever
    questions: tuple[GoldQuestion, ...]
    pools: tuple[CandidatePool, ...]

    @classmethod
    def of(
        cls, name: str, bridge: BridgeRetriever, questions: Sequence[GoldQuestion]
    ) -> BridgeQuestions:
        pools: list[CandidatePool] = []
        for start in range(0, len(questions), BATCH):
            pools += bridge.build_pools(
                [one.question.text for one in questions[start : start + BATCH]]
            )
        return cls(name, bridge, tuple(questions), tuple(pools))

    def folds(self, seed: int) -> npt.NDArray[np.int64]:
        """The fold of each question, from a hash of its text."""
        keys = (draw_key(seed + 1, one.question.text)[0] for one in self.questions)
        return np.array([key % FOLDS for key in keys], dtype=np.int64)

    def choose(self, ranker: Ranker, which: npt.NDArray[np.int64], k: int) -> list[list[DocId]]:
        """The documents that `bridge` with this ranker returns for some of the questions."""
        retriever, chosen = self.bridge.with_ranker(ranker), dict[int, list[DocId]]()
        named = {at: _several_named(self.pools[at]) for at in which.tolist()}
        for spread, depth in ((False, k), (True, max(k, CHOSEN_SINGLY))):
            some = [at for at, one in named.items() if bool(one) is spread]
            for start in range(0, len(some), BATCH):
                batch = some[start : start + BATCH]
                pools = [self.pools[at] for at in batch]
                for pool in pools:
                    pool.release()
                for at, pool, hits in zip(batch, pools, retriever.choose(pools, k=depth)):
                    documents = {hit.doc_id: pool.documents[pool.at[hit.doc_id]] for hit in hits}
                    kept = spread_hits(hits, named[at], documents, k)
                    chosen[at] = [hit.doc_id for hit in kept]
        return [chosen[at] for at in which.tolist()]


def _several_named(pool: CandidatePool) -> frozenset[str | date]:
    return several_named(pool.question.metadata) if pool.question.metadata else frozenset()


def bridge_questions(
    dataset: Dataset,
    encoder: Encoder,
    *,
    limit: int | None = None,
    seed: int = SEED,
    progress: Progress | None = None,
) -> BridgeQuestions:
    """The data set's corpus indexed for `bridge`, and a seeded draw of its questions with gold."""
    store = index_documents(dataset.documents(), encoder, progress)
    retriever = bridge(store, encoder=encoder, ranker=WeightedRanker(), spread=False)
    if not isinstance(retriever, BridgeRetriever):
        raise InputError("bridge is another retriever here", hint="a plug-in has taken its name")
    known = [one for one in dataset.questions() if one.gold.doc_ids]
    drawn = sorted(known, key=lambda one: draw_key(seed, one.question.text))[:limit]
    return BridgeQuestions.of(dataset.name, retriever, drawn)


# ------------------------------------------------------------------------------------ states


@dataclass(frozen=True)
class CandidateStates:
    """Candidates: features, whether each is needed, the number of its question, and its weight."""

    rows: Floats
    needed: npt.NDArray[np.bool_]
    question: npt.NDArray[np.int64]
    weight: Floats

    def of(self, questions: npt.NDArray[np.bool_]) -> CandidateStates:
        """The states of the questions where the mask (questions,) is True."""
        kept = questions[self.question]
        return CandidateStates(
            self.rows[kept], self.needed[kept], self.question[kept], self.weight[kept]
        )


@dataclass(frozen=True)
class _Draw:
    """How the candidates of a state are drawn."""

    seed: int
    best: int
    others: int


def candidate_states(
    training: BridgeQuestions, *, seed: int = SEED, best: int = BEST, others: int = OTHERS
) -> CandidateStates:
    """The states of every question. Each has weight 1, however many candidates it has."""
    draw, every = _Draw(seed, best, others), np.arange(len(training.questions))
    parts = list(_collect(training, every, WeightedRanker(), draw, (_along_paths, _holding_parts)))
    if not parts:
        raise InputError(
            f"nothing can be learned from {training.name}: no gold is among the candidates",
            hint="check the ids",
        )
    return _concatenate(parts)


def fitted_path_states(
    training: BridgeQuestions,
    states: CandidateStates,
    *,
    seed: int = SEED,
    best: int = BEST,
    others: int = OTHERS,
) -> CandidateStates:
    """States along the paths of fitted rankers, which make the mistakes of the final ranker.

    The ranker of a question's path is fitted on the `states` of one other fold of the same data
    set: its `path_folds`. So a study can leave out all that was learned from a fold or a data set:
    `without_fold`.
    """
    folds, draw = training.folds(seed), _Draw(seed, best, others)
    parts = [states.of(np.zeros(len(folds), bool))]
    for fold in range(FOLDS):
        learned = states.of(folds == fold)
        if not learned.needed.any() or learned.needed.all():
            continue  # few questions: this fold has nothing to learn from
        ranker = fit_ranker([learned], seed=seed)
        which = np.flatnonzero(path_folds(folds) == fold)
        parts += _collect(training, which, ranker, draw, (_along_paths,))
    return _concatenate(parts)


def path_folds(folds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The fold that the ranker of each question's path is fitted on."""
    return (folds + 1) % FOLDS


def without_fold(
    states: CandidateStates, on_paths: CandidateStates, folds: npt.NDArray[np.int64], fold: int
) -> list[CandidateStates]:
    """The states, and those along fitted paths, that owe nothing to the questions of a fold."""
    others = folds != fold
    return [states.of(others), on_paths.of(others & (path_folds(folds) != fold))]


_State = tuple[int, Floats, npt.NDArray[np.bool_]]  # question in its batch, features, needed
_Walk = Callable[
    [BridgeRetriever, Sequence[CandidatePool], Sequence[GoldQuestion], _Draw], Iterator[_State]
]


def _collect(
    training: BridgeQuestions,
    which: npt.NDArray[np.int64],
    ranker: Ranker,
    draw: _Draw,
    walks: Sequence[_Walk],
) -> Iterator[CandidateStates]:
    """Every state of some questions; `ranker` chooses the path and the candidates that are kept."""
    retriever = training.bridge.with_ranker(ranker)
    for start in range(0, len(which), BATCH):
        batch = which[start : start + BATCH].tolist()
        pools = [training.pools[at] for at in batch]
        questions = [training.questions[at] for at in batch]
        for walk in walks:
            for at, rows, needed in walk(retriever, pools, questions, draw):
                size = len(rows)
                number, weight = np.full(size, batch[at]), np.full(size, 1 / size, np.float32)
                yield CandidateStates(rows, needed, number, weight)


def _concatenate(parts: Sequence[CandidateStates]) -> CandidateStates:
    columns = zip(*((one.rows, one.needed, one.question, one.weight) for one in parts))
    return CandidateStates(*map(np.concatenate, columns))


def _along_paths(
    retriever: BridgeRetriever,
    pools: Sequence[CandidatePool],
    questions: Sequence[GoldQuestion],
    draw: _Draw,
) -> Iterator[_State]:
    for pool in pools:  # an earlier choice may have left documents held
        pool.release()
    for step in range(STEPS):
        if 0 < step <= retriever.hops:
            retriever.follow(pools)
        for at, (pool, p) in enumerate(zip(pools, retriever.rank(pools))):
            yield from _state(at, pool, p, questions[at], draw, step)
            if len(pool.held) < len(pool):
                pool.hold(int(np.argmax(p)))


def _holding_parts(
    retriever: BridgeRetriever,
    pools: Sequence[CandidatePool],
    questions: Sequence[GoldQuestion],
    draw: _Draw,
) -> Iterator[_State]:
    for turn in range(PARTS):
        for pool, question in zip(pools, questions):
            pool.release()
            rng = _rng(question, draw.seed + 100 + turn)
            gold = sorted(pool.at[one] for one in question.gold.doc_ids if one in pool.at)
            if len(gold) > 1:
                for at in rng.permutation(gold)[: rng.integers(1, len(gold))].tolist():
                    pool.hold(int(at))
        retriever.follow(pools)
        for at, (pool, p) in enumerate(zip(pools, retriever.rank(pools))):
            if pool.held:
                yield from _state(at, pool, p, questions[at], draw, 200 + turn)
    for pool in pools:
        pool.release()


def _state(
    at: int,
    pool: CandidatePool,
    p: npt.NDArray[Any],
    question: GoldQuestion,
    draw: _Draw,
    step: int,
) -> Iterator[_State]:
    """A state, if gold is still missing: all needed, the best and some other candidates."""
    needed = np.array([doc_id in question.gold.doc_ids for doc_id in pool.ids], dtype=bool)
    needed[pool.held] = False
    if needed.any():
        rng = _rng(question, draw.seed + step)
        best = np.argsort(-p, kind="stable")[: draw.best].tolist()
        others = rng.choice(len(pool), size=min(draw.others, len(pool)), replace=False).tolist()
        chosen = {*np.flatnonzero(needed).tolist(), *best, *others}
        kept = np.array(sorted(chosen - set(pool.held)))
        yield at, pool.features()[kept], needed[kept]


def _rng(question: GoldQuestion, seed: int) -> np.random.Generator:
    """A generator seeded by the question's text, independent of the other questions."""
    return np.random.default_rng(int.from_bytes(draw_key(seed, question.question.text)[:8], "big"))


# ------------------------------------------------------------------------------------ fitting


def fit_ranker(
    states: Sequence[CandidateStates], *, seed: int = SEED, trees: Mapping[str, Any] | None = None
) -> TreeRanker:
    """Fit a ranker on the states of one or several data sets.

    If every state has titles, it uses only the features for titled documents.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows = np.concatenate([one.rows for one in states])
    needed = np.concatenate([one.needed for one in states])
    weight = np.concatenate([one.weight for one in states])
    if not needed.any() or needed.all():
        raise InputError(
            "a ranker needs candidates that are needed and others that are not",
            hint="give more questions with gold",
        )
    known = FEATURES if rows[:, COLUMN["untitled"]].any() else TITLED_FEATURES
    model = HistGradientBoostingClassifier(
        monotonic_cst=[one.direction for one in known], random_state=seed, **(trees or TREES)
    )
    levels = round_to_levels(rows[:, : len(known)])
    model.fit(levels, needed, sample_weight=weight / weight.mean())
    return TreeRanker(trees_to_onnx(model, len(known)), len(known))


def round_to_levels(rows: Floats) -> Floats:
    """Each column rounded to at most LEVELS of its values.

    Trees cut between levels anyway. With more values than bins, scikit-learn computes weighted
    quantiles, which takes ten times as long as growing the trees.
    """
    rounded = rows.copy()
    for column in rounded.T:
        levels = np.unique(np.quantile(column, np.linspace(0, 1, LEVELS), method="nearest"))
        column[:] = levels[np.searchsorted((levels[1:] + levels[:-1]) / 2, column)]
    return rounded


@dataclass(frozen=True)
class FittedRanker:
    """The ranker fitted on all questions, and complete@k by folds, also of the shipped ranker."""

    ranker: TreeRanker
    questions: int
    k: int
    own: Interval
    shipped: Interval


def fit_own_ranker(
    dataset: Dataset,
    encoder: Encoder,
    *,
    k: int = 5,
    limit: int | None = None,
    seed: int = SEED,
    progress: Progress | None = None,
) -> FittedRanker:
    """Fit a ranker on at most `limit` questions with gold; evaluate it by folds at k documents."""
    training = bridge_questions(dataset, encoder, limit=limit, seed=seed, progress=progress)
    count = len(training.questions)
    if count < MIN_QUESTIONS:
        raise InputError(
            f"{count} questions have gold, a ranker needs {MIN_QUESTIONS}",
            hint="label more, or use the one that ships",
        )
    states, folds = candidate_states(training, seed=seed), training.folds(seed)
    on_paths = fitted_path_states(training, states, seed=seed)
    by_folds: dict[int, list[DocId]] = {}
    for fold in range(FOLDS):
        which = np.flatnonzero(folds == fold)
        if len(which):
            ranker = fit_ranker(without_fold(states, on_paths, folds, fold), seed=seed)
            by_folds.update(zip(which.tolist(), training.choose(ranker, which, k)))
        if progress is not None:
            progress("folds", fold + 1, FOLDS)
    own_ids = [by_folds[at] for at in range(count)]
    shipped_ids = training.choose(RankerByTitles.load(), np.arange(count), k)
    gold = [one.gold.doc_ids for one in training.questions]
    own, shipped = (
        interval(judge_rankings(ids, gold, depth=k), f"complete@{k}", seed=seed)
        for ids in (own_ids, shipped_ids)
    )
    return FittedRanker(fit_ranker([states, on_paths], seed=seed), count, k, own, shipped)
