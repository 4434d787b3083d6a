"""Calibration: probabilities mean what they say, rise with the score, survive JSON and odd inputs."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.errors import InputError
from suffice.gate.calibration import Platt, VennAbers, fit_interval
from suffice.storage.fields import dataclass_from_json

KINDS: list[type[Platt] | type[VennAbers]] = [Platt, VennAbers]


def drawn(
    n: int, seed: int = 0, slope: float = 1.0, offset: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=n) * 2
    return odds, rng.random(n) < 1 / (1 + np.exp(-(slope * odds + offset)))


def one_p(fitted: Platt | VennAbers, scores: object) -> np.ndarray:
    if isinstance(fitted, Platt):
        return fitted.apply(scores)  # type: ignore[arg-type]
    low, high = fitted.apply(scores)  # type: ignore[arg-type]
    return high / (1 - low + high)  # the least log loss, whichever is right


def test_scores_the_wrong_way_round_are_not_turned_round() -> None:
    scores, complete = drawn(300)
    p = Platt.fit(-scores, complete).apply([-5.0, 0.0, 5.0])
    assert p == pytest.approx(complete.mean(), abs=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_overconfident_odds_are_put_right(kind: type[Platt]) -> None:
    scores, complete = drawn(4_000, slope=0.4)
    fresh, truth = drawn(4_000, seed=1, slope=0.4)
    p = one_p(kind.fit(scores, complete), fresh)
    raw = 1 / (1 + np.exp(-fresh))
    assert np.mean((p - truth) ** 2) < np.mean((raw - truth) ** 2) - 0.01
    for low in np.arange(0.1, 0.9, 0.2):
        inside = (p >= low) & (p < low + 0.2)
        assert abs(p[inside].mean() - truth[inside].mean()) < 0.06


@pytest.mark.parametrize("kind", KINDS)
@given(
    st.lists(
        st.tuples(st.floats(-50, 50).map(lambda x: round(x, 1)), st.booleans()),
        min_size=1,
        max_size=40,
    ),
    st.lists(st.floats(-80, 80), min_size=2, max_size=10),
)
@settings(max_examples=60, deadline=None)
def test_p_never_falls_when_the_score_rises(
    kind: type[Platt], cases: list[tuple[float, bool]], scores: list[float]
) -> None:
    fitted = kind.fit(*map(np.array, zip(*cases, strict=True)))
    p = one_p(fitted, sorted(scores))
    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p) >= -1e-9).all()
    again = dataclass_from_json(kind, json.loads(json.dumps(asdict(fitted))))
    assert again == fitted
    assert np.array_equal(one_p(again, scores), one_p(fitted, scores))


def test_one_class_one_case_and_constant_scores_give_no_certainty_where_there_is_none() -> None:
    assert 0.5 < Platt.fit([2.0], [True]).apply([2.0])[0] < 0.8
    assert 0.85 < Platt.fit(np.arange(20.0), np.ones(20, bool)).apply([3.0])[0] < 1
    assert Platt.fit(np.full(10, 3.0), [True] * 7 + [False] * 3).apply([3.0])[0] == pytest.approx(
        0.67, abs=0.05
    )
    low, high = VennAbers.fit([2.0], [True]).apply([0.0, 2.0, 9.0])
    assert low.tolist() == [0, 0.5, 0.5]
    assert high.tolist() == [1, 1, 1]
    low, high = VennAbers.fit(np.full(9, 1.0), [True] * 6 + [False] * 3).apply([1.0])
    assert (low[0], high[0]) == (pytest.approx(0.6), pytest.approx(0.7))


def test_the_venn_abers_interval_holds_the_truth_on_average() -> None:
    """Valid whatever the score: the mean of the labels lies between the mean of the lower and of
    the upper ends.
    """
    rng = np.random.default_rng(3)
    inside = 0
    for seed in range(60):
        scores, complete = drawn(150, seed=seed, slope=0.3, offset=0.5)
        fresh, truth = drawn(400, seed=1000 + seed, slope=0.3, offset=0.5)
        low, high = VennAbers.fit(np.tanh(scores), complete).apply(np.tanh(fresh))
        assert (low <= high).all()
        spread = 3 * np.sqrt(0.25 / 400 + 0.25 / 150)
        inside += low.mean() - spread <= truth.mean() <= high.mean() + spread
    assert inside >= 59
    few, many = (VennAbers.fit(*drawn(n)).apply(rng.normal(size=200)) for n in (50, 5_000))
    assert (few[1] - few[0]).mean() > 3 * (many[1] - many[0]).mean()


def test_damaged_json_and_bad_input_are_told() -> None:
    falling = {"scores": [1.0], "low": [0.5, 0.1], "high": [0.6, 0.7]}
    short = {"scores": [1.0], "low": [0.5], "high": [0.5]}
    for record in (falling, short, {"slope": 1.0, "offset": 0.0}):
        with pytest.raises(ValueError):
            dataclass_from_json(VennAbers, record)
    for line in ({"slope": "steep", "offset": 0}, {"slope": math.inf, "offset": 0}, {"slope": 1}):
        with pytest.raises(ValueError):
            dataclass_from_json(Platt, line)
    for kind in KINDS:
        with pytest.raises(InputError, match="one label for each"):
            kind.fit([], [])
        with pytest.raises(InputError, match="finite"):
            kind.fit([np.nan, 1.0], [True, False])
        with pytest.raises(InputError, match="true or false"):
            kind.fit([0.0, 1.0], [2, 0])


def test_an_interval_over_many_labels_is_kept_small_and_says_the_same() -> None:
    scores, complete = drawn(6_000, seed=5)
    fine, coarse = VennAbers.fit(scores, complete), fit_interval(scores, complete)
    assert len(coarse.scores) < len(fine.scores) / 4
    grid = np.linspace(-3, 3, 50)
    np.testing.assert_allclose(fine.apply(grid), coarse.apply(grid), atol=0.05)
