"""A retriever that searches each question once, for systems that are compared on the same ones."""

from __future__ import annotations

from collections.abc import Sequence

from suffice.protocols import Retriever
from suffice.types import Filter, Hit

__all__ = ["CachedRetriever"]

BLOCK = 256  # questions


class CachedRetriever:
    """A retriever that caches searches, unless a later one is deeper."""

    def __init__(self, inner: Retriever) -> None:
        self._inner = inner
        self._known: dict[str, tuple[int, tuple[Hit, ...]]] = {}

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        fresh = [one for one in dict.fromkeys(questions) if self._known.get(one, (0, ()))[0] < k]
        for start in range(0, len(fresh), BLOCK):
            some = fresh[start : start + BLOCK]
            found = self._inner.search(some, k=k)
            self._known |= {one: (k, hits) for one, hits in zip(some, found)}
        return [self._known[one][1][:k] for one in questions]
