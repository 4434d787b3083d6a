"""How documents come into a collection and leave it: in batches that may be sent twice, with the facts kept in step.

Places, lengths and word frequencies change with the documents. A writer says in the head that it writes, before its first
batch, and publishes the next generation after its last; one that dies between leaves the mark, and the next counts anew.
One writer at a time: the cluster has no lock to hold another off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.qdrant.collection_stats import (
    PAGE_COUNT,
    CollectionStats,
    DocumentFrequencies,
    StatsChange,
    page_points,
)
from suffice.engines.qdrant.connection import QdrantCluster
from suffice.engines.qdrant.schema import (
    DENSE,
    WORDS,
    CollectionNames,
    payload_from_document,
    point_id,
)
from suffice.engines.qdrant.sparse_bm25 import (
    TermIds,
    bm25_weights,
    counts_from_weights,
    document_terms,
)
from suffice.types import DocId, Document

__all__ = ["CollectionWriter", "EncodedDocument"]

MEAN_DRIFT = 0.01  # how far the mean length may move before the weights are made anew
# The first batch says little of the mean. While few documents are in, making their weights anew costs little; at the end of a
# long write it would cost as much as the write. After so many of a new collection the mean is looked at more closely, and also
# at the end of a write where there are no more than that.
EARLY, EARLY_DRIFT = (2_000, 16_000), 0.0025
PAGE_BYTES = 8_000_000  # of facts in one request
PAGE_SIZE = 1_000

Vector = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """A document on its way in, with its vector where it has one."""

    document: Document
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class _StoredTerms:
    """What a stored point says of the facts."""

    id: Any
    place: int
    length: int
    numbers: TermIds
    weights: Vector


class CollectionWriter:
    """One write: any number of `put` and `delete`, then `publish`. A `fresh` collection is one that nobody else sees yet."""

    def __init__(
        self,
        cluster: QdrantCluster,
        pair: CollectionNames,
        facts: CollectionStats,
        *,
        fresh: bool = False,
    ) -> None:
        self._cluster, self._pair, self._fresh = cluster, pair, fresh
        self.facts, self._head, self._change = facts, facts.head, StatsChange()
        self._begun = False
        self._early = [] if facts.head.documents else list(EARLY)

    @property
    def begun(self) -> bool:
        """Whether anything was changed."""
        return self._begun

    def put(self, rows: Sequence[EncodedDocument]) -> None:
        """Add or replace documents, each id once; they are durable when this returns."""
        self._begin()
        words = [document_terms(row.document) for row in rows]
        if not self._head.mean:
            self._head = replace(
                self._head, mean=max(float(np.mean([one.length for one in words])), 1.0)
            )
        ids = [point_id(row.document.doc_id) for row in rows]
        held = {one.id: one for one in self._held(ids)} if self._head.places else {}
        points = []
        for row, one, id in zip(rows, words, ids):
            old = held.get(id)
            if old is None:
                place = self._head.places
                self._head = replace(self._head, places=place + 1)
            else:
                place = old.place
                self._change.count(old.numbers, old.length, -1)
            self._change.count(one.numbers, one.length, 1)
            vector: dict[str, Any] = {} if row.vector is None else {DENSE: row.vector.tolist()}
            if len(one.numbers):
                vector[WORDS] = _sparse_vector(
                    one.numbers, bm25_weights(one.counts, one.length, self._head.mean)
                )
            points.append(
                {
                    "id": id,
                    "payload": payload_from_document(row.document, place, one.length),
                    "vector": vector,
                }
            )
        self._upsert(self._pair.documents, points)
        if self._early and self._change.documents >= self._early[0]:
            self._early = [one for one in self._early if one > self._change.documents]
            self._follow_mean(self._change.words, self._change.documents, EARLY_DRIFT)

    def delete(self, doc_ids: Sequence[DocId]) -> int:
        held = list(self._held([point_id(one) for one in doc_ids]))
        if held:
            self._begin()
            ids = [one.id for one in held]
            self._cluster.ask(lambda client: client.delete(self._pair.documents, ids, wait=True))
            for one in held:
                self._change.count(one.numbers, one.length, -1)
        return len(held)

    def publish(self) -> CollectionStats:
        """Make the changes the next generation."""
        facts, pages = self._change.apply(self.facts, self._head)
        if facts.head.documents:
            few = facts.head.documents <= EARLY[-1]
            self._follow_mean(
                facts.head.words, facts.head.documents, EARLY_DRIFT if few else MEAN_DRIFT
            )
        head = replace(
            facts.head,
            mean=self._head.mean,
            generation=self.facts.head.generation + 1,
            writing=False,
        )
        return self._write(
            CollectionStats(head, facts.frequencies),
            range(1, PAGE_COUNT + 1) if self._fresh else pages,
        )

    def count_anew(self) -> None:
        """The facts from the documents themselves: after a writer that did not come to its end."""
        self._change, places = StatsChange(), 0
        for one in self._all():
            self._change.count(one.numbers, one.length, 1)
            places = max(places, one.place + 1)
        head = replace(self._head, documents=0, words=0, places=places)
        facts, _ = self._change.apply(CollectionStats(head, DocumentFrequencies.none()), head)
        self._head, self._change = facts.head, StatsChange()
        self.facts = self._write(facts, range(1, PAGE_COUNT + 1))

    # ---------------------------------------------------------------------------------------------------- requests

    def _begin(self) -> None:
        if not self._begun and not self._fresh:
            self._upsert(self._pair.facts, [replace(self._head, writing=True).as_point()])
        self._begun = True

    def _write(self, facts: CollectionStats, pages: Any) -> CollectionStats:
        """Pages first and the head with the last of them: a head never promises what is not there."""
        batch: list[dict[str, Any]] = []
        size = 0
        for point in page_points(facts, pages):
            batch.append(point)
            size += len(point["payload"]["numbers"]) + len(point["payload"]["counts"])
            if size > PAGE_BYTES:
                self._upsert(self._pair.facts, batch)
                batch, size = [], 0
        self._upsert(self._pair.facts, [*batch, facts.head.as_point()])
        return facts

    def _upsert(self, collection: str, points: list[dict[str, Any]]) -> None:
        from qdrant_client import models

        made = [models.PointStruct(**one) for one in points]
        self._cluster.ask(lambda client: client.upsert(collection, made, wait=True))

    def _held(self, ids: Sequence[str]) -> Iterator[_StoredTerms]:
        if ids:
            records = self._cluster.ask(
                lambda client: client.retrieve(
                    self._pair.documents,
                    ids,
                    with_payload=["place", "length"],
                    with_vectors=[WORDS],
                )
            )
            yield from map(_stored_terms, records)

    def _all(self) -> Iterator[_StoredTerms]:
        offset: Any = None
        while True:
            records, offset = self._cluster.ask(
                lambda client, offset=offset: client.scroll(  # type: ignore[misc]
                    self._pair.documents,
                    limit=PAGE_SIZE,
                    offset=offset,
                    with_payload=["place", "length"],
                    with_vectors=[WORDS],
                )
            )
            yield from map(_stored_terms, records)
            if offset is None:
                return

    def _follow_mean(self, words: int, documents: int, drift: float) -> None:
        mean = max(words / documents, 1.0)
        if abs(mean / self._head.mean - 1) > drift:
            self._weigh_anew(mean)

    def _weigh_anew(self, mean: float) -> None:
        """Every document's weights for another mean length, from the weights themselves: the text is not needed."""
        from qdrant_client import models

        batch: list[Any] = []
        for one in self._all():
            if len(one.numbers):
                counts = counts_from_weights(one.weights, one.length, self._head.mean)
                vector: Any = {
                    WORDS: _sparse_vector(one.numbers, bm25_weights(counts, one.length, mean))
                }
                batch.append(models.PointVectors(id=one.id, vector=vector))
            if len(batch) >= PAGE_SIZE:
                self._update(batch)
                batch = []
        self._update(batch)
        self._head = replace(self._head, mean=mean)

    def _update(self, batch: list[Any]) -> None:
        if batch:
            self._cluster.ask(
                lambda client: client.update_vectors(self._pair.documents, batch, wait=True)
            )


def _sparse_vector(numbers: TermIds, values: Vector) -> dict[str, Any]:
    return {"indices": numbers.tolist(), "values": values.tolist()}


def _stored_terms(record: Any) -> _StoredTerms:
    words = (record.vector or {}).get(WORDS) if isinstance(record.vector, dict) else None
    numbers = np.array(words.indices if words else [], dtype=np.uint32)
    values = np.array(words.values if words else [], dtype=np.float64)
    order = np.argsort(numbers)
    return _StoredTerms(
        str(record.id),
        record.payload["place"],
        record.payload["length"],
        numbers[order],
        values[order],
    )
