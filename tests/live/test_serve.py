"""A real service in its own processes: workers, streams, slow clients, load and shutdown."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="pip install 'suffice[serve]'")

import psutil
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from tests.service import CHECK, build_film_library, events_of, get, serving
from tests.small_world import COMPARISON
from tests.test_service_errors import FORMS

from suffice.service.keys import ApiKeys

pytestmark = [
    pytest.mark.live,
    pytest.mark.xdist_group("serve"),
]  # in one process: the services are started once

BODY = json.dumps(CHECK).encode()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> ApiKeys:
    return ApiKeys(tmp_path_factory.mktemp("keys") / "keys.json")


@pytest.fixture(scope="module")
def token(keys: ApiKeys) -> str:
    return keys.create("tests", ("read", "write", "label"))[0]


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, keys: ApiKeys, token: str
) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Two workers that share a library and ask for keys."""
    library = build_film_library(tmp_path_factory.mktemp("library") / "cinema")
    with serving("--workers", "2", "--library", library, "--keys", str(keys.path)) as running:
        yield running


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_the_address_is_printed_as_a_plain_line(options: tuple[str, ...]) -> None:
    with serving(*options) as (port, running):
        assert running.stdout is not None
        assert f"http://127.0.0.1:{port} " in running.stdout.readline()


def test_the_metrics_of_two_workers_add_up(service: tuple[int, Any], token: str) -> None:
    port, running = service
    assert len(workers_of(running)) == 2
    response = [ask(port, token) for _ in range(20)]
    assert response == [200] * 20
    figures = get(port, "/metrics", authorization=f"Bearer {token}")[1].decode()
    assert 'suffice_checks_total{action="abstain",gate="default"} 20.0' in figures
    assert get(port, "/metrics")[0] == 401


def ask(port: int, token: str) -> int:
    visit = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    visit.request(
        "POST",
        "/v1/check",
        BODY,
        {"content-type": "application/json", "authorization": f"Bearer {token}"},
    )
    status = visit.getresponse().status
    visit.close()
    return status


def workers_of(running: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes that serve, not the one that multiprocessing keeps beside them."""
    living = [
        one
        for one in psutil.Process(running.pid).children()
        if one.status() != psutil.STATUS_ZOMBIE
    ]
    return [one for one in living if "spawn_main" in " ".join(one.cmdline())]


def test_verdicts_arrive_while_questions_are_still_sent(
    service: tuple[int, Any], token: str
) -> None:
    with talk(
        service[0],
        "POST /v1/check/batch",
        token,
        "content-type: application/x-ndjson",
        "transfer-encoding: chunked",
    ) as line:
        got = b""
        for number in range(1, 4):
            line.sendall(chunk(BODY + b"\n"))
            while b'"line":%d,' % number not in got:
                got += line.recv(65536)
        line.sendall(b"0\r\n\r\n")


def test_a_client_that_sends_all_before_it_reads_is_served(
    service: tuple[int, Any], token: str
) -> None:
    lines = 4000  # their verdicts do not fit into the buffers of a connection
    body = (b'{"question": "Who taught Ada?", "hits": []}\n') * lines
    with talk(
        service[0],
        "POST /v1/check/batch",
        token,
        "content-type: application/x-ndjson",
        f"content-length: {len(body)}",
    ) as line:
        line.sendall(body)
        got = b"".join(iter(lambda: line.recv(65536), b""))
    assert got.count(b'"ok":true') == lines


def test_the_steps_of_a_question_arrive_one_by_one(tmp_path: Path) -> None:
    library = build_film_library(tmp_path / "cinema")
    with serving("--library", library, "--preset", "standard") as (port, _):
        visit = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        visit.request("POST", "/v1/ask", json.dumps({"question": COMPARISON}), headers)
        response = visit.getresponse()
        first = b""
        while b"\n\n" not in first:
            first += response.read1()
        events = events_of((first + response.read()).decode())
        visit.close()
    assert [events[0][0], events[-1][0]] == ["plan", "end"]
    assert events[-1][1]["data"]["answer"] == "Dog Law"


# ---- the whole OpenAPI


def as_it_is(_: Any, value: Any) -> bytes:
    return (
        value.encode("utf-8", "replace") if isinstance(value, str) else json.dumps(value).encode()
    )


@pytest.fixture(scope="module")
def openapi(service: tuple[int, Any]) -> Any:
    import schemathesis  # late: its import takes seconds, and one process of several needs it

    schemathesis.serializer("application/x-ndjson")(as_it_is)
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{service[0]}/openapi.json")


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize(("method", "path"), list(FORMS))
def test_every_response_matches_the_openapi_document(
    openapi: Any, token: str, method: str, path: str, mode: str
) -> None:
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi.checks import (
        ignored_auth,
        negative_data_rejection,
        positive_data_acceptance,
    )

    strategy = openapi[path][method].as_strategy(generation_mode=GenerationMode(mode))

    @given(case=strategy)
    @settings(
        max_examples=4,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def visit(case: Any) -> None:
        if len(str(case.query)) > 10_000:
            return  # uvicorn refuses an address of 64 KiB itself, in plain text
        # Which gates and retrievers there are, no schema says; and left without its key, a case
        # still sends our header.
        left_out = [positive_data_acceptance, ignored_auth]
        # An invalid line of a batch returns an error at its position; one id equals a list of one.
        left_out += [] if "json" in FORMS[method, path] else [negative_data_rejection]
        headers = {"authorization": f"Bearer {token}"}
        case.call_and_validate(headers=headers, timeout=60, excluded_checks=left_out)

    with suppress(Unsatisfiable):  # a form without fields cannot be filled in wrongly
        visit()


# Slow clients


@pytest.fixture(scope="module")
def strict() -> Iterator[int]:
    """One worker that waits for nobody and takes on two requests at a time."""
    limits = ("body_seconds=0.6", "concurrent_requests=2")
    with serving(*(word for one in limits for word in ("--limit", one))) as (port, _):
        yield port


@contextmanager
def talk(port: int, what: str, token: str = "", *headers: str) -> Iterator[socket.socket]:
    """A connection on which a request has begun."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        result = [
            f"{what} HTTP/1.1",
            "host: 127.0.0.1",
            "connection: close",
            f"authorization: Bearer {token}",
            *headers,
        ]
        line.sendall("\r\n".join([*result, "", ""]).encode())
        yield line


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def answer_to(port: int, *pieces: bytes, pause: float = 0.15) -> bytes:
    """Sent piece by piece, slowly, until the other side has had enough."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        for piece in pieces:
            try:
                line.sendall(piece)
            except OSError:
                break
            time.sleep(pause)
        try:
            return b"".join(iter(lambda: line.recv(65536), b""))
        except ConnectionResetError:
            return b""


HEAD = b"POST /v1/check HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    ("pieces", "status"),
    [
        ((HEAD + b"content-length: 50\r\n\r\n", b'{"question"'), b"408"),
        ((HEAD + b"transfer-encoding: chunked\r\n\r\n", *[b"1\r\n \r\n"] * 9), b"408"),
        ((HEAD + b"content-length: 99999999\r\n\r\n",), b"413"),
        ((b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",), b"400"),
        ((b"GET /\xff\xfe HTTP/1.1\r\n\r\n",), b"400"),
        ((HEAD + b"content-length: -1\r\n\r\n",), b"400"),
        ((HEAD + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n",), b"400"),
    ],
)  # fmt: skip
def test_slow_clients_and_garbage_get_a_response_and_are_disconnected(
    strict: int, pieces: tuple[bytes, ...], status: bytes
) -> None:
    response = answer_to(strict, *pieces)
    assert response.startswith(b"HTTP/1.1 " + status), response[:200]


def test_many_slow_clients_do_not_block_others(strict: int) -> None:
    idle = [socket.create_connection(("127.0.0.1", strict)) for _ in range(60)]
    for line in idle:
        line.sendall(b"GET /v1/gates HTTP/1.1\r\n")
    assert get(strict, "/v1/gates")[0] == 200
    for line in idle:
        line.close()


def test_too_many_requests_get_429(strict: int) -> None:
    seen: Counter[int] = Counter()

    def visit() -> None:
        line = http.client.HTTPConnection("127.0.0.1", strict, timeout=60)
        for _ in range(5):
            line.request("POST", "/v1/check", BODY, {"content-type": "application/json"})
            response = line.getresponse()
            response.read()
            seen[response.status] += 1
            if response.status == 429:
                assert response.headers["retry-after"] == "1"
        line.close()

    clients = [threading.Thread(target=visit) for _ in range(16)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert set(seen) == {200, 429}
    assert sum(seen.values()) == 80


# ---- the end


def test_a_worker_that_dies_is_replaced(service: tuple[int, Any], token: str) -> None:
    port, running = service
    before = workers_of(running)
    before[0].kill()
    until = time.monotonic() + 60
    while {one.pid for one in workers_of(running)} <= {one.pid for one in before}:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert ask(port, token) == 200


def test_a_shutdown_under_load_answers_what_it_has_begun(
    service: tuple[int, Any], token: str
) -> None:
    port, running = service
    answered = Counter[int]()
    headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}

    def visit() -> None:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        line.connect()
        last = False
        while not last:
            try:
                line.request("POST", "/v1/check", BODY, headers)
                response = line.getresponse()
            except OSError:  # an idle connection, closed while the next request was on its way
                return
            response.read()
            answered[response.status] += 1
            last = response.headers.get("connection") == "close"
        line.close()

    clients = [threading.Thread(target=visit) for _ in range(12)]
    for one in clients:
        one.start()
    while sum(answered.values()) < 60:
        time.sleep(0.01)
    running.send_signal(signal.SIGTERM)
    for one in clients:
        one.join()
    assert running.wait(30) in (0, -signal.SIGTERM)
    assert set(answered) == {200}
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=5)
