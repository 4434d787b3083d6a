"""The retrieval experiment: named retrievers over a data set's own corpus, or over a given store, at several cut-offs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from suffice.datasets.dataset import Dataset
from suffice.errors import InputError
from suffice.evaluate.compare import interval
from suffice.evaluate.papers import Published, frames, magaf
from suffice.evaluate.report import write_report
from suffice.evaluate.runs import GIVEN, Run, evaluate_retrieval
from suffice.evaluate.tables import Table, comparison_table, kind_table, retrieval_table
from suffice.ports import ENCODERS, RETRIEVERS, Encoder, Store
from suffice.retrieve import named  # noqa: F401 - importing it registers our retrievers
from suffice.retrieve.chunks import chunked
from suffice.retrieve.corpus import searchable
from suffice.retrieve.memory import MemoryStore
from suffice.types import DocId, Document

__all__ = ["Settings", "compare_retrievers", "indexed", "published_for", "report", "summary", "tables"]

Progress = Callable[[str, int, int | None], None]
FIGURES = ("recall", "complete", "precision", "ndcg", "mrr", "map", "hits")
PUBLISHED: Mapping[str, tuple[Published, ...]] = {"controlled": (magaf.TABLE_3,), "frames": (frames.TABLE_4, frames.TABLE_5)}
_ENCODED_AT_ONCE = 1024


@dataclass(frozen=True)
class Settings:
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
    settings: Settings,
    *,
    store: Store | None = None,
    data: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Search every question with every retriever. Without a `store` the data set's documents are indexed in memory.

    Hits that came with the questions are judged too, as "given"; naming only that searches nothing. `data` names the files that
    were read, with their hashes; the run keeps it. Gold that the corpus does not hold cannot be found and counts as missed.
    """
    if not settings.retrievers:
        raise InputError("no retriever is named", hint="for example --retriever tfidf,bm25")
    factories = {name: RETRIEVERS.get(name) for name in settings.retrievers if name != GIVEN}
    examples = list(islice(dataset.examples(), settings.limit))
    if not factories and any(example.hits is None for example in examples):
        raise InputError(f"not every question of {dataset.name!r} comes with hits", hint="name a retriever, like bm25")
    # Whoever takes an encoder searches vectors; nobody else should have to wait for them.
    encoder = ENCODERS.get(settings.encoder)() if any(map(_takes_encoder, factories.values())) else None
    if store is None:
        store = indexed(dataset, settings, encoder, progress) if factories else MemoryStore()
    retrievers = {
        name: factory(store, encoder=encoder) if _takes_encoder(factory) else factory(store)
        for name, factory in factories.items()
    }
    chosen = {name: value for name, value in asdict(settings).items() if name != "seed"}
    return evaluate_retrieval(
        dataset.name,
        examples,
        retrievers,
        settings.ks,
        parents=_parents(store),
        progress=progress,
        seed=settings.seed,
        settings={**chosen, "documents": len(store)},
        data=data,
    )


def _takes_encoder(factory: Callable[..., Any]) -> bool:
    return "encoder" in inspect.signature(factory).parameters


def indexed(dataset: Dataset, settings: Settings, encoder: Encoder | None, progress: Progress | None = None) -> MemoryStore:
    """The data set's documents in memory: cut into chunks and with vectors, as the settings and the encoder say."""
    documents: Iterable[Document] = dataset.documents()
    if settings.chunk_tokens:
        documents = chunked(documents, tokens=settings.chunk_tokens, overlap=settings.chunk_overlap)
    listed = list(documents)
    if encoder is None:
        return MemoryStore(listed)
    return MemoryStore(listed, np.concatenate(list(_vectors(listed, encoder, progress))))


def _vectors(documents: list[Document], encoder: Encoder, progress: Progress | None) -> Iterator[Any]:
    yield np.zeros((0, encoder.dimension), np.float32)
    for start in range(0, len(documents), _ENCODED_AT_ONCE):
        yield encoder.encode([searchable(document) for document in documents[start : start + _ENCODED_AT_ONCE]])
        if progress is not None:
            progress("encoding", min(start + _ENCODED_AT_ONCE, len(documents)), len(documents))


def _parents(store: Store) -> dict[DocId, DocId] | None:
    parents = {document.doc_id: document.parent for document in store.documents() if document.parent}
    return parents or None


def published_for(run: Run) -> tuple[Published, ...]:
    """The papers' tables that this run can stand beside: those of its data set that report one of its retrievers."""
    return tuple(paper for paper in PUBLISHED.get(run.dataset, ()) if set(paper.figures) & set(run.names))


def tables(run: Run) -> list[Table]:
    """What a person wants to see of a run: each figure, beside the paper's where there is one, by kind, and paired."""
    papers = published_for(run)
    shown = [_beside(run, paper) for paper in papers] or [retrieval_table(run, intervals=True)]
    middle = run.ks[len(run.ks) // 2]
    if len({kind for kind in run.kinds if kind}) > 1:
        shown.append(kind_table(run, f"complete@{middle}"))
    if len(run.names) > 1:
        shown.append(comparison_table(run, f"complete@{middle}"))
    return shown


def _beside(run: Run, paper: Published) -> Table:
    metrics = list(dict.fromkeys(metric.partition("@")[0] for row in paper.figures.values() for metric in row))
    ks = [k for k in run.ks if any(f"{metric}@{k}" in row for row in paper.figures.values() for metric in metrics)]
    return retrieval_table(run, metrics, ks=ks or run.ks, paper=paper)


def summary(run: Run) -> dict[str, Any]:
    """The run for a script: what was asked, and every figure of every retriever with its interval."""
    figures = {}
    for name in run.names:
        judged = run.judged(name)
        wanted = [f"{metric}@{k}" for k in run.ks for metric in FIGURES]
        figures[name] = {metric: asdict(interval(judged, metric, seed=run.seed)) for metric in wanted}
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


def report(run: Run, path: Path, *, command: str = "") -> Path:
    """One HTML file that shows the run beside the papers it can stand beside."""
    return write_report(run, path, papers=published_for(run), command=command)
