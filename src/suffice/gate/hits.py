"""Hits of any shape: what a retriever returns becomes `Evidence`, without importing its framework.

    text                                     "Ada was taught by …"
    dict                                     doc_id | id | _id, text | content, title, score, …
    (id, text, score), (text, score)         also (id, text), and (any other shape, score)
    suffice's Document, or Hit + documents   `documents` has the texts of Hits
    .page_content and .metadata              a LangChain Document
    .node.get_content() and .score           a LlamaIndex NodeWithScore, or its bare node
    .content and .meta                       a Haystack Document

To accept a new shape, add it here. An id, text or score of the wrong type is an error that names
the hit. Metadata of an odd type is ignored: a gate in production must not stop at someone else's
date format. A hit that repeats an id or a text counts as a duplicate of the first.
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

DocumentMap = Mapping[DocId, Document]
Pair = tuple[str, Iterable[Any]] | tuple[str, Iterable[Any], Iterable[Iterable[Any]]]
_Scored = tuple[Document, float | None]
UNNAMED_ID_PREFIX = "\N{NUMERO SIGN} "  # begins the id given to a hit without one
MAX_PASSAGE_CHARS = 4_000  # read of one hit: a bound on the time that hostile input can take
MAX_HITS = 10_000  # duplicates included: an endless generator must end
MAX_OTHER_RUNS = 16
# What a field is called elsewhere, the likeliest name first.
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
_SHAPES = (
    "a text, a dict with 'text', an (id, text, score) tuple, or a LangChain, LlamaIndex or "
    "Haystack document"
)


@dataclass(frozen=True, slots=True)
class NormalizedHits:
    """The evidence, and under each hit's id the ids of its duplicates."""

    evidence: Evidence
    duplicates: Mapping[DocId, tuple[DocId, ...]] = field(default_factory=dict)

    @property
    def question(self) -> str:
        return self.evidence.question.text

    @property
    def documents(self) -> list[Document]:
        """The documents of the hits, in rank order."""
        return [self.evidence.documents[hit.doc_id] for hit in self.evidence.hits]

    @property
    def ids(self) -> set[DocId]:
        """The ids of all hits and their duplicates."""
        kept = {hit.doc_id for hit in self.evidence.hits}
        return kept.union(*self.duplicates.values())

    def stands_for(self, doc_id: DocId) -> tuple[DocId, ...]:
        """The hit's id and those of its duplicates."""
        return doc_id, *self.duplicates.get(doc_id, ())


def normalize_hits(
    question: str,
    hits: Iterable[Any] | Evidence,
    *,
    documents: DocumentMap | None = None,
    k: int | None = None,
) -> NormalizedHits:
    """The first `k` distinct hits, in the order given. An empty list is fine."""
    if not isinstance(question, str):
        raise InputError(f"the question is {_describe(question)}, expected a text")
    if isinstance(hits, Evidence):
        documents, hits = {**hits.documents, **(documents or {})}, hits.hits
    if isinstance(hits, str | bytes | Mapping) or not isinstance(hits, Iterable):
        raise InputError(
            f"hits is {_describe(hits)}, expected a list of hits",
            hint="wrap a single hit in a list: [hit]",
        )
    kept: list[Hit] = []
    found: dict[DocId, Document] = {}
    by_text: dict[str, DocId] = {}
    duplicates: dict[DocId, tuple[DocId, ...]] = {}
    for place, hit in enumerate(islice(hits, MAX_HITS), start=1):
        if k is not None and len(kept) >= k:
            break
        document, one = _parse_hit(hit, place, documents or {})
        first = document.doc_id if document.doc_id in found else by_text.get(document.text)
        if first is not None:
            duplicates[first] = (*duplicates.get(first, ()), document.doc_id)
            continue
        kept.append(one)
        found[document.doc_id] = document
        if document.text:
            by_text[document.text] = document.doc_id
    return NormalizedHits(Evidence(Question("", question), tuple(kept), found), duplicates)


def unpack_pair(pair: Any) -> tuple[Any, Any, Any]:
    """Question, hits and other runs of a (question, hits) or (question, hits, others)."""
    match pair:
        case (question, hits):
            return question, hits, ()
        case (question, hits, others):
            return question, hits, others
    expected = "(question, hits) or (question, hits, others)"
    raise InputError(f"a pair is of type {type(pair).__name__}, expected {expected}")


def normalize_other_runs(
    hits: NormalizedHits, others: Iterable[Iterable[Any]], documents: DocumentMap | None = None
) -> list[NormalizedHits]:
    """What other retrievers found for the same question, each as deep as these hits."""
    if isinstance(others, str | bytes) or not isinstance(others, Iterable):
        raise InputError(
            f"others is of type {type(others).__name__}, expected a list of runs",
            hint="others=[hits, more hits]",
        )
    k = max(len(hits.evidence.hits), 1)
    runs = islice(others, MAX_OTHER_RUNS)
    return [normalize_hits(hits.question, run, documents=documents, k=k) for run in runs]


def _parse_hit(hit: Any, place: int, documents: DocumentMap) -> tuple[Document, Hit]:
    if type(hit) is dict and hit.keys() <= _PLAIN:  # the usual case, made quick
        doc_id, title, text, score = map(hit.get, _PLAIN_FIELDS)
        if type(doc_id) is type(title) is type(text) is str and doc_id:
            return Document(doc_id, text, title), Hit(doc_id, _parse_score(score, place))
    if isinstance(hit, Hit):
        known = documents.get(hit.doc_id) or Document(_parse_id(hit.doc_id, place), "")
        return _check_document(known, place), replace(hit, score=_parse_score(hit.score, place))
    document, score = _parse_document(hit, place, documents)
    return document, Hit(document.doc_id, score)


def _parse_document(hit: Any, place: int, documents: DocumentMap) -> _Scored:
    if isinstance(hit, str):
        return Document(_parse_id(None, place), hit), None
    if isinstance(hit, Document):
        return _check_document(hit, place), None
    if isinstance(hit, dict | Mapping):  # dict first: the check of an abstract class is slow
        return _from_fields(hit, place, documents)
    if isinstance(hit, tuple | list):
        return _from_tuple(hit, place, documents)
    for attribute, parse in _OBJECTS.items():
        if hasattr(hit, attribute):
            return parse(hit, place)
    raise _unknown_shape(hit, place)


def _from_tuple(hit: tuple[Any, ...] | list[Any], place: int, documents: DocumentMap) -> _Scored:
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


def _from_fields(hit: Mapping[Any, Any], place: int, documents: DocumentMap) -> _Scored:
    nested = hit.get("metadata") or hit.get("meta")
    fields = {**_metadata_fields(nested), **_fields(hit)} if nested else _fields(hit)
    text, doc_id = fields.get("text"), fields.get("id")
    score = _parse_score(fields.get("score"), place)
    if isinstance(text, list) and all(isinstance(part, str) for part in text):
        text = "".join(text)  # HotpotQA keeps a passage as a list of sentences
    if text is None and isinstance(doc_id, str) and doc_id in documents:
        return _check_document(documents[doc_id], place), score
    if text is None and doc_id is None and "title" not in fields:
        keys = ", ".join(sorted(map(str, hit))[:8]) or "none"
        raise InputError(
            f"hit {place} is a dict without 'text', 'title' or 'doc_id' (its keys: {keys})",
            hint=f"give {_SHAPES}",
        )
    return _make_document(doc_id, text, place, fields), score


def _from_langchain(hit: Any, place: int) -> _Scored:
    fields = _metadata_fields(getattr(hit, "metadata", None))
    doc_id = getattr(hit, "id", None) or fields.get("id")
    return _make_document(doc_id, hit.page_content, place, fields), fields.get("score")


def _from_node_with_score(hit: Any, place: int) -> _Scored:
    return _from_node(hit.node, place)[0], _parse_score(getattr(hit, "score", None), place)


def _from_node(node: Any, place: int) -> _Scored:
    if not callable(getattr(node, "get_content", None)):
        raise _unknown_shape(node, place)
    doc_id = getattr(node, "node_id", None) or getattr(node, "id_", None)
    fields = _metadata_fields(getattr(node, "metadata", None))
    return _make_document(doc_id, node.get_content(), place, fields), None


def _from_haystack(hit: Any, place: int) -> _Scored:
    fields = _metadata_fields(getattr(hit, "meta", None))
    text = "" if hit.content is None else hit.content  # it may hold a picture instead
    document = _make_document(getattr(hit, "id", None), text, place, fields)
    return document, _parse_score(getattr(hit, "score", None), place)


_OBJECTS: dict[str, Callable[[Any, int], _Scored]] = {
    "page_content": _from_langchain,
    "node": _from_node_with_score,
    "get_content": _from_node,
    "content": _from_haystack,
}


def _make_document(doc_id: Any, text: Any, place: int, fields: Mapping[str, Any]) -> Document:
    if text is not None and not isinstance(text, str):
        raise InputError(f"hit {place}: its text is {_describe(text)}, expected a text")
    title, source, category = (
        value if isinstance(value := fields.get(name), str) else None
        for name in ("title", "source", "category")
    )
    day, entities = _parse_date(fields.get("published_at")), _parse_texts(fields.get("entities"))
    return Document(
        _parse_id(doc_id, place), text or "", title or "", source, category, day, entities
    )


def _fields(level: Mapping[Any, Any]) -> dict[str, Any]:
    """The fields of a dict by our names; of several names for one field the likeliest counts."""
    fields: dict[str, Any] = {}
    for name in sorted(level.keys() & _FIELD.keys(), key=_NAME_ORDER.__getitem__):
        if level[name] is not None:
            fields.setdefault(_FIELD[name], level[name])
    return fields


def _metadata_fields(metadata: Any) -> dict[str, Any]:
    """The fields of someone's metadata, without a text; an odd id or score is ignored."""
    fields = _fields(metadata if isinstance(metadata, Mapping) else {})
    fields.pop("text", None)
    for name, parse in (("id", _parse_id), ("score", _parse_score)):
        try:
            fields[name] = parse(fields[name], 0) if name in fields else None
        except InputError:
            fields[name] = None
    return fields


def _check_document(document: Document, place: int) -> Document:
    if not all(isinstance(one, str) for one in (document.text, document.title, document.doc_id)):
        raise InputError(
            f"hit {place}: a field of its Document is not a text",
            hint="doc_id, text and title must be texts",
        )
    return document


def _parse_id(value: Any, place: int) -> DocId:
    """The id as a text. A hit without one is named by its place."""
    if value is None or value == "":
        return f"{UNNAMED_ID_PREFIX}{place}"
    if isinstance(value, bool | float | bytes | list | dict | tuple | set):
        expected = "expected a text or a whole number"
        raise InputError(f"hit {place}: its id is {_describe(value)}, {expected}")
    return str(value)


def _parse_score(value: Any, place: int) -> float | None:
    """A finite number, or None: unknown, as are NaN and infinity."""
    if type(value) is float or value is None:  # the usual case
        return value if value is not None and math.isfinite(value) else None
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"hit {place}: its score is {_describe(value)}, expected a number or None")
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _parse_texts(value: Any) -> tuple[str, ...]:
    values = (value,) if isinstance(value, str) else value
    if not isinstance(values, list | tuple | set | frozenset):
        return ()
    return tuple(one for one in values if isinstance(one, str))


def _parse_date(value: Any) -> date | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else None


def _describe(value: Any) -> str:
    shown = repr(value) if isinstance(value, int | float | bool | None) else ""
    if 0 < len(shown) < 60:
        return shown
    return f"of type {type(value).__name__}"


def _unknown_shape(hit: Any, place: int) -> InputError:
    hint = "decode it first" if isinstance(hit, bytes) else ""
    return InputError(f"hit {place} is {_describe(hit)}, expected {_SHAPES}", hint=hint)
