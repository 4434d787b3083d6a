"""Tables that look the same in a terminal, in Markdown and in HTML.

Figures have three decimals, undefined values are `--`, an interval follows its figure in brackets,
and a difference has a sign. Cells may contain text from data sets: every rendering escapes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from suffice.errors import InputError, did_you_mean
from suffice.evaluation.significance import Difference, Interval

if TYPE_CHECKING:
    from rich.table import Table as RichTable

__all__ = ["UNDEFINED", "Cell", "SignedNumber", "Table", "WithPublished", "format_cell"]

UNDEFINED = "--"


@dataclass(frozen=True, slots=True)
class SignedNumber:
    """A difference, printed with its sign."""

    value: float | None


@dataclass(frozen=True, slots=True)
class WithPublished:
    """A measured figure with a paper's in parentheses; with an interval, also the difference."""

    measured: float | Interval | None
    paper: float | None

    @property
    def difference(self) -> SignedNumber:
        measured = self.measured.value if isinstance(self.measured, Interval) else self.measured
        known = measured is not None and self.paper is not None
        return SignedNumber(measured - self.paper if known else None)  # type: ignore[operator]


Cell = str | int | float | Interval | Difference | SignedNumber | WithPublished | None
_TAGS = {Interval: "interval", Difference: "difference"}


def format_cell(cell: Cell) -> str:
    """A cell as text: 0.417, 2,556, +0.012, 0.417 [0.40, 0.43], 0.424 (0.417), or --."""
    match cell:
        case WithPublished(measured=measured, paper=None):
            return format_cell(measured)
        case WithPublished(measured=Interval() as measured, paper=paper):
            return f"{format_cell(measured)} ({format_cell(paper)}, {format_cell(cell.difference)})"
        case WithPublished(measured=measured, paper=paper):
            return f"{format_cell(measured)} ({format_cell(paper)})"
        case None | Interval(value=None) | Difference(value=None) | SignedNumber(value=None):
            return UNDEFINED
        case Interval(value=value, low=low, high=high):
            bounds = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
            return f"{value:.3f}{bounds}"
        case Difference(value=value, low=low, high=high):
            bounds = "" if low is None or high is None else f" [{low:+.2f}, {high:+.2f}]"
            return f"{value:+.3f}{bounds}"
        case SignedNumber(value=value):
            return f"{value:+.3f}".replace("-0.000", "+0.000")
        case bool() | str():
            return str(cell)
        case int():
            return f"{cell:,}"
        case float():
            return UNDEFINED if cell != cell else f"{cell:.3f}"


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

    def to_rich(self) -> RichTable:
        """The table for a terminal."""
        from rich.table import Table as RichTable
        from rich.text import Text

        def two_lines(text: str) -> Text:  # otherwise a table with a paper's figures is too wide
            return Text(text.replace(" (", "\n("))

        titles: Any = {"title_justify": "left", "caption_justify": "left"}
        table = RichTable(title=Text(self.title), caption=Text(self.note), **titles)
        for name, right in zip(self.columns, self.numeric):
            table.add_column(two_lines(name), justify="right" if right else "left", no_wrap=right)
        for row in self.rows:
            shown = [(format_cell(cell), isinstance(cell, WithPublished)) for cell in row]
            table.add_row(*(two_lines(text) if split else Text(text) for text, split in shown))
        return table

    def to_markdown(self) -> str:
        """The table for a document, without the title, since the document has its own headings."""

        def line(cells: Sequence[str]) -> str:
            escaped = (cell.replace("\\", "\\\\").replace("|", "\\|").split() for cell in cells)
            return f"| {' | '.join(map(' '.join, escaped))} |"

        rule = line(["---:" if right else "---" for right in self.numeric])
        lines = [line(self.columns), rule, *map(line, self.texts)]
        return "\n".join(lines + (["", self.note] if self.note else [])) + "\n"

    def to_html(self) -> str:
        """The table for a page: a `figure` with caption; numeric cells have the class `n`."""
        css = [' class="n"' if right else "" for right in self.numeric]
        names = zip(self.columns, css)
        head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in names)
        rows = (zip(map(_cell_html, row), css) for row in self.rows)
        cells = ("".join(f"<td{kind}>{cell}</td>" for cell, kind in row) for row in rows)
        body = "\n".join(f"<tr>{row}</tr>" for row in cells)
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return (
            f"<figure><figcaption>{escape(self.title)}</figcaption>\n<div><table>\n"
            f"<thead><tr>{head}</tr></thead>\n"
            f"<tbody>\n{body}\n</tbody>\n</table></div>{note}</figure>\n"
        )

    def cell(self, row: str, column: str) -> Cell:
        """The cell in the row that starts with this name, under this column."""
        for one in self.rows:
            if one[0] == row and column in self.columns:
                return one[self.columns.index(column)]
        known = (*self.columns, *(str(one[0]) for one in self.rows))
        raise InputError(
            f"table {self.title!r} has no cell {row!r}, {column!r}",
            hint=did_you_mean(f"{row}", known),
        )

    def to_json(self) -> dict[str, Any]:
        """The table as one JSON object that `from_json` reads."""
        rows = [[_cell_to_json(cell) for cell in row] for row in self.rows]
        return {"table": self.title, "columns": list(self.columns), "rows": rows, "note": self.note}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Table:
        """The inverse of `to_json`; KeyError, TypeError or ValueError on other input."""
        rows = tuple(tuple(map(_cell_from_json, row)) for row in record["rows"])
        columns = tuple(map(str, record["columns"]))
        return Table(str(record["table"]), columns, rows, str(record["note"]))

    def records(self) -> list[dict[str, Any]]:
        """The rows as JSON values: figures unrounded, intervals as objects."""
        return [dict(zip(self.columns, map(_cell_record, row))) for row in self.rows]


def _cell_html(cell: Cell) -> str:
    if isinstance(cell, WithPublished) and cell.paper is not None:  # two lines: pages are narrow
        apart = f"paper {format_cell(cell.paper)}, {format_cell(cell.difference)}"
        return f"{escape(format_cell(cell.measured))}<small>{escape(apart)}</small>"
    return escape(format_cell(cell))


def _cell_record(cell: Cell) -> Any:
    match cell:
        case Interval() | Difference():
            return asdict(cell)
        case SignedNumber(value=value):
            return value
        case WithPublished(measured=Interval() as measured, paper=paper):
            return {**asdict(measured), "paper": paper}
        case WithPublished(measured=measured, paper=paper):
            return {"value": measured, "paper": paper}
        case _:
            return cell


def _cell_to_json(cell: Cell) -> Any:
    """A cell as JSON that names its type, so that `_cell_from_json` can rebuild it."""
    match cell:
        case Interval() | Difference():
            return {_TAGS[type(cell)]: list(astuple(cell))}
        case SignedNumber(value=value):
            return {"signed": value}
        case WithPublished(measured=measured, paper=paper):
            return {"beside": [_cell_to_json(measured), paper]}
        case float() if cell != cell:
            return None
        case _:
            return cell


def _cell_from_json(value: Any) -> Cell:
    match value:
        case {"interval": values}:
            return Interval(*values)
        case {"difference": values}:
            return Difference(*values)
        case {"signed": number}:
            return SignedNumber(number)
        case {"beside": [measured, paper]}:
            known = _cell_from_json(measured)
            if not isinstance(known, float | Interval | None):
                raise ValueError(f"a measured figure is {measured!r}")
            return WithPublished(known, paper)
        case None | str() | int() | float():
            return value
        case _:
            raise ValueError(f"a table contains {value!r:.80}, which is not a cell")
