"""How a collection is asked: several searches in one request, ties settled as every store of ours settles them.

The server ranks by score and knows nothing of our order among equals. So a few more than k are asked for, put in order by
rounded score and place, and asked for again, more of them, where the k-th still ties with the last one seen.
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
from suffice.types import DocId, Document, Field, Filter, Hit, RetrieverScore

__all__ = ["CollectionReader", "SearchRequest"]

EXTRA_HITS = 16  # hits asked for beyond k
MAX_TIES = 1_000  # of more equals than this the server's order decides which are kept
MAX_SEARCHES = 64  # searches in one request
PAGE_SIZE = 1_000
ID_FIELDS = ["id", "place"]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search: what the server is to compare with, and how exactly its scores are to be read."""

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

    def by_words(
        self, question: str, k: int, filter: Filter | None, facts: CollectionStats
    ) -> SearchRequest | None:
        numbers = question_terms(question)
        if not len(numbers):
            return None
        query = {"indices": numbers.tolist(), "values": facts.idf(numbers).tolist()}
        return SearchRequest("bm25", query, WORDS, 5, k, qdrant_filter(filter))

    def by_vector(self, vector: Any, k: int, filter: Filter | None) -> SearchRequest:
        return SearchRequest(
            "dense", np.asarray(vector).tolist(), DENSE, 6, k, qdrant_filter(filter)
        )

    def answer(
        self,
        asks: Sequence[SearchRequest | None],
        *,
        doc_ids: Sequence[DocId] = (),
        documents: bool = False,
    ) -> tuple[list[tuple[Hit, ...]], dict[DocId, Document]]:
        """The hits of each search (none for None), and the documents of all of them and of these ids where they are wanted."""
        found: list[tuple[Hit, ...]] = [()] * len(asks)
        known: dict[DocId, Document] = {}
        waiting = {at: ask.k + EXTRA_HITS for at, ask in enumerate(asks) if ask is not None}
        ids = list(dict.fromkeys(doc_ids))
        while waiting or ids:
            turns = list(waiting.items())
            wanted = [self._search(asks[at], limit, documents) for at, limit in turns]
            answers = self._query([*wanted, *([_ids_request(ids)] if ids else [])])
            if ids:
                known |= _documents(answers.pop())
                ids = []
            for (at, limit), points in zip(turns, answers):
                ask = asks[at]
                if ask is None:
                    continue
                if documents:
                    known |= _documents(points)
                hits = _rank(points, ask, limit)
                if hits is None:
                    waiting[at] = 4 * limit
                else:
                    found[at] = hits
                    del waiting[at]
        return found, known

    def _search(self, ask: SearchRequest | None, limit: int, documents: bool) -> dict[str, Any]:
        if ask is None:
            return {}
        return {
            "query": ask.query,
            "using": ask.using,
            "filter": ask.filter,
            "limit": limit,
            "with_payload": True if documents else ID_FIELDS,
            "params": {"exact": self._cluster.address.exact},
        }

    def get(self, doc_ids: Sequence[DocId]) -> dict[DocId, Document]:
        known: dict[DocId, Document] = {}
        for start in range(0, len(doc_ids), PAGE_SIZE):
            ids = [point_id(one) for one in doc_ids[start : start + PAGE_SIZE]]
            records = self._ask_reading(
                lambda client, how, ids=ids: client.retrieve(self._collection, ids, **how)
            )
            known |= _documents(records or [])
        return known

    def records(self, *, vectors: bool = False) -> Iterator[Any]:
        """All points in the order of insertion."""
        from qdrant_client import models

        start = 0
        while True:
            order = models.OrderBy(key="place", start_from=start)
            answer = self._ask_reading(
                lambda client, how, order=order: client.scroll(
                    self._collection,
                    order_by=order,
                    limit=PAGE_SIZE,
                    with_vectors=[DENSE] if vectors else False,
                    **how,
                )
            )
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
            answer = self._ask_reading(
                lambda client, how, limit=limit: client.facet(
                    self._collection, field, limit=limit, exact=True, **how
                )
            )
            hits = answer.hits if answer else []
            if len(hits) < limit:
                return {
                    str(one.value): one.count
                    for one in sorted(hits, key=lambda one: str(one.value))
                    if one.count
                }
            limit *= 16

    def _query(self, requests: Sequence[Mapping[str, Any]]) -> list[Any]:
        from qdrant_client import models

        answers: list[Any] = []
        for start in range(0, len(requests), MAX_SEARCHES):
            batch = [models.QueryRequest(**one) for one in requests[start : start + MAX_SEARCHES]]
            found = self._ask_reading(
                lambda client, how, batch=batch: client.query_batch_points(
                    self._collection, batch, **how
                )
            )
            answers += [one.points for one in found] if found else [[]] * len(batch)
        return answers

    def _ask_reading(self, what: Any) -> Any:
        """Read as consistently as the address says; None from a collection that is not there yet."""
        chosen = self._cluster.address.read_consistency
        how = {} if chosen is None else {"consistency": chosen}
        try:
            return self._cluster.ask(lambda client: what(client, how))
        except MissingCollectionError:
            return None


def _rank(points: Sequence[Any], ask: SearchRequest, limit: int) -> tuple[Hit, ...] | None:
    """The k best in our order; None where more have to be seen to know them."""
    ranked = sorted(
        (-round(point.score, ask.digits), point.payload["place"], point.payload["id"])
        for point in points
    )
    if (
        len(points) >= limit
        and len(ranked) < ask.k + MAX_TIES
        and ranked[-1][0] <= ranked[ask.k - 1][0]
    ):
        return None
    return tuple(
        Hit(doc_id, -score, (RetrieverScore(ask.name, -score),))
        for score, _, doc_id in ranked[: ask.k]
    )


def _documents(points: Sequence[Any]) -> dict[DocId, Document]:
    return {
        document.doc_id: document
        for document in (document_from_payload(point.payload) for point in points)
    }


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
