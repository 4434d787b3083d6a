"""HTTP/1.1 with clocks: whoever dawdles over sending or reading is cut off, and a service that leaves answers what it holds.

uvicorn's protocol waits for ever for the first header, and for ever until an answer is taken: visitors who send and do not read
would fill the places of all others. It also closes idle connections the moment it is told to stop: a request that is on its way
just then would be lost. Here idle connections stay open a moment longer, and every answer from then on says that it is the last
one on its connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from suffice.service.responses import JSON, ApiError, envelope, error_record

if TYPE_CHECKING:
    from suffice.service.state import Service

__all__ = ["TimedHttpProtocol"]

MAX_HEADER_BYTES = 64 * 1024
SHUTDOWN_GRACE_S = 0.5
RECHECK_S = 0.05
MIN_READ_BYTES = (
    16 * 1024
)  # bytes of an answer that are taken within `body_seconds`, or all that are left of it


class TimedHttpProtocol(HttpToolsProtocol):
    """One connection. Its application is the porter, who knows the service."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._service: Service = self.app.service  # type: ignore[union-attr, unused-ignore]
        self._limits = self._service.settings.limits
        self._head_clock: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._reading_clock: asyncio.TimerHandle | None = None
        self._answered: RequestResponseCycle | None = (
            None  # of several that came together, the one whose turn it is
        )

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(
            0
        )  # so that we are told of any byte that is not taken, and when all are
        if len(self.connections) > self._limits.connections:
            self._refuse(ApiError(429, "busy", "as many connections are open as this worker keeps"))
            return
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_here()
        self._all_is_read()
        if (
            self._answered is not None and not self._answered.response_complete
        ):  # uvicorn tells the one that came last alone
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head_clock is None and self._idle:
            self._expect_head()
        if self._head_clock is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_clock is not None and self._head_bytes > MAX_HEADER_BYTES:
            self._refuse(
                ApiError(
                    431, "head_too_large", f"the headers are larger than {MAX_HEADER_BYTES:,} bytes"
                )
            )

    def on_headers_complete(self) -> None:
        self._head_is_here()
        super().on_headers_complete()
        if self._service.leaving and self.cycle is not None:
            self.cycle.keep_alive = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        self._all_is_read()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        self._refuse(ApiError(400, "bad_request", "this is no HTTP request"))

    def shutdown(self) -> None:
        self._service.leaving = True
        if not self._idle:
            self.cycle.keep_alive = False
        self.loop.call_later(SHUTDOWN_GRACE_S, self._leave)

    def _leave(self) -> None:
        if self._idle and not self._head_bytes and not self.transport.is_closing():
            self.transport.close()

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expect_head(self) -> None:
        self._head_clock = self.loop.call_later(self._limits.head_seconds, self._late)

    def _head_is_here(self) -> None:
        self._head_bytes = 0
        if self._head_clock is not None:
            self._head_clock.cancel()
            self._head_clock = None

    def _late(self) -> None:
        # Where we were the ones who stalled, its bytes may lie here unread: they are looked at before the judgement.
        self._head_clock = self.loop.call_later(RECHECK_S, self._too_late)

    def _too_late(self) -> None:
        seconds = self._limits.head_seconds
        self._refuse(ApiError(408, "too_slow", f"no whole request came within {seconds:g} seconds"))

    def _expect_reading(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._reading_clock = self.loop.call_later(self._limits.body_seconds, self._unread, left)

    def _all_is_read(self) -> None:
        if self._reading_clock is not None:
            self._reading_clock.cancel()
            self._reading_clock = None

    def _unread(self, before: int) -> None:
        if self.transport.get_write_buffer_size() > before - MIN_READ_BYTES:
            self.transport.abort()  # nothing can be told to one who does not read
        else:
            self._expect_reading()

    def _refuse(self, refused: ApiError) -> None:
        """An answer without the application, and the end of the connection."""
        self._head_is_here()
        if self.transport.is_closing():
            return
        body = envelope("", error=error_record(refused))
        head = f"content-type: {JSON}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[refused.status_code] + head.encode() + body)
        self.transport.close()
