"""`suffice grade`: build a graded multi-hop benchmark from a corpus; resumable."""

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
    from suffice.benchmark.pipeline import Benchmark, Stages
    from suffice.datasets.dataset import Dataset
    from suffice.protocols import LanguageModel

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
    from suffice.benchmark.parsed_relations import find_model
    from suffice.benchmark.pipeline import (
        BenchmarkSettings,
        NoQuestionsError,
        build_benchmark,
        check_out,
    )
    from suffice.evaluation.benchmark_files import audit_benchmark, benchmark_report
    from suffice.evaluation.report import require_report_extra

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
    from suffice.benchmark.llm import BudgetedModel, LLMClient, make_llm_stages
    from suffice.benchmark.pipeline import Stages
    from suffice.integrations.openai import CachedModel

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
