"""Intervals and paired comparisons: what they cover, that they repeat, and that they do not claim
what chance can do.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.values import known

from suffice.errors import InputError
from suffice.evaluation import significance as comparing
from suffice.evaluation.metrics import PROBABILITY, Predictions, Rankings, score
from suffice.evaluation.significance import (
    Interval,
    compare,
    interval,
    mean_interval,
    paired_difference,
)


def coins(n: int, share: float, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).random(n) < share).astype(float)


def width(found: Interval) -> float:
    return known(found.high) - known(found.low)


def test_the_interval_of_a_share_is_about_as_wide_as_the_textbook_says():
    values = coins(400, 0.3)
    found = mean_interval(values, resamples=4000)
    half = 1.96 * np.sqrt(values.mean() * (1 - values.mean()) / 400)
    assert found.value == values.mean()
    assert found.low == pytest.approx(values.mean() - half, abs=0.01)
    assert found.high == pytest.approx(values.mean() + half, abs=0.01)


def test_drawing_in_blocks_gives_the_same_interval_as_drawing_at_once(monkeypatch):
    values = coins(50, 0.4)
    at_once = mean_interval(values)
    monkeypatch.setattr(comparing, "_CELLS", 333)
    assert mean_interval(values) == at_once


def test_rows_of_one_question_are_drawn_together_so_copies_do_not_make_a_figure_surer():
    values, p = coins(200, 0.4), np.random.default_rng(1).random(200)
    once = interval(Predictions(values, p), "brier")
    copied = Predictions(np.tile(values, 4), np.tile(p, 4))
    together = interval(copied, "brier", groups=np.tile(np.arange(200), 4))
    assert (together.low, together.high) == pytest.approx((once.low, once.high))
    alone = interval(copied, "brier")
    assert width(alone) < 0.6 * width(once)
    with pytest.raises(InputError, match="one for each of 800 rows"):
        interval(copied, "brier", groups=[1, 2])


def test_null_questions_do_not_take_part_and_no_questions_have_no_interval():
    judged = Rankings([[1], [0], [0]], [1, 1, 0])
    assert interval(judged, "recall@1").value == 0.5
    nothing = interval(judged.rows(np.array([2])), "recall@1")
    assert (nothing.value, nothing.low, nothing.high) == (None, None, None)
    assert interval(Predictions([], []), "brier").value is None


def test_a_resample_of_one_class_only_is_left_out_of_the_interval():
    found = interval(Predictions([1, 0, 0], [0.9, 0.2, 0.1]), "auroc")
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("metric", [metric.name for metric in PROBABILITY])
def test_a_resampled_figure_is_the_figure_of_the_questions_that_were_drawn(metric):
    random = np.random.default_rng(5)
    labels, p = coins(60, 0.4, 1), random.integers(0, 12, 60) / 11  # with ties
    counts = random.multinomial(60, np.full(60, 1 / 60), size=20).astype(float)
    table = {one.name: one for one in PROBABILITY}
    weighted = table[metric].values(Predictions(labels, p), counts)
    for row, value in zip(counts.astype(int), weighted):
        again = score(Predictions(np.repeat(labels, row), np.repeat(p, row)), metric)
        assert value == pytest.approx(again)


def test_a_system_that_is_always_a_little_better_is_surely_better_though_the_intervals_overlap():
    easy = np.random.default_rng(0).random(300)
    assert known(mean_interval(easy + 0.01).low) < known(mean_interval(easy).high)
    found = paired_difference(easy + 0.01, easy)
    assert found.value == pytest.approx(0.01)
    assert known(found.p) < 0.01


def test_a_system_against_itself_differs_by_nothing_and_p_is_one():
    values = coins(100, 0.5)
    found = paired_difference(values, values)
    assert (found.value, found.low, found.high, found.p) == (0, 0, 0, 1)


def test_two_systems_of_equal_skill_are_rarely_called_different():
    called = sum(
        known(paired_difference(coins(200, 0.5, 2 * at), coins(200, 0.5, 2 * at + 1)).p) < 0.05
        for at in range(100)
    )
    assert called <= 12


def test_models_are_compared_on_the_same_questions_too():
    labels = coins(300, 0.5)
    sharp = Predictions(
        labels, np.clip(labels * 0.5 + np.random.default_rng(1).random(300) * 0.5, 0, 1)
    )
    dull = Predictions(labels, np.random.default_rng(2).random(300))
    found = compare(sharp, dull, "auroc")
    assert known(found.low) > 0.3
    assert known(found.p) < 0.01


@pytest.mark.parametrize(
    "options", [{"resamples": 0}, {"level": 0}, {"level": 1}, {"level": float("nan")}]
)
def test_impossible_settings_are_input_errors(options):
    with pytest.raises(InputError):
        mean_interval([1.0], **options)


def test_different_questions_and_wrong_shapes_are_input_errors():
    with pytest.raises(InputError, match="same questions"):
        paired_difference([1.0], [1.0, 0.0])
    with pytest.raises(InputError, match="same questions"):
        compare(Rankings([[1]], [1]), Rankings([[1], [0]], [1, 1]), "recall@1")
    for wrong in ([[1.0]], [np.inf], ["a"]):
        with pytest.raises(InputError):
            mean_interval(wrong)
