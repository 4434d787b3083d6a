"""The doors: what each takes, asks of the house, and hands back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from suffice.answering.expand import ExpansionBudget
from suffice.gate.evidence_graph import build_evidence_graph
from suffice.gate.gate import Gate
from suffice.gate.hits import normalize_hits
from suffice.library import Library
from suffice.registry import RETRIEVERS
from suffice.service.batching import CheckJob
from suffice.service.metrics import PROMETHEUS_TEXT
from suffice.service.requests import NDJSON, PublicRoute, ReadRoute, WriteRoute, get_service
from suffice.service.responses import ApiError, get_context, respond
from suffice.service.schemas import (
    AskRequest,
    BatchResponse,
    CheckRequest,
    CompleteRequest,
    CompletionResponse,
    DocumentResponse,
    DocumentsRequest,
    Envelope,
    GateResponse,
    HealthResponse,
    LibraryResponse,
    SearchRequest,
    SearchResponse,
    TraceResponse,
    VerdictResponse,
    WriteResponse,
)
from suffice.service.settings import DEFAULT_GATE
from suffice.service.state import Service
from suffice.service.streaming import EVENT_STREAM, BatchCheck, respond_to_ask
from suffice.types import Document, Hit, Verdict

__all__ = ["public_api", "read_api", "write_api"]

public_api = APIRouter(route_class=PublicRoute)
read_api = APIRouter(route_class=ReadRoute)
write_api = APIRouter(route_class=WriteRoute)

DocIds = Annotated[
    list[Annotated[str, Query(max_length=1000)]], Query(alias="id", min_length=1, max_length=100)
]


def envelope_of(model: Any) -> dict[int | str, dict[str, Any]]:
    return {200: {"model": Envelope[model]}}


# --------------------------------------------------------------------------------------------------------------- checks


@read_api.post("/v1/check", responses=envelope_of(VerdictResponse), tags=["checks"])
async def check(request: Request, form: CheckRequest) -> Response:
    """Are these hits enough for this question: answer, expand or abstain?"""
    service = get_service(request)
    service.gate(form.gate)
    hits, *others = await service.with_documents([form.hits, *form.others])
    verdict = await service.checks.verdict(
        CheckJob(form.gate, form.question, hits, others, form.explain, form.rounds_left)
    )
    notes = get_context(request).notes
    notes |= {
        "gate": form.gate,
        "hits": len(form.hits),
        "action": str(verdict.action),
        "p": round(verdict.p_complete, 3),
    }
    _log_question(request, form.question)
    drawn = (
        {
            "drawing": await service.aside(
                _evidence_graph, service.gate(form.gate), form.question, hits, verdict
            )
        }
        if form.draw
        else {}
    )
    return respond(request, verdict.as_json() | drawn)


def _evidence_graph(
    gate: Gate, question: str, hits: Sequence[Any], verdict: Verdict
) -> dict[str, Any]:
    return asdict(
        build_evidence_graph(
            normalize_hits(question, hits, k=gate.card["k"]).evidence, gate.words, verdict.missing
        )
    )


@read_api.post(
    "/v1/check/batch",
    responses={
        200: {
            "model": BatchResponse,
            "content": {NDJSON: {}},
            "description": "A line for each line, in order.",
        }
    },
    tags=["checks"],
    openapi_extra={
        "requestBody": {"required": True, "content": {NDJSON: {"schema": {"type": "string"}}}}
    },
)
async def check_batch(
    request: Request,
    gate: Annotated[str, Query(max_length=64)] = DEFAULT_GATE,
    explain: bool = True,
    rounds_left: Annotated[int, Query(ge=0, le=1000)] = 1,
) -> Response:
    """Many checks: JSON lines in, JSON lines out, in the same order, while they still come in."""
    service = get_service(request)
    service.gate(gate)
    return BatchCheck(request, gate=gate, explain=explain, rounds_left=rounds_left).answer()


@read_api.get("/v1/gates", responses=envelope_of(list[GateResponse]), tags=["checks"])
async def gates(request: Request) -> Response:
    """The gates that checks may ask for, how they were fitted, and whether their world has moved."""
    service = get_service(request)
    return respond(
        request, [_gate_record(name, gate, service) for name, gate in service.gates.items()]
    )


def _gate_record(name: str, gate: Gate, service: Service) -> dict[str, Any]:
    drift = service.checks.drift(name)
    return {
        "name": name,
        "preset": gate.preset,
        "k": gate.card["k"],
        "fitted_on": gate.profile.questions,
        "policy": gate.policy.as_json(),
        "metrics": gate.card.get("metrics", {}),
        "history": gate.card.get("history", []),
        "drift": None if drift is None else str(drift),
    }


# -------------------------------------------------------------------------------------------------------------- library


@read_api.post("/v1/search", responses=envelope_of(SearchResponse), tags=["library"])
async def search(request: Request, form: SearchRequest) -> Response:
    """Look something up in the library."""
    service = get_service(request)
    _log_question(request, form.question)
    return respond(request, {"hits": await service.aside(_search, service.library, form)})


def _search(library: Library, form: SearchRequest) -> list[dict[str, Any]]:
    hits = library.search(
        form.question, k=form.k, retriever=form.retriever, filter=form.filter, strict=form.strict
    )
    return _hit_records(library, hits, texts=form.texts)


@read_api.post("/v1/complete", responses=envelope_of(CompletionResponse), tags=["library"])
async def complete(request: Request, form: CompleteRequest) -> Response:
    """Search until the gate says that the evidence is complete."""
    service = get_service(request)
    service.gate(form.gate), service.library
    _log_question(request, form.question)
    give_back = service.take_place()
    try:
        return respond(request, await service.aside(_complete, service, form))
    finally:
        give_back()


def _complete(service: Service, form: CompleteRequest) -> dict[str, Any]:
    # Before the deadline of the request, so that what was found by then is still handed over.
    reach = ExpansionBudget(rounds=form.rounds, seconds=service.settings.limits.seconds * 0.8)
    library = service.library
    found = library.complete(
        form.question, service.gate(form.gate), k=form.k, reach=reach, retriever=form.retriever
    )
    return {
        "hits": _hit_records(library, found.hits, texts=form.texts),
        "verdict": found.verdict.as_json(),
        "stopped": str(found.stopped),
        "checks": found.checks,
        "rounds": found.rounds(),
    }


@read_api.post(
    "/v1/ask",
    responses={
        200: {
            "model": Envelope[TraceResponse],
            "content": {EVENT_STREAM: {}},
            "description": "The trace; or events.",
        }
    },
    tags=["library"],
)
async def ask(request: Request, form: AskRequest) -> Response:
    """Plan, look, read, review, and answer only where the gate agrees. With `Accept: text/event-stream` while it goes."""
    _log_question(request, form.question)
    return await respond_to_ask(request, form)


@read_api.get("/v1/library", responses=envelope_of(LibraryResponse), tags=["library"])
async def library(request: Request) -> Response:
    """What the library is, and which retrievers search it."""
    service = get_service(request)
    return respond(request, await service.aside(_library_record, service.library))


def _library_record(held: Library) -> dict[str, Any]:
    about = {
        "documents": len(held),
        "generation": held.store.generation,
        "encoder": held.encoder_name,
    }
    return {**about, "retrievers": RETRIEVERS.names()}


@read_api.get(
    "/v1/library/documents", responses=envelope_of(list[DocumentResponse | None]), tags=["library"]
)
async def documents(request: Request, ids: DocIds) -> Response:
    """The documents of these ids; null where there is none."""
    service = get_service(request)
    found = await service.aside(service.library.get, ids)
    return respond(request, [None if one is None else _document_record(one) for one in found])


@write_api.post("/v1/library/documents", responses=envelope_of(WriteResponse), tags=["library"])
async def add_documents(request: Request, form: DocumentsRequest) -> Response:
    """Add documents, replacing those with the same id. Answered means durable."""
    service = get_service(request)
    held = service.library
    made = [Document(**{**dict(one), "entities": tuple(one.entities)}) for one in form.documents]
    return respond(request, await service.aside(_write, held, held.add, made))


@write_api.delete("/v1/library/documents", responses=envelope_of(WriteResponse), tags=["library"])
async def delete_documents(request: Request, ids: DocIds) -> Response:
    """Remove documents; unknown ids are passed over."""
    service = get_service(request)
    held = service.library
    return respond(request, await service.aside(_write, held, held.delete, ids))


def _write(held: Library, write: Any, what: Sequence[Any]) -> dict[str, int]:
    return {"written": write(what), "documents": len(held), "generation": held.store.generation}


def _hit_records(library: Library, hits: Sequence[Hit], *, texts: bool) -> list[dict[str, Any]]:
    held = dict(zip([hit.doc_id for hit in hits], library.get([hit.doc_id for hit in hits])))
    return [
        {
            **_document_record(held[hit.doc_id] or Document(hit.doc_id, ""), texts=texts),
            **asdict(hit),
        }
        for hit in hits
    ]


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


@public_api.get("/healthz", responses=envelope_of(HealthResponse), tags=["health"])
async def healthz(request: Request) -> Response:
    """The worker lives."""
    return respond(request, _health(request, "lives"))


@public_api.get("/readyz", responses=envelope_of(HealthResponse), tags=["health"])
async def readyz(request: Request) -> Response:
    """The worker can serve: its gates are loaded, its library opens, and it is not about to leave."""
    service = get_service(request)
    if service.leaving or not service.checks.alive:
        raise ApiError(
            503, "leaving", "this worker takes on nothing new", headers={"retry-after": "1"}
        )
    if service.has_library:
        await service.aside(len, service.library)
    return respond(request, _health(request, "ready"))


def _health(request: Request, status: str) -> Mapping[str, str]:
    return {"status": status, "version": request.app.version}


@read_api.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
    tags=["health"],
)
async def metrics(request: Request) -> Response:
    """What Prometheus is told."""
    return Response(
        await get_service(request).aside(get_service(request).measures.shown),
        media_type=PROMETHEUS_TEXT,
    )


def _log_question(request: Request, question: str) -> None:
    if get_service(request).settings.log_texts:
        get_context(request).notes["question"] = question
