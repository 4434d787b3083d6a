"""The study of the judge, from what is kept of gate, judge and clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from suffice.errors import InputError
from suffice.evaluation.study import Study
from suffice_research import judge_study as study

KEPT = Path(__file__).parents[2] / "research/judge"
STORED = Path(__file__).parents[2] / "docs/results/runs/judge.json"


def test_what_is_stored_comes_from_what_is_kept() -> None:
    """Cost and orders, which are quick to make again."""
    stored = {table.title: table for table in Study.load(STORED).tables}
    domains = study.read_domains(KEPT / "gate.jsonl", study.read_answers(KEPT / "answers.jsonl"))
    times = study.read_times(KEPT / "times.jsonl")
    made = [study._cost_table(domains, times)]
    made.append(study._orders_table(KEPT / "orders.jsonl", domains[0].threshold))
    for table in made:
        assert table.to_markdown() == stored[table.title].to_markdown()


def test_where_the_judge_is_worse_a_weight_from_elsewhere_changes_nothing() -> None:
    """Fitted as one kind of text, the same labels harm the decisions on everyday text."""
    answers = study.read_answers(KEPT / "answers.jsonl")
    domains = study.read_domains(KEPT / "gate.jsonl", answers)
    for one in domains:
        ((_, known),) = study._learned(domains, one, study.OTHERS, 42)
        assert not known.counts
        assert known.kinds == 2


def test_prompts_of_each_domain_are_timed_short_and_long(tmp_path: Path) -> None:
    rows = [
        {"key": f"{domain}/{at}", "messages": [{"content": "x" * (at + 1)}]}
        for domain in study.SIZES
        for at in range(9)
    ]
    chosen = study._spread_by_length(rows, 6)
    assert len(chosen) == 6
    assert {row["key"].partition("/")[0] for row in chosen} == set(study.SIZES)
    assert len({len(row["messages"][0]["content"]) for row in chosen}) == 2
    (tmp_path / "gate.jsonl").write_text('{"key": "other/0"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="no answer is about everyday"):
        study.read_domains(tmp_path / "gate.jsonl", {})
