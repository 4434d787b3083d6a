"""Streamed responses: /v1/check/batch as JSON Lines, /v1/ask as server-sent events.

A batch sends verdicts while questions still arrive, in the same order. A client that sends
everything before it reads must not block (each side would wait for the other), so unread output is
kept in a `Spool`: a little in memory, the rest in an unnamed file.

The events of /v1/ask, which stops at its next step when the client disconnects:

    event: plan    data: {"question": "…", "plan": ["…", …]}
    event: step    data: {"at": 0, "step": {…}}
    event: end     data: the envelope with the whole trace
    event: error   data: the envelope with the error
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import asdict
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
    get_context,
    respond,
    to_api_error,
    validation_error,
)
from suffice.service.schemas import AskRequest, BatchLine
from suffice.service.state import Service
from suffice.types import Trace, Verdict

EVENT_STREAM = "text/event-stream"
SPOOL_MEMORY_BYTES = 1024 * 1024
SPOOL_READ_BYTES = 64 * 1024
KEEPALIVE_S = 2.0  # idle time after which a comment keeps proxies from closing the connection
_LINE_ADAPTER = TypeAdapter(BatchLine)
log = logging.getLogger("suffice.service")


class StreamedResponse(Response):
    """Like Starlette's, which would also read the request body to detect a disconnect."""

    def __init__(
        self, chunks: AsyncIterator[bytes], media_type: str, on_end: Callable[[], None]
    ) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._chunks, self._on_end = chunks, on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(start)
            async for chunk in self._chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._on_end()


class Spool:
    """Bytes from a writer to a reader, in order; the writer never waits."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=SPOOL_MEMORY_BYTES)  # noqa: SIM115
        self._written = self._read = 0
        self._ended = False
        self._changed = asyncio.Event()

    def write(self, chunk: bytes) -> None:
        self._file.seek(self._written)
        self._file.write(chunk)
        self._written += len(chunk)
        self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while True:
                while self._read < self._written:
                    self._file.seek(self._read)
                    chunk = self._file.read(SPOOL_READ_BYTES)
                    self._read += len(chunk)
                    if self._read == self._written:  # empty: start over, to stay small
                        self._file.seek(0)
                        self._file.truncate()
                        self._read = self._written = 0
                    yield chunk
                if self._ended:
                    return
                self._changed.clear()
                await self._changed.wait()
        finally:
            self._file.close()


class BatchCheck:
    """One request to /v1/check/batch."""

    def __init__(self, request: Request, *, gate: str, explain: bool, rounds_left: int) -> None:
        self._request, self._service = request, get_service(request)
        self._gate, self._explain, self._rounds_left = gate, explain, rounds_left
        self._limits = self._service.settings.limits
        self._line = 0

    def response(self) -> StreamedResponse:
        require_ndjson(self._request)
        return StreamedResponse(self._results(), NDJSON, self._service.reserve_slot())

    async def _results(self) -> AsyncIterator[bytes]:
        self._spool = Spool()
        task = asyncio.create_task(self._run())
        try:
            async for chunk in self._spool:
                yield chunk
        finally:
            task.cancel()
            get_context(self._request).log_fields["lines"] = self._line

    async def _run(self) -> None:
        """Read, check and write, a few lines at a time; an error that ends the batch is its last
        line.
        """
        try:
            async for lines in split_lines(body_chunks(self._request), self._limits.body_bytes):
                room = max(self._limits.batch_lines - self._line, 0)
                for start in range(0, min(len(lines), room), MAX_BATCH):
                    await self._check(lines[start : min(start + MAX_BATCH, room)])
                if len(lines) > room:
                    message = f"the batch has more than {self._limits.batch_lines:,} lines"
                    raise ApiError(413, "too_large", message)
        except ApiError as error:
            self._write(self._line + 1, None, error)
        except Exception as error:
            self._write(self._line + 1, None, error)
            raise
        finally:
            self._spool.end()

    async def _check(self, lines: list[bytes | None]) -> None:
        parsed: list[tuple[int, Any, CheckJob | ApiError]] = []
        for line in lines:
            self._line += 1
            if line is None or line.strip():
                parsed.append((self._line, *self._parse(line)))
        jobs = [
            await self._service.with_documents(job)
            for _, _, job in parsed
            if isinstance(job, CheckJob)
        ]
        outcomes: Iterator[Verdict | InputError] = iter(await self._service.checks.check_many(jobs))
        for number, question_id, job in parsed:
            self._write(number, question_id, next(outcomes) if isinstance(job, CheckJob) else job)

    def _parse(self, line: bytes | None) -> tuple[Any, CheckJob | ApiError]:
        if line is None:
            message = f"the line is longer than {self._limits.body_bytes:,} bytes"
            return None, ApiError(413, "too_large", message)
        try:
            form = _LINE_ADAPTER.validate_json(line)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
            sent = [{**one, "loc": ("body", *one["loc"])} for one in errors]
            return None, validation_error(sent, BatchLine)
        job = CheckJob(self._gate, form.question, form.hits, self._explain, self._rounds_left)
        return form.question_id, job

    def _write(self, line: int, question_id: Any, outcome: Verdict | Exception) -> None:
        error = to_api_error(outcome).as_json() if isinstance(outcome, Exception) else None
        data = None if isinstance(outcome, Exception) else outcome.as_json()
        record = {"line": line, "question_id": question_id, "ok": error is None}
        record |= {"data": data, "error": error}
        self._spool.write(to_json(record, inf_nan_mode="null") + b"\n")


async def split_lines(
    chunks: AsyncIterator[bytes], max_bytes: int
) -> AsyncIterator[list[bytes | None]]:
    """The lines that each chunk completes; None for one that is too long, which is discarded."""
    rest, discarding = b"", False
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        complete: list[bytes | None] = [None if len(line) > max_bytes else line for line in lines]
        if discarding and complete:
            complete[0], discarding = None, False
        if complete:
            yield complete
        if len(rest) > max_bytes:
            rest, discarding = b"", True
    if rest or discarding:
        yield [None if discarding else rest]


class _DisconnectedError(Exception):
    """The client has disconnected."""


async def respond_to_ask(request: Request, form: AskRequest) -> Response:
    service = get_service(request)
    service.gate(form.gate)
    # Fail before the response starts, not in the middle of it.
    await service.run_in_thread(service.library.retriever, form.retriever)
    release = service.reserve_slot()
    if EVENT_STREAM in request.headers.get("accept", ""):
        return StreamedResponse(_events(request, service, form), EVENT_STREAM, release)
    try:
        trace = await service.run_in_thread(_run_ask, service, form, None)
        return respond(request, trace_record(trace))
    finally:
        release()


async def _events(request: Request, service: Service, form: AskRequest) -> AsyncIterator[bytes]:
    updates: asyncio.Queue[Trace | None] = asyncio.Queue()
    loop, disconnected = asyncio.get_running_loop(), threading.Event()

    def watch(trace: Trace) -> None:
        if disconnected.is_set():
            raise _DisconnectedError
        loop.call_soon_threadsafe(updates.put_nowait, trace)

    request_id = get_context(request).request_id
    asking = asyncio.ensure_future(service.run_in_thread(_run_ask, service, form, watch))
    asking.add_done_callback(lambda _: updates.put_nowait(None))
    plan, steps = None, 0  # what the client has seen: an event contains only what is new
    try:
        while not await request.is_disconnected():
            try:
                trace = await asyncio.wait_for(updates.get(), KEEPALIVE_S)
            except TimeoutError:
                yield b": still working\n\n"
                continue
            if trace is None:
                break
            if trace.plan != plan:
                plan = trace.plan
                yield _event("plan", to_json({"question": trace.question.text, "plan": plan}))
            for at in range(steps, len(trace.steps)):
                record = {"at": at, "step": trace.steps[at]}
                yield _event("step", to_json(record, inf_nan_mode="null"))
            steps = len(trace.steps)
        else:
            return
        try:
            yield _event("end", envelope(request_id, trace_record(asking.result())))
        except Exception as error:  # the response has started: the error is its last event
            log.exception("fault", extra={"fields": {"request_id": request_id}})
            yield _event("error", envelope(request_id, error=to_api_error(error)))
    finally:
        disconnected.set()
        asking.cancel()


def _event(name: str, data: bytes) -> bytes:
    # JSON has no raw line breaks: one line of data is one event.
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


def trace_record(trace: Trace) -> dict[str, Any]:
    return {"version": TRACE_VERSION, **asdict(trace)}


def _run_ask(service: Service, form: AskRequest, watch: Callable[[Trace], None] | None) -> Trace:
    allowed = service.settings.limits.ask_seconds
    seconds = min(form.seconds or allowed, allowed)
    return ask(
        form.question,
        service.library,
        service.gate(form.gate),
        service.model if form.with_model else None,
        policy=AskPolicy(retriever=form.retriever),
        budget=Budget(rounds=form.rounds, calls=form.calls, tokens=form.tokens, seconds=seconds),
        clock=time.monotonic,
        on_update=watch,
        filter=form.filter,
        strict=form.strict,
    )
