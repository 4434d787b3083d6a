"""How a batch becomes a generation of an embedded store: indexes first, SQLite last.

New rows enter the vector file and the text index before SQLite lists them. Deleted rows leave the
text index only GRACE_GENERATIONS later. So the indexes always contain at least what SQLite lists,
and a crash leaves at worst some rows that SQLite does not list. Only SQLite's commit publishes.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from suffice.engines.embedded.sqlite_documents import DocumentRow, SqliteDocuments, StoreState
from suffice.engines.embedded.text_index import DamagedIndexError, TextIndexWriter
from suffice.engines.embedded.vector_file import BLOCK_RECORDS, append_records, open_records
from suffice.errors import EngineError, disk_hint
from suffice.retrieval.store_checks import Halves
from suffice.storage.locks import POLL_S, lock_file
from suffice.types import DocId, Document

__all__ = ["GRACE_GENERATIONS", "StoreWriter", "text_folder", "vector_file", "writer_lock"]

LOCK_FILE = "writer.lock"
GRACE_GENERATIONS = 16  # a reader overtaken by this many while taking a snapshot starts again
MIN_GARBAGE = 1_000  # fewer deleted rows or empty slots are not worth a clean-up


@contextmanager
def writer_lock(folder: Path, *, wait_s: float) -> Iterator[None]:
    """Hold the exclusive right to write. The system releases it if the process dies."""
    try:
        handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise EngineError(f"{folder} cannot be written: {error}", hint=disk_hint(error)) from error
    try:
        deadline = time.monotonic() + wait_s
        while not lock_file(handle, wait=False):
            if time.monotonic() >= deadline:
                raise EngineError(
                    f"{folder} is being written by another process or thread (waited {wait_s:g} s)",
                    hint="wait until it is done, or open the store with a longer wait_s",
                    retryable=True,
                )
            time.sleep(POLL_S)
        yield
    finally:
        os.close(handle)


def text_folder(store: Path, number: int) -> Path:
    return store / f"text-{number}"


def vector_file(store: Path, number: int) -> Path:
    return store / f"vectors-{number}.f16"


class StoreWriter:
    """The only writer, while it holds the lock."""

    def __init__(self, path: Path, database: SqliteDocuments) -> None:
        self._path, self._database = path, database
        self._index: TextIndexWriter | None = None
        self._remove_leftovers(database.state())

    def put(self, documents: Sequence[Document], vectors: Halves | None) -> None:
        """Store documents with distinct ids as the next generation; durable on return."""
        try:
            self._publish(documents, vectors)
        except DamagedIndexError as error:  # nothing was published
            if error.is_system_error:
                raise
            self.rebuild_index()
            self._publish(documents, vectors)

    def _publish(self, documents: Sequence[Document], vectors: Halves | None) -> None:
        database, index = self._database, self._open_index()
        with database.writing():
            state = database.state()
            state = replace(state, text=max(state.text, 1))
            generation = state.generation + 1
            old = database.rows([document.doc_id for document in documents])
            database.remove(list(old.values()), generation=generation)
            rows = range(state.next_row, state.next_row + len(documents))
            ids = [document.doc_id for document in documents]
            places = [old[one].place if one in old else row for row, one in zip(rows, ids)]
            slots: Sequence[int | None] = [None] * len(documents)
            if vectors is not None:
                slots = range(state.slots, state.slots + len(rows))
                number = max(state.vectors, 1)
                append_records(vector_file(self._path, number), state.slots, rows, places, vectors)
                state = replace(
                    state, vectors=number, dimension=vectors.shape[1], slots=state.slots + len(rows)
                )
            stored = zip(rows, places, slots)
            database.insert(zip((DocumentRow(*one, ()) for one in stored), documents))
            index.add(zip(rows, documents))
            self._drop_deleted(index, until=generation - GRACE_GENERATIONS)
            index.commit()
            count = state.documents + len(documents) - len(old)
            database.set_state(
                replace(state, generation=generation, next_row=rows.stop, documents=count)
            )

    def delete(self, doc_ids: Sequence[DocId]) -> int:
        """Remove documents. SQLite stops listing their rows; the text index drops them later."""
        with self._database.writing():
            state = self._database.state()
            gone = list(self._database.rows(doc_ids).values())
            if gone:
                generation = state.generation + 1
                self._database.remove(gone, generation=generation)
                count = state.documents - len(gone)
                self._database.set_state(replace(state, generation=generation, documents=count))
        return len(gone)

    def rebuild_index(self) -> TextIndexWriter:
        """Build the text index from the documents, in a new folder."""
        with suppress(DamagedIndexError):
            self.close()
        with self._database.writing():
            state = self._database.state()
            state = replace(state, text=state.text + 1)
            index = self._index = TextIndexWriter(text_folder(self._path, state.text), fresh=True)
            index.add((at.row, document) for at, document in self._database.documents())
            index.commit()
            self._database.forget_deleted()
            self._database.set_state(state)
        return index

    def clean_up(self, *, garbage: int = MIN_GARBAGE) -> None:
        """Drop deleted rows and empty slots if they exceed a quarter of the documents."""
        garbage = max(garbage, self._database.state().documents // 4) if garbage else 0
        if self._database.deleted_count() > garbage:
            self._drop_all_deleted()
        if len(self._database.empty_slots()) > garbage:
            self._rewrite_vectors()

    def close(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            index.close()

    def _open_index(self) -> TextIndexWriter:
        if self._index is None:
            state = self._database.state()
            folder = text_folder(self._path, max(state.text, 1))
            try:
                self._index = TextIndexWriter(folder, fresh=state.text == 0)
                self._index.remove_from(state.next_row)
            except DamagedIndexError as error:
                self._index = None
                if error.is_system_error:
                    raise
                return self.rebuild_index()
        return self._index

    def _drop_deleted(self, index: TextIndexWriter, *, until: int) -> None:
        index.remove(self._database.deleted_rows(until=until))
        self._database.forget_deleted(until=until)

    def _drop_all_deleted(self) -> None:
        """Let GRACE_GENERATIONS pass, so that no reader needs the deleted rows, then drop them."""
        with self._database.writing():
            state = self._database.state()
            self._database.set_state(
                replace(state, generation=state.generation + GRACE_GENERATIONS)
            )
        index = self._open_index()
        with self._database.writing():
            state = self._database.state()
            self._drop_deleted(index, until=state.generation + 1 - GRACE_GENERATIONS)
            index.commit()
            self._database.set_state(replace(state, generation=state.generation + 1))

    def _rewrite_vectors(self) -> None:
        """Copy the used records into a new file; readers keep the old one mapped."""
        with self._database.writing():
            state = self._database.state()
            old = vector_file(self._path, state.vectors)
            records = open_records(old, state.dimension, state.slots)
            if records is None:
                return
            used = np.ones(state.slots, dtype=bool)
            used[self._database.empty_slots()] = False
            slots = np.flatnonzero(used)
            file = vector_file(self._path, state.vectors + 1)
            file.unlink(missing_ok=True)
            for start in range(0, len(slots), BLOCK_RECORDS):
                block = records[slots[start : start + BLOCK_RECORDS]]
                append_records(file, start, block["row"], block["place"], block["vector"])
            self._database.renumber_slots(slots)
            self._database.set_state(
                replace(
                    state,
                    generation=state.generation + 1,
                    vectors=state.vectors + 1,
                    slots=len(slots),
                    dimension=state.dimension if len(slots) else 0,
                )
            )

    def _remove_leftovers(self, state: StoreState) -> None:
        """Remove files that no generation uses, from crashed writers or older states."""
        for folder in self._path.glob("text-*"):
            if folder != text_folder(self._path, state.text):
                shutil.rmtree(folder, ignore_errors=True)
        for file in self._path.glob("vectors-*.f16"):
            if file != vector_file(self._path, state.vectors):
                file.unlink(missing_ok=True)
