"""The page at `/`: its files as they are, and what its report shows.

The files are few and small, so that they are read once and held: no path of a visitor ever reaches the disk.
"""

from __future__ import annotations

from dataclasses import asdict
from importlib import resources
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from suffice.assess.drift import Drift
from suffice.service.intake import Reading, service_of
from suffice.service.replies import Refusal, reply
from suffice.service.shapes import Envelope, ReportReply

__all__ = ["page_routes", "reports"]

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# Nothing from elsewhere, nothing inline, nobody's frame: what a document says stays text.
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}
MOVED = 8  # features of a drift that are shown

reports = APIRouter(route_class=Reading)


def page_routes() -> list[APIRoute]:
    """The page and its files. They hold nothing of anybody's, so that no key is asked for; what they fetch asks for it."""
    files = {
        one.name: (one.read_bytes(), TYPES[one.name.rpartition(".")[2]])
        for one in resources.files("suffice.service").joinpath("page").iterdir()
        if one.name.rpartition(".")[2] in TYPES
    }

    async def file(name: str = "index.html") -> Response:
        if name not in files:
            raise Refusal(404, "not_found", "the page has no such file")
        content, media_type = files[name]
        return Response(content, media_type=media_type, headers=HEADERS)

    async def front() -> Response:
        return await file()

    return [
        APIRoute("/", front, include_in_schema=False, response_model=None),
        APIRoute("/page/{name}", file, include_in_schema=False, response_model=None),
    ]


@reports.get("/v1/report", responses={200: {"model": Envelope[ReportReply]}}, tags=["checks"])
async def report(request: Request) -> Response:
    """The run that the service was started with, at a glance, and what each gate has seen of drift."""
    service = service_of(request)
    drifts = {name: service.checks.drift(name) for name in service.gates}
    told = [{"gate": name, **_drift_record(drift)} for name, drift in drifts.items() if drift is not None]
    return reply(request, {"run": service.report, "drift": told})


def _drift_record(drift: Drift) -> dict[str, Any]:
    record = asdict(drift)
    return {**record, "features": record["features"][:MOVED]}
