"""Errors of the service: every documented status occurs, in one envelope, and nothing crashes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="pip install 'suffice[serve]'")

import anyio
import httpx
from starlette.testclient import TestClient
from starlette.types import Message
from tests.service import CHECK, JSON, LINES, build_film_library, exchange, running_app, service_of

from suffice.service.app import build_openapi, create_app
from suffice.service.keys import ApiKeys
from suffice.service.responses import validation_error
from suffice.service.schemas import DocumentsRequest
from suffice.service.settings import Settings
from suffice.testing import sample_questions

LABELS = [
    {"question": one.question, "hits": one.hits, "gold": list(one.needed or ())}
    for one in sample_questions(30)
]
FORMS: dict[tuple[str, str], dict[str, Any]] = {
    ("post", "/v1/check"): {"json": CHECK},
    ("post", "/v1/check/batch"): {"content": json.dumps(CHECK), "headers": LINES},
    ("post", "/v1/adapt"): {"json": {"name": "mine", "labels": LABELS}},
    ("get", "/v1/gates"): {},
    ("get", "/v1/report"): {},
    ("get", "/v1/label/next"): {"params": {"by": "ada"}},
    ("post", "/v1/label"): {
        "json": {"by": "ada", "question": "Who?", "hits": [{"id": "a"}], "complete": True}
    },
    ("post", "/v1/label/undo"): {"json": {"by": "ada"}},
    ("post", "/v1/search"): {"json": {"question": "Dog Law"}},
    ("post", "/v1/complete"): {"json": {"question": "Dog Law"}},
    ("post", "/v1/ask"): {"json": {"question": "Who is the director of the film Dog Law?"}},
    ("get", "/v1/library"): {},
    ("get", "/v1/library/documents"): {"params": {"id": "dog"}},
    ("post", "/v1/library/documents"): {"json": {"documents": [{"doc_id": "ada", "text": "Ada"}]}},
    ("delete", "/v1/library/documents"): {"params": {"id": "nobody"}},
    ("get", "/healthz"): {},
    ("get", "/readyz"): {},
    ("get", "/metrics"): {},
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> ApiKeys:
    return ApiKeys(tmp_path_factory.mktemp("keys") / "keys.json")


@pytest.fixture(scope="module")
def tokens(keys: ApiKeys) -> dict[str, str]:
    scopes = {"both": ("read", "write", "label"), "reader": ("read",), "writer": ("write",)}
    return {name: keys.create(name, which)[0] for name, which in scopes.items()}


@pytest.fixture(scope="module")
def settings(
    tmp_path_factory: pytest.TempPathFactory, keys: ApiKeys, tokens: dict[str, str]
) -> Settings:
    return Settings(
        library=build_film_library(tmp_path_factory.mktemp("library") / "cinema"),
        labels=str(tmp_path_factory.mktemp("labels") / "labels.jsonl"),
        keys=str(keys.path),
        gate_folder=str(tmp_path_factory.mktemp("gates")),
    )


@pytest.fixture(scope="module")
def client(settings: Settings) -> Iterator[TestClient]:
    with running_app(settings) as one:
        yield one


def documented() -> list[tuple[str, str, int]]:
    result = build_openapi(create_app(Settings()).app)
    return [
        (method, path, int(status))
        for path, operations in result["paths"].items()
        for method, one in operations.items()
        for status in one["responses"]
    ]


def send(client: TestClient, method: str, path: str, token: str | None, **changed: Any) -> Any:
    result = {**FORMS[method, path], **changed}
    headers = {
        **result.pop("headers", {}),
        **({"authorization": f"Bearer {token}"} if token else {}),
    }
    return client.request(method, path, headers=headers, **result)


# How each refusal is met: a visit to this route that must end with this status.
Ways = dict[int, Callable[[], Any]]


def ways(
    client: TestClient, settings: Settings, token: dict[str, str], method: str, path: str
) -> Ways:
    def plain() -> Any:
        return send(client, method, path, token["both"])

    def with_body(content: bytes, headers: dict[str, str] = JSON) -> Any:
        return send(
            client, method, path, token["both"], json=None, content=content, headers=headers
        )

    def of(changed: Settings, **limits: Any) -> Any:
        with running_app(changed, **limits) as other:
            return send(other, method, path, token["both"])

    def wrong_scope() -> Any:
        writes = (method, path) in (
            ("post", "/v1/adapt"),
            ("post", "/v1/library/documents"),
            ("delete", "/v1/library/documents"),
        )
        return send(client, method, path, token["reader" if writes else "writer"])

    def crowded() -> Any:
        service_of(client).requests_in_progress += 1000
        try:
            return plain()
        finally:
            service_of(client).requests_in_progress -= 1000

    def shutting_down() -> Any:
        with running_app() as other:
            service_of(other).checks.stop()
            return other.request(method, path)

    def other_host() -> Any:
        with running_app() as other:
            return other.request(method, path, headers={"host": "evil.example"})

    def wrong_value() -> Any:
        if "params" in FORMS[method, path]:
            return send(client, method, path, token["both"], params={})
        return (
            with_body(b"{}")
            if "json" in FORMS[method, path]
            else client.post(path + "?rounds_left=-1", headers=with_key())
        )

    def with_key() -> dict[str, str]:
        return {**LINES, "authorization": f"Bearer {token['both']}"}

    return {
        200: plain,
        400: lambda: with_body(b'{"question": '),
        401: lambda: send(client, method, path, None),
        403: wrong_scope,
        408: lambda: slow_body(settings, path, token["both"]),
        409: lambda: of(Settings(keys=settings.keys, preset="fast")),
        413: lambda: with_body(b" " * 3_000_000),
        415: lambda: with_body(b"{}", {"content-type": "text/plain"}),
        421: other_host,
        422: wrong_value,
        429: crowded,
        503: shutting_down,
        504: lambda: of(settings, seconds=1e-9, ask_seconds=1e-9, adapt_seconds=1e-9),
    }


def slow_body(settings: Settings, path: str, token: str) -> Any:
    """A body that never comes, at a service that waits a tenth of a second."""

    async def never() -> Message:
        await anyio.sleep(60)
        return {}

    with running_app(settings, body_seconds=0.1) as other:
        status, body = exchange(other, path, never, authorization=f"Bearer {token}")
    return httpx.Response(status, content=body)


@pytest.mark.parametrize(("method", "path", "status"), documented())
def test_every_documented_status_is_met(
    client: TestClient, settings: Settings, tokens: dict[str, str], method: str, path: str, status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if path == "/v1/adapt":  # its trees take seconds
        monkeypatch.setattr("suffice.gate.training._fit_local_model", lambda *_: None)
    if path == "/v1/ask" and status == 504:
        monkeypatch.setattr("suffice.service.middleware.ASK_GRACE_S", 0.0)
    response = ways(client, settings, tokens, method, path)[status]()
    assert response.status_code == status
    if status != 200:
        result = response.json()
        assert (result["ok"], result["data"]) == (False, None)
        assert result["error"]["code"]
        assert result["error"]["message"]


def test_every_form_has_an_example_that_works(client: TestClient, tokens: dict[str, str]) -> None:
    result = client.get("/openapi.json").json()
    seen = []
    for path, operations in result["paths"].items():
        body = (
            operations.get("post", {})
            .get("requestBody", {})
            .get("content", {})
            .get("application/json")
        )
        if body is not None and path != "/v1/adapt":  # which takes twenty labels
            form = result["components"]["schemas"][body["schema"]["$ref"].rsplit("/", 1)[1]]
            response = send(client, "post", path, tokens["both"], json=form["examples"][0])
            assert response.status_code == 200, response.text
            seen.append(path)
    assert seen == [
        *("/v1/check", "/v1/search", "/v1/complete", "/v1/ask", "/v1/library/documents"),
        *("/v1/label", "/v1/label/undo"),
    ]


# ---- hostile bodies


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" * 100_000, 400),
        (b'{"question": "a", "hits": ' + b'[{"meta": ' * 500 + b"1" + b"}]" * 500 + b"}", 400),
        (b'{"question": "caf\xe9", "hits": []}', 400),
        ('{"question": "a", "hits": []}'.encode("utf-16"), 400),
        (b'{"question": "\\ud800", "hits": []}', 400),
        (b'{"question": "a", "hits": [{"text": "b", "score": NaN}]}', 400),
        (b'{"question": "a", "hits": [{"text": "b", "score": 1e999}]}', 200),
        (b'{"question": "a", "hits": [{"text": "b", "score": 1' + b"0" * 400 + b"}]}", 422),
        (b'{"question": "a", "hits": [{"text": "b", "doc_id": 1' + b"0" * 4000 + b"}]}", 200),
        (b'{"question": "a", "hits": [{"text": "b", "doc_id": true}]}', 422),
        (b'{"question": "a", "hits": {"text": "b"}}', 422),
        (b'{"question": "a", "hits": "b"}', 422),
        (b'{"question": ["a"], "hits": []}', 422),
        (b'{"question": "\\u0000", "hits": ["\\u0000"]}', 200),
        (b'{"question": "   ", "hits": []}', 422),
        (b'{"question": "a", "hits": [], "rounds_left": 1.5}', 422),
        (b'{"question": "a", "hits": [], "gate": "../../etc/passwd"}', 422),
        (b'{"question": "a", "hits": [{"text": "b", "__class__": {"x": [1, 2]}}]}', 200),
        (b'{"question": "a", "hits": ' + json.dumps(["x"] * 1001).encode() + b"}", 422),
        (b"null", 422),
        (b"", 422),
    ],
)
def test_a_hostile_body_never_crashes_the_service(
    client: TestClient, tokens: dict[str, str], body: bytes, status: int
) -> None:
    response = client.post(
        "/v1/check", content=body, headers={**JSON, "authorization": f"Bearer {tokens['reader']}"}
    )
    assert response.status_code == status, response.text
    assert response.json()["ok"] is (status == 200)


@pytest.mark.parametrize(
    "path",
    [
        "/../etc/passwd",
        "/v1/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/v1/check/..%2f..",
        "/page/..%2f..%2fkeys.py",
    ],
)
def test_paths_cannot_escape(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code in (404, 405)
    assert "root:" not in response.text


def test_a_compressed_body_is_rejected(client: TestClient, tokens: dict[str, str]) -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    for path, kind in (("/v1/check", JSON), ("/v1/check/batch", LINES)):
        headers = {
            **kind,
            "content-encoding": "gzip",
            "authorization": f"Bearer {tokens['reader']}",
        }
        response = client.post(path, content=bomb, headers=headers)
        assert (response.status_code, response.json()["error"]["message"]) == (
            415,
            "the body is compressed",
        )


def test_a_revoked_key_stops_working_at_once(tmp_path: Path) -> None:
    keys = ApiKeys(tmp_path / "keys.json")
    token = keys.create("laptop")[0]
    with running_app(Settings(keys=str(keys.path))) as client:
        for header in ({"authorization": f"Bearer {token}"}, {"x-api-key": token}):
            assert client.get("/v1/gates", headers=header).status_code == 200
        for wrong in (
            "",
            "Bearer",
            "Bearer x",
            f"Bearer {token}x",
            f"Bearer {token[:-1]}",
            f"Basic {token}",
            "Bearer \xff",
        ):
            assert (
                client.get(
                    "/v1/gates", headers={b"authorization": wrong.encode("latin-1")}
                ).status_code
                == 401
            )
        keys.revoke("laptop")
        assert client.get("/v1/gates", headers={"x-api-key": token}).status_code == 401


def test_writing_needs_keys(tmp_path: Path) -> None:
    with running_app(Settings(library=build_film_library(tmp_path / "cinema"))) as client:
        response = client.delete("/v1/library/documents", params={"id": "dog"})
        assert (response.status_code, response.json()["error"]["code"]) == (403, "forbidden")
        assert client.get("/v1/library").json()["data"]["documents"] == 8


def test_long_requests_have_their_own_limit(settings: Settings, tokens: dict[str, str]) -> None:
    with running_app(settings, long_requests=1) as client:
        release = service_of(client).reserve_slot()
        for path in ("/v1/ask", "/v1/complete", "/v1/check/batch"):
            response = send(client, "post", path, tokens["both"])
            assert (response.status_code, response.headers["retry-after"]) == (429, "1")
        assert send(client, "post", "/v1/check", tokens["both"]).status_code == 200
        release()
        assert send(client, "post", "/v1/complete", tokens["both"]).status_code == 200


def test_an_internal_error_hides_its_details(monkeypatch: pytest.MonkeyPatch) -> None:
    with running_app() as client:
        monkeypatch.setattr(service_of(client).checks, "drift", lambda name: 1 / 0)
        response = client.get("/v1/gates")
        assert (response.status_code, response.json()["error"]["code"]) == (500, "internal")
        assert "zero" not in response.text
        assert client.get("/healthz").status_code == 200


def test_an_unknown_field_is_named_with_the_nearest_known_one() -> None:
    with running_app() as client:
        hits = CHECK["hits"]
        error = client.post("/v1/check", json={"questoin": "Who?", "hits": hits}).json()["error"]
        assert error["message"].startswith("questoin: unknown field (did you mean 'question'?)")
        other = client.post("/v1/check", json={"query": "Who?", "contexts": ["a"]}).json()["error"]
        assert "query: unknown field (did you mean 'question'?)" in other["message"]
        assert "contexts: unknown field (did you mean 'hits'?)" in other["message"]
        line = json.dumps({**CHECK, "question-id": 3})
        said = client.post("/v1/check/batch", content=line, headers=LINES).json()["error"]
        assert "question-id: unknown field (did you mean 'question_id'" in said["message"]
        long = client.post("/v1/check", json={**CHECK, "x" * 1_000_000: 1}).json()["error"]
        assert len(long["message"]) < 500
    inner = {"type": "extra_forbidden", "loc": ("body", "documents", 0, "titel"), "msg": "?"}
    message = validation_error([inner], DocumentsRequest).message
    assert message == "documents[0].titel: unknown field (did you mean 'title' or 'entities'?)"
