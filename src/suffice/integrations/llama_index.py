"""LlamaIndex: a node postprocessor that lets nodes pass only if together they are enough.

    engine = index.as_query_engine(node_postprocessors=[CompletenessGate()])

Without nodes, the engine makes up no answer. Nodes that pass have the verdict in
`metadata["suffice"]`, hidden from the language model and the embedder. With a retriever and a
budget, the gate also searches for what is missing. To start, use `act=False, log="shadow.jsonl"`:
it changes nothing and logs every verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from suffice.answering.expand import ExpansionBudget
from suffice.errors import InputError, MissingExtraError
from suffice.integrations import common
from suffice.types import LOW_FAMILIARITY, Verdict

try:
    from llama_index.core.bridge.pydantic import Field, PrivateAttr, field_serializer
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore, QueryBundle
except ImportError as error:
    raise MissingExtraError("the gate for LlamaIndex", extra="llama-index") from error

__all__ = ["CompletenessGate"]

Nodes = list[NodeWithScore]
EXCLUDED = ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")


class CompletenessGate(BaseNodePostprocessor):
    """The nodes if the gate finds them enough, else none. Put it after rerankers and cut-offs.

    `gate` is a Gate, the path of a saved one, or None for the shipped one. With `hold_back=False`,
    all nodes pass, and only their metadata shows the verdict. They also pass if the familiarity is
    below `min_familiarity`; the gate then warns once. Verdicts go to `log`, a path or a VerdictLog.
    With `act=False` (shadow mode), the nodes pass unchanged.
    """

    gate: Any = Field(default=None, repr=False)  # would fill a screen
    retriever: Any = Field(default=None, exclude=True)
    budget: ExpansionBudget | None = Field(default=None, exclude=True)
    hold_back: bool = True
    min_familiarity: float = LOW_FAMILIARITY
    act: bool = True
    log: Any = Field(default=None, repr=False)
    _guard: Any = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        common.check_expansion(self.retriever, self.budget)
        self._guard = common.Guard(
            common.load_gate(self.gate),  # now, so that a wrong path fails early
            "llama-index",
            self.budget,
            self.hold_back,
            self.min_familiarity,
            self.act,
            common.open_log(self.log, act=self.act),
        )

    @field_serializer("gate")
    def _gate_path(self, gate: Any) -> str | None:
        return common.gate_path(gate)

    @field_serializer("log")
    def _log_json(self, log: Any) -> Any:
        return common.log_json(log)

    @classmethod
    def class_name(cls) -> str:
        return "CompletenessGate"

    def check(self, nodes: Sequence[NodeWithScore], question: str) -> Verdict:
        """Only the verdict, also for an empty list, which cannot carry metadata."""
        (verdict,) = self._guard.gate.check_batch([(question, list(nodes))])
        return verdict  # type: ignore[no-any-return]

    def _postprocess_nodes(self, nodes: Nodes, query_bundle: QueryBundle | None = None) -> Nodes:
        question = _question(query_bundle)

        def search(queries: Sequence[str]) -> list[Nodes]:
            return [nodes if one == question else self.retriever.retrieve(one) for one in queries]

        return self._passed(self._guard.check(question, search))

    async def _apostprocess_nodes(
        self, nodes: Nodes, query_bundle: QueryBundle | None = None
    ) -> Nodes:
        question = _question(query_bundle)

        async def search(queries: Sequence[str]) -> list[Nodes]:
            if list(queries) == [question]:
                return [nodes]
            return list(await asyncio.gather(*(self.retriever.aretrieve(one) for one in queries)))

        return self._passed(await self._guard.check_async(question, search))

    def _passed(self, found: common.GatedDocuments[NodeWithScore]) -> Nodes:
        passed: Nodes = self._guard.passed(found)
        if not self.act:
            return passed
        mark = {common.METADATA_KEY: common.verdict_metadata(found.verdict)}
        return [_marked(one, mark) for one in passed]


def _question(bundle: QueryBundle | None) -> str:
    if bundle is None:
        hint = "pass query_str or query_bundle to postprocess_nodes"
        raise InputError("the gate needs the question", hint=hint)
    return str(bundle.query_str)


def _marked(found: NodeWithScore, mark: dict[str, Any]) -> NodeWithScore:
    """A copy, because the index returns its own nodes. The mark is hidden from prompts."""
    node = found.node
    hidden = {keys: [*getattr(node, keys), *mark] for keys in EXCLUDED}
    copy = node.model_copy(update={"metadata": {**node.metadata, **mark}, **hidden})
    return NodeWithScore(node=copy, score=found.score)
