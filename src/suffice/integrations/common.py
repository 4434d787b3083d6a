"""Another framework's documents under the gate: what the doors into frameworks share, without importing any of them.

    found = checked(question, search, gate)                       the framework's own documents, and the verdict on them
    found = checked(question, search, gate, budget=ExpansionBudget())        the same, after looking for what is missing

`search` asks the framework's retriever, queries in and lists of documents out. Documents pass only where the verdict is ANSWER.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from suffice.answering.expand import ExpansionBudget, expand
from suffice.errors import InputError
from suffice.gate.hits import normalize_hits
from suffice.protocols import GateLike
from suffice.storage.fields import content_id
from suffice.types import Action, DocId, Document, Filter, Hit, Verdict

__all__ = [
    "METADATA_KEY",
    "GatedDocuments",
    "gate_path",
    "load_gate",
    "search_and_check",
    "search_and_check_async",
    "verdict_metadata",
]

METADATA_KEY = (
    "suffice"  # where a document's metadata carries the verdict on the set that it came with
)
T = TypeVar("T")
Search = Callable[[Sequence[str]], Sequence[Iterable[T]]]
SearchAsync = Callable[[Sequence[str]], Awaitable[Sequence[Iterable[T]]]]


@dataclass(frozen=True, slots=True)
class GatedDocuments(Generic[T]):
    """The framework's own documents as it gave them, and what the gate says of them."""

    documents: list[T]
    verdict: Verdict

    @property
    def passed(self) -> list[T]:
        """The documents where they are enough, otherwise none."""
        return self.documents if self.verdict.action is Action.ANSWER else []


def load_gate(gate: GateLike | Path | str | None) -> GateLike:
    """The gate itself, the one saved at that path, or for None the one that ships."""
    if gate is not None and not isinstance(gate, str | Path):
        if not callable(getattr(gate, "check_batch", None)):
            raise InputError(
                f"the gate is a {type(gate).__name__}",
                hint="give a Gate, the path of a saved one, or None",
            )
        return gate
    from suffice.gate.gate import Gate

    return Gate.load(gate)


def gate_path(gate: GateLike | Path | str | None) -> str | None:
    """The gate as a pipeline's file can hold it.

    One that lives in memory alone has no address, and another one in its place would go unnoticed.
    """
    if gate is not None and not isinstance(gate, str | Path):
        raise InputError(
            "a gate in memory cannot be written into a pipeline's file",
            hint="save it with gate.save(PATH), and pass that path",
        )
    return None if gate is None else str(gate)


def verdict_metadata(verdict: Verdict) -> dict[str, Any]:
    """What a document's metadata carries: the verdict without its reasons, which would be repeated on every document."""
    told = verdict.as_json()
    del told["reasons"]
    return told


def search_and_check(
    question: str,
    search: Search[T],
    gate: GateLike,
    *,
    budget: ExpansionBudget | None = None,
    rounds_left: int = 1,
) -> GatedDocuments[T]:
    """What the search finds for the question, and the verdict. With a budget, what is missing is looked for by the same search.

    Without one, `rounds_left` is how many searches the caller has left.
    """
    (first,) = search([question])
    found = list(first or ())
    (verdict,) = gate.check_batch([(question, found)], rounds_left=rounds_left)
    if budget is None or verdict.action is Action.ANSWER:
        return GatedDocuments(found, verdict)
    port = _FrameworkRetriever(search)
    port.know(question, found)
    (done,) = expand([question], port, gate, port.get, budget=budget, clock=time.monotonic)
    if (
        not done.complete and done.verdict.p_complete < verdict.p_complete
    ):  # looking further has brought nothing
        return GatedDocuments(found, *gate.check_batch([(question, found)], rounds_left=0))
    return GatedDocuments([port.originals[hit.doc_id] for hit in done.hits], done.verdict)


async def search_and_check_async(
    question: str,
    search: SearchAsync[T],
    gate: GateLike,
    *,
    budget: ExpansionBudget | None = None,
    rounds_left: int = 1,
) -> GatedDocuments[T]:
    """`checked` over a search of the running event loop, which stays free while the gate thinks in a thread of its own."""
    loop = asyncio.get_running_loop()

    async def ask(queries: Sequence[str]) -> Sequence[Iterable[T]]:
        return await search(queries)

    def wait(queries: Sequence[str]) -> Sequence[Iterable[T]]:
        return asyncio.run_coroutine_threadsafe(ask(queries), loop).result()

    return await asyncio.to_thread(
        search_and_check, question, wait, gate, budget=budget, rounds_left=rounds_left
    )


class _FrameworkRetriever(Generic[T]):
    """A stranger's search as our Retriever port.

    Ids are made of titles and texts: his may be missing, or the same for all chunks of a file.
    """

    def __init__(self, search: Search[T]) -> None:
        self._search = search
        self._known: dict[str, tuple[Hit, ...]] = {}
        self._documents: dict[DocId, Document] = {}
        self.originals: dict[DocId, T] = {}

    def know(self, query: str, found: Iterable[T]) -> None:
        """Remember what was found for a query, so that it is not asked again."""
        hits: dict[DocId, Hit] = {}
        for one in found:
            (document,) = normalize_hits("", [one]).evidence.documents.values()
            doc_id = (
                content_id(document.title, document.text)
                if document.title or document.text
                else document.doc_id
            )
            self._documents.setdefault(doc_id, replace(document, doc_id=doc_id))
            self.originals.setdefault(doc_id, one)
            hits.setdefault(doc_id, Hit(doc_id))
        self._known[query] = tuple(hits.values())

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        """At most k hits for each question. Filters are the framework's own business."""
        new = [query for query in dict.fromkeys(questions) if query not in self._known]
        for query, found in zip(new, self._search(new) if new else (), strict=True):
            self.know(query, found or ())
        return [self._known[query][:k] for query in questions]

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        return [self._documents.get(doc_id) for doc_id in doc_ids]
