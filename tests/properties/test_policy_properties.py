"""What must hold for every policy, whatever it was calibrated on."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.test_policy import decide

from suffice.gate.policy import (
    Costs,
    Policy,
    choose_by_cost,
    choose_by_f1,
    choose_by_risk,
    realized_risk,
)
from suffice.types import Action

probability = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 1.0]))  # with ties
share = st.floats(0.01, 0.9)
parts = st.integers(0, 2**32 - 1).map(lambda seed: drawn(np.random.default_rng(seed)))
small_parts = st.lists(st.tuples(probability, st.booleans()), max_size=30).map(
    lambda rows: (
        np.array([p for p, _ in rows]),
        np.array([complete for _, complete in rows], bool),
    )
)
costs = st.builds(
    Costs, wrong=st.floats(0.01, 100), expand=st.floats(0, 100), abstain=st.floats(0, 100)
)


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    n = int(rng.integers(0, 400))
    a, b = rng.uniform(0.3, 8, 2)
    p = rng.beta(a, b, n).round(int(rng.integers(1, 6)))
    return p, rng.random(n) < p ** rng.uniform(0.1, 2)


def policies(part: tuple[np.ndarray, np.ndarray], priced: Costs, alpha: float) -> list[Policy]:
    return [
        choose_by_f1(*part, costs=priced),
        choose_by_cost(*part, costs=priced),
        choose_by_risk(*part, alpha=alpha, costs=priced),
    ]


@given(st.one_of(parts, small_parts), costs, share)
def test_every_policy_is_valid_and_survives_json(part, priced, alpha):
    for policy in policies(part, priced, alpha):
        assert Policy.from_json(json.loads(json.dumps(policy.as_json()))) == policy
        assert policy.words.endswith(".")


@given(parts, share, share)
def test_a_threshold_under_promise_has_a_small_enough_bound_on_its_own_part(part, alpha, delta):
    p, complete = part
    policy = choose_by_risk(p, complete, alpha=alpha, delta=delta)
    seen = realized_risk(p, complete, policy.answer_at)
    if seen.answered:
        assert seen.risk_below(1 - delta) <= alpha + 1e-9


@given(parts, share)
def test_turning_an_incomplete_question_complete_never_lowers_the_coverage(part, alpha):
    p, complete = part
    better = complete.copy()
    better[: len(p) // 2] = True
    before = realized_risk(p, complete, choose_by_risk(p, complete, alpha=alpha).answer_at).answered
    assert (
        realized_risk(p, better, choose_by_risk(p, better, alpha=alpha).answer_at).answered
        >= before
    )


@given(
    small_parts,
    costs,
    share,
    st.lists(st.tuples(probability, probability), max_size=20),
    st.integers(0, 2),
)
def test_actions_follow_the_thresholds_and_the_budget(part, priced, alpha, rows, rounds):
    now, after = [p for p, _ in rows], [p for _, p in rows]
    for policy in policies(part, priced, alpha):
        for action, p_now, p_after in zip(
            decide(now, after, policy, rounds_left=rounds), now, after
        ):
            sure = policy.answer_at is not None and p_now >= policy.answer_at
            assert (action is Action.ANSWER) == sure
            assert action is not Action.EXPAND or (
                rounds > 0 and p_after > p_now and p_after > policy.expand_at
            )
