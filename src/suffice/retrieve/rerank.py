"""Reranking: a slower, better judge reads the first hits of a fast retriever and puts them in a new order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from suffice.errors import ModelError
from suffice.ports import Reranker, Retriever, Store
from suffice.retrieve.corpus import searchable
from suffice.retrieve.ranking import checked
from suffice.types import Filter, Hit, Part

__all__ = ["Reranked"]


class Reranked:
    """The first `depth` hits of a retriever, in the reranker's order. Ties keep the retriever's order.

    With k above `depth` the rest follow as the retriever ranked them, unjudged: reading costs, and `depth` bounds it.
    A hit whose document has left the store since falls away. Hits that were let in past a filter stay behind those that pass
    it. No score stands above one in front of it.
    """

    def __init__(
        self, retriever: Retriever, reranker: Reranker, store: Store, *, depth: int = 20, name: str = "rerank"
    ) -> None:
        self.retriever, self.reranker, self.store, self.name = retriever, reranker, store, name
        self.depth = checked([], depth)

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
        scores = np.asarray(self.reranker.score(question, [text for _, text in held]), dtype=np.float64)
        if scores.shape != (len(held),) or np.isnan(scores).any():
            raise ModelError(
                f"the reranker gave scores of shape {scores.shape} (nan: {np.isnan(scores).sum()}) for {len(held)} texts",
                hint="a Reranker returns one number a text",
            )
        order = sorted(range(len(held)), key=lambda at: (held[at][0].relaxed, -scores[at]))
        judged: list[Hit] = []
        for at in order:
            hit, score = held[at][0], float(scores[at])
            shown = min(score, judged[-1].score or 0.0) if judged else score
            judged.append(replace(hit, score=shown, parts=(*hit.parts, Part(self.name, score))))
        last = judged[-1].score
        return (*judged, *(replace(hit, score=last) for hit in rest))
