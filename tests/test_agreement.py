"""Agreement between retrievers: which hits others found too, and what they alone found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from suffice.errors import InputError
from suffice.gate.features import AGREEMENT, FEATURES
from suffice.gate.hits import NormalizedHits, normalize_hits, normalize_other_runs
from suffice.gate.similarity import agreement_features

QUESTION = "Who taught the teacher of Ada?"


def run(*names: str) -> list[tuple[str, str]]:
    return [(name, f"text of {name}") for name in names]


def compared(
    own: Sequence[object], *others: Sequence[object]
) -> tuple[dict[str, float], np.ndarray]:
    taken = normalize_hits(QUESTION, own)
    whole, (hits,) = agreement_features([taken], [normalize_other_runs(taken, others)])
    return dict(zip((one.name for one in AGREEMENT), whole[0].tolist(), strict=True)), hits


def test_a_hit_is_known_by_who_else_found_it_and_how_high() -> None:
    whole, hits = compared(
        run("a", "b", "c", "d"), run("b", "a", "x", "y"), run("b", "z", "d", "a")
    )
    np.testing.assert_allclose(hits[:, 0], [1, 1, 0, 0.5])
    np.testing.assert_allclose(hits[:, 1], [1 / 2, 1, 0, 1 / 3])
    assert whole["shared"] == pytest.approx(5 / 8)
    assert whole["shared_by_all"] == pytest.approx(2 / 4)
    assert whole["same_first"] == 0
    assert whole["same_order"] == pytest.approx((0 + 1 / 3) / 2)
    assert whole["only_there"] == pytest.approx((2 + 1) / 2 / 4)


def test_the_same_run_again_agrees_in_everything() -> None:
    whole, hits = compared(run("a", "b", "c"), run("a", "b", "c"))
    assert whole == {
        "shared": 1,
        "shared_by_all": 1,
        "same_first": 1,
        "same_order": 1,
        "only_there": 0,
    }
    np.testing.assert_allclose(hits, [[1.0, 1.0], [1.0, 1 / 2], [1.0, 1 / 3]])


def test_without_another_run_nothing_is_known() -> None:
    whole, hits = compared(run("a", "b"))
    assert set(whole.values()) == {-1}
    assert hits.tolist() == [[-1, -1], [-1, -1]]


def test_no_hits_and_an_empty_run_are_ordinary() -> None:
    assert compared([], run("a"))[1].shape == (0, 2)
    whole, hits = compared(run("a"), [])
    assert (whole["shared"], whole["only_there"]) == (0, 0)
    assert hits.tolist() == [[0, 0]]


def test_only_as_deep_as_the_list_that_is_judged() -> None:
    assert compared(run("a", "b"), run("x", "y", "a", "b"))[0]["shared"] == 0


def test_hits_without_ids_are_known_by_their_texts() -> None:
    _, hits = compared(["text of a", "text of b"], ["another text", "text of a"])
    np.testing.assert_allclose(hits, [[1.0, 1 / 2], [0.0, 0.0]])
    _, hits = compared(["text of a", "text of b"], run("b", "a"))
    np.testing.assert_allclose(hits, [[1.0, 1 / 2], [1.0, 1.0]])


def test_what_is_no_list_of_runs_is_refused() -> None:
    taken: NormalizedHits = normalize_hits(QUESTION, run("a"))
    with pytest.raises(InputError, match="expected a list of runs"):
        normalize_other_runs(taken, "a")
    with pytest.raises(InputError, match="expected a list of hits"):
        normalize_other_runs(taken, [{"id": "a"}])


def test_every_column_is_described() -> None:
    assert len(AGREEMENT) == 5
    assert sum(one.family == "agreement" and one.level == "beside" for one in FEATURES) == 2
