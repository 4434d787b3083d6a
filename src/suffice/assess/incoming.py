"""Hits by shape: whatever a retriever hands over becomes `Evidence`, without importing anybody's framework.

    text                                     "Ada was taught by …"
    dict                                     doc_id | id | _id, text | content | page_content, title, score, source, …
    (id, text, score), (text, score)         also (id, text), and (any other shape, score), as LangChain's searches return
    suffice's Document, or Hit + documents   the texts of Hits are looked up in `documents`
    .page_content and .metadata              a LangChain Document
    .node.get_content() and .score           a LlamaIndex NodeWithScore, or its bare node
    .content and .meta                       a Haystack Document

Ids, texts and scores of a wrong type are errors that name the hit. Metadata of an odd type is left out: a gate in production
must not stop at somebody else's date format. Hits that repeat an id or a text are folded into the first of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import islice
from typing import Any

import numpy as np

from suffice.errors import InputError
from suffice.types import DocId, Document, Evidence, Hit, Question

__all__ = ["UNNAMED", "Documents", "Taken", "take"]

UNNAMED = "\N{NUMERO SIGN} "  # how the id begins that a hit without one is given: no sensible id does
MAX_HITS = 10_000  # looked at, duplicates included: an endless generator must end
# What others call a field, the likeliest name first; one look at a dict's keys finds them all.
_CALLED = {
    "id": ("doc_id", "id", "_id", "id_", "node_id", "document_id"),
    "text": ("text", "content", "page_content", "contents", "body"),
    "title": ("title", "name", "file_name"),
    "score": ("score", "_score", "relevance_score"),
    "source": ("source",),
    "category": ("category",),
    "published_at": ("published_at", "date"),
    "entities": ("entities",),
}
_FIELD = {name: field for field, names in _CALLED.items() for name in names}
_PLACE = {name: place for place, name in enumerate(_FIELD)}
_IN_ORDER = ("doc_id", "title", "text", "score")
_PLAIN = frozenset(_IN_ORDER)
_SHAPES = "a text, a dict with 'text', an (id, text, score) tuple, or a LangChain, LlamaIndex or Haystack document"

Documents = Mapping[DocId, Document]


@dataclass(frozen=True, slots=True)
class Taken:
    """The evidence, and under each kept hit's id the ids that were folded into it."""

    evidence: Evidence
    folded: Mapping[DocId, tuple[DocId, ...]] = field(default_factory=dict)

    @property
    def ids(self) -> set[DocId]:
        """Of all that are held, those folded into others among them."""
        return {hit.doc_id for hit in self.evidence.hits} | {one for names in self.folded.values() for one in names}

    def holds(self, doc_id: DocId, needed: frozenset[DocId]) -> bool:
        """Is the hit, or one that it stands for, among the needed?"""
        return doc_id in needed or any(one in needed for one in self.folded.get(doc_id, ()))


def take(question: str, hits: Iterable[Any], *, documents: Documents | None = None, k: int | None = None) -> Taken:
    """The first `k` distinct hits, in the order given. No hits are ordinary evidence; what comes after `k` is not looked at."""
    if not isinstance(question, str):
        raise InputError(f"the question is {_kind(question)}, expected a text")
    if isinstance(hits, Evidence):
        documents, hits = {**hits.documents, **(documents or {})}, hits.hits
    if isinstance(hits, str | bytes | Mapping) or not isinstance(hits, Iterable):
        raise InputError(f"hits is {_kind(hits)}, expected a list of hits", hint="wrap a single hit in a list: [hit]")
    known = documents or {}
    kept: list[Hit] = []
    found: dict[DocId, Document] = {}
    by_text: dict[str, DocId] = {}
    folded: dict[DocId, tuple[DocId, ...]] = {}
    for place, hit in enumerate(islice(hits, MAX_HITS), start=1):
        if k is not None and len(kept) >= k:
            break
        document, one = _read(hit, place, known)
        twin = document.doc_id if document.doc_id in found else by_text.get(document.text)
        if twin is not None:
            folded[twin] = (*folded.get(twin, ()), document.doc_id)
            continue
        kept.append(one)
        found[document.doc_id] = document
        if document.text:
            by_text[document.text] = document.doc_id
    return Taken(Evidence(Question("", question), tuple(kept), found), folded)


def _read(hit: Any, place: int, documents: Documents) -> tuple[Document, Hit]:
    if type(hit) is dict and hit.keys() <= _PLAIN:  # the usual case, which needs none of the questions below
        doc_id, title, text, score = map(hit.get, _IN_ORDER)
        if type(doc_id) is type(title) is type(text) is str and doc_id:
            return Document(doc_id, text, title), Hit(doc_id, _score(score, place))
    if isinstance(hit, Hit):
        document = _whole(documents.get(hit.doc_id) or Document(_id(hit.doc_id, place), ""), place)
        return document, replace(hit, score=_score(hit.score, place))
    document, score = _document(hit, place, documents)
    return document, Hit(document.doc_id, score)


def _document(hit: Any, place: int, documents: Documents) -> tuple[Document, float | None]:
    if isinstance(hit, str):
        return Document(_id(None, place), hit), None
    if isinstance(hit, Document):
        return _whole(hit, place), None
    if isinstance(hit, dict | Mapping):  # dict first: asking an abstract class is slow
        return _from_fields(hit, place, documents)
    if isinstance(hit, tuple | list):
        return _from_tuple(hit, place, documents)
    for attribute, reader in _OBJECTS.items():
        if hasattr(hit, attribute):
            return reader(hit, place)
    raise _unknown(hit, place)


def _from_tuple(hit: tuple[Any, ...] | list[Any], place: int, documents: Documents) -> tuple[Document, float | None]:
    match list(hit):
        case [name, str() as text, score] if isinstance(name, str | int) and not isinstance(name, bool):
            return Document(_id(name, place), text), _score(score, place)
        case [str() as name, str() as text]:
            return Document(_id(name, place), text), None
        case [str() as text, score]:
            return Document(_id(None, place), text), _score(score, place)
        case [Hit() as one, score]:
            return _read(one, place, documents)[0], _score(score, place)
        case [inner, score] if not isinstance(inner, tuple | list | int | float | None):
            return _document(inner, place, documents)[0], _score(score, place)
    expected = "(id, text, score), (text, score), (id, text) or (document, score)"
    parts = ", ".join(type(part).__name__ for part in hit[:5])
    raise InputError(f"hit {place} is a {type(hit).__name__} of ({parts}), expected {expected}")


def _from_fields(hit: Mapping[Any, Any], place: int, documents: Documents) -> tuple[Document, float | None]:
    nested = hit.get("metadata") or hit.get("meta")
    told = {**_about(nested), **_fields(hit)} if nested else _fields(hit)
    score, text, doc_id = _score(told.get("score"), place), told.get("text"), told.get("id")
    if isinstance(text, list):  # HotpotQA and its kin keep a passage as a list of sentences
        text = "".join(text) if all(isinstance(part, str) for part in text) else text
    if text is None and isinstance(doc_id, str) and doc_id in documents:
        return _whole(documents[doc_id], place), score
    if text is None and doc_id is None and "title" not in told:
        keys = ", ".join(sorted(map(str, hit))[:8]) or "none"
        raise InputError(
            f"hit {place} is a dict without 'text', 'title' or 'doc_id' (its keys: {keys})", hint=f"give {_SHAPES}"
        )
    return _made(doc_id, text, place, told), score


def _from_langchain(hit: Any, place: int) -> tuple[Document, float | None]:
    about = _about(getattr(hit, "metadata", None))
    doc_id = getattr(hit, "id", None) or about.get("id")
    return _made(doc_id, hit.page_content, place, about), about.get("score")


def _from_node_with_score(hit: Any, place: int) -> tuple[Document, float | None]:
    return _from_node(hit.node, place)[0], _score(getattr(hit, "score", None), place)


def _from_node(node: Any, place: int) -> tuple[Document, float | None]:
    if not callable(getattr(node, "get_content", None)):
        raise _unknown(node, place)
    doc_id = getattr(node, "node_id", None) or getattr(node, "id_", None)
    return _made(doc_id, node.get_content(), place, _about(getattr(node, "metadata", None))), None


def _from_haystack(hit: Any, place: int) -> tuple[Document, float | None]:
    about = _about(getattr(hit, "meta", None))
    text = hit.content if hit.content is not None else ""  # a Haystack document may hold a picture instead
    return _made(getattr(hit, "id", None), text, place, about), _score(getattr(hit, "score", None), place)


_OBJECTS: dict[str, Callable[[Any, int], tuple[Document, float | None]]] = {
    "page_content": _from_langchain,
    "node": _from_node_with_score,
    "get_content": _from_node,
    "content": _from_haystack,
}


def _made(doc_id: Any, text: Any, place: int, told: Mapping[str, Any]) -> Document:
    if text is None:
        text = ""
    if not isinstance(text, str):
        raise InputError(f"hit {place}: its text is {_kind(text)}, expected a text")
    return Document(
        _id(doc_id, place),
        text,
        _text(told.get("title")) or "",
        _text(told.get("source")),
        _text(told.get("category")),
        _date(told.get("published_at")),
        _texts(told.get("entities")),
    )


def _fields(level: Mapping[Any, Any]) -> dict[str, Any]:
    """The fields of a dict by our names; of several names for one field the likeliest counts."""
    told: dict[str, Any] = {}
    for name in sorted(level.keys() & _FIELD.keys(), key=_PLACE.__getitem__):
        if level[name] is not None:
            told.setdefault(_FIELD[name], level[name])
    return told


def _about(metadata: Any) -> dict[str, Any]:
    """The fields of somebody's metadata: no text is looked for there, and an odd id or score is left out."""
    told = _fields(_mapping(metadata))
    told.pop("text", None)
    for name, reader in (("id", _id), ("score", _score)):
        try:
            told[name] = reader(told[name], 0) if name in told else None
        except InputError:
            told[name] = None
    return told


def _whole(document: Document, place: int) -> Document:
    if not (isinstance(document.text, str) and isinstance(document.title, str) and isinstance(document.doc_id, str)):
        raise InputError(f"hit {place}: a field of its Document is no text", hint="doc_id, text and title must be texts")
    return document


def _id(value: Any, place: int) -> DocId:
    """The id as a text. A hit without one is called by its place."""
    if value is None or value == "":
        return f"{UNNAMED}{place}"
    if isinstance(value, str):
        return value
    if isinstance(value, bool | float | bytes | list | dict | tuple | set):
        raise InputError(f"hit {place}: its id is {_kind(value)}, expected a text or a whole number")
    return str(value)


def _score(value: Any, place: int) -> float | None:
    """A finite number; None, NaN and infinities are a score that is not known."""
    if value is None:
        return None
    if type(value) is float:  # the usual case
        return value if math.isfinite(value) else None
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"hit {place}: its score is {_kind(value)}, expected a number or None")
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list | tuple | set | frozenset) else ()


def _date(value: Any) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).date()
        except ValueError:
            return None
    return value if isinstance(value, date) else None


def _kind(value: Any) -> str:
    shown = repr(value) if isinstance(value, int | float | bool) or value is None else f"of type {type(value).__name__}"
    return shown if len(shown) < 60 else f"of type {type(value).__name__}"


def _unknown(hit: Any, place: int) -> InputError:
    hint = "decode it first" if isinstance(hit, bytes) else ""
    return InputError(f"hit {place} is {_kind(hit)}, expected {_SHAPES}", hint=hint)
