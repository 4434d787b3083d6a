"""Plans by a model, and the exemplars it is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.small_world import BRIDGE, COMPARISON, Says

from suffice.answering.answer_type import (
    expected_answer_type,
)
from suffice.answering.budget import Budget, MeteredModel
from suffice.answering.plan import (
    SubQuestion,
    parse_plan,
)
from suffice.answering.planner import Exemplar, ExemplarBank, make_plan
from suffice.errors import InputError


def steps(*texts: str) -> list[SubQuestion]:
    return [SubQuestion(text, expected_answer_type(text)) for text in texts]


def meter_of(answer: object) -> MeteredModel:
    return MeteredModel(Says({"": answer}), Budget())


def test_a_valid_plan_of_the_model_is_used() -> None:
    plan = make_plan(
        BRIDGE,
        meter_of({"steps": ["1. Who was the mother of Lothair II?", "When did #1 die?"]}),
        None,
    )
    assert plan.by == "model"
    assert plan.steps[0].text == "Who was the mother of Lothair II?"


@pytest.mark.parametrize(
    "answer",
    [
        "I will gladly help!",
        {"steps": []},
        {"steps": ["Who wed #2?", "Who wed #1?"]},
        {
            "steps": ["Who founded the bakery?"]
        },  # copied from an example: nothing of the question is in it
        {"steps": [7]},
        {"plan": "none"},
    ],
)
def test_an_invalid_plan_of_the_model_gives_way_to_the_rules(answer: object) -> None:
    plan = make_plan(BRIDGE, meter_of(answer), None)
    assert plan.by == "rules"
    assert "is invalid" in plan.notes[0]
    assert len(plan.steps) == 2


def test_a_plan_can_be_a_list_of_objects() -> None:
    plan = parse_plan(
        BRIDGE, {"steps": [{"question": "When did Lothair's mother die?"}]}, kind="bridge"
    )
    assert plan.steps[0].text == "When did Lothair's mother die?"


@pytest.mark.parametrize(
    ("question", "last"),
    [
        (BRIDGE, "Who was the mother of Lothair II?"),
        ("Who was born first, Ada Lovelace or Mary Somerville?", "When was Mary Somerville born?"),
        (
            "Were Ada Lovelace and Mary Somerville both born in London?",
            "Where was Mary Somerville born?",
        ),
    ],
)
def test_a_plan_that_ends_with_another_answer_type_is_invalid(question: str, last: str) -> None:
    with pytest.raises(InputError, match="the last step asks for"):
        parse_plan(question, {"steps": [last]}, kind="bridge")


def test_the_shipped_plans_are_valid() -> None:
    for one in ExemplarBank.load().exemplars:
        parse_plan(one.question, {"steps": list(one.steps)}, kind=one.kind)


def test_the_shipped_bank_holds_plans_and_names_its_sources() -> None:
    bank = ExemplarBank.load()
    assert {one.source for one in bank.exemplars} == {"MuSiQue", "2WikiMultiHopQA"}
    assert {one.hops for one in bank.exemplars} == {2, 3, 4}


def test_exemplars_are_as_complex_as_the_question() -> None:
    bank = ExemplarBank.load()
    assert {
        one.hops
        for one in bank.most_similar("Who is the mother of the king of X?", hops=3, kind="bridge")
    } == {3}
    chosen = bank.most_similar(COMPARISON, hops=4, kind="comparison", count=2)
    assert [(one.kind, one.hops) for one in chosen] == [("comparison", 4)] * 2


def test_a_question_is_never_shown_its_own_plan() -> None:
    bank = ExemplarBank.load()
    for own in bank.exemplars[::7]:
        assert own not in bank.most_similar(
            own.question, hops=own.hops, kind=own.kind, count=len(bank.exemplars)
        )


def test_you_can_add_your_own_exemplars(tmp_path: Path) -> None:
    own = Exemplar("Who taught Ada's teacher?", ("Who taught Ada?", "Who taught #1?"))
    assert own in ExemplarBank.from_exemplars([own]).most_similar(
        "Who taught the dean?", hops=2, kind="bridge"
    )
    file = tmp_path / "mine.jsonl"
    file.write_text(
        json.dumps({"question": own.question, "steps": list(own.steps)}) + "\n", encoding="utf-8"
    )
    assert ExemplarBank.load(file).exemplars == (own,)


@pytest.mark.parametrize(
    "line",
    [
        '{"question": 1}',
        '{"question": "q", "steps": [1]}',
        '{"question": "q", "steps": ["Who #1?"]}',
    ],
)
def test_a_bad_line_of_a_bank_is_an_error_with_its_place(line: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"exemplar 1|bad.jsonl:1"):
        ExemplarBank.load(file)
