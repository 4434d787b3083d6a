"""What the ranker of `bridge` learns from: states of (question, documents held, candidates), and the fit itself.

In a state those candidates that are in the gold and not held are needed next. States lie along the paths of a ranker that was
never fitted, and where a part of the gold is held: so no state depends on what was learned, and folds can share them. Few
features, monotone where more can only help, and strong regularisation: a ranker has to work on a corpus it has not seen.

    ranker = fit_ranker([states_of(Lessons.of("mine", bridge, examples))])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.gold import GoldQuestion, draw_key
from suffice.errors import InputError
from suffice.gate.model import trees_to_onnx
from suffice.retrieval.bridge import BridgeRetriever, TreeRanker, WeightedRanker
from suffice.retrieval.candidate_pool import FEATURES, CandidatePool

__all__ = [
    "AT_ONCE",
    "SEED",
    "TREES",
    "BridgeQuestions",
    "CandidateStates",
    "candidate_states",
    "fit_ranker",
]

Floats = npt.NDArray[np.float32]
SEED = 42
STEPS, PARTS = 5, 2  # picks along a path, and states that hold a part of the gold
BEST, OTHERS = (
    30,
    8,
)  # candidates of a state that are kept: those that look best, and some of the rest
AT_ONCE = 32
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
    """A data set to learn from: the retriever over its corpus, questions with gold, and their candidates at the start."""

    name: str
    bridge: BridgeRetriever
    examples: tuple[GoldQuestion, ...]
    pools: tuple[CandidatePool, ...]

    @classmethod
    def of(
        cls, name: str, bridge: BridgeRetriever, examples: Sequence[GoldQuestion]
    ) -> BridgeQuestions:
        pools: list[CandidatePool] = []
        for start in range(0, len(examples), AT_ONCE):
            pools += bridge.pools([one.question.text for one in examples[start : start + AT_ONCE]])
        return cls(name, bridge, tuple(examples), tuple(pools))


@dataclass(frozen=True)
class CandidateStates:
    """Candidates in states: their features, whether each is needed, the number of its question, and what it weighs."""

    rows: Floats
    needed: npt.NDArray[np.bool_]
    question: npt.NDArray[np.int64]
    weight: Floats

    def of(self, questions: npt.NDArray[np.bool_]) -> CandidateStates:
        """The states of some questions: (questions,) True for those."""
        kept = questions[self.question]
        return CandidateStates(
            self.rows[kept], self.needed[kept], self.question[kept], self.weight[kept]
        )


def candidate_states(lessons: BridgeQuestions, *, seed: int = SEED) -> CandidateStates:
    """The states of every question of a data set; each weighs 1, however many candidates it has: a state is one choice."""
    led = lessons.bridge.ranked_by(WeightedRanker())
    parts: list[CandidateStates] = []
    for start in range(0, len(lessons.examples), AT_ONCE):
        batch, pools = (
            lessons.examples[start : start + AT_ONCE],
            lessons.pools[start : start + AT_ONCE],
        )
        for state in (
            *_along_paths(led, pools, batch, seed),
            *_holding_parts(led, pools, batch, seed),
        ):
            parts.append(state.kept(start + state.question))
    if not parts:
        raise InputError(
            f"nothing can be learned from {lessons.name}: no gold is among the candidates",
            hint="check the ids",
        )
    columns = zip(*((one.rows, one.needed, one.question, one.weight) for one in parts))
    return CandidateStates(*map(np.concatenate, columns))


@dataclass(frozen=True)
class _State:
    question: int  # in its batch
    rows: Floats
    needed: npt.NDArray[np.bool_]

    def kept(self, question: int) -> CandidateStates:
        size = len(self.rows)
        return CandidateStates(
            self.rows, self.needed, np.full(size, question), np.full(size, 1 / size, np.float32)
        )


def _along_paths(
    led: BridgeRetriever,
    pools: Sequence[CandidatePool],
    examples: Sequence[GoldQuestion],
    seed: int,
) -> Iterator[_State]:
    for pool in pools:  # whoever chose from them before may have left something held
        pool.release()
    for step in range(STEPS):
        if step:
            led.grow(pools, None, [pool.held[-1:] for pool in pools])
        for at, (pool, p) in enumerate(zip(pools, led.judged(pools))):
            yield from _state(at, pool, p, examples[at], seed + step)
            if len(pool.held) < len(pool):
                pool.hold(int(np.argmax(p)))


def _holding_parts(
    led: BridgeRetriever,
    pools: Sequence[CandidatePool],
    examples: Sequence[GoldQuestion],
    seed: int,
) -> Iterator[_State]:
    for turn in range(PARTS):
        for pool, example in zip(pools, examples):
            pool.release()
            rng = _rng(example, seed + 100 + turn)
            gold = sorted(pool.at[one] for one in example.gold.doc_ids if one in pool.at)
            for at in (
                rng.permutation(gold)[: rng.integers(1, len(gold))].tolist()
                if len(gold) > 1
                else ()
            ):
                pool.hold(int(at))
        led.grow(pools, None, [pool.held for pool in pools])
        for at, (pool, p) in enumerate(zip(pools, led.judged(pools))):
            if pool.held:
                yield from _state(at, pool, p, examples[at], seed + 200 + turn)
    for pool in pools:
        pool.release()


def _state(
    question: int, pool: CandidatePool, p: npt.NDArray[Any], example: GoldQuestion, seed: int
) -> Iterator[_State]:
    """A state, if something of the gold is still to be found in it: all that is needed, the best and a few of the others."""
    needed = np.array([doc_id in example.gold.doc_ids for doc_id in pool.ids], dtype=bool)
    needed[pool.held] = False
    if needed.any():
        rng = _rng(example, seed)
        chosen = {*np.flatnonzero(needed).tolist(), *np.argsort(-p, kind="stable")[:BEST].tolist()}
        chosen |= set(rng.choice(len(pool), size=min(OTHERS, len(pool)), replace=False).tolist())
        kept = np.array(sorted(chosen - set(pool.held)))
        yield _State(question, pool.features()[kept], needed[kept])


def _rng(example: GoldQuestion, seed: int) -> np.random.Generator:
    """Draws that follow from the question's words: the same whatever else is learned from."""
    return np.random.default_rng(int.from_bytes(draw_key(seed, example.question.text)[:8], "big"))


def fit_ranker(
    states: Sequence[CandidateStates], *, seed: int = SEED, trees: Mapping[str, Any] | None = None
) -> TreeRanker:
    """A ranker of the states of one or several data sets: `fit_ranker([states_of(Lessons.of("mine", bridge, examples))])`."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows, needed = (
        np.concatenate([one.rows for one in states]),
        np.concatenate([one.needed for one in states]),
    )
    weight = np.concatenate([one.weight for one in states])
    if not needed.any() or needed.all():
        raise InputError(
            "a ranker needs candidates that are needed and others",
            hint="give more questions with gold",
        )
    model = HistGradientBoostingClassifier(
        monotonic_cst=[one.direction for one in FEATURES], random_state=seed, **(trees or TREES)
    )
    model.fit(rows, needed, sample_weight=weight / weight.mean())
    return TreeRanker(trees_to_onnx(model, len(FEATURES)))
