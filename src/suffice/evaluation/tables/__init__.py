"""What the papers report, typed in as data: one file a paper, under the names of our own retrievers and metrics.

A table of ours can then stand beside the paper's, cell by cell. Nothing is computed from these figures and nothing is tuned on
them, except where a docstring says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from suffice.errors import InputError, did_you_mean
from suffice.evaluation.metrics import ranking_metric, score
from suffice.evaluation.runs import RetrievalRun
from suffice.evaluation.significance import Difference, Interval, compare, interval

if TYPE_CHECKING:
    from rich.table import Table as RichTable

__all__ = [
    "UNDEFINED",
    "Cell",
    "PublishedTable",
    "SignedNumber",
    "Table",
    "WithPublished",
    "comparison_table",
    "format_cell",
    "kind_table",
    "paper_tables",
    "retrieval_table",
]


@dataclass(frozen=True)
class PublishedTable:
    """One table of a paper.

    `figures`: system -> metric -> value. `printed`: our name of a system -> the paper's. `cautions`: metric without its k ->
    why the paper's figure and ours are not quite the same thing.
    """

    paper: str
    table: str
    caption: str
    figures: Mapping[str, Mapping[str, float]]
    printed: Mapping[str, str] = field(default_factory=dict)
    cautions: Mapping[str, str] = field(default_factory=dict)

    def get(self, system: str, metric: str) -> float | None:
        """The published figure, or None where the paper has none."""
        return self.figures.get(system, {}).get(metric)


# --- tables: Tables that read the same in a terminal, in Markdown and in HTML.

UNDEFINED = "--"
DEFAULT_METRICS = ("recall", "complete", "ndcg", "mrr")


@dataclass(frozen=True, slots=True)
class SignedNumber:
    """A difference: printed with its sign."""

    value: float | None


@dataclass(frozen=True, slots=True)
class WithPublished:
    """A measured figure with a paper's beside it in parentheses; one with an interval also says how far apart they are."""

    measured: float | Interval | None
    paper: float | None

    @property
    def difference(self) -> SignedNumber:
        measured = self.measured.value if isinstance(self.measured, Interval) else self.measured
        return SignedNumber(
            None if measured is None or self.paper is None else measured - self.paper
        )


Cell = str | int | float | Interval | Difference | SignedNumber | WithPublished | None


def format_cell(cell: Cell) -> str:
    """How a cell reads: 0.417, 2,556, +0.012, 0.417 [0.40, 0.43], 0.424 (0.417), 0.424 [0.41, 0.44] (0.417, +0.007), --."""
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
            return (
                f"{value:.3f}"
                if low is None or high is None
                else f"{value:.3f} [{low:.2f}, {high:.2f}]"
            )
        case Difference(value=value, low=low, high=high):
            return (
                f"{value:+.3f}"
                if low is None or high is None
                else f"{value:+.3f} [{low:+.2f}, {high:+.2f}]"
            )
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
    """A title, named columns, rows of cells, and a note that says what a reader must know."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        for at, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise InputError(
                    f"row {at} of table {self.title!r} has {len(row)} cells for {len(self.columns)} columns"
                )

    @property
    def texts(self) -> list[list[str]]:
        """The rows as they are printed."""
        return [[format_cell(cell) for cell in row] for row in self.rows]

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold figures, and stand to the right."""
        return [
            bool(self.rows) and not any(isinstance(row[at], str) for row in self.rows)
            for at, _ in enumerate(self.columns)
        ]

    def to_rich(self) -> RichTable:
        """For the terminal."""
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            title=Text(self.title),
            title_justify="left",
            caption=Text(self.note),
            caption_justify="left",
        )
        for name, right in zip(self.columns, self.numeric):
            # "recall (paper)" on two lines: the heading must not be what makes a table of figures too wide.
            table.add_column(
                Text(name.replace(" (", "\n(")), justify="right" if right else "left", no_wrap=right
            )
        for row in self.rows:
            # The paper's figure on a second line, or a table of intervals would be wider than a terminal.
            table.add_row(
                *(
                    Text(
                        format_cell(one).replace(" (", "\n(")
                        if isinstance(one, WithPublished)
                        else format_cell(one)
                    )
                    for one in row
                )
            )
        return table

    def to_markdown(self) -> str:
        """For a document; the title is not part of it, headings are the document's own."""

        def line(cells: Sequence[str]) -> str:
            return (
                "| "
                + " | ".join(
                    " ".join(cell.replace("\\", "\\\\").replace("|", "\\|").split())
                    for cell in cells
                )
                + " |"
            )

        rule = "| " + " | ".join("---:" if right else "---" for right in self.numeric) + " |"
        lines = [line(self.columns), rule, *map(line, self.texts)]
        return "\n".join(lines + (["", self.note] if self.note else [])) + "\n"

    def to_html(self) -> str:
        """For a page: a `figure` with caption and table; figures carry the class `n`."""
        css = [' class="n"' if right else "" for right in self.numeric]
        head = "".join(
            f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(self.columns, css)
        )
        body = "\n".join(
            "<tr>"
            + "".join(f"<td{kind}>{_cell_html(cell)}</td>" for cell, kind in zip(row, css))
            + "</tr>"
            for row in self.rows
        )
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return (
            f"<figure><figcaption>{escape(self.title)}</figcaption>\n<div><table>\n<thead><tr>{head}</tr></thead>\n"
            f"<tbody>\n{body}\n</tbody>\n</table></div>{note}</figure>\n"
        )

    def cell(self, row: str, column: str) -> Cell:
        """The cell in the row that begins with this name, under this column."""
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
    def from_json(told: Mapping[str, Any]) -> Table:
        """What `to_json` gave; KeyError, TypeError or ValueError where it is not that."""
        rows = tuple(tuple(map(_cell_from_json, row)) for row in told["rows"])
        return Table(str(told["table"]), tuple(map(str, told["columns"])), rows, str(told["note"]))

    def records(self) -> list[dict[str, Any]]:
        """The rows as JSON values: figures unrounded, intervals as objects."""
        return [
            {name: _cell_record(cell) for name, cell in zip(self.columns, row)} for row in self.rows
        ]


def _cell_html(cell: Cell) -> str:
    if (
        isinstance(cell, WithPublished) and cell.paper is not None
    ):  # on a second line: a page is narrow
        apart = f"paper {format_cell(cell.paper)}, {format_cell(cell.difference)}"
        return f"{escape(format_cell(cell.measured))}<small>{escape(apart)}</small>"
    return escape(format_cell(cell))


def _cell_record(cell: Cell) -> Any:
    match cell:
        case Interval(value=value, low=low, high=high):
            return {"value": value, "low": low, "high": high}
        case Difference(value=value, low=low, high=high, p=p):
            return {"value": value, "low": low, "high": high, "p": p}
        case SignedNumber(value=value):
            return value
        case WithPublished(measured=measured, paper=paper):
            known = (
                _cell_record(measured) if isinstance(measured, Interval) else {"value": measured}
            )
            return {**known, "paper": paper}
        case _:
            return cell


def _cell_to_json(cell: Cell) -> Any:
    """A cell as JSON that says what it is, so that `_cell` can make it again."""
    match cell:
        case Interval(value=value, low=low, high=high):
            return {"interval": [value, low, high]}
        case Difference(value=value, low=low, high=high, p=p):
            return {"difference": [value, low, high, p]}
        case SignedNumber(value=value):
            return {"signed": value}
        case WithPublished(measured=measured, paper=paper):
            return {"beside": [_cell_to_json(measured), paper]}
        case float() if cell != cell:
            return None
        case _:
            return cell


def _cell_from_json(told: Any) -> Cell:
    match told:
        case {"interval": values}:
            return Interval(*values)
        case {"difference": values}:
            return Difference(*values)
        case {"signed": value}:
            return SignedNumber(value)
        case {"beside": [measured, paper]}:
            known = _cell_from_json(measured)
            if not isinstance(known, float | Interval | None):
                raise ValueError(f"a measured figure is {measured!r}")
            return WithPublished(known, paper)
        case None | str() | int() | float():
            return told
        case _:
            raise ValueError(f"a table holds {told!r:.80}, which is no cell")


# ------------------------------------------------------------------------------------------ tables of a run


def retrieval_table(
    run: RetrievalRun,
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    ks: Sequence[int] | None = None,
    paper: PublishedTable | None = None,
    intervals: bool = False,
    title: str = "",
) -> Table:
    """One row for each system and k, one column for each metric.

    With a paper's table its figure stands in parentheses; a single metric has room for the interval and the difference too.
    Metrics are named without their k. One that has none (null_rejection) stands in every row of its system, and has a single
    row when no other metric is asked for.
    """
    takes_k = {name: ranking_metric(name).metric.at == "k" for name in metrics}
    cutoffs: Sequence[int | None] = (ks or run.ks) if any(takes_k.values()) else (None,)
    alone = paper is not None and len(metrics) == 1
    columns = ["retriever", "k", *(("measured", "paper", "difference") if alone else metrics)]
    rows: list[tuple[Cell, ...]] = []
    for system in run.names:
        judged = run.judged(system)
        for k in cutoffs:
            cells: list[Cell] = [system, k]
            for name in metrics:
                metric = f"{name}@{k}" if takes_k[name] else name
                figure = (
                    interval(judged, metric, seed=run.seed)
                    if intervals
                    else Interval(score(judged, metric))
                )
                published = paper.get(system, metric) if paper else None
                if alone:
                    cells += [figure, published, _difference_to(figure.value, published)]
                else:
                    cells.append(
                        WithPublished(figure if intervals else figure.value, published)
                        if paper
                        else figure
                    )
            rows.append(tuple(cells))
    beside = f" (in parentheses: {paper.paper}, {paper.table})" if paper else ""
    described = title or f"Retrieval on {run.dataset}{beside}"
    cautions = [paper.cautions[name] for name in metrics if name in paper.cautions] if paper else []
    return Table(
        described, tuple(columns), tuple(rows), " ".join([_run_note(run, intervals), *cautions])
    )


def paper_tables(
    run: RetrievalRun, paper: PublishedTable, *, intervals: bool = True
) -> list[Table]:
    """A narrow table for each metric that the paper reports: measured, paper, difference, at the cutoffs both have."""
    tables = []
    published = list(dict.fromkeys(metric for row in paper.figures.values() for metric in row))
    for name in dict.fromkeys(metric.partition("@")[0] for metric in published):
        ks = [k for k in run.ks if f"{name}@{k}" in published]
        if ks or name in published:
            title = f"{name} on {run.dataset}, beside {paper.paper}, {paper.table}"
            tables.append(
                retrieval_table(run, [name], ks=ks, paper=paper, intervals=intervals, title=title)
            )
    return tables


def kind_table(run: RetrievalRun, metric: str, *, intervals: bool = False) -> Table:
    """One row for each system, one column for each kind of question: where a system is weak."""
    kinds = sorted({kind for kind in run.kinds if kind})
    rows: list[tuple[Cell, ...]] = []
    for system in run.names:
        parts = [run.judged(system, kind=kind) for kind in kinds]
        cells = (
            interval(part, metric, seed=run.seed) if intervals else score(part, metric)
            for part in parts
        )
        rows.append((system, *cells))
    counts = [sum(one == kind for one in run.kinds) for kind in kinds]
    columns = ("retriever", *(f"{kind} (n={n:,})" for kind, n in zip(kinds, counts)))
    return Table(
        f"{metric} by kind of question on {run.dataset}",
        columns,
        tuple(rows),
        _run_note(run, intervals),
    )


def comparison_table(run: RetrievalRun, metric: str, *, against: str | None = None) -> Table:
    """Each system against one of them (the first by default), paired over questions."""
    base = against or run.names[0]
    reference = run.judged(base)
    rows: list[tuple[Cell, ...]] = []
    for system in run.names:
        if system != base:
            found = compare(run.judged(system), reference, metric, seed=run.seed)
            rows.append((system, found, found.p))
    note = "Difference with 95 % interval and two-sided p, paired bootstrap over questions, 1,000 resamples."
    return Table(
        f"{metric} against {base} on {run.dataset}",
        ("retriever", "difference", "p"),
        tuple(rows),
        note,
    )


def _difference_to(measured: float | None, published: float | None) -> SignedNumber:
    return SignedNumber(None if measured is None or published is None else measured - published)


def _run_note(run: RetrievalRun, intervals: bool) -> str:
    nulls = sum(not gold for gold in run.gold)
    parts = [
        f"n = {len(run.gold) - nulls:,} questions"
        + (f" and {nulls:,} null questions" if nulls else "")
        + "."
    ]
    if intervals:
        parts.append("In brackets: 95 % bootstrap interval over questions.")
    parts += [
        f"{system.name}: {len(system.errors):,} of {len(run.gold):,} questions failed and count as nothing found."
        for system in run.systems
        if system.errors
    ]
    return " ".join(parts)
