"""Figures as numbers: plain records that a test, a script or another plotting library can read. `plots.draw` pictures them.

    Bars       a bar for each system in each group, with interval, and a paper's figure as a mark
    Curves     a line for each system over the same points (k = 2, 4, 8), with interval
    Lines      a line for each system over its own points: ROC, reliability, risk and coverage
    Heatmap    a shade for each pair of a row and a column

Each is one JSON object and comes back from it.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from suffice.errors import InputError, MissingExtraError
from suffice.evaluation.metrics import Predictions, reliability, risk_coverage
from suffice.evaluation.runs import RetrievalRun
from suffice.evaluation.significance import Interval, interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = [
    "INK",
    "Bars",
    "Curves",
    "Figure",
    "Heatmap",
    "Line",
    "Lines",
    "Series",
    "depth_curves",
    "draw_figure",
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
    notes: tuple[
        tuple[str, ...], ...
    ] = ()  # under each value: its interval, how many questions, or why there is none


Figure = Bars | Curves | Lines | Heatmap


# ------------------------------------------------------------------------------------------------------ of a run


def metric_bars(run: RetrievalRun, metric: str) -> Bars:
    """A metric of every system of a run."""
    bars = tuple(
        Series(name, (interval(run.judged(name), metric, seed=run.seed),)) for name in run.names
    )
    return Bars(f"{metric} on {run.dataset}", metric, bars)


def depth_curves(run: RetrievalRun, metric: str, *, ks: Sequence[int] | None = None) -> Curves:
    """A metric without its k, as the ranking is read deeper: at the run's own cutoffs, or at `ks`."""
    points = tuple(ks or run.ks)
    lines = []
    for name in run.names:
        judged = run.judged(name)
        lines.append(
            Series(name, tuple(interval(judged, f"{metric}@{k}", seed=run.seed) for k in points))
        )
    return Curves(
        f"{metric}@k on {run.dataset}", "k (hits read)", f"{metric}@k", points, tuple(lines)
    )


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
        lines.append(_thin_line(name, np.r_[0.0, x], np.r_[0.0, y]))
    across, axis = (
        "incomplete let through (false positive rate)",
        "complete found (true positive rate)",
    )
    return Lines(title, across, axis, tuple(lines), diagonal=True, says=says)


def reliability_lines(
    title: str,
    systems: Mapping[str, Predictions],
    *,
    bins: int = 10,
    fewest: int = 1,
    says: str = "",
) -> Lines:
    """What came true beside what was said, bin by bin; the dots are as large as their bins are full.

    Bins of fewer than `fewest` questions are left out: what came true in them is chance.
    """
    lines = []
    for name, one in systems.items():
        held = [
            each
            for each in reliability(one, bins)
            if each.count >= fewest and each.predicted is not None
        ]
        lines.append(
            Line(
                name,
                tuple(each.predicted or 0.0 for each in held),
                tuple(each.observed or 0.0 for each in held),
                tuple(each.count for each in held),
            )
        )
    return Lines(
        title,
        "predicted probability",
        "share that was complete",
        tuple(lines),
        diagonal=True,
        says=says,
    )


def risk_lines(
    title: str, systems: Mapping[str, Predictions], *, says: str = "", word: str = "incomplete"
) -> Lines:
    """Share of incomplete among the answered, as more questions are answered, the surest first; or of another fault."""
    curves = {name: risk_coverage(one) for name, one in systems.items()}
    lines = tuple(_thin_line(name, curve.coverage, curve.risk) for name, curve in curves.items())
    return Lines(
        title,
        "share of questions answered",
        f"share of the answered that is {word}",
        lines,
        says=says,
    )


def _thin_line(name: str, x: Any, y: Any) -> Line:
    at = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_POINTS)).round().astype(np.intp))
    return Line(
        name,
        tuple(np.asarray(x, dtype=float)[at].tolist()),
        tuple(np.asarray(y, dtype=float)[at].tolist()),
    )


# ------------------------------------------------------------------------------------------------------ JSON

_FIGURE_KINDS: dict[str, type[Figure]] = {
    "bars": Bars,
    "curves": Curves,
    "lines": Lines,
    "heatmap": Heatmap,
}


def figure_json(figure: Figure) -> dict[str, Any]:
    """The figure as one JSON object."""
    kind = next(name for name, one in _FIGURE_KINDS.items() if isinstance(figure, one))
    return {"figure": kind, **asdict(figure)}


def figure_from_json(told: Mapping[str, Any]) -> Figure:
    """What `figure_json` gave; KeyError, TypeError or ValueError where it is not that."""
    fields = {name: value for name, value in told.items() if name != "figure"}
    match told["figure"]:
        case "bars":
            return Bars(
                **{
                    **fields,
                    "bars": _series_from_json(fields["bars"]),
                    "groups": tuple(fields["groups"]),
                }
            )
        case "curves":
            return Curves(
                **{
                    **fields,
                    "lines": _series_from_json(fields["lines"]),
                    "points": tuple(fields["points"]),
                }
            )
        case "lines":
            lines = tuple(
                Line(one["name"], *(tuple(one[part]) for part in ("x", "y", "sizes")))
                for one in fields["lines"]
            )
            return Lines(**{**fields, "lines": lines})
        case "heatmap":
            names = {part: tuple(fields[part]) for part in ("down", "across")}
            grids = {part: tuple(map(tuple, fields.get(part, ()))) for part in ("values", "notes")}
            return Heatmap(**{**fields, **names, **grids})
        case other:
            raise ValueError(f"no figure is of kind {other!r}")


def _series_from_json(told: Sequence[Mapping[str, Any]]) -> tuple[Series, ...]:
    return tuple(
        Series(
            one["name"], tuple(Interval(**value) for value in one["values"]), tuple(one["paper"])
        )
        for one in told
    )


# --- plots: Pictures of figures: `draw` turns the numbers of `figures` into SVG or PNG bytes.

COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#7F7F7F",
    "#B8A800",
)  # Okabe-Ito, greyed ends
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK = "#1f2328"  # all lines and letters; a page that has a dark mode may replace it in the SVG
WIDTH = 6.4  # inches
LABEL = 0.17  # of the axis: what a figure behind a bar takes
_FEW_POINTS = 24  # points of a line up to which each has its marker
_PAPER: dict[str, Any] = {
    "marker": "D",
    "markersize": 6,
    "markerfacecolor": "white",
    "markeredgecolor": INK,
    "linestyle": "none",
}


def draw_figure(figure: Figure, format: Literal["svg", "png"] = "svg") -> bytes:
    """The picture as bytes. Needs matplotlib (extra `report`)."""
    try:
        import matplotlib
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise MissingExtraError("drawing plots", extra="report") from error
    if format not in ("svg", "png"):
        raise InputError(f"a plot can be 'svg' or 'png', not {format!r}")
    # No pyplot: it would keep global state and look for a display. Names may hold a $, which is not meant as mathematics.
    settings: Any = {
        "svg.hashsalt": "suffice",
        "svg.fonttype": "path",
        "font.family": "DejaVu Sans",
        "font.size": 11,
        "text.parse_math": False,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
    }
    with matplotlib.rc_context(settings):
        canvas = Canvas(figsize=(WIDTH, _height(figure)), layout="constrained")
        axes = canvas.add_subplot()
        match figure:
            case Bars():
                _draw_bars(canvas, axes, figure)
            case Curves():
                _draw_curves(canvas, axes, figure)
            case Lines():
                _draw_lines(canvas, axes, figure)
            case Heatmap():
                _draw_heatmap(canvas, axes, figure)
        canvas.suptitle(
            _shorten(figure.title, 62), x=0.01, ha="left", fontsize=12, fontweight="bold"
        )
        axes.spines[["top", "right"]].set_visible(False)
        stream = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if format == "svg" else {"Software": None}
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="Glyph .* missing"
            )  # a name in another script is drawn as boxes
            canvas.savefig(
                stream, format=format, dpi=150, transparent=format == "svg", metadata=metadata
            )
    return stream.getvalue()


def _height(figure: Figure) -> float:
    match figure:
        case Bars():
            legend = 0.4 if len(figure.groups) > 1 or _has_paper(figure) else 0.0
            return (
                1.3
                + legend
                + (0.42 if len(figure.groups) == 1 else 0.3) * len(figure.bars) * len(figure.groups)
            )
        case Heatmap():
            return 1.6 + (0.72 if figure.notes else 0.42) * len(figure.down)
        case Lines():
            return 5.4
        case _:
            return 4.6


def _shorten(text: str, length: int = 28) -> str:
    # Control characters cannot stand in an SVG at all.
    text = "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))
    return text if len(text) <= length else text[: length - 1] + "…"


def _style(at: int) -> dict[str, Any]:
    # Dashes as well as colours once the colours start again.
    dashes = "-" if at < len(COLOURS) else "--"
    return {
        "color": COLOURS[at % len(COLOURS)],
        "marker": MARKERS[at % len(MARKERS)],
        "linestyle": dashes,
    }


def _legend(canvas: Canvas, entries: int) -> None:
    if entries:
        canvas.legend(loc="outside lower left", ncols=min(3, entries), frameon=False, fontsize=10)


# ------------------------------------------------------------------------------------------------------ bars


def _has_paper(figure: Bars | Curves) -> bool:
    series = figure.bars if isinstance(figure, Bars) else figure.lines
    return any(value is not None for one in series for value in one.paper)


def _draw_bars(canvas: Canvas, axes: Axes, figure: Bars) -> None:
    # Lying bars: long names fit beside them without being turned.
    groups = len(figure.groups)
    thick = 0.62 if groups == 1 else 0.8 / groups
    span = _axis_end(figure) - figure.start
    for at, series in enumerate(figure.bars):
        for group, value in enumerate(series.values):
            y = at + (group - (groups - 1) / 2) * thick
            paper = series.paper[group] if group < len(series.paper) else None
            end = max(one for one in (figure.start, value.value, value.high) if one is not None)
            if paper is not None and -0.02 * span < paper - end < LABEL * span:
                end = max(end, paper)  # the figure stands behind the mark where it would hit it
            if value.value is not None:
                axes.barh(
                    y,
                    value.value - figure.start,
                    thick * 0.92,
                    figure.start,
                    color=COLOURS[group % 8],
                    alpha=0.85,
                )
            if value.low is not None and value.high is not None:
                axes.plot(
                    [value.low, value.high],
                    [y, y],
                    color=INK,
                    linewidth=1.4,
                    marker="|",
                    markersize=7,
                )
            if paper is not None:
                axes.plot([paper], [y], **_PAPER)
            label = "not defined" if value.value is None else f"{value.value:.3f}"
            axes.annotate(
                label, (end, y), xytext=(8, 0), textcoords="offset points", va="center", fontsize=10
            )
    axes.set_yticks(range(len(figure.bars)), [_shorten(series.name) for series in figure.bars])
    axes.set_ylim(len(figure.bars) - 0.4, -0.6)
    axes.set_xlim(
        figure.start, figure.start + ((1 + LABEL) * span if span > 0 else 1)
    )  # room for the longest bar's figure
    axes.set_xlabel(_shorten(figure.axis, 60))
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    _bar_legend(canvas, axes, figure)


def _axis_end(figure: Bars) -> float:
    ends = [
        one
        for series in figure.bars
        for value in series.values
        for one in (value.value, value.high)
    ]
    papers = [one for series in figure.bars for one in series.paper]
    return max([figure.start, *(one for one in (*ends, *papers) if one is not None)])


def _bar_legend(canvas: Canvas, axes: Axes, figure: Bars) -> None:
    entries = 0
    if len(figure.groups) > 1:
        for group, name in enumerate(figure.groups):
            axes.barh(
                [0],
                [0],
                0,
                figure.start,
                color=COLOURS[group % 8],
                alpha=0.85,
                label=_shorten(name),
            )
        entries += len(figure.groups)
    if _has_paper(figure):
        axes.plot([], [], **_PAPER, label="paper")
        entries += 1
    _legend(canvas, entries)


# ------------------------------------------------------------------------------------------------------ lines


def _draw_curves(canvas: Canvas, axes: Axes, figure: Curves) -> None:
    for at, series in enumerate(figure.lines):
        style = _style(at)
        shown = [(k, one) for k, one in zip(figure.points, series.values) if one.value is not None]
        points, values = [k for k, _ in shown], [one.value or 0.0 for _, one in shown]
        axes.plot(points, values, **style, markersize=6, linewidth=1.6, label=_shorten(series.name))
        lows = [value if one.low is None else one.low for value, (_, one) in zip(values, shown)]
        highs = [value if one.high is None else one.high for value, (_, one) in zip(values, shown)]
        axes.fill_between(points, lows, highs, color=style["color"], alpha=0.10, linewidth=0)
        paper = [(k, value) for k, value in zip(figure.points, series.paper) if value is not None]
        axes.plot(
            [k for k, _ in paper],
            [v for _, v in paper],
            **{**_PAPER, "markeredgecolor": style["color"]},
        )
    axes.set_xticks(figure.points, [str(k) for k in figure.points])
    axes.set_xlabel(figure.across)
    axes.set_ylabel(_shorten(figure.axis, 40))
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25, linewidth=0.6)
    entries = len(figure.lines)
    if _has_paper(figure):
        axes.plot([], [], **_PAPER, label="paper")
        entries += 1
    _legend(canvas, entries)


def _draw_lines(canvas: Canvas, axes: Axes, figure: Lines) -> None:
    if figure.diagonal:
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
    for at, line in enumerate(figure.lines):
        style = _style(at)
        few = len(line.x) <= _FEW_POINTS
        # A long line wears its marker in a few places, shifted from its neighbours' so that they do not hide each other.
        every = (
            None
            if few
            else (at * len(line.x) // (8 * max(len(figure.lines), 1)), max(1, len(line.x) // 8))
        )
        if line.sizes:
            _draw_dots(axes, line, style)
        else:
            axes.plot(
                line.x,
                line.y,
                **style,
                markersize=5,
                markevery=every,
                linewidth=1.6,
                label=_shorten(line.name),
            )
    axes.set_xlim(-0.02 * figure.reach, 1.02 * figure.reach)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(_shorten(figure.across, 60))
    axes.set_ylabel(_shorten(figure.axis, 60))
    axes.grid(alpha=0.25, linewidth=0.6)
    _legend(canvas, len(figure.lines))


def _draw_dots(axes: Axes, line: Line, style: dict[str, Any]) -> None:
    """Dots as large as what they stand for; the line between them only leads the eye."""
    largest = max(line.sizes, default=1) or 1
    areas = [10 + 190 * size / largest for size in line.sizes]
    axes.plot(line.x, line.y, color=style["color"], linewidth=1.0, alpha=0.45)
    axes.plot([], [], **style, markersize=6, linewidth=1.0, label=_shorten(line.name))
    axes.scatter(
        line.x,
        line.y,
        areas,
        color=style["color"],
        marker=style["marker"],
        alpha=0.8,
        linewidths=0,
        zorder=3,
    )


# ------------------------------------------------------------------------------------------------------ heatmap


def _draw_heatmap(canvas: Canvas, axes: Axes, figure: Heatmap) -> None:
    known = [value for row in figure.values for value in row if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    span = (high - low) or 1.0
    for y, row in enumerate(figure.values):
        for x, value in enumerate(row):
            shade = 0.0 if value is None else 0.08 + 0.84 * (value - low) / span
            axes.fill_between(
                [x - 0.48, x + 0.48], y - 0.46, y + 0.46, color=COLOURS[0], alpha=shade, linewidth=0
            )
            # White letters on the darkest shades of one hue, ink on all others: readable in print and in the dark.
            colour = "white" if shade > 0.72 else INK
            note = figure.notes[y][x] if figure.notes else ""
            said = "--" if value is None else f"{value:.3f}"
            axes.text(
                x,
                y - (0.14 if note else 0),
                said,
                ha="center",
                va="center",
                fontsize=10,
                color=colour,
            )
            if note:
                axes.text(
                    x,
                    y + 0.22,
                    _shorten(note),
                    ha="center",
                    va="center",
                    fontsize=7.5,
                    color=colour,
                )
    axes.set_xticks(range(len(figure.across)), [_shorten(name, 16) for name in figure.across])
    axes.set_yticks(range(len(figure.down)), [_shorten(name) for name in figure.down])
    axes.set_xlim(-0.5, max(len(figure.across), 1) - 0.5)
    axes.set_ylim(max(len(figure.down), 1) - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.spines[["bottom", "left"]].set_visible(False)
    axes.set_xlabel(_shorten(figure.axis, 60))
