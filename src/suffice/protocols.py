"""The seams: what a retriever, an encoder, a reranker, a language model and a store must do, and where to find them by name.

Every method takes a batch and returns a batch. `suffice.testing` holds the contract tests that an implementation must pass.
A plug-in is an entry point of the group `suffice.plugins` named `<kind>.<name>`, for example

    [project.entry-points."suffice.plugins"]
    "retriever.mine" = "my_package:build_retriever"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from suffice.errors import InputError, did_you_mean
from suffice.types import DocId, Document, Extraction, Field, Filter, Hit

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.floating[Any]]

__all__ = [
    "ENCODERS",
    "MAX_ANSWER_CHARS",
    "MAX_FAILURES_IN_A_ROW",
    "RERANKERS",
    "RETRIEVERS",
    "STORES",
    "Encoder",
    "Extractor",
    "Job",
    "JobRunner",
    "LanguageModel",
    "Progress",
    "Registry",
    "Reranker",
    "Retriever",
    "Store",
    "StoreQuery",
    "StoreResult",
    "component_name",
    "documents_by_id",
    "identity",
    "run_in_process",
    "split_into_blocks",
]

PLUGIN_GROUP = "suffice.plugins"
MAX_BLOCK_CHARS = (
    4_000_000  # a block of long records ends before its count, so that memory stays bounded
)
T = TypeVar("T")
MAX_FAILURES_IN_A_ROW = (
    2  # of a language model, after which it is left alone: each wait costs a whole time-out
)
MAX_ANSWER_CHARS = 20_000  # characters of a language model's that anybody reads
Progress = Callable[
    [str, int, int | None], None
]  # what is being done, how many are done, how many in all if known


@runtime_checkable
class Retriever(Protocol):
    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        """At most k hits for each question, best first, no document twice. `filters`, if given, has one entry a question."""
        ...


@runtime_checkable
class Encoder(Protocol):
    name: str
    dimension: int

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        """Unit vectors: (texts, dimension), float32. An empty text gives a zero vector."""
        ...


@runtime_checkable
class Reranker(Protocol):
    def score(self, question: str, texts: Sequence[str]) -> Floats:
        """How well each text answers the question: (texts,), higher is better."""
        ...


@runtime_checkable
class LanguageModel(Protocol):
    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        """One completion a prompt; with a JSON schema each is a JSON document that fits it."""
        ...


@runtime_checkable
class Extractor(Protocol):
    def extract(self, questions: Sequence[str]) -> list[Extraction]:
        """The metadata filter that each question asks for; an empty one where it asks for none. Never an error of a model."""
        ...


@dataclass(frozen=True, slots=True)
class StoreQuery:
    """One look into a store, by words or by a vector, for k hits at most that pass the filter. By neither: it finds nothing."""

    k: int
    text: str | None = None
    vector: Floats | None = None
    filter: Filter | None = None


@dataclass(frozen=True, slots=True)
class StoreResult:
    """The hits of each look, and the documents of all of them."""

    hits: list[tuple[Hit, ...]]
    documents: dict[DocId, Document]


@runtime_checkable
class Store(Protocol):
    """Where documents live. A write is seen by readers whole or not at all; `generation` grows with every write."""

    @property
    def generation(self) -> int: ...

    def __len__(self) -> int: ...

    def put(self, documents: Iterable[Document], vectors: Floats | None = None) -> int:
        """Add documents, replacing those with the same id; returns how many. Acknowledged means durable."""
        ...

    def delete(self, doc_ids: Iterable[DocId]) -> int:
        """Remove documents; unknown ids are passed over; returns how many went."""
        ...

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        """The documents of these ids, None where there is none."""
        ...

    def documents(self) -> Iterator[Document]:
        """All documents, in the order of their first insertion."""
        ...

    def search_text(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        """BM25 over title and text; documents that share no word with the question are no hits."""
        ...

    def search_vectors(
        self, vectors: Floats, *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        """Exact nearest neighbours by inner product among the documents that have a vector."""
        ...

    def look(self, looks: Sequence[StoreQuery], doc_ids: Sequence[DocId] = ()) -> StoreResult:
        """Several looks at once, with the documents found and those of these ids: one exchange, where a store is distant."""
        ...

    def lookup(self, field: Field, values: Sequence[str]) -> list[tuple[DocId, ...]]:
        """For each value the documents that carry it, in insertion order."""
        ...

    def values(self, field: Field) -> dict[str, int]:
        """Every value of the field with the number of documents that carry it: the closed vocabulary of this corpus."""
        ...


def documents_by_id(
    get: Callable[[Sequence[DocId]], Sequence[Document | None]], doc_ids: Iterable[DocId]
) -> dict[DocId, Document]:
    """The documents that a store's `get` has of these ids, each asked for once; one that is gone by now is left out."""
    wanted = list(dict.fromkeys(doc_ids))
    return {one.doc_id: one for one in get(wanted) if one is not None} if wanted else {}


def component_name(model: object) -> str:
    """What a model, encoder or reranker is called in a record: by its own `name`, or else by its class."""
    return str(getattr(model, "name", type(model).__name__))


def identity(shared: Any) -> Any:
    """What needs no preparation."""
    return shared


@dataclass(frozen=True)
class Job:
    """Work on an input that comes in blocks: `do(block, prepare(shared))`, prepared once a process, the same wherever it runs.

    It may run on another machine: functions are known by their module and name, or are partials of such. A result is made of
    JSON values, or is one array, so that it can be kept on disk. `key` names all that a result depends on besides the block and
    the code: where it is empty, nothing is kept.
    """

    name: str  # in words, like "checking"
    do: Callable[[Any, Any], Any]
    shared: Any = None
    prepare: Callable[[Any], Any] = identity
    key: str = ""


JobRunner = Callable[
    [Job, Iterable[Any]], Iterator[Any]
]  # a place to run a job: the results, in the order of the blocks


def run_in_process(job: Job, blocks: Iterable[Any]) -> Iterator[Any]:
    """Here and now, one block after the other. `suffice.engines.batch` knows other places."""
    ready = job.prepare(job.shared)
    return (job.do(block, ready) for block in blocks)


def split_into_blocks(
    items: Iterable[T], most: int, *, letters: Callable[[T], int] | None = None
) -> Iterator[list[T]]:
    """At most so many in a block, and with `letters` at most BLOCK_LETTERS of them (but always one)."""
    block: list[T] = []
    size = 0
    items = iter(items)
    while True:
        try:
            item = next(items)
        except StopIteration:
            break
        except Exception:
            if block:  # what was read before the trouble comes before it
                yield block
            raise
        block.append(item)
        size += letters(item) if letters else 0
        if len(block) >= most or size >= MAX_BLOCK_CHARS:
            yield block
            block, size = [], 0
    if block:
        yield block


class Registry(Generic[T]):
    """Names to factories: our own by `add`, other packages' through entry points.

    Plug-ins are looked for once, when a name is first asked for: a package that is installed later is seen by the next process.
    A broken plug-in is told with its package by whoever asks for it, and disturbs nobody else.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._factories: dict[str, Callable[..., T]] = {}

    def add(self, name: str, factory: Callable[..., T]) -> None:
        if name in self._factories:
            raise InputError(
                f"a {self.kind} named {name!r} is registered already", hint="choose another name"
            )
        self._factories[name] = factory

    def names(self) -> list[str]:
        """All names, ours in the order they were registered, then the plug-ins'."""
        return list(dict.fromkeys([*self._factories, *self._plugins]))

    def get(self, name: str) -> Callable[..., T]:
        """The factory of this name; InputError with the nearest names if there is none."""
        if name not in self._factories and (plugin := self._plugins.get(name)) is not None:
            try:
                self._factories[name] = plugin.load()
            except Exception as error:  # a stranger's code may raise anything
                package = plugin.dist.name if plugin.dist else plugin.module
                raise InputError(
                    f"the {self.kind} {name!r} of package {package!r} cannot be loaded: {type(error).__name__}: {error}",
                    hint=f"mend {plugin.value!r}, its entry point, and install the package again",
                ) from error
        if name not in self._factories:
            raise InputError(
                f"no {self.kind} is named {name!r}", hint=did_you_mean(name, self.names())
            )
        return self._factories[name]

    @cached_property  # reading what every installed package says takes milliseconds, and a service is asked often
    def _plugins(self) -> dict[str, metadata.EntryPoint]:
        prefix = self.kind + "."
        found = metadata.entry_points(group=PLUGIN_GROUP)
        return {
            point.name.removeprefix(prefix): point
            for point in found
            if point.name.startswith(prefix)
        }


RETRIEVERS: Registry[Retriever] = Registry("retriever")
ENCODERS: Registry[Encoder] = Registry("encoder")
RERANKERS: Registry[Reranker] = Registry("reranker")
STORES: Registry[Store] = Registry("store")
