"""LlamaIndex: a node postprocessor that says whether the nodes together are enough.

    engine = index.as_query_engine(node_postprocessors=[CompletenessGate()])

Nodes have the verdict in `metadata["suffice"]`, hidden from the language model and the embedder. If
they are not enough, a short one comes first that says so: see `on_incomplete`. With a retriever and
a budget, the gate also searches for what is missing. To start, use `act=False, log="shadow.jsonl"`:
it changes nothing and logs every verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from suffice.answering.expand import ExpansionBudget
from suffice.errors import InputError, MissingExtraError, check_names
from suffice.integrations import common
from suffice.types import LOW_FAMILIARITY, Verdict

try:
    from llama_index.core.bridge.pydantic import Field, PrivateAttr, field_serializer
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from pydantic import SkipValidation, model_validator
except ImportError as error:
    raise MissingExtraError("the gate for LlamaIndex", extra="llama-index") from error

__all__ = ["CompletenessGate"]

Nodes = list[NodeWithScore]
EXCLUDED = ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")


class CompletenessGate(BaseNodePostprocessor):
    """The nodes, marked if the gate does not find them enough. Put it after rerankers and cut-offs.

    `gate` is a Gate, the path of a saved one, or None for the shipped one. If they are not enough,
    `on_incomplete="mark"` puts a node before them that says so, "empty" returns none, so that the
    engine makes up no answer, and "raise" raises IncompleteEvidenceError. If the familiarity is
    below `min_familiarity`, they pass as they are, and the gate warns once. Verdicts go to `log`, a
    path or a VerdictLog. With `act=False` (shadow mode), the nodes pass unchanged.
    """

    gate: Any = Field(default=None, repr=False)  # would fill a screen
    retriever: Any = Field(default=None, exclude=True)
    # The guard checks the next two.
    budget: SkipValidation[ExpansionBudget | None] = Field(default=None, exclude=True)
    on_incomplete: SkipValidation[common.OnIncomplete] = "mark"
    min_familiarity: float = LOW_FAMILIARITY
    act: bool = True
    log: Any = Field(default=None, repr=False)
    _guard: Any = PrivateAttr()

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, given: Any) -> Any:
        check_names(given, cls.model_fields, cls.__name__)
        return given

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        common.check_expansion(self.retriever, self.budget, method="retrieve")
        self._guard = common.Guard(
            common.load_gate(self.gate),  # now, so that a wrong path fails early
            "llama-index",
            self.budget,
            self.on_incomplete,
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
        return self._guard.passed(found, _marked, _as_node)  # type: ignore[no-any-return]


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


def _as_node(text: str, about: dict[str, Any]) -> NodeWithScore:
    return _marked(NodeWithScore(node=TextNode(text=text)), about)
