"""Haystack: a component with one output for each action.

    pipeline.add_component("gate", CompletenessGate())
    pipeline.connect("retriever.documents", "gate.documents")       `query` is the pipeline's input
    pipeline.connect("gate.answer", "prompt.documents")             marked if they are not enough

`answer` has the documents, `expand` the queries for what is missing, `abstain` what was not found.
`verdict` is always sent. Haystack loads pipeline files only from packages
that you name: `Pipeline.loads(text, allowed_modules=["suffice.integrations.haystack"])`. To start,
use `act=False, log="shadow.jsonl"`: it sends all documents to `answer` and logs every verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from suffice.answering.budget import check_whole
from suffice.answering.expand import ExpansionBudget, check_gate
from suffice.errors import MissingExtraError, known_arguments
from suffice.integrations import common
from suffice.types import LOW_FAMILIARITY, Action

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError as error:
    raise MissingExtraError("the gate for Haystack", extra="haystack") from error

__all__ = ["CompletenessGate"]

OUTPUTS = {
    "answer": list[Document],
    "expand": list[str],
    "held": list[Document],
    "abstain": list[str],
    "verdict": dict[str, Any],
}


@component
class CompletenessGate:
    """Sends documents to `answer`, marked if together they are not enough.

    `gate` is a Gate, the path of a saved one, or None for the shipped one. `rounds_left` is how
    many searches the pipeline has left. If there is one and it is worth it, the queries are sent to
    `expand` and the documents to `held`, and nothing to `answer`. With a `retriever` and a
    `budget`, the component searches itself. If the documents are not enough in the end, what is
    missing is sent to `abstain`; `on_incomplete="mark"` also sends them to `answer`, after one that
    says so, "empty" does not, and "raise" raises IncompleteEvidenceError. If the familiarity is
    below `min_familiarity`, all documents go to `answer` as they are, and the gate warns once.
    Verdicts go to `log`, a path or a VerdictLog. With `act=False` (shadow mode), the documents go
    to `answer` unchanged.
    """

    @known_arguments
    def __init__(
        self,
        gate: Any = None,
        *,
        rounds_left: int = 0,
        retriever: Any = None,
        budget: ExpansionBudget | None = None,
        on_incomplete: common.OnIncomplete = "mark",
        min_familiarity: float = LOW_FAMILIARITY,
        act: bool = True,
        log: Any = None,
    ) -> None:
        # Now, so that mistakes fail early.
        common.check_expansion(retriever, budget, method="run")
        common.check_guard(budget, on_incomplete, min_familiarity, act)
        check_whole(rounds_left=rounds_left)
        common.open_log(log, act=act)
        if not isinstance(gate, str | Path | None):
            check_gate(gate)
        self.min_familiarity, self.act, self.log = min_familiarity, act, log
        self.on_incomplete = on_incomplete
        self.gate, self.rounds_left = gate, rounds_left
        self.retriever, self.budget = retriever, budget
        self._loaded: common.Guard | None = None

    def warm_up(self) -> None:
        self._load()
        if hasattr(self.retriever, "warm_up"):
            self.retriever.warm_up()

    def _load(self) -> common.Guard:
        """Load the gate on first use: a pipeline may be drawn or saved without it."""
        if self._loaded is None:
            self._loaded = common.Guard(
                common.load_gate(self.gate),
                "haystack",
                self.budget,
                self.on_incomplete,
                min_familiarity=self.min_familiarity,
                act=self.act,
                log=common.open_log(self.log, act=self.act),
                sends_queries=True,
            )
        return self._loaded

    @component.output_types(**OUTPUTS)
    def run(self, query: str, documents: list[Document]) -> dict[str, Any]:
        """The documents, the next queries or what is missing, and the verdict as JSON values."""

        def retrieve(one: str) -> list[Document]:
            return documents if one == query else self.retriever.run(query=one)["documents"]

        def search(queries: Sequence[str]) -> list[list[Document]]:
            return [retrieve(one) for one in queries]

        return self._outputs(self._load().check(query, search, rounds_left=self.rounds_left))

    @component.output_types(**OUTPUTS)
    async def run_async(self, query: str, documents: list[Document]) -> dict[str, Any]:
        """`run` without blocking the event loop."""

        async def search(queries: Sequence[str]) -> list[list[Document]]:
            return [documents if one == query else await self._retrieve(one) for one in queries]

        guard = await asyncio.to_thread(self._load)
        check = guard.check_async(query, search, rounds_left=self.rounds_left)
        return self._outputs(await check)

    async def _retrieve(self, query: str) -> list[Document]:
        if hasattr(self.retriever, "run_async"):
            found = await self.retriever.run_async(query=query)
        else:
            found = await asyncio.to_thread(self.retriever.run, query=query)
        return found["documents"]  # type: ignore[no-any-return]

    def to_dict(self) -> dict[str, Any]:
        budget = None if self.budget is None else asdict(self.budget)
        parts = {"rounds_left": self.rounds_left, "retriever": self.retriever, "budget": budget}
        parts |= {"min_familiarity": self.min_familiarity, "act": self.act}
        parts["on_incomplete"] = self.on_incomplete
        parts["log"] = common.log_json(self.log)
        return default_to_dict(self, gate=common.gate_path(self.gate), **parts)  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CompletenessGate:
        given = dict(data.get("init_parameters", {}))
        if given.get("budget") is not None:
            given["budget"] = ExpansionBudget(**given["budget"])
        return default_from_dict(cls, {**data, "init_parameters": given})  # type: ignore[no-any-return]

    def _outputs(self, found: common.GatedDocuments[Document]) -> dict[str, Any]:
        guard, verdict = self._load(), found.verdict
        sent: dict[str, Any] = {"verdict": verdict.as_json()}
        passes = not self.act or guard.passes(verdict)
        if not passes and verdict.action is Action.EXPAND:
            return sent | {"expand": list(verdict.next_queries), "held": found.documents}
        answer = guard.passed(found, _marked, _as_document)
        if not passes:
            sent["abstain"] = list(verdict.missing)
        if passes or self.on_incomplete == "mark":
            sent["answer"] = answer
        return sent


def _marked(document: Document, about: dict[str, Any]) -> Document:
    return replace(document, meta={**document.meta, **about})


def _as_document(text: str, about: dict[str, Any]) -> Document:
    return Document(content=text, meta=about)
