"""Figures as data, and as images: plain records that `draw_figure` renders as SVG or PNG.

    Bars       a bar for each system in each group, with interval and a paper's figure as a mark
    Curves     a line for each system over the same points (k = 2, 4, 8), with interval
    Lines      a line for each system over its own points: ROC, reliability, risk and coverage
    Points     a named dot for each system, with intervals: quality over cost
    Heatmap    a shade for each pair of a row and a column
    Diagram    boxes with text, and arrows between them: a pipeline, a small graph

Each is one JSON object and can be loaded again. The colours are Okabe and Ito's, which colour-blind
readers can tell apart, and every series has its own marker. The same numbers give the same bytes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

from suffice.errors import InputError, MissingExtraError
from suffice.evaluation.significance import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = [
    "Arrow",
    "Bars",
    "Box",
    "Curves",
    "Diagram",
    "Figure",
    "Heatmap",
    "Line",
    "Lines",
    "Point",
    "Points",
    "Series",
    "draw_figure",
    "figure_from_json",
    "figure_json",
]


@dataclass(frozen=True, slots=True)
class Series:
    """One system's figures, and the corresponding figures of a paper."""

    name: str
    values: tuple[Interval, ...]
    paper: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar for each system, or one in each of several groups (metrics, parts of the data)."""

    title: str
    axis: str
    bars: tuple[Series, ...]  # one value per group
    groups: tuple[str, ...] = ("",)
    start: float = 0.0  # where bars start: 0.5 for AUROC, the value of random guessing
    says: str = ""  # what the figure shows, in one sentence


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
    """Points in order; `sizes` if they stand for different numbers of questions."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Lines:
    """A line for each system over its own points; both axes start at 0."""

    title: str
    across: str
    axis: str
    lines: tuple[Line, ...]
    diagonal: bool = False  # random guessing, or perfect calibration
    says: str = ""
    reach: float = 1.0  # the end of the horizontal axis


@dataclass(frozen=True, slots=True)
class Point:
    """One system's cost and quality."""

    name: str
    x: Interval
    y: Interval


@dataclass(frozen=True, slots=True)
class Points:
    """A dot for each system; the horizontal axis is logarithmic."""

    title: str
    across: str
    axis: str
    points: tuple[Point, ...]
    says: str = ""


@dataclass(frozen=True, slots=True)
class Heatmap:
    """A value for each row and column; None: undefined."""

    title: str
    axis: str  # what the values are
    down: tuple[str, ...]
    across: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    says: str = ""
    notes: tuple[tuple[str, ...], ...] = ()  # under each value: interval, n, or why it is missing


@dataclass(frozen=True, slots=True)
class Box:
    """A text at a grid position: columns and rows start at 0, fractions are allowed."""

    name: str
    text: str
    column: float
    row: float
    colour: int = 0  # boxes of the same kind share a colour


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow between two boxes, by name."""

    start: str
    end: str
    label: str = ""
    bend: float = 0.0  # how far it hangs below the boxes, in rows; 0: straight
    head: bool = True  # False: an undirected edge


@dataclass(frozen=True, slots=True)
class Diagram:
    """Boxes and arrows; each column is a quarter of the width."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...] = ()
    says: str = ""


Figure = Bars | Curves | Lines | Points | Heatmap | Diagram


def figure_json(figure: Figure) -> dict[str, Any]:
    """The figure as one JSON object."""
    return {"figure": type(figure).__name__.lower(), **asdict(figure)}


def figure_from_json(record: Mapping[str, Any]) -> Figure:
    """The inverse of `figure_json`; KeyError, TypeError or ValueError on other input."""
    fields = {name: value for name, value in record.items() if name != "figure"}
    match record["figure"]:
        case "bars":
            fields["bars"] = _series_from_json(fields["bars"])
            return Bars(**{**fields, "groups": tuple(fields["groups"])})
        case "curves":
            fields["lines"] = _series_from_json(fields["lines"])
            return Curves(**{**fields, "points": tuple(fields["points"])})
        case "lines":
            parts = ("x", "y", "sizes")
            lines = (
                Line(one["name"], *(tuple(one[it]) for it in parts)) for one in fields["lines"]
            )
            return Lines(**{**fields, "lines": tuple(lines)})
        case "points":
            points = (
                Point(one["name"], Interval(**one["x"]), Interval(**one["y"]))
                for one in fields["points"]
            )
            return Points(**{**fields, "points": tuple(points)})
        case "heatmap":
            names = {part: tuple(fields[part]) for part in ("down", "across")}
            grids = {part: tuple(map(tuple, fields.get(part, ()))) for part in ("values", "notes")}
            return Heatmap(**{**fields, **names, **grids})
        case "diagram":
            boxes = tuple(Box(**one) for one in fields["boxes"])
            arrows = tuple(Arrow(**one) for one in fields["arrows"])
            ends = {end for one in arrows for end in (one.start, one.end)}
            if lost := ends - {box.name for box in boxes}:
                raise ValueError(f"an arrow leads to {min(lost)!r}, which is no box")
            return Diagram(**{**fields, "boxes": boxes, "arrows": arrows})
        case other:
            raise ValueError(f"no figure is of kind {other!r}")


def _series_from_json(records: Sequence[Mapping[str, Any]]) -> tuple[Series, ...]:
    found = []
    for one in records:
        values = tuple(Interval(**value) for value in one["values"])
        found.append(Series(one["name"], values, tuple(one["paper"])))
    return tuple(found)


# ------------------------------------------------------------------------------------ drawing

# Okabe and Ito, with black and yellow toned down.
COLOURS = "#0072B2 #E69F00 #009E73 #CC79A7 #56B4E9 #D55E00 #7F7F7F #B8A800".split()
MARKERS = "os^DvPX*"
INK = "#1f2328"  # all lines and letters; a page with a dark mode may replace it in the SVG
WIDTH = 6.4  # inches
LABEL = 0.17  # share of the axis reserved for the figure beside a bar
COLUMNS, ROW_HEIGHT = 4, 1.0  # columns of a diagram, and inches of a row
Place = tuple[float, float]  # column and row
BOX_WIDTH, BOX_HEIGHT = 0.84, 0.66  # shares of a diagram's column and row
LETTERS, LINES = 20, 4  # that fit in a box
FEW_POINTS = 24  # lines with at most this many points mark each of them
GRID: Any = {"alpha": 0.25, "linewidth": 0.6}
CENTRE: Any = {"ha": "center", "va": "center"}
PAPER: Any = {
    "marker": "D",
    "markersize": 6,
    "markerfacecolor": "white",
    "markeredgecolor": INK,
    "linestyle": "none",
}
STYLE: Any = {
    "svg.hashsalt": "suffice",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "text.parse_math": False,  # a name may contain a $
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def draw_figure(figure: Figure, format: Literal["svg", "png"] = "svg") -> bytes:
    """The image as bytes. Needs matplotlib (extra `report`)."""
    try:
        import matplotlib
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise MissingExtraError("drawing plots", extra="report") from error
    if format not in ("svg", "png"):
        raise InputError(f"a plot can be 'svg' or 'png', not {format!r}")
    with matplotlib.rc_context(STYLE):  # no pyplot: it keeps global state and wants a display
        canvas = Canvas(figsize=(WIDTH, _height(figure)), layout="constrained")
        axes = canvas.add_subplot()
        match figure:
            case Bars():
                _draw_bars(canvas, axes, figure)
            case Curves():
                _draw_curves(canvas, axes, figure)
            case Lines():
                _draw_lines(canvas, axes, figure)
            case Points():
                _draw_points(canvas, axes, figure)
            case Heatmap():
                _draw_heatmap(axes, figure)
            case Diagram():
                _draw_diagram(axes, figure)
        bold: Any = {"x": 0.01, "ha": "left", "fontsize": 12, "fontweight": "bold"}
        canvas.suptitle(_shorten(figure.title, 62), **bold)
        axes.spines[["top", "right"]].set_visible(False)
        svg, stream = format == "svg", io.BytesIO()
        metadata = {"Date": None, "Creator": None} if svg else {"Software": None}
        with warnings.catch_warnings():
            # Names in scripts that the font lacks are drawn as boxes.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            canvas.savefig(stream, format=format, dpi=150, transparent=svg, metadata=metadata)
    return stream.getvalue()


def _height(figure: Figure) -> float:
    match figure:
        case Bars():
            groups = len(figure.groups)
            legend = 0.4 if groups > 1 or _has_paper(figure.bars) else 0.0
            return 1.3 + legend + (0.42 if groups == 1 else 0.3) * len(figure.bars) * groups
        case Heatmap():
            return 1.6 + (0.72 if figure.notes else 0.42) * len(figure.down)
        case Diagram():
            return 0.5 + ROW_HEIGHT * (_diagram_bottom(figure) + 0.5)
        case Lines():
            return 5.4
        case _:
            return 4.6


def _shorten(text: str, length: int = 28) -> str:
    # An SVG cannot contain control characters.
    text = "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))
    return text if len(text) <= length else text[: length - 1] + "…"


def _style(at: int) -> dict[str, Any]:
    dashes = "-" if at < len(COLOURS) else "--"  # when the colours repeat
    return {"color": COLOURS[at % 8], "marker": MARKERS[at % 8], "linestyle": dashes}


def _has_paper(series: Sequence[Series]) -> bool:
    return any(value is not None for one in series for value in one.paper)


def _legend(canvas: Canvas, axes: Axes, entries: int, *, paper: bool = False) -> None:
    if paper:
        axes.plot([], [], **PAPER, label="paper")
        entries += 1
    if entries:
        canvas.legend(loc="outside lower left", ncols=min(3, entries), frameon=False, fontsize=10)


def _draw_bars(canvas: Canvas, axes: Axes, figure: Bars) -> None:
    # Horizontal bars: long names fit beside them.
    groups, start = len(figure.groups), figure.start
    thick = 0.62 if groups == 1 else 0.8 / groups
    values = [value for series in figure.bars for value in series.values]
    ends = [one for value in values for one in (value.value, value.high)]
    ends += [one for series in figure.bars for one in series.paper]
    span = max([start, *(one for one in ends if one is not None)]) - start
    for at, series in enumerate(figure.bars):
        for group, value in enumerate(series.values):
            y = at + (group - (groups - 1) / 2) * thick
            paper = series.paper[group] if group < len(series.paper) else None
            end = max(one for one in (start, value.value, value.high) if one is not None)
            if paper is not None and -0.02 * span < paper - end < LABEL * span:
                end = max(end, paper)  # move the figure behind the mark if they would overlap
            if value.value is not None:
                colour = COLOURS[group % 8]
                axes.barh(y, value.value - start, thick * 0.92, start, color=colour, alpha=0.85)
            if value.low is not None and value.high is not None:
                bar: Any = {"color": INK, "linewidth": 1.4, "marker": "|", "markersize": 7}
                axes.plot([value.low, value.high], [y, y], **bar)
            if paper is not None:
                axes.plot([paper], [y], **PAPER)
            label = "not defined" if value.value is None else f"{value.value:.3f}"
            offset: Any = {"xytext": (8, 0), "textcoords": "offset points"}
            axes.annotate(label, (end, y), **offset, va="center", fontsize=10)
    axes.set_yticks(range(len(figure.bars)), [_shorten(series.name) for series in figure.bars])
    axes.set_ylim(len(figure.bars) - 0.4, -0.6)
    axes.set_xlim(start, start + ((1 + LABEL) * span if span > 0 else 1))
    axes.set_xlabel(_shorten(figure.axis, 60))
    axes.grid(axis="x", **GRID)
    axes.set_axisbelow(True)
    if groups > 1:
        for group, name in enumerate(figure.groups):
            colour, label = COLOURS[group % 8], _shorten(name)
            axes.barh([0], [0], 0, start, color=colour, alpha=0.85, label=label)
    _legend(canvas, axes, groups if groups > 1 else 0, paper=_has_paper(figure.bars))


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
        marks = {**PAPER, "markeredgecolor": style["color"]}
        axes.plot([k for k, _ in paper], [value for _, value in paper], **marks)
    axes.set_xticks(figure.points, [str(k) for k in figure.points])
    axes.set_xlabel(figure.across)
    axes.set_ylabel(_shorten(figure.axis, 40))
    axes.set_ylim(bottom=0)
    axes.grid(**GRID)
    _legend(canvas, axes, len(figure.lines), paper=_has_paper(figure.lines))


def _draw_lines(canvas: Canvas, axes: Axes, figure: Lines) -> None:
    if figure.diagonal:
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
    for at, line in enumerate(figure.lines):
        style, label, size = _style(at), _shorten(line.name), len(line.x)
        if line.sizes:  # dot size shows the number of questions; the line is only a guide
            largest = max(line.sizes, default=1) or 1
            areas = [10 + 190 * one / largest for one in line.sizes]
            axes.plot(line.x, line.y, color=style["color"], linewidth=1.0, alpha=0.45)
            axes.plot([], [], **style, markersize=6, linewidth=1.0, label=label)
            dots: Any = {"color": style["color"], "marker": style["marker"], "linewidths": 0}
            axes.scatter(line.x, line.y, areas, **dots, alpha=0.8, zorder=3)
            continue
        # A long line has a few markers, shifted so that they do not hide those of other lines.
        shift = at * size // (8 * max(len(figure.lines), 1))
        every = None if size <= FEW_POINTS else (shift, max(1, size // 8))
        thin: Any = {"markersize": 5, "markevery": every, "linewidth": 1.6}
        axes.plot(line.x, line.y, **style, **thin, label=label)
    axes.set_xlim(-0.02 * figure.reach, 1.02 * figure.reach)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(_shorten(figure.across, 60))
    axes.set_ylabel(_shorten(figure.axis, 60))
    axes.grid(**GRID)
    _legend(canvas, axes, len(figure.lines))


def _draw_points(canvas: Canvas, axes: Axes, figure: Points) -> None:
    shown = [one for one in figure.points if one.x.value and one.y.value is not None]
    for at, point in enumerate(shown):
        colour, x, y = COLOURS[at % 8], point.x.value or 0.0, point.y.value or 0.0
        whisker: Any = {"color": colour, "linewidth": 1.4, "alpha": 0.7}
        if point.x.low and point.x.high:
            axes.plot([point.x.low, point.x.high], [y, y], **whisker)
        if point.y.low is not None and point.y.high is not None:
            axes.plot([x, x], [point.y.low, point.y.high], **whisker)
        dot: Any = {"color": colour, "marker": MARKERS[at % 8], "linestyle": "none"}
        axes.plot([x], [y], **dot, markersize=8, label=_shorten(point.name, 34))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(lambda value, _: "")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(_shorten(figure.across, 60))
    axes.set_ylabel(_shorten(figure.axis, 60))
    axes.grid(**GRID)
    _legend(canvas, axes, min(len(shown), 2))


def _draw_heatmap(axes: Axes, figure: Heatmap) -> None:
    known = [value for row in figure.values for value in row if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    span = (high - low) or 1.0
    for y, row in enumerate(figure.values):
        for x, value in enumerate(row):
            shade = 0.0 if value is None else 0.08 + 0.84 * (value - low) / span
            fill: Any = {"color": COLOURS[0], "alpha": shade, "linewidth": 0}
            axes.fill_between([x - 0.48, x + 0.48], y - 0.46, y + 0.46, **fill)
            colour = "white" if shade > 0.72 else INK  # readable in print and in dark mode
            note = figure.notes[y][x] if figure.notes else ""
            text, lift = "--" if value is None else f"{value:.3f}", 0.14 if note else 0
            axes.text(x, y - lift, text, **CENTRE, fontsize=10, color=colour)
            if note:
                axes.text(x, y + 0.22, _shorten(note), **CENTRE, fontsize=7.5, color=colour)
    axes.set_xticks(range(len(figure.across)), [_shorten(name, 16) for name in figure.across])
    axes.set_yticks(range(len(figure.down)), [_shorten(name) for name in figure.down])
    axes.set_xlim(-0.5, max(len(figure.across), 1) - 0.5)
    axes.set_ylim(max(len(figure.down), 1) - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.spines[["bottom", "left"]].set_visible(False)
    axes.set_xlabel(_shorten(figure.axis, 60))


def _draw_diagram(axes: Axes, figure: Diagram) -> None:
    places = {box.name: (box.column, box.row) for box in figure.boxes}
    for arrow in figure.arrows:
        at = (_draw_arc if arrow.bend else _draw_line)(axes, arrow, places)
        if arrow.label:
            paper: Any = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
            # The background is white in light and dark mode, so the text is always dark grey.
            axes.text(*at, _shorten(arrow.label), **CENTRE, fontsize=8, color="#333", bbox=paper)
    for box in figure.boxes:
        _draw_box(axes, box)
    axes.set_xlim(-0.5, COLUMNS - 0.5)
    axes.set_ylim(_diagram_bottom(figure), -0.5)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[["bottom", "left"]].set_visible(False)


def _draw_line(axes: Axes, arrow: Arrow, places: Mapping[str, Place]) -> Place:
    """A straight arrow between two boxes; where its label is."""
    from matplotlib.patches import FancyArrowPatch

    start, end = places[arrow.start], places[arrow.end]
    tail, tip = _border(start, end), _border(end, start)
    style: Any = {"arrowstyle": "-|>" if arrow.head else "-", "mutation_scale": 11}
    axes.add_patch(
        FancyArrowPatch(tail, tip, **style, color=INK, linewidth=1.0, shrinkA=0, shrinkB=0)
    )
    return (tail[0] + tip[0]) / 2, (tail[1] + tip[1]) / 2


def _draw_arc(axes: Axes, arrow: Arrow, places: Mapping[str, Place]) -> Place:
    """An arc below two boxes; where its label is."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    (x, y), (to_x, to_y) = places[arrow.start], places[arrow.end]
    y, to_y = y + BOX_HEIGHT / 2, to_y + BOX_HEIGHT / 2
    # A quadratic curve goes half as far as its control point.
    middle = ((x + to_x) / 2, max(y, to_y) + 2 * arrow.bend)
    way = Path([(x, y), middle, (to_x, to_y)], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
    axes.add_patch(PathPatch(way, facecolor="none", edgecolor=INK, linewidth=1.0, zorder=1))
    return middle[0], max(y, to_y) + arrow.bend


def _draw_box(axes: Axes, box: Box) -> None:
    from matplotlib.patches import FancyBboxPatch

    corner = (box.column - BOX_WIDTH / 2, box.row - BOX_HEIGHT / 2)
    shape: Any = {"boxstyle": "round,pad=0,rounding_size=0.06", "mutation_aspect": 1.6}
    colour = COLOURS[box.colour % 8]
    for face, edge, alpha in ((colour, "none", 0.14), ("none", colour, 1.0)):
        shape |= {"facecolor": face, "edgecolor": edge, "alpha": alpha}
        axes.add_patch(FancyBboxPatch(corner, BOX_WIDTH, BOX_HEIGHT, **shape, linewidth=1.4))
    lines = wrap(_shorten(box.text, LETTERS * LINES), LETTERS, max_lines=LINES, placeholder="…")
    axes.text(box.column, box.row, "\n".join(lines), **CENTRE, fontsize=8)


def _diagram_bottom(figure: Diagram) -> float:
    """The bottom of the lowest box or arc, in rows."""
    rows = {box.name: box.row for box in figure.boxes}
    arcs = (max(rows[one.start], rows[one.end]) + one.bend + 0.15 for one in figure.arrows)
    return max([0.0, *rows.values(), *arcs]) + 0.5


def _border(box: Place, towards: Place) -> Place:
    """Where the line from a box's centre to another point leaves the box."""
    across, down = towards[0] - box[0], towards[1] - box[1]
    steps = [
        half / abs(one) for half, one in ((BOX_WIDTH / 2, across), (BOX_HEIGHT / 2, down)) if one
    ]
    step = min(steps, default=0.0)
    return box[0] + step * across, box[1] + step * down
