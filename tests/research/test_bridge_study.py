"""The study of the bridge retriever, and why its questions fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.research.test_bridge_training import SMALL, village

from suffice_research.study import Study
from suffice_research.training import bridge as training_bridge
from suffice_research.training import bridge_training
from suffice_research.training.bridge_study import bridge_study, failure_cause
from suffice_research.training.bridge_training import (
    BridgeQuestions,
    candidate_states,
    fitted_path_states,
)


@pytest.fixture(scope="module")
def training() -> BridgeQuestions:
    return village()


def test_causes_are_told_apart(training: BridgeQuestions) -> None:
    pool, gold = training.pools[0], training.questions[0].gold.doc_ids
    pool.release()
    assert failure_cause(pool, gold | {"nowhere"}, ["film0"], 5) == "not a candidate"
    assert failure_cause(pool, frozenset("abc"), [], 2) == "more gold than places"
    pool.hold(pool.at["film0"])
    assert failure_cause(pool, gold, ["film0"], 5) == "link not taken"
    pool.release()


def test_a_study_says_what_was_measured(
    training: BridgeQuestions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_training, "TREES", SMALL)
    messages: list[str] = []
    states = candidate_states(training, seed=1)
    both = [(states, fitted_path_states(training, states, seed=1))]
    made = bridge_study([training], both, data={"file": "hash"}, seed=1, say=messages.append)
    loaded = Study.load(made.save(tmp_path / "study.json"))
    (row,) = loaded.table("Bridge").rows
    assert row[:2] == ("village", len(training.questions))
    assert messages


def test_a_wrong_data_set_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert training_bridge.main(["--data", str(tmp_path), "--only", "nothing"]) == 2
    assert "hotpotqa" in capsys.readouterr().err
