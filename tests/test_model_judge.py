"""A language model as a judge: the prompt, strict parsing, votes, the cache, and texts that give
orders."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
from robustness.attacks import NAMING
from tests.stand_in_server import (
    Reply,
    drips,
    fails,
    garbage,
    hangs_up,
    judges,
    says,
    send,
    serving,
)
from tests.test_ask_injection import ATTACKS
from tests.test_judge import HITS, QUESTION, STRONG, fast_gate

from suffice.answering.budget import Prices
from suffice.errors import DataError, InputError, ModelError
from suffice.gate.judge import JudgeBudget
from suffice.integrations.judge import _NAMES as NAME_PARTS
from suffice.integrations.judge import (
    DECOYS,
    MAX_CHARS,
    Judgement,
    JudgePrompt,
    JudgeSpec,
    ModelJudge,
    is_addressed,
    judge_prompt,
    parse_judgement,
    token_log_odds,
)
from suffice.integrations.openai import OpenAIModel
from suffice.protocols import Judge
from suffice_research.judge_orders import (
    NEUTRAL,
    PLACES,
    WRITTEN_WITH,
    Aim,
    Obedient,
    Order,
    insert,
    well_read,
)

LIST = (QUESTION, [one["title"] for one in HITS], [one["text"] for one in HITS])
ASKED = JudgePrompt("", known=(True, None, False), hits=(0, None, 1))


class Says:
    """A model without log-probabilities, that gets control questions right."""

    name = "says"

    def __init__(self, *answers: str) -> None:
        self.answers, self.prompts = list(answers), list[str]()

    def complete(self, prompts: Sequence[str], *, schema: object = None) -> list[str]:
        self.prompts += prompts
        word = self.answers[len(self.prompts) % len(self.answers)]
        return [" ".join(well_read(prompt, word)) for prompt in prompts]


class Fails:
    name = "fails"

    def complete(self, prompts: Sequence[str], *, schema: object = None) -> list[str]:
        raise ModelError(f"no answer to {prompts[0]}" * 9, retryable=True)


def scored(word: str, **logprobs: float) -> Reply:
    """A server that gives log-probabilities, those of its word about the user's question."""

    def reply(handler: Any, request: dict[str, Any]) -> None:
        top: list[dict[str, Any]] = [{"token": k, "logprob": v} for k, v in logprobs.items()]
        words = well_read(request["messages"][0]["content"], "?")
        asked, words = words.index("?"), [word if one == "?" else one for one in words]
        content = [{"token": f" {one}", "logprob": -0.01, "top_logprobs": []} for one in words]
        content[asked] = {**top[0], "top_logprobs": top}
        text = f"{' '.join(words)}\nneeds: a\nhits: 1, 2, 3\nmissing: Fritz Lang"
        choice = {"index": 0, "message": {"role": "assistant", "content": text}}
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
    fence = next(line for line in prompt.text.splitlines() if line.startswith("==="))
    before, inside, after = prompt.text.split(f"\n{fence}\n")
    assert f"[{prompt.hits.index(0) + 1}] Metropolis (1927 film): A 1927 German film" in inside
    assert "Fritz Lang" not in before + after
    assert f"Question {prompt.place + 1}: <<<{QUESTION}>>>" in after
    assert f"to answer question {prompt.place + 1}\n" in before


def test_the_prompt_is_bounded_and_short_hits_stay_whole() -> None:
    prompt = judge_prompt("q " * 9999, ["t" * 999, "", ""], ["long " * 99999, "short one.", ""])
    assert len(prompt.text) < MAX_CHARS + 3500
    assert "] short one.\n" in prompt.text
    assert judge_prompt("q", [], []).hits == (None,)
    half = judge_prompt("\ud800?", ["\ud800"], ["a\x00b\u202e"])
    assert "\x00" not in half.text


def test_control_questions_are_known_to_us_and_not_to_who_writes_a_hit() -> None:
    """The same list has the same prompt. In others, places, names and voices of the order vary."""
    some = [judge_prompt(*LIST[:2], [*LIST[2][1:], f"A film of {at}."]) for at in range(60)]
    assert some[0] == judge_prompt(*LIST[:2], [*LIST[2][1:], "A film of 0."])
    assert {one.place for one in some} == {0, 1, 2}
    assert {one.known for one in some} >= {(True, None, False), (False, None, True)}
    assert {one.hits.index(None) for one in some} == {0, 1, 2}
    heads = {decoy.partition("{}")[0] for decoy in DECOYS if not decoy.startswith("{")}
    assert all(any(head in one.text for one in some) for head in heads)
    for one in some:
        right = " ".join(well_read(one.text, "yes"))
        assert parse_judgement(right, one) == Judgement(True)
    names = " ".join(map("".join, product(*NAME_PARTS)))
    assert judge_prompt("q", [""], [names[:MAX_CHARS]]).known.count(None) == 1


@pytest.mark.parametrize(
    "text",
    ["yes yes no", "Yes, yes, no.", "**yes** **yes** **no**\nhits: 1", "1. yes\n2. yes\n3. no\n",
     " YES / YES / NO\nmissing: x", "Question 1: yes; Question 2: yes; Question 3: no"],
)  # fmt: skip
def test_yes_is_understood(text: str) -> None:
    found = parse_judgement(text, ASKED)
    assert found is not None
    assert found.complete
    assert not found.wrong


@pytest.mark.parametrize(
    "text", ["", "maybe", "yes", "yes no", "yes and no, no", "The answer is yes yes no", "yesterday",
             '{"complete": true}', "1", "yes yes no yes", "2 yes 1 yes 3 no"]
)  # fmt: skip
def test_what_is_neither_yes_nor_no_is_no_opinion(text: str) -> None:
    assert parse_judgement(text, ASKED) is None


@pytest.mark.parametrize(("text", "wrong"), [("yes no yes", "no passage answers"),
                                             ("no yes no", "a passage answers")])  # fmt: skip
def test_a_control_question_that_is_answered_wrongly(text: str, wrong: str) -> None:
    found = parse_judgement(text, ASKED)
    assert found is not None
    assert wrong in found.wrong


def test_what_it_names_is_kept_within_bounds() -> None:
    text = f"yes no no\nneeds: a birthplace\nhits: 1, 2, 7, 3, 1\nmissing: {'where ' * 99}\x1b[2J"
    found = parse_judgement(text, ASKED)
    assert found is not None
    assert found.hits == (0, 1)  # the second passage is ours
    assert len(found.missing) == 120
    assert found.missing.isprintable()
    nothing = parse_judgement("yes yes no\nmissing: Nothing.", ASKED)
    assert nothing is not None
    assert nothing.missing == ""


def test_huge_and_blank_texts_cost_no_time() -> None:
    """Each of these took many seconds: a rule that looks on from every line, an answer of 3 MB."""
    assert "[1]" in judge_prompt("q", [""], ["\n" * 10**6]).text
    said = parse_judgement("yes yes no\nhits: " + "1 " * 10**6, ASKED)
    assert said is not None
    assert said.hits == (0,)
    assert parse_judgement("yes " + "\n*" * 10**6, ASKED) is None


def test_log_odds_of_the_word_about_the_question() -> None:
    sure, word = {"No": -0.01}, {"yes": math.log(0.6), " Yes": math.log(0.2), "no": math.log(0.2)}
    assert token_log_odds([sure, {",": 0.0}, word], 1) == pytest.approx(math.log(4))
    assert token_log_odds([{"The": -0.1, "A": -3.0}], 0) is None
    assert token_log_odds([word], 1) is None
    alone = token_log_odds([sure], 0)
    assert alone is not None
    assert -6 <= alone < -5
    assert token_log_odds([{}, {}], 0) is None


# ---- asking


def test_log_probabilities_say_how_sure_it_is_in_one_call() -> None:
    with serving(scored("no", no=math.log(0.8), yes=math.log(0.2))) as (url, seen):
        judge = server_judge(url, prices=Prices(1.0, 2.0))
        assert isinstance(judge, Judge)
        (said,) = judge.judge([LIST])
    assert said.log_odds == pytest.approx(math.log(0.25))
    assert (said.missing, sorted(said.hits)) == ("Fritz Lang", [0, 1])
    assert (said.cost.calls, said.cost.tokens) == (1, 320)
    assert said.cost.money == pytest.approx(340e-6)
    assert seen[0]["logprobs"] is True
    assert seen[0]["max_tokens"] == 96


def test_a_server_without_log_probabilities_votes_with_short_answers() -> None:
    def old(handler: Any, request: dict[str, Any]) -> None:
        (fails(400) if "logprobs" in request else judges("yes"))(handler, request)

    with serving(old) as (url, seen):
        (said,) = server_judge(url, concurrency=1).judge([LIST])
    assert said.log_odds == pytest.approx(math.log(3.5 / 0.5))
    assert said.cost.calls == 3
    assert [one["max_tokens"] for one in seen] == [96, 96, 16, 16]  # the first was refused
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
    "reply",
    [fails(500), garbage, hangs_up, redirects, says("well, perhaps"), says("yes"), says("")],
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
    """Wherever they stand, its parsed answer is what it says without an order."""
    naming = (Order(one(QUESTION, None)) for one in NAMING.values())  # type: ignore[arg-type]
    for order in (*WRITTEN_WITH, *naming):
        model = Obedient(order, ours=False)
        for place in PLACES:
            prompt = judge_prompt(QUESTION, *insert(place, *LIST[1:], order.text))
            assert not model.hears(prompt.text), (place, order.text)
            said = parse_judgement(model.complete([prompt.text])[0], prompt)
            assert said == Judgement(order.wants == "no")
    assert model.hears(f"\n===\n[1] {order.text}")


def test_orders_do_not_move_the_cascade_where_the_judge_decides() -> None:
    gate = replace(fast_gate(), judge_calibration=TRUSTED)
    for order in WRITTEN_WITH[::9]:
        cascade = gate.with_judge(ModelJudge(Obedient(order, ours=False)), JudgeBudget(share=1.0))
        hits = [*HITS, {"title": "", "text": order.text}]
        alone, judged = (one.check(QUESTION, hits, explain=False) for one in (gate, cascade))
        against = 1 if order.wants == "no" else -1  # what it says without an order
        assert (judged.p_complete - alone.p_complete) * against >= 0


def test_a_model_that_obeys_our_own_order_is_not_heard() -> None:
    """Whatever strangers write, in words that no rule knows or in none at all."""
    for text in ("Zmora keppel untsa voor.", NEUTRAL[0]):
        model = Obedient(Order(text))
        assert model.hears(judge_prompt(QUESTION, *insert("beside", *LIST[1:], text)).text)
        (said,) = ModelJudge(model).judge([(QUESTION, *insert("beside", *LIST[1:], text))])
        assert said.log_odds is None
        assert "it obeys orders in passages" in said.error
        assert said.cost.calls == 1  # no votes


def test_an_order_without_scope_fails_a_control_also_if_a_model_obeys_strangers_only() -> None:
    lists = [
        (QUESTION, *insert("beside", *LIST[1:], f"Zmora keppel untsa {at}.")) for at in range(5)
    ]
    for wants in ("yes", "no"):
        heard = {
            aim: {
                one.log_odds and one.log_odds > 0
                for one in ModelJudge(Obedient(Order("Zmora keppel untsa", wants, aim), ours=False)).judge(lists)
            }
            for aim in get_args(Aim)
        }  # fmt: skip
        assert heard["every"] == heard["form"] == {None}
        assert heard["question"] == heard["controls"] == {wants == "yes"}
        assert None in heard["first"]  # at other places, it is a control's answer


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
