"""The policy: what it chooses, what it promises, and that the promise holds."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from tests.values import known

from suffice.errors import InputError
from suffice.gate.policy import (
    Costs,
    Policy,
    Promise,
    PromiseNeed,
    choose_actions,
    choose_by_cost,
    choose_by_f1,
    choose_by_risk,
    explain_actions,
    labels_for_promise,
    min_questions_for,
    questions_needed,
    realized_risk,
)
from suffice.types import Action


def decide(now, after, policy, *, rounds_left):
    p_after = None if after is None else np.array(after)
    return choose_actions(np.array(now), p_after, policy, rounds_left=rounds_left)


ANSWER, EXPAND, ABSTAIN = Action.ANSWER, Action.EXPAND, Action.ABSTAIN


# ---- risk at a threshold


def test_risk_at_counts_the_answered_and_the_incomplete_among_them():
    seen = realized_risk([0.9, 0.8, 0.8, 0.3], [True, False, True, False], 0.8)
    assert (seen.questions, seen.answered, seen.incomplete) == (4, 3, 1)
    assert seen.coverage == 0.75
    assert seen.risk == pytest.approx(1 / 3)


def test_nobody_answered_has_no_risk_and_no_questions_have_no_coverage():
    assert realized_risk([0.2, 0.3], [True, False], 0.9).risk is None
    assert realized_risk([0.2, 0.3], [True, False], None).coverage == 0
    assert realized_risk([], [], 0.5).coverage is None
    assert realized_risk([0.2], [True], 0.9).risk_below(0.9) == 1


def test_the_upper_bound_is_clopper_and_pearsons():
    # 0 of 45 at 90 %: 1 - 0.1 ** (1 / 45); 2 of 50 at 95 %: the value of the published tables
    assert realized_risk([0.5] * 45, [True] * 45, 0.5).risk_below(0.9) == pytest.approx(
        1 - 0.1 ** (1 / 45)
    )
    assert realized_risk([0.5] * 50, [True] * 48 + [False] * 2, 0.5).risk_below(
        0.95
    ) == pytest.approx(0.1206, abs=1e-4)
    assert realized_risk([0.5] * 3, [False] * 3, 0.5).risk_below(0.95) == 1


# ---- by F1


def test_the_f1_threshold_is_the_best_of_all_observed_ones():
    rng = np.random.default_rng(3)
    p = rng.random(60).round(1)  # with ties
    complete = rng.random(60) < p

    def f1(threshold: float) -> float:
        chosen = p >= threshold
        return 2 * (chosen & complete).sum() / (chosen.sum() + complete.sum())

    best = known(choose_by_f1(p, complete).answer_at)
    assert f1(best) == max(f1(one) for one in p)
    assert best == max(one for one in p if f1(one) == f1(best))


def test_the_expected_f1_does_not_follow_single_labels():
    p = [0.9, 0.8, 0.7, 0.5, 0.3, 0.2, 0.1]
    lucky, unlucky = [True, True, True, True, True, True, False], [True, *[False] * 6]
    assert known(choose_by_f1(p, lucky).answer_at) == 0.2
    assert known(choose_by_f1(p, unlucky).answer_at) == 0.9
    for complete in (lucky, unlucky):
        assert known(choose_by_f1(p, complete, expected=True).answer_at) == 0.5
    assert choose_by_f1(p, [False] * 7, expected=True).answer_at is None


# ---- by cost


def test_by_cost_answers_where_a_wrong_answer_is_expected_to_cost_no_more_than_an_abstention():
    policy = choose_by_cost(
        [0.9, 0.5, 0.1], [True, True, False], costs=Costs(wrong=10, expand=1, abstain=2)
    )
    assert policy.answer_at == pytest.approx(0.8)
    assert (
        choose_by_cost([0.5], [True], costs=Costs(wrong=1, abstain=5)).answer_at == 0
    )  # abstaining is dearer than erring
    assert (
        choose_by_cost([0.5], [True], costs=Costs(wrong=1, abstain=0)).answer_at == 1
    )  # abstaining is free


def test_on_calibrated_probabilities_no_threshold_is_cheaper_than_the_closed_form():
    rng = np.random.default_rng(0)
    p = rng.random(100_000)
    complete = rng.random(100_000) < p
    costs = Costs(wrong=4, abstain=1)

    def spent(threshold: float) -> float:
        seen = realized_risk(p, complete, threshold)
        return (
            costs.wrong * seen.incomplete + costs.abstain * (seen.questions - seen.answered)
        ) / seen.questions

    chosen = spent(known(choose_by_cost(p, complete, costs=costs).answer_at))
    assert chosen <= min(spent(one) for one in np.linspace(0, 1, 41)) + 0.002


# ---- by risk: edges


def test_fewer_questions_than_could_ever_prove_it_keep_no_promise_and_the_policy_says_so():
    assert min_questions_for(0.05, 0.1) == 45  # 0.95 ** 45 < 0.1 < 0.95 ** 44
    policy = choose_by_risk([0.99] * 44, [True] * 44, alpha=0.05, delta=0.1)
    assert policy.answer_at is None
    assert policy.words == (
        "Never answers: no threshold keeps the promise that among answered, the share of incomplete is at most 0.05, "
        "with confidence 0.9 (44 calibration questions, and at least 45 are needed, to answer about 100 %)."
    )
    assert choose_by_risk([0.99] * 45, [True] * 45, alpha=0.05, delta=0.1).answer_at == 0


def test_a_promise_that_cannot_be_kept_says_how_many_questions_it_needs():
    p = np.linspace(0.99, 0.01, 36)
    complete = np.arange(36) < 10  # the ten highest are complete, and nothing else
    policy = choose_by_risk(p, complete, alpha=0.1, delta=0.1)
    need = known(known(policy.promise).need)
    assert policy.answer_at is None
    assert known(need.questions) >= 36 * min_questions_for(0.1, 0.1) / 10
    assert need.coverage == pytest.approx(10 / 36)
    assert f"at least {need.questions} are needed, to answer about 28 %" in policy.words
    assert Policy.from_json(json.loads(json.dumps(policy.as_json()))) == policy
    # With so many questions like these, it is kept, and answers as many.
    like_these = np.arange(known(need.questions)) * 36 // known(need.questions)
    kept = choose_by_risk(p[like_these], complete[like_these], alpha=0.1, delta=0.1)
    assert realized_risk(p, complete, kept.answer_at).coverage == need.coverage
    assert known(kept.promise).need is None


def test_without_questions_only_the_fewest_are_known():
    assert questions_needed([], [], alpha=0.1) == PromiseNeed(22)
    with pytest.raises(InputError, match="questions is True"):
        PromiseNeed(True)


def test_the_threshold_never_cuts_through_a_tie():
    p = np.repeat([0.9, 0.6, 0.2], [150, 100, 150])
    complete = np.concatenate([np.ones(250, bool), np.zeros(150, bool)])
    policy = choose_by_risk(p, complete, alpha=0.1)
    assert 0.2 < known(policy.answer_at) <= 0.6
    assert realized_risk(p, complete, policy.answer_at).answered == 250


@pytest.mark.parametrize(
    ("alpha", "delta"),
    [(0, 0.1), (1, 0.1), (0.1, 0), (0.1, 1), (math.nan, 0.1), ("a", 0.1), (True, 0.1)],
)
def test_a_promise_outside_zero_and_one_is_refused(alpha, delta):
    with pytest.raises(InputError):
        choose_by_risk([0.5], [True], alpha=alpha, delta=delta)


# ---- by risk: the proof

# What a score may do to the true probability q of being complete. All but the first are
# miscalibrated; the last three break the
# order too, which costs coverage and must not cost the promise.
SCORES = {
    "calibrated": lambda q, rng: q,
    "overconfident": lambda q, rng: q**0.2,
    "underconfident": lambda q, rng: 0.3 + 0.3 * q,
    "rounded to tenths": lambda q, rng: q.round(1),
    "noisy": lambda q, rng: np.clip(q + rng.normal(0, 0.15, len(q)), 0, 1),
    "best questions scored low": lambda q, rng: np.where(q > 0.9, 0.5 + q / 10, q),
    "wavy": lambda q, rng: (q + 0.08 * np.sin(25 * q)).clip(0, 1),
}
SPLITS, DELTA = 100, 0.1


class World:
    """A population large enough to know the risk above each threshold, from which calibration parts
    are drawn.
    """

    def __init__(self, score: str, *, n: int = 100_000) -> None:
        rng = np.random.default_rng(11)
        q = np.where(rng.random(n) < 0.3, rng.beta(40, 1, n), rng.beta(2, 2, n))
        p = SCORES[score](q, rng)
        order = np.argsort(-p, kind="stable")
        self.q, self.p = q[order], p[order]
        self.risks = np.cumsum(1 - self.q) / np.arange(1, n + 1)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        at = rng.integers(0, len(self.p), n)
        return self.p[at], rng.random(n) < self.q[at]

    def answered(self, threshold: float | None) -> int:
        return 0 if threshold is None else int(np.searchsorted(-self.p, -threshold, side="right"))

    def oracle(self, alpha: float) -> float:
        """The largest coverage of any threshold with a risk of at most alpha."""
        ends = np.searchsorted(-self.p, -np.unique(self.p), side="right")
        return max((end for end in ends if self.risks[end - 1] <= alpha), default=0) / len(self.p)


def kept_and_coverage(score: str, alpha: float, *, n: int = 500) -> tuple[float, float, float]:
    """Share of splits whose risk exceeds alpha, mean coverage, and the coverage of one who knows
    the population.
    """
    world, rng = World(score), np.random.default_rng(29)
    answered = np.array(
        [
            world.answered(choose_by_risk(*world.draw(rng, n), alpha=alpha, delta=DELTA).answer_at)
            for _ in range(SPLITS)
        ]
    )
    broken = (answered > 0) & (world.risks[np.maximum(answered, 1) - 1] > alpha)
    return float(broken.mean()), float(answered.mean() / len(world.p)), world.oracle(alpha)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("score", SCORES)
def test_over_100_splits_the_promise_is_broken_in_at_most_delta_of_them(score, alpha):
    broken, _, _ = kept_and_coverage(score, alpha)
    assert broken <= DELTA + 1.645 * math.sqrt(DELTA * (1 - DELTA) / SPLITS)


def test_in_the_worst_world_where_every_threshold_is_a_hair_too_risky_it_is_still_broken_in_at_most_delta():
    alpha, rng, splits = 0.1, np.random.default_rng(17), 500
    draws = ((rng.random(1000), rng.random(1000) >= alpha + 1e-6) for _ in range(splits))
    broken = np.mean(
        [
            choose_by_risk(p, complete, alpha=alpha, delta=DELTA).answer_at is not None
            for p, complete in draws
        ]
    )
    assert (
        DELTA / 2 < broken <= DELTA + 1.645 * math.sqrt(DELTA * (1 - DELTA) / splits)
    )  # and not idle either


@pytest.mark.parametrize(("alpha", "share"), [(0.05, 0.35), (0.1, 0.7), (0.2, 0.8)])
def test_coverage_is_not_needlessly_small(alpha, share):
    _, coverage, oracle = kept_and_coverage("calibrated", alpha)
    assert coverage >= share * oracle


@pytest.mark.filterwarnings("ignore:No predict parameters were found")
def test_mapie_finds_the_same_thresholds_safe_one_by_one_and_lets_fewer_questions_be_answered():
    control = pytest.importorskip("mapie.risk_control", reason="mapie is not installed")
    world, rng, alpha, grid = (
        World("calibrated"),
        np.random.default_rng(2),
        0.1,
        np.linspace(0.05, 0.95, 91),
    )
    coverage = []
    for _ in range(20):
        p, complete = world.draw(rng, 500)
        controller = control.BinaryClassificationController(
            lambda rows: np.column_stack([1 - rows, rows]),
            "precision",
            1 - alpha,
            1 - DELTA,
            list_predict_params=grid,
        ).calibrate(p, complete)
        ours = np.array(
            [realized_risk(p, complete, one).risk_below(1 - DELTA) <= alpha for one in grid]
        )
        theirs = controller.p_values[:, 0] <= DELTA
        assert not (theirs & ~ours).any()
        assert (
            (ours & ~theirs).mean() < 0.2
        )  # MAPIE rounds n · risk up, past the count itself where a float is a hair above it
        thresholds = (
            choose_by_risk(p, complete, alpha=alpha, delta=DELTA).answer_at,
            controller.best_predict_param,
        )
        coverage.append([realized_risk(p, complete, one).coverage for one in thresholds])
    mine, mapies = np.mean(np.array(coverage, float), axis=0)
    assert mine > mapies


# ---- deciding


def test_answer_when_sure_expand_when_it_pays_else_abstain():
    policy = Policy(answer_at=0.8, expand_at=0.5)
    assert decide([0.9, 0.8, 0.4, 0.4, 0.6], [1, 1, 0.7, 0.5, 0.6], policy, rounds_left=2) == [
        ANSWER,
        ANSWER,
        EXPAND,
        ABSTAIN,  # just not worth it
        ABSTAIN,  # nothing to gain
    ]


def test_without_rounds_or_an_estimate_nothing_is_expanded():
    policy = Policy(answer_at=0.8, expand_at=0.5)
    assert decide([0.4, 0.9], [0.7, 1.0], policy, rounds_left=0) == [ABSTAIN, ANSWER]
    assert decide([0.4, 0.4], [0.7, 0.7], policy, rounds_left=[0, 1]) == [ABSTAIN, EXPAND]
    assert decide([0.4, 0.9], None, policy, rounds_left=3) == [ABSTAIN, ANSWER]
    assert decide([], [], policy, rounds_left=1) == []


def test_an_expansion_is_priced_by_what_the_gate_would_make_of_it():
    # At 0.8 the gate answers 3 of 4 complete and 1 of 4 incomplete questions.
    p, complete = [0.9, 0.9, 0.8, 0.1, 0.8, 0.1, 0.1, 0.1], [True] * 4 + [False] * 4
    costs = Costs(wrong=1, expand=0.05, abstain=0.2)
    policy = choose_by_cost(p, complete, costs=costs)
    assert policy.answer_at == pytest.approx(0.8)

    def expanded(after: float) -> float:
        return costs.expand + after * (1 / 4 * 0.2) + (1 - after) * (1 / 4 * 1 + 3 / 4 * 0.2)

    expand_at = known(policy.expand_at)
    assert expanded(expand_at) == pytest.approx(
        costs.abstain
    )  # at the threshold both cost the same
    assert expanded(expand_at + 0.01) < costs.abstain


def test_an_expansion_dearer_than_an_abstention_is_never_chosen_and_a_free_one_always_if_it_helps():
    p, complete = [0.9, 0.2], [True, False]
    assert choose_by_f1(p, complete, costs=Costs(expand=0.4, abstain=0.3)).expand_at is None
    free = choose_by_f1(p, complete, costs=Costs(expand=0))
    assert decide([0.1, 0.1], [0.11, 0.1], free, rounds_left=1) == [EXPAND, ABSTAIN]


@pytest.mark.parametrize("rounds", [-1, 0.5, True, [1, 2], [[1], [1, 2]]])
def test_rounds_that_are_no_count_are_refused(rounds):
    with pytest.raises(InputError):
        decide([0.5], [0.9], Policy(0.8, 0.5), rounds_left=rounds)


@pytest.mark.parametrize(
    ("p", "complete"),
    [
        ([0.5], [0.5]),
        ([0.5], [math.nan]),
        ([0.5, 0.6], [True]),
        ([[0.5]], [True]),
        ([math.nan], [True]),
        ([0.5], ["yes"]),
    ],
)
def test_a_calibration_part_with_bad_values_is_refused(p, complete):
    for choose in (
        choose_by_f1,
        lambda p, c: choose_by_cost(p, c, costs=Costs()),
        lambda p, c: choose_by_risk(p, c, alpha=0.1),
    ):
        with pytest.raises(InputError):
            choose(p, complete)


@pytest.mark.parametrize(
    "costs",
    [{"wrong": 0}, {"expand": -1}, {"abstain": math.nan}, {"wrong": math.inf}, {"wrong": "1"}],
)
def test_costs_that_are_no_costs_are_refused(costs):
    with pytest.raises(InputError):
        Costs(**costs)


# ---- on disk


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer_at": 1.5}, "answer_at is 1.5"),
        ({"answer_at": "0.5"}, "answer_at is '0.5'"),
        ({"answer_at": True}, "answer_at is True"),
        ({"expand_at": math.nan}, "expand_at is nan"),
        ({"costs": None}, "costs is None, expected an object"),
        ({"costs": {"wrong": 1, "expand": 0}}, "'abstain' is missing"),
        ({"promise": {"alpha": 0, "delta": 0.1, "questions": 3}}, "alpha is 0"),
        ({"promise": {"alpha": 0.1, "delta": 0.1, "questions": -3}}, "questions is -3"),
        ({"chosen_by": 7}, "chosen_by is 7"),
        ({"anwser_at": 0.5}, "'anwser_at' is not known"),
    ],
)
def test_a_damaged_policy_is_refused_by_the_name_of_its_field(change, message):
    with pytest.raises(InputError, match=message):
        Policy.from_json({**Policy(0.5).as_json(), **change})


def test_a_promise_of_an_older_gate_is_read():
    old = {"alpha": 0.1, "delta": 0.1, "questions": 60}
    policy = Policy.from_json({**Policy(0.5).as_json(), "promise": old})
    assert policy.promise == Promise(0.1, 0.1, 60)


def test_a_policy_that_is_no_object_is_refused():
    with pytest.raises(InputError, match="expected an object"):
        Policy.from_json([1, 2])  # type: ignore[arg-type]


def test_an_action_that_is_not_the_usual_one_at_its_probability_says_why():
    p, after = np.array([0.06, 0.35, 0.35, 0.3]), np.array([0.4, 0.19, 0.37, 0.6])
    actions, usual = [EXPAND, ABSTAIN, ABSTAIN, EXPAND], [ABSTAIN, EXPAND, EXPAND, EXPAND]
    assert explain_actions(p, after, actions, usual) == [
        "another search is likely to find what is missing: 0.06 now, about 0.40 after it",
        "another search is not likely to help: 0.35 now, about 0.19 after it",
        "another search is not likely to help enough: 0.35 now, about 0.37 after it",
        None,
    ]
    assert explain_actions(p, None, actions, usual) == [None] * 4


# ---- how many labels a promise takes


def test_a_sure_gate_needs_few_labels_for_a_promise_and_a_blind_one_more_than_there_are():
    rng = np.random.default_rng(0)
    p = rng.random(100)
    sure = labels_for_promise(p, p > 0.5, alpha=0.1)
    assert 22 <= known(sure) <= 120
    strict = labels_for_promise(p, p > 0.5, alpha=0.05)
    assert known(strict) > known(sure)
    assert labels_for_promise(p, rng.random(100) < 0.5, alpha=0.05) is None
    assert labels_for_promise([], [], alpha=0.1) is None
