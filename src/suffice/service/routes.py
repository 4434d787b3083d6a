"""The doors: what each takes, asks of the house, and hands back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from suffice.assess.drawing import drawing
from suffice.assess.gate import Gate
from suffice.assess.incoming import take
from suffice.library import Library
from suffice.ports import RETRIEVERS
from suffice.reason.expand import Reach
from suffice.service.checking import Asked
from suffice.service.holding import Service
from suffice.service.intake import LINES, Open, Reading, Writing, service_of
from suffice.service.journeys import EVENTS, answered
from suffice.service.measures import TEXT
from suffice.service.replies import Refusal, reply, visit_of
from suffice.service.settings import DEFAULT
from suffice.service.shapes import (
    AskForm,
    BatchReply,
    CheckForm,
    CompleteForm,
    CompletionReply,
    DocumentReply,
    DocumentsForm,
    Envelope,
    GateReply,
    HealthReply,
    LibraryReply,
    SearchForm,
    SearchReply,
    TraceReply,
    VerdictReply,
    WrittenReply,
)
from suffice.service.streams import Batch
from suffice.types import Document, Hit, Verdict

__all__ = ["everybody", "readers", "writers"]

everybody = APIRouter(route_class=Open)
readers = APIRouter(route_class=Reading)
writers = APIRouter(route_class=Writing)

Ids = Annotated[list[Annotated[str, Query(max_length=1000)]], Query(alias="id", min_length=1, max_length=100)]


def gives(model: Any) -> dict[int | str, dict[str, Any]]:
    return {200: {"model": Envelope[model]}}


# --------------------------------------------------------------------------------------------------------------- checks


@readers.post("/v1/check", responses=gives(VerdictReply), tags=["checks"])
async def check(request: Request, form: CheckForm) -> Response:
    """Are these hits enough for this question: answer, expand or abstain?"""
    service = service_of(request)
    service.gate(form.gate)
    hits, *others = await service.with_documents([form.hits, *form.others])
    verdict = await service.checks.verdict(Asked(form.gate, form.question, hits, others, form.explain, form.rounds_left))
    notes = visit_of(request).notes
    notes |= {"gate": form.gate, "hits": len(form.hits), "action": str(verdict.action), "p": round(verdict.p_complete, 3)}
    _note_question(request, form.question)
    drawn = {"drawing": await service.aside(_drawn, service.gate(form.gate), form.question, hits, verdict)} if form.draw else {}
    return reply(request, verdict.as_json() | drawn)


def _drawn(gate: Gate, question: str, hits: Sequence[Any], verdict: Verdict) -> dict[str, Any]:
    return asdict(drawing(take(question, hits, k=gate.card["k"]).evidence, gate.words, verdict.missing))


@readers.post(
    "/v1/check/batch",
    responses={200: {"model": BatchReply, "content": {LINES: {}}, "description": "A line for each line, in order."}},
    tags=["checks"],
    openapi_extra={"requestBody": {"required": True, "content": {LINES: {"schema": {"type": "string"}}}}},
)
async def check_batch(
    request: Request,
    gate: Annotated[str, Query(max_length=64)] = DEFAULT,
    explain: bool = True,
    rounds_left: Annotated[int, Query(ge=0, le=1000)] = 1,
) -> Response:
    """Many checks: JSON lines in, JSON lines out, in the same order, while they still come in."""
    service = service_of(request)
    service.gate(gate)
    return Batch(request, gate=gate, explain=explain, rounds_left=rounds_left).answer()


@readers.get("/v1/gates", responses=gives(list[GateReply]), tags=["checks"])
async def gates(request: Request) -> Response:
    """The gates that checks may ask for, how they were fitted, and whether their world has moved."""
    service = service_of(request)
    return reply(request, [_gate_record(name, gate, service) for name, gate in service.gates.items()])


def _gate_record(name: str, gate: Gate, service: Service) -> dict[str, Any]:
    drift = service.checks.drift(name)
    return {
        "name": name,
        "grade": gate.grade,
        "k": gate.card["k"],
        "fitted_on": gate.profile.questions,
        "policy": gate.policy.as_json(),
        "metrics": gate.card.get("metrics", {}),
        "history": gate.card.get("history", []),
        "drift": None if drift is None else str(drift),
    }


# -------------------------------------------------------------------------------------------------------------- library


@readers.post("/v1/search", responses=gives(SearchReply), tags=["library"])
async def search(request: Request, form: SearchForm) -> Response:
    """Look something up in the library."""
    service = service_of(request)
    _note_question(request, form.question)
    return reply(request, {"hits": await service.aside(_searched, service.library, form)})


def _searched(library: Library, form: SearchForm) -> list[dict[str, Any]]:
    hits = library.search(form.question, k=form.k, retriever=form.retriever, filter=form.filter, strict=form.strict)
    return _hit_records(library, hits, texts=form.texts)


@readers.post("/v1/complete", responses=gives(CompletionReply), tags=["library"])
async def complete(request: Request, form: CompleteForm) -> Response:
    """Search until the gate says that the evidence is complete."""
    service = service_of(request)
    service.gate(form.gate), service.library
    _note_question(request, form.question)
    give_back = service.take_place()
    try:
        return reply(request, await service.aside(_completed, service, form))
    finally:
        give_back()


def _completed(service: Service, form: CompleteForm) -> dict[str, Any]:
    # Before the deadline of the request, so that what was found by then is still handed over.
    reach = Reach(rounds=form.rounds, seconds=service.settings.limits.seconds * 0.8)
    library = service.library
    found = library.complete(form.question, service.gate(form.gate), k=form.k, reach=reach, retriever=form.retriever)
    return {
        "hits": _hit_records(library, found.hits, texts=form.texts),
        "verdict": found.verdict.as_json(),
        "stopped": str(found.stopped),
        "checks": found.checks,
        "rounds": found.rounds(),
    }


@readers.post(
    "/v1/ask",
    responses={200: {"model": Envelope[TraceReply], "content": {EVENTS: {}}, "description": "The trace; or events."}},
    tags=["library"],
)
async def ask(request: Request, form: AskForm) -> Response:
    """Plan, look, read, review, and answer only where the gate agrees. With `Accept: text/event-stream` while it goes."""
    _note_question(request, form.question)
    return await answered(request, form)


@readers.get("/v1/library", responses=gives(LibraryReply), tags=["library"])
async def library(request: Request) -> Response:
    """What the library is, and which retrievers search it."""
    service = service_of(request)
    return reply(request, await service.aside(_library_record, service.library))


def _library_record(held: Library) -> dict[str, Any]:
    about = {"documents": len(held), "generation": held.store.generation, "encoder": held.encoder_name}
    return {**about, "retrievers": RETRIEVERS.names()}


@readers.get("/v1/library/documents", responses=gives(list[DocumentReply | None]), tags=["library"])
async def documents(request: Request, ids: Ids) -> Response:
    """The documents of these ids; null where there is none."""
    service = service_of(request)
    found = await service.aside(service.library.get, ids)
    return reply(request, [None if one is None else _document_record(one) for one in found])


@writers.post("/v1/library/documents", responses=gives(WrittenReply), tags=["library"])
async def add_documents(request: Request, form: DocumentsForm) -> Response:
    """Add documents, replacing those with the same id. Answered means durable."""
    service = service_of(request)
    held = service.library
    made = [Document(**{**dict(one), "entities": tuple(one.entities)}) for one in form.documents]
    return reply(request, await service.aside(_written, held, held.add, made))


@writers.delete("/v1/library/documents", responses=gives(WrittenReply), tags=["library"])
async def delete_documents(request: Request, ids: Ids) -> Response:
    """Remove documents; unknown ids are passed over."""
    service = service_of(request)
    held = service.library
    return reply(request, await service.aside(_written, held, held.delete, ids))


def _written(held: Library, write: Any, what: Sequence[Any]) -> dict[str, int]:
    return {"written": write(what), "documents": len(held), "generation": held.store.generation}


def _hit_records(library: Library, hits: Sequence[Hit], *, texts: bool) -> list[dict[str, Any]]:
    held = dict(zip([hit.doc_id for hit in hits], library.get([hit.doc_id for hit in hits])))
    return [{**_document_record(held[hit.doc_id] or Document(hit.doc_id, ""), texts=texts), **asdict(hit)} for hit in hits]


def _document_record(document: Document, *, texts: bool = True) -> dict[str, Any]:
    return {
        "doc_id": document.doc_id,
        "title": document.title,
        "text": document.text if texts else None,
        "source": document.source,
        "category": document.category,
        "published_at": document.published_at,
        "entities": document.entities,
    }


# --------------------------------------------------------------------------------------------------------------- health


@everybody.get("/healthz", responses=gives(HealthReply), tags=["health"])
async def healthz(request: Request) -> Response:
    """The worker lives."""
    return reply(request, _health(request, "lives"))


@everybody.get("/readyz", responses=gives(HealthReply), tags=["health"])
async def readyz(request: Request) -> Response:
    """The worker can serve: its gates are loaded, its library opens, and it is not about to leave."""
    service = service_of(request)
    if service.leaving or not service.checks.alive:
        raise Refusal(503, "leaving", "this worker takes on nothing new", headers={"retry-after": "1"})
    if service.has_library:
        await service.aside(len, service.library)
    return reply(request, _health(request, "ready"))


def _health(request: Request, status: str) -> Mapping[str, str]:
    return {"status": status, "version": request.app.version}


@readers.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}}, tags=["health"])
async def metrics(request: Request) -> Response:
    """What Prometheus is told."""
    return Response(await service_of(request).aside(service_of(request).measures.shown), media_type=TEXT)


def _note_question(request: Request, question: str) -> None:
    if service_of(request).settings.log_texts:
        visit_of(request).notes["question"] = question
