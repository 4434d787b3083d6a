"""The retrieval experiment: named retrievers over a data set's own corpus, or over a given store, at several cut-offs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from suffice.datasets.dataset import Dataset
from suffice.errors import InputError
from suffice.evaluation.report import write_report
from suffice.evaluation.runs import GIVEN, RetrievalRun, evaluate_retrieval
from suffice.evaluation.searching import (
    RetrieverSet,
    encoder_for,
    index_documents,
    retriever_factories,
)
from suffice.evaluation.significance import interval
from suffice.evaluation.tables import (
    PublishedTable,
    Table,
    comparison_table,
    kind_table,
    retrieval_table,
)
from suffice.jobs import JobRunner, run_in_process
from suffice.protocols import Progress, Store
from suffice.retrieval.corpus import chunk_documents
from suffice.types import DocId, Document
from suffice_research.frames import published
from suffice_research.magaf import published as magaf_published

__all__ = [
    "RetrievalSettings",
    "compare_retrievers",
    "documents_in_chunks",
    "retrieval_report",
    "retrieval_summary",
    "retrieval_tables",
]

FIGURES = ("recall", "complete", "precision", "ndcg", "mrr", "map", "hits")
PUBLISHED: Mapping[str, tuple[PublishedTable, ...]] = {
    "controlled": (magaf_published.TABLE_3,),
    "frames": (published.TABLE_4, published.TABLE_5),
}


@dataclass(frozen=True)
class RetrievalSettings:
    """What can be chosen: which retrievers, at which cut-offs, over which vectors and chunks."""

    retrievers: tuple[str, ...]
    ks: tuple[int, ...] = (2, 4, 8)
    encoder: str = "wordllama"
    chunk_tokens: int = 0  # 0: documents stay whole
    chunk_overlap: int = 32
    limit: int | None = None  # only the first so many questions
    seed: int = 42


def compare_retrievers(
    dataset: Dataset,
    settings: RetrievalSettings,
    *,
    store: Store | None = None,
    data: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    mapped: JobRunner | None = None,
) -> RetrievalRun:
    """Search every question with every retriever. Without a `store` the data set's documents are indexed in memory.

    Hits that came with the questions are judged too, as "given"; naming only that searches nothing. `data` names the files that
    were read, with their hashes; the run keeps it. Gold that the corpus does not hold cannot be found and counts as missed.
    `mapped` is where the work is done, here unless told.
    """
    if not settings.retrievers:
        raise InputError("no retriever is named", hint="for example --retriever tfidf,bm25")
    chosen = retriever_factories(name for name in settings.retrievers if name != GIVEN)
    examples = list(islice(dataset.questions(), settings.limit))
    if not chosen and any(example.hits is None for example in examples):
        raise InputError(
            f"not every question of {dataset.name!r} comes with hits",
            hint="name a retriever, like bm25",
        )
    encoder = encoder_for(chosen, settings.encoder)
    if store is None:
        documents = documents_in_chunks(dataset, settings) if chosen else ()
        store = index_documents(
            documents, encoder, progress, encoder_name=settings.encoder, mapped=mapped
        )
    told = {name: value for name, value in asdict(settings).items() if name != "seed"}
    return evaluate_retrieval(
        dataset.name,
        examples,
        RetrieverSet.over(chosen, store, encoder, settings.encoder),
        settings.ks,
        parents=_parents(store),
        progress=progress,
        seed=settings.seed,
        settings={**told, "documents": len(store)},
        data=data,
        mapped=mapped or run_in_process,
    )


def documents_in_chunks(dataset: Dataset, settings: RetrievalSettings) -> Iterable[Document]:
    """The data set's documents, in chunks where the settings say so."""
    if not settings.chunk_tokens:
        return dataset.documents()
    return chunk_documents(
        dataset.documents(), tokens=settings.chunk_tokens, overlap=settings.chunk_overlap
    )


def _parents(store: Store) -> dict[DocId, DocId] | None:
    parents = {
        document.doc_id: document.parent for document in store.documents() if document.parent
    }
    return parents or None


def published_for(run: RetrievalRun) -> tuple[PublishedTable, ...]:
    """The papers' tables that this run can stand beside: those of its data set that report one of its retrievers."""
    return tuple(
        paper for paper in PUBLISHED.get(run.dataset, ()) if set(paper.figures) & set(run.names)
    )


def retrieval_tables(run: RetrievalRun) -> list[Table]:
    """What a person wants to see of a run: each figure, beside the paper's where there is one, by kind, and paired."""
    papers = published_for(run)
    shown = [_published_table(run, paper) for paper in papers] or [
        retrieval_table(run, intervals=True)
    ]
    middle = run.ks[len(run.ks) // 2]
    if len({kind for kind in run.kinds if kind}) > 1:
        shown.append(kind_table(run, f"complete@{middle}"))
    if len(run.names) > 1:
        shown.append(comparison_table(run, f"complete@{middle}"))
    return shown


def _published_table(run: RetrievalRun, paper: PublishedTable) -> Table:
    metrics = list(
        dict.fromkeys(metric.partition("@")[0] for row in paper.figures.values() for metric in row)
    )
    ks = [
        k
        for k in run.ks
        if any(f"{metric}@{k}" in row for row in paper.figures.values() for metric in metrics)
    ]
    return retrieval_table(run, metrics, ks=ks or run.ks, paper=paper)


def retrieval_summary(run: RetrievalRun) -> dict[str, Any]:
    """The run for a script: what was asked, and every figure of every retriever with its interval."""
    figures = {}
    for name in run.names:
        judged = run.judged(name)
        wanted = [f"{metric}@{k}" for k in run.ks for metric in FIGURES]
        figures[name] = {
            metric: asdict(interval(judged, metric, seed=run.seed)) for metric in wanted
        }
    return {
        "dataset": run.dataset,
        "n": sum(gold > 0 for gold in run.gold),
        "n_null": sum(gold == 0 for gold in run.gold),
        "k": list(run.ks),
        "seed": run.seed,
        "settings": dict(run.settings),
        "data": dict(run.data),
        "retrievers": figures,
        "failed": {system.name: dict(system.errors) for system in run.systems if system.errors},
        "seconds": dict(run.timings),
    }


def retrieval_report(run: RetrievalRun, path: Path, *, command: str = "") -> Path:
    """One HTML file that shows the run beside the papers it can stand beside."""
    return write_report(run, path, papers=published_for(run), command=command)
