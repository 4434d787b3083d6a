"""A reader that remembers its readings, for gates that are fitted on several folds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from suffice.gate.reader import Fits, Reader, Reading
from suffice.protocols import Progress
from suffice.types import FoundAnswer

__all__ = ["CachedReader"]


class CachedReader(Reader):
    """Caches another reader: each list is read once."""

    def __init__(self, reader: Reader, *, progress: Progress | None = None, total: int = 0) -> None:
        self.reader, self.total, self.known = reader, total, dict[str, Reading]()
        self._name, self._progress = reader.name, progress

    @property
    def name(self) -> str:
        return self._name

    def read(self, question: str, titles: Sequence[str], texts: Sequence[str]) -> Reading:
        key = self.key(question, titles, texts)
        if key not in self.known:
            self.keep(key, self.reader.read(question, titles, texts))
        return self.known[key]

    def answer(
        self, question: str, titles: Sequence[str], texts: Sequence[str], fits: Fits = bool
    ) -> FoundAnswer:
        return self.reader.answer(question, titles, texts, fits)

    def key(self, question: str, titles: Sequence[str], texts: Sequence[str]) -> str:
        given = json.dumps([self._name, question, [*titles], [*texts]])
        return hashlib.sha256(given.encode()).hexdigest()[:32]

    def keep(self, key: str, found: Reading) -> None:
        self.known[key] = found
        if self._progress is not None:
            self._progress("reading", len(self.known), max(self.total, len(self.known)))
