"""How good a probability is: does it separate, is it honest, and what does it cost to act on it?

Every metric takes labels (questions,), probabilities (questions,) and weights (resamples, questions), and gives one value for
each row of weights. A row of ones is the plain figure; rows of bootstrap counts give a thousand resampled figures from one sort
instead of a thousand. A value that is not defined (AUROC with one class only, precision without a positive decision) is NaN
here and None outside, never a silent 0.

Equal probabilities are one step everywhere: no threshold can tell them apart, so the order of the questions never matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError

__all__ = [
    "PROBABILITY",
    "Predictions",
    "ProbabilityMetric",
    "ReliabilityBin",
    "RiskCurve",
    "ece_by_chance",
    "reliability",
    "risk_coverage",
]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Predictions:
    """Probabilities beside what came true. Labels are 0 or 1; fractions between are allowed for `mae` and `brier` alone."""

    labels: Floats
    probabilities: Floats

    def __init__(self, labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> None:
        for name, values in (("labels", labels), ("probabilities", probabilities)):
            object.__setattr__(self, name, _unit_interval(values, name))
        if len(self.labels) != len(self.probabilities):
            raise InputError(f"{len(self.labels)} labels for {len(self.probabilities)} probabilities: expected one each")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def binary(self) -> bool:
        return bool(np.isin(self.labels, (0.0, 1.0)).all())


def _unit_interval(values: npt.ArrayLike, name: str) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers: {error}") from error
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, it has shape {array.shape}")
    if not ((array >= 0) & (array <= 1)).all():  # NaN fails both
        raise InputError(f"{name} must lie between 0 and 1, found {array[~((array >= 0) & (array <= 1))][0]}")
    return array


def _ratio(over: Floats, under: Floats) -> Floats:
    """over / under, NaN where under is 0."""
    ratio: Floats = np.divide(over, under, out=np.full(np.shape(under), np.nan), where=under > 0)
    return ratio


def _mean(values: Floats, weights: Floats) -> Floats:
    return _ratio(weights @ values, weights.sum(axis=1))


# -------------------------------------------------------------------------------------------- at a threshold


def accuracy(labels: Floats, p: Floats, weights: Floats, threshold: float) -> Floats:
    return _mean((p >= threshold) == (labels > 0), weights)


def precision(labels: Floats, p: Floats, weights: Floats, threshold: float) -> Floats:
    chosen = (p >= threshold).astype(np.float64)
    return _ratio(weights @ (chosen * labels), weights @ chosen)


def recall(labels: Floats, p: Floats, weights: Floats, threshold: float) -> Floats:
    return _ratio(weights @ ((p >= threshold) * labels), weights @ labels)


def f1(labels: Floats, p: Floats, weights: Floats, threshold: float) -> Floats:
    chosen = (p >= threshold).astype(np.float64)
    return _ratio(2 * (weights @ (chosen * labels)), weights @ (chosen + labels))


# ------------------------------------------------------------------------------------------------ as an order


@dataclass(frozen=True)
class _Steps:
    """Weight of true and of all questions in each group of equal probability, best group first: (resamples, groups)."""

    thresholds: Floats
    true: Floats
    all: Floats


def _steps(labels: Floats, p: Floats, weights: Floats) -> _Steps:
    if not len(p):
        nothing = np.zeros((len(weights), 0))
        return _Steps(np.zeros(0), nothing, nothing)
    order = np.argsort(-p, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(p[order]) != 0])
    ordered = weights[:, order]
    true = np.add.reduceat(ordered * labels[order], starts, axis=1)
    return _Steps(p[order][starts], true, np.add.reduceat(ordered, starts, axis=1))


def auroc(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    steps = _steps(labels, p, weights)
    false = steps.all - steps.true
    true_above = np.cumsum(steps.true, axis=1) - steps.true
    won = (false * (true_above + steps.true / 2)).sum(axis=1)
    return _ratio(won, steps.true.sum(axis=1) * false.sum(axis=1))


def auprc(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    steps = _steps(labels, p, weights)
    precisions = np.nan_to_num(_ratio(np.cumsum(steps.true, axis=1), np.cumsum(steps.all, axis=1)))
    return _ratio((steps.true * precisions).sum(axis=1), steps.true.sum(axis=1))


def _risks(labels: Floats, p: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Share answered and share of those that is wrong when answering down to each step: (resamples, groups) each."""
    steps = _steps(labels, p, weights)
    answered = np.cumsum(steps.all, axis=1)
    wrong = np.cumsum(steps.all - steps.true, axis=1)
    return _ratio(answered, np.broadcast_to(answered[:, -1:], answered.shape)), _ratio(wrong, answered)


def aurc(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    if not len(p):
        return np.full(len(weights), np.nan)
    coverage, risk = _risks(labels, p, weights)
    area: Floats = (np.diff(coverage, axis=1, prepend=0) * np.nan_to_num(risk)).sum(axis=1)
    return area


def coverage_at_risk(labels: Floats, p: Floats, weights: Floats, risk: float) -> Floats:
    if not len(p):
        return np.full(len(weights), np.nan)
    coverage, risks = _risks(labels, p, weights)
    largest: Floats = np.where(np.nan_to_num(risks, nan=np.inf) <= risk, coverage, 0.0).max(axis=1)
    return largest


def risk_at_coverage(labels: Floats, p: Floats, weights: Floats, coverage: float) -> Floats:
    """Of questions with the same probability, a share is answered: what drawing lots among them gives on average."""
    if not len(p):
        return np.full(len(weights), np.nan)
    steps = _steps(labels, p, weights)
    allowed = coverage * steps.all.sum(axis=1, keepdims=True)
    taken = np.clip(allowed - (np.cumsum(steps.all, axis=1) - steps.all), 0, steps.all)
    wrong = np.nan_to_num(_ratio(steps.all - steps.true, steps.all))
    return _ratio((taken * wrong).sum(axis=1), taken.sum(axis=1))


# ---------------------------------------------------------------------------------------------- as a number


def brier(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    return _mean((p - labels) ** 2, weights)


def log_loss(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    # A sure prediction that turns out wrong costs infinitely much; clipping as scikit-learn does keeps the mean readable.
    tiny = np.finfo(np.float64).eps
    inside = np.clip(p, tiny, 1 - tiny)
    return _mean(-(labels * np.log(inside) + (1 - labels) * np.log1p(-inside)), weights)


def ece(labels: Floats, p: Floats, weights: Floats, bins: float) -> Floats:
    gaps = np.zeros((len(p), int(bins)))
    gaps[np.arange(len(p)), _bin(p, int(bins))] = p - labels
    return _ratio(np.abs(weights @ gaps).sum(axis=1), weights.sum(axis=1))


def mae(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    return _mean(np.abs(p - labels), weights)


def positive_rate(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    return _mean(labels, weights)


def _bin(p: Floats, bins: int) -> npt.NDArray[np.intp]:
    return np.minimum((p * bins).astype(np.intp), bins - 1)


# ------------------------------------------------------------------------------------------------- curves


@dataclass(frozen=True, slots=True)
class RiskCurve:
    """What answering down to each threshold means: share answered, and share of the answered that is wrong."""

    thresholds: Floats
    coverage: Floats
    risk: Floats


def risk_coverage(predictions: Predictions) -> RiskCurve:
    """The risk-coverage curve, highest threshold first; empty without questions."""
    _need_binary(predictions, "risk_coverage")
    if not len(predictions):
        return RiskCurve(np.zeros(0), np.zeros(0), np.zeros(0))
    ones = np.ones((1, len(predictions)))
    coverage, risk = _risks(predictions.labels, predictions.probabilities, ones)
    return RiskCurve(_steps(predictions.labels, predictions.probabilities, ones).thresholds, coverage[0], risk[0])


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One bin of a calibration curve: how many questions, what was predicted on average, what came true."""

    low: float
    high: float
    count: int
    predicted: float | None
    observed: float | None


def reliability(predictions: Predictions, bins: int = 10) -> tuple[ReliabilityBin, ...]:
    """The calibration curve in bins of equal width; the frequency-weighted mean of |predicted - observed| is the ECE."""
    where = _bin(predictions.probabilities, bins)
    counts = np.bincount(where, minlength=bins)
    predicted = np.bincount(where, predictions.probabilities, bins)
    observed = np.bincount(where, predictions.labels, bins)
    return tuple(
        ReliabilityBin(at / bins, (at + 1) / bins, int(n), predicted[at] / n if n else None, observed[at] / n if n else None)
        for at, n in enumerate(counts)
    )


def ece_by_chance(probabilities: npt.ArrayLike, *, bins: int = 10, draws: int = 1000, seed: int = 0) -> float | None:
    """The ECE that these very probabilities would show on average if every one of them were true; None without questions.

    Few questions fall unevenly into bins, so an honest forecast has an ECE too: one near this level says nothing against it.
    """
    p = _unit_interval(probabilities, "probabilities")
    if not len(p):
        return None
    where, rng = _bin(p, bins), np.random.default_rng(seed)
    expected = np.bincount(where, p, bins)
    gaps = [np.abs(np.bincount(where, rng.random(len(p)) < p, bins) - expected).sum() for _ in range(draws)]
    return float(np.mean(gaps) / len(p))


# ----------------------------------------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True)
class ProbabilityMetric:
    """A name, what it means, and the function. `at` says what may stand behind the @; empty: nothing may."""

    name: str
    meaning: str
    function: Callable[[Floats, Floats, Floats, Any], Floats]
    at: str = ""
    default: float | None = None
    fractions: bool = False  # labels between 0 and 1 make sense
    higher_is_better: bool = True

    def values(self, predictions: Predictions, weights: Floats, at: float | None = None) -> Floats:
        """One value a row of weights; NaN where it is not defined."""
        if not self.fractions:
            _need_binary(predictions, self.name)
        return self.function(predictions.labels, predictions.probabilities, weights, self.default if at is None else at)


def _need_binary(predictions: Predictions, name: str) -> None:
    if not predictions.binary:
        raise InputError(f"{name} needs labels that are 0 or 1", hint="fractions fit mae and brier only")


PROBABILITY: tuple[ProbabilityMetric, ...] = (
    ProbabilityMetric("accuracy", "Share of right decisions at the threshold.", accuracy, "threshold", 0.5),
    ProbabilityMetric(
        "precision", "Share of the positive decisions that are right; undefined without one.", precision, "threshold", 0.5
    ),
    ProbabilityMetric(
        "recall", "Share of the positives that are decided positive; undefined without one.", recall, "threshold", 0.5
    ),
    ProbabilityMetric(
        "f1", "Harmonic mean of precision and recall; undefined without positives and positive decisions.", f1, "threshold", 0.5
    ),
    ProbabilityMetric("auroc", "Chance that a positive stands above a negative; ties count half. Needs both classes.", auroc),
    ProbabilityMetric("auprc", "Average precision over the ranking of probabilities. Needs a positive.", auprc),
    ProbabilityMetric("brier", "Mean squared distance to what came true.", brier, fractions=True, higher_is_better=False),
    ProbabilityMetric("log_loss", "Mean surprise in nats at what came true.", log_loss, higher_is_better=False),
    ProbabilityMetric(
        "ece",
        "Gap between predicted and observed share, averaged over bins of equal width.",
        ece,
        "bins",
        10,
        higher_is_better=False,
    ),
    ProbabilityMetric(
        "mae", "Mean distance to what came true, or to the share of gold found.", mae, fractions=True, higher_is_better=False
    ),
    ProbabilityMetric(
        "aurc",
        "Area under the risk-coverage curve: mean share of wrong answers over all thresholds.",
        aurc,
        higher_is_better=False,
    ),
    ProbabilityMetric(
        "coverage_at_risk", "Largest share answered with at most this share of wrong answers.", coverage_at_risk, "risk", 0.1
    ),
    ProbabilityMetric(
        "risk_at_coverage",
        "Share of wrong answers when this share is answered, the surest first; lots among equals.",
        risk_at_coverage,
        "coverage",
        0.5,
        higher_is_better=False,
    ),
    ProbabilityMetric(
        "positive_rate", "Share of positives: what a constant guess would be measured against.", positive_rate, fractions=True
    ),
)
