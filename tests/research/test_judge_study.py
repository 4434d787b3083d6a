"""The study of the judge, from what is kept of gate, judge and clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.stand_in_server import says, serving

from suffice.errors import InputError
from suffice.evaluation.study import Study
from suffice.integrations.judge import MAX_TOKENS, judge_prompt
from suffice_research import judge_study as study
from suffice_research.judge_orders import Obedient, Order

KEPT = Path(__file__).parents[2] / "research/judge"
STORED = Path(__file__).parents[2] / "research/results/runs/judge.json"


def test_what_is_stored_comes_from_what_is_kept() -> None:
    """Cost and orders, which are quick to make again."""
    stored = {table.title: table for table in Study.load(STORED).tables}
    domains = study.read_domains(KEPT / "gate.jsonl", study.read_answers(KEPT / "answers.jsonl"))
    times = study.read_times(KEPT / "times.jsonl")
    orders = KEPT / "orders.jsonl"
    made = [study._cost_table(domains, times), study._aims_table(orders)]
    for table in (*made, study._orders_table(orders, domains[0].threshold)):
        assert table.to_markdown() == stored[table.title].to_markdown()


def test_where_the_judge_is_worse_a_weight_from_elsewhere_changes_nothing() -> None:
    """Fitted as one kind of text, the same labels harm the decisions on everyday text."""
    answers = study.read_answers(KEPT / "answers.jsonl")
    domains = study.read_domains(KEPT / "gate.jsonl", answers)
    for one in domains:
        ((_, known),) = study._learned(domains, one, study.OTHERS, 42)
        assert not known.counts
        assert known.kinds == 2


def test_a_server_is_asked_once_for_each_prompt_and_no_text_is_kept(tmp_path: Path) -> None:
    lists = [(f"Who built mill {at}?", ["", ""], ["A mill.", "A miller."]) for at in range(4)]
    found = [judge_prompt(*one) for one in lists]
    rows = [
        {"key": f"everyday/{at}", "messages": [{"content": one.text}], "known": one.known,
         "hits": one.hits, "max_tokens": MAX_TOKENS}
        for at, one in enumerate(found)
    ]  # fmt: skip
    prompts, answers = tmp_path / "prompts.jsonl", tmp_path / "answers.jsonl"

    def reply(handler: Any, request: dict[str, Any]) -> None:
        """Obeys our own order in one list."""
        text = request["messages"][0]["content"]
        model = Obedient(Order("no such order"), ours="mill 1?" in text)
        says(model.complete([text])[0])(handler, request)

    with serving(reply) as (url, seen):
        command = [
            "ask",
            str(prompts),
            "--model",
            "m",
            "--base-url",
            url,
            "--answers",
            str(answers),
        ]
        for count in (2, 4):
            prompts.write_text("".join(json.dumps(row) + "\n" for row in rows[:count]), "utf-8")
            assert study.main(command) == 0
            assert len(seen) == count  # goes on where it was
    kept = study.read_answers(answers)
    assert [kept[f"everyday/{at}"].complete for at in range(4)] == [False, None, False, False]
    assert all(one.controls for one in kept.values())
    assert "mill" not in answers.read_text(encoding="utf-8")


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
