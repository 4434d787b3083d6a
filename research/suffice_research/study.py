"""A study: a whole experiment as one document with every table and figure in it.

The document records the settings, the seed, the files and the results, in sections of tables and
figures (numbers, not images). Two studies with the same seed are identical except for the timings.
`suffice_research.study_report` renders one as a page.

Named studies come from plug-ins, as entry points `study.NAME` in the group `suffice.plugins`.
Each is a function `study(*, seed, data, progress, ...) -> Study`; `suffice reproduce NAME` runs it.
It may have an attribute `items`, a function that returns the `StudyItem`s of its paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from suffice.errors import InputError, did_you_mean
from suffice.evaluation.report import Cell, Plot, Section, Table
from suffice.evaluation.result_files import load_result, result_text
from suffice.evaluation.significance import Difference, Interval
from suffice.registry import Registry
from suffice.storage import write_atomically
from suffice_research.figures import figure_from_json, figure_json
from suffice_research.published_cells import SignedNumber, WithPublished

__all__ = [
    "IN_ALL",
    "PROCESSOR",
    "STUDIES",
    "Study",
    "StudyItem",
    "study_items",
    "table_cell",
    "table_to_json",
]

VERSION = 1
DIGITS = 6  # of every number in the document: more is noise and makes it larger
IN_ALL, PROCESSOR = "in all", "in all, processor time"  # timings of the whole command


@dataclass(frozen=True)
class Study:
    """The settings and the results."""

    name: str  # magaf, frames
    title: str
    seed: int
    settings: Mapping[str, Any]
    data: Mapping[str, str]  # file name -> sha256
    sections: tuple[Section, ...]
    summary: tuple[str, ...] = ()  # the results in plain words
    notes: tuple[str, ...] = ()  # how the method differs from the paper, and why
    timings: Mapping[str, float] = field(default_factory=dict)  # seconds
    commit: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[Table, ...]:
        shown = (one for section in self.sections for one in section.shown)
        return tuple(one for one in shown if isinstance(one, Table))

    @property
    def figures(self) -> tuple[Plot, ...]:
        shown = (one for section in self.sections for one in section.shown)
        return tuple(one for one in shown if not isinstance(one, Table))

    def table(self, title: str) -> Table:
        """The first table whose title starts with this."""
        for one in self.tables:
            if one.title.startswith(title):
                return one
        known = [one.title for one in self.tables]
        raise InputError(f"the study has no table {title!r}", hint=did_you_mean(title, known))

    def to_json(self, *, timings: bool = True) -> str:
        """The document; without timings, two studies with the same seed give the same text."""
        return result_text(self.as_json() if timings else {**self.as_json(), "timings": {}})

    def as_json(self) -> dict[str, Any]:
        """The document as plain values."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        sections = []
        for section in self.sections:
            shown = [_item_to_json(one) for one in section.shown]
            sections.append({"title": section.title, "says": section.says, "shown": shown})
        document = {"kind": "study", "version": VERSION, **fields, "sections": sections}
        rounded: dict[str, Any] = _round_numbers(document)
        return rounded

    def save(self, path: Path) -> Path:
        """Write the document atomically; return its path."""
        write_atomically(Path(path), self.to_json())
        return Path(path)

    @staticmethod
    def load(path: Path) -> Study:
        """Load a study; the error says what the file is instead, or which version."""
        options: Any = {"version": VERSION, "command": "suffice reproduce"}
        return load_result(path, _study_from_json, kind="study", what="study", **options)


def table_cell(table: Table, row: str, column: str) -> Cell:
    """The cell in the row that starts with this name, under this column."""
    for one in table.rows:
        if one[0] == row and column in table.columns:
            return one[table.columns.index(column)]
    raise InputError(f"table {table.title!r} has no cell {row!r}, {column!r}")


@dataclass(frozen=True, slots=True)
class StudyItem:
    """A table, figure or named part of a paper, and its state in the study."""

    item: str  # as the paper numbers or names it: "Table 3"
    kind: str  # table, figure or component
    what: str
    state: str  # done, changed or not done
    code: str  # module, or module:name
    command: str
    page: str  # in docs/
    why: str = ""  # for anything that is not done as in the paper
    shown: str = ""  # start of the title of its table or figure, if not `item`


STUDIES: Registry[Study] = Registry("study")  # for `suffice reproduce NAME`


def study_items(run: Callable[..., Study], name: str) -> tuple[StudyItem, ...]:
    """The items of its paper that a study covers, if it lists them."""
    items = getattr(run, "items", None)
    if items is None:
        raise InputError(
            f"the study {name} does not list what it shows", hint="leave --items out, and run it"
        )
    return tuple(items())


def _item_to_json(item: Table | Plot) -> dict[str, Any]:
    return table_to_json(item) if isinstance(item, Table) else figure_json(item)  # type: ignore[arg-type]


def _study_from_json(document: Mapping[str, Any]) -> Study:
    def item(record: Mapping[str, Any]) -> Table | Plot:
        return _table_from_json(record) if "table" in record else figure_from_json(record)

    sections = tuple(
        Section(str(one["title"]), tuple(map(item, one["shown"])), str(one["says"]))
        for one in document["sections"]
    )
    return Study(
        name=str(document["name"]),
        title=str(document["title"]),
        seed=int(document["seed"]),
        settings=dict(document["settings"]),
        data=dict(document["data"]),
        sections=sections,
        summary=tuple(map(str, document["summary"])),
        notes=tuple(map(str, document["notes"])),
        timings=dict(document["timings"]),
        commit=document["commit"],
        packages=dict(document["packages"]),
    )


def _round_numbers(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0  # no -0.0
    if isinstance(value, Mapping):
        return {key: _round_numbers(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_round_numbers(one) for one in value]
    return value


# ------------------------------------------------------------------------------------ tables

_TAGS = {Interval: "interval", Difference: "difference"}


def table_to_json(table: Table) -> dict[str, Any]:
    rows = [[_cell_to_json(cell) for cell in row] for row in table.rows]
    return {"table": table.title, "columns": list(table.columns), "rows": rows, "note": table.note}


def _table_from_json(record: Mapping[str, Any]) -> Table:
    rows = tuple(tuple(map(_cell_from_json, row)) for row in record["rows"])
    columns = tuple(map(str, record["columns"]))
    return Table(str(record["table"]), columns, rows, str(record["note"]))


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
