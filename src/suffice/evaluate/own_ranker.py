"""A ranker of `bridge` from one's own labelled questions, and whether it is worth having.

    own = own_ranker(datasets.read("jsonl", "folder"), encoder)
    own.ranker.save(Path("my-ranker"))

It is judged by folds, beside the ranker that ships on the same questions: who has few questions may do better with the latter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suffice.datasets.dataset import Dataset
from suffice.errors import InputError
from suffice.evaluate.bridge_lessons import SEED, Lessons, States, fit_ranker, states_of
from suffice.evaluate.bridge_study import FOLDS, chosen, folds_of
from suffice.evaluate.compare import Interval, interval
from suffice.evaluate.metrics import judge
from suffice.evaluate.train_bridge import lessons_from
from suffice.ports import Encoder, Progress
from suffice.retrieve.ranker import TreeRanker
from suffice.types import DocId

__all__ = ["OwnRanker", "own_ranker"]

LEAST = 20  # questions with gold: with fewer, folds say nothing


@dataclass(frozen=True)
class OwnRanker:
    """The ranker of all questions, and complete@k: of rankers that had not seen the question, and of the one that ships."""

    ranker: TreeRanker
    questions: int
    k: int
    own: Interval
    shipped: Interval


def own_ranker(
    dataset: Dataset,
    encoder: Encoder,
    *,
    k: int = 5,
    most: int | None = None,
    seed: int = SEED,
    progress: Progress | None = None,
) -> OwnRanker:
    """Fit a ranker on a data set's questions that have gold, `most` of them at most, and judge it by folds at k documents."""
    lessons = lessons_from(dataset, encoder, most=most, seed=seed, progress=progress)
    count = len(lessons.examples)
    if count < LEAST:
        raise InputError(f"{count} questions have gold, a ranker needs {LEAST}", hint="label more, or use the one that ships")
    states = states_of(lessons, seed=seed)
    found = _by_folds(lessons, states, k, seed, progress)
    shipped = chosen(lessons, TreeRanker.load(), np.arange(count), k)
    gold = [one.gold.doc_ids for one in lessons.examples]
    own, theirs = (interval(judge(ids, gold, depth=k), f"complete@{k}", seed=seed) for ids in (found, shipped))
    return OwnRanker(fit_ranker([states], seed=seed), count, k, own, theirs)


def _by_folds(lessons: Lessons, states: States, k: int, seed: int, progress: Progress | None) -> list[list[DocId]]:
    folds = folds_of(lessons.examples, seed)
    found: dict[int, list[DocId]] = {}
    for fold in range(FOLDS):
        which = np.flatnonzero(folds == fold)
        if len(which):
            ranker = fit_ranker([states.of(folds != fold)], seed=seed)
            found.update(zip(which.tolist(), chosen(lessons, ranker, which, k)))
        if progress is not None:
            progress("folds", fold + 1, FOLDS)
    return [found[at] for at in range(len(lessons.examples))]
