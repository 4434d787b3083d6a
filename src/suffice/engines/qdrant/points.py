"""Documents as points of a collection and back, and filters in the server's words.

A point's id is made of the document's, so that writing one twice writes it once. What can be filtered by stands in fields of
its own; `extra` is kept as JSON text, since it may hold what the server's numbers cannot.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import date
from typing import Any

from suffice.types import Condition, DocId, Document, Filter

__all__ = ["DENSE", "KEYWORDS", "NUMBERS", "WORDS", "conditions", "document_of", "payload_of", "point_id"]

DENSE, WORDS = "dense", "words"  # the vectors of a point
KEYWORDS = ("source", "category", "entities", "published_at")
NUMBERS = ("day", "place")  # a date as a number, for ranges; the place in the order of insertion

_SPACE = uuid.UUID("5f0f8e0c-6a4b-4d8e-9d7e-4c1f5b1f2a10")  # ours, drawn once
_NOTHING: dict[str, Any] = {"must": [{"has_id": []}]}


def point_id(doc_id: DocId) -> str:
    return str(uuid.uuid5(_SPACE, doc_id))


def payload_of(document: Document, place: int, length: int) -> dict[str, Any]:
    """`length` is in words; empty fields are left out, so that "has none" can be asked for."""
    day = document.published_at
    entities = list(dict.fromkeys(document.entities))
    payload = {
        "id": document.doc_id,
        "place": place,
        "length": length,
        "title": document.title,
        "text": document.text,
        "source": document.source,
        "category": document.category,
        "published_at": day.isoformat() if day else None,
        "day": day.toordinal() if day else None,
        "entities": entities,
        "named": list(document.entities) if len(entities) < len(document.entities) else None,  # with repetitions
        "parent": document.parent,
        "extra": json.dumps(dict(document.extra)) if document.extra else None,
    }
    return {name: value for name, value in payload.items() if value not in (None, "", [])}


def document_of(payload: Mapping[str, Any]) -> Document:
    day = payload.get("published_at")
    return Document(
        payload["id"],
        payload.get("text", ""),
        payload.get("title", ""),
        payload.get("source"),
        payload.get("category"),
        date.fromisoformat(day) if day else None,
        tuple(payload.get("named") or payload.get("entities") or ()),
        payload.get("parent"),
        json.loads(payload["extra"]) if "extra" in payload else {},
    )


def conditions(filter: Filter | None) -> dict[str, Any] | None:
    """A checked filter as the server reads it; None for one that lets everything through."""
    if not filter:
        return None
    return {"must": [_condition(one, lenient=filter.lenient) for one in filter.conditions]}


def _condition(condition: Condition, *, lenient: bool) -> dict[str, Any]:
    if condition.operator == "$nin":
        return {"must_not": [_any_of(condition)]}
    if condition.operator == "$in":
        passing = _any_of(condition)
    else:
        bound = "gte" if condition.operator == "$gte" else "lte"
        passing = {"key": "day", "range": {bound: date.fromisoformat(condition.values[0]).toordinal()}}
    return {"should": [passing, {"is_empty": {"key": condition.field}}]} if lenient else passing


def _any_of(condition: Condition) -> dict[str, Any]:
    # "Any of none" is refused by some versions of the server and everything to others; no point has no id.
    return {"key": condition.field, "match": {"any": list(condition.values)}} if condition.values else _NOTHING
