"""`suffice evaluate`: how good is a retriever, a gate, or an answer, on labelled questions, with intervals, beside others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.answers import answers
from suffice.cli.difficulty import difficulty
from suffice.cli.expansion import expansion
from suffice.cli.manners import (
    friendly_errors,
    numbers,
    print_json,
    progress_bar,
    say,
    say_left_out,
    show_table,
    typed_command,
    words,
)
from suffice.cli.opening import hashes, open_batch, open_data
from suffice.cli.options import (
    Alpha,
    Beside,
    Blocks,
    ChunkOverlap,
    ChunkTokens,
    Collection,
    CorpusFile,
    CostList,
    DatasetName,
    DatasetPath,
    Delta,
    EncoderName,
    Grade,
    Json,
    Limit,
    PolicyName,
    QuestionsFile,
    ReportFile,
    RerankerName,
    RetrieverName,
    RunFile,
    Scheduler,
    SkipBad,
)
from suffice.errors import InputError
from suffice.files import write_atomically

LIMIT_CROSSED = 3  # the exit code: neither the caller's mistake nor ours, but what was asked to be told

app = typer.Typer(
    help="Measure retrieval, gates, answers and difficulty on labelled questions.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def evaluate() -> None:
    """Measure retrieval, gates, answers and difficulty on labelled questions."""


app.command("answers")(answers)
app.command("difficulty")(difficulty)
app.command("expansion")(expansion)


@app.command("retrieval")
def retrieval(
    collection: Collection = None,
    dataset: DatasetName = None,
    path: DatasetPath = None,
    questions: QuestionsFile = None,
    corpus: CorpusFile = None,
    library: Annotated[
        str | None, typer.Option("--library", "--store", help="Search this library or qdrant:// address, not the corpus.")
    ] = None,
    retriever: Annotated[str, typer.Option("--retriever", help="Names, with commas; given: the hits in the files.")] = "tfidf",
    k: Annotated[str, typer.Option("--k", help="Cut-offs, with commas.")] = "2,4,8",
    encoder: EncoderName = "wordllama",
    chunk_tokens: ChunkTokens = 0,
    chunk_overlap: ChunkOverlap = 32,
    limit: Limit = None,
    scheduler: Scheduler = None,
    blocks: Blocks = None,
    skip_bad: SkipBad = False,
    out: RunFile = None,
    report: ReportFile = None,
    seed: Annotated[int, typer.Option("--seed", help="For the bootstrap, and for --collection.")] = 42,
    json: Json = False,
) -> None:
    """Recall, complete recall and friends of one or more retrievers at one or more cut-offs."""
    with friendly_errors(json=json):
        from contextlib import nullcontext

        from suffice.evaluate import retrieval as experiment
        from suffice.evaluate.report import check_extra
        from suffice.integrations import onnx  # noqa: F401 - importing it registers its encoders and rerankers
        from suffice.library import Library

        if report:
            check_extra()
        names, cutoffs = tuple(words(retriever)), tuple(numbers(k))
        settings = experiment.Settings(names, cutoffs, encoder, chunk_tokens, chunk_overlap, limit, seed)
        data = open_data(
            collection=collection,
            dataset=dataset,
            path=path,
            questions=questions,
            corpus=corpus,
            skip_bad=skip_bad,
            seed=seed,
        )
        known = hashes(path, questions, corpus)
        with (
            progress_bar(quiet=json) as progress,
            open_batch(scheduler, blocks) as place,
            Library.open(library) if library else nullcontext() as opened,
        ):
            store = opened and opened.store
            run = experiment.compare_retrievers(data, settings, store=store, data=known, progress=progress, mapped=place)
        if out:
            run.save(out)
        if report:
            experiment.report(run, report, command=typed_command())
        if json:
            print_json(experiment.summary(run))
        else:
            for table in experiment.tables(run):
                show_table(table)
        say_left_out(data.bad)
        for written in filter(None, (out, report)):
            say(f"wrote {written}")


@app.command("gate")
def gate(
    collection: Collection = None,
    dataset: DatasetName = None,
    path: DatasetPath = None,
    questions: QuestionsFile = None,
    corpus: CorpusFile = None,
    retriever: RetrieverName = "bm25",
    k: Annotated[int, typer.Option("--k", min=1, help="How many hits the gate sees.")] = 10,
    judge: Annotated[str, typer.Option("--gate", help="'default', a folder, or 'fitted': on the other folds.")] = "default",
    beside: Beside = None,
    grade: Grade = "fast",
    reranker: RerankerName = None,
    policy: PolicyName = "f1",
    alpha: Alpha = 0.1,
    delta: Delta = 0.1,
    costs: CostList = "1,0.05,0.3",
    folds: Annotated[int, typer.Option("--folds", min=2, help="For --gate fitted, and for the baselines.")] = 5,
    baselines: Annotated[bool, typer.Option("--baselines/--no-baselines", help="Measure the baselines beside it.")] = True,
    cross_encoder: Annotated[bool, typer.Option("--cross-encoder", help="Those that need a cross-encoder, too; slow.")] = False,
    encoder: EncoderName = "wordllama",
    limit: Limit = None,
    scheduler: Scheduler = None,
    blocks: Blocks = None,
    skip_bad: SkipBad = False,
    out: RunFile = None,
    fail_if: Annotated[
        list[str] | None, typer.Option("--fail-if", help='Exit with 3 if so, like "risk@0.1>0.12"; may be repeated.')
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write what --fail-if found as JUnit XML here.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="For folds, the bootstrap, and --collection.")] = 42,
    json: Json = False,
) -> None:
    """Does a gate know when the evidence is complete? Discrimination, honesty, and what its decisions come to."""
    with friendly_errors(json=json):
        from suffice.evaluate import gate as experiment
        from suffice.evaluate import gate_runs, limits
        from suffice.ports import RERANKERS
        from suffice.retrieve.named import DEFAULT_RERANKER

        wanted = limits.parse_limits(fail_if or ())  # a mistake is told before the work
        if junit and not wanted:
            raise InputError("--junit tells what --fail-if found, and there is no --fail-if", hint=limits.EXAMPLE)
        data = open_data(
            collection=collection,
            dataset=dataset,
            path=path,
            questions=questions,
            corpus=corpus,
            skip_bad=skip_bad,
            seed=seed,
        )
        with progress_bar(quiet=json) as progress, open_batch(scheduler, blocks) as place:
            run = experiment.evaluate_gate(
                data,
                retriever,
                k,
                judge,
                grade=grade,
                reranker=reranker,
                beside=words(beside),
                folds=folds,
                seed=seed,
                choice=experiment.Choice(policy, alpha, delta, experiment.costs_of(costs)),
                baselines=baselines,
                cross_encoder=RERANKERS.get(DEFAULT_RERANKER)() if cross_encoder else None,
                encoder=encoder,
                limit=limit,
                data=hashes(path, questions, corpus),
                progress=progress,
                mapped=place,
            )
        if out:
            run.save(out)
        tested = limits.measure_limits(wanted, run, delta=delta) if wanted else ()
        if junit:
            write_atomically(junit, limits.junit(tested, run))
        if json:
            print_json({**gate_runs.summary(run), **({"fail_if": limits.as_json(tested)} if wanted else {})})
        else:
            for table in (*gate_runs.tables(run), *([limits.limits_table(tested)] if wanted else [])):
                show_table(table)
        say_left_out(data.bad)
        if out:
            say(f"wrote {out}")
        elif not json and judge == experiment.DEFAULT:
            say("next: suffice fit with the same data and --out DIR makes a gate for it; --gate DIR judges that one")
        if failed := [str(one.limit) for one in tested if one.failed]:
            say(f"failed: {', '.join(failed)}")
            raise typer.Exit(LIMIT_CROSSED)
