"""`suffice evaluate`: measure retrieval, gates and difficulty."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.loaders import DataSource, open_executor, open_judge, open_library
from suffice.errors import InputError
from suffice.types import printable

if TYPE_CHECKING:
    from suffice.datasets import Dataset
    from suffice.library import Library

EXIT_THRESHOLD_CROSSED = 3  # not an error: --fail-if asked for it

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def evaluate() -> None:
    """Measure retrieval, gates, answers and difficulty."""


@app.command("retrieval")
@output.command
def retrieval(
    collection: opt.Collection = None,
    dataset: opt.DatasetName = None,
    path: opt.DatasetPath = None,
    questions: opt.QuestionsFile = None,
    corpus: opt.CorpusFile = None,
    library: Annotated[
        str | None,
        Option("--library", "--store", help="Search this library instead of the corpus."),
    ] = None,
    retriever: Annotated[
        str,
        Option(help="One or more, like bm25,dense:ENCODER; given: hits in the files."),
    ] = "tfidf",
    k: opt.CutOffs = "2,4,8",
    encoder: opt.EncoderName = "wordllama",
    chunk_tokens: opt.ChunkTokens = 0,
    chunk_overlap: opt.ChunkOverlap = 32,
    limit: opt.Limit = None,
    scheduler: opt.Scheduler = None,
    checkpoint: opt.CheckpointDir = None,
    skip_bad: opt.SkipBad = False,
    out: opt.RunFile = None,
    plot: opt.PlotFile = None,
    report: opt.ReportFile = None,
    seed: opt.Seed = 42,
    json: opt.Json = False,
) -> None:
    """Measure recall and complete recall of retrievers."""
    from suffice.evaluation import retrieval as experiment
    from suffice.evaluation import retrieval_runs
    from suffice.evaluation.report import require_report_extra, write_page
    from suffice.evaluation.searching import GIVEN
    from suffice.integrations import onnx  # noqa: F401 - registers its encoders and rerankers

    if report or plot:
        require_report_extra()
    plot_format = output.parse_plot_format(plot)
    names, cutoffs = tuple(output.parse_list(retriever)), tuple(output.parse_numbers(k))
    settings = experiment.RetrievalSettings(
        names, cutoffs, encoder, chunk_tokens, chunk_overlap, limit, seed
    )
    source = DataSource(collection, dataset, path, questions, corpus)
    data = source.open(skip_bad=skip_bad, seed=seed)
    with (
        output.progress_bar(quiet=json) as progress,
        open_executor(scheduler, checkpoint) as executor,
        open_library(library) if library else nullcontext() as opened,
    ):
        if opened is not None:
            settings = replace(settings, encoder=opened.encoder_name or "")
        run = experiment.compare_retrievers(
            data,
            settings,
            store=None if opened is None else opened.store,
            data=source.hashes(),
            progress=progress,
            job_runner=executor,
        )
        missing = None if names == (GIVEN,) else _missing_gold(data, opened, limit)
    if out:
        run.save(out)
    if report:
        page = retrieval_runs.retrieval_page(run, command=output.typed_command())
        write_page(page, report)
    if json:
        output.print_json(retrieval_runs.retrieval_summary(run))
    else:
        output.show_tables(retrieval_runs.retrieval_tables(run))
    output.say_skipped(data.bad)
    if missing:
        output.say(missing)
    output.say_written(out, report)
    if plot:
        bars = retrieval_runs.metric_bars(run, f"complete@{run.middle_k}")
        output.write_plot(plot, bars, plot_format)


def _missing_gold(data: Dataset, library: Library | None, limit: int | None) -> str | None:
    """A warning about gold that no search can find; None if there is none."""
    if library is None and not data.whole_corpus:
        return None
    questions = islice(data.questions(), limit)
    wanted = {doc_id: one.question.question_id for one in questions for doc_id in one.gold.doc_ids}
    for document in data.documents() if library is None else library.documents():
        wanted.pop(document.parent or document.doc_id, None)
    if not wanted:
        return None
    doc_id, question_id = min(wanted.items())
    where = "corpus" if library is None else "library"
    return printable(
        f"warning: {len(wanted):,} gold documents are not in the {where} and count as not found, "
        f"like {doc_id!r} of question {question_id!r}"
    )


@app.command("gate")
@output.command
def gate(
    collection: opt.Collection = None,
    dataset: opt.DatasetName = None,
    path: opt.DatasetPath = None,
    questions: opt.QuestionsFile = None,
    corpus: opt.CorpusFile = None,
    retriever: opt.RetrieverName = "bm25",
    k: opt.HitCount = 10,
    gate_name: opt.FittedGate = "default",
    preset: opt.Preset = "standard",
    policy: opt.PolicyName = "f1",
    alpha: opt.Alpha = 0.1,
    delta: opt.Delta = 0.1,
    costs: opt.CostList = "1,0.05,0.3",
    folds: opt.Folds = 5,
    judge: opt.JudgeAddress = None,
    baselines: Annotated[bool, Option(help="Measure the baselines, too.")] = True,
    cross_encoder: Annotated[
        bool, Option("--cross-encoder", help="Also measure cross-encoder baselines; slow.")
    ] = False,
    encoder: opt.EncoderName = "wordllama",
    limit: opt.Limit = None,
    scheduler: opt.Scheduler = None,
    checkpoint: opt.CheckpointDir = None,
    skip_bad: opt.SkipBad = False,
    out: opt.RunFile = None,
    fail_if: Annotated[list[str] | None, Option(help='Exit with 3 if "risk@0.1>0.12".')] = None,
    junit: opt.JUnitFile = None,
    seed: opt.Seed = 42,
    json: opt.Json = False,
) -> None:
    """Measure whether a gate knows when evidence is complete."""
    from suffice.evaluation import ci_thresholds, gate_runs
    from suffice.evaluation import gate_evaluation as experiment
    from suffice.registry import RERANKERS
    from suffice.retrieval.builtin import DEFAULT_RERANKER
    from suffice.storage import write_atomically

    thresholds = ci_thresholds.parse_thresholds(fail_if or ())  # errors come before the work
    if junit and not thresholds:
        raise InputError("--junit needs --fail-if", hint=ci_thresholds.EXAMPLE)
    opened_judge = None if judge is None else open_judge(judge)
    source = DataSource(collection, dataset, path, questions, corpus)
    data = source.open(skip_bad=skip_bad, seed=seed)
    with (
        output.progress_bar(quiet=json) as progress,
        open_executor(scheduler, checkpoint) as executor,
    ):
        settings = experiment.GateSettings(
            retriever=retriever,
            k=k,
            gate=gate_name,
            preset=preset,
            folds=folds,
            choice=experiment.PolicyChoice(policy, alpha, delta, experiment.parse_costs(costs)),
            baselines=baselines,
            encoder=encoder,
            limit=limit,
            seed=seed,
        )
        run = experiment.evaluate_gate(
            data,
            settings,
            cross_encoder=RERANKERS.get(DEFAULT_RERANKER)() if cross_encoder else None,
            judge=opened_judge,
            data=source.hashes(),
            progress=progress,
            job_runner=executor if judge is None else None,
        )
    if out:
        run.save(out)
    tested = ci_thresholds.check_thresholds(thresholds, run, delta=delta) if thresholds else ()
    if junit:
        write_atomically(junit, ci_thresholds.junit_xml(tested, run))
    if json:
        tests = {"fail_if": ci_thresholds.threshold_records(tested)} if thresholds else {}
        output.print_json({**gate_runs.gate_summary(run), **tests})
    else:
        output.show_tables(gate_runs.gate_tables(run))
        output.show_tables([ci_thresholds.thresholds_table(tested)] if thresholds else [])
    _say_judge(run.settings.get("judge"))
    output.say_skipped(data.bad)
    output.say_written(out)
    if not out and not json and gate_name == experiment.DEFAULT:
        output.say(
            "next: `suffice fit --out DIR` with the same data fits a gate; --gate DIR measures it"
        )
    if failed := [str(test.threshold) for test in tested if test.failed]:
        output.say(f"failed: {', '.join(failed)}")
        raise typer.Exit(EXIT_THRESHOLD_CROSSED)


def _say_judge(account: Mapping[str, Any] | None) -> None:
    if account:
        output.say(
            f"the judge {account['judge']} was asked about {account['asked']:,} of "
            f"{account['questions']:,}, which changed {account['changed']:,} actions; "
            f"{account['weight']}"
        )
