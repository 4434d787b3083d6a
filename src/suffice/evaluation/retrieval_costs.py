"""The cost of a retriever: indexing time, latency per question, and memory.

Each system runs in its own process, one question at a time, so that none shares the documents,
models and caches of another. If a process dies, only its own row is lost.
"""

from __future__ import annotations

import math
import multiprocessing
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import EngineError, InputError, SufficeError
from suffice.evaluation.searching import index_documents, open_retrievers
from suffice.evaluation.significance import Interval
from suffice.evaluation.worker_pool import exit_with_parent
from suffice.protocols import Encoder, Progress, Retriever
from suffice.types import Document

__all__ = ["CostTask", "SystemCost", "cost_record", "latency_quantile", "measure_cost"]

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
