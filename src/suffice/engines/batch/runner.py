"""Run a job over blocks: results in order, finished blocks stored, failed ones retried.

At most a window of blocks runs at once, and as many results wait for their turn, so memory does not
grow with the input. An error in the middle of the input is raised after everything before it, as if
blocks ran one after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.engines.batch.checkpoint import Checkpoint
from suffice.errors import EngineError, SufficeError
from suffice.jobs import Job

if TYPE_CHECKING:
    from suffice.engines.batch.dask_executor import DaskCluster, DaskExecutor, DaskResult

__all__ = ["BatchRunner"]

MAX_TRIES = 3


class LocalExecutor:
    """Runs the blocks of one job in this process, at most `window` at once."""

    window = 1

    def __init__(self, job: Job) -> None:
        self._job, self._ready = job, job.prepare(job.shared)

    def submit(self, block: Any) -> DeferredResult:
        return DeferredResult(lambda: self._job.do(block, self._ready))


class DeferredResult:
    """A block that is computed when its result is requested; `drop` discards it."""

    done = False

    def __init__(self, work: Callable[[], Any]) -> None:
        self.result = work

    def drop(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of the input: its position in words, its content, its result and its file."""

    span: str
    content: Any
    file: Path | None
    pending: DeferredResult | DaskResult


class BatchRunner:
    """Runs jobs, as `suffice.jobs.JobRunner`, in this process or on the workers of a scheduler.

    With `checkpoint`, finished blocks stay in that folder until the `with` block ends without an
    error, and a later run reuses them. `command` is the command to run again, for error messages.
    `report` receives messages about retries and waiting.
    """

    def __init__(
        self,
        scheduler: str | None = None,
        *,
        checkpoint: Path | None = None,
        report: Callable[[str], None] | None = None,
        command: str = "the same command",
    ) -> None:
        self._report = report or (lambda line: None)
        self._command = command
        self._checkpoint = None if checkpoint is None else Checkpoint(checkpoint)
        self._cluster: DaskCluster | None = None
        if scheduler is not None:
            from suffice.engines.batch.dask_executor import DaskCluster  # lazy: a slow extra

            self._cluster = DaskCluster(scheduler, self._report)

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()

    def __enter__(self) -> BatchRunner:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close()
        if kind is None and self._checkpoint is not None:
            self._checkpoint.clear()

    def __call__(self, job: Job, blocks: Iterable[Any]) -> Iterator[Any]:
        """The result of each block, in the order of the blocks."""
        executor = self._executor(job)
        reader, waiting = _BlockReader(blocks), deque[_Block]()
        count = 0
        try:
            while True:
                while len(waiting) < executor.window and (block := next(reader, None)) is not None:
                    waiting.append(self._start(job, executor, block, count))
                    count += len(block)
                if not waiting:
                    break
                block = waiting.popleft()
                result = self._result(executor, block)
                self._keep(block, result)
                yield result
        finally:
            for block in waiting:
                with suppress(Exception):  # another error is being raised
                    if self._checkpoint is not None and block.pending.done:
                        self._keep(block, block.pending.result())
                with suppress(Exception):
                    block.pending.drop()
        if reader.error is not None:
            raise reader.error

    def _executor(self, job: Job) -> LocalExecutor | DaskExecutor:
        if self._cluster is None:
            return LocalExecutor(job)
        from suffice.engines.batch.dask_executor import DaskExecutor  # lazy: a slow extra

        return DaskExecutor(self._cluster, job)

    def _start(
        self, job: Job, executor: LocalExecutor | DaskExecutor, content: Any, count: int
    ) -> _Block:
        file = None if self._checkpoint is None else self._checkpoint.file(job, content)
        if self._checkpoint is not None and file is not None and file.exists():
            pending: DeferredResult | DaskResult
            pending = DeferredResult(partial(self._checkpoint.read, file))
        else:
            pending = executor.submit(content)
        return _Block(_describe_block(job, content, count), content, file, pending)

    def _keep(self, block: _Block, result: Any) -> None:
        if self._checkpoint is not None and block.file is not None and not block.file.exists():
            self._checkpoint.write(block.file, result)

    def _at_block(self, span: str, error: EngineError) -> EngineError:
        return EngineError(f"{span}: {error}", hint=f"{error.hint}; {self._hint}")

    def _result(self, executor: LocalExecutor | DaskExecutor, block: _Block) -> Any:
        pending = block.pending
        for tries in range(1, MAX_TRIES + 1):
            try:
                return pending.result()
            except Exception as error:  # any failure must name the block's position in the input
                retryable = getattr(error, "retryable", False)
                if isinstance(error, EngineError) and not retryable:
                    raise self._at_block(block.span, error) from error
                if isinstance(error, SufficeError) and not retryable:
                    raise
                cause = error
            finally:
                pending.drop()
            if tries < MAX_TRIES:
                self._report(f"{block.span}: failed ({_error_line(cause)}); trying again")
                pending = executor.submit(block.content)
        raise EngineError(
            f"{block.span}: failed {MAX_TRIES} times: {_error_line(cause)}",
            hint=f"fix the cause; {self._hint}",
            retryable=True,
        ) from cause

    @property
    def _hint(self) -> str:
        reuse = "finished blocks are reused"
        if not self._checkpoint:
            reuse = "with --checkpoint DIR, finished blocks would be reused"
        return f"then run again: {self._command} ({reuse})"


class _BlockReader(Iterator[Any]):
    """The blocks of an input. If reading fails they end, and `error` has the error."""

    def __init__(self, blocks: Iterable[Any]) -> None:
        self._blocks = iter(blocks)
        self.error: Exception | None = None

    def __next__(self) -> Any:
        if self.error is not None:
            raise StopIteration
        try:
            return next(self._blocks)
        except StopIteration:
            raise
        except Exception as error:  # noqa: BLE001 - raised when the blocks before it are done
            self.error = error
            raise StopIteration from None


def _describe_block(job: Job, block: Sequence[Any], count: int) -> str:
    """Which part of the input a block is, for error messages."""
    ends = [getattr(one, "where", None) for one in (block[0], block[-1])] if len(block) else []
    if all(ends) and ends:
        return f"{ends[0]} to {ends[1]}" if ends[0] != ends[1] else f"{ends[0]}"
    return f"{job.name}, {count + 1:,} to {count + len(block):,}"


def _error_line(error: BaseException) -> str:
    """The error in one line: a worker's may be a page long."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 300 else text[:299] + "…"
