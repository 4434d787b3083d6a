"""Hybrid retrieval: several opinions about the same documents, fused into one ranking.

`SignalRetriever` fuses signals that score every document of a corpus in memory; `ListFusion` fuses the hit lists of other
retrievers, so it works on any store. Both use one table of fusions, and every hit says which parts found it with which score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, ModelError, did_you_mean
from suffice.protocols import Reranker, Retriever, Store
from suffice.retrieval.corpus import Corpus, Mask, searchable_text
from suffice.retrieval.ranking import (
    Ranking,
    Scores,
    Signal,
    cap_scores,
    check_search,
    filter_masks,
    make_hits,
    question_blocks,
    top_k,
)
from suffice.types import DocId, Filter, Hit, Part

__all__ = ["FUSIONS", "Blend", "Fusion", "ListFusion", "RerankRetriever", "SignalRetriever"]


# (parts, questions, columns) and one weight a part -> (questions, columns). nan: this part did not find that column.
Fusion = Callable[[Scores, npt.NDArray[np.float32]], Scores]
RANK_OFFSET = 60  # Cormack, Clarke and Büttcher's constant: it keeps one first place from outweighing two second places


def weighted_sum(parts: Scores, weights: npt.NDArray[np.float32]) -> Scores:
    """Each part divided by its highest score for the question, then summed by weight. What is not above zero adds nothing."""
    return _summed(weights, _by_highest(parts))


def convex_combination(parts: Scores, weights: npt.NDArray[np.float32]) -> Scores:
    """Each part stretched from 0 (the lowest it found) to 1 (the highest), averaged by weight. A part's only find counts 1."""
    low, high = _range(parts)
    stretched = np.divide(parts - low, high - low, out=np.ones_like(parts), where=high > low)
    share = weights / (weights.sum() or 1)
    return _summed(share, np.where(np.isnan(parts), np.float32(0), stretched))


def reciprocal_rank(parts: Scores, weights: npt.NDArray[np.float32]) -> Scores:
    """The sum of weight / (60 + rank) over the parts that found it: only order counts, so scales need not agree."""
    order = np.argsort(-parts, axis=2, kind="stable")  # nan goes last
    ranks = np.empty_like(order)
    np.put_along_axis(
        ranks, order, np.broadcast_to(np.arange(1, parts.shape[2] + 1), order.shape), axis=2
    )
    shares = weights[:, None, None] / (RANK_OFFSET + ranks.astype(np.float32))
    return np.asarray(np.where(np.isnan(parts), 0, shares).sum(axis=0), dtype=np.float32)


def maximum(parts: Scores, weights: npt.NDArray[np.float32]) -> Scores:
    """The best weighted part, each divided by its highest score for the question: one strong opinion is enough."""
    return np.asarray(
        (weights[:, None, None] * _by_highest(parts)).max(axis=0, initial=0), dtype=np.float32
    )


FUSIONS: dict[str, Fusion] = {
    "sum": weighted_sum,
    "convex": convex_combination,
    "rrf": reciprocal_rank,
    "max": maximum,
}


def _by_highest(parts: Scores) -> Scores:
    found = np.where(parts > 0, parts, np.float32(0))
    top = found.max(axis=2, keepdims=True, initial=0)
    np.divide(found, top, out=found, where=top > 0)
    return found


def _summed(weights: npt.NDArray[np.float32], parts: Scores) -> Scores:
    return np.asarray(np.einsum("p,pqc->qc", weights, parts), dtype=np.float32)


def _range(parts: Scores) -> tuple[Scores, Scores]:
    missing = np.isnan(parts)
    low = np.where(missing, np.inf, parts).min(axis=2, keepdims=True, initial=np.inf)
    high = np.where(missing, -np.inf, parts).max(axis=2, keepdims=True, initial=-np.inf)
    nothing = low > high
    return np.where(nothing, 0, low), np.where(nothing, 0, high)


def _check_fusion(
    fusion: str, weights: Sequence[float] | None, parts: int
) -> tuple[Fusion, npt.NDArray[np.float32]]:
    if fusion not in FUSIONS:
        raise InputError(f"no fusion is named {fusion!r}", hint=did_you_mean(fusion, FUSIONS))
    if not parts:
        raise InputError("nothing to fuse", hint="give at least one signal or retriever")
    chosen = np.ones(parts, np.float32) if weights is None else np.asarray(weights, np.float32)
    if chosen.shape != (parts,) or not np.isfinite(chosen).all() or (chosen < 0).any():
        raise InputError(
            f"weights are {weights!r}, expected {parts} numbers of at least 0, one a part"
        )
    return FUSIONS[fusion], chosen


class SignalRetriever:
    """Ranks a whole corpus by one signal, or by several fused. A document that no signal scores above zero is no hit.

    A single signal keeps its own scale; fusing rescales.
    """

    def __init__(
        self,
        corpus: Corpus,
        signals: Sequence[Signal],
        *,
        weights: Sequence[float] | None = None,
        fusion: str = "sum",
    ) -> None:
        self.corpus, self.signals = corpus, tuple(signals)
        self._fuse, self._weights = _check_fusion(fusion, weights, len(self.signals))
        if len({signal.name for signal in self.signals}) < len(self.signals):
            raise InputError(
                f"two signals have one name: {[signal.name for signal in self.signals]}"
            )

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = check_search(questions, k, filters)
        found: list[tuple[Hit, ...]] = []
        for block in question_blocks(questions, len(self.corpus) * len(self.signals)):
            parts = {signal.name: signal.scores(questions[block]) for signal in self.signals}
            masks = filter_masks(self.corpus, filters and filters[block])
            found += make_hits(self._ranked(list(parts.values()), k, masks), self.corpus.ids, parts)
        return found

    def _ranked(self, parts: list[Scores], k: int, masks: Mask | None) -> Ranking:
        if len(parts) == 1:
            return top_k(parts[0], k, masks, above=0.0)
        stacked = np.stack(parts)
        positive = stacked > 0
        somewhere = np.asarray(positive.any(axis=0))
        fused = self._fuse(np.where(positive, stacked, np.float32(np.nan)), self._weights)
        return top_k(fused, k, somewhere if masks is None else somewhere & masks)


class Blend:
    """Several signals as one: the weighted sum of each divided by its highest score for the question."""

    def __init__(
        self, signals: Sequence[Signal], *, weights: Sequence[float], name: str = "blend"
    ) -> None:
        self.name, self.signals = name, tuple(signals)
        _, self._weights = _check_fusion("sum", weights, len(self.signals))

    def scores(self, questions: Sequence[str]) -> Scores:
        """(questions, documents), from 0 to the sum of the weights; 0 where no signal finds the document."""
        return weighted_sum(
            np.stack([signal.scores(questions) for signal in self.signals]), self._weights
        )


class ListFusion:
    """Fuses the first `depth` hits of each of several retrievers. Ties go to what an earlier retriever, or place, holds."""

    def __init__(
        self,
        retrievers: Mapping[str, Retriever],
        *,
        weights: Sequence[float] | None = None,
        fusion: str = "rrf",
        depth: int = 100,
    ) -> None:
        self.retrievers = dict(retrievers)
        self.depth = check_search([], depth)
        self._fuse, self._weights = _check_fusion(fusion, weights, len(self.retrievers))

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = check_search(questions, k, filters)
        deep = max(k, self.depth)
        lists = [one.search(questions, k=deep, filters=filters) for one in self.retrievers.values()]
        columns = [_columns([found[at] for found in lists]) for at in range(len(questions))]
        # The last column stands for all documents that a retriever could have listed and did not: they score 0. Without it
        # the weakest of three hits would count as little as no hit.
        parts = np.full(
            (len(lists), len(questions), max(map(len, columns), default=0) + 1), np.nan, np.float32
        )
        for part, found in enumerate(lists):
            for row, hits in enumerate(found):
                parts[part, row, [columns[row][hit.doc_id] for hit in hits]] = _scores(hits)
                parts[part, row, -1] = 0 if len(hits) < deep else np.nan
        fused = self._fuse(parts, self._weights)[:, :-1]
        ranked = top_k(fused, k, np.asarray((~np.isnan(parts[:, :, :-1])).any(axis=0)))
        return [
            self._hits(
                [found[row] for found in lists],
                list(columns[row]),
                ranked.positions[row],
                ranked.scores[row],
            )
            for row in range(len(questions))
        ]

    def _hits(
        self,
        lists: Sequence[Sequence[Hit]],
        ids: Sequence[DocId],
        positions: npt.NDArray[np.intp],
        scores: Scores,
    ) -> tuple[Hit, ...]:
        first: dict[DocId, Hit] = {}
        parts: dict[DocId, list[Part]] = {}
        for name, hits in zip(self.retrievers, lists):
            for hit, score in zip(hits, _scores(hits)):
                first.setdefault(hit.doc_id, hit)
                parts.setdefault(hit.doc_id, []).append(Part(name, float(score)))
        chosen = [
            (ids[at], float(score))
            for at, score in zip(positions.tolist(), scores.tolist())
            if at >= 0
        ]
        return tuple(
            replace(first[one], score=score, parts=tuple(parts[one])) for one, score in chosen
        )


def _columns(lists: Sequence[Sequence[Hit]]) -> dict[DocId, int]:
    """Every document that some list holds, numbered in order of first appearance."""
    seen: dict[DocId, int] = {}
    for hits in lists:
        for hit in hits:
            seen.setdefault(hit.doc_id, len(seen))
    return seen


def _scores(hits: Sequence[Hit]) -> list[float]:
    """The hits' scores; where a retriever gives none, the reciprocal of the rank stands for it."""
    if any(hit.score is None for hit in hits):
        return [1 / rank for rank in range(1, len(hits) + 1)]
    return [float(hit.score or 0) for hit in hits]


# --- rerank: Reranking: a slower, better judge reads the first hits of a fast retriever and puts them in a new order.

Floats = npt.NDArray[np.float64]


class RerankRetriever:
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
        self.depth, self.share = check_search([], depth), share

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = check_search(questions, k, filters)
        found = self.retriever.search(questions, k=max(k, self.depth), filters=filters)
        return [self._reordered(question, hits)[:k] for question, hits in zip(questions, found)]

    def _reordered(self, question: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        documents = self.store.get([hit.doc_id for hit in hits])
        standing = [
            (hit, searchable_text(document))
            for hit, document in zip(hits, documents)
            if document is not None
        ]
        held, rest = standing[: self.depth], [hit for hit, _ in standing[self.depth :]]
        if not held:
            return ()
        given = self._scores(question, [text for _, text in held])
        weighed = self._weighed(given, [hit for hit, _ in held])
        order = sorted(range(len(held)), key=lambda at: (held[at][0].relaxed, -weighed[at]))
        judged = [
            replace(
                held[at][0],
                score=float(weighed[at]),
                parts=(*held[at][0].parts, Part(self.name, float(given[at]))),
            )
            for at in order
        ]
        lowest = min(weighed)
        return cap_scores([*judged, *(replace(hit, score=float(lowest)) for hit in rest)])

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
        own = np.array(
            [hit.score if hit.score is not None else rank for hit, rank in zip(hits, ranks)],
            dtype=np.float64,
        )
        return self.share * _stretched(given) + (1 - self.share) * _stretched(own)


def _stretched(scores: Floats) -> Floats:
    """From 0 for the lowest to 1 for the highest; equal scores are all 1."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.ones_like(scores)
