"""Runs and studies beside each other, in Python and by `suffice report`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import suffice

from suffice.errors import InputError, SufficeError
from suffice.evaluation.compare import compare_runs, load_run
from suffice.evaluation.gate_runs import GateRun
from suffice.evaluation.report import Lines, Section, Table
from suffice.evaluation.retrieval_runs import RetrievalRun, SystemResult
from suffice.evaluation.significance import Interval
from suffice_research.answers import AnswerOutcome, AnswerRun
from suffice_research.run_sections import changed_cells
from suffice_research.study import Study, table_cell

MANY = 40


def searched(name: str, every: int, dataset: str = "village") -> RetrievalRun:
    """A run of one system that finds the one gold document of each question but of every
    so-manieth.
    """
    ranks = tuple((1,) if at % every else () for at in range(MANY))
    ids = tuple(f"q{at}" for at in range(MANY))
    return RetrievalRun(
        dataset,
        (2, 4),
        ids,
        (None,) * MANY,
        (1,) * MANY,
        (SystemResult(name, ranks, (1.0,) * MANY),),
    )


def judged(lift: float) -> GateRun:
    complete = tuple(at % 2 == 0 for at in range(MANY))
    p = tuple(0.5 + (lift if one else -lift) for one in complete)
    ids, actions = tuple(f"q{at}" for at in range(MANY)), ("answer",) * MANY
    return GateRun(
        "village", "bm25", 10, "fitted", ids, (None,) * MANY, (2,) * MANY, complete, p, actions
    )


def test_runs_on_the_same_questions_share_a_table_with_letters():
    sections = compare_runs({"old": searched("bm25", 2), "new": searched("hybrid", 40)})
    (table,) = [one for section in sections for one in section.shown if isinstance(one, Table)]
    assert [row[0] for row in table.rows] == ["hybrid", "bm25"]
    assert [table_cell(table, name, "complete@4 differs") for name in ("hybrid", "bm25")] == [
        "a",
        "b",
    ]


def test_a_system_in_both_runs_is_named_with_its_run_and_other_questions_stand_apart():
    sections = compare_runs(
        {"old": searched("bm25", 2), "new": searched("bm25", 3), "far": searched("bm25", 2, "town")}
    )
    assert [section.title for section in sections] == [
        "Retrieval on village, k = 4",
        "Retrieval on town, k = 4",
    ]
    assert {row[0] for row in sections[0].shown[0].rows} == {"bm25 (old)", "bm25 (new)"}  # type: ignore[union-attr]


def test_gates_are_compared_by_order_and_honesty():
    (section,) = compare_runs({"weak": judged(0.0), "strong": judged(0.4)})
    table = section.shown[0]
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == ["gate fitted (strong)", "gate fitted (weak)"]
    assert [table_cell(table, str(row[0]), "auroc differs") for row in table.rows] == ["a", "b"]


def answered(right: int, *, gold: str = "Ada", held: bool = True, seen: int = 0) -> AnswerRun:
    """A run of "ask": this many are right, which the reader states with 0.9, all others with 0.2."""
    outcomes = tuple(
        AnswerOutcome(
            "Ada" if at < right else "Bob",
            ("d1",) if held else None,
            candidate="Ada" if at < right else "Bob",
            sure={"reader": 0.9 if at < right else 0.2, "hit": 12.5} if held else {},
        )
        for at in range(MANY)
    )
    ids, kinds = tuple(f"q{at}" for at in range(MANY)), ("bridge", "comparison") * (MANY // 2)
    columns = (ids, kinds, (gold,) * MANY, (("d1",),) * MANY)
    return AnswerRun("village", *columns, {"ask": outcomes}, settings={"seen": seen})


def test_answers_are_shown_by_kind_with_what_their_confidence_is_worth():
    (section,) = compare_runs({"old": answered(20), "new": answered(30, seen=7)})
    tables = {one.title: one for one in section.shown if isinstance(one, Table)}
    em = table_cell(tables["Answers on village"], "ask (new)", "exact match")
    assert isinstance(em, Interval)
    assert (em.value, em.low is not None) == (0.75, True)
    assert "gate of new was fitted on 7 of these" in tables["Answers on village"].note
    kinds = tables["F1 by kind on village"].rows
    assert [row[:3] for row in kinds][:2] == [
        ("bridge", 20, "ask (old)"),
        ("bridge", 20, "ask (new)"),
    ]
    (old, new) = tables["Confidence on village"].rows  # a hit's score is not a probability
    assert old[:4] == ("ask (old)", "reader", "right", MANY)
    assert old[4] == pytest.approx(0.55)
    assert (old[5], new[5]) == (0.5, 0.75)
    (plot,) = (one for one in section.shown if not isinstance(one, Table))
    assert isinstance(plot, Lines)
    assert [line.y for line in plot.lines] == [(0.0, 1.0), (0.0, 1.0)]


def test_answers_from_files_are_compared_without_evidence():
    runs = {"old": answered(20, held=False), "new": answered(30, held=False)}
    (section,) = compare_runs(runs)
    titles = [one.title for one in section.shown]
    assert titles == [
        "Answers of ask (old) on village",
        "Answers of ask (new) on village",
        "Above ask (old) on village",
    ]
    assert len(compare_runs({**runs, "other gold": answered(30, gold="Bob")})) == 2


def test_a_deeper_cutoff_than_was_searched_is_an_error():
    with pytest.raises(InputError, match="only 4 deep"):
        compare_runs({"old": searched("bm25", 2)}, k=50)


def studied(auroc: float) -> Study:
    table = Table("Table 4", ("model", "auroc", "n"), (("MAGAF", auroc, 384), ("gate", 0.98, 384)))
    return Study("magaf", "MAGAF again", 42, {}, {}, (Section("One", (table,)),))


def test_between_two_studies_only_what_reads_differently_is_listed():
    (table,) = changed_cells({"before": studied(0.95), "after": studied(0.96)})
    assert table.rows == (("Table 4", "MAGAF", "auroc", 0.95, 0.96),)


def test_a_file_is_opened_as_what_it_is(tmp_path: Path):
    assert isinstance(load_run(searched("bm25", 2).save(tmp_path / "run.json")), RetrievalRun)
    assert isinstance(load_run(judged(0.1).save(tmp_path / "gate.json")), GateRun)
    assert isinstance(load_run(answered(3).save(tmp_path / "answers.json")), AnswerRun)
    studied(0.9).save(tmp_path / "deep" / "study.json")
    assert isinstance(load_run(tmp_path / "deep"), Study)
    with pytest.raises(InputError, match="cannot be read"):
        load_run(tmp_path / "nothing.json")
    (tmp_path / "task.json").write_text('{"kind": "run", "task": []}', encoding="utf-8")
    with pytest.raises(SufficeError, match=r"task\.json"):
        load_run(tmp_path / "task.json")
    (tmp_path / "odd.json").write_text("[1", encoding="utf-8")
    with pytest.raises(InputError, match="not valid JSON"):
        load_run(tmp_path / "odd.json")


def test_the_command_prints_tables_or_json_or_writes_a_page(tmp_path: Path):
    old, new = (
        searched(name, every).save(tmp_path / f"{name}.json")
        for name, every in (("bm25", 2), ("hybrid", 40))
    )
    shown = suffice("report", old, new)
    assert shown.exit_code == 0
    assert "Retrieval on village" in shown.stdout
    printed = suffice("report", old, new, "--json")
    assert json.loads(printed.stdout)[0]["rows"][0]["retriever"] == "hybrid"
    page = tmp_path / "report.html"
    assert suffice("report", old, new, "--out", page).exit_code == 0
    assert "Runs beside each other" in page.read_text(encoding="utf-8")
