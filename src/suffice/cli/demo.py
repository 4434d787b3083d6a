"""`suffice demo`: what `make run` does: the whole job on a collection that is made on the spot, in a minute or so."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.options import Json
from suffice.cli.output import handle_errors, print_json, progress_bar, say, show_table

SHOWN = ("Table 3", "Table 4", "Our gate", "Null questions", "What one expansion")


def demo(
    out: Annotated[Path, typer.Option("--out", help="Where the study and the report go.")] = Path(
        "demo"
    ),
    seed: Annotated[
        int,
        typer.Option("--seed", help="Of the collection, the splits, the models and the bootstrap."),
    ] = 42,
    json: Json = False,
) -> None:
    """Make the controlled collection, retrieve, fit a gate, judge it beside the MAGAF paper, and write a report."""
    with handle_errors(json=json):
        from suffice.datasets import describe
        from suffice.errors import MissingExtraError
        from suffice.evaluation.report import study_report
        from suffice_research.controlled import controlled_collection
        from suffice_research.magaf import study as study_module

        say(
            "1/3  making the controlled collection: news articles, and questions that need two to four of them"
        )
        counts = describe(controlled_collection(seed=seed))
        say(
            f"     {counts.documents:,} documents, {counts.questions:,} questions, {counts.null_questions:,} of them null"
        )
        say(
            "2/3  searching, and learning to say when the evidence is complete: the paper's predictors, and our gate"
        )
        with progress_bar(quiet=json) as progress:
            study = study_module.study(seed=seed, folds=False, progress=progress)
        study.save(out / "study.json")
        say("3/3  writing the report")
        try:
            report: Path | None = study_report(
                study, out / "report.html", command=f"suffice demo --seed {seed}"
            )
        except MissingExtraError as error:
            report = None
            say(f"     left out: {error}; {error.hint}")
        if json:
            print_json(study.as_json())
        else:
            for table in study.tables:
                if table.title.startswith(SHOWN):
                    show_table(table)
        for line in study.summary:
            say(f"\n{line}")
        say(f"\nstudy:  {out / 'study.json'}")
        if report:
            say(f"report: {report}  (open it in a browser)")
        say(
            "next:   suffice reproduce magaf --data DIR --out magaf   (the same on the real MultiHop-RAG files)"
        )
        say(
            '        suffice build my_documents.jsonl --out library && suffice search library "your question"'
        )
