"""`CompletenessGate` inside the real Haystack."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.bridge_question import DIRECTOR, FILM, QUESTION, WRONG, familiar_gate, found

pytest.importorskip("haystack", reason="Haystack is not installed: pip install 'suffice[haystack]'")

from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers import MultiQueryTextRetriever
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from suffice.answering.expand import ExpansionBudget
from suffice.errors import InputError
from suffice.gate.gate import Gate
from suffice.integrations.haystack import CompletenessGate
from suffice.types import Action, Estimate, Verdict

TEMPLATE = "{% for document in documents %}{{ document.content }} {% endfor %}"


@pytest.fixture(scope="module")
def gate() -> Gate:
    return familiar_gate()


def document(pair: tuple[str, str], **more: Any) -> Document:
    return Document(content=pair[1], meta={"title": pair[0]}, **more)


@component
class FixedRetriever:
    """What the stand-in search finds."""

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, Any]:
        return {"documents": [document(one) for one in found(query)]}


class Hopeful:
    """A gate that wants another round while one is left and the director is missing."""

    def check_batch(self, pairs: Any, *, rounds_left: int = 1, **_: Any) -> list[Verdict]:
        ((_, hits),) = pairs
        if any("Vienna" in hit.content for hit in hits):
            return [Verdict(Estimate(0.9, 0.8, 1), Action.ANSWER)]
        action = Action.EXPAND if rounds_left else Action.ABSTAIN
        return [Verdict(Estimate(0.1, 0, 0.2), action, ("Fritz Lang",), ("Fritz Lang born",))]


def test_each_action_has_its_own_output(gate: Gate) -> None:
    one = CompletenessGate(gate)
    whole = one.run(query=QUESTION, documents=[document(FILM), document(DIRECTOR)])
    assert set(whole) == {"answer", "verdict"}
    assert [each.meta["title"] for each in whole["answer"]] == [FILM[0], DIRECTOR[0]]
    gap = one.run(query=QUESTION, documents=[document(FILM), document(WRONG)])
    assert (set(gap), gap["abstain"]) == ({"abstain", "answer", "verdict"}, ["Fritz Lang"])
    assert [each.meta["title"] for each in gap["answer"]][1:] == [FILM[0], WRONG[0]]
    assert "Missing: Fritz Lang." in gap["answer"][0].content
    empty = CompletenessGate(gate, on_incomplete="empty")
    assert "answer" not in empty.run(query=QUESTION, documents=[document(FILM), document(WRONG)])
    more = CompletenessGate(Hopeful(), rounds_left=1).run(
        query=QUESTION, documents=[document(FILM)]
    )
    assert (set(more), more["expand"]) == ({"expand", "held", "verdict"}, ["Fritz Lang born"])
    assert more["verdict"]["action"] == "expand"


def test_no_documents_pictures_and_missing_scores_are_no_surprise(gate: Gate) -> None:
    one = CompletenessGate(gate)
    assert "abstain" in one.run(query=QUESTION, documents=[])
    odd = [
        Document(content=None),
        document(FILM, score=None),
        document(FILM, score=float("nan")),
        Document(content="", id="x"),
    ]
    assert "abstain" in one.run(query="", documents=odd)


def pipeline(gate: CompletenessGate) -> Pipeline:
    made = Pipeline()
    made.add_component("retriever", FixedRetriever())
    made.add_component("gate", gate)
    made.add_component("prompt", PromptBuilder(TEMPLATE, required_variables=["documents"]))
    made.connect("retriever.documents", "gate.documents")
    made.connect("gate.answer", "prompt.documents")
    return made


def run_pipeline(made: Pipeline, *names: str) -> dict[str, Any]:
    return made.run({name: {"query": QUESTION} for name in ("retriever", "gate", *names)})


def test_the_prompt_is_built_only_from_documents_that_are_enough(gate: Gate) -> None:
    short = run_pipeline(pipeline(CompletenessGate(gate, on_incomplete="empty")))
    assert "prompt" not in short
    assert short["gate"]["abstain"] == ["Fritz Lang"]
    whole = run_pipeline(
        pipeline(CompletenessGate(gate, retriever=FixedRetriever(), budget=ExpansionBudget()))
    )
    assert whole["prompt"]["prompt"] == f"{FILM[1]} {DIRECTOR[1]} "


def test_a_pipeline_can_search_once_more_by_itself() -> None:
    made = pipeline(CompletenessGate(Hopeful(), rounds_left=1))
    made.add_component("again", MultiQueryTextRetriever(retriever=FixedRetriever()))
    made.add_component("both", DocumentJoiner(sort_by_score=False))
    made.add_component("last", CompletenessGate(Hopeful()))
    made.connect("gate.expand", "again.queries")
    made.connect("gate.held", "both.documents")
    made.connect("again.documents", "both.documents")
    made.connect("both.documents", "last.documents")
    came = run_pipeline(made, "last")["last"]
    assert [one.meta["title"] for one in came["answer"]] == [FILM[0], WRONG[0], DIRECTOR[0]]


def test_an_event_loop_gets_the_same(gate: Gate) -> None:
    store = InMemoryDocumentStore()
    store.write_documents([document(pair) for pair in (FILM, DIRECTOR, WRONG)])
    for retriever in (FixedRetriever(), InMemoryBM25Retriever(store, top_k=2)):
        one = CompletenessGate(gate, retriever=retriever, budget=ExpansionBudget())
        came = asyncio.run(
            one.run_async(query=QUESTION, documents=[document(FILM), document(WRONG)])
        )
        assert [each.meta["title"] for each in came["answer"]] == [FILM[0], DIRECTOR[0]]


def test_a_pipeline_goes_to_a_file_and_comes_back(gate: Gate, tmp_path: Path) -> None:
    gate.save(tmp_path / "saved")
    store = InMemoryDocumentStore()
    one = CompletenessGate(
        tmp_path / "saved",
        rounds_left=2,
        on_incomplete="empty",
        retriever=InMemoryBM25Retriever(store),
        budget=ExpansionBudget(rounds=3, seconds=2.0),
    )
    made = Pipeline()
    made.add_component("gate", one)
    again = Pipeline.loads(
        made.dumps(), allowed_modules=["suffice.integrations.haystack"]
    ).get_component("gate")
    assert (again.gate, again.rounds_left, again.on_incomplete, again.budget) == (
        str(tmp_path / "saved"),
        2,
        "empty",
        ExpansionBudget(rounds=3, seconds=2.0),
    )
    assert isinstance(again.retriever, InMemoryBM25Retriever)
    assert CompletenessGate.from_dict(CompletenessGate().to_dict()).gate is None
    with pytest.raises(InputError, match="in memory"):
        CompletenessGate(gate).to_dict()
    with pytest.raises(InputError, match="a retriever and a budget"):
        CompletenessGate(gate, budget=ExpansionBudget())
    with pytest.raises(InputError, match="did you mean 'rounds_left'"):
        CompletenessGate(gate, round_left=1)  # type: ignore[call-arg]
