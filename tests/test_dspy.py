"""`GatedRetrieve` inside the real DSPy, where it is installed: 133 MB, so that `make test` goes
without.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.bridge_question import DIRECTOR, FILM, QUESTION, familiar_gate, found

pytest.importorskip("dspy", reason="DSPy is not installed: pip install 'suffice[dspy]'")

import dspy

from suffice.answering.expand import ExpansionBudget
from suffice.gate.gate import Gate
from suffice.integrations.dspy import GatedRetrieve


def passages(query: str) -> list[str]:
    """Title and text in one, as DSPy's corpora have them."""
    return [" | ".join(pair) for pair in found(query)]


class Program(dspy.Module):
    """A program that answers only from what is enough."""

    def __init__(self, retrieve: GatedRetrieve) -> None:
        super().__init__()
        self.retrieve = retrieve

    def forward(self, question: str) -> dspy.Prediction:
        prediction = self.retrieve(question)
        return dspy.Prediction(
            answer=len(prediction.passages)
            if prediction.action == "answer"
            else f"no {', '.join(prediction.missing)}"
        )


@pytest.fixture(scope="module")
def gate() -> Gate:
    return familiar_gate()


def test_passages_pass_only_when_they_are_enough(gate: Gate) -> None:
    short = GatedRetrieve(passages, gate, on_incomplete="empty")(QUESTION)
    assert (short.passages, short.action) == ([], "abstain")
    assert "Fritz Lang" in short.missing
    marked = GatedRetrieve(passages, gate)(QUESTION).passages
    assert len(marked) == 3
    assert "Missing: Fritz Lang." in marked[0]


def test_a_budget_searches_for_what_is_missing(gate: Gate) -> None:
    whole = GatedRetrieve(passages, gate, budget=ExpansionBudget())(QUESTION)
    assert whole.passages == [" | ".join(FILM), " | ".join(DIRECTOR)]
    assert (
        asyncio.run(
            GatedRetrieve(passages, gate, budget=ExpansionBudget()).acall(QUESTION)
        ).passages
        == whole.passages
    )


@pytest.mark.parametrize(
    "shape",
    [
        lambda query: dspy.Prediction(passages=passages(query)),
        lambda query: [{"long_text": one} for one in passages(query)],
        lambda query: [dspy.Prediction(long_text=one) for one in passages(query)],
        lambda query: [{"title": title, "text": text} for title, text in found(query)],
    ],
)
def test_passages_in_the_shapes_of_dspys_retrievers_come_back_as_they_were(
    gate: Gate, shape: Any
) -> None:
    given = shape(QUESTION)
    gated = GatedRetrieve(shape, gate)(QUESTION)
    assert gated.passages[1:] == getattr(given, "passages", given)
    assert "Fritz Lang" in gated.missing


@pytest.mark.parametrize("nothing", [None, [], dspy.Prediction(passages=[])])
def test_no_passages_are_a_verdict(gate: Gate, nothing: Any) -> None:
    empty = GatedRetrieve(lambda query: nothing, gate, on_incomplete="empty")(QUESTION)
    assert (empty.passages, empty.action) == ([], "abstain")


def test_a_program_holds_it_is_copied_and_saved(gate: Gate, tmp_path: Any) -> None:
    program = Program(GatedRetrieve(passages, gate))
    assert program(QUESTION).answer == "no Fritz Lang"
    assert program.deepcopy()(QUESTION).answer == "no Fritz Lang"
    program.save(str(tmp_path / "program.json"))
    assert (tmp_path / "program.json").is_file()
