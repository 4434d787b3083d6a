"""The protocols that plug-ins implement: retriever, encoder, reranker, language model, store.

Every method takes a batch and returns a batch. `suffice.testing` has contract tests for
implementations; `suffice.registry` finds implementations by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from suffice.types import DocId, Document, Extraction, Field, Filter, Hit, Opinion, Verdict

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.floating[Any]]

__all__ = [
    "Encoder",
    "Extractor",
    "GateLike",
    "HitTexts",
    "Judge",
    "LanguageModel",
    "Progress",
    "Reranker",
    "Retriever",
    "Store",
    "StoreQuery",
    "StoreResult",
    "component_name",
    "documents_by_id",
]

Progress = Callable[[str, int, int | None], None]  # task, number done, total


@runtime_checkable
class Retriever(Protocol):
    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        """Return at most k hits for each question, best first, without duplicates.

        `filters`, if given, has one entry per question.
        """
        ...


@runtime_checkable
class Encoder(Protocol):
    name: str
    dimension: int

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        """Return unit vectors: (texts, dimension), float32. An empty text gives a zero vector."""
        ...


@runtime_checkable
class Reranker(Protocol):
    def score(self, question: str, texts: Sequence[str]) -> Floats:
        """Score how well each text answers the question: (texts,), higher is better."""
        ...


@runtime_checkable
class LanguageModel(Protocol):
    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        """Complete each prompt; with a JSON schema, each completion is JSON that matches it."""
        ...


HitTexts = tuple[str, Sequence[str], Sequence[str]]  # a question, titles and texts of its hits


@runtime_checkable
class Judge(Protocol):
    """Says whether hits are complete: slower than a gate, and asked where that is unsure."""

    name: str

    def judge(self, lists: Sequence[HitTexts]) -> list[Opinion]:
        """Return an opinion for each list of hits; a failure is an opinion without log-odds."""
        ...


@runtime_checkable
class Extractor(Protocol):
    def extract(self, questions: Sequence[str]) -> list[Extraction]:
        """Return the metadata filter each question asks for. Never raise a model's error."""
        ...


class GateLike(Protocol):
    """The part of a gate that answering needs."""

    def check_batch(
        self,
        pairs: Iterable[Any],
        *,
        documents: Mapping[DocId, Document] | None = None,
        explain: bool = True,
        rounds_left: int = 1,
    ) -> list[Verdict]:
        """Return a verdict for each (question, hits)."""
        ...


@dataclass(frozen=True, slots=True)
class StoreQuery:
    """A query by text or by vector for at most k hits that pass the filter; with neither, none."""

    k: int
    text: str | None = None
    vector: Floats | None = None
    filter: Filter | None = None


@dataclass(frozen=True, slots=True)
class StoreResult:
    """The hits of each query, and the documents of all of them."""

    hits: list[tuple[Hit, ...]]
    documents: dict[DocId, Document]


@runtime_checkable
class Store(Protocol):
    """Stores documents. Writes are atomic for readers; each one raises `generation`."""

    @property
    def generation(self) -> int: ...

    def __len__(self) -> int: ...

    def put(self, documents: Iterable[Document], vectors: Floats | None = None) -> int:
        """Add or replace documents and return how many. On return they are durable."""
        ...

    def delete(self, doc_ids: Iterable[DocId]) -> int:
        """Remove documents and return how many; unknown ids are ignored."""
        ...

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        """Return the documents with these ids, None for an unknown id."""
        ...

    def documents(self) -> Iterator[Document]:
        """Yield all documents in the order of their first insertion."""
        ...

    def search_text(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        """BM25 over title and text; documents that share no word with the question are left out."""
        ...

    def search_vectors(
        self, vectors: Floats, *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        """Exact nearest neighbours by inner product among the documents that have a vector."""
        ...

    def query(self, queries: Sequence[StoreQuery], doc_ids: Sequence[DocId] = ()) -> StoreResult:
        """Run several queries and fetch these ids in one round trip."""
        ...

    def lookup(self, field: Field, values: Sequence[str]) -> list[tuple[DocId, ...]]:
        """For each value, the documents that have it, in insertion order."""
        ...

    def values(self, field: Field) -> dict[str, int]:
        """Every value of the field with its number of documents: the corpus's vocabulary."""
        ...


def documents_by_id(
    get: Callable[[Sequence[DocId]], Sequence[Document | None]], doc_ids: Iterable[DocId]
) -> dict[DocId, Document]:
    """Fetch each of these documents once with a store's `get`; deleted ones are left out."""
    wanted = list(dict.fromkeys(doc_ids))
    return {one.doc_id: one for one in get(wanted) if one is not None} if wanted else {}


def component_name(component: object) -> str:
    """The name of a model, encoder or reranker in records: its `name`, or its class name."""
    return str(getattr(component, "name", type(component).__name__))
