"""Requests to a shared server: concurrent, rate-limited, retried if that may help.

Each request has one deadline for everything: waiting for its turn, its tries, the pauses between
them and every byte of the answer. Nothing is sent after the deadline, and no late answer is
awaited.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Protocol, TypeVar

from suffice.errors import InputError, ModelError

__all__ = ["RateLimit", "ServerBusyError", "call_with_retries", "retry_after", "run_concurrently"]

T = TypeVar("T")
MINUTE_S = 60.0
FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 8.0  # each pause is random, up to twice the one before


class ServerBusyError(ModelError):
    """The server is busy; `pause` is how many seconds it asks to wait."""

    def __init__(self, message: str, *, hint: str = "", pause: float = 0.0) -> None:
        super().__init__(message, hint=hint, retryable=True)
        self.pause = pause


def timeout_error(seconds: float) -> ModelError:
    hint = "raise timeout_s, or use a faster model"
    return ModelError(f"no answer within {seconds:g} s", hint=hint, retryable=True)


class RateLimit:
    """At most this many requests and tokens in any minute; None for no limit.

    Each request gets the earliest moment within the limits and sleeps until then. Several models
    may share one rate limit.
    """

    def __init__(
        self,
        *,
        requests: int | None = None,
        tokens: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        for name, limit in (("requests", requests), ("tokens", tokens)):
            if limit is not None and limit < 1:
                message = f"a rate limit of {limit} {name} a minute allows nothing"
                raise InputError(message, hint="leave it out for no limit")
        self.requests, self.tokens = requests, tokens
        self._clock, self._sleep, self._lock = clock, sleep, threading.Lock()
        self._sent: deque[list[float]] = deque()  # [moment, tokens], including waiting requests

    def wait(self, tokens: int, *, seconds: float) -> Callable[[int], None]:
        """Sleep until the request may be sent; ModelError at once if that takes longer than
        `seconds`.

        Call the returned function with the tokens actually used.
        """
        with self._lock:
            now = self._clock()
            moment = self._next_moment(now, tokens)
            if moment - now > seconds:
                message = f"the rate limit allows no request within {seconds:g} s"
                hint = "allow more a minute, or more time"
                raise ModelError(message, hint=hint, retryable=True)
            entry = [moment, float(tokens)]
            self._sent.append(entry)
        if moment > now:
            self._sleep(moment - now)

        def settle(used: int) -> None:
            entry[1] = float(used)

        return settle

    def _next_moment(self, now: float, tokens: int) -> float:
        while self._sent and self._sent[0][0] <= now - MINUTE_S:
            self._sent.popleft()
        moment = max(now, self._sent[-1][0] if self._sent else now)
        if self.requests is not None and len(self._sent) >= self.requests:
            moment = max(moment, self._sent[-self.requests][0] + MINUTE_S)
        if self.tokens is None:
            return moment
        room = float(self.tokens - tokens)
        for then, used in reversed(self._sent):
            room -= used
            if room < 0:  # a request above the limit is sent after an empty minute
                return max(moment, then + MINUTE_S)
        return moment


def call_with_retries(
    call: Callable[[float], T],
    *,
    retries: int,
    seconds: float,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Call with the seconds left; repeat while it fails with a retryable error.

    A pause is what the server asks for plus a random, growing share, so that clients do not return
    at the same time. If it would end after the deadline, the error is raised at once.
    """
    deadline, attempt = time.monotonic() + seconds, 0
    while True:
        try:
            return call(deadline - time.monotonic())
        except ModelError as error:
            growing = random.uniform(0, min(FIRST_PAUSE_S * 2**attempt, MAX_PAUSE_S))
            pause = getattr(error, "pause", 0.0) + growing
            too_late = time.monotonic() + pause >= deadline
            if not error.retryable or attempt == retries or too_late:
                raise
        sleep(pause)
        attempt += 1


class _Headers(Protocol):
    def get(self, name: str) -> str | None: ...


def retry_after(headers: _Headers, now: float) -> float:
    """Seconds the server asks to wait, from `retry-after-ms` or `retry-after`; 0 if it does not."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = headers.get(name) or ""
        try:
            pause = float(value) / unit
        except ValueError:
            pause = _seconds_until(value, now)
        if pause > 0:
            return pause
    return 0.0


def _seconds_until(date: str, now: float) -> float:
    try:
        return parsedate_to_datetime(date).timestamp() - now
    except (ValueError, OverflowError, OSError):
        return 0.0


def run_concurrently(
    calls: Sequence[Callable[[], T]],
    *,
    limit: int,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[int, T | ModelError]]:
    """The index and result of each call as it ends, at most `limit` at once.

    A ModelError is a result; other errors are raised. A call that exceeds `seconds` is abandoned.
    """
    done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
    started: dict[int, float] = {}
    following = 0

    def run(index: int) -> None:
        try:
            done.put((index, calls[index]()))
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            done.put((index, error))

    while following < len(calls) or started:
        while following < len(calls) and len(started) < limit:
            started[following] = clock()
            # A daemon thread, because a hanging read must not delay the end of the program.
            options: dict[str, Any] = {"daemon": True, "name": "suffice-model"}
            threading.Thread(target=run, args=(following,), **options).start()
            following += 1
        oldest = min(started, key=started.__getitem__)
        try:
            index, result = done.get(timeout=max(started[oldest] + seconds - clock(), 0.0))
        except queue.Empty:
            index, result = oldest, timeout_error(seconds)
        if started.pop(index, None) is None:
            continue  # abandoned earlier
        if isinstance(result, BaseException) and not isinstance(result, ModelError):
            raise result
        yield index, result
