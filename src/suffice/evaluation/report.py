"""One HTML file for a run or a study: what was done, on which data, what came out beside the papers, and how to do it again.

The file holds everything it shows: no script, no network, no font to fetch. It reads on a phone, prints, and follows the
reader's light or dark setting. Names and texts come from data sets and plug-ins, so the template escapes all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources, util
from pathlib import Path
from typing import Any

from suffice.errors import MissingExtraError
from suffice.evaluation.figures import INK, Figure, depth_curves, draw_figure, metric_bars
from suffice.evaluation.gate_runs import GateRun
from suffice.evaluation.metrics import METRICS, PROBABILITY, RANKING, score
from suffice.evaluation.runs import RetrievalRun
from suffice.evaluation.significance import compare
from suffice.evaluation.study import Section, Study
from suffice.evaluation.tables import (
    DEFAULT_METRICS,
    PublishedTable,
    Table,
    comparison_table,
    format_cell,
    kind_table,
    paper_tables,
    retrieval_table,
)
from suffice.storage import write_atomically

__all__ = [
    "Page",
    "comparison_report",
    "page_html",
    "report_html",
    "require_report_extra",
    "study_html",
    "study_report",
    "write_report",
]


def require_report_extra() -> None:
    """MissingExtraError if a report cannot be made here: to be said before the work, not after it."""
    if not all(util.find_spec(name) for name in ("jinja2", "matplotlib")):
        raise MissingExtraError("the HTML report", extra="report")


@dataclass(frozen=True)
class Page:
    """Everything that a report shows, as plain values; `page_html` sets it in type."""

    title: str
    about: str
    summary: Sequence[str]
    sections: Sequence[Section]
    settings: Sequence[tuple[str, str]]
    meanings: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    failed: Sequence[str] = ()
    command: str = ""


def page_html(page: Page) -> str:
    """The page as one HTML text."""
    require_report_extra()
    import jinja2
    import markupsafe

    template = (
        resources.files("suffice.evaluation")
        .joinpath("templates/report.html")
        .read_text(encoding="utf-8")
    )
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    sections = [
        {
            "title": one.title,
            "says": one.says,
            "shown": [markupsafe.Markup(_item_html(each)) for each in one.shown],
        }
        for one in page.sections
    ]
    text = environment.from_string(template).render(page=page, sections=sections)
    return text.encode("utf-8", "replace").decode(
        "utf-8"
    )  # half a surrogate pair in a name must not stop the writing


def _item_html(one: Table | Figure) -> str:
    from markupsafe import escape

    if isinstance(one, Table):
        return one.to_html()
    says = f"<p>{escape(one.says)}</p>" if one.says else ""
    return f"<figure>\n<div>{_inline_svg(draw_figure(one), one.title)}</div>{says}</figure>\n"


def _inline_svg(svg: bytes, label: str) -> str:
    """The drawing alone, its ink in the page's own text colour, so that it turns with light and dark."""
    from markupsafe import escape

    text = svg.decode("utf-8")
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    size = r'<svg ([^>]*?)(?:height|width)="[^"]*"([^>]*?)(?:height|width)="[^"]*"'
    label = escape(" ".join(label.split()))
    return re.sub(
        size,
        lambda found: f'<svg role="img" aria-label="{label}" {found[1]}{found[2]}',
        text,
        count=1,
    )


# ------------------------------------------------------------------------------------------------------ of a run


def write_report(
    run: RetrievalRun,
    path: Path,
    *,
    papers: Sequence[PublishedTable] = (),
    command: str = "",
    metrics: Sequence[str] = (),
) -> Path:
    """Write the report of a run whole or not at all; returns where."""
    write_atomically(Path(path), report_html(run, papers=papers, command=command, metrics=metrics))
    return Path(path)


def report_html(
    run: RetrievalRun,
    *,
    papers: Sequence[PublishedTable] = (),
    command: str = "",
    metrics: Sequence[str] = (),
) -> str:
    """The page of a run. `papers`: published tables to stand beside; `command`: the line that makes this run again."""
    wanted = tuple(metrics) or DEFAULT_METRICS
    middle = run.ks[len(run.ks) // 2]
    nulls = sum(not gold for gold in run.gold)
    without = f", {nulls:,} without" if nulls else ""
    counts = f"{len(run.gold) - nulls:,} questions with gold documents{without}"
    rows = [("data set", run.dataset), ("questions", f"{len(run.gold):,}")]
    return page_html(
        Page(
            title=f"Retrieval on {run.dataset}",
            about=f"{counts}; {', '.join(run.names)}; k = {', '.join(map(str, run.ks))}",
            summary=_summary(run, middle),
            sections=(
                Section("Figures", _figures(run, middle)),
                Section("Tables", _tables(run, papers, wanted, middle)),
            ),
            settings=[*rows, *_settings(run)],
            meanings=[
                (one.name, one.meaning) for one in RANKING if one.name in _metrics(papers, wanted)
            ],
            failed=[
                _failure_line(name, errors)
                for name, errors in ((one.name, one.errors) for one in run.systems)
                if errors
            ],
            command=command,
        )
    )


def _metrics(papers: Sequence[PublishedTable], metrics: Sequence[str]) -> set[str]:
    return {
        *metrics,
        *(
            metric.partition("@")[0]
            for paper in papers
            for row in paper.figures.values()
            for metric in row
        ),
    }


def _tables(
    run: RetrievalRun, papers: Sequence[PublishedTable], metrics: Sequence[str], middle: int
) -> tuple[Table, ...]:
    tables = [table for paper in papers for table in paper_tables(run, paper)]
    if not papers:
        tables.append(retrieval_table(run, metrics, intervals=True))
    if len({kind for kind in run.kinds if kind}) > 1:
        tables.append(kind_table(run, f"complete@{middle}", intervals=True))
    if len(run.names) > 1:
        tables.append(comparison_table(run, f"complete@{middle}"))
    return tuple(tables)


def _figures(run: RetrievalRun, middle: int) -> tuple[Figure, ...]:
    says = f"Share of questions whose gold is all among the first {middle} hits."
    figures: list[Figure] = [replace(metric_bars(run, f"complete@{middle}"), says=says)]
    if len(run.ks) > 1:
        figures += [
            replace(
                depth_curves(run, "recall"),
                says="Share of the gold documents found as more hits are read.",
            ),
            replace(
                depth_curves(run, "complete"),
                says="Share of questions with all gold documents found as more hits are read.",
            ),
        ]
    return tuple(figures)


def _failure_line(name: str, errors: Mapping[str, str]) -> str:
    question, error = next(iter(errors.items()))
    many = (
        f"{len(errors):,} questions failed and count"
        if len(errors) > 1
        else "1 question failed and counts"
    )
    return f"{name}: {many} as nothing found. The first is {question}: {error}"


def _summary(run: RetrievalRun, k: int) -> list[str]:
    """What came out, in plain words."""
    metric = f"complete@{k}"
    values = {name: score(run.judged(name), metric) for name in run.names}
    known = {name: value for name, value in values.items() if value is not None}
    if not known:
        return [
            "No question of this run has gold documents, so nothing can be said about what was found."
        ]
    best = max(known, key=lambda name: known[name])
    share = score(run.judged(best), f"recall@{k}") or 0.0
    lines = [
        f"Among the first {k} hits, {best} holds every document that is needed for {known[best]:.0%} of the questions. "
        f"On average it holds {share:.0%} of the documents that a question needs."
    ]
    others = [name for name in known if name != best]
    if others:
        second = max(others, key=lambda name: known[name])
        gap = compare(run.judged(best), run.judged(second), metric, seed=run.seed)
        sure = (
            "that is more than chance explains"
            if gap.low is not None and gap.low > 0
            else "chance can explain that"
        )
        lines.append(f"It stands {format_cell(gap)} above {second}, the next best; {sure}.")
    return lines


def _settings(of: RetrievalRun | GateRun | Study) -> list[tuple[str, str]]:
    rows = [
        ("seed", str(of.seed)),
        *((name, _setting_text(value)) for name, value in sorted(of.settings.items())),
    ]
    rows += [("commit", of.commit)] if of.commit else []
    rows += [(f"sha256 of {name}", digest) for name, digest in sorted(of.data.items())]
    rows += [
        (
            "versions",
            ", ".join(f"{name} {version}" for name, version in sorted(of.packages.items())),
        )
    ]
    return rows + [(f"seconds, {name}", f"{seconds:.2f}") for name, seconds in of.timings.items()]


def _setting_text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


# ------------------------------------------------------------------------------------------------------ of a study


def study_report(study: Study, path: Path, *, command: str = "") -> Path:
    """Write the page of a study whole or not at all; returns where."""
    write_atomically(Path(path), study_html(study, command=command))
    return Path(path)


def study_html(study: Study, *, command: str = "") -> str:
    """The page of a study: its summary, its sections in order, what differs from the paper and why, and how it was made."""
    used = {column for table in study.tables for column in table.columns}
    meanings = [(one.name, one.meaning) for one in PROBABILITY if one.name in used]
    figures, tables = len(study.figures), len(study.tables)
    return page_html(
        Page(
            title=study.title,
            about=f"{tables} tables and {figures} figures; {command}"
            if command
            else f"{tables} tables and {figures} figures",
            summary=study.summary,
            sections=study.sections,
            settings=_settings(study),
            meanings=meanings,
            notes=study.notes,
            command=command,
        )
    )


# ------------------------------------------------------------------------------------------------------ of several


def comparison_report(
    runs: Mapping[str, RetrievalRun | GateRun | Study],
    sections: Sequence[Section],
    path: Path,
    *,
    command: str = "",
) -> Path:
    """Write one page of several runs, set beside each other in these sections; returns where."""
    settings = [
        (f"{name}: {row}", value) for name, run in runs.items() for row, value in _settings(run)
    ]
    studies = [run for run in runs.values() if isinstance(run, Study)]
    title = studies[0].title if len(runs) == len(studies) == 1 else "Runs beside each other"
    summary = [line for study in studies for line in study.summary]
    columns = {
        column
        for one in sections
        for table in one.shown
        if isinstance(table, Table)
        for column in table.columns
    }
    used = {column.partition("@")[0] for column in columns}
    meanings = [(one.name, one.meaning) for one in METRICS if one.name in used]
    notes = [line for study in studies for line in study.notes]
    page = Page(
        title, ", ".join(runs), summary, sections, settings, meanings, notes, command=command
    )
    write_atomically(Path(path), page_html(page))
    return Path(path)
