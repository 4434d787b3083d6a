"""Plans: what holds as one, how rules make them, and what becomes of a model's."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.small_world import BRIDGE, COMPARISON, Says

from suffice.answering.answer_type import (
    AnswerType,
    country_key,
    expected_answer_type,
    find_spans,
    parse_day,
    parse_number,
)
from suffice.answering.budget import Budget, MeteredModel
from suffice.answering.plan import (
    MAX_STEPS,
    SubQuestion,
    build_plan,
    combine,
    fill_answers,
    parse_plan,
    supporting_steps,
)
from suffice.answering.planner import Exemplar, ExemplarBank, make_plan
from suffice.answering.rule_planner import plan_by_rules
from suffice.errors import InputError


def steps(*texts: str) -> list[SubQuestion]:
    return [SubQuestion(text, expected_answer_type(text)) for text in texts]


def texts(question: str) -> list[str]:
    return [step.text for step in plan_by_rules(question).steps]


# ------------------------------------------------------------------------------------------------------- what holds


def test_steps_are_put_behind_those_they_need_and_numbered_anew() -> None:
    plan = build_plan("q", steps("When was #2 born?", "Who directed Dog Law?"))
    assert [step.text for step in plan.steps] == ["Who directed Dog Law?", "When was #1 born?"]
    assert plan.steps[1].depends_on == (1,)


@pytest.mark.parametrize(
    ("told", "why"),
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
def test_what_is_no_plan_is_refused_with_the_reason(told: list[str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        build_plan("q", steps(*told))


def test_answers_take_the_places_of_their_numbers() -> None:
    assert fill_answers("Did #1 know #12?", {1: "Ada", 12: "Mary"}) == "Did Ada know Mary?"
    assert fill_answers("When did #2 die?", {1: "Ada"}) == "When did #2 die?"


# ------------------------------------------------------------------------------------------------------- by rules


def test_a_bridge_goes_from_the_name_outwards() -> None:
    assert texts(BRIDGE) == ["Who is the mother of Lothair II?", "When did #1 die?"]
    assert texts("What is the place of birth of the director of film Dog Law?") == [
        "Who is the director of film Dog Law?",
        "What is the place of birth of #1?",
    ]


def test_a_grandmother_is_two_steps_away() -> None:
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
def test_two_are_joined_by_what_is_asked(question: str, pick: str) -> None:
    assert plan_by_rules(question).steps[-1].combine == pick


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        (
            "Which university - the University of Rochester or the University of Colorado - is further east?",
            "University of Rochester is further east",
            "University of Colorado is further east",
        ),
        (
            "Who lived longer, American author Owen Wister or Canadian author Lucy Maud Montgomery?",
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
def test_names_end_where_what_is_asked_of_them_begins(
    question: str, first: str, second: str
) -> None:
    assert texts(question)[:2] == [first, second]


def test_a_name_may_hold_commas_and_a_question_may_end_in_any_verb() -> None:
    assert texts("Where was the place of death of the director of film Tabitha, Stand Up?")[0] == (
        "Who is the director of film Tabitha, Stand Up?"
    )
    assert texts("Where did the performer of song Karma (Alicia Keys Song) study?") == [
        "Who is the performer of song Karma (Alicia Keys Song)?",
        "Where did #1 study?",
    ]


def test_a_time_is_found_before_what_happened_then() -> None:
    plan = plan_by_rules("Who was the mayor of Springfield when the Tower Bridge was opened?")
    assert plan.kind == "temporal"
    assert [step.answer_type for step in plan.steps] == [AnswerType.DATE, AnswerType.PERSON]
    assert "#1" in plan.steps[1].text


@given(st.text(max_size=300))
def test_every_text_has_a_plan_that_holds(question: str) -> None:
    plan = plan_by_rules(question)
    assert 1 <= len(plan.steps) <= MAX_STEPS
    for number, step in enumerate(plan.steps, start=1):
        assert all(need < number for need in step.depends_on)


def test_a_number_sign_of_the_question_is_not_a_place_for_an_answer() -> None:
    (step,) = plan_by_rules("Which song was #1 in 1985?").steps
    assert step.depends_on == ()
    assert step.text == "Which song was number 1 in 1985?"


def test_a_long_question_is_planned_in_no_time() -> None:
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


# ------------------------------------------------------------------------------------------------------- joining


@pytest.mark.parametrize(
    ("kind", "answers", "said"),
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
def test_joins_say_what_the_answers_say_together(
    kind: str, answers: list[str | None], said: str | None
) -> None:
    assert combine(kind, ("A", "B"), answers, [1.0, 1.0]) == said


def test_a_joined_answer_rests_on_the_steps_that_decide_it() -> None:
    assert supporting_steps("all", (), "no", [("yes", 0.9), ("no", 0.6)]) == [1]
    assert supporting_steps("all", (), "yes", [("yes", 0.9), ("yes", 0.6)]) == [0, 1]
    assert supporting_steps("supported", ("A", "B"), "B", [("no", 0.9), ("yes", 0.6)]) == [1]
    assert (
        supporting_steps("supported", ("A", "B"), "B", [("no", 0.2), ("no", 0.6)]) == []
    )  # nothing is said of either: a guess
    assert supporting_steps("earliest", ("A", "B"), "B", [("1900", 0.9), ("1800", 0.6)]) == [0, 1]


def test_what_the_texts_say_of_one_decides_where_nothing_is_measured() -> None:
    assert combine("supported", ("A", "B"), ["no", "yes"], [0.2, 0.9]) == "B"
    assert combine("supported", ("A", "B"), ["no", "no"], [0.2, 0.2]) is None


# ------------------------------------------------------------------------------------------------------- spans


def test_questions_tell_the_form_of_their_answer() -> None:
    told = {
        "Who directed it?": AnswerType.PERSON,
        "Where was he born?": AnswerType.PLACE,
        "What nationality is she?": AnswerType.COUNTRY,
        "What is the date of death of X?": AnswerType.DATE,
        "How many members has it?": AnswerType.NUMBER,
        "Is it so?": AnswerType.YES_NO,
        "Which came first, A or B?": AnswerType.CHOICE,
        "What is it made of?": AnswerType.THING,
        "Both A and B are located within which country?": AnswerType.COUNTRY,
        "What occupation do A and B share?": AnswerType.KIND,
    }
    assert {question: expected_answer_type(question) for question in told} == told


def test_spans_have_the_form_and_stand_where_they_say() -> None:
    text = "Vice Raid (20 March 851) by Edward L. Cahn and Anna May cost 1,200 dollars in Prague."
    for form, found in {
        AnswerType.PERSON: ["Vice Raid", "March", "Edward L. Cahn", "Anna May", "Prague"],
        AnswerType.DATE: ["20 March 851"],
        AnswerType.PLACE: ["Prague"],
        AnswerType.YES_NO: [],
    }.items():
        assert [one.text for one in find_spans(text, form)] == found
        assert all(text[one.start : one.end] == one.text for one in find_spans(text, form))


def test_ranks_belong_to_names_and_lost_dashes_end_years() -> None:
    people = find_spans(
        "She was a daughter of William, Duke of Nassau, and sister of James Douglas, 14th Earl of Morton.",
        AnswerType.PERSON,
    )
    assert [one.text for one in people] == [
        "William, Duke of Nassau",
        "James Douglas, 14th Earl of Morton",
    ]
    assert [
        one.text
        for one in find_spans(
            "Helena (18 August 183127 October 1888) lived in the 1850s.", AnswerType.DATE
        )
    ] == [
        "18 August 1831",
        "27 October 1888",
    ]
    kinds = find_spans(
        "Al Lee (born 1960) is an American film director, actor and writer who lives in Rome.",
        AnswerType.KIND,
    )
    assert [one.text for one in kinds] == ["American film director, actor and writer"]


def test_days_numbers_and_countries_compare() -> None:
    assert parse_day("20 March 851") == (851, 0, 0)
    assert parse_day("on October 7, 2023") == (2023, 10, 7)
    assert parse_day("October 2023") == (2023, 10, 0)
    assert parse_day("no date") is None
    assert parse_number("about 1.5 million people") == 1_500_000
    assert parse_number("twelve men") == 12
    assert country_key("an American") == country_key("United States") != country_key("British")


# ------------------------------------------------------------------------------------------------------- by a model


def meter_of(answer: object) -> MeteredModel:
    return MeteredModel(Says({"": answer}), Budget())


def test_a_models_plan_is_followed_where_it_holds() -> None:
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
def test_a_models_plan_that_does_not_hold_gives_way_to_the_rules(answer: object) -> None:
    plan = make_plan(BRIDGE, meter_of(answer), None)
    assert plan.by == "rules"
    assert "does not hold" in plan.notes[0]
    assert len(plan.steps) == 2


def test_a_plan_may_come_in_objects() -> None:
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
def test_a_plan_that_ends_with_something_else_than_was_asked_does_not_hold(
    question: str, last: str
) -> None:
    with pytest.raises(InputError, match="the last step asks for"):
        parse_plan(question, {"steps": [last]}, kind="bridge")


def test_the_plans_that_ship_lead_where_they_should() -> None:
    for one in ExemplarBank.load().exemplars:
        parse_plan(one.question, {"steps": list(one.steps)}, kind=one.kind)


# ------------------------------------------------------------------------------------------------------- exemplars


def test_the_bank_that_ships_is_of_plans_and_names_its_sources() -> None:
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


def test_users_add_their_own(tmp_path: Path) -> None:
    own = Exemplar("Who taught Ada's teacher?", ("Who taught Ada?", "Who taught #1?"))
    assert own in ExemplarBank.from_exemplars([]).extended([own]).most_similar(
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
def test_a_bank_with_a_bad_line_says_which(line: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"exemplar 1|bad.jsonl:1"):
        ExemplarBank.load(file)
