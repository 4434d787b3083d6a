"""Correlations of difficulty with error, question by question and over cells."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr
from tests.values import known

from suffice_research.grade.correlations import AVERAGE, DIAGONAL, correlations
from tests.test_difficulty import ERRORS, HOPS, PLACE, WORLD


def test_correlations_question_by_question_are_pearsons() -> None:
    by = {one.where: one for one in correlations(WORLD, ERRORS)}
    for level in (2, 3, 4, 5):
        for name in ("min", "power", "mean"):
            here = level == HOPS
            expected = pearsonr(WORLD.difficulty[name][here], ERRORS[here])[0]
            assert by[f"{level} hops"].by[name].value == pytest.approx(expected)
    average = np.mean([known(by[f"{level} hops"].by["min"].value) for level in (2, 3, 4, 5)])
    assert by[AVERAGE].by["min"].value == pytest.approx(average)
    assert by[AVERAGE].min_above["mean"].value == pytest.approx(
        average - (by[AVERAGE].by["mean"].value or 0)
    )


def test_over_cells_four_points_make_one_correlation() -> None:
    by = {one.where: one for one in correlations(WORLD, ERRORS, cells=True)}
    here = HOPS == 2
    parts = np.array_split(np.argsort(PLACE[here]), 4)
    x, y = (
        [PLACE[here][part].mean() for part in parts],
        [ERRORS[here][part].mean() for part in parts],
    )
    assert by["2 hops"].by["min"].value == pytest.approx(pearsonr(x, y)[0])
    assert (by[DIAGONAL].by["min"].value or 0) > 0.8


def test_where_nearly_all_fail_there_is_no_correlation() -> None:
    doomed = np.where(HOPS == 5, 1.0, ERRORS)
    doomed[399] = 0.0
    by = {one.where: one for one in correlations(WORLD, doomed)}
    assert by["5 hops"].by["min"].value is None
    three = np.mean([known(by[f"{level} hops"].by["min"].value) for level in (2, 3, 4)])
    assert by[AVERAGE].by["min"].value == pytest.approx(three)


def test_the_same_seed_gives_the_same_figures() -> None:
    assert correlations(WORLD, ERRORS, seed=3) == correlations(WORLD, ERRORS, seed=3)
