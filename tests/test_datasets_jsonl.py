"""Our own JSON Lines: documents and questions, read, written and refused."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset_files import lines

from suffice import datasets
from suffice.datasets import Gold, GoldQuestion, jsonl
from suffice.errors import InputError
from suffice.storage import BadRecords
from suffice.types import Document, Hit, Question


def test_a_document_keeps_every_field(tmp_path):
    known = {
        "title": "Ada",
        "source": "Times",
        "category": "science",
        "published_at": "1843-07-10",
        "entities": ["Babbage"],
    }
    path = lines(
        tmp_path / "documents.jsonl",
        {"id": 7, "text": "Notes.", **known, "parent": "whole", "page": 3, "tags": ["x"]},
    )
    (found,) = datasets.load("jsonl", path).documents()
    assert found == Document(
        "7",
        "Notes.",
        "Ada",
        "Times",
        "science",
        date(1843, 7, 10),
        ("Babbage",),
        "whole",
        {"page": 3, "tags": ["x"]},
    )


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": "a"}, "field 'doc_id' is missing, expected a document id"),
        ({"doc_id": "", "text": "a"}, "field 'doc_id' is ''"),
        ({"doc_id": ["a"], "text": "a"}, "field 'doc_id'"),
        ({"doc_id": "a"}, "field 'text' is missing, expected a text"),
        ({"doc_id": "a", "text": 3, "title": "t"}, "field 'text' is 3"),
        ({"doc_id": "a", "text": "  "}, "expected a text that is not empty, or a title"),
        (
            {"doc_id": "a", "text": "a", "entities": "Ada"},
            "field 'entities' is 'Ada', expected a list of texts",
        ),
        (
            {"doc_id": "a", "text": "a", "published_at": "2023-13-01"},
            "field 'published_at' is '2023-13-01'",
        ),
        ({"doc_id": "first", "text": "again"}, "document id 'first' is already used on line 1"),
    ],
)
def test_a_bad_document_is_an_error(tmp_path, record, message):
    path = lines(tmp_path / "documents.jsonl", {"doc_id": "first", "text": "a"}, record)
    with pytest.raises(InputError, match=rf"documents\.jsonl:2: .*{message}"):
        list(datasets.load("jsonl", path).documents())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gold": None}, "field 'gold' is None, expected a list of document ids"),
        ({"gold": "d1"}, "field 'gold' is 'd1'"),
        ({"question": " "}, "field 'question' is ' '"),
        ({"hops": -1}, "field 'hops' is -1, expected a whole number from 0 to 1,000,000,000"),
        ({"hits": [{"score": 1}]}, "field 'hits'"),
        ({"hits": [{"doc_id": "a", "score": "high"}]}, "field 'hits'"),
        ({"hits": ["a", "a"]}, "each document once"),
        ({"question_id": "q0"}, "question id 'q0' is already used on line 1"),
    ],
)
def test_a_bad_question_is_an_error(tmp_path, change, message):
    good = {"question_id": "q0", "question": "Who?", "gold": ["d1"]}
    path = lines(tmp_path / "examples.jsonl", good, {**good, "question_id": "q1", **change})
    with pytest.raises(InputError, match=rf"examples\.jsonl:2: .*{message}"):
        list(datasets.load("jsonl", questions=path).questions())


def test_a_file_is_taken_for_what_its_first_record_is(tmp_path):
    path = lines(tmp_path / "a.jsonl", {"question": "Who?", "gold": [], "hits": ["d1"]})
    documents = lines(tmp_path / "b.jsonl", {"doc_id": "d1", "text": "Ada"})
    assert datasets.load("jsonl", path).has_questions
    assert datasets.load("jsonl", documents).has_documents
    (question,) = datasets.load("jsonl", path, corpus=documents).questions()
    assert (question.question.question_id, question.hits) == ("1", (Hit("d1"),))


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(str.strip)
some_words = words.filter(bool)
maybe = st.none() | some_words


@given(
    st.builds(
        Document,
        doc_id=some_words,
        text=some_words,
        title=words,
        source=maybe,
        category=maybe,
        published_at=st.none() | st.dates(),
        entities=st.lists(words, max_size=3).map(tuple),
        parent=maybe,
        extra=st.dictionaries(
            st.sampled_from(["url", "page"]), st.integers() | words | st.none(), max_size=2
        ),
    )
)
def test_a_document_comes_back_as_it_was_written(tmp_path_factory, document):
    path = lines(tmp_path_factory.mktemp("d") / "d.jsonl", jsonl.document_record(document))
    assert list(jsonl.load_documents(path, BadRecords())) == [document]


@given(
    some_words,
    some_words,
    st.frozensets(some_words, max_size=3),
    maybe,
    maybe,
    st.integers(0, 9),
    st.lists(words, max_size=2).map(tuple),
    st.none()
    | st.lists(
        st.builds(Hit, some_words, st.none() | st.floats(-9, 9)),
        max_size=3,
        unique_by=lambda hit: hit.doc_id,
    ).map(tuple),
)
def test_a_question_comes_back_as_it_was_written(
    tmp_path_factory, question_id, text, gold, answer, kind, hops, labels, hits
):
    question = GoldQuestion(
        Question(question_id, text), Gold(question_id, gold, answer, kind, hops, labels), hits
    )
    path = lines(tmp_path_factory.mktemp("e") / "e.jsonl", jsonl.question_record(question))
    assert list(jsonl.load_questions(path, BadRecords())) == [question]
