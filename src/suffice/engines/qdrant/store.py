"""The door of a store on Qdrant: the Store port over a cluster of servers.

with QdrantStore("qdrant://a:6333,b:6333/news?replicas=2") as store:
    store.put(documents, vectors)
    hits = store.search_text(["who?"], k=10)

Documents and their vectors are always the server's last word. What is known of the collection as a whole (its generation, the
word frequencies in a score) is looked up again after `refresh_s`; a store sees its own writes at once.
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

from suffice.engines.qdrant import schema as places
from suffice.engines.qdrant.collection_stats import (
    HEADER_POINT,
    PAGE_COUNT,
    CollectionStats,
    DocumentFrequencies,
    StatsHeader,
    parse_header,
)
from suffice.engines.qdrant.connection import MissingCollectionError, QdrantAddress, QdrantCluster
from suffice.engines.qdrant.reader import CollectionReader, SearchRequest
from suffice.engines.qdrant.schema import DENSE, document_from_payload
from suffice.engines.qdrant.writer import CollectionWriter, EncodedDocument
from suffice.errors import EngineError, InputError
from suffice.protocols import StoreQuery, StoreResult
from suffice.registry import STORES
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.ranking import check_search
from suffice.retrieval.store_checks import (
    check_document,
    check_document_vectors,
    check_field,
    check_filters,
    check_query_vectors,
    is_utf8,
    pair_vectors,
)
from suffice.types import DocId, Document, Field, Filter, Hit

__all__ = ["QdrantStore"]

BATCH_CHARACTERS = (
    4_000_000  # the server takes requests of 32 MB, and JSON can write a letter in six
)

OnStored = Callable[[Sequence[DocId]], None]
Encode = Callable[[Sequence[str]], Any]
_NO_STATS = CollectionStats(StatsHeader(), DocumentFrequencies.none())


class QdrantStore:
    """The Store port on a Qdrant cluster. `batch` documents at most travel in one request; one writer at a time.

    Of documents with the same id in one `put` the last is kept, at the place of the first. Threads may share a store.
    """

    distant = True  # whole-corpus retrievers had better ask for candidates

    def __init__(
        self,
        address: QdrantAddress | str,
        *,
        api_key: str | None = None,
        batch: int = 512,
        refresh_s: float = 1.0,
    ) -> None:
        self.address = (
            address if isinstance(address, QdrantAddress) else QdrantAddress.parse(address)
        )
        if batch < 1:
            raise InputError(f"batch is {batch}, expected at least 1")
        self._cluster = QdrantCluster(self.address, api_key=api_key)
        self._batch, self._refresh_s = batch, refresh_s
        self._guard, self._local = threading.RLock(), threading.local()
        self._pair = places.alias_names(self.address.collection)
        self._reader = CollectionReader(self._cluster, self._pair.documents)
        self._known, self._fresh_until = _NO_STATS, 0.0

    def close(self) -> None:
        self._cluster.close()

    def __enter__(self) -> QdrantStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def elsewhere(self) -> Callable[[], QdrantStore]:
        """What opens this store in another process, which has the key from its own environment."""
        return partial(_open_at_generation, str(self.address), self.build, self.generation)

    @property
    def round_trips(self) -> int:
        """Requests that were answered so far."""
        return self._cluster.calls

    # ---------------------------------------------------------------------------------------------------- reading

    @property
    def generation(self) -> int:
        return self._facts().head.generation

    @property
    def build(self) -> str:
        """Which making of the collection this is: generations of two makings have nothing to do with one another."""
        return self._facts().head.build

    @property
    def encoder(self) -> str | None:
        """Who made the vectors, as far as was said when the collection was made."""
        return self._facts().head.encoder

    def __len__(self) -> int:
        return self._facts().head.documents

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        kept: dict[DocId, Document] = self._kept()
        wanted = {
            one for one in doc_ids if isinstance(one, str) and one not in kept and is_utf8(one)
        }
        held = {**kept, **(self._reader.get(sorted(wanted)) if wanted else {})}
        self._keep(held)
        return [held.get(doc_id) for doc_id in doc_ids]

    def documents(self) -> Iterator[Document]:
        return (document_from_payload(record.payload) for record in self._reader.records())

    def search_text(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = check_search(questions, k, filters)
        return self._reader.answer(self._by_words(questions, k, filters))[0]

    def search_vectors(
        self, vectors: Any, *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        return self._reader.answer(self._by_vectors(vectors, k, filters))[0]

    def query(self, queries: Sequence[StoreQuery], doc_ids: Sequence[DocId] = ()) -> StoreResult:
        asks = [self._ask(one) for one in queries]
        kept = self._kept()
        wanted = [
            one
            for one in dict.fromkeys(doc_ids)
            if isinstance(one, str) and one not in kept and is_utf8(one)
        ]
        hits, documents = self._reader.answer(asks, doc_ids=wanted, documents=True)
        known = {**kept, **documents}
        self._keep(known)
        seen = [*(hit.doc_id for one in hits for hit in one), *doc_ids]
        return StoreResult(hits, {doc_id: known[doc_id] for doc_id in seen if doc_id in known})

    def _ask(self, look: StoreQuery) -> SearchRequest | None:
        if look.text is not None:
            return self._by_words([look.text], check_search([look.text], look.k), [look.filter])[0]
        return (
            None
            if look.vector is None
            else self._by_vectors([look.vector], look.k, [look.filter])[0]
        )

    def lookup(self, field: Field, values: Sequence[str]) -> list[tuple[DocId, ...]]:
        return self._reader.lookup(
            check_field(field), [one.encode("utf-8", "replace").decode() for one in values]
        )

    def values(self, field: Field) -> dict[str, int]:
        return self._reader.values(check_field(field))

    def _by_words(
        self, questions: Sequence[str], k: int, filters: Sequence[Filter | None] | None
    ) -> list[SearchRequest | None]:
        facts = self._facts()
        wanted = check_filters(filters) or [None] * len(questions)
        k = min(k, max(facts.head.documents, 1))
        return [
            self._reader.by_words(question, k, filter, facts)
            for question, filter in zip(questions, wanted)
        ]

    def _by_vectors(
        self, vectors: Any, k: int, filters: Sequence[Filter | None] | None
    ) -> list[SearchRequest | None]:
        head = self._facts().head
        asked = check_query_vectors(vectors, dimension=head.dimension or None)
        k = min(check_search([""] * len(asked), k, filters), max(head.documents, 1))
        wanted = check_filters(filters) or [None] * len(asked)
        if not head.dimension:
            return [None] * len(asked)
        return [self._reader.by_vector(vector, k, filter) for vector, filter in zip(asked, wanted)]

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Inside the block this thread sees one generation's facts, and a document that was read is not fetched again."""
        if getattr(self._local, "facts", None) is not None:
            yield
            return
        self._local.facts, self._local.documents = self._facts(), {}
        try:
            yield
        finally:
            self._local.facts = self._local.documents = None

    def _kept(self) -> dict[DocId, Document]:
        return getattr(self._local, "documents", None) or {}

    def _keep(self, documents: dict[DocId, Document]) -> None:
        if getattr(self._local, "documents", None) is not None:
            self._local.documents = documents

    def _facts(self) -> CollectionStats:
        pinned: CollectionStats | None = getattr(self._local, "facts", None)
        if pinned is not None:
            return pinned
        with self._guard:
            if time.monotonic() >= self._fresh_until:
                self._know(self._looked_up(self._known))
            return self._known

    def _know(self, facts: CollectionStats) -> None:
        self._known, self._fresh_until = facts, time.monotonic() + self._refresh_s

    def _looked_up(self, known: CollectionStats) -> CollectionStats:
        """The facts as the cluster has them, with as little as possible fetched anew."""
        try:
            records = self._cluster.ask(
                lambda client: client.retrieve(self._pair.facts, [HEADER_POINT], with_payload=True)
            )
        except MissingCollectionError:
            return _NO_STATS
        if not records:
            return _NO_STATS
        head = parse_header(records[0].payload or {}, str(self.address))
        if head.generation == known.head.generation:
            return known if head == known.head else replace(known, head=head)
        if head.generation < known.head.generation:
            known = _NO_STATS  # somebody made the collection anew
        from qdrant_client import models

        newer = models.Filter(
            must=[models.FieldCondition(key="since", range=models.Range(gt=known.head.generation))]
        )
        pages, _ = self._cluster.ask(
            lambda client: client.scroll(
                self._pair.facts, scroll_filter=newer, limit=PAGE_COUNT, with_payload=True
            )
        )
        return known.with_pages(head, {int(page.id): page.payload or {} for page in pages})

    # ---------------------------------------------------------------------------------------------------- writing

    def put(
        self,
        documents: Iterable[Document],
        vectors: Any = None,
        *,
        encode: Encode | None = None,
        acknowledged: OnStored | None = None,
    ) -> int:
        """Add or replace documents, batch by batch; a batch is durable when `acknowledged` is told its ids.

        Documents may be millions: only one batch is in memory. `encode` makes the vectors of a batch from its texts, where they
        are not given as an array. An error in the middle leaves the batches before it stored. Returns how many were taken in.
        """
        count, lost = 0, False
        writer: CollectionWriter | None = None
        dimension = self._current().head.dimension
        documents, halves = pair_vectors(documents, vectors, dimension=dimension or None)
        try:
            for batch in self._batches(documents):
                rows = _encode_batch(batch, halves, count, encode, dimension)
                dimension = dimension or _dimension(rows)
                writer = writer or self._writer(dimension)
                writer.put(rows)
                count += len(batch)
                if acknowledged is not None:
                    acknowledged([row.document.doc_id for row in rows])
        except EngineError:
            lost = True  # nobody to publish to: the mark stays, and the next writer counts anew
            raise
        finally:
            if writer is not None and writer.begun and not lost:
                self._know(writer.publish())
        return count

    def delete(self, doc_ids: Iterable[DocId]) -> int:
        if isinstance(doc_ids, str):
            raise InputError("expected ids, found one text", hint=f"write [{doc_ids!r}]")
        wanted = [one for one in dict.fromkeys(doc_ids) if isinstance(one, str) and is_utf8(one)]
        if not self._current().head.generation:
            return 0
        writer = self._writer(0)
        gone = sum(
            writer.delete(wanted[start : start + self._batch])
            for start in range(0, len(wanted), self._batch)
        )
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
        """Make the collection anew beside the old one, as the address says, and switch over in one step.

        Readers see all of the old or all of the new. Without `documents` those of the old one are copied, with their vectors.
        Returns how many the new one holds.
        """
        head = self._current().head
        batches = self._copies() if documents is None else self._encoded(documents, encode)
        encoder = head.encoder if documents is None else encoder
        return self._rebuilt(
            batches, head.dimension if documents is None else 0, encoder, acknowledged
        )

    def _encoded(
        self, documents: Iterable[Document], encode: Encode | None
    ) -> Iterator[list[EncodedDocument]]:
        return (_encode_batch(batch, None, 0, encode, 0) for batch in self._batches(documents))

    def _copies(self) -> Iterator[list[EncodedDocument]]:
        rows: list[EncodedDocument] = []
        for record in self._reader.records(vectors=bool(self._known.head.dimension)):
            vector = record.vector.get(DENSE) if isinstance(record.vector, dict) else None
            rows.append(
                EncodedDocument(
                    document_from_payload(record.payload),
                    None if vector is None else np.array(vector, np.float32),
                )
            )
            if len(rows) >= self._batch:
                yield rows
                rows = []
        if rows:
            yield rows

    def _rebuilt(
        self,
        batches: Iterable[list[EncodedDocument]],
        dimension: int,
        encoder: str | None,
        acknowledged: OnStored | None = None,
    ) -> int:
        cluster, collection = self._cluster, self.address.collection
        old = places.current_number(cluster, collection)
        number = (old or 0) + 1
        pair = places.numbered_names(collection, number)
        writer: CollectionWriter | None = None
        for rows in chain(
            batches, [[]]
        ):  # an empty one at the end: a collection without documents is made, too
            if writer is None:
                dimension = dimension or _dimension(rows)
                places.create_collections(cluster, self.address, pair, dimension)
                before = self._current().head.generation
                head = StatsHeader(
                    generation=before, dimension=dimension, encoder=encoder, build=uuid.uuid4().hex
                )
                writer = CollectionWriter(
                    cluster, pair, CollectionStats(head, DocumentFrequencies.none()), fresh=True
                )
            if rows:
                writer.put(rows)
                if acknowledged is not None:
                    acknowledged([row.document.doc_id for row in rows])
        facts = writer.publish() if writer else _NO_STATS
        places.switch_aliases(cluster, collection, number)
        if old is not None:
            places.drop_collections(cluster, places.numbered_names(collection, old))
        self._know(facts)
        return facts.head.documents

    def make(self, *, dimension: int = 0, encoder: str | None = None) -> None:
        """Make the collection, empty, if there is none."""
        if places.current_number(self._cluster, self.address.collection) is None:
            self._rebuilt((), dimension, encoder)

    def drop(self) -> None:
        """Remove the collection and all that is in it."""
        number = places.current_number(self._cluster, self.address.collection)
        if number is not None:
            places.drop_collections(
                self._cluster, places.numbered_names(self.address.collection, number)
            )
        self._know(_NO_STATS)

    def _writer(self, dimension: int) -> CollectionWriter:
        """A writer for the collection as it was just seen; it is made where there is none, or none with room for vectors."""
        head = self._known.head
        if not head.generation:
            self.make(dimension=dimension)
        elif dimension and not head.dimension:
            self._rebuilt(self._copies(), dimension, head.encoder)
        writer = CollectionWriter(self._cluster, self._pair, self._known)
        if head.writing:
            writer.count_anew()
        return writer

    def _current(self) -> CollectionStats:
        """The facts as they are now, for a writer."""
        with self._guard:
            self._know(self._looked_up(self._known))
            return self._known

    def _batches(self, documents: Iterable[Document]) -> Iterator[list[Document]]:
        batch: list[Document] = []
        characters = 0
        for document in documents:
            document = check_document(document)
            batch.append(document)
            characters += len(document.text)
            if len(batch) >= self._batch or characters >= BATCH_CHARACTERS:
                yield batch
                batch, characters = [], 0
        if batch:
            yield batch


def _open_at_generation(address: str, build: str, generation: int) -> QdrantStore:
    store = QdrantStore(address)
    if (store.build, store.generation) != (build, generation):
        store.close()
        raise EngineError(
            f"{address} has changed since the work began", hint="run the command again"
        )
    return store


def _encode_batch(
    batch: list[Document], halves: Any, at: int, encode: Encode | None, dimension: int
) -> list[EncodedDocument]:
    """Each id once, with vectors from the array or the encoder, rounded as every store of ours rounds them."""
    last = {document.doc_id: (document, place) for place, document in enumerate(batch, at)}
    kept = [document for document, _ in last.values()]
    part = None if halves is None else halves[[place for _, place in last.values()]]
    if encode is not None and part is None:
        made = encode([searchable_text(document) for document in kept])
        part = check_document_vectors(made, documents=len(kept), dimension=dimension or None)
    return [
        EncodedDocument(document, None if part is None else part[n].astype(np.float32))
        for n, document in enumerate(kept)
    ]


def _dimension(rows: Sequence[EncodedDocument]) -> int:
    return next((len(row.vector) for row in rows if row.vector is not None), 0)


STORES.add("qdrant", QdrantStore)
