"""`suffice evaluate answers`: are the answers right? Exact match, F1, and the MultiHop-RAG papers' word overlap."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.manners import friendly_errors, print_json, progress_bar, say, show_table
from suffice.cli.options import (
    BaseUrl,
    ChunkOverlap,
    ChunkTokens,
    CorpusFile,
    DatasetPath,
    EncoderName,
    Json,
    ModelName,
    ModelTimeout,
    QuestionsFile,
    SkipBad,
)
from suffice.cli.sources import open_data


def answers(
    dataset: Annotated[str, typer.Option("--dataset", help="A format with gold answers: multihop_rag, hotpotqa, ...")],
    path: DatasetPath = None,
    questions: QuestionsFile = None,
    corpus: CorpusFile = None,
    answers: Annotated[Path | None, typer.Option("--answers", help="Judge these: JSON with question_id and answer.")] = None,
    model: ModelName = None,
    base_url: BaseUrl = None,
    timeout_s: ModelTimeout = 60.0,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of one answer.")] = 32,
    cache: Annotated[Path | None, typer.Option("--cache", help="Keep the model's answers in this file.")] = None,
    retriever: Annotated[str, typer.Option("--retriever", help="Who searches for the model.")] = "filtered",
    k: Annotated[int, typer.Option("--k", min=1, help="How many hits the model reads.")] = 6,
    encoder: EncoderName = "wordllama",
    chunk_tokens: ChunkTokens = 256,
    chunk_overlap: ChunkOverlap = 32,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first so many questions.")] = None,
    skip_bad: SkipBad = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write the run (JSON) here.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="For the bootstrap, and asked of the model.")] = 42,
    json: Json = False,
) -> None:
    """Judge answers from a file, or let a model read what a retriever finds and judge what it says."""
    with friendly_errors(json=json):
        from itertools import islice

        from suffice.errors import InputError
        from suffice.evaluate import answers as experiment
        from suffice.files import BadRecords

        if (answers is None) == (model is None):
            raise InputError("give either --answers or --model", hint="for example --answers answers.jsonl")
        data = open_data(
            collection=None, dataset=dataset, path=path, questions=questions, corpus=corpus, skip_bad=skip_bad, seed=seed
        )
        if answers is not None:
            bad = BadRecords(skip=skip_bad)
            said = experiment.read_answers(answers, bad)
            if bad.count:
                say(f"left out {bad.count:,} bad records, the first: {bad.examples[0]}")
            run = experiment.judge_answers(data.name, islice(data.examples(), limit), said, system=answers.stem, seed=seed)
        else:
            from suffice.evaluate.retrieval import Settings
            from suffice.integrations import onnx  # noqa: F401 - importing it registers its encoders and rerankers
            from suffice.integrations.openai import CachedModel, OpenAIModel
            from suffice.ports import LanguageModel

            asked: LanguageModel = OpenAIModel(
                str(model), base_url=base_url, timeout_s=timeout_s, max_tokens=max_tokens, seed=seed
            )
            if cache is not None:
                asked = CachedModel(asked, cache)
            settings = Settings((retriever,), (k,), encoder, chunk_tokens, chunk_overlap, limit, seed)
            with progress_bar(quiet=json) as progress:
                run = experiment.answers_by_model(data, settings, asked, k=k, progress=progress)
        if out:
            run.save(out)
        if json:
            print_json(run.summary())
        else:
            for table in experiment.answer_tables(run):
                show_table(table)
        for question_id, error in list(run.errors.items())[:3]:
            say(f"{question_id} was not answered: {error}")
        if out:
            say(f"wrote {out}")
