"""Prepare documents for a store on disk or a server: check, split into batches, encode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from suffice.errors import InputError
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.store_checks import (
    Halves,
    check_document,
    check_document_vectors,
    is_utf8,
)
from suffice.types import DocId, Document

__all__ = [
    "Encode",
    "OnStored",
    "check_ids",
    "document_batches",
    "encode_batch",
    "unique_ids",
]

Encode = Callable[[Sequence[str]], Any]  # texts to vectors
OnStored = Callable[[Sequence[DocId]], None]  # called with the ids of each batch once it is durable


def document_batches(
    documents: Iterable[Document], *, size: int, characters: int
) -> Iterator[list[Document]]:
    """Checked documents, at most `size` per batch; long documents end it earlier."""
    batch: list[Document] = []
    total = 0
    for document in documents:
        document = check_document(document)
        batch.append(document)
        total += len(document.text)
        if len(batch) >= size or total >= characters:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def encode_batch(
    batch: Sequence[Document], vectors: Halves | None, encode: Encode | None, dimension: int
) -> tuple[list[Document], Halves | None]:
    """The last document of each id, at the position of the first, with its vector.

    `vectors` belong to the whole batch. Without them, `encode` makes them from the texts.
    """
    last = {document.doc_id: (document, at) for at, document in enumerate(batch)}
    kept = [document for document, _ in last.values()]
    if vectors is not None:
        return kept, vectors[[at for _, at in last.values()]]
    if encode is None:
        return kept, None
    made = encode([searchable_text(document) for document in kept])
    return kept, check_document_vectors(made, documents=len(kept), dimension=dimension or None)


def unique_ids(doc_ids: Iterable[DocId]) -> list[DocId]:
    """Each id that a store can contain, once, in order."""
    return [one for one in dict.fromkeys(doc_ids) if isinstance(one, str) and is_utf8(one)]


def check_ids(doc_ids: Iterable[DocId]) -> list[DocId]:
    """`unique_ids`; InputError for a string in place of a list."""
    if isinstance(doc_ids, str):
        raise InputError("expected a list of ids, found one text", hint=f"write [{doc_ids!r}]")
    return unique_ids(doc_ids)
