"""The store on Qdrant: the Store protocol over a cluster of servers.

with QdrantStore("qdrant://a:6333,b:6333/news?replicas=2") as store:
    store.put(documents, vectors)
    hits = store.search_text(["who?"], k=10)

Documents and vectors are always the server's latest. The generation and the number of documents are
refreshed after `refresh_s`; a store sees its own writes at once. Only one writer at a time: the
cluster has no lock to enforce this.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

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
from suffice.engines.qdrant.connection import MissingCollectionError, QdrantAddress, QdrantCluster
from suffice.engines.qdrant.schema import (
    DENSE,
    WORDS,
    CollectionState,
    document_from_payload,
    payload_from_document,
    point_id,
    qdrant_filter,
)
from suffice.engines.qdrant.sparse_bm25 import document_vector, document_words, question_vector
from suffice.errors import EngineError, InputError
from suffice.protocols import StoreQuery, StoreResult
from suffice.registry import STORES
from suffice.retrieval.ranking import Filters, HitLists, check_search
from suffice.retrieval.store_checks import (
    Halves,
    check_field,
    check_filters,
    check_query_vectors,
    pair_vectors,
)
from suffice.types import DocId, Document, Field, Filter, Hit, RetrieverScore

if TYPE_CHECKING:
    from qdrant_client import models

__all__ = ["QdrantStore"]

BATCH_CHARACTERS = 4_000_000  # limit: 32 MB per request; JSON may use 6 bytes per character
TIES = 32  # hits requested beyond k, because the server does not know our order of equal scores
MAX_SEARCHES = 64  # in one request
PAGE_SIZE = 1_000
DIGITS = {"bm25": 5, "dense": 6}  # to which scores are rounded

Batch = tuple[list[Document], Halves | None]


@dataclass(frozen=True, slots=True)
class _Search:
    """One search: what the server is asked, and how many hits are wanted."""

    part: str  # "bm25" or "dense"
    vector: Any
    k: int
    filter: Filter | None

    def request(self, *, documents: bool, exact: bool) -> models.QueryRequest:
        from qdrant_client import models

        return models.QueryRequest(
            query=self.vector,
            using=WORDS if self.part == "bm25" else DENSE,
            filter=_filter(self.filter),
            limit=self.k + TIES,
            with_payload=True if documents else ["id", "place"],
            params=models.SearchParams(exact=exact),
        )

    def hits(self, points: Sequence[models.ScoredPoint]) -> tuple[Hit, ...]:
        """The k best; equal scores in the order of insertion."""
        ranked = []
        for point in points:
            payload = point.payload or {}
            score = round(point.score, DIGITS[self.part])
            ranked.append((-score, payload["place"], payload["id"]))
        return tuple(
            Hit(doc_id, -score, (RetrieverScore(self.part, -score),))
            for score, _, doc_id in sorted(ranked)[: self.k]
        )


class QdrantStore:
    """A store on a Qdrant cluster; at most `batch` documents are sent in one request.

    If a `put` repeats an id, the last document is kept, at the position of the first. Threads may
    share a store.
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
        self._known, self._count, self._fresh_until = CollectionState(), 0, 0.0

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
        return self._state().generation

    @property
    def build(self) -> str:
        """Id of this build of the collection: generations of two builds are unrelated."""
        return self._state().build

    @property
    def encoder(self) -> str | None:
        """The encoder named when the collection was built."""
        return self._state().encoder

    def __len__(self) -> int:
        self._state()
        return self._count

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        cached = self._cached()
        wanted = sorted(one for one in unique_ids(doc_ids) if one not in cached)
        for start in range(0, len(wanted), PAGE_SIZE):
            ids = [point_id(one) for one in wanted[start : start + PAGE_SIZE]]
            cached |= _documents(self._read("retrieve", ids) or [])
        return [cached.get(doc_id) for doc_id in doc_ids]

    def documents(self) -> Iterator[Document]:
        return (document_from_payload(record.payload) for record in self._scroll())

    def search_text(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        return self._search(self._text_searches(questions, k, filters))[0]

    def search_vectors(self, vectors: Any, *, k: int, filters: Filters = None) -> HitLists:
        return self._search(self._vector_searches(vectors, k, filters))[0]

    def query(self, queries: Sequence[StoreQuery], doc_ids: Sequence[DocId] = ()) -> StoreResult:
        cached = self._cached()
        wanted = [one for one in unique_ids(doc_ids) if one not in cached]
        searches: list[_Search | None] = []
        for one in queries:
            if one.text is not None:
                searches += self._text_searches([one.text], one.k, [one.filter])
            elif one.vector is not None:
                searches += self._vector_searches([one.vector], one.k, [one.filter])
            else:
                searches.append(None)
        hits, documents = self._search(searches, wanted, documents=True)
        cached |= documents
        seen = [*(hit.doc_id for one in hits for hit in one), *doc_ids]
        return StoreResult(hits, {doc_id: cached[doc_id] for doc_id in seen if doc_id in cached})

    def lookup(self, field: Field, values: Sequence[str]) -> list[tuple[DocId, ...]]:
        check_field(field)
        found = []
        for value in values:
            match = {"value": value.encode("utf-8", "replace").decode()}
            records = self._scroll({"must": [{"key": field, "match": match}]}, ["id", "place"])
            found.append(tuple(record.payload["id"] for record in records))
        return found

    def values(self, field: Field) -> dict[str, int]:
        check_field(field)
        limit = PAGE_SIZE
        while True:
            answer = self._read("facet", field, limit=limit, exact=True)
            hits = answer.hits if answer else []
            if len(hits) < limit:
                counts = sorted((str(one.value), one.count) for one in hits)
                return {value: count for value, count in counts if count}
            limit *= 16

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """In the block, this thread sees one generation and fetches no document twice."""
        if self._pinned() is not None:
            yield
            return
        self._local.pinned = self._state(), {}
        try:
            yield
        finally:
            self._local.pinned = None

    def _pinned(self) -> tuple[CollectionState, dict[DocId, Document]] | None:
        return getattr(self._local, "pinned", None)

    def _cached(self) -> dict[DocId, Document]:
        """The documents read so far; while pinned, further ones are added."""
        pinned = self._pinned()
        return {} if pinned is None else pinned[1]

    def _state(self) -> CollectionState:
        if (pinned := self._pinned()) is not None:
            return pinned[0]
        with self._guard:
            return self._known if time.monotonic() < self._fresh_until else self._refresh()

    def _refresh(self) -> CollectionState:
        with self._guard:
            info, count = self._read("get_collection"), self._read("count", exact=True)
            found = info is not None and count is not None
            self._known = CollectionState()
            if found:
                self._known = schema.parse_state(info, str(self.address))
            self._count = count.count if found else 0
            self._fresh_until = time.monotonic() + self._refresh_s
            return self._known

    def _text_searches(
        self, questions: Sequence[str], k: int, filters: Filters
    ) -> list[_Search | None]:
        """A search for each question; None if it has no words to search for."""
        k = min(check_search(questions, k, filters), max(len(self), 1))
        wanted = check_filters(filters) or [None] * len(questions)
        vectors = map(question_vector, questions)
        return [
            _Search("bm25", vector, k, filter) if vector.indices else None
            for vector, filter in zip(vectors, wanted)
        ]

    def _vector_searches(self, vectors: Any, k: int, filters: Filters) -> list[_Search | None]:
        """A search for each vector; all None if the collection has no vectors."""
        dimension = self._state().dimension
        queries = check_query_vectors(vectors, dimension=dimension or None)
        k = min(check_search([""] * len(queries), k, filters), max(len(self), 1))
        wanted = check_filters(filters) or [None] * len(queries)
        return [
            _Search("dense", vector.tolist(), k, filter) if dimension else None
            for vector, filter in zip(queries, wanted)
        ]

    def _search(
        self,
        searches: Sequence[_Search | None],
        doc_ids: Sequence[DocId] = (),
        *,
        documents: bool = False,
    ) -> tuple[HitLists, dict[DocId, Document]]:
        """The hits of each search (none for None), and the documents of these ids.

        With `documents`, also the documents of all hits.
        """
        from qdrant_client import models

        exact = self.address.exact
        asked = [at for at, one in enumerate(searches) if one is not None]
        requests = [one.request(documents=documents, exact=exact) for one in searches if one]
        if doc_ids:
            ids = models.Filter(must=[models.HasIdCondition(has_id=list(map(point_id, doc_ids)))])
            requests.append(models.QueryRequest(filter=ids, limit=len(doc_ids), with_payload=True))
        answers: list[list[models.ScoredPoint]] = []
        for start in range(0, len(requests), MAX_SEARCHES):
            batch = requests[start : start + MAX_SEARCHES]
            found = self._read("query_batch_points", batch)
            answers += [one.points for one in found] if found else [[]] * len(batch)
        known = _documents(answers.pop()) if doc_ids else {}
        hits: HitLists = [()] * len(searches)
        for at, points in zip(asked, answers):
            search = searches[at]
            hits[at] = search.hits(points) if search else ()
            if documents:
                known |= _documents(points)
        return hits, known

    def _scroll(
        self, filter: dict[str, Any] | None = None, payload: list[str] | bool = True
    ) -> Iterator[Any]:
        """The points that pass, in insertion order."""
        from qdrant_client import models

        start = 0
        while True:
            answer = self._read(
                "scroll",
                scroll_filter=filter and models.Filter(**filter),
                order_by=models.OrderBy(key="place", start_from=start),
                limit=PAGE_SIZE,
                with_payload=payload,
            )
            records = answer[0] if answer else []
            yield from records
            if len(records) < PAGE_SIZE:
                return
            start = records[-1].payload["place"] + 1

    def _read(self, method: str, *given: Any, **options: Any) -> Any:
        """Call the client with the read consistency of the address; None without a collection."""
        consistency, name = self.address.read_consistency, self.address.collection
        if consistency is not None and method not in ("get_collection", "count"):
            options["consistency"] = consistency
        try:
            return self._cluster.ask(
                lambda client: getattr(client, method)(name, *given, **options)
            )
        except MissingCollectionError:
            return None

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
        count, writer = 0, None
        dimension = self._refresh().dimension
        documents, halves = pair_vectors(documents, vectors, dimension=dimension or None)
        try:
            for documents_of_batch in self._batches(documents):
                part = None if halves is None else halves[count:][: len(documents_of_batch)]
                batch = encode_batch(documents_of_batch, part, encode, dimension)
                if writer is None:
                    writer = self._writer(batch)
                    dimension = self._known.dimension
                writer.put(*batch)
                count += len(documents_of_batch)
                if acknowledged is not None:
                    acknowledged([one.doc_id for one in batch[0]])
        except EngineError:
            writer = None  # the cluster is away
            raise
        finally:
            if writer is not None:
                self._raise_generation()
                self._refresh()
        return count

    def delete(self, doc_ids: Iterable[DocId]) -> int:
        wanted, gone = [point_id(one) for one in check_ids(doc_ids)], 0
        for start in range(0, len(wanted), PAGE_SIZE):
            part = wanted[start : start + PAGE_SIZE]
            ids = [one.id for one in self._read("retrieve", part, with_payload=False) or []]
            if ids:
                if not gone:
                    self._refresh()
                    self._raise_generation()
                self._delete(ids)
            gone += len(ids)
        if gone:
            self._raise_generation()
            self._refresh()
        return gone

    def rebuild(
        self,
        documents: Iterable[Document],
        *,
        encode: Encode | None = None,
        encoder: str | None = None,
        acknowledged: OnStored | None = None,
    ) -> int:
        """Build the collection again next to the old one, then switch over in one step.

        Readers see all of the old or all of the new. Returns the number of documents in the new
        collection.
        """
        batches = (encode_batch(one, None, encode, 0) for one in self._batches(documents))
        first = next(batches, ([], None))
        dimension = 0 if first[1] is None else first[1].shape[1]
        mean = _mean_length(first[0])
        number = self._create(CollectionState(encoder=encoder, dimension=dimension, mean=mean))
        name = f"{self.address.collection}-{number}"
        writer = _Writer(self._cluster, name, mean)
        for batch in chain([first] if first[0] else [], batches):
            writer.put(*batch)
            if acknowledged is not None:
                acknowledged([one.doc_id for one in batch[0]])
        self._publish(number)
        return self._count

    def make(self, *, dimension: int = 0, encoder: str | None = None) -> None:
        """Create an empty collection if there is none."""
        if schema.current_number(self._cluster, self.address.collection) is None:
            self._publish(self._create(CollectionState(encoder=encoder, dimension=dimension)))

    def drop(self) -> None:
        """Remove the collection and everything in it."""
        collection = self.address.collection
        number = schema.current_number(self._cluster, collection)
        if number is not None:
            schema.drop_collection(self._cluster, f"{collection}-{number}")
        self._refresh()

    def _create(self, state: CollectionState) -> int:
        """The number of a new collection of the next generation, which nobody sees yet."""
        collection = self.address.collection
        number = (schema.current_number(self._cluster, collection) or 0) + 1
        generation, build = self._refresh().generation + 1, uuid.uuid4().hex
        state = replace(state, generation=generation, build=build)
        schema.create_collection(self._cluster, f"{collection}-{number}", state)
        return number

    def _publish(self, number: int) -> None:
        """Switch to this number, and drop the one before."""
        collection = self.address.collection
        schema.switch_alias(self._cluster, collection, f"{collection}-{number}")
        schema.drop_collection(self._cluster, f"{collection}-{number - 1}")
        self._refresh()

    def _writer(self, batch: Batch) -> _Writer:
        """A writer for the collection, which is created if there is none."""
        documents, vectors = batch
        if not self._known.generation:
            self.make(dimension=0 if vectors is None else vectors.shape[1])
        if vectors is not None and not self._known.dimension:
            raise InputError(
                f"{self.address} was made without vectors",
                hint="build it again: suffice build FILE --store ADDRESS --rebuild",
            )
        # Twice in a write: derived data made before it or meanwhile is recognised as old.
        self._raise_generation(self._known.mean or _mean_length(documents))
        last = self._read(
            "scroll",
            order_by={"key": "place", "direction": "desc"},
            limit=1,
            with_payload=["place"],
        )[0]
        place = last[0].payload["place"] + 1 if last else 0
        return _Writer(self._cluster, self.address.collection, self._known.mean, place)

    def _raise_generation(self, mean: float | None = None) -> None:
        known, name = self._known, self.address.collection
        state = replace(known, generation=known.generation + 1, mean=mean or known.mean)
        metadata = asdict(state)
        self._cluster.ask(lambda client: client.update_collection(name, metadata=metadata))
        self._known = state

    def _delete(self, ids: list[Any]) -> None:
        name = self.address.collection
        self._cluster.ask(lambda client: client.delete(name, ids, wait=True))

    def _batches(self, documents: Iterable[Document]) -> Iterator[list[Document]]:
        return document_batches(documents, size=self._batch, characters=BATCH_CHARACTERS)


@dataclass(slots=True)
class _Writer:
    """Puts batches into a collection; `place` is that of the next new document."""

    cluster: QdrantCluster
    name: str
    mean: float
    place: int = 0

    def put(self, documents: Sequence[Document], vectors: Halves | None) -> None:
        """Add or replace documents with distinct ids; durable on return."""
        from qdrant_client import models

        ids = [point_id(one.doc_id) for one in documents]
        places = self._places(ids) if self.place else {}
        points = []
        for at, (id, document) in enumerate(zip(ids, documents)):
            if (place := places.get(id)) is None:
                place, self.place = self.place, self.place + 1
            vector: dict[str, Any] = {}
            if vectors is not None:
                # Rounded to float16, as in every other store.
                vector[DENSE] = vectors[at].astype(np.float32).tolist()
            if words := document_words(document):
                vector[WORDS] = document_vector(words, self.mean)
            payload = payload_from_document(document, place)
            points.append(models.PointStruct(id=id, vector=vector, payload=payload))
        self.cluster.ask(lambda client: client.upsert(self.name, points, wait=True))

    def _places(self, ids: Sequence[str]) -> dict[str, int]:
        records = self.cluster.ask(
            lambda client: client.retrieve(self.name, ids, with_payload=["place"])
        )
        return {str(one.id): (one.payload or {})["place"] for one in records}


def _open_at_generation(address: str, build: str, generation: int) -> QdrantStore:
    store = QdrantStore(address)
    if (store.build, store.generation) != (build, generation):
        store.close()
        hint = "run the command again"
        raise EngineError(f"{address} has changed since the work began", hint=hint)
    return store


def _mean_length(documents: Sequence[Document]) -> float:
    """Words per document, at least 1; 0 if there are no documents."""
    lengths = [len(document_words(one)) for one in documents]
    return max(float(np.mean(lengths)), 1.0) if lengths else 0.0


def _filter(filter: Filter | None) -> models.Filter | None:
    from qdrant_client import models

    parts = qdrant_filter(filter)
    return models.Filter(**parts) if parts else None


def _documents(points: Sequence[Any]) -> dict[DocId, Document]:
    documents = [document_from_payload(point.payload) for point in points]
    return {document.doc_id: document for document in documents}


STORES.add("qdrant", QdrantStore)
