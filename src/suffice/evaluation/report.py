"""A report: tables, plots, and one HTML page that shows them.

    Bars       a bar for each system in each group, with interval
    Lines      a line for each system over its own points: reliability, recall over k, time

A plot is anything with a title, a sentence, a height and `draw`. Figures
in tables have three decimals, undefined ones are `--`. The page is one file: no scripts, no
network; it follows the reader's light or dark setting. Names and texts come from data sets, so
every rendering escapes them.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib import resources, util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from suffice.errors import InputError, MissingExtraError
from suffice.evaluation.significance import Difference, Interval
from suffice.storage import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from rich.table import Table as RichTable

__all__ = [
    "UNDEFINED",
    "Bars",
    "Cell",
    "Line",
    "Lines",
    "Page",
    "Plot",
    "Section",
    "Series",
    "Table",
    "draw_plot",
    "format_cell",
    "page_html",
    "require_report_extra",
    "write_page",
]

UNDEFINED = "--"


class SpecialCell(Protocol):
    """A cell of another package: `str` of it is its text; in a page; as a JSON value."""

    def to_html(self) -> str: ...

    def record(self) -> Any: ...


Cell = str | int | float | Interval | Difference | SpecialCell | None


def format_cell(cell: Cell) -> str:
    """A cell as text: 0.417, 2,556, +0.012, 0.417 [0.40, 0.43], or --."""
    match cell:
        case None | Interval(value=None) | Difference(value=None):
            return UNDEFINED
        case Interval(value=value, low=low, high=high):
            bounds = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
            return f"{value:.3f}{bounds}"
        case Difference(value=value, low=low, high=high):
            bounds = "" if low is None or high is None else f" [{low:+.2f}, {high:+.2f}]"
            return f"{value:+.3f}{bounds}"
        case bool():
            return str(cell)
        case int():
            return f"{cell:,}"
        case float():
            return UNDEFINED if cell != cell else f"{cell:.3f}"
        case _:  # a text, or a special cell
            return str(cell)


def _as_special(cell: Cell) -> SpecialCell | None:
    plain = cell is None or isinstance(cell, str | int | float | Interval | Difference)
    return None if plain else cell  # type: ignore[return-value]


@dataclass(frozen=True)
class Table:
    """A title, named columns, rows of cells, and an explanatory note."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        for at, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise InputError(
                    f"row {at} of table {self.title!r} has {len(row)} cells for "
                    f"{len(self.columns)} columns"
                )

    @property
    def texts(self) -> list[list[str]]:
        """The rows as they are printed."""
        return [[format_cell(cell) for cell in row] for row in self.rows]

    @property
    def numeric(self) -> list[bool]:
        """Which columns contain figures and are right-aligned."""
        columns = zip(*self.rows) if self.rows else [("",)] * len(self.columns)
        return [not any(isinstance(cell, str) for cell in column) for column in columns]

    def cell(self, row: str, column: str) -> Cell:
        """The cell in the row that starts with this name, under this column."""
        for one in self.rows:
            if one[0] == row and column in self.columns:
                return one[self.columns.index(column)]
        raise InputError(f"table {self.title!r} has no cell {row!r}, {column!r}")

    def to_rich(self) -> RichTable:
        """The table for a terminal."""
        from rich.table import Table as RichTable
        from rich.text import Text

        titles: Any = {"title_justify": "left", "caption_justify": "left"}
        table = RichTable(title=Text(self.title), caption=Text(self.note), **titles)
        for name, right in zip(self.columns, self.numeric):
            header = Text(name.replace(" (", "\n("))
            table.add_column(header, justify="right" if right else "left", no_wrap=right)
        for row in self.rows:
            # A special cell, like a figure beside a paper's, has two lines: it would be too wide.
            texts = ((format_cell(cell), _as_special(cell)) for cell in row)
            table.add_row(*(Text(one.replace(" (", "\n(") if two else one) for one, two in texts))
        return table

    def to_html(self) -> str:
        """The table for a page: a `figure` with caption; numeric cells have the class `n`."""

        def html(cell: Cell) -> str:
            special = _as_special(cell)
            return special.to_html() if special else escape(format_cell(cell))

        css = [' class="n"' if right else "" for right in self.numeric]
        names = zip(self.columns, css)
        head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in names)
        rows = (zip(map(html, row), css) for row in self.rows)
        cells = ("".join(f"<td{kind}>{cell}</td>" for cell, kind in row) for row in rows)
        body = "\n".join(f"<tr>{row}</tr>" for row in cells)
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return (
            f"<figure><figcaption>{escape(self.title)}</figcaption>\n<div><table>\n"
            f"<thead><tr>{head}</tr></thead>\n"
            f"<tbody>\n{body}\n</tbody>\n</table></div>{note}</figure>\n"
        )

    def records(self) -> list[dict[str, Any]]:
        """The rows as JSON values: figures unrounded, intervals as objects."""

        def record(cell: Cell) -> Any:
            if isinstance(cell, Interval | Difference):
                return asdict(cell)
            special = _as_special(cell)
            return special.record() if special else cell

        return [dict(zip(self.columns, map(record, row))) for row in self.rows]


# ------------------------------------------------------------------------------------ plots

# Okabe and Ito's colours, which colour-blind readers can tell apart; black and yellow toned down.
COLOURS = "#0072B2 #E69F00 #009E73 #CC79A7 #56B4E9 #D55E00 #7F7F7F #B8A800".split()
MARKERS = "os^DvPX*"
INK = "#1f2328"  # all lines and letters; a page with a dark mode may replace it in the SVG
WIDTH = 6.4  # inches
LABEL = 0.17  # share of the axis reserved for the figure beside a bar
FEW_POINTS = 24  # lines with at most this many points mark each of them
GRID: Any = {"alpha": 0.25, "linewidth": 0.6}
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


class Plot(Protocol):
    """What `draw_plot` draws."""

    @property
    def title(self) -> str: ...

    @property
    def says(self) -> str: ...  # what it shows, in one sentence

    @property
    def height(self) -> float: ...  # inches

    def draw(self, canvas: Canvas, axes: Axes) -> None: ...


@dataclass(frozen=True, slots=True)
class Series:
    """One system's figures, and the corresponding figures of a paper, which are drawn as marks."""

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
    says: str = ""

    @property
    def height(self) -> float:
        groups = len(self.groups)
        legend = 0.4 if groups > 1 or has_paper(self.bars) else 0.0
        return 1.3 + legend + (0.42 if groups == 1 else 0.3) * len(self.bars) * groups

    def draw(self, canvas: Canvas, axes: Axes) -> None:
        # Horizontal bars: long names fit beside them.
        groups, start = len(self.groups), self.start
        thick = 0.62 if groups == 1 else 0.8 / groups
        values = [value for series in self.bars for value in series.values]
        ends = [one for value in values for one in (value.value, value.high)]
        ends += [one for series in self.bars for one in series.paper]
        span = max([start, *(one for one in ends if one is not None)]) - start
        for at, series in enumerate(self.bars):
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
        axes.set_yticks(range(len(self.bars)), [shorten(series.name) for series in self.bars])
        axes.set_ylim(len(self.bars) - 0.4, -0.6)
        axes.set_xlim(start, start + ((1 + LABEL) * span if span > 0 else 1))
        axes.set_xlabel(shorten(self.axis, 60))
        axes.grid(axis="x", **GRID)
        axes.set_axisbelow(True)
        if groups > 1:
            for group, name in enumerate(self.groups):
                colour, label = COLOURS[group % 8], shorten(name)
                axes.barh([0], [0], 0, start, color=colour, alpha=0.85, label=label)
        add_legend(canvas, axes, groups if groups > 1 else 0, paper=has_paper(self.bars))


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

    @property
    def height(self) -> float:
        return 5.4

    def draw(self, canvas: Canvas, axes: Axes) -> None:
        if self.diagonal:
            axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
        for at, line in enumerate(self.lines):
            style, label, size = line_style(at), shorten(line.name), len(line.x)
            if line.sizes:  # dot size shows the number of questions; the line is only a guide
                largest = max(line.sizes, default=1) or 1
                areas = [10 + 190 * one / largest for one in line.sizes]
                axes.plot(line.x, line.y, color=style["color"], linewidth=1.0, alpha=0.45)
                axes.plot([], [], **style, markersize=6, linewidth=1.0, label=label)
                dots: Any = {"color": style["color"], "marker": style["marker"], "linewidths": 0}
                axes.scatter(line.x, line.y, areas, **dots, alpha=0.8, zorder=3)
                continue
            # A long line has a few markers, shifted so that they do not hide those of other lines.
            shift = at * size // (8 * max(len(self.lines), 1))
            every = None if size <= FEW_POINTS else (shift, max(1, size // 8))
            thin: Any = {"markersize": 5, "markevery": every, "linewidth": 1.6}
            axes.plot(line.x, line.y, **style, **thin, label=label)
        axes.set_xlim(-0.02 * self.reach, 1.02 * self.reach)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel(shorten(self.across, 60))
        axes.set_ylabel(shorten(self.axis, 60))
        axes.grid(**GRID)
        add_legend(canvas, axes, len(self.lines))


def draw_plot(plot: Plot, format: Literal["svg", "png"] = "svg") -> bytes:
    """The image as bytes, the same for the same numbers. Needs matplotlib (extra `report`)."""
    try:
        import matplotlib
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise MissingExtraError("drawing plots", extra="report") from error
    if format not in ("svg", "png"):
        raise InputError(f"a plot can be 'svg' or 'png', not {format!r}")
    with matplotlib.rc_context(STYLE):  # no pyplot: it keeps global state and wants a display
        canvas = Canvas(figsize=(WIDTH, plot.height), layout="constrained")
        axes = canvas.add_subplot()
        plot.draw(canvas, axes)
        bold: Any = {"x": 0.01, "ha": "left", "fontsize": 12, "fontweight": "bold"}
        canvas.suptitle(shorten(plot.title, 62), **bold)
        axes.spines[["top", "right"]].set_visible(False)
        svg, stream = format == "svg", io.BytesIO()
        metadata = {"Date": None, "Creator": None} if svg else {"Software": None}
        with warnings.catch_warnings():
            # Names in scripts that the font lacks are drawn as boxes.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            canvas.savefig(stream, format=format, dpi=150, transparent=svg, metadata=metadata)
    return stream.getvalue()


def shorten(text: str, length: int = 28) -> str:
    # An SVG cannot contain control characters.
    text = "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))
    return text if len(text) <= length else text[: length - 1] + "…"


def line_style(at: int) -> dict[str, Any]:
    dashes = "-" if at < len(COLOURS) else "--"  # when the colours repeat
    return {"color": COLOURS[at % 8], "marker": MARKERS[at % 8], "linestyle": dashes}


def has_paper(series: Sequence[Series]) -> bool:
    return any(value is not None for one in series for value in one.paper)


def add_legend(canvas: Canvas, axes: Axes, entries: int, *, paper: bool = False) -> None:
    if paper:
        axes.plot([], [], **PAPER, label="paper")
        entries += 1
    if entries:
        canvas.legend(loc="outside lower left", ncols=min(3, entries), frameon=False, fontsize=10)


# ------------------------------------------------------------------------------------ the page


@dataclass(frozen=True)
class Section:
    """A heading, a short text, and the tables and plots below it."""

    title: str
    shown: tuple[Table | Plot, ...]
    says: str = ""


@dataclass(frozen=True)
class Page:
    """The contents of a report, as plain values; `write_page` renders them."""

    title: str
    about: str
    summary: Sequence[str]
    sections: Sequence[Section]
    settings: Sequence[tuple[str, str]]
    meanings: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    next_steps: Sequence[tuple[str, str]] = ()  # a description, and a command or ""
    failed: Sequence[str] = ()
    command: str = ""


def require_report_extra() -> None:
    """Raise MissingExtraError if no report can be made here; call it before the work."""
    if not all(util.find_spec(name) for name in ("jinja2", "matplotlib")):
        raise MissingExtraError("the HTML report", extra="report")


def write_page(page: Page, path: Path) -> Path:
    """Write the page as one HTML file, atomically; return its path."""
    write_atomically(Path(path), page_html(page))
    return Path(path)


def page_html(page: Page) -> str:
    require_report_extra()
    import jinja2
    from markupsafe import Markup, escape

    def item(one: Table | Plot) -> Markup:
        if isinstance(one, Table):
            return Markup(one.to_html())
        says = f"<p>{escape(one.says)}</p>" if one.says else ""
        svg = _inline_svg(draw_plot(one), escape(" ".join(one.title.split())))
        return Markup(f"<figure>\n<div>{svg}</div>{says}</figure>\n")

    file = resources.files("suffice.evaluation").joinpath("templates/report.html")
    options: Any = {"undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    template = jinja2.Environment(autoescape=True, **options).from_string(file.read_text("utf-8"))
    sections = [
        {"title": one.title, "says": one.says, "shown": list(map(item, one.shown))}
        for one in page.sections
    ]
    text = template.render(page=page, sections=sections)
    return text.encode("utf-8", "replace").decode("utf-8")  # a name may have half a surrogate pair


def _inline_svg(svg: bytes, label: str) -> str:
    """The drawing alone, in the page's own text colour, so that it follows light and dark."""
    text = svg.decode("utf-8")
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    size = r'<svg ([^>]*?)(?:height|width)="[^"]*"([^>]*?)(?:height|width)="[^"]*"'
    opened = f'<svg role="img" aria-label="{label}" '
    return re.sub(size, lambda found: f"{opened}{found[1]}{found[2]}", text, count=1)
