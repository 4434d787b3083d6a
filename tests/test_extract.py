from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from suffice.protocols import Extractor
from suffice.retrieval.filter_extraction import VocabularyExtractor
from suffice.retrieval.metadata import Vocabulary
from suffice.types import Extraction, Filter

VOCABULARY = Vocabulary(
    {
        "source": [
            "The Verge",
            "TechCrunch",
            "Fortune",
            "FOX News - Health",
            "FOX News - Lifestyle",
        ],
        "category": ["sports", "business"],
        "published_at": ["2023-10-06", "2023-10-07", "2023-10-31", "2023-11-18", "2023-12-15"],
    }
)


def extract(question: str, **options: Any) -> Extraction:
    return VocabularyExtractor(VOCABULARY, **options).extract([question])[0]


def conditions(question: str, **options: Any) -> list[tuple[str, ...]]:
    return [
        (one.field, one.operator, *one.values)
        for one in extract(question, **options).filter.conditions
    ]


def test_it_is_an_extractor_and_its_filters_are_lenient() -> None:
    assert isinstance(VocabularyExtractor(VOCABULARY), Extractor)
    assert extract("What did Fortune write?").filter.lenient
    assert extract("What did Fortune write?").by == "vocabulary"
    assert VocabularyExtractor(VOCABULARY).extract([]) == []


@pytest.mark.parametrize(
    "question", ["", "Who was it?", "The age of the verge of fortune", "\ud800", "x" * 100_000]
)
def test_a_question_that_names_nothing_has_no_filter(question: str) -> None:
    assert extract(question).filter == Filter(lenient=True)
    assert not extract(question).filter


def test_alternatives_are_one_list() -> None:
    assert conditions("as reported by The Verge or TechCrunch") == [
        ("source", "$in", "The Verge", "TechCrunch")
    ]
    assert conditions("What did Fox News say?") == [
        ("source", "$in", "FOX News - Health", "FOX News - Lifestyle")
    ]


@pytest.mark.parametrize(
    "question",
    [
        "Who was criticised, but not by TechCrunch or Fortune?",
        "What was not reported by TechCrunch and Fortune?",
        "What has never been covered by TechCrunch nor Fortune?",
        "Who is praised in articles other than TechCrunch and Fortune?",
        "Who is praised, excluding TechCrunch and Fortune?",
        "Who is praised by neither TechCrunch nor Fortune?",
        "Who is praised, except by TechCrunch or by nobody but in articles other than Fortune?",
    ],
)
def test_negation_rules_sources_out(question: str) -> None:
    assert conditions(question) == [("source", "$nin", "TechCrunch", "Fortune")]


def test_not_only_is_no_negation_and_but_ends_a_list() -> None:
    assert conditions("reported not only by TechCrunch") == [("source", "$in", "TechCrunch")]
    assert conditions("not by TechCrunch but by Fortune") == [
        ("source", "$in", "Fortune"),
        ("source", "$nin", "TechCrunch"),
    ]


def test_days_are_listed_and_ranges_are_bounded() -> None:
    assert conditions("between the reports of October 7, 2023 and of October 31, 2023") == [
        ("published_at", "$in", "2023-10-07", "2023-10-31")
    ]
    assert conditions("between October 7, 2023 and November 18, 2023") == [
        ("published_at", "$gte", "2023-10-07"),
        ("published_at", "$lte", "2023-11-18"),
    ]
    assert conditions("in October 2023") == [
        ("published_at", "$gte", "2023-10-01"),
        ("published_at", "$lte", "2023-10-31"),
    ]


def test_an_open_end_is_read_with_a_day_of_slack() -> None:
    assert conditions("after October 31, 2023") == [("published_at", "$gte", "2023-10-31")]
    assert conditions("before October 31, 2023") == [("published_at", "$lte", "2023-10-31")]
    assert conditions("after October 31, 2023", slack_days=0) == [
        ("published_at", "$gte", "2023-11-01")
    ]


def test_a_date_that_is_ruled_out_is_not_in() -> None:
    assert conditions("on a date other than October 7, 2023") == [
        ("published_at", "$nin", "2023-10-07")
    ]
    assert conditions("everything except in October 2023") == [
        ("published_at", "$nin", "2023-10-06", "2023-10-07", "2023-10-31")
    ]


def test_a_date_without_a_document_is_left_out_and_noted() -> None:
    found = extract("the exchange of June 2017 and of October 8, 2023, as Fortune says")
    assert [one.field for one in found.filter.conditions] == ["source"]
    assert found.notes == (
        "no document is of 2023-10-08: left out",
        "no document is of 2017-06-01 to 2017-06-30: left out",
    )


def test_a_range_that_holds_everything_says_nothing() -> None:
    assert not extract("before 2030 and in 2023").filter
    assert not extract("As of November 1, 2023, how many are there?").filter


def test_the_clock_is_an_argument() -> None:
    assert conditions("What did Fortune say yesterday?") == [("source", "$in", "Fortune")]
    assert conditions("What was said yesterday?", today=date(2023, 10, 8)) == [
        ("published_at", "$in", "2023-10-07")
    ]


def test_categories_come_on_request() -> None:
    question = "Which sports articles, not business articles, are meant?"
    assert conditions(question) == []
    assert conditions(question, fields=("category",)) == [
        ("category", "$in", "sports"),
        ("category", "$nin", "business"),
    ]


def test_the_ends_of_time_do_not_overflow() -> None:
    assert not extract("before January 1, 1000").filter
    assert not extract("since 9999-12-31").filter
