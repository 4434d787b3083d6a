"""Reranking: a slower, better judge reads the first hits of a fast retriever and puts them in a new order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, ModelError
from suffice.ports import Reranker, Retriever, Store
from suffice.retrieve.corpus import searchable
from suffice.retrieve.ranking import checked, falling
from suffice.types import Filter, Hit, Part

__all__ = ["Reranked"]

Floats = npt.NDArray[np.float64]


class Reranked:
    """The first `depth` hits of a retriever, in the reranker's order. Ties keep the retriever's order.

    With k above `depth` the rest follow as the retriever ranked them, unjudged: reading costs, and `depth` bounds it.
    A hit whose document has left the store since falls away. Hits that were let in past a filter stay behind those that pass
    it. No score stands above one in front of it.

    With a `share` below 1 the retriever keeps a say: both scores are stretched from 0 to 1 over the hits that were read, and
    averaged. A reranker judges each text alone, so that several copies of the best report may push out the second one that a
    question needs: decision 16 has the figures.
    """

    def __init__(
        self,
        retriever: Retriever,
        reranker: Reranker,
        store: Store,
        *,
        depth: int = 20,
        share: float = 1.0,
        name: str = "rerank",
    ) -> None:
        if not 0 <= share <= 1:
            raise InputError(f"share is {share}, expected a number from 0 to 1")
        self.retriever, self.reranker, self.store, self.name = retriever, reranker, store, name
        self.depth, self.share = checked([], depth), share

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = checked(questions, k, filters)
        found = self.retriever.search(questions, k=max(k, self.depth), filters=filters)
        return [self._reordered(question, hits)[:k] for question, hits in zip(questions, found)]

    def _reordered(self, question: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        documents = self.store.get([hit.doc_id for hit in hits])
        standing = [(hit, searchable(document)) for hit, document in zip(hits, documents) if document is not None]
        held, rest = standing[: self.depth], [hit for hit, _ in standing[self.depth :]]
        if not held:
            return ()
        given = self._scores(question, [text for _, text in held])
        weighed = self._weighed(given, [hit for hit, _ in held])
        order = sorted(range(len(held)), key=lambda at: (held[at][0].relaxed, -weighed[at]))
        judged = [
            replace(held[at][0], score=float(weighed[at]), parts=(*held[at][0].parts, Part(self.name, float(given[at]))))
            for at in order
        ]
        lowest = min(weighed)
        return falling([*judged, *(replace(hit, score=float(lowest)) for hit in rest)])

    def _scores(self, question: str, texts: Sequence[str]) -> Floats:
        scores = np.asarray(self.reranker.score(question, texts), dtype=np.float64)
        if scores.shape != (len(texts),) or np.isnan(scores).any():
            raise ModelError(
                f"the reranker gave scores of shape {scores.shape} (nan: {np.isnan(scores).sum()}) for {len(texts)} texts",
                hint="a Reranker returns one number a text",
            )
        return scores

    def _weighed(self, given: Floats, hits: Sequence[Hit]) -> Floats:
        if self.share == 1.0:
            return given
        ranks = 1 / np.arange(1, len(hits) + 1)
        own = np.array([hit.score if hit.score is not None else rank for hit, rank in zip(hits, ranks)], dtype=np.float64)
        return self.share * _stretched(given) + (1 - self.share) * _stretched(own)


def _stretched(scores: Floats) -> Floats:
    """From 0 for the lowest to 1 for the highest; equal scores are all 1."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.ones_like(scores)
