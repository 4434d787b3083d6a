"""A judge behind the gate: what its word is worth, who is sent to it, and what happens if it fails.

The simulated judges are right with a known probability, so that theory says what must come out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.errors import InputError
from suffice.evaluation.metrics import Predictions, score
from suffice.evaluation.verdict_log import VerdictLog, guard_outcome, logged_verdict
from suffice.evaluation.verdict_log import read_verdict_log as read_log
from suffice.gate.gate import Gate
from suffice.gate.judge import (
    MAX_EFFECT,
    PAUSE,
    Cascade,
    GateNumbers,
    JudgeBudget,
    JudgeCalibration,
    JudgedQuestions,
    expected_gain,
    fit_judge,
)
from suffice.gate.policy import Policy, PolicyRule, realized_risk
from suffice.numeric import log_odds_array, sigmoid
from suffice.protocols import HitTexts, Judge
from suffice.types import Action, Cost, Opinion

QUESTION = "Where was the director of the film Metropolis born?"
HITS = [
    {"title": "Metropolis (1927 film)", "text": "A 1927 German film directed by Fritz Lang."},
    {"title": "Superman", "text": "Superman lives in the city of Metropolis."},
]
STRONG = JudgeCalibration("stand-in", 0.0, 0.7, 2.5, -2.5, 200)


class StandIn:
    """A judge that says what it is told to say."""

    name = "stand-in"

    def __init__(self, says: Callable[[HitTexts], Opinion]) -> None:
        self.says, self.seen = says, list[HitTexts]()

    def judge(self, lists: Sequence[HitTexts]) -> list[Opinion]:
        self.seen += lists
        return [self.says(one) for one in lists]


def always(log_odds: float | None, **more: Any) -> StandIn:
    return StandIn(lambda _: Opinion(log_odds, cost=Cost(calls=1, tokens=50), **more))


@cache
def fast_gate() -> Gate:
    return Gate.load(preset="fast")


def judged_gate(judge: Judge, share: float = 1.0, **more: Any) -> Gate:
    known = replace(fast_gate(), judge_calibration=STRONG)
    return known.with_judge(judge, JudgeBudget(share=share, **more))


def world(
    n: int, accuracy: float, seed: int = 0, spread: float = 0.3
) -> tuple[GateNumbers, np.ndarray, np.ndarray]:
    """A calibrated gate, and a judge that is right with this probability."""
    rng = np.random.default_rng(seed)
    p = np.clip(rng.beta(spread, spread, n), 1e-3, 1 - 1e-3)
    complete = rng.random(n) < p
    says = np.where(rng.random(n) < accuracy, complete, ~complete)
    return GateNumbers(log_odds_array(p), p, p), np.where(says, 2.0, -2.0), complete


# ---- what its word is worth


@pytest.mark.parametrize("accuracy", [0.6, 0.7, 0.8, 0.9, 0.95])
def test_the_weight_is_the_log_likelihood_ratio(accuracy: float) -> None:
    theory = math.log(accuracy / (1 - accuracy))
    numbers, scores, complete = world(4000, accuracy)
    found = JudgeCalibration.fit("j", scores, complete, numbers.odds)
    assert found.yes == pytest.approx(theory, abs=0.25)
    assert found.no == pytest.approx(-theory, abs=0.25)
    few = [JudgeCalibration.fit("j", *_labelled(40, accuracy, seed)) for seed in range(30)]
    assert 0 <= np.mean([one.yes for one in few]) <= theory + 0.1  # forty labels: shrunk


def _labelled(n: int, accuracy: float, seed: int) -> tuple[Any, Any, Any]:
    numbers, scores, complete = world(n, accuracy, seed)
    return scores, complete, numbers.odds


def test_a_judge_that_always_says_the_same_or_guesses_has_no_weight() -> None:
    numbers, _, complete = world(400, 0.9)
    for scores in (np.full(400, 3.0), np.full(400, np.nan), np.full(400, -6.0)):
        found = JudgeCalibration.fit("j", scores, complete, numbers.odds)
        assert not found.counts
        assert not found.effects(scores).any()
        assert "no weight" in found.words
    lies = JudgeCalibration.fit("j", *_labelled(400, 0.2, 1))
    assert not lies.counts  # one that is wrong is not believed the other way round
    guesses = [JudgeCalibration.fit("j", *_labelled(400, 0.5, seed)).yes for seed in range(20)]
    assert np.mean(guesses) < 0.1


def test_what_gate_and_judge_both_know_counts_once() -> None:
    numbers, _, complete = world(2000, 0.9)
    echo = JudgeCalibration.fit("j", numbers.odds, complete, numbers.odds)
    assert echo.yes < 0.3


def test_without_labels_agreement_with_confident_verdicts_gives_half_the_weight() -> None:
    numbers, scores, _ = world(4000, 0.9)
    p = sigmoid(numbers.odds)
    sure = (p < 0.05) | (p > 0.95)
    found = JudgeCalibration.fit("j", scores[sure], p[sure])
    assert found.by == "agreement"
    assert found.yes == pytest.approx(math.log(9) / 2, abs=0.2)


def test_a_word_counts_what_it_is_worth_in_the_worst_kind_of_text() -> None:
    """Pooled, a judge that is high where the gate is too low would seem to know something."""
    rng = np.random.default_rng(0)
    truth = rng.random(400) < 0.5
    kinds = np.repeat(["manuals", "chats"], 200)
    odds = np.where(kinds == "manuals", -1.0, 1.0) + rng.normal(0, 0.3, 400)  # too low, too high
    scores = np.where(kinds == "manuals", 1.0, -1.0) + rng.normal(0, 0.3, 400)  # knows nothing
    assert JudgeCalibration.fit("j", scores, truth, odds).yes > 0.5
    assert not JudgeCalibration.fit("j", scores, truth, odds, kinds.tolist()).counts
    good = _says(truth, 0.9, rng)
    scores = np.where(kinds == "manuals", good, rng.normal(0, 1, 400))
    assert JudgeCalibration.fit("j", scores, truth, odds).yes > 0.5
    assert JudgeCalibration.fit("j", scores, truth, odds, kinds.tolist()).yes < 0.2
    both = JudgeCalibration.fit("j", good, truth, odds, kinds.tolist())
    assert both.yes == pytest.approx(math.log(9), abs=0.6)
    assert both.kinds == 2
    assert "2 kinds of text" in both.words
    few = JudgeCalibration.fit("j", good[:203], truth[:203], odds[:203], kinds[:203].tolist())
    assert few.counts  # three chats say nothing, and do not silence the others
    # Where the kinds disagree about what is neutral, words in between say nothing.
    shifted = JudgeCalibration.fit("j", good + (kinds == "chats"), truth, odds, kinds.tolist())
    neutral = -shifted.offset / shifted.slope
    np.testing.assert_array_equal(shifted.effects(neutral + np.array([-0.3, 0, 0.3])), 0)
    assert JudgeCalibration.from_json(json.loads(json.dumps(shifted.as_json()))) == shifted


def _says(truth: np.ndarray, accuracy: float, rng: np.random.Generator) -> np.ndarray:
    return np.where(np.where(rng.random(len(truth)) < accuracy, truth, ~truth), 2.0, -2.0)


def test_no_word_moves_the_odds_beyond_the_bound() -> None:
    bold = JudgeCalibration("j", 0.0, 99.0, 3.0, -3.0, 100)
    assert np.abs(bold.effects([1e9, -1e9, 6.0])).max() == MAX_EFFECT


# ---- who is sent


def test_the_gain_is_what_theory_says() -> None:
    """A judge of accuracy q changes the decision only within log(q / (1-q)) of the threshold."""
    odds, weight = np.linspace(-5, 5, 401), math.log(9)
    gains = expected_gain(odds, weight, -weight, 0.5)
    assert gains.argmax() == 200
    assert gains.max() == pytest.approx(0.2)
    assert (gains[np.abs(odds) > weight + 0.03] < 1e-12).all()
    p = sigmoid(odds)
    inside = (odds < 0) & (odds > -weight)
    np.testing.assert_allclose(gains[inside], 0.5 * p[inside] - 0.05, atol=1e-9)
    assert not expected_gain(odds, 0.0, 0.0, 0.5).any()


def test_a_quarter_of_the_calls_gives_three_quarters_of_the_gain() -> None:
    """At an accuracy of 0.9, with a gate that is sure of most questions: decisions, by answered
    complete less answered incomplete."""
    numbers, scores, complete = world(8000, 0.9, seed=3)
    known = JudgeCalibration.fit("j", scores, complete, numbers.odds)
    known = known.for_questions(numbers, threshold=0.5, share=0.25)

    def worth(p: np.ndarray) -> float:
        return float(np.where(p >= 0.5, complete - 0.5, 0).mean())

    def ranking(p: np.ndarray) -> float:
        return float(score(Predictions(complete.astype(float), p), "auroc") or 0)

    alone, quarter, whole = (
        known.probabilities(scores, numbers, share) if share else sigmoid(numbers.odds)
        for share in (0, 0.25, 1.0)
    )
    assert known.sends(numbers, 0.25).mean() == pytest.approx(0.25, abs=0.01)
    assert worth(quarter) - worth(alone) >= 0.75 * (worth(whole) - worth(alone)) > 0
    assert ranking(alone) < ranking(quarter) < ranking(whole)


def test_unfamiliar_questions_are_worth_a_call() -> None:
    odds = np.array([3.0, 3.0])
    wide = GateNumbers(odds, np.array([0.95, 0.1]), np.array([0.96, 0.99]))
    known, unknown = STRONG.gain(wide)
    assert unknown > 10 * known
    low, high = np.array([0.001, 0.5]), np.array([0.4, 0.5])
    sure, unsure = STRONG.gain(GateNumbers(np.array([-4.0, 0.0]), low, high))
    assert 0 < sure < unsure / 50  # asked about last: at its mean nothing would change


def test_the_level_of_the_labels_says_which_questions_are_uncertain() -> None:
    rng = np.random.default_rng(1)
    odds = rng.normal(0, 2, 2000)
    truth = rng.random(2000) < sigmoid(odds + 1.5)  # the gate is too low
    known = JudgeCalibration.fit("j", _says(truth, 0.9, rng), truth, odds)
    assert known.level == pytest.approx(1.5, abs=0.2)
    p = sigmoid(np.array([-1.5, 1.5]))
    uncertain, sure = known.gain(GateNumbers(log_odds_array(p), p, p))
    assert uncertain > 2 * sure


def test_never_more_than_the_share_is_sent() -> None:
    judge = always(2.0)
    cascade = Cascade(judge, STRONG, JudgeBudget(share=0.1))
    rng = np.random.default_rng(0)
    for _ in range(60):
        p = rng.random(7)
        numbers = GateNumbers(log_odds_array(p), p, p)
        cascade.consult([("?", ["t"], ["x"])] * 7, numbers, Policy(0.5))
        assert len(judge.seen) == cascade.asked <= math.ceil(0.1 * cascade.questions)
    assert cascade.asked >= 0.08 * cascade.questions
    assert cascade.cost.tokens == 50 * cascade.asked


@pytest.mark.parametrize(
    "bad", [{"share": 1.5}, {"share": -1}, {"share": math.nan}, {"seconds": 0}, {"money": "x"}]
)
def test_a_budget_that_makes_no_sense_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="judge"):
        JudgeBudget(**bad)


# ---- in a verdict


def test_a_judge_moves_an_uncertain_verdict_and_the_verdict_says_so() -> None:
    alone = fast_gate().check(QUESTION, HITS)
    gate = judged_gate(always(3.0, missing="his birthplace", hits=(0,)))
    verdict = gate.check(QUESTION, HITS)
    assert verdict.judged is not None
    assert verdict.judged.p_before == alone.p_complete < verdict.p_complete
    assert verdict.judged.action_before is alone.action
    assert verdict.reasons[0].feature == "judge"
    assert verdict.estimate.low <= verdict.p_complete <= verdict.estimate.high
    assert "the judge stand-in said yes" in str(verdict)
    assert json.loads(json.dumps(verdict.as_json()))["judged"]["missing"] == "his birthplace"
    assert alone.judged is None
    assert alone.as_json()["judged"] is None


def test_a_share_of_nothing_changes_nothing() -> None:
    judge = always(3.0)
    assert judged_gate(judge, share=0.0).check(QUESTION, HITS) == fast_gate().check(QUESTION, HITS)
    assert not judge.seen


def broken(_: HitTexts) -> Opinion:
    raise RuntimeError("down")


@pytest.mark.parametrize(
    "judge",
    [
        StandIn(broken),
        always(None, error="no answer within 2 s"),
        always(math.nan),
        always(math.inf),
    ],
)
def test_a_judge_that_fails_leaves_the_verdict_of_the_gate(judge: StandIn) -> None:
    gate, alone = judged_gate(judge), fast_gate().check(QUESTION, HITS)
    verdict = gate.check(QUESTION, HITS)
    assert verdict.judged is not None
    assert verdict.judged.p_judge is None
    assert verdict.judged.error
    assert replace(verdict, judged=None) == alone
    assert "gave no usable answer" in str(verdict)


@pytest.mark.parametrize(
    "returned",
    [None, "yes", [], ["yes"], [None], [2.0], {0: Opinion(2.0)}, iter([Opinion(2.0)]),
     [Opinion("2")], [Opinion(2.0, cost=None)]],  # type: ignore[arg-type]
)  # fmt: skip
def test_a_judge_that_returns_nonsense_leaves_the_verdict_of_the_gate(returned: Any) -> None:
    judge = always(2.0)
    judge.judge = lambda lists: returned  # type: ignore[method-assign]
    verdict = judged_gate(judge).check(QUESTION, HITS)
    assert verdict.judged is not None
    assert verdict.judged.error
    assert replace(verdict, judged=None) == fast_gate().check(QUESTION, HITS)


def test_an_error_of_a_judge_does_not_carry_a_hit_into_the_verdict() -> None:
    def quotes(given: HitTexts) -> Opinion:
        raise RuntimeError(f"cannot read {given}")

    verdict = judged_gate(StandIn(quotes)).check(QUESTION, HITS)
    assert verdict.judged is not None
    assert verdict.judged.error == "RuntimeError"


def test_a_judge_that_says_yes_to_nearly_all_is_told_with_what_its_word_did() -> None:
    wary = replace(STRONG, offset=-1.4)  # its neutral word is a yes with a chance of 0.88
    known = replace(fast_gate(), judge_calibration=wary)
    reason = known.with_judge(always(1.0), JudgeBudget(share=1.0)).check(QUESTION, HITS).reasons[0]
    told = "the judge gives the hits a chance of 0.73 to be complete, less than it gives others"
    assert (reason.sign, reason.words) == ("-", told)


def test_a_dead_judge_is_left_alone_for_a_while() -> None:
    judge = always(None, error="down")
    gate = judged_gate(judge)
    verdicts = gate.check_batch([(QUESTION, HITS)] * 3)
    assert len(judge.seen) == 3
    assert all(one.judged is not None for one in verdicts)
    after = gate.check(QUESTION, HITS)
    assert after.judged is None
    assert "not asked" in after.notes[0]
    gate.check_batch([(QUESTION, HITS)] * PAUSE)
    gate.check(QUESTION, HITS)
    assert len(judge.seen) > 3


def test_a_budget_of_money_ends_the_asking() -> None:
    judge = StandIn(lambda _: Opinion(2.0, cost=Cost(calls=1, money=0.4)))
    gate = judged_gate(judge, money=1.0)
    for _ in range(5):
        gate.check(QUESTION, HITS)
    assert len(judge.seen) == 3
    batch = StandIn(lambda _: Opinion(2.0, cost=Cost(calls=1, money=0.4)))
    gate = judged_gate(batch, money=1.0)
    for _ in range(2):
        gate.check_batch([(QUESTION, HITS)] * 20)
    assert len(batch.seen) == 3


@pytest.mark.parametrize(
    "cost", [Cost(money=math.nan), Cost(money=-1.0), Cost(money=math.inf), Cost(tokens=-5)]
)
def test_a_cost_that_cannot_be_counted_ends_the_asking_under_a_budget_of_money(cost: Cost) -> None:
    judge = StandIn(lambda _: Opinion(2.0, cost=cost))
    gate = judged_gate(judge, money=1.0)
    first, second = gate.check(QUESTION, HITS), gate.check(QUESTION, HITS)
    assert first.judged is not None
    assert "cost" in first.judged.error
    assert len(judge.seen) == 1
    assert "cost is unknown" in second.notes[0]
    assert gate.cascade is not None
    assert gate.cascade.account["money"] == 0.0


def test_without_a_weight_confident_verdicts_are_compared_first() -> None:
    """The judge counts nothing until it has agreed with enough of them."""
    rng = np.random.default_rng(1)
    p = np.where(rng.random(400) < 0.5, 0.03, 0.97)
    p[::4] = 0.45
    numbers = GateNumbers(log_odds_array(p), p, p)
    truth = dict(zip(map(str, range(400)), (p > 0.4).tolist(), strict=True))
    judge = StandIn(lambda one: Opinion(3.0 if truth[one[0]] else -3.0))
    cascade = Cascade(judge, None, JudgeBudget(share=0.5))
    lists = [(str(at), ["t"], ["x"]) for at in range(400)]
    first = cascade.consult(lists[:20], numbers[:20], Policy(0.5))
    assert not first.effects.any()
    assert cascade.calibration is None
    rest = cascade.consult(lists[20:], numbers[20:], Policy(0.5))
    assert cascade.calibration is not None
    assert cascade.calibration.by == "agreement"
    assert rest.effects[::4].max() > 1


def test_a_gate_keeps_what_its_judge_is_worth(tmp_path: Path) -> None:
    numbers, scores, complete = world(200, 0.9)
    questions = JudgedQuestions(numbers, scores, complete)
    options: Any = {"budget": JudgeBudget(), "policy": Policy(0.5)}
    known, _ = fit_judge("stand-in", questions, PolicyRule("f1"), **options)
    replace(fast_gate(), judge_calibration=known).save(tmp_path / "gate")
    opened = Gate.load(tmp_path / "gate", judge=always(1.0))
    assert opened.judge_calibration == known
    assert opened.cascade is not None
    assert Gate.load(tmp_path / "gate").cascade is None
    other = always(1.0)
    other.name = "another"
    with pytest.raises(InputError, match="'stand-in', not 'another'"):
        Gate.load(tmp_path / "gate", judge=other)
    with pytest.raises(InputError, match="the judge is a str"):
        fast_gate().with_judge("http://127.0.0.1")  # type: ignore[arg-type]


# ---- the promise


def test_the_promise_holds_for_gate_and_judge_together() -> None:
    """Weight from one half, threshold from the other, counted on further questions: exceeded no
    more often than delta allows, and more is answered than by the gate alone."""
    exceeded = coverage = alone = 0.0
    rule, budget, draws = PolicyRule("risk", 0.2, 0.1), JudgeBudget(share=0.5), 20
    for seed in range(draws):
        numbers, scores, complete = world(2400, 0.9, seed, spread=0.8)
        every = JudgedQuestions(numbers, scores, complete)
        learned, aside, fresh = every[:300], every[300:600], every[600:]
        own = rule.choose(sigmoid(aside.numbers.odds), aside.complete)
        options: Any = {"budget": budget, "policy": Policy(0.5), "aside": aside}
        known, _ = fit_judge("j", learned, rule, **options)
        assert known.policy is not None
        p = known.probabilities(fresh.scores, fresh.numbers, 0.5)
        came = realized_risk(p, fresh.complete, known.policy.answer_at)
        exceeded += (came.risk or 0) > 0.2
        coverage += came.coverage or 0
        alone += (
            realized_risk(sigmoid(fresh.numbers.odds), fresh.complete, own.answer_at).coverage or 0
        )
    assert exceeded <= draws * 0.1 + 2 * math.sqrt(draws * 0.09)
    assert coverage > alone


def test_a_promise_is_kept_to_its_share() -> None:
    promised = PolicyRule("risk", 0.3, 0.1).choose(np.linspace(0, 1, 200), np.arange(200) > 50)
    known = replace(STRONG, policy=promised, share=0.1)
    Cascade(always(1.0), known, JudgeBudget(share=0.1))
    with pytest.raises(InputError, match=r"share of 0\.1"):
        Cascade(always(1.0), known, JudgeBudget(share=0.5))


def test_the_policy_of_both_decides_unless_the_judge_fails() -> None:
    never = Policy(None)
    known = replace(STRONG, policy=never, share=1.0)
    gate = replace(fast_gate(), judge_calibration=known, policy=Policy(0.005))
    fine = gate.with_judge(always(3.0), JudgeBudget(share=1.0))
    assert fine.check(QUESTION, HITS).action is not Action.ANSWER
    dead = gate.with_judge(always(None, error="down"), JudgeBudget(share=1.0))
    assert dead.check(QUESTION, HITS).action is Action.ANSWER


# ---- in logs


def test_a_log_says_what_was_judged_and_none_of_the_judges_words(tmp_path: Path) -> None:
    verdict = judged_gate(always(3.0, missing="the secret of the hit")).check(QUESTION, HITS)
    about: Any = {"outcome": guard_outcome(verdict), "acted": False, "by": "t", "gate": "g"}
    log = VerdictLog(tmp_path / "log.jsonl")
    log.write(logged_verdict(QUESTION, HITS, verdict, **about))
    plain = replace(verdict, judged=None)
    log.write(logged_verdict(QUESTION, HITS, plain, **about))
    text = (tmp_path / "log.jsonl").read_text(encoding="utf-8")
    assert "secret" not in text
    first, second = sorted(read_log(tmp_path / "log.jsonl").rows, key=lambda row: not row.judged)
    assert first.judged is not None
    assert first.judged.tokens == 50
    assert second.judged is None
