"""The expected answer type of a question, and the spans that have it."""

from __future__ import annotations

from suffice.answering.answer_type import (
    AnswerType,
    country_key,
    expected_answer_type,
    find_spans,
    parse_day,
    parse_number,
)


def test_questions_have_an_expected_answer_type() -> None:
    expected = {
        "Who directed it?": AnswerType.PERSON,
        "Where was he born?": AnswerType.PLACE,
        "What nationality is she?": AnswerType.COUNTRY,
        "What is the date of death of X?": AnswerType.DATE,
        "How many members has it?": AnswerType.NUMBER,
        "Is it so?": AnswerType.YES_NO,
        "Under clause 4, can Lena sell?": AnswerType.YES_NO,
        "A and B are both operas?": AnswerType.YES_NO,
        "Are either A or B fish?": AnswerType.YES_NO,
        "The company is now known as?": AnswerType.THING,
        "In clause 4, what can Lena sell?": AnswerType.THING,
        "Which came first, A or B?": AnswerType.CHOICE,
        "What is it made of?": AnswerType.THING,
        "Both A and B are located within which country?": AnswerType.COUNTRY,
        "What occupation do A and B share?": AnswerType.KIND,
    }
    assert {question: expected_answer_type(question) for question in expected} == expected


def test_spans_have_the_type_and_the_position() -> None:
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
        (
            "She was a daughter of William, Duke of Nassau, and sister of James Douglas, 14th "
            "Earl of Morton."
        ),
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
