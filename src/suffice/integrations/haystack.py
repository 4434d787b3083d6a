"""Haystack: a component with an output for each action.

    pipeline.add_component("gate", CompletenessGate())
    pipeline.connect("retriever.documents", "gate.documents")       `query` comes from the pipeline's input
    pipeline.connect("gate.answer", "prompt.documents")             runs only when the documents are enough

`answer` holds the documents, `expand` the queries that look for what is missing, `abstain` what was not found; only one of
them is sent. `verdict` is sent always. Haystack loads a pipeline's file only from packages that you name:
`Pipeline.loads(text, allowed_modules=["suffice.integrations.haystack"])`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from suffice.answering.expand import ExpansionBudget
from suffice.errors import InputError, MissingExtraError
from suffice.integrations.common import (
    GatedDocuments,
    gate_path,
    load_gate,
    search_and_check,
    search_and_check_async,
)
from suffice.protocols import GateLike
from suffice.types import Action

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
    """Sends documents on to `answer` only when together they are enough.

    `gate` is a Gate, the path of a saved one, or None for the one that ships. `rounds_left` is how many searches the pipeline
    has left: with 0 nothing is sent to `expand`, whose documents so far come out of `held`. Given a `retriever` and a `budget`,
    the component looks for what is missing by itself.
    """

    def __init__(
        self,
        gate: Any = None,
        *,
        rounds_left: int = 1,
        retriever: Any = None,
        budget: ExpansionBudget | None = None,
    ) -> None:
        if (retriever is None) != (budget is None):
            raise InputError(
                "looking for what is missing needs a retriever and a budget",
                hint="give both, or neither",
            )
        self.gate, self.rounds_left, self.retriever, self.budget = (
            gate,
            rounds_left,
            retriever,
            budget,
        )
        self._opened: GateLike | None = None

    def warm_up(self) -> None:
        self._ready()
        if hasattr(self.retriever, "warm_up"):
            self.retriever.warm_up()

    def _ready(self) -> GateLike:
        """The gate, read when it is first needed: a pipeline may be drawn or written down without one."""
        if self._opened is None:
            self._opened = load_gate(self.gate)
        return self._opened

    @component.output_types(**OUTPUTS)
    def run(self, query: str, documents: list[Document]) -> dict[str, Any]:
        """The documents, the next queries or what is missing, and the verdict as JSON values."""

        def search(queries: Sequence[str]) -> Sequence[Iterable[Document]]:
            return [
                documents if one == query else self.retriever.run(query=one)["documents"]
                for one in queries
            ]

        return _outputs(
            search_and_check(
                query, search, self._ready(), budget=self.budget, rounds_left=self.rounds_left
            )
        )

    @component.output_types(**OUTPUTS)
    async def run_async(self, query: str, documents: list[Document]) -> dict[str, Any]:
        """`run` for an event loop, which stays free meanwhile."""

        async def search(queries: Sequence[str]) -> Sequence[Iterable[Document]]:
            return [documents if one == query else await self._look(one) for one in queries]

        gate = await asyncio.to_thread(self._ready)
        return _outputs(
            await search_and_check_async(
                query, search, gate, budget=self.budget, rounds_left=self.rounds_left
            )
        )

    async def _look(self, query: str) -> list[Document]:
        if hasattr(self.retriever, "run_async"):
            found = await self.retriever.run_async(query=query)
        else:
            found = await asyncio.to_thread(self.retriever.run, query=query)
        return found["documents"]  # type: ignore[no-any-return]

    def to_dict(self) -> dict[str, Any]:
        budget = None if self.budget is None else asdict(self.budget)
        parts = {"rounds_left": self.rounds_left, "retriever": self.retriever, "budget": budget}
        return default_to_dict(self, gate=gate_path(self.gate), **parts)  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CompletenessGate:
        given = dict(data.get("init_parameters", {}))
        if given.get("budget") is not None:
            given["budget"] = ExpansionBudget(**given["budget"])
        return default_from_dict(cls, {**data, "init_parameters": given})  # type: ignore[no-any-return]


def _outputs(found: GatedDocuments[Document]) -> dict[str, Any]:
    verdict = found.verdict
    by_action: dict[Action, dict[str, Any]] = {
        Action.ANSWER: {"answer": found.documents},
        Action.EXPAND: {"expand": list(verdict.next_queries), "held": found.documents},
        Action.ABSTAIN: {"abstain": list(verdict.missing)},
    }
    return {**by_action[verdict.action], "verdict": verdict.as_json()}
