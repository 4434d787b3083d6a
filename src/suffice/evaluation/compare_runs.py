"""Several runs or studies beside each other: systems with letters that say which really differ, and what changed in a study.

Runs are compared where they ask the same questions; those of other questions get a table of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from suffice.errors import InputError
from suffice.evaluation.figures import Bars, Series
from suffice.evaluation.gate_runs import GateRun
from suffice.evaluation.metrics import Predictions, Rankings
from suffice.evaluation.runs import RetrievalRun
from suffice.evaluation.significance import interval, significance_letters
from suffice.evaluation.study import Section, Study
from suffice.evaluation.tables import Cell, Table, format_cell

__all__ = ["changed_cells", "compare_runs", "load_run"]

AnyRun = RetrievalRun | GateRun | Study
_Run = TypeVar("R", bound=RetrievalRun | GateRun)
NOTE = (
    "In brackets: 95 % bootstrap interval over questions. Two systems that share a letter cannot be told apart; two that share "
    "none differ (paired bootstrap, 10,000 resamples, 5 % after Holm's correction). a: among the best."
)
GATE_METRICS = ("auroc", "brier", "ece")


def load_run(path: Path) -> AnyRun:
    """The retrieval run, gate run or study in a file; a folder is looked into for study.json or run.json."""
    path = Path(path)
    if path.is_dir():
        path = next(
            (path / name for name in ("study.json", "run.json") if (path / name).is_file()),
            path / "run.json",
        )
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}",
            hint="name a run or a study that suffice wrote",
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not a run: not valid JSON", hint="name a run or a study that suffice wrote"
        ) from error
    kind, task = (told.get("kind"), told.get("task")) if isinstance(told, dict) else (None, None)
    if kind == "study":
        return Study.load(path)
    return GateRun.load(path) if task == "gate" else RetrievalRun.load(path)


def compare_runs(runs: Mapping[str, AnyRun], *, k: int | None = None) -> tuple[Section, ...]:
    """Sections that set the runs beside each other; the keys are what each is called. `k`: the cutoff for retrieval runs."""
    sections: list[Section] = []
    searched = {name: run for name, run in runs.items() if isinstance(run, RetrievalRun)}
    judged = {name: run for name, run in runs.items() if isinstance(run, GateRun)}
    studies = {name: run for name, run in runs.items() if isinstance(run, Study)}
    for group in _same_questions(searched):
        sections.append(_retrieval(group, k))
    for gates in _same_questions(judged):
        sections.append(_gates(gates))
    if len(studies) > 1:
        sections.append(Section("What changed between the studies", changed_cells(studies)))
    for name, study in studies.items():
        sections += [
            Section(f"{section.title} ({name})", section.shown, section.says)
            for section in study.sections
        ]
    return tuple(sections)


def _same_questions(runs: Mapping[str, _Run]) -> list[dict[str, _Run]]:
    groups: dict[tuple[str, ...], dict[str, _Run]] = {}
    for name, run in runs.items():
        groups.setdefault((run.dataset, *run.question_ids), {})[name] = run
    return list(groups.values())


# ------------------------------------------------------------------------------------------------------ retrieval, gates


def _retrieval(runs: Mapping[str, RetrievalRun], k: int | None) -> Section:
    first = next(iter(runs.values()))
    shared = sorted(set.intersection(*(set(run.ks) for run in runs.values())))
    if k is not None and any(k > run.depth for run in runs.values()):
        deep = min(run.depth for run in runs.values())
        raise InputError(
            f"k is {k}, but a run was searched only {deep} deep",
            hint=f"pass --k {deep}, or evaluate it deeper",
        )
    if k is None and not shared:
        raise InputError("the runs have no k in common", hint="choose one with --k")
    at = k or shared[len(shared) // 2]
    systems: dict[str, Rankings] = {}
    for run_name, run in runs.items():
        for name in run.names:
            alone = sum(name in other.names for other in runs.values()) == 1
            systems[name if alone else f"{name} ({run_name})"] = run.judged(name)
    metrics = tuple(f"{name}@{at}" for name in ("complete", "recall", "mrr"))
    title = f"Retrieval on {first.dataset}, k = {at}"
    return _section(title, "retriever", systems, metrics, first.seed)


def _gates(runs: Mapping[str, GateRun]) -> Section:
    first = next(iter(runs.values()))
    systems: dict[str, Predictions] = {}
    for run_name, run in runs.items():
        suffix = f" ({run_name})" if len(runs) > 1 else ""
        systems[f"gate {run.gate}{suffix}"] = run.predictions()
        systems |= {f"{name}{suffix}": run.predictions(name) for name in run.baselines}
    return _section(f"Gates on {first.dataset}", "predictor", systems, GATE_METRICS, first.seed)


def _section(
    title: str,
    column: str,
    systems: Mapping[str, Rankings | Predictions],
    metrics: Sequence[str],
    seed: int,
) -> Section:
    marks = {metric: significance_letters(systems, metric, seed=seed) for metric in metrics}
    order = list(marks[metrics[0]])  # best first
    rows: list[tuple[Cell, ...]] = []
    for name in order:
        cells: list[Cell] = []
        for metric in metrics:
            cells += [interval(systems[name], metric, seed=seed), marks[metric][name]]
        rows.append((name, *cells))
    columns = (column, *(part for metric in metrics for part in (metric, f"{metric} differs")))
    bars = tuple(
        Series(
            f"{name}  {marks[metrics[0]][name]}", (interval(systems[name], metrics[0], seed=seed),)
        )
        for name in order
    )
    start = 0.5 if metrics[0] == "auroc" else 0.0
    figure = Bars(
        f"{metrics[0]}: {title}",
        metrics[0],
        bars,
        start=start,
        says="Systems that share a letter cannot be told apart.",
    )
    return Section(title, (Table(title, columns, tuple(rows), NOTE), figure))


# ------------------------------------------------------------------------------------------------------ studies


def changed_cells(studies: Mapping[str, Study]) -> tuple[Table, ...]:
    """Every cell of the later studies that reads differently from the first one's, by table, row and column."""
    (base_name, base), *others = studies.items()
    found = []
    for name, study in others:
        rows: list[tuple[Cell, ...]] = []
        known = {table.title: table for table in base.tables}
        for table in study.tables:
            before = known.get(table.title)
            if before is not None and before.columns == table.columns:
                rows += _changed_rows(before, table)
        note = (
            "Only what reads differently is listed; tables and rows that one of them lacks are not."
        )
        found.append(
            Table(
                f"{name} beside {base_name}",
                ("table", "row", "column", base_name, name),
                tuple(rows),
                note,
            )
        )
    return tuple(found)


def _changed_rows(before: Table, now: Table) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for old, new in zip(before.rows, now.rows):
        if old[0] != new[0]:
            continue
        for column, was, comes in zip(before.columns[1:], old[1:], new[1:]):
            if format_cell(was) != format_cell(comes):
                rows.append((before.title, str(old[0]), column, was, comes))
    return rows
