"""Curves of predictions as figures: ROC, risk and coverage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.evaluation.metrics import Predictions, risk_coverage
from suffice.evaluation.report import Line, Lines

__all__ = ["risk_lines", "roc_lines"]

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
