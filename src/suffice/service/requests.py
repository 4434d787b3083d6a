"""Requirements on a request: key, media type, size, speed and valid JSON.

The class of a route defines its access: `PublicRoute` needs no key, `ReadRoute`, `WriteRoute` and
`LabelRoute` need a key with that scope. Without a key file, anyone may read and label, and nobody
may write.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.requests import ClientDisconnect

from suffice.errors import check_names
from suffice.service.keys import LABEL, READ, WRITE
from suffice.service.responses import JSON, ApiError, get_context

if TYPE_CHECKING:
    from suffice.service.state import Service


NDJSON = "application/x-ndjson"
NDJSON_TYPES = (NDJSON, "application/jsonl", "application/jsonlines", "application/ndjson")


class PublicRoute(APIRoute):
    """Open to everyone."""

    scope: str | None = None

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_checked(request: Request) -> Response:
            _authorize(request, self.scope)
            query = self.dependant.query_params
            check_names(request.query_params, [one.alias for one in query], self.path)
            if self.body_field is not None:
                _require_media_type(request, (JSON,))
            return await handle(_LimitedRequest(request.scope, request.receive))

        return handle_checked


class ReadRoute(PublicRoute):
    scope = READ


class WriteRoute(PublicRoute):
    scope = WRITE


class LabelRoute(PublicRoute):
    scope = LABEL


def get_service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _authorize(request: Request, scope: str | None) -> None:
    keys = get_service(request).keys
    if scope is None or (keys is None and scope != WRITE):
        return
    if keys is None:
        hint = (
            "suffice serve key new --keys keys.json --name mine --write; "
            "then: suffice serve --keys keys.json"
        )
        raise ApiError(403, "forbidden", "writing needs a service with keys", hint=hint)
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    given = token.strip() if scheme.casefold() == "bearer" else request.headers.get("x-api-key")
    key = keys.authenticate(given) if given is not None else None
    if key is None:
        code, message = (
            ("no_key", "a key is required") if given is None else ("wrong_key", "unknown key")
        )
        hint = "send the header: Authorization: Bearer suf_…"
        headers = {"www-authenticate": "Bearer"}
        raise ApiError(401, code, message, hint=hint, headers=headers)
    get_context(request).key = key.name
    if scope not in key.scopes:
        hint = f"ask for a key with the scope {scope}"
        raise ApiError(403, "forbidden", f"this key may not {scope}", hint=hint)


def _require_media_type(request: Request, types: tuple[str, ...]) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if given not in types:
        hint = f"send the header: Content-Type: {types[0]}"
        raise ApiError(415, "media_type", f"the body must be {types[0]}", hint=hint)
    if request.headers.get("content-encoding", "identity").casefold() != "identity":
        # A few compressed bytes can expand to gigabytes.
        hint = "send it uncompressed, without Content-Encoding"
        raise ApiError(415, "media_type", "the body is compressed", hint=hint)


def require_ndjson(request: Request) -> None:
    _require_media_type(request, NDJSON_TYPES)


class _LimitedRequest(Request):
    """A request with limits on its body; its JSON has no NaN, lone surrogates or deep nesting."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            limits = get_service(self).settings.limits
            try:
                async with asyncio.timeout(limits.body_seconds):
                    self._body = await _read_body(self, limits.body_bytes)
            except TimeoutError as error:
                raise _too_slow(limits.body_seconds) from error
        return self._body

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            try:
                self._json = from_json(await self.body(), allow_inf_nan=False)
            except ValueError as error:
                message = f"the body is not valid JSON: {error}"
                raise ApiError(400, "bad_json", message, hint="UTF-8, no NaN") from error
        return self._json


async def _read_body(request: Request, max_bytes: int) -> bytes:
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > max_bytes:
        raise _too_large(max_bytes)
    chunks, size = [], 0
    async for chunk in _chunks(request):
        size += len(chunk)
        if size > max_bytes:
            raise _too_large(max_bytes)
        chunks.append(chunk)
    return b"".join(chunks)


async def body_chunks(request: Request) -> AsyncIterator[bytes]:
    """The body of a batch as it arrives; a long pause is an error."""
    seconds = get_service(request).settings.limits.body_seconds
    chunks = _chunks(request)
    while True:
        try:
            async with asyncio.timeout(seconds):
                chunk = await anext(chunks)
        except TimeoutError as error:
            raise _too_slow(seconds) from error
        except StopAsyncIteration:
            return
        yield chunk  # outside the time limit: processing the chunk may take longer


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect as error:
        raise ApiError(400, "disconnected", "the client left before the end of the body") from error


def _too_large(max_bytes: int) -> ApiError:
    # Do not read the rest of the body: the connection ends with this response.
    message = f"the body is larger than {max_bytes:,} bytes"
    hint = "send fewer or shorter texts, or start the service with --limit body_bytes=N"
    return ApiError(413, "too_large", message, hint=hint, headers={"connection": "close"})


def _too_slow(seconds: float) -> ApiError:
    message = f"the body did not arrive within {seconds:g} seconds"
    return ApiError(408, "too_slow", message, headers={"connection": "close"})
