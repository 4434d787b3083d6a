"""Who is turned away, and how: every refusal that OpenAPI documents is met here, in the one envelope, and none is a crash."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="pip install 'suffice[serve]'")

from starlette.testclient import TestClient
from tests.service import ASKED, JSON, LINES, cinema, client

from suffice.service.app import build_openapi, create_app
from suffice.service.keys import ApiKeys
from suffice.service.settings import Settings

FORMS: dict[tuple[str, str], dict[str, Any]] = {
    ("post", "/v1/check"): {"json": ASKED},
    ("post", "/v1/check/batch"): {"content": json.dumps(ASKED), "headers": LINES},
    ("get", "/v1/gates"): {},
    ("get", "/v1/report"): {},
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
    scopes = {"both": ("read", "write"), "reader": ("read",), "writer": ("write",)}
    return {name: keys.create(name, which)[0] for name, which in scopes.items()}


@pytest.fixture(scope="module")
def settings(
    tmp_path_factory: pytest.TempPathFactory, keys: ApiKeys, tokens: dict[str, str]
) -> Settings:
    return Settings(
        library=cinema(tmp_path_factory.mktemp("library") / "cinema"), keys=str(keys.path)
    )


@pytest.fixture(scope="module")
def visitor(settings: Settings) -> Iterator[TestClient]:
    with client(settings) as one:
        yield one


def documented() -> list[tuple[str, str, int]]:
    told = build_openapi(create_app(Settings()).app)
    return [
        (method, path, int(status))
        for path, operations in told["paths"].items()
        for method, one in operations.items()
        for status in one["responses"]
    ]


def send(visitor: TestClient, method: str, path: str, token: str | None, **changed: Any) -> Any:
    told = {**FORMS[method, path], **changed}
    headers = {**told.pop("headers", {}), **({"authorization": f"Bearer {token}"} if token else {})}
    return visitor.request(method, path, headers=headers, **told)


# How each refusal is met: a visit to this route that must end with this status.
Ways = dict[int, Callable[[], Any]]


def ways(
    visitor: TestClient, settings: Settings, token: dict[str, str], method: str, path: str
) -> Ways:
    def plain() -> Any:
        return send(visitor, method, path, token["both"])

    def with_body(content: bytes, headers: dict[str, str] = JSON) -> Any:
        return send(
            visitor, method, path, token["both"], json=None, content=content, headers=headers
        )

    def of(changed: Settings, **limits: Any) -> Any:
        with client(changed, **limits) as other:
            return send(other, method, path, token["both"])

    def wrong_scope() -> Any:
        writes = (method, path) in (
            ("post", "/v1/library/documents"),
            ("delete", "/v1/library/documents"),
        )
        return send(visitor, method, path, token["reader" if writes else "writer"])

    def crowded() -> Any:
        visitor.app.service.requests_in_progress += 1000
        try:
            return plain()
        finally:
            visitor.app.service.requests_in_progress -= 1000

    def leaving() -> Any:
        visitor.app.service.shutting_down = True
        try:
            return plain()
        finally:
            visitor.app.service.shutting_down = False

    def elsewhere() -> Any:
        with client(Settings()) as other:
            return other.request(method, path, headers={"host": "evil.example"})

    def wrong_value() -> Any:
        if "params" in FORMS[method, path]:
            return send(visitor, method, path, token["both"], params={})
        return (
            with_body(b"{}")
            if "json" in FORMS[method, path]
            else visitor.post(path + "?rounds_left=-1", headers=with_key())
        )

    def with_key() -> dict[str, str]:
        return {**LINES, "authorization": f"Bearer {token['both']}"}

    return {
        200: plain,
        400: lambda: with_body(b'{"question": '),
        401: lambda: send(visitor, method, path, None),
        403: wrong_scope,
        408: lambda: slow_body(settings, method, path, token["both"]),
        409: lambda: of(Settings(keys=settings.keys)),
        413: lambda: with_body(b" " * 3_000_000),
        415: lambda: with_body(b"{}", {"content-type": "text/plain"}),
        421: elsewhere,
        422: wrong_value,
        429: crowded,
        503: leaving,
        504: lambda: of(settings, seconds=1e-9, ask_seconds=1e-9),
    }


def slow_body(settings: Settings, method: str, path: str, token: str) -> Any:
    """A body that never comes, at a service that waits a tenth of a second."""
    import anyio

    sent: list[dict[str, Any]] = []

    async def never() -> dict[str, Any]:
        await anyio.sleep(60)
        return {}

    async def keep(message: dict[str, Any]) -> None:
        sent.append(message)

    with client(settings, body_seconds=0.1) as other:
        headers = {
            "host": "127.0.0.1",
            "content-type": "application/json",
            "authorization": f"Bearer {token}",
        }
        scope = {
            "type": "http",
            "method": method.upper(),
            "path": path,
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        other.portal.call(other.app, scope, never, keep)  # type: ignore[union-attr]

    class Said:
        status_code = sent[0]["status"]

        @staticmethod
        def json() -> Any:
            return json.loads(sent[1]["body"])

    return Said


@pytest.mark.parametrize(("method", "path", "status"), documented())
def test_every_documented_status_is_met(
    visitor: TestClient, settings: Settings, tokens: dict[str, str], method: str, path: str, status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if path == "/v1/ask" and status == 504:
        monkeypatch.setattr("suffice.service.middleware.ASK_GRACE_S", 0.0)
    said = ways(visitor, settings, tokens, method, path)[status]()
    assert said.status_code == status
    if status != 200:
        told = said.json()
        assert (told["ok"], told["data"]) == (False, None)
        assert told["error"]["code"]
        assert told["error"]["message"]


def test_every_form_has_an_example_that_works(visitor: TestClient, tokens: dict[str, str]) -> None:
    told = visitor.get("/openapi.json").json()
    seen = []
    for path, operations in told["paths"].items():
        body = (
            operations.get("post", {})
            .get("requestBody", {})
            .get("content", {})
            .get("application/json")
        )
        if body is not None:
            form = told["components"]["schemas"][body["schema"]["$ref"].rsplit("/", 1)[1]]
            said = send(visitor, "post", path, tokens["both"], json=form["examples"][0])
            assert said.status_code == 200, said.text
            seen.append(path)
    assert seen == ["/v1/check", "/v1/search", "/v1/complete", "/v1/ask", "/v1/library/documents"]


# ----------------------------------------------------------------------------------------------------------- hostile bodies


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
def test_a_hostile_body_is_refused_or_judged_but_never_a_crash(
    visitor: TestClient, tokens: dict[str, str], body: bytes, status: int
) -> None:
    said = visitor.post(
        "/v1/check", content=body, headers={**JSON, "authorization": f"Bearer {tokens['reader']}"}
    )
    assert said.status_code == status, said.text
    assert said.json()["ok"] is (status == 200)


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
def test_paths_lead_nowhere_else(visitor: TestClient, path: str) -> None:
    said = visitor.get(path)
    assert said.status_code in (404, 405)
    assert "root:" not in said.text


def test_a_packed_body_is_not_unpacked(visitor: TestClient, tokens: dict[str, str]) -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    for path, kind in (("/v1/check", JSON), ("/v1/check/batch", LINES)):
        headers = {
            **kind,
            "content-encoding": "gzip",
            "authorization": f"Bearer {tokens['reader']}",
        }
        said = visitor.post(path, content=bomb, headers=headers)
        assert (said.status_code, said.json()["error"]["message"]) == (
            415,
            "the body is compressed",
        )


def test_a_key_is_refused_as_soon_as_it_is_revoked(tmp_path: Path) -> None:
    keys = ApiKeys(tmp_path / "keys.json")
    token = keys.create("laptop")[0]
    with client(Settings(keys=str(keys.path))) as visitor:
        for header in ({"authorization": f"Bearer {token}"}, {"x-api-key": token}):
            assert visitor.get("/v1/gates", headers=header).status_code == 200
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
                visitor.get(
                    "/v1/gates", headers={"authorization": wrong.encode("latin-1")}
                ).status_code
                == 401
            )
        keys.revoke("laptop")
        assert visitor.get("/v1/gates", headers={"x-api-key": token}).status_code == 401


def test_without_keys_nobody_may_write(tmp_path: Path) -> None:
    with client(Settings(library=cinema(tmp_path / "cinema"))) as visitor:
        said = visitor.delete("/v1/library/documents", params={"id": "dog"})
        assert (said.status_code, said.json()["error"]["code"]) == (403, "forbidden")
        assert visitor.get("/v1/library").json()["data"]["documents"] == 8


def test_long_requests_have_places_of_their_own(settings: Settings, tokens: dict[str, str]) -> None:
    with client(settings, long_requests=1) as visitor:
        release = visitor.app.service.reserve_slot()
        for path in ("/v1/ask", "/v1/complete", "/v1/check/batch"):
            said = send(visitor, "post", path, tokens["both"])
            assert (said.status_code, said.headers["retry-after"]) == (429, "1")
        assert send(visitor, "post", "/v1/check", tokens["both"]).status_code == 200
        release()
        assert send(visitor, "post", "/v1/complete", tokens["both"]).status_code == 200


def test_a_fault_of_ours_is_told_without_its_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    with client() as visitor:
        monkeypatch.setattr(visitor.app.service.checks, "drift", lambda name: 1 / 0)
        said = visitor.get("/v1/gates")
        assert (said.status_code, said.json()["error"]["code"]) == (500, "internal")
        assert "zero" not in said.text
        assert visitor.get("/healthz").status_code == 200
