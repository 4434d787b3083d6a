"""A language model as a judge: the prompt, strict parsing, votes, the cache, and texts that give
orders."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from robustness.attacks import NAMING
from tests.stand_in_server import Reply, drips, fails, garbage, hangs_up, says, send, serving
from tests.test_ask_injection import ATTACKS
from tests.test_judge import HITS, QUESTION, STRONG, fast_gate

from suffice.answering.budget import Prices
from suffice.errors import DataError, InputError, ModelError
from suffice.gate.judge import JudgeBudget
from suffice.integrations.judge import (
    MAX_CHARS,
    JudgeSpec,
    ModelJudge,
    first_token_log_odds,
    is_addressed,
    judge_prompt,
    parse_judgement,
)
from suffice.integrations.openai import OpenAIModel
from suffice.protocols import Judge
from suffice_research.judge_orders import NEUTRAL, PLACES, WRITTEN_WITH, Obedient, Order, insert

LIST = (QUESTION, [one["title"] for one in HITS], [one["text"] for one in HITS])


class Says:
    """A model without log-probabilities."""

    name = "says"

    def __init__(self, *answers: str) -> None:
        self.answers, self.prompts = list(answers), list[str]()

    def complete(self, prompts: Sequence[str], *, schema: object = None) -> list[str]:
        self.prompts += prompts
        return [self.answers[len(self.prompts) % len(self.answers)] for _ in prompts]


class Fails:
    name = "fails"

    def complete(self, prompts: Sequence[str], *, schema: object = None) -> list[str]:
        raise ModelError(f"no answer to {prompts[0]}" * 9, retryable=True)


def scored(**logprobs: float) -> Reply:
    """A server that gives log-probabilities of its first token."""

    def reply(handler: Any, request: dict[str, Any]) -> None:
        top: list[dict[str, Any]] = [{"token": k, "logprob": v} for k, v in logprobs.items()]
        content = [{**top[0], "top_logprobs": top}]
        message = {"role": "assistant", "content": "no\nneeds: a\nhits: 1\nmissing: Fritz Lang"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 300, "completion_tokens": 20}
        body = {"choices": [{**choice, "logprobs": {"content": content}}], "usage": usage}
        send(handler, 200, json.dumps(body))

    return reply


def server_judge(url: str, **options: Any) -> ModelJudge:
    model = OpenAIModel("stand-in", base_url=url, timeout_s=5.0, retries=0, **options)
    return ModelJudge(model)


# ---- prompt and answer


def test_the_prompt_quotes_hits_as_data() -> None:
    prompt = judge_prompt(*LIST)
    fence = next(line for line in prompt.splitlines() if line.startswith("==="))
    before, inside, after = prompt.split(f"\n{fence}\n")
    assert "[1] Metropolis (1927 film): A 1927 German film" in inside
    assert "Fritz Lang" not in before + after
    assert f"<<<{QUESTION}>>>" in after


def test_the_prompt_is_bounded_and_short_hits_stay_whole() -> None:
    prompt = judge_prompt("q " * 9999, ["t" * 999, "", ""], ["long " * 99999, "short one.", ""])
    assert len(prompt) < MAX_CHARS + 3500
    assert "[2] short one." in prompt
    assert "(none)" in judge_prompt("q", [], [])
    half = judge_prompt("\ud800?", ["\ud800"], ["a\x00b\u202e"])
    assert "\x00" not in half


@pytest.mark.parametrize("text", ["yes", "Yes.", "**yes**\nhits: 1", '"yes"\n', " YES\nmissing: x"])
def test_yes_is_understood(text: str) -> None:
    found = parse_judgement(text, 2)
    assert found is not None
    assert found.complete


@pytest.mark.parametrize(
    "text", ["", "maybe", "yes and no", "The answer is yes", "yesterday", '{"complete": true}', "1"]
)
def test_what_is_neither_yes_nor_no_is_no_opinion(text: str) -> None:
    assert parse_judgement(text, 2) is None


def test_what_it_names_is_kept_within_bounds() -> None:
    text = f"no\nneeds: a birthplace\nhits: 1, 7, 2, 1\nmissing: {'where ' * 99}\x1b[2J"
    found = parse_judgement(text, 2)
    assert found is not None
    assert found.hits == (0, 1)
    assert len(found.missing) == 120
    assert found.missing.isprintable()
    nothing = parse_judgement("yes\nmissing: Nothing.", 2)
    assert nothing is not None
    assert nothing.missing == ""


def test_huge_and_blank_texts_cost_no_time() -> None:
    """Each of these took many seconds: a rule that looks on from every line, an answer of 3 MB."""
    assert "[1]" in judge_prompt("q", [""], ["\n" * 10**6])
    said = parse_judgement("yes\nhits: " + "1 " * 10**6, 2)
    assert said is not None
    assert said.hits == (0,)


def test_log_odds_of_the_first_token() -> None:
    assert first_token_log_odds(
        {"yes": math.log(0.6), " Yes": math.log(0.2), "no": math.log(0.2)}
    ) == (pytest.approx(math.log(4)))
    assert first_token_log_odds({"The": -0.1, "A": -3.0}) is None
    alone = first_token_log_odds({"no": -0.01})
    assert alone is not None
    assert -6 <= alone < -5
    assert first_token_log_odds({}) is None


# ---- asking


def test_log_probabilities_say_how_sure_it_is_in_one_call() -> None:
    with serving(scored(no=math.log(0.8), yes=math.log(0.2))) as (url, seen):
        judge = server_judge(url, prices=Prices(1.0, 2.0))
        assert isinstance(judge, Judge)
        (said,) = judge.judge([LIST])
    assert said.log_odds == pytest.approx(math.log(0.25))
    assert (said.missing, said.hits) == ("Fritz Lang", (0,))
    assert (said.cost.calls, said.cost.tokens) == (1, 320)
    assert said.cost.money == pytest.approx(340e-6)
    assert seen[0]["logprobs"] is True
    assert seen[0]["max_tokens"] == 96


def test_a_server_without_log_probabilities_votes_with_short_answers() -> None:
    def old(handler: Any, request: dict[str, Any]) -> None:
        (fails(400) if "logprobs" in request else says("yes"))(handler, request)

    with serving(old) as (url, seen):
        (said,) = server_judge(url, concurrency=1).judge([LIST])
    assert said.log_odds == pytest.approx(math.log(3.5 / 0.5))
    assert said.cost.calls == 3
    assert [one["max_tokens"] for one in seen] == [96, 96, 4, 4]  # the first was refused
    assert len({one["messages"][0]["content"] for one in seen}) > 1  # hits in another order


def test_votes_may_differ() -> None:
    judge = ModelJudge(Says("yes", "no"))
    (said,) = judge.judge([LIST])
    assert abs(said.log_odds or 9) < 1.2


def redirects(handler: Any, request: dict[str, Any]) -> None:
    handler.send_response(307)
    handler.send_header("Location", handler.path)
    handler.end_headers()


@pytest.mark.parametrize(
    "reply", [fails(500), garbage, hangs_up, redirects, says("well, perhaps"), says("")]
)
def test_a_bad_server_gives_no_opinion(reply: Reply) -> None:
    with serving(reply) as (url, seen):
        (said,) = server_judge(url).judge([LIST])
    assert len(seen) == 1  # a redirect is not followed
    assert said.log_odds is None
    assert said.error
    assert len(said.error) <= 120


def test_a_slow_server_is_not_waited_for() -> None:
    with serving(drips) as (url, _):
        (said,) = server_judge(url).within(0.2).judge([LIST])
    assert said.log_odds is None
    assert "0.2 s" in said.error


def test_nothing_of_a_hit_reaches_an_error_in_full() -> None:
    (said,) = ModelJudge(Fails()).judge([("q", ["t"], ["a secret text " * 50])])
    assert said.log_odds is None
    assert "a secret text " * 2 not in said.error


def test_the_same_list_is_asked_about_once(tmp_path: Path) -> None:
    model = Says("yes")
    judge = ModelJudge(model, cache=tmp_path / "opinions.db")
    first, again = judge.judge([LIST, LIST])
    assert len(model.prompts) == 3  # votes of one list
    assert (first.cached, again.cached) == (False, True)
    assert again.cost.calls == 0
    later = ModelJudge(Says("no"), name="says", cache=tmp_path / "opinions.db").judge([LIST])
    assert later[0].log_odds == first.log_odds
    other = ModelJudge(Says("no"), name="other", cache=tmp_path / "opinions.db").judge([LIST])
    assert other[0].log_odds != first.log_odds
    assert HITS[0]["text"].encode() not in (tmp_path / "opinions.db").read_bytes()
    (tmp_path / "damaged.db").write_bytes(b"not a database" * 99)
    with pytest.raises(DataError, match="cannot hold opinions"):
        ModelJudge(Says("no"), cache=tmp_path / "damaged.db")


def test_failures_are_not_remembered() -> None:
    model = Says("hm")
    judge = ModelJudge(model)
    judge.judge([LIST])
    model.answers = ["yes"]
    assert judge.judge([LIST])[0].log_odds is not None


# ---- by name


def test_a_judge_by_name() -> None:
    spec = JudgeSpec("http://127.0.0.1:9/v1#qwen", ("share=0.2", "seconds=3"))
    judge = spec.open()
    assert judge.name == "qwen"
    assert spec.budget == JudgeBudget(share=0.2, seconds=3.0)
    for limits in (("shares=1",), ("share=x",), ("share=2",), ("money=1",)):
        with pytest.raises(InputError):
            JudgeSpec("http://127.0.0.1:9/v1", limits).open()
    with pytest.raises(InputError, match="not an address"):
        JudgeSpec("ftp://x#y").open()


# ---- texts that give orders

TRUSTED = replace(STRONG, judge="obedient")


def test_an_obedient_model_does_not_hear_orders() -> None:
    """Its parsed answer is that of neutral text in the same place."""
    naming = (Order(one(QUESTION, None)) for one in NAMING.values())  # type: ignore[arg-type]
    for order, in_turn in zip((*WRITTEN_WITH, *naming), cycle(PLACES)):
        model = Obedient(order)
        for place in PLACES:
            prompt = judge_prompt(QUESTION, *insert(place, *LIST[1:], order.text))
            assert not model.hears(prompt), (place, order.text)
        lists = [(QUESTION, *insert(in_turn, *LIST[1:], text)) for text in (order.text, NEUTRAL[0])]
        ordered, neutral = ModelJudge(model).judge(lists)
        assert ordered.log_odds == neutral.log_odds
    assert model.hears(f"\n===\n[1] {order.text}")


def test_orders_do_not_move_the_cascade_where_the_judge_decides() -> None:
    gate = replace(fast_gate(), judge_calibration=TRUSTED)
    for order in WRITTEN_WITH[::9]:
        cascade = gate.with_judge(ModelJudge(Obedient(order)), JudgeBudget(share=1.0))
        hits = [*HITS, {"title": "", "text": order.text}]
        alone, judged = (one.check(QUESTION, hits, explain=False) for one in (gate, cascade))
        against = 1 if order.wants == "no" else -1  # what it says without an order
        assert (judged.p_complete - alone.p_complete) * against >= 0


def test_the_attacks_of_the_loop_are_seen_where_they_ask_for_a_verdict() -> None:
    wanted = [one for one in ATTACKS if "yes" in one.lower() or "p_complete" in one]
    assert all(map(is_addressed, wanted))


def test_plain_sentences_are_shown() -> None:
    for text in (*NEUTRAL, "Yes, the office is open on Monday.", "User: I said no to the offer.",
                 "You will have an answer within five days.", "The film is about a judge."):  # fmt: skip
        assert not is_addressed(text)


def test_what_slips_through_is_bounded_by_the_weight() -> None:
    """A new order may fool the model; the odds move by what a yes is worth, no more."""
    gate = fast_gate().with_judge(ModelJudge(Says("yes")), JudgeBudget(share=1.0))
    assert gate.check(QUESTION, HITS).p_complete == fast_gate().check(QUESTION, HITS).p_complete
    assert STRONG.effects([99.0]).max() <= 3.0
