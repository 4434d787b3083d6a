from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from suffice.errors import InputError
from suffice.types import Document
from suffice_grade.difficulty import similarities, split_by_quantiles

NEAR, FAR, BEHIND = Document("near", "near"), Document("far", "far"), Document("behind", "behind")
COSINES = {"near": 0.8, "far": 0.2, "behind": -0.5}


class Compass:
    """Every question points north; a text's cosine with it is known."""

    name, dimension = "compass", 2

    def encode(self, texts: Sequence[str], *, query: bool = False) -> npt.NDArray[np.float32]:
        cosines = [1.0 if query else COSINES[text] for text in texts]
        return np.array([(one, np.sqrt(1 - one * one)) for one in cosines], np.float32).reshape(
            -1, 2
        )


def test_one_document_far_away_makes_a_question_hard() -> None:
    found = similarities(["easy?", "hard?"], [[NEAR], [NEAR, FAR]], Compass()).difficulty()
    assert found == pytest.approx([0.2, 0.8])


def test_the_mean_forgives_and_the_power_mean_half() -> None:
    closeness = similarities(["hard?"], [[NEAR, FAR]], Compass())
    assert closeness.difficulty("mean") == pytest.approx([0.5])
    by_hand = 1 - ((0.8**-2 + 0.2**-2) / 2) ** -0.5
    assert closeness.difficulty("power") == pytest.approx([by_hand])
    assert closeness.difficulty("mean")[0] < by_hand < closeness.difficulty("min")[0]


def test_a_document_that_points_away_is_as_far_as_can_be_for_the_power_mean_and_further_for_the_minimum() -> (
    None
):
    closeness = similarities(["hard?"], [[NEAR, BEHIND]], Compass())
    assert closeness.difficulty("min") == pytest.approx([1.5])
    assert 0.98 < closeness.difficulty("power")[0] < 1


def test_a_question_that_needs_nothing_has_no_difficulty_wherever_it_stands() -> None:
    found = similarities(
        ["null?", "easy?", "null?", "hard?", "null?"], [[], [NEAR], [], [FAR], []], Compass()
    ).difficulty()
    assert np.isnan(found[[0, 2, 4]]).all()
    assert found[[1, 3]] == pytest.approx([0.2, 0.8])
    assert np.isnan(similarities(["null?"], [[]], Compass()).difficulty()).all()
    assert len(similarities([], [], Compass()).difficulty()) == 0


def test_an_unknown_aggregation_and_uneven_columns_are_told() -> None:
    with pytest.raises(InputError, match="mediann"):
        similarities(["q"], [[NEAR]], Compass()).difficulty("mediann")
    with pytest.raises(InputError, match="2 questions"):
        similarities(["q", "r"], [[NEAR]], Compass())


def test_quartiles_are_equal_shares_and_leave_the_undefined_out() -> None:
    values = [0.1, 0.2, 0.3, 0.4, np.nan, 0.5, 0.6, 0.7, 0.8]
    found = split_by_quantiles(values)
    assert found.bins.tolist() == [0, 0, 1, 1, -1, 2, 2, 3, 3]
    assert len(found.edges) == 3


def test_equal_values_share_the_lowest_bin_and_no_values_have_no_edges() -> None:
    assert split_by_quantiles([0.5] * 6).bins.tolist() == [0] * 6
    assert split_by_quantiles([]).edges == ()
    assert split_by_quantiles([np.nan, np.nan]).bins.tolist() == [-1, -1]
