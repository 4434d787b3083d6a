"""Where the blocks of a job are worked on: the seam, and the place that is always there, this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from suffice.jobs import Job

__all__ = ["DeferredResult", "Executor", "LocalExecutor", "PendingResult"]


class PendingResult(Protocol):
    """A block that is under way."""

    @property
    def done(self) -> bool: ...

    def result(self) -> Any:
        """What came of it, or the error."""
        ...

    def drop(self) -> None:
        """Nobody waits for it any more."""
        ...


class Executor(Protocol):
    """Where the blocks of one job are worked on."""

    @property
    def window(self) -> int:
        """How many blocks may be under way."""
        ...

    def begin(self, block: Any) -> PendingResult: ...


class LocalExecutor:
    """This process: a block is worked on when its turn comes."""

    window = 1

    def __init__(self, job: Job) -> None:
        self._job, self._ready = job, job.prepare(job.shared)

    def begin(self, block: Any) -> PendingResult:
        return DeferredResult(lambda: self._job.do(block, self._ready))


class DeferredResult:
    """Done when it is asked for."""

    done = False

    def __init__(self, work: Callable[[], Any]) -> None:
        self.result = work

    def drop(self) -> None:
        """Nothing is under way."""
