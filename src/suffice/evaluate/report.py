"""One HTML file for a run: what was run, on which data, what came out beside what the papers report, and how to do it again.

The file holds everything it shows: no script, no network, no font to fetch. It reads on a phone, prints, and follows the
reader's light or dark setting. Names and texts come from data sets and plug-ins, so the template escapes all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources, util
from pathlib import Path

from suffice.errors import MissingExtraError
from suffice.evaluate.compare import compare
from suffice.evaluate.metrics import RANKING, score
from suffice.evaluate.papers import Published
from suffice.evaluate.plots import INK, depth_curves, draw, metric_bars
from suffice.evaluate.runs import Run
from suffice.evaluate.tables import DEFAULT_METRICS, Table, comparison_table, kind_table, paper_tables, printed, retrieval_table
from suffice.files import write_atomically

__all__ = ["check_extra", "report_html", "write_report"]


def check_extra() -> None:
    """MissingExtraError if a report cannot be made here: to be said before the work, not after it."""
    if not all(util.find_spec(name) for name in ("jinja2", "matplotlib")):
        raise MissingExtraError("the HTML report", extra="report")


@dataclass(frozen=True, slots=True)
class _Picture:
    svg: str
    says: str


def write_report(
    run: Run, path: Path, *, papers: Sequence[Published] = (), command: str = "", metrics: Sequence[str] = ()
) -> Path:
    """Write the report of a run whole or not at all; returns where."""
    write_atomically(Path(path), report_html(run, papers=papers, command=command, metrics=metrics))
    return Path(path)


def report_html(run: Run, *, papers: Sequence[Published] = (), command: str = "", metrics: Sequence[str] = ()) -> str:
    """The page. `papers`: published tables to stand beside; `command`: the line that makes this run again."""
    check_extra()
    import jinja2
    import markupsafe

    template = resources.files("suffice.evaluate").joinpath("templates/report.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    wanted = tuple(metrics) or DEFAULT_METRICS
    middle = run.ks[len(run.ks) // 2]
    page = environment.from_string(template).render(
        run=run,
        summary=_summary(run, middle),
        settings=_settings(run),
        tables=[markupsafe.Markup(table.to_html()) for table in _tables(run, papers, wanted, middle)],
        pictures=[_Picture(markupsafe.Markup(one.svg), one.says) for one in _pictures(run, middle)],
        meanings=[(one.name, one.meaning) for one in RANKING if one.name in _shown(papers, wanted)],
        errors=[
            (system.name, len(system.errors), next(iter(system.errors.items()))) for system in run.systems if system.errors
        ],
        command=command,
        nulls=sum(not gold for gold in run.gold),
    )
    return page.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair in a name must not stop the writing


def _shown(papers: Sequence[Published], metrics: Sequence[str]) -> set[str]:
    return {*metrics, *(metric.partition("@")[0] for paper in papers for row in paper.figures.values() for metric in row)}


def _tables(run: Run, papers: Sequence[Published], metrics: Sequence[str], middle: int) -> list[Table]:
    tables = [table for paper in papers for table in paper_tables(run, paper)]
    if not papers:
        tables.append(retrieval_table(run, metrics, intervals=True))
    if len({kind for kind in run.kinds if kind}) > 1:
        tables.append(kind_table(run, f"complete@{middle}", intervals=True))
    if len(run.names) > 1:
        tables.append(comparison_table(run, f"complete@{middle}"))
    return tables


def _pictures(run: Run, middle: int) -> list[_Picture]:
    figures = [(metric_bars(run, f"complete@{middle}"), f"Share of questions whose gold is all among the first {middle} hits.")]
    drawn = [_Picture(_inline(draw(figure)), says) for figure, says in figures]
    if len(run.ks) > 1:
        for metric, says in (
            ("recall", "Share of the gold documents found as more hits are read."),
            ("complete", "Share of questions with all gold documents found as more hits are read."),
        ):
            drawn.append(_Picture(_inline(draw(depth_curves(run, metric))), says))
    return drawn


def _inline(svg: bytes) -> str:
    """The drawing alone, its ink in the page's own text colour, so that it turns with light and dark."""
    text = svg.decode("utf-8")
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    return re.sub(
        r'<svg ([^>]*?)(?:height|width)="[^"]*"([^>]*?)(?:height|width)="[^"]*"', r'<svg role="img" \1\2', text, count=1
    )


def _summary(run: Run, k: int) -> list[str]:
    """What came out, in plain words."""
    metric = f"complete@{k}"
    values = {name: score(run.judged(name), metric) for name in run.names}
    known = {name: value for name, value in values.items() if value is not None}
    if not known:
        return ["No question of this run has gold documents, so nothing can be said about what was found."]
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
        sure = "that is more than chance explains" if gap.low is not None and gap.low > 0 else "chance can explain that"
        lines.append(f"It stands {printed(gap)} above {second}, the next best; {sure}.")
    return lines


def _settings(run: Run) -> list[tuple[str, str]]:
    rows = [("data set", run.dataset), ("questions", f"{len(run.gold):,}"), ("seed", str(run.seed))]
    rows += [(name, str(value)) for name, value in sorted(run.settings.items())]
    rows += [("commit", run.commit)] if run.commit else []
    rows += [(f"sha256 of {name}", digest) for name, digest in sorted(run.data.items())]
    rows += [("versions", ", ".join(f"{name} {version}" for name, version in sorted(run.packages.items())))]
    return rows + [(f"seconds, {name}", f"{seconds:.2f}") for name, seconds in run.timings.items()]
