"""The page of retrieval: each figure comes from a stored run summary, and each summary from one command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.generators.measuring import run_command
from docs.generators.paths import RESULTS, RUNS
from suffice.storage import write_atomically
from suffice_research.frames import published as published_module
from suffice_research.magaf import published as magaf_published
from suffice_research.published import PublishedTable


@dataclass(frozen=True)
class Experiment:
    """One command, what its table shows, and the published tables that stand beside it."""

    name: str
    title: str
    says: str
    arguments: str  # $DATA stands for the folder of real data
    metrics: tuple[str, ...]
    papers: tuple[PublishedTable, ...] = ()

    @property
    def command(self) -> str:
        return f"suffice evaluate retrieval {self.arguments}"

    @property
    def stored(self) -> Path:
        return RUNS / f"{self.name}.json"


WIKI = "--dataset {0} --questions $DATA/{0}/{0}.json --corpus $DATA/{0}/{0}_corpus.json"
EXPERIMENTS = (
    Experiment(
        "controlled",
        "The controlled collection, beside MAGAF's Table 3",
        "The TF-IDF row is a setting of the generator (decision 4). MAGAF gives no weights for the other blends; ours were "
        "chosen near its rows after seeing results (decision 6), so that hybrid-metagraph stands first is no finding: a 1:1 "
        "dense-proxy would stand above it. The distance of the metadata-aware retrievers from plain TF-IDF is a finding.",
        "--collection controlled --retriever tfidf,metadata-tfidf,dense-proxy,graph,hybrid-metagraph,bm25,hybrid --k 2,4,8",
        ("recall", "complete", "ndcg", "mrr"),
        (magaf_published.TABLE_3,),
    ),
    Experiment(
        "frames",
        "FRAMES, titles only, beside the paper's Tables 4 and 5",
        "Recall is the paper's coverage, complete its strict correctness. Which links count: decision 3.",
        "--dataset frames --path $DATA/frames/test.tsv --retriever bm25,hybrid-title,tfidf-char,tfidf-word --k 4,8,10,15,25",
        ("recall", "complete", "mrr"),
        (published_module.TABLE_4, published_module.TABLE_5),
    ),
    *(
        Experiment(
            name,
            title,
            "A sample of the questions, a pooled corpus, static embeddings. The bridge retriever learned from these questions: "
            "its figures, on folds and with the data set left out, have a page of their own.",
            f"{WIKI.format(name)} --retriever bm25,dense,hybrid,rrf,graph,ppr,iterative --k 2,5,10",
            metrics,
        )
        for name, title, metrics in (
            ("2wikimultihopqa", "2WikiMultiHopQA", ("recall", "complete", "mrr")),
            ("hotpotqa", "HotpotQA", ("recall", "complete", "mrr")),
            ("musique", "MuSiQue", ("recall", "complete", "mrr")),
        )
    ),
    Experiment(
        "multihop_rag",
        "MultiHop-RAG",
        "Bodies are partial in our copy, so retrieval is easier than on the full corpus: compare rows, not published figures.",
        "--dataset multihop_rag --path $DATA/multihop_rag --retriever tfidf,bm25,dense,hybrid,hybrid-metagraph --k 4,10",
        ("recall", "complete", "mrr", "hits"),
    ),
)
ALIASES = {
    "recall": ("coverage",),
    "complete": ("strict",),
}  # what a metric is called in the FRAMES paper


def pages() -> dict[Path, str]:
    return {RESULTS / "retrieval.md": page()}


def page() -> str:
    """docs/results/retrieval.md"""
    lines = [
        "# Retrieval: what was measured\n",
        "In brackets: 95 % bootstrap interval over questions. In parentheses: the paper's figure. `$DATA` is the folder of "
        "real data (see CONTRIBUTING). All of it again: `make results docs`.\n",
    ]
    for experiment in EXPERIMENTS:
        if experiment.stored.is_file():
            lines += _section(experiment, json.loads(experiment.stored.read_text(encoding="utf-8")))
    return "\n".join(lines)


def _section(experiment: Experiment, summary: dict[str, Any]) -> Iterator[str]:
    yield f"## {experiment.title}\n"
    nulls = f" and {summary['n_null']:,} null questions" if summary["n_null"] else ""
    yield f"{experiment.says} n = {summary['n']:,} questions{nulls}, {summary['settings']['documents']:,} documents.\n"
    yield f"    {experiment.command}\n"
    yield "| retriever | k | " + " | ".join(experiment.metrics) + " |"
    yield "|---|---:|" + "---:|" * len(experiment.metrics)
    for name, figures in summary["retrievers"].items():
        for k in summary["k"]:
            cells = [
                _cell(experiment, name, metric, k, figures[f"{metric}@{k}"])
                for metric in experiment.metrics
            ]
            yield f"| {name} | {k} | " + " | ".join(cells) + " |"
    yield ""


def _cell(
    experiment: Experiment, name: str, metric: str, k: int, figure: dict[str, float | None]
) -> str:
    names = [f"{one}@{k}" for one in (metric, *ALIASES.get(metric, ()))]
    published = next(
        (
            value
            for paper in experiment.papers
            for one in names
            if (value := paper.get(name, one)) is not None
        ),
        None,
    )
    measured = (
        "--"
        if figure["value"] is None
        else f"{figure['value']:.3f} [{figure['low']:.3f}, {figure['high']:.3f}]"
    )
    return measured if published is None else f"{measured} ({published:.3f})"


def measure(data: Path, work: Path) -> None:
    """Run every experiment, and store its summary without its timings."""
    for experiment in EXPERIMENTS:
        summary = json.loads(run_command(experiment.command, data, "--json"))
        del summary["seconds"]
        write_atomically(experiment.stored, json.dumps(summary, indent=1) + "\n")
