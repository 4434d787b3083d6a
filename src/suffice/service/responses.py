"""One envelope for results and errors, and the HTTP status of each error.

{"ok": true,  "data": {...}, "error": null, "request_id": "…"}
{"ok": false, "data": null,  "error": {"code": "bad_input", "message": "…", "hint": "…"}, …}
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import pairwise
from typing import Any, get_args

from fastapi import HTTPException, Request
from fastapi.responses import Response
from pydantic import BaseModel
from pydantic_core import to_json

from suffice import errors
from suffice.datasets.labels import HITS_NAMES, QUESTION_NAMES

JSON = "application/json"
STATUS: dict[type[errors.SufficeError], int] = {
    errors.InputError: 422,
    errors.NotReadyError: 409,
    errors.MissingExtraError: 409,
    errors.EngineError: 500,
    errors.ModelError: 502,
}
SCHEMA_HINT = "see the schemas in /openapi.json"
MAX_ERRORS_SHOWN = 5  # invalid values of one request
MAX_NAME = 100  # characters of a field's name
UNKNOWN_FIELD = "extra_forbidden"  # pydantic's name for it
OTHER_NAMES = {"question": QUESTION_NAMES, "hits": HITS_NAMES}  # what other tools call it
BLANK = {"pattern": r"\S"}  # what pydantic says about a text of spaces only


@dataclass(slots=True)
class RequestContext:
    """One request: its id, start time, key, and extra fields for its log line."""

    request_id: str
    started: float = field(default_factory=time.perf_counter)
    key: str | None = None
    log_fields: dict[str, Any] = field(default_factory=dict)


class ApiError(HTTPException):
    """A failed request: the status, a code for programs, a message and a hint for people."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.code, self.message, self.hint = code, message, hint

    def as_json(self) -> dict[str, str]:
        return {"code": self.code, "message": self.message, "hint": self.hint}


def get_context(request: Request) -> RequestContext:
    context: RequestContext = request.scope["suffice.context"]
    return context


def respond(request: Request, data: Any) -> Response:
    """The result in its envelope. NaN and infinity become null."""
    return Response(envelope(get_context(request).request_id, data), media_type=JSON)


def respond_with_error(request: Request, error: ApiError) -> Response:
    body = envelope(get_context(request).request_id, error=error)
    return Response(body, error.status_code, dict(error.headers or {}), JSON)


def envelope(request_id: str, data: Any = None, *, error: ApiError | None = None) -> bytes:
    record = {
        "ok": error is None,
        "data": data,
        "error": error and error.as_json(),
        "request_id": request_id,
    }
    return to_json(record, inf_nan_mode="null")


def to_api_error(error: Exception) -> ApiError:
    """The client's view of an error. Details of internal errors go only to the log."""
    if isinstance(error, ApiError):
        return error
    if hasattr(error, "status_code"):
        known = HTTPStatus(error.status_code)
        code = known.phrase.casefold().replace(" ", "_").replace("-", "_")
        message = known.description or known.phrase
        hint = "see the paths in /openapi.json" if known in (404, 405) else ""
        headers = getattr(error, "headers", None)
        return ApiError(known, code, message, hint=hint, headers=headers)
    if not isinstance(error, errors.SufficeError):
        hint = "see the service log for this request_id"
        return ApiError(500, "internal", "internal error in the service", hint=hint)
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)
    if status == 500 and getattr(error, "retryable", False):
        headers = {"retry-after": "1"}
        return ApiError(503, error.code, error.message, hint=error.hint, headers=headers)
    hint = error.hint or (SCHEMA_HINT if status == 422 else "")
    return ApiError(status, error.code, error.message, hint=hint)


def validation_error(invalid: Sequence[Mapping[str, Any]], schema: Any = None) -> ApiError:
    """Invalid values, each with its field; the values themselves are not repeated.

    A location begins with where the value was sent: "body" or "query".
    `schema` is the model of the body, used to suggest the nearest known field.
    """
    # Of a union, only the member that came closest: a hit may be a text, but this one is an object.
    places = [_field_parts(error["loc"]) for error in invalid]
    outer = {place[:depth] for place in places for depth in range(len(place))}
    invalid = [error for error, place in zip(invalid, places) if place not in outer]
    # Unknown fields first: they often explain why another one is missing.
    ordered = sorted(invalid, key=lambda error: error.get("type") != UNKNOWN_FIELD)
    shown = [_describe(error, schema) for error in ordered[:MAX_ERRORS_SHOWN]]
    more = len(invalid) - MAX_ERRORS_SHOWN
    message = "; ".join(shown) + (f" and {more} more" if more > 0 else "")
    return ApiError(422, "bad_input", message, hint=SCHEMA_HINT)


def _describe(error: Mapping[str, Any], schema: Any) -> str:
    location = [part[:MAX_NAME] if isinstance(part, str) else part for part in error["loc"]]
    path = _field_path(location)
    if error.get("ctx") == BLANK:
        return f"{path}: String should not be blank"
    if error.get("type") != UNKNOWN_FIELD or not location:
        return f"{path}: {error['msg']}"
    known, name = _fields_at(schema, location[:-1]), str(location[-1])
    same = next((one for one in known if name in OTHER_NAMES.get(one, ())), name)
    nearest = f" ({errors.did_you_mean(same, known)})" if known else ""
    return f"{path}: unknown field{nearest}"


def _fields_at(schema: Any, location: Sequence[Any]) -> set[str]:
    """The fields of the model at this location of the body."""
    models = _models_in(schema)
    for part in location:
        fields = [one.model_fields[part] for one in models if part in one.model_fields]
        if fields:  # otherwise the location is a list item or a union member
            models = [model for field in fields for model in _models_in(field.annotation)]
    return {name for model in models for name in model.model_fields}


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models_in(inner)]


def _field_parts(location: Sequence[Any]) -> tuple[Any, ...]:
    """The location without where it was sent (first) and the names of union members."""
    members = ("str", "HitInput")  # of a hit, whose number stands before
    return tuple(
        part
        for before, part in pairwise(location)
        if isinstance(part, int)
        or not ("[" in part or (isinstance(before, int) and part in members))
    )


def _field_path(location: Sequence[Any]) -> str:
    """A path such as hits[2].text."""
    path = ""
    for part in _field_parts(location):
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path or "the body"
