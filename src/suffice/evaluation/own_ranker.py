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
from suffice.evaluation.bridge_training import (
    SEED,
    BridgeQuestions,
    CandidateStates,
    candidate_states,
    fit_ranker,
)
from suffice.evaluation.metrics import judge_rankings
from suffice.evaluation.significance import Interval, interval
from suffice.protocols import Encoder, Progress
from suffice.retrieval.bridge import TreeRanker
from suffice.types import DocId
from suffice_research.training.bridge import bridge_questions
from suffice_research.training.bridge_study import FOLDS, choose_documents, question_folds

__all__ = ["FittedRanker", "fit_own_ranker"]

LEAST = 20  # questions with gold: with fewer, folds say nothing


@dataclass(frozen=True)
class FittedRanker:
    """The ranker of all questions, and complete@k: of rankers that had not seen the question, and of the one that ships."""

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
    most: int | None = None,
    seed: int = SEED,
    progress: Progress | None = None,
) -> FittedRanker:
    """Fit a ranker on a data set's questions that have gold, `most` of them at most, and judge it by folds at k documents."""
    lessons = bridge_questions(dataset, encoder, most=most, seed=seed, progress=progress)
    count = len(lessons.examples)
    if count < LEAST:
        raise InputError(
            f"{count} questions have gold, a ranker needs {LEAST}",
            hint="label more, or use the one that ships",
        )
    states = candidate_states(lessons, seed=seed)
    found = _by_folds(lessons, states, k, seed, progress)
    shipped = choose_documents(lessons, TreeRanker.load(), np.arange(count), k)
    gold = [one.gold.doc_ids for one in lessons.examples]
    own, theirs = (
        interval(judge_rankings(ids, gold, depth=k), f"complete@{k}", seed=seed)
        for ids in (found, shipped)
    )
    return FittedRanker(fit_ranker([states], seed=seed), count, k, own, theirs)


def _by_folds(
    lessons: BridgeQuestions, states: CandidateStates, k: int, seed: int, progress: Progress | None
) -> list[list[DocId]]:
    folds = question_folds(lessons.examples, seed)
    found: dict[int, list[DocId]] = {}
    for fold in range(FOLDS):
        which = np.flatnonzero(folds == fold)
        if len(which):
            ranker = fit_ranker([states.of(folds != fold)], seed=seed)
            found.update(zip(which.tolist(), choose_documents(lessons, ranker, which, k)))
        if progress is not None:
            progress("folds", fold + 1, FOLDS)
    return [found[at] for at in range(len(lessons.examples))]
