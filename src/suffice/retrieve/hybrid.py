"""Hybrid retrieval: several opinions about the same documents, fused into one ranking.

`SignalRetriever` fuses signals that score every document of a corpus in memory; `ListFusion` fuses the hit lists of other
retrievers, so it works on any store. Both use one table of fusions, and every hit says which parts found it with which score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, nearest
from suffice.ports import Retriever
from suffice.retrieve.corpus import Corpus, Mask
from suffice.retrieve.ranking import Ranked, Scores, Signal, blocks, checked, hits_of, masks_of, top_k
from suffice.types import DocId, Filter, Hit, Part

__all__ = ["FUSIONS", "Blend", "Fusion", "ListFusion", "SignalRetriever"]

# (parts, questions, columns) and one weight a part -> (questions, columns). nan: this part did not find that column.
Fusion = Callable[[Scores, npt.NDArray[np.float32]], Scores]
RANK_OFFSET = 60  # Cormack, Clarke and Büttcher's constant: it keeps one first place from outweighing two second places


def weighted_sum(parts: Scores, weights: npt.NDArray[np.float32]) -> Scores:
    """Each part divided by its highest score for the question, then summed by weight. What is not above zero adds nothing."""
    return _summed(weights, _by_highest(parts))


def convex(parts: Scores, weights: npt.NDArray[np.float32]) -> Scores:
    """Each part stretched from 0 (the lowest it found) to 1 (the highest), averaged by weight. A part's only find counts 1."""
    low, high = _range(parts)
    stretched = np.divide(parts - low, high - low, out=np.ones_like(parts), where=high > low)
    share = weights / (weights.sum() or 1)
    return _summed(share, np.where(np.isnan(parts), np.float32(0), stretched))


def reciprocal_rank(parts: Scores, weights: npt.NDArray[np.float32]) -> Scores:
    """The sum of weight / (60 + rank) over the parts that found it: only order counts, so scales need not agree."""
    order = np.argsort(-parts, axis=2, kind="stable")  # nan goes last
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(1, parts.shape[2] + 1), order.shape), axis=2)
    shares = weights[:, None, None] / (RANK_OFFSET + ranks.astype(np.float32))
    return np.asarray(np.where(np.isnan(parts), 0, shares).sum(axis=0), dtype=np.float32)


def highest(parts: Scores, weights: npt.NDArray[np.float32]) -> Scores:
    """The best weighted part, each divided by its highest score for the question: one strong opinion is enough."""
    return np.asarray((weights[:, None, None] * _by_highest(parts)).max(axis=0, initial=0), dtype=np.float32)


FUSIONS: dict[str, Fusion] = {
    "sum": weighted_sum,
    "convex": convex,
    "rrf": reciprocal_rank,
    "max": highest,
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


def _chosen(fusion: str, weights: Sequence[float] | None, parts: int) -> tuple[Fusion, npt.NDArray[np.float32]]:
    if fusion not in FUSIONS:
        raise InputError(f"no fusion is named {fusion!r}", hint=nearest(fusion, FUSIONS))
    if not parts:
        raise InputError("nothing to fuse", hint="give at least one signal or retriever")
    chosen = np.ones(parts, np.float32) if weights is None else np.asarray(weights, np.float32)
    if chosen.shape != (parts,) or not np.isfinite(chosen).all() or (chosen < 0).any():
        raise InputError(f"weights are {weights!r}, expected {parts} numbers of at least 0, one a part")
    return FUSIONS[fusion], chosen


class SignalRetriever:
    """Ranks a whole corpus by one signal, or by several fused. A document that no signal scores above zero is no hit.

    A single signal keeps its own scale; fusing rescales.
    """

    def __init__(
        self, corpus: Corpus, signals: Sequence[Signal], *, weights: Sequence[float] | None = None, fusion: str = "sum"
    ) -> None:
        self.corpus, self.signals = corpus, tuple(signals)
        self._fuse, self._weights = _chosen(fusion, weights, len(self.signals))
        if len({signal.name for signal in self.signals}) < len(self.signals):
            raise InputError(f"two signals have one name: {[signal.name for signal in self.signals]}")

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = checked(questions, k, filters)
        found: list[tuple[Hit, ...]] = []
        for block in blocks(questions, len(self.corpus) * len(self.signals)):
            parts = {signal.name: signal.scores(questions[block]) for signal in self.signals}
            masks = masks_of(self.corpus, filters and filters[block])
            found += hits_of(self._ranked(list(parts.values()), k, masks), self.corpus.ids, parts)
        return found

    def _ranked(self, parts: list[Scores], k: int, masks: Mask | None) -> Ranked:
        if len(parts) == 1:
            return top_k(parts[0], k, masks, above=0.0)
        stacked = np.stack(parts)
        positive = stacked > 0
        somewhere = np.asarray(positive.any(axis=0))
        fused = self._fuse(np.where(positive, stacked, np.float32(np.nan)), self._weights)
        return top_k(fused, k, somewhere if masks is None else somewhere & masks)


class Blend:
    """Several signals as one: the weighted sum of each divided by its highest score for the question."""

    def __init__(self, signals: Sequence[Signal], *, weights: Sequence[float], name: str = "blend") -> None:
        self.name, self.signals = name, tuple(signals)
        _, self._weights = _chosen("sum", weights, len(self.signals))

    def scores(self, questions: Sequence[str]) -> Scores:
        """(questions, documents), from 0 to the sum of the weights; 0 where no signal finds the document."""
        return weighted_sum(np.stack([signal.scores(questions) for signal in self.signals]), self._weights)


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
        self.depth = checked([], depth)
        self._fuse, self._weights = _chosen(fusion, weights, len(self.retrievers))

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = checked(questions, k, filters)
        deep = max(k, self.depth)
        lists = [one.search(questions, k=deep, filters=filters) for one in self.retrievers.values()]
        columns = [_columns([found[at] for found in lists]) for at in range(len(questions))]
        # The last column stands for all documents that a retriever could have listed and did not: they score 0. Without it
        # the weakest of three hits would count as little as no hit.
        parts = np.full((len(lists), len(questions), max(map(len, columns), default=0) + 1), np.nan, np.float32)
        for part, found in enumerate(lists):
            for row, hits in enumerate(found):
                parts[part, row, [columns[row][hit.doc_id] for hit in hits]] = _scores(hits)
                parts[part, row, -1] = 0 if len(hits) < deep else np.nan
        fused = self._fuse(parts, self._weights)[:, :-1]
        ranked = top_k(fused, k, np.asarray((~np.isnan(parts[:, :, :-1])).any(axis=0)))
        return [
            self._hits([found[row] for found in lists], list(columns[row]), ranked.positions[row], ranked.scores[row])
            for row in range(len(questions))
        ]

    def _hits(
        self, lists: Sequence[Sequence[Hit]], ids: Sequence[DocId], positions: npt.NDArray[np.intp], scores: Scores
    ) -> tuple[Hit, ...]:
        first: dict[DocId, Hit] = {}
        parts: dict[DocId, list[Part]] = {}
        for name, hits in zip(self.retrievers, lists):
            for hit, score in zip(hits, _scores(hits)):
                first.setdefault(hit.doc_id, hit)
                parts.setdefault(hit.doc_id, []).append(Part(name, float(score)))
        chosen = [(ids[at], float(score)) for at, score in zip(positions.tolist(), scores.tolist()) if at >= 0]
        return tuple(replace(first[one], score=score, parts=tuple(parts[one])) for one, score in chosen)


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
