"""The commands that this package adds to `suffice`, by entry points `command.NAME`.

`suffice reproduce` runs a paper's study again, with the paper's figures beside ours.
"""

from __future__ import annotations

import inspect
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli.loaders import open_model
from suffice.cli.output import command, print_json, progress_bar, say, say_written, show_tables
from suffice.errors import InputError

if TYPE_CHECKING:
    from suffice.evaluation.study import Study, StudyItem
    from suffice.evaluation.tables import Table


@command
def reproduce(
    paper: Annotated[str | None, Argument(help="Name of a study; without it, list them.")] = None,
    data: Annotated[Path | None, Option(help="Folder of the public data sets.")] = None,
    out: Annotated[Path | None, Option(help="Folder for study.json and report.html.")] = None,
    items: Annotated[
        bool, Option("--items", help="Only list the paper's tables, figures and parts.")
    ] = False,
    quality: Annotated[bool, Option("--quality", help="Also run the slow part.")] = False,
    cache: Annotated[
        Path | None, Option(help="Folder for vectors, scores, gates and answers.")
    ] = None,
    limit: Annotated[
        int | None, Option(min=1, help="Questions per data set, or for each slow part.")
    ] = None,
    model: opt.ModelName = None,
    base_url: opt.BaseUrl = None,
    timeout_s: opt.ModelTimeout = 60.0,
    max_chars: opt.ModelMaxChars = 6000,
    workers: Annotated[
        int | None,
        Option(min=1, help="Parallel questions for a model or cross-encoder. Default: 1."),
    ] = None,
    seed: Annotated[int | None, Option(min=0, help="Default: the seed of the study.")] = None,
    json: opt.Json = False,
) -> None:
    """Reproduce the tables and figures of a paper.

    `suffice reproduce PAPER --items` lists each one: done, changed or not done, and why.
    """
    from suffice.evaluation.report import require_report_extra, study_report
    from suffice.evaluation.study import IN_ALL, PROCESSOR, STUDIES, open_study, study_items

    names = STUDIES.names()
    if paper is None and names:
        print_json(names) if json else print("\n".join(names))
        return
    paper = paper or "reproduce"
    run_study = open_study(STUDIES, paper)
    if items:
        rows = study_items(run_study, paper)
        print_json([asdict(one) for one in rows]) if json else show_tables([_items_table(rows)])
        return
    given = {"quality": quality or None, "cache": cache, "limit": limit, "model": model}
    given["workers"] = workers
    _check_options(paper, run_study, [name for name, value in given.items() if value is not None])
    if out:
        require_report_extra()
    opened: Any  # the study serves a file, and keeps in its cache what was answered
    if model is not None and model.endswith(".gguf") and base_url is None:
        opened = Path(model)
    else:
        opened = open_model(model, base_url, timeout_s=timeout_s, seed=seed or 42)
    options = {**given, "model": opened, "seed": seed, "max_chars": max_chars if opened else None}
    options = {name: value for name, value in options.items() if value is not None}
    started, used = time.perf_counter(), _processor_seconds()
    with progress_bar(quiet=json) as progress:
        study = run_study(data=data, progress=progress, **options)
    spent = {IN_ALL: time.perf_counter() - started, PROCESSOR: _processor_seconds() - used}
    study = replace(study, timings={**study.timings, **spent})
    print_json(study.as_json()) if json else _show(study)
    say(f"took {spent[IN_ALL] / 60:.1f} minutes, {spent[PROCESSOR] / 60:.1f} of processor time")
    if out:
        words = [f"suffice reproduce {paper}", "--data DATA" if data else ""]
        words += ["--quality" if quality else "", f"--limit {limit}" if limit else ""]
        words += [f"--model {Path(model).name}" if model else "", f"--out {out.name}"]
        typed = " ".join(filter(None, [*words, f"--seed {study.seed}"]))
        say_written(study_report(study, out / "report.html", command=typed))
        say_written(study.save(out / "study.json"))  # last: where it is, the study is done


def _show(study: Study) -> None:
    show_tables(study.tables)
    notes = [note for note in study.notes if note.startswith("Left out")]
    for line in (*study.summary, *notes):
        say(line)


def _processor_seconds() -> float:
    """Of this process and of those it has waited for: a study may start some."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _items_table(items: Sequence[StudyItem]) -> Table:
    from suffice.evaluation.tables import Table

    states = Counter(one.state for one in items)
    counts = ", ".join(f"{count} {state}" for state, count in states.items())
    rows = tuple((one.item, one.state, one.what, one.why) for one in items)
    return Table("Tables, figures and parts", ("item", "state", "what", "why"), rows, f"{counts}.")


def _check_options(paper: str, run_study: Callable[..., Study], given: list[str]) -> None:
    known = inspect.signature(run_study).parameters
    for name in given:
        if name not in known:
            raise InputError(f"the study {paper} has no --{name}", hint=f"leave --{name} out")
