"""Both forms of a data set have the same questions; everyday questions that are kept stay kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.types import Document, Question
from suffice_research.training.bridge_data import (
    everyday_judged,
    everyday_learned,
    family,
    untitled,
)


def test_without_titles_only_the_titles_are_gone() -> None:
    asked = GoldQuestion(Question("q", "Who?"), Gold("q", frozenset({"a"})))
    titled = Dataset(
        "films",
        documents=lambda bad: iter([Document("a", "A film.", "Tide", source="BBC")]),
        questions=lambda bad: iter([asked]),
    )
    plain = untitled(titled)
    assert list(plain.documents()) == [Document("a", "A film.", source="BBC")]
    assert list(plain.questions()) == [asked]
    assert family(plain.name) == family(titled.name) == "films"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("chats", "home_texts"):  # the second is kept for judging
        cases = [
            {
                "id": f"{name}-{at}",
                "question": f"What is number {at} of {name}?",
                "answer": "",
                "docs": [{"id": "d", "title": "T", "text": f"Number {at} of {name}."}],
                "distractors": [{"id": "x", "title": "", "text": "Nothing is said here."}],
            }
            for at in (*range(40), 0)  # one is asked twice
        ]
        lines = "".join(json.dumps(one) + "\n" for one in cases)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


def test_kept_everyday_questions_and_their_texts_are_not_learned_from(folder: Path) -> None:
    learned, judged = everyday_learned(folder), everyday_judged(folder)
    texts = {one.text: one for one in learned.documents()}
    assert not any("home_texts" in text for text in texts)
    assert not any(one.title for one in texts.values())
    seen, kept = ({one.question.text for one in some.questions()} for some in (learned, judged))
    assert not seen & kept
    assert len(seen) + len(kept) == 80
    everything = {one.doc_id: one.text for one in judged.documents()}
    assert len(everything) == 81
    for one in judged.questions():
        (needed,) = one.gold.doc_ids
        assert everything[needed].split()[1] == one.question.text.split()[3]
