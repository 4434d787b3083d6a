from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InputError, ModelError
from suffice.integrations.retry import (
    RateLimit,
    ServerBusyError,
    call_with_retries,
    retry_after,
    run_concurrently,
)


class Day:
    """A clock that stands still until someone sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@given(
    coming=st.lists(st.tuples(st.floats(0, 30), st.integers(1, 90)), min_size=1, max_size=40),
    requests=st.integers(1, 6),
    tokens=st.integers(50, 200),
)
def test_in_no_minute_more_go_than_the_pace_allows(
    coming: list[tuple[float, int]], requests: int, tokens: int
) -> None:
    day = Day()
    limit = RateLimit(requests=requests, tokens=tokens, clock=day.clock, sleep=day.sleep)
    sent: list[tuple[float, int]] = []
    for pause, size in coming:
        day.sleep(pause)
        limit.wait(size, seconds=1e6)
        sent.append((day.now, size))
    for start, _ in sent:
        minute = [size for moment, size in sent if start <= moment < start + 60 - 1e-6]
        assert len(minute) <= requests
        assert sum(minute) <= tokens or len(minute) == 1


def test_who_is_within_the_pace_does_not_wait() -> None:
    day = Day()
    limit = RateLimit(requests=3, tokens=100, clock=day.clock, sleep=day.sleep)
    for _ in range(3):
        limit.wait(30, seconds=1)
    assert day.now == 0


def test_a_turn_that_comes_too_late_is_refused_at_once_and_takes_no_place() -> None:
    day = Day()
    limit = RateLimit(requests=1, clock=day.clock, sleep=day.sleep)
    limit.wait(1, seconds=5)
    with pytest.raises(ModelError, match="no request within 5 s") as caught:
        limit.wait(1, seconds=5)
    assert caught.value.retryable
    assert day.now == 0
    day.sleep(60)
    limit.wait(1, seconds=0)


def test_tokens_that_were_not_used_make_room() -> None:
    day = Day()
    limit = RateLimit(tokens=100, clock=day.clock, sleep=day.sleep)
    settle = limit.wait(90, seconds=0)
    settle(10)
    limit.wait(90, seconds=0)
    assert day.now == 0


def test_a_pace_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="allows nothing"):
        RateLimit(requests=0)


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({}, 0),
        ({"retry-after": "3"}, 3),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "-4"}, 0),
        ({"retry-after": "nan"}, 0),
        ({"retry-after": "inf"}, float("inf")),
    ],
)
def test_what_a_server_asks_for_is_read(headers: dict[str, str], pause: float) -> None:
    assert retry_after(headers, now=100.0) == pause


def fails_with(*errors: Exception) -> Callable[[float], str]:
    left: Iterator[Exception] = iter(errors)

    def call(seconds: float) -> str:
        for error in left:
            raise error
        return "done"

    return call


def test_only_what_may_pass_is_tried_again() -> None:
    slept: list[float] = []
    assert (
        call_with_retries(
            fails_with(ServerBusyError("a"), ServerBusyError("b")),
            retries=2,
            seconds=60,
            sleep=slept.append,
        )
        == "done"
    )
    assert len(slept) == 2
    with pytest.raises(ModelError, match="wrong"):
        call_with_retries(
            fails_with(ModelError("wrong")), retries=2, seconds=60, sleep=slept.append
        )
    assert len(slept) == 2
    with pytest.raises(ZeroDivisionError):
        call_with_retries(
            fails_with(ZeroDivisionError()), retries=2, seconds=60, sleep=slept.append
        )


def test_a_server_that_asks_for_ever_is_not_waited_for() -> None:
    with pytest.raises(ServerBusyError):
        call_with_retries(
            fails_with(ServerBusyError("later", pause=float("inf"))), retries=5, seconds=60
        )


def test_one_that_hangs_is_left_behind_and_the_others_come() -> None:
    hung = threading.Event()
    calls = [lambda: "a", lambda: hung.wait(20) and "never", lambda: "c"]
    started = time.monotonic()
    found = dict(run_concurrently(calls, limit=2, seconds=0.2))
    assert time.monotonic() - started < 2
    hung.set()
    assert (found[0], found[2]) == ("a", "c")
    assert isinstance(found[1], ModelError)
    assert "within 0.2 s" in str(found[1])


def test_a_mistake_of_ours_stays_loud() -> None:
    with pytest.raises(ZeroDivisionError):
        list(run_concurrently([lambda: 1 / 0], limit=1, seconds=1))
