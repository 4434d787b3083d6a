"""`suffice report`: compare runs and studies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli.output import command, print_json, say_written, show_tables


@command
def report(
    runs: Annotated[list[Path], Argument(help="Run or study files of suffice, or their folders.")],
    out: Annotated[Path | None, Option(help="Write an HTML page here instead.")] = None,
    k: Annotated[int | None, Option(min=1, help="The cut-off for retrieval runs.")] = None,
    json: opt.Json = False,
) -> None:
    """Compare runs and studies, with significant differences."""
    from suffice.evaluation import report as reports
    from suffice.evaluation.tables import Table

    if out:
        reports.require_report_extra()
    opened = {name: reports.load_run(path) for name, path in _short_names(runs).items()}
    sections = reports.compare_runs(opened, k=k)
    tables = [item for section in sections for item in section.shown if isinstance(item, Table)]
    if json:
        print_json([{"title": table.title, "rows": table.records()} for table in tables])
    elif out is None:
        show_tables(tables)
    if out:
        typed = " ".join(["suffice report", *(path.name for path in runs)])
        say_written(reports.comparison_report(opened, sections, out, command=typed))


def _short_names(paths: list[Path]) -> dict[str, Path]:
    """Name each by its file, or by its folder if file names repeat."""
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [path.name if path.is_dir() else path.resolve().parent.name for path in paths]
    if len(set(names)) < len(names):
        names = [f"{name} {at}" for at, name in enumerate(names, start=1)]
    return dict(zip(names, paths))
