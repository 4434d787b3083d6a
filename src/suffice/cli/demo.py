"""`suffice demo`: what `make run` does: the whole job on a collection that is made on the spot, in a minute or so."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.manners import friendly_errors, print_json, progress_bar, say, show_table
from suffice.cli.options import Json

RETRIEVERS = ("tfidf", "metadata-tfidf", "dense-proxy", "graph", "hybrid-metagraph", "bm25", "hybrid")


def demo(
    out: Annotated[Path, typer.Option("--out", help="Where the run and the report go.")] = Path("demo"),
    seed: Annotated[int, typer.Option("--seed", help="For the collection and the bootstrap.")] = 42,
    json: Json = False,
) -> None:
    """Make the controlled collection, retrieve, evaluate beside the paper, and write a report."""
    with friendly_errors(json=json):
        from suffice.datasets import describe
        from suffice.datasets.controlled import controlled
        from suffice.errors import MissingExtraError
        from suffice.evaluate import retrieval as experiment

        say("1/3  making the controlled collection: news articles, and questions that need two to four of them")
        data = controlled(seed=seed)
        counts = describe(data)
        say(f"     {counts.documents:,} documents, {counts.questions:,} questions, {counts.null_questions:,} of them null")
        say(f"2/3  searching every question with {len(RETRIEVERS)} retrievers")
        with progress_bar(quiet=json) as progress:
            run = experiment.compare_retrievers(data, experiment.Settings(RETRIEVERS, seed=seed), progress=progress)
        run.save(out / "run.json")
        say("3/3  writing the report")
        try:
            report: Path | None = experiment.report(run, out / "report.html", command=f"suffice demo --seed {seed}")
        except MissingExtraError as error:
            report = None
            say(f"     left out: {error}; {error.hint}")
        if json:
            print_json(experiment.summary(run))
        else:
            for table in experiment.tables(run):
                show_table(table)
        say(f"\nrun:    {out / 'run.json'}")
        if report:
            say(f"report: {report}  (open it in a browser)")
        say("next:   suffice evaluate retrieval --dataset hotpotqa --questions FILE --corpus FILE --retriever bm25,hybrid")
        say('        suffice build my_documents.jsonl --out library && suffice search library "your question"')
