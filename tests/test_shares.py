"""Another share of complete sets, without labels: followed where it explains what is seen, left alone where it does not."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.errors import DataError, InputError
from suffice.gate.prior_shift import Shares


def world(share: float, questions: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds and truth where complete sets have log-odds around 1.5, the others around -1.5."""
    rng = np.random.default_rng(seed)
    complete = rng.random(questions) < share
    return rng.normal(np.where(complete, 1.5, -1.5), 1.2), complete


KNOWN = Shares.of(*world(0.3, 800, 1))


@pytest.mark.parametrize("share", [0.1, 0.6, 0.85])
def test_a_share_that_has_moved_is_found_and_approached_from_the_near_side(share: float) -> None:
    found = KNOWN.seen_in(world(share, 400, 2)[0])
    assert found.explains
    assert found.likeliest == pytest.approx(share, abs=0.07)
    now = found.nearest_to(KNOWN.share)
    assert abs(now - KNOWN.share) < abs(found.likeliest - KNOWN.share)
    assert abs(now - share) < abs(KNOWN.share - share)


def test_a_share_that_may_be_the_same_stays() -> None:
    found = KNOWN.seen_in(world(0.3, 200, 3)[0])
    assert found.nearest_to(KNOWN.share) == KNOWN.share


def test_other_questions_are_not_taken_for_another_share() -> None:
    """All log-odds in the middle: neither complete nor incomplete sets looked like that."""
    odds = np.random.default_rng(4).normal(0.5, 0.3, 300)
    assert not KNOWN.seen_in(odds).explains


def test_the_same_world_is_nearly_always_explained() -> None:
    explained = [KNOWN.seen_in(world(0.5, 150, 100 + seed)[0]).explains for seed in range(20)]
    assert sum(explained) >= 19


def test_few_questions_move_it_less_than_many() -> None:
    few, many = (
        KNOWN.seen_in(world(0.6, questions, 5)[0]).nearest_to(0.3) for questions in (30, 600)
    )
    assert 0.3 <= few < many


def test_shares_are_kept_as_json_and_damage_is_told() -> None:
    assert Shares.from_json(KNOWN.as_json()) == KNOWN
    with pytest.raises(DataError, match="shares cannot be read"):
        Shares.from_json({**KNOWN.as_json(), "complete": [1, 2]})
    with pytest.raises(InputError, match="must rise"):
        Shares((1.0, 0.0), (1, 1, 1), (1, 1, 1))


def test_all_at_one_value_is_one_bin() -> None:
    same = Shares.of(np.zeros(50), np.arange(50) % 2 == 0)
    assert same.seen_in(np.zeros(40)).explains
