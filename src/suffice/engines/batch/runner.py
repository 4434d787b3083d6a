"""A job over blocks: results in the order of the blocks, finished blocks kept, a failed one tried again and then named.

At most a window of blocks is under way, and at most that many results wait for their turn: memory does not grow with the input.
What goes wrong in the middle of the input is told after everything before it, as if there had been one block after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from suffice.engines.batch.checkpoint import Checkpoint
from suffice.engines.batch.executor import DeferredResult, Executor, LocalExecutor, PendingResult
from suffice.errors import EngineError, SufficeError
from suffice.jobs import Job

if TYPE_CHECKING:
    from suffice.engines.batch.dask_executor import DaskCluster

__all__ = ["BatchRunner"]

TRIES = 3


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of the input: where it stands there, what came of it so far, and where the result is kept."""

    span: str
    content: Any
    file: Path | None
    pending: PendingResult


class BatchRunner:
    """A place to run jobs, as `suffice.jobs.JobRunner`: this process, or the workers of a Dask scheduler.

    With `keep` the finished blocks stand in that folder until the `with` block ends without an error; a run that finds them
    there takes them up. `again` is the command that does so. `tell` hears what a person would want to know on the way.
    """

    def __init__(
        self,
        scheduler: str | None = None,
        *,
        keep: Path | None = None,
        tell: Callable[[str], None] | None = None,
        again: str = "the same command",
    ) -> None:
        self._tell = tell or (lambda line: None)
        self._again = again
        self._kept = None if keep is None else Checkpoint(keep)
        self._runs: WeakSet[Generator[Any, None, None]] = WeakSet()
        self._cluster: DaskCluster | None = None
        if scheduler is not None:
            from suffice.engines.batch.dask_executor import (
                DaskCluster,  # late: dask is an extra, and slow to import
            )

            self._cluster = DaskCluster(scheduler, self._tell)

    def close(self) -> None:
        for run in list(
            self._runs
        ):  # one that nobody reads to its end still has finished blocks to keep
            run.close()
        if self._cluster is not None:
            self._cluster.close()

    def __enter__(self) -> BatchRunner:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close()
        if kind is None and self._kept is not None:
            self._kept.clear()

    def __call__(self, job: Job, blocks: Iterable[Any]) -> Iterator[Any]:
        """The result of each block, in the order of the blocks."""
        run = self._run(job, blocks)
        self._runs.add(run)
        return run

    def _run(self, job: Job, blocks: Iterable[Any]) -> Generator[Any, None, None]:
        place: Executor = LocalExecutor(job) if self._cluster is None else self._cluster.place(job)
        coming, waiting = _BlockReader(blocks), deque[_Block]()
        done = 0
        try:
            while True:
                while len(waiting) < place.window and (block := next(coming, None)) is not None:
                    waiting.append(self._begun(job, place, block, done))
                    done += len(block)
                if not waiting:
                    break
                yield self._finished(place, waiting.popleft())
        finally:
            for one in waiting:
                self._leave(one)
        coming.complain()

    def _begun(self, job: Job, place: Executor, content: Any, done: int) -> _Block:
        file = None if self._kept is None else self._kept.place(job, content)
        if self._kept is not None and file is not None and file.exists():
            pending: PendingResult = DeferredResult(partial(self._kept.read, file))
        else:
            pending = place.begin(content)
        return _Block(_describe_block(job, content, done), content, file, pending)

    def _finished(self, place: Executor, one: _Block) -> Any:
        result = self._tried(place, one)
        if self._kept is not None and one.file is not None and not one.file.exists():
            self._kept.write(one.file, result)
        return result

    def _tried(self, place: Executor, one: _Block) -> Any:
        pending = one.pending
        for tries in range(1, TRIES + 1):
            try:
                return pending.result()
            except EngineError as error:
                if not error.retryable:
                    raise EngineError(
                        f"{one.span}: {error}", hint=f"{error.hint}; {self._hint}"
                    ) from error
                cause: Exception = error
            except SufficeError as error:
                if not getattr(error, "retryable", False):
                    raise
                cause = error
            except Exception as error:  # noqa: BLE001 - whatever a block fails of, its place in the input has to be told
                cause = error
            finally:
                pending.drop()
            if tries < TRIES:
                self._tell(f"{one.span}: failed ({_error_line(cause)}); trying again")
                pending = place.begin(one.content)
        raise EngineError(
            f"{one.span}: could not be done in {TRIES} tries: {_error_line(cause)}",
            hint=f"see to the cause; {self._hint}",
            retryable=True,
        ) from cause

    @property
    def _hint(self) -> str:
        kept = (
            "finished blocks are taken up"
            if self._kept
            else "with --checkpoint DIR, finished blocks would be taken up"
        )
        return f"then run again: {self._again} ({kept})"

    def _leave(self, one: _Block) -> None:
        """The run ends before this block's turn: what is finished of it is not lost."""
        with suppress(Exception):  # another error is under way, and must be the one that is told
            if self._kept is not None and one.file is not None and one.pending.done:
                self._kept.write(one.file, one.pending.result())
        one.pending.drop()


class _BlockReader(Iterator[Any]):
    """The blocks of an input. Where reading fails, they end there, and the error is kept until somebody asks for it."""

    def __init__(self, blocks: Iterable[Any]) -> None:
        self._blocks = iter(blocks)
        self._trouble: Exception | None = None

    def __next__(self) -> Any:
        if self._trouble is not None:
            raise StopIteration
        try:
            return next(self._blocks)
        except StopIteration:
            raise
        except Exception as error:  # noqa: BLE001 - raised again by `complain`
            self._trouble = error
            raise StopIteration from None

    def complain(self) -> None:
        if self._trouble is not None:
            raise self._trouble


def _describe_block(job: Job, block: Sequence[Any], done: int) -> str:
    """Which part of the input a block is, as a person finds it there."""
    places = [getattr(one, "where", None) for one in (block[0], block[-1])] if len(block) else []
    if all(places) and places:
        return f"{places[0]} to {places[1]}" if places[0] != places[1] else f"{places[0]}"
    return f"{job.name}, {done + 1:,} to {done + len(block):,}"


def _error_line(error: BaseException) -> str:
    """The error in one line: a worker's may bring a page."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 300 else text[:299] + "…"
