"""`suffice reproduce`: a paper's whole experiment again, every table and figure, the paper's figures beside ours."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.loaders import open_model
from suffice.cli.options import BaseUrl, Json, ModelMaxChars, ModelName, ModelTimeout
from suffice.cli.output import handle_errors, print_json, progress_bar, say, show_table

STUDIES = {
    "magaf": "suffice_research.magaf.study",
    "frames": "suffice_research.frames.study",
    "multi-meta-rag": "suffice_research.multi_meta_rag.study",
    "grade": "suffice_research.grade.study",
    "par-rag": "suffice_research.par_rag.study",
}
SLOW = ("frames", "multi-meta-rag", "grade")
CACHING = ("multi-meta-rag", "par-rag")
ASKING = ("par-rag",)  # a language model can be asked, and fewer questions


def reproduce(
    paper: Annotated[str, typer.Argument(help="magaf, frames, multi-meta-rag, grade or par-rag.")],
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
        from suffice.errors import InputError, did_you_mean
        from suffice.evaluation.report import require_report_extra, study_report

        if paper not in STUDIES:
            raise InputError(f"no paper is named {paper!r} here", hint=did_you_mean(paper, STUDIES))
        if quality and paper not in SLOW:
            raise InputError(f"the study of {paper} has no slow part", hint="leave --quality out")
        if cache is not None and paper not in CACHING:
            raise InputError(f"the study of {paper} keeps nothing", hint="leave --cache out")
        if (limit is not None or model is not None) and paper not in ASKING:
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
            study = import_module(STUDIES[paper]).study(data=data, progress=progress, **chosen)
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
