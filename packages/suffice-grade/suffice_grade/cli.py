"""`suffice grade` makes a graded benchmark; `suffice evaluate difficulty` judges systems on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.build import open_folder
from suffice.cli.loaders import DataSource, open_executor, open_model
from suffice.errors import InputError

if TYPE_CHECKING:
    from suffice.answering.budget import Budget
    from suffice.datasets.dataset import Dataset
    from suffice.protocols import LanguageModel
    from suffice_grade.difficulty_matrix import MissingLinks
    from suffice_grade.pipeline import Benchmark, Stages

FORMS = "single,chain,comparison,bridge,intersection,condition,yes_no,news"
MODEL_STAGES = "claims,triples,equivalences,questions,validation"


@output.command
def grade(
    corpus_path: Annotated[
        Path | None, Argument(metavar="CORPUS", help="Corpus: a file, or a folder of texts.")
    ] = None,
    out: Annotated[Path, Option(help="Folder of the benchmark; run again to resume.")] = Path(
        "benchmark"
    ),
    dataset: opt.DatasetFormat = "jsonl",
    corpus: opt.CorpusFile = None,
    encoder: opt.EncoderName = "wordllama",
    per_hop: Annotated[int, Option(min=1, help="How many chains of each length to try.")] = 400,
    per_form: Annotated[
        int, Option(min=0, help="How many questions of each other form to try.")
    ] = 400,
    longest: Annotated[int, Option(min=2, max=5, help="Facts in the longest chain.")] = 5,
    forms: Annotated[str, Option(help="Question forms to generate.")] = FORMS,
    twins: Annotated[float, Option(min=0, max=1, help="Share of unanswerable twins.")] = 0.25,
    lookalikes: Annotated[
        float, Option(min=0, max=1, help="Share of look-alike twins, with a changed document.")
    ] = 0.1,
    parse: opt.Parse = False,
    model: opt.ModelName = None,
    base_url: opt.BaseUrl = None,
    timeout_s: opt.ModelTimeout = 60.0,
    max_tokens: Annotated[int, Option(min=16, help="model: tokens per answer.")] = 1024,
    model_stages: Annotated[str, Option(help="model: the stages that use it.")] = MODEL_STAGES,
    max_requests: Annotated[int | None, Option(min=0, help="model: maximum requests.")] = None,
    max_cost: Annotated[
        float | None, Option(min=0, help="model: maximum cost, by --prices.")
    ] = None,
    prices: opt.ModelPrices = "0,0",
    fallback: Annotated[
        bool, Option("--fallback", help="model: fall back to rules where it fails.")
    ] = False,
    report: opt.ReportFile = None,
    scheduler: opt.Scheduler = None,
    checkpoint: opt.CheckpointDir = None,
    skip_bad: opt.SkipBad = False,
    seed: opt.Seed = 42,
    json: opt.Json = False,
) -> None:
    """Make a graded multi-hop benchmark from a corpus."""
    from suffice.answering.budget import Budget
    from suffice.evaluation.report import require_report_extra
    from suffice_grade.benchmark_files import audit_benchmark, benchmark_report
    from suffice_grade.parsed_relations import find_model
    from suffice_grade.pipeline import (
        BenchmarkSettings,
        NoQuestionsError,
        build_benchmark,
        check_out,
    )

    if report:
        require_report_extra()
    check_out(out)  # before the work
    if parse:
        find_model()
    chosen, counts = tuple(output.parse_list(forms)), (per_hop, per_form, longest)
    if not chosen:
        raise InputError("--forms names no form of question", hint=f"for example --forms {FORMS}")
    settings = BenchmarkSettings(seed, *counts, chosen, twins, encoder, lookalikes, parse)
    opened = open_model(
        model, base_url, timeout_s=timeout_s, max_tokens=max_tokens, seed=seed, repairs=0
    )
    data = _open_corpus(corpus_path, corpus, dataset, skip_bad)
    budget = Budget(
        calls=max_requests, tokens=None, money=max_cost, prices=output.parse_prices(prices)
    )
    checkpoint = checkpoint or (out / ".blocks" if scheduler else None)
    with (
        output.progress_bar(quiet=json) as progress,
        open_executor(scheduler, checkpoint) as executor,
        _open_stages(
            opened, model_stages, budget, out, fallback=fallback, progress=progress
        ) as stages,
    ):
        work: Any = {"stages": stages, "progress": progress, "run": executor}
        try:
            built = build_benchmark(data.documents(), out, settings=settings, **work)
        except NoQuestionsError as error:
            if not data.bad.count:
                raise
            # A table in another encoding looks like an empty corpus.
            message = f"{error}; the first problem: {data.bad.examples[0]}"
            raise InputError(message, hint=error.hint) from error
    audit = audit_benchmark(out)
    output.say_skipped(data.bad)
    if json:
        output.print_json({**built.as_json(), "skipped": data.bad.count, "audit": audit.as_json()})
    else:
        _show(built, audit.lines())
    if report:
        by = model_stages if model else "nothing"
        shown = {"seed": str(seed), "encoder": encoder, "by a model": by, "model": model or "--"}
        command = output.typed_command()
        output.say_written(benchmark_report(out, audit, report, settings=shown, command=command))
    if not json:
        output.say(f"\nnext: suffice fit --benchmark {out} --out gate")


@contextmanager
def _open_stages(
    model: LanguageModel | None, names: str, budget: Budget, out: Path, **options: Any
) -> Iterator[Stages]:
    """The stages that the model runs; at the end, also after an error, say what it cost."""
    from suffice.integrations.openai import CachedModel
    from suffice_grade.llm import BudgetedModel, LLMClient, make_llm_stages
    from suffice_grade.pipeline import Stages

    if model is None:
        yield Stages()
        return
    budgeted = BudgetedModel(model, budget)
    client = LLMClient(CachedModel(budgeted, out / "answers.db"), **options)
    stages = make_llm_stages(client, output.parse_list(names))
    try:
        yield stages
    finally:
        output.say(budgeted.line())
        for prompt, count in client.given_up.items():
            output.say(f"  {prompt}: {count:,} answers could not be read")
        for prompt, reason in client.disabled.items():
            output.say(f"  {prompt}: rules took over from the model: {reason}")


def _open_corpus(path: Path | None, corpus: Path | None, dataset: str, skip_bad: bool) -> Dataset:
    """The corpus in a data set's folder, the file itself, or a folder of texts."""
    from suffice.datasets import load

    if path is None and corpus is None and dataset in ("jsonl", "folder"):
        hint = "for example: suffice grade documents.jsonl --out benchmark"
        raise InputError("the corpus is missing", hint=hint)
    if corpus is None and path is not None and path.is_dir() and dataset != "folder":
        places = [path / name for name in ("documents.jsonl", "corpus.jsonl")]
        places += sorted(path.glob("*corpus*.json*"))
        corpus = next((one for one in places if one.is_file()), None)
    if corpus is None and dataset in ("jsonl", "folder"):
        source = DataSource(None, None if dataset == "jsonl" else dataset, path, None, None)
        try:
            folder = open_folder(source, skip_bad)
        except InputError as error:
            message = f"the folder {path} has no documents.jsonl and no corpus.jsonl, and no text"
            raise InputError(message, hint=error.hint) from error
        if folder is not None:
            return folder.dataset()
    return load(dataset, corpus=corpus or path, skip_bad=skip_bad)


def _show(built: Benchmark, audit: list[str]) -> None:
    for name, count in built.counts.items():
        print(f"{name:<28} {count:,}")
    for hops, count in built.by_hops.items():
        print(f"  hops {hops:<21} {count:,}")
    for kind, count in built.by_kind.items():
        print(f"  kind {kind:<21} {count:,}")
    for reason, count in built.dropped.items():
        print(f"  dropped: {reason:<17} {count:,}")
    if not built.done:
        output.say("nothing to do: all stages are cached")
    print("\n".join(audit))


@output.command
def difficulty(
    results: Annotated[
        Path, Argument(help="JSON Lines with question_id and correct, ...; or a run.")
    ],
    benchmark: Annotated[Path, Option(help="A folder made by `suffice grade`, or a data set.")],
    dataset: opt.DatasetFormat = "jsonl",
    by: Annotated[str | None, Option(help="What to score: correct, answer or retrieved.")] = None,
    k: Annotated[int, Option(min=1, help="With --by retrieved: how many count.")] = 10,
    match: Annotated[
        str, Option(help="With --by answer: em, token_f1 or word_overlap, at 0.5.")
    ] = "em",
    aggregation: Annotated[
        str, Option(help="How to aggregate similarities: min, power or mean.")
    ] = "min",
    encoder: opt.EncoderName = "wordllama",
    plot: opt.PlotFile = None,
    report: opt.ReportFile = None,
    skip_bad: opt.SkipBad = False,
    seed: opt.Seed = 42,
    json: opt.Json = False,
) -> None:
    """Show a system's error rates by hops and by evidence distance."""
    from suffice.datasets import load
    from suffice.evaluation.report import require_report_extra
    from suffice.integrations import onnx  # noqa: F401 - registers its encoders
    from suffice.registry import ENCODERS
    from suffice.storage import BadRecords
    from suffice_grade import difficulty_matrix as experiment
    from suffice_grade.difficulty_matrix import question_difficulty, read_results

    if plot or report:
        require_report_extra()
    plot_format = output.parse_plot_format(plot)
    bad = BadRecords(skip=skip_bad)
    data = load(dataset, benchmark, skip_bad=skip_bad)
    questions = list(data.questions())
    errors = read_results(results, questions, by=by, k=k, match=match, bad=bad)
    output.say_skipped(bad)
    difficulties = question_difficulty(questions, data.documents(), ENCODERS.get(encoder)())
    found = [
        experiment.measure_difficulty(name, difficulties, wrong, aggregation=aggregation, seed=seed)
        for name, wrong in errors.items()
    ]
    links = _read_missing_links(benchmark)
    if json:
        output.print_json(experiment.difficulty_summary(found, links))
    else:
        output.show_tables(experiment.difficulty_tables(found, links))
        for line in experiment.difficulty_findings(found):
            output.say(line)
    if difficulties.left_out:
        output.say(
            f"skipped {difficulties.left_out:,} questions without gold, or with gold not in "
            f"the corpus"
        )
    if plot:
        for at, system in enumerate(found, start=1):
            several = plot.with_name(f"{plot.stem}-{at}{plot.suffix}")
            output.write_plot(
                plot if len(found) == 1 else several, experiment.heatmap(system), plot_format
            )
    if report:
        settings = {
            "benchmark": benchmark.name,
            "results": results.name,
            "encoder": encoder,
            "seed": str(seed),
        }
        written = experiment.difficulty_report(
            found, report, links=links, settings=settings, command=output.typed_command()
        )
        output.say_written(written)


def _read_missing_links(benchmark: Path) -> MissingLinks | None:
    """For a benchmark made by suffice: which questions need missing links."""
    from suffice.storage import BadRecords, read_json_records
    from suffice_grade.difficulty_matrix import find_missing_links

    file = benchmark / "questions.jsonl"
    if not file.is_file():
        return None
    records = [record.value for record in read_json_records(file, BadRecords())]
    return find_missing_links(records) if any("path" in record for record in records) else None
