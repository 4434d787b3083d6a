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
from importlib import resources, util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

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


@runtime_checkable
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
        case Interval(value, low, high) | Difference(value, low, high):
            sign = "+" if isinstance(cell, Difference) else ""
            bounds = "" if low is None or high is None else f" [{low:{sign}.2f}, {high:{sign}.2f}]"
            return f"{value:{sign}.3f}{bounds}"
        case bool():
            return str(cell)
        case int():
            return f"{cell:,}"
        case float():
            return UNDEFINED if cell != cell else f"{cell:.3f}"
        case _:  # a text, or a special cell
            return str(cell)


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
    def numeric(self) -> list[bool]:
        """Which columns contain figures and are right-aligned."""
        columns = zip(*self.rows) if self.rows else [("",)] * len(self.columns)
        return [not any(isinstance(cell, str) for cell in column) for column in columns]

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
            texts = ((format_cell(cell), isinstance(cell, SpecialCell)) for cell in row)
            table.add_row(*(Text(one.replace(" (", "\n(") if two else one) for one, two in texts))
        return table

    def records(self) -> list[dict[str, Any]]:
        """The rows as JSON values: figures unrounded, intervals as objects."""

        def record(cell: Cell) -> Any:
            if isinstance(cell, Interval | Difference):
                return asdict(cell)
            return cell.record() if isinstance(cell, SpecialCell) else cell

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
    """One system's figures."""

    name: str
    values: tuple[Interval, ...]


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
        bars, groups = len(self.bars), len(self.groups)
        return 1.3 + 0.42 * bars if groups == 1 else 1.3 + 0.4 + 0.3 * bars * groups

    def draw(self, canvas: Canvas, axes: Axes) -> None:
        # Horizontal bars: long names fit beside them.
        groups, start = len(self.groups), self.start
        thick = 0.62 if groups == 1 else 0.8 / groups
        span = 0.0
        for at, series in enumerate(self.bars):
            for group, value in enumerate(series.values):
                y = at + (group - (groups - 1) / 2) * thick
                end = max(one for one in (start, value.value, value.high) if one is not None)
                span = max(span, end - start)
                if value.value is not None:
                    colour = COLOURS[group % 8]
                    axes.barh(y, value.value - start, thick * 0.92, start, color=colour, alpha=0.85)
                if value.low is not None and value.high is not None:
                    bar: Any = {"color": INK, "linewidth": 1.4, "marker": "|", "markersize": 7}
                    axes.plot([value.low, value.high], [y, y], **bar)
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
        add_legend(canvas, axes)


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
                areas = [10 + 190 * one / (max(line.sizes) or 1) for one in line.sizes]
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
        add_legend(canvas, axes)


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


def add_legend(canvas: Canvas, axes: Axes, columns: int = 3) -> None:
    if entries := len(axes.get_legend_handles_labels()[0]):
        at: Any = {"loc": "outside lower left", "frameon": False, "fontsize": 10}
        canvas.legend(**at, ncols=min(columns, entries))


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

    def html(cell: Cell) -> Markup:
        return (
            Markup(cell.to_html()) if isinstance(cell, SpecialCell) else escape(format_cell(cell))
        )

    def drawing(plot: Plot) -> Markup:
        return Markup(_inline_svg(draw_plot(plot), escape(" ".join(plot.title.split()))))

    file = resources.files("suffice.evaluation").joinpath("templates/report.html")
    options: Any = {"undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    template = jinja2.Environment(autoescape=True, **options).from_string(file.read_text("utf-8"))
    text = template.render(page=page, html=html, drawing=drawing)
    return text.encode("utf-8", "replace").decode("utf-8")  # a name may have half a surrogate pair


def _inline_svg(svg: bytes, label: str) -> str:
    """The drawing alone, in the page's own text colour, so that it follows light and dark."""
    text = svg.decode("utf-8")
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    size = r'<svg ([^>]*?)(?:height|width)="[^"]*"([^>]*?)(?:height|width)="[^"]*"'
    opened = f'<svg role="img" aria-label="{label}" '
    return re.sub(size, lambda found: f"{opened}{found[1]}{found[2]}", text, count=1)
