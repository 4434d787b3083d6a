"""The store on Qdrant: the Store protocol over a cluster of servers.

with QdrantStore("qdrant://a:6333,b:6333/news?replicas=2") as store:
    store.put(documents, vectors)
    hits = store.search_text(["who?"], k=10)

Documents and vectors are always the server's latest. The statistics (the generation, the word
frequencies in a score) are refreshed after `refresh_s`; a store sees its own writes at once.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from suffice.engines.document_batches import (
    Encode,
    OnStored,
    check_ids,
    document_batches,
    encode_batch,
    unique_ids,
)
from suffice.engines.qdrant import schema
from suffice.engines.qdrant.collection_stats import (
    HEADER_POINT,
    PAGE_COUNT,
    CollectionStats,
    StatsHeader,
    parse_header,
)
from suffice.engines.qdrant.connection import MissingCollectionError, QdrantAddress, QdrantCluster
from suffice.engines.qdrant.reader import CollectionReader, SearchRequest
from suffice.engines.qdrant.schema import CollectionNames, document_from_payload
from suffice.engines.qdrant.writer import CollectionWriter, EncodedDocument
from suffice.errors import EngineError, InputError
from suffice.protocols import StoreQuery, StoreResult
from suffice.registry import STORES
from suffice.retrieval.ranking import Filters, HitLists
from suffice.retrieval.store_checks import Halves, check_field, pair_vectors
from suffice.types import DocId, Document, Field

__all__ = ["QdrantStore"]

BATCH_CHARACTERS = 4_000_000  # limit: 32 MB per request; JSON may use 6 bytes per character


class QdrantStore:
    """A store on a Qdrant cluster; at most `batch` documents are sent in one request.

    If a `put` repeats an id, the last document is kept, at the position of the first. One writer at
    a time; threads may share a store.
    """

    distant = True  # retrievers that score the whole corpus should request candidates instead

    def __init__(
        self,
        address: QdrantAddress | str,
        *,
        api_key: str | None = None,
        batch: int = 512,
        refresh_s: float = 1.0,
    ) -> None:
        parsed = address if isinstance(address, QdrantAddress) else QdrantAddress.parse(address)
        if batch < 1:
            raise InputError(f"batch is {batch}, expected at least 1")
        self.address, self._cluster = parsed, QdrantCluster(parsed, api_key=api_key)
        self._batch, self._refresh_s = batch, refresh_s
        self._guard, self._local = threading.RLock(), threading.local()
        self._names = CollectionNames.aliases(parsed.collection)
        self._reader = CollectionReader(self._cluster, self._names.documents)
        self._known, self._fresh_until = CollectionStats.empty(), 0.0

    def close(self) -> None:
        self._cluster.close()

    def __enter__(self) -> QdrantStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def elsewhere(self) -> Callable[[], QdrantStore]:
        """A function that opens this store in a process that has the key in its environment."""
        return partial(_open_at_generation, str(self.address), self.build, self.generation)

    @property
    def round_trips(self) -> int:
        """Requests answered so far."""
        return self._cluster.calls

    # ------------------------------------------------------------------------------------- reading

    @property
    def generation(self) -> int:
        return self._stats().header.generation

    @property
    def build(self) -> str:
        """Id of this build of the collection: generations of two builds are unrelated."""
        return self._stats().header.build

    @property
    def encoder(self) -> str | None:
        """The encoder named when the collection was built."""
        return self._stats().header.encoder

    def __len__(self) -> int:
        return self._stats().header.documents

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        cached = self._cached()
        if wanted := sorted(one for one in unique_ids(doc_ids) if one not in cached):
            cached |= self._reader.get(wanted)
        return [cached.get(doc_id) for doc_id in doc_ids]

    def documents(self) -> Iterator[Document]:
        return (document_from_payload(record.payload) for record in self._reader.records())

    def search_text(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        requests = self._reader.text_requests(questions, k, filters, self._stats())
        return self._reader.answer(requests)[0]

    def search_vectors(self, vectors: Any, *, k: int, filters: Filters = None) -> HitLists:
        requests = self._reader.vector_requests(vectors, k, filters, self._stats())
        return self._reader.answer(requests)[0]

    def query(self, queries: Sequence[StoreQuery], doc_ids: Sequence[DocId] = ()) -> StoreResult:
        cached = self._cached()
        wanted = [one for one in unique_ids(doc_ids) if one not in cached]
        requests = [self._request(one) for one in queries]
        hits, documents = self._reader.answer(requests, doc_ids=wanted, documents=True)
        cached |= documents
        seen = [*(hit.doc_id for one in hits for hit in one), *doc_ids]
        return StoreResult(hits, {doc_id: cached[doc_id] for doc_id in seen if doc_id in cached})

    def _request(self, query: StoreQuery) -> SearchRequest | None:
        stats, filters = self._stats(), [query.filter]
        if query.text is not None:
            return self._reader.text_requests([query.text], query.k, filters, stats)[0]
        if query.vector is not None:
            return self._reader.vector_requests([query.vector], query.k, filters, stats)[0]
        return None

    def lookup(self, field: Field, values: Sequence[str]) -> list[tuple[DocId, ...]]:
        encodable = [one.encode("utf-8", "replace").decode() for one in values]
        return self._reader.lookup(check_field(field), encodable)

    def values(self, field: Field) -> dict[str, int]:
        return self._reader.values(check_field(field))

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """In the block, this thread sees one generation and fetches no document twice."""
        if self._pinned() is not None:
            yield
            return
        self._local.pinned = self._stats(), {}
        try:
            yield
        finally:
            self._local.pinned = None

    def _pinned(self) -> tuple[CollectionStats, dict[DocId, Document]] | None:
        return getattr(self._local, "pinned", None)

    def _cached(self) -> dict[DocId, Document]:
        """The documents read so far; while pinned, further ones are added."""
        pinned = self._pinned()
        return {} if pinned is None else pinned[1]

    def _stats(self) -> CollectionStats:
        if (pinned := self._pinned()) is not None:
            return pinned[0]
        with self._guard:
            return self._known if time.monotonic() < self._fresh_until else self._refresh()

    def _refresh(self) -> CollectionStats:
        with self._guard:
            return self._know(self._fetch_stats(self._known))

    def _know(self, stats: CollectionStats) -> CollectionStats:
        self._known, self._fresh_until = stats, time.monotonic() + self._refresh_s
        return stats

    def _fetch_stats(self, known: CollectionStats) -> CollectionStats:
        """The cluster's current statistics; only changed pages are fetched."""
        name = self._names.stats
        try:
            records = self._cluster.ask(
                lambda client: client.retrieve(name, [HEADER_POINT], with_payload=True)
            )
        except MissingCollectionError:
            records = []
        if not records:
            return CollectionStats.empty()
        header = parse_header(records[0].payload or {}, str(self.address))
        if header.generation == known.header.generation:
            return known if header == known.header else replace(known, header=header)
        if header.generation < known.header.generation:
            known = CollectionStats.empty()  # the collection was rebuilt
        from qdrant_client import models

        newer = models.Range(gt=known.header.generation)
        changed = models.Filter(must=[models.FieldCondition(key="since", range=newer)])
        options: dict[str, Any] = {"limit": PAGE_COUNT, "with_payload": True}
        pages, _ = self._cluster.ask(
            lambda client: client.scroll(name, scroll_filter=changed, **options)
        )
        return known.with_pages(header, {int(page.id): page.payload or {} for page in pages})

    # ------------------------------------------------------------------------------------- writing

    def put(
        self,
        documents: Iterable[Document],
        vectors: Any = None,
        *,
        encode: Encode | None = None,
        acknowledged: OnStored | None = None,
    ) -> int:
        """Add or replace documents batch by batch and return their number.

        A batch is durable when `acknowledged` gets its ids, and stays if a later one fails. Without
        `vectors`, `encode` makes them from the texts. Only one batch is in memory.
        """
        count, lost = 0, False
        writer: CollectionWriter | None = None
        dimension = self._refresh().header.dimension
        documents, halves = pair_vectors(documents, vectors, dimension=dimension or None)
        try:
            for batch in self._batches(documents):
                part = None if halves is None else halves[count : count + len(batch)]
                encoded = _encode(batch, part, encode, dimension)
                dimension = dimension or _dimension(encoded)
                writer = writer or self._writer(dimension)
                writer.put(encoded)
                count += len(batch)
                if acknowledged is not None:
                    acknowledged([one.document.doc_id for one in encoded])
        except EngineError:
            lost = True  # cannot publish: the mark stays, and the next writer recounts
            raise
        finally:
            if writer is not None and writer.begun and not lost:
                self._know(writer.publish())
        return count

    def delete(self, doc_ids: Iterable[DocId]) -> int:
        wanted = check_ids(doc_ids)
        if not self._refresh().header.generation:
            return 0
        writer, size = self._writer(0), self._batch
        parts = [wanted[start : start + size] for start in range(0, len(wanted), size)]
        gone = sum(writer.delete(part) for part in parts)
        if writer.begun:
            self._know(writer.publish())
        return gone

    def rebuild(
        self,
        documents: Iterable[Document] | None = None,
        *,
        encode: Encode | None = None,
        encoder: str | None = None,
        acknowledged: OnStored | None = None,
    ) -> int:
        """Build the collection again next to the old one, then switch over in one step.

        Readers see all of the old or all of the new. Without `documents`, the old ones are copied
        with their vectors. Returns the number of documents in the new collection.
        """
        header = self._refresh().header
        if documents is None:
            return self._rebuild(self._copies(), header.dimension, header.encoder, acknowledged)
        batches = (_encode(batch, None, encode, 0) for batch in self._batches(documents))
        return self._rebuild(batches, 0, encoder, acknowledged)

    def _copies(self) -> Iterator[list[EncodedDocument]]:
        copies: list[EncodedDocument] = []
        for record in self._reader.records(vectors=bool(self._known.header.dimension)):
            vector = record.vector.get(schema.DENSE) if isinstance(record.vector, dict) else None
            array = None if vector is None else np.array(vector, np.float32)
            copies.append(EncodedDocument(document_from_payload(record.payload), array))
            if len(copies) >= self._batch:
                yield copies
                copies = []
        if copies:
            yield copies

    def _rebuild(
        self,
        batches: Iterable[list[EncodedDocument]],
        dimension: int,
        encoder: str | None,
        acknowledged: OnStored | None = None,
    ) -> int:
        cluster, collection = self._cluster, self.address.collection
        old = schema.current_number(cluster, collection)
        number = (old or 0) + 1
        names = CollectionNames.numbered(collection, number)
        batches = iter(batches)
        first = next(batches, [])
        dimension = dimension or _dimension(first)
        schema.create_collections(cluster, self.address, names, dimension)
        header = StatsHeader(
            generation=self._refresh().header.generation,
            dimension=dimension,
            encoder=encoder,
            build=uuid.uuid4().hex,
        )
        writer = CollectionWriter(cluster, names, CollectionStats.empty(header), fresh=True)
        for encoded in filter(None, chain([first], batches)):
            writer.put(encoded)
            if acknowledged is not None:
                acknowledged([one.document.doc_id for one in encoded])
        stats = writer.publish()
        schema.switch_aliases(cluster, collection, number)
        if old is not None:
            schema.drop_collections(cluster, CollectionNames.numbered(collection, old))
        return self._know(stats).header.documents

    def make(self, *, dimension: int = 0, encoder: str | None = None) -> None:
        """Create an empty collection if there is none."""
        if schema.current_number(self._cluster, self.address.collection) is None:
            self._rebuild((), dimension, encoder)

    def drop(self) -> None:
        """Remove the collection and everything in it."""
        number = schema.current_number(self._cluster, self.address.collection)
        if number is not None:
            names = CollectionNames.numbered(self.address.collection, number)
            schema.drop_collections(self._cluster, names)
        self._know(CollectionStats.empty())

    def _writer(self, dimension: int) -> CollectionWriter:
        """A writer for the collection as last seen, created or given vectors if needed."""
        header = self._known.header
        if not header.generation:
            self.make(dimension=dimension)
        elif dimension and not header.dimension:
            self._rebuild(self._copies(), dimension, header.encoder)
        writer = CollectionWriter(self._cluster, self._names, self._known)
        if header.writing:
            writer.recount()
        return writer

    def _batches(self, documents: Iterable[Document]) -> Iterator[list[Document]]:
        return document_batches(documents, size=self._batch, characters=BATCH_CHARACTERS)


def _open_at_generation(address: str, build: str, generation: int) -> QdrantStore:
    store = QdrantStore(address)
    if (store.build, store.generation) != (build, generation):
        store.close()
        hint = "run the command again"
        raise EngineError(f"{address} has changed since the work began", hint=hint)
    return store


def _encode(
    batch: list[Document], halves: Halves | None, encode: Encode | None, dimension: int
) -> list[EncodedDocument]:
    kept, vectors = encode_batch(batch, halves, encode, dimension)
    if vectors is None:
        return [EncodedDocument(document, None) for document in kept]
    # Rounded to float16, as in every other store.
    return [EncodedDocument(one, row.astype(np.float32)) for one, row in zip(kept, vectors)]


def _dimension(encoded: Sequence[EncodedDocument]) -> int:
    return next((len(one.vector) for one in encoded if one.vector is not None), 0)


STORES.add("qdrant", QdrantStore)
