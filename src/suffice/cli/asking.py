"""`suffice evaluate asking`: the loop beside readers that look once, with the same reader."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from suffice.cli.manners import friendly_errors, print_json, progress_bar, say, show_table, words
from suffice.cli.options import (
    BaseUrl,
    CorpusFile,
    DatasetPath,
    EncoderName,
    GateName,
    Grade,
    Json,
    ModelName,
    ModelTimeout,
    QuestionsFile,
    SkipBad,
)
from suffice.cli.sources import open_data


def asking(
    dataset: Annotated[str, typer.Option("--dataset", help="A format with gold answers: 2wikimultihopqa, hotpotqa, ...")],
    path: DatasetPath = None,
    questions: QuestionsFile = None,
    corpus: CorpusFile = None,
    systems: Annotated[
        str | None, typer.Option("--systems", help="Names with semicolons, or all; default: the first four.")
    ] = None,
    part: Annotated[str, typer.Option("--part", help="all, or one of two halves: even, odd.")] = "all",
    gate: GateName = "default",
    grade: Grade = "fast",
    retriever: Annotated[str, typer.Option("--retriever", help="Who looks.")] = "hybrid",
    encoder: EncoderName = "wordllama",
    model: ModelName = None,
    base_url: BaseUrl = None,
    timeout_s: ModelTimeout = 60.0,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only so many questions, drawn by seed.")] = None,
    skip_bad: SkipBad = False,
    seed: Annotated[int, typer.Option("--seed", help="For the draw.")] = 42,
    json: Json = False,
) -> None:
    """Exact match, F1, abstention, completeness and cost of the loop, beside readers that look once."""
    with friendly_errors(json=json):
        from suffice.evaluate import asking as experiment
        from suffice.evaluate.gate import open_gate, seen_by
        from suffice.integrations import onnx  # noqa: F401 - importing it registers its encoders
        from suffice.integrations.openai import OpenAIModel

        data = open_data(
            collection=None, dataset=dataset, path=path, questions=questions, corpus=corpus, skip_bad=skip_bad, seed=seed
        )
        named = [one.strip() for one in systems.split(";")] if systems else list(experiment.SYSTEMS[:4])
        examples = experiment.chosen_examples(data, limit=limit, seed=seed, part=part)
        judge = open_gate(gate, grade)
        asked = None if model is None else OpenAIModel(model, base_url=base_url, timeout_s=timeout_s, seed=seed)
        with progress_bar(quiet=json) as progress:
            shelves = experiment.shelved(data, retriever=retriever, encoder=encoder, progress=progress)
            found = experiment.compare_asking(
                examples,
                shelves,
                judge,
                systems=list(experiment.SYSTEMS) if words(systems) == ["all"] else named,
                model=asked,
                clock=time.monotonic,
                progress=progress,
            )
        kinds = sorted({one.gold.kind for one in examples if one.gold.kind})
        tables = [experiment.asking_table(f"Asking on {data.name}", examples, found, kind=kind) for kind in (None, *kinds)]
        if json:
            print_json([table.to_json() for table in tables])
        else:
            for table in tables:
                show_table(table)
        known = seen_by(judge, [one.question.text for one in examples])
        say(f"the gate was fitted on {known} of these {len(examples)} questions")
