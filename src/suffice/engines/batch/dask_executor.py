"""Run the blocks of a job on Dask workers.

A block is part of its task, not data on a worker: when a worker dies, the scheduler gives the task
to another. What a job shares is also a task, passed from worker to worker and prepared once per
process. A worker refuses the work if suffice, or a package that can change a number, has another
version there.

Dask sends functions and values with pickle: anyone who can reach a scheduler can run code on its
workers. Certificates (`tls://`) come from Dask's own configuration.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from suffice.engines.batch.checkpoint import environment_versions, version_differences
from suffice.errors import EngineError, InputError, MissingExtraError, NotReadyError, SufficeError
from suffice.jobs import Job, identity

__all__ = ["DaskCluster"]

CONNECT_S = 10.0
WORKER_WAIT_S = 60.0  # how long there may be no worker: a crashed one is back by then
POLL_S = 2.0
MAX_PREPARED = 2  # kept in a worker: the current job and the previous one
QUEUED_PER_THREAD = 2  # blocks queued per worker thread


class DaskCluster:
    """A connection to a scheduler that has at least one worker."""

    def __init__(self, address: str, report: Callable[[str], None]) -> None:
        self.address = _checked_address(address)
        try:
            import distributed
        except ImportError as error:
            raise MissingExtraError("working on a Dask scheduler", extra="dask") from error
        connect: Any = distributed.Client  # untyped
        options = {"timeout": CONNECT_S, "set_as_default": False, "name": "suffice"}
        try:
            # Dask would keep the last 1,000 blocks.
            with _dask_config({"distributed.admin.low-level-log-length": 0}):
                self.client = connect(self.address, **options)
        except (OSError, TimeoutError, RuntimeError, ValueError) as error:
            raise EngineError(
                f"no Dask scheduler answers at {address}: {error}",
                hint="start one with: dask scheduler",
                retryable=True,
            ) from error
        try:
            if not self.threads:
                wait = f"waiting {WORKER_WAIT_S:.0f} s for one"
                report(f"the scheduler at {self.address} has no worker yet; {wait}")
                self.client.wait_for_workers(1, timeout=WORKER_WAIT_S)
        except TimeoutError as error:
            self.client.close()
            raise self.no_worker_error() from error

    @property
    def threads(self) -> int:
        """How many blocks the current workers can run at once."""
        try:
            return sum(self.client.nthreads().values())
        except (OSError, RuntimeError) as error:
            raise self.lost_error() from error

    def no_worker_error(self) -> EngineError:
        hint = f"start one: dask worker {self.address} --nthreads 1"
        return EngineError(f"the scheduler at {self.address} has no worker", hint=hint)

    def lost_error(self) -> EngineError:
        message = f"the scheduler at {self.address} went away"
        return EngineError(message, hint="check that it runs")

    def close(self) -> None:
        self.client.close()


def _dask_config(settings: Mapping[str, Any]) -> Any:
    """A context manager with these Dask settings."""
    import dask

    return dask.config.set(settings)


def _checked_address(address: str) -> str:
    try:
        parts = urlsplit(address)
        valid = parts.scheme in ("tcp", "tls") and bool(parts.hostname) and parts.port is not None
    except ValueError:
        valid = False
    if not valid:
        hint = "like tcp://127.0.0.1:8786, or tls://…"
        raise InputError(f"--scheduler is {address!r}, which is not an address", hint=hint)
    return address


class DaskExecutor:
    """One job on the workers."""

    def __init__(self, cluster: DaskCluster, job: Job) -> None:
        self.cluster = cluster
        self._name = f"suffice-{job.name.replace(' ', '-')}-{uuid.uuid4().hex[:12]}"
        self._count = 0
        self._job = _Sealed(replace(job, shared=None, key=job.key or self._name))
        self._shared = self._submit("shared", identity, _Sealed(job.shared))
        self.window = QUEUED_PER_THREAD + QUEUED_PER_THREAD * cluster.threads

    def submit(self, block: Any) -> DaskResult:
        self._count += 1
        given = (environment_versions(), self._job, self._shared, _Sealed(block))
        return DaskResult(self.cluster, self._submit(f"{self._count}", _run_block, *given))

    def _submit(self, name: str, function: Callable[..., Any], *given: Any) -> Any:
        # Large tasks are intended: data on a worker is lost when the worker dies.
        with _dask_config({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            key = f"{self._name}-{name}"
            return self.cluster.client.submit(function, *given, key=key, pure=False)


class DaskResult:
    """A block on its way through the scheduler."""

    def __init__(self, cluster: DaskCluster, future: Any) -> None:
        self._cluster, self._future = cluster, future

    @property
    def done(self) -> bool:
        return bool(self._future.status == "finished")

    def result(self) -> Any:
        from distributed import CancelledError

        self._wait()
        try:
            found = self._future.result()
        except CancelledError as error:
            raise self._cluster.lost_error() from error
        except Exception as error:
            if not _is_unpickling_error(error):
                raise
            where = f"the scheduler at {self._cluster.address}, or one of its workers,"
            raise NotReadyError(
                f"{where} cannot load this task: {error}",
                hint="install the same suffice, and your plug-ins, on scheduler and workers",
            ) from error
        if isinstance(found, _FinalError):
            raise found.error
        return found

    def _wait(self) -> None:
        """Until the block is finished; an error if there has been no worker for too long."""
        import distributed

        wait: Any = distributed.wait  # untyped
        seen = time.monotonic()  # the last time that there was a worker
        while True:
            try:
                with self._cluster.client.as_current():
                    wait([self._future], timeout=POLL_S)
                return
            except TimeoutError:
                if self._cluster.threads:
                    seen = time.monotonic()
                elif time.monotonic() - seen > WORKER_WAIT_S:
                    raise self._cluster.no_worker_error() from None
            except (distributed.CancelledError, OSError) as error:
                raise self._cluster.lost_error() from error

    def drop(self) -> None:
        self._future.release()


def _is_unpickling_error(error: BaseException | None) -> bool:
    """Whether a task could not be unpickled, which the scheduler does first."""
    return error is not None and (
        isinstance(error, ImportError | AttributeError)
        or "deserializ" in str(error)
        or _is_unpickling_error(error.__cause__)
    )


# ------------------------------------------------------------------------------------ on the worker


@dataclass(frozen=True, slots=True)
class _Sealed:
    """A value that Dask passes on without searching it for tasks."""

    value: Any


@dataclass(frozen=True, slots=True)
class _FinalError:
    """An error that a retry would not fix, returned as a result."""

    error: SufficeError


def _run_block(wanted: Mapping[str, str], job: _Sealed, shared: _Sealed, block: _Sealed) -> Any:
    try:
        return job.value.do(block.value, _prepared_job(wanted, job.value, shared.value))
    except SufficeError as error:
        if getattr(error, "retryable", False):
            raise
        return _FinalError(error)


_prepared: dict[str, Any] = {}
_preparing = threading.Lock()


def _prepared_job(wanted: Mapping[str, str], job: Job, shared: Any) -> Any:
    """The prepared input of the job, made once per process; the key identifies its source."""
    with _preparing:
        key = f"{job.name}\0{job.key}"
        if key not in _prepared:
            while len(_prepared) >= MAX_PREPARED:
                _prepared.pop(next(iter(_prepared)))
            _prepared[key] = _prepare(wanted, job, shared)
        return _prepared[key]


def _prepare(wanted: Mapping[str, str], job: Job, shared: Any) -> Any:
    from distributed import get_worker

    where = f"the worker at {get_worker().address}"
    if differences := version_differences(wanted, environment_versions()):
        raise NotReadyError(
            f"{where} would not give the same results: {differences}",
            hint="install the same versions there and here, and start it again",
        )
    try:
        return job.prepare(shared)
    except SufficeError as error:
        raise NotReadyError(f"{where}: {error}", hint=error.hint) from error
