"""Figures of papers: bars and curves with a paper's marks, points and diagrams, and every figure
as JSON.

    PaperBars  bars, and a hollow diamond where a paper has a figure
    Curves     a line for each system over the same points (k = 2, 4, 8), with interval
    Points     a named dot for each system, with intervals: quality over cost
    Diagram    boxes with text, and arrows between them: a pipeline, a small graph

Lines and heatmaps are suffice's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from suffice.evaluation.heatmap import CENTRE, Heatmap
from suffice.evaluation.report import (
    COLOURS,
    GRID,
    INK,
    LABEL,
    MARKERS,
    Bars,
    Line,
    Lines,
    Series,
    add_legend,
    line_style,
    shorten,
)
from suffice.evaluation.significance import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = [
    "Arrow",
    "Box",
    "Curves",
    "Diagram",
    "Figure",
    "PaperBars",
    "PaperSeries",
    "Point",
    "Points",
    "figure_from_json",
    "figure_json",
]

COLUMNS, ROW_HEIGHT = 4, 1.0  # columns of a diagram, and inches of a row
Place = tuple[float, float]  # column and row
BOX_WIDTH, BOX_HEIGHT = 0.84, 0.66  # shares of a diagram's column and row
LETTERS, LINES = 20, 4  # that fit in a box
MARK: Any = {
    "marker": "D",
    "markersize": 6,
    "markerfacecolor": "white",
    "markeredgecolor": INK,
    "linestyle": "none",
}


@dataclass(frozen=True, slots=True)
class PaperSeries(Series):
    """One system's figures, and those of a paper, which are drawn as marks."""

    paper: tuple[float | None, ...] = ()


def _has_paper(series: Sequence[PaperSeries]) -> bool:
    return any(value is not None for one in series for value in one.paper)


@dataclass(frozen=True, slots=True)
class PaperBars(Bars):
    """Bars with a paper's marks on them."""

    bars: tuple[PaperSeries, ...]

    @property
    def height(self) -> float:
        legend = 0.4 if len(self.groups) == 1 and _has_paper(self.bars) else 0.0
        return super(PaperBars, self).height + legend

    def draw(self, canvas: Canvas, axes: Axes) -> None:
        if _has_paper(self.bars):
            axes.plot([], [], **MARK, label="paper")
        super(PaperBars, self).draw(canvas, axes)
        marks = [
            series.paper[at] if at < len(series.paper) else None
            for series in self.bars
            for at, _ in enumerate(series.values)
        ]
        right = (self.start + (1 + LABEL) * (one - self.start) for one in marks if one is not None)
        axes.set_xlim(right=max([axes.get_xlim()[1], *right]))
        span = (axes.get_xlim()[1] - self.start) / (1 + LABEL)
        for mark, figure in zip(marks, axes.texts):  # each bar has its figure behind it
            if mark is not None:
                end, y = figure.xy  # type: ignore[attr-defined]
                axes.plot([mark], [y], **MARK)
                if -0.02 * span < mark - end < LABEL * span:  # they would overlap
                    figure.xy = max(end, mark), y  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Curves:
    """A line for each system over the same points."""

    title: str
    across: str
    axis: str
    points: tuple[int, ...]
    lines: tuple[PaperSeries, ...]
    says: str = ""

    @property
    def height(self) -> float:
        return 4.6

    def draw(self, canvas: Canvas, axes: Axes) -> None:
        for at, series in enumerate(self.lines):
            style = line_style(at)
            shown = [
                (k, one) for k, one in zip(self.points, series.values) if one.value is not None
            ]
            points, values = [k for k, _ in shown], [one.value or 0.0 for _, one in shown]
            axes.plot(
                points, values, **style, markersize=6, linewidth=1.6, label=shorten(series.name)
            )
            lows = [value if one.low is None else one.low for value, (_, one) in zip(values, shown)]
            highs = [
                value if one.high is None else one.high for value, (_, one) in zip(values, shown)
            ]
            axes.fill_between(points, lows, highs, color=style["color"], alpha=0.10, linewidth=0)
            paper = [(k, value) for k, value in zip(self.points, series.paper) if value is not None]
            marks = {**MARK, "markeredgecolor": style["color"]}
            axes.plot([k for k, _ in paper], [value for _, value in paper], **marks)
        axes.set_xticks(self.points, [str(k) for k in self.points])
        axes.set_xlabel(self.across)
        axes.set_ylabel(shorten(self.axis, 40))
        axes.set_ylim(bottom=0)
        axes.grid(**GRID)
        if _has_paper(self.lines):
            axes.plot([], [], **MARK, label="paper")
        add_legend(canvas, axes)


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

    @property
    def height(self) -> float:
        return 4.6

    def draw(self, canvas: Canvas, axes: Axes) -> None:
        shown = [one for one in self.points if one.x.value and one.y.value is not None]
        for at, point in enumerate(shown):
            colour, x, y = COLOURS[at % 8], point.x.value or 0.0, point.y.value or 0.0
            whisker: Any = {"color": colour, "linewidth": 1.4, "alpha": 0.7}
            if point.x.low and point.x.high:
                axes.plot([point.x.low, point.x.high], [y, y], **whisker)
            if point.y.low is not None and point.y.high is not None:
                axes.plot([x, x], [point.y.low, point.y.high], **whisker)
            dot: Any = {"color": colour, "marker": MARKERS[at % 8], "linestyle": "none"}
            axes.plot([x], [y], **dot, markersize=8, label=shorten(point.name, 34))
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
        axes.set_ylim(bottom=0)
        axes.set_xlabel(shorten(self.across, 60))
        axes.set_ylabel(shorten(self.axis, 60))
        axes.grid(**GRID)
        add_legend(canvas, axes, columns=2)


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

    @property
    def height(self) -> float:
        return 0.5 + ROW_HEIGHT * (_diagram_bottom(self) + 0.5)

    def draw(self, canvas: Canvas, axes: Axes) -> None:
        places = {box.name: (box.column, box.row) for box in self.boxes}
        for arrow in self.arrows:
            at = (_draw_arc if arrow.bend else _draw_line)(axes, arrow, places)
            if arrow.label:
                paper: Any = {
                    "boxstyle": "round,pad=0.15",
                    "facecolor": "white",
                    "edgecolor": "none",
                }
                # The background is white in light and dark mode, so the text is always dark grey.
                axes.text(*at, shorten(arrow.label), **CENTRE, fontsize=8, color="#333", bbox=paper)
        for box in self.boxes:
            _draw_box(axes, box)
        axes.set_xlim(-0.5, COLUMNS - 0.5)
        axes.set_ylim(_diagram_bottom(self), -0.5)
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
    lines = wrap(shorten(box.text, LETTERS * LINES), LETTERS, max_lines=LINES, placeholder="…")
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


Figure = PaperBars | Curves | Lines | Points | Heatmap | Diagram


def figure_json(figure: Figure) -> dict[str, Any]:
    """The figure as one JSON object."""
    kind = type(figure).__name__.lower().removeprefix("paper")
    return {"figure": kind, **asdict(figure)}


def figure_from_json(record: Mapping[str, Any]) -> Figure:
    """The inverse of `figure_json`; KeyError, TypeError or ValueError on other input."""
    fields = {name: value for name, value in record.items() if name != "figure"}
    match record["figure"]:
        case "bars":
            fields["bars"] = _series_from_json(fields["bars"])
            return PaperBars(**{**fields, "groups": tuple(fields["groups"])})
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


def _series_from_json(records: Sequence[Mapping[str, Any]]) -> tuple[PaperSeries, ...]:
    found = []
    for one in records:
        values = tuple(Interval(**value) for value in one["values"])
        found.append(PaperSeries(one["name"], values, tuple(one["paper"])))
    return tuple(found)
