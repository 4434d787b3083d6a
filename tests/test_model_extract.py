from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from suffice.errors import InputError, ModelError
from suffice.protocols import Extractor
from suffice.retrieval.filter_extraction import ModelExtractor, filter_schema, parse_answer
from suffice.retrieval.metadata import Vocabulary
from suffice.types import Filter

VOCABULARY = Vocabulary(
    {
        "source": ["The Verge", "TechCrunch", "Fortune"],
        "published_at": ["2023-10-07", "2023-10-30", "2023-11-18"],
    }
)


def read(answer: Any) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    filter, notes = parse_answer(
        answer if isinstance(answer, str) else json.dumps(answer), VOCABULARY
    )
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
        parse_answer(answer, VOCABULARY)


def test_strange_values_are_dropped_one_by_one() -> None:
    found, notes = read('{"source": {"$in": [1, null, ["Fortune"], {"a": 1}, "Fortune", NaN]}}')
    assert found == [("source", "$in", "Fortune")]
    assert len(notes) == 5


def test_the_schema_lists_the_sources_and_bounds_the_lists() -> None:
    schema = filter_schema(VOCABULARY)
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
    extractor = ModelExtractor(model, VOCABULARY)
    assert isinstance(extractor, Extractor)
    (found,) = extractor.extract(["What did Fortune\nsay?"])
    assert found.by == "model"
    assert found.filter.conditions[0].values == ("Fortune",)
    assert "The Verge, TechCrunch, Fortune" in model.prompts[0]
    assert model.prompts[0].endswith("Question: What did Fortune say?\nAnswer:")
    assert "{" in model.prompts[0]


def test_what_the_question_has_no_word_of_is_dropped_and_reported() -> None:
    copied = '{"source": {"$in": ["Fortune", "The Verge"]}, "published_at": {"$gte": "2023-10-01", "$lte": "2023-10-30"}}'
    (found,) = ModelExtractor(Model(copied), VOCABULARY).extract(["What did Fortune say?"])
    assert [one.values for one in found.filter.conditions] == [("Fortune",)]
    assert found.notes[0] == "dropped 'The Verge': the question does not name it"
    assert len(found.notes) == 3


def test_a_question_is_asked_about_once() -> None:
    model = Model("{}")
    extractor = ModelExtractor(model, VOCABULARY)
    assert extractor.extract(["Who?", "Who?"]) == extractor.extract(["Who?", "Who?"])
    assert len(model.prompts) == 1


def test_braces_in_a_question_are_only_characters() -> None:
    model = Model("{}")
    ModelExtractor(model, VOCABULARY).extract(["What is {question} or {0}?"])
    assert "{question} or {0}" in model.prompts[0]


@pytest.mark.parametrize("answer", [ModelError("too slow"), "I am a poem", ""])
def test_a_model_that_fails_leaves_the_question_to_the_vocabulary(answer: str | Exception) -> None:
    (found,) = ModelExtractor(Model(answer), VOCABULARY).extract(["What did Fortune say?"])
    assert found.by == "vocabulary"
    assert found.filter.conditions[0].values == ("Fortune",)
    assert "the model" in found.notes[0]


def test_a_model_that_is_down_is_not_asked_for_every_question() -> None:
    model = Model(ModelError("down"), ModelError("down"), "{}")
    found = ModelExtractor(model, VOCABULARY).extract(["one?", "two?", "three?", "four?"])
    assert len(model.prompts) == 2
    assert "was not asked" in found[3].notes[0]


def test_a_failure_is_not_remembered() -> None:
    extractor = ModelExtractor(Model(ModelError("down"), "{}"), VOCABULARY)
    assert extractor.extract(["Who?"])[0].by == "vocabulary"
    assert extractor.extract(["Who?"])[0].by == "model"
    assert extractor.extract([]) == []
    assert extractor.extract(["Who?"])[0].filter == Filter(lenient=True)
