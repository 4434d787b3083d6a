"""`suffice grade`: a graded multi-hop benchmark from a corpus, resumable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli.loaders import open_executor
from suffice.cli.options import (
    BaseUrl,
    CheckpointDir,
    CorpusFile,
    DatasetFormat,
    EncoderName,
    Json,
    ModelName,
    ModelPrices,
    ModelTimeout,
    ReportFile,
    Scheduler,
    SkipBad,
)
from suffice.cli.output import (
    handle_errors,
    parse_list,
    parse_prices,
    print_json,
    progress_bar,
    say,
    say_skipped,
    typed_command,
)

if TYPE_CHECKING:
    from suffice.answering.budget import Budget
    from suffice.benchmark.pipeline import Benchmark, Stages
    from suffice.protocols import LanguageModel, Progress


def grade(
    corpus_path: Annotated[
        Path | None, typer.Argument(metavar="CORPUS", help="A corpus file or folder.")
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", help="The benchmark's folder; a second run goes on where the first was."
        ),
    ] = Path("benchmark"),
    dataset: DatasetFormat = "jsonl",
    corpus: CorpusFile = None,
    encoder: EncoderName = "wordllama",
    per_hop: Annotated[
        int, typer.Option("--per-hop", min=1, help="Chains of each length to try.")
    ] = 400,
    per_form: Annotated[
        int, typer.Option("--per-form", min=0, help="Questions of each other form to try.")
    ] = 400,
    longest: Annotated[
        int, typer.Option("--longest", min=2, max=5, help="Facts in the longest chain.")
    ] = 5,
    forms: Annotated[
        str, typer.Option("--forms", help="With commas.")
    ] = "chain,comparison,bridge,intersection",
    twins: Annotated[
        float, typer.Option("--twins", min=0, max=1, help="Share of unanswerable twins.")
    ] = 0.25,
    model: ModelName = None,
    base_url: BaseUrl = None,
    timeout_s: ModelTimeout = 60.0,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=16, help="Of one answer of the model.")
    ] = 1024,
    by_model: Annotated[
        str, typer.Option("--by-model", help="model: the stages that it does, with commas.")
    ] = "claims,triples,equivalences,questions,validation",
    max_requests: Annotated[
        int | None, typer.Option("--max-requests", min=0, help="model: at most so many.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0, help="model: at most so much, by --prices.")
    ] = None,
    prices: ModelPrices = "0,0",
    fallback: Annotated[
        bool, typer.Option("--fallback", help="model: where it fails, rules go on.")
    ] = False,
    report: ReportFile = None,
    scheduler: Scheduler = None,
    blocks: CheckpointDir = None,
    skip_bad: SkipBad = False,
    seed: Annotated[
        int, typer.Option("--seed", help="Same corpus, settings and seed: same bytes.")
    ] = 42,
    json: Json = False,
) -> None:
    """Make questions with answers, gold documents and difficulty from a corpus alone."""
    with handle_errors(json=json):
        from suffice.answering.budget import Budget
        from suffice.benchmark.pipeline import BenchmarkSettings, Stages
        from suffice.benchmark.pipeline import build_benchmark as grade
        from suffice.datasets import load
        from suffice.evaluation.benchmark_files import audit_benchmark, benchmark_report
        from suffice.evaluation.report import require_report_extra
        from suffice.integrations.openai import OpenAIModel

        if report:
            require_report_extra()
        settings = BenchmarkSettings(
            seed, per_hop, per_form, longest, tuple(parse_list(forms)), twins, encoder
        )
        data = load(dataset, corpus=corpus or _corpus_file(corpus_path, dataset), skip_bad=skip_bad)
        budget = Budget(
            calls=max_requests, tokens=None, money=max_cost, prices=parse_prices(prices)
        )
        kept = blocks or (out / ".blocks" if scheduler else None)
        with progress_bar(quiet=json) as progress, open_executor(scheduler, kept) as place:
            asked = None
            if model is not None:
                client = OpenAIModel(
                    model,
                    base_url=base_url,
                    timeout_s=timeout_s,
                    max_tokens=max_tokens,
                    seed=seed,
                    repairs=0,
                )
                asked = _ModelStages(client, budget, out, fallback=fallback, progress=progress)
            stages = asked.stages(parse_list(by_model)) if asked else Stages()
            try:
                made = grade(
                    data.documents(),
                    out,
                    settings=settings,
                    stages=stages,
                    progress=progress,
                    mapped=place,
                )
            finally:
                if asked:
                    asked.tell()
        found = audit_benchmark(out)
        say_skipped(data.bad)
        if json:
            print_json({**made.as_json(), "skipped": data.bad.count, "audit": found.as_json()})
        else:
            _show(made)
            for line in found.lines():
                print(line)
        if report:
            told = {
                "seed": str(seed),
                "encoder": encoder,
                "by a model": by_model if model else "nothing",
                "model": model or "--",
            }
            say(
                f"wrote {benchmark_report(out, found, report, settings=told, command=typed_command())}"
            )
        if not json:
            say(f"\nnext: suffice fit --benchmark {out} --out gate")


class _ModelStages:
    """The model that does some of the stages: metered inside its cache, which lives with the benchmark."""

    def __init__(
        self, model: LanguageModel, budget: Budget, out: Path, *, fallback: bool, progress: Progress
    ) -> None:
        from suffice.benchmark.llm import BudgetedModel, LLMClient
        from suffice.integrations.openai import CachedModel

        self.metered = BudgetedModel(model, budget)
        self.asker = LLMClient(
            CachedModel(self.metered, out / "answers.db"), fallback=fallback, progress=progress
        )

    def stages(self, chosen: list[str]) -> Stages:
        from suffice.benchmark.llm import make_llm_stages

        return make_llm_stages(self.asker, chosen)

    def tell(self) -> None:
        say(self.metered.line())
        for prompt, count in self.asker.given_up.items():
            say(f"  {prompt}: {count:,} answers could not be read")
        for prompt, why in self.asker.down.items():
            say(f"  {prompt}: rules went on without the model: {why}")


def _corpus_file(path: Path | None, dataset: str) -> Path | None:
    """The corpus inside a data set's folder, or the file itself."""
    from suffice.errors import InputError

    if path is None and dataset == "jsonl":
        raise InputError(
            "no corpus is given", hint="for example: suffice grade documents.jsonl --out benchmark"
        )
    if path is None or not path.is_dir():
        return path
    for name in ("documents.jsonl", "corpus.jsonl"):
        if (path / name).is_file():
            return path / name
    found = sorted(path.glob("*corpus*.json*"))
    if not found and dataset == "jsonl":
        raise InputError(
            f"the folder {path} holds no documents.jsonl and no corpus.jsonl",
            hint="give the path of the corpus file",
        )
    return found[0] if found else path


def _show(made: Benchmark) -> None:
    for name, count in made.counts.items():
        print(f"{name:<28} {count:,}")
    for hops, count in made.by_hops.items():
        print(f"  {hops} hops{'':<20} {count:,}")
    for kind, count in made.by_kind.items():
        print(f"  kind {kind:<21} {count:,}")
    for why, count in made.dropped.items():
        print(f"  dropped: {why:<17} {count:,}")
    if not made.done:
        say("everything stood already")
