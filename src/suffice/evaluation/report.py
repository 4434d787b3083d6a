"""One HTML file for a run, a study, or several of them side by side.

The file is self-contained: no scripts, no network, no web fonts. It works on phones, prints, and
follows the reader's light or dark setting. Names and texts come from data sets and plug-ins, so the
template escapes all of them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources, util
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from suffice.errors import InputError, MissingExtraError
from suffice.evaluation.answers import (
    INTERVAL_NOTE,
    AnswerRun,
    answer_tables,
    differences_table,
    file_answers_table,
)
from suffice.evaluation.figures import INK, Bars, Figure, Series, draw_figure
from suffice.evaluation.gate_runs import GateRun, reliability_lines
from suffice.evaluation.metrics import METRICS, PROBABILITY, RANKING, Predictions, Rankings, score
from suffice.evaluation.retrieval_runs import (
    DEFAULT_METRICS,
    RetrievalRun,
    depth_curves,
    detail_tables,
    metric_bars,
    published_tables,
    retrieval_table,
)
from suffice.evaluation.significance import compare, interval, significance_letters
from suffice.evaluation.study import Section, Study
from suffice.evaluation.tables import Cell, Table, format_cell
from suffice.storage import write_atomically

__all__ = ["Page", "compare_runs", "comparison_report", "load_run", "study_report", "write_page"]

AnyRun = RetrievalRun | GateRun | AnswerRun | Study
_Run = TypeVar("_Run", bound=RetrievalRun | GateRun | AnswerRun)
LETTERS_NOTE = (
    "In brackets: 95 % bootstrap interval over questions. Two systems that share a letter cannot be "
    "told apart; two that share none differ (paired bootstrap, 10,000 resamples, 5 % after Holm's "
    "correction). a: among the best."
)
GATE_METRICS = ("auroc", "brier", "ece")
# Whose confidence is a probability, and of what. The score of a hit is none.
CONFIDENCES = {"reader": "right", "review": "right", "gate": "complete"}
MIN_DOT = 5  # questions per dot of a reliability plot


def require_report_extra() -> None:
    """Raise MissingExtraError if no report can be made here; call it before the work."""
    if not all(util.find_spec(name) for name in ("jinja2", "matplotlib")):
        raise MissingExtraError("the HTML report", extra="report")


@dataclass(frozen=True)
class Page:
    """The contents of a report, as plain values; `page_html` renders them."""

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


def write_page(page: Page, path: Path) -> Path:
    """Write the page atomically; return its path."""
    write_atomically(Path(path), page_html(page))
    return Path(path)


def page_html(page: Page) -> str:
    """The page as one HTML text."""
    require_report_extra()
    import jinja2
    from markupsafe import Markup, escape

    def item(one: Table | Figure) -> Markup:
        if isinstance(one, Table):
            return Markup(one.to_html())
        says = f"<p>{escape(one.says)}</p>" if one.says else ""
        svg = _inline_svg(draw_figure(one), escape(" ".join(one.title.split())))
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


# ------------------------------------------------------------------------------------ one run


def write_report(
    run: RetrievalRun, path: Path, *, command: str = "", metrics: Sequence[str] = ()
) -> Path:
    """Write the report of a retrieval run; `command` reproduces the run."""
    return write_page(run_page(run, command=command, metrics=metrics), path)


def run_page(run: RetrievalRun, *, command: str = "", metrics: Sequence[str] = ()) -> Page:
    wanted, middle = tuple(metrics) or DEFAULT_METRICS, run.middle_k
    nulls = sum(not gold for gold in run.gold)
    without = f", {nulls:,} without" if nulls else ""
    counts = f"{len(run.gold) - nulls:,} questions with gold documents{without}"
    published = published_tables(run, narrow=True)
    tables = published or [retrieval_table(run, wanted, intervals=True)]
    shown = {*wanted, *(table.title.partition(" on ")[0] for table in published)}
    failed = []
    for name, errors in ((one.name, one.errors) for one in run.systems):
        if errors:
            question, error = next(iter(errors.items()))
            many = f"{len(errors):,} questions failed and count"
            many = many if len(errors) > 1 else "1 question failed and counts"
            failed.append(f"{name}: {many} as nothing found. The first is {question}: {error}")
    return Page(
        title=f"Retrieval on {run.dataset}",
        about=f"{counts}; {', '.join(run.names)}; k = {', '.join(map(str, run.ks))}",
        summary=_summary(run, middle),
        sections=(
            Section("Figures", _figures(run, middle)),
            Section("Tables", (*tables, *detail_tables(run, intervals=True))),
        ),
        settings=[
            ("data set", run.dataset),
            ("questions", f"{len(run.gold):,}"),
            *_settings(run),
        ],
        meanings=[(one.name, one.meaning) for one in RANKING if one.name in shown],
        failed=failed,
        command=command,
    )


def _figures(run: RetrievalRun, middle: int) -> tuple[Figure, ...]:
    says = f"Share of questions whose gold is all among the first {middle} hits."
    figures: list[Figure] = [replace(metric_bars(run, f"complete@{middle}"), says=says)]
    if len(run.ks) > 1:
        says = "Share of the gold documents found as more hits are read."
        figures.append(replace(depth_curves(run, "recall"), says=says))
        says = "Share of questions with all gold documents found as more hits are read."
        figures.append(replace(depth_curves(run, "complete"), says=says))
    return tuple(figures)


def _summary(run: RetrievalRun, k: int) -> list[str]:
    """The results in plain words."""
    metric = f"complete@{k}"
    values = {name: score(run.rankings(name), metric) for name in run.names}
    known = {name: value for name, value in values.items() if value is not None}
    if not known:
        return [
            "No question of this run has gold documents, "
            "so nothing can be said about what was found."
        ]
    best = max(known, key=lambda name: known[name])
    share = score(run.rankings(best), f"recall@{k}") or 0.0
    lines = [
        f"Among the first {k} hits, {best} holds every document that is needed for "
        f"{known[best]:.0%} of the questions. On average it holds {share:.0%} of the documents "
        "that a question needs."
    ]
    others = [name for name in known if name != best]
    if others:
        second = max(others, key=lambda name: known[name])
        gap = compare(run.rankings(best), run.rankings(second), metric, seed=run.seed)
        above = gap.low is not None and gap.low > 0
        sure = "that is more than chance explains" if above else "chance can explain that"
        lines.append(f"It stands {format_cell(gap)} above {second}, the next best; {sure}.")
    return lines


def _settings(of: AnyRun) -> list[tuple[str, str]]:
    rows = [("seed", str(of.seed))]
    for name, value in sorted(of.settings.items()):
        several = isinstance(value, list | tuple)
        rows.append((name, ", ".join(map(str, value)) if several else str(value)))
    commit, timings = (None, {}) if isinstance(of, AnswerRun) else (of.commit, of.timings)
    rows += [("commit", commit)] if commit else []
    rows += [(f"sha256 of {name}", digest) for name, digest in sorted(of.data.items())]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(of.packages.items()))
    rows.append(("versions", versions))
    return rows + [(f"seconds, {name}", f"{seconds:.2f}") for name, seconds in timings.items()]


# ------------------------------------------------------------------------------------ one study


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
        settings=_settings(study),
        meanings=[(one.name, one.meaning) for one in PROBABILITY if one.name in used],
        notes=study.notes,
        command=command,
    )


# ------------------------------------------------------------------------------------ several runs


def load_run(path: Path) -> AnyRun:
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
    if document.get("kind") == "study":
        return Study.load(path)
    loaders: dict[str, Callable[[Path], AnyRun]] = {"gate": GateRun.load, "answers": AnswerRun.load}
    return loaders.get(str(document.get("task")), RetrievalRun.load)(path)


def comparison_report(
    runs: Mapping[str, AnyRun], sections: Sequence[Section], path: Path, *, command: str = ""
) -> Path:
    """Write one page that compares several runs in these sections; return its path."""
    studies = [run for run in runs.values() if isinstance(run, Study)]
    title = studies[0].title if len(runs) == len(studies) == 1 else "Runs beside each other"
    tables = (one for section in sections for one in section.shown if isinstance(one, Table))
    used = {column.partition("@")[0] for table in tables for column in table.columns}
    page = Page(
        title=title,
        about=", ".join(runs),
        summary=[line for study in studies for line in study.summary],
        sections=sections,
        settings=[
            (f"{name}: {row}", it) for name, run in runs.items() for row, it in _settings(run)
        ],
        meanings=[(one.name, one.meaning) for one in METRICS if one.name in used],
        notes=[line for study in studies for line in study.notes],
        command=command,
    )
    return write_page(page, path)


def compare_runs(runs: Mapping[str, AnyRun], *, k: int | None = None) -> tuple[Section, ...]:
    """Sections that compare the runs by name; `k` is the cutoff for retrieval runs.

    Runs are compared on the questions they share. Letters show which systems differ significantly.
    """
    retrieval = {name: run for name, run in runs.items() if isinstance(run, RetrievalRun)}
    gates = {name: run for name, run in runs.items() if isinstance(run, GateRun)}
    answers = {name: run for name, run in runs.items() if isinstance(run, AnswerRun)}
    studies = {name: run for name, run in runs.items() if isinstance(run, Study)}
    sections = [_retrieval_section(group, k) for group in _same_questions(retrieval)]
    sections += [_gate_section(group) for group in _same_questions(gates)]
    sections += [_answer_section(group) for group in _same_questions(answers)]
    if len(studies) > 1:
        sections.append(Section("What changed between the studies", changed_cells(studies)))
    for name, study in studies.items():
        sections += [
            Section(f"{section.title} ({name})", section.shown, section.says)
            for section in study.sections
        ]
    return tuple(sections)


def _same_questions(runs: Mapping[str, _Run]) -> list[dict[str, _Run]]:
    groups: dict[Any, dict[str, _Run]] = {}
    for name, run in runs.items():
        gold = run.gold if isinstance(run, AnswerRun) else None
        groups.setdefault((run.dataset, run.question_ids, gold), {})[name] = run
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
    named = _system_names({name: run.names for name, run in runs.items()})
    systems = {shown: runs[run].rankings(name) for shown, (run, name) in named.items()}
    metrics = tuple(f"{name}@{at}" for name in ("complete", "recall", "mrr"))
    title = f"Retrieval on {first.dataset}, k = {at}"
    return _letter_section(title, "retriever", systems, metrics, first.seed)


def _system_names(systems: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, str]]:
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
    return _letter_section(
        f"Gates on {first.dataset}", "predictor", systems, GATE_METRICS, first.seed
    )


def _answer_section(runs: Mapping[str, AnswerRun]) -> Section:
    """The tables of `suffice evaluate answers` for all systems, and what their confidence is worth."""
    first = next(iter(runs.values()))
    named = _system_names({name: run.systems for name, run in runs.items()})
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


def _confidence(run: AnswerRun) -> list[Table | Figure]:
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
    shown: list[Table | Figure] = [
        Table(f"Confidence on {run.dataset}", columns, tuple(rows), note)
    ]
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


def _letter_section(
    title: str,
    column: str,
    systems: Mapping[str, Rankings | Predictions],
    metrics: Sequence[str],
    seed: int,
) -> Section:
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
