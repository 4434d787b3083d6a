"""What may come in: who has the key, the right media type, not too much, not too slowly, and sound JSON.

A route says what it needs by its class: `Open` nothing, `Reading` and `Writing` a key with that scope. Without a file of keys
nobody is asked to read, but to write is refused.
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

from suffice.service.keys import READ, WRITE
from suffice.service.responses import JSON, ApiError, get_context

if TYPE_CHECKING:
    from suffice.service.state import Service

__all__ = [
    "NDJSON",
    "PublicRoute",
    "ReadRoute",
    "WriteRoute",
    "body_chunks",
    "get_service",
    "require_ndjson",
]

NDJSON = "application/x-ndjson"
NDJSON_TYPES = (NDJSON, "application/jsonl", "application/jsonlines", "application/ndjson")


class PublicRoute(APIRoute):
    """For everybody."""

    needs: str | None = None

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            _authorize(request, self.needs)
            if self.body_field is not None:
                _require_media_type(request, (JSON,))
            return await handle(_LimitedRequest(request.scope, request.receive))

        return handled


class ReadRoute(PublicRoute):
    needs = READ


class WriteRoute(PublicRoute):
    needs = WRITE


def get_service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


# ------------------------------------------------------------------------------------------------------------------ keys


def _authorize(request: Request, needs: str | None) -> None:
    if needs is None:
        return
    keys = get_service(request).keys
    if keys is None:
        if needs == WRITE:
            make = "suffice serve key new --keys keys.json --name mine --write; then: suffice serve --keys keys.json"
            raise ApiError(403, "forbidden", "without keys nobody may write", hint=make)
        return
    how = "send the header: Authorization: Bearer suf_…"
    token = _token(request)
    if token is None:
        raise ApiError(
            401, "no_key", "a key is needed", hint=how, headers={"www-authenticate": "Bearer"}
        )
    key = keys.admitted(token)
    if key is None:
        raise ApiError(
            401,
            "wrong_key",
            "this key is not known",
            hint=how,
            headers={"www-authenticate": "Bearer"},
        )
    get_context(request).key = key.name
    if needs not in key.scopes:
        raise ApiError(
            403,
            "forbidden",
            f"this key may not {needs}",
            hint=f"ask for one with the scope {needs}",
        )


def _token(request: Request) -> str | None:
    told = request.headers.get("authorization", "")
    scheme, _, token = told.partition(" ")
    return token.strip() if scheme.casefold() == "bearer" else request.headers.get("x-api-key")


# ---------------------------------------------------------------------------------------------------------------- bodies


def _require_media_type(request: Request, types: tuple[str, ...]) -> None:
    told = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if told not in types:
        raise ApiError(
            415,
            "media_type",
            f"the body is to be {types[0]}",
            hint=f"send the header: Content-Type: {types[0]}",
        )
    if request.headers.get("content-encoding", "identity").casefold() != "identity":
        # A few bytes could unfold into gigabytes: nothing is unpacked here.
        raise ApiError(
            415,
            "media_type",
            "the body is packed",
            hint="send it as it is, without Content-Encoding",
        )


def require_ndjson(request: Request) -> None:
    _require_media_type(request, NDJSON_TYPES)


class _LimitedRequest(Request):
    """A request whose body is read within the limits, and whose JSON is sound: no NaN, no half letters, no deep nests."""

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
                raise ApiError(
                    400, "bad_json", f"the body is not sound JSON: {error}", hint="UTF-8, no NaN"
                ) from error
        return self._json


async def _read_body(request: Request, most: int) -> bytes:
    told = request.headers.get("content-length", "0")
    if told.isdecimal() and int(told) > most:
        raise _too_large(most)
    parts, size = [], 0
    async for piece in _chunks(request):
        size += len(piece)
        if size > most:
            raise _too_large(most)
        parts.append(piece)
    return b"".join(parts)


async def body_chunks(request: Request) -> AsyncIterator[bytes]:
    """The body of a batch as it comes; a pause that is too long is a refusal."""
    seconds = get_service(request).settings.limits.body_seconds
    stream = _chunks(request)
    while True:
        try:
            async with asyncio.timeout(seconds):
                yield await anext(stream)
        except TimeoutError as error:
            raise _too_slow(seconds) from error
        except StopAsyncIteration:
            return


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    try:
        async for piece in request.stream():
            yield piece
    except ClientDisconnect as error:
        raise ApiError(400, "gone", "the body ended before it was whole") from error


def _too_large(most: int) -> ApiError:
    # Whatever else of it is on its way is not read: the connection ends with the answer.
    return ApiError(
        413, "too_large", f"the body is larger than {most:,} bytes", headers={"connection": "close"}
    )


def _too_slow(seconds: float) -> ApiError:
    return ApiError(
        408,
        "too_slow",
        f"the body did not come within {seconds:g} seconds",
        headers={"connection": "close"},
    )
