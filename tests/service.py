"""A service for the tests: a library of films, a shipped gate, and a client in this process, or a
service in its own.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient
from starlette.types import Message, Receive
from tests.small_world import FILMS

from suffice.library import Library
from suffice.service.app import create_app
from suffice.service.middleware import RequestMiddleware
from suffice.service.settings import Limits, Settings
from suffice.service.state import Service

ROOT = Path(__file__).parents[1]
CHECK: dict[str, Any] = {
    "question": "Which film came out first, The Navigator or Metropolis?",
    "hits": [
        {
            "doc_id": "navigator",
            "title": "The Navigator (1924 film)",
            "text": "The Navigator is a 1924 comedy.",
            "score": 8.0,
        }
    ],
}
LINES = {"content-type": "application/x-ndjson"}
JSON = {"content-type": "application/json"}


def build_film_library(folder: Path) -> str:
    """A library of films on disk."""
    Library.build(folder, FILMS).close()
    return str(folder)


@contextmanager
def running_app(settings: Settings | None = None, **limits: Any) -> Iterator[TestClient]:
    """A client of a service with these settings and limits; with the fast gate unless told."""
    chosen = settings or Settings(preset="fast")
    if limits:
        chosen = Settings(
            **{
                **{name: getattr(chosen, name) for name in chosen.__slots__},
                "limits": Limits(**limits),
            }
        )
    with TestClient(
        create_app(chosen), base_url="http://127.0.0.1", raise_server_exceptions=False
    ) as client:
        yield client


@contextmanager
def serving(*words: str, place: Path = ROOT) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """`suffice serve` with the fast gate on a free port, started in `place`, ready; then stopped."""
    serve = ["serve", "--port", "0", "--preset", "fast", *words]
    command = [sys.executable, "-m", "suffice", *serve]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=place, env=environment, **pipes) as running:
        try:
            assert running.stderr is not None
            port = int(json.loads(running.stderr.readline())["address"].rsplit(":", 1)[1])
            # a full pipe would stop it
            threading.Thread(target=running.stderr.read, daemon=True).start()
            while get(port, "/readyz")[0] != 200:
                time.sleep(0.05)
            yield port, running
        finally:
            running.terminate()
            running.wait(30)


def get(port: int, path: str, **headers: str) -> tuple[int, bytes]:
    visit = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        visit.request("GET", path, headers=headers)
        response = visit.getresponse()
        return response.status, response.read()
    finally:
        visit.close()


def service_of(client: TestClient) -> Service:
    """The state of the service behind the client."""
    assert isinstance(client.app, RequestMiddleware)
    return client.app.service


def exchange(client: TestClient, path: str, receive: Receive, **headers: str) -> tuple[int, bytes]:
    """Post one request below HTTP, the test says what arrives and when: the status and the body."""
    sent: list[Message] = []

    async def keep(message: Message) -> None:
        sent.append(message)

    named = {"host": "127.0.0.1", "content-type": "application/json", **headers}
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    assert client.portal is not None
    client.portal.call(client.app, scope, receive, keep)
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent)


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def events_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Name and data of each server-sent event."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":")
        )
        if fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found
