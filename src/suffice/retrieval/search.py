"""Search a store by words or by vectors, rank by several scores, and rerank the first hits.

`TextSearch` and `VectorSearch` query the store. `SignalRetriever` fuses signals over a corpus in
memory. `ListFusion` fuses the hit lists of other retrievers, so it works on any store.
`RerankRetriever` lets a slower model reorder the first hits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, ModelError, did_you_mean
from suffice.protocols import Encoder, Reranker, Retriever, Store, StoreQuery
from suffice.retrieval.corpus import Corpus, Mask, searchable_text
from suffice.retrieval.ranking import (
    Filters,
    HitLists,
    Ranking,
    Scores,
    Signal,
    cap_scores,
    check_depth,
    check_search,
    filter_masks,
    make_hits,
    name_parts,
    question_blocks,
    top_k,
)
from suffice.retrieval.store_checks import check_query_vectors
from suffice.types import DocId, Hit, RetrieverScore

Floats = npt.NDArray[np.float64]
# (parts, questions, columns) and a weight for each part -> (questions, columns). nan: this part did
# not find that column.
Fusion = Callable[[Scores, Scores], Scores]
# Static vectors are weaker than words; docs/decisions/0004-lexical.md has the figures. Give a
# stronger encoder a higher weight.
BM25_AND_DENSE = (0.7, 0.3)
RANK_OFFSET = 60  # from Cormack, Clarke and Büttcher: two second places outweigh one first place


def weighted_sum(parts: Scores, weights: Scores) -> Scores:
    """The weighted sum of the parts, each divided by its highest score for the question."""
    return _sum_parts(weights, _divide_by_highest(parts))


def convex_combination(parts: Scores, weights: Scores) -> Scores:
    """The weighted mean of the parts, each scaled from 0 (lowest) to 1 (highest, or only)."""
    missing = np.isnan(parts)
    low = np.where(missing, np.inf, parts).min(axis=2, keepdims=True, initial=np.inf)
    high = np.where(missing, -np.inf, parts).max(axis=2, keepdims=True, initial=-np.inf)
    empty = low > high
    low, high = np.where(empty, 0, low), np.where(empty, 0, high)
    stretched = np.divide(parts - low, high - low, out=np.ones_like(parts), where=high > low)
    return _sum_parts(weights / (weights.sum() or 1), np.where(missing, np.float32(0), stretched))


def reciprocal_rank(parts: Scores, weights: Scores) -> Scores:
    """The sum of weight / (60 + rank) over the parts that found it. Only the order counts."""
    order = np.argsort(-parts, axis=2, kind="stable")  # nan goes last
    ranks = np.empty_like(order)
    in_order = np.broadcast_to(np.arange(1, parts.shape[2] + 1), order.shape)
    np.put_along_axis(ranks, order, in_order, axis=2)
    shares = weights[:, None, None] / (RANK_OFFSET + ranks.astype(np.float32))
    return np.asarray(np.where(np.isnan(parts), 0, shares).sum(axis=0), dtype=np.float32)


def maximum(parts: Scores, weights: Scores) -> Scores:
    """The best weighted part, each divided by its highest score for the question."""
    weighted = weights[:, None, None] * _divide_by_highest(parts)
    return np.asarray(weighted.max(axis=0, initial=0), dtype=np.float32)


FUSIONS: dict[str, Fusion] = {
    "sum": weighted_sum,
    "convex": convex_combination,
    "rrf": reciprocal_rank,
    "max": maximum,
}


def _divide_by_highest(parts: Scores) -> Scores:
    found = np.where(parts > 0, parts, np.float32(0))
    top = found.max(axis=2, keepdims=True, initial=0)
    np.divide(found, top, out=found, where=top > 0)
    return found


def _sum_parts(weights: Scores, parts: Scores) -> Scores:
    return np.asarray(np.einsum("p,pqc->qc", weights, parts), dtype=np.float32)


def check_fusion(fusion: str, weights: Sequence[float] | None, parts: int) -> tuple[Fusion, Scores]:
    """The fusion of this name and its weights as an array; InputError if they are invalid."""
    if fusion not in FUSIONS:
        raise InputError(f"no fusion is named {fusion!r}", hint=did_you_mean(fusion, FUSIONS))
    if not parts:
        raise InputError("nothing to fuse", hint="give at least one signal or retriever")
    array = np.ones(parts, np.float32) if weights is None else np.asarray(weights, np.float32)
    if array.shape != (parts,) or not np.isfinite(array).all() or (array < 0).any():
        raise InputError(
            f"weights are {weights!r}, expected {parts} numbers of at least 0, one a part"
        )
    return FUSIONS[fusion], array


@dataclass(eq=False)
class TextSearch:
    """BM25 as the store computes it: for corpora on disk or on other machines."""

    store: Store
    name: str = "bm25"

    def search(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        k = check_search(questions, k, filters)
        return name_parts(self.name, self.store.search_text(questions, k=k, filters=filters))


class VectorSearch:
    """Nearest neighbours of the question's vector; a question without words has no hits."""

    def __init__(self, store: Store, encoder: Encoder, *, name: str = "dense") -> None:
        self.store, self.encoder, self.name = store, encoder, name

    def search(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        k = check_search(questions, k, filters)
        queries = self.queries(questions, k=k, filters=filters or [None] * len(questions))
        known = [at for at, one in enumerate(queries) if one.vector is not None]
        hits: HitLists = [()] * len(questions)
        if known:
            vectors = np.stack([np.asarray(queries[at].vector) for at in known])
            passing = None if filters is None else [filters[at] for at in known]
            found = self.store.search_vectors(vectors, k=k, filters=passing)
            for at, one in zip(known, name_parts(self.name, found)):
                hits[at] = one
        return hits

    def queries(self, questions: Sequence[str], *, k: int, filters: Filters) -> list[StoreQuery]:
        """The same as store queries, to be sent together with others."""
        if not questions:
            return []
        given = self.encoder.encode(questions, query=True)
        vectors = check_query_vectors(given, dimension=None)
        if len(vectors) != len(questions):
            problem = f"the encoder gave {len(vectors)} vectors for {len(questions)} questions"
            raise InputError(problem, hint="check the encoder's output")
        return [
            StoreQuery(
                k, vector=vector if question.strip() and vector.any() else None, filter=filter
            )
            for question, vector, filter in zip(questions, vectors, filters or ())
        ]


class SignalRetriever:
    """Ranks a whole corpus by one signal, or by several fused.

    A document that no signal scores above zero is not a hit. A single signal keeps its own scale.
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
        self._fuse, self._weights = check_fusion(fusion, weights, len(self.signals))
        names = [signal.name for signal in self.signals]
        if len(set(names)) < len(names):
            raise InputError(f"two signals have one name: {names}")

    def search(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        k = check_search(questions, k, filters)
        hits: HitLists = []
        for block in question_blocks(questions, len(self.corpus) * len(self.signals)):
            parts = {signal.name: signal.scores(questions[block]) for signal in self.signals}
            masks = filter_masks(self.corpus, filters and filters[block])
            ranking = self._rank(list(parts.values()), k, masks)
            hits += make_hits(ranking, self.corpus.ids, parts)
        return hits

    def _rank(self, parts: list[Scores], k: int, masks: Mask | None) -> Ranking:
        if len(parts) == 1:
            return top_k(parts[0], k, masks, above=0.0)
        stacked = np.stack(parts)
        positive = stacked > 0
        found = np.asarray(positive.any(axis=0))
        fused = self._fuse(np.where(positive, stacked, np.float32(np.nan)), self._weights)
        return top_k(fused, k, found if masks is None else found & masks)


class ListFusion:
    """Fuses the first `depth` hits of several retrievers. Ties go to the earlier retriever."""

    def __init__(
        self,
        retrievers: Mapping[str, Retriever],
        *,
        weights: Sequence[float] | None = None,
        fusion: str = "rrf",
        depth: int = 100,
    ) -> None:
        self.retrievers = dict(retrievers)
        self.depth = check_depth(depth)
        self._fuse, self._weights = check_fusion(fusion, weights, len(self.retrievers))

    def search(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        k = check_search(questions, k, filters)
        depth = max(k, self.depth)
        lists = [
            one.search(questions, k=depth, filters=filters) for one in self.retrievers.values()
        ]
        columns: list[dict[DocId, int]] = [{} for _ in questions]  # in order of first appearance
        for found in lists:
            for column, hits in zip(columns, found):
                for hit in hits:
                    column.setdefault(hit.doc_id, len(column))
        # The last column stands for all documents that a retriever could have listed but did not:
        # they score 0. Without it, the weakest of three hits would count no more than a missing
        # one.
        width = max(map(len, columns), default=0) + 1
        parts = np.full((len(lists), len(questions), width), np.nan, np.float32)
        for part, found in enumerate(lists):
            for row, hits in enumerate(found):
                parts[part, row, [columns[row][hit.doc_id] for hit in hits]] = _list_scores(hits)
                parts[part, row, -1] = 0 if len(hits) < depth else np.nan
        fused = self._fuse(parts, self._weights)[:, :-1]
        listed = np.asarray((~np.isnan(parts[:, :, :-1])).any(axis=0))
        ranking = top_k(fused, k, listed)
        merged: HitLists = []
        for row, column in enumerate(columns):
            by_id, ids = self._join([found[row] for found in lists]), list(column)
            best = zip(ranking.positions[row].tolist(), ranking.scores[row].tolist())
            merged.append(
                tuple(replace(by_id[ids[at]], score=score) for at, score in best if at >= 0)
            )
        return merged

    def _join(self, lists: Sequence[Sequence[Hit]]) -> dict[DocId, Hit]:
        """Each document's first hit, with its score in every list as a part."""
        first: dict[DocId, Hit] = {}
        parts: dict[DocId, list[RetrieverScore]] = {}
        for name, hits in zip(self.retrievers, lists):
            for hit, score in zip(hits, _list_scores(hits)):
                first.setdefault(hit.doc_id, hit)
                parts.setdefault(hit.doc_id, []).append(RetrieverScore(name, float(score)))
        return {doc_id: replace(hit, parts=tuple(parts[doc_id])) for doc_id, hit in first.items()}


def _list_scores(hits: Sequence[Hit]) -> list[float]:
    """The hits' scores; the reciprocal rank if a retriever gives none."""
    if any(hit.score is None for hit in hits):
        return [1 / rank for rank in range(1, len(hits) + 1)]
    return [float(hit.score or 0) for hit in hits]


@dataclass(eq=False)
class RerankRetriever:
    """The first `depth` hits of a retriever, in the reranker's order. Ties keep their order.

    With k above `depth`, the rest follow as the retriever ranked them. Hits whose document is no
    longer in the store are dropped. Hits that relax a filter stay behind those that pass it.

    With `share` below 1, the score is a weighted mean: `share` of the reranker's, the rest of the
    retriever's, both scaled from 0 to 1. A reranker reads each text alone, so several copies of the
    best report may push out a second one that the question needs: see decision 14.
    """

    retriever: Retriever
    reranker: Reranker
    store: Store
    _: KW_ONLY
    depth: int = 20
    share: float = 1.0
    name: str = "rerank"

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InputError(f"share is {self.share}, expected a number from 0 to 1")
        self.depth = check_depth(self.depth)

    @property
    def chooses_sets(self) -> bool:
        return getattr(self.retriever, "chooses_sets", False)

    def search(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        k = check_search(questions, k, filters)
        found = self.retriever.search(questions, k=max(k, self.depth), filters=filters)
        return [self._reorder(question, hits)[:k] for question, hits in zip(questions, found)]

    def _reorder(self, question: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        documents = self.store.get([hit.doc_id for hit in hits])
        known = [(hit, one) for hit, one in zip(hits, documents) if one is not None]
        if not known:
            return ()
        first, rest = [hit for hit, _ in known[: self.depth]], known[self.depth :]
        texts = [searchable_text(document) for _, document in known[: self.depth]]
        judged = self._judge(question, texts)
        scores = self._mix(judged, first)
        order = sorted(range(len(first)), key=lambda at: (first[at].relaxed, -scores[at]))
        reordered = [
            replace(
                first[at],
                score=float(scores[at]),
                parts=(*first[at].parts, RetrieverScore(self.name, float(judged[at]))),
            )
            for at in order
        ]
        lowest = float(min(scores))
        return cap_scores([*reordered, *(replace(hit, score=lowest) for hit, _ in rest)])

    def _judge(self, question: str, texts: Sequence[str]) -> Floats:
        scores = np.asarray(self.reranker.score(question, texts), dtype=np.float64)
        if scores.shape != (len(texts),) or np.isnan(scores).any():
            raise ModelError(
                f"the reranker gave scores of shape {scores.shape} "
                f"(nan: {np.isnan(scores).sum()}) for {len(texts)} texts",
                hint="a Reranker returns one number a text",
            )
        return scores

    def _mix(self, judged: Floats, hits: Sequence[Hit]) -> Floats:
        if self.share == 1.0:
            return judged
        own = [1 / rank if hit.score is None else hit.score for rank, hit in enumerate(hits, 1)]
        return self.share * _stretch(judged) + (1 - self.share) * _stretch(np.array(own, float))


def _stretch(scores: Floats) -> Floats:
    """Scale from 0 for the lowest to 1 for the highest; equal scores are all 1."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.ones_like(scores)
