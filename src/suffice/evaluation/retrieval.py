"""Evaluate retrievers: search every question with every system, and store what was found.

Two runs with the same seed are identical except for the timings.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError, NotReadyError
from suffice.evaluation.metrics import judge_rankings
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.retrieval_runs import RetrievalRun, SystemResult, check_ks
from suffice.evaluation.searching import (
    GIVEN,
    RetrieverSet,
    encoder_for,
    index_documents,
    retriever_factories,
    takes_encoder,
)
from suffice.jobs import Job, JobRunner, run_in_process
from suffice.protocols import Progress, Retriever, Store
from suffice.registry import ENCODERS, RETRIEVERS
from suffice.retrieval.corpus import chunk_documents
from suffice.storage import package_versions
from suffice.types import DocId, Document, Hit

__all__ = [
    "RetrievalSettings",
    "compare_retrievers",
    "evaluate_retrieval",
]

_FIRST_DEPTH, _MOST_DEPTH = 4, 16  # chunks searched per wanted parent, first and at most
Parents = Mapping[DocId, DocId] | Callable[[DocId], DocId]


@dataclass(frozen=True)
class RetrievalSettings:
    """The settings: which retrievers, at which cut-offs, over which vectors and chunks."""

    retrievers: tuple[str, ...]  # or RETRIEVER:ENCODER
    ks: tuple[int, ...] = (2, 4, 8)
    encoder: str = "wordllama"  # for a library its own, "" if it has no vectors
    chunk_tokens: int = 0  # 0: whole documents
    chunk_overlap: int = 32
    limit: int | None = None  # only the first questions
    seed: int = 42


def compare_retrievers(
    dataset: Dataset,
    settings: RetrievalSettings,
    *,
    store: Store | None = None,
    data: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    job_runner: JobRunner | None = None,
) -> RetrievalRun:
    """Search every question with every retriever, in `store` or in the data set's own documents.

    Hits that came with the questions are evaluated as "given"; if that is the only name, nothing is
    searched. `data` has the hashes of the input files and is stored in the run. `job_runner` runs
    the work.
    """
    systems = choose_systems(settings, own_vectors=store is not None)
    questions = load_questions(dataset, settings, searched=bool(systems))
    groups: dict[str, list[System]] = {}
    for system in systems:
        groups.setdefault(system.encoder, []).append(system)
    runs = []
    for encoder_name, group in (groups or {settings.encoder: []}).items():
        factories = retriever_factories(one.retriever for one in group)
        encoder, searched = encoder_for(factories, encoder_name), store
        if searched is None:
            documents = load_documents(dataset, settings) if factories else ()
            searched = index_documents(
                documents, encoder, progress, encoder_name=encoder_name, job_runner=job_runner
            )
        parents = {one.doc_id: one.parent for one in searched.documents() if one.parent}
        run = evaluate_retrieval(
            dataset.name,
            questions,
            RetrieverSet.over(factories, searched, encoder, encoder_name),
            settings.ks,
            parents=parents or None,
            progress=progress,
            seed=settings.seed,
            settings={**chosen_settings(settings), "documents": len(searched)},
            data=data,
            job_runner=job_runner or run_in_process,
        )
        runs.append(_renamed(run, {one.retriever: one.name for one in group}))
    return _join_runs(runs, [one.name for one in systems])


@dataclass(frozen=True, slots=True)
class System:
    """A retriever over the vectors of an encoder, named RETRIEVER or RETRIEVER:ENCODER."""

    name: str
    retriever: str
    encoder: str


def choose_systems(settings: RetrievalSettings, *, own_vectors: bool = False) -> list[System]:
    """The systems to search with; InputError or NotReadyError if one cannot run here."""
    if not settings.retrievers:
        raise InputError("no retriever is named", hint="for example --retriever tfidf,bm25")
    names = [name for name in settings.retrievers if name != GIVEN]
    systems = [parse_system(name, settings.encoder) for name in names]
    for system in systems:
        check_system(system, own_vectors=own_vectors)
    first = {(one.retriever, one.encoder): one for one in reversed(systems)}
    return [one for one in dict.fromkeys(systems) if one in first.values()]


def check_system(system: System, *, own_vectors: bool = False) -> None:
    """Fail before the work if a system cannot run."""
    name, alone = system.name, f"name {system.retriever} alone"
    if not takes_encoder(RETRIEVERS.get(system.retriever)):
        if ":" in name:
            raise InputError(f"{name}: {system.retriever} takes no encoder", hint=alone)
    elif ":" in name and own_vectors:
        raise InputError(f"{name}: a library has its own vectors", hint=alone)
    elif not system.encoder:
        hint = "name bm25, or build the library again with --encoder wordllama"
        raise NotReadyError(f"{name} needs vectors, and the library has none", hint=hint)
    else:
        ENCODERS.get(system.encoder)


def parse_system(name: str, encoder: str) -> System:
    retriever, colon, own = name.partition(":")
    if colon and not own:
        hint = "for example dense:bge-small-en-v1.5"
        raise InputError(f"{name!r} names no encoder after the colon", hint=hint)
    return System(name, retriever, own or encoder)


def load_questions(
    dataset: Dataset, settings: RetrievalSettings, *, searched: bool
) -> list[GoldQuestion]:
    questions = list(islice(dataset.questions(), settings.limit))
    if not searched and any(one.hits is None for one in questions):
        raise InputError(
            f"not every question of {dataset.name!r} comes with hits",
            hint="name a retriever, like bm25",
        )
    return questions


def load_documents(dataset: Dataset, settings: RetrievalSettings) -> Iterable[Document]:
    if not settings.chunk_tokens:
        return dataset.documents()
    sizes = {"tokens": settings.chunk_tokens, "overlap": settings.chunk_overlap}
    return chunk_documents(dataset.documents(), **sizes)


def chosen_settings(settings: RetrievalSettings) -> dict[str, Any]:
    return {name: value for name, value in asdict(settings).items() if name != "seed"}


def _renamed(run: RetrievalRun, names: Mapping[str, str]) -> RetrievalRun:
    systems = tuple(replace(one, name=names.get(one.name, one.name)) for one in run.systems)
    timings = {names.get(name, name): seconds for name, seconds in run.timings.items()}
    return replace(run, systems=systems, timings=timings)


def _join_runs(runs: Sequence[RetrievalRun], names: Sequence[str]) -> RetrievalRun:
    """The systems of all runs in the order of their names; "given" comes first."""
    found = {one.name: one for run in runs for one in run.systems}
    given = [GIVEN] if GIVEN in found else []
    systems = tuple(found[name] for name in (*given, *names))
    timings = {name: run.timings[name] for name in names for run in runs if name in run.timings}
    return replace(runs[0], systems=systems, timings=timings)


def evaluate_retrieval(
    dataset: str,
    questions: Iterable[GoldQuestion],
    retrievers: Mapping[str, Retriever],
    ks: Sequence[int] = (2, 4, 8),
    *,
    parents: Parents | None = None,
    batch: int = 64,
    progress: Progress | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    data: Mapping[str, str] | None = None,
    commit: str | None = None,
    job_runner: JobRunner = run_in_process,
) -> RetrievalRun:
    """Search every question with every retriever and store the ranks of the gold.

    With `parents` (chunk id -> document id), chunks are folded into their parents: the first chunk
    gives the parent's rank. Hits that came with the questions are the system "given".
    """
    questions, cutoffs = list(questions), check_ks(ks)
    ids = [one.question.question_id for one in questions]
    given = all(one.hits is not None for one in questions)
    check_questions(ids, retrievers, given=given, batch=batch)
    fold = parent_of(parents)
    systems: list[SystemResult] = []
    if given:
        ranked = [RankedIds.of(_fold_hits(one.hits or (), fold)) for one in questions]
        systems.append(system_result(GIVEN, questions, ranked, max(cutoffs)))
    search = partial(_search_block, depth=max(cutoffs))
    found = _search_all(retrievers, questions, parents, search, batch, job_runner, progress)
    for name in retrievers:
        systems.append(system_result(name, questions, found[name], max(cutoffs)))
    return RetrievalRun(
        dataset=dataset,
        ks=cutoffs,
        question_ids=tuple(ids),
        kinds=tuple(one.gold.kind for one in questions),
        gold=tuple(len(set(one.gold.doc_ids)) for one in questions),
        systems=tuple(systems),
        seed=seed,
        settings={"batch": batch, "folded": parents is not None, **(settings or {})},
        data=dict(data or {}),
        packages=package_versions(),
        commit=commit if commit is not None else source_commit(),
        timings={name: sum(one.seconds for one in found[name]) for name in retrievers},
    )


def check_questions(
    ids: Sequence[str], retrievers: Collection[str], *, given: bool, batch: int
) -> None:
    if not ids:
        raise InputError("there are no questions to evaluate", hint="check the questions file")
    if len(set(ids)) < len(ids):
        twice = next(one for at, one in enumerate(ids) if one in ids[:at])
        raise InputError(
            f"question id {twice!r} occurs twice", hint="give each question its own id"
        )
    if batch < 1:
        raise InputError(f"batch is {batch}, expected at least 1")
    if GIVEN in retrievers and given:
        raise InputError(
            f"the name {GIVEN!r} is taken by the hits that came with the questions",
            hint="choose another name",
        )
    if not retrievers and not given:
        raise InputError(
            "there is nothing to evaluate: no retriever, and not every question has hits",
            hint="name a retriever, like bm25",
        )


def parent_of(parents: Parents | None) -> Callable[[DocId], DocId]:
    if parents is None:
        return lambda doc_id: doc_id
    if callable(parents):
        return parents
    return lambda doc_id: parents.get(doc_id, doc_id)


def _fold_hits(hits: Sequence[Hit], fold: Callable[[DocId], DocId]) -> tuple[Hit, ...]:
    first: dict[DocId, Hit] = {}
    for hit in hits:
        parent = fold(hit.doc_id)
        first.setdefault(parent, hit if parent == hit.doc_id else replace(hit, doc_id=parent))
    return tuple(first.values())


@dataclass(frozen=True, slots=True)
class _Query:
    """A question to send to a retriever."""

    name: str
    question_id: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.name}, question {self.question_id!r}"


@dataclass(frozen=True, slots=True)
class RankedIds:
    """A retriever's result: ranked ids and the best score, or the error; and the seconds."""

    doc_ids: list[DocId]
    top_score: float | None
    error: str | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, hits: Sequence[Hit]) -> RankedIds:
        if not hits:
            return cls([], -math.inf)
        top = hits[0].score
        known = float(top) if top is not None and math.isfinite(top) else None
        return cls([hit.doc_id for hit in hits], known)


def _search_all(
    retrievers: Mapping[str, Retriever],
    questions: Sequence[GoldQuestion],
    parents: Parents | None,
    search: partial[list[list[Any]]],
    batch: int,
    job_runner: JobRunner,
    progress: Progress | None,
) -> dict[str, list[RankedIds]]:
    """For each retriever its results for each question, in blocks of `batch` questions."""
    texts = [(one.question.question_id, one.question.text) for one in questions]
    blocks = (
        [_Query(name, *one) for one in texts[start : start + batch]]
        for name in retrievers
        for start in range(0, len(texts), batch)
    )
    portable = isinstance(retrievers, RetrieverSet) and job_runner is not run_in_process
    key = (f"{retrievers.key} {search.keywords['depth']}") if portable else ""  # type: ignore[attr-defined]
    results = job_runner(Job("searching", search, (retrievers, parents), key=key), blocks)
    found: dict[str, list[RankedIds]] = {name: [] for name in retrievers}
    for name in retrievers:
        while len(found[name]) < len(questions):
            found[name] += [RankedIds(*row) for row in next(results)]
            if progress is not None:
                progress(name, len(found[name]), len(questions))
    return found


def _search_block(
    block: Sequence[_Query],
    shared: tuple[Mapping[str, Retriever], Parents | None],
    *,
    depth: int,
) -> list[list[Any]]:
    """Rows of `RankedIds`: searched together, or one by one if the block fails."""
    retrievers, parents = shared
    retriever, fold = retrievers[block[0].name], parent_of(parents)

    def search(texts: Sequence[str]) -> list[RankedIds]:
        hits = search_folded(retriever, texts, depth, fold, deepen=parents is not None)
        return [RankedIds.of(one) for one in hits]

    def search_alone(text: str) -> RankedIds:
        try:
            return search([text])[0]
        except Exception as error:  # noqa: BLE001 - recorded, not fatal
            return RankedIds([], None, f"{type(error).__name__}: {error}")

    started = time.perf_counter()
    try:
        found = search([one.text for one in block])
    except Exception:  # noqa: BLE001 - a retriever may raise anything: find the question that fails
        found = [search_alone(one.text) for one in block]
    seconds = (time.perf_counter() - started) / len(block)
    return [[one.doc_ids, one.top_score, one.error, seconds] for one in found]


def search_folded(
    retriever: Retriever,
    texts: Sequence[str],
    depth: int,
    fold: Callable[[DocId], DocId],
    *,
    deepen: bool,
) -> list[tuple[Hit, ...]]:
    """Hits folded into parents; searches deeper if too many chunks fold together."""

    def search(some: Sequence[int], k: int) -> list[int]:
        """Search these texts; return those that need a deeper search."""
        found = retriever.search([texts[at] for at in some], k=k)
        if len(found) != len(some):
            raise InputError(f"the retriever gave {len(found)} results for {len(some)} questions")
        for at, hits in zip(some, found):
            folded[at] = _fold_hits(hits, fold)
        pairs = zip(some, found)
        return [at for at, hits in pairs if len(hits) >= k and len(folded[at]) < depth]

    folded: list[tuple[Hit, ...]] = [()] * len(texts)
    k = depth * (_FIRST_DEPTH if deepen else 1)
    short = search(range(len(texts)), k)
    while deepen and short and k < depth * _MOST_DEPTH:
        k *= 2
        short = search(short, k)
    return folded


def system_result(
    name: str, questions: Sequence[GoldQuestion], found: Sequence[RankedIds], depth: int
) -> SystemResult:
    gold = [one.gold.doc_ids for one in questions]
    rankings = judge_rankings([one.doc_ids for one in found], gold, depth=depth)
    ranks = tuple(tuple((np.flatnonzero(row) + 1).tolist()) for row in rankings.relevance)
    pairs = zip(questions, found)
    errors = {it.question.question_id: one.error for it, one in pairs if one.error is not None}
    return SystemResult(name, ranks, tuple(one.top_score for one in found), errors)
