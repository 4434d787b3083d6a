"""MuSiQue: paragraphs that share a title, unanswerable twins, and bad records."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.dataset_files import written

from suffice import datasets
from suffice.errors import InputError


def paragraph(title: str, text: str, supporting: bool) -> dict[str, Any]:
    return {"idx": 0, "title": title, "paragraph_text": text, "is_supporting": supporting}


def messi(**changes: Any) -> dict[str, Any]:
    record = {
        "id": "3hop1__1_2",
        "question": "When?",
        "answer": "1982",
        "answerable": True,
        "paragraphs": [
            paragraph("Messi", "Goal.", True),
            paragraph("Messi", "Youth.", False),
            paragraph("Barca", "Deal.", True),
        ],
    }
    return {**record, **changes}


def test_paragraphs_of_one_title_are_told_apart_by_their_text_and_both_files_agree(tmp_path):
    corpus = [
        {"title": "Messi", "text": "Youth."},
        {"title": "Messi", "text": "Goal."},
        {"title": "Barca", "text": "Deal."},
    ]
    dataset = datasets.load(
        "musique",
        questions=written(tmp_path, "q.json", [messi()]),
        corpus=written(tmp_path, "c.json", corpus),
    )
    (question,) = dataset.questions()
    texts = {one.doc_id: one.text for one in dataset.documents()}
    assert len(texts) == 3
    assert {texts[doc_id] for doc_id in question.gold.doc_ids} == {"Goal.", "Deal."}
    assert (question.gold.kind, question.gold.hops) == ("3hop1", 2)
    pooled = datasets.load("musique", questions=tmp_path / "q.json").documents()
    assert {one.doc_id: one.text for one in pooled} == texts


def test_the_original_lines_are_read_like_the_array(tmp_path):
    path = tmp_path / "musique_ans_v1.0_dev.jsonl"
    path.write_text(json.dumps(messi()) + "\n\n" + json.dumps(messi(id="2hop__3_4")) + "\n")
    assert [one.gold.kind for one in datasets.load("musique", tmp_path).questions()] == [
        "3hop1",
        "2hop",
    ]


def test_an_unanswerable_twin_is_a_null_question_of_its_own(tmp_path):
    path = written(tmp_path, "q.json", [messi(), messi(answerable=False)])
    first, twin = datasets.load("musique", path).questions()
    assert first.gold.doc_ids
    assert (twin.gold.doc_ids, twin.gold.kind, twin.gold.hops) == (frozenset(), "unanswerable", 0)
    assert twin.gold.question_id == "3hop1__1_2#unanswerable"


@pytest.mark.parametrize(
    "paragraphs",
    [
        None,
        [],
        ["text"],
        [paragraph("A", "a", False)],
        [{"title": "A", "paragraph_text": "a"}],
        [paragraph("A", "", True)],
    ],
)
def test_a_question_without_supporting_paragraphs_is_an_error(tmp_path, paragraphs):
    with pytest.raises(InputError, match=r"q\.json:2: field 'paragraph"):
        list(
            datasets.load(
                "musique", written(tmp_path, "q.json", [messi(paragraphs=paragraphs)])
            ).questions()
        )
