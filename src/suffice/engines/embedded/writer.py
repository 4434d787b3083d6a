"""One writer at a time: the right to write an embedded store is a locked file in its folder."""

from __future__ import annotations

import fcntl
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
from suffice.engines.embedded.vector_file import append_records, open_records
from suffice.errors import EngineError, disk_hint
from suffice.retrieval.store_checks import Halves
from suffice.types import DocId, Document

__all__ = ["GRACE_GENERATIONS", "StoreWriter", "text_folder", "vector_file", "writer_lock"]


LOCK_FILE = "writer.lock"
POLL_S = 0.02


@contextmanager
def writer_lock(folder: Path, *, wait_s: float) -> Iterator[None]:
    """Hold the right to write. The operating system takes it back from a process that dies, so no lock is ever left behind."""
    try:
        handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise EngineError(f"{folder} cannot be written: {error}", hint=disk_hint(error)) from error
    try:
        until = time.monotonic() + wait_s
        while not _try_lock(handle):
            if time.monotonic() >= until:
                raise EngineError(
                    f"{folder} is being written by another process or thread (waited {wait_s:g} s)",
                    hint="wait until it is done, or open the store with a longer wait_s",
                    retryable=True,
                )
            time.sleep(POLL_S)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# --- writer: How a batch becomes a generation of an embedded store: indexes first, truth last.

GRACE_GENERATIONS = (
    16  # a reader that takes a snapshot while this many generations pass has to take another
)
MIN_GARBAGE = 1_000  # fewer dead rows or empty slots than this are not worth a clean-up
BLOCK_RECORDS = 16_384


def text_folder(home: Path, number: int) -> Path:
    return home / f"text-{number}"


def vector_file(home: Path, number: int) -> Path:
    return home / f"vectors-{number}.f16"


class StoreWriter:
    """The one writer, while it holds the lock."""

    def __init__(self, home: Path, truth: SqliteDocuments) -> None:
        self._home, self._truth = home, truth
        self._words: TextIndexWriter | None = None
        self._remove_leftovers(truth.state())

    def put(self, documents: Sequence[Document], vectors: Halves | None) -> None:
        """Store these documents, each id once, as the next generation. Durable and visible when it returns."""
        try:
            self._publish(documents, vectors)
        except (
            DamagedIndexError
        ) as error:  # nothing was published; a text index that fails is made anew
            if error.elsewhere:
                raise
            self.rebuild_words()
            self._publish(documents, vectors)

    def _publish(self, documents: Sequence[Document], vectors: Halves | None) -> None:
        words = self._open_words()
        with self._truth.writing():
            state = self._truth.state()
            state = replace(state, text=max(state.text, 1))
            generation = state.generation + 1
            old = self._truth.standing([document.doc_id for document in documents])
            self._truth.bury(list(old.values()), died=generation)
            rows = range(state.next_row, state.next_row + len(documents))
            places = [
                old[one.doc_id].place if one.doc_id in old else row
                for row, one in zip(rows, documents)
            ]
            if vectors is not None:
                state = self._append_vectors(state, rows, places, vectors)
            first = None if vectors is None else state.slots - len(documents)
            self._truth.insert(
                (DocumentRow(row, place, None if first is None else first + n, ()), document)
                for n, (row, place, document) in enumerate(zip(rows, places, documents))
            )
            words.add(zip(rows, documents))
            self._forget(words, until=generation - GRACE_GENERATIONS)
            words.commit()
            count = state.documents + len(documents) - len(old)
            self._truth.set_state(
                replace(state, generation=generation, next_row=rows.stop, documents=count)
            )

    def delete(self, doc_ids: Sequence[DocId]) -> int:
        """Take these documents out. The text index learns of it later: the truth names the rows no more."""
        with self._truth.writing():
            state = self._truth.state()
            gone = list(self._truth.standing(doc_ids).values())
            if gone:
                self._truth.bury(gone, died=state.generation + 1)
                count = state.documents - len(gone)
                self._truth.set_state(
                    replace(state, generation=state.generation + 1, documents=count)
                )
        return len(gone)

    def rebuild_words(self) -> TextIndexWriter:
        """Make the text index anew from the truth, in a new folder."""
        with suppress(DamagedIndexError):
            self._close_words()
        with self._truth.writing():
            state = replace(self._truth.state(), text=self._truth.state().text + 1)
            words = self._words = TextIndexWriter(text_folder(self._home, state.text), fresh=True)
            words.add((standing.row, document) for standing, document in self._truth.documents())
            words.commit()
            self._truth.forget()
            self._truth.set_state(state)
        return words

    def tidy(self, *, litter: int = MIN_GARBAGE) -> None:
        """Clean up where more lies dead than a quarter of what lives."""
        state = self._truth.state()
        litter = max(litter, state.documents // 4) if litter else 0
        if self._truth.buried_count() > litter:
            self._forget_all()
        if len(self._truth.empty_slots()) > litter:
            self._rewrite_vectors()

    def close(self) -> None:
        self._close_words()

    # ----------------------------------------------------------------------------------------------- text index

    def _open_words(self) -> TextIndexWriter:
        if self._words is None:
            state = self._truth.state()
            try:
                self._words = TextIndexWriter(
                    text_folder(self._home, max(state.text, 1)), fresh=state.text == 0
                )
                self._words.forget_from(state.next_row)
            except DamagedIndexError as error:
                self._words = None
                if error.elsewhere:
                    raise
                return self.rebuild_words()
        return self._words

    def _forget(self, words: TextIndexWriter, *, until: int) -> None:
        words.forget(self._truth.buried(until=until))
        self._truth.forget(until=until)

    def _forget_all(self) -> None:
        """Let GRACE empty generations pass, so that nobody needs the buried rows; then forget them."""
        with self._truth.writing():
            state = self._truth.state()
            self._truth.set_state(replace(state, generation=state.generation + GRACE_GENERATIONS))
        words = self._open_words()
        with self._truth.writing():
            state = self._truth.state()
            self._forget(words, until=state.generation + 1 - GRACE_GENERATIONS)
            words.commit()
            self._truth.set_state(replace(state, generation=state.generation + 1))

    def _close_words(self) -> None:
        words, self._words = self._words, None
        if words is not None:
            words.close()

    # -------------------------------------------------------------------------------------------------- vectors

    def _append_vectors(
        self, state: StoreState, rows: Sequence[int], places: Sequence[int], vectors: Halves
    ) -> StoreState:
        number, dimension = max(state.vectors, 1), vectors.shape[1]
        append_records(vector_file(self._home, number), state.slots, rows, places, vectors)
        return replace(state, vectors=number, dimension=dimension, slots=state.slots + len(rows))

    def _rewrite_vectors(self) -> None:
        """Copy the records that live into a new file; readers keep the old one mapped as long as they need it."""
        with self._truth.writing():
            state = self._truth.state()
            records = open_records(
                vector_file(self._home, state.vectors), dimension=state.dimension, slots=state.slots
            )
            lives = np.ones(state.slots, dtype=bool)
            lives[self._truth.empty_slots()] = False
            slots = np.flatnonzero(lives)
            file = vector_file(self._home, state.vectors + 1)
            file.unlink(missing_ok=True)
            for start in range(0, len(slots), BLOCK_RECORDS):
                block = records[slots[start : start + BLOCK_RECORDS]]
                append_records(file, start, block["row"], block["place"], block["vector"])
            self._truth.renumber_slots(slots)
            moved = replace(
                state, generation=state.generation + 1, vectors=state.vectors + 1, slots=len(slots)
            )
            self._truth.set_state(moved if len(slots) else replace(moved, dimension=0))

    def _remove_leftovers(self, state: StoreState) -> None:
        """Folders and files that no generation names: of crashed writers, and of generations gone by."""
        for folder in self._home.glob("text-*"):
            if folder != text_folder(self._home, state.text):
                shutil.rmtree(folder, ignore_errors=True)
        for file in self._home.glob("vectors-*.f16"):
            if file != vector_file(self._home, state.vectors):
                file.unlink(missing_ok=True)
