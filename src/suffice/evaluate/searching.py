"""Named retrievers over a data set's own corpus, in memory: what every experiment begins with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from suffice.ports import ENCODERS, RETRIEVERS, Encoder, Progress, Retriever, Store
from suffice.retrieve import named  # noqa: F401 - importing it registers our retrievers
from suffice.retrieve.corpus import searchable
from suffice.retrieve.memory import MemoryStore
from suffice.types import Document, Filter, Hit

__all__ = ["Factories", "Remembered", "encoder_for", "factories", "indexed", "opened"]

Factories = Mapping[str, Callable[..., Retriever]]
_AT_ONCE, _ASKED = 1024, 64  # documents that are encoded, and questions that are searched, in one go


def factories(names: Iterable[str]) -> Factories:
    """By name; InputError names the nearest where there is no such retriever."""
    return {name: RETRIEVERS.get(name) for name in names}


def encoder_for(chosen: Factories, name: str) -> Encoder | None:
    """The named encoder if one of them takes it: nobody else should have to wait for vectors."""
    return ENCODERS.get(name)() if any(map(_takes_encoder, chosen.values())) else None


def indexed(documents: Iterable[Document], encoder: Encoder | None, progress: Progress | None) -> MemoryStore:
    """A store of the documents, with vectors where there is an encoder."""
    held = list(documents)
    if encoder is None:
        return MemoryStore(held)
    blocks = [np.zeros((0, encoder.dimension), np.float32)]
    for start in range(0, len(held), _AT_ONCE):
        blocks.append(encoder.encode([searchable(document) for document in held[start : start + _AT_ONCE]]))
        if progress is not None:
            progress("encoding", min(start + _AT_ONCE, len(held)), len(held))
    return MemoryStore(held, np.concatenate(blocks))


def opened(chosen: Factories, store: Store, encoder: Encoder | None) -> dict[str, Retriever]:
    """The retrievers, ready to search the store."""
    return {
        name: factory(store, encoder=encoder) if _takes_encoder(factory) else factory(store) for name, factory in chosen.items()
    }


def _takes_encoder(factory: Callable[..., Any]) -> bool:
    return "encoder" in inspect.signature(factory).parameters


class Remembered:
    """A retriever that is asked for no question twice, unless deeper."""

    def __init__(self, inner: Retriever) -> None:
        self._inner = inner
        self._known: dict[str, tuple[int, tuple[Hit, ...]]] = {}

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        fresh = [one for one in dict.fromkeys(questions) if self._known.get(one, (0, ()))[0] < k]
        for start in range(0, len(fresh), _ASKED):
            some = fresh[start : start + _ASKED]
            self._known |= {one: (k, hits) for one, hits in zip(some, self._inner.search(some, k=k))}
        return [self._known[one][1][:k] for one in questions]
