"""A reader whose readings are kept in a file, for studies that read the same lists again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from suffice.evaluation.reading_cache import CachedReader
from suffice.gate.extraction import drop_shared_sentences, reader_input
from suffice.gate.hits import normalize_hits
from suffice.gate.question import WordTable, parse_question
from suffice.gate.reader import Reader, Reading
from suffice.gate.training import LabelledQuestion
from suffice.protocols import Progress
from suffice.storage import write_atomically
from suffice.storage.artefacts import data_errors
from suffice_research.worker_pool import worker_pool

__all__ = ["StoredReader"]


class StoredReader(CachedReader):
    """Readings as JSON Lines in `path`, if given, for this reader only."""

    def __init__(
        self, reader: Reader, path: Path | None = None, *, progress: Progress | None = None
    ) -> None:
        super().__init__(reader, progress=progress)
        self._path = path
        if path is not None and path.exists():
            self.known = _load(path)

    def keep(self, key: str, found: Reading) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, *_values(found)]) + "\n")
        super().keep(key, found)

    def read_all(self, examples: Iterable[LabelledQuestion], *, k: int) -> None:
        """Read the first `k` hits of each example in advance, with one process per core."""
        wanted, words = {}, WordTable.load()
        for one in examples:
            hits = normalize_hits(one.question, one.hits, documents=one.documents, k=k)
            given = reader_input(drop_shared_sentences(hits, parse_question(hits.question, words)))
            wanted[self.key(*given)] = given
        fresh = {key: given for key, given in wanted.items() if key not in self.known}
        self.total = len(self.known) + len(fresh)
        folder = self.reader.folder
        with worker_pool(initializer=_open, initargs=(folder,)) as pool:
            found = pool.map(_read, fresh.values(), chunksize=4)
            for key, reading in zip(fresh, found, strict=True):
                self.keep(key, reading)


def _load(path: Path) -> dict[str, Reading]:
    """The readings in a file; an incomplete last line is dropped."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        write_atomically(path, whole)
    known = {}
    for number, line in enumerate(whole.splitlines(), start=1):
        where = f"line {number} of {path}"
        with data_errors(where, hint=f"delete {path}: the lists are read again"):
            key, *values = json.loads(line)
            known[str(key)] = _reading(values)
    return known


_readers: list[Reader] = []  # of this process


def _open(folder: Path) -> None:
    _readers.append(Reader(folder, threads=1))


def _read(given: tuple[str, list[str], list[str]]) -> Reading:
    return _readers[0].read(*given)


def _values(one: Reading) -> list[object]:
    needed, relevance, counts = (x.tolist() for x in (one.needed, one.relevance, one.counts))
    rest = (one.quotes, one.windows, one.unread, one.question_cut)
    return [needed, relevance, one.complete, counts, *rest]


def _reading(values: Sequence[Any]) -> Reading:
    needed, relevance, complete, counts, quotes, windows, unread, cut = values
    return Reading(
        np.array(needed, dtype=float), np.array(relevance, dtype=float), float(complete),
        np.array(counts, dtype=float), tuple(quotes), int(windows), int(unread), bool(cut),
    )  # fmt: skip
