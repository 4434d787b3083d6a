"""The ranker: shipped, saved and loaded, refused where it would look at other things."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from suffice.errors import DataError, NotReadyError
from suffice.retrieval.bridge import SHIPPED, Ranker, TreeRanker, WeightedRanker
from suffice.retrieval.candidate_pool import COLUMN, FEATURES


def rows(**values: float) -> np.ndarray:
    made = np.zeros((1, len(FEATURES)), np.float32)
    for name, value in values.items():
        made[0, COLUMN[name]] = value
    return made


@pytest.fixture(scope="module")
def shipped() -> TreeRanker:
    return TreeRanker.load()


def test_both_are_rankers(shipped: TreeRanker) -> None:
    assert isinstance(shipped, Ranker)
    assert isinstance(WeightedRanker(), Ranker)


def test_a_document_that_is_named_and_covers_the_question_comes_before_one_that_does_neither(
    shipped: TreeRanker,
) -> None:
    good, bad = (
        rows(bm25=1, dense=1, named=1, named_best=1, covered=0.8, adds=0.8, adds_best=1),
        rows(bm25=0.1, dense=0.4),
    )
    for ranker in (shipped, WeightedRanker()):
        assert ranker.p(good)[0] > ranker.p(bad)[0]


@pytest.mark.parametrize("feature", [one.name for one in FEATURES if one.direction > 0])
def test_more_of_what_can_only_help_never_hurts(shipped: TreeRanker, feature: str) -> None:
    rng = np.random.default_rng(1)
    low = rng.random((200, len(FEATURES)), dtype=np.float32)
    high = low.copy()
    high[:, COLUMN[feature]] += 0.3
    assert (shipped.p(high) >= shipped.p(low) - 1e-6).all()


def test_probabilities_are_the_same_in_any_batch(shipped: TreeRanker) -> None:
    many = np.random.default_rng(2).random((700, len(FEATURES)), dtype=np.float32)
    whole = shipped.p(many)
    assert whole.min() >= 0
    assert whole.max() <= 1
    np.testing.assert_allclose(whole[300:310], shipped.p(many[300:310]), atol=1e-7)
    assert shipped.p(many[:0]).shape == (0,)


def test_a_saved_ranker_comes_back(shipped: TreeRanker, tmp_path: Path) -> None:
    shipped.save(tmp_path / "ranker", card={"data": "mine"}, seed=1)
    assert TreeRanker.load(tmp_path / "ranker").content == shipped.content


def test_a_ranker_of_other_features_is_not_used(shipped: TreeRanker, tmp_path: Path) -> None:
    shipped.save(tmp_path / "ranker")
    manifest = json.loads((tmp_path / "ranker" / "manifest.json").read_text())
    manifest["settings"]["schema"] = "another"
    (tmp_path / "ranker" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(NotReadyError, match="other features"):
        TreeRanker.load(tmp_path / "ranker")


def test_damage_is_told(shipped: TreeRanker, tmp_path: Path) -> None:
    shipped.save(tmp_path / "ranker")
    (tmp_path / "ranker" / "ranker.onnx").write_bytes(b"no model")
    with pytest.raises(DataError):
        TreeRanker.load(tmp_path / "ranker")
    with pytest.raises(DataError):
        TreeRanker(b"no model")
    with pytest.raises(NotReadyError) as told:
        TreeRanker.load(tmp_path / "nowhere")
    assert "suffice fit --bridge" in str(told.value.hint)


def test_the_shipped_one_is_small() -> None:
    assert sum(one.stat().st_size for one in SHIPPED.iterdir()) < 2_000_000
