"""A study: a paper's whole experiment done again, kept as one document with every table and figure in it.

One module a paper beside this one; each has `study(*, seed, data, progress) -> Study`. The document says what was done, with
which seed, on which files, and what came out, in sections of tables and figures (numbers, not pictures). Timings stand apart:
two studies with the same seed are the same bytes but for them. `evaluate.report.study_report` makes a page of one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from suffice.errors import InputError, did_you_mean
from suffice.evaluation.figures import Figure, figure_from_json, figure_json
from suffice.evaluation.result_files import load_result, result_text
from suffice.evaluation.tables import Table
from suffice.storage import write_atomically

__all__ = ["VERSION", "Section", "StageTimer", "Study"]

VERSION = 1
DIGITS = 6  # of every number in the document: more is noise, and it must not grow


class StageTimer:
    """Seconds of each part of the work: `with clock("searched"): ...`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[what] = time.perf_counter() - started


@dataclass(frozen=True)
class Section:
    """A heading, a few words, and what is shown under it in order."""

    title: str
    shown: tuple[Table | Figure, ...]
    says: str = ""


@dataclass(frozen=True)
class Study:
    """What was done and what came out."""

    name: str  # magaf, frames
    title: str
    seed: int
    settings: Mapping[str, Any]
    data: Mapping[str, str]  # file name -> sha256
    sections: tuple[Section, ...]
    summary: tuple[str, ...] = ()  # what came out, in plain words
    notes: tuple[str, ...] = ()  # where it differs from the paper in kind, and why
    timings: Mapping[str, float] = field(default_factory=dict)  # seconds
    commit: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(
            one for section in self.sections for one in section.shown if isinstance(one, Table)
        )

    @property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(
            one for section in self.sections for one in section.shown if not isinstance(one, Table)
        )

    def table(self, title: str) -> Table:
        """The first table whose title begins so."""
        for one in self.tables:
            if one.title.startswith(title):
                return one
        raise InputError(
            f"the study has no table {title!r}",
            hint=did_you_mean(title, [one.title for one in self.tables]),
        )

    def to_json(self, *, timings: bool = True) -> str:
        """The document; without timings, two studies with the same seed give the same text."""
        document = self.as_json() if timings else {**self.as_json(), "timings": {}}
        return result_text(document)

    def as_json(self) -> dict[str, Any]:
        """The document as plain values."""
        document = {
            "kind": "study",
            "version": VERSION,
            "name": self.name,
            "title": self.title,
            "seed": self.seed,
            "settings": dict(self.settings),
            "data": dict(self.data),
            "summary": list(self.summary),
            "notes": list(self.notes),
            "sections": [_section_to_json(section) for section in self.sections],
            "commit": self.commit,
            "packages": dict(self.packages),
            "timings": dict(self.timings),
        }
        rounded: dict[str, Any] = _round_numbers(document)
        return rounded

    def save(self, path: Path) -> Path:
        """Write the document whole or not at all; returns where."""
        write_atomically(Path(path), self.to_json())
        return Path(path)

    @staticmethod
    def load(path: Path) -> Study:
        """Read a study that this version can read; the error says what else the file is."""
        return load_result(
            path,
            _study_from_json,
            kind="study",
            named="study",
            version=VERSION,
            again="suffice reproduce",
        )


def _section_to_json(section: Section) -> dict[str, Any]:
    shown = [one.to_json() if isinstance(one, Table) else figure_json(one) for one in section.shown]
    return {"title": section.title, "says": section.says, "shown": shown}


def _study_from_json(document: Mapping[str, Any]) -> Study:
    sections = tuple(
        Section(
            str(section["title"]),
            tuple(
                Table.from_json(one) if "table" in one else figure_from_json(one)
                for one in section["shown"]
            ),
            str(section["says"]),
        )
        for section in document["sections"]
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
