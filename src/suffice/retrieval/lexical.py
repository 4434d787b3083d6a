"""BM25: as the store computes it, or over an index in memory."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Sequence

import numpy as np

from suffice.errors import InputError
from suffice.lexicon import STOP_WORDS
from suffice.protocols import Store
from suffice.retrieval.corpus import Corpus, RaggedRows, searchable_text
from suffice.retrieval.ranking import Filters, HitLists, Scores, check_search, name_parts
from suffice.text import tokens


class TextSearch:
    """BM25 as the store computes it: for corpora on disk or on other machines."""

    def __init__(self, store: Store, *, name: str = "bm25") -> None:
        self.store, self.name = store, name

    def search(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        k = check_search(questions, k, filters)
        return name_parts(self.name, self.store.search_text(questions, k=k, filters=filters))


class Bm25:
    """Okapi BM25 over title and text, in Lucene's form, whose IDF is never negative (bm25s).

    A word counts once however often the question repeats it. Unknown words are ignored.
    """

    # A term in more documents is kept as a full row, at most four times the memory: adding a whole
    # row is several times faster than adding to many single documents.
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
    """For each term the documents with it, and what it adds to the score of each."""
    if not terms:  # bm25s divides by the mean length
        return RaggedRows.from_sizes([], np.zeros(0)), RaggedRows.from_sizes([], np.zeros(0))
    import bm25s  # late: slow to import

    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG when imported
    index = bm25s.BM25(k1=k1, b=b, method="lucene")
    index.index((rows, terms), create_empty_token=False, show_progress=False)
    # A (documents, terms) matrix by columns has the same arrays as (terms, documents) by rows.
    starts, documents, weights = (index.scores[one] for one in ("indptr", "indices", "data"))
    return RaggedRows(starts, documents), RaggedRows(starts, weights)
