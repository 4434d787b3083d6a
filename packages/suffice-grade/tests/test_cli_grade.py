"""`suffice grade`: what it prints, what it writes, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import suffice
from tests.films import films
from typer.testing import Result

from suffice.datasets.jsonl import document_record
from suffice.storage import new_artefact
from suffice_grade import parsed_relations


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text(
        "".join(json.dumps(document_record(one)) + "\n" for one in films()), encoding="utf-8"
    )
    return path


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


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--prices", "cheap"], "two numbers"),
        (["--model", "m", "--model-stages", "cooking"], "no stage is named 'cooking'"),
        (["--model", "m", "--base-url", "nowhere"], "error:"),
        (["--forms", "sonnet"], "no form is named"),
    ],
)
def test_errors_come_before_the_work(words: list[str], says: str, corpus: Path) -> None:
    result = grade(corpus, *words)
    assert result.exit_code in (1, 2)
    assert says in result.stderr
    assert "hint:" in result.stderr
    assert not (corpus.parent / "made" / "questions.jsonl").exists()


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


def test_without_a_corpus_it_says_what_one_looks_like(tmp_path: Path) -> None:
    nothing = suffice("grade", "--out", tmp_path / "made")
    assert nothing.exit_code == 2
    assert "the corpus is missing" in nothing.stderr
    folder = grade(tmp_path)
    assert folder.exit_code == 2
    assert "no documents.jsonl and no corpus.jsonl" in folder.stderr


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


def test_a_table_in_another_encoding_is_named(tmp_path: Path) -> None:
    table = tmp_path / "teams.csv"
    table.write_text("title,text\nTérn,Térn is led by Mira Holt.\n", encoding="latin-1")
    result = grade(table)
    assert result.exit_code == 2
    assert "teams.csv: is not UTF-8 text" in result.output


def test_parse_without_spacy_says_how_to_install_it(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsed_relations, "find_spec", lambda name: None)
    result = grade(corpus, "--parse")
    assert result.exit_code == 2
    assert "needs the extra 'parse'" in result.stderr
    assert "pip install './packages/suffice-grade[parse]'" in result.stderr
    assert not (corpus.parent / "made").exists()
