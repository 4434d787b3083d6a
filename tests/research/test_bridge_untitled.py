"""The ranker for texts without titles, and what its study says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.research.test_bridge_training import SMALL, village

from suffice.retrieval.bridge import TreeRanker
from suffice.retrieval.candidate_pool import FEATURES, TITLED_FEATURES
from suffice_research.study import Study
from suffice_research.training import bridge_training, bridge_untitled
from suffice_research.training.bridge_training import candidate_states, fit_ranker


def test_a_study_says_what_was_measured_and_the_ranker_knows_all_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_training, "TREES", SMALL)
    training = village(10, titled=False)
    states = candidate_states(training)
    ranker = fit_ranker([states])
    assert ranker.columns == len(FEATURES)
    ranker.save(tmp_path / "ranker")
    assert TreeRanker.load(tmp_path / "ranker").columns == len(FEATURES)
    learned, judged = bridge_untitled.split(training, 1, 6)
    assert judged.questions == training.questions[1:7]
    assert judged.pools == training.pools[1:7]
    assert learned.questions == (training.questions[0], *training.questions[7:])
    messages: list[str] = []
    card = {"data": {"file": "hash"}, "trees": SMALL, "questions": {"village": 4}}
    made = bridge_untitled.untitled_study(
        ranker, [judged], judged, card=card, seed=1, say=messages.append
    )
    loaded = Study.load(made.save(tmp_path / "study.json"))
    (row,) = loaded.table("No titles").rows
    assert row[:2] == ("village", 6)
    everyday = [one[:2] for one in loaded.table("Everyday").rows]
    assert everyday == [("all", 6), ("several documents", 6)]
    assert messages


def test_a_ranker_of_titled_states_has_the_features_that_are_known_there() -> None:
    ranker = fit_ranker([candidate_states(village(4))], trees=SMALL)
    assert ranker.columns == len(TITLED_FEATURES)
