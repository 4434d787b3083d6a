"""The outermost layer: request ids, concurrency limit, deadline, and one log line per request.

The log contains no client text unless the operator asks for it: no question, no unknown path, no
query string.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from typing import TYPE_CHECKING, Any

from starlette.types import Message, Receive, Scope, Send

from suffice.service.responses import JSON, ApiError, RequestContext, envelope
from suffice.service.state import busy_error

if TYPE_CHECKING:
    from fastapi import FastAPI

    from suffice.service.state import Service


UNLIMITED_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})  # must also respond under load
ASK_GRACE_S = 5.0  # extra time for an /v1/ask that reaches its own limit to send its result
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]", ""})
log = logging.getLogger("suffice.service")


class RequestMiddleware:
    """The outermost ASGI application."""

    def __init__(self, app: FastAPI, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        context = scope["suffice.context"] = RequestContext(_request_id(headers))
        sender = _ResponseSender(send, context)
        self.service.requests_in_progress += 1
        self.service.metrics.in_progress.inc()
        try:
            if error := self._reject(scope["path"], headers):
                await sender.send_error(error)
            else:
                await self._handle(scope, receive, sender)
        finally:
            self.service.requests_in_progress -= 1
            self.service.metrics.in_progress.dec()
            self._log(scope, context, sender.status)

    def _reject(self, path: str, headers: dict[bytes, bytes]) -> ApiError | None:
        settings = self.service.settings
        if settings.keys is None and _host(headers) not in LOCAL_HOSTS | {settings.host.casefold()}:
            # DNS rebinding: another site's page can reach this service under its own name.
            message = "without keys, only this machine may connect, by its own name"
            return ApiError(421, "misdirected", message)
        busy = self.service.requests_in_progress > settings.limits.concurrent_requests
        return busy_error("worker at capacity") if busy and path not in UNLIMITED_PATHS else None

    async def _handle(self, scope: Scope, receive: Receive, sender: _ResponseSender) -> None:
        limits = self.service.settings.limits
        slow = {
            "/v1/ask": limits.ask_seconds + ASK_GRACE_S,
            "/v1/adapt": limits.adapt_seconds,
        }
        seconds = slow.get(scope["path"], limits.seconds)
        try:
            async with asyncio.timeout(seconds) as deadline:
                sender.deadline = deadline
                await self.app(scope, receive, sender.send)
        except TimeoutError:
            message = f"no response started within {seconds:g} seconds"
            await sender.send_error(ApiError(504, "deadline", message))
        except Exception:
            # Usually the application has responded already; log the error here.
            log.exception("fault", extra={"fields": {"request_id": sender.context.request_id}})
            await sender.send_error(ApiError(500, "internal", "internal error in the service"))

    def _log(self, scope: Scope, context: RequestContext, status: int) -> None:
        seconds = time.perf_counter() - context.started
        route = getattr(scope.get("route"), "path", "none")
        self.service.metrics.requests.labels(route, status).inc()
        self.service.metrics.seconds.labels(route).observe(seconds)
        if self.service.settings.log_requests:
            fields: dict[str, Any] = {
                "request_id": context.request_id,
                "method": scope["method"] if route != "none" else "",
                "route": route,
                "status": status,
                "ms": round(seconds * 1e3, 2),
                **({"key": context.key} if context.key else {}),
                **context.log_fields,
            }
            log.info("request", extra={"fields": fields})


class _ResponseSender:
    """Adds headers to the response, and stops the deadline when it starts."""

    def __init__(self, send: Send, context: RequestContext) -> None:
        self._send, self.context = send, context
        self.status = 0  # 0: the client disconnected before a response started
        self.deadline: asyncio.Timeout | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [
                *message["headers"],
                (b"x-request-id", self.context.request_id.encode()),
                (b"x-content-type-options", b"nosniff"),
                (b"cache-control", b"no-store"),
            ]
            if self.deadline is not None and not self.deadline.expired():
                self.deadline.reschedule(None)
        await self._send(message)

    async def send_error(self, error: ApiError) -> None:
        """Send an error, unless a response has started."""
        if self.status:
            return
        body = envelope(self.context.request_id, error=error)
        headers = {"content-type": JSON, "content-length": str(len(body)), **(error.headers or {})}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        start = {"type": "http.response.start", "status": error.status_code, "headers": raw}
        await self.send(start)
        await self.send({"type": "http.response.body", "body": body})


def _request_id(headers: dict[bytes, bytes]) -> str:
    """The client's own id if it is a plain one, to trace a request across services."""
    given = headers.get(b"x-request-id", b"")
    return given.decode() if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def _host(headers: dict[bytes, bytes]) -> str:
    host = headers.get(b"host", b"").decode("latin-1").casefold()
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
