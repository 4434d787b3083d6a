"""LlamaIndex: a node postprocessor that lets nodes through only when together they are enough.

    engine = index.as_query_engine(node_postprocessors=[CompletenessGate()])          no nodes: no answer is made up

Nodes that pass carry the verdict in `metadata["suffice"]`, hidden from the language model and the embedder. Given the retriever
and a budget it looks for what is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from suffice.answering.expand import ExpansionBudget
from suffice.errors import InputError, MissingExtraError
from suffice.integrations.common import (
    METADATA_KEY,
    GatedDocuments,
    gate_path,
    load_gate,
    search_and_check,
    search_and_check_async,
    verdict_metadata,
)
from suffice.types import Verdict

try:
    from llama_index.core.bridge.pydantic import Field, PrivateAttr, field_serializer
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore, QueryBundle
except ImportError as error:
    raise MissingExtraError("the gate for LlamaIndex", extra="llama-index") from error

__all__ = ["CompletenessGate"]


class CompletenessGate(BaseNodePostprocessor):
    """The nodes where the gate says that they are enough; otherwise an empty list. Put it last, behind rerankers and cut-offs.

    `gate` is a Gate, the path of a saved one, or None for the one that ships. With `hold_back=False` all nodes go on, and only
    their mark says what the gate thinks. A `budget` lets it ask the `retriever` for what is missing.
    """

    gate: Any = Field(default=None, repr=False)  # its whole inside would fill a screen
    retriever: Any = Field(default=None, exclude=True)
    budget: ExpansionBudget | None = Field(default=None, exclude=True)
    hold_back: bool = True
    _opened: Any = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        if (self.retriever is None) != (self.budget is None):
            raise InputError(
                "looking for what is missing needs a retriever and a budget",
                hint="give both, or neither",
            )
        self._opened = load_gate(self.gate)  # a wrong path is told now, not at the first question

    @field_serializer("gate")
    def _address(self, gate: Any) -> str | None:
        return gate_path(gate)

    @classmethod
    def class_name(cls) -> str:
        return "CompletenessGate"

    def check(self, nodes: Sequence[NodeWithScore], question: str) -> Verdict:
        """The verdict alone, also for no nodes, which can carry no mark."""
        (verdict,) = self._opened.check_batch([(question, list(nodes))])
        return verdict  # type: ignore[no-any-return]

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        question = _question(query_bundle)

        def search(queries: Sequence[str]) -> Sequence[Iterable[NodeWithScore]]:
            return [
                nodes if query == question else self.retriever.retrieve(query) for query in queries
            ]

        return self._passed(search_and_check(question, search, self._opened, budget=self.budget))

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        question = _question(query_bundle)

        async def search(queries: Sequence[str]) -> Sequence[Iterable[NodeWithScore]]:
            if list(queries) == [question]:
                return [nodes]
            return list(
                await asyncio.gather(*(self.retriever.aretrieve(query) for query in queries))
            )

        return self._passed(
            await search_and_check_async(question, search, self._opened, budget=self.budget)
        )

    def _passed(self, found: GatedDocuments[NodeWithScore]) -> list[NodeWithScore]:
        told = verdict_metadata(found.verdict)
        return [
            _with_verdict(one, told)
            for one in (found.passed if self.hold_back else found.documents)
        ]


def _question(bundle: QueryBundle | None) -> str:
    if bundle is None:
        raise InputError(
            "the gate was not told the question",
            hint="pass query_str or query_bundle to postprocess_nodes",
        )
    return str(bundle.query_str)


def _with_verdict(found: NodeWithScore, told: dict[str, Any]) -> NodeWithScore:
    """A copy, because the index hands out the nodes that it keeps. The mark is for programs, not for the prompt."""
    node = found.node
    hidden = {
        keys: [*getattr(node, keys), METADATA_KEY]
        for keys in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")
    }
    copy = node.model_copy(update={"metadata": {**node.metadata, METADATA_KEY: told}, **hidden})
    return NodeWithScore(node=copy, score=found.score)
