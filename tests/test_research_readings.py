"""Triples drawn for reading, and readings counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from suffice.errors import InputError
from suffice.types import Document
from suffice_research.grade.readings import (
    draw,
    draw_questions,
    summary,
)

TEAMS = [
    Document(
        f"t{at}",
        f"Team {name} is led by Mira {name}. It was founded in {2000 + at}.",
        f"Team {name}",
    )
    for at, name in enumerate(("Tern", "Kestrel", "Osprey", "Harrier"))
]


def test_a_sheet_has_each_triple_beside_its_sentence_and_is_the_same_again() -> None:
    sheet = draw(TEAMS, 4)
    assert len(sheet) == 4
    assert sheet == draw(list(TEAMS), 4)
    assert {record["relation"] for record in sheet} == {"led by", "founded"}
    assert all(str(record["object"]) in str(record["sentence"]) for record in sheet)
    assert draw([], 5) == []


def test_another_seed_draws_other_questions() -> None:
    sheets = [draw_questions(TEAMS, 3, seed=seed) for seed in (1, 2, 1)]
    assert sheets[0] == sheets[2] != sheets[1]


def test_an_unknown_verdict_is_named(tmp_path: Path) -> None:
    (tmp_path / "triples-x.jsonl").write_text('{"verdict": "maybe"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="maybe"):
        summary(tmp_path)
