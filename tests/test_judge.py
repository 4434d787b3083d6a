"""A judge behind the gate: who is asked, what its opinion does, and what happens if it fails."""

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

from suffice.errors import DataError, InputError
from suffice.evaluation.judging import fit_scale
from suffice.evaluation.verdict_log import VerdictLog, guard_outcome, logged_verdict
from suffice.evaluation.verdict_log import read_verdict_log as read_log
from suffice.gate.gate import Gate
from suffice.gate.judge import MAX_EFFECT, UNSURE, JudgeScale, consult
from suffice.gate.policy import Policy, Promise
from suffice.numeric import log_odds_array, sigmoid
from suffice.protocols import HitTexts, Judge
from suffice.types import Opinion

QUESTION = "Where was the director of the film Metropolis born?"
HITS = [
    {"title": "Metropolis (1927 film)", "text": "A 1927 German film directed by Fritz Lang."},
    {"title": "Superman", "text": "Superman lives in the city of Metropolis."},
]


class StandIn:
    """A judge that says what it is told to say."""

    name = "stand-in"

    def __init__(self, says: Callable[[HitTexts], Opinion]) -> None:
        self.says, self.seen = says, list[HitTexts]()

    def judge(self, lists: Sequence[HitTexts]) -> list[Opinion]:
        self.seen += lists
        return [self.says(one) for one in lists]


def always(log_odds: float | None, **more: Any) -> StandIn:
    return StandIn(lambda _: Opinion(log_odds, **more))


@cache
def fast_gate() -> Gate:
    """A gate that is unsure of the question above."""
    gate = Gate.load(preset="fast")
    return replace(gate, policy=Policy(gate.check(QUESTION, HITS).p_complete + 0.01))


def judged_gate(judge: Judge) -> Gate:
    return fast_gate().with_judge(judge)


# ---- how much it counts


@pytest.mark.parametrize("accuracy", [0.6, 0.8, 0.95])
def test_the_scale_is_the_log_likelihood_ratio(accuracy: float) -> None:
    theory = math.log(accuracy / (1 - accuracy))
    scores, complete, odds = world(4000, accuracy)
    effects = fit_scale("j", scores, complete, odds).effects([2.0, -2.0])
    np.testing.assert_allclose(effects, [theory, -theory], atol=0.3)


def world(n: int, accuracy: float, seed: int = 0) -> tuple[Any, Any, Any]:
    """A calibrated gate, and a judge that is right with this probability."""
    rng = np.random.default_rng(seed)
    p = np.clip(rng.beta(0.3, 0.3, n), 1e-3, 1 - 1e-3)
    complete = rng.random(n) < p
    says = np.where(rng.random(n) < accuracy, complete, ~complete)
    return np.where(says, 2.0, -2.0), complete, log_odds_array(p)


def test_a_judge_that_says_the_same_repeats_the_gate_or_is_wrong_has_no_weight() -> None:
    scores, complete, odds = world(400, 0.2)
    for useless in (scores, np.full(400, 3.0), np.full(400, np.nan)):
        found = fit_scale("j", useless, complete, odds)
        assert (found.slope, found.constant) == (0.0, 0.0)
        assert not found.effects([5.0, -5.0]).any()
        assert "no weight" in str(found)
    assert fit_scale("j", odds, complete, odds).slope < 0.15


def test_no_opinion_moves_the_odds_beyond_the_bound() -> None:
    assert np.abs(JudgeScale("j", 99.0).effects([1e9, -1e9, 6.0])).max() == MAX_EFFECT
    assert JudgeScale("j").effects([math.nan, 1.5]).tolist() == [0.0, 1.5]
    with pytest.raises(InputError, match="finite"):
        JudgeScale("j", math.nan)


# ---- who is asked


def test_only_lists_near_the_threshold_are_sent() -> None:
    judge, lists = always(2.0), [(str(at), ["t"], ["x"]) for at in range(3)]
    odds = np.array([1.0 + UNSURE + 0.1, 1.0, 1.0 - UNSURE])
    found = consult(judge, None, lists, odds, 1.0)
    assert [one[0] for one in judge.seen] == ["1", "2"]
    assert found.effects.tolist() == [0.0, 2.0, 2.0]
    assert found.opinions[0] is None
    without = JudgeScale("stand-in", 0.0)  # useless, as far as labels tell
    assert not consult(always(2.0), without, lists, odds, 1.0).effects.any()


def test_a_verdict_says_what_the_judge_did() -> None:
    alone, verdict = (
        gate.check(QUESTION, HITS) for gate in (fast_gate(), judged_gate(always(1.0)))
    )
    assert verdict.p_complete == pytest.approx(float(sigmoid(log_odds_array(alone.p_complete) + 1)))
    assert verdict.judged is not None
    assert verdict.judged.p_before == alone.p_complete
    assert verdict.judged.action_before is alone.action is not verdict.action
    assert verdict.estimate.low <= verdict.p_complete <= verdict.estimate.high
    assert "the judge stand-in said yes (0.73); the gate alone said" in str(verdict)
    assert json.loads(json.dumps(verdict.as_json()))["judged"]["judge"] == "stand-in"
    assert alone.as_json()["judged"] is None
    sure = replace(fast_gate(), policy=Policy(0.999)).with_judge(always(9.0))
    assert sure.check(QUESTION, HITS).judged is None


# ---- what may go wrong


def broken(given: HitTexts) -> Opinion:
    raise RuntimeError(f"cannot read {given}")


@pytest.mark.parametrize(
    ("judge", "why"),
    [
        (StandIn(broken), "(RuntimeError)"),  # without the message, which may quote a hit
        (always(None, error="no answer within 2 s"), "(no answer within 2 s)"),
        (always(None), "no reason"),
        (always(math.nan), "not a finite number"),
        (always(math.inf), "not a finite number"),
        (always("2"), "not a finite number"),  # type: ignore[arg-type]
    ],
)
def test_a_judge_that_fails_leaves_the_verdict_of_the_gate(judge: StandIn, why: str) -> None:
    alone, verdict = fast_gate().check(QUESTION, HITS), judged_gate(judge).check(QUESTION, HITS)
    assert verdict.judged is not None
    assert verdict.judged.p_judge is None
    assert why in verdict.notes[-1]
    assert replace(verdict, judged=None, notes=alone.notes) == alone
    assert "gave no usable answer" in str(verdict)


@pytest.mark.parametrize("returned", [None, "yes", [], ["yes"], [None], [2.0], {0: Opinion(2.0)}])
def test_a_judge_that_returns_nonsense_leaves_the_verdict_of_the_gate(returned: Any) -> None:
    judge = always(2.0)
    judge.judge = lambda lists: returned  # type: ignore[method-assign]
    alone, verdict = fast_gate().check(QUESTION, HITS), judged_gate(judge).check(QUESTION, HITS)
    assert replace(verdict, judged=None, notes=alone.notes) == alone
    assert "the gate decides" in verdict.notes[-1]


def test_a_gate_keeps_the_scale_of_its_judge(tmp_path: Path) -> None:
    known = JudgeScale("stand-in", 0.5, -0.25, 40)
    replace(fast_gate(), judge_scale=known).save(tmp_path / "gate")
    opened = Gate.load(tmp_path / "gate", judge=always(1.0))
    assert opened.judge_scale == known
    assert opened.judge is not None
    assert Gate.load(tmp_path / "gate").judge is None
    other = always(1.0)
    other.name = "another"
    with pytest.raises(InputError, match="'stand-in', not 'another'"):
        Gate.load(tmp_path / "gate", judge=other)
    with pytest.raises(InputError, match="the judge is a str"):
        fast_gate().with_judge("http://127.0.0.1")  # type: ignore[arg-type]
    (tmp_path / "gate" / "judge.json").write_text("{}")
    with pytest.raises(DataError):
        Gate.load(tmp_path / "gate")


def test_a_promise_does_not_cover_a_judge() -> None:
    promised = replace(fast_gate(), policy=Policy(0.5, promise=Promise(0.1, 0.1, 400)))
    with pytest.raises(InputError, match="promise was made without a judge"):
        promised.with_judge(always(1.0))


def test_a_log_says_what_was_judged(tmp_path: Path) -> None:
    verdict = judged_gate(always(1.0)).check(QUESTION, HITS)
    about: Any = {"outcome": guard_outcome(verdict), "acted": False, "by": "t", "gate": "g"}
    log = VerdictLog(tmp_path / "log.jsonl")
    log.write(logged_verdict(QUESTION, HITS, verdict, **about))
    log.write(logged_verdict(QUESTION, HITS, replace(verdict, judged=None), **about))
    rows = read_log(tmp_path / "log.jsonl").rows
    assert {row.judged for row in rows} == {verdict.judged, None}
