"""Fuzzing targets: every endpoint of the service.

A request is written as HTTP: method and URL, headers, a blank line, the body. Endpoints get it
through ASGI in this process. A status below 400 is accepted, below 500 refused; everything else is
a finding.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from tests.small_world import COMPARISON, FILMS

from robustness.mutations import Input, Seed
from robustness.targets import OpenTarget, Target, TargetError
from suffice.library import Library

__all__ = ["HTTP_TARGETS", "OPENERS", "ServiceClient", "is_accepted", "running_service"]

HIT = {
    "doc_id": "navigator",
    "title": "The Navigator",
    "text": "The Navigator is a 1924 comedy.",
    "score": 8.0,
    "published_at": "1924",
}
CHECK = {
    "question": "Which film came out first, The Navigator or Metropolis?",
    "hits": [HIT, "Metropolis is of 1927.", {"doc_id": "dog"}],
}
JSON, LINES = "application/json", "application/x-ndjson"
BODIES: dict[str, tuple[Any, ...]] = {
    "POST /v1/check": (
        {**CHECK, "explain": True, "rounds_left": 1},
        {**CHECK, "gate": "default", "graph": True},
    ),
    "POST /v1/search": (
        {
            "question": COMPARISON,
            "k": 3,
            "retriever": "bm25",
            "filter": {"source": {"$in": ["Variety", None]}},
            "texts": True,
        },
        {
            "question": COMPARISON,
            "k": 3,
            "filter": {"published_at": {"$gte": "1924", "$lt": "May 1930"}},
            "strict": True,
        },
    ),
    "POST /v1/complete": (
        {
            "question": COMPARISON,
            "k": 3,
            "rounds": 1,
            "retriever": "bm25",
            "gate": "default",
            "texts": False,
        },
    ),
    "POST /v1/ask": (
        {
            "question": COMPARISON,
            "rounds": 1,
            "calls": 2,
            "tokens": 100,
            "seconds": 2.5,
            "with_model": False,
        },
    ),
    "POST /v1/library/documents": (
        {
            "documents": [
                {
                    "doc_id": "ada",
                    "title": "Ada",
                    "text": "Ada",
                    "published_at": "1843-07-10",
                    "entities": ["Ada"],
                }
            ]
        },
    ),
}
ADDRESSES: dict[str, tuple[str, ...]] = {
    "GET /v1/library/documents": ("/v1/library/documents?id=dog&id=nobody",),
    "DELETE /v1/library/documents": ("/v1/library/documents?id=nobody",),
    "GET /v1/gates": ("/v1/gates",),
    "GET /v1/library": ("/v1/library",),
    "GET /v1/report": ("/v1/report",),
    "GET /healthz": ("/healthz",),
    "GET /readyz": ("/readyz",),
    "GET /metrics": ("/metrics",),
    "GET /openapi.json": ("/openapi.json",),
    "GET /page": ("/", "/page/main.js"),
}


class ServiceClient:
    """One service in this process, and its event loop."""

    def __init__(self, settings: Any) -> None:
        from suffice.service.app import create_app

        logging.getLogger("suffice.service").setLevel(logging.CRITICAL)
        self.loop, self.app = asyncio.new_event_loop(), create_app(settings)
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self._events: asyncio.Queue[Any] = asyncio.Queue()
        self._life = self.loop.create_task(
            self.app({"type": "lifespan", "asgi": {}}, self._messages.get, self._events.put)
        )
        self._lived("startup")

    def close(self) -> None:
        self._lived("shutdown")
        self.loop.run_until_complete(self._life)
        self.loop.close()

    def _lived(self, what: str) -> None:
        self._messages.put_nowait({"type": f"lifespan.{what}"})
        came = self.loop.run_until_complete(self._events.get())
        if came["type"] != f"lifespan.{what}.complete":
            raise TargetError(str(came))

    def sent(self, request: bytes) -> tuple[int, bytes]:
        """Status and body of the response to a raw request."""
        return self.loop.run_until_complete(self._sent(request))

    async def _sent(self, request: bytes) -> tuple[int, bytes]:
        scope, body = _scope(request)
        half = len(body) // 2 if len(body) % 3 == 0 else len(body)  # some bodies come in two pieces
        given = [
            {"type": "http.request", "body": body[:half], "more_body": True},
            {"type": "http.request", "body": body[half:]},
        ]
        gone = asyncio.Event()
        status, parts = 0, []

        async def receive() -> Any:
            if given:
                return given.pop(0)
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                parts.append(message.get("body", b""))
                if not message.get("more_body"):
                    gone.set()

        await self.app(scope, receive, send)
        return status, b"".join(parts)


def _scope(request: bytes) -> tuple[dict[str, Any], bytes]:
    """The ASGI scope of the request.

    What no server lets through is made harmless.
    """
    from urllib.parse import unquote_to_bytes

    head, _, body = request.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, address = first.partition(b" ")
    path, _, query = address.partition(b"?")
    headers = [
        (name.strip().lower(), value.strip())
        for name, _, value in (line.partition(b":") for line in lines)
        if name.strip()
    ]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": "",
        "method": method.decode("latin-1") or "GET", "path": unquote_to_bytes(path).decode("utf-8", "replace") or "/",
        "raw_path": path, "query_string": query, "headers": headers, "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80), "state": {},
    }  # fmt: skip
    return scope, body


# ---- endpoints


def _request(method: str, address: str, kind: str | None = None, *more: str) -> str:
    head = [f"{method} {address}", "host: 127.0.0.1", f"authorization: Bearer {TOKEN}", *more]
    return "\n".join([*head, *([f"content-type: {kind}"] if kind else [])]) + "\n\n"


TOKEN = "suf_" + "0" * 12 + "_" + "A" * 43
KEYS = {
    "version": 1,
    "keys": [
        {
            "key_id": "0" * 12,
            "name": "all",
            "scopes": ["read", "write"],
            "sha256": "",
            "made_at": "2026-01-01",
        }
    ],
}


@contextmanager
def running_service(folder: Path) -> Iterator[ServiceClient]:
    """A service with a library of films and one API key with all rights."""
    from hashlib import sha256

    from suffice.service.settings import Limits, Settings

    KEYS["keys"][0]["sha256"] = sha256(TOKEN.encode()).hexdigest()  # type: ignore[index]
    (folder / "keys.json").write_text(json.dumps(KEYS), encoding="utf-8")
    Library.build(
        folder / "films",
        [replace(FILMS[0], source="Variety", published_at=date(1928, 1, 1)), *FILMS[1:]],
    ).close()
    limits = Limits(body_bytes=MAX_BODY_BYTES, seconds=12.0, ask_seconds=12.0, body_seconds=2.0)
    client = ServiceClient(
        Settings(
            library=str(folder / "films"),
            keys=str(folder / "keys.json"),
            log_requests=False,
            limits=limits,
        )
    )
    try:
        yield client
    finally:
        client.close()


MAX_BODY_BYTES = 60 * 1024


def is_accepted(status: int, body: bytes) -> bool:
    """Accepted? TargetError for a 5xx status, no response, or an error without its envelope."""
    if status == 0 or status >= 500:
        raise TargetError(f"status {status}: {body[:200]!r}")
    if status >= 400 and (b'"ok":false' not in body or b'"error"' not in body):
        raise TargetError(f"status {status} without an envelope: {body[:200]!r}")
    return status < 400


def _post_target(endpoint: str, client: ServiceClient) -> OpenTarget:
    """Mutates the body as JSON, or the whole request as bytes."""
    method, _, path = endpoint.partition(" ")
    head = _request(method, path, JSON)
    whole = tuple(
        Seed("request", f"{head}{json.dumps(body)}".encode()) for body in BODIES[endpoint]
    )
    bodies = tuple(Seed("body", json.dumps(body).encode()) for body in BODIES[endpoint])
    heads = {"body": head.encode(), "request": b""}
    return OpenTarget(
        (*bodies * 3, *whole),
        lambda given: is_accepted(*client.sent(heads[given.part] + given.content)),
    )


def _get_target(endpoint: str, client: ServiceClient) -> OpenTarget:
    """Mutates URL and headers."""
    method = endpoint.partition(" ")[0]
    seeds = tuple(
        Seed("request", _request(method, address).encode()) for address in ADDRESSES[endpoint]
    )
    return OpenTarget(seeds, lambda given: is_accepted(*client.sent(given.content)))


def _batch_target(endpoint: str, client: ServiceClient) -> OpenTarget:
    """Mutates lines of a batch: the response starts before they are read, so each of its lines has
    its own status.
    """
    line = {"question_id": "q1", "question": CHECK["question"], "hits": [HIT]}
    seeds = (
        Seed(
            "lines",
            "\n".join([json.dumps(line), json.dumps({"question": "Who?", "hits": []})]).encode(),
            lines=True,
        ),
        Seed(
            "request",
            (
                _request("POST", "/v1/check/batch?explain=false&rounds_left=2", LINES)
                + json.dumps(line)
            ).encode(),
        ),
    )
    heads = {"lines": _request("POST", "/v1/check/batch", LINES).encode(), "request": b""}

    def read(given: Input) -> bool:
        status, body = client.sent(heads[given.part] + given.content)
        if status != 200 or not body.startswith(b"{"):  # a mutated URL may lead to the page
            return is_accepted(status, body)
        replies = [json.loads(one) for one in body.splitlines()]
        if lost := [
            one
            for one in replies
            if one["error"] and one["error"]["code"] in ("internal", "engine", "damaged")
        ]:
            raise TargetError(str(lost[0]))
        return all(one["ok"] for one in replies)

    return OpenTarget((*[seeds[0]] * 3, seeds[1]), read)


# Each endpoint, and how it is opened in a running service; the tests share one.
OPENERS: dict[str, Callable[[ServiceClient], OpenTarget]] = {
    **{endpoint: partial(_post_target, endpoint) for endpoint in BODIES},
    "POST /v1/check/batch": partial(_batch_target, "POST /v1/check/batch"),
    **{endpoint: partial(_get_target, endpoint) for endpoint in ADDRESSES},
}


@contextmanager
def _open_alone(folder: Path, *, endpoint: str) -> Iterator[OpenTarget]:
    with running_service(folder) as client:
        yield OPENERS[endpoint](client)


MEANINGS = {
    _post_target: "its body, and the whole request",
    _get_target: "address and headers",
    _batch_target: "its lines",
}
HTTP_TARGETS: Sequence[Target] = tuple(
    Target(endpoint, "http", MEANINGS[opened.func], partial(_open_alone, endpoint=endpoint))  # type: ignore[attr-defined]
    for endpoint, opened in OPENERS.items()
)
