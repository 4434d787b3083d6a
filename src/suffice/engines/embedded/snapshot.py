"""What a reader of an embedded store sees: truth, text index and vectors at one generation, until it lets go.

The truth decides: a row that the text index or the vector file names and the truth of this generation does not, is no hit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tantivy

from suffice.engines.embedded.truth import State, Truth
from suffice.engines.embedded.vectors import Records, nearest_records
from suffice.engines.embedded.words import matches
from suffice.retrieve.ranking import checked
from suffice.retrieve.stored import checked_field, checked_filters, encodable, query_vectors
from suffice.types import DocId, Document, Field, Filter, Hit, Part

__all__ = ["Snapshot"]

SPARE = 16  # hits asked for beyond k: room for the buried, and to see where a tie with the last one ends
TIES = 1_000  # of more equals than this the index's order decides which are kept

Mask = npt.NDArray[np.bool_]


class Snapshot:
    """The reading half of the Store port, at one generation."""

    def __init__(self, truth: Truth, state: State, searcher: tantivy.Searcher | None, records: Records | None) -> None:
        self._truth, self._state = truth, state
        self._searcher, self._records = searcher, records

    @property
    def generation(self) -> int:
        return self._state.generation

    def __len__(self) -> int:
        return self._state.documents

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        held = self._truth.get(list({one for one in doc_ids if isinstance(one, str) and encodable(one)}))
        return [held.get(doc_id) for doc_id in doc_ids]

    def documents(self) -> Iterator[Document]:
        return (document for _, document in self._truth.documents())

    def lookup(self, field: Field, values: Sequence[str]) -> list[tuple[DocId, ...]]:
        checked_field(field)
        return self._truth.lookup(field, [one.encode("utf-8", "replace").decode() for one in values])

    def values(self, field: Field) -> dict[str, int]:
        return self._truth.values(checked_field(field))

    def search_text(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = checked(questions, k, filters)
        wanted = checked_filters(filters) or [None] * len(questions)
        return [self._text_hits(question, k, filter) for question, filter in zip(questions, wanted)]

    def _text_hits(self, question: str, k: int, filter: Filter | None) -> tuple[Hit, ...]:
        if self._searcher is None:
            return ()
        k = min(k, max(self._state.documents, 1))
        limit = k + SPARE
        while True:
            found = matches(self._searcher, question, limit, filter)
            named = self._truth.named([row for _, row in found])
            alive = [(-score, *named[row]) for score, row in found if row in named]
            exhausted = len(found) < limit
            # Hits beyond the limit cannot matter once the last one seen scores less than the k-th that is alive.
            settled = len(alive) >= k and (found[-1][0] < -alive[k - 1][0] or len(alive) >= k + TIES)
            if exhausted or settled:
                break
            limit *= 4
        return tuple(Hit(doc_id, -score, (Part("bm25", -score),)) for score, _, doc_id in sorted(alive)[:k])

    def search_vectors(self, vectors: Any, *, k: int, filters: Sequence[Filter | None] | None = None) -> list[tuple[Hit, ...]]:
        questions = query_vectors(vectors, dimension=self._state.dimension or None)
        k = checked([""] * len(questions), k, filters)
        wanted = checked_filters(filters) or [None] * len(questions)
        if self._records is None or not len(questions):
            return [()] * len(questions)
        filled = np.ones(len(self._records), dtype=bool)
        filled[self._truth.empty_slots()] = False
        passing = {filter: filled & self._passing(filter) if filter else filled for filter in set(wanted)}
        near = nearest_records(self._records, questions, k, [passing[filter] for filter in wanted])
        named = self._truth.named([int(row) for one in near for row in one.rows])
        return [
            tuple(
                Hit(named[row][1], score, (Part("dense", score),)) for row, score in zip(one.rows.tolist(), one.scores.tolist())
            )
            for one in near
        ]

    def _passing(self, filter: Filter) -> Mask:
        mask = np.zeros(self._state.slots, dtype=bool)
        mask[self._truth.slots_passing(filter)] = True
        return mask
