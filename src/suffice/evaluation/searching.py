"""Named retrievers over a data set's own corpus, in memory: what every experiment begins with; and searching in blocks."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from typing import Any

from suffice.jobs import Job, JobRunner, identity, run_in_process, split_into_blocks
from suffice.protocols import Encoder, Progress, Retriever, Store
from suffice.registry import ENCODERS, RETRIEVERS
from suffice.retrieval import builtin  # noqa: F401 - importing it registers our retrievers
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.dense import BlockEncoder, PortableEncoder
from suffice.retrieval.memory import MemoryStore
from suffice.types import Document, Filter, Hit, RetrieverScore

__all__ = [
    "CachedRetriever",
    "RetrieverFactories",
    "RetrieverSet",
    "encoder_for",
    "index_documents",
    "open_retrievers",
    "retriever_factories",
    "search_in_blocks",
]

RetrieverFactories = Mapping[str, Callable[..., Retriever]]
_QUESTIONS = 256


def retriever_factories(names: Iterable[str]) -> RetrieverFactories:
    """By name; InputError names the nearest where there is no such retriever."""
    return {name: RETRIEVERS.get(name) for name in names}


def encoder_for(chosen: RetrieverFactories, name: str) -> Encoder | None:
    """The named encoder if one of them takes it: nobody else should have to wait for vectors."""
    return ENCODERS.get(name)() if any(map(_takes_encoder, chosen.values())) else None


def index_documents(
    documents: Iterable[Document],
    encoder: Encoder | None,
    progress: Progress | None,
    *,
    encoder_name: str = "",
    mapped: JobRunner | None = None,
) -> MemoryStore:
    """A store of the documents, with vectors where there is an encoder, which is registered as `encoder_name`.

    `mapped` is where they are encoded, here unless told.
    """
    held = list(documents)
    if encoder is None:
        return MemoryStore(held)
    spread = BlockEncoder(encoder_name or encoder.name, encoder, mapped or run_in_process, progress)
    return MemoryStore(held, spread.encode([searchable_text(document) for document in held]))


def open_retrievers(
    chosen: RetrieverFactories, store: Store, encoder: Encoder | None
) -> dict[str, Retriever]:
    """The retrievers, ready to search the store."""
    return {
        name: factory(store, encoder=encoder) if _takes_encoder(factory) else factory(store)
        for name, factory in chosen.items()
    }


def _takes_encoder(factory: Callable[..., Any]) -> bool:
    return "encoder" in inspect.signature(factory).parameters


class CachedRetriever:
    """A retriever that is asked for no question twice, unless deeper."""

    def __init__(self, inner: Retriever) -> None:
        self._inner = inner
        self._known: dict[str, tuple[int, tuple[Hit, ...]]] = {}

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        fresh = [one for one in dict.fromkeys(questions) if self._known.get(one, (0, ()))[0] < k]
        for start in range(0, len(fresh), _QUESTIONS):
            some = fresh[start : start + _QUESTIONS]
            self._known |= {
                one: (k, hits) for one, hits in zip(some, self._inner.search(some, k=k))
            }
        return [self._known[one][1][:k] for one in questions]


class RetrieverSet(Mapping[str, Retriever]):
    """Named retrievers over a store, made when the first is asked for. What travels are the names and the store.

    A store that cannot travel has a method `elsewhere`, which gives what opens it in another process.
    """

    def __init__(
        self, names: Iterable[str], store: Callable[[], Store], encoder: PortableEncoder | None
    ) -> None:
        self._names, self._store, self._encoder = tuple(names), store, encoder

    @classmethod
    def over(
        cls, names: Iterable[str], store: Store, encoder: Encoder | None, encoder_name: str
    ) -> RetrieverSet:
        """`encoder_name` is the one under which it is registered."""
        return cls(
            names,
            partial(identity, store),
            None if encoder is None else PortableEncoder.of(encoder_name, encoder),
        )

    @cached_property
    def _opened(self) -> dict[str, Retriever]:
        return open_retrievers(
            retriever_factories(self._names),
            self._store(),
            self._encoder.open() if self._encoder else None,
        )

    @cached_property
    def key(self) -> str:
        """A hash of the documents, the names and what the encoder says."""
        digest = hashlib.sha256(
            repr((self._names, self._encoder and self._encoder.fingerprint)).encode()
        )
        for document in self._store().documents():
            digest.update(json.dumps(asdict(document), default=str).encode())
        return digest.hexdigest()

    def __getitem__(self, name: str) -> Retriever:
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __reduce__(self) -> tuple[Any, ...]:
        store = self._store()
        elsewhere = getattr(store, "elsewhere", None)
        return RetrieverSet, (
            self._names,
            self._store if elsewhere is None else elsewhere(),
            self._encoder,
        )


def search_in_blocks(
    retrievers: RetrieverSet,
    name: str,
    questions: Sequence[str],
    k: int,
    mapped: JobRunner = run_in_process,
) -> Iterator[list[tuple[Hit, ...]]]:
    """The hits of each question, a block of questions at a time."""
    key = "" if mapped is run_in_process else f"{retrievers.key} {name} {k}"
    job = Job(f"searching with {name}", partial(_search_block, name=name, k=k), retrievers, key=key)
    for rows in mapped(job, split_into_blocks(questions, _QUESTIONS)):
        yield [tuple(_hit_from_row(one) for one in row) for row in rows]


def _search_block(
    questions: Sequence[str], retrievers: Mapping[str, Retriever], *, name: str, k: int
) -> list[list[list[Any]]]:
    return [[_hit_to_row(hit) for hit in hits] for hits in retrievers[name].search(questions, k=k)]


def _hit_to_row(hit: Hit) -> list[Any]:
    score = None if hit.score is None else float(hit.score)
    return [
        hit.doc_id,
        score,
        [[part.name, part.score] for part in hit.parts],
        list(hit.matched),
        hit.relaxed,
    ]


def _hit_from_row(row: Sequence[Any]) -> Hit:
    doc_id, score, parts, matched, relaxed = row
    return Hit(
        doc_id, score, tuple(RetrieverScore(*part) for part in parts), tuple(matched), relaxed
    )
