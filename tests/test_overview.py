"""A gate's run at a glance: what each threshold comes to adds up, and a promise is no better than the questions bear out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from suffice.evaluation.gate_runs import GateRun, run_overview
from suffice.gate.policy import choose_by_risk


def village(n: int = 400) -> GateRun:
    rng = np.random.default_rng(3)
    p = rng.random(n)
    kinds = tuple("bridge" if at % 2 else None for at in range(n))
    actions = tuple("answer" if one >= 0.8 else "expand" if one > 0.4 else "abstain" for one in p)
    complete = tuple((rng.random(n) < p).tolist())
    return GateRun(
        "village",
        "bm25",
        4,
        "default",
        tuple(map(str, range(n))),
        kinds,
        (2,) * n,
        complete,
        tuple(p.tolist()),
        actions,
    )


def test_at_every_threshold_each_question_is_counted_once() -> None:
    run = village()
    for one in run_overview(run)["thresholds"]:
        assert one["answered"] + one["expanded"] + one["undecided"] + one["abstained"] == len(run)
        assert one["risk"] is None or one["incomplete"] == round(one["risk"] * one["answered"])
        assert one["risk"] is None or one["risk"] <= one["risk_below"] <= 1


def test_at_the_runs_own_threshold_nothing_is_undecided() -> None:
    shown = run_overview(village())
    assert shown["answer_at"] == pytest.approx(0.8, abs=0.02)
    below = next(one for one in shown["thresholds"] if one["at"] == 0.8)
    assert below["undecided"] == 0
    above = next(one for one in shown["thresholds"] if one["at"] == 0.9)
    assert above["undecided"] > 0


def test_promises_are_those_of_the_policy_and_grow_with_what_may_go_wrong() -> None:
    run = village()
    told = {one["alpha"]: one for one in run_overview(run)["promises"]}
    assert (
        told[0.2]["answer_at"]
        == choose_by_risk(run.p, run.complete, alpha=0.2, delta=0.1).answer_at
    )
    assert told[0.01]["answer_at"] is None
    assert told[0.01]["coverage"] == 0.0
    shares = [one["coverage"] for one in told.values()]
    assert shares == sorted(shares)


def test_places_without_a_kind_share_a_column() -> None:
    shown = run_overview(village())["difficulty"]
    assert (shown["rows"], shown["columns"]) == ([2], ["all", "bridge"])
    assert [cell["questions"] for cell in shown["cells"][0]] == [200, 200]


def test_an_empty_run_is_shown_as_nothing_and_everything_is_json() -> None:
    shown = run_overview(GateRun("village", "bm25", 4, "default", (), (), (), (), (), ()))
    assert shown["questions"] == 0
    assert json.loads(json.dumps(shown, allow_nan=False))["answer_at"] is None
