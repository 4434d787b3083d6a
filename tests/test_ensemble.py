"""The models of the whole: the steady one keeps its directions, hears every data set alike, and
counts where several teach.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from suffice.gate.features import HIT_COLUMNS, STEADY_DIRECTIONS
from suffice.gate.model import READ_STEADY_SHARE, STEADY_SHARE, Ensemble, relative_hit_features

NAMES = ["weakest_least", "dangling", "rarity"]


def two_sets(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """In both sets a surer weakest hit speaks for complete. In one most are complete, and its words
    are rarer; in that one,
    by some accident, dangling sources go with complete sets."""
    rng = np.random.default_rng(seed)
    sets = np.repeat(["easy", "hard"], n // 2)
    easy = sets == "easy"
    complete = rng.random(n) < np.where(easy, 0.9, 0.2)
    weakest = complete + rng.normal(0, 0.7, n)
    dangling = np.where(easy, complete, rng.random(n) < 0.5) + rng.normal(0, 0.1, n)
    rarity = easy + rng.normal(0, 0.1, n)
    return np.column_stack([weakest, dangling, rarity]).astype(np.float32), complete, sets


def test_the_steady_model_turns_no_direction_and_sees_nothing_of_which_set_it_is() -> None:
    rows, complete, sets = two_sets()
    steady = Ensemble.fit(rows, complete, NAMES, data_sets=sets).steady
    assert STEADY_DIRECTIONS["dangling"] == -1
    assert steady.weights[0] > 0
    assert steady.weights[1:].tolist() == [0, 0]
    assert (
        Ensemble.fit(rows, complete, NAMES, data_sets=sets).linear.weights[2] > 0
    )  # the free one learns which set is easy


def test_a_set_with_many_questions_counts_as_much_as_one_with_few() -> None:
    rows, complete, sets = two_sets()
    easy = np.flatnonzero(sets == "easy")
    more = np.concatenate([np.arange(len(rows)), *[easy] * 9])
    once = Ensemble.fit(rows, complete, NAMES, data_sets=sets).steady
    often = Ensemble.fit(rows[more], complete[more], NAMES, data_sets=sets[more]).steady
    scale = rows[:, 0].std() / rows[more, 0].std()  # the force holds standardised weights back
    assert often.weights[0] == pytest.approx(once.weights[0] * scale, rel=0.1)


def test_the_steady_model_counts_the_more_the_more_sets_teach() -> None:
    rows, complete, sets = two_sets()
    assert Ensemble.fit(rows, complete, NAMES).share == 0
    assert Ensemble.fit(rows, complete, NAMES, data_sets=sets).share == pytest.approx(
        STEADY_SHARE / 2
    )
    read = (
        *NAMES[:-1],
        "read_complete",
    )  # a reader's columns transfer: the free models may say more
    assert Ensemble.fit(rows, complete, read, data_sets=sets).share == pytest.approx(
        READ_STEADY_SHARE / 2
    )
    alone = np.where(
        sets == "hard", sets, complete.astype(str)
    )  # two of three sets have one label only
    assert Ensemble.fit(rows, complete, NAMES, data_sets=alone).share == 0
    assert Ensemble.fit(rows, complete, NAMES, data_sets=complete.astype(str)).share == 0


def test_what_is_saved_says_the_same(tmp_path: Path) -> None:
    rows, complete, sets = two_sets()
    whole = Ensemble.fit(rows, complete, NAMES, data_sets=sets)
    loaded = Ensemble.load(tmp_path, whole.save(tmp_path))
    assert loaded.log_odds(rows) == pytest.approx(whole.log_odds(rows), abs=1e-4)
    assert loaded.columns == {3}
    assert loaded.share == whole.share
    assert np.isfinite(whole.log_odds(rows * 1e6)).all()


def test_a_hit_is_seen_among_the_others() -> None:
    hits = np.zeros((3, len(HIT_COLUMNS)), np.float32)
    hits[:, HIT_COLUMNS.index("covered")] = [0.5, 0.75, 0.25]
    lead, place = np.split(relative_hit_features(hits, [3]), 2, axis=1)
    assert lead[:, 0].tolist() == [-0.25, 0.25, -0.5]
    assert place[:, 0].tolist() == [0.5, 0.0, 1.0]
    assert not lead[:, 1].any()  # all alike: nobody leads
    assert not place[:, 1].any()
    assert not relative_hit_features(hits[:1], [1]).any()
    assert (
        relative_hit_features(hits[:0], [0]).shape
        == relative_hit_features(hits[:0], []).shape
        == (0, lead.shape[1] * 2)
    )
    assert (
        relative_hit_features(hits[[0, 1, 2, 0, 0, 1, 2]], [3, 1, 0, 3])[
            [0, 1, 2, 4, 5, 6]
        ].tolist()
        == relative_hit_features(hits, [3]).tolist() * 2
    )  # each by itself
