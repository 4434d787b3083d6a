"""Searches in a collection: several in one request, with ties broken as in every other store.

The server does not know our order among equal scores. So we request a few more than k hits and sort
them by rounded score and place, and request more while the k-th still ties with the last one seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.engines.qdrant.collection_stats import CollectionStats
from suffice.engines.qdrant.connection import MissingCollectionError, QdrantCluster
from suffice.engines.qdrant.schema import (
    DENSE,
    WORDS,
    document_from_payload,
    point_id,
    qdrant_filter,
)
from suffice.engines.qdrant.sparse_bm25 import question_terms
from suffice.retrieval.ranking import Filters, HitLists, check_search
from suffice.retrieval.store_checks import check_filters, check_query_vectors
from suffice.types import DocId, Document, Field, Hit, RetrieverScore

__all__ = ["CollectionReader", "SearchRequest"]

EXTRA_HITS = 16  # requested beyond k
MAX_TIES = 1_000  # with more equal scores, the server's order decides
MAX_SEARCHES = 64  # in one request
PAGE_SIZE = 1_000
ID_FIELDS = ["id", "place"]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search: the vector to compare with, and to how many digits scores are rounded."""

    name: str  # of the part in a hit
    query: Any
    using: str
    digits: int
    k: int
    filter: Mapping[str, Any] | None


class CollectionReader:
    """Searches and look-ups in one collection, by its name or alias."""

    def __init__(self, cluster: QdrantCluster, collection: str) -> None:
        self._cluster, self._collection = cluster, collection

    def text_requests(
        self, questions: Sequence[str], k: int, filters: Filters, stats: CollectionStats
    ) -> list[SearchRequest | None]:
        """A request for each question; None if it has no words to search for."""
        k = min(check_search(questions, k, filters), max(stats.header.documents, 1))
        requests: list[SearchRequest | None] = []
        wanted = check_filters(filters) or [None] * len(questions)
        for ids, filter in zip(map(question_terms, questions), wanted):
            query = {"indices": ids.tolist(), "values": stats.idf(ids).tolist()}
            request = SearchRequest("bm25", query, WORDS, 5, k, qdrant_filter(filter))
            requests.append(request if len(ids) else None)
        return requests

    def vector_requests(
        self, vectors: Any, k: int, filters: Filters, stats: CollectionStats
    ) -> list[SearchRequest | None]:
        """A request for each vector; all None if the collection has no vectors."""
        dimension = stats.header.dimension
        queries = check_query_vectors(vectors, dimension=dimension or None)
        k = min(check_search([""] * len(queries), k, filters), max(stats.header.documents, 1))
        wanted = check_filters(filters) or [None] * len(queries)
        if not dimension:
            return [None] * len(queries)
        return [
            SearchRequest("dense", np.asarray(one).tolist(), DENSE, 6, k, qdrant_filter(filter))
            for one, filter in zip(queries, wanted)
        ]

    def answer(
        self,
        requests: Sequence[SearchRequest | None],
        *,
        doc_ids: Sequence[DocId] = (),
        documents: bool = False,
    ) -> tuple[HitLists, dict[DocId, Document]]:
        """The hits of each request (none for None), and the documents of these ids.

        With `documents`, also the documents of all hits.
        """
        found: HitLists = [()] * len(requests)
        known: dict[DocId, Document] = {}
        waiting = {at: (one, one.k + EXTRA_HITS) for at, one in enumerate(requests) if one}
        ids = list(dict.fromkeys(doc_ids))
        while waiting or ids:
            searches = [self._search(*one, documents) for one in waiting.values()]
            answers = self._query([*searches, *([_ids_request(ids)] if ids else [])])
            if ids:
                known |= _documents(answers.pop())
                ids = []
            for (at, (request, limit)), points in zip(list(waiting.items()), answers):
                if documents:
                    known |= _documents(points)
                hits = _rank(points, request, limit)
                if hits is None:
                    waiting[at] = request, 4 * limit
                else:
                    found[at] = hits
                    del waiting[at]
        return found, known

    def _search(self, request: SearchRequest, limit: int, documents: bool) -> dict[str, Any]:
        return {
            "query": request.query,
            "using": request.using,
            "filter": request.filter,
            "limit": limit,
            "with_payload": True if documents else ID_FIELDS,
            "params": {"exact": self._cluster.address.exact},
        }

    def get(self, doc_ids: Sequence[DocId]) -> dict[DocId, Document]:
        known: dict[DocId, Document] = {}
        for start in range(0, len(doc_ids), PAGE_SIZE):
            ids = [point_id(one) for one in doc_ids[start : start + PAGE_SIZE]]
            known |= _documents(self._read("retrieve", ids) or [])
        return known

    def records(self, *, vectors: bool = False) -> Iterator[Any]:
        """All points in insertion order."""
        from qdrant_client import models

        start, with_vectors = 0, [DENSE] if vectors else False
        while True:
            order = models.OrderBy(key="place", start_from=start)
            page = {"order_by": order, "limit": PAGE_SIZE, "with_vectors": with_vectors}
            answer = self._read("scroll", **page)
            records = answer[0] if answer else []
            yield from records
            if len(records) < PAGE_SIZE:
                return
            start = records[-1].payload["place"] + 1

    def lookup(self, field: Field, values: Sequence[str]) -> list[tuple[DocId, ...]]:
        found: list[list[DocId]] = [[] for _ in values]
        waiting = dict.fromkeys(range(len(values)), 0)
        while waiting:
            turns = list(waiting.items())
            answers = self._query([_value_request(field, values[at], start) for at, start in turns])
            for (at, _), points in zip(turns, answers):
                found[at] += [point.payload["id"] for point in points]
                if len(points) < PAGE_SIZE:
                    del waiting[at]
                else:
                    waiting[at] = points[-1].payload["place"] + 1
        return [tuple(one) for one in found]

    def values(self, field: Field) -> dict[str, int]:
        limit = PAGE_SIZE
        while True:
            answer = self._read("facet", field, limit=limit, exact=True)
            hits = answer.hits if answer else []
            if len(hits) < limit:
                counts = sorted((str(one.value), one.count) for one in hits)
                return {value: count for value, count in counts if count}
            limit *= 16

    def _query(self, requests: Sequence[Mapping[str, Any]]) -> list[Any]:
        from qdrant_client import models

        answers: list[Any] = []
        for start in range(0, len(requests), MAX_SEARCHES):
            chosen = requests[start : start + MAX_SEARCHES]
            batch = [models.QueryRequest(**one) for one in chosen]
            found = self._read("query_batch_points", batch)
            answers += [one.points for one in found] if found else [[]] * len(batch)
        return answers

    def _read(self, method: str, *given: Any, **options: Any) -> Any:
        """Call the client with the read consistency of the address; None without a collection."""
        if (consistency := self._cluster.address.read_consistency) is not None:
            options["consistency"] = consistency
        try:
            return self._cluster.ask(
                lambda client: getattr(client, method)(self._collection, *given, **options)
            )
        except MissingCollectionError:
            return None


def _rank(points: Sequence[Any], request: SearchRequest, limit: int) -> tuple[Hit, ...] | None:
    """The k best in our order; None if more points are needed to determine them."""
    k, ranked = request.k, []
    for point in points:
        score = round(point.score, request.digits)
        ranked.append((-score, point.payload["place"], point.payload["id"]))
    ranked.sort()
    if len(points) >= limit and len(ranked) < k + MAX_TIES and ranked[-1][0] <= ranked[k - 1][0]:
        return None
    return tuple(
        Hit(one, -score, (RetrieverScore(request.name, -score),)) for score, _, one in ranked[:k]
    )


def _documents(points: Sequence[Any]) -> dict[DocId, Document]:
    documents = [document_from_payload(point.payload) for point in points]
    return {document.doc_id: document for document in documents}


def _ids_request(doc_ids: Sequence[DocId]) -> dict[str, Any]:
    ids = [point_id(one) for one in doc_ids]
    return {"filter": {"must": [{"has_id": ids}]}, "limit": len(ids), "with_payload": True}


def _value_request(field: Field, value: str, start: int) -> dict[str, Any]:
    return {
        "query": {"order_by": {"key": "place", "start_from": start}},
        "filter": {"must": [{"key": field, "match": {"value": value}}]},
        "limit": PAGE_SIZE,
        "with_payload": ID_FIELDS,
    }
