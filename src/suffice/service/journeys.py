"""Questions on a journey: `/v1/ask` in one answer at the end, or as server-sent events while it goes.

    event: plan    data: {"question": "…", "plan": ["…", …]}
    event: step    data: {"at": 0, "step": {…}}
    event: end     data: the envelope with the whole trace
    event: error   data: the envelope with what went wrong

A visitor who goes away ends the journey at its next step.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import asdict
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from pydantic_core import to_json

from suffice.reason.budget import Budget
from suffice.reason.loop import AskPolicy, ask
from suffice.reason.tracing import VERSION
from suffice.service.holding import Service
from suffice.service.intake import service_of
from suffice.service.replies import envelope, problem, refusal_of, reply, visit_of
from suffice.service.shapes import AskForm
from suffice.service.streams import Streamed
from suffice.types import Trace

__all__ = ["EVENTS", "answered"]

EVENTS = "text/event-stream"
LOOK_UP_S = 2.0  # of silence, after which a word is sent: nobody in between is to take the line for dead


log = logging.getLogger("suffice.service")


class _GoneError(Exception):
    """The visitor has left: nobody wants to know how it ends."""


async def answered(request: Request, form: AskForm) -> Response:
    service = service_of(request)
    service.gate(form.gate)
    await service.aside(service.library.retriever, form.retriever)  # what cannot begin is refused before an answer does
    give_back = service.take_place()
    if EVENTS in request.headers.get("accept", ""):
        stall = service.settings.limits.body_seconds
        return Streamed(_events(request, service, form), EVENTS, stall_seconds=stall, ended=give_back)
    try:
        return reply(request, trace_record(await service.aside(_travel, service, form, None)))
    finally:
        give_back()


async def _events(request: Request, service: Service, form: AskForm) -> AsyncIterator[bytes]:
    told: asyncio.Queue[Trace | None] = asyncio.Queue()
    loop, gone = asyncio.get_running_loop(), threading.Event()

    def watch(trace: Trace) -> None:
        if gone.is_set():
            raise _GoneError
        loop.call_soon_threadsafe(told.put_nowait, trace)

    request_id = visit_of(request).request_id
    journey = asyncio.ensure_future(service.aside(_travel, service, form, watch))
    journey.add_done_callback(lambda _: told.put_nowait(None))
    shown = _Shown()
    try:
        while not await request.is_disconnected():
            try:
                trace = await asyncio.wait_for(told.get(), LOOK_UP_S)
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
            yield _event("error", envelope(request_id, error=problem(refusal_of(error))))
    finally:
        gone.set()
        journey.cancel()


class _Shown:
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
    return {"version": VERSION, **asdict(trace)}


def _travel(service: Service, form: AskForm, watch: Callable[[Trace], None] | None) -> Trace:
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
