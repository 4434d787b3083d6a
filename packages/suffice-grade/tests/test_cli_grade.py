"""`suffice grade`: what it prints, what it writes, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import suffice, write_lines
from tests.films import films
from typer.testing import Result

from suffice.datasets.jsonl import document_record
from suffice.storage import new_artefact


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    return write_lines(path, (document_record(one) for one in films()))


def grade(corpus: Path, *words: object) -> Result:
    return suffice("grade", corpus, "--out", corpus.parent / "made", *words)


def test_a_run_ends_with_its_audit_and_a_page(corpus: Path, tmp_path: Path) -> None:
    result = grade(corpus, "--report", tmp_path / "made.html")
    assert result.exit_code == 0, result.output
    assert "answer leakage: 0 of" in result.stdout
    assert "next: suffice fit --benchmark" in result.stderr
    page = (tmp_path / "made.html").read_text(encoding="utf-8")
    assert "lexical shortcut" in page
    assert "The Alder Tree" in page
    kept = json.loads((tmp_path / "made" / "audit.json").read_text(encoding="utf-8"))
    again = json.loads(grade(corpus, "--json").stdout)
    assert (again["done"], again["audit"]) == ([], kept)


def test_a_folder_of_another_kind_is_left_alone(corpus: Path, tmp_path: Path) -> None:
    notes, loop = tmp_path / "notes", tmp_path / "improved"
    (notes / "stages").mkdir(parents=True)
    (notes / "stages" / "first.md").write_text("mine")
    with new_artefact(loop / "stages" / "gate", kind="improve-stage", version=1):
        pass
    for taken in (tmp_path, notes, loop):
        before = sorted(tmp_path.rglob("*"))
        result = suffice("grade", corpus, "--out", taken, "--model", "m", "--base-url", "http://x")
        assert result.exit_code == 2, result.output
        assert "was not made by suffice grade" in result.stderr
        assert "suffice grade CORPUS --out DIR" in result.stderr
        assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_of_texts_is_a_corpus(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "teams.md").write_text("# Team Tern\n\nTeam Tern is led by Mira Holt.\n")
    (notes / "services.md").write_text(
        "# Billing service\n\nOwner: Team Tern\nDefault port: 8443\n"
        "\n# Search service\n\nOwner: Team Gull\nDefault port: 9200\n"
    )
    result = grade(notes)
    assert result.exit_code == 0, result.output
    made = (tmp_path / "made" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    found = {(one["question"], one["answer"]) for one in map(json.loads, made)}
    assert ("What is the default port of the Billing service?", "8443") in found
