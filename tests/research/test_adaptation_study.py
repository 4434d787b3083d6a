"""What a few labels bring, measured on lists whose answer is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from suffice.evaluation.gate_evaluation import is_seen, with_seen_questions
from suffice.gate import training
from suffice.gate.gate import Gate
from suffice.gate.training import LabelledQuestion, TrainingSet, build_training_set
from suffice.numeric import sigmoid
from suffice.testing import sample_questions
from suffice_research.study import Study, table_cell
from suffice_research.training import adaptation_study as study
from suffice_research.training.adaptation_study import KEPT, UNSEEN, DomainResult, measure


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate.load(preset="fast")


@pytest.fixture(scope="module")
def lists(gate: Gate) -> TrainingSet:
    examples = []
    for one in sample_questions(90):
        complete = {hit["doc_id"] for hit in one.hits} >= set(one.needed or ())
        examples.append(LabelledQuestion(one.question, one.hits, complete=complete))
    return build_training_set(examples, gate.words, gate.readers, k=10, min_examples=1)


def test_labelled_lists_are_never_judged(
    gate: Gate, lists: TrainingSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_fit_local_model", lambda *_: None)
    monkeypatch.setattr(training, "PENALTIES", (300.0,))
    found = measure(gate, "village", KEPT, lists, counts=(10, 30, 80), draws=2)
    assert list(found.p) == [10, 30]  # eighty leave too few to judge
    for count, p in found.p.items():
        judged = ~np.isnan(p)
        assert p.shape == (2, 90)
        assert (judged.sum(axis=1) <= 90 - count).all()
        assert (judged[0] != judged[1]).any()
        for row in judged:
            words = {lists.groups[at] for at in np.flatnonzero(row).tolist()}
            assert words.isdisjoint(lists.groups[at] for at in np.flatnonzero(~row).tolist())
    assert found.before.shape == found.complete.shape == (90,)


def result(name: str, seen: str, *, better: float) -> DomainResult:
    """A domain whose gate is sharpened by the labels, or is made worse."""
    rng = np.random.default_rng(len(name))
    complete = (rng.random(80) < 0.5).astype(float)
    before = np.clip(0.5 + 0.2 * (complete - 0.5) + rng.normal(0, 0.15, 80), 0.01, 0.99)
    after = np.clip(before + better * (complete - 0.5), 0.01, 0.99)
    p = np.tile(after, (3, 1))
    p[:, :30] = np.nan
    answers, answered = (before > 0.5).astype(np.float64), (p > 0.5).astype(np.float64)
    best = np.where(complete, after, before)
    return DomainResult(name, seen, complete, before, answers, {30: p}, {30: answered}, best)


def test_a_study_says_what_is_reached_and_which_domain_is_worse(tmp_path: Path) -> None:
    found = [result("good", UNSEEN, better=0.5), result("spoilt", KEPT, better=-0.5)]
    made = study.adaptation_study(found, settings={"draws": 3}, seed=1, seconds=0.0)
    said = "\n".join(made.summary)
    assert "30 labels, unseen domains: AUROC +" in said
    assert "worse than unadapted beyond noise, in AUROC or Brier score: spoilt" in said
    assert "judged lists themselves, unseen domains: AUROC +" in said
    assert "Debiased" in said
    assert float(table_cell(made.table("Oracle"), "good", "gain")) > 0  # type: ignore[arg-type]
    assert [row[1] for row in made.table("Labels").rows] == [UNSEEN, KEPT, "all"]
    assert [line.name for line in made.figures[0].lines] == ["good"]  # type: ignore[attr-defined]
    again = Study.load(made.save(tmp_path / "study.json"))
    assert again.table("ECE").rows[0][0] == "good"


def test_how_far_gates_are_off_is_found_from_labels_of_many_sets() -> None:
    rng = np.random.default_rng(0)
    odds, complete = [], []
    for _ in range(12):
        offset, slope = rng.normal(0, 1), rng.normal(1, 0.3)
        odds.append(rng.normal(size=60) * 2)
        complete.append(rng.random(60) < sigmoid(offset + slope * odds[-1]))
    variances = study.level_variances(odds, complete)
    assert variances == pytest.approx((1, 0.09), rel=0.9)


def test_questions_that_a_gate_knows_are_named(gate: Gate) -> None:
    knows = with_seen_questions(gate, ["Who taught Ada?"])
    assert is_seen(knows, ["Who taught Ada?", "Who taught Ben?"]) == [True, False]
