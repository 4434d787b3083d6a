"""The metric inside the real deepeval, where it is installed: it pins rich and click below ours, so
`make test` goes without.

In its environment: `pytest -p no:asyncio -o filterwarnings=default tests/test_deepeval.py`, as its
plug-ins warn of themselves.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.bridge_question import DIRECTOR, FILM, QUESTION, WRONG

pytest.importorskip(
    "deepeval",
    reason=(
        "deepeval is not installed: pip install 'suffice[deepeval]', in an environment of its own"
    ),
)

from deepeval.errors import MissingTestCaseParamsError
from deepeval.test_case import LLMTestCase

from suffice.gate.gate import Gate
from suffice.integrations.deepeval import EvidenceCompleteness
from suffice.integrations.ragas_rows import to_ragas_row


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes a folder of its own where it is run."""
    monkeypatch.chdir(tmp_path)


def case(*pairs: tuple[str, str], **more: Any) -> LLMTestCase:
    return LLMTestCase(
        input=QUESTION,
        actual_output="Vienna",
        retrieval_context=[text for _, text in pairs],
        **more,
    )


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate.load()


def test_a_case_passes_by_the_gates_own_policy_or_by_a_threshold(gate: Gate) -> None:
    metric = EvidenceCompleteness(gate=gate)
    short = metric.measure(case(FILM, WRONG))
    assert (metric.is_successful(), metric.score) == (False, short)
    assert "missing: Fritz Lang" in str(metric.reason)
    assert asyncio.run(metric.a_measure(case(FILM, DIRECTOR))) > short
    low = EvidenceCompleteness(threshold=0.0, gate=gate)
    low.measure(case(FILM, WRONG))
    assert low.is_successful()


def test_no_context_fails_and_an_unknown_one_is_missing(gate: Gate) -> None:
    metric = EvidenceCompleteness(gate=gate)
    assert metric.measure(case()) < 0.01
    assert metric.success is False
    with pytest.raises(MissingTestCaseParamsError):
        metric.measure(LLMTestCase(input=QUESTION, actual_output="Vienna"))
    assert not metric.is_successful()


def test_it_runs_in_an_evaluation(gate: Gate) -> None:
    from deepeval import evaluate
    from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig

    evaluated = evaluate(
        [case(FILM, WRONG)],
        [EvidenceCompleteness(gate=gate)],
        async_config=AsyncConfig(run_async=False),
        cache_config=CacheConfig(write_cache=False, use_cache=False),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
    )
    (result,) = evaluated.test_results
    assert result.success is False
    assert result.metrics_data[0].name.startswith("Evidence Completeness")


def test_a_case_is_a_row_of_ragas(gate: Gate) -> None:
    row = to_ragas_row(case(FILM, expected_output="Vienna", context=[FILM[1]]))
    assert (row["reference"], row["reference_contexts"]) == ("Vienna", [FILM[1]])
