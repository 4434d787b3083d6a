"""`suffice evaluate answers`: who answers right, on complete evidence, and knows when not to; answers from a file, too."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli.loaders import hash_files, open_dataset, open_executor, open_model
from suffice.cli.options import (
    Alpha,
    BaseUrl,
    CheckpointDir,
    ChunkOverlap,
    ChunkTokens,
    Collection,
    CorpusFile,
    CostList,
    DatasetFormat,
    DatasetName,
    DatasetPath,
    Delta,
    EncoderName,
    Json,
    Limit,
    ModelMaxChars,
    ModelName,
    ModelTimeout,
    OtherRetrievers,
    PlotFile,
    PolicyName,
    Preset,
    QuestionsFile,
    ReportFile,
    RerankerName,
    RetrieverName,
    RunFile,
    Scheduler,
    SkipBad,
)
from suffice.cli.output import (
    handle_errors,
    parse_list,
    parse_numbers,
    parse_plot_format,
    print_json,
    progress_bar,
    say,
    say_skipped,
    show_table,
    typed_command,
)
from suffice.errors import InputError
from suffice.storage import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.datasets import Dataset
    from suffice.evaluation.answers import AnswerRun
    from suffice.evaluation.difficulty import MissingLinks


def answers(
    dataset: DatasetFormat,
    path: DatasetPath = None,
    questions: QuestionsFile = None,
    corpus: CorpusFile = None,
    answers: Annotated[
        Path | None,
        typer.Option("--answers", help="Judge these: JSON with question_id and answer."),
    ] = None,
    systems: Annotated[
        str | None,
        typer.Option(
            "--systems", help="Who answers: names with semicolons, or all; else the usual ones."
        ),
    ] = None,
    part: Annotated[
        str, typer.Option("--part", help="all, or one of two halves of the questions: even, odd.")
    ] = "all",
    gate: Annotated[
        str,
        typer.Option(
            "--gate",
            help="'fitted': each half judged by a gate of the other; 'default', or a folder.",
        ),
    ] = "fitted",
    preset: Preset = "fast",
    model: ModelName = None,
    base_url: BaseUrl = None,
    timeout_s: ModelTimeout = 60.0,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=1, help="Of one answer of the model.")
    ] = 256,
    letters: ModelMaxChars = 6000,
    retriever: Annotated[str, typer.Option("--retriever", help="Who looks.")] = "hybrid",
    k: Annotated[int, typer.Option("--k", min=1, help="How many hits naive RAG reads.")] = 5,
    documents: Annotated[
        int, typer.Option("--documents", min=1, help="Most that the others may hold.")
    ] = 10,
    encoder: EncoderName = "wordllama",
    chunk_tokens: ChunkTokens = 0,
    chunk_overlap: ChunkOverlap = 32,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Only so many questions, drawn by seed.")
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", help="Folder that keeps fitted gates and the model's words."),
    ] = None,
    skip_bad: SkipBad = False,
    out: RunFile = None,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", help="For the draw, the halves, the bootstrap, and asked of the model."
        ),
    ] = 42,
    json: Json = False,
) -> None:
    """Who is right, on complete evidence, and knows when to say nothing: the loop beside readers that look once, or a file.

    The systems are single passage, naive, fixed k, interleaved, max rounds, always, ask, and ask with a part switched off:
    "ask, no gate", "ask, no review", "ask, fixed alpha", "ask, any exemplars". Without --model they read by rules.
    """
    with handle_errors(json=json):
        from suffice.errors import InputError
        from suffice.evaluation import answer_systems
        from suffice.evaluation.answers import answer_tables, file_answers_table

        if answers is not None and (model or systems):
            raise InputError(
                "--answers are judged as they are", hint="leave --model and --systems out"
            )
        data = open_dataset(
            collection=None,
            dataset=dataset,
            path=path,
            questions=questions,
            corpus=corpus,
            skip_bad=skip_bad,
            seed=seed,
        )
        files = hash_files(path, questions, corpus)
        if answers is not None:
            run = _score_file(
                answers, data, limit=limit, part=part, skip_bad=skip_bad, seed=seed, files=files
            )
            tables = [file_answers_table(run)]
        else:
            from suffice.integrations import onnx  # noqa: F401 - importing it registers its encoders and rerankers

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
                letters=letters,
                chunk_tokens=chunk_tokens,
                chunk_overlap=chunk_overlap,
                seed=seed,
            )
            asked = open_model(
                model, base_url, timeout_s=timeout_s, max_tokens=max_tokens, seed=seed, cache=cache
            )
            with progress_bar(quiet=json) as progress:
                run = answer_systems.compare_answers(
                    data,
                    settings,
                    model=asked,
                    clock=time.monotonic,
                    cache=cache,
                    data=files,
                    progress=progress,
                )
            tables = answer_tables(run)
        if json:
            print_json({**run.summary(), "tables": [table.to_json() for table in tables]})
        else:
            for table in tables:
                show_table(table)
        say_skipped(data.bad)
        _say_warnings(run)
        if out:
            say(f"wrote {run.save(out)}")


def _score_file(
    path: Path,
    data: Dataset,
    *,
    limit: int | None,
    part: str,
    skip_bad: bool,
    seed: int,
    files: Mapping[str, str],
) -> AnswerRun:
    from suffice.evaluation.answer_systems import draw_questions
    from suffice.evaluation.answers import judge_answers, read_answers
    from suffice.storage import BadRecords

    bad = BadRecords(skip=skip_bad)
    said = read_answers(path, bad)
    say_skipped(bad)
    examples = draw_questions(data, limit=limit, seed=seed, part=part)
    return judge_answers(data.name, examples, said, system=path.stem, seed=seed, data=files)


def _say_warnings(run: AnswerRun) -> None:
    """What a reader of the figures must know."""
    if seen := run.settings.get("seen"):
        say(
            f"the gate was fitted on {seen:,} of these {len(run):,} questions: its figures are too good"
        )
    for name, outcomes in run.systems.items():
        if failed := [one.error for one in outcomes if one.error]:
            say(
                f"{name}: the model failed in {len(failed):,} questions, where the rules went on; the first: {failed[0]}"
            )


# --- difficulty: `suffice evaluate difficulty`: where does a system err, by hops and by how far the evidence stands from the question?


def difficulty(
    results: Annotated[
        Path,
        typer.Argument(
            help="JSON Lines of question_id and correct, answer or retrieved; or a run."
        ),
    ],
    benchmark: Annotated[
        Path,
        typer.Option("--benchmark", help="The folder that `suffice grade` wrote, or a data set's."),
    ],
    dataset: DatasetFormat = "jsonl",
    by: Annotated[
        str | None, typer.Option("--by", help="What is judged: correct, answer or retrieved.")
    ] = None,
    k: Annotated[int, typer.Option("--k", min=1, help="retrieved: how many of them count.")] = 10,
    match: Annotated[
        str,
        typer.Option("--match", help="answer: em, token_f1 or word_overlap, right from 0.5 on."),
    ] = "em",
    aggregation: Annotated[
        str, typer.Option("--aggregation", help="Of similarities: min, power or mean.")
    ] = "min",
    encoder: EncoderName = "wordllama",
    plot: PlotFile = None,
    report: ReportFile = None,
    skip_bad: SkipBad = False,
    seed: Annotated[int, typer.Option("--seed", help="For the bootstrap.")] = 42,
    json: Json = False,
) -> None:
    """The difficulty matrix of any system's results: error rates by hops and by distance of the evidence."""
    with handle_errors(json=json):
        from suffice.datasets import load
        from suffice.evaluation import difficulty as experiment
        from suffice.evaluation.difficulty_matrix import question_difficulty
        from suffice.evaluation.external_results import read_results
        from suffice.evaluation.report import require_report_extra
        from suffice.integrations import onnx  # noqa: F401 - importing it registers its encoders
        from suffice.registry import ENCODERS
        from suffice.storage import BadRecords

        if plot or report:
            require_report_extra()
        kind = parse_plot_format(plot)
        bad = BadRecords(skip=skip_bad)
        data = load(dataset, benchmark, skip_bad=skip_bad)
        examples = list(data.questions())
        errors = read_results(results, examples, by=by, k=k, match=match, bad=bad)
        say_skipped(bad)
        of = question_difficulty(examples, data.documents(), ENCODERS.get(encoder)())
        found = [
            experiment.measure_difficulty(name, of, one, aggregation=aggregation, seed=seed)
            for name, one in errors.items()
        ]
        links = _missing_links(benchmark)
        if json:
            print_json(experiment.difficulty_summary(found, links))
        else:
            for table in experiment.difficulty_tables(found, links):
                show_table(table)
            for line in experiment.difficulty_findings(found):
                say(line)
        if of.left_out:
            say(
                f"left out {of.left_out:,} questions that need no document, or one that the corpus does not hold"
            )
        for name, path in _plot_paths(plot, [one.system for one in found]).items():
            from suffice.evaluation.figures import draw_figure
            from suffice.storage import write_atomically

            one = next(each for each in found if each.system == name)
            write_atomically(path, draw_figure(experiment.heatmap(one), kind))
            say(f"wrote {path}")
        if report:
            told = {
                "benchmark": benchmark.name,
                "results": results.name,
                "encoder": encoder,
                "seed": str(seed),
            }
            say(
                f"wrote {experiment.difficulty_report(found, report, links=links, settings=told, command=typed_command())}"
            )


def _plot_paths(plot: Path | None, systems: list[str]) -> dict[str, Path]:
    """Where each system's heatmap goes: the path itself, or with numbers where there are several."""
    if plot is None:
        return {}
    if len(systems) == 1:
        return {systems[0]: plot}
    return {
        name: plot.with_name(f"{plot.stem}-{at}{plot.suffix}")
        for at, name in enumerate(systems, start=1)
    }


def _missing_links(benchmark: Path) -> MissingLinks | None:
    """Of a benchmark that was made here: which questions need missing links."""
    from suffice.evaluation.difficulty import find_missing_links
    from suffice.storage import BadRecords, read_json_records

    made = benchmark / "questions.jsonl"
    if not made.is_file():
        return None
    records = [record.value for record in read_json_records(made, BadRecords())]
    return find_missing_links(records) if any("path" in record for record in records) else None


# --- expansion: `suffice evaluate expansion`: what the gate as stop signal is worth, beside every fixed k.


def expansion(
    collection: Collection = None,
    dataset: DatasetName = None,
    path: DatasetPath = None,
    questions: QuestionsFile = None,
    corpus: CorpusFile = None,
    retriever: Annotated[str, typer.Option("--retriever", help="Who is expanded.")] = "bridge",
    beside: Annotated[
        str, typer.Option("--beside", help="Who else stands at a fixed k; names, with commas.")
    ] = "bm25,hybrid",
    gate: Annotated[
        str, typer.Option("--gate", help="'fitted': on the other folds; 'default', or a folder.")
    ] = "fitted",
    ranker: Annotated[
        str,
        typer.Option("--ranker", help="Of the bridge: 'hand', which saw no question, or a folder."),
    ] = "hand",
    k: Annotated[
        str, typer.Option("--k", help="Most documents held, with commas.")
    ] = "3,4,5,6,8,10",
    answer_at: Annotated[
        str, typer.Option("--answer-at", help="Thresholds of the gate, with commas.")
    ] = "0.5,0.7,0.9",
    folds: Annotated[int, typer.Option("--folds", min=2, help="For --gate fitted.")] = 5,
    encoder: EncoderName = "wordllama",
    limit: Limit = None,
    skip_bad: SkipBad = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write the study (JSON) here.")] = None,
    plot: PlotFile = None,
    seed: Annotated[
        int, typer.Option("--seed", help="For folds, the bootstrap, and --collection.")
    ] = 42,
    json: Json = False,
) -> None:
    """Completeness against documents held: every fixed k beside a search that the gate ends."""
    with handle_errors(json=json):
        from suffice.evaluation import expansion as experiment
        from suffice.integrations import onnx  # noqa: F401 - importing it registers its encoders
        from suffice.retrieval import builtin  # noqa: F401 - importing it registers our retrievers

        settings = experiment.ExpansionSettings(
            retriever=retriever,
            beside=tuple(one for one in parse_list(beside) if one != retriever),
            gate=gate,
            ranker=ranker,
            most=tuple(parse_numbers(k)),
            answer_at=_parse_thresholds(answer_at),
            folds=folds,
            encoder=encoder,
            limit=limit,
            seed=seed,
        )
        kind = parse_plot_format(plot)
        data = open_dataset(
            collection=collection,
            dataset=dataset,
            path=path,
            questions=questions,
            corpus=corpus,
            skip_bad=skip_bad,
            seed=seed,
        )
        with progress_bar(quiet=json) as progress:
            done = experiment.expansion_study(
                data, settings, data=hash_files(path, questions, corpus), progress=progress
            )
        if out:
            done.save(out)
        if plot:
            from suffice.evaluation.figures import draw_figure
            from suffice.storage import write_atomically

            write_atomically(plot, draw_figure(done.figures[0], kind))
        if json:
            print_json(done.as_json())
        else:
            for table in done.tables:
                show_table(table)
            for line in done.summary:
                print(line)
        say_skipped(data.bad)
        if done.settings["seen"]:
            say(
                f"the gate was fitted on {done.settings['seen']:,} of these questions: its figures are too good"
            )
        for written in filter(None, (out, plot)):
            say(f"wrote {written}")


def _parse_thresholds(text: str) -> tuple[float, ...]:
    from suffice.errors import InputError

    try:
        return tuple(sorted({float(word) for word in parse_list(text)}))
    except ValueError as error:
        raise InputError(
            f"--answer-at is {text!r}, expected probabilities",
            hint="for example --answer-at 0.5,0.9",
        ) from error


# --- evaluate: `suffice evaluate`: how good is a retriever, a gate, or an answer, on labelled questions, with intervals, beside others.

EXIT_THRESHOLD_CROSSED = (
    3  # the exit code: neither the caller's mistake nor ours, but what was asked to be told
)

app = typer.Typer(
    help="Measure retrieval, gates, answers and difficulty on labelled questions.",
    no_args_is_help=True,
    rich_markup_mode=None,
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
        str | None,
        typer.Option(
            "--library", "--store", help="Search this library or qdrant:// address, not the corpus."
        ),
    ] = None,
    retriever: Annotated[
        str, typer.Option("--retriever", help="Names, with commas; given: the hits in the files.")
    ] = "tfidf",
    k: Annotated[str, typer.Option("--k", help="Cut-offs, with commas.")] = "2,4,8",
    encoder: EncoderName = "wordllama",
    chunk_tokens: ChunkTokens = 0,
    chunk_overlap: ChunkOverlap = 32,
    limit: Limit = None,
    scheduler: Scheduler = None,
    blocks: CheckpointDir = None,
    skip_bad: SkipBad = False,
    out: RunFile = None,
    report: ReportFile = None,
    seed: Annotated[
        int, typer.Option("--seed", help="For the bootstrap, and for --collection.")
    ] = 42,
    json: Json = False,
) -> None:
    """Recall, complete recall and friends of one or more retrievers at one or more cut-offs."""
    with handle_errors(json=json):
        from contextlib import nullcontext

        from suffice.evaluation import retrieval as experiment
        from suffice.evaluation.report import require_report_extra, write_report
        from suffice.integrations import onnx  # noqa: F401 - importing it registers its encoders and rerankers
        from suffice.library import Library

        if report:
            require_report_extra()
        names, cutoffs = tuple(parse_list(retriever)), tuple(parse_numbers(k))
        settings = experiment.RetrievalSettings(
            names, cutoffs, encoder, chunk_tokens, chunk_overlap, limit, seed
        )
        data = open_dataset(
            collection=collection,
            dataset=dataset,
            path=path,
            questions=questions,
            corpus=corpus,
            skip_bad=skip_bad,
            seed=seed,
        )
        known = hash_files(path, questions, corpus)
        with (
            progress_bar(quiet=json) as progress,
            open_executor(scheduler, blocks) as place,
            Library.open(library) if library else nullcontext() as opened,
        ):
            store = opened and opened.store
            run = experiment.compare_retrievers(
                data, settings, store=store, data=known, progress=progress, mapped=place
            )
        if out:
            run.save(out)
        if report:
            write_report(run, report, command=typed_command())
        if json:
            print_json(experiment.retrieval_summary(run))
        else:
            for table in experiment.retrieval_tables(run):
                show_table(table)
        say_skipped(data.bad)
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
    judge: Annotated[
        str, typer.Option("--gate", help="'default', a folder, or 'fitted': on the other folds.")
    ] = "default",
    beside: OtherRetrievers = None,
    preset: Preset = "fast",
    reranker: RerankerName = None,
    policy: PolicyName = "f1",
    alpha: Alpha = 0.1,
    delta: Delta = 0.1,
    costs: CostList = "1,0.05,0.3",
    folds: Annotated[
        int, typer.Option("--folds", min=2, help="For --gate fitted, and for the baselines.")
    ] = 5,
    baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Measure the baselines beside it.")
    ] = True,
    cross_encoder: Annotated[
        bool, typer.Option("--cross-encoder", help="Those that need a cross-encoder, too; slow.")
    ] = False,
    encoder: EncoderName = "wordllama",
    limit: Limit = None,
    scheduler: Scheduler = None,
    blocks: CheckpointDir = None,
    skip_bad: SkipBad = False,
    out: RunFile = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option("--fail-if", help='Exit with 3 if so, like "risk@0.1>0.12"; may be repeated.'),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write what --fail-if found as JUnit XML here.")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", help="For folds, the bootstrap, and --collection.")
    ] = 42,
    json: Json = False,
) -> None:
    """Does a gate know when the evidence is complete? Discrimination, honesty, and what its decisions come to."""
    with handle_errors(json=json):
        from suffice.evaluation import ci_thresholds, gate_runs
        from suffice.evaluation import gate_evaluation as experiment
        from suffice.registry import RERANKERS
        from suffice.retrieval.builtin import DEFAULT_RERANKER

        wanted = ci_thresholds.parse_thresholds(fail_if or ())  # a mistake is told before the work
        if junit and not wanted:
            raise InputError(
                "--junit tells what --fail-if found, and there is no --fail-if",
                hint=ci_thresholds.EXAMPLE,
            )
        data = open_dataset(
            collection=collection,
            dataset=dataset,
            path=path,
            questions=questions,
            corpus=corpus,
            skip_bad=skip_bad,
            seed=seed,
        )
        with progress_bar(quiet=json) as progress, open_executor(scheduler, blocks) as place:
            run = experiment.evaluate_gate(
                data,
                retriever,
                k,
                judge,
                preset=preset,
                reranker=reranker,
                beside=parse_list(beside),
                folds=folds,
                seed=seed,
                choice=experiment.PolicyChoice(policy, alpha, delta, experiment.parse_costs(costs)),
                baselines=baselines,
                cross_encoder=RERANKERS.get(DEFAULT_RERANKER)() if cross_encoder else None,
                encoder=encoder,
                limit=limit,
                data=hash_files(path, questions, corpus),
                progress=progress,
                mapped=place,
            )
        if out:
            run.save(out)
        tested = ci_thresholds.check_thresholds(wanted, run, delta=delta) if wanted else ()
        if junit:
            write_atomically(junit, ci_thresholds.junit_xml(tested, run))
        if json:
            print_json(
                {
                    **gate_runs.gate_summary(run),
                    **({"fail_if": ci_thresholds.threshold_records(tested)} if wanted else {}),
                }
            )
        else:
            for table in (
                *gate_runs.gate_tables(run),
                *([ci_thresholds.thresholds_table(tested)] if wanted else []),
            ):
                show_table(table)
        say_skipped(data.bad)
        if out:
            say(f"wrote {out}")
        elif not json and judge == experiment.DEFAULT:
            say(
                "next: suffice fit with the same data and --out DIR makes a gate for it; --gate DIR judges that one"
            )
        if failed := [str(one.limit) for one in tested if one.failed]:
            say(f"failed: {', '.join(failed)}")
            raise typer.Exit(EXIT_THRESHOLD_CROSSED)
