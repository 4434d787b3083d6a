from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import pytest
from tests.corpora import documents

from suffice.errors import InputError, ModelError
from suffice.protocols import Extractor
from suffice.retrieval.filters import (
    MAX_VALUES,
    ModelExtractor,
    VocabularyExtractor,
    filter_for,
    filter_schema,
    parse_answer,
    parse_filter,
)
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.metadata import Vocabulary
from suffice.retrieval.soft_filter import SoftFilter
from suffice.types import Condition, Document, Extraction, Filter, Hit

NEWSROOM = documents("filters")


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore(NEWSROOM)


@pytest.fixture(scope="module")
def vocabulary(store: MemoryStore) -> Vocabulary:
    return Vocabulary.of_store(store)


# ---- reading


@pytest.mark.parametrize(
    ("wanted", "conditions"),
    [
        ({"$gte": "2023-10-01"}, [("$gte", "2023-10-01")]),
        ({"$gt": "2023-10-01"}, [("$gte", "2023-10-02")]),
        ({"$gt": "October 2023"}, [("$gte", "2023-11-01")]),
        ({"$lt": "October 2023"}, [("$lte", "2023-09-30")]),
        ({"$lte": "2023"}, [("$lte", "2023-12-31")]),
        ({"$eq": "7 October 2023"}, [("$in", "2023-10-07")]),
        ({"$in": ["October 2023"]}, [("$gte", "2023-10-01"), ("$lte", "2023-10-31")]),
        (
            {"$in": ["October 2023", "December 6, 2023"]},
            [("$in", "2023-10-04", "2023-10-20", "2023-12-06")],
        ),
        ({"$nin": ["October 2023"]}, [("$nin", "2023-10-04", "2023-10-20")]),
        (
            {"$gte": "2023-10-01", "$lte": "2023-10-31"},
            [("$gte", "2023-10-01"), ("$lte", "2023-10-31")],
        ),
        (date(2023, 10, 7), [("$in", "2023-10-07")]),
        ({"$gte": datetime(2023, 10, 7, 12)}, [("$gte", "2023-10-07")]),
        ("2023-10-07T20:15:26+00:00", [("$in", "2023-10-07")]),
    ],
)
def test_dates_become_days_and_bounds(
    wanted: Any, conditions: list[tuple[str, ...]], vocabulary: Vocabulary
) -> None:
    found = parse_filter({"published_at": wanted}, vocabulary)
    assert [(one.operator, *one.values) for one in found.conditions] == conditions


def test_names_are_brought_into_the_spelling_of_the_corpus(vocabulary: Vocabulary) -> None:
    found = parse_filter({"source": {"$in": ["the verge", "Fox News"]}}, vocabulary)
    assert found.conditions[0].values == ("The Verge", "FOX News - Health", "FOX News - Lifestyle")
    assert parse_filter({"category": "Technology"}, vocabulary).conditions[0].values == (
        "technology",
    )
    assert parse_filter({"entities": {"$ne": "ftx"}}, vocabulary).conditions[0] == Condition(
        "entities", "$nin", ("FTX",)
    )


def test_and_joins_filters(vocabulary: Vocabulary) -> None:
    joined = {"$and": [{"source": {"$eq": "Fortune"}}, {"published_at": {"$gte": "2023-11-01"}}]}
    assert len(parse_filter(joined, vocabulary).conditions) == 2
    assert parse_filter({}, vocabulary) == Filter()


@pytest.mark.parametrize(
    ("filter", "words"),
    [
        ({"source": {"$in": ["The Vergee"]}}, "The Verge"),
        ({"sauce": "The Verge"}, "source"),
        ({5: "The Verge"}, "known"),
        ({"source": {"$inn": ["The Verge"]}}, r"\$in"),
        ({"source": {"$gte": "The Verge"}}, "dates"),
        ({"source": {"$in": "The Verge"}}, "list"),
        ({"source": {"$in": []}}, "empty"),
        ({"source": {}}, "operator"),
        ({"source": {"$in": [["The Verge"]]}}, "texts"),
        ({"source": {"$in": [float("nan")]}}, "texts"),
        ({"source": ["The Verge"]}, "texts"),
        ({"source": {"$in": {"$in": ["The Verge"]}}}, "list"),
        ({"source": {"$in": ["The Verge"] * 100_000}}, "at most"),
        ({"source": {"$in": ["x" * 1_000_000]}}, "named"),
        ({"source": None}, "texts"),
        ({"published_at": {"$gte": "yesterday"}}, "date"),
        ({"published_at": {"$gte": "2023-02-30"}}, "date"),
        ({"published_at": {"$gte": float("nan")}}, "date"),
        ({"published_at": {"$gte": 20231001}}, "date"),
        ({"published_at": {"$gte": ["2023-10-01"]}}, "date"),
        ({"published_at": {"$gte": "2023-11-01", "$lte": "2023-10-01"}}, "both"),
        ({"published_at": {"$gt": "2023-10-01", "$lt": "2023-10-02"}}, "both"),
        ({"published_at": {"$gt": date.max}}, "no day"),
        ({"published_at": {"$lt": date.min}}, "no day"),
        ({"$and": []}, "list"),
        ({"$and": {"source": "Fortune"}}, "list"),
        ({"$and": [{}] * (MAX_VALUES + 1)}, "at most"),
        ({"$and": [{"$and": [{"source": "Fortune"}]}]}, "named"),
        ({"$or": [{"source": "Fortune"}]}, "named"),
        ([("source", "Fortune")], "mapping"),
        ("source = Fortune", "mapping"),
        (None, "mapping"),
    ],
    ids=str,
)
def test_what_is_no_filter_is_refused_with_a_hint(
    filter: Any, words: str, vocabulary: Vocabulary
) -> None:
    with pytest.raises(InputError) as caught:
        parse_filter(filter, vocabulary)
    message = f"{caught.value} {caught.value.hint}"
    assert len(message) < 600
    assert re.search(words, message)


def test_unknown_names_can_be_left_out(vocabulary: Vocabulary) -> None:
    filter = {"source": {"$in": ["Bloomberg", "Fortune"]}, "category": {"$in": ["weather"]}}
    found = parse_filter(filter, vocabulary, skip_unknown=True)
    assert found == Filter((Condition("source", "$in", ("Fortune",)),))


def test_a_null_in_a_list_lets_documents_without_the_field_through(vocabulary: Vocabulary) -> None:
    found = parse_filter({"source": {"$in": ["Fortune", None]}}, vocabulary)
    assert found == Filter((Condition("source", "$in", ("Fortune",)),), lenient=True)
    assert parse_filter({"published_at": {"$in": [None, "2023-10-07"]}}, vocabulary).lenient
    assert not parse_filter({"source": {"$nin": ["Fortune", None]}}, vocabulary).lenient


def test_the_nearest_of_a_million_names_is_found_in_time() -> None:
    many = Vocabulary({"entities": (f"Entity {n}" for n in range(30_000))})
    with pytest.raises(InputError, match="no entities is named"):
        parse_filter({"entities": "Entiti 7"}, many)


# ---- from a question


def test_a_question_becomes_the_filter_of_what_it_names(vocabulary: Vocabulary) -> None:
    days, ranges, nothing, excluded = vocabulary.mentions(
        [
            "What did Fortune say of FTX on November 3, 2023?",
            "What did Fortune say in October 2023, and on November 3, 2023?",
            "Who was it?",
            "Who was criticised, but not by TechCrunch, after November 2023?",
        ]
    )
    source = Condition("source", "$in", ("Fortune",))
    assert filter_for(days).conditions == (
        source,
        Condition("published_at", "$in", ("2023-11-03",)),
    )
    hull = (
        Condition("published_at", "$gte", ("2023-10-01",)),
        Condition("published_at", "$lte", ("2023-11-03",)),
    )
    assert filter_for(ranges).conditions == (source, *hull)
    assert not filter_for(nothing)
    assert filter_for(excluded).conditions == (
        Condition("source", "$nin", ("TechCrunch",)),
        Condition("published_at", "$gte", ("2023-12-01",)),
    )
    assert filter_for(days, fields=("entities",)).conditions == (
        Condition("entities", "$in", ("FTX",)),
    )


# ---- soft search


class Text:
    """The text search of a store as a retriever."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        return self.store.search_text(questions, k=k, filters=filters)


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.doc_id for hit in hits]


def test_what_passes_comes_first_and_the_rest_is_marked(store: MemoryStore) -> None:
    (hits,) = SoftFilter(Text(store), store).search(
        ["What did Fortune write about the trial of FTX?"], k=4
    )
    assert set(ids(hits[:2])) == {"ftx-late", "ftx-fortune"}
    assert [hit.relaxed for hit in hits] == [False, False, True, True]
    assert "source: Fortune" in hits[0].matched
    scores = [hit.score for hit in hits if hit.score is not None]
    assert scores == sorted(scores, reverse=True)


def test_strict_means_strict(store: MemoryStore) -> None:
    (hits,) = SoftFilter(Text(store), store, strict=True).search(
        ["What did Fortune write about the trial of FTX?"], k=4
    )
    assert set(ids(hits)) == {"ftx-late", "ftx-fortune"}
    assert SoftFilter(Text(store), store, strict=True).search(
        ["FTX at Fortune on December 6, 2023"], k=4
    ) == [()]


def test_the_only_cover_of_a_named_thing_is_let_in(store: MemoryStore) -> None:
    two = MemoryStore(
        [
            Document("a", "the trial of the exchange", source="Fortune"),
            Document("b", "the trial of the bank", source="Fortune"),
            Document("c", "trial of FTX", source="The Verge", entities=("FTX",)),
        ]
    )
    question = "What did Fortune write about the trial of FTX?"
    (hits,) = SoftFilter(Text(two), two).search([question], k=2)
    assert hits[-1].doc_id == "c"
    assert hits[-1].relaxed
    assert hits[0].matched == ("source: Fortune",)


def test_a_question_that_names_nothing_is_searched_plainly(store: MemoryStore) -> None:
    (hits,) = SoftFilter(Text(store), store).search(["trial"], k=3)
    assert ids(hits) == ids(store.search_text(["trial"], k=3)[0])
    assert not any(hit.relaxed for hit in hits)


def test_given_filters_are_taken_instead_of_made_ones(
    store: MemoryStore, vocabulary: Vocabulary
) -> None:
    filters = [parse_filter({"source": "TechCrunch"}, vocabulary), None]
    soft = SoftFilter(Text(store), store, vocabulary)
    first, second = soft.search(
        ["trial of FTX at Fortune", "trial of FTX at Fortune"], k=2, filters=filters
    )
    assert first[0].doc_id == "google"
    assert not any(hit.relaxed for hit in second)


def test_the_vocabulary_follows_the_store() -> None:
    growing = MemoryStore([Document("a", "news of the day", source="Old Paper")])
    soft = SoftFilter(Text(growing), growing)
    assert soft.search(["news in New Paper"], k=1)[0][0].matched == ()
    growing.put([Document("b", "news of the day", source="New Paper")])
    assert soft.search(["news in New Paper"], k=1)[0][0].matched == ("source: New Paper",)


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


# ---- what a model may answer


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
    assert notes[0].startswith("dropped: no source is named 'The Daily Prophet'")
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


# ---- asking a model


class Model:
    """Says what it is told to, or fails."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers, self.prompts = list(answers), list[str]()

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
    copied = (
        '{"source": {"$in": ["Fortune", "The Verge"]}, "published_at": {"$gte": '
        '"2023-10-01", "$lte": "2023-10-30"}}'
    )
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
