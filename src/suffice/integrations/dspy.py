"""DSPy: a module around any retriever whose passages pass only when they are enough.

    retrieve = GatedRetrieve(retriever)                         in place of the retriever, inside your program's __init__
    found = retrieve(question)                                  a Prediction: passages, verdict, action, missing

The retriever is any callable from a query to passages: `dspy.Retrieve`, `dspy.retrievers.Embeddings`, a function of your own.
With a budget it is asked again, for what is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from suffice.answering.expand import ExpansionBudget
from suffice.errors import MissingExtraError
from suffice.integrations.common import (
    GatedDocuments,
    load_gate,
    search_and_check,
    search_and_check_async,
)

try:
    import dspy
except ImportError as error:
    raise MissingExtraError("the gate for DSPy", extra="dspy") from error

__all__ = ["GatedRetrieve"]

MAX_TITLE = 150


class GatedRetrieve(dspy.Module):
    """Passages where the gate says that they are enough; otherwise an empty list, and in `missing` what was not found.

    `gate` is a Gate, the path of a saved one, or None for the one that ships. With `hold_back=False` all passages go on, and
    only `action` says what the gate thinks. A `budget` lets it ask the retriever for what is missing.
    """

    def __init__(
        self,
        retriever: Any,
        gate: Any = None,
        *,
        budget: ExpansionBudget | None = None,
        hold_back: bool = True,
    ) -> None:
        super().__init__()
        self.retriever, self.budget, self.hold_back = retriever, budget, hold_back
        self.gate = load_gate(gate)

    def forward(self, query: str) -> Any:
        found = search_and_check(
            query,
            lambda queries: [_passages(self.retriever(one)) for one in queries],
            self.gate,
            budget=self.budget,
        )
        return self._told(found)

    async def aforward(self, query: str) -> Any:
        async def search(queries: Sequence[str]) -> Sequence[Iterable[Any]]:
            return [_passages(await self._ask(one)) for one in queries]

        return self._told(
            await search_and_check_async(query, search, self.gate, budget=self.budget)
        )

    async def _ask(self, query: str) -> Any:
        if hasattr(self.retriever, "acall") and hasattr(self.retriever, "aforward"):
            return await self.retriever.acall(query)
        return await asyncio.to_thread(self.retriever, query)

    def _told(self, found: GatedDocuments[Any]) -> Any:
        verdict = found.verdict
        return dspy.Prediction(
            passages=[
                one["passage"] for one in (found.passed if self.hold_back else found.documents)
            ],
            verdict=verdict,
            action=str(verdict.action),
            missing=list(verdict.missing),
        )


def _passages(found: Any) -> list[dict[str, Any]]:
    """What DSPy's retrievers give, a Prediction or a list: each passage as it came, and as the gate reads it."""
    return [_normalize_passage(one) for one in getattr(found, "passages", found) or ()]


def _normalize_passage(passage: Any) -> dict[str, Any]:
    if isinstance(passage, Mapping) and "long_text" not in passage:
        return {**passage, "passage": passage}
    told = (
        passage.get("long_text")
        if isinstance(passage, Mapping)
        else getattr(passage, "long_text", passage)
    )
    text = told if isinstance(told, str) else str(told)
    title, bar, rest = text.partition(" | ")  # as DSPy's own corpora are written
    titled = {"title": title, "text": rest} if bar and len(title) <= MAX_TITLE else {"text": text}
    return {**titled, "passage": passage}
