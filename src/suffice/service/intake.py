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
from suffice.service.replies import JSON, Refusal, visit_of

if TYPE_CHECKING:
    from suffice.service.holding import Service

__all__ = ["LINES", "Open", "Reading", "Writing", "expect_lines", "pieces", "service_of"]

LINES = "application/x-ndjson"
LINE_TYPES = (LINES, "application/jsonl", "application/jsonlines", "application/ndjson")


class Open(APIRoute):
    """For everybody."""

    needs: str | None = None

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            _admit(request, self.needs)
            if self.body_field is not None:
                _expect_type(request, (JSON,))
            return await handle(_Received(request.scope, request.receive))

        return handled


class Reading(Open):
    needs = READ


class Writing(Open):
    needs = WRITE


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


# ------------------------------------------------------------------------------------------------------------------ keys


def _admit(request: Request, needs: str | None) -> None:
    if needs is None:
        return
    keys = service_of(request).keys
    if keys is None:
        if needs == WRITE:
            make = "suffice serve key new --keys keys.json --name mine --write; then: suffice serve --keys keys.json"
            raise Refusal(403, "forbidden", "without keys nobody may write", hint=make)
        return
    how = "send the header: Authorization: Bearer suf_…"
    token = _token(request)
    if token is None:
        raise Refusal(401, "no_key", "a key is needed", hint=how, headers={"www-authenticate": "Bearer"})
    key = keys.admitted(token)
    if key is None:
        raise Refusal(401, "wrong_key", "this key is not known", hint=how, headers={"www-authenticate": "Bearer"})
    visit_of(request).key = key.name
    if needs not in key.scopes:
        raise Refusal(403, "forbidden", f"this key may not {needs}", hint=f"ask for one with the scope {needs}")


def _token(request: Request) -> str | None:
    told = request.headers.get("authorization", "")
    scheme, _, token = told.partition(" ")
    return token.strip() if scheme.casefold() == "bearer" else request.headers.get("x-api-key")


# ---------------------------------------------------------------------------------------------------------------- bodies


def _expect_type(request: Request, types: tuple[str, ...]) -> None:
    told = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if told not in types:
        raise Refusal(415, "media_type", f"the body is to be {types[0]}", hint=f"send the header: Content-Type: {types[0]}")
    if request.headers.get("content-encoding", "identity").casefold() != "identity":
        # A few bytes could unfold into gigabytes: nothing is unpacked here.
        raise Refusal(415, "media_type", "the body is packed", hint="send it as it is, without Content-Encoding")


def expect_lines(request: Request) -> None:
    _expect_type(request, LINE_TYPES)


class _Received(Request):
    """A request whose body is read within the limits, and whose JSON is sound: no NaN, no half letters, no deep nests."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            limits = service_of(self).settings.limits
            try:
                async with asyncio.timeout(limits.body_seconds):
                    self._body = await _whole(self, limits.body_bytes)
            except TimeoutError as error:
                raise _too_slow(limits.body_seconds) from error
        return self._body

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            try:
                self._json = from_json(await self.body(), allow_inf_nan=False)
            except ValueError as error:
                raise Refusal(400, "bad_json", f"the body is not sound JSON: {error}", hint="UTF-8, no NaN") from error
        return self._json


async def _whole(request: Request, most: int) -> bytes:
    told = request.headers.get("content-length", "0")
    if told.isdecimal() and int(told) > most:
        raise _too_large(most)
    parts, size = [], 0
    async for piece in _stream(request):
        size += len(piece)
        if size > most:
            raise _too_large(most)
        parts.append(piece)
    return b"".join(parts)


async def pieces(request: Request) -> AsyncIterator[bytes]:
    """The body of a batch as it comes; a pause that is too long is a refusal."""
    seconds = service_of(request).settings.limits.body_seconds
    stream = _stream(request)
    while True:
        try:
            async with asyncio.timeout(seconds):
                yield await anext(stream)
        except TimeoutError as error:
            raise _too_slow(seconds) from error
        except StopAsyncIteration:
            return


async def _stream(request: Request) -> AsyncIterator[bytes]:
    try:
        async for piece in request.stream():
            yield piece
    except ClientDisconnect as error:
        raise Refusal(400, "gone", "the body ended before it was whole") from error


def _too_large(most: int) -> Refusal:
    # Whatever else of it is on its way is not read: the connection ends with the answer.
    return Refusal(413, "too_large", f"the body is larger than {most:,} bytes", headers={"connection": "close"})


def _too_slow(seconds: float) -> Refusal:
    return Refusal(408, "too_slow", f"the body did not come within {seconds:g} seconds", headers={"connection": "close"})
