"""Named retrievers over a data set's own corpus, in memory: what every experiment begins with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from suffice.ports import ENCODERS, RETRIEVERS, Encoder, Progress, Retriever, Store
from suffice.retrieve import named  # noqa: F401 - importing it registers our retrievers
from suffice.retrieve.corpus import searchable
from suffice.retrieve.memory import MemoryStore
from suffice.types import Document

__all__ = ["Factories", "encoder_for", "factories", "indexed", "opened"]

Factories = Mapping[str, Callable[..., Retriever]]
_AT_ONCE = 1024


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
