"""Evaluate retrievers: systems times questions, stored as one document.

A run stores, for each system and question, the ranks of the gold. Every table, interval, comparison
and plot is computed from it without searching again. Two runs with the same seed are identical
except for the timings.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import GoldQuestion
from suffice.errors import (
    InputError,
    MissingExtraError,
    NotReadyError,
    did_you_mean,
)
from suffice.evaluation.figures import Bars, Curves, Point, Points, Series
from suffice.evaluation.metrics import Rankings, judge_rankings, ranking_metric, score
from suffice.evaluation.result_files import load_result, result_text, source_commit
from suffice.evaluation.retrieval_costs import (
    CostTask,
    SystemCost,
    cost_record,
    latency_quantile,
    measure_cost,
)
from suffice.evaluation.searching import (
    GIVEN,
    RetrieverSet,
    encoder_for,
    index_documents,
    retriever_factories,
    takes_encoder,
)
from suffice.evaluation.significance import Interval, compare, interval
from suffice.evaluation.tables import Cell, Table
from suffice.jobs import Job, JobRunner, run_in_process
from suffice.protocols import Progress, Retriever, Store
from suffice.registry import ENCODERS, RETRIEVERS, Registry
from suffice.retrieval.corpus import chunk_documents
from suffice.storage import package_versions, write_atomically
from suffice.types import DocId, Document, Hit

__all__ = [
    "RetrievalRun",
    "RetrievalSettings",
    "SystemResult",
    "benchmark_retrievers",
    "compare_retrievers",
    "evaluate_retrieval",
    "retrieval_summary",
    "retrieval_table",
    "retrieval_tables",
]

VERSION = 1
MAX_DEPTH = 100_000  # hits per question in a run: its tables have a column for each
# What "all" stands for: our retrievers and common ones, on the same files.
ALL = "all"
ALL_SYSTEMS = (
    "bm25",
    "dense",
    "dense:bge-small-en-v1.5",
    "dense:all-mpnet-base-v2",
    "hybrid",
    "ppr",
    "bridge",
    "bridge-quality:bge-small-en-v1.5",
)
FIGURES = ("recall", "complete", "precision", "ndcg", "mrr", "map", "hits")
DEFAULT_METRICS = ("recall", "complete", "ndcg", "mrr")
_FIRST_DEPTH, _MOST_DEPTH = 4, 16  # chunks searched per wanted parent, first and at most
Parents = Mapping[DocId, DocId] | Callable[[DocId], DocId]
# Plug-ins `tables.DATASET`: (run, narrow) -> tables that compare a run with published figures.
PUBLISHED_TABLES: Registry[list[Table]] = Registry("tables")


@dataclass(frozen=True)
class SystemResult:
    """The results of one system: ranks (from 1) of the gold, best scores, and errors."""

    name: str
    ranks: tuple[tuple[int, ...], ...]
    top_scores: tuple[float | None, ...]  # -inf: nothing found; None: unknown
    errors: Mapping[str, str] = field(default_factory=dict)  # question id -> error


@dataclass(frozen=True)
class RetrievalRun:
    """One evaluation of retrieval. A failed question counts as one where nothing was found."""

    dataset: str
    ks: tuple[int, ...]
    question_ids: tuple[str, ...]
    kinds: tuple[str | None, ...]
    gold: tuple[int, ...]  # number of gold documents per question; 0: a null question
    systems: tuple[SystemResult, ...]
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)  # file name -> sha256
    packages: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    timings: Mapping[str, float] = field(default_factory=dict)  # system -> search time in seconds
    costs: Mapping[str, SystemCost] = field(default_factory=dict)  # if measured
    not_run: Mapping[str, str] = field(default_factory=dict)  # system -> why, and what to install

    @property
    def depth(self) -> int:
        return max(self.ks)

    @property
    def middle_k(self) -> int:
        return self.ks[len(self.ks) // 2]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(system.name for system in self.systems)

    @property
    def known_kinds(self) -> list[str]:
        return sorted({kind for kind in self.kinds if kind})

    def system(self, name: str) -> SystemResult:
        for system in self.systems:
            if system.name == name:
                return system
        known = did_you_mean(name, self.names)
        raise InputError(f"the run has no system named {name!r}", hint=known)

    def rankings(self, name: str, *, kind: str | None = None) -> Rankings:
        """A system's rankings for the metrics; with `kind`, only questions of that kind."""
        system = self.system(name)
        relevance = np.zeros((len(self.gold), self.depth))
        rows = np.repeat(np.arange(len(self.gold)), [len(ranks) for ranks in system.ranks])
        ranks = np.fromiter((rank for ranks in system.ranks for rank in ranks), np.intp)
        np.add.at(relevance, (rows, ranks - 1), 1)
        scores = [math.nan if one is None else one for one in system.top_scores]
        rankings = Rankings(relevance, self.gold, scores)
        if kind is None:
            return rankings
        if kind not in self.kinds:
            raise InputError(
                f"the run has no questions of kind {kind!r}",
                hint=did_you_mean(kind, self.known_kinds),
            )
        return rankings.rows(np.array([one == kind for one in self.kinds]))

    def to_json(self, *, timings: bool = True) -> str:
        """The document; without timings, two runs with the same seed give the same text."""
        systems = []
        for system in self.systems:
            # JSON has no infinity: "none found" means an empty result, null an unknown score.
            scores = ["none found" if one == -math.inf else one for one in system.top_scores]
            systems.append({**asdict(system), "top_scores": scores})
        columns = {"ids": self.question_ids, "kinds": self.kinds, "gold": self.gold}
        plain = ("dataset", "seed", "settings", "data", "packages", "commit", "ks")
        document = {
            "kind": "run",
            "version": VERSION,
            "task": "retrieval",
            **{name: getattr(self, name) for name in plain},
            "questions": columns,
            "systems": systems,
            "timings": dict(self.timings) if timings else {},
        }
        if self.costs and timings:
            document["costs"] = {name: asdict(cost) for name, cost in self.costs.items()}
        if self.not_run:
            document["not_run"] = dict(self.not_run)
        return result_text(document)

    def save(self, path: Path) -> Path:
        """Write the document atomically; return its path."""
        write_atomically(Path(path), self.to_json())
        return Path(path)

    @staticmethod
    def load(path: Path) -> RetrievalRun:
        """Load a run; the error says what the file is instead, or which version."""
        options: Any = {"version": VERSION, "command": "suffice evaluate retrieval"}
        return load_result(path, _run_from_json, kind="run", what="run", **options)


def _run_from_json(document: Mapping[str, Any]) -> RetrievalRun:
    questions = document["questions"]
    run = RetrievalRun(
        dataset=str(document["dataset"]),
        ks=_check_ks(document["ks"]),
        question_ids=tuple(map(str, questions["ids"])),
        kinds=tuple(None if kind is None else str(kind) for kind in questions["kinds"]),
        gold=tuple(map(int, questions["gold"])),
        systems=tuple(map(_system_from_json, document["systems"])),
        seed=int(document["seed"]),
        settings=dict(document["settings"]),
        data=dict(document["data"]),
        packages=dict(document["packages"]),
        commit=document["commit"],
        timings=dict(document["timings"]),
        costs={name: _cost_from_json(one) for name, one in dict(document.get("costs", {})).items()},
        not_run=dict(document.get("not_run", {})),
    )
    lengths = {len(run.question_ids), len(run.kinds), len(run.gold)}
    lengths |= {len(one) for system in run.systems for one in (system.ranks, system.top_scores)}
    if len(lengths) > 1:
        raise ValueError("its columns have different lengths")
    if run.seed < 0:
        raise ValueError(f"its seed is {run.seed}")
    ranks = (rank for system in run.systems for one in system.ranks for rank in one)
    if any(not 1 <= rank <= run.depth for rank in ranks):
        raise ValueError(f"a rank lies outside 1 to {run.depth}")
    return run


def _system_from_json(record: Mapping[str, Any]) -> SystemResult:
    scores = (-math.inf if one == "none found" else one for one in record["top_scores"])
    return SystemResult(
        name=str(record["name"]),
        ranks=tuple(tuple(map(int, ranks)) for ranks in record["ranks"]),
        top_scores=tuple(None if one is None else float(one) for one in scores),
        errors=dict(record["errors"]),
    )


def _cost_from_json(record: Mapping[str, Any]) -> SystemCost:
    peak = record["peak_mb"]
    return SystemCost(
        index_s=float(record["index_s"]),
        index_cpu_s=float(record["index_cpu_s"]),
        peak_mb=None if peak is None else float(peak),
        latency_ms=tuple(map(float, record["latency_ms"])),
        cpu_ms=tuple(map(float, record["cpu_ms"])),
    )


def _check_ks(ks: Sequence[int]) -> tuple[int, ...]:
    def whole(k: Any) -> bool:
        return isinstance(k, int) and not isinstance(k, bool) and 1 <= k <= MAX_DEPTH

    if not ks or not all(map(whole, ks)):
        raise InputError(
            f"k is {list(ks)!s:.80}, expected whole numbers from 1 to {MAX_DEPTH:,}",
            hint="for example --k 2,4,8",
        )
    return tuple(sorted(set(ks)))


# ------------------------------------------------------------------------------------ experiment


@dataclass(frozen=True)
class RetrievalSettings:
    """The settings: which retrievers, at which cut-offs, over which vectors and chunks."""

    retrievers: tuple[str, ...]  # or RETRIEVER:ENCODER; "all": ours and the common ones
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
    systems, not_run = _choose_systems(settings, own_vectors=store is not None)
    questions = _questions(dataset, settings, systems)
    groups: dict[str, list[_System]] = {}
    for system in systems:
        groups.setdefault(system.encoder, []).append(system)
    runs = []
    for encoder_name, group in (groups or {settings.encoder: []}).items():
        factories = retriever_factories(one.retriever for one in group)
        encoder, searched = encoder_for(factories, encoder_name), store
        if searched is None:
            documents = _documents(dataset, settings) if factories else ()
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
            settings={**_chosen(settings), "documents": len(searched)},
            data=data,
            job_runner=job_runner or run_in_process,
        )
        runs.append(_renamed(run, {one.retriever: one.name for one in group}))
    return replace(_join_runs(runs, [one.name for one in systems]), not_run=not_run)


def benchmark_retrievers(
    dataset: Dataset,
    settings: RetrievalSettings,
    *,
    data: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    job_runner: JobRunner = run_in_process,
) -> RetrievalRun:
    """Like `compare_retrievers`, with the cost of each system: indexing time, latency, memory.

    Each system runs in its own process, one question at a time. `job_runner` starts them from this
    process; with a checkpoint, an interrupted run resumes after the last finished system.
    """
    systems, not_run = _choose_systems(settings)
    if not systems:
        reasons = "; ".join(not_run.values()) or "hits that came with the questions cost nothing"
        raise InputError(f"there is nothing to measure: {reasons}", hint="name bm25, for example")
    questions = _questions(dataset, settings, systems)
    texts = [one.question.text for one in questions]
    documents = list(_documents(dataset, settings))
    if not texts or not documents:
        lacking = "documents" if texts else "questions"
        raise InputError(f"{dataset.name!r} has no {lacking}", hint=f"check its file of {lacking}")
    ids, cutoffs = [one.question.question_id for one in questions], _check_ks(settings.ks)
    parents = {one.doc_id: one.parent for one in documents if one.parent}
    search = partial(_search_alone, parents=parents or None, depth=max(cutoffs))
    tasks = {}
    for one in systems:
        factory = RETRIEVERS.get(one.retriever)
        encoder = ENCODERS.get(one.encoder) if takes_encoder(factory) else None
        tasks[one.name] = CostTask(one.name, factory, encoder, documents, texts, search)
    _check_questions(ids, tasks, given=False, batch=1)
    key = hashlib.sha256(repr((documents, texts, cutoffs, settings.encoder)).encode()).hexdigest()
    job = Job("measuring", _measure_block, (tasks, progress), key=key)
    results, costs, timings = [], {}, {}
    for one, result in zip(systems, job_runner(job, [[one.name] for one in systems])):
        found = [_RankedIds(*row) for row in result["found"]]
        costs[one.name] = _cost_from_json(result)
        timings[one.name] = sum(costs[one.name].latency_ms) / 1e3
        results.append(_system_result(one.name, questions, found, max(cutoffs)))
    return RetrievalRun(
        dataset=dataset.name,
        ks=cutoffs,
        question_ids=tuple(ids),
        kinds=tuple(one.gold.kind for one in questions),
        gold=tuple(len(set(one.gold.doc_ids)) for one in questions),
        systems=tuple(results),
        seed=settings.seed,
        settings={
            "batch": 1,
            "folded": bool(parents),
            **_chosen(settings),
            "documents": len(documents),
        },
        data=dict(data or {}),
        packages=package_versions(),
        commit=source_commit(),
        timings=timings,
        costs=costs,
        not_run=not_run,
    )


def _measure_block(
    block: Sequence[str], shared: tuple[Mapping[str, CostTask], Progress | None]
) -> dict[str, Any]:
    tasks, progress = shared
    found, cost = measure_cost(tasks[block[0]], progress)
    return {"found": found, **asdict(cost)}


def _search_alone(
    retriever: Retriever, text: str, *, parents: Parents | None, depth: int
) -> list[Any]:
    """A row of `_RankedIds` for one question."""
    fold, deepen = _parent_of(parents), parents is not None
    try:
        (hits,) = _search_folded(retriever, [text], depth, fold, deepen=deepen)
    except (NotReadyError, MissingExtraError):
        raise  # an error of the system, not of the question
    except Exception as error:  # noqa: BLE001 - recorded, not fatal
        return [[], None, f"{type(error).__name__}: {error}"]
    one = _RankedIds.of(hits)
    return [one.doc_ids, one.top_score, None]


@dataclass(frozen=True, slots=True)
class _System:
    """A retriever over the vectors of an encoder, named RETRIEVER or RETRIEVER:ENCODER."""

    name: str
    retriever: str
    encoder: str


def _choose_systems(
    settings: RetrievalSettings, *, own_vectors: bool = False
) -> tuple[list[_System], dict[str, str]]:
    """The systems to search with, and those of "all" that cannot run here, with what to do."""
    if not settings.retrievers:
        raise InputError("no retriever is named", hint="for example --retriever tfidf,bm25")
    names = [name for name in settings.retrievers if name not in (ALL, GIVEN)]
    systems = {name: _parse_system(name, settings.encoder) for name in names}
    not_run: dict[str, str] = {}
    for system in systems.values():
        _check_system(system, own_vectors)
    for name in ALL_SYSTEMS if ALL in settings.retrievers else ():
        system = _parse_system(name, settings.encoder)
        try:
            _check_system(system, own_vectors)
            encoder_for(retriever_factories([system.retriever]), system.encoder)
        except (InputError, NotReadyError, MissingExtraError) as error:
            not_run[name] = f"{error}: {error.hint}" if error.hint else str(error)
        else:
            systems.setdefault(name, system)
    unlike = {(one.retriever, one.encoder): one for one in reversed(systems.values())}
    return [one for one in systems.values() if one in unlike.values()], not_run


def _check_system(system: _System, own_vectors: bool) -> None:
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


def _parse_system(name: str, encoder: str) -> _System:
    retriever, colon, own = name.partition(":")
    if colon and not own:
        hint = "for example dense:bge-small-en-v1.5"
        raise InputError(f"{name!r} names no encoder after the colon", hint=hint)
    return _System(name, retriever, own or encoder)


def _questions(
    dataset: Dataset, settings: RetrievalSettings, systems: Sequence[_System]
) -> list[GoldQuestion]:
    questions = list(islice(dataset.questions(), settings.limit))
    if not systems and any(one.hits is None for one in questions):
        raise InputError(
            f"not every question of {dataset.name!r} comes with hits",
            hint="name a retriever, like bm25",
        )
    return questions


def _documents(dataset: Dataset, settings: RetrievalSettings) -> Iterable[Document]:
    if not settings.chunk_tokens:
        return dataset.documents()
    sizes = {"tokens": settings.chunk_tokens, "overlap": settings.chunk_overlap}
    return chunk_documents(dataset.documents(), **sizes)


def _chosen(settings: RetrievalSettings) -> dict[str, Any]:
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
    questions, cutoffs = list(questions), _check_ks(ks)
    ids = [one.question.question_id for one in questions]
    given = all(one.hits is not None for one in questions)
    _check_questions(ids, retrievers, given=given, batch=batch)
    fold = _parent_of(parents)
    systems: list[SystemResult] = []
    if given:
        ranked = [_RankedIds.of(_fold_hits(one.hits or (), fold)) for one in questions]
        systems.append(_system_result(GIVEN, questions, ranked, max(cutoffs)))
    search = partial(_search_block, depth=max(cutoffs))
    found = _search_all(retrievers, questions, parents, search, batch, job_runner, progress)
    for name in retrievers:
        systems.append(_system_result(name, questions, found[name], max(cutoffs)))
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


def _check_questions(
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


def _parent_of(parents: Parents | None) -> Callable[[DocId], DocId]:
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
class _RankedIds:
    """A retriever's result: ranked ids and the best score, or the error; and the seconds."""

    doc_ids: list[DocId]
    top_score: float | None
    error: str | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, hits: Sequence[Hit]) -> _RankedIds:
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
) -> dict[str, list[_RankedIds]]:
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
    found: dict[str, list[_RankedIds]] = {name: [] for name in retrievers}
    for name in retrievers:
        while len(found[name]) < len(questions):
            found[name] += [_RankedIds(*row) for row in next(results)]
            if progress is not None:
                progress(name, len(found[name]), len(questions))
    return found


def _search_block(
    block: Sequence[_Query],
    shared: tuple[Mapping[str, Retriever], Parents | None],
    *,
    depth: int,
) -> list[list[Any]]:
    """Rows of `_RankedIds`: searched together, or one by one if the block fails."""
    retrievers, parents = shared
    retriever, fold = retrievers[block[0].name], _parent_of(parents)

    def search(texts: Sequence[str]) -> list[_RankedIds]:
        hits = _search_folded(retriever, texts, depth, fold, deepen=parents is not None)
        return [_RankedIds.of(one) for one in hits]

    def search_alone(text: str) -> _RankedIds:
        try:
            return search([text])[0]
        except Exception as error:  # noqa: BLE001 - recorded, not fatal
            return _RankedIds([], None, f"{type(error).__name__}: {error}")

    started = time.perf_counter()
    try:
        found = search([one.text for one in block])
    except Exception:  # noqa: BLE001 - a retriever may raise anything: find the question that fails
        found = [search_alone(one.text) for one in block]
    seconds = (time.perf_counter() - started) / len(block)
    return [[one.doc_ids, one.top_score, one.error, seconds] for one in found]


def _search_folded(
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


def _system_result(
    name: str, questions: Sequence[GoldQuestion], found: Sequence[_RankedIds], depth: int
) -> SystemResult:
    gold = [one.gold.doc_ids for one in questions]
    rankings = judge_rankings([one.doc_ids for one in found], gold, depth=depth)
    ranks = tuple(tuple((np.flatnonzero(row) + 1).tolist()) for row in rankings.relevance)
    pairs = zip(questions, found)
    errors = {it.question.question_id: one.error for it, one in pairs if one.error is not None}
    return SystemResult(name, ranks, tuple(one.top_score for one in found), errors)


# ------------------------------------------------------------------------------------ what is shown


def retrieval_tables(run: RetrievalRun) -> list[Table]:
    """All figures (with published ones if known), by kind, and paired comparisons."""
    tables = published_tables(run) or [retrieval_table(run, intervals=True)]
    return tables + cost_tables(run) + detail_tables(run)


def cost_tables(run: RetrievalRun) -> list[Table]:
    """Quality and cost of each system, and systems that were not run; empty without costs."""
    if not run.costs and not run.not_run:
        return []
    k, rows = run.middle_k, list[tuple[Cell, ...]]()
    for name in run.names:
        rankings, cost = run.rankings(name), run.costs.get(name)
        metrics = (f"recall@{k}", f"complete@{k}")
        figures = [interval(rankings, metric, seed=run.seed) for metric in metrics]
        rows.append((name, *figures, *_cost_cells(cost)))
    rows += [(name, None, None, *_cost_cells(None)) for name in run.not_run]
    parts = [_run_note(run, intervals=True)]
    if run.costs:
        parts.append(
            f"{run.settings.get('documents', 0):,} documents. Time of one question at a time, "
            f"{run.depth} hits, on the wall and (cpu, the median) of the processor. Index: from "
            "the documents to the first answer, without loading the encoder. MB: peak of a process "
            "with only this system."
        )
    parts += [f"Not run: {name}: {why}." for name, why in run.not_run.items()]
    times = ("p50 ms", "p95 ms", "cpu ms", "index s", "index cpu s", "MB")
    columns = ("retriever", f"recall@{k}", f"complete@{k}", *times)
    title = f"What retrievers find and cost on {run.dataset}"
    return [Table(title, columns, tuple(rows), " ".join(parts))]


def _cost_cells(cost: SystemCost | None) -> list[str | None]:
    if cost is None:
        return [None] * 6
    quantiles = ((cost.latency_ms, 0.5), (cost.latency_ms, 0.95), (cost.cpu_ms, 0.5))
    cells: list[str | None] = []
    for times, share in quantiles:
        found = latency_quantile(times, share)
        bounds = "" if found.low is None else f" [{found.low:,.1f}, {found.high:,.1f}]"
        cells.append(f"{found.value:,.1f}{bounds}")
    peak = None if cost.peak_mb is None else f"{cost.peak_mb:,.0f}"
    return [*cells, f"{cost.index_s:,.1f}", f"{cost.index_cpu_s:,.1f}", peak]


def cost_figure(run: RetrievalRun) -> Points | Bars:
    """Complete recall over the median latency of each system; without costs, as bars."""
    metric = f"complete@{run.middle_k}"
    if not run.costs:
        return metric_bars(run, metric)
    points = []
    for name, cost in run.costs.items():
        y = interval(run.rankings(name), metric, seed=run.seed)
        points.append(Point(name, latency_quantile(cost.latency_ms, 0.5), y))
    title = f"{metric} and latency on {run.dataset}"
    return Points(title, "milliseconds a question (median, logarithmic)", metric, tuple(points))


def published_tables(run: RetrievalRun, *, narrow: bool = False) -> list[Table]:
    """The run compared with published figures, if a plug-in has them for its data set."""
    if run.dataset not in PUBLISHED_TABLES.names():
        return []
    return PUBLISHED_TABLES.get(run.dataset)(run, narrow=narrow)


def detail_tables(run: RetrievalRun, *, intervals: bool = False) -> list[Table]:
    """complete@k by kind of question, and each system against the first."""
    metric, tables = f"complete@{run.middle_k}", []
    if len(run.known_kinds) > 1:
        tables.append(kind_table(run, metric, intervals=intervals))
    if len(run.names) > 1:
        tables.append(comparison_table(run, metric))
    return tables


def retrieval_table(
    run: RetrievalRun,
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    ks: Sequence[int] | None = None,
    intervals: bool = False,
    title: str = "",
) -> Table:
    """One row for each system and k, one column for each metric, named without its k.

    A metric without k (null_rejection) repeats in every row of its system, and has a single row if
    it is the only metric.
    """
    takes_k = {name: ranking_metric(name).metric.at == "k" for name in metrics}
    cutoffs: Sequence[int | None] = (ks or run.ks) if any(takes_k.values()) else (None,)
    rows: list[tuple[Cell, ...]] = []
    for system in run.names:
        rankings = run.rankings(system)
        for k in cutoffs:
            names = [f"{name}@{k}" if takes_k[name] else name for name in metrics]
            if intervals:
                cells = [interval(rankings, name, seed=run.seed) for name in names]
            else:
                cells = [Interval(score(rankings, name)) for name in names]
            rows.append((system, k, *cells))
    columns = ("retriever", "k", *metrics)
    title = title or f"Retrieval on {run.dataset}"
    return Table(title, columns, tuple(rows), _run_note(run, intervals))


def kind_table(run: RetrievalRun, metric: str, *, intervals: bool = False) -> Table:
    """One row for each system, one column for each kind of question: where a system is weak."""
    rows: list[tuple[Cell, ...]] = []
    for system in run.names:
        parts = [run.rankings(system, kind=kind) for kind in run.known_kinds]
        if intervals:
            rows.append((system, *(interval(part, metric, seed=run.seed) for part in parts)))
        else:
            rows.append((system, *(score(part, metric) for part in parts)))
    counts = [f"{kind} (n={run.kinds.count(kind):,})" for kind in run.known_kinds]
    title = f"{metric} by kind of question on {run.dataset}"
    return Table(title, ("retriever", *counts), tuple(rows), _run_note(run, intervals))


def comparison_table(run: RetrievalRun, metric: str, *, against: str | None = None) -> Table:
    """Each system against one of them (the first by default), paired over questions."""
    base = against or run.names[0]
    reference = run.rankings(base)
    rows: list[tuple[Cell, ...]] = []
    for system in run.names:
        if system != base:
            difference = compare(run.rankings(system), reference, metric, seed=run.seed)
            rows.append((system, difference, difference.p))
    note = (
        "Difference with 95 % interval and two-sided p, "
        "paired bootstrap over questions, 1,000 resamples."
    )
    title = f"{metric} against {base} on {run.dataset}"
    return Table(title, ("retriever", "difference", "p"), tuple(rows), note)


def _run_note(run: RetrievalRun, intervals: bool) -> str:
    nulls = sum(not gold for gold in run.gold)
    without = f" and {nulls:,} null questions" if nulls else ""
    parts = [f"n = {len(run.gold) - nulls:,} questions{without}."]
    if intervals:
        parts.append("In brackets: 95 % bootstrap interval over questions.")
    for system in run.systems:
        if system.errors:
            failed = f"{len(system.errors):,} of {len(run.gold):,} questions"
            parts.append(f"{system.name}: {failed} failed and count as nothing found.")
    return " ".join(parts)


def metric_bars(run: RetrievalRun, metric: str) -> Bars:
    """One metric for every system of a run."""
    bars = tuple(
        Series(name, (interval(run.rankings(name), metric, seed=run.seed),)) for name in run.names
    )
    return Bars(f"{metric} on {run.dataset}", metric, bars)


def depth_curves(run: RetrievalRun, metric: str, *, ks: Sequence[int] | None = None) -> Curves:
    """A metric without its k, at the run's own cutoffs or at `ks`."""
    points, lines = tuple(ks or run.ks), []
    for name in run.names:
        rankings = run.rankings(name)
        values = (interval(rankings, f"{metric}@{k}", seed=run.seed) for k in points)
        lines.append(Series(name, tuple(values)))
    title, across = f"{metric}@k on {run.dataset}", "k (hits read)"
    return Curves(title, across, f"{metric}@k", points, tuple(lines))


def retrieval_summary(run: RetrievalRun) -> dict[str, Any]:
    """The run for scripts: every figure of every retriever with its interval."""
    figures = {}
    for name in run.names:
        rankings = run.rankings(name)
        wanted = [f"{metric}@{k}" for k in run.ks for metric in FIGURES]
        figures[name] = {one: asdict(interval(rankings, one, seed=run.seed)) for one in wanted}
    return {
        "dataset": run.dataset,
        "n": sum(gold > 0 for gold in run.gold),
        "n_null": sum(gold == 0 for gold in run.gold),
        "k": list(run.ks),
        "seed": run.seed,
        "commit": run.commit,
        "settings": dict(run.settings),
        "data": dict(run.data),
        "retrievers": figures,
        "failed": {system.name: dict(system.errors) for system in run.systems if system.errors},
        "seconds": dict(run.timings),
        "costs": {name: cost_record(cost) for name, cost in run.costs.items()},
        "not_run": dict(run.not_run),
    }
