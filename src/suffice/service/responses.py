"""One envelope for answers and errors, and which status an error of ours has.

{"ok": true,  "data": {...}, "error": null, "request_id": "…"}
{"ok": false, "data": null,  "error": {"code": "bad_input", "message": "…", "hint": "…"}, "request_id": "…"}
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi import HTTPException, Request
from fastapi.responses import Response
from pydantic_core import to_json

from suffice.errors import (
    EngineError,
    InputError,
    MissingExtraError,
    ModelError,
    NotReadyError,
    SufficeError,
)

__all__ = [
    "JSON",
    "ApiError",
    "RequestContext",
    "envelope",
    "error_record",
    "get_context",
    "respond",
    "respond_with_error",
    "to_api_error",
    "validation_error",
]

JSON = "application/json"
STATUS: dict[type[SufficeError], int] = {
    InputError: 422,
    NotReadyError: 409,
    MissingExtraError: 409,
    EngineError: 500,
    ModelError: 502,
}
MAX_ERRORS_SHOWN = 5  # wrong values of one request that are told of


@dataclass(slots=True)
class RequestContext:
    """One request, from the door and back: its number, when it came, who, and what the log is told of it."""

    request_id: str
    began: float = field(default_factory=time.perf_counter)
    key: str | None = None
    notes: dict[str, Any] = field(default_factory=dict)


class ApiError(HTTPException):
    """A request that is not served: the status, a word for programs, a sentence and a hint for people."""

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


def get_context(request: Request) -> RequestContext:
    visit: RequestContext = request.scope["suffice.visit"]
    return visit


def respond(request: Request, data: Any) -> Response:
    """An answer in its envelope. Values that are no numbers are null."""
    return Response(envelope(get_context(request).request_id, data=data), media_type=JSON)


def respond_with_error(request: Request, refused: ApiError) -> Response:
    body = envelope(get_context(request).request_id, error=error_record(refused))
    return Response(body, refused.status_code, dict(refused.headers or {}), JSON)


def envelope(request_id: str, *, data: Any = None, error: Mapping[str, str] | None = None) -> bytes:
    return to_json(
        {"ok": error is None, "data": data, "error": error, "request_id": request_id},
        inf_nan_mode="null",
    )


def error_record(refused: ApiError) -> dict[str, str]:
    return {"code": refused.code, "message": refused.message, "hint": refused.hint}


def to_api_error(error: Exception) -> ApiError:
    """What a visitor is told of an error. What is wrong in our own house is not told in detail: the log has it."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException) or hasattr(error, "status_code"):
        known = HTTPStatus(getattr(error, "status_code", 500))
        code = known.phrase.casefold().replace(" ", "_").replace("-", "_")
        return ApiError(
            known, code, known.description or known.phrase, headers=getattr(error, "headers", None)
        )
    if not isinstance(error, SufficeError):
        return ApiError(
            500,
            "internal",
            "something is wrong in the service",
            hint="its log tells more, under this request_id",
        )
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)
    if status == 500 and getattr(error, "retryable", False):
        return ApiError(503, error.code, str(error), hint=error.hint, headers={"retry-after": "1"})
    return ApiError(status, error.code, str(error), hint=error.hint)


def validation_error(errors: Sequence[Mapping[str, Any]]) -> ApiError:
    """Values that do not fit the form, each with its place; what was sent is not repeated."""
    told = [f"{_field_path(one['loc'])}: {one['msg']}" for one in errors[:MAX_ERRORS_SHOWN]]
    more = f" and {len(errors) - MAX_ERRORS_SHOWN} more" if len(errors) > MAX_ERRORS_SHOWN else ""
    return ApiError(
        422, "bad_input", "; ".join(told) + more, hint="the forms stand in /openapi.json"
    )


def _field_path(where: Sequence[Any]) -> str:
    """Like hits[2].text; the names of the alternatives of a form are no places."""
    said = ""
    for part in where:
        if isinstance(part, int):
            said += f"[{part}]"
        elif part not in ("body", "query", "str", "HitIn") and "[" not in part:
            said += f".{part}" if said else part
    return said or "the body"
