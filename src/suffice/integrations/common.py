"""Shared by the framework adapters: search with the framework's retriever, then check.

    found = search_and_check(question, search, gate)                     documents and verdict
    found = search_and_check(question, search, gate, budget=budget)   also searches what is missing
    guard = Guard(gate, "langchain", log=log)              the same, with a rule and a log
    guard.passed(guard.check(question, search), mark, as_document)

`search` takes queries and returns lists of the framework's documents. They pass, each with the
verdict in its metadata, if the verdict is ANSWER, or if the gate is not familiar with such
questions and hits: its verdict is then no reason to interfere. Otherwise `on_incomplete` decides:

    mark    they pass after a short document that says that the evidence is incomplete
    empty   none pass
    raise   IncompleteEvidenceError, with the verdict

A guard with `act=False` (shadow mode) passes on all documents unchanged and only logs. This module
imports no framework.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args

from suffice.answering.expand import ExpansionBudget, check_gate, expand
from suffice.errors import (
    IncompleteEvidenceError,
    InputError,
    SufficeError,
    check_names,
    did_you_mean,
    disk_hint,
)
from suffice.evaluation.verdict_log import Outcome, VerdictLog, guard_outcome, logged_verdict
from suffice.gate.gate_ref import gate_identity
from suffice.gate.hits import normalize_hits
from suffice.protocols import GateLike
from suffice.storage.fields import content_id
from suffice.types import (
    LOW_FAMILIARITY,
    Action,
    DocId,
    Document,
    Estimate,
    Filter,
    Hit,
    Verdict,
    printable,
)

__all__ = [
    "GatedDocuments",
    "HeldBackWarning",
    "ShadowWarning",
    "UnfamiliarWarning",
    "load_gate",
    "search_and_check",
    "search_and_check_async",
]

METADATA_KEY = "suffice"  # metadata key for the verdict on a document's set
NOTE_TITLE = (
    "Incomplete evidence"  # of the document that comes before documents that are not enough
)
MAX_NAMED = 5  # names in that document
OnIncomplete = Literal["mark", "empty", "raise"]
T = TypeVar("T")
Documents = Sequence[Iterable[T]]  # for each query
Search = Callable[[Sequence[str]], Documents[T]]
SearchAsync = Callable[[Sequence[str]], Awaitable[Documents[T]]]


@dataclass(frozen=True, slots=True)
class GatedDocuments(Generic[T]):
    """The framework's documents as returned, and the verdict on them."""

    documents: list[T]
    verdict: Verdict


class UnfamiliarWarning(UserWarning):
    """The gate is not familiar with such questions or hits, so all documents pass as they are."""


class HeldBackWarning(UserWarning):
    """A guard with `on_incomplete="empty"` has held documents back, for the first time."""


class ShadowWarning(UserWarning):
    """In shadow mode, a verdict could not be made or logged; the documents pass anyway."""


_warned: list[type[Warning]] = []  # at most once each per process


def _warn_once(kind: type[Warning], message: str) -> None:
    if kind not in _warned:
        _warned.append(kind)
        warnings.warn(f"{message} This warning is shown once.", kind, stacklevel=5)


def _warn_unfamiliar(sentences: Sequence[str]) -> None:
    _warn_once(
        UnfamiliarWarning,
        "suffice is not familiar with such questions or hits, and marks nothing as incomplete."
        f" {' '.join(sentences)} Label some of your own questions, then run"
        " `suffice adapt labels.jsonl --out gate`.",
    )


def _warn_held_back(found: GatedDocuments[Any]) -> None:
    """Say once that an empty result is intended: it looks the same as an empty index."""
    if found.documents:
        _warn_once(
            HeldBackWarning,
            f"suffice held back {len(found.documents)} documents: {_in_short(found.verdict)}."
            " To see what it would hold back before it does, use act=False and log=FILE, then"
            " `suffice report --shadow FILE`.",
        )


def _in_short(verdict: Verdict) -> str:
    missing = f"; missing: {', '.join(verdict.missing[:MAX_NAMED])}" if verdict.missing else ""
    return f"{verdict.action}, p_complete {verdict.p_complete:.2f}{missing}"


def incomplete_note(verdict: Verdict) -> str:
    """What a model that is given the documents should know: written for it, and for people."""
    names = ", ".join(map(printable, verdict.missing[:MAX_NAMED]))
    missing = f" Missing: {names}." if names else ""
    return (
        "The evidence is incomplete: the documents found do not seem to contain everything that the"
        f" question needs.{missing} Say so, and do not guess what they do not state."
    )


@dataclass(frozen=True)
class Guard:
    """A gate between a framework's retriever and its model, and what it may do."""

    gate: GateLike
    name: str  # of the framework, for the log
    budget: ExpansionBudget | None = None
    on_incomplete: OnIncomplete = "mark"
    min_familiarity: float = LOW_FAMILIARITY
    act: bool = True
    log: VerdictLog | None = None
    sends_queries: bool = False  # on EXPAND, the pipeline gets queries and searches itself

    def __post_init__(self) -> None:
        check_guard(self.budget, self.on_incomplete, self.min_familiarity, self.act)

    def check(self, question: str, search: Search[T], *, rounds_left: int = 1) -> GatedDocuments[T]:
        """Search, check and log. With `act=False`: one search, and no error of the gate."""
        if self.act:
            found = search_and_check(
                question, search, self.gate, budget=self.budget, rounds_left=rounds_left
            )
        else:
            (first,) = search([question])
            documents = list(first or ())
            try:
                pair = (question, documents)
                (verdict,) = self.gate.check_batch([pair], rounds_left=rounds_left)
            except Exception as error:  # noqa: BLE001 - the pipeline must run as without us
                _warn_once(ShadowWarning, f"suffice could not check a question: {error!r:.300}.")
                return GatedDocuments(documents, _unknown_verdict(error))
            found = GatedDocuments(documents, verdict)
        self.write_log(question, found)
        return found

    async def check_async(
        self, question: str, search: SearchAsync[T], *, rounds_left: int = 1
    ) -> GatedDocuments[T]:
        """`check` in a thread, with a search in the running event loop."""

        def check(wait: Search[T]) -> GatedDocuments[T]:
            return self.check(question, wait, rounds_left=rounds_left)

        return await _run_with_async_search(check, search)

    def passed(
        self,
        found: GatedDocuments[T],
        mark: Callable[[T, dict[str, Any]], T],
        as_document: Callable[[str, dict[str, Any]], T],
    ) -> list[T]:
        """The documents that pass.

        `mark` returns a document with this metadata added, `as_document` makes one from a text and
        its metadata, both in the framework's form.
        """
        if not self.act:
            return found.documents
        enough = self.passes(found.verdict)
        if not enough and self.on_incomplete == "raise":
            message = f"the evidence is incomplete: {_in_short(found.verdict)}"
            raise IncompleteEvidenceError(message, verdict=found.verdict)
        if not enough and self.on_incomplete == "empty":
            _warn_held_back(found)
            return []
        about = {METADATA_KEY: verdict_metadata(found.verdict)}
        marked = [mark(one, about) for one in found.documents]
        note = {"title": NOTE_TITLE, **about}
        return marked if enough else [as_document(incomplete_note(found.verdict), note), *marked]

    def passes(self, verdict: Verdict) -> bool:
        """Whether all documents pass as they are; warns the first time that it is only because the
        gate is not familiar with such a list.
        """
        if verdict.action is Action.ANSWER or verdict.familiarity >= self.min_familiarity:
            return verdict.action is Action.ANSWER
        _warn_unfamiliar(verdict.unfamiliar)
        return True

    def outcome(self, verdict: Verdict) -> Outcome:
        """What the guard does after this verdict, or would do if it acted."""
        outcome = guard_outcome(verdict, self.min_familiarity)
        if outcome is Outcome.PASS:
            return outcome
        searches = self.budget is not None and not self.act  # otherwise it has searched already
        if searches or (self.sends_queries and verdict.action is Action.EXPAND):
            return Outcome.SEARCH
        return outcome

    @cached_property
    def _gate_identity(self) -> str:
        return gate_identity(self.gate)

    def write_log(self, question: str, found: GatedDocuments[Any]) -> None:
        """Log the verdict. A failure here must not stop a pipeline."""
        if self.log is None:
            return
        verdict = found.verdict
        about: Any = {"outcome": self.outcome(verdict), "acted": self.act, "by": self.name}
        try:
            row = logged_verdict(
                question, found.documents, verdict, gate=self._gate_identity, **about
            )
            self.log.write(row)
        except (OSError, SufficeError, ValueError) as error:
            hint = f" {disk_hint(error)}." if isinstance(error, OSError) else ""
            message = f"suffice could not write to {self.log.path}: {error}.{hint}"
            _warn_once(ShadowWarning, message)


def _unknown_verdict(error: Exception) -> Verdict:
    """For documents that could not be checked: nothing is known, and nothing may be held back."""
    why = (f"The check failed: {error!r:.300}.",)
    return Verdict(Estimate(0.5, 0.0, 1.0), Action.ABSTAIN, familiarity=0.0, unfamiliar=why)


def open_log(log: Any, *, act: bool) -> VerdictLog | None:
    """The log itself, or one at this path or as described by `log_json`."""
    if log is None and not act:
        # The advice is part of the message, because pydantic's models show no hint.
        message = "act=False only logs verdicts, and there is no log: add log='shadow.jsonl'"
        raise InputError(message, hint="later run: suffice report --shadow shadow.jsonl")
    if log is None or isinstance(log, VerdictLog):
        return log
    if isinstance(log, Mapping):
        check_names(log, VerdictLog.__dataclass_fields__, "log")
        return VerdictLog(**log)
    if not isinstance(log, str | Path):
        hint = "give the path of a file, or VerdictLog(path, texts=True)"
        raise InputError(f"log is a {type(log).__name__}", hint=hint)
    return VerdictLog(log)


def log_json(log: Any) -> Any:
    """The log as JSON values for a pipeline file."""
    if isinstance(log, VerdictLog):
        return {**asdict(log), "path": str(log.path)}
    return str(log) if isinstance(log, Path) else log


def load_gate(gate: GateLike | Path | str | None) -> GateLike:
    """The gate itself, the one saved at this path, or the shipped one for None."""
    if gate is None or isinstance(gate, str | Path):
        from suffice.gate.gate import Gate

        return Gate.load(gate)
    check_gate(gate)
    return gate


def gate_path(gate: GateLike | Path | str | None) -> str | None:
    """The gate's path for a pipeline file. A gate that exists only in memory has none."""
    if gate is not None and not isinstance(gate, str | Path):
        hint = "save it with gate.save(PATH), and pass that path"
        raise InputError("a gate in memory cannot be written into a pipeline file", hint=hint)
    return None if gate is None else str(gate)


def check_guard(
    budget: object, on_incomplete: object, min_familiarity: object, act: object
) -> None:
    """Refuse "no" for False, which would count as True, and a familiarity that no list can have."""
    if not isinstance(budget, ExpansionBudget | None):
        hint = "for example suffice.ExpansionBudget(rounds=3)"
        raise InputError(f"budget is {budget!r:.80}, expected an ExpansionBudget", hint=hint)
    if on_incomplete not in get_args(OnIncomplete):
        hint = did_you_mean(str(on_incomplete), get_args(OnIncomplete))
        raise InputError(f"on_incomplete is {on_incomplete!r:.80}", hint=hint)
    if not isinstance(act, bool):
        hint = "without quotes, in Python"
        raise InputError(f"act is {act!r:.80}, expected True or False", hint=hint)
    number = isinstance(min_familiarity, int | float) and not isinstance(min_familiarity, bool)
    if not (number and 0 <= min_familiarity <= 1):  # type: ignore[operator]
        message = f"min_familiarity is {min_familiarity!r:.80}, expected a number from 0 to 1"
        hint = f"the default is {LOW_FAMILIARITY}; 0 trusts the gate always"
        raise InputError(message, hint=hint)


def check_expansion(retriever: object, budget: object, *, method: str) -> None:
    if (retriever is None) != (budget is None):
        message = "searching for what is missing needs a retriever and a budget"
        raise InputError(message, hint="give both, or neither")
    if retriever is not None:
        check_retriever(retriever, callable(getattr(retriever, method, None)), f"with .{method}()")


def check_retriever(retriever: object, searches: bool, expected: str) -> None:
    """InputError unless it `searches`: now, not at the first question."""
    if not searches:
        # The advice is part of the message, because pydantic's models show no hint.
        raise InputError(f"the retriever is {retriever!r:.80}, expected one {expected}")


def verdict_metadata(verdict: Verdict) -> dict[str, Any]:
    """The verdict for each document's metadata, without reasons and quotes, which would repeat."""
    left_out = {"reasons", "quotes"} | ({"judged"} if verdict.judged is None else set())
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

    def check(wait: Search[T]) -> GatedDocuments[T]:
        return search_and_check(question, wait, gate, budget=budget, rounds_left=rounds_left)

    return await _run_with_async_search(check, search)


async def _run_with_async_search(
    check: Callable[[Search[T]], GatedDocuments[T]], search: SearchAsync[T]
) -> GatedDocuments[T]:
    loop = asyncio.get_running_loop()

    async def search_in_loop(queries: Sequence[str]) -> Documents[T]:
        return await search(queries)

    def wait(queries: Sequence[str]) -> Documents[T]:
        return asyncio.run_coroutine_threadsafe(search_in_loop(queries), loop).result()

    return await asyncio.to_thread(check, wait)


class _FrameworkRetriever(Generic[T]):
    """A framework's search as a Retriever.

    Ids are hashes of title and text: the framework's ids may be missing, or shared by all chunks.
    """

    def __init__(self, search: Search[T]) -> None:
        self._search = search
        self._known: dict[str, tuple[Hit, ...]] = {}
        self._documents: dict[DocId, Document] = {}
        self.originals: dict[DocId, T] = {}

    def remember(self, query: str, found: Iterable[T]) -> None:
        """Store the results, so that this query is not sent again."""
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
