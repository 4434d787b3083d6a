"""The service as one ASGI application: routes, one envelope for every error, OpenAPI, and the porter in front of it all."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from suffice.errors import SufficeError
from suffice.service.keys import WRITE
from suffice.service.middleware import RequestMiddleware
from suffice.service.requests import PublicRoute
from suffice.service.responses import respond_with_error, to_api_error, validation_error
from suffice.service.routes import public_api, read_api, write_api
from suffice.service.schemas import ErrorResponse
from suffice.service.settings import SETTINGS_VARIABLE, Settings
from suffice.service.state import Service
from suffice.service.static import page_routes, report_api

__all__ = ["build_openapi", "create_app", "create_app_from_environment"]

ERROR_DESCRIPTIONS = {
    400: "The body is no sound JSON.",
    401: "No key, or one that is not known.",
    403: "The key may not do this.",
    408: "The body came too slowly.",
    409: "The service has no library.",
    413: "The body is too large.",
    415: "The body is of another media type.",
    421: "Sent to another host.",
    422: "A value does not fit the form.",
    429: "Too much is in work; try again after the seconds in Retry-After.",
    503: "The worker is about to leave.",
    504: "No answer began in time.",
}


def create_app(settings: Settings) -> RequestMiddleware:
    """One worker's service. It opens what it holds when its event loop begins, and closes it at the end."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.open()
        yield
        service.close()

    app = FastAPI(
        title="suffice",
        version=version("suffice"),
        summary="Is the evidence that was retrieved for this multi-hop question complete?",
        lifespan=lifespan,
        docs_url=None,  # those pages load their scripts from elsewhere
        redoc_url=None,
        openapi_url=None,
    )
    app.state.service = service
    for router in (public_api, read_api, report_api, write_api):
        app.router.routes.extend(
            router.routes
        )  # as they are: a router inside a router costs every request a look
    app.router.routes.extend(page_routes())
    for kind in (SufficeError, HTTPException, Exception):
        app.add_exception_handler(kind, _handle_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = build_openapi(app)
        return app.openapi_schema

    return RequestMiddleware(app, service)


def create_app_from_environment() -> RequestMiddleware:
    """What a worker process runs."""
    # The judging thread may hold the interpreter for 5 ms before a request that has come in is even read; 1 ms is soon enough.
    sys.setswitchinterval(0.001)
    return create_app(Settings.from_json(os.environ[SETTINGS_VARIABLE]))


async def _handle_error(request: Request, error: Exception) -> Response:
    return respond_with_error(request, to_api_error(error))


async def _handle_validation_error(request: Request, error: Exception) -> Response:
    errors = error.errors() if isinstance(error, RequestValidationError) else []
    return respond_with_error(request, validation_error(errors))


# -------------------------------------------------------------------------------------------------------------- OpenAPI


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """OpenAPI with what the porter and the intake add to every route: keys, and the ways to be refused."""
    routes = [route for route in app.routes if isinstance(route, PublicRoute)]
    told = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=routes)
    parts = told.setdefault("components", {})
    parts["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "suffice serve key new"}
    }
    parts["schemas"] |= ErrorResponse.model_json_schema(
        ref_template="#/components/schemas/{model}"
    ).pop("$defs", {})
    parts["schemas"]["Failure"] = _without_parts(
        ErrorResponse.model_json_schema(ref_template="#/components/schemas/{model}")
    )
    for name in ("HTTPValidationError", "ValidationError"):
        parts["schemas"].pop(name, None)
    for route in routes:
        for method in route.methods or ():
            operation = told["paths"][route.path][method.lower()]
            operation["responses"].pop("422", None)
            operation["responses"] |= {
                str(status): _error_schema(status) for status in error_statuses(route)
            }
            if route.needs is not None:
                operation["security"] = [{"key": []}] if route.needs == WRITE else [{"key": []}, {}]
    return told


def error_statuses(route: APIRoute) -> list[int]:
    """The refusals that a visitor of this route may meet."""
    found: set[int] = {421}
    if getattr(route, "needs", None) is not None:
        found |= {401, 403}
    if route.path not in ("/healthz", "/readyz", "/metrics"):
        found |= {429, 504} - (
            {504} if route.path in ("/v1/gates", "/v1/report", "/v1/check/batch") else set()
        )
    if route.path == "/readyz":
        found |= {503}
    if route.body_field is not None:
        found |= {400, 408, 413, 415, 422}
    elif route.dependant.query_params:
        found |= {422}
    if route.path == "/v1/check/batch":
        found |= {415}
    if "library" in route.tags:
        found |= {409}
    return sorted(found)


def _error_schema(status: int) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}}
    return {"description": ERROR_DESCRIPTIONS[status], "content": content}


def _without_parts(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "$defs"}
