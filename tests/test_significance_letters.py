"""Significance letters: who shares one cannot be told apart, who shares none differs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.evaluation.metrics import Predictions, judge_rankings
from suffice.evaluation.significance import holm, letter_groups, significance_letters


def test_three_groups_that_overlap_get_letters_that_overlap():
    differ = {("ada", "cyd"), ("ada", "dov"), ("bea", "dov")}
    assert letter_groups(["ada", "bea", "cyd", "dov"], differ) == {
        "ada": "a",
        "bea": "ab",
        "cyd": "bc",
        "dov": "c",
    }


NAMES = ["a", "b", "c", "d", "e", "f"]


@given(st.sets(st.sampled_from(list(combinations(NAMES, 2)))))
def test_two_systems_share_a_letter_exactly_where_they_do_not_differ(differ):
    shown = letter_groups(NAMES, differ)
    for first, second in combinations(NAMES, 2):
        assert bool(set(shown[first]) & set(shown[second])) == ((first, second) not in differ)


def test_holm_multiplies_by_how_many_are_left_and_never_falls():
    corrected = holm({("a", "b"): 0.01, ("a", "c"): 0.04, ("b", "c"): 0.03})
    assert corrected == pytest.approx({("a", "b"): 0.03, ("b", "c"): 0.06, ("a", "c"): 0.06})
    assert holm({("a", "b"): 0.7, ("a", "c"): 0.9}) == {("a", "b"): 1.0, ("a", "c"): 1.0}


def test_a_clearly_better_retriever_gets_the_first_letter_to_itself():
    gold = [{f"g{at}"} for at in range(60)]
    good = judge_rankings([[f"g{at}"] for at in range(60)], gold, depth=2)
    half, other = (
        judge_rankings([[f"g{at}" if at % 2 == odd else "x"] for at in range(60)], gold, depth=2)
        for odd in (0, 1)
    )
    shown = significance_letters(
        {"half": half, "good": good, "other": other}, "recall@2", resamples=2000
    )
    assert shown == {"good": "a", "half": "b", "other": "b"}


def test_for_a_figure_that_should_be_small_the_smallest_comes_first():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 300).astype(float)
    sharp, coin = Predictions(labels, 0.1 + 0.8 * labels), Predictions(labels, np.full(300, 0.5))
    assert list(significance_letters({"coin": coin, "sharp": sharp}, "brier", resamples=500)) == [
        "sharp",
        "coin",
    ]
