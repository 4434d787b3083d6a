"""A gate's run is one document; every figure, table and the overview come from it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from docs.generators.markdown import table_texts

from suffice.errors import DataError, InputError, NotReadyError
from suffice.evaluation.gate_runs import GateRun, gate_summary, gate_tables, run_overview
from suffice.gate.policy import choose_by_risk

RNG = np.random.default_rng(5)


def small_run(n: int = 200) -> GateRun:
    """Probabilities that are right on average: a question of p = 0.7 is complete seven times in
    ten.
    """
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
        tuple("answer" if one > 0.8 else "expand" if one > 0.4 else "abstain" for one in p),
        "Answer from 0.8 on.",
        tuple(("temporal",) if at % 3 else ("temporal", "tabular") for at in range(n)),
        {"coin": tuple([0.5] * n)},
    )


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
    for name in (
        "n positive_rate auroc ap brier ece ece_by_chance aurc accuracy precision "
        "recall f1 risk coverage"
    ).split():
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
    assert any(
        "--" in row for table in gate_tables(quiet) for row in map(" ".join, table_texts(table))
    )


def test_the_tables_name_the_gate_and_the_baselines() -> None:
    first, decisions, *_, hops = gate_tables(small_run())
    assert [row[0] for row in first.rows] == ["gate (default)", "coin"]
    assert decisions.note == "Answer from 0.8 on."
    assert [row[0] for row in hops.rows] == ["2", "3"]


# ------------------------------------------------------------------------------------ overview


def test_at_every_threshold_each_question_is_counted_once() -> None:
    run = small_run(400)
    for one in run_overview(run)["thresholds"]:
        assert one["answered"] + one["expanded"] + one["undecided"] + one["abstained"] == len(run)
        assert one["risk"] is None or one["incomplete"] == round(one["risk"] * one["answered"])
        assert one["risk"] is None or one["risk"] <= one["risk_below"] <= 1


def test_at_the_runs_own_threshold_nothing_is_undecided() -> None:
    shown = run_overview(small_run(400))
    assert shown["answer_at"] == pytest.approx(0.8, abs=0.02)
    below = next(one for one in shown["thresholds"] if one["at"] == 0.8)
    assert below["undecided"] == 0
    above = next(one for one in shown["thresholds"] if one["at"] == 0.9)
    assert above["undecided"] > 0


def test_promises_are_those_of_the_policy_and_grow_with_what_may_go_wrong() -> None:
    run = small_run(400)
    promises = {one["alpha"]: one for one in run_overview(run)["promises"]}
    assert (
        promises[0.2]["answer_at"]
        == choose_by_risk(run.p, run.complete, alpha=0.2, delta=0.1).answer_at
    )
    assert promises[0.01]["answer_at"] is None
    assert promises[0.01]["coverage"] == 0.0
    shares = [one["coverage"] for one in promises.values()]
    assert shares == sorted(shares)


def test_places_without_a_kind_share_a_column() -> None:
    shown = run_overview(small_run(400))["difficulty"]
    assert (shown["rows"], shown["columns"]) == ([2, 3], ["all", "bridge"])
    assert [[cell["questions"] for cell in row] for row in shown["cells"]] == [[200, 0], [0, 200]]


def test_an_empty_run_is_shown_as_nothing_and_everything_is_json() -> None:
    shown = run_overview(GateRun("village", "bm25", 4, "default", (), (), (), (), (), ()))
    assert shown["questions"] == 0
    assert json.loads(json.dumps(shown, allow_nan=False))["answer_at"] is None
