"""A gate on another corpus: adapted to a few labels, and told whether the questions have drifted."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.small_gate import (
    auroc,
    collection,
    complete,
    fresh,
    labelled,
    log_loss,
    p_of,
    pairs,
    shown,
    small_gate,
)

from suffice.errors import InputError
from suffice.gate.gate import Gate
from suffice.gate.training import LabelledQuestion, fit_correction
from suffice.numeric import sigmoid

pytestmark = pytest.mark.usefixtures("few_trees")


@cache
def adapted() -> Gate:
    """Moved to lists of three hits instead of six: far fewer sets are complete, and the gate has
    never seen such.
    """
    return small_gate().adapt(labelled(3)[:200])


def test_few_labels_move_the_gate_to_another_place() -> None:
    examples = labelled(3)[400:]
    truth = np.array([complete(one) for one in examples])
    before, after = p_of(small_gate(), examples), p_of(adapted(), examples)
    assert log_loss(after, truth) < log_loss(before, truth)
    assert auroc(after, truth) > auroc(before, truth) - 0.005


def test_an_adapted_gate_is_a_gate(tmp_path: Path) -> None:
    adapted().save(tmp_path / "gate")
    again = Gate.load(tmp_path / "gate")
    np.testing.assert_allclose(p_of(again, fresh()[:30]), p_of(adapted(), fresh()[:30]), atol=1e-5)
    assert again.card["history"] == ["adapted to 200 questions"]
    assert again.model.local is not None
    assert again.check("Who taught Ada?", []).p_complete < 0.001
    example = labelled(3)[500]
    assert again.check(example.question, shown(example)).reasons
    assert not again.drift(pairs(labelled(3)[400:]), documents=collection()[0]).recalibrate


def test_a_gate_is_familiar_with_what_it_was_fitted_on_or_adapted_to() -> None:
    shorter = [replace(one, question=one.question[:20]) for one in labelled(3)]
    moved = small_gate().adapt(shorter[:200])

    def unfamiliar(gate: Gate, examples: list[LabelledQuestion]) -> float:
        verdicts = gate.check_batch(pairs(examples), documents=collection()[0], explain=False)
        return float(np.mean([bool(one.unfamiliar) for one in verdicts]))

    assert unfamiliar(small_gate(), fresh()) < 0.3
    assert unfamiliar(moved, shorter[400:]) < 0.3
    assert unfamiliar(small_gate(), shorter[400:]) > 0.9


def test_adapting_anew_forgets_the_place_before() -> None:
    twice, once = adapted().adapt(labelled(3)[:30]), small_gate().adapt(labelled(3)[:30])
    assert np.array_equal(p_of(twice, fresh()[:30]), p_of(once, fresh()[:30]))
    assert twice.model.local is None  # thirty labels, hardly one of them complete


def test_too_few_or_one_sided_labels_do_not_move_it() -> None:
    with pytest.raises(InputError, match="expected at least"):
        small_gate().adapt(labelled()[:5])
    with pytest.raises(InputError, match="is incomplete"):
        small_gate().adapt([one for one in labelled() if not complete(one)][:30])


def test_yes_and_no_teach_a_local_model_without_a_word_about_single_hits(tmp_path: Path) -> None:
    said = [
        replace(one, needed=None, complete=complete(one), hits_after=None) for one in labelled(3)
    ]
    moved = small_gate().adapt(said[:200])
    assert moved.model.local is not None
    examples = labelled(3)[400:]
    truth = np.array([complete(one) for one in examples])
    before, after = p_of(small_gate(), examples), p_of(moved, examples)
    assert log_loss(after, truth) < log_loss(before, truth)
    moved.save(tmp_path / "gate")
    again = Gate.load(tmp_path / "gate")
    np.testing.assert_allclose(p_of(again, examples[:20]), after[:20], atol=1e-5)


def test_a_correction_that_separates_the_labels_stays_finite() -> None:
    """Newton's steps once ran away here."""
    rng = np.random.default_rng(3)
    odds, features = rng.normal(size=60) * 8, rng.normal(size=(60, 12)) * 4
    found, held_out = fit_correction(
        odds, features, odds > 0, [str(at) for at in range(60)], tuple("abcdefghijkl"), seed=0
    )
    assert 0 <= found.slope < 20
    assert np.abs(held_out).max() < 200


@pytest.mark.parametrize("labels", [60, 1300])  # of many labels, the folds have as many
def test_a_correction_never_turns_the_gate_round(labels: int) -> None:
    rng = np.random.default_rng(4)
    odds = rng.normal(size=labels) * 2
    groups = [str(at) for at in range(labels)]
    found, held_out = fit_correction(odds, np.zeros((labels, 0)), odds < 0, groups, (), seed=0)
    assert found.slope >= 0
    assert np.isfinite(held_out).all()


def test_a_correction_from_noise_changes_little() -> None:
    rng = np.random.default_rng(0)
    odds = rng.normal(size=200) * 2
    truth = rng.random(200) < 1 / (1 + np.exp(-odds))
    found, _ = fit_correction(
        odds,
        rng.normal(size=(200, 3)),
        truth,
        [str(at) for at in range(200)],
        ("a", "b", "c"),
        seed=0,
    )
    assert found.slope == pytest.approx(1, abs=0.25)
    assert np.abs(found.weights).max() < 0.4


@pytest.mark.parametrize(("labels", "say"), [(25, 0.2), (100, 0.5), (400, 0.8)])
def test_the_more_labels_the_more_say_a_places_own_model_has(labels: int, say: float) -> None:
    """Where its rest is the truth, a correction has no reason to leave it."""
    rng = np.random.default_rng(2)
    odds, own = rng.normal(size=(2, labels)) * 2
    truth = rng.random(labels) < 1 / (1 + np.exp(-((1 - say) * odds + say * own)))
    found, _ = fit_correction(
        odds, own[:, None], truth, [str(at) for at in range(labels)], ("own",), seed=0
    )
    assert found.slope == pytest.approx(1 - say, abs=0.15)
    assert found.weights[0] == pytest.approx(say, abs=0.15)


def test_labels_that_the_gate_explains_leave_it_nearly_as_it_is() -> None:
    """And a feature that decides is found among many that do not."""
    rng = np.random.default_rng(5)
    odds, features = rng.normal(size=40) * 2, rng.normal(size=(40, 20))
    groups, names = [str(at) for at in range(40)], tuple(map(str, range(20)))
    chance = rng.random(40)
    right, _ = fit_correction(odds, features, chance < sigmoid(odds), groups, names, seed=0)
    assert np.abs(right.weights).max() < 0.05
    decided = chance < sigmoid(odds * 0.3 + 3 * features[:, 7])
    found, _ = fit_correction(odds, features, decided, groups, names, seed=0)
    assert int(np.argmax(found.weights)) == 7
    assert found.penalty <= 30


def test_a_correction_finds_a_wrong_offset_from_25_labels() -> None:
    rng = np.random.default_rng(1)
    odds = rng.normal(size=25) * 2
    truth = rng.random(25) < 1 / (1 + np.exp(-(odds - 2)))
    found, _ = fit_correction(
        odds, np.zeros((25, 1)), truth, [str(at) for at in range(25)], ("a",), seed=0
    )
    assert -4 < found.offset < -0.5


# ---- drift


def test_the_same_world_has_not_drifted() -> None:
    drift = small_gate().drift(pairs(fresh()), documents=collection()[0])
    assert not drift.recalibrate
    assert "No need" in str(drift)


def test_another_world_is_noticed() -> None:
    bare = [
        ("What is the capital of the country where the director of Film was born?", [f"Text {at}"])
        for at in range(60)
    ]
    drift = small_gate().drift(bare)
    assert drift.recalibrate
    assert "Recalibrate" in str(drift)
    assert drift.features[0].psi >= drift.features[-1].psi


def test_drift_needs_questions() -> None:
    with pytest.raises(InputError, match="3 recent questions"):
        small_gate().drift([("question", [])] * 3)
