"""What the framework adapters share: search with the framework's retriever, then check.

    found = search_and_check(question, search, gate)                     documents and verdict
    found = search_and_check(question, search, gate, budget=budget)   also searches what is missing

`search` takes queries and returns lists of the framework's documents. Documents pass only if the
verdict is ANSWER, or if the gate is not familiar with such questions and hits: then its verdict is
no reason to hold anything back. No framework is imported here.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from suffice.answering.expand import ExpansionBudget, expand
from suffice.errors import InputError
from suffice.gate.hits import normalize_hits
from suffice.protocols import GateLike
from suffice.storage.fields import content_id
from suffice.types import LOW_FAMILIARITY, Action, DocId, Document, Filter, Hit, Verdict

__all__ = [
    "GatedDocuments",
    "UnfamiliarWarning",
    "load_gate",
    "search_and_check",
    "search_and_check_async",
]

METADATA_KEY = "suffice"  # where a document's metadata holds the verdict on its set
T = TypeVar("T")
Documents = Sequence[Iterable[T]]  # of each query
Search = Callable[[Sequence[str]], Documents[T]]
SearchAsync = Callable[[Sequence[str]], Awaitable[Documents[T]]]


@dataclass(frozen=True, slots=True)
class GatedDocuments(Generic[T]):
    """The framework's documents as it returned them, and the verdict on them."""

    documents: list[T]
    verdict: Verdict

    def passed(
        self, *, hold_back: bool = True, min_familiarity: float = LOW_FAMILIARITY
    ) -> list[T]:
        """The documents if they are enough, else none.

        All of them without `hold_back`, and where the gate is less familiar with such questions
        than `min_familiarity`.
        """
        enough = self.verdict.action is Action.ANSWER or not hold_back
        return self.documents if enough or self.is_unfamiliar(min_familiarity) else []

    def is_unfamiliar(self, min_familiarity: float = LOW_FAMILIARITY) -> bool:
        """Whether the verdict is no reason to hold documents back; warns the first time."""
        if self.verdict.familiarity >= min_familiarity:
            return False
        _warn_unfamiliar(self.verdict.unfamiliar)
        return True


class UnfamiliarWarning(UserWarning):
    """The gate does not know such questions or hits, so that it holds no document back."""


_warned: list[str] = []  # in this process, at most one


def _warn_unfamiliar(sentences: Sequence[str]) -> None:
    why = " ".join(sentences)
    if not _warned:
        _warned.append(why)
        message = (
            "suffice is not familiar with such questions or hits, and holds no document back."
            f" {why} Label some of your own questions and run `suffice fit`, or use"
            " gate.adapt(examples). This warning is shown once."
        )
        warnings.warn(message, UnfamiliarWarning, stacklevel=4)


def load_gate(gate: GateLike | Path | str | None) -> GateLike:
    """The gate itself, the one saved at this path, or the shipped one for None."""
    if gate is None or isinstance(gate, str | Path):
        from suffice.gate.gate import Gate

        return Gate.load(gate)
    if not callable(getattr(gate, "check_batch", None)):
        hint = "give a Gate, the path of a saved one, or None"
        raise InputError(f"the gate is a {type(gate).__name__}", hint=hint)
    return gate


def gate_path(gate: GateLike | Path | str | None) -> str | None:
    """The gate as a pipeline file can name it. One that is only in memory has no path."""
    if gate is not None and not isinstance(gate, str | Path):
        hint = "save it with gate.save(PATH), and pass that path"
        raise InputError("a gate in memory cannot be written into a pipeline file", hint=hint)
    return None if gate is None else str(gate)


def check_expansion(retriever: object, budget: ExpansionBudget | None) -> None:
    if (retriever is None) != (budget is None):
        message = "searching for what is missing needs a retriever and a budget"
        raise InputError(message, hint="give both, or neither")


def verdict_metadata(verdict: Verdict) -> dict[str, Any]:
    """The verdict for each document's metadata, without reasons and quotes, which would repeat."""
    left_out = ("reasons", "quotes")
    return {name: value for name, value in verdict.as_json().items() if name not in left_out}


def search_and_check(
    question: str,
    search: Search[T],
    gate: GateLike,
    *,
    budget: ExpansionBudget | None = None,
    rounds_left: int = 1,
) -> GatedDocuments[T]:
    """Search and check; with a budget, search again for what is missing.

    Without a budget, `rounds_left` is how many searches the caller has left.
    """
    (first,) = search([question])
    found = list(first or ())
    (verdict,) = gate.check_batch([(question, found)], rounds_left=rounds_left)
    if budget is None or verdict.action is Action.ANSWER:
        return GatedDocuments(found, verdict)
    retriever = _FrameworkRetriever(search)
    retriever.remember(question, found)
    clock = time.monotonic
    (done,) = expand([question], retriever, gate, retriever.get, budget=budget, clock=clock)
    if not done.complete and done.verdict.p_complete < verdict.p_complete:  # expanding did not help
        return GatedDocuments(found, *gate.check_batch([(question, found)], rounds_left=0))
    return GatedDocuments([retriever.originals[hit.doc_id] for hit in done.hits], done.verdict)


async def search_and_check_async(
    question: str,
    search: SearchAsync[T],
    gate: GateLike,
    *,
    budget: ExpansionBudget | None = None,
    rounds_left: int = 1,
) -> GatedDocuments[T]:
    """`search_and_check` in a thread, with a search in the running event loop."""
    loop = asyncio.get_running_loop()

    async def search_in_loop(queries: Sequence[str]) -> Documents[T]:
        return await search(queries)

    def wait(queries: Sequence[str]) -> Documents[T]:
        return asyncio.run_coroutine_threadsafe(search_in_loop(queries), loop).result()

    return await asyncio.to_thread(
        search_and_check, question, wait, gate, budget=budget, rounds_left=rounds_left
    )


class _FrameworkRetriever(Generic[T]):
    """A framework's search as a Retriever.

    Ids are hashes of title and text: the framework's may be missing, or shared by all chunks.
    """

    def __init__(self, search: Search[T]) -> None:
        self._search = search
        self._known: dict[str, tuple[Hit, ...]] = {}
        self._documents: dict[DocId, Document] = {}
        self.originals: dict[DocId, T] = {}

    def remember(self, query: str, found: Iterable[T]) -> None:
        """Keep what was found, so that this query is not sent again."""
        hits: dict[DocId, Hit] = {}
        for one in found:
            (document,) = normalize_hits("", [one]).evidence.documents.values()
            doc_id = document.doc_id
            if document.title or document.text:
                doc_id = content_id(document.title, document.text)
            self._documents.setdefault(doc_id, replace(document, doc_id=doc_id))
            self.originals.setdefault(doc_id, one)
            hits.setdefault(doc_id, Hit(doc_id))
        self._known[query] = tuple(hits.values())

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        """At most k hits for each question; the framework applies its own filters."""
        new = [query for query in dict.fromkeys(questions) if query not in self._known]
        for query, found in zip(new, self._search(new) if new else (), strict=True):
            self.remember(query, found or ())
        return [self._known[query][:k] for query in questions]

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        return [self._documents.get(doc_id) for doc_id in doc_ids]
