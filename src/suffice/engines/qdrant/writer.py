"""Add and remove documents of a collection, in batches that may be sent twice, with statistics.

A writer marks the header as being written before its first batch and publishes the next generation
after its last. If it dies in between, the mark stays and the next writer counts everything again.
Only one writer at a time: the cluster has no lock to enforce this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.qdrant.collection_stats import PAGE_COUNT, CollectionStats, StatsChange
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

MEAN_DRIFT = 0.01  # how far the mean length may move before the weights are updated
# The first batch says little about the mean. Updating weights is cheap while there are few
# documents, and costs as much as the write at its end. So the mean is checked more strictly after
# these numbers of documents of a new collection, and at the end of a write if there are no more
# than that.
EARLY, EARLY_DRIFT = (2_000, 16_000), 0.0025
PAGE_BYTES = 8_000_000  # of statistics per request
PAGE_SIZE = 1_000
ALL_PAGES = range(1, PAGE_COUNT + 1)

Vector = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """A document to store, with its vector if it has one."""

    document: Document
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class _StoredTerms:
    """What a stored point contributes to the statistics."""

    id: Any
    place: int
    length: int
    ids: TermIds
    weights: Vector


class CollectionWriter:
    """One write: any number of `put` and `delete`, then `publish`.

    A `fresh` collection is not visible to others yet.
    """

    def __init__(
        self,
        cluster: QdrantCluster,
        names: CollectionNames,
        stats: CollectionStats,
        *,
        fresh: bool = False,
    ) -> None:
        self._cluster, self._names, self._fresh = cluster, names, fresh
        self.stats, self._header, self._change = stats, stats.header, StatsChange()
        self.begun = False  # whether anything was changed
        self._early = [] if stats.header.documents else list(EARLY)

    def put(self, documents: Sequence[EncodedDocument]) -> None:
        """Add or replace documents with distinct ids; durable on return."""
        self._begin()
        terms = [document_terms(one.document) for one in documents]
        if not self._header.mean:
            mean = float(np.mean([one.length for one in terms]))
            self._header = replace(self._header, mean=max(mean, 1.0))
        ids = [point_id(one.document.doc_id) for one in documents]
        stored = {one.id: one for one in self._stored(ids)} if self._header.places else {}
        points = []
        for id, new, encoded in zip(ids, terms, documents):
            if (old := stored.get(id)) is None:
                place = self._header.places
                self._header = replace(self._header, places=place + 1)
            else:
                place = old.place
                self._change.count(old.ids, old.length, -1)
            self._change.count(new.ids, new.length, 1)
            vector: dict[str, Any] = {}
            if encoded.vector is not None:
                vector[DENSE] = encoded.vector.tolist()
            if len(new.ids):
                weights = bm25_weights(new.counts, new.length, self._header.mean)
                vector[WORDS] = _sparse_vector(new.ids, weights)
            payload = payload_from_document(encoded.document, place, new.length)
            points.append({"id": id, "payload": payload, "vector": vector})
        self._upsert(self._names.documents, points)
        if self._early and self._change.documents >= self._early[0]:
            self._early = [one for one in self._early if one > self._change.documents]
            self._follow_mean(self._change.words, self._change.documents, EARLY_DRIFT)

    def delete(self, doc_ids: Sequence[DocId]) -> int:
        stored = list(self._stored([point_id(one) for one in doc_ids]))
        if stored:
            self._begin()
            ids = [one.id for one in stored]
            self._cluster.ask(lambda client: client.delete(self._names.documents, ids, wait=True))
            for one in stored:
                self._change.count(one.ids, one.length, -1)
        return len(stored)

    def publish(self) -> CollectionStats:
        """Make the changes the next generation."""
        stats, pages = self._change.apply(self.stats, self._header)
        header = stats.header
        if header.documents:
            drift = EARLY_DRIFT if header.documents <= EARLY[-1] else MEAN_DRIFT
            self._follow_mean(header.words, header.documents, drift)
        generation = self.stats.header.generation + 1
        header = replace(header, mean=self._header.mean, generation=generation, writing=False)
        return self._write(replace(stats, header=header), ALL_PAGES if self._fresh else pages)

    def recount(self) -> None:
        """Compute the statistics from the documents, after a writer that did not finish."""
        change, places = StatsChange(), 0
        for one in self._all():
            change.count(one.ids, one.length, 1)
            places = max(places, one.place + 1)
        header = replace(self._header, documents=0, words=0, places=places)
        stats, _ = change.apply(CollectionStats.empty(header), header)
        self._header, self._change = stats.header, StatsChange()
        self.stats = self._write(stats, ALL_PAGES)

    # ------------------------------------------------------------------------------------ requests

    def _begin(self) -> None:
        if not self.begun and not self._fresh:
            self._upsert(self._names.stats, [replace(self._header, writing=True).as_point()])
        self.begun = True

    def _write(self, stats: CollectionStats, pages: Iterable[int]) -> CollectionStats:
        """Write the pages first, the header with the last of them: it is never ahead of them."""
        batch: list[dict[str, Any]] = []
        size = 0
        for point in stats.page_points(pages):
            batch.append(point)
            size += len(point["payload"]["numbers"]) + len(point["payload"]["counts"])
            if size > PAGE_BYTES:
                self._upsert(self._names.stats, batch)
                batch, size = [], 0
        self._upsert(self._names.stats, [*batch, stats.header.as_point()])
        return stats

    def _upsert(self, collection: str, points: list[dict[str, Any]]) -> None:
        from qdrant_client import models

        made = [models.PointStruct(**one) for one in points]
        self._cluster.ask(lambda client: client.upsert(collection, made, wait=True))

    def _stored(self, ids: Sequence[str]) -> Iterator[_StoredTerms]:
        if ids:
            name, parts = self._names.documents, _TERM_PARTS
            records = self._cluster.ask(lambda client: client.retrieve(name, ids, **parts))
            yield from map(_stored_terms, records)

    def _all(self) -> Iterator[_StoredTerms]:
        page: dict[str, Any] = {"limit": PAGE_SIZE, "offset": None, **_TERM_PARTS}
        while True:
            records, page["offset"] = self._cluster.ask(
                lambda client: client.scroll(self._names.documents, **page)
            )
            yield from map(_stored_terms, records)
            if page["offset"] is None:
                return

    def _follow_mean(self, words: int, documents: int, drift: float) -> None:
        mean = max(words / documents, 1.0)
        if abs(mean / self._header.mean - 1) > drift:
            self._update_weights(mean)

    def _update_weights(self, mean: float) -> None:
        """Recompute every document's weights for another mean length, from the weights alone."""
        from qdrant_client import models

        batch: list[Any] = []
        for one in self._all():
            if len(one.ids):
                counts = counts_from_weights(one.weights, one.length, self._header.mean)
                weights = bm25_weights(counts, one.length, mean)
                vector: Any = {WORDS: _sparse_vector(one.ids, weights)}
                batch.append(models.PointVectors(id=one.id, vector=vector))
            if len(batch) >= PAGE_SIZE:
                self._update_vectors(batch)
                batch = []
        self._update_vectors(batch)
        self._header = replace(self._header, mean=mean)

    def _update_vectors(self, batch: list[Any]) -> None:
        if batch:
            name = self._names.documents
            self._cluster.ask(lambda client: client.update_vectors(name, batch, wait=True))


_TERM_PARTS: dict[str, Any] = {"with_payload": ["place", "length"], "with_vectors": [WORDS]}


def _sparse_vector(ids: TermIds, values: Vector) -> dict[str, Any]:
    return {"indices": ids.tolist(), "values": values.tolist()}


def _stored_terms(record: Any) -> _StoredTerms:
    words = (record.vector or {}).get(WORDS) if isinstance(record.vector, dict) else None
    ids = np.array(words.indices if words else [], dtype=np.uint32)
    values = np.array(words.values if words else [], dtype=np.float64)
    order, payload = np.argsort(ids), record.payload
    place, length = payload["place"], payload["length"]
    return _StoredTerms(str(record.id), place, length, ids[order], values[order])
