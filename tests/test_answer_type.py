"""The expected answer type of a question, the form of answers, and values that compare."""

from __future__ import annotations

from suffice.answering.answer_type import (
    AnswerType,
    country_key,
    expected_answer_type,
    has_form,
    parse_number,
)
from suffice.text import parse_day


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


def test_words_that_describe_do_not_ask() -> None:
    expected = {
        "How do I skip the tests when building?": AnswerType.THING,
        "What does it raise when a key occurs twice?": AnswerType.THING,
        "When many people are arrested, what is a common tactic?": AnswerType.THING,
        "When was the town where she lives founded?": AnswerType.DATE,
        "when the store opens": AnswerType.DATE,
        "population of the town where the festival is held": AnswerType.NUMBER,
        "What is the phone number of the person who runs the office?": AnswerType.NUMBER,
        "What was the company that the person who named it owned?": AnswerType.THING,
        "What is the name of the woman I met?": AnswerType.PERSON,
        "What is the job of the woman I met?": AnswerType.KIND,
        "what date format does it print?": AnswerType.THING,
        "From where do the buses leave?": AnswerType.PLACE,
        "The actor who played Copper was born in what year?": AnswerType.DATE,
        "Between A and B, which airport is older?": AnswerType.THING,
        "After the report, which named A, did The Post deny it?": AnswerType.YES_NO,
        "food bank - can we hand out yoghurt": AnswerType.YES_NO,
        "what if it stops, do I have to start from zero?": AnswerType.YES_NO,
        "TACA, an airline, was founded in what year?": AnswerType.DATE,
        "default timeout of the client?": AnswerType.THING,
        "timeout of the client when nothing is set?": AnswerType.THING,
        "Who sells the book that the first minister or the cabinet reads?": AnswerType.CHOICE,
    }
    assert {question: expected_answer_type(question) for question in expected} == expected


def test_amounts_and_times_in_words_have_their_form() -> None:
    for answer in ("eighteen hours", "several years", "dozens", "forty minutes", "overnight"):
        assert has_form(answer, AnswerType.NUMBER), answer
    assert has_form("half past seven", AnswerType.DATE)
    assert has_form("U.S.", AnswerType.COUNTRY)
    assert has_form("no", AnswerType.CHOICE)
    assert not has_form("in the office", AnswerType.NUMBER)
    assert not has_form("1984", AnswerType.PERSON)


def test_days_numbers_and_countries_compare() -> None:
    assert parse_day("20 March 851") == (851, 0, 0)
    assert parse_day("on October 7, 2023") == (2023, 10, 7)
    assert parse_day("October 2023") == (2023, 10, 0)
    assert parse_day("no date") is None
    assert parse_number("about 1.5 million people") == 1_500_000
    assert parse_number("twelve men") == 12
    assert country_key("an American") == country_key("United States") != country_key("British")
