"""Micro-batching: checks that arrive together run as one batch.

One thread runs checks; whatever arrives while it is busy forms its next batch. A single check costs
its full price, under load it costs its share of a batch, and no check waits for a batch to fill.
Single checks take precedence over lines of long batches. If a gate has a judge, there are a few
threads, so that one can wait for the judge while others check.

The features of recent checks are kept to detect drift since the fit. With a log (`suffice serve
--shadow`), every verdict is also logged after it was delivered.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from queue import Empty, PriorityQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, SufficeError
from suffice.evaluation.verdict_log import VerdictLog, guard_outcome, logged_verdict
from suffice.gate.drift import MIN_QUESTIONS, Drift, measure_drift
from suffice.gate.gate import CheckedBatch, Gate
from suffice.gate.gate_ref import gate_identity
from suffice.service.labelling import LabelQueue
from suffice.service.metrics import Metrics
from suffice.types import Verdict

MAX_BATCH = 32  # above it the gain is small, and the first check waits for the last
JUDGED_THREADS = 4  # if a judge may keep a thread waiting
DRIFT_INTERVAL_S = 20.0  # between two drift computations, if there are many checks
DRIFT_GROWTH = 1.1  # if there are few: after a tenth more checks
DRIFT_CHECKS = 500  # recent ones
log = logging.getLogger("suffice.service")


@dataclass(frozen=True, slots=True)
class CheckJob:
    """One check: the gate, its input, and its options."""

    gate: str
    question: str
    hits: Sequence[Any]
    explain: bool = True
    rounds_left: int = 1
    notes: tuple[str, ...] = ()  # for the verdict

    @property
    def pair(self) -> tuple[str, Sequence[Any]]:
        return self.question, self.hits


_PendingVerdict = asyncio.Future[Verdict | InputError]
_Item = tuple[CheckJob, _PendingVerdict]
_SINGLE, _BULK, _STOP = range(3)  # priorities, the most urgent first


class CheckBatcher:
    """The threads that run a worker's checks. Start it inside the event loop of its callers."""

    def __init__(
        self,
        gates: Mapping[str, Gate],
        metrics: Metrics,
        verdict_log: VerdictLog | None = None,
        labels: LabelQueue | None = None,
    ) -> None:
        self.gates, self._metrics, self._labels = gates, metrics, labels
        self._verdict_log, self._log_failed = verdict_log, False
        self._identities = {name: gate_identity(gate) for name, gate in gates.items()}
        self._queue: PriorityQueue[tuple[int, int, _Item | None]] = PriorityQueue()
        self._numbers = count()  # first in, first out within a priority
        self._monitors = {name: _DriftMonitor(gate) for name, gate in gates.items()}
        self._bookkeeping = threading.Lock()
        judged = any(gate.judge is not None for gate in gates.values())
        self._threads = [
            threading.Thread(target=self._run, name="checks", daemon=True)
            for _ in range(JUDGED_THREADS if judged else 1)
        ]

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish what is waiting, then end the threads."""
        for _ in self._threads:
            self._queue.put((_STOP, next(self._numbers), None))
        for thread in self._threads:
            thread.join()

    @property
    def alive(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    def drift(self, gate: str) -> Drift | None:
        """How far recent questions are from those at fit time; None if there are too few."""
        return self._monitors[gate].drift

    def drift_checks(self, gate: str) -> int:
        """The number of recent checks on which drift is measured."""
        return self._monitors[gate].checks

    async def check(self, job: CheckJob) -> Verdict:
        """The verdict; InputError if the hits cannot be read."""
        (outcome,) = await self._submit([job], _SINGLE)
        if isinstance(outcome, InputError):
            raise outcome
        return outcome

    async def check_many(self, jobs: Sequence[CheckJob]) -> list[Verdict | InputError]:
        """A verdict or an error for each, after all single checks."""
        return await self._submit(jobs, _BULK)

    async def _submit(self, jobs: Sequence[CheckJob], priority: int) -> list[Verdict | InputError]:
        pending: list[_PendingVerdict] = [self._loop.create_future() for _ in jobs]
        for item in zip(jobs, pending):
            self._queue.put((priority, next(self._numbers), item))
        try:
            return [await future for future in pending]
        finally:
            for future in pending:
                future.cancel()  # nobody waits for these any more: the thread skips them

    # Everything below runs in the thread.

    def _run(self) -> None:
        while True:
            batch = [self._queue.get()[2]]
            with suppress(Empty):
                while len(batch) < MAX_BATCH and batch[-1] is not None:
                    batch.append(self._queue.get_nowait()[2])
            groups: dict[tuple[str, bool, int], list[_Item]] = {}
            for item in batch:
                if item is not None and not item[1].done():
                    job = item[0]
                    groups.setdefault((job.gate, job.explain, job.rounds_left), []).append(item)
            for group in groups.values():
                jobs = [job for job, _ in group]
                outcomes = self._check(jobs)
                futures = [future for _, future in group]
                self._loop.call_soon_threadsafe(_deliver, zip(futures, outcomes, strict=True))
                self._write_log(jobs, outcomes)
            if batch[-1] is None:
                return

    def _check(self, jobs: Sequence[CheckJob]) -> list[Verdict | Exception]:
        """Check all together, or one by one if one of them is invalid."""
        first = jobs[0]
        try:
            checked = self.gates[first.gate].check_with_features(
                [job.pair for job in jobs], explain=first.explain, rounds_left=first.rounds_left
            )
        except Exception as error:  # noqa: BLE001 - the caller gets it; the thread must live
            if len(jobs) == 1:
                return [error]
            return [outcome for job in jobs for outcome in self._check([job])]
        self._metrics.batch_size.observe(len(jobs))
        verdicts = [
            replace(verdict, notes=(*job.notes, *verdict.notes))
            for job, verdict in zip(jobs, checked.verdicts, strict=True)
        ]
        for job, verdict in zip(jobs, verdicts, strict=True):
            self._metrics.count_verdict(first.gate, verdict)
            if self._labels is not None:
                self._labels.offer(self.gates[job.gate], job.question, job.hits, verdict)
        with self._bookkeeping:
            self._watch_drift(first.gate, checked)
        return list(verdicts)

    def _watch_drift(self, gate: str, checked: CheckedBatch) -> None:
        drift = self._monitors[gate].add(checked, time.monotonic())
        self._metrics.drift_questions.labels(gate).set(self._monitors[gate].checks)
        if drift is not None:
            self._metrics.set_drift(gate, drift)

    def _write_log(self, jobs: Sequence[CheckJob], outcomes: Sequence[Verdict | Exception]) -> None:
        """Log the verdicts; a full disk is reported once and stops nothing."""
        for job, verdict in zip(jobs, outcomes, strict=True):
            if self._verdict_log is None or isinstance(verdict, Exception):
                continue
            try:
                row = logged_verdict(
                    job.question,
                    job.hits,
                    verdict,
                    outcome=guard_outcome(verdict),
                    acted=False,
                    by="serve",
                    gate=self._identities[job.gate],
                )
                self._verdict_log.write(row)
            except (OSError, SufficeError, ValueError) as error:
                if not self._log_failed:
                    fields = {"file": str(self._verdict_log.path), "error": str(error)}
                    log.warning("verdicts are not logged", extra={"fields": fields})
                self._log_failed = True


class _DriftMonitor:
    """Recent features and actions of one gate: numbers only, no texts."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._rows: deque[npt.NDArray[np.floating[Any]]] = deque(maxlen=DRIFT_CHECKS)
        self._actions: deque[str] = deque(maxlen=DRIFT_CHECKS)
        self._computed_at = -DRIFT_INTERVAL_S
        self.drift: Drift | None = None

    @property
    def checks(self) -> int:
        return len(self._rows)

    def add(self, checked: CheckedBatch, now: float) -> Drift | None:
        """Add checks; returns the drift if it was computed anew."""
        self._rows.extend(checked.features)
        self._actions.extend(str(verdict.action) for verdict in checked.verdicts)
        grown = self.drift is None or self.checks >= DRIFT_GROWTH * self.drift.questions
        due = grown or now - self._computed_at >= DRIFT_INTERVAL_S
        if self.checks < MIN_QUESTIONS or not due:
            return None
        self._computed_at = now
        counts = Counter(self._actions)
        shares = {action: count / len(self._actions) for action, count in counts.items()}
        self.drift = measure_drift(self._gate.profile, np.array(self._rows), shares)
        return self.drift


def _deliver(outcomes: Iterable[tuple[_PendingVerdict, Verdict | Exception]]) -> None:
    for future, outcome in outcomes:
        if future.done():
            continue
        if isinstance(outcome, Exception) and not isinstance(outcome, InputError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
