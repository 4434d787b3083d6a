"""`suffice evaluate`: measure retrieval, gates, answers, difficulty and expansion."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.loaders import DataSource, open_executor, open_judge, open_library, open_model
from suffice.errors import InputError
from suffice.types import printable

if TYPE_CHECKING:
    from suffice.datasets import Dataset
    from suffice.evaluation.answers import AnswerRun
    from suffice.library import Library

EXIT_THRESHOLD_CROSSED = 3  # not an error: --fail-if asked for it
SEEN = "the gate was fitted on {:,} of these questions: its results are too optimistic"

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def evaluate() -> None:
    """Measure retrieval, gates, answers and difficulty."""


@app.command("answers")
@output.command
def answers(
    dataset: opt.DatasetFormat,
    path: opt.DatasetPath = None,
    questions: opt.QuestionsFile = None,
    corpus: opt.CorpusFile = None,
    answers: Annotated[Path | None, Option(help="Score this file: question_id, answer.")] = None,
    systems: Annotated[str | None, Option(help="Systems, separated by semicolons, or all.")] = None,
    part: Annotated[str, Option(help="all, even or odd: which half of the questions.")] = "all",
    gate: opt.FittedGate = "fitted",
    preset: opt.Preset = "standard",
    model: opt.ModelName = None,
    base_url: opt.BaseUrl = None,
    timeout_s: opt.ModelTimeout = 60.0,
    max_tokens: opt.ModelMaxTokens = 256,
    max_chars: opt.ModelMaxChars = 6000,
    retriever: opt.RetrieverName = "hybrid",
    k: Annotated[int, Option(min=1, help="How many hits naive RAG reads.")] = 5,
    documents: Annotated[int, Option(min=1, help="Maximum documents for the other systems.")] = 10,
    encoder: opt.EncoderName = "wordllama",
    chunk_tokens: opt.ChunkTokens = 0,
    chunk_overlap: opt.ChunkOverlap = 32,
    limit: Annotated[int | None, Option(min=1, help="Use a random sample of N questions.")] = None,
    cache: Annotated[Path | None, Option(help="Folder for fitted gates and answers.")] = None,
    skip_bad: opt.SkipBad = False,
    out: opt.RunFile = None,
    seed: opt.Seed = 42,
    json: opt.Json = False,
) -> None:
    """Compare answers, evidence and abstention of several systems.

    The systems are single passage, naive, fixed k, interleaved, max rounds, always, ask, and ask
    without one part: "ask, no gate", "ask, no review", "ask, fixed alpha", "ask, any exemplars".
    Without --model, the gate's reader answers, or rules if the gate has none.
    """
    from suffice.evaluation import answer_systems
    from suffice.evaluation.answers import answer_tables, file_answers_table, judge_answers
    from suffice.integrations import onnx  # noqa: F401 - registers its encoders and rerankers

    if answers is not None and (model or systems):
        hint = "leave out --model and --systems"
        raise InputError("--answers scores a file as it is", hint=hint)
    source = DataSource(None, dataset, path, questions, corpus)
    data = source.open(skip_bad=skip_bad, seed=seed)
    if answers is not None:
        given = _read_answers(answers, skip_bad)
        drawn = answer_systems.draw_questions(data, limit=limit, seed=seed, part=part)
        work: Any = {"system": answers.stem, "seed": seed, "data": source.hashes()}
        run = judge_answers(data.name, drawn, given, **work)
        tables = [file_answers_table(run)]
    else:
        settings = answer_systems.AnswerSettings(
            systems=answer_systems.parse_systems(systems, with_model=model is not None),
            part=part,
            limit=limit,
            gate=gate,
            preset=preset,
            retriever=retriever,
            encoder=encoder,
            k=k,
            documents=documents,
            max_chars=max_chars,
            chunk_tokens=chunk_tokens,
            chunk_overlap=chunk_overlap,
            seed=seed,
        )
        opened = open_model(
            model, base_url, timeout_s=timeout_s, max_tokens=max_tokens, seed=seed, cache=cache
        )
        with output.progress_bar(quiet=json) as progress:
            run = answer_systems.compare_answers(
                data,
                settings,
                model=opened,
                clock=time.monotonic,
                cache=cache,
                data=source.hashes(),
                progress=progress,
            )
        tables = answer_tables(run)
    if json:
        output.print_json({**run.summary(), "tables": [table.to_json() for table in tables]})
    else:
        output.show_tables(tables)
    output.say_skipped(data.bad)
    _say_warnings(run)
    if out:
        _save_answers(run, out, dataset, path)


def _read_answers(file: Path, skip_bad: bool) -> dict[str, str]:
    from suffice.evaluation.answers import read_answers
    from suffice.storage import BadRecords

    bad = BadRecords(skip=skip_bad)
    given = read_answers(file, bad)
    output.say_skipped(bad)
    return given


def _save_answers(run: AnswerRun, out: Path, dataset: str, path: Path | None) -> None:
    output.say_written(run.save(out))
    if path is not None:  # `evaluate difficulty` takes a data set as one folder or file
        of = f"--dataset {dataset} --benchmark {path}"
        output.say(f"\nnext: suffice evaluate difficulty {out} {of}")


def _say_warnings(run: AnswerRun) -> None:
    if seen := run.settings.get("seen"):
        output.say(SEEN.format(seen))
    for name, outcomes in run.systems.items():
        if failed := [outcome.error for outcome in outcomes if outcome.error]:
            output.say(
                f"{name}: the model failed on {len(failed):,} questions, which were read by rules"
            )
            output.say(f"  the first: {failed[0]}")


@app.command("expansion")
@output.command
def expansion(
    collection: opt.Collection = None,
    dataset: opt.DatasetName = None,
    path: opt.DatasetPath = None,
    questions: opt.QuestionsFile = None,
    corpus: opt.CorpusFile = None,
    retriever: Annotated[str, Option(help="The retriever to expand.")] = "bridge",
    others: Annotated[str, Option(help="Retrievers to compare at a fixed k: a,b.")] = "bm25,hybrid",
    gate: opt.FittedGate = "fitted",
    ranker: Annotated[str, Option(help="For bridge: 'hand' (untrained), or a folder.")] = "hand",
    k: opt.CutOffs = "3,4,5,6,8,10",
    answer_at: Annotated[str, Option(help="Gate thresholds, like 0.5,0.9.")] = "0.5,0.7,0.9",
    folds: opt.Folds = 5,
    encoder: opt.EncoderName = "wordllama",
    limit: opt.Limit = None,
    skip_bad: opt.SkipBad = False,
    out: opt.StudyFile = None,
    plot: opt.PlotFile = None,
    seed: opt.Seed = 42,
    json: opt.Json = False,
) -> None:
    """Compare searches stopped by the gate with every fixed k."""
    from suffice.evaluation.study import EXPERIMENTS, open_study
    from suffice.integrations import onnx  # noqa: F401 - registers its encoders
    from suffice.retrieval import builtin  # noqa: F401 - registers our retrievers

    run_study = open_study(EXPERIMENTS, "expansion")
    settings: dict[str, Any] = {
        "retriever": retriever,
        "other_retrievers": tuple(name for name in output.parse_list(others) if name != retriever),
        "gate": gate,
        "ranker": ranker,
        "most": tuple(output.parse_numbers(k)),
        "answer_at": _parse_thresholds(answer_at),
        "folds": folds,
        "encoder": encoder,
        "limit": limit,
        "seed": seed,
    }
    plot_format = output.parse_plot_format(plot)
    source = DataSource(collection, dataset, path, questions, corpus)
    data = source.open(skip_bad=skip_bad, seed=seed)
    with output.progress_bar(quiet=json) as progress:
        study = run_study(data, data=source.hashes(), progress=progress, **settings)
    if out:
        study.save(out)
    if json:
        output.print_json(study.as_json())
    else:
        output.show_tables(study.tables)
        for line in study.summary:
            print(line)
    output.say_skipped(data.bad)
    if study.settings["seen"]:
        output.say(SEEN.format(study.settings["seen"]))
    output.say_written(out)
    if plot:
        output.write_plot(plot, study.figures[0], plot_format)


def _parse_thresholds(text: str) -> tuple[float, ...]:
    try:
        return tuple(sorted({float(word) for word in output.parse_list(text)}))
    except ValueError as error:
        message = f"--answer-at is {text!r}, expected probabilities"
        raise InputError(message, hint="for example --answer-at 0.5,0.9") from error


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
        Option(
            help="One or more: bm25,dense:ENCODER; all: ours and the usual ones; "
            "given: hits in the files."
        ),
    ] = "tfidf",
    cost: Annotated[
        bool, Option("--cost", help="Also measure index time, latency and memory.")
    ] = False,
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
    """Measure recall, complete recall and cost of retrievers."""
    from suffice.evaluation import retrieval as experiment
    from suffice.evaluation import retrieval_runs
    from suffice.evaluation.report import require_report_extra, write_report
    from suffice.evaluation.searching import GIVEN
    from suffice.integrations import onnx  # noqa: F401 - registers its encoders and rerankers

    if report or plot:
        require_report_extra()
    if cost and (library or scheduler):
        hint = "leave out --library and --scheduler"
        raise InputError("--cost builds each index itself, on this machine", hint=hint)
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
        work: dict[str, Any] = {"data": source.hashes(), "progress": progress}
        if cost:
            run = experiment.benchmark_retrievers(data, settings, **work, job_runner=executor)
        else:
            if opened is not None:
                settings = replace(settings, encoder=opened.encoder_name or "")
            store = None if opened is None else opened.store
            run = experiment.compare_retrievers(
                data, settings, **work, store=store, job_runner=executor
            )
        missing = None if names == (GIVEN,) else _missing_gold(data, opened, limit)
    if out:
        run.save(out)
    if report:
        write_report(run, report, command=output.typed_command())
    if json:
        output.print_json(retrieval_runs.retrieval_summary(run))
    else:
        output.show_tables(retrieval_runs.retrieval_tables(run))
    output.say_skipped(data.bad)
    if missing:
        output.say(missing)
    output.say_written(out, report)
    if plot:
        output.write_plot(plot, retrieval_runs.cost_figure(run), plot_format)


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
