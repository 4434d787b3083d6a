"""`suffice report`: compare runs and studies; with --shadow, what a guard would have done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli.output import command, print_json, say, say_written, show_tables, typed_command
from suffice.errors import InputError

if TYPE_CHECKING:
    from suffice.evaluation.shadow_report import ShadowSummary

BAR = 30  # characters of the longest bar
SHOWN_QUESTION = 90  # characters


@command
def report(
    runs: Annotated[
        list[Path] | None, Argument(help="Files of runs or studies, or their folders.")
    ] = None,
    out: Annotated[
        Path | None, Option(help="Write an HTML report here instead.", **opt.OUT_FILE)
    ] = None,
    k: Annotated[int | None, Option(min=1, help="The cut-off for retrieval runs.")] = None,
    shadow: Annotated[
        Path | None, Option(help="Verdict log: show what would have been held back.")
    ] = None,
    labels: Annotated[
        Path | None,
        Option(help="With --shadow: write the questions most worth labelling.", **opt.OUT_FILE),
    ] = None,
    count: Annotated[
        int, Option(min=1, max=10_000, help="With --labels: how many questions.")
    ] = 50,
    json: opt.Json = False,
) -> None:
    """Compare runs and studies, or summarize a shadow log."""
    if (shadow is None) == (not runs):
        hint = "suffice report run.json other.json, or: suffice report --shadow shadow.jsonl"
        raise InputError("give runs, or --shadow with a verdict log", hint=hint)
    if shadow is not None:
        _report_shadow(shadow, out, labels, count, json=json)
    elif labels is not None:
        hint = "suffice report --shadow shadow.jsonl --labels labels.jsonl"
        raise InputError("--labels needs --shadow", hint=hint)
    else:
        _compare(runs or [], out, k, json=json)


def _compare(runs: list[Path], out: Path | None, k: int | None, *, json: bool) -> None:
    from suffice.evaluation import compare
    from suffice.evaluation.report import Table, require_report_extra, write_page

    if out:
        require_report_extra()
    opened = {name: compare.load_run(path) for name, path in _short_names(runs).items()}
    sections = compare.compare_runs(opened, k=k)
    tables = [item for section in sections for item in section.shown if isinstance(item, Table)]
    if json:
        print_json([{"title": table.title, "rows": table.records()} for table in tables])
    elif out is None:
        show_tables(tables)
    if out:
        typed = " ".join(["suffice report", *(path.name for path in runs)])
        page = compare.comparison_page(opened, sections, command=typed)
        say_written(write_page(page, out))


def _report_shadow(
    log: Path, out: Path | None, labels: Path | None, count: int, *, json: bool
) -> None:
    from suffice.evaluation import report as reports
    from suffice.evaluation import shadow_report
    from suffice.evaluation.verdict_log import read_verdict_log

    if out:
        reports.require_report_extra()
    contents = read_verdict_log(log)
    summary = shadow_report.summarize_log(contents)
    chosen = shadow_report.label_rows(contents.rows, count) if labels else []
    if labels:
        shadow_report.write_labels(chosen, labels)
    steps = _next_steps(log, labels, with_texts=bool(summary.with_texts))
    if json:
        written = {"labels": None if labels is None else str(labels), "labelled": len(chosen)}
        print_json({**summary.as_json(), **written, "next": steps})
    elif out is None:
        _print_summary(summary)
    if out:
        page = shadow_report.shadow_page(summary, log.name, steps, command=typed_command())
        say_written(reports.write_page(page, out))
    if labels:
        say(f"wrote {len(chosen)} questions to {labels}")
    if not json:
        say("\nnext: " + "\n      ".join(steps))


def _next_steps(log: Path, labels: Path | None, *, with_texts: bool) -> list[str]:
    steps = []
    if not with_texts:
        steps.append(
            "also log texts, which labelling needs: VerdictLog(FILE, texts=True) in a guard,"
        )
        steps.append("  or suffice serve --shadow FILE --shadow-texts")
    name = labels or "ask.jsonl"
    if labels is None:
        steps.append(f"suffice report --shadow {log} --labels {name}")
    done = "labels.jsonl" if Path(name).name != "labels.jsonl" else "labelled.jsonl"
    steps.append(f"label on the page: suffice serve --label {name} --labels {done}")
    steps.append(f"suffice adapt {done} --out gate")
    steps.append(f'  or set "complete" to true or false in {name}, and adapt to that file')
    steps.append('when you trust it: set act=True and gate="gate" in your guard')
    return steps


def _print_summary(summary: ShadowSummary) -> None:
    from suffice.types import printable

    for line in summary.sentences():
        print(printable(line))
    most = max(bar["questions"] for bar in summary.histogram)
    print("\np_complete (# passes, - does not)")
    for bar in summary.histogram:
        length = round(BAR * bar["questions"] / most)
        stopped = round(length * bar["not_passed"] / max(bar["questions"], 1))
        drawn = "#" * (length - stopped) + "-" * stopped
        print(f"  {bar['from']:.1f} to {bar['to']:.1f}  {bar['questions']:>7,}  {drawn}")
    for action, kinds in (summary.examples or {}).items():
        for kind, rows in kinds.items():
            for row in rows[:1]:
                lacks = f"  (missing: {', '.join(row.missing[:3])})" if row.missing else ""
                asked = printable(f"{row.question[:SHOWN_QUESTION]}{lacks}")
                print(f"\n{action}, {kind.replace('_', ' ')}: p {row.p_complete:.2f}\n  {asked}")


def _short_names(paths: list[Path]) -> dict[str, Path]:
    """Name each by its file, or by its folder if file names repeat."""
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [path.name if path.is_dir() else path.resolve().parent.name for path in paths]
    if len(set(names)) < len(names):
        names = [f"{name} {at}" for at, name in enumerate(names, start=1)]
    return dict(zip(names, paths))
