"""`ask` with a model server that misbehaves: it ends within its budget, and says what happened."""

from __future__ import annotations

import json
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from tests.small_world import BRIDGE, TinyLibrary, Wants
from tests.stand_in_server import Reply, drips, fails, garbage, hangs_up, says, send, serving

from suffice.answering.ask import ask
from suffice.answering.budget import Budget
from suffice.answering.traces import replay, trace_to_json
from suffice.integrations.openai import CachedModel, OpenAIModel
from suffice.types import Action, Trace

CONTENT = Wants("lothair", "ermengarde")
SECONDS = 1.5
KEY = "sk-very-secret"


def sleeps(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
    time.sleep(30)


def cut_off(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
    """Half of what was announced, and then nothing."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"id": "1", "choices": [{"message": {"content": "{\\"steps\\": [\\"Who')
    handler.wfile.flush()
    handler.connection.close()


def busy_for_a_minute(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
    handler.send_response(429)
    handler.send_header("Retry-After", "60")
    handler.end_headers()


FAULTS: dict[str, Reply] = {
    "slow": sleeps,
    "dripping": drips,
    "rate limited": fails(429, '{"error": {"message": "slow down"}}'),
    "busy for a minute": busy_for_a_minute,
    "broken": fails(500),
    "refusing the key": fails(401, f'{{"error": {{"message": "bad key {KEY}"}}}}'),
    "cut off": cut_off,
    "hanging up": hangs_up,
    "garbage": garbage,
    "silent": says(None),
    "babbling": says("I would be delighted to help you with that!"),
    "ten megabytes": says("la " * 3_400_000),
    "looping": says(
        '{"steps": ["Who was the mother of Lothair II?", "Who was the mother of #2?"]}'
    ),
    "always the same": says(
        '{"answer": "Bob", "sentences": [1], "steps": ["Who was the mother of Lothair II?"]}'
    ),
    "deep": says('{"steps": ' * 20_000),
}


def ask_through(url: str, **more: Any) -> tuple[Trace, float]:
    model = OpenAIModel("stand-in", base_url=url, api_key=KEY, retries=1, timeout_s=60)
    begun = time.monotonic()
    trace = ask(
        BRIDGE,
        TinyLibrary(),
        CONTENT,
        model,
        budget=Budget(seconds=SECONDS, calls=12),
        clock=time.monotonic,
        **more,
    )
    return trace, time.monotonic() - begun


@pytest.mark.parametrize("fault", FAULTS)
def test_ask_ends_within_its_budget_and_says_what_happened(fault: str) -> None:
    with serving(FAULTS[fault]) as (url, _):
        trace, took = ask_through(url)
    assert took < SECONDS + 1.5  # a search that has begun is finished
    assert trace.cost.calls <= 12
    assert trace.notes
    assert KEY not in trace_to_json(trace)
    if trace.action is Action.ANSWER:
        assert trace.answer == "20 March 851"  # read by the rules, cited
        assert trace.citations
    else:
        assert trace.missing
    assert trace_to_json(replay(trace, TinyLibrary(), CONTENT)) == trace_to_json(trace)


def test_a_model_that_repeats_nonsense_is_not_trusted() -> None:
    """It plans, cites and answers, and judges itself right; neither question nor sentences hold
    what it says.
    """
    with serving(FAULTS["always the same"]) as (url, _):
        trace, _ = ask_through(url)
    assert "Bob" not in {step.answer for step in trace.steps}
    assert any(
        "the last step asks for a person, the question for a date" in note for note in trace.notes
    )
    assert (trace.action, trace.answer) == (Action.ANSWER, "20 March 851")


def test_a_cached_model_keeps_the_deadline(tmp_path: Any) -> None:
    with serving(sleeps) as (url, _):
        model = CachedModel(
            OpenAIModel("stand-in", base_url=url, timeout_s=60), tmp_path / "answers.sqlite"
        )
        begun = time.monotonic()
        trace = ask(
            BRIDGE, TinyLibrary(), CONTENT, model, budget=Budget(seconds=0.5), clock=time.monotonic
        )
    assert time.monotonic() - begun < 2
    assert trace.action is Action.ABSTAIN


def counts(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
    """A server that says what it used, and wraps its JSON into words."""
    message = {
        "role": "assistant",
        "content": 'Sure! ```json\n{"steps": ["When did Lothair II die?"]}\n``` Anything else?',
    }
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 70, "completion_tokens": 5, "total_tokens": 75}
    body = {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "stand-in",
        "choices": [choice],
        "usage": usage,
    }
    send(handler, 200, json.dumps(body))


def test_tokens_are_the_servers_where_it_counts_them_and_a_remembered_answer_costs_none(
    tmp_path: Any,
) -> None:
    with serving(counts) as (url, _):
        model = CachedModel(OpenAIModel("stand-in", base_url=url), tmp_path / "answers.sqlite")
        first = ask(BRIDGE, TinyLibrary(), CONTENT, model, budget=Budget(calls=1))
        again = ask(BRIDGE, TinyLibrary(), CONTENT, model, budget=Budget(calls=1))
    assert first.plan == again.plan == ("When did Lothair II die?",)
    assert (first.cost.tokens, again.cost.tokens) == (75, 0)
