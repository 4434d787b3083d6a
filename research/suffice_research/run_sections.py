"""Pages and comparisons of studies and of runs of answers, for `suffice report` and `reproduce`.

Entry points `run.study` and `run.answers`: how to load them, and sections that compare several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from suffice.evaluation.compare import GATE_METRICS, RunKind, same_questions, system_names
from suffice.evaluation.gate_runs import reliability_lines
from suffice.evaluation.metrics import PROBABILITY, Predictions
from suffice.evaluation.report import Cell, Page, Plot, Section, Table, format_cell, write_page
from suffice.evaluation.result_files import run_settings
from suffice.evaluation.significance import interval
from suffice_research.answers import (
    INTERVAL_NOTE,
    AnswerRun,
    answer_tables,
    differences_table,
    file_answers_table,
)
from suffice_research.study import Study

__all__ = ["answer_runs", "changed_cells", "studies", "study_report"]

# Whose confidence is a probability, and of what. The score of a hit is none.
CONFIDENCES = {"reader": "right", "review": "right", "gate": "complete"}
MIN_DOT = 5  # questions per dot of a reliability plot


def studies() -> RunKind:
    """The kind of run that a study is."""
    return RunKind(Study, _study_sections)


def answer_runs() -> RunKind:
    """The kind of run that `suffice evaluate answers` writes."""
    return RunKind(AnswerRun, _answer_sections)


def study_report(study: Study, path: Path, *, command: str = "") -> Path:
    """Write the page of a study; return its path."""
    return write_page(study_page(study, command=command), path)


def study_page(study: Study, *, command: str = "") -> Page:
    """Summary, sections, differences from the paper and their reasons, and the settings."""
    used = {column for table in study.tables for column in table.columns}
    counts = f"{len(study.tables)} tables and {len(study.figures)} figures"
    return Page(
        title=study.title,
        about=f"{counts}; {command}" if command else counts,
        summary=study.summary,
        sections=study.sections,
        settings=run_settings(study),
        meanings=[(one.name, one.meaning) for one in PROBABILITY if one.name in used],
        notes=study.notes,
        command=command,
    )


def _study_sections(found: Mapping[str, Study], k: int | None) -> list[Section]:
    sections = []
    if len(found) > 1:
        sections.append(Section("What changed between the studies", changed_cells(found)))
    for name, one in found.items():
        sections += [
            replace(section, title=f"{section.title} ({name})") for section in one.sections
        ]
    return sections


def changed_cells(studies: Mapping[str, Study]) -> tuple[Table, ...]:
    """Every cell of the later studies that differs from the first study's."""
    (base_name, base), *others = studies.items()
    known = {table.title: table for table in base.tables}
    note = "Only what reads differently is listed; tables and rows that one of them lacks are not."
    found = []
    for name, study in others:
        rows: list[tuple[Cell, ...]] = []
        for table in study.tables:
            before = known.get(table.title)
            if before is not None and before.columns == table.columns:
                rows += _changed_rows(before, table)
        columns = ("table", "row", "column", base_name, name)
        found.append(Table(f"{name} beside {base_name}", columns, tuple(rows), note))
    return tuple(found)


def _changed_rows(before: Table, now: Table) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for old, new in zip(before.rows, now.rows):
        if old[0] == new[0]:
            for column, was, now_is in zip(before.columns[1:], old[1:], new[1:]):
                if format_cell(was) != format_cell(now_is):
                    rows.append((before.title, str(old[0]), column, was, now_is))
    return rows


def _answer_sections(runs: Mapping[str, AnswerRun], k: int | None) -> list[Section]:
    groups: dict[tuple[str, ...], dict[str, AnswerRun]] = {}
    for name, run in runs.items():
        groups.setdefault(run.gold, {})[name] = run
    return [_answer_section(one) for some in groups.values() for one in same_questions(some)]


def _answer_section(runs: Mapping[str, AnswerRun]) -> Section:
    """The tables of `suffice evaluate answers` for all systems, and what their confidence is worth."""
    first = next(iter(runs.values()))
    named = system_names({name: run.systems for name, run in runs.items()})
    run = replace(first, systems={one: runs[of].systems[name] for one, (of, name) in named.items()})
    files = [name for name, found in run.systems.items() if all(one.held is None for one in found)]
    tables = [file_answers_table(_with_systems(run, [name])) for name in files]
    if others := [name for name in run.systems if name not in files]:
        tables += answer_tables(_with_systems(run, others))
    if files and len(run.systems) > 1:
        tables.append(differences_table(run, next(iter(run.systems))))
    for name, one in runs.items():
        if seen := one.settings.get("seen"):
            known = f" The gate of {name} was fitted on {seen:,} of these questions."
            tables[0] = replace(tables[0], note=tables[0].note + known)
    return Section(f"Answers on {run.dataset}", (*tables, *_confidence(run)))


def _with_systems(run: AnswerRun, names: Sequence[str]) -> AnswerRun:
    return replace(run, systems={name: run.systems[name] for name in names})


def _confidence(run: AnswerRun) -> list[Table | Plot]:
    """How far stated confidences are true: a table, and a reliability plot for each claim."""
    rows: list[tuple[Cell, ...]] = []
    plots: dict[str, dict[str, Predictions]] = {}
    for system in run.systems:
        for whose, claim in CONFIDENCES.items():
            found = _stated_confidence(run, system, whose)
            if not len(found):
                continue
            means = (float(found.probabilities.mean()), float(found.labels.mean()))
            figures = (interval(found, metric, seed=run.seed) for metric in GATE_METRICS)
            rows.append((system, whose, claim, len(found), *means, *figures))
            plots.setdefault(claim, {})[f"{system}, {whose}"] = found
    if not rows:
        return []
    note = (
        "Of the questions with a candidate answer, given or held back. Right: an exact match; "
        f"complete: all gold documents are held. {INTERVAL_NOTE}"
    )
    columns = ("system", "confidence of", "that it is", "n", "stated", "true", *GATE_METRICS)
    shown: list[Table | Plot] = [Table(f"Confidence on {run.dataset}", columns, tuple(rows), note)]
    for claim, systems in plots.items():
        says = (
            f"Dots of fewer than {MIN_DOT} questions are left out. On the line: as often as stated."
        )
        plot = reliability_lines(
            f"Confidence that it is {claim}", systems, fewest=MIN_DOT, says=says
        )
        shown.append(replace(plot, across="stated confidence", axis=f"share that was {claim}"))
    return shown


def _stated_confidence(run: AnswerRun, system: str, whose: str) -> Predictions:
    """The confidence of each candidate answer, and whether what it states is true."""
    outcomes = run.outcomes(system)
    truth = run.scores([one.candidate for one in outcomes], "em")
    if CONFIDENCES[whose] == "complete":
        truth = run.complete(outcomes)
    stated = np.array([one.sure.get(whose, np.nan) for one in outcomes], dtype=np.float64)
    has_answer = np.array([one.candidate is not None for one in outcomes], dtype=bool)
    kept = has_answer & ~np.isnan(truth) & ~np.isnan(stated)
    return Predictions(truth[kept], stated[kept])
