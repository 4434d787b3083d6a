"""Figures: the numbers first, then the picture of them.

`metric_bars` and `depth_curves` give plain records that a test or another plotting library can read; `draw` turns one into SVG
or PNG bytes. Colours are Okabe and Ito's, which colour-blind readers can tell apart, and every series also has its own marker.
Same numbers, same bytes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from suffice.errors import InputError, MissingExtraError
from suffice.evaluate.compare import Interval, interval
from suffice.evaluate.runs import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["INK", "Bars", "Curves", "Series", "depth_curves", "draw", "metric_bars"]

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F7F7F", "#B8A800")  # Okabe-Ito, greyed ends
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK = "#1f2328"  # all lines and letters; a page that has a dark mode may replace it in the SVG


@dataclass(frozen=True, slots=True)
class Series:
    """One system's figures; None where a figure is not defined."""

    name: str
    values: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar for each system: one metric, with its interval."""

    title: str
    axis: str
    bars: tuple[Series, ...]  # one value each


@dataclass(frozen=True, slots=True)
class Curves:
    """A line for each system over the same points."""

    title: str
    across: str
    axis: str
    points: tuple[int, ...]
    lines: tuple[Series, ...]


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


def draw(figure: Bars | Curves, format: Literal["svg", "png"] = "svg") -> bytes:
    """The picture as bytes. Needs matplotlib (extra `report`)."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
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
        height = 1.3 + 0.42 * len(figure.bars) if isinstance(figure, Bars) else 4.4
        canvas = Figure(figsize=(6.4, height), layout="constrained")
        axes = canvas.add_subplot()
        if isinstance(figure, Bars):
            _draw_bars(axes, figure)
        else:
            _draw_curves(canvas, axes, figure)
        axes.set_title(_short(figure.title, 56), loc="left", fontsize=12, fontweight="bold")
        axes.spines[["top", "right"]].set_visible(False)
        stream = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if format == "svg" else {"Software": None}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")  # a name in another script is drawn as boxes
            canvas.savefig(stream, format=format, dpi=150, transparent=format == "svg", metadata=metadata)
    return stream.getvalue()


def _short(text: str, length: int = 28) -> str:
    # Control characters cannot stand in an SVG at all.
    text = "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))
    return text if len(text) <= length else text[: length - 1] + "…"


def _draw_bars(axes: Axes, figure: Bars) -> None:
    # Lying bars: long names fit beside them without being turned.
    for at, series in enumerate(figure.bars):
        value = series.values[0]
        if value.value is None:
            _beside(axes, "not defined", 0, at)
            continue
        axes.barh(at, value.value, height=0.62, color=COLOURS[0], alpha=0.85)
        low, high = value.low, value.high
        if low is not None and high is not None:
            axes.plot([low, high], [at, at], color=INK, linewidth=1.4, marker="|", markersize=7)
        _beside(axes, f"{value.value:.3f}", max(value.value, high or 0), at)
    axes.set_yticks(range(len(figure.bars)), [_short(series.name) for series in figure.bars])
    axes.set_ylim(len(figure.bars) - 0.4, -0.6)
    longest = max((one.high or one.value or 0.0 for series in figure.bars for one in series.values), default=0.0)
    axes.set_xlim(0, 1.15 * longest if longest else 1)  # room for the figure behind the longest bar
    axes.set_xlabel(_short(figure.axis, 60))
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)


def _beside(axes: Axes, text: str, x: float, y: float) -> None:
    axes.annotate(text, (x, y), xytext=(8, 0), textcoords="offset points", va="center", fontsize=10)


def _draw_curves(canvas: Figure, axes: Axes, figure: Curves) -> None:
    for at, series in enumerate(figure.lines):
        colour, marker = COLOURS[at % len(COLOURS)], MARKERS[at % len(MARKERS)]
        shown = [(k, one) for k, one in zip(figure.points, series.values) if one.value is not None]
        points, values = [k for k, _ in shown], [one.value or 0.0 for _, one in shown]
        # Dashes as well as colours once the colours start again.
        dashes = "-" if at < len(COLOURS) else "--"
        axes.plot(points, values, dashes, color=colour, marker=marker, markersize=6, linewidth=1.6, label=_short(series.name))
        lows = [value if one.low is None else one.low for value, (_, one) in zip(values, shown)]
        highs = [value if one.high is None else one.high for value, (_, one) in zip(values, shown)]
        axes.fill_between(points, lows, highs, color=colour, alpha=0.10, linewidth=0)
    axes.set_xticks(figure.points, [str(k) for k in figure.points])
    axes.set_xlabel(figure.across)
    axes.set_ylabel(_short(figure.axis, 40))
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25, linewidth=0.6)
    if figure.lines:
        canvas.legend(loc="outside lower left", ncols=min(3, len(figure.lines)), frameon=False, fontsize=10)
