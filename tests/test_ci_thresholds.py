"""`suffice evaluate gate --fail-if`: a build that stops when a figure crosses a limit, and says how
sure that is.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from docs.generators.markdown import table_texts
from tests.commands import suffice

from suffice.errors import InputError
from suffice.evaluation.ci_thresholds import (
    Threshold,
    check_thresholds,
    junit_xml,
    parse_thresholds,
    thresholds_table,
)
from suffice.evaluation.gate_runs import FIGURE_NAMES, GateRun, gate_figures


def honest_run(n: int = 600, *, seed: int = 3) -> GateRun:
    """Probabilities that are true, and an answer from 0.9 on: one in twenty of the answered is
    incomplete.
    """
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return GateRun(
        "village",
        "bm25",
        4,
        "default",
        tuple(f"q{at}" for at in range(n)),
        (None,) * n,
        (2,) * n,
        tuple((rng.random(n) < p).tolist()),
        tuple(p.tolist()),
        tuple("answer" if one >= 0.9 else "abstain" for one in p),
    )


def outcome(text: str, run: GateRun) -> tuple[bool, bool]:
    (tested,) = check_thresholds(parse_thresholds([text]), run)
    return tested.failed, tested.sure


def test_a_limit_is_a_figure_a_sign_and_a_number() -> None:
    assert parse_thresholds(["risk@0.1>0.12"]) == (Threshold("risk@0.1", ">", 0.12),)
    assert parse_thresholds([" auroc < .8 , coverage<=3e-1", "ece@15>=0.1"]) == (
        Threshold("auroc", "<", 0.8),
        Threshold("coverage", "<=", 0.3),
        Threshold("ece@15", ">=", 0.1),
    )
    assert str(parse_thresholds(["risk@0.1 > 0.120"])[0]) == "risk@0.1>0.12"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a figure"),
        ("risk", "is not a figure"),
        ("risk>", "is not a figure"),
        ("risk>0.1>0.2", "is not a figure"),
        ("risk=0.1", "is not a figure"),
        ("risk>nan", "is not a figure"),
        ("risk>1e999", "is not a figure"),
        ("__import__('os').system('true')>0", "is not a figure"),
        ("auroc<0.8,", "is not a figure"),
        ("rsik>0.1", "no figure is named 'rsik'"),
        ("risk@2>0.1", "a share between 0 and 1"),
        ("risk@0>0.1", "a share between 0 and 1"),
        ("auroc@3<0.8", "expected no number"),
        ("luck@3<0.8", "no metric is named"),
    ],
)
def test_anything_else_is_a_mistake_of_the_caller(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse_thresholds([text])


def test_the_names_are_the_figures_of_a_run() -> None:
    assert tuple(gate_figures(honest_run(50))) == FIGURE_NAMES


def test_the_report_says_on_which_side_the_interval_lies() -> None:
    run = honest_run()
    risk = gate_figures(run)["risk"]
    assert risk.low is not None
    assert risk.high is not None
    assert risk.value is not None
    assert outcome("risk>0.5", run) == (False, True)
    assert outcome("risk<0.5", run) == (True, True)
    between = f"{(risk.value + risk.high) / 2:.4f}"
    assert outcome(f"risk>{between}", run) == (False, False)
    assert outcome(f"risk<{between}", run) == (True, False)
    found = check_thresholds(parse_thresholds([f"risk>{between}"]), run)
    (row,) = table_texts(thresholds_table(found))
    assert "holds, but not surely" in row[-1]


def test_a_promise_is_counted_on_questions_that_did_not_choose_its_threshold() -> None:
    run = honest_run(2000)
    (risk, coverage, wide) = check_thresholds(
        parse_thresholds(["risk@0.1>0.12, coverage@0.1<0.05, coverage@0.2<0.05"]), run
    )
    assert not risk.failed
    assert risk.measured.value is not None
    assert 0.0 < risk.measured.value < 0.12
    assert coverage.measured.value is not None
    assert wide.measured.value is not None
    assert 0.05 < coverage.measured.value < wide.measured.value
    # Where probabilities say nothing, no threshold keeps the promise: nothing is answered, and that
    # is no success.
    rng = np.random.default_rng(0)
    blind = replace(run, p=tuple(rng.random(len(run)).tolist()))
    (risk,) = check_thresholds(parse_thresholds(["risk@0.1>0.12"]), blind)
    assert risk.measured.value is None
    assert risk.failed
    assert risk.words == "fails: not defined here"


def test_junit_has_a_case_a_limit() -> None:
    run = replace(honest_run(), dataset="a <b> & \x07")
    tested = check_thresholds(parse_thresholds(["risk>0.5", "auroc<0.99"]), run)
    suite = ElementTree.fromstring(junit_xml(tested, run)).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    kept, crossed = suite.findall("testcase")
    assert (kept.get("name"), kept.find("failure")) == ("not risk>0.5", None)
    assert kept.get("classname") == "a <b> & ?.bm25.k4"
    failure = crossed.find("failure")
    assert failure is not None
    assert "600 questions. fails: the whole interval is across" in str(failure.get("message"))


def evaluated(*words: object) -> tuple[int, str, str]:
    data = ("--collection", "controlled", "--limit", 60, "--no-baselines", "--preset", "fast")
    result = suffice("evaluate", "gate", *data, *words, wide=True)
    return result.exit_code, result.stdout, result.stderr


def test_the_command_stops_a_build_with_an_exit_code_of_its_own(tmp_path: Path) -> None:
    code, printed, errors = evaluated(
        "--fail-if", "coverage<=1", "--fail-if", "risk>1", "--junit", tmp_path / "gate.xml"
    )
    assert code == 3
    assert "failed: coverage<=1" in errors
    assert "holds: the whole interval is on this side" in printed
    assert ElementTree.parse(tmp_path / "gate.xml").getroot()[0].get("failures") == "1"
    code, printed, _ = evaluated("--fail-if", "risk>1", "--json")
    assert code == 0
    assert json.loads(printed)["fail_if"][0]["limit"] == "risk>1"
