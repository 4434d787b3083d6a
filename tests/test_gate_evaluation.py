"""Evaluating a gate: folds that split no question, saved gates, and gates fitted on other folds."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from suffice.datasets.gold import Gold
from suffice.errors import InputError
from suffice.evaluation.gate_evaluation import (
    GateSettings,
    PolicyChoice,
    evaluate_gate,
    gate_fitter,
    grouped_folds,
    run_gate,
    with_seen_questions,
)
from suffice.evaluation.gate_runs import gate_summary, gate_tables
from suffice.evaluation.searching import (
    RetrievedQuestion,
    retrieve_dataset,
    to_labelled_question,
)
from suffice.gate.gate import FAST, Gate
from suffice.types import Evidence, Question
from suffice_research.controlled import controlled_collection

pytestmark = pytest.mark.usefixtures("few_trees")


@cache
def small_gate() -> Gate:
    news = controlled_collection(documents=200)
    questions = retrieve_dataset(news, ["bm25"], [6], sample=100).questions("bm25", 6)
    fit = gate_fitter(PolicyChoice(), FAST, 42, k=6)
    return fit([to_labelled_question(one) for one in questions])


def test_folds_never_split_a_question_and_spread_the_complete() -> None:
    texts = [f"question {at % 80}" for at in range(100)]  # twenty of them come twice
    complete = [at % 80 < 20 for at in range(100)]
    folds = grouped_folds(texts, complete, 5, 42)
    for rest, held_out in folds:
        assert {texts[at] for at in rest}.isdisjoint(texts[at] for at in held_out)
        assert len({texts[at] for at in held_out if complete[at]}) == 4
    assert sorted(at for _, held_out in folds for at in held_out) == list(range(100))


def test_a_questions_fold_does_not_depend_on_the_order_of_the_file() -> None:
    texts = [f"question {at}" for at in range(40)]
    complete = [at % 3 == 0 for at in range(40)]
    there = {texts[at] for at in grouped_folds(texts, complete, 4, 1)[0][1]}
    back = {texts[::-1][at] for at in grouped_folds(texts[::-1], complete[::-1], 4, 1)[0][1]}
    assert there == back


def test_too_few_questions_make_no_folds() -> None:
    with pytest.raises(InputError, match="1 different questions cannot make 5 folds"):
        grouped_folds(["same"] * 10, [True] * 10, 5, 0)


@pytest.fixture(scope="module")
def gate_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gates") / "east"
    small_gate().save(folder)
    return folder


def test_a_saved_gate_is_judged_on_a_data_set(gate_folder: Path) -> None:
    run = evaluate_gate(
        controlled_collection(documents=200),
        GateSettings("bm25", 6, str(gate_folder), limit=60, folds=2),
    )
    assert len(run) == 60
    assert gate_summary(run)["auroc"] > 0.7
    assert {"top score", "NQC", "WIG", "MAGAF", "FRAMES"} <= set(run.baselines)
    again = evaluate_gate(
        controlled_collection(documents=200),
        GateSettings("bm25", 6, str(gate_folder), limit=60, baselines=False),
    )
    assert (again.p, again.actions) == (run.p, run.actions)


def test_a_gate_is_not_judged_unawares_by_questions_it_has_seen(tmp_path: Path) -> None:
    texts = [
        one.question.text
        for one, _ in zip(controlled_collection(documents=200).questions(), range(5))
    ]
    with_seen_questions(small_gate(), texts).save(tmp_path / "gate")
    run = evaluate_gate(
        controlled_collection(documents=200),
        GateSettings("bm25", 6, str(tmp_path / "gate"), limit=8),
    )
    assert gate_summary(run)["seen"] == 5
    assert "fitted on 5 of these questions" in gate_tables(run)[0].note


def test_a_few_questions_are_judged_without_baselines(gate_folder: Path) -> None:
    run = evaluate_gate(
        controlled_collection(documents=200), GateSettings("bm25", 6, str(gate_folder), limit=3)
    )
    assert (len(run), run.baselines) == (3, {})
    json.dumps(gate_summary(run), allow_nan=False)
    assert gate_tables(run)


def test_a_fitted_gate_is_judged_on_questions_it_has_not_seen() -> None:
    run = evaluate_gate(
        controlled_collection(documents=200),
        GateSettings(
            "bm25", 6, "fitted", FAST, limit=140, folds=2, baselines=False,
            choice=PolicyChoice("cost"),
        ),
    )  # fmt: skip
    found = gate_summary(run)
    assert found["auroc"] > 0.7
    assert "each fold" in found["policy"]


def test_a_misspelt_policy_or_gate_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no policy is named 'rsik'"):
        PolicyChoice("rsik")
    with pytest.raises(InputError, match="not a gate"):
        evaluate_gate(
            controlled_collection(documents=200),
            GateSettings("bm25", 6, str(tmp_path / "nowhere"), limit=3),
        )


def test_questions_without_hits_are_judged(gate_folder: Path) -> None:
    empty = RetrievedQuestion(
        Question("q", "Who?"), Gold("q", frozenset({"d"})), Evidence(Question("q", "Who?"), ())
    )
    judged = run_gate(small_gate(), [empty])
    assert 0 <= judged.p[0] <= 1
