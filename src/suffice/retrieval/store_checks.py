"""What every store of ours agrees on: which documents, vectors and filters it takes, and how two vectors compare.

A store that takes what another refuses, or rounds where another does not, would give other answers to the same questions.
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

__all__ = [
    "Floats",
    "Halves",
    "check_document",
    "check_document_vectors",
    "check_field",
    "check_filters",
    "check_query_vectors",
    "is_utf8",
    "pair_vectors",
    "run_lookups",
    "similarity",
]

Halves = npt.NDArray[np.float16]
Floats = npt.NDArray[np.float32]


def check_document(document: Document) -> Document:
    """The document as every store keeps it; InputError where no store could.

    Lone surrogates, which no file can hold, become U+FFFD in texts and metadata and are refused in ids, since an id must come
    back as it went in. An empty source, category or parent is none.
    """
    if not isinstance(document, Document):
        raise InputError(
            f"expected a Document, found {type(document).__name__}",
            hint="make it with suffice.types.Document",
        )
    if not isinstance(document.doc_id, str) or not document.doc_id:
        raise InputError(
            f"a document's id is {document.doc_id!r}, expected a text that is not empty"
        )
    if not is_utf8(document.doc_id):
        raise InputError(
            f"document id {document.doc_id!r} holds a lone surrogate",
            hint="repair the encoding of the ids",
        )
    where = f"document {document.doc_id!r}"
    if document.published_at is not None and not isinstance(document.published_at, date):
        raise InputError(f"{where}: published_at is {document.published_at!r}, expected a date")
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
    return replace(
        document,
        text=_clean(document.text, where, "text"),
        title=_clean(document.title, where, "title"),
        source=_clean(document.source, where, "source") if document.source else None,
        category=_clean(document.category, where, "category") if document.category else None,
        parent=_clean(document.parent, where, "parent") if document.parent else None,
        entities=tuple(_clean(one, where, "entities") for one in document.entities),
        published_at=document.published_at.date()
        if isinstance(document.published_at, datetime)
        else document.published_at,
    )


def _clean(text: str, where: str, field: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"{where}: {field} is {text!r}, expected a text")
    return (
        text
        if is_utf8(text)
        else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can hold the text: false with a lone surrogate in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_document_vectors(vectors: Any, *, documents: int, dimension: int | None) -> Halves:
    """Document vectors as they are kept: (documents, dimension), float16. `dimension` is that of the vectors held already."""
    array = _check_vectors(vectors, dimension)
    if len(array) != documents:
        raise InputError(
            f"{len(array)} vectors for {documents} documents",
            hint="give one vector a document, or none at all",
        )
    if array.size and np.abs(array).max() > np.finfo(np.float16).max:
        raise InputError(
            "a vector holds a number beyond 65504, the largest float16", hint="give unit vectors"
        )
    return array.astype(np.float16)


def check_query_vectors(vectors: Any, *, dimension: int | None) -> Floats:
    """Question vectors: (questions, dimension), float32, finite."""
    return _check_vectors(vectors, dimension)


def _check_vectors(vectors: Any, dimension: int | None) -> Floats:
    array = np.asarray(vectors)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.number) or np.iscomplexobj(array):
        raise InputError(
            f"vectors have shape {array.shape} and type {array.dtype}, expected numbers of shape (texts, dimension)"
        )
    if dimension is not None and array.shape[1] != dimension:
        raise InputError(
            f"vectors have {array.shape[1]} dimensions, those in the store have {dimension}",
            hint="use the encoder that made the stored vectors, or build again",
        )
    array = array.astype(np.float32)
    if not np.isfinite(array).all():
        raise InputError("a vector holds nan or infinity", hint="check the encoder's output")
    return array


def similarity(questions: Floats, vectors: Halves) -> Floats:
    """Inner products: (questions, documents). Rounded, so that equal vectors tie wherever they stand in the matrix."""
    return np.round(questions @ vectors.astype(np.float32, copy=False).T, 6)


def pair_vectors(
    documents: Iterable[Document], vectors: Any, *, dimension: int | None
) -> tuple[Iterable[Document], Halves | None]:
    """Documents and their vectors, known to be equally many before the first is stored."""
    if vectors is None:
        return documents, None
    listed = list(documents)
    return listed, check_document_vectors(vectors, documents=len(listed), dimension=dimension)


def run_lookups(
    store: Store, queries: Sequence[StoreQuery], doc_ids: Sequence[DocId] = ()
) -> StoreResult:
    """`Store.look` by a store's other methods: for one that is at hand, where several calls cost no more than one."""
    hits: list[tuple[Hit, ...]] = [()] * len(queries)
    for k in {one.k for one in queries}:
        by_words = [at for at, one in enumerate(queries) if one.k == k and one.text is not None]
        by_vector = [
            at
            for at, one in enumerate(queries)
            if one.k == k and one.text is None and one.vector is not None
        ]
        words = [queries[at].text or "" for at in by_words]
        found = [
            (
                by_words,
                store.search_text(words, k=k, filters=[queries[at].filter for at in by_words]),
            )
        ]
        if by_vector:
            vectors = np.stack([np.asarray(queries[at].vector) for at in by_vector])
            found.append(
                (
                    by_vector,
                    store.search_vectors(
                        vectors, k=k, filters=[queries[at].filter for at in by_vector]
                    ),
                )
            )
        for where, answers in found:
            for at, one in zip(where, answers):
                hits[at] = one
    return StoreResult(
        hits, documents_by_id(store.get, [*(hit.doc_id for one in hits for hit in one), *doc_ids])
    )


def check_field(field: str) -> Field:
    """The metadata field of this name; InputError with the nearest names if there is none."""
    for known in FIELDS:
        if field == known:
            return known
    raise InputError(f"no metadata field is named {field!r}", hint=did_you_mean(str(field), FIELDS))


def check_filters(filters: Sequence[Filter | None] | None) -> Sequence[Filter | None] | None:
    """The filters, with values spelled as documents keep them; InputError for what no filter can say."""
    if filters is None:
        return None
    return [
        replace(filter, conditions=tuple(map(_check_condition, filter.conditions)))
        if filter
        else None
        for filter in filters
    ]


def _check_condition(condition: Condition) -> Condition:
    check_field(condition.field)
    if condition.operator not in ("$in", "$nin", "$gte", "$lte"):
        raise InputError(
            f"unknown operator {condition.operator!r} in a filter",
            hint="use $in, $nin, $gte or $lte",
        )
    if condition.operator in ("$in", "$nin"):
        return replace(
            condition,
            values=tuple(_clean(one, "filter", condition.field) for one in condition.values),
        )
    if condition.field != "published_at" or len(condition.values) != 1:
        raise InputError(
            f"{condition.operator} stands on {condition.field} with {len(condition.values)} values",
            hint=f"{condition.operator} compares published_at with one date",
        )
    try:
        return replace(condition, values=(date.fromisoformat(condition.values[0]).isoformat(),))
    except ValueError as error:
        raise InputError(
            f"{condition.values[0]!r} is not a date", hint="write it like 2023-10-07"
        ) from error
