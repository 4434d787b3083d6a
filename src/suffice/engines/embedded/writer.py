"""How a batch becomes a generation of an embedded store: indexes first, truth last.

New rows go into the vector file and the text index before the truth names them; rows that died leave the text index only
GRACE generations after their death. So at every moment the indexes hold at least what the truth holds, a crash leaves
nothing worse than rows that no truth names, and committing the truth is the one step that publishes.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from suffice.engines.embedded.truth import Standing, State, Truth
from suffice.engines.embedded.vectors import append, open_records
from suffice.engines.embedded.words import DamagedIndexError, WordWriter
from suffice.retrieve.stored import Halves
from suffice.types import DocId, Document

__all__ = ["GRACE", "Writer", "text_folder", "vector_file"]

GRACE = 16  # a reader that takes a snapshot while this many generations pass has to take another
LITTER = 1_000  # fewer dead rows or empty slots than this are not worth a clean-up
BLOCK = 16_384


def text_folder(home: Path, number: int) -> Path:
    return home / f"text-{number}"


def vector_file(home: Path, number: int) -> Path:
    return home / f"vectors-{number}.f16"


class Writer:
    """The one writer, while it holds the lock."""

    def __init__(self, home: Path, truth: Truth) -> None:
        self._home, self._truth = home, truth
        self._words: WordWriter | None = None
        self._remove_leftovers(truth.state())

    def put(self, documents: Sequence[Document], vectors: Halves | None) -> None:
        """Store these documents, each id once, as the next generation. Durable and visible when it returns."""
        try:
            self._publish(documents, vectors)
        except DamagedIndexError as error:  # nothing was published; a text index that fails is made anew
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
            places = [old[one.doc_id].place if one.doc_id in old else row for row, one in zip(rows, documents)]
            if vectors is not None:
                state = self._append_vectors(state, rows, places, vectors)
            first = None if vectors is None else state.slots - len(documents)
            self._truth.insert(
                (Standing(row, place, None if first is None else first + n, ()), document)
                for n, (row, place, document) in enumerate(zip(rows, places, documents))
            )
            words.add(zip(rows, documents))
            self._forget(words, until=generation - GRACE)
            words.commit()
            count = state.documents + len(documents) - len(old)
            self._truth.set_state(replace(state, generation=generation, next_row=rows.stop, documents=count))

    def delete(self, doc_ids: Sequence[DocId]) -> int:
        """Take these documents out. The text index learns of it later: the truth names the rows no more."""
        with self._truth.writing():
            state = self._truth.state()
            gone = list(self._truth.standing(doc_ids).values())
            if gone:
                self._truth.bury(gone, died=state.generation + 1)
                count = state.documents - len(gone)
                self._truth.set_state(replace(state, generation=state.generation + 1, documents=count))
        return len(gone)

    def rebuild_words(self) -> WordWriter:
        """Make the text index anew from the truth, in a new folder."""
        with suppress(DamagedIndexError):
            self._close_words()
        with self._truth.writing():
            state = replace(self._truth.state(), text=self._truth.state().text + 1)
            words = self._words = WordWriter(text_folder(self._home, state.text), fresh=True)
            words.add((standing.row, document) for standing, document in self._truth.documents())
            words.commit()
            self._truth.forget()
            self._truth.set_state(state)
        return words

    def tidy(self, *, litter: int = LITTER) -> None:
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

    def _open_words(self) -> WordWriter:
        if self._words is None:
            state = self._truth.state()
            try:
                self._words = WordWriter(text_folder(self._home, max(state.text, 1)), fresh=state.text == 0)
                self._words.forget_from(state.next_row)
            except DamagedIndexError as error:
                self._words = None
                if error.elsewhere:
                    raise
                return self.rebuild_words()
        return self._words

    def _forget(self, words: WordWriter, *, until: int) -> None:
        words.forget(self._truth.buried(until=until))
        self._truth.forget(until=until)

    def _forget_all(self) -> None:
        """Let GRACE empty generations pass, so that nobody needs the buried rows; then forget them."""
        with self._truth.writing():
            state = self._truth.state()
            self._truth.set_state(replace(state, generation=state.generation + GRACE))
        words = self._open_words()
        with self._truth.writing():
            state = self._truth.state()
            self._forget(words, until=state.generation + 1 - GRACE)
            words.commit()
            self._truth.set_state(replace(state, generation=state.generation + 1))

    def _close_words(self) -> None:
        words, self._words = self._words, None
        if words is not None:
            words.close()

    # -------------------------------------------------------------------------------------------------- vectors

    def _append_vectors(self, state: State, rows: Sequence[int], places: Sequence[int], vectors: Halves) -> State:
        number, dimension = max(state.vectors, 1), vectors.shape[1]
        append(vector_file(self._home, number), state.slots, rows, places, vectors)
        return replace(state, vectors=number, dimension=dimension, slots=state.slots + len(rows))

    def _rewrite_vectors(self) -> None:
        """Copy the records that live into a new file; readers keep the old one mapped as long as they need it."""
        with self._truth.writing():
            state = self._truth.state()
            records = open_records(vector_file(self._home, state.vectors), dimension=state.dimension, slots=state.slots)
            lives = np.ones(state.slots, dtype=bool)
            lives[self._truth.empty_slots()] = False
            slots = np.flatnonzero(lives)
            file = vector_file(self._home, state.vectors + 1)
            file.unlink(missing_ok=True)
            for start in range(0, len(slots), BLOCK):
                block = records[slots[start : start + BLOCK]]
                append(file, start, block["row"], block["place"], block["vector"])
            self._truth.renumber_slots(slots)
            moved = replace(state, generation=state.generation + 1, vectors=state.vectors + 1, slots=len(slots))
            self._truth.set_state(moved if len(slots) else replace(moved, dimension=0))

    def _remove_leftovers(self, state: State) -> None:
        """Folders and files that no generation names: of crashed writers, and of generations gone by."""
        for folder in self._home.glob("text-*"):
            if folder != text_folder(self._home, state.text):
                shutil.rmtree(folder, ignore_errors=True)
        for file in self._home.glob("vectors-*.f16"):
            if file != vector_file(self._home, state.vectors):
                file.unlink(missing_ok=True)
