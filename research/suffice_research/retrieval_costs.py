"""`suffice evaluate costs`: what retrievers find, and their indexing time, latency and memory.

Each system runs in its own process, one question at a time, so that none shares the documents,
models and caches of another. If a process dies, only its own row is lost.
"""

from __future__ import annotations

import hashlib
import math
import multiprocessing
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.dataset import Dataset
from suffice.errors import (
    EngineError,
    InputError,
    MissingExtraError,
    NotReadyError,
    SufficeError,
)
from suffice.evaluation.report import Cell, Table
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.retrieval import (
    Parents,
    RankedIds,
    RetrievalSettings,
    System,
    check_questions,
    check_system,
    choose_systems,
    chosen_settings,
    load_documents,
    load_questions,
    parent_of,
    parse_system,
    search_folded,
    system_result,
)
from suffice.evaluation.retrieval_runs import RetrievalRun, check_ks, retrieval_summary, run_note
from suffice.evaluation.searching import (
    encoder_for,
    index_documents,
    open_retrievers,
    retriever_factories,
    takes_encoder,
)
from suffice.evaluation.significance import Interval, interval
from suffice.jobs import Job, JobRunner, run_in_process
from suffice.protocols import Encoder, Progress, Retriever
from suffice.registry import ENCODERS, RETRIEVERS
from suffice.storage import package_versions
from suffice.types import Document
from suffice_research.figures import Point, Points
from suffice_research.worker_pool import exit_with_parent

__all__ = ["CostedRun", "SystemCost", "benchmark_retrievers", "cost_figure", "cost_table"]

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
REPORT_EVERY_S = 0.5
_Z = 1.96  # for a 95 % interval


@dataclass(frozen=True, slots=True)
class SystemCost:
    """The cost of one system on this machine."""

    index_s: float  # from the documents to the first answer; the encoder is loaded before
    index_cpu_s: float  # the same in processor time, which is more reliable on a busy machine
    peak_mb: float | None  # of its whole process; None: the operating system does not report it
    latency_ms: tuple[float, ...]  # of each question, one at a time
    cpu_ms: tuple[float, ...]  # the same in processor time of all its threads


@dataclass(frozen=True)
class CostedRun:
    """A run, the cost of its systems, and why those of "all" that are missing were not run."""

    run: RetrievalRun
    costs: Mapping[str, SystemCost]
    not_run: Mapping[str, str] = field(default_factory=dict)  # system -> why, and what to install

    def summary(self) -> dict[str, Any]:
        """The run for scripts."""
        costs = {name: cost_record(cost) for name, cost in self.costs.items()}
        return {**retrieval_summary(self.run), "costs": costs, "not_run": dict(self.not_run)}


@dataclass(frozen=True)
class CostTask:
    """A system to measure. It is sent to another process, so functions must be importable."""

    name: str
    retriever: Callable[..., Retriever]  # from a store
    encoder: Callable[..., Encoder] | None
    documents: Sequence[Document]
    questions: Sequence[str]
    search: Callable[[Retriever, str], Any]  # what to keep of a question


def measure_cost(task: CostTask, progress: Progress | None = None) -> tuple[list[Any], SystemCost]:
    """The results of `search` for each question, and the cost, from a fresh process."""
    spawn = multiprocessing.get_context("spawn")  # a fork would share the parent's memory
    here, there = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_measure, args=(task, there), daemon=True)
    try:
        process.start()
    except (AttributeError, TypeError, ValueError) as error:  # pickle raises any of these
        raise InputError(
            f"{task.name} cannot be sent to another process: {error}",
            hint="register a function of a module, or leave out --cost",
        ) from error
    there.close()
    try:
        while True:
            kind, *content = here.recv()
            if kind == "progress" and progress is not None:
                progress(*content)
            if kind == "error":
                raise content[0]
            if kind == "done":
                process.join()
                return content[0], content[1]
    except EOFError as error:
        process.join()
        raise EngineError(
            f"{task.name}: its process ended with code {process.exitcode}",
            hint="was it out of memory? try --limit, or a smaller corpus",
        ) from error
    finally:
        if process.is_alive():
            process.terminate()
        process.join()
        here.close()


def _measure(task: CostTask, to_parent: Connection) -> None:
    exit_with_parent()
    try:
        to_parent.send(("done", *_run(task, to_parent)))
    except SufficeError as error:
        to_parent.send(("error", error))
    except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
        wrapped = EngineError(f"{task.name}: {type(error).__name__}: {error}", hint="see its code")
        to_parent.send(("error", wrapped))


def _run(task: CostTask, to_parent: Connection) -> tuple[list[Any], SystemCost]:
    last = time.perf_counter()

    def report(stage: str, done: int, total: int | None) -> None:
        nonlocal last
        now = time.perf_counter()
        if done == total or now - last > REPORT_EVERY_S:
            last = now
            to_parent.send(("progress", f"{task.name}: {stage}", done, total))

    encoder = None if task.encoder is None else task.encoder()
    begun = _clocks()
    store = index_documents(task.documents, encoder, report)
    retriever = open_retrievers({task.name: task.retriever}, store, encoder)[task.name]
    task.search(retriever, task.questions[0])  # some indexes are built by the first question
    index_s, index_cpu_s = _clocks() - begun
    kept, times = [], []
    for number, question in enumerate(task.questions, start=1):
        started = _clocks()
        kept.append(task.search(retriever, question))
        times.append((_clocks() - started) * 1e3)
        report("questions", number, len(task.questions))
    latency_ms, cpu_ms = (tuple(column) for column in np.array(times).T.tolist())
    index = (float(index_s), float(index_cpu_s))
    return kept, SystemCost(*index, _peak_mb(), latency_ms, cpu_ms)


def _clocks() -> npt.NDArray[np.float64]:
    """Wall time and processor time, in seconds."""
    return np.array([time.perf_counter(), time.process_time()])


def _peak_mb() -> float | None:
    """Peak memory of this process. On Linux a child inherits its parent's getrusage peak."""
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text(encoding="utf-8"))
        return int(found[1]) / 1024 if found else None
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


def latency_quantile(latency_ms: Sequence[float], share: float) -> Interval:
    """A quantile with its 95 % interval over questions, by order statistics.

    There is no interval if too few questions are below or above the quantile.
    """
    values = np.sort(np.asarray(latency_ms, dtype=float))
    count = len(values)
    if not count:
        return Interval(None)
    middle, spread = count * share, _Z * math.sqrt(count * share * (1 - share))
    low, high = math.floor(middle - spread), math.ceil(middle + spread)
    value = float(np.quantile(values, share))
    if low < 0 or high >= count:
        return Interval(value)
    return Interval(value, float(values[low]), float(values[high]))


def cost_record(cost: SystemCost) -> dict[str, Any]:
    """The cost for scripts, with its intervals."""
    return {
        "latency_p50_ms": asdict(latency_quantile(cost.latency_ms, 0.5)),
        "latency_p95_ms": asdict(latency_quantile(cost.latency_ms, 0.95)),
        "cpu_p50_ms": asdict(latency_quantile(cost.cpu_ms, 0.5)),
        "index_s": cost.index_s,
        "index_cpu_s": cost.index_cpu_s,
        "peak_mb": cost.peak_mb,
    }


# ------------------------------------------------------------------------------------ all systems


def benchmark_retrievers(
    dataset: Dataset,
    settings: RetrievalSettings,
    *,
    data: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    job_runner: JobRunner = run_in_process,
) -> CostedRun:
    """What each system finds and costs: indexing time, latency, memory.

    Each system runs in its own process, one question at a time. `job_runner` starts them from this
    process; with a checkpoint, an interrupted run resumes after the last finished system.
    """
    systems, not_run = _systems_to_measure(settings)
    if not systems:
        reasons = "; ".join(not_run.values()) or "hits that came with the questions cost nothing"
        raise InputError(f"there is nothing to measure: {reasons}", hint="name bm25, for example")
    questions = load_questions(dataset, settings, searched=True)
    texts = [one.question.text for one in questions]
    documents = list(load_documents(dataset, settings))
    if not texts or not documents:
        lacking = "documents" if texts else "questions"
        raise InputError(f"{dataset.name!r} has no {lacking}", hint=f"check its file of {lacking}")
    ids, cutoffs = [one.question.question_id for one in questions], check_ks(settings.ks)
    parents = {one.doc_id: one.parent for one in documents if one.parent}
    search = partial(_search_alone, parents=parents or None, depth=max(cutoffs))
    tasks = {}
    for one in systems:
        factory = RETRIEVERS.get(one.retriever)
        encoder = ENCODERS.get(one.encoder) if takes_encoder(factory) else None
        tasks[one.name] = CostTask(one.name, factory, encoder, documents, texts, search)
    check_questions(ids, tasks, given=False, batch=1)
    key = hashlib.sha256(repr((documents, texts, cutoffs, settings.encoder)).encode()).hexdigest()
    job = Job("measuring", _measure_block, (tasks, progress), key=key)
    results, costs, timings = [], {}, {}
    for one, result in zip(systems, job_runner(job, [[one.name] for one in systems])):
        found = [RankedIds(*row) for row in result["found"]]
        costs[one.name] = SystemCost(
            **{name: result[name] for name in SystemCost.__dataclass_fields__}
        )
        timings[one.name] = sum(costs[one.name].latency_ms) / 1e3
        results.append(system_result(one.name, questions, found, max(cutoffs)))
    run = RetrievalRun(
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
            **chosen_settings(settings),
            "documents": len(documents),
        },
        data=dict(data or {}),
        packages=package_versions(),
        commit=source_commit(),
        timings=timings,
    )
    return CostedRun(run, costs, not_run)


def _measure_block(
    block: Sequence[str], shared: tuple[Mapping[str, CostTask], Progress | None]
) -> dict[str, Any]:
    tasks, progress = shared
    found, cost = measure_cost(tasks[block[0]], progress)
    return {"found": found, **asdict(cost)}


def _search_alone(
    retriever: Retriever, text: str, *, parents: Parents | None, depth: int
) -> list[Any]:
    """A row of `RankedIds` for one question."""
    fold, deepen = parent_of(parents), parents is not None
    try:
        (hits,) = search_folded(retriever, [text], depth, fold, deepen=deepen)
    except (NotReadyError, MissingExtraError):
        raise  # an error of the system, not of the question
    except Exception as error:  # noqa: BLE001 - recorded, not fatal
        return [[], None, f"{type(error).__name__}: {error}"]
    one = RankedIds.of(hits)
    return [one.doc_ids, one.top_score, None]


def _systems_to_measure(settings: RetrievalSettings) -> tuple[list[System], dict[str, str]]:
    """The named systems, and those of "all" that can run here; for the others, what to do."""
    named = tuple(name for name in settings.retrievers if name != ALL)
    systems = choose_systems(replace(settings, retrievers=named)) if named else []
    not_run: dict[str, str] = {}
    for name in ALL_SYSTEMS if ALL in settings.retrievers else ():
        system = parse_system(name, settings.encoder)
        try:
            check_system(system)
            encoder_for(retriever_factories([system.retriever]), system.encoder)
        except (InputError, NotReadyError, MissingExtraError) as error:
            not_run[name] = f"{error}: {error.hint}" if error.hint else str(error)
        else:
            known = {(one.retriever, one.encoder) for one in systems}
            systems += [] if (system.retriever, system.encoder) in known else [system]
    return systems, not_run


# ------------------------------------------------------------------------------------ shown


def cost_table(found: CostedRun) -> Table:
    """Quality and cost of each system, and systems that were not run."""
    run = found.run
    k, rows = run.middle_k, list[tuple[Cell, ...]]()
    for name in run.names:
        rankings, cost = run.rankings(name), found.costs.get(name)
        metrics = (f"recall@{k}", f"complete@{k}")
        figures = [interval(rankings, metric, seed=run.seed) for metric in metrics]
        rows.append((name, *figures, *_cost_cells(cost)))
    rows += [(name, None, None, *_cost_cells(None)) for name in found.not_run]
    parts = [run_note(run, intervals=True)]
    if found.costs:
        parts.append(
            f"{run.settings.get('documents', 0):,} documents. Time of one question at a time, "
            f"{run.depth} hits, on the wall and (cpu, the median) of the processor. Index: from "
            "the documents to the first answer, without loading the encoder. MB: peak of a process "
            "with only this system."
        )
    parts += [f"Not run: {name}: {why}." for name, why in found.not_run.items()]
    times = ("p50 ms", "p95 ms", "cpu ms", "index s", "index cpu s", "MB")
    columns = ("retriever", f"recall@{k}", f"complete@{k}", *times)
    title = f"What retrievers find and cost on {run.dataset}"
    return Table(title, columns, tuple(rows), " ".join(parts))


def _cost_cells(cost: SystemCost | None) -> list[str | None]:
    if cost is None:
        return [None] * 6
    quantiles = ((cost.latency_ms, 0.5), (cost.latency_ms, 0.95), (cost.cpu_ms, 0.5))
    cells: list[str | None] = []
    for times, share in quantiles:
        one = latency_quantile(times, share)
        bounds = "" if one.low is None else f" [{one.low:,.1f}, {one.high:,.1f}]"
        cells.append(f"{one.value:,.1f}{bounds}")
    peak = None if cost.peak_mb is None else f"{cost.peak_mb:,.0f}"
    return [*cells, f"{cost.index_s:,.1f}", f"{cost.index_cpu_s:,.1f}", peak]


def cost_figure(found: CostedRun) -> Points:
    """Complete recall over the median latency of each system."""
    run, points = found.run, []
    metric = f"complete@{run.middle_k}"
    for name, cost in found.costs.items():
        y = interval(run.rankings(name), metric, seed=run.seed)
        points.append(Point(name, latency_quantile(cost.latency_ms, 0.5), y))
    title = f"{metric} and latency on {run.dataset}"
    return Points(title, "milliseconds a question (median, logarithmic)", metric, tuple(points))
