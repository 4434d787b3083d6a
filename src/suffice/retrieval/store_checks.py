"""The rules shared by all stores: which documents, vectors and filters they accept, and similarity.

Stores that accept or round differently would answer the same question differently.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, did_you_mean
from suffice.protocols import Store, StoreQuery, StoreResult, documents_by_id
from suffice.types import FIELDS, Condition, DocId, Document, Field, Filter, Hit

Halves = npt.NDArray[np.float16]
Floats = npt.NDArray[np.float32]

WIDENED = 131_072  # numbers made float32 at once: they stay in the processor's cache
# To widen a half: all copies of its sign but the first, and what its exponent lacks.
_SIGN_COPIES, _EXPONENT = np.int32(0x7000_0000), np.float32(2.0**112)


def check_document(document: Document) -> Document:
    """The document as every store keeps it; InputError if no store can.

    Lone surrogates, which UTF-8 cannot encode, become U+FFFD in texts and metadata. In ids they are
    an error, because an id must come back unchanged. An empty source, category or parent becomes
    None.
    """
    if not isinstance(document, Document):
        raise InputError(
            f"expected a Document, found {type(document).__name__}",
            hint="make it with suffice.types.Document",
        )
    if not isinstance(document.doc_id, str) or not document.doc_id:
        raise InputError(f"a document's id is {document.doc_id!r}, expected a non-empty text")
    if not is_utf8(document.doc_id):
        raise InputError(
            f"document id {document.doc_id!r} contains a lone surrogate",
            hint="fix the encoding of the ids",
        )
    where = f"document {document.doc_id!r}"
    day = document.published_at
    if day is not None and not isinstance(day, date):
        raise InputError(f"{where}: published_at is {day!r}, expected a date")
    entities: object = document.entities
    if isinstance(entities, str):
        raise InputError(
            f"{where}: entities is one text, expected several", hint=f"write ({entities!r},)"
        )
    try:
        if document.extra:
            json.dumps(dict(document.extra))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{where}: extra does not fit into JSON: {error}") from error
    optional: dict[str, Any] = {
        field: _clean(value, where, field) if value else None
        for field in ("source", "category", "parent")
        for value in [getattr(document, field)]
    }
    return replace(
        document,
        text=_clean(document.text, where, "text"),
        title=_clean(document.title, where, "title"),
        entities=tuple(_clean(one, where, "entities") for one in document.entities),
        published_at=day.date() if isinstance(day, datetime) else day,
        **optional,
    )


def _clean(text: str, where: str, field: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"{where}: {field} is {text!r}, expected a text")
    if is_utf8(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can encode the text, which it cannot with a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_document_vectors(vectors: Any, *, documents: int, dimension: int | None) -> Halves:
    """Vectors as stores keep them: (documents, dimension), float16; `dimension` is the store's."""
    array = check_query_vectors(vectors, dimension=dimension)
    if len(array) != documents:
        raise InputError(
            f"{len(array)} vectors for {documents} documents",
            hint="give one vector a document, or none at all",
        )
    if array.size and np.abs(array).max() > np.finfo(np.float16).max:
        raise InputError(
            "a vector has a number beyond 65504, the largest float16", hint="give unit vectors"
        )
    return array.astype(np.float16)


def check_query_vectors(vectors: Any, *, dimension: int | None) -> Floats:
    """Vectors as (texts, dimension), float32, finite."""
    array = np.asarray(vectors)
    numeric = np.issubdtype(array.dtype, np.number) and not np.iscomplexobj(array)
    if array.ndim != 2 or not numeric:
        raise InputError(
            f"vectors have shape {array.shape} and type {array.dtype}, "
            "expected numbers of shape (texts, dimension)"
        )
    if dimension is not None and array.shape[1] != dimension:
        raise InputError(
            f"vectors have {array.shape[1]} dimensions, those in the store have {dimension}",
            hint="use the encoder that made the stored vectors, or build again",
        )
    array = array.astype(np.float32)
    if not np.isfinite(array).all():
        raise InputError("a vector contains nan or infinity", hint="check the encoder's output")
    return array


def similarity(queries: Floats, vectors: Halves | Floats) -> Floats:
    """Inner products, (queries, documents), rounded so that equal vectors tie in every position."""
    if vectors.dtype != np.float16:
        return np.round(queries @ vectors.astype(np.float32, copy=False).T, 6)
    products = np.empty((len(queries), len(vectors)), np.float32)
    step = max(1, WIDENED // max(vectors.shape[1], 1))
    for start in range(0, len(vectors), step):
        part = slice(start, start + step)
        products[:, part] = queries @ _widened(vectors[part]).T
    return np.round(products, 6)


def _widened(halves: Halves | Floats) -> Floats:
    """The same finite numbers in float32, several times as fast as by `astype`."""
    bits = halves.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= ~_SIGN_COPIES
    floats: Floats = bits.view(np.float32)
    floats *= _EXPONENT
    return floats


def pair_vectors(
    documents: Iterable[Document], vectors: Any, *, dimension: int | None
) -> tuple[Iterable[Document], Halves | None]:
    """Documents and their vectors; the counts are compared before the first is stored."""
    if vectors is None:
        return documents, None
    listed = list(documents)
    return listed, check_document_vectors(vectors, documents=len(listed), dimension=dimension)


def run_queries(
    store: Store, queries: Sequence[StoreQuery], doc_ids: Sequence[DocId] = ()
) -> StoreResult:
    """`Store.query` by a store's other methods, for stores where several calls cost no more."""
    hits: list[tuple[Hit, ...]] = [()] * len(queries)
    for k in {one.k for one in queries}:
        same_k = [at for at, one in enumerate(queries) if one.k == k]
        by_text = [at for at in same_k if queries[at].text is not None]
        texts = [queries[at].text or "" for at in by_text]
        found = store.search_text(texts, k=k, filters=[queries[at].filter for at in by_text])
        for at, one in zip(by_text, found):
            hits[at] = one
        by_vector = [
            at for at in same_k if queries[at].text is None and queries[at].vector is not None
        ]
        if by_vector:
            vectors = np.stack([np.asarray(queries[at].vector) for at in by_vector])
            filters = [queries[at].filter for at in by_vector]
            for at, one in zip(by_vector, store.search_vectors(vectors, k=k, filters=filters)):
                hits[at] = one
    ids = [*(hit.doc_id for one in hits for hit in one), *doc_ids]
    return StoreResult(hits, documents_by_id(store.get, ids))


def check_field(field: str) -> Field:
    """The metadata field of this name; InputError suggests the nearest name if there is none."""
    for known in FIELDS:
        if field == known:
            return known
    raise InputError(f"no metadata field is named {field!r}", hint=did_you_mean(str(field), FIELDS))


def check_filters(filters: Sequence[Filter | None] | None) -> Sequence[Filter | None] | None:
    """The filters with values spelled as in stored documents; InputError for invalid ones."""
    if filters is None:
        return None
    return [
        replace(one, conditions=tuple(map(_check_condition, one.conditions))) if one else None
        for one in filters
    ]


def _check_condition(condition: Condition) -> Condition:
    check_field(condition.field)
    operator, values = condition.operator, condition.values
    if operator in ("$in", "$nin"):
        cleaned = tuple(_clean(one, "filter", condition.field) for one in values)
        return replace(condition, values=cleaned)
    if operator not in ("$gte", "$lte"):
        raise InputError(
            f"unknown operator {operator!r} in a filter", hint="use $in, $nin, $gte or $lte"
        )
    if condition.field != "published_at" or len(values) != 1:
        raise InputError(
            f"{operator} on {condition.field} with {len(values)} values",
            hint=f"{operator} compares published_at with one date",
        )
    try:
        return replace(condition, values=(date.fromisoformat(values[0]).isoformat(),))
    except ValueError as error:
        raise InputError(f"{values[0]!r} is not a date", hint="write it like 2023-10-07") from error
