"""The gate's experiments: honest folds, a run that is one document, a promise that is checked, a recipe that repeats."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.datasets.gold import Gold
from suffice.errors import DataError, InputError, NotReadyError
from suffice.evaluation.gate_evaluation import (
    PolicyChoice,
    evaluate_gate,
    grouped_folds,
    run_gate,
    with_seen_questions,
)
from suffice.evaluation.gate_runs import GateRun, gate_summary, gate_tables
from suffice.evaluation.searching import RetrievedDataset, RetrievedQuestion, retrieve_dataset
from suffice.evaluation.study import Study
from suffice.gate.gate import Gate
from suffice.types import Evidence, Question
from suffice_research.controlled import controlled_collection
from suffice_research.training.gate import draw_lists, main, train_gate
from suffice_research.training.gate_study import Material, gate_study
from suffice_research.training.promise import check_promise
from suffice_research.training.transfer import leave_one_out, measure_transfer

pytestmark = pytest.mark.usefixtures("few_trees")

RNG = np.random.default_rng(5)


def small_run(n: int = 200) -> GateRun:
    """Probabilities that are right on average: a question of p = 0.7 is complete seven times in ten."""
    p = RNG.random(n)
    complete = RNG.random(n) < p
    return GateRun(
        "village",
        "bm25",
        4,
        "default",
        tuple(f"q{at}" for at in range(n)),
        tuple("bridge" if at % 2 else None for at in range(n)),
        tuple(2 + at % 2 for at in range(n)),
        tuple(complete.tolist()),
        tuple(p.tolist()),
        tuple("answer" if one > 0.8 else "abstain" for one in p),
        "Answer from 0.8 on.",
        tuple(("temporal",) if at % 3 else ("temporal", "tabular") for at in range(n)),
        {"coin": tuple([0.5] * n)},
    )


# ------------------------------------------------------------------------------------------------------ folds


def test_folds_never_split_a_question_and_spread_the_complete() -> None:
    texts = [f"question {at % 80}" for at in range(100)]  # twenty of them come twice
    complete = [at % 80 < 20 for at in range(100)]
    folds = grouped_folds(texts, complete, 5, 42)
    for rest, held in folds:
        assert {texts[at] for at in rest}.isdisjoint(texts[at] for at in held)
        assert len({texts[at] for at in held if complete[at]}) == 4
    assert sorted(at for _, held in folds for at in held) == list(range(100))


def test_a_questions_fold_does_not_depend_on_the_order_of_the_file() -> None:
    texts = [f"question {at}" for at in range(40)]
    complete = [at % 3 == 0 for at in range(40)]
    there = {texts[at] for at in grouped_folds(texts, complete, 4, 1)[0][1]}
    back = {texts[::-1][at] for at in grouped_folds(texts[::-1], complete[::-1], 4, 1)[0][1]}
    assert there == back


def test_too_few_questions_make_no_folds() -> None:
    with pytest.raises(InputError, match="1 different questions cannot make 5 folds"):
        grouped_folds(["same"] * 10, [True] * 10, 5, 0)


# ------------------------------------------------------------------------------------------------------ the run


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = small_run()
    assert GateRun.load(run.save(tmp_path / "run.json")) == run


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"version": 99}, NotReadyError),
        ({"task": "retrieval"}, InputError),
        ({"p": [0.5]}, DataError),
        ({"p": [2.0] * 200}, DataError),
        ({"surprise": 1}, DataError),
        ({"kinds": None}, DataError),
        ({"labels": [["temporal"]]}, DataError),
    ],
)
def test_a_run_that_is_none_says_so(
    change: dict[str, object], error: type[Exception], tmp_path: Path
) -> None:
    document = {**json.loads(small_run().to_json()), **change}
    (tmp_path / "run.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(error):
        GateRun.load(tmp_path / "run.json")


def test_the_summary_has_every_figure_as_a_number() -> None:
    run = small_run()
    found = gate_summary(run)
    for name in "n positive_rate auroc ap brier ece ece_by_chance aurc accuracy precision recall f1 risk coverage".split():
        assert isinstance(found[name], int | float), name
    assert found["intervals"]["auroc"]["low"] < found["auroc"] < found["intervals"]["auroc"]["high"]
    assert found["baselines"]["coin"]["auroc"] == 0.5
    assert found["precision"] == pytest.approx(1 - found["risk"])
    answered = run.answered
    assert found["coverage"] == pytest.approx(answered.mean())
    assert found["risk"] == pytest.approx(1 - np.array(run.complete)[answered].mean())
    assert set(found["by_hops"]) == {"2", "3"}
    assert found["by_kind"]["bridge"]["n"] == 100
    assert {name: one["n"] for name, one in found["by_label"].items()} == {
        "tabular": 67,
        "temporal": 200,
    }
    json.dumps(found, allow_nan=False)


def test_a_gate_that_never_answers_has_no_risk() -> None:
    run = small_run()
    quiet = GateRun(
        **{
            **{name: getattr(run, name) for name in run.__dataclass_fields__},
            "actions": ("abstain",) * len(run),
        }
    )
    assert (gate_summary(quiet)["risk"], gate_summary(quiet)["coverage"]) == (None, 0.0)
    assert any("--" in row for table in gate_tables(quiet) for row in map(" ".join, table.texts))


def test_the_tables_name_the_gate_and_the_baselines() -> None:
    first, decisions, *_, hops = gate_tables(small_run())
    assert [row[0] for row in first.rows] == ["gate (default)", "coin"]
    assert decisions.note == "Answer from 0.8 on."
    assert [row[0] for row in hops.rows] == ["2", "3"]


# ------------------------------------------------------------------------------------------------------ the promise


def test_the_promise_holds_over_random_halves() -> None:
    n = 1500
    p = RNG.random(n)
    complete = RNG.random(n) < p
    for one in check_promise(p, complete, [f"q{at}" for at in range(n)], splits=200):
        # 200 splits: a share of 0.1 is measured to within about 0.06 (three standard errors)
        assert one.broken <= 0.1 + 0.06, one
        assert one.coverage > 0 or one.never > 0


def test_a_promise_that_nobody_can_keep_answers_nothing() -> None:
    (kept,) = check_promise(
        RNG.random(200),
        np.zeros(200, bool),
        [f"q{at}" for at in range(200)],
        alphas=[0.1],
        splits=20,
    )
    assert (kept.never, kept.coverage, kept.exceeded) == (1.0, 0.0, 0.0)


# ------------------------------------------------------------------------------------------------------ gates


@cache
def collected() -> RetrievedDataset:
    return retrieve_dataset(
        controlled_collection(documents=200), ["bm25", "tfidf"], [3, 6], sample=200
    )


@cache
def east() -> tuple[list[RetrievedQuestion], Gate]:
    """Lessons of one data set, and the gate that the shipped recipe makes of them."""
    drawn = draw_lists(collected(), lists=1)[:100]
    return drawn, train_gate({"east": drawn})


@pytest.fixture(scope="module")
def gate_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gates") / "east"
    east()[1].save(folder)
    return folder


def test_a_saved_gate_is_judged_on_a_data_set(gate_folder: Path) -> None:
    run = evaluate_gate(
        controlled_collection(documents=200), "bm25", 6, str(gate_folder), limit=60, folds=2
    )
    assert len(run) == 60
    assert gate_summary(run)["auroc"] > 0.7
    assert {"top score", "NQC", "WIG", "MAGAF", "FRAMES"} <= set(run.baselines)
    again = evaluate_gate(
        controlled_collection(documents=200), "bm25", 6, str(gate_folder), limit=60, baselines=False
    )
    assert (again.p, again.actions) == (run.p, run.actions)


def test_a_gate_is_not_judged_unawares_by_questions_it_has_seen(tmp_path: Path) -> None:
    texts = [
        one.question.text
        for one, _ in zip(controlled_collection(documents=200).questions(), range(5))
    ]
    with_seen_questions(east()[1], texts).save(tmp_path / "gate")
    run = evaluate_gate(
        controlled_collection(documents=200), "bm25", 6, str(tmp_path / "gate"), limit=8
    )
    assert gate_summary(run)["seen"] == 5
    assert "fitted on 5 of these questions" in gate_tables(run)[0].note


def test_a_few_questions_are_judged_without_baselines(gate_folder: Path) -> None:
    run = evaluate_gate(controlled_collection(documents=200), "bm25", 6, str(gate_folder), limit=3)
    assert (len(run), run.baselines) == (3, {})
    json.dumps(gate_summary(run), allow_nan=False)
    assert gate_tables(run)


def test_a_fitted_gate_is_judged_on_questions_it_has_not_seen() -> None:
    run = evaluate_gate(
        controlled_collection(documents=200),
        "bm25",
        6,
        "fitted",
        limit=140,
        folds=2,
        baselines=False,
        choice=PolicyChoice("cost"),
    )
    found = gate_summary(run)
    assert found["auroc"] > 0.7
    assert "each fold" in found["policy"]


def test_a_misspelt_policy_or_gate_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no policy is named 'rsik'"):
        PolicyChoice("rsik")
    with pytest.raises(InputError, match="not a gate"):
        evaluate_gate(
            controlled_collection(documents=200), "bm25", 6, str(tmp_path / "nowhere"), limit=3
        )


# ------------------------------------------------------------------------------------------------------ the shipped recipe


def test_what_is_drawn_follows_from_seed_and_words() -> None:
    some = draw_lists(collected(), lists=2)
    assert len(some) == 400
    assert len({case.question.text for case in some}) == 200
    assert draw_lists(collected(), lists=2) == some
    assert draw_lists(collected(), lists=2, seed=1) != some
    fewer = retrieve_dataset(
        controlled_collection(documents=200), ["bm25"], [3], sample=50
    ).questions("bm25", 3)
    assert {case.question.text for case in fewer} < {case.question.text for case in some}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--only", "hotpot"], "no data set is named 'hotpot'"),
        (["--only", "musique"], "does not exist"),
    ],
)
def test_what_is_not_there_cannot_be_learned_from(
    words: list[str], says: str, tmp_path: Path, capsys: Any
) -> None:
    assert main(["--data", str(tmp_path), *words]) == 2
    assert says in (told := capsys.readouterr().err)
    assert "hint: " in told


def test_the_same_data_and_seed_give_the_same_bytes(tmp_path: Path) -> None:
    drawn, gate = east()
    gate.save(tmp_path / "first")
    train_gate({"east": drawn}).save(tmp_path / "second")
    files = sorted(
        path.relative_to(tmp_path / "first")
        for path in (tmp_path / "first").rglob("*")
        if path.is_file()
    )
    assert files
    for file in files:
        assert (tmp_path / "first" / file).read_bytes() == (
            tmp_path / "second" / file
        ).read_bytes(), file


def test_leaving_one_out_judges_with_the_others_only() -> None:
    lessons, gate = east()
    west = draw_lists(collected(), lists=1)[100:]
    names = []

    def recipe(some: Mapping[str, Sequence[RetrievedQuestion]]) -> Gate:
        names.extend(some)
        return gate

    (found,) = leave_one_out(
        {"east": lessons, "west": west}, {"west": west}, recipe, labels=(25, 999), draws=1
    )
    assert names == ["east"]
    np.testing.assert_allclose(found.p, run_gate(gate, west).p)
    assert found.auroc_adapted[0].value == found.auroc_adapted[0].value
    assert found.auroc_adapted[999].value is None  # there are not so many questions


def test_a_few_labels_of_the_new_set_make_an_honest_gate_of_a_liar() -> None:
    _, gate = east()
    west = draw_lists(collected(), lists=1)[100:]
    scale = gate.model.calibration
    lying = replace(scale, offset=scale.offset + 3)  # the same order, all believed complete
    turned = replace(gate, model=replace(gate.model, calibration=lying))
    found = measure_transfer("west", turned, west, labels=(50,), draws=1)
    assert found.ece_adapted[50].value < found.ece_adapted[0].value - 0.1


def test_a_study_is_one_document_with_every_figure(tmp_path: Path) -> None:
    cases = draw_lists(collected(), lists=1)
    _, gate = east()
    sets = {"east": cases[:100], "west": cases[100:]}
    said: list[str] = []
    options = {"baselines": ["top score", "WIG"], "labels": (25,), "draws": 1}
    made = gate_study(
        Material("fast", sets, {"west": cases[60:]}, lambda _: gate, lambda _: gate, **options),
        said.append,
    )
    assert [one.title for one in made.sections] == [
        "Fitted on one data set", "The promise", "On a data set it has not seen", "With a few labels",
    ]  # fmt: skip
    assert made.table("Fitted").cell("west", "n") == 140
    assert len(made.table("Promise").rows) == 3
    assert [row[0] for row in made.table("Beside").rows] == ["the gate", "top score", "WIG"]
    assert len(said) == 2
    assert Study.load(made.save(tmp_path / "study.json")).table("Left out").cell("west", "n") == 140


def test_questions_without_hits_are_judged(gate_folder: Path) -> None:
    empty = RetrievedQuestion(
        Question("q", "Who?"), Gold("q", frozenset({"d"})), Evidence(Question("q", "Who?"), ())
    )
    judged = run_gate(east()[1], [empty])
    assert 0 <= judged.p[0] <= 1
