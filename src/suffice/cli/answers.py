"""`suffice evaluate answers`: who answers right, on complete evidence, and knows when not to; answers from a file, too."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli.manners import friendly_errors, print_json, progress_bar, say, say_left_out, show_table
from suffice.cli.opening import hashes, open_data, open_model
from suffice.cli.options import (
    BaseUrl,
    ChunkOverlap,
    ChunkTokens,
    CorpusFile,
    DatasetFormat,
    DatasetPath,
    EncoderName,
    Grade,
    Json,
    ModelLetters,
    ModelName,
    ModelTimeout,
    QuestionsFile,
    RunFile,
    SkipBad,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.datasets import Dataset
    from suffice.evaluate.answers import AnswerRun


def answers(
    dataset: DatasetFormat,
    path: DatasetPath = None,
    questions: QuestionsFile = None,
    corpus: CorpusFile = None,
    answers: Annotated[Path | None, typer.Option("--answers", help="Judge these: JSON with question_id and answer.")] = None,
    systems: Annotated[
        str | None, typer.Option("--systems", help="Who answers: names with semicolons, or all; else the usual ones.")
    ] = None,
    part: Annotated[str, typer.Option("--part", help="all, or one of two halves of the questions: even, odd.")] = "all",
    gate: Annotated[
        str, typer.Option("--gate", help="'fitted': each half judged by a gate of the other; 'default', or a folder.")
    ] = "fitted",
    grade: Grade = "fast",
    model: ModelName = None,
    base_url: BaseUrl = None,
    timeout_s: ModelTimeout = 60.0,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of one answer of the model.")] = 256,
    letters: ModelLetters = 6000,
    retriever: Annotated[str, typer.Option("--retriever", help="Who looks.")] = "hybrid",
    k: Annotated[int, typer.Option("--k", min=1, help="How many hits naive RAG reads.")] = 5,
    documents: Annotated[int, typer.Option("--documents", min=1, help="Most that the others may hold.")] = 10,
    encoder: EncoderName = "wordllama",
    chunk_tokens: ChunkTokens = 0,
    chunk_overlap: ChunkOverlap = 32,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only so many questions, drawn by seed.")] = None,
    cache: Annotated[Path | None, typer.Option("--cache", help="Folder that keeps fitted gates and the model's words.")] = None,
    skip_bad: SkipBad = False,
    out: RunFile = None,
    seed: Annotated[int, typer.Option("--seed", help="For the draw, the halves, the bootstrap, and asked of the model.")] = 42,
    json: Json = False,
) -> None:
    """Who is right, on complete evidence, and knows when to say nothing: the loop beside readers that look once, or a file.

    The systems are single passage, naive, fixed k, interleaved, max rounds, always, ask, and ask with a part switched off:
    "ask, no gate", "ask, no review", "ask, fixed alpha", "ask, any exemplars". Without --model they read by rules.
    """
    with friendly_errors(json=json):
        from suffice.errors import InputError
        from suffice.evaluate import answering
        from suffice.evaluate.answer_tables import answer_tables, given_answers

        if answers is not None and (model or systems):
            raise InputError("--answers are judged as they are", hint="leave --model and --systems out")
        data = open_data(
            collection=None, dataset=dataset, path=path, questions=questions, corpus=corpus, skip_bad=skip_bad, seed=seed
        )
        files = hashes(path, questions, corpus)
        if answers is not None:
            run = _given(answers, data, limit=limit, part=part, skip_bad=skip_bad, seed=seed, files=files)
            tables = [given_answers(run)]
        else:
            from suffice.integrations import onnx  # noqa: F401 - importing it registers its encoders and rerankers

            settings = answering.Settings(
                systems=answering.named_systems(systems, with_model=model is not None),
                part=part,
                limit=limit,
                gate=gate,
                grade=grade,
                retriever=retriever,
                encoder=encoder,
                k=k,
                documents=documents,
                letters=letters,
                chunk_tokens=chunk_tokens,
                chunk_overlap=chunk_overlap,
                seed=seed,
            )
            asked = open_model(model, base_url, timeout_s=timeout_s, max_tokens=max_tokens, seed=seed, cache=cache)
            with progress_bar(quiet=json) as progress:
                run = answering.compare_answers(
                    data, settings, model=asked, clock=time.monotonic, cache=cache, data=files, progress=progress
                )
            tables = answer_tables(run)
        if json:
            print_json({**run.summary(), "tables": [table.to_json() for table in tables]})
        else:
            for table in tables:
                show_table(table)
        say_left_out(data.bad)
        _warn(run)
        if out:
            say(f"wrote {run.save(out)}")


def _given(
    path: Path, data: Dataset, *, limit: int | None, part: str, skip_bad: bool, seed: int, files: Mapping[str, str]
) -> AnswerRun:
    from suffice.evaluate.answer_systems import drawn
    from suffice.evaluate.answers import judge_answers, read_answers
    from suffice.files import BadRecords

    bad = BadRecords(skip=skip_bad)
    said = read_answers(path, bad)
    say_left_out(bad)
    examples = drawn(data, limit=limit, seed=seed, part=part)
    return judge_answers(data.name, examples, said, system=path.stem, seed=seed, data=files)


def _warn(run: AnswerRun) -> None:
    """What a reader of the figures must know."""
    if seen := run.settings.get("seen"):
        say(f"the gate was fitted on {seen:,} of these {len(run):,} questions: its figures are too good")
    for name, outcomes in run.systems.items():
        if failed := [one.error for one in outcomes if one.error]:
            say(f"{name}: the model failed in {len(failed):,} questions, where the rules went on; the first: {failed[0]}")
