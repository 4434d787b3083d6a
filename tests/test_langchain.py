"""`GatedRetriever` inside the real LangChain."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.bridge_question import DIRECTOR, FILM, QUESTION, WRONG, familiar_gate, found

pytest.importorskip(
    "langchain_core", reason="LangChain is not installed: pip install 'suffice[langchain]'"
)

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableBranch, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from suffice.answering.expand import ExpansionBudget
from suffice.errors import IncompleteEvidenceError, SufficeError
from suffice.gate.gate import Gate
from suffice.integrations.langchain import GatedRetriever
from suffice.types import Action


def document(pair: tuple[str, str], **more: Any) -> Document:
    return Document(page_content=pair[1], metadata={"title": pair[0], **more})


class FixedRetriever(BaseRetriever):
    """What the stand-in search finds; `also` finds no film without its director."""

    also: bool = False

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [document(one) for one in ([FILM, DIRECTOR] if self.also else found(query))]


class Listening(FixedRetriever):
    """Another way in for event loops, which must be the one that is used there."""

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        await asyncio.sleep(0)
        return [document(one, asked="async") for one in found(query)]


@pytest.fixture(scope="module")
def gate() -> Gate:
    return familiar_gate()


def titles(documents: list[Document]) -> list[str]:
    return [one.metadata["title"] for one in documents]


def test_documents_pass_only_when_they_are_enough(gate: Gate) -> None:
    short: dict[str, Any] = {"retriever": FixedRetriever(), "gate": gate}
    assert GatedRetriever(**short, on_incomplete="empty").invoke(QUESTION) == []
    with pytest.raises(IncompleteEvidenceError, match="Fritz Lang") as refused:
        GatedRetriever(**short, on_incomplete="raise").invoke(QUESTION)
    assert refused.value.verdict.missing == ("Fritz Lang",)
    passed = GatedRetriever(retriever=FixedRetriever(also=True), gate=gate).invoke(QUESTION)
    assert titles(passed) == [FILM[0], DIRECTOR[0]]
    assert passed[0].metadata["suffice"]["action"] == "answer"


def test_documents_that_are_not_enough_come_after_one_that_says_so(gate: Gate) -> None:
    kept = GatedRetriever(retriever=FixedRetriever(), gate=gate).invoke(QUESTION)
    assert titles(kept) == ["Incomplete evidence", FILM[0], WRONG[0]]
    assert "Missing: Fritz Lang." in kept[0].page_content
    assert [one.metadata["suffice"]["missing"] for one in kept] == [["Fritz Lang"]] * 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"on_incomplet": "empty"}, "did you mean 'on_incomplete'"),
        ({"on_incomplete": "hide"}, "empty, mark, raise"),
        ({"retriever": "nope"}, "Runnable"),
        ({"retriever": lambda query: []}, "RunnableLambda"),
        ({"budget": {"rounds": 3}}, "ExpansionBudget"),
        ({"log": {"path": "log", "text": True}}, "did you mean 'texts'"),
    ],
)
def test_what_it_does_not_know_or_cannot_search_is_refused_at_once(
    gate: Gate, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        GatedRetriever(**{"retriever": FixedRetriever(), "gate": gate, **wrong})


def test_a_budget_searches_the_same_retriever_for_what_is_missing(gate: Gate) -> None:
    gated = GatedRetriever(retriever=FixedRetriever(), gate=gate, budget=ExpansionBudget())
    assert titles(gated.invoke(QUESTION)) == [FILM[0], DIRECTOR[0]]


def test_a_chain_branches_on_the_verdict_also_without_documents(gate: Gate) -> None:
    answer = RunnableLambda(lambda state: f"from {len(state['documents'])} documents")
    sorry = RunnableLambda(lambda state: f"not found: {', '.join(state['verdict'].missing)}")
    branch = RunnableBranch((lambda state: state["verdict"].action is Action.ANSWER, answer), sorry)
    chain = GatedRetriever(retriever=FixedRetriever(), gate=gate).with_verdict() | branch
    assert chain.invoke(QUESTION) == "not found: Fritz Lang"
    whole = GatedRetriever(retriever=FixedRetriever(also=True), gate=gate).with_verdict() | branch
    assert whole.batch([QUESTION, QUESTION]) == ["from 2 documents"] * 2
    empty = (
        GatedRetriever(retriever=RunnableLambda(lambda query: []), gate=gate)
        .with_verdict()
        .invoke(QUESTION)
    )
    assert empty["documents"] == []
    assert empty["verdict"].action is Action.ABSTAIN


def test_an_event_loop_uses_the_retrievers_own_async_way(gate: Gate) -> None:
    gated = GatedRetriever(retriever=Listening(), gate=gate, budget=ExpansionBudget())
    passed = asyncio.run(gated.ainvoke(QUESTION))
    assert titles(passed) == [FILM[0], DIRECTOR[0]]
    assert {one.metadata["asked"] for one in passed} == {"async"}
    result = asyncio.run(gated.with_verdict().ainvoke(QUESTION))
    assert result["verdict"].action is Action.ANSWER
    assert "suffice" not in result["documents"][0].metadata


def test_a_store_in_memory_keeps_its_documents_unmarked(gate: Gate) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([document(FILM), document(DIRECTOR), Document(page_content="")])
    gated = GatedRetriever(retriever=store.as_retriever(), gate=gate)
    assert len(gated.invoke(QUESTION)) == 3
    assert all("suffice" not in one.metadata for one in store.similarity_search(QUESTION))


def test_odd_documents_are_taken_as_they_are(gate: Gate) -> None:
    odd = [
        Document(page_content=""),
        Document(page_content=FILM[1], metadata={"score": "high", "source": 3, "id": ["a"]}),
        Document(page_content=FILM[1], id="twice"),
        Document(page_content=DIRECTOR[1], id="twice", metadata={"score": float("nan")}),
    ]
    gated = GatedRetriever(retriever=RunnableLambda(lambda query: odd), gate=gate)
    for question in (QUESTION, "", "?!"):
        assert [one for one in gated.invoke(question) if "title" not in one.metadata][
            -1
        ].page_content == DIRECTOR[1]


def test_the_retriever_inside_is_a_child_run_in_the_traces(gate: Gate) -> None:
    class Heard(BaseCallbackHandler):
        runs: list[tuple[str, bool]] = []  # noqa: RUF012 - of one test

        def on_retriever_start(self, serialized: Any, query: str, **about: Any) -> None:
            self.runs.append((about["name"], about["parent_run_id"] is not None))

    heard = Heard()
    GatedRetriever(retriever=FixedRetriever(), gate=gate).invoke(QUESTION, {"callbacks": [heard]})
    assert heard.runs == [("GatedRetriever", False), ("FixedRetriever", True)]


def test_a_wrong_gate_fails_when_the_retriever_is_made(tmp_path: Path) -> None:
    with pytest.raises(SufficeError, match="nowhere"):
        GatedRetriever(retriever=FixedRetriever(), gate=tmp_path / "nowhere")
