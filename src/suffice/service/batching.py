"""Checks that arrive together are judged together.

One thread judges; whatever has come in while it was busy is its next batch. Alone a check costs its full price, under load the
share of a batch, and nobody ever waits for a batch to fill. Single checks go before the lines of long batches.

Now and then it also keeps what the gate saw, to tell whether questions have drifted from those at fit time.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.gate.drift import MIN_QUESTIONS, Drift
from suffice.gate.gate import Gate
from suffice.service.metrics import Metrics
from suffice.types import Verdict

__all__ = ["CheckBatcher", "CheckJob"]

MAX_BATCH = (
    32  # judged in one go: beyond this the gain is small, and the first of them waits for the last
)
DRIFT_SAMPLE_S = (
    0.5  # at most one check in so long is looked at for drift: a look costs as much as a check
)
DRIFT_INTERVAL_S = 20.0  # between two judgements of drift
DRIFT_SAMPLES = 500


@dataclass(frozen=True, slots=True)
class CheckJob:
    """One check: which gate, what it is to see, and how."""

    gate: str
    question: str
    hits: Sequence[Any]
    others: Sequence[Sequence[Any]] = ()
    explain: bool = True
    rounds_left: int = 1

    @property
    def pair(self) -> tuple[str, Sequence[Any], Sequence[Sequence[Any]]]:
        return self.question, self.hits, self.others


_PendingVerdict = asyncio.Future[Verdict | InputError]
_Outcome = tuple[_PendingVerdict, "Verdict | Exception"]


class CheckBatcher:
    """The judging thread of one worker. Start it inside the event loop that its callers run in."""

    def __init__(self, gates: Mapping[str, Gate], measures: Metrics) -> None:
        self.gates, self._measures = gates, measures
        self._first: deque[tuple[CheckJob, _PendingVerdict]] = deque()
        self._later: deque[tuple[CheckJob, _PendingVerdict]] = deque()
        self._waiting = threading.Semaphore(0)
        self._ended = False
        self._seen = {name: _DriftMonitor(gate) for name, gate in gates.items()}
        self._sampled = 0.0
        self._thread = threading.Thread(target=self._work, name="checks", daemon=True)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """What is waiting is still judged."""
        self._ended = True
        self._waiting.release()
        self._thread.join()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def drift(self, gate: str) -> Drift | None:
        """How far recent questions were from those at fit time, as last judged; None while there are too few."""
        return self._seen[gate].drift

    async def verdict(self, asked: CheckJob) -> Verdict:
        """InputError where the hits cannot be read."""
        (told,) = await self._ask([asked], self._first)
        if isinstance(told, InputError):
            raise told
        return told

    async def verdicts(self, asked: Sequence[CheckJob]) -> list[Verdict | InputError]:
        """A verdict for each, or why there is none; single checks go before."""
        return await self._ask(asked, self._later)

    async def _ask(
        self, asked: Sequence[CheckJob], queue: deque[tuple[CheckJob, _PendingVerdict]]
    ) -> list[Verdict | InputError]:
        told: list[_PendingVerdict] = []
        for one in asked:
            future: _PendingVerdict = self._loop.create_future()
            told.append(future)
            queue.append((one, future))
            self._waiting.release()
        try:
            return [await one for one in told]
        finally:
            for future in told:
                future.cancel()  # nobody waits for these any more: they are passed over

    # ------------------------------------------------------------------------------------------------- in the thread

    def _work(self) -> None:
        while True:
            self._waiting.acquire()
            taken = self._taken()
            if not taken and self._ended:
                return
            live = [(asked, future) for asked, future in taken if not future.done()]
            groups: dict[tuple[str, bool, int], list[tuple[CheckJob, _PendingVerdict]]] = {}
            for one in live:
                groups.setdefault((one[0].gate, one[0].explain, one[0].rounds_left), []).append(one)
            for group in groups.values():
                outcomes = self._judged([asked for asked, _ in group])
                self._loop.call_soon_threadsafe(
                    _deliver, list(zip((future for _, future in group), outcomes, strict=True))
                )
                self._keep(group[0][0], outcomes[0])

    def _taken(self) -> list[tuple[CheckJob, _PendingVerdict]]:
        """One that is waiting, and at most as many more as are judged in one go."""
        taken: list[tuple[CheckJob, _PendingVerdict]] = []
        while len(taken) < MAX_BATCH and (queue := self._first or self._later):
            if taken and not self._waiting.acquire(blocking=False):
                break
            taken.append(queue.popleft())
        return taken

    def _judged(self, asked: Sequence[CheckJob]) -> list[Verdict | Exception]:
        """All in one go; where one of them cannot be read, one by one."""
        gate, how = self.gates[asked[0].gate], asked[0]
        try:
            found = gate.check_batch(
                [one.pair for one in asked], explain=how.explain, rounds_left=how.rounds_left
            )
        except Exception as error:  # noqa: BLE001 - whoever asked is told; the thread must live
            if len(asked) == 1:
                return [error]
            return [outcome for one in asked for outcome in self._judged([one])]
        self._measures.together.observe(len(asked))
        for verdict in found:
            self._measures.judged(how.gate, verdict)
        return list(found)

    def _keep(self, asked: CheckJob, outcome: Verdict | Exception) -> None:
        now = time.monotonic()
        if isinstance(outcome, Exception) or now - self._sampled < DRIFT_SAMPLE_S:
            return
        self._sampled = now
        seen = self._seen[asked.gate]
        if seen.keep(asked, outcome, now) and seen.drift is not None:
            self._measures.drifted(asked.gate, seen.drift)


class _DriftMonitor:
    """What a gate saw lately: figures only, no texts."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._rows: deque[npt.NDArray[np.floating[Any]]] = deque(maxlen=DRIFT_SAMPLES)
        self._actions: deque[str] = deque(maxlen=DRIFT_SAMPLES)
        self._judged_at = 0.0
        self.drift: Drift | None = None

    def keep(self, asked: CheckJob, verdict: Verdict, now: float) -> bool:
        """Was drift judged anew?"""
        self._rows.append(self._gate.features([asked.pair])[0])
        self._actions.append(str(verdict.action))
        if len(self._rows) < MIN_QUESTIONS or now - self._judged_at < DRIFT_INTERVAL_S:
            return False
        self._judged_at = now
        shares = {
            action: count / len(self._actions) for action, count in Counter(self._actions).items()
        }
        self.drift = self._gate.profile.drift(np.array(self._rows), shares)
        return True


def _deliver(outcomes: Iterable[_Outcome]) -> None:
    for future, outcome in outcomes:
        if future.done():
            continue
        if isinstance(outcome, Exception) and not isinstance(outcome, InputError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
