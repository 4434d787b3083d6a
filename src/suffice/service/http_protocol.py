"""HTTP/1.1 with timeouts for slow clients and a shutdown that loses no request.

uvicorn waits indefinitely for the first header, and for a response to be read, so clients that send
but do not read could take all slots. It also closes idle connections as soon as it stops, which
would lose a request that is just arriving. Here idle connections stay open a moment longer, and
every response from then on is the last one on its connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from suffice.service.responses import JSON, ApiError, envelope

if TYPE_CHECKING:
    from suffice.service.state import Service


MAX_HEADER_BYTES = 64 * 1024  # httptools parses no address of this length or longer
SHUTDOWN_GRACE_S = 0.5
RECHECK_S = 0.05
MIN_READ_BYTES = 16 * 1024  # a client must read this much, or all, within `body_seconds`


class TimedHttpProtocol(HttpToolsProtocol):
    """One connection. Its application is the middleware, which holds the service."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._service: Service = self.app.service  # type: ignore[union-attr, unused-ignore]
        self._limits = self._service.settings.limits
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._read_timer: asyncio.TimerHandle | None = None
        self._active: RequestResponseCycle | None = None  # current one of the pipelined requests

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # call pause_writing at the first unread byte
        if len(self.connections) > self._limits.connections:
            self._respond_and_close(ApiError(429, "busy", "too many open connections"))
            return
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self._stop_read_timer()
        if self._active is not None and not self._active.response_complete:
            self._active.disconnected = True  # uvicorn notifies only the last pipelined request
            self._active.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head_timer is None and self._idle:
            self._start_head_timer()
        if self._head_timer is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_timer is not None and self._head_bytes > MAX_HEADER_BYTES:
            message = f"the headers are larger than {MAX_HEADER_BYTES:,} bytes"
            error = ApiError(431, "head_too_large", message)
            self._respond_and_close(self._address_error() or error)

    def on_headers_complete(self) -> None:
        self._stop_head_timer()
        super().on_headers_complete()
        if self._service.shutting_down and self.cycle is not None:
            self.cycle.keep_alive = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._active = cycle
        super()._start_asgi_task(cycle, app)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_read_timer()

    def resume_writing(self) -> None:
        self._stop_read_timer()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        error = ApiError(400, "bad_request", "not a valid HTTP request")
        self._respond_and_close(self._address_error() or error)

    def _address_error(self) -> ApiError | None:
        if len(self.url) < MAX_HEADER_BYTES:
            return None
        message = f"the address is longer than {MAX_HEADER_BYTES - 1:,} bytes"
        return ApiError(414, "address_too_long", message, hint="split the request into several")

    def shutdown(self) -> None:
        self._service.shutting_down = True
        if not self._idle:
            self.cycle.keep_alive = False
        self.loop.call_later(SHUTDOWN_GRACE_S, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self._idle and not self._head_bytes and not self.transport.is_closing():
            self.transport.close()

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(self._limits.head_seconds, self._recheck_head)

    def _stop_head_timer(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _recheck_head(self) -> None:
        # If this process was stalled, bytes may be waiting: read them first.
        self._head_timer = self.loop.call_later(RECHECK_S, self._head_timed_out)

    def _head_timed_out(self) -> None:
        message = f"no complete request arrived within {self._limits.head_seconds:g} seconds"
        self._respond_and_close(ApiError(408, "too_slow", message))

    def _start_read_timer(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._read_timer = self.loop.call_later(
            self._limits.body_seconds, self._check_progress, unread
        )

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _check_progress(self, unread_before: int) -> None:
        if self.transport.get_write_buffer_size() > unread_before - MIN_READ_BYTES:
            self.transport.abort()  # a client that does not read cannot receive an error
        else:
            self._start_read_timer()

    def _respond_and_close(self, error: ApiError) -> None:
        """Respond without the application, and end the connection."""
        self._stop_head_timer()
        if self.transport.is_closing():
            return
        body = envelope("", error=error)
        head = f"content-type: {JSON}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[error.status_code] + head.encode() + body)
        self.transport.close()
