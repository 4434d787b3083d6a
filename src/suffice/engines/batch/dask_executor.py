"""Dask's workers as a place to run jobs.

A block travels inside its task, not as data on a worker: when a worker dies, the scheduler gives the task to another one. What
a job shares is a task too, made once and passed from worker to worker, and prepared once in each process. A worker with another
version of suffice, or of a package that can change a number, refuses the work.

Dask itself carries functions and values between machines by pickle: whoever can reach a scheduler can run code on its workers.
Certificates (`tls://`) come from Dask's own configuration.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from suffice.engines.batch.checkpoint import environment_versions, version_differences
from suffice.engines.batch.executor import Executor, PendingResult
from suffice.errors import EngineError, InputError, MissingExtraError, NotReadyError, SufficeError
from suffice.jobs import Job
from suffice.storage import package_versions

__all__ = ["DaskCluster"]

CONNECT_S = 10.0
WORKER_WAIT_S = 60.0  # how long no worker at all may be there: one that crashed comes back in this time, or somebody has to look
POLL_S = 2.0
MAX_PREPARED = 2  # what a worker keeps prepared: the job it does, and the one before
QUEUED_PER_THREAD = 2  # blocks that wait for each thread of a worker while it does another


class DaskCluster:
    """A connection to a scheduler that has at least one worker."""

    def __init__(self, address: str, tell: Callable[[str], None]) -> None:
        self.address = _checked_address(address)
        try:
            import distributed
        except ImportError as error:
            raise MissingExtraError("working on a Dask scheduler", extra="dask") from error
        connect: Any = distributed.Client  # untyped
        try:
            with _dask_config(
                {"distributed.admin.low-level-log-length": 0}
            ):  # it would remember the last 1,000 blocks
                self.client = connect(
                    self.address, timeout=CONNECT_S, set_as_default=False, name="suffice"
                )
        except (OSError, TimeoutError, RuntimeError, ValueError) as error:
            raise EngineError(
                f"no Dask scheduler answers at {address}: {error}",
                hint="start one with: dask scheduler",
                retryable=True,
            ) from error
        try:
            self._await_workers(tell)
            self._expect_the_same()
        except BaseException:
            self.client.close()
            raise

    def _await_workers(self, tell: Callable[[str], None]) -> None:
        if self.threads:
            return
        tell(
            f"the scheduler at {self.address} has no worker yet; waiting {WORKER_WAIT_S:.0f} s for one"
        )
        try:
            self.client.wait_for_workers(1, timeout=WORKER_WAIT_S)
        except TimeoutError as error:
            raise self.deserted() from error

    def _expect_the_same(self) -> None:
        """A worker without suffice dies of its first task, and may take others' tries with it: better asked before."""
        wanted = package_versions()
        found = self.client.get_versions(packages=list(wanted))
        there = {f"the worker at {address}": told for address, told in found["workers"].items()}
        for where, told in there.items():
            _refuse_differences(
                version_differences(wanted, {name: told["packages"].get(name) for name in wanted}),
                where,
            )
        unpacks = {
            "suffice": wanted.get("suffice")
        }  # the scheduler only has to know what it passes on
        _refuse_differences(
            version_differences(
                unpacks, {"suffice": found["scheduler"]["packages"].get("suffice")}
            ),
            "the scheduler",
        )

    @property
    def threads(self) -> int:
        """How many blocks the workers that are there can work on at once."""
        return sum(self.client.nthreads().values())

    def deserted(self) -> EngineError:
        hint = f"start one: dask worker {self.address} --nthreads 1"
        return EngineError(f"the scheduler at {self.address} has no worker", hint=hint)

    def place(self, job: Job) -> Executor:
        return _DaskExecutor(self, job)

    def close(self) -> None:
        self.client.close()


def _dask_config(settings: Mapping[str, Any]) -> Any:
    """Dask's own settings, for the time of a block."""
    import dask

    return dask.config.set(settings)


def _checked_address(address: str) -> str:
    try:
        parts = urlsplit(address)
        whole = parts.scheme in ("tcp", "tls") and bool(parts.hostname) and parts.port is not None
    except ValueError:
        whole = False
    if not whole:
        raise InputError(
            f"--scheduler is {address!r}, which is no address",
            hint="like tcp://127.0.0.1:8786, or tls://…",
        )
    return address


def _refuse_differences(other: str, where: str) -> None:
    if other:
        raise NotReadyError(
            f"{where} would not give the same results: {other}",
            hint="install the same versions there and here, and start it again",
        )


class _DaskExecutor:
    """One job on the workers."""

    def __init__(self, cluster: DaskCluster, job: Job) -> None:
        self.cluster = cluster
        self._name = f"suffice-{job.name.replace(' ', '-')}-{uuid.uuid4().hex[:12]}"
        self._count = 0
        self._job = _Sealed(replace(job, shared=None, key=job.key or self._name))
        self._shared = self._submit("shared", _identity, _Sealed(job.shared))
        self._window, self._looked = 0, -POLL_S

    @property
    def window(self) -> int:
        now = time.monotonic()
        if now - self._looked > POLL_S:  # workers come and go
            self._window, self._looked = (
                QUEUED_PER_THREAD + QUEUED_PER_THREAD * self.cluster.threads,
                now,
            )
        return self._window

    def begin(self, block: Any) -> PendingResult:
        self._count += 1
        task = self._submit(
            f"{self._count}",
            _run_block,
            environment_versions(),
            self._job,
            self._shared,
            _Sealed(block),
        )
        return _DaskResult(self.cluster, task)

    def _submit(self, name: str, function: Callable[..., Any], *given: Any) -> Any:
        # A large task is what we want: data that lies on a worker is gone when the worker is.
        with _dask_config({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self.cluster.client.submit(
                function, *given, key=f"{self._name}-{name}", pure=False
            )


class _DaskResult:
    """A block on its way through the scheduler."""

    def __init__(self, cluster: DaskCluster, future: Any) -> None:
        self._cluster, self._future = cluster, future

    @property
    def done(self) -> bool:
        return bool(self._future.status == "finished")

    def result(self) -> Any:
        import distributed

        wait: Any = distributed.wait  # untyped
        alone_since: float | None = None
        while True:
            try:
                with self._cluster.client.as_current():
                    wait([self._future], timeout=POLL_S)
                break
            except TimeoutError:
                alone_since = self._alone(alone_since)
            except (distributed.CancelledError, OSError) as error:
                raise self._lost() from error
        try:
            found = self._future.result()
        except distributed.CancelledError as error:
            raise self._lost() from error
        except Exception as error:
            if _is_unpickling_error(error):
                raise NotReadyError(
                    f"the scheduler at {self._cluster.address}, or a worker of it, does not know this work: {error}",
                    hint="install the same suffice, and what your plug-ins need, where scheduler and workers run",
                ) from error
            raise
        if isinstance(found, _FinalError):
            raise found.error
        return found

    def _alone(self, since: float | None) -> float | None:
        """Since when no worker has been there; an error when that is too long."""
        try:
            if self._cluster.threads:
                return None
        except (OSError, RuntimeError) as error:
            raise self._lost() from error
        now = time.monotonic()
        if since is not None and now - since > WORKER_WAIT_S:
            raise self._cluster.deserted()
        return since or now

    def _lost(self) -> EngineError:
        return EngineError(
            f"the scheduler at {self._cluster.address} went away", hint="see that it runs"
        )

    def drop(self) -> None:
        self._future.release()


def _is_unpickling_error(error: BaseException | None) -> bool:
    """Whether a task could not even be unpacked; the scheduler unpacks it first."""
    return error is not None and (
        isinstance(error, ImportError | AttributeError)
        or "deserializ" in str(error)
        or _is_unpickling_error(error.__cause__)
    )


# ------------------------------------------------------------------------------------------------ on the worker


class _Sealed:
    """A value that Dask hands over as it is, without looking for tasks inside it."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _FinalError:
    """An error that another try would not mend: it travels as a result."""

    __slots__ = ("error",)

    def __init__(self, error: SufficeError) -> None:
        self.error = error


def _identity(value: _Sealed) -> _Sealed:
    return value


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
    """What the job needs, made once in this process: its key says what it was made from."""
    with _preparing:
        known = f"{job.name}\0{job.key}"
        if known not in _prepared:
            while len(_prepared) >= MAX_PREPARED:
                _prepared.pop(next(iter(_prepared)))
            _prepared[known] = _prepare(wanted, job, shared)
        return _prepared[known]


def _prepare(wanted: Mapping[str, str], job: Job, shared: Any) -> Any:
    from distributed import get_worker

    where = f"the worker at {get_worker().address}"
    _refuse_differences(version_differences(wanted, environment_versions()), where)
    try:
        return job.prepare(shared)
    except SufficeError as error:
        raise NotReadyError(f"{where}: {error}", hint=error.hint) from error
