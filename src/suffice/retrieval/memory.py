"""A store in memory: documents in a dictionary, BM25 and vectors beside them. For the papers, tests and notebooks.

Every write makes a new generation. Readers look at an immutable view of one generation, made at the first read after a write,
so a read never sees half a write.
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
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.dense import nearest_vectors
from suffice.retrieval.lexical import Bm25
from suffice.retrieval.ranking import (
    Ranking,
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
    run_lookups,
)
from suffice.types import DocId, Document, Field, Filter, Hit

__all__ = ["MemoryStore"]


@dataclass(frozen=True)
class _View:
    """One generation: the documents in order, and what is computed from them when first asked for."""

    documents: tuple[Document, ...]
    vectors: tuple[Halves | None, ...]

    @cached_property
    def corpus(self) -> Corpus:
        return Corpus(self.documents)

    @cached_property
    def bm25(self) -> Bm25:
        return Bm25(self.corpus)

    @cached_property
    def with_vector(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero([one is not None for one in self.vectors])

    @cached_property
    def matrix(self) -> Floats:
        # Widened once: doing so at every search would take half its time.
        return np.stack([one for one in self.vectors if one is not None]).astype(np.float32)


@dataclass(frozen=True, slots=True)
class _Kept:
    document: Document
    vector: Halves | None


class MemoryStore:
    """The Store port without a disk. Of documents with the same id in one `put` the last is kept, at the place of the first."""

    def __init__(self, documents: Iterable[Document] = (), vectors: Any = None) -> None:
        self._kept: dict[DocId, _Kept] = {}
        self._generation = 0
        self._dimension: int | None = None
        self._view: _View | None = None
        if (documents := tuple(documents)) or vectors is not None:
            self.put(documents, vectors)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_view": None}  # what is computed does not travel

    @property
    def generation(self) -> int:
        return self._generation

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, documents: Iterable[Document], vectors: Any = None) -> int:
        documents, halves = pair_vectors(documents, vectors, dimension=self._dimension)
        kept = dict(self._kept)  # a copy: a bad document in the middle leaves the store as it was
        count = 0
        for count, document in enumerate(documents, 1):
            document = check_document(document)
            kept[document.doc_id] = _Kept(document, None if halves is None else halves[count - 1])
        if count:
            self._dimension = self._dimension if halves is None else halves.shape[1]
            self._publish(kept)
        return count

    def delete(self, doc_ids: Iterable[DocId]) -> int:
        gone = self._kept.keys() & set(doc_ids)
        if gone:
            self._publish({doc_id: one for doc_id, one in self._kept.items() if doc_id not in gone})
        return len(gone)

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        kept = self._kept
        return [kept[doc_id].document if doc_id in kept else None for doc_id in doc_ids]

    def documents(self) -> Iterator[Document]:
        return iter(self._snapshot().documents)

    def search_text(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = check_search(questions, k, filters)
        filters, view = check_filters(filters), self._snapshot()
        found: list[tuple[Hit, ...]] = []
        for part in question_blocks(questions, len(view.documents)):
            scores = view.bm25.scores(questions[part])
            ranked = top_k(
                scores, k, filter_masks(view.corpus, filters and filters[part]), above=0.0
            )
            found += make_hits(ranked, view.corpus.ids, {"bm25": scores})
        return found

    def search_vectors(
        self, vectors: Any, *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        view = self._snapshot()
        questions = check_query_vectors(vectors, dimension=self._dimension)
        k = check_search([""] * len(questions), k, filters)
        filters = check_filters(filters)
        if not len(view.with_vector):
            return [()] * len(questions)
        masks = filter_masks(view.corpus, filters)
        ranked = nearest_vectors(
            view.matrix, questions, k=k, mask=None if masks is None else masks[:, view.with_vector]
        )
        positions = np.where(ranked.positions >= 0, view.with_vector[ranked.positions], -1)
        return name_parts(
            "dense", make_hits(Ranking(positions, ranked.scores), view.corpus.ids, {})
        )

    def query(self, queries: Sequence[StoreQuery], doc_ids: Sequence[DocId] = ()) -> StoreResult:
        return run_lookups(self, queries, doc_ids)

    def lookup(self, field: Field, values: Sequence[str]) -> list[tuple[DocId, ...]]:
        corpus = self._snapshot().corpus
        column = corpus.column(check_field(field))
        carriers = column.incidence.tocsc()
        found = []
        for value in values:
            at = column.position.get(value)
            rows = (
                ()
                if at is None
                else sorted(carriers.indices[carriers.indptr[at] : carriers.indptr[at + 1]])
            )
            found.append(tuple(corpus.ids[row] for row in rows))
        return found

    def values(self, field: Field) -> dict[str, int]:
        column = self._snapshot().corpus.column(check_field(field))
        counts = np.asarray(column.incidence.sum(axis=0)).ravel()
        return {value: int(count) for value, count in zip(column.values, counts)}

    def _publish(self, kept: dict[DocId, _Kept]) -> None:
        self._kept, self._view = kept, None
        self._generation += 1

    def _snapshot(self) -> _View:
        view = self._view
        if view is None:
            kept = list(self._kept.values())
            view = self._view = _View(
                tuple(one.document for one in kept), tuple(one.vector for one in kept)
            )
        return view


STORES.add("memory", MemoryStore)
