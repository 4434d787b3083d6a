"""BEIR folders: splits, qrels, and incomplete folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.dataset_files import lines

from suffice import datasets
from suffice.errors import InputError


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


def test_an_incomplete_beir_folder_is_an_error(beir):
    (beir / "queries.jsonl").unlink()
    with pytest.raises(InputError, match=r"has no queries\.jsonl"):
        datasets.load("beir", beir)
