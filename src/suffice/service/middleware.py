"""At the door: every request gets a number, too many are turned away, none stays for ever, and each leaves one line in the log.

The log holds no text that a visitor sent, unless the operator wants it: no question, no path that we do not know, no query.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from suffice.service.responses import JSON, ApiError, RequestContext, envelope, error_record
from suffice.service.state import busy_error

if TYPE_CHECKING:
    from suffice.service.state import Service

__all__ = ["RequestMiddleware"]

UNLIMITED_PATHS = frozenset(
    {"/healthz", "/readyz", "/metrics"}
)  # a service that is busy must still be able to say so
ASK_GRACE_S = 5.0  # for a journey that ends at its own limit to be told
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]", ""})
log = logging.getLogger("suffice.service")


class RequestMiddleware:
    """The outermost ASGI application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        visit = scope["suffice.visit"] = RequestContext(_request_id(headers))
        answer = _ResponseSender(send, visit)
        self.service.in_work += 1
        self.service.measures.at_work.inc()
        try:
            if refused := self._refused(scope["path"], headers):
                await answer.refuse(refused)
            else:
                await self._served(scope, receive, answer)
        finally:
            self.service.in_work -= 1
            self.service.measures.at_work.dec()
            self._tell(scope, visit, answer)

    def _refused(self, path: str, headers: dict[bytes, bytes]) -> ApiError | None:
        settings = self.service.settings
        if settings.keys is None and _host(headers) not in LOCAL_HOSTS | {settings.host.casefold()}:
            # A page of a stranger in a browser here, sent to us by a name that it has turned to this address.
            return ApiError(
                421, "misdirected", "without keys only this machine is served, by its own name"
            )
        if self.service.in_work > settings.limits.at_once and path not in UNLIMITED_PATHS:
            return busy_error("as many requests are in work as this worker takes on")
        return None

    async def _served(self, scope: Scope, receive: Receive, answer: _ResponseSender) -> None:
        limits = self.service.settings.limits
        seconds = limits.ask_seconds + ASK_GRACE_S if scope["path"] == "/v1/ask" else limits.seconds
        try:
            async with asyncio.timeout(seconds) as clock:
                answer.clock = clock
                await self.app(scope, receive, answer.send)
        except TimeoutError:
            await answer.refuse(
                ApiError(504, "deadline", f"no answer began within {seconds:g} seconds")
            )
        except Exception:
            # Answered by the application, where it could; here it is written down, and the connection goes on.
            log.exception("fault", extra={"told": {"request_id": answer.visit.request_id}})
            await answer.refuse(ApiError(500, "internal", "something is wrong in the service"))

    def _tell(self, scope: Scope, visit: RequestContext, answer: _ResponseSender) -> None:
        seconds = time.perf_counter() - visit.began
        route = getattr(scope.get("route"), "path", "none")
        self.service.measures.requests.labels(route, answer.status).inc()
        self.service.measures.seconds.labels(route).observe(seconds)
        if self.service.settings.log_requests:
            told: dict[str, Any] = {
                "request_id": visit.request_id,
                "method": scope["method"] if route != "none" else "",
                "route": route,
                "status": answer.status,
                "ms": round(seconds * 1e3, 2),
            }
            log.info(
                "request",
                extra={"told": told | ({"key": visit.key} if visit.key else {}) | visit.notes},
            )


class _ResponseSender:
    """What goes back: it carries the number of the request, and stops the clock when it begins."""

    def __init__(self, send: Send, visit: RequestContext) -> None:
        self._send, self.visit = send, visit
        self.status = 0  # 0: the visitor went before an answer began
        self.clock: asyncio.Timeout | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [
                *message["headers"],
                (b"x-request-id", self.visit.request_id.encode()),
                (b"x-content-type-options", b"nosniff"),
                (b"cache-control", b"no-store"),
            ]
            if self.clock is not None and not self.clock.expired():
                self.clock.reschedule(None)
        await self._send(message)

    async def refuse(self, refused: ApiError) -> None:
        """Unless an answer has begun already."""
        if self.status:
            return
        body = envelope(self.visit.request_id, error=error_record(refused))
        told = {"content-type": JSON, "content-length": str(len(body)), **(refused.headers or {})}
        headers = [(name.encode(), value.encode()) for name, value in told.items()]
        await self.send(
            {"type": "http.response.start", "status": refused.status_code, "headers": headers}
        )
        await self.send({"type": "http.response.body", "body": body})


def _request_id(headers: dict[bytes, bytes]) -> str:
    """The visitor's own number where it is a plain one, so that a request can be followed through several services."""
    given = headers.get(b"x-request-id", b"")
    return given.decode() if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def _host(headers: dict[bytes, bytes]) -> str:
    told = headers.get(b"host", b"").decode("latin-1").casefold()
    return told.partition("]")[0] + "]" if told.startswith("[") else told.partition(":")[0]
