"""`suffice report`: one or more runs and studies beside each other, with letters that say which systems really differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.options import Json
from suffice.cli.output import handle_errors, print_json, say, show_table


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Runs and studies: files that suffice wrote, or folders with one."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Write an HTML page here instead of printing.")
    ] = None,
    k: Annotated[
        int | None, typer.Option("--k", min=1, help="The cut-off for retrieval runs.")
    ] = None,
    json: Json = False,
) -> None:
    """Set runs and studies beside each other: figures with intervals, and which differences are more than chance."""
    with handle_errors(json=json):
        from suffice.evaluation.report import (
            compare_runs,
            comparison_report,
            load_run,
            require_report_extra,
        )
        from suffice.evaluation.tables import Table

        if out:
            require_report_extra()
        opened = {name: load_run(path) for name, path in _short_names(runs).items()}
        sections = compare_runs(opened, k=k)
        tables = [one for section in sections for one in section.shown if isinstance(one, Table)]
        if json:
            print_json([{"title": table.title, "rows": table.records()} for table in tables])
        elif out is None:
            for table in tables:
                show_table(table)
        if out:
            command = " ".join(["suffice report", *(path.name for path in runs)])
            say(f"wrote {comparison_report(opened, sections, out, command=command)}")


def _short_names(paths: list[Path]) -> dict[str, Path]:
    """A short name for each: the file's, or its folder's where files are called alike."""
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [path.name if path.is_dir() else path.resolve().parent.name for path in paths]
    if len(set(names)) < len(names):
        names = [f"{name} {at}" for at, name in enumerate(names, start=1)]
    return dict(zip(names, paths))
