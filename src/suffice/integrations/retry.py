"""Sending requests to a server that others use, too: several at once, not too many a minute, again where that may help.

Each request has one deadline for all of it: its turn, its tries, the pauses between them and every byte of the answer. Nothing
is sent after it. Who waits too long is left behind, not waited for.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Protocol, TypeVar

from suffice.errors import InputError, MissingExtraError, ModelError

__all__ = [
    "RateLimit",
    "ServerBusyError",
    "call_with_retries",
    "retry_after",
    "run_concurrently",
    "timeout_error",
]

T = TypeVar("T")
MINUTE_S = 60.0
FIRST_PAUSE_S, MAX_PAUSE_S = (
    0.5,
    8.0,
)  # seconds; each pause is a random share of up to twice the one before


class ServerBusyError(ModelError):
    """The server is busy, and may have said for how many seconds."""

    def __init__(self, message: str, *, hint: str = "", pause: float = 0.0) -> None:
        super().__init__(message, hint=hint, retryable=True)
        self.pause = pause


def timeout_error(seconds: float) -> ModelError:
    return ModelError(
        f"no answer within {seconds:g} s",
        hint="raise timeout_s, or take a faster model",
        retryable=True,
    )


# ---------------------------------------------------------------------------------------------------- not too many


class RateLimit:
    """At most so many requests and tokens in any minute; None: as many as one likes. One pace may serve several models.

    Whoever comes is given the earliest moment that keeps the limits, and sleeps until then.
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
                raise InputError(
                    f"a pace of {limit} {name} a minute allows nothing",
                    hint="leave it out for no limit",
                )
        self.requests, self.tokens = requests, tokens
        self._clock, self._sleep, self._lock = clock, sleep, threading.Lock()
        self._sent: deque[list[float]] = (
            deque()
        )  # [moment, tokens] of the last minute, and of those who sleep still

    def wait(self, tokens: int, *, seconds: float) -> Callable[[int], None]:
        """Sleep until this request may go; ModelError at once where that would take longer than so many seconds.

        What it returns is told how many tokens it were in the end.
        """
        with self._lock:
            now = self._clock()
            moment = self._moment(now, tokens)
            if moment - now > seconds:
                hint = "allow more a minute, or more time"
                raise ModelError(
                    f"no turn within {seconds:g} s at this pace", hint=hint, retryable=True
                )
            entry = [moment, float(tokens)]
            self._sent.append(entry)
        if moment > now:
            self._sleep(moment - now)

        def settle(used: int) -> None:
            entry[1] = float(used)

        return settle

    def _moment(self, now: float, tokens: int) -> float:
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
            if (
                room < 0
            ):  # one that is larger than the limit goes when the minute before it is empty
                return max(moment, then + MINUTE_S)
        return moment


# ---------------------------------------------------------------------------------------------------- again


def call_with_retries(
    call: Callable[[float], T],
    *,
    retries: int,
    seconds: float,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """What the call returns; it is told how many seconds are left. Tried again where its error says that this may help.

    A pause is as long as the server asks for, and a random, growing share more, so that not all who were turned away come
    back together. Where it would end after the deadline there is none: the error comes at once.
    """
    try:
        import tenacity
    except ImportError as error:
        raise MissingExtraError("asking a language model", extra="llm") from error
    until = time.monotonic() + seconds

    def asked_for(state: tenacity.RetryCallState) -> float:
        return getattr(state.outcome.exception(), "pause", 0.0) if state.outcome else 0.0

    again = tenacity.Retrying(
        retry=tenacity.retry_if_exception(
            lambda error: isinstance(error, ModelError) and error.retryable
        ),
        wait=tenacity.wait_combine(
            asked_for, tenacity.wait_random_exponential(multiplier=FIRST_PAUSE_S, max=MAX_PAUSE_S)
        ),
        stop=tenacity.stop_any(
            tenacity.stop_after_attempt(retries + 1), tenacity.stop_before_delay(seconds)
        ),
        sleep=sleep,
        reraise=True,
    )
    return again(lambda: call(until - time.monotonic()))


class _Headers(Protocol):
    def get(self, name: str) -> str | None: ...


def retry_after(headers: _Headers, now: float) -> float:
    """Seconds that a server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date. 0 where it does not."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = headers.get(name) or ""
        try:
            pause = float(value) / unit
        except ValueError:
            pause = _seconds_until(value, now)
        if pause > 0:
            return pause
    return 0.0


def _seconds_until(day: str, now: float) -> float:
    try:
        return parsedate_to_datetime(day).timestamp() - now
    except (ValueError, OverflowError, OSError):
        return 0.0


# ---------------------------------------------------------------------------------------------------- several at once


def run_concurrently(
    calls: Sequence[Callable[[], T]],
    *,
    most: int,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[int, T | ModelError]]:
    """The place of each call and what it returned, as they end; at most so many run at once.

    A ModelError is a result like any other; other errors are raised. One that takes longer than its seconds is left behind.
    """
    done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
    begun: dict[int, float] = {}
    following = 0

    def run(place: int) -> None:
        try:
            done.put((place, calls[place]()))
        except BaseException as error:  # noqa: BLE001 - handed to the one who waits
            done.put((place, error))

    while following < len(calls) or begun:
        while following < len(calls) and len(begun) < most:
            begun[following] = clock()
            # A daemon: what hangs in a read must not hold up the end of the program.
            threading.Thread(
                target=run, args=(following,), daemon=True, name="suffice-model"
            ).start()
            following += 1
        first = min(begun, key=begun.__getitem__)
        try:
            place, result = done.get(timeout=max(begun[first] + seconds - clock(), 0.0))
        except queue.Empty:
            place, result = first, timeout_error(seconds)
        if begun.pop(place, None) is None:
            continue  # it was left behind before
        if isinstance(result, BaseException) and not isinstance(result, ModelError):
            raise result
        yield place, result
