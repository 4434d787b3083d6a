"""From a score to a probability that means what it says: among sets given 0.8, eight in ten are complete.

    Platt       a logistic curve: two numbers, the least to learn and the steadiest on a few hundred labels
    Isotonic    any rising staircase: for thousands of labels
    VennAbers   two staircases, one as if the case were incomplete and one as if complete: an interval that is valid for any
                score, and between its ends one probability

Each is fitted on scores (log-odds or probabilities; higher is likelier) that the model gave to questions it was not fitted on,
never falls when the score rises, and is kept as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from suffice.errors import DataError, InputError

__all__ = [
    "Isotonic",
    "Platt",
    "VennAbers",
    "calibration_metrics",
    "fit_interval",
    "log_odds",
    "sigmoid",
]

Floats = npt.NDArray[np.float64]
PLATT_C = 100.0  # of the data against the pull of Platt's slope to 0: it only matters where scores separate the labels cleanly


def sigmoid(odds: npt.ArrayLike) -> Floats:
    """The probability of log-odds; those beyond 30 count as 30."""
    return np.asarray(1 / (1 + np.exp(-np.minimum(np.maximum(odds, -30), 30))), dtype=np.float64)


def log_odds(p: npt.ArrayLike) -> Floats:
    """The way back. Forests do say 0 and 1, of which there are no log-odds: they count as one in a million."""
    clipped = np.clip(p, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(clipped / (1 - clipped)), dtype=np.float64)


def _check_scores(scores: npt.ArrayLike) -> Floats:
    found = np.asarray(scores, dtype=float)
    if not np.isfinite(found).all():
        raise InputError(
            f"{int((~np.isfinite(found)).sum())} of {found.size} scores are not finite numbers"
        )
    return found


def _check_labels(scores: npt.ArrayLike, complete: npt.ArrayLike) -> tuple[Floats, Floats]:
    found, labels = _check_scores(scores), np.asarray(complete, dtype=float)
    if found.ndim != 1 or found.shape != labels.shape or not len(found):
        raise InputError(
            f"scores have shape {found.shape} and labels {labels.shape}, expected one label for each score"
        )
    if not np.isin(labels, (0.0, 1.0)).all():
        raise InputError("labels must be true or false (1 or 0)")
    return found, labels


@dataclass(frozen=True)
class _JsonRecord:
    """To and from JSON, for the records below."""

    kind: ClassVar[str]

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """What `as_json` gave; DataError where it is not that."""
        try:
            fields = {name: _number_or_tuple(one) for name, one in told.items() if name != "kind"}
            if told["kind"] == cls.kind:
                return cls(**fields)
            raise InputError(f"it is of kind {told['kind']!r}")
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise DataError(
                f"a {cls.kind} calibration cannot be read: {error}",
                hint="fit and save the gate again",
            ) from error


def _number_or_tuple(told: Any) -> float | tuple[float, ...]:
    return tuple(map(float, told)) if isinstance(told, list | tuple) else float(told)


@dataclass(frozen=True)
class Platt(_JsonRecord):
    """p = 1 / (1 + exp(-(slope * score + offset)))."""

    kind = "platt"
    slope: float
    offset: float

    def __post_init__(self) -> None:
        if not (0 <= self.slope < math.inf and math.isfinite(self.offset)):
            raise InputError(
                f"slope {self.slope} and offset {self.offset}: expected finite numbers, the slope not below 0"
            )

    @classmethod
    def fit(cls, scores: npt.ArrayLike, complete: npt.ArrayLike) -> Self:
        """Platt's fit: labels count a little less than for sure, so one class or one label gives no certainty either.

        Scores that rank the wrong way round are not turned round: then the slope is 0, and all get the base rate.
        """
        from sklearn.linear_model import LogisticRegression  # late: checking needs no scikit-learn

        found, labels = _check_labels(scores, complete)
        yes = labels.sum()
        soft = np.where(labels > 0, (yes + 1) / (yes + 2), 1 / (len(labels) - yes + 2))
        both = np.repeat([1, 0], len(found))
        weights = np.concatenate([soft, 1 - soft])
        # In units of their spread, so that the pull on the slope is the same whatever the scale of the scores.
        middle, spread = float(found.mean()), float(found.std()) or 1.0
        model = LogisticRegression(C=PLATT_C, tol=1e-8, max_iter=1_000)
        model.fit(np.tile((found - middle) / spread, 2)[:, None], both, sample_weight=weights)
        slope, offset = float(model.coef_[0, 0]) / spread, float(model.intercept_[0])
        if slope <= 0 or not np.ptp(found):
            return cls(0.0, float(np.log(soft.mean() / (1 - soft.mean()))))
        return cls(slope, offset - slope * middle)

    def odds(self, scores: npt.ArrayLike) -> Floats:
        """The log-odds."""
        return np.asarray(self.slope * _check_scores(scores) + self.offset)

    def apply(self, scores: npt.ArrayLike) -> Floats:
        return np.asarray(expit(self.odds(scores)))


@dataclass(frozen=True)
class Isotonic(_JsonRecord):
    """Straight lines between the steps of the staircase that fits best; level beyond its ends."""

    kind = "isotonic"
    scores: tuple[float, ...]
    p: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_staircase(self.scores, self.p)

    @classmethod
    def fit(cls, scores: npt.ArrayLike, complete: npt.ArrayLike) -> Self:
        from sklearn.isotonic import IsotonicRegression  # late: checking needs no scikit-learn

        model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(
            *_check_labels(scores, complete)
        )
        return cls(tuple(model.X_thresholds_.tolist()), tuple(model.y_thresholds_.tolist()))

    def apply(self, scores: npt.ArrayLike) -> Floats:
        return np.asarray(np.interp(_check_scores(scores), self.scores, self.p))


@dataclass(frozen=True)
class VennAbers(_JsonRecord):
    """Inductive Venn-Abers prediction (Vovk, Petej and Fedorova 2015), exact, as two tables over the distinct scores.

    `low[j]` is the isotonic fit with one more case of label 0 behind the first j scores, `high[j]` the one with label 1 there,
    both read off at the added case.
    """

    kind = "venn-abers"
    scores: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        for table in (self.low, self.high):
            _check_staircase((*self.scores, math.inf), table)

    @classmethod
    def fit(cls, scores: npt.ArrayLike, complete: npt.ArrayLike) -> Self:
        found, labels = _check_labels(scores, complete)
        distinct, at = np.unique(found, return_inverse=True)
        staircase = _Staircase(np.bincount(at).astype(float), np.bincount(at, labels).astype(float))
        places = range(len(distinct) + 1)
        low, high = (
            [staircase.with_one_more(place, label) for place in places] for label in (0.0, 1.0)
        )
        return cls(tuple(distinct.tolist()), tuple(low), tuple(high))

    def apply(self, scores: npt.ArrayLike) -> tuple[Floats, Floats]:
        """The lower and the upper probability of each score. The fewer like cases were seen, the further apart."""
        found, (known, low, high) = _check_scores(scores), self._tables
        return low[known.searchsorted(found, "right")], high[known.searchsorted(found, "left")]

    @cached_property
    def _tables(self) -> tuple[Floats, Floats, Floats]:
        return np.array(self.scores), np.array(self.low), np.array(self.high)

    def merged(self, scores: npt.ArrayLike) -> Floats:
        """One probability between the two: the one that loses least, in log loss, whichever of them is right."""
        low, high = self.apply(scores)
        return np.asarray(high / (1 - low + high))


def fit_interval(odds: npt.ArrayLike, complete: npt.ArrayLike) -> VennAbers:
    """Venn-Abers over log-odds to two places: finer steps say no more, and the tables of thousands of labels stay small."""
    return VennAbers.fit(_check_scores(odds).round(2), complete)


def calibration_metrics(p: npt.ArrayLike, complete: npt.NDArray[np.bool_]) -> dict[str, float]:
    """How good probabilities are, as a gate's card tells it: (questions,), (questions,)."""
    from sklearn.metrics import (  # late: checking needs no scikit-learn
        brier_score_loss,
        roc_auc_score,
    )

    figures = {
        "auroc": roc_auc_score(complete, p),
        "brier": brier_score_loss(complete, p),
        "complete": complete.mean(),
    }
    return {name: round(float(value), 4) for name, value in figures.items()}


class _Staircase:
    """The isotonic fit of every beginning and every end of the sorted cases, ready to take one more case anywhere.

    Pooling neighbours that fall is free of order: a new case between a beginning and an end, both already pooled, only has to
    swallow the blocks next to it until nothing falls. So each place costs a few steps instead of a fit of its own.
    """

    def __init__(self, counts: Floats, sums: Floats) -> None:
        self._counts: list[float] = np.concatenate([[0.0], np.cumsum(counts)]).tolist()
        self._sums: list[float] = np.concatenate([[0.0], np.cumsum(sums)]).tolist()
        n = len(counts)
        self._start = [0] * (n + 1)  # the last block of the first j cases is _start[j]..j
        for j in range(1, n + 1):
            start = j - 1
            while start and self._mean(self._start[start], start) >= self._mean(start, j):
                start = self._start[start]
            self._start[j] = start
        self._end = [n] * (n + 1)  # the first block of the cases from j on is j.._end[j]
        for j in range(n - 1, -1, -1):
            end = j + 1
            while end < n and self._mean(end, self._end[end]) <= self._mean(j, end):
                end = self._end[end]
            self._end[j] = end

    def _mean(self, start: int, end: int) -> float:
        return (self._sums[end] - self._sums[start]) / (self._counts[end] - self._counts[start])

    def with_one_more(self, place: int, label: float) -> float:
        """The fit at a case of this label that stands behind the first `place` distinct scores."""
        start = end = place
        while True:
            mean = (self._sums[end] - self._sums[start] + label) / (
                self._counts[end] - self._counts[start] + 1
            )
            if end < len(self._end) - 1 and self._mean(end, self._end[end]) <= mean:
                end = self._end[end]
            elif start and self._mean(self._start[start], start) >= mean:
                start = self._start[start]
            else:
                return mean


def _check_staircase(scores: tuple[float, ...], p: tuple[float, ...]) -> None:
    rising = bool((np.diff(scores) >= 0).all()) and bool((np.diff(p) >= -1e-12).all())
    if len(scores) != len(p) or not p or not rising or p[0] < -1e-12 or p[-1] > 1 + 1e-12:
        raise InputError(
            "a calibration's scores and probabilities must rise together, the probabilities from 0 to 1"
        )
