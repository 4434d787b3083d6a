"""The HTTP routes: what each accepts, calls and returns. Add a route here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from suffice.answering.expand import ExpansionBudget
from suffice.datasets.labels import check_judged, parse_labels, to_examples
from suffice.evaluation.adaptation import adapt_to_labels
from suffice.evaluation.judging import mark_judged
from suffice.gate.drift import MIN_QUESTIONS
from suffice.gate.evidence_graph import build_evidence_graph
from suffice.gate.gate import GATE_KIND, Gate
from suffice.gate.hits import normalize_hits
from suffice.library import Library
from suffice.registry import RETRIEVERS
from suffice.service import schemas
from suffice.service.batching import CheckJob
from suffice.service.labelling import LabelItem
from suffice.service.requests import (
    NDJSON,
    LabelRoute,
    PublicRoute,
    ReadRoute,
    WriteRoute,
    get_service,
)
from suffice.service.responses import ApiError, get_context, respond
from suffice.service.settings import DEFAULT_GATE
from suffice.service.state import Service
from suffice.service.streaming import EVENT_STREAM, BatchCheck, respond_to_ask
from suffice.storage import Record, check_replaceable
from suffice.types import Document, Hit, Trace, Verdict

public_api = APIRouter(route_class=PublicRoute)
read_api = APIRouter(route_class=ReadRoute)
write_api = APIRouter(route_class=WriteRoute)
label_api = APIRouter(route_class=LabelRoute)

MAX_DRIFT_FEATURES = 8
DocIds = Annotated[
    list[Annotated[str, Query(max_length=1000)]], Query(alias="id", min_length=1, max_length=100)
]


def describe(tag: str, model: Any, **response: Any) -> dict[str, Any]:
    """The OpenAPI metadata of a route: its tag and the data in its envelope."""
    return {"tags": [tag], "responses": {200: {"model": schemas.Envelope[model], **response}}}


# Checks


@read_api.post("/v1/check", **describe("checks", schemas.VerdictResponse))
async def check(request: Request, form: schemas.CheckRequest) -> Response:
    """Check whether the hits are enough for the question: answer, expand or abstain."""
    service = get_service(request)
    gate = service.gate(form.gate)
    job = CheckJob(form.gate, form.question, form.hits, form.explain, form.rounds_left)
    job = await service.with_documents(job)
    verdict = await service.checks.check(job)
    get_context(request).log_fields |= {
        "gate": form.gate,
        "hits": len(form.hits),
        "action": str(verdict.action),
        "p": round(verdict.p_complete, 3),
    }
    _log_question(request, form.question)
    record = verdict.as_json()
    if form.graph:
        record["graph"] = await service.run_in_thread(
            _evidence_graph, gate, form.question, job.hits, verdict
        )
    return respond(request, record)


def _evidence_graph(
    gate: Gate, question: str, hits: Sequence[Any], verdict: Verdict
) -> dict[str, Any]:
    evidence = normalize_hits(question, hits, k=gate.card["k"]).evidence
    return asdict(build_evidence_graph(evidence, gate.words, verdict.missing))


@read_api.post(
    "/v1/check/batch",
    responses={200: {"model": schemas.BatchResponse, "content": {NDJSON: {}}}},
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
    """Check many questions: JSON lines in, JSON lines out, in the same order, as they arrive."""
    get_service(request).gate(gate)
    return BatchCheck(request, gate=gate, explain=explain, rounds_left=rounds_left).response()


@read_api.get("/v1/gates", **describe("checks", list[schemas.GateResponse]))
async def gates(request: Request) -> Response:
    """List the gates, how they were fitted, and whether their questions have drifted."""
    service = get_service(request)
    return respond(request, [_describe_gate(service, name) for name in service.gates])


def _describe_gate(service: Service, name: str) -> schemas.GateResponse:
    gate, drift = service.gates[name], service.checks.drift(name)
    return schemas.GateResponse(
        name=name,
        preset=gate.preset,
        k=gate.card["k"],
        fitted_on=gate.profile.questions,
        policy=gate.policy.as_json(),
        metrics=gate.card.get("metrics", {}),
        history=gate.card.get("history", []),
        drift=None if drift is None else str(drift),
        drift_checks=service.checks.drift_checks(name),
        judge=None if gate.judge is None else gate.judge.name,
    )


@write_api.post("/v1/adapt", **describe("checks", schemas.AdaptResponse))
async def adapt(request: Request, form: schemas.AdaptRequest) -> Response:
    """Adapt a gate to labels; the new one is written to the folder for gates if it is better."""
    service = get_service(request)
    service.gate(form.gate), service.gate_folder
    get_context(request).log_fields |= {"gate": form.gate, "labels": len(form.labels)}
    release = service.reserve_slot()
    try:
        return respond(request, await service.run_in_thread(_adapt, service, form))
    finally:
        release()


def _adapt(service: Service, form: schemas.AdaptRequest) -> dict[str, Any]:
    gate, folder = service.gate(form.gate), service.gate_folder / form.name
    check_replaceable(folder, kind=GATE_KIND)  # before the work
    records = [Record(row, f"labels[{at}]") for at, row in enumerate(form.labels)]
    labels, judged_labels = check_judged(parse_labels(records), promise=form.alpha is not None)
    bare = {hit["id"] for label in labels for hit in label.hits if "text" not in hit}
    found = service.library.get(sorted(bare)) if bare and service.has_library else []
    documents = {one.doc_id: one for one in found if one is not None}
    taken = to_examples(labels, k=gate.card["k"], documents=documents)
    result = adapt_to_labels(gate, taken.examples, alpha=form.alpha)
    new, advice = result.to_write(force=form.force), "label more, or send force: true"
    if new is not None:
        mark_judged(new, judged_labels).save(folder)
        advice = f"restart the service with --gate {form.name}=FOLDER/{form.name}"
    record = {"name": form.name, "written": new is not None, "left_out": taken.left_out}
    judged = None if judged_labels is None else judged_labels.as_json()
    return {**record, "next": advice, "judged_labels": judged, **result.as_json()}


@read_api.get("/v1/report", **describe("checks", schemas.ReportResponse))
async def report(request: Request) -> Response:
    """Summarize the run that the service was started with, and the drift of each gate."""
    service = get_service(request)
    drifts = []
    for name in service.gates:
        if (drift := service.checks.drift(name)) is not None:
            record = asdict(drift)
            meanings = {one.name: one.meaning for one in service.gates[name].model.features}
            features = [
                {**feature, "meaning": meanings.get(feature["feature"], "")}
                for feature in record["features"][:MAX_DRIFT_FEATURES]
            ]
            drifts.append({"gate": name, **record, "features": features})
    checks = max(service.checks.drift_checks(name) for name in service.gates)
    counts = {"drift_checks": checks, "drift_from": MIN_QUESTIONS}
    return respond(request, {"run": service.report, "drift": drifts, **counts})


# Labels


@label_api.get("/v1/label/next", **describe("labels", schemas.LabelResponse))
async def next_label(request: Request, by: Annotated[str, Query(**schemas.LABELLER)]) -> Response:
    """What this person should label next: uncertain for the gate, and unlike what was labelled.

    For some minutes it is not given to anybody else.
    """
    return await _respond_with_next(request, _labeller(request, by), stored=False)


@label_api.post("/v1/label", **describe("labels", schemas.LabelResponse))
async def label(request: Request, form: schemas.LabelRequest) -> Response:
    """Store an answer, durable once answered; returns what to label next."""
    service, by = get_service(request), _labeller(request, form.by)
    item = LabelItem(form.question, tuple(hit.model_dump() for hit in form.hits))
    await service.run_in_thread(service.labels.answer, item, form.complete, form.needed, by)
    return await _respond_with_next(request, by, stored=True)


@label_api.post("/v1/label/undo", **describe("labels", schemas.LabelResponse))
async def undo_label(request: Request, form: schemas.UndoRequest) -> Response:
    """Take back this person's last answer; returns what it was about, to label again."""
    service, by = get_service(request), _labeller(request, form.by)
    stored = await service.run_in_thread(service.labels.undo, by)
    return await _respond_with_next(request, by, stored=stored)


def _labeller(request: Request, name: str) -> str:
    """A labeller's name that nobody with another key can use."""
    key = get_context(request).key
    return name if key is None else f"{key}/{name}"


async def _respond_with_next(request: Request, by: str, *, stored: bool) -> Response:
    service = get_service(request)
    item, progress = await service.run_in_thread(service.labels.next, by)
    return respond(request, {"item": item, "progress": progress, "stored": stored})


# Library


@read_api.post("/v1/search", **describe("library", schemas.SearchResponse))
async def search(request: Request, form: schemas.SearchRequest) -> Response:
    """Search the library."""
    service = get_service(request)
    _log_question(request, form.question)
    return respond(request, {"hits": await service.run_in_thread(_search, service.library, form)})


def _search(library: Library, form: schemas.SearchRequest) -> list[dict[str, Any]]:
    retriever = form.retriever or ("bridge" if form.reranker else None)
    hits = library.search(
        form.question,
        k=form.k,
        retriever=retriever,
        filter=form.filter,
        strict=form.strict,
        **_reranker(form),
    )
    return _hit_records(library, hits, texts=form.texts)


def _reranker(form: schemas.SearchRequest | schemas.CompleteRequest) -> dict[str, Any]:
    return {"reranker": form.reranker} if form.reranker else {}


@read_api.post("/v1/complete", **describe("library", schemas.CompletionResponse))
async def complete(request: Request, form: schemas.CompleteRequest) -> Response:
    """Search until the gate says that the evidence is complete."""
    service = get_service(request)
    service.gate(form.gate), service.library
    _log_question(request, form.question)
    release = service.reserve_slot()
    try:
        return respond(request, await service.run_in_thread(_complete, service, form))
    finally:
        release()


def _complete(service: Service, form: schemas.CompleteRequest) -> dict[str, Any]:
    # Stop before the request's deadline, so that partial results can still be sent.
    budget = ExpansionBudget(rounds=form.rounds, seconds=service.settings.limits.seconds * 0.8)
    library, gate = service.library, service.gate(form.gate)
    completion = library.complete(
        form.question,
        gate,
        k=form.k,
        budget=budget,
        retriever=form.retriever,
        filter=form.filter,
        strict=form.strict,
        **_reranker(form),
    )
    return {
        "hits": _hit_records(library, completion.hits, texts=form.texts),
        "verdict": completion.verdict.as_json(),
        "stopped": str(completion.stopped),
        "checks": completion.checks,
        "rounds": completion.rounds(),
    }


@read_api.post("/v1/ask", **describe("library", Trace, content={EVENT_STREAM: {}}))
async def ask(request: Request, form: schemas.AskRequest) -> Response:
    """Plan, search, read, review, and answer only if the gate agrees.

    With `Accept: text/event-stream` the steps are sent as they happen. At the end they come again,
    with the gate's verdict counted in their confidence.
    """
    _log_question(request, form.question)
    return await respond_to_ask(request, form)


@read_api.get("/v1/library", **describe("library", schemas.LibraryResponse))
async def library(request: Request) -> Response:
    """Describe the library and list its retrievers."""
    service = get_service(request)
    return respond(request, await service.run_in_thread(_describe_library, service.library))


def _describe_library(library: Library) -> schemas.LibraryResponse:
    return schemas.LibraryResponse(
        documents=len(library),
        generation=library.store.generation,
        encoder=library.encoder_name,
        retrievers=RETRIEVERS.names(),
    )


@read_api.get("/v1/library/documents", **describe("library", list[schemas.DocumentResponse | None]))
async def documents(request: Request, ids: DocIds) -> Response:
    """Get documents by id; null for an unknown id."""
    service = get_service(request)
    found = await service.run_in_thread(service.library.get, ids)
    return respond(request, [document and _document_record(document) for document in found])


@write_api.post("/v1/library/documents", **describe("library", schemas.WriteResponse))
async def add_documents(request: Request, form: schemas.DocumentsRequest) -> Response:
    """Add documents, replacing those with the same id. Durable once answered."""
    service = get_service(request)
    library = service.library
    new = [
        Document(**{**dict(document), "entities": tuple(document.entities)})
        for document in form.documents
    ]
    return respond(request, await service.run_in_thread(_write, library, library.add, new))


@write_api.delete("/v1/library/documents", **describe("library", schemas.WriteResponse))
async def delete_documents(request: Request, ids: DocIds) -> Response:
    """Delete documents; unknown ids are ignored."""
    service = get_service(request)
    library = service.library
    return respond(request, await service.run_in_thread(_write, library, library.delete, ids))


def _write(
    library: Library, write: Callable[[Sequence[Any]], int], items: Sequence[Any]
) -> schemas.WriteResponse:
    written, count = write(items), len(library)
    generation = library.store.generation
    return schemas.WriteResponse(written=written, documents=count, generation=generation)


def _hit_records(library: Library, hits: Sequence[Hit], *, texts: bool) -> list[dict[str, Any]]:
    found = library.get([hit.doc_id for hit in hits])
    return [
        _document_record(document or Document(hit.doc_id, ""), texts=texts) | hit.as_json()
        for hit, document in zip(hits, found)
    ]


def _document_record(document: Document, *, texts: bool = True) -> dict[str, Any]:
    record = {name: getattr(document, name) for name in schemas.DocumentResponse.model_fields}
    return record if texts else record | {"text": None}


# Health


@public_api.get("/healthz", **describe("health", schemas.HealthResponse))
async def healthz(request: Request) -> Response:
    """The worker is alive."""
    return respond(request, {"status": "alive", "version": request.app.version})


@public_api.get("/readyz", **describe("health", schemas.HealthResponse))
async def readyz(request: Request) -> Response:
    """The worker can serve: gates loaded, library open, not shutting down."""
    service = get_service(request)
    if not service.checks.alive:
        message = "the worker is shutting down"
        raise ApiError(503, "shutting_down", message, headers={"retry-after": "1"})
    if service.has_library:
        await service.run_in_thread(len, service.library)
    return respond(request, {"status": "ready", "version": request.app.version})


@read_api.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
    tags=["health"],
)
async def metrics(request: Request) -> Response:
    """Prometheus metrics."""
    service = get_service(request)
    text = await service.run_in_thread(service.metrics.render)
    return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _log_question(request: Request, question: str) -> None:
    if get_service(request).settings.log_texts:
        get_context(request).log_fields["question"] = question
