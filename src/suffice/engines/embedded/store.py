"""The embedded store: one writer at a time, any number of readers in any number of processes.

with EmbeddedStore("folder") as store:
    store.put(documents)
    with store.pinned():                    # every read in the block sees one generation
        hits = store.search_text(["who?"], k=10)
        documents = store.get([hit.doc_id for hit in hits[0]])
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import tantivy

from suffice.engines.document_batches import (
    Encode,
    OnStored,
    check_ids,
    document_batches,
    encode_batch,
    unique_ids,
)
from suffice.engines.embedded.sqlite_documents import (
    SqliteDocuments,
    StoreState,
    create_database,
    sqlite_errors,
)
from suffice.engines.embedded.text_index import DamagedIndexError, TextIndexReader, search_index
from suffice.engines.embedded.vector_file import Records, nearest_records, open_records
from suffice.engines.embedded.writer import (
    GRACE_GENERATIONS,
    StoreWriter,
    text_folder,
    vector_file,
    writer_lock,
)
from suffice.errors import DataError, EngineError, InputError, NotReadyError, disk_hint
from suffice.protocols import StoreQuery, StoreResult
from suffice.registry import STORES
from suffice.retrieval import store_checks
from suffice.retrieval.ranking import Filters, HitLists, check_search
from suffice.types import DocId, Document, Field, Filter, Hit, RetrieverScore

__all__ = ["EmbeddedStore", "Snapshot"]

EXTRA_HITS = 16  # requested beyond k: some may be deleted, and ties with the last must be seen
MAX_TIES = 1_000  # with more equal scores, the index's order decides
DATABASE = "truth.sqlite"
SNAPSHOT_TRIES = 20
BATCH_CHARACTERS = 32_000_000  # long documents end a batch early, to bound memory
MAX_IDLE = 8  # connections kept open for the next readers
DISK_HINT = "check that the disk is healthy, has room and is writable, then try again"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The parts of a store at one generation.

    SQLite decides: a row of the text index or the vector file that it does not list is not a hit.
    """

    database: SqliteDocuments
    state: StoreState
    searcher: tantivy.Searcher | None
    records: Records | None

    def text_hits(self, question: str, k: int, filter: Filter | None) -> tuple[Hit, ...]:
        if self.searcher is None:
            return ()
        k = min(k, max(self.state.documents, 1))
        limit = k + EXTRA_HITS
        while True:
            found = search_index(self.searcher, question, limit, filter)
            located = self.database.locate([row for _, row in found])
            alive = [(-score, *located[row]) for score, row in found if row in located]
            # More hits cannot matter once the last one seen scores less than the k-th live one.
            settled = len(alive) >= k and found[-1][0] < -alive[k - 1][0]
            if len(found) < limit or settled or len(alive) >= k + MAX_TIES:
                break
            limit *= 4
        return tuple(_hit(doc_id, -score, "bm25") for score, _, doc_id in sorted(alive)[:k])

    def vector_hits(
        self, vectors: store_checks.Floats, k: int, filters: Sequence[Filter | None]
    ) -> HitLists:
        if self.records is None or not len(vectors):
            return [()] * len(vectors)
        filled = np.ones(len(self.records), dtype=bool)
        filled[self.database.empty_slots()] = False
        masks = dict.fromkeys(set(filters), filled)
        for one in filter(None, masks):
            masks[one] = np.zeros(len(filled), dtype=bool)
            masks[one][self.database.slots_matching(one)] = True
            masks[one] &= filled
        nearest = nearest_records(self.records, vectors, k, [masks[one] for one in filters])
        located = self.database.locate([int(row) for one in nearest for row in one.rows])
        return [
            tuple(
                _hit(located[row][1], score, "dense")
                for row, score in zip(one.rows.tolist(), one.scores.tolist())
            )
            for one in nearest
        ]


def _hit(doc_id: DocId, score: float, part: str) -> Hit:
    return Hit(doc_id, score, (RetrieverScore(part, score),))


class _StaleIndexError(Exception):
    """The store was written while a snapshot was taken; take another."""


@dataclass(frozen=True, slots=True)
class _CachedSearcher:
    """A searcher that serves the generations from `first` to `last`, both included."""

    text: int
    first: int
    last: int
    searcher: tantivy.Searcher


# A forked process must neither use nor close SQLite's connections: closing would release the
# parent's locks. It also inherits SQLite's record of those locks, but not the locks. So idle
# connections are closed before a fork; a child leaves those in use untouched and opens its own.
_OPEN_STORES: weakref.WeakSet[EmbeddedStore] = weakref.WeakSet()
_ABANDONED: list[SqliteDocuments | None] = []


class EmbeddedStore:
    """A store in one folder. At most `batch` documents become one generation.

    If a `put` repeats an id, the last document is kept, at the position of the first. Threads may
    share a store, and so may a process and its forks.
    """

    def __init__(self, path: Path | str, *, batch: int = 10_000, wait_s: float = 30.0) -> None:
        self.path = Path(path)
        if batch < 1:
            raise InputError(f"batch is {batch}, expected at least 1")
        self._batch, self._wait_s = batch, wait_s
        self._file = self.path / DATABASE
        self._guard = threading.Lock()
        self._local = threading.local()
        self._frozen = self._file.exists() and not os.access(self.path, os.W_OK)
        self._mirror: tempfile.TemporaryDirectory[str] | None = None
        if not self._file.exists():
            self._create()
        self._watch: SqliteDocuments | None = self._connect()
        self._idle: list[SqliteDocuments] = []
        self._reader: tuple[int, TextIndexReader] | None = None
        self._searcher: _CachedSearcher | None = None
        self._closed = False
        _OPEN_STORES.add(self)

    def close(self) -> None:
        with self._guard:
            self._closed = True
            for database in (*self._idle, *filter(None, [self._watch])):
                database.close()
            self._reset()
        if self._mirror:
            self._mirror.cleanup()

    def _reset(self) -> None:
        self._idle, self._watch, self._reader, self._searcher = [], None, None, None

    def __enter__(self) -> EmbeddedStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def elsewhere(self) -> Callable[[], EmbeddedStore]:
        """A function that opens this generation in another process that sees the same folder."""
        return partial(_open_at_generation, self.path.resolve(), self.generation)

    # ------------------------------------------------------------------------------------- reading

    @property
    def generation(self) -> int:
        with self._reading() as snapshot:
            return snapshot.state.generation

    def __len__(self) -> int:
        with self._reading() as snapshot:
            return snapshot.state.documents

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        with self._reading() as snapshot:
            documents = snapshot.database.get(unique_ids(doc_ids))
        return [documents.get(doc_id) for doc_id in doc_ids]

    def documents(self) -> Iterator[Document]:
        with self._reading() as snapshot:
            yield from (document for _, document in snapshot.database.documents())

    def search_text(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        k = check_search(questions, k, filters)
        wanted = store_checks.check_filters(filters) or [None] * len(questions)
        for _ in range(2):
            try:
                with self._reading() as snapshot:
                    return [snapshot.text_hits(*one) for one in zip(questions, repeat(k), wanted)]
            except DamagedIndexError as error:
                self._repair(error)
        message = f"the text index of {self.path} was damaged and has been rebuilt"
        raise EngineError(message, hint="search again", retryable=True)

    def search_vectors(self, vectors: Any, *, k: int, filters: Filters = None) -> HitLists:
        with self._reading() as snapshot:
            queries = store_checks.check_query_vectors(
                vectors, dimension=snapshot.state.dimension or None
            )
            k = check_search([""] * len(queries), k, filters)
            wanted = store_checks.check_filters(filters) or [None] * len(queries)
            return snapshot.vector_hits(queries, k, wanted)

    def query(self, queries: Sequence[StoreQuery], doc_ids: Sequence[DocId] = ()) -> StoreResult:
        with self.pinned():
            return store_checks.run_queries(self, queries, doc_ids)

    def lookup(self, field: Field, values: Sequence[str]) -> list[tuple[DocId, ...]]:
        encodable = [one.encode("utf-8", "replace").decode() for one in values]
        with self._reading() as snapshot:
            return snapshot.database.lookup(store_checks.check_field(field), encodable)

    def values(self, field: Field) -> dict[str, int]:
        with self._reading() as snapshot:
            return snapshot.database.values(store_checks.check_field(field))

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """In the block, every read of this thread sees one generation, whatever is written."""
        outer = self._pinned()
        with self._reading() as snapshot:
            self._local.snapshot = snapshot
            try:
                yield
            finally:
                self._local.snapshot = outer

    def _pinned(self) -> Snapshot | None:
        return getattr(self._local, "snapshot", None)

    def _reading(self) -> AbstractContextManager[Snapshot]:
        pinned = self._pinned()
        return self.snapshot() if pinned is None else nullcontext(pinned)

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """The last published generation. Keep it only briefly: SQLite's log grows meanwhile."""
        database = self._borrow()
        try:
            with sqlite_errors(self._file):
                for attempt in range(SNAPSHOT_TRIES):
                    with database.reading() as state:
                        try:
                            searcher = self._searcher_at(state)
                            file = vector_file(self.path, state.vectors)
                            records = open_records(file, state.dimension, state.slots)
                        except (_StaleIndexError, DamagedIndexError, FileNotFoundError) as error:
                            cause: Exception = error
                        else:
                            yield Snapshot(database, state, searcher, records)
                            return
                    if isinstance(cause, DamagedIndexError) and attempt > 0:
                        self._repair(cause)
        finally:
            self._give_back(database)
        if isinstance(cause, FileNotFoundError):
            hint = "restore it from a backup, or build the library again"
            raise DataError(f"{cause.filename} is missing", hint=hint)
        message = f"{self.path}: no consistent snapshot after {SNAPSHOT_TRIES} tries: {cause}"
        raise EngineError(message, hint="try again", retryable=True)

    def _searcher_at(self, state: StoreState) -> tantivy.Searcher | None:
        if not state.text:
            return None
        with self._guard:
            cached = self._searcher
            if (
                cached
                and cached.text == state.text
                and cached.first <= state.generation <= cached.last
            ):
                return cached.searcher
            if not self._reader or self._reader[0] != state.text:
                folder = self._readable(text_folder(self.path, state.text))
                self._reader = state.text, TextIndexReader(folder)
            searcher = self._reader[1].searcher()
            self._watch = self._watch or self._connect()
            now = self._watch.state()
            # Loaded after SQLite was read, the index contains this generation's rows unless it has
            # dropped some since. The writer may be one generation past the published one, and drops
            # what was deleted GRACE_GENERATIONS before that.
            oldest = now.generation + 1 - GRACE_GENERATIONS
            if now.text != state.text or oldest > state.generation:
                raise _StaleIndexError("the text index is newer")
            if searcher.num_docs < state.documents:
                self._reader = None
                raise DamagedIndexError(
                    f"the text index holds {searcher.num_docs} of {state.documents} documents"
                )
            self._searcher = _CachedSearcher(state.text, oldest, state.generation, searcher)
            return searcher

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

        A batch is durable and visible when `acknowledged` gets its ids, and stays if a later one
        fails. Without `vectors`, `encode` makes them from the texts. Only one batch is in memory.
        """
        count = 0
        with self._writing() as (writer, database):
            dimension = database.state().dimension or None
            documents, halves = store_checks.pair_vectors(documents, vectors, dimension=dimension)
            for batch in document_batches(documents, size=self._batch, characters=BATCH_CHARACTERS):
                part = None if halves is None else halves[count : count + len(batch)]
                kept, part = encode_batch(batch, part, encode, database.state().dimension)
                writer.put(kept, part)
                count += len(batch)
                if acknowledged is not None:
                    acknowledged([document.doc_id for document in kept])
            writer.clean_up()
        return count

    def delete(self, doc_ids: Iterable[DocId]) -> int:
        wanted = check_ids(doc_ids)
        with self._writing() as (writer, _):
            gone = writer.delete(wanted)
            writer.clean_up()
        return gone

    def compact(self) -> None:
        """Free the space that deleted and replaced documents still use in the indexes."""
        with self._writing() as (writer, _):
            writer.clean_up(garbage=0)

    @contextmanager
    def _writing(self) -> Iterator[tuple[StoreWriter, SqliteDocuments]]:
        with self._locked(), sqlite_errors(self._file):
            database = self._connect()
            try:
                writer = StoreWriter(self.path, database)
                try:
                    yield writer, database
                finally:
                    writer.close()
            except DamagedIndexError as error:
                message = f"the text index of {self.path} failed: {error}"
                raise EngineError(message, hint=DISK_HINT) from error
            finally:
                database.close()

    def _repair(self, damage: DamagedIndexError) -> None:
        """Rebuild the text index, unless another process just did or the system is at fault."""
        if damage.is_system_error:
            message = f"the text index of {self.path} cannot be read: {damage}"
            raise EngineError(message, hint=DISK_HINT) from damage
        with self._writing() as (writer, database):
            state = database.state()
            folder = text_folder(self.path, state.text)
            try:
                indexed = TextIndexReader(folder).searcher().num_docs if state.text else 0
            except DamagedIndexError:
                indexed = -1
            if indexed < state.documents or (self._searcher and self._searcher.text == state.text):
                writer.rebuild_index()
        with self._guard:
            self._reader = self._searcher = None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if self._frozen:
            hint = "check the folder's permissions"
            raise EngineError(f"{self.path} cannot be written", hint=hint)
        with writer_lock(self.path, wait_s=self._wait_s):
            yield

    # --------------------------------------------------------------------------------- connections

    def _create(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            hint = "give the path of the library's folder"
            raise InputError(f"{self.path} is a file, expected a folder", hint=hint)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"{self.path} cannot be created: {error}"
            raise EngineError(message, hint=disk_hint(error)) from error
        with self._locked():
            if not self._file.exists():  # else another process was faster
                create_database(self._file)

    def _connect(self) -> SqliteDocuments:
        return SqliteDocuments(self._file, frozen=self._frozen)

    def _borrow(self) -> SqliteDocuments:
        with self._guard:
            if self._closed:
                raise EngineError(f"the store {self.path} is closed", hint="open it again")
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _give_back(self, database: SqliteDocuments) -> None:
        if database.pid != os.getpid():
            _ABANDONED.append(database)
            return
        with self._guard:
            if not self._closed and len(self._idle) < MAX_IDLE:
                self._idle.append(database)
                return
        database.close()

    def _before_fork(self) -> None:
        with self._guard:
            idle = [*self._idle, *filter(None, [self._watch])]
            self._idle, self._watch = [], None
        for database in idle:
            database.close()

    def _after_fork(self) -> None:
        """In the child: start with nothing open and with unlocked locks."""
        _ABANDONED.extend([*self._idle, self._watch])
        self._guard, self._local = threading.Lock(), threading.local()
        self._reset()

    def _readable(self, folder: Path) -> Path:
        """The folder, or a mirror of links if it is read-only: tantivy locks even to read."""
        if not self._frozen:
            return folder
        self._mirror = self._mirror or tempfile.TemporaryDirectory(prefix="suffice-")
        mirror = Path(self._mirror.name)
        for file in folder.resolve().iterdir():
            if not file.name.endswith(".lock") and not (mirror / file.name).exists():
                (mirror / file.name).symlink_to(file)
        return mirror


def _open_at_generation(path: Path, generation: int) -> EmbeddedStore:
    hint = "put the library's folder where every worker sees it under this path"
    if not (path / DATABASE).exists():
        raise NotReadyError(f"there is no library at {path}", hint=hint)
    store = EmbeddedStore(path)
    if store.generation != generation:
        message = (
            f"the library at {path} is at generation {store.generation}, expected {generation}"
        )
        raise NotReadyError(message, hint=hint)
    return store


def _close_before_fork() -> None:
    for store in list(_OPEN_STORES):
        store._before_fork()


def _reset_after_fork() -> None:
    for store in list(_OPEN_STORES):
        store._after_fork()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(before=_close_before_fork, after_in_child=_reset_after_fork)
STORES.add("embedded", EmbeddedStore)
