"""The commands that this package adds to `suffice`, by entry points `command.NAME`.

They start fast: what they need is imported when they run.
"""

from __future__ import annotations

import inspect
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli.loaders import DataSource, open_executor, open_model
from suffice.cli.output import (
    command,
    parse_list,
    parse_numbers,
    parse_plot_format,
    print_json,
    progress_bar,
    say,
    say_skipped,
    say_written,
    show_tables,
    write_plot,
)
from suffice.errors import InputError

if TYPE_CHECKING:
    from suffice.evaluation.report import Table
    from suffice_research.answers import AnswerRun
    from suffice_research.study import Study, StudyItem


SEEN = "the gate was fitted on {:,} of these questions: its results are too optimistic"


@command
def reproduce(
    paper: Annotated[str | None, Argument(help="Name of a study; without it, list them.")] = None,
    data: Annotated[Path | None, Option(help="Folder of the public data sets.")] = None,
    out: Annotated[Path | None, Option(help="Folder for study.json and report.html.")] = None,
    items: Annotated[
        bool, Option("--items", help="Only list the paper's tables, figures and parts.")
    ] = False,
    quality: Annotated[bool, Option("--quality", help="Also run the slow part.")] = False,
    cache: Annotated[
        Path | None, Option(help="Folder for vectors, scores, gates and answers.")
    ] = None,
    limit: Annotated[
        int | None, Option(min=1, help="Questions per data set, or for each slow part.")
    ] = None,
    model: opt.ModelName = None,
    base_url: opt.BaseUrl = None,
    timeout_s: opt.ModelTimeout = 60.0,
    max_chars: opt.ModelMaxChars = 6000,
    workers: Annotated[
        int | None,
        Option(min=1, help="Parallel questions for a model or cross-encoder. Default: 1."),
    ] = None,
    seed: Annotated[int | None, Option(min=0, help="Default: the seed of the study.")] = None,
    json: opt.Json = False,
) -> None:
    """Reproduce the tables and figures of a paper.

    `suffice reproduce PAPER --items` lists each one: done, changed or not done, and why.
    """
    from suffice.evaluation.report import require_report_extra
    from suffice_research.run_sections import study_report
    from suffice_research.study import IN_ALL, PROCESSOR, STUDIES, study_items

    if paper is None:
        names = STUDIES.names()
        print_json(names) if json else print("\n".join(names))
        return
    run_study = STUDIES.get(paper)
    if items:
        rows = study_items(run_study, paper)
        print_json([asdict(one) for one in rows]) if json else show_tables([_items_table(rows)])
        return
    given = {"quality": quality or None, "cache": cache, "limit": limit, "model": model}
    given["workers"] = workers
    _check_options(paper, run_study, [name for name, value in given.items() if value is not None])
    if out:
        require_report_extra()
    opened: Any  # the study serves a file, and keeps in its cache what was answered
    if model is not None and model.endswith(".gguf") and base_url is None:
        opened = Path(model)
    else:
        opened = open_model(model, base_url, timeout_s=timeout_s, seed=seed or 42)
    options = {**given, "model": opened, "seed": seed, "max_chars": max_chars if opened else None}
    options = {name: value for name, value in options.items() if value is not None}
    started, used = time.perf_counter(), _processor_seconds()
    with progress_bar(quiet=json) as progress:
        study = run_study(data=data, progress=progress, **options)
    spent = {IN_ALL: time.perf_counter() - started, PROCESSOR: _processor_seconds() - used}
    study = replace(study, timings={**study.timings, **spent})
    print_json(study.as_json()) if json else _show(study)
    say(f"took {spent[IN_ALL] / 60:.1f} minutes, {spent[PROCESSOR] / 60:.1f} of processor time")
    if out:
        words = [f"suffice reproduce {paper}", "--data DATA" if data else ""]
        words += ["--quality" if quality else "", f"--limit {limit}" if limit else ""]
        words += [f"--model {Path(model).name}" if model else "", f"--out {out.name}"]
        typed = " ".join(filter(None, [*words, f"--seed {study.seed}"]))
        say_written(study_report(study, out / "report.html", command=typed))
        say_written(study.save(out / "study.json"))  # last: where it is, the study is done


def _show(study: Study) -> None:
    show_tables(study.tables)
    notes = [note for note in study.notes if note.startswith("Left out")]
    for line in (*study.summary, *notes):
        say(line)


def _processor_seconds() -> float:
    """Of this process and of those it has waited for: a study may start some."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _items_table(items: Sequence[StudyItem]) -> Table:
    from suffice.evaluation.report import Table

    states = Counter(one.state for one in items)
    counts = ", ".join(f"{count} {state}" for state, count in states.items())
    rows = tuple((one.item, one.state, one.what, one.why) for one in items)
    return Table("Tables, figures and parts", ("item", "state", "what", "why"), rows, f"{counts}.")


def _check_options(paper: str, run_study: Callable[..., Study], given: list[str]) -> None:
    known = inspect.signature(run_study).parameters
    for name in given:
        if name not in known:
            raise InputError(f"the study {paper} has no --{name}", hint=f"leave --{name} out")


@command
def evaluate_answers(
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
    Without --model, the gate's reader answers, or the shipped one if it has none.
    """
    from suffice.integrations import onnx  # noqa: F401 - registers its encoders and rerankers
    from suffice_research import answer_systems
    from suffice_research.answers import answer_tables, file_answers_table, judge_answers
    from suffice_research.study import table_to_json

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
        with progress_bar(quiet=json) as progress:
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
        print_json({**run.summary(), "tables": [table_to_json(table) for table in tables]})
    else:
        show_tables(tables)
    say_skipped(data.bad)
    _say_warnings(run)
    if out:
        _save_answers(run, out, dataset, path)


def _read_answers(file: Path, skip_bad: bool) -> dict[str, str]:
    from suffice.storage import BadRecords
    from suffice_research.answers import read_answers

    bad = BadRecords(skip=skip_bad)
    given = read_answers(file, bad)
    say_skipped(bad)
    return given


def _save_answers(run: AnswerRun, out: Path, dataset: str, path: Path | None) -> None:
    say_written(run.save(out))
    if path is not None:  # `evaluate difficulty` takes a data set as one folder or file
        of = f"--dataset {dataset} --benchmark {path}"
        say(f"\nnext: suffice evaluate difficulty {out} {of}")


def _say_warnings(run: AnswerRun) -> None:
    if seen := run.settings.get("seen"):
        say(SEEN.format(seen))
    for name, outcomes in run.systems.items():
        if failed := [outcome.error for outcome in outcomes if outcome.error]:
            say(f"{name}: the model failed on {len(failed):,} questions; the gate's reader read")
            say(f"  the first: {failed[0]}")


@command
def evaluate_expansion(
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

    from suffice.integrations import onnx  # noqa: F401 - registers its encoders
    from suffice.retrieval import builtin  # noqa: F401 - registers our retrievers
    from suffice_research.expansion import ExpansionSettings, expansion_study

    settings = ExpansionSettings(
        retriever=retriever,
        other_retrievers=tuple(name for name in parse_list(others) if name != retriever),
        gate=gate,
        ranker=ranker,
        most=tuple(parse_numbers(k)),
        answer_at=_parse_thresholds(answer_at),
        folds=folds,
        encoder=encoder,
        limit=limit,
        seed=seed,
    )
    plot_format = parse_plot_format(plot)
    source = DataSource(collection, dataset, path, questions, corpus)
    data = source.open(skip_bad=skip_bad, seed=seed)
    with progress_bar(quiet=json) as progress:
        study = expansion_study(data, settings, data=source.hashes(), progress=progress)
    if out:
        study.save(out)
    if json:
        print_json(study.as_json())
    else:
        show_tables(study.tables)
        for line in study.summary:
            print(line)
    say_skipped(data.bad)
    if study.settings["seen"]:
        say(SEEN.format(study.settings["seen"]))
    say_written(out)
    if plot:
        write_plot(plot, study.figures[0], plot_format)


def _parse_thresholds(text: str) -> tuple[float, ...]:
    try:
        return tuple(sorted({float(word) for word in parse_list(text)}))
    except ValueError as error:
        message = f"--answer-at is {text!r}, expected probabilities"
        raise InputError(message, hint="for example --answer-at 0.5,0.9") from error


@command
def evaluate_costs(
    collection: opt.Collection = None,
    dataset: opt.DatasetName = None,
    path: opt.DatasetPath = None,
    questions: opt.QuestionsFile = None,
    corpus: opt.CorpusFile = None,
    retriever: Annotated[
        str, Option(help="One or more: bm25,dense:ENCODER; all: ours and the usual ones.")
    ] = "all",
    k: opt.CutOffs = "2,4,8",
    encoder: opt.EncoderName = "wordllama",
    chunk_tokens: opt.ChunkTokens = 0,
    chunk_overlap: opt.ChunkOverlap = 32,
    limit: opt.Limit = None,
    checkpoint: opt.CheckpointDir = None,
    skip_bad: opt.SkipBad = False,
    plot: opt.PlotFile = None,
    seed: opt.Seed = 42,
    json: opt.Json = False,
) -> None:
    """Measure what retrievers find, and their index time, latency and memory."""
    from suffice.evaluation.report import require_report_extra
    from suffice.evaluation.retrieval import RetrievalSettings
    from suffice.integrations import onnx  # noqa: F401 - registers its encoders and rerankers
    from suffice_research.retrieval_costs import benchmark_retrievers, cost_figure, cost_table

    if plot:
        require_report_extra()
    plot_format = parse_plot_format(plot)
    settings = RetrievalSettings(
        tuple(parse_list(retriever)),
        tuple(parse_numbers(k)),
        encoder,
        chunk_tokens,
        chunk_overlap,
        limit,
        seed,
    )
    source = DataSource(collection, dataset, path, questions, corpus)
    data = source.open(skip_bad=skip_bad, seed=seed)
    with progress_bar(quiet=json) as progress, open_executor(None, checkpoint) as executor:
        work: dict[str, Any] = {"data": source.hashes(), "progress": progress}
        found = benchmark_retrievers(data, settings, **work, job_runner=executor)
    print_json(found.summary()) if json else show_tables([cost_table(found)])
    say_skipped(data.bad)
    if plot:
        write_plot(plot, cost_figure(found), plot_format)


@command
def fit_ranker(
    out: Annotated[Path, Option(help="Folder of the new ranker.")],
    dataset: opt.DatasetFormat,
    path: opt.DatasetPath = None,
    questions: opt.QuestionsFile = None,
    corpus: opt.CorpusFile = None,
    k: opt.HitCount = 10,
    encoder: opt.EncoderName = "wordllama",
    limit: opt.Limit = None,
    skip_bad: opt.SkipBad = False,
    seed: opt.Seed = 42,
    json: opt.Json = False,
) -> None:
    """Fit a ranker for the bridge retriever, and compare it with the one that ships."""
    from suffice.evaluation.report import format_cell
    from suffice.integrations.onnx import open_encoder
    from suffice.retrieval.bridge import KIND
    from suffice.storage import check_replaceable
    from suffice_research.training.bridge_training import fit_own_ranker

    check_replaceable(out, kind=KIND)  # before the work
    source = DataSource(None, dataset, path, questions, corpus)
    data = source.open(skip_bad=skip_bad, seed=seed)
    with progress_bar(quiet=json) as progress:
        fitted = fit_own_ranker(
            data, open_encoder(encoder), k=k, limit=limit, seed=seed, progress=progress
        )
    own, shipped, count = fitted.own, fitted.shipped, fitted.questions
    card = {
        "data": data.name,
        "questions": count,
        "encoder": encoder,
        f"complete@{k}": own.value,
    }
    say_skipped(data.bad)
    fitted.ranker.save(out, card=card, seed=seed)
    if json:
        complete = {"own": own.value, "shipped": shipped.value}
        record = {"path": str(out), "questions": count, "k": k, "seed": seed}
        print_json({**record, f"complete@{k}": complete})
        return
    print(f"ranker from {count:,} questions at {out}")
    print(f"complete@{k} by folds: {format_cell(own)}; shipped ranker: {format_cell(shipped)}")
    if (own.value or 0.0) < (shipped.value or 0.0):
        say("the shipped ranker finds more: label more questions before you use this one")
    say(f'\nnext: suffice search LIBRARY "your question" --ranker {out}')
