"""Turn a score into a calibrated probability: of sets given 0.8, eight in ten are complete.

    Platt        a logistic curve: two parameters, stable on a few hundred labels
    VennAbers    an interval that is valid for any score: one isotonic fit as if the case were
                 incomplete, one as if it were complete
    FeatureProfile   the features at fit time: their scale, and the reference for drift
    Correction   a linear map of log-odds and a few features, for a gate on another corpus

Fit Platt and VennAbers on out-of-fold scores. Both are monotonic: a higher score never gives a
lower probability. All of them are stored as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.gate.features import LOCAL_FEATURE
from suffice.numeric import multiply_rows

Floats = npt.NDArray[np.floating[Any]]
PLATT_C = 100.0  # inverse penalty on the slope; matters only if the scores separate the labels
MAX_COEFFICIENT = 1e6  # limit for a saved correction
BINS = 10  # per feature
MAX_SPREADS = 4.0  # features of another corpus are clipped here


def _check_scores(scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    found = np.asarray(scores, dtype=float)
    if not np.isfinite(found).all():
        bad = int((~np.isfinite(found)).sum())
        raise InputError(f"{bad} of {found.size} scores are not finite numbers")
    return found


def _check_labelled(scores: npt.ArrayLike, complete: npt.ArrayLike) -> tuple[Floats, Floats]:
    found, labels = _check_scores(scores), np.asarray(complete, dtype=float)
    if found.ndim != 1 or found.shape != labels.shape or not len(found):
        raise InputError(
            f"scores have shape {found.shape}, labels {labels.shape}: expected one label for each"
        )
    if not np.isin(labels, (0.0, 1.0)).all():
        raise InputError("labels must be true or false (1 or 0)")
    return found, labels


@dataclass(frozen=True)
class Platt:
    """p = 1 / (1 + exp(-(slope * score + offset)))."""

    slope: float
    offset: float

    def __post_init__(self) -> None:
        if not (0 <= self.slope < math.inf and math.isfinite(self.offset)):
            found = f"slope {self.slope} and offset {self.offset}"
            raise InputError(f"{found}: expected finite numbers, the slope not below 0")

    @classmethod
    def fit(cls, scores: npt.ArrayLike, complete: npt.ArrayLike) -> Self:
        """Platt's fit with smoothed labels, so that a single class does not give certainty.

        Scores that rank the wrong way round get slope 0, and so the base rate.
        """
        from sklearn.linear_model import LogisticRegression  # lazy: needs the `fit` extra

        found, labels = _check_labelled(scores, complete)
        yes = labels.sum()
        soft = np.where(labels > 0, (yes + 1) / (yes + 2), 1 / (len(labels) - yes + 2))
        both = np.repeat([1, 0], len(found))
        weights = np.concatenate([soft, 1 - soft])
        # Standardize the scores, so that the penalty is the same at any scale.
        middle, spread = float(found.mean()), float(found.std()) or 1.0
        model = LogisticRegression(C=PLATT_C, tol=1e-8, max_iter=1_000)
        model.fit(np.tile((found - middle) / spread, 2)[:, None], both, sample_weight=weights)
        slope, offset = float(model.coef_[0, 0]) / spread, float(model.intercept_[0])
        if slope <= 0 or not np.ptp(found):
            return cls(0.0, float(np.log(soft.mean() / (1 - soft.mean()))))
        return cls(slope, offset - slope * middle)

    def log_odds(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return np.asarray(self.slope * _check_scores(scores) + self.offset)

    def apply(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The probability of each score."""
        with np.errstate(over="ignore"):  # exp overflows for very low scores; p is then 0
            return np.asarray(1 / (1 + np.exp(-self.log_odds(scores))))


@dataclass(frozen=True)
class VennAbers:
    """Exact inductive Venn-Abers prediction (Vovk, Petej and Fedorova 2015).

    `low[j]` is the isotonic fit with an extra case of label 0 after the first j distinct scores,
    evaluated at that case; `high[j]` is the same with label 1.
    """

    scores: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = bool((np.diff((*self.scores, math.inf)) >= 0).all())
        for p in (self.low, self.high):
            rising = (
                rising and len(p) == len(self.scores) + 1 and bool((np.diff(p) >= -1e-12).all())
            )
            if not rising or p[0] < -1e-12 or p[-1] > 1 + 1e-12:
                raise InputError("scores and probabilities must rise together, from 0 to 1")

    @classmethod
    def fit(cls, scores: npt.ArrayLike, complete: npt.ArrayLike) -> Self:
        found, labels = _check_labelled(scores, complete)
        distinct, at = np.unique(found, return_inverse=True)
        fit = _IncrementalIsotonic(
            np.bincount(at).astype(float), np.bincount(at, labels).astype(float)
        )
        places = range(len(distinct) + 1)
        low, high = (tuple(fit.with_one_more(at, label) for at in places) for label in (0.0, 1.0))
        return cls(tuple(distinct.tolist()), low, high)

    def apply(self, scores: npt.ArrayLike) -> tuple[Floats, Floats]:
        """The lower and the upper probability; fewer similar cases give a wider interval."""
        found, (known, low, high) = _check_scores(scores), self._tables
        return low[known.searchsorted(found, "right")], high[known.searchsorted(found, "left")]

    @cached_property
    def _tables(self) -> tuple[Floats, Floats, Floats]:
        return np.array(self.scores), np.array(self.low), np.array(self.high)


def fit_interval(odds: npt.ArrayLike, complete: npt.ArrayLike) -> VennAbers:
    """Venn-Abers over log-odds rounded to two decimals, which keeps the tables small."""
    return VennAbers.fit(_check_scores(odds).round(2), complete)


class _IncrementalIsotonic:
    """The isotonic fit of every prefix and suffix of the sorted cases, to add one case anywhere.

    Pooling does not depend on order: a new case between a pooled prefix and suffix only absorbs the
    blocks next to it. Each position then takes a few steps instead of a new fit.
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

    def _mean(self, start: int, end: int, label: float = 0.0, one_more: int = 0) -> float:
        total = self._sums[end] - self._sums[start] + label
        return total / (self._counts[end] - self._counts[start] + one_more)

    def with_one_more(self, place: int, label: float) -> float:
        """The fit at a case of this label inserted after the first `place` distinct scores."""
        start = end = place
        while True:
            mean = self._mean(start, end, label, 1)
            if end < len(self._end) - 1 and self._mean(end, self._end[end]) <= mean:
                end = self._end[end]
            elif start and self._mean(self._start[start], start) >= mean:
                start = self._start[start]
            else:
                return mean


def calibration_metrics(p: npt.ArrayLike, complete: npt.NDArray[np.bool_]) -> dict[str, float]:
    """AUROC, Brier score and base rate, for a gate's card."""
    from sklearn.metrics import brier_score_loss, roc_auc_score  # lazy: needs the `fit` extra

    auroc, brier = roc_auc_score(complete, p), brier_score_loss(complete, p)
    figures = {"auroc": auroc, "brier": brier, "complete": complete.mean()}
    return {name: round(float(value), 4) for name, value in figures.items()}


@dataclass(frozen=True)
class Correction:
    """offset + slope * log-odds + weights * standardized features."""

    offset: float
    slope: float
    weights: tuple[float, ...]
    names: tuple[str, ...]  # of the features
    penalty: float  # on these weights, from the best-fitting prior

    def __post_init__(self) -> None:
        numbers = (*self.weights, self.offset, self.slope, self.penalty)
        if not all(abs(one) <= MAX_COEFFICIENT for one in numbers):
            raise InputError(f"a number is beyond {MAX_COEFFICIENT:,g}, or not finite")

    def apply(self, odds: Floats, features: Floats) -> npt.NDArray[np.float64]:
        """(n,) log-odds and (n, names) standardized features to (n,) log-odds."""
        limits, weights = self._arrays
        within = np.minimum(np.maximum(features, -limits), limits)
        moved = self.slope * odds + multiply_rows(within, weights)
        return np.asarray(self.offset + moved, dtype=np.float64)

    @cached_property
    def _arrays(self) -> tuple[Floats, Floats]:
        return feature_limits(self.names), np.array(self.weights)


def feature_limits(names: tuple[str, ...]) -> Floats:
    """How far each standardized feature counts; the log-odds of a local model are not clipped."""
    return np.array([np.inf if name == LOCAL_FEATURE.name else MAX_SPREADS for name in names])


@dataclass(frozen=True)
class FeatureProfile:
    """The training questions of a gate, as distributions that reveal no single question.

    For each feature: the median, the spread, the edges of up to ten bins and the share in each.
    """

    names: tuple[str, ...]
    medians: tuple[float, ...]
    spreads: tuple[float, ...]
    edges: tuple[tuple[float, ...], ...]
    shares: tuple[tuple[float, ...], ...]
    questions: int
    complete: float  # share of complete sets
    actions: Mapping[str, float]  # share of each action

    def __post_init__(self) -> None:
        if not all(isinstance(share, int | float) for share in self.actions.values()):
            raise InputError("the shares of actions must be numbers")

    @classmethod
    def fit(
        cls, names: Sequence[str], table: Floats, complete: float, actions: Mapping[str, float]
    ) -> FeatureProfile:
        """Profile the gate's columns, (questions, features)."""
        quantiles = np.linspace(0, 1, BINS + 1)[1:-1]
        edges = [tuple(np.unique(np.quantile(column, quantiles)).tolist()) for column in table.T]
        shares = [tuple(bin_shares(*one)) for one in zip(table.T, edges, strict=True)]
        medians, spreads = (
            tuple(map(float, one)) for one in (np.median(table, axis=0), table.std(axis=0))
        )
        counts = len(table), float(complete), dict(actions)
        return cls(tuple(names), medians, spreads, tuple(edges), tuple(shares), *counts)

    def first(self, count: int) -> FeatureProfile:
        """Names, medians and spreads of the first features only; bins stay until the next fit."""
        kept = {name: getattr(self, name)[:count] for name in ("names", "medians", "spreads")}
        return replace(self, **kept)

    def with_feature(self, name: str, median: float) -> FeatureProfile:
        """A copy with one more feature, of spread 1."""
        return replace(
            self,
            names=(*self.names, name),
            medians=(*self.medians, median),
            spreads=(*self.spreads, 1.0),
        )

    @cached_property
    def column(self) -> dict[str, int]:
        """The position of each feature."""
        return {name: at for at, name in enumerate(self.names)}

    def standardize(self, table: Floats, names: tuple[str, ...]) -> Floats:
        """The named features, centred by median and scaled by spread: (questions, names)."""
        at, medians, spreads = self._scales(names)
        return np.asarray((table.take(at, axis=1) - medians) / spreads)

    def _scales(self, names: tuple[str, ...]) -> tuple[npt.NDArray[np.intp], Floats, Floats]:
        if names not in self._scales_of:  # every check asks for the same few names
            at = np.array([self.column[name] for name in names], dtype=np.intp)
            medians, spreads = np.array(self.medians), np.maximum(self.spreads, 1e-6)
            self._scales_of[names] = at, medians[at], spreads[at]
        return self._scales_of[names]

    @cached_property
    def _scales_of(self) -> dict[tuple[str, ...], tuple[npt.NDArray[np.intp], Floats, Floats]]:
        return {}


def bin_shares(column: Floats, edges: Sequence[float]) -> list[float]:
    """The share of values in each bin."""
    places = np.searchsorted(np.asarray(edges), column, side="left")
    counts = np.bincount(places, minlength=len(edges) + 1)
    return [float(share) for share in counts / max(len(column), 1)]
