"""`CompletenessGate` inside the real LlamaIndex."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.bridge_question import DIRECTOR, FILM, QUESTION, WRONG, familiar_gate, found

pytest.importorskip(
    "llama_index.core", reason="LlamaIndex is not installed: pip install 'suffice[llama-index]'"
)

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import ImageNode, MetadataMode, NodeWithScore, QueryBundle, TextNode

from suffice.answering.expand import ExpansionBudget
from suffice.errors import InputError
from suffice.gate.gate import Gate
from suffice.integrations.llama_index import CompletenessGate
from suffice.types import Action


def node(pair: tuple[str, str], score: float | None = None) -> NodeWithScore:
    return NodeWithScore(node=TextNode(text=pair[1], metadata={"title": pair[0]}), score=score)


class FixedRetriever(BaseRetriever):
    """What the stand-in search finds, without scores."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [node(one) for one in found(query_bundle.query_str)]


@pytest.fixture(scope="module")
def gate() -> Gate:
    return familiar_gate()


def titles(nodes: list[NodeWithScore]) -> list[str]:
    return [one.node.metadata["title"] for one in nodes]


def test_nodes_pass_only_when_they_are_enough(gate: Gate) -> None:
    last = CompletenessGate(gate=gate, on_incomplete="empty")
    assert last.postprocess_nodes([node(FILM, 0.9), node(WRONG, 0.8)], query_str=QUESTION) == []
    passed = last.postprocess_nodes([node(FILM, 0.9), node(DIRECTOR)], query_str=QUESTION)
    assert titles(passed) == [FILM[0], DIRECTOR[0]]
    assert [one.score for one in passed] == [0.9, None]


def test_the_mark_is_hidden_from_the_model_and_the_index_keeps_its_nodes_as_they_were(
    gate: Gate,
) -> None:
    given = [node(FILM), node(WRONG)]
    said, *kept = CompletenessGate(gate=gate).postprocess_nodes(given, query_str=QUESTION)
    assert "Missing: Fritz Lang." in said.node.get_content(MetadataMode.LLM)
    assert "p_complete" not in said.node.get_content(MetadataMode.LLM)
    assert kept[0].node.metadata["suffice"]["missing"] == ["Fritz Lang"]
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert kept[0].node.get_content(mode) == given[0].node.get_content(mode)
    assert "suffice" not in given[0].node.metadata
    assert given[0].node.excluded_llm_metadata_keys == []


def test_a_query_engine_does_not_answer_from_too_little(gate: Gate) -> None:
    parts: dict[str, Any] = {"retriever": FixedRetriever(), "llm": MockLLM()}
    engine = RetrieverQueryEngine.from_args(
        **parts, node_postprocessors=[CompletenessGate(gate=gate, on_incomplete="empty")]
    )
    assert str(engine.query(QUESTION)) == "Empty Response"
    engine = RetrieverQueryEngine.from_args(
        **parts, node_postprocessors=[CompletenessGate(gate=gate)]
    )
    assert "The evidence is incomplete" in str(engine.query(QUESTION))
    looking = CompletenessGate(gate=gate, retriever=FixedRetriever(), budget=ExpansionBudget())
    engine = RetrieverQueryEngine.from_args(**parts, node_postprocessors=[looking])
    answer = engine.query(QUESTION)
    assert titles(answer.source_nodes) == [FILM[0], DIRECTOR[0]]
    assert DIRECTOR[1] in str(answer)  # the mock answers with its prompt
    assert "p_complete" not in str(answer)


def test_an_event_loop_gets_the_same(gate: Gate) -> None:
    looking = CompletenessGate(gate=gate, retriever=FixedRetriever(), budget=ExpansionBudget())
    passed = asyncio.run(looking.apostprocess_nodes([node(FILM), node(WRONG)], query_str=QUESTION))
    assert titles(passed) == [FILM[0], DIRECTOR[0]]
    (said,) = asyncio.run(CompletenessGate(gate=gate).apostprocess_nodes([], query_str=QUESTION))
    assert "The evidence is incomplete" in said.text


def test_no_nodes_no_scores_and_pictures_are_no_surprise(gate: Gate) -> None:
    last = CompletenessGate(gate=gate, on_incomplete="empty")
    assert last.postprocess_nodes([], query_str=QUESTION) == []
    assert last.check([], QUESTION).action is Action.ABSTAIN
    odd = [
        NodeWithScore(node=ImageNode(text="", image="AAAA")),
        NodeWithScore(node=TextNode(text=FILM[1]), score=float("nan")),
    ]
    assert last.postprocess_nodes([*odd, *odd], query_str="") == []
    with pytest.raises(InputError, match="needs the question"):
        last.postprocess_nodes(odd)
    with pytest.raises(
        ValueError, match="a retriever and a budget"
    ):  # pydantic makes it its own error
        CompletenessGate(gate=gate, budget=ExpansionBudget())
    with pytest.raises(ValueError, match="retrieve"):
        CompletenessGate(gate=gate, retriever="nope", budget=ExpansionBudget())
    with pytest.raises(ValueError, match="did you mean 'min_familiarity'"):
        CompletenessGate(gate=gate, min_familarity=0)


def test_it_is_written_down_with_the_address_of_its_gate(gate: Gate, tmp_path: Any) -> None:
    gate.save(tmp_path / "saved")
    saved = CompletenessGate(gate=str(tmp_path / "saved"), on_incomplete="empty").to_dict()
    assert (saved["class_name"], saved["gate"]) == ("CompletenessGate", str(tmp_path / "saved"))
    again = CompletenessGate.from_dict(saved)
    assert again.on_incomplete == "empty"
    assert again.check([], QUESTION).p_complete == gate.check(QUESTION, []).p_complete
    with pytest.raises(ValueError, match="in memory"):
        CompletenessGate(gate=gate).to_dict()
