"""A share for each named source: when a question names several, each gets its best documents before the rest competes.

A question that compares two reports needs both. Vectors and cross-encoders judge one document at a time, and the report that
is nearer to the question's words can take all the places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from suffice.errors import InputError
from suffice.ports import Retriever, Store, by_id
from suffice.retrieve.metadata import Mentions, Vocabulary
from suffice.retrieve.ranking import checked, falling
from suffice.types import DocId, Document, Filter, Hit

__all__ = ["SourceQuota"]


class SourceQuota:
    """The first `depth` hits of a retriever, reordered: the best `per_source` of every named source first, in their order.

    Only sources that the question names (and does not rule out) have a share; a question that names none keeps its order, and
    so does everything behind the shares. Scores are lowered where a hit falls behind one that it outscored.
    """

    def __init__(
        self, retriever: Retriever, store: Store, vocabulary: Vocabulary, *, per_source: int = 1, depth: int = 20
    ) -> None:
        if per_source < 0:
            raise InputError(f"per_source is {per_source}, expected 0 or more")
        self._retriever, self._store, self._vocabulary = retriever, store, vocabulary
        self._per_source, self._depth = per_source, checked([], depth)

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = checked(questions, k, filters)
        found = self._retriever.search(questions, k=max(k, self._depth), filters=filters)
        documents = by_id(self._store.get, (hit.doc_id for hits in found for hit in hits))
        named = self._vocabulary.mentions(questions)
        return [falling(self._shared(hits, one, documents))[:k] for hits, one in zip(found, named)]

    def _shared(self, hits: Sequence[Hit], mentions: Mentions, documents: Mapping[DocId, Document]) -> list[Hit]:
        left = dict.fromkeys(mentions.sources, self._per_source)
        first, rest = [], []
        for hit in hits:
            document = documents.get(hit.doc_id)
            source = document.source if document else None
            if source is not None and left.get(source, 0) > 0:
                left[source] -= 1
                first.append(replace(hit, matched=hit.matched or (f"source: {source}",)))
            else:
                rest.append(hit)
        return [*first, *rest]
