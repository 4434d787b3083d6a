"""Plans that can be followed, and how earlier answers are combined."""

from __future__ import annotations

import pytest

from suffice.answering.answer_type import (
    expected_answer_type,
)
from suffice.answering.plan import (
    MAX_STEPS,
    SubQuestion,
    build_plan,
    combine,
    fill_answers,
    supporting_steps,
)
from suffice.errors import InputError


def steps(*texts: str) -> list[SubQuestion]:
    return [SubQuestion(text, expected_answer_type(text)) for text in texts]


def test_steps_are_sorted_by_dependency_and_renumbered() -> None:
    plan = build_plan("q", steps("When was #2 born?", "Who directed Dog Law?"))
    assert [step.text for step in plan.steps] == ["Who directed Dog Law?", "When was #1 born?"]
    assert plan.steps[1].depends_on == (1,)


@pytest.mark.parametrize(
    ("questions", "why"),
    [
        ([], "0 steps"),
        ([f"Who is man {n}?" for n in range(MAX_STEPS + 1)], "9 steps"),
        (["Who wed #2?", "Who wed #1?"], "circle"),
        (["Who wed #1?"], "its own answer"),
        (["Who wed #7?"], "does not exist"),
        (["What is it?"], "asks for nothing"),
        (["Who wed Ada?", "who wed ada"], "the same as step 1"),
        (["x" * 500], "characters"),
    ],
)
def test_an_invalid_plan_is_an_error_with_the_reason(questions: list[str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        build_plan("q", steps(*questions))


def test_answers_replace_their_placeholders() -> None:
    assert fill_answers("Did #1 know #12?", {1: "Ada", 12: "Mary"}) == "Did Ada know Mary?"
    assert fill_answers("When did #2 die?", {1: "Ada"}) == "When did #2 die?"


@pytest.mark.parametrize(
    ("kind", "answers", "expected"),
    [
        ("earliest", ["4 April 1957", "November 11, 1890"], "B"),
        ("latest", ["1957", "November 11, 1957"], "B"),
        ("most", ["three", "1,200"], "B"),
        ("same", ["American", "United States"], "yes"),
        ("same", ["Finnish", "American"], "no"),
        ("all", ["yes", "no"], "no"),
        ("longest", ["1900", "1950", "1 May 1900", "1 May 1949"], "A"),
        ("earliest", ["4 April 1957", None], None),
        ("earliest", ["soon", "later"], None),
        ("unheard of", ["1", "2"], None),
        ("before", ["1928", "4 April 1957"], "yes"),
        ("after", ["1928", "4 April 1957"], "no"),
        ("before", ["1928", "1928"], "no"),
        ("before", ["soon", "1928"], None),
        ("kind", ["American film director", "actor and film director"], "film director"),
        ("kind", ["poet", "painter"], None),
        ("alike", ["American film director", "American directors"], "yes"),
        ("alike", ["American poet", "American painter"], "no"),
    ],
)
def test_answers_are_combined(kind: str, answers: list[str | None], expected: str | None) -> None:
    assert combine(kind, ("A", "B"), answers, [1.0, 1.0]) == expected


def test_a_combined_answer_rests_on_the_steps_that_decide_it() -> None:
    assert supporting_steps("all", (), "no", [("yes", 0.9), ("no", 0.6)]) == [1]
    assert supporting_steps("all", (), "yes", [("yes", 0.9), ("yes", 0.6)]) == [0, 1]
    assert supporting_steps("supported", ("A", "B"), "B", [("no", 0.9), ("yes", 0.6)]) == [1]
    assert (
        supporting_steps("supported", ("A", "B"), "B", [("no", 0.2), ("no", 0.6)]) == []
    )  # nothing is said of either: a guess
    assert supporting_steps("earliest", ("A", "B"), "B", [("1900", 0.9), ("1800", 0.6)]) == [0, 1]


def test_the_better_supported_choice_wins_if_nothing_is_measured() -> None:
    assert combine("supported", ("A", "B"), ["no", "yes"], [0.2, 0.9]) == "B"
    assert combine("supported", ("A", "B"), ["no", "no"], [0.2, 0.2]) is None
