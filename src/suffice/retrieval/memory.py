"""A store in memory, with BM25 and vectors. For notebooks, tests and evaluation.

Every write starts a new generation. Reads use an immutable view of one generation, created at the
first read after a write, so a read never sees half a write.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.lexicon import STOP_WORDS
from suffice.protocols import StoreQuery, StoreResult
from suffice.registry import STORES
from suffice.retrieval.corpus import Column, Corpus, RaggedRows, searchable_text
from suffice.retrieval.ranking import (
    Filters,
    HitLists,
    Scores,
    check_search,
    filter_masks,
    make_hits,
    name_parts,
    question_blocks,
    top_k,
)
from suffice.retrieval.search import SignalRetriever
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
from suffice.text import tokens
from suffice.types import DocId, Document, Field


class Bm25:
    """Okapi BM25 over title and text, in Lucene's form, whose IDF is never negative (bm25s).

    A word counts once however often the question repeats it. Unknown words are ignored.
    """

    # Terms in more documents than this share are stored as full rows, at most four times the
    # memory: adding a whole row is several times faster than adding to many single documents.
    COMMON = 1 / 8

    def __init__(
        self,
        corpus: Corpus,
        *,
        k1: float = 1.2,
        b: float = 0.75,
        stop_words: Collection[str] = STOP_WORDS,
        name: str = "bm25",
    ) -> None:
        if not (math.isfinite(k1) and k1 >= 0):
            raise InputError(
                f"k1 is {k1!r}, expected a number of at least 0",
                hint="usual values lie between 0.9 and 2.0",
            )
        if not 0 <= b <= 1:
            raise InputError(
                f"b is {b!r}, expected a number from 0 to 1", hint="the usual value is 0.75"
            )
        self.name, self._size = name, len(corpus)
        stop_words = frozenset(stop_words)
        self._terms: dict[str, int] = {}
        rows = [
            [
                self._terms.setdefault(word, len(self._terms))
                for word in tokens(searchable_text(document))
                if word not in stop_words
            ]
            for document in corpus.documents
        ]
        self._documents, self._weights = _bm25_index(rows, self._terms, k1, b)
        self._common: dict[int, Scores] = {}
        sizes = np.diff(self._documents.starts)
        for term in np.flatnonzero(sizes > self.COMMON * self._size).tolist():
            row = self._common[term] = np.zeros(self._size, np.float32)
            row[self._documents.row(term)] = self._weights.row(term)

    def scores(self, questions: Sequence[str]) -> Scores:
        """(questions, documents); a document that shares no word with the question scores 0."""
        scores = np.zeros((len(questions), self._size), np.float32)
        for question, row in zip(questions, scores):
            terms = sorted({self._terms[word] for word in tokens(question) if word in self._terms})
            for term in terms:
                if term not in self._common:
                    row[self._documents.row(term)] += self._weights.row(term)
            for term in terms:
                if term in self._common:
                    row += self._common[term]
        return scores


def _bm25_index(
    rows: list[list[int]], terms: dict[str, int], k1: float, b: float
) -> tuple[RaggedRows, RaggedRows]:
    """For each term the documents that contain it, and what it adds to the score of each."""
    if not terms:  # bm25s divides by the mean length
        return RaggedRows.from_sizes([], np.zeros(0)), RaggedRows.from_sizes([], np.zeros(0))
    import bm25s  # lazy: slow to import

    logging.getLogger("bm25s").setLevel(logging.WARNING)  # importing it sets its level to DEBUG
    index = bm25s.BM25(k1=k1, b=b, method="lucene")
    index.index((rows, terms), create_empty_token=False, show_progress=False)
    # A (documents, terms) matrix by columns has the same arrays as (terms, documents) by rows.
    starts, documents, weights = (index.scores[one] for one in ("indptr", "indices", "data"))
    return RaggedRows(starts, documents), RaggedRows(starts, weights)


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
    def vector_ids(self) -> list[DocId]:
        return [self.documents[at].doc_id for at in self.with_vector]

    @cached_property
    def matrix(self) -> Floats:
        # Convert to float32 once: converting at every search would take half its time.
        return np.stack([one for one in self.vectors if one is not None]).astype(np.float32)


class MemoryStore:
    """A Store in memory. If a `put` repeats an id, the last is kept, in the place of the first."""

    def __init__(self, documents: Iterable[Document] = (), vectors: Any = None) -> None:
        self._entries: dict[DocId, tuple[Document, Halves | None]] = {}
        self._generation = 0
        self._dimension: int | None = None
        self._view: _View | None = None
        if (documents := tuple(documents)) or vectors is not None:
            self.put(documents, vectors)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_view": None}  # recomputed after unpickling

    @property
    def generation(self) -> int:
        return self._generation

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, documents: Iterable[Document], vectors: Any = None) -> int:
        documents, halves = pair_vectors(documents, vectors, dimension=self._dimension)
        entries = dict(self._entries)  # a copy: an invalid document leaves the store unchanged
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
        ids = view.vector_ids
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
