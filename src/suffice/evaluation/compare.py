"""Compare runs side by side: which systems differ by more than chance.

Runs of retrievers and gates are built in; a plug-in `run.KIND` adds a kind of run or study.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from suffice.errors import InputError
from suffice.evaluation.gate_runs import GateRun
from suffice.evaluation.metrics import METRICS, Predictions, Rankings
from suffice.evaluation.report import Bars, Cell, Page, Section, Series, Table
from suffice.evaluation.result_files import run_settings
from suffice.evaluation.retrieval_runs import RetrievalRun
from suffice.evaluation.significance import interval, significance_letters
from suffice.registry import Registry, missing_package

__all__ = ["RUN_KINDS", "RunKind", "compare_runs", "comparison_page", "load_run"]

LETTERS_NOTE = (
    "In brackets: 95 % bootstrap interval over questions. Two systems that share a letter cannot "
    "be told apart; two that share none differ (paired bootstrap, 10,000 resamples, 5 % after "
    "Holm's correction). a: among the best."
)
GATE_METRICS = ("auroc", "brier", "ece")
IN_RESEARCH = ("answers", "study")


@dataclass(frozen=True, slots=True)
class RunKind:
    """A class of runs, with `load`, and the sections that compare several, by name, at k."""

    of: Any
    sections: Callable[[Mapping[str, Any], int | None], Iterable[Section]]


RUN_KINDS: Registry[RunKind] = Registry("run")


class _OnQuestions(Protocol):
    @property
    def dataset(self) -> str: ...

    @property
    def question_ids(self) -> tuple[str, ...]: ...


_Run = TypeVar("_Run", bound=_OnQuestions)


def load_run(path: Path) -> Any:
    """The run or study in a file; in a folder, study.json or run.json."""
    path = Path(path)
    if path.is_dir():
        names = ("study.json", "run.json")
        path = next((path / name for name in names if (path / name).is_file()), path / "run.json")
    hint = "name a run or a study that suffice wrote"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a run: not valid JSON", hint=hint) from error
    document = document if isinstance(document, dict) else {}
    kind = document.get("kind")
    kind = str(document.get("task", "retrieval") if kind == "run" else kind)
    if kind not in RUN_KINDS.names():
        if kind in IN_RESEARCH:
            raise missing_package(f"reading {path}", "suffice-research")
        kind = "retrieval"  # whose loader says what is wrong
    return RUN_KINDS.get(kind)().of.load(path)


def compare_runs(runs: Mapping[str, Any], *, k: int | None = None) -> tuple[Section, ...]:
    """Sections that compare the runs by name; `k` is the cutoff for retrieval runs.

    Runs are compared on the questions they share. Letters show which systems differ significantly.
    """
    found: list[Section] = []
    for kind in (RUN_KINDS.get(name)() for name in RUN_KINDS.names()):
        if mine := {name: run for name, run in runs.items() if isinstance(run, kind.of)}:
            found += kind.sections(mine, k)
    return tuple(found)


def comparison_page(
    runs: Mapping[str, Any], sections: Sequence[Section], *, command: str = ""
) -> Page:
    """One page with these sections, and the settings of each run."""
    tables = (one for section in sections for one in section.shown if isinstance(one, Table))
    used = {column.partition("@")[0] for table in tables for column in table.columns}
    rows = [(name, row) for name, run in runs.items() for row in run_settings(run)]
    return Page(
        title="Runs beside each other",
        about=", ".join(runs),
        summary=(),
        sections=sections,
        settings=[(f"{name}: {what}", value) for name, (what, value) in rows],
        meanings=[(one.name, one.meaning) for one in METRICS if one.name in used],
        command=command,
    )


def same_questions(runs: Mapping[str, _Run]) -> list[dict[str, _Run]]:
    """Groups of runs on the same questions of a data set."""
    groups: dict[Any, dict[str, _Run]] = {}
    for name, run in runs.items():
        groups.setdefault((run.dataset, run.question_ids), {})[name] = run
    return list(groups.values())


def _retrieval_section(runs: Mapping[str, RetrievalRun], k: int | None) -> Section:
    first = next(iter(runs.values()))
    shared = sorted(set.intersection(*(set(run.ks) for run in runs.values())))
    depth = min(run.depth for run in runs.values())
    if k is not None and k > depth:
        raise InputError(
            f"k is {k}, but a run was searched only {depth} deep",
            hint=f"pass --k {depth}, or evaluate it deeper",
        )
    if k is None and not shared:
        raise InputError("the runs have no k in common", hint="choose one with --k")
    at = k or shared[len(shared) // 2]
    named = system_names({name: run.names for name, run in runs.items()})
    systems = {shown: runs[run].rankings(name) for shown, (run, name) in named.items()}
    metrics = tuple(f"{name}@{at}" for name in ("complete", "recall", "mrr"))
    title = f"Retrieval on {first.dataset}, k = {at}"
    return letter_section(title, "retriever", systems, metrics, first.seed)


def system_names(systems: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, str]]:
    """Run and system by the name to show: with its run where several runs have the system."""
    pairs = [(run, name) for run, names in systems.items() for name in names]
    often = Counter(name for _, name in pairs)
    return {name if often[name] == 1 else f"{name} ({run})": (run, name) for run, name in pairs}


def _gate_section(runs: Mapping[str, GateRun]) -> Section:
    first = next(iter(runs.values()))
    systems: dict[str, Predictions] = {}
    for run_name, run in runs.items():
        suffix = f" ({run_name})" if len(runs) > 1 else ""
        systems[f"gate {run.gate}{suffix}"] = run.predictions()
        systems |= {f"{name}{suffix}": run.predictions(name) for name in run.baselines}
    return letter_section(
        f"Gates on {first.dataset}", "predictor", systems, GATE_METRICS, first.seed
    )


def letter_section(
    title: str,
    column: str,
    systems: Mapping[str, Rankings | Predictions],
    metrics: Sequence[str],
    seed: int,
) -> Section:
    """Each system's figures and letters, best first, and bars of the first metric."""
    letters = {metric: significance_letters(systems, metric, seed=seed) for metric in metrics}
    main = metrics[0]
    rows: list[tuple[Cell, ...]] = []
    bars: list[Series] = []
    for name in letters[main]:  # best first
        figures = [interval(systems[name], metric, seed=seed) for metric in metrics]
        marks = [letters[metric][name] for metric in metrics]
        rows.append((name, *(cell for pair in zip(figures, marks) for cell in pair)))
        bars.append(Series(f"{name}  {marks[0]}", (figures[0],)))
    columns = (column, *(part for metric in metrics for part in (metric, f"{metric} differs")))
    says = "Systems that share a letter cannot be told apart."
    start = 0.5 if main == "auroc" else 0.0
    figure = Bars(f"{main}: {title}", main, tuple(bars), start=start, says=says)
    return Section(title, (Table(title, columns, tuple(rows), LETTERS_NOTE), figure))


def _retrieval_sections(runs: Mapping[str, RetrievalRun], k: int | None) -> list[Section]:
    return [_retrieval_section(group, k) for group in same_questions(runs)]


def _gate_sections(runs: Mapping[str, GateRun], k: int | None) -> list[Section]:
    return [_gate_section(group) for group in same_questions(runs)]


RUN_KINDS.add("retrieval", lambda: RunKind(RetrievalRun, _retrieval_sections))
RUN_KINDS.add("gate", lambda: RunKind(GateRun, _gate_sections))
