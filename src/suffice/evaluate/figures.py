"""Figures as numbers: plain records that a test, a script or another plotting library can read. `plots.draw` pictures them.

    Bars       a bar for each system in each group, with interval, and a paper's figure as a mark
    Curves     a line for each system over the same points (k = 2, 4, 8), with interval
    Lines      a line for each system over its own points: ROC, reliability, risk and coverage
    Heatmap    a shade for each pair of a row and a column

Each is one JSON object and comes back from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from suffice.evaluate.compare import Interval, interval
from suffice.evaluate.metrics import Predictions, reliability, risk_coverage
from suffice.evaluate.runs import Run

__all__ = [
    "Bars",
    "Curves",
    "Figure",
    "Heatmap",
    "Line",
    "Lines",
    "Series",
    "depth_curves",
    "figure_from_json",
    "figure_json",
    "metric_bars",
    "reliability_lines",
    "risk_lines",
    "roc_lines",
]

MOST_POINTS = 200  # of a line: more cannot be seen, and a document should stay small


@dataclass(frozen=True, slots=True)
class Series:
    """One system's figures; None where a figure is not defined. `paper`: what a paper reports in the same places."""

    name: str
    values: tuple[Interval, ...]
    paper: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar for each system, or one in each of several groups (metrics, parts of the data)."""

    title: str
    axis: str
    bars: tuple[Series, ...]  # one value for each group
    groups: tuple[str, ...] = ("",)
    start: float = 0.0  # where bars begin: 0.5 for AUROC, which is what a coin has
    says: str = ""  # what to see in it, in a sentence


@dataclass(frozen=True, slots=True)
class Curves:
    """A line for each system over the same points."""

    title: str
    across: str
    axis: str
    points: tuple[int, ...]
    lines: tuple[Series, ...]
    says: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """Points in order; `sizes` where they stand for different numbers of questions."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Lines:
    """A line for each system over its own points, both axes from 0 to 1; `diagonal`: a coin, or an honest forecast."""

    title: str
    across: str
    axis: str
    lines: tuple[Line, ...]
    diagonal: bool = False
    says: str = ""
    reach: float = 1.0  # how far the axis across goes


@dataclass(frozen=True, slots=True)
class Heatmap:
    """A value for each row and column; None: not defined."""

    title: str
    axis: str  # what the values are
    down: tuple[str, ...]
    across: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    says: str = ""
    notes: tuple[tuple[str, ...], ...] = ()  # under each value: its interval, how many questions, or why there is none


Figure = Bars | Curves | Lines | Heatmap


# ------------------------------------------------------------------------------------------------------ of a run


def metric_bars(run: Run, metric: str) -> Bars:
    """A metric of every system of a run."""
    bars = tuple(Series(name, (interval(run.judged(name), metric, seed=run.seed),)) for name in run.names)
    return Bars(f"{metric} on {run.dataset}", metric, bars)


def depth_curves(run: Run, metric: str, *, ks: Sequence[int] | None = None) -> Curves:
    """A metric without its k, as the ranking is read deeper: at the run's own cutoffs, or at `ks`."""
    points = tuple(ks or run.ks)
    lines = []
    for name in run.names:
        judged = run.judged(name)
        lines.append(Series(name, tuple(interval(judged, f"{metric}@{k}", seed=run.seed) for k in points)))
    return Curves(f"{metric}@k on {run.dataset}", "k (hits read)", f"{metric}@k", points, tuple(lines))


# ------------------------------------------------------------------------------------------------------ of predictions


def roc_lines(title: str, systems: Mapping[str, Predictions], *, says: str = "") -> Lines:
    """How many of the complete are found for how many of the incomplete let through, at every threshold."""
    lines = []
    for name, one in systems.items():
        order = np.argsort(-one.probabilities, kind="stable")
        labels, ranked = one.labels[order], one.probabilities[order]
        ends = np.flatnonzero(np.r_[np.diff(ranked) != 0, True])  # ties are one step
        true, false = np.cumsum(labels)[ends], np.cumsum(1 - labels)[ends]
        x, y = false / max(false[-1], 1), true / max(true[-1], 1)
        lines.append(_thinned(name, np.r_[0.0, x], np.r_[0.0, y]))
    across, axis = "incomplete let through (false positive rate)", "complete found (true positive rate)"
    return Lines(title, across, axis, tuple(lines), diagonal=True, says=says)


def reliability_lines(
    title: str, systems: Mapping[str, Predictions], *, bins: int = 10, fewest: int = 1, says: str = ""
) -> Lines:
    """What came true beside what was said, bin by bin; the dots are as large as their bins are full.

    Bins of fewer than `fewest` questions are left out: what came true in them is chance.
    """
    lines = []
    for name, one in systems.items():
        held = [each for each in reliability(one, bins) if each.count >= fewest and each.predicted is not None]
        lines.append(
            Line(
                name,
                tuple(each.predicted or 0.0 for each in held),
                tuple(each.observed or 0.0 for each in held),
                tuple(each.count for each in held),
            )
        )
    return Lines(title, "predicted probability", "share that was complete", tuple(lines), diagonal=True, says=says)


def risk_lines(title: str, systems: Mapping[str, Predictions], *, says: str = "", word: str = "incomplete") -> Lines:
    """Share of incomplete among the answered, as more questions are answered, the surest first; or of another fault."""
    curves = {name: risk_coverage(one) for name, one in systems.items()}
    lines = tuple(_thinned(name, curve.coverage, curve.risk) for name, curve in curves.items())
    return Lines(title, "share of questions answered", f"share of the answered that is {word}", lines, says=says)


def _thinned(name: str, x: Any, y: Any) -> Line:
    at = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_POINTS)).round().astype(np.intp))
    return Line(name, tuple(np.asarray(x, dtype=float)[at].tolist()), tuple(np.asarray(y, dtype=float)[at].tolist()))


# ------------------------------------------------------------------------------------------------------ JSON

_KINDS: dict[str, type[Figure]] = {"bars": Bars, "curves": Curves, "lines": Lines, "heatmap": Heatmap}


def figure_json(figure: Figure) -> dict[str, Any]:
    """The figure as one JSON object."""
    kind = next(name for name, one in _KINDS.items() if isinstance(figure, one))
    return {"figure": kind, **asdict(figure)}


def figure_from_json(told: Mapping[str, Any]) -> Figure:
    """What `figure_json` gave; KeyError, TypeError or ValueError where it is not that."""
    fields = {name: value for name, value in told.items() if name != "figure"}
    match told["figure"]:
        case "bars":
            return Bars(**{**fields, "bars": _series(fields["bars"]), "groups": tuple(fields["groups"])})
        case "curves":
            return Curves(**{**fields, "lines": _series(fields["lines"]), "points": tuple(fields["points"])})
        case "lines":
            lines = tuple(Line(one["name"], *(tuple(one[part]) for part in ("x", "y", "sizes"))) for one in fields["lines"])
            return Lines(**{**fields, "lines": lines})
        case "heatmap":
            names = {part: tuple(fields[part]) for part in ("down", "across")}
            grids = {part: tuple(map(tuple, fields.get(part, ()))) for part in ("values", "notes")}
            return Heatmap(**{**fields, **names, **grids})
        case other:
            raise ValueError(f"no figure is of kind {other!r}")


def _series(told: Sequence[Mapping[str, Any]]) -> tuple[Series, ...]:
    return tuple(Series(one["name"], tuple(Interval(**value) for value in one["values"]), tuple(one["paper"])) for one in told)
