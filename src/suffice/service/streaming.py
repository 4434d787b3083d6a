"""Batches of checks: JSON lines in, JSON lines out, in the same order, however many there are.

Verdicts go out while questions still come in. A client that sends everything before it reads anything must not block for ever
(each side would wait for the other to take something), so what nobody reads yet lies in a `Spool`: a little in memory, the
rest in a file without a name.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from suffice.answering.ask import AskPolicy, ask
from suffice.answering.budget import Budget
from suffice.answering.traces import TRACE_VERSION
from suffice.errors import InputError
from suffice.service.batching import MAX_BATCH, CheckJob
from suffice.service.requests import NDJSON, body_chunks, get_service, require_ndjson
from suffice.service.responses import (
    ApiError,
    envelope,
    error_record,
    get_context,
    respond,
    to_api_error,
    validation_error,
)
from suffice.service.schemas import AskRequest, BatchLine
from suffice.service.state import Service
from suffice.types import Trace, Verdict

__all__ = [
    "EVENT_STREAM",
    "BatchCheck",
    "Spool",
    "StreamedResponse",
    "respond_to_ask",
    "split_lines",
]


SPOOL_MEMORY_BYTES = 1024 * 1024
SPOOL_READ_BYTES = 64 * 1024
_LINE_ADAPTER = TypeAdapter(BatchLine)


class StreamedResponse(Response):
    """An answer sent piece by piece. Starlette's own would read the request's body to see whether the visitor has gone."""

    def __init__(
        self,
        body: AsyncIterator[bytes],
        media_type: str,
        *,
        stall_seconds: float,
        ended: Callable[[], None],
    ) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._pieces, self._stall_seconds, self._ended = body, stall_seconds, ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            async for piece in self._pieces:
                async with asyncio.timeout(
                    self._stall_seconds
                ):  # a visitor who does not read holds nothing for ever
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._ended()


class Spool:
    """Bytes on their way from one who writes to one who reads, in order; the writer never waits."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=SPOOL_MEMORY_BYTES)  # noqa: SIM115 - closed by the reader
        self._written = self._read = 0
        self._ended = False
        self._news = asyncio.Event()

    def write(self, piece: bytes) -> None:
        self._file.seek(self._written)
        self._file.write(piece)
        self._written += len(piece)
        self._news.set()

    def end(self) -> None:
        self._ended = True
        self._news.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while True:
                while self._read < self._written:
                    self._file.seek(self._read)
                    piece = self._file.read(SPOOL_READ_BYTES)
                    self._read += len(piece)
                    if (
                        self._read == self._written
                    ):  # nothing is left in it: it starts again, and stays small
                        self._file.seek(0)
                        self._file.truncate()
                        self._read = self._written = 0
                    yield piece
                if self._ended:
                    return
                self._news.clear()
                await self._news.wait()
        finally:
            self._file.close()


class BatchCheck:
    """One batch on its way through the gate."""

    def __init__(self, request: Request, *, gate: str, explain: bool, rounds_left: int) -> None:
        self._request, self._service = request, get_service(request)
        self._how: dict[str, Any] = {"gate": gate, "explain": explain, "rounds_left": rounds_left}
        self._limits = self._service.settings.limits
        self._line = 0

    def answer(self) -> StreamedResponse:
        require_ndjson(self._request)
        give_back = self._service.take_place()
        return StreamedResponse(
            self._judged(), NDJSON, stall_seconds=self._limits.body_seconds, ended=give_back
        )

    async def _judged(self) -> AsyncIterator[bytes]:
        self._spool = Spool()
        work = asyncio.create_task(self._work())
        try:
            async for piece in self._spool:
                yield piece
        finally:
            work.cancel()
            get_context(self._request).notes["lines"] = self._line

    async def _work(self) -> None:
        """Read, judge and write, a few lines at a time; what ends a batch early is its last line."""
        try:
            async for lines in split_lines(body_chunks(self._request), self._limits.body_bytes):
                room = max(self._limits.batch_lines - self._line, 0)
                for start in range(0, min(len(lines), room), MAX_BATCH):
                    await self._judge(lines[start : min(start + MAX_BATCH, room)])
                if len(lines) > room:
                    raise ApiError(
                        413,
                        "too_large",
                        f"the batch has more than {self._limits.batch_lines:,} lines",
                    )
        except ApiError as refused:
            self._write(self._line + 1, None, refused)
        except Exception as error:
            self._write(self._line + 1, None, to_api_error(error))
            raise
        finally:
            self._spool.end()

    async def _judge(self, lines: list[bytes | None]) -> None:
        asked: list[tuple[int, Any, CheckJob | ApiError]] = []
        for line in lines:
            self._line += 1
            if line is None or line.strip():
                asked.append((self._line, *self._read(line)))
        sound = [await self._whole(one) for _, _, one in asked if isinstance(one, CheckJob)]
        verdicts: Iterator[Verdict | InputError] = iter(await self._service.checks.verdicts(sound))
        for number, question_id, one in asked:
            self._write(number, question_id, next(verdicts) if isinstance(one, CheckJob) else one)

    def _read(self, line: bytes | None) -> tuple[Any, CheckJob | ApiError]:
        if line is None:
            return None, ApiError(
                413, "too_large", f"the line is longer than {self._limits.body_bytes:,} bytes"
            )
        try:
            form = _LINE_ADAPTER.validate_json(line)
        except ValidationError as error:
            return None, validation_error(
                error.errors(include_url=False, include_input=False, include_context=False)
            )
        return form.question_id, CheckJob(
            question=form.question, hits=form.hits, others=form.others, **self._how
        )

    async def _whole(self, asked: CheckJob) -> CheckJob:
        hits, *others = await self._service.with_documents([asked.hits, *asked.others])
        return replace(asked, hits=hits, others=others)

    def _write(self, line: int, question_id: Any, told: Verdict | InputError | ApiError) -> None:
        wrong = error_record(to_api_error(told)) if isinstance(told, Exception) else None
        data = None if isinstance(told, Exception) else told.as_json()
        record = {
            "line": line,
            "question_id": question_id,
            "ok": wrong is None,
            "data": data,
            "error": wrong,
        }
        self._spool.write(to_json(record, inf_nan_mode="null") + b"\n")


async def split_lines(body: AsyncIterator[bytes], most: int) -> AsyncIterator[list[bytes | None]]:
    """The lines that each piece of the body completes. None stands for a line that is too long, of which nothing is kept."""
    rest, lost = b"", False
    async for piece in body:
        *lines, rest = (rest + piece).split(b"\n")
        whole: list[bytes | None] = [None if len(line) > most else line for line in lines]
        if lost and whole:
            whole[0], lost = None, False
        if whole:
            yield whole
        if len(rest) > most:
            rest, lost = b"", True
    if rest or lost:
        yield [None if lost else rest]


# --- journeys: Questions on a journey: `/v1/ask` in one answer at the end, or as server-sent events while it goes.

EVENT_STREAM = "text/event-stream"
KEEPALIVE_S = (
    2.0  # of silence, after which a word is sent: nobody in between is to take the line for dead
)


log = logging.getLogger("suffice.service")


class _DisconnectedError(Exception):
    """The visitor has left: nobody wants to know how it ends."""


async def respond_to_ask(request: Request, form: AskRequest) -> Response:
    service = get_service(request)
    service.gate(form.gate)
    await service.aside(
        service.library.retriever, form.retriever
    )  # what cannot begin is refused before an answer does
    give_back = service.take_place()
    if EVENT_STREAM in request.headers.get("accept", ""):
        stall = service.settings.limits.body_seconds
        return StreamedResponse(
            _events(request, service, form), EVENT_STREAM, stall_seconds=stall, ended=give_back
        )
    try:
        return respond(request, trace_record(await service.aside(_run_ask, service, form, None)))
    finally:
        give_back()


async def _events(request: Request, service: Service, form: AskRequest) -> AsyncIterator[bytes]:
    told: asyncio.Queue[Trace | None] = asyncio.Queue()
    loop, gone = asyncio.get_running_loop(), threading.Event()

    def watch(trace: Trace) -> None:
        if gone.is_set():
            raise _DisconnectedError
        loop.call_soon_threadsafe(told.put_nowait, trace)

    request_id = get_context(request).request_id
    journey = asyncio.ensure_future(service.aside(_run_ask, service, form, watch))
    journey.add_done_callback(lambda _: told.put_nowait(None))
    shown = _EventDiff()
    try:
        while not await request.is_disconnected():
            try:
                trace = await asyncio.wait_for(told.get(), KEEPALIVE_S)
            except TimeoutError:
                yield b": still on the way\n\n"
                continue
            if trace is None:
                break
            for event in shown.news_in(trace):
                yield event
        else:
            return
        try:
            yield _event("end", envelope(request_id, data=trace_record(journey.result())))
        except Exception as error:  # the answer has begun: what went wrong is its last word
            log.exception("fault", extra={"told": {"request_id": request_id}})
            yield _event("error", envelope(request_id, error=error_record(to_api_error(error))))
    finally:
        gone.set()
        journey.cancel()


class _EventDiff:
    """What of a journey the visitor has seen: a trace holds all of it, an event only the news."""

    def __init__(self) -> None:
        self.plan: tuple[str, ...] | None = None
        self.steps = 0

    def news_in(self, trace: Trace) -> Iterator[bytes]:
        if trace.plan != self.plan:
            self.plan = trace.plan
            yield _event("plan", to_json({"question": trace.question.text, "plan": trace.plan}))
        for at in range(self.steps, len(trace.steps)):
            yield _event("step", to_json({"at": at, "step": trace.steps[at]}, inf_nan_mode="null"))
        self.steps = len(trace.steps)


def _event(name: str, data: bytes) -> bytes:
    # JSON has no line ends of its own: one line of data is one event.
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


def trace_record(trace: Trace) -> dict[str, Any]:
    return {"version": TRACE_VERSION, **asdict(trace)}


def _run_ask(service: Service, form: AskRequest, watch: Callable[[Trace], None] | None) -> Trace:
    most = service.settings.limits.ask_seconds
    seconds = min(form.seconds or most, most)
    return ask(
        form.question,
        service.library,
        service.gate(form.gate),
        service.model if form.with_model else None,
        policy=AskPolicy(look=form.retriever),
        budget=Budget(rounds=form.rounds, calls=form.calls, tokens=form.tokens, seconds=seconds),
        clock=time.monotonic,
        watch=watch,
    )
