from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import pytest

from suffice.errors import InputError, ModelError
from suffice.protocols import Extractor
from suffice.retrieval.filter_extraction import (
    ModelExtractor,
    VocabularyExtractor,
    filter_schema,
    parse_answer,
)
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


NEWS = Vocabulary(
    {
        "source": ["The Verge", "TechCrunch", "Fortune"],
        "published_at": ["2023-10-07", "2023-10-30", "2023-11-18"],
    }
)


def read(answer: Any) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    filter, notes = parse_answer(answer if isinstance(answer, str) else json.dumps(answer), NEWS)
    assert filter.lenient
    return [(one.field, one.operator, *one.values) for one in filter.conditions], notes


# --------------------------------------------------------------------------------------- what a model may answer


def test_a_good_answer_is_taken_as_it_is() -> None:
    answer = {"source": {"$in": ["The Verge"]}, "published_at": {"$in": ["2023-10-07"]}}
    assert read(answer) == (
        [("source", "$in", "The Verge"), ("published_at", "$in", "2023-10-07")],
        (),
    )
    assert read({}) == ([], ())


def test_words_and_fences_around_the_answer_do_no_harm() -> None:
    assert read('Sure! ```json\n{"source": {"$in": ["Fortune"]}}\n``` Anything else?')[0] == [
        ("source", "$in", "Fortune")
    ]
    assert read("{'source': {'$in': ['Fortune']}}")[0] == [("source", "$in", "Fortune")]


def test_an_invented_source_is_dropped_and_reported() -> None:
    found, notes = read({"source": {"$in": ["The Daily Prophet", "Fortune"]}})
    assert found == [("source", "$in", "Fortune")]
    assert notes == ("dropped: no source is named 'The Daily Prophet'",)
    assert read({"source": {"$in": ["The Daily Prophet"]}})[0] == []


def test_an_attribute_that_does_not_exist_is_dropped_and_reported() -> None:
    found, notes = read({"author": {"$in": ["Ann"]}, "source": {"$in": ["Fortune"]}})
    assert found == [("source", "$in", "Fortune")]
    assert notes == ("dropped 'author': no such field to filter by",)


@pytest.mark.parametrize(
    ("answer", "conditions"),
    [
        ({"source": {"in": ["Fortune"]}}, [("source", "$in", "Fortune")]),
        ({"source": {"$not_in": ["Fortune"]}}, [("source", "$nin", "Fortune")]),
        ({"source": {"not in": ["Fortune"]}}, [("source", "$nin", "Fortune")]),
        ({"source": {"$eq": "fortune"}}, [("source", "$in", "Fortune")]),
        ({"source": ["Fortune", "The Verge"]}, [("source", "$in", "Fortune", "The Verge")]),
        ({"source": "Fortune"}, [("source", "$in", "Fortune")]),
        ({"source": {"$in": "Fortune"}}, [("source", "$in", "Fortune")]),
        ({"sources": {"$in": ["Fortune"]}}, [("source", "$in", "Fortune")]),
        ({"publication date": {"after": "2023-10-30"}}, [("published_at", "$gte", "2023-10-31")]),
        ({"$and": [{"source": "Fortune"}, {"date": {">=": "2023-10-01"}}]},
         [("source", "$in", "Fortune"), ("published_at", "$gte", "2023-10-01")]),
        ({"query": "fraud", "filter": {"source": "Fortune"}}, [("source", "$in", "Fortune")]),
        ({"source": {"$resembles": ["Fortune"]}}, []),
        ({"source": None, "published_at": {"$in": []}}, []),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_operator_is_mended_or_refused(
    answer: Any, conditions: list[tuple[str, ...]]
) -> None:
    assert read(answer)[0] == conditions


@pytest.mark.parametrize(
    "day",
    [
        "2023-10-07",
        "October 7, 2023",
        "2023-10-07T12:00:00",
        "2023-10-07T20:15:26+00:00",
        "7 October 2023",
    ],
)
def test_an_iso_string_is_a_date_however_it_is_written(day: str) -> None:
    assert read({"published_at": {"$in": [day]}})[0] == [("published_at", "$in", "2023-10-07")]


def test_dates_that_are_none_or_hold_nothing_are_dropped_and_reported() -> None:
    found, notes = read({"published_at": {"$in": ["the day after", "2017-06-01", "2023-10-07"]}})
    assert found == [("published_at", "$in", "2023-10-07")]
    assert len(notes) == 2
    found, notes = read(
        {"source": "Fortune", "published_at": {"$gte": "2023-11-01", "$lte": "2023-10-01"}}
    )
    assert found == [("source", "$in", "Fortune")]
    assert "both" in notes[0]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I cannot help with that.",
        "{",
        "{]}",
        "}{",
        "[1, 2]",
        '{"source": }',
        "{" * 5000 + "}" * 5000,
        "x" * 30_000,
        "{1: {2}}}",
    ],
)
def test_an_answer_that_cannot_be_read_is_refused(answer: str) -> None:
    with pytest.raises(InputError, match="no JSON"):
        parse_answer(answer, NEWS)


def test_strange_values_are_dropped_one_by_one() -> None:
    found, notes = read('{"source": {"$in": [1, null, ["Fortune"], {"a": 1}, "Fortune", NaN]}}')
    assert found == [("source", "$in", "Fortune")]
    assert len(notes) == 5


def test_the_schema_lists_the_sources_and_bounds_the_lists() -> None:
    schema = filter_schema(NEWS)
    listed = schema["properties"]["source"]["properties"]["$in"]
    assert listed["items"]["enum"] == ["The Verge", "TechCrunch", "Fortune"]
    assert listed["maxItems"] == 8
    many = filter_schema(Vocabulary({"source": [f"Paper {n}" for n in range(1000)]}))
    assert many["properties"]["source"]["properties"]["$in"]["items"] == {
        "type": "string",
        "maxLength": 80,
    }


# ------------------------------------------------------------------------------------------------ asking a model


class Model:
    """Says what it is told to, or fails."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers, self.prompts = list(answers), []

    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        self.prompts += prompts
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [answer]


def test_the_model_is_asked_with_examples_and_the_sources_it_may_name() -> None:
    model = Model('{"source": {"$in": ["Fortune"]}}')
    extractor = ModelExtractor(model, NEWS)
    assert isinstance(extractor, Extractor)
    (found,) = extractor.extract(["What did Fortune\nsay?"])
    assert found.by == "model"
    assert found.filter.conditions[0].values == ("Fortune",)
    assert "The Verge, TechCrunch, Fortune" in model.prompts[0]
    assert model.prompts[0].endswith("Question: What did Fortune say?\nAnswer:")
    assert "{" in model.prompts[0]


def test_what_the_question_has_no_word_of_is_dropped_and_reported() -> None:
    copied = '{"source": {"$in": ["Fortune", "The Verge"]}, "published_at": {"$gte": "2023-10-01", "$lte": "2023-10-30"}}'
    (found,) = ModelExtractor(Model(copied), NEWS).extract(["What did Fortune say?"])
    assert [one.values for one in found.filter.conditions] == [("Fortune",)]
    assert found.notes[0] == "dropped 'The Verge': the question does not name it"
    assert len(found.notes) == 3


def test_a_question_is_asked_about_once() -> None:
    model = Model("{}")
    extractor = ModelExtractor(model, NEWS)
    assert extractor.extract(["Who?", "Who?"]) == extractor.extract(["Who?", "Who?"])
    assert len(model.prompts) == 1


def test_braces_in_a_question_are_only_characters() -> None:
    model = Model("{}")
    ModelExtractor(model, NEWS).extract(["What is {question} or {0}?"])
    assert "{question} or {0}" in model.prompts[0]


@pytest.mark.parametrize("answer", [ModelError("too slow"), "I am a poem", ""])
def test_a_model_that_fails_leaves_the_question_to_the_vocabulary(answer: str | Exception) -> None:
    (found,) = ModelExtractor(Model(answer), NEWS).extract(["What did Fortune say?"])
    assert found.by == "vocabulary"
    assert found.filter.conditions[0].values == ("Fortune",)
    assert "the model" in found.notes[0]


def test_a_model_that_is_down_is_not_asked_for_every_question() -> None:
    model = Model(ModelError("down"), ModelError("down"), "{}")
    found = ModelExtractor(model, NEWS).extract(["one?", "two?", "three?", "four?"])
    assert len(model.prompts) == 2
    assert "was not asked" in found[3].notes[0]


def test_a_failure_is_not_remembered() -> None:
    extractor = ModelExtractor(Model(ModelError("down"), "{}"), NEWS)
    assert extractor.extract(["Who?"])[0].by == "vocabulary"
    assert extractor.extract(["Who?"])[0].by == "model"
    assert extractor.extract([]) == []
    assert extractor.extract(["Who?"])[0].filter == Filter(lenient=True)
