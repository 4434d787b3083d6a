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

from suffice.gate.drift import Drift
from suffice.service.requests import ReadRoute, get_service
from suffice.service.responses import ApiError, respond
from suffice.service.schemas import Envelope, ReportResponse

__all__ = ["page_routes", "report_api"]

MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# Nothing from elsewhere, nothing inline, nobody's frame: what a document says stays text.
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}
MAX_DRIFT_FEATURES = 8  # features of a drift that are shown

report_api = APIRouter(route_class=ReadRoute)


def page_routes() -> list[APIRoute]:
    """The page and its files. They hold nothing of anybody's, so that no key is asked for; what they fetch asks for it."""
    files = {
        one.name: (one.read_bytes(), MEDIA_TYPES[one.name.rpartition(".")[2]])
        for one in resources.files("suffice.service").joinpath("page").iterdir()
        if one.name.rpartition(".")[2] in MEDIA_TYPES
    }

    async def file(name: str = "index.html") -> Response:
        if name not in files:
            raise ApiError(404, "not_found", "the page has no such file")
        content, media_type = files[name]
        return Response(content, media_type=media_type, headers=SECURITY_HEADERS)

    async def front() -> Response:
        return await file()

    return [
        APIRoute("/", front, include_in_schema=False, response_model=None),
        APIRoute("/page/{name}", file, include_in_schema=False, response_model=None),
    ]


@report_api.get("/v1/report", responses={200: {"model": Envelope[ReportResponse]}}, tags=["checks"])
async def report(request: Request) -> Response:
    """The run that the service was started with, at a glance, and what each gate has seen of drift."""
    service = get_service(request)
    drifts = {name: service.checks.drift(name) for name in service.gates}
    told = [
        {"gate": name, **_drift_record(drift)}
        for name, drift in drifts.items()
        if drift is not None
    ]
    return respond(request, {"run": service.report, "drift": told})


def _drift_record(drift: Drift) -> dict[str, Any]:
    record = asdict(drift)
    return {**record, "features": record["features"][:MAX_DRIFT_FEATURES]}
