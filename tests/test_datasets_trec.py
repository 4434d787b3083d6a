"""TREC: runs, qrels and topics, and their bad lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.dataset_files import lines

from suffice import datasets
from suffice.errors import InputError
from suffice.types import Hit


@pytest.fixture
def trec(tmp_path: Path) -> Path:
    (tmp_path / "bm25.run").write_text(
        "q1 Q0 d2 2 1.5 bm25\nq1 Q0 d1 1 7.25 bm25\nq1\tQ0\td3\t3\t1.5\tbm25\nq7 Q0 d1 1 3 bm25\n"
    )
    (tmp_path / "test.qrels").write_text("q1 0 d1 1\nq1 0 d3 0\nq2 0 d9 2\n")
    return tmp_path


def test_a_run_becomes_questions_with_hits_best_score_first(trec):
    dataset = datasets.load("trec", trec)
    first, second = dataset.questions()
    assert first.hits == (Hit("d1", 7.25), Hit("d2", 1.5), Hit("d3", 1.5))
    assert first.gold.doc_ids == {"d1"}
    assert (second.question.question_id, second.hits, second.gold.doc_ids) == (
        "q2",
        (),
        frozenset({"d9"}),
    )
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
    ("run", "message"),
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
def test_a_bad_run_is_an_error(trec, run, message):
    (trec / "bm25.run").write_text(run)
    with pytest.raises(InputError, match=message):
        list(datasets.load("trec", trec).questions())


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        ("q1 0 d1\n", r"test\.qrels:1: 3 columns, expected 4"),
        (
            "q1 0 d1 1\nq1 0 d1 0\n",
            r"test\.qrels:2: document 'd1' comes twice for question 'q1', first on line 1",
        ),
        ("q1 0 d1 yes\n", "relevance is 'yes'"),
    ],
)
def test_bad_trec_qrels_are_an_error_and_can_be_skipped(trec, qrels, message):
    (trec / "test.qrels").write_text(qrels + "q1 0 d4 1\n")
    with pytest.raises(InputError, match=message):
        list(datasets.load("trec", trec).questions())
    dataset = datasets.load("trec", trec, skip_bad=True)
    (question,) = dataset.questions()
    assert "d4" in question.gold.doc_ids
    assert dataset.bad.count == 1
