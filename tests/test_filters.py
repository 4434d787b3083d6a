from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import pytest

from suffice.errors import InputError
from suffice.retrieval.filters import MAX_VALUES, filter_for, parse_filter
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.metadata import Vocabulary
from suffice.retrieval.soft_filter import SoftFilter
from suffice.types import Condition, Document, Filter, Hit

NEWSROOM = (
    Document(
        "ftx-verge",
        "The trial of FTX",
        source="The Verge",
        published_at=date(2023, 10, 4),
        entities=("FTX",),
    ),
    Document(
        "ftx-fortune",
        "The collapse of FTX",
        source="Fortune",
        published_at=date(2023, 10, 20),
        entities=("FTX",),
    ),
    Document(
        "ftx-late",
        "FTX trial verdict",
        source="Fortune",
        published_at=date(2023, 11, 3),
        entities=("FTX", "Bankman"),
    ),
    Document(
        "google",
        "Google antitrust trial",
        source="TechCrunch",
        category="technology",
        published_at=date(2023, 12, 15),
    ),
    Document(
        "fox",
        "Google in the morning",
        source="FOX News - Health",
        category="health",
        published_at=date(2023, 12, 6),
    ),
    Document(
        "fox-life",
        "A trial of patience",
        source="FOX News - Lifestyle",
        published_at=date(2023, 12, 7),
    ),
)


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore(NEWSROOM)


@pytest.fixture(scope="module")
def vocabulary(store: MemoryStore) -> Vocabulary:
    return Vocabulary.of_store(store)


# ------------------------------------------------------------------------------------------------------ reading


def test_the_filters_of_the_paper_are_read(vocabulary: Vocabulary) -> None:
    filter = {
        "published_at": {"$in": ["October 31, 2023", "November 6, 2023"]},
        "source": {"$nin": ["TechCrunch"]},
    }
    assert parse_filter(filter, vocabulary) == Filter(
        (
            Condition("published_at", "$in", ("2023-10-31", "2023-11-06")),
            Condition("source", "$nin", ("TechCrunch",)),
        )
    )


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


# ---------------------------------------------------------------------------------------------- from a question


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


# -------------------------------------------------------------------------------------------------- soft search


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


def test_a_filter_never_empties_the_result(store: MemoryStore) -> None:
    (hits,) = SoftFilter(Text(store), store).search(["FTX at Fortune on December 6, 2023"], k=2)
    assert len(hits) == 2
    assert all(hit.relaxed for hit in hits)


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


def test_the_first_hit_is_never_given_up(store: MemoryStore) -> None:
    (hits,) = SoftFilter(Text(store), store).search(["What did Fortune write about Google?"], k=1)
    assert len(hits) == 1


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


@pytest.mark.parametrize("k", [0, -1, True, 2.5])
def test_k_must_be_a_positive_number(store: MemoryStore, k: Any) -> None:
    with pytest.raises(InputError):
        SoftFilter(Text(store), store).search(["FTX"], k=k)


def test_no_questions_no_results(store: MemoryStore) -> None:
    assert SoftFilter(Text(store), store).search([], k=3) == []
    assert SoftFilter(Text(store), store).search([""], k=3) == [()]
