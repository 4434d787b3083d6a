"""A store in memory, with BM25 and vectors. For notebooks, tests and evaluation.

Every write starts a new generation. Reads use an immutable view of one generation, made at the
first read after a write, so a read never sees half a write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.protocols import StoreQuery, StoreResult
from suffice.registry import STORES
from suffice.retrieval.corpus import Column, Corpus
from suffice.retrieval.fusion import SignalRetriever
from suffice.retrieval.lexical import Bm25
from suffice.retrieval.ranking import (
    Filters,
    HitLists,
    check_search,
    filter_masks,
    make_hits,
    name_parts,
    question_blocks,
    top_k,
)
from suffice.retrieval.store_checks import (
    Floats,
    Halves,
    check_document,
    check_field,
    check_filters,
    check_query_vectors,
    pair_vectors,
    run_queries,
    similarity,
)
from suffice.types import DocId, Document, Field


@dataclass(frozen=True)
class _View:
    """One generation: the documents in order, and what is computed from them on first use."""

    documents: tuple[Document, ...]
    vectors: tuple[Halves | None, ...]

    @cached_property
    def corpus(self) -> Corpus:
        return Corpus(self.documents)

    @cached_property
    def bm25(self) -> SignalRetriever:
        return SignalRetriever(self.corpus, [Bm25(self.corpus)])

    @cached_property
    def with_vector(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero([one is not None for one in self.vectors])

    @cached_property
    def matrix(self) -> Floats:
        # As float32 once: converting at every search would take half its time.
        return np.stack([one for one in self.vectors if one is not None]).astype(np.float32)


class MemoryStore:
    """A Store in memory. Of equal ids in one `put` the last is kept, in the place of the first."""

    def __init__(self, documents: Iterable[Document] = (), vectors: Any = None) -> None:
        self._entries: dict[DocId, tuple[Document, Halves | None]] = {}
        self._generation = 0
        self._dimension: int | None = None
        self._view: _View | None = None
        if (documents := tuple(documents)) or vectors is not None:
            self.put(documents, vectors)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_view": None}  # computed anew where it arrives

    @property
    def generation(self) -> int:
        return self._generation

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, documents: Iterable[Document], vectors: Any = None) -> int:
        documents, halves = pair_vectors(documents, vectors, dimension=self._dimension)
        entries = dict(self._entries)  # a copy: an invalid document leaves the store as it was
        count = 0
        for count, document in enumerate(documents, 1):
            document = check_document(document)
            entries[document.doc_id] = document, None if halves is None else halves[count - 1]
        if count:
            self._dimension = self._dimension if halves is None else halves.shape[1]
            self._publish(entries)
        return count

    def delete(self, doc_ids: Iterable[DocId]) -> int:
        gone = self._entries.keys() & set(doc_ids)
        if gone:
            self._publish({key: one for key, one in self._entries.items() if key not in gone})
        return len(gone)

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        entries = self._entries
        return [entries[doc_id][0] if doc_id in entries else None for doc_id in doc_ids]

    def documents(self) -> Iterator[Document]:
        return iter(self._snapshot().documents)

    def search_text(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        return self._snapshot().bm25.search(questions, k=k, filters=check_filters(filters))

    def search_vectors(self, vectors: Any, *, k: int, filters: Filters = None) -> HitLists:
        view = self._snapshot()
        queries = check_query_vectors(vectors, dimension=self._dimension)
        k = check_search([""] * len(queries), k, filters)
        filters = check_filters(filters)
        if not len(view.with_vector):
            return [()] * len(queries)
        ids = [view.documents[at].doc_id for at in view.with_vector]
        hits: HitLists = []
        for block in question_blocks(queries, len(ids)):
            masks = filter_masks(view.corpus, filters and filters[block])
            mask = None if masks is None else masks[:, view.with_vector]
            ranking = top_k(similarity(queries[block], view.matrix), k, mask)
            hits += name_parts("dense", make_hits(ranking, ids, {}))
        return hits

    def query(self, queries: Sequence[StoreQuery], doc_ids: Sequence[DocId] = ()) -> StoreResult:
        return run_queries(self, queries, doc_ids)

    def lookup(self, field: Field, values: Sequence[str]) -> list[tuple[DocId, ...]]:
        column, ids = self._column(field), self._snapshot().corpus.ids
        known = [column.position.get(value) for value in values]
        return [
            () if at is None else tuple(ids[row] for row in column.documents.row(at).tolist())
            for at in known
        ]

    def values(self, field: Field) -> dict[str, int]:
        column = self._column(field)
        return dict(zip(column.values, np.diff(column.documents.starts).tolist()))

    def _column(self, field: Field) -> Column:
        return self._snapshot().corpus.column(check_field(field))

    def _publish(self, entries: dict[DocId, tuple[Document, Halves | None]]) -> None:
        self._entries, self._view = entries, None
        self._generation += 1

    def _snapshot(self) -> _View:
        view = self._view
        if view is None:
            entries = list(self._entries.values())
            view = self._view = _View(
                tuple(document for document, _ in entries), tuple(vector for _, vector in entries)
            )
        return view


STORES.add("memory", MemoryStore)
