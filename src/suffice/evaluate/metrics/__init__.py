"""Every figure that stands in one of our tables, by name: `recall@4`, `ndcg@8`, `auroc`, `f1@0.29`, `ece`.

A value that is not defined is None and is printed `--`: a mean over no questions, AUROC with one class only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, nearest
from suffice.evaluate.metrics.answers import ANSWERS, exact_match, gold_contained, normalised_answer, token_f1, word_overlap
from suffice.evaluate.metrics.probability import (
    PROBABILITY,
    Predictions,
    ProbabilityMetric,
    ReliabilityBin,
    RiskCurve,
    ece_by_chance,
    reliability,
    risk_coverage,
)
from suffice.evaluate.metrics.ranking import RANKING, Judged, RankingMetric, judge

__all__ = [
    "ANSWERS",
    "METRICS",
    "PROBABILITY",
    "RANKING",
    "Judged",
    "Named",
    "Predictions",
    "ProbabilityMetric",
    "RankingMetric",
    "ReliabilityBin",
    "RiskCurve",
    "defined",
    "ece_by_chance",
    "exact_match",
    "gold_contained",
    "judge",
    "mean",
    "normalised_answer",
    "per_question",
    "probability_metric",
    "ranking_metric",
    "reliability",
    "risk_coverage",
    "score",
    "token_f1",
    "word_overlap",
]

Floats = npt.NDArray[np.float64]
M = TypeVar("M", RankingMetric, ProbabilityMetric)

METRICS: tuple[RankingMetric | ProbabilityMetric, ...] = (*RANKING, *PROBABILITY)
# `precision` and `recall` exist for rankings and for decisions: what is measured tells which one is meant.
_RANKING = {metric.name: metric for metric in RANKING}
_PROBABILITY = {metric.name: metric for metric in PROBABILITY}


@dataclass(frozen=True, slots=True)
class Named(Generic[M]):
    """A metric and what stands behind its @: a cutoff, a threshold, a number of bins. None: its default."""

    metric: M
    at: float | None

    def __str__(self) -> str:
        return self.metric.name if self.at is None else f"{self.metric.name}@{self.at:g}"


def ranking_metric(name: str) -> Named[RankingMetric]:
    """The metric that `recall@4` names; InputError with the nearest names if there is none."""
    return _parse(name, _RANKING)


def probability_metric(name: str) -> Named[ProbabilityMetric]:
    """The metric that `auroc` or `f1@0.29` names; InputError with the nearest names if there is none."""
    return _parse(name, _PROBABILITY)


def _parse(name: str, table: Mapping[str, M]) -> Named[M]:
    base, at_sign, behind = name.strip().partition("@")
    metric = table.get(base)
    if metric is None:
        raise InputError(f"no metric is named {name!r}", hint=nearest(base, table))
    return Named(metric, _behind_the_at(name, metric.at, behind) if at_sign else None)


_EXPECTED = {
    "": "no number behind the name",
    "k": "a whole number of hits of at least 1, like recall@4",
    "bins": "a whole number of bins from 1 to 1000, like ece@10",
    "risk": "a share between 0 and 1, like coverage_at_risk@0.1",
    "coverage": "a share above 0, up to 1, like risk_at_coverage@0.5",
    "threshold": "a number, like f1@0.5",
}


def _behind_the_at(name: str, meaning: str, text: str) -> float:
    try:
        value = float(int(text)) if meaning in ("k", "bins") else float(text)
    except (ValueError, OverflowError):
        value = math.nan
    allowed = {"": False, "k": value >= 1, "bins": 1 <= value <= 1000, "risk": 0 <= value <= 1, "coverage": 0 < value <= 1}
    if not allowed.get(meaning, math.isfinite(value)):
        raise InputError(f"metric {name!r}: expected {_EXPECTED[meaning]}")
    return value


def per_question(judged: Judged, name: str) -> Floats:
    """A ranking metric's value for each question: (questions,), NaN where it does not apply."""
    wanted = ranking_metric(name)
    at = wanted.metric.default if wanted.at is None else wanted.at
    if wanted.metric.at == "k":
        at = judged.depth if at is None else int(at)
        if at > judged.depth:
            raise InputError(f"{name} looks at {at} hits, but the ranking was kept {judged.depth} deep", hint="evaluate deeper")
    return wanted.metric.values(judged, at)


def score(what: Judged | Predictions, name: str) -> float | None:
    """One figure: a ranking metric of judged rankings, or a probability metric of predictions. None where undefined."""
    if isinstance(what, Judged):
        return mean(per_question(what, name))
    wanted = probability_metric(name)
    return defined(wanted.metric.values(what, np.ones((1, len(what))), wanted.at)[0])


def mean(values: npt.ArrayLike) -> float | None:
    """The mean of the defined values; None when there is none."""
    array = np.asarray(values, dtype=np.float64)
    array = array[~np.isnan(array)]
    return float(array.mean()) if array.size else None


def defined(value: float) -> float | None:
    """None for NaN."""
    return None if math.isnan(value) else float(value)
