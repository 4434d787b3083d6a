from __future__ import annotations

import numpy as np
import pytest

from suffice.gate.features import (
    ABSENT_COLUMNS,
    BEFORE_GUESSES,
    BEHIND_GUESSES,
    COUNTING,
    FEATURES,
    HIT_COLUMNS,
    QUESTION_COLUMNS,
    READING,
    RELATIVE_HIT_COLUMNS,
    SET_COLUMNS,
    STEADY_DIRECTIONS,
    Feature,
)
from suffice.gate.model import _gate_features
from suffice.numeric import log_odds

FAMILIES = set(
    (
        "query scores attention metadata graph overlap coverage links agreement hops path absent"
    ).split()
)
COLUMNS = {
    "hit": HIT_COLUMNS,
    "absent": ABSENT_COLUMNS,
    "set": SET_COLUMNS,
    "question": QUESTION_COLUMNS,
}


@pytest.mark.parametrize("level", COLUMNS)
def test_every_column_stands_in_the_table_in_its_order(level: str) -> None:
    assert tuple(feature.name for feature in FEATURES if feature.level == level) == COLUMNS[level]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: f"{feature.level}.{feature.name}")
def test_every_feature_has_a_known_family_and_says_what_it_means(feature: Feature) -> None:
    assert feature.family in FAMILIES
    assert feature.meaning[0].isupper()
    assert feature.meaning.endswith(".")


def test_what_is_used_by_name_stands_in_the_table() -> None:
    assert set(RELATIVE_HIT_COLUMNS) <= set(HIT_COLUMNS)
    assert set(STEADY_DIRECTIONS) <= {
        feature.name for feature in (*FEATURES, *READING, *COUNTING) if feature.level == "gate"
    }


def described(
    p_held: list[float], *, need: float = 2.0, form: tuple[float, float] = (2.0, 2.0)
) -> dict[str, float]:
    question = np.zeros((1, len(QUESTION_COLUMNS)))
    question[0, -2:] = np.log1p(form)
    row = _gate_features(
        np.zeros((1, len(SET_COLUMNS))),
        np.array([p_held]).reshape(1, -1),
        np.array([[0.5, 0.25, 0.0, 0.0]]),
        np.array([[need, 1.0, 0.5]]),
        question,
    )[0]
    before, behind = ([one.name for one in part] for part in (BEFORE_GUESSES, BEHIND_GUESSES))
    names = [*before, "guess_hops", "guess_held", "guess_complete", *behind]
    return dict(zip(names, row.tolist(), strict=True))


def test_the_parts_become_one_row_with_the_columns_of_the_table() -> None:
    row = described([0.2, 0.9, 0.6])
    assert row["held"] == pytest.approx(1.7)
    assert row["short"] == pytest.approx(-0.3)
    assert row["pair"] == pytest.approx(0.54)
    assert row["triple"] == pytest.approx(0.108)
    assert row["sure"] == 2
    assert row["absent"] == pytest.approx(0.75)
    assert row["p1"] > row["p2"] > row["p3"] > row["p4"] == row["p5"]


def test_the_weakest_needed_hit_depends_on_how_many_are_needed_and_goes_over_smoothly() -> None:
    two, between, three = (
        described([0.9, 0.6, 0.2], need=need)["weakest"] for need in (2.0, 2.5, 3.0)
    )
    assert two == pytest.approx(log_odds(0.6), abs=1e-5)
    assert three == pytest.approx(log_odds(0.2), abs=1e-5)
    assert between == pytest.approx((two + three) / 2, abs=1e-5)


def test_the_form_of_the_question_says_which_hit_is_the_weakest_needed() -> None:
    row = described([0.9, 0.8, 0.6, 0.2], form=(2.0, 3.5))
    assert row["weakest_least"] == pytest.approx(row["p2"], abs=1e-5)
    assert row["weakest_likely"] == pytest.approx((row["p3"] + row["p4"]) / 2, abs=1e-5)
    assert row["short_least"] == pytest.approx(0.5)
    assert row["short_likely"] == pytest.approx(-1.0)
    assert described([0.9] * 6)["short_least"] == 1  # more than enough is enough
