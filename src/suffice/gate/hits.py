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

__all__ = ["UNNAMED_ID_PREFIX", "DocumentMap", "NormalizedHits", "normalize_hits"]

UNNAMED_ID_PREFIX = (
    "\N{NUMERO SIGN} "  # how the id begins that a hit without one is given: no sensible id does
)
MAX_HITS = 10_000  # looked at, duplicates included: an endless generator must end
# What others call a field, the likeliest name first; one look at a dict's keys finds them all.
_FIELD_NAMES = {
    "id": ("doc_id", "id", "_id", "id_", "node_id", "document_id"),
    "text": ("text", "content", "page_content", "contents", "body"),
    "title": ("title", "name", "file_name"),
    "score": ("score", "_score", "relevance_score"),
    "source": ("source",),
    "category": ("category",),
    "published_at": ("published_at", "date"),
    "entities": ("entities",),
}
_FIELD = {name: field for field, names in _FIELD_NAMES.items() for name in names}
_NAME_ORDER = {name: place for place, name in enumerate(_FIELD)}
_PLAIN_FIELDS = ("doc_id", "title", "text", "score")
_PLAIN = frozenset(_PLAIN_FIELDS)
_SHAPES = "a text, a dict with 'text', an (id, text, score) tuple, or a LangChain, LlamaIndex or Haystack document"

DocumentMap = Mapping[DocId, Document]


@dataclass(frozen=True, slots=True)
class NormalizedHits:
    """The evidence, and under each kept hit's id the ids that were folded into it."""

    evidence: Evidence
    folded: Mapping[DocId, tuple[DocId, ...]] = field(default_factory=dict)

    @property
    def ids(self) -> set[DocId]:
        """Of all that are held, those folded into others among them."""
        return {hit.doc_id for hit in self.evidence.hits} | {
            one for names in self.folded.values() for one in names
        }

    def holds(self, doc_id: DocId, needed: frozenset[DocId]) -> bool:
        """Is the hit, or one that it stands for, among the needed?"""
        return doc_id in needed or any(one in needed for one in self.folded.get(doc_id, ()))


def normalize_hits(
    question: str,
    hits: Iterable[Any],
    *,
    documents: DocumentMap | None = None,
    k: int | None = None,
) -> NormalizedHits:
    """The first `k` distinct hits, in the order given. No hits are ordinary evidence; what comes after `k` is not looked at."""
    if not isinstance(question, str):
        raise InputError(f"the question is {_describe(question)}, expected a text")
    if isinstance(hits, Evidence):
        documents, hits = {**hits.documents, **(documents or {})}, hits.hits
    if isinstance(hits, str | bytes | Mapping) or not isinstance(hits, Iterable):
        raise InputError(
            f"hits is {_describe(hits)}, expected a list of hits",
            hint="wrap a single hit in a list: [hit]",
        )
    known = documents or {}
    kept: list[Hit] = []
    found: dict[DocId, Document] = {}
    by_text: dict[str, DocId] = {}
    folded: dict[DocId, tuple[DocId, ...]] = {}
    for place, hit in enumerate(islice(hits, MAX_HITS), start=1):
        if k is not None and len(kept) >= k:
            break
        document, one = _parse_hit(hit, place, known)
        twin = document.doc_id if document.doc_id in found else by_text.get(document.text)
        if twin is not None:
            folded[twin] = (*folded.get(twin, ()), document.doc_id)
            continue
        kept.append(one)
        found[document.doc_id] = document
        if document.text:
            by_text[document.text] = document.doc_id
    return NormalizedHits(Evidence(Question("", question), tuple(kept), found), folded)


def _parse_hit(hit: Any, place: int, documents: DocumentMap) -> tuple[Document, Hit]:
    if (
        type(hit) is dict and hit.keys() <= _PLAIN
    ):  # the usual case, which needs none of the questions below
        doc_id, title, text, score = map(hit.get, _PLAIN_FIELDS)
        if type(doc_id) is type(title) is type(text) is str and doc_id:
            return Document(doc_id, text, title), Hit(doc_id, _parse_score(score, place))
    if isinstance(hit, Hit):
        document = _check_document(
            documents.get(hit.doc_id) or Document(_parse_id(hit.doc_id, place), ""), place
        )
        return document, replace(hit, score=_parse_score(hit.score, place))
    document, score = _parse_document(hit, place, documents)
    return document, Hit(document.doc_id, score)


def _parse_document(hit: Any, place: int, documents: DocumentMap) -> tuple[Document, float | None]:
    if isinstance(hit, str):
        return Document(_parse_id(None, place), hit), None
    if isinstance(hit, Document):
        return _check_document(hit, place), None
    if isinstance(hit, dict | Mapping):  # dict first: asking an abstract class is slow
        return _from_fields(hit, place, documents)
    if isinstance(hit, tuple | list):
        return _from_tuple(hit, place, documents)
    for attribute, reader in _OBJECTS.items():
        if hasattr(hit, attribute):
            return reader(hit, place)
    raise _unknown_shape(hit, place)


def _from_tuple(
    hit: tuple[Any, ...] | list[Any], place: int, documents: DocumentMap
) -> tuple[Document, float | None]:
    match list(hit):
        case [name, str() as text, score] if isinstance(name, str | int) and not isinstance(
            name, bool
        ):
            return Document(_parse_id(name, place), text), _parse_score(score, place)
        case [str() as name, str() as text]:
            return Document(_parse_id(name, place), text), None
        case [str() as text, score]:
            return Document(_parse_id(None, place), text), _parse_score(score, place)
        case [Hit() as one, score]:
            return _parse_hit(one, place, documents)[0], _parse_score(score, place)
        case [inner, score] if not isinstance(inner, tuple | list | int | float | None):
            return _parse_document(inner, place, documents)[0], _parse_score(score, place)
    expected = "(id, text, score), (text, score), (id, text) or (document, score)"
    parts = ", ".join(type(part).__name__ for part in hit[:5])
    raise InputError(f"hit {place} is a {type(hit).__name__} of ({parts}), expected {expected}")


def _from_fields(
    hit: Mapping[Any, Any], place: int, documents: DocumentMap
) -> tuple[Document, float | None]:
    nested = hit.get("metadata") or hit.get("meta")
    told = {**_metadata_fields(nested), **_fields(hit)} if nested else _fields(hit)
    score, text, doc_id = _parse_score(told.get("score"), place), told.get("text"), told.get("id")
    if isinstance(text, list):  # HotpotQA and its kin keep a passage as a list of sentences
        text = "".join(text) if all(isinstance(part, str) for part in text) else text
    if text is None and isinstance(doc_id, str) and doc_id in documents:
        return _check_document(documents[doc_id], place), score
    if text is None and doc_id is None and "title" not in told:
        keys = ", ".join(sorted(map(str, hit))[:8]) or "none"
        raise InputError(
            f"hit {place} is a dict without 'text', 'title' or 'doc_id' (its keys: {keys})",
            hint=f"give {_SHAPES}",
        )
    return _make_document(doc_id, text, place, told), score


def _from_langchain(hit: Any, place: int) -> tuple[Document, float | None]:
    about = _metadata_fields(getattr(hit, "metadata", None))
    doc_id = getattr(hit, "id", None) or about.get("id")
    return _make_document(doc_id, hit.page_content, place, about), about.get("score")


def _from_node_with_score(hit: Any, place: int) -> tuple[Document, float | None]:
    return _from_node(hit.node, place)[0], _parse_score(getattr(hit, "score", None), place)


def _from_node(node: Any, place: int) -> tuple[Document, float | None]:
    if not callable(getattr(node, "get_content", None)):
        raise _unknown_shape(node, place)
    doc_id = getattr(node, "node_id", None) or getattr(node, "id_", None)
    return _make_document(
        doc_id, node.get_content(), place, _metadata_fields(getattr(node, "metadata", None))
    ), None


def _from_haystack(hit: Any, place: int) -> tuple[Document, float | None]:
    about = _metadata_fields(getattr(hit, "meta", None))
    text = (
        hit.content if hit.content is not None else ""
    )  # a Haystack document may hold a picture instead
    return _make_document(getattr(hit, "id", None), text, place, about), _parse_score(
        getattr(hit, "score", None), place
    )


_OBJECTS: dict[str, Callable[[Any, int], tuple[Document, float | None]]] = {
    "page_content": _from_langchain,
    "node": _from_node_with_score,
    "get_content": _from_node,
    "content": _from_haystack,
}


def _make_document(doc_id: Any, text: Any, place: int, told: Mapping[str, Any]) -> Document:
    if text is None:
        text = ""
    if not isinstance(text, str):
        raise InputError(f"hit {place}: its text is {_describe(text)}, expected a text")
    return Document(
        _parse_id(doc_id, place),
        text,
        _text_or_none(told.get("title")) or "",
        _text_or_none(told.get("source")),
        _text_or_none(told.get("category")),
        _date_or_none(told.get("published_at")),
        _text_tuple(told.get("entities")),
    )


def _fields(level: Mapping[Any, Any]) -> dict[str, Any]:
    """The fields of a dict by our names; of several names for one field the likeliest counts."""
    told: dict[str, Any] = {}
    for name in sorted(level.keys() & _FIELD.keys(), key=_NAME_ORDER.__getitem__):
        if level[name] is not None:
            told.setdefault(_FIELD[name], level[name])
    return told


def _metadata_fields(metadata: Any) -> dict[str, Any]:
    """The fields of somebody's metadata: no text is looked for there, and an odd id or score is left out."""
    told = _fields(_mapping_or_empty(metadata))
    told.pop("text", None)
    for name, reader in (("id", _parse_id), ("score", _parse_score)):
        try:
            told[name] = reader(told[name], 0) if name in told else None
        except InputError:
            told[name] = None
    return told


def _check_document(document: Document, place: int) -> Document:
    if not (
        isinstance(document.text, str)
        and isinstance(document.title, str)
        and isinstance(document.doc_id, str)
    ):
        raise InputError(
            f"hit {place}: a field of its Document is no text",
            hint="doc_id, text and title must be texts",
        )
    return document


def _parse_id(value: Any, place: int) -> DocId:
    """The id as a text. A hit without one is called by its place."""
    if value is None or value == "":
        return f"{UNNAMED_ID_PREFIX}{place}"
    if isinstance(value, str):
        return value
    if isinstance(value, bool | float | bytes | list | dict | tuple | set):
        raise InputError(
            f"hit {place}: its id is {_describe(value)}, expected a text or a whole number"
        )
    return str(value)


def _parse_score(value: Any, place: int) -> float | None:
    """A finite number; None, NaN and infinities are a score that is not known."""
    if value is None:
        return None
    if type(value) is float:  # the usual case
        return value if math.isfinite(value) else None
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"hit {place}: its score is {_describe(value)}, expected a number or None")
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _mapping_or_empty(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _text_tuple(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return (
        tuple(one for one in value if isinstance(one, str))
        if isinstance(value, list | tuple | set | frozenset)
        else ()
    )


def _date_or_none(value: Any) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).date()
        except ValueError:
            return None
    return value if isinstance(value, date) else None


def _describe(value: Any) -> str:
    shown = (
        repr(value)
        if isinstance(value, int | float | bool) or value is None
        else f"of type {type(value).__name__}"
    )
    return shown if len(shown) < 60 else f"of type {type(value).__name__}"


def _unknown_shape(hit: Any, place: int) -> InputError:
    hint = "decode it first" if isinstance(hit, bytes) else ""
    return InputError(f"hit {place} is {_describe(hit)}, expected {_SHAPES}", hint=hint)
