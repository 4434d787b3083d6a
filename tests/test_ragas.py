"""The metric inside the real ragas, where it is installed: 616 MB with what it needs, so that `make
test` goes without.
"""

from __future__ import annotations

import asyncio
import warnings

import pytest
from tests.bridge_question import DIRECTOR, FILM, QUESTION, WRONG

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what it needs is full of warnings
    pytest.importorskip(
        "ragas.metrics.base", reason="ragas is not installed: pip install 'suffice[ragas]'"
    )
    from ragas import EvaluationDataset, SingleTurnSample

    from suffice.integrations.ragas import EvidenceCompleteness

from suffice.gate.gate import Gate
from suffice.integrations.ragas_rows import question_and_hits

pytestmark = pytest.mark.filterwarnings("ignore")

ROWS = [
    {"user_input": QUESTION, "retrieved_contexts": [FILM[1], WRONG[1]]},
    {"user_input": QUESTION, "retrieved_contexts": [FILM[1], DIRECTOR[1]]},
    {"user_input": QUESTION, "retrieved_contexts": []},
]


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate.load()


def test_a_sample_scores_what_the_gate_says(gate: Gate) -> None:
    metric = EvidenceCompleteness(gate=gate)
    expected = gate.probabilities(map(question_and_hits, ROWS)).tolist()
    samples = EvaluationDataset.from_list(ROWS).samples
    assert [asyncio.run(metric.single_turn_ascore(one)) for one in samples] == pytest.approx(
        expected
    )
    assert expected[2] < expected[0] < expected[1]


def test_it_runs_in_an_evaluation(gate: Gate) -> None:
    from ragas import evaluate

    result = evaluate(
        EvaluationDataset.from_list(ROWS),
        metrics=[EvidenceCompleteness(gate=gate)],
        show_progress=False,
    )
    assert result["evidence_completeness"] == pytest.approx(
        gate.probabilities(map(question_and_hits, ROWS)).tolist()
    )


def test_it_says_what_it_needs() -> None:
    assert EvidenceCompleteness().required_columns == {
        "SINGLE_TURN": {"user_input", "retrieved_contexts"}
    }
    assert question_and_hits(SingleTurnSample(**ROWS[0]))[0] == QUESTION
