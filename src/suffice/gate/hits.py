"""Accept hits and documents of any shape, without importing the framework they come from.

    text                                     "Ada was taught by …"
    dict                                     doc_id | id | _id, text | content, title, score, …
    (id, text, score), (text, score)         also (id, text), and (any other shape, score)
    suffice's Document, or Hit + documents   `documents` has the texts; a library's Hits have them
    .page_content and .metadata              a LangChain Document
    .node.get_content() and .score           a LlamaIndex NodeWithScore, or its bare node
    .content and .meta                       a Haystack Document
    .text, and .id, .title, .score           any other object or named tuple

`normalize_hits` converts a retriever's output to `Evidence`, `normalize_documents` converts
documents for a library. To accept a new shape, add it here. An id, text or score of the wrong type
is an error that names the hit. Metadata of an unexpected type is ignored: a gate in production must
not fail on someone else's date format. A hit that repeats an id or a text is a duplicate of the
first; `NormalizedHits.notes` says which texts are not read because of that.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import islice
from typing import Any

import numpy as np

from suffice.errors import InputError
from suffice.storage.fields import content_id
from suffice.types import DocId, Document, Evidence, Hit, LibraryHit, Question

DocumentMap = Mapping[DocId, Document]
Pair = tuple[str, Iterable[Any] | Evidence]
UNNAMED_ID_PREFIX = "\N{NUMERO SIGN} "  # prefix of the id given to a hit without one
MAX_PASSAGE_CHARS = 4_000  # read of one hit: limits the time that hostile input can take
MAX_HITS = 10_000  # including duplicates: an endless generator must end
# Names of each field in other frameworks, most likely first.
_FIELD_NAMES = {
    "id": ("doc_id", "id", "_id", "id_", "node_id", "document_id"),
    "text": ("text", "content", "page_content", "contents", "body"),
    "title": ("title", "name", "file_name"),
    "score": ("score", "_score", "relevance_score"),
    "source": ("source",),
    "category": ("category",),
    "published_at": ("published_at", "date"),
    "entities": ("entities",),
    "parent": ("parent",),
}
_FIELD = {name: field for field, names in _FIELD_NAMES.items() for name in names}
_NAME_ORDER = {name: place for place, name in enumerate(_FIELD)}
_PLAIN_FIELDS = ("doc_id", "title", "text", "score")
_PLAIN = frozenset(_PLAIN_FIELDS)
_NESTED = ("metadata", "meta")
_SHAPES = (
    "a text, a dict with 'text', an (id, text, score) tuple, an object with .text, or a LangChain, "
    "LlamaIndex or Haystack document"
)
_MAP_HINT = "documents={one.doc_id: one for one in documents}, of suffice.Document"


@dataclass(frozen=True, slots=True)
class NormalizedHits:
    """The evidence, and the ids of the duplicates of each hit."""

    evidence: Evidence
    duplicates: Mapping[DocId, tuple[DocId, ...]] = field(default_factory=dict)
    cut: bool = False  # there were more
    unread: tuple[DocId, ...] = ()  # ids of hits that have the id of an earlier one, but other text

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

    @property
    def blank(self) -> int:
        """How many hits have neither text nor title."""
        return sum([not (one.text or one.title) for one in self.evidence.documents.values()])

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what the gate does not or cannot read."""
        blank, count = self.blank, len(self.evidence.hits)
        no_text = (
            f"No text came with {blank:,} of {count:,} hits: give each hit its text "
            "(in Python also documents=, on the command line --library)."
        )
        same_id = (
            f"Not read: {len(self.unread):,} hit{'s' * (len(self.unread) != 1)} with the id of an "
            f"earlier hit and another text, the first {''.join(self.unread[:1])!r:.200}. "
            "Give each passage its own id, or none."
        )
        found = (
            (f"Only the first {count:,} distinct hits were read.", self.cut),
            (no_text, blank),
            (same_id, self.unread),
        )
        return tuple(sentence for sentence, is_so in found if is_so)

    def stands_for(self, doc_id: DocId) -> tuple[DocId, ...]:
        """The hit's id and the ids of its duplicates."""
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
    if not isinstance(documents, Mapping | None):
        raise InputError(
            f"documents is {_describe(documents)}, expected a mapping from ids", hint=_MAP_HINT
        )
    if isinstance(hits, str | bytes | Mapping) or not isinstance(hits, Iterable):
        raise InputError(
            f"hits is {_describe(hits)}, expected a list of hits",
            hint="wrap a single hit in a list: [hit]",
        )
    kept: list[Hit] = []
    found: dict[DocId, Document] = {}
    by_text: dict[str, DocId] = {}
    duplicates: dict[DocId, tuple[DocId, ...]] = {}
    cut, unread = False, list[DocId]()
    for place, hit in enumerate(islice(hits, MAX_HITS), start=1):
        if cut := k is not None and len(kept) >= k:
            break
        document, one = _parse_hit(hit, place, documents or {})
        first = document.doc_id if document.doc_id in found else by_text.get(document.text)
        if first is not None:
            duplicates[first] = (*duplicates.get(first, ()), document.doc_id)
            if document.text and document.text not in by_text:
                unread.append(first)
            continue
        kept.append(one)
        found[document.doc_id] = document
        if document.text:
            by_text[document.text] = document.doc_id
    evidence = Evidence(Question("", question), tuple(kept), found)
    return NormalizedHits(evidence, duplicates, cut, tuple(unread))


def unpack_pair(pair: Any) -> Pair:
    """Question and hits; InputError unless it is (question, hits)."""
    match pair:
        case (question, hits):
            return question, hits
    raise InputError(f"a pair is of type {type(pair).__name__}, expected (question, hits)")


def normalize_documents(documents: Iterable[Any]) -> Iterator[Document]:
    """Convert documents of any of these shapes for a library, with other metadata as `extra`.

    A document without its own id gets one made from its title and text: an id that is only in a
    chunk's metadata is often that of the whole document.
    """
    if isinstance(documents, str | bytes | Mapping | Document) or not isinstance(
        documents, Iterable
    ):
        raise InputError(
            f"documents is {_describe(documents)}, expected a list of documents",
            hint="wrap a single document in a list: [document]",
        )
    return (
        one if isinstance(one, Document) else _to_document(one, f"document {place}")
        for place, one in enumerate(documents, start=1)
    )


def _to_document(one: Any, where: str) -> Document:
    shape = _read_shape(one, where, {})
    if shape.known is not None:
        return shape.known
    fields, text = shape.fields, _parse_text(shape.text, where)
    title = fields.get("title")
    if not text.strip() and not (isinstance(title, str) and title.strip()):
        raise InputError(
            f"{where} has neither text nor title", hint="leave it out, or give it a text"
        )
    doc_id = _parse_id(shape.doc_id, where)
    if doc_id is None:
        doc_id = content_id(title if isinstance(title, str) else "", text)
    parent = fields.get("parent")
    document = _make_document(doc_id, text, fields)
    document = replace(document, parent=parent if isinstance(parent, str) else None)
    return replace(document, extra=_extra(shape, document))


def _extra(shape: _Shape, document: Document) -> dict[str, Any]:
    """Metadata that is in no field of the document, as far as it fits into JSON."""
    used = {**shape.fields, "text": shape.text, "id": shape.doc_id}
    kept = {name for name in used if getattr(document, name, True)}
    extra: dict[str, Any] = {}
    for name, value in shape.metadata.items():
        is_used = _FIELD.get(name) in kept and value is used[_FIELD[name]]
        if is_used or name in _NESTED or not isinstance(name, str):
            continue
        value = value.isoformat() if isinstance(value, date) else value
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            continue
        extra[name] = value
    return extra


@dataclass(frozen=True, slots=True)
class _Shape:
    """The contents of a foreign hit or document under our names, not yet checked."""

    text: Any = None
    doc_id: Any = None  # own ones before the metadata's
    fields: Mapping[str, Any] = field(default_factory=dict)  # its own before its metadata's
    metadata: Mapping[Any, Any] = field(default_factory=dict)  # as given
    score: float | None = None
    known: Document | None = None  # replaces everything except the score


def _parse_hit(hit: Any, place: int, documents: DocumentMap) -> tuple[Document, Hit]:
    where = f"hit {place}"
    if type(hit) is dict and hit.keys() <= _PLAIN:  # fast path for the usual case
        doc_id, title, text, score = map(hit.get, _PLAIN_FIELDS)
        if type(doc_id) is type(title) is type(text) is str and doc_id:
            return Document(doc_id, text, title), Hit(doc_id, _parse_score(score, where))
    shape = _read_shape(hit, where, documents)
    document = shape.known
    if document is None:
        doc_id = _parse_id(shape.doc_id, where) or _parse_id(shape.fields.get("id"), where)
        text = _parse_text(shape.text, where)
        document = _make_document(doc_id or f"{UNNAMED_ID_PREFIX}{place}", text, shape.fields)
    if isinstance(hit, Hit):
        return document, Hit(hit.doc_id, shape.score, hit.parts, hit.matched, hit.relaxed)
    return document, Hit(document.doc_id, shape.score)


def _read_shape(hit: Any, where: str, documents: DocumentMap) -> _Shape:
    if isinstance(hit, str):
        return _Shape(hit)
    if isinstance(hit, Document):
        return _Shape(known=_check_document(hit, where))
    if isinstance(hit, dict | Mapping):  # dict first: the abstract class check is slow
        return _from_fields(hit, where, documents)
    if isinstance(hit, tuple | list):
        read = _from_attributes if hasattr(hit, "text") else _from_tuple
        return read(hit, where, documents)
    if isinstance(hit, Hit):
        return _from_hit(hit, where, documents)
    for attribute, read_object in _OBJECTS.items():
        if hasattr(hit, attribute):
            return read_object(hit, where)
    if hasattr(hit, "text"):
        return _from_attributes(hit, where, documents)
    raise _unknown_shape(hit, where)


def _from_hit(hit: Hit, where: str, documents: DocumentMap) -> _Shape:
    score = _parse_score(hit.score, where)
    known = documents.get(hit.doc_id)
    if known is None and isinstance(hit, LibraryHit):
        known = hit.document
    if known is None:
        return _Shape(doc_id=hit.doc_id, score=score)
    return _Shape(known=_check_document(known, where), score=score)


def _from_tuple(hit: tuple[Any, ...] | list[Any], where: str, documents: DocumentMap) -> _Shape:
    match list(hit):
        case [name, str() as text, score] if isinstance(name, str | int) and not isinstance(
            name, bool
        ):
            return _Shape(text, name, score=_parse_score(score, where))
        case [str() as name, str() as text]:
            return _Shape(text, name)
        case [str() as text, score]:
            return _Shape(text, score=_parse_score(score, where))
        case [inner, score] if not isinstance(inner, tuple | list | int | float | None):
            shape = _read_shape(inner, where, documents)
            return replace(shape, score=_parse_score(score, where))
    expected = "(id, text, score), (text, score), (id, text) or (document, score)"
    parts = ", ".join(type(part).__name__ for part in hit[:5])
    raise InputError(f"{where} is a {type(hit).__name__} of ({parts}), expected {expected}")


def _from_fields(hit: Mapping[Any, Any], where: str, documents: DocumentMap) -> _Shape:
    nested = hit.get("metadata") or hit.get("meta")
    own = _fields(hit)
    fields = {**_metadata_fields(nested), **own} if nested else own
    text, doc_id = fields.get("text"), fields.get("id")
    score = _parse_score(fields.get("score"), where)
    if isinstance(text, list) and all(isinstance(part, str) for part in text):
        text = "".join(text)  # HotpotQA keeps a passage as a list of sentences
    if text is None and isinstance(doc_id, str) and doc_id in documents:
        return _Shape(known=_check_document(documents[doc_id], where), score=score)
    if text is None and doc_id is None and "title" not in fields:
        named = sorted(f"{one}{': null' if hit[one] is None else ''}" for one in hit)
        keys = ", ".join(named[:8]) or "none"
        raise InputError(
            f"{where} is a dict without 'text', 'title' or 'doc_id' (its keys: {keys})",
            hint=f"give {_SHAPES}",
        )
    metadata = hit
    if isinstance(nested, Mapping):
        metadata = {**nested, **{name: hit[name] for name in hit if name not in _NESTED}}
    return _Shape(text, own.get("id"), fields, metadata, score)


def _from_attributes(hit: Any, where: str, documents: DocumentMap) -> _Shape:
    values = {name: getattr(hit, name, None) for name in (*_FIELD, *_NESTED)}
    given = {name: one for name, one in values.items() if one is not None and not callable(one)}
    return _from_fields(given, where, documents)


def _from_langchain(hit: Any, where: str) -> _Shape:
    metadata = _mapping(hit, "metadata")
    fields = _metadata_fields(metadata)
    doc_id = getattr(hit, "id", None)
    return _Shape(hit.page_content, doc_id, fields, metadata, fields.get("score"))


def _from_node_with_score(hit: Any, where: str) -> _Shape:
    shape = _from_node(hit.node, where)
    return replace(shape, score=_parse_score(getattr(hit, "score", None), where))


def _from_node(node: Any, where: str) -> _Shape:
    if not callable(getattr(node, "get_content", None)):
        raise _unknown_shape(node, where)
    doc_id = getattr(node, "node_id", None) or getattr(node, "id_", None)
    metadata = _mapping(node, "metadata")
    return _Shape(node.get_content(), doc_id, _metadata_fields(metadata), metadata)


def _from_haystack(hit: Any, where: str) -> _Shape:
    metadata = _mapping(hit, "meta")
    text = "" if hit.content is None else hit.content  # may contain an image instead
    score = _parse_score(getattr(hit, "score", None), where)
    doc_id = getattr(hit, "id", None)
    return _Shape(text, doc_id, _metadata_fields(metadata), metadata, score)


_OBJECTS: dict[str, Callable[[Any, str], _Shape]] = {
    "page_content": _from_langchain,
    "node": _from_node_with_score,
    "get_content": _from_node,
    "content": _from_haystack,
}


def _mapping(hit: Any, name: str) -> Mapping[Any, Any]:
    value = getattr(hit, name, None)
    return value if isinstance(value, Mapping) else {}


def _make_document(doc_id: DocId, text: str, fields: Mapping[str, Any]) -> Document:
    title, source, category = (
        value if isinstance(value := fields.get(name), str) else None
        for name in ("title", "source", "category")
    )
    day, entities = _parse_date(fields.get("published_at")), _parse_texts(fields.get("entities"))
    return Document(doc_id, text, title or "", source, category, day, entities)


def _fields(level: Mapping[Any, Any]) -> dict[str, Any]:
    """The fields of a dict under our names; if several names match, the likeliest wins."""
    fields: dict[str, Any] = {}
    for name in sorted(level.keys() & _FIELD.keys(), key=_NAME_ORDER.__getitem__):
        if level[name] is not None:
            fields.setdefault(_FIELD[name], level[name])
    return fields


def _metadata_fields(metadata: Any) -> dict[str, Any]:
    """The fields of foreign metadata, except the text; an invalid id or score is ignored."""
    fields = _fields(metadata if isinstance(metadata, Mapping) else {})
    fields.pop("text", None)
    for name, parse in (("id", _parse_id), ("score", _parse_score)):
        try:
            fields[name] = parse(fields[name], "") if name in fields else None
        except InputError:
            fields[name] = None
    return fields


def _check_document(document: Document, where: str) -> Document:
    if not isinstance(document, Document):
        raise InputError(
            f"{where}: its document is {_describe(document)}, expected a Document", hint=_MAP_HINT
        )
    if not all(isinstance(one, str) for one in (document.text, document.title, document.doc_id)):
        raise InputError(
            f"{where}: a field of its Document is not a text",
            hint="doc_id, text and title must be texts",
        )
    return document


def _parse_text(value: Any, where: str) -> str:
    if value is not None and not isinstance(value, str):
        raise InputError(f"{where}: its text is {_describe(value)}, expected a text")
    return value or ""


def _parse_id(value: Any, where: str) -> DocId | None:
    """The id as a string; None if there is none."""
    if value is None or value == "":
        return None
    if isinstance(value, bool | float | bytes | list | dict | tuple | set):
        expected = "expected a text or a whole number"
        raise InputError(f"{where}: its id is {_describe(value)}, {expected}")
    return str(value)


def _parse_score(value: Any, where: str) -> float | None:
    """A finite number, or None if unknown, NaN or infinite."""
    if type(value) is float or value is None:  # fast path for the usual case
        return value if value is not None and math.isfinite(value) else None
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{where}: its score is {_describe(value)}, expected a number or None")
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


def _unknown_shape(hit: Any, where: str) -> InputError:
    hint = "decode it first" if isinstance(hit, bytes) else ""
    return InputError(f"{where} is {_describe(hit)}, expected {_SHAPES}", hint=hint)
