"""The door of the embedded store: one writer at a time, any number of readers in any number of processes.

with EmbeddedStore("folder") as store:
    store.put(documents)
    with store.pinned():                    # every read of the block sees one generation
        hits = store.search_text(["who?"], k=10)
        documents = store.get([hit.doc_id for hit in hits[0]])
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

import tantivy

from suffice.engines.embedded.lock import writer_lock
from suffice.engines.embedded.snapshot import Snapshot
from suffice.engines.embedded.truth import State, Truth, create_truth, sqlite_errors
from suffice.engines.embedded.vectors import Records, open_records
from suffice.engines.embedded.words import DamagedIndexError, WordReader
from suffice.engines.embedded.writer import GRACE, Writer, text_folder, vector_file
from suffice.errors import DataError, EngineError, InputError, NotReadyError, disk_hint
from suffice.ports import STORES, Look, Seen
from suffice.retrieve.corpus import searchable
from suffice.retrieve.stored import encodable, looked, paired, storable, stored_vectors
from suffice.types import DocId, Document, Field, Filter, Hit

__all__ = ["EmbeddedStore"]

TRUTH = "truth.sqlite"
TRIES = 20
BATCH_CHARACTERS = 32_000_000  # a batch of long documents ends before its count, so that memory stays bounded
IDLE = 8  # connections kept open for the next readers
FULL_OR_CLOSED = "see that the disk is whole, has room and may be written, then try again"

Acknowledged = Callable[[Sequence[DocId]], None]
Encode = Callable[[Sequence[str]], Any]

# SQLite's connections must not be used in a process that was forked, nor closed there: that would undo the parent's locks. A
# child leaves them as they are and opens its own.
_OPEN: weakref.WeakSet[EmbeddedStore] = weakref.WeakSet()
_LEFT_BEHIND: list[Truth | None] = []


class _MovedError(Exception):
    """The store went on while a snapshot was being taken; take another."""


@dataclass(frozen=True, slots=True)
class _Looked:
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
        self._file = self.path / TRUTH
        self._guard = threading.Lock()
        self._local = threading.local()
        self._frozen = self._file.exists() and not os.access(self.path, os.W_OK)
        self._mirror: tempfile.TemporaryDirectory[str] | None = None
        if not self._file.exists():
            self._create()
        self._watch: Truth | None = self._connect()
        self._idle: list[Truth] = []
        self._reader: tuple[int, WordReader] | None = None
        self._looked: _Looked | None = None
        self._closed = False
        _OPEN.add(self)

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
        return partial(_opened, self.path.resolve(), self.generation)

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
        raise EngineError(f"the text index of {self.path} was damaged and made anew", hint="search again", retryable=True)

    def search_vectors(self, vectors: Any, *, k: int, filters: Sequence[Filter | None] | None = None) -> list[tuple[Hit, ...]]:
        with self._reading() as snapshot:
            return snapshot.search_vectors(vectors, k=k, filters=filters)

    def look(self, looks: Sequence[Look], doc_ids: Sequence[DocId] = ()) -> Seen:
        with self.pinned():
            return looked(self, looks, doc_ids)

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
                for attempt in range(TRIES):
                    with truth.reading() as state:
                        try:
                            searcher, records = self._text_at(state), self._records_at(state)
                        except (_MovedError, DamagedIndexError, FileNotFoundError) as error:
                            trouble: Exception = error
                        else:
                            yield Snapshot(truth, state, searcher, records)
                            return
                    if isinstance(trouble, DamagedIndexError) and attempt > 0:
                        self._repair(trouble)
        finally:
            self._give_back(truth)
        if isinstance(trouble, FileNotFoundError):
            raise DataError(f"{trouble.filename} is missing", hint="restore it from a backup, or build the library again")
        raise EngineError(f"{self.path}: no consistent look after {TRIES} tries: {trouble}", hint="try again", retryable=True)

    def _text_at(self, state: State) -> tantivy.Searcher | None:
        if not state.text:
            return None
        with self._guard:
            looked = self._looked
            if looked and looked.text == state.text and looked.first <= state.generation <= looked.last:
                return looked.searcher
            if not self._reader or self._reader[0] != state.text:
                self._reader = state.text, WordReader(self._readable(text_folder(self.path, state.text)))
            searcher = self._reader[1].searcher()
            self._watch = self._watch or self._connect()
            now = self._watch.state()
            # The index was loaded after the truth, so it holds this generation's rows, unless it has forgotten some since:
            # the writer may be one generation beyond the published one, and forgets what died GRACE before that.
            oldest = now.generation + 1 - GRACE
            if now.text != state.text or oldest > state.generation:
                raise _MovedError("the text index went on")
            if searcher.num_docs < state.documents:
                self._reader = None
                raise DamagedIndexError(f"the text index holds {searcher.num_docs} of {state.documents} documents")
            self._looked = _Looked(state.text, oldest, state.generation, searcher)
            return searcher

    def _records_at(self, state: State) -> Records | None:
        if not state.slots:
            return None
        return open_records(vector_file(self.path, state.vectors), dimension=state.dimension, slots=state.slots)

    # ---------------------------------------------------------------------------------------------------- writing

    def put(
        self,
        documents: Iterable[Document],
        vectors: Any = None,
        *,
        encode: Encode | None = None,
        acknowledged: Acknowledged | None = None,
    ) -> int:
        """Add or replace documents, batch by batch; a batch is durable and visible when `acknowledged` is told its ids.

        Documents may be millions: only one batch is in memory. `encode` makes the vectors of a batch from its texts, where they
        are not given as an array. An error in the middle leaves the batches before it stored. Returns how many were taken in.
        """
        count = 0
        with self._writing() as (writer, truth):
            dimension = truth.state().dimension or None
            documents, halves = paired(documents, vectors, dimension=dimension)
            for batch in self._batches(documents):
                last = {document.doc_id: (document, at) for at, document in enumerate(batch, count)}
                kept = [document for document, _ in last.values()]
                part = None if halves is None else halves[[at for _, at in last.values()]]
                if encode is not None and part is None:
                    made = encode([searchable(document) for document in kept])
                    part = stored_vectors(made, documents=len(kept), dimension=truth.state().dimension or None)
                writer.put(kept, part)
                count += len(batch)
                if acknowledged is not None:
                    acknowledged(list(last))
            writer.tidy()
        return count

    def delete(self, doc_ids: Iterable[DocId]) -> int:
        if isinstance(doc_ids, str):
            raise InputError("expected ids, found one text", hint=f"write [{doc_ids!r}]")
        wanted = [one for one in dict.fromkeys(doc_ids) if isinstance(one, str) and encodable(one)]
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
            document = storable(document)
            batch.append(document)
            characters += len(document.text)
            if len(batch) >= self._batch or characters >= BATCH_CHARACTERS:
                yield batch
                batch, characters = [], 0
        if batch:
            yield batch

    @contextmanager
    def _writing(self) -> Iterator[tuple[Writer, Truth]]:
        with self._locked(), sqlite_errors(self._file):
            truth = self._connect()
            try:
                writer = Writer(self.path, truth)
                try:
                    yield writer, truth
                finally:
                    writer.close()
            except DamagedIndexError as error:
                raise EngineError(f"the text index of {self.path} failed: {error}", hint=FULL_OR_CLOSED) from error
            finally:
                truth.close()

    def _repair(self, trouble: DamagedIndexError) -> None:
        """Make the text index anew from the truth, unless somebody else just did, or the trouble lies elsewhere."""
        if trouble.elsewhere:
            raise EngineError(f"the text index of {self.path} cannot be read: {trouble}", hint=FULL_OR_CLOSED) from trouble
        with self._writing() as (writer, truth):
            state = truth.state()
            try:
                held = WordReader(text_folder(self.path, state.text)).searcher().num_docs if state.text else 0
            except DamagedIndexError:
                held = -1
            if held < state.documents or (self._looked and self._looked.text == state.text):
                writer.rebuild_words()
        with self._guard:
            self._reader = self._looked = None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if self._frozen:
            raise EngineError(f"{self.path} cannot be written", hint="check the folder's permissions")
        with writer_lock(self.path, wait_s=self._wait_s):
            yield

    # ------------------------------------------------------------------------------------------------ connections

    def _create(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file, expected a folder", hint="give the path of the library's folder")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EngineError(f"{self.path} cannot be made: {error}", hint=disk_hint(error)) from error
        with self._locked():
            if not self._file.exists():  # else another process was quicker
                create_truth(self._file)

    def _connect(self) -> Truth:
        return Truth(self._file, frozen=self._frozen)

    def _borrow(self) -> Truth:
        with self._guard:
            if self._closed:
                raise EngineError(f"the store {self.path} is closed", hint="open it again")
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _after_fork(self) -> None:
        """In the child: begin with nothing open, and with locks that no thread of the parent holds."""
        _LEFT_BEHIND.extend([*self._idle, self._watch])
        self._guard, self._local = threading.Lock(), threading.local()
        self._idle, self._watch, self._reader, self._looked = [], None, None, None

    def _give_back(self, truth: Truth) -> None:
        if truth.pid != os.getpid():
            _LEFT_BEHIND.append(truth)
            return
        with self._guard:
            if not self._closed and len(self._idle) < IDLE:
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


def _opened(path: Path, generation: int) -> EmbeddedStore:
    hint = "put the library's folder where every worker sees it under this path"
    if not (path / TRUTH).exists():
        raise NotReadyError(f"there is no library at {path}", hint=hint)
    store = EmbeddedStore(path)
    if store.generation != generation:
        raise NotReadyError(f"the library at {path} is at generation {store.generation}, expected {generation}", hint=hint)
    return store


def _forked() -> None:
    for store in list(_OPEN):
        store._after_fork()


os.register_at_fork(after_in_child=_forked)
STORES.add("embedded", EmbeddedStore)
