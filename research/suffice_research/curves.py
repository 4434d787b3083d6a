"""Curves of predictions as figures: ROC, risk and coverage; and the debiased ECE."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.evaluation.metrics import Predictions, ProbabilityGroups, bin_numbers, unit_interval
from suffice.evaluation.report import Line, Lines

__all__ = ["ece_debiased", "risk_coverage", "risk_lines", "roc_lines"]

Floats = npt.NDArray[np.float64]

MOST_POINTS = 200  # per line: more are invisible, and documents should stay small


def roc_lines(title: str, systems: Mapping[str, Predictions], *, says: str = "") -> Lines:
    """Complete sets found against incomplete sets accepted, at every threshold."""
    lines = []
    for name, one in systems.items():
        order = np.argsort(-one.probabilities, kind="stable")
        labels, ranked = one.labels[order], one.probabilities[order]
        ends = np.flatnonzero(np.r_[np.diff(ranked) != 0, True])  # ties are one step
        true, false = np.cumsum(labels)[ends], np.cumsum(1 - labels)[ends]
        x, y = false / max(false[-1], 1), true / max(true[-1], 1)
        lines.append(_thin_line(name, np.r_[0.0, x], np.r_[0.0, y]))
    across = "incomplete let through (false positive rate)"
    axis = "complete found (true positive rate)"
    return Lines(title, across, axis, tuple(lines), diagonal=True, says=says)


def risk_lines(
    title: str, systems: Mapping[str, Predictions], *, says: str = "", word: str = "incomplete"
) -> Lines:
    """Share of incomplete answers, or other errors, as more is answered, most confident first."""
    curves = {name: risk_coverage(one) for name, one in systems.items()}
    lines = tuple(_thin_line(name, curve.coverage, curve.risk) for name, curve in curves.items())
    axis = f"share of the answered that is {word}"
    return Lines(title, "share of questions answered", axis, lines, says=says)


def _thin_line(name: str, x: Any, y: Any) -> Line:
    at = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_POINTS)).round().astype(np.intp))
    xs, ys = (np.asarray(one, dtype=float)[at].tolist() for one in (x, y))
    return Line(name, tuple(xs), tuple(ys))


@dataclass(frozen=True, slots=True)
class RiskCurve:
    """At each threshold: the share answered, and the share of the answered that is wrong."""

    thresholds: Floats
    coverage: Floats
    risk: Floats


def risk_coverage(predictions: Predictions) -> RiskCurve:
    """The risk-coverage curve, highest threshold first; empty without questions."""
    predictions.require_binary("risk_coverage")
    if not len(predictions):
        return RiskCurve(np.zeros(0), np.zeros(0), np.zeros(0))
    ones = np.ones((1, len(predictions)))
    groups = ProbabilityGroups.of(predictions.labels, predictions.probabilities, ones)
    coverage, risk = groups.risks()
    return RiskCurve(groups.thresholds, coverage[0], risk[0])


def ece_debiased(
    labels: npt.ArrayLike, probabilities: npt.ArrayLike, *, bins: int = 10
) -> float | None:
    """The ECE without what chance adds to it, bin by bin; None without questions.

    Follows Kumar, Liang and Ma (Verified Uncertainty Calibration, 2019): a bin's share of positives
    is a normal variable around the observed one, and the mean distance that this adds is
    subtracted. It corrects too little if the probabilities are true.
    """
    p, truth = unit_interval(probabilities, "probabilities"), np.asarray(labels, dtype=float)
    if not len(p):
        return None
    where = bin_numbers(p, bins)
    counts = np.bincount(where, minlength=bins)
    held = counts > 0
    share = np.bincount(where, truth, bins)[held] / counts[held]
    gap = np.abs(np.bincount(where, p, bins)[held] / counts[held] - share)
    spread = np.sqrt(share * (1 - share) / counts[held])
    z = gap / np.maximum(spread, 1e-12)
    tail = np.array([math.erf(one / math.sqrt(2)) for one in z])
    redrawn = spread * math.sqrt(2 / math.pi) * np.exp(-(z**2) / 2) + gap * tail
    return float(counts[held] @ (2 * gap - redrawn) / len(p))
