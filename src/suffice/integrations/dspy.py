"""DSPy: a module around any retriever that says whether its passages are enough.

    retrieve = GatedRetrieve(retriever)         in place of the retriever, in your __init__
    found = retrieve(question)                  a Prediction: passages, verdict, action, missing

The retriever is any callable from a query to passages: `dspy.Retrieve`,
`dspy.retrievers.Embeddings`, your own function. With a budget, it also searches for what is
missing. To start, use `act=False, log="shadow.jsonl"`: it passes everything on and logs every
verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from suffice.answering.expand import ExpansionBudget
from suffice.errors import MissingExtraError, known_arguments
from suffice.integrations import common
from suffice.types import LOW_FAMILIARITY

try:
    import dspy
except ImportError as error:
    raise MissingExtraError("the gate for DSPy", extra="dspy") from error

__all__ = ["GatedRetrieve"]

MAX_TITLE = 150
Passages = list[dict[str, Any]]


class GatedRetrieve(dspy.Module):
    """The passages, marked if the gate does not find them enough; `missing` says what is missing.

    `gate` is a Gate, the path of a saved one, or None for the shipped one. If they are not enough,
    `on_incomplete="mark"` puts a passage before them that says so, "empty" returns none, and
    "raise" raises IncompleteEvidenceError. If the familiarity is below `min_familiarity`, they pass
    as they are, and the gate warns once. Verdicts go to `log`, a path or a VerdictLog. With
    `act=False` (shadow mode), all passages pass, and nothing is searched again.
    """

    @known_arguments
    def __init__(
        self,
        retriever: Any,
        gate: Any = None,
        *,
        budget: ExpansionBudget | None = None,
        on_incomplete: common.OnIncomplete = "mark",
        min_familiarity: float = LOW_FAMILIARITY,
        act: bool = True,
        log: Any = None,
    ) -> None:
        super().__init__()
        common.check_retriever(retriever, callable(retriever), "that can be called with a query")
        self.retriever, self.gate = retriever, common.load_gate(gate)
        opened = common.open_log(log, act=act)
        self.guard = common.Guard(
            self.gate, "dspy", budget, on_incomplete, min_familiarity, act, opened
        )

    def forward(self, query: str) -> Any:
        def search(queries: Sequence[str]) -> list[Passages]:
            return [_passages(self.retriever(one)) for one in queries]

        return self._prediction(self.guard.check(query, search))

    async def aforward(self, query: str) -> Any:
        async def search(queries: Sequence[str]) -> list[Passages]:
            return [_passages(await self._retrieve(one)) for one in queries]

        return self._prediction(await self.guard.check_async(query, search))

    async def _retrieve(self, query: str) -> Any:
        if hasattr(self.retriever, "acall") and hasattr(self.retriever, "aforward"):
            return await self.retriever.acall(query)
        return await asyncio.to_thread(self.retriever, query)

    def _prediction(self, found: common.GatedDocuments[Any]) -> Any:
        verdict = found.verdict
        passed = self.guard.passed(
            found, lambda one, about: one, lambda text, about: {"passage": text}
        )
        return dspy.Prediction(
            passages=[one["passage"] for one in passed],
            verdict=verdict,
            action=str(verdict.action),
            missing=list(verdict.missing),
        )


def _passages(found: Any) -> Passages:
    """The passages of a Prediction or a list: each as returned, and as the gate reads it."""
    return [_normalize_passage(one) for one in getattr(found, "passages", found) or ()]


def _normalize_passage(passage: Any) -> dict[str, Any]:
    value = getattr(passage, "long_text", passage)
    if isinstance(passage, Mapping):
        if "long_text" not in passage:
            return {**passage, "passage": passage}
        value = passage["long_text"]
    text = value if isinstance(value, str) else str(value)
    title, bar, rest = text.partition(" | ")  # the form of DSPy's own corpora
    titled = {"title": title, "text": rest} if bar and len(title) <= MAX_TITLE else {"text": text}
    return {**titled, "passage": passage}
