"""`suffice reproduce`: a paper's whole experiment again, every table and figure, the paper's figures beside ours."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.loaders import open_model
from suffice.cli.options import BaseUrl, Json, ModelMaxChars, ModelName, ModelTimeout
from suffice.cli.output import handle_errors, print_json, progress_bar, say, show_table


def reproduce(
    paper: Annotated[
        str, typer.Argument(help="A study of the research package, such as magaf or frames.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="The folder of real data sets (frames/, musique/, ...), or FRAMES' test.tsv.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for study.json and report.html.")
    ] = None,
    quality: Annotated[
        bool,
        typer.Option(
            "--quality",
            help="The slow part, too: frames' gate, multi-meta-rag's rerank, grade's made questions.",
        ),
    ] = False,
    cache: Annotated[
        Path | None,
        typer.Option(
            "--cache",
            help="multi-meta-rag, par-rag: keep vectors, scores or gates here for another run.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="par-rag: only so many questions of a data set."),
    ] = None,
    model: ModelName = None,
    base_url: BaseUrl = None,
    timeout_s: ModelTimeout = 60.0,
    letters: ModelMaxChars = 6000,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", help="For collection, splits, models and bootstrap; else the paper's."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Every table and figure of a paper, its figures beside what is measured here; and what the gate adds."""
    with handle_errors(json=json):
        from suffice.errors import InputError, NotReadyError
        from suffice.evaluation.report import require_report_extra, study_report
        from suffice.evaluation.study import STUDIES

        if not STUDIES.names():
            raise NotReadyError(
                f"{paper!r} is a study of suffice-research, which is not installed",
                hint="in a clone of the repository, run: pip install ./research",
            )
        run_study = STUDIES.get(paper)
        takes = signature(run_study).parameters
        if quality and "quality" not in takes:
            raise InputError(f"the study of {paper} has no slow part", hint="leave --quality out")
        if cache is not None and "cache" not in takes:
            raise InputError(f"the study of {paper} keeps nothing", hint="leave --cache out")
        if (limit is not None or model is not None) and "model" not in takes:
            raise InputError(
                f"the study of {paper} asks no language model, and all questions",
                hint="leave --limit and --model out",
            )
        if out:
            require_report_extra()
        asked = open_model(
            model, base_url, timeout_s=timeout_s, max_tokens=256, seed=seed or 42, cache=cache
        )
        options = {
            "seed": seed,
            "quality": quality or None,
            "cache": cache,
            "limit": limit,
            "model": asked,
            "letters": letters if asked is not None else None,
        }
        chosen = {name: value for name, value in options.items() if value is not None}
        with progress_bar(quiet=json) as progress:
            study = run_study(data=data, progress=progress, **chosen)
        if json:
            print_json(study.as_json())
        else:
            for table in study.tables:
                show_table(table)
            for line in (
                *study.summary,
                *(note for note in study.notes if note.startswith("Left out")),
            ):
                say(line)
        if out:
            told = (" --data DATA" if data else "") + (" --quality" if quality else "")
            told += (f" --limit {limit}" if limit else "") + (f" --model {model}" if model else "")
            command = f"suffice reproduce {paper}{told} --out {out.name} --seed {study.seed}"
            say(f"wrote {study.save(out / 'study.json')}")
            say(f"wrote {study_report(study, out / 'report.html', command=command)}")
