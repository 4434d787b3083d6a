"""What a reader of an embedded store sees: truth, text index and vectors at one generation, until it lets go.

The truth decides: a row that the text index or the vector file names and the truth of this generation does not, is no hit.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tantivy

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
    run_queries,
)
from suffice.types import DocId, Document, Field, Filter, Hit, Part

__all__ = ["EmbeddedStore", "Snapshot"]


EXTRA_HITS = 16  # hits asked for beyond k: room for the buried, and to see where a tie with the last one ends
MAX_TIES = 1_000  # of more equals than this the index's order decides which are kept

Mask = npt.NDArray[np.bool_]


class Snapshot:
    """The reading half of the Store port, at one generation."""

    def __init__(
        self,
        truth: SqliteDocuments,
        state: StoreState,
        searcher: tantivy.Searcher | None,
        records: Records | None,
    ) -> None:
        self._truth, self._state = truth, state
        self._searcher, self._records = searcher, records

    @property
    def generation(self) -> int:
        return self._state.generation

    def __len__(self) -> int:
        return self._state.documents

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        held = self._truth.get(
            list({one for one in doc_ids if isinstance(one, str) and is_utf8(one)})
        )
        return [held.get(doc_id) for doc_id in doc_ids]

    def documents(self) -> Iterator[Document]:
        return (document for _, document in self._truth.documents())

    def lookup(self, field: Field, values: Sequence[str]) -> list[tuple[DocId, ...]]:
        check_field(field)
        return self._truth.lookup(
            field, [one.encode("utf-8", "replace").decode() for one in values]
        )

    def values(self, field: Field) -> dict[str, int]:
        return self._truth.values(check_field(field))

    def search_text(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = check_search(questions, k, filters)
        wanted = check_filters(filters) or [None] * len(questions)
        return [self._text_hits(question, k, filter) for question, filter in zip(questions, wanted)]

    def _text_hits(self, question: str, k: int, filter: Filter | None) -> tuple[Hit, ...]:
        if self._searcher is None:
            return ()
        k = min(k, max(self._state.documents, 1))
        limit = k + EXTRA_HITS
        while True:
            found = search_index(self._searcher, question, limit, filter)
            named = self._truth.named([row for _, row in found])
            alive = [(-score, *named[row]) for score, row in found if row in named]
            exhausted = len(found) < limit
            # Hits beyond the limit cannot matter once the last one seen scores less than the k-th that is alive.
            settled = len(alive) >= k and (
                found[-1][0] < -alive[k - 1][0] or len(alive) >= k + MAX_TIES
            )
            if exhausted or settled:
                break
            limit *= 4
        return tuple(
            Hit(doc_id, -score, (Part("bm25", -score),)) for score, _, doc_id in sorted(alive)[:k]
        )

    def search_vectors(
        self, vectors: Any, *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        questions = check_query_vectors(vectors, dimension=self._state.dimension or None)
        k = check_search([""] * len(questions), k, filters)
        wanted = check_filters(filters) or [None] * len(questions)
        if self._records is None or not len(questions):
            return [()] * len(questions)
        filled = np.ones(len(self._records), dtype=bool)
        filled[self._truth.empty_slots()] = False
        passing = {
            filter: filled & self._passing(filter) if filter else filled for filter in set(wanted)
        }
        near = nearest_records(self._records, questions, k, [passing[filter] for filter in wanted])
        named = self._truth.named([int(row) for one in near for row in one.rows])
        return [
            tuple(
                Hit(named[row][1], score, (Part("dense", score),))
                for row, score in zip(one.rows.tolist(), one.scores.tolist())
            )
            for one in near
        ]

    def _passing(self, filter: Filter) -> Mask:
        mask = np.zeros(self._state.slots, dtype=bool)
        mask[self._truth.slots_passing(filter)] = True
        return mask


# --- store: The door of the embedded store: one writer at a time, any number of readers in any number of processes.

DATABASE = "truth.sqlite"
SNAPSHOT_TRIES = 20
BATCH_CHARACTERS = (
    32_000_000  # a batch of long documents ends before its count, so that memory stays bounded
)
MAX_IDLE = 8  # connections kept open for the next readers
DISK_HINT = "see that the disk is whole, has room and may be written, then try again"

OnStored = Callable[[Sequence[DocId]], None]
Encode = Callable[[Sequence[str]], Any]

# SQLite's connections must not be used in a process that was forked, nor closed there: that would undo the parent's locks. A
# child leaves them as they are and opens its own.
_OPEN_STORES: weakref.WeakSet[EmbeddedStore] = weakref.WeakSet()
_ABANDONED: list[SqliteDocuments | None] = []


class _StaleIndexError(Exception):
    """The store went on while a snapshot was being taken; take another."""


@dataclass(frozen=True, slots=True)
class _CachedSearcher:
    """A look at the text index that serves the generations from `first` to `last`, both included."""

    text: int
    first: int
    last: int
    searcher: tantivy.Searcher


class EmbeddedStore:
    """The Store port in one folder. `batch` documents at most become one generation; a longer `put` makes several.

    Of documents with the same id in one `put` the last is kept, at the place of the first. Threads may share a store, and so
    may a process and those that it forks.
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
        self._looked: _CachedSearcher | None = None
        self._closed = False
        _OPEN_STORES.add(self)

    def close(self) -> None:
        with self._guard:
            self._closed = True
            for truth in (*self._idle, *filter(None, [self._watch])):
                truth.close()
            self._idle, self._watch, self._reader, self._looked = [], None, None, None
        if self._mirror:
            self._mirror.cleanup()

    def __enter__(self) -> EmbeddedStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def elsewhere(self) -> Callable[[], EmbeddedStore]:
        """What opens this generation of the store in another process that sees the same folder."""
        return partial(_open_at_generation, self.path.resolve(), self.generation)

    # ---------------------------------------------------------------------------------------------------- reading

    @property
    def generation(self) -> int:
        with self._reading() as snapshot:
            return snapshot.generation

    def __len__(self) -> int:
        with self._reading() as snapshot:
            return len(snapshot)

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        with self._reading() as snapshot:
            return snapshot.get(doc_ids)

    def documents(self) -> Iterator[Document]:
        with self._reading() as snapshot:
            yield from snapshot.documents()

    def search_text(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        for _ in range(2):
            try:
                with self._reading() as snapshot:
                    return snapshot.search_text(questions, k=k, filters=filters)
            except DamagedIndexError as error:
                self._repair(error)
        raise EngineError(
            f"the text index of {self.path} was damaged and made anew",
            hint="search again",
            retryable=True,
        )

    def search_vectors(
        self, vectors: Any, *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        with self._reading() as snapshot:
            return snapshot.search_vectors(vectors, k=k, filters=filters)

    def query(self, queries: Sequence[StoreQuery], doc_ids: Sequence[DocId] = ()) -> StoreResult:
        with self.pinned():
            return run_queries(self, queries, doc_ids)

    def lookup(self, field: Field, values: Sequence[str]) -> list[tuple[DocId, ...]]:
        with self._reading() as snapshot:
            return snapshot.lookup(field, values)

    def values(self, field: Field) -> dict[str, int]:
        with self._reading() as snapshot:
            return snapshot.values(field)

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Inside the block every read of this thread sees one generation, whatever others write, and this thread too."""
        if getattr(self._local, "snapshot", None) is not None:
            yield
            return
        with self.snapshot() as snapshot:
            self._local.snapshot = snapshot
            try:
                yield
            finally:
                self._local.snapshot = None

    @contextmanager
    def _reading(self) -> Iterator[Snapshot]:
        pinned: Snapshot | None = getattr(self._local, "snapshot", None)
        if pinned is not None:
            yield pinned
        else:
            with self.snapshot() as snapshot:
                yield snapshot

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """The store at the last published generation. Let go soon: SQLite's log grows while anybody looks back."""
        truth = self._borrow()
        try:
            with sqlite_errors(self._file):
                for attempt in range(SNAPSHOT_TRIES):
                    with truth.reading() as state:
                        try:
                            searcher, records = self._text_at(state), self._records_at(state)
                        except (_StaleIndexError, DamagedIndexError, FileNotFoundError) as error:
                            trouble: Exception = error
                        else:
                            yield Snapshot(truth, state, searcher, records)
                            return
                    if isinstance(trouble, DamagedIndexError) and attempt > 0:
                        self._repair(trouble)
        finally:
            self._give_back(truth)
        if isinstance(trouble, FileNotFoundError):
            raise DataError(
                f"{trouble.filename} is missing",
                hint="restore it from a backup, or build the library again",
            )
        raise EngineError(
            f"{self.path}: no consistent look after {SNAPSHOT_TRIES} tries: {trouble}",
            hint="try again",
            retryable=True,
        )

    def _text_at(self, state: StoreState) -> tantivy.Searcher | None:
        if not state.text:
            return None
        with self._guard:
            looked = self._looked
            if (
                looked
                and looked.text == state.text
                and looked.first <= state.generation <= looked.last
            ):
                return looked.searcher
            if not self._reader or self._reader[0] != state.text:
                self._reader = (
                    state.text,
                    TextIndexReader(self._readable(text_folder(self.path, state.text))),
                )
            searcher = self._reader[1].searcher()
            self._watch = self._watch or self._connect()
            now = self._watch.state()
            # The index was loaded after the truth, so it holds this generation's rows, unless it has forgotten some since:
            # the writer may be one generation beyond the published one, and forgets what died GRACE before that.
            oldest = now.generation + 1 - GRACE_GENERATIONS
            if now.text != state.text or oldest > state.generation:
                raise _StaleIndexError("the text index went on")
            if searcher.num_docs < state.documents:
                self._reader = None
                raise DamagedIndexError(
                    f"the text index holds {searcher.num_docs} of {state.documents} documents"
                )
            self._looked = _CachedSearcher(state.text, oldest, state.generation, searcher)
            return searcher

    def _records_at(self, state: StoreState) -> Records | None:
        if not state.slots:
            return None
        return open_records(
            vector_file(self.path, state.vectors), dimension=state.dimension, slots=state.slots
        )

    # ---------------------------------------------------------------------------------------------------- writing

    def put(
        self,
        documents: Iterable[Document],
        vectors: Any = None,
        *,
        encode: Encode | None = None,
        acknowledged: OnStored | None = None,
    ) -> int:
        """Add or replace documents, batch by batch; a batch is durable and visible when `acknowledged` is told its ids.

        Documents may be millions: only one batch is in memory. `encode` makes the vectors of a batch from its texts, where they
        are not given as an array. An error in the middle leaves the batches before it stored. Returns how many were taken in.
        """
        count = 0
        with self._writing() as (writer, truth):
            dimension = truth.state().dimension or None
            documents, halves = pair_vectors(documents, vectors, dimension=dimension)
            for batch in self._batches(documents):
                last = {document.doc_id: (document, at) for at, document in enumerate(batch, count)}
                kept = [document for document, _ in last.values()]
                part = None if halves is None else halves[[at for _, at in last.values()]]
                if encode is not None and part is None:
                    made = encode([searchable_text(document) for document in kept])
                    part = check_document_vectors(
                        made, documents=len(kept), dimension=truth.state().dimension or None
                    )
                writer.put(kept, part)
                count += len(batch)
                if acknowledged is not None:
                    acknowledged(list(last))
            writer.tidy()
        return count

    def delete(self, doc_ids: Iterable[DocId]) -> int:
        if isinstance(doc_ids, str):
            raise InputError("expected ids, found one text", hint=f"write [{doc_ids!r}]")
        wanted = [one for one in dict.fromkeys(doc_ids) if isinstance(one, str) and is_utf8(one)]
        with self._writing() as (writer, _):
            gone = writer.delete(wanted)
            writer.tidy()
        return gone

    def compact(self) -> None:
        """Drop at once what deleted and replaced documents still occupy in the indexes."""
        with self._writing() as (writer, _):
            writer.tidy(litter=0)

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

    @contextmanager
    def _writing(self) -> Iterator[tuple[StoreWriter, SqliteDocuments]]:
        with self._locked(), sqlite_errors(self._file):
            truth = self._connect()
            try:
                writer = StoreWriter(self.path, truth)
                try:
                    yield writer, truth
                finally:
                    writer.close()
            except DamagedIndexError as error:
                raise EngineError(
                    f"the text index of {self.path} failed: {error}", hint=DISK_HINT
                ) from error
            finally:
                truth.close()

    def _repair(self, trouble: DamagedIndexError) -> None:
        """Make the text index anew from the truth, unless somebody else just did, or the trouble lies elsewhere."""
        if trouble.elsewhere:
            raise EngineError(
                f"the text index of {self.path} cannot be read: {trouble}", hint=DISK_HINT
            ) from trouble
        with self._writing() as (writer, truth):
            state = truth.state()
            try:
                held = (
                    TextIndexReader(text_folder(self.path, state.text)).searcher().num_docs
                    if state.text
                    else 0
                )
            except DamagedIndexError:
                held = -1
            if held < state.documents or (self._looked and self._looked.text == state.text):
                writer.rebuild_words()
        with self._guard:
            self._reader = self._looked = None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if self._frozen:
            raise EngineError(
                f"{self.path} cannot be written", hint="check the folder's permissions"
            )
        with writer_lock(self.path, wait_s=self._wait_s):
            yield

    # ------------------------------------------------------------------------------------------------ connections

    def _create(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise InputError(
                f"{self.path} is a file, expected a folder",
                hint="give the path of the library's folder",
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EngineError(
                f"{self.path} cannot be made: {error}", hint=disk_hint(error)
            ) from error
        with self._locked():
            if not self._file.exists():  # else another process was quicker
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

    def _after_fork(self) -> None:
        """In the child: begin with nothing open, and with locks that no thread of the parent holds."""
        _ABANDONED.extend([*self._idle, self._watch])
        self._guard, self._local = threading.Lock(), threading.local()
        self._idle, self._watch, self._reader, self._looked = [], None, None, None

    def _give_back(self, truth: SqliteDocuments) -> None:
        if truth.pid != os.getpid():
            _ABANDONED.append(truth)
            return
        with self._guard:
            if not self._closed and len(self._idle) < MAX_IDLE:
                self._idle.append(truth)
                return
        truth.close()

    def _readable(self, folder: Path) -> Path:
        """The folder, or where it cannot be written (tantivy locks even to read) a mirror of links to its files."""
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
        raise NotReadyError(
            f"the library at {path} is at generation {store.generation}, expected {generation}",
            hint=hint,
        )
    return store


def _reset_after_fork() -> None:
    for store in list(_OPEN_STORES):
        store._after_fork()


os.register_at_fork(after_in_child=_reset_after_fork)
STORES.add("embedded", EmbeddedStore)
