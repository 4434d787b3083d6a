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

from suffice.errors import EngineError
from suffice.types import Condition, DocId, Document, Filter

__all__ = ["DENSE", "KEYWORDS", "NUMBERS", "WORDS", "conditions", "document_of", "payload_of", "point_id"]

DENSE, WORDS = "dense", "words"  # the vectors of a point
KEYWORDS = ("source", "category", "entities", "published_at")
NUMBERS = ("day", "place")  # a date as a number, for ranges; the place in the order of insertion

_SPACE = uuid.UUID("5f0f8e0c-6a4b-4d8e-9d7e-4c1f5b1f2a10")  # ours, drawn once
_FOREIGN = "keep other things in another collection; build this one again with: suffice build FILE --store ADDRESS"
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
    """The document of a point; EngineError where somebody else has written into the collection."""
    try:
        day, named = payload.get("published_at"), payload.get("named") or payload.get("entities") or ()
        doc_id, text, title = payload["id"], payload.get("text", ""), payload.get("title", "")
        source, category, parent = about = [payload.get(name) for name in ("source", "category", "parent")]
        extra = json.loads(payload["extra"]) if "extra" in payload else {}
        if not all(isinstance(one, str) for one in (doc_id, text, title, *named)) or not all(
            isinstance(one, str | None) for one in about
        ):
            raise TypeError("a field holds no text")
        if not isinstance(extra, dict) or isinstance(named, str):
            raise TypeError("a field holds something of another kind")
        published_at = date.fromisoformat(day) if day else None
        return Document(doc_id, text, title, source, category, published_at, tuple(named), parent, extra)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise EngineError(f"a point of the collection is no document of suffice: {error!r:.200}", hint=_FOREIGN) from error


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
