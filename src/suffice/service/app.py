"""The service as one ASGI application: routes, error handling, OpenAPI and middleware."""

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
from suffice.service.routes import label_api, public_api, read_api, write_api
from suffice.service.schemas import ErrorResponse
from suffice.service.settings import SETTINGS_VARIABLE, Settings
from suffice.service.state import Service
from suffice.service.static import page_routes

ERROR_DESCRIPTIONS = {
    400: "The body is not valid JSON.",
    401: "The key is missing or unknown.",
    403: "The key does not allow this.",
    408: "The body arrived too slowly.",
    409: "The service has no library, no folder for new gates, or stores no labels.",
    413: "The body is too large.",
    415: "The body has the wrong media type.",
    421: "The request was sent to another host.",
    422: "A value does not fit the schema.",
    429: "The worker is at capacity; try again after the seconds in Retry-After.",
    503: "The worker is shutting down.",
    504: "No response started in time.",
}


def create_app(settings: Settings) -> RequestMiddleware:
    """One worker's service. It loads gates and library at startup and closes them at the end."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.open()
        yield
        service.close()

    app = FastAPI(
        title="suffice",
        version=version("suffice"),
        summary="Is the evidence retrieved for a multi-hop question complete?",
        lifespan=lifespan,
        docs_url=None,  # these pages would load scripts from other hosts
        redoc_url=None,
        openapi_url=None,
    )
    app.state.service = service
    for router in (public_api, read_api, write_api, label_api):
        app.router.routes.extend(router.routes)  # flat: a nested router costs each request a lookup
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
    """The application that a worker process runs."""
    # By default the checking thread could hold the interpreter for 5 ms before a request is read.
    sys.setswitchinterval(0.001)
    return create_app(Settings.from_json(os.environ[SETTINGS_VARIABLE]))


async def _handle_error(request: Request, error: Exception) -> Response:
    return respond_with_error(request, to_api_error(error))


async def _handle_validation_error(request: Request, error: Exception) -> Response:
    errors = error.errors() if isinstance(error, RequestValidationError) else []
    body = getattr(request.scope.get("route"), "body_field", None)
    schema = None if body is None else body.field_info.annotation
    return respond_with_error(request, validation_error(errors, schema))


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """OpenAPI with what the middleware adds to every route: keys and error responses."""
    routes = [route for route in app.routes if isinstance(route, PublicRoute)]
    document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=routes)
    components = document.setdefault("components", {})
    components["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "suffice serve key new"}
    }
    error_schema = ErrorResponse.model_json_schema(ref_template="#/components/schemas/{model}")
    components["schemas"] |= error_schema.pop("$defs", {})
    components["schemas"]["ErrorResponse"] = error_schema
    for name in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(name, None)
    for route in routes:
        for method in route.methods or ():
            operation = document["paths"][route.path][method.lower()]
            operation["responses"].pop("422", None)
            operation["responses"] |= {
                str(status): _error_schema(status) for status in error_statuses(route)
            }
            if route.scope is not None:
                operation["security"] = [{"key": []}]
                if route.scope != WRITE:
                    operation["security"].append({})  # a service without keys
    return document


def error_statuses(route: APIRoute) -> list[int]:
    """The error statuses that a client of this route may get."""
    statuses: set[int] = {421}
    if getattr(route, "scope", None) is not None:
        statuses |= {401, 403}
    if route.path not in ("/healthz", "/readyz", "/metrics"):
        statuses |= {429}
        if route.path not in ("/v1/gates", "/v1/report", "/v1/check/batch"):
            statuses |= {504}
    if route.path == "/readyz":
        statuses |= {503}
    if route.body_field is not None:
        statuses |= {400, 408, 413, 415, 422}
    if route.dependant.query_params:
        statuses |= {422}
    if route.path == "/v1/check/batch":
        statuses |= {415}
    if {"library", "labels"} & set(route.tags) or route.path == "/v1/adapt":
        statuses |= {409}
    return sorted(statuses)


def _error_schema(status: int) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}}
    return {"description": ERROR_DESCRIPTIONS[status], "content": content}
