"""BEIR folders, TREC runs, ragas rows and our own JSON Lines."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import datasets
from suffice.datasets import Gold, GoldQuestion, jsonl
from suffice.errors import InputError
from suffice.storage import BadRecords
from suffice.types import Document, Hit, Question


def lines(path: Path, *objects: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in objects), encoding="utf-8")
    return path


# --------------------------------------------------------------------------------------------- BEIR


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    lines(
        tmp_path / "corpus.jsonl",
        {"_id": "d1", "title": "Ada", "text": "wrote", "metadata": {"year": 1843}},
        {"_id": "d2", "text": ""},
    )
    lines(
        tmp_path / "queries.jsonl",
        {"_id": "q1", "text": "Who wrote?"},
        {"_id": "q2", "text": "Who?"},
        {"_id": "q3", "text": "?"},
    )
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq2\td1\t1\nq1\td1\t2\nq1\td2\t0\nq2\td2\t1\n"
    )
    (tmp_path / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq3\td1\t1\n")
    return tmp_path


def test_a_beir_folder_is_read_with_its_test_split(beir):
    dataset = datasets.load("beir", beir)
    assert {one.question.question_id: set(one.gold.doc_ids) for one in dataset.questions()} == {
        "q1": {"d1"},
        "q2": {"d1", "d2"},
    }
    first, second = dataset.documents()
    assert (first.doc_id, first.title, first.text, first.extra) == (
        "d1",
        "Ada",
        "wrote",
        {"metadata": {"year": 1843}},
    )
    assert second.text == ""
    assert datasets.describe(dataset).unresolved == ()


def test_another_split_is_chosen_by_its_file(beir):
    for dataset in (
        datasets.load("beir", beir / "qrels" / "dev.tsv"),
        datasets.load("beir", beir, questions=beir / "qrels" / "dev.tsv"),
    ):
        assert [one.question.question_id for one in dataset.questions()] == ["q3"]
        assert len(list(dataset.documents())) == 2


def test_bad_qrels_are_errors_with_their_line(beir):
    qrels = beir / "qrels" / "test.tsv"
    qrels.write_text("query-id\tcorpus-id\tscore\nq1\td1\tgood\n")
    with pytest.raises(
        InputError, match=r"test\.tsv:2: field 'score' is 'good', expected a number"
    ):
        list(datasets.load("beir", beir).questions())
    qrels.write_text("q1\td1\t1\n")
    with pytest.raises(InputError, match="no column 'query-id', 'corpus-id', 'score'"):
        list(datasets.load("beir", beir).questions())
    qrels.write_text("query-id\tcorpus-id\tscore\nq9\td1\t1\n")
    with pytest.raises(
        InputError, match=r"1 questions are not in queries\.jsonl, the first is 'q9'"
    ):
        list(datasets.load("beir", beir).questions())


def test_gold_that_the_beir_corpus_lacks_is_found(beir):
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td7\t1\n")
    found = datasets.describe(datasets.load("beir", beir))
    assert [(one.question_id, one.doc_id) for one in found.unresolved] == [("q1", "d7")]


def test_an_incomplete_beir_folder_is_an_error(beir):
    (beir / "queries.jsonl").unlink()
    with pytest.raises(InputError, match=r"has no queries\.jsonl"):
        datasets.load("beir", beir)


# --------------------------------------------------------------------------------------------- TREC


@pytest.fixture
def trec(tmp_path: Path) -> Path:
    (tmp_path / "bm25.run").write_text(
        "q1 Q0 d2 2 1.5 bm25\nq1 Q0 d1 1 7.25 bm25\nq1\tQ0\td3\t3\t1.5\tbm25\nq7 Q0 d1 1 3 bm25\n"
    )
    (tmp_path / "test.qrels").write_text("q1 0 d1 1\nq1 0 d3 0\nq2 0 d9 2\n")
    return tmp_path


def test_a_run_becomes_examples_with_hits_best_score_first(trec):
    dataset = datasets.load("trec", trec)
    first, second = dataset.questions()
    assert first.hits == (Hit("d1", 7.25), Hit("d2", 1.5), Hit("d3", 1.5))
    assert first.gold.doc_ids == {"d1"}
    assert (second.question.question_id, second.hits, second.gold.doc_ids) == ("q2", (), {"d9"})
    assert not dataset.has_documents
    assert datasets.describe(dataset).unresolved == ()


def test_topics_give_the_questions_their_words(trec):
    (trec / "topics.tsv").write_text("q1\tWho wrote the notes?\nq2\tWhere?\n")
    lines(trec / "corpus.jsonl", {"doc_id": "d1", "text": "a"}, {"doc_id": "d9", "text": "b"})
    dataset = datasets.load("trec", trec)
    assert [one.question.text for one in dataset.questions()] == ["Who wrote the notes?", "Where?"]
    assert datasets.describe(dataset).documents == 2


def test_run_and_qrels_can_be_named_one_by_one(trec):
    dataset = datasets.load("trec", trec / "bm25.run", questions=trec / "test.qrels")
    assert [len(one.hits or ()) for one in dataset.questions()] == [3, 0]
    only_gold = datasets.load("trec", questions=trec / "test.qrels")
    assert [one.hits for one in only_gold.questions()] == [None, None]
    with pytest.raises(InputError, match="no qrels"):
        datasets.load("trec", trec / "bm25.run")


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (
            "q1 Q0 d1 1 7\n",
            r"bm25\.run:1: 5 columns, expected 6: question Q0 document rank score tag",
        ),
        ("q1 Q0 d1 1 nan x\n", r"bm25\.run:1: score is 'nan', expected a number"),
        ("q1 Q0 d1 1 high x\n", "score is 'high'"),
        (
            "q1 Q0 d1 1 2 x\nq1 Q0 d1 2 1 x\n",
            r"bm25\.run:2: document 'd1' comes twice for question 'q1', first on line 1",
        ),
        (
            "q1 Q0 d1 1 2 x\nq2 Q0 d1 1 1 x\nq1 Q0 d2 2 1 x\n",
            r"bm25\.run:3: question 'q1' starts again",
        ),
        ("q8 Q0 d1 1 2 x\n", "none of its questions is in"),
    ],
)
def test_a_bad_run_is_an_error(trec, run, said):
    (trec / "bm25.run").write_text(run)
    with pytest.raises(InputError, match=said):
        list(datasets.load("trec", trec).questions())


@pytest.mark.parametrize(
    ("qrels", "said"),
    [
        ("q1 0 d1\n", r"test\.qrels:1: 3 columns, expected 4"),
        (
            "q1 0 d1 1\nq1 0 d1 0\n",
            r"test\.qrels:2: document 'd1' comes twice for question 'q1', first on line 1",
        ),
        ("q1 0 d1 yes\n", "relevance is 'yes'"),
    ],
)
def test_bad_trec_qrels_are_an_error_and_can_be_skipped(trec, qrels, said):
    (trec / "test.qrels").write_text(qrels + "q1 0 d4 1\n")
    with pytest.raises(InputError, match=said):
        list(datasets.load("trec", trec).questions())
    dataset = datasets.load("trec", trec, skip_bad=True)
    (question,) = dataset.questions()
    assert "d4" in question.gold.doc_ids
    assert dataset.bad.count == 1


# -------------------------------------------------------------------------------------------- ragas


def row(**changes: object) -> dict[str, object]:
    known = {
        "user_input": "Who taught Ada?",
        "retrieved_contexts": ["De Morgan taught.", "Byron rhymed."],
        "retrieved_context_ids": ["d1", 2],
        "reference_context_ids": ["d1", "d9"],
        "reference": "De Morgan",
    }
    return {**known, **changes}


def test_a_ragas_row_gives_hits_gold_and_the_documents_it_shows(tmp_path):
    dataset = datasets.load(
        "ragas",
        lines(
            tmp_path / "rows.jsonl", row(), row(reference_contexts=["De Morgan taught.", "Frend."])
        ),
    )
    first, _ = dataset.questions()
    assert first.hits == (Hit("d1"), Hit("2"))
    assert (first.gold.doc_ids, first.gold.answer, first.gold.hops) == (
        {"d1", "d9"},
        "De Morgan",
        2,
    )
    assert {one.doc_id: one.text for one in dataset.documents()} == {
        "d1": "De Morgan taught.",
        "2": "Byron rhymed.",
        "d9": "Frend.",
    }
    assert datasets.describe(dataset).unresolved == ()


def test_ragas_texts_without_ids_are_told_apart_by_what_they_say(tmp_path):
    bare = row(
        retrieved_context_ids=None, reference_context_ids=None, reference_contexts=["Byron rhymed."]
    )
    dataset = datasets.load("ragas", lines(tmp_path / "rows.jsonl", bare))
    (question,) = dataset.questions()
    assert {hit.doc_id for hit in question.hits or ()} > question.gold.doc_ids
    assert len(list(dataset.documents())) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"user_input": [{"content": "hi", "type": "human"}]}, "field 'user_input'"),
        ({"retrieved_context_ids": ["d1"]}, "expected one id for each of the 2 retrieved_contexts"),
        (
            {"reference_context_ids": None},
            "field 'reference_context_ids' is None, expected a list of ids",
        ),
        ({"reference_context_ids": "d1"}, "expected a list of texts"),
        ({"retrieved_contexts": [None, "b"]}, "field 'retrieved_contexts'"),
    ],
)
def test_a_bad_ragas_row_is_an_error(tmp_path, change, said):
    path = lines(tmp_path / "rows.jsonl", row(**change))
    with pytest.raises(InputError, match=said):
        list(datasets.load("ragas", path).questions())
    dataset = datasets.load("ragas", path, skip_bad=True)
    assert list(dataset.documents()) == []


# ------------------------------------------------------------------------------- our own JSON Lines


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
    ("record", "said"),
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
def test_a_bad_document_is_an_error(tmp_path, record, said):
    path = lines(tmp_path / "documents.jsonl", {"doc_id": "first", "text": "a"}, record)
    with pytest.raises(InputError, match=rf"documents\.jsonl:2: .*{said}"):
        list(datasets.load("jsonl", path).documents())


@pytest.mark.parametrize(
    ("change", "said"),
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
def test_a_bad_example_is_an_error(tmp_path, change, said):
    good = {"question_id": "q0", "question": "Who?", "gold": ["d1"]}
    path = lines(tmp_path / "examples.jsonl", good, {**good, "question_id": "q1", **change})
    with pytest.raises(InputError, match=rf"examples\.jsonl:2: .*{said}"):
        list(datasets.load("jsonl", questions=path).questions())


def test_a_file_is_taken_for_what_its_first_record_is(tmp_path):
    examples = lines(tmp_path / "a.jsonl", {"question": "Who?", "gold": [], "hits": ["d1"]})
    documents = lines(tmp_path / "b.jsonl", {"doc_id": "d1", "text": "Ada"})
    assert datasets.load("jsonl", examples).has_questions
    assert datasets.load("jsonl", documents).has_documents
    (question,) = datasets.load("jsonl", examples, corpus=documents).questions()
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
def test_an_example_comes_back_as_it_was_written(
    tmp_path_factory, question_id, text, gold, answer, kind, hops, labels, hits
):
    example = GoldQuestion(
        Question(question_id, text), Gold(question_id, gold, answer, kind, hops, labels), hits
    )
    path = lines(tmp_path_factory.mktemp("e") / "e.jsonl", jsonl.question_record(example))
    assert list(jsonl.load_questions(path, BadRecords())) == [example]
