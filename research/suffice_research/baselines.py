"""The two papers' own predictors as baselines of `suffice evaluate gate`.

Each stands here twice: *deployable*, with only what a gate in use knows, and *oracle*, given the
question's type, labels or hop count, as in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.evaluation.baselines import Baseline
from suffice.evaluation.searching import RetrievedQuestion
from suffice_research.paper_features import QuestionAnnotations, frames_features, magaf_features
from suffice_research.paper_models import paper_model

__all__ = ["paper_baselines"]

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
VALIDATION = 0.15 / 0.85  # of the rows to fit on: the paper's 70 / 15 / 15


def _oracle_labels(questions: Sequence[RetrievedQuestion]) -> QuestionAnnotations:
    gold = [one.gold for one in questions]
    kinds, labels = [one.kind for one in gold], [one.labels for one in gold]
    return QuestionAnnotations(kinds, labels, [one.hops for one in gold])


def _evidence(questions: Sequence[RetrievedQuestion]) -> list[Any]:
    return [one.evidence for one in questions]


def magaf_model(table: Floats, complete: Bools, seed: int) -> Callable[[Floats], Floats]:
    """MAGAF's forest, with Platt scaling on a validation part."""
    order = np.random.default_rng(seed).permutation(len(complete))
    held, rest = np.split(order, [round(len(order) * VALIDATION)])
    model = paper_model("magaf", seed)
    if min(len(np.unique(complete[held])), len(np.unique(complete[rest]))) < 2:
        return model.fit(table, complete).predict
    validation = (table[held], complete[held])
    return model.fit(table[rest], complete[rest], validation=validation).predict


def frames_model(table: Floats, complete: Bools, seed: int) -> Callable[[Floats], Floats]:
    """FRAMES' best by ROC-AUC: a balanced logistic regression, which the paper does not calibrate."""
    return paper_model("frames-lr", seed).fit(table, complete).predict


BASELINES = (
    Baseline(
        "FRAMES",
        "FRAMES' 18 features, labels guessed; logistic regression.",
        lambda questions: frames_features(_evidence(questions)),
        frames_model,
    ),
    Baseline(
        "MAGAF",
        "MAGAF's 20 features, types guessed; random forest, Platt.",
        lambda questions: magaf_features(_evidence(questions)),
        magaf_model,
    ),
    Baseline(
        "FRAMES (oracle)",
        "The same, told the labels and the hop count.",
        lambda questions: frames_features(
            _evidence(questions), asked=_oracle_labels(questions), hops=True
        ),
        frames_model,
    ),
    Baseline(
        "MAGAF (oracle)",
        "The same, told the type and the hop count.",
        lambda questions: magaf_features(_evidence(questions), asked=_oracle_labels(questions)),
        magaf_model,
    ),
)


def paper_baselines() -> tuple[Baseline, ...]:
    return BASELINES
