"""The five papers as one list: each numbered table and figure, each named part, and its state here.

`papers.toml` is the list. `suffice reproduce PAPER --items` prints it, `docs/papers.md` and the
how-to page are generated from it, and a test compares it with the papers and the code.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from suffice.evaluation.report import format_cell
from suffice_research.study import Study, StudyItem

__all__ = ["PAPERS_FILE", "Paper", "PaperFigure", "load_papers", "with_items"]

PAPERS_FILE = Path(__file__).with_name("papers.toml")
_Run = TypeVar("_Run", bound=Callable[..., Study])


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """The figure that represents an item: a cell of the stored study."""

    table: str  # start of its title
    row: tuple[str, ...]  # its first cells
    column: str
    paper: float | None = None  # if the cell does not contain it

    def words(self, study: Study) -> str:
        """The cell and the paper's figure, as in the tables; "" if the study lacks it."""
        for table in study.tables:
            if not table.title.startswith(self.table) or self.column not in table.columns:
                continue
            for row in table.rows:
                if tuple(map(str, row[: len(self.row)])) == self.row:
                    cell = format_cell(row[table.columns.index(self.column)])
                    beside = "" if self.paper is None else f" ({self.paper:g})"
                    return f"{', '.join(self.row)}, {self.column}: {cell}{beside}"
        return ""


@dataclass(frozen=True, slots=True)
class Paper:
    """What a paper proposes, where it is implemented, what we changed, and its items."""

    name: str  # the name of its study: magaf, frames
    title: str
    source: str
    text: str  # file name of its text, which is not part of the repository
    proposes: str
    lives: str
    changed: str
    command: str
    page: str  # in docs/
    items: tuple[StudyItem, ...]
    figures: Mapping[str, PaperFigure]  # by item


@cache
def load_papers() -> Mapping[str, Paper]:
    """The papers by the name of their study."""
    found = tomllib.loads(PAPERS_FILE.read_text(encoding="utf-8"))
    return {name: _paper(name, table) for name, table in found.items()}


def _paper(name: str, table: dict[str, Any]) -> Paper:
    usual = {"command": table["command"], "page": table["page"]}
    items, figures = list[StudyItem](), dict[str, PaperFigure]()
    for row in table.pop("rows"):
        if figure := row.pop("figure", None):
            figures[row["item"]] = PaperFigure(**{**figure, "row": tuple(figure["row"])})
        items.append(StudyItem(**{**usual, **row}))
    return Paper(name=name, items=tuple(items), figures=figures, **table)


def with_items(paper: str) -> Callable[[_Run], _Run]:
    """Attach a study's items for `suffice reproduce PAPER --items`."""

    def add(run: _Run) -> _Run:
        run.items = lambda: load_papers()[paper].items  # type: ignore[attr-defined]
        return run

    return add
