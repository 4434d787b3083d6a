"""Plans by rules, for questions of every form."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.small_world import BRIDGE, COMPARISON

from suffice.answering.answer_type import (
    AnswerType,
)
from suffice.answering.plan import (
    MAX_STEPS,
)
from suffice.answering.rule_planner import plan_by_rules


def texts(question: str) -> list[str]:
    return [step.text for step in plan_by_rules(question).steps]


def test_a_bridge_is_planned_innermost_first() -> None:
    assert texts(BRIDGE) == ["Who is the mother of Lothair II?", "When did #1 die?"]
    assert texts("What is the place of birth of the director of film Dog Law?") == [
        "Who is the director of film Dog Law?",
        "What is the place of birth of #1?",
    ]


def test_a_grandmother_takes_two_steps() -> None:
    assert texts("Who is Princess Mafalda Of Savoy's maternal grandmother?") == [
        "Who is the mother of Princess Mafalda Of Savoy?",
        "Who is the mother of #1?",
    ]


def test_a_comparison_measures_both_and_picks_one() -> None:
    plan = plan_by_rules(COMPARISON)
    assert plan.kind == "comparison"
    assert plan.hops == 4
    last = plan.steps[-1]
    assert (last.combine, last.choices, last.depends_on) == (
        "earliest",
        ("Shadows In Paradise", "Dog Law"),
        (2, 4),
    )


@pytest.mark.parametrize(
    ("question", "pick"),
    [
        ("Who was born later, Mickey Hart or Tony Owen?", "latest"),
        ("Was Ausaf Ali or Steven Perry born first?", "earliest"),
        ("Between two bands Audioslave and Bodyjar, which group formed earlier?", "earliest"),
        ("Which band has more members, Muzzle or Primus?", "most"),
        ("Who lived longer, Jean Grémillon or Ángel Recasens?", "longest"),
        ("Who was born first out of Marco De Luigi and Fabio Maistro?", "earliest"),
        ("Do both Possession and La Boum films have the directors from the same country?", "same"),
        ("Were Rosario Castellanos and Lucy Maud Montgomery both authors?", "all"),
        ("Who was older when they died, Teinosuke Kinugasa or Don O. Newland?", "longest"),
        ("Which film came first The Strongest Man in the World or Candleshoe?", "earliest"),
        ("Did the Beaulieu Mine or the McIntyre Mines yield copper?", "supported"),
        ("Was Pearl Lust released before Chasing Coral?", "before"),
        ("Does Eddie Murray have the same nationality as Henry Talbot?", "same"),
        ("Are David Schwimmer and James Wan in the same industry?", "alike"),
        ("What profession was both John Updike and Bret Easton Ellis?", "kind"),
    ],
)
def test_two_are_combined_by_what_is_asked(question: str, pick: str) -> None:
    assert plan_by_rules(question).steps[-1].combine == pick


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        (
            (
                "Which university - the University of Rochester or the University of Colorado - "
                "is further east?"
            ),
            "University of Rochester is further east",
            "University of Colorado is further east",
        ),
        (
            (
                "Who lived longer, American author Owen Wister or Canadian author Lucy Maud "
                "Montgomery?"
            ),
            "When was Owen Wister born?",
            "When did Owen Wister die?",
        ),
        (
            "Who was born first D. Ross Lederman or Al Lee?",
            "When was D. Ross Lederman born?",
            "When was Al Lee born?",
        ),
        (
            "Was either Al Lee or Grover Jones born in Indiana?",
            "Al Lee born in Indiana",
            "Grover Jones born in Indiana",
        ),
        (
            "Which singer is younger, Terri Nunn or Al Lee?",
            "When was Terri Nunn born?",
            "When was Al Lee born?",
        ),
        (
            "Are Out of Place and The Mosuo Sisters by the same director?",
            "Who is the director of Out of Place?",
            "Who is the director of The Mosuo Sisters?",
        ),
        (
            "Are Al Lee and Luc Besson American actors?",
            "Is Al Lee American actors?",
            "Is Luc Besson American actors?",
        ),
        (
            "Which opera has more acts, Parsifal or Manon?",
            "How many acts does Parsifal have?",
            "How many acts does Manon have?",
        ),
    ],
)
def test_names_are_split_from_what_is_asked_of_them(question: str, first: str, second: str) -> None:
    assert texts(question)[:2] == [first, second]


def test_names_can_contain_commas_and_questions_end_in_any_verb() -> None:
    assert texts("Where was the place of death of the director of film Tabitha, Stand Up?")[0] == (
        "Who is the director of film Tabitha, Stand Up?"
    )
    assert texts("Where did the performer of song Karma (Alicia Keys Song) study?") == [
        "Who is the performer of song Karma (Alicia Keys Song)?",
        "Where did #1 study?",
    ]


def test_a_time_is_found_first() -> None:
    plan = plan_by_rules("Who was the mayor of Springfield when the Tower Bridge was opened?")
    assert plan.kind == "temporal"
    assert [step.answer_type for step in plan.steps] == [AnswerType.DATE, AnswerType.PERSON]
    assert "#1" in plan.steps[1].text


@given(st.text(max_size=300))
def test_every_text_has_a_valid_plan(question: str) -> None:
    plan = plan_by_rules(question)
    assert 1 <= len(plan.steps) <= MAX_STEPS
    for number, step in enumerate(plan.steps, start=1):
        assert all(need < number for need in step.depends_on)


def test_a_number_sign_in_the_question_is_not_a_placeholder() -> None:
    (step,) = plan_by_rules("Which song was #1 in 1985?").steps
    assert step.depends_on == ()
    assert step.text == "Which song was number 1 in 1985?"


def test_a_long_question_is_planned_quickly() -> None:
    shapes = (
        "the director of ",
        "A's ",
        "Who, A or B ",
        "X and ",
        "#1 ",
        "the city where A ",
        "Are A and both ",
        "which A of, ",
    )
    begun = time.process_time()
    for shape in shapes:
        for length in (490, 100_000):
            assert plan_by_rules((shape * length)[:length]).steps
    assert time.process_time() - begun < 5
