"""`suffice evaluate difficulty` on a small made benchmark: a system that loses the farther
document.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands import suffice, write_lines

from suffice_research.answers import AnswerRun

PUPILS = [f"Pupil{at}" for at in range(60)]


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """Sixty questions of two and three hops; every fourth goes over a missing link."""
    folder = tmp_path / "made"
    folder.mkdir()
    documents, questions = [], []
    for at, name in enumerate(PUPILS):
        ids = [f"d{at}-{hop}" for hop in range(2 + at % 2)]
        documents += [
            {"doc_id": one, "title": f"{name} {hop}", "text": "word " * (at + hop)}
            for hop, one in enumerate(ids)
        ]
        triple = {
            "subject": name,
            "relation": "teacher",
            "object": "x",
            "link": "exact" if at % 4 == 0 else "",
        }
        questions.append(
            {
                "question_id": name,
                "question": f"Who taught {name}?",
                "gold": ids,
                "path": [[triple]],
            }
        )
    for file, records in (("documents", documents), ("questions", questions)):
        write_lines(folder / f"{file}.jsonl", records)
    return folder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "mine.jsonl"
    records = [{"question_id": name, "correct": at % 3 > 0} for at, name in enumerate(PUPILS[:50])]
    return write_lines(path, records)


def evaluate(*words: object) -> Any:
    result = suffice("evaluate", "difficulty", *words, wide=True)
    assert result.exit_code == 0, result.output
    return result


def test_the_matrix_is_printed_drawn_and_reported(
    benchmark: Path, results: Path, tmp_path: Path
) -> None:
    plot, report = tmp_path / "matrix.png", tmp_path / "matrix.html"
    result = evaluate(results, "--benchmark", benchmark, "--plot", plot, "--report", report)
    assert "Error of mine, by hops and D_r" in result.stdout
    assert "10 questions have no result" in " ".join(result.stdout.split())
    assert "Questions that need missing links" in result.stdout
    assert "thin" in result.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")
    page = report.read_text(encoding="utf-8")
    assert "<svg" in page
    assert "missing links" in page


def test_a_script_gets_every_cell(benchmark: Path, results: Path) -> None:
    printed = json.loads(evaluate(results, "--benchmark", benchmark, "--json").stdout)
    found = printed["systems"]["mine"]
    assert found["matrix"]["levels"] == [2, 3]
    assert sum(cell["n"] for row in found["matrix"]["cells"] for cell in row) == 50
    assert found["matrix"]["whole"]["error"]["value"] == pytest.approx(17 / 50)
    assert sum(one["questions"] for one in printed["missing_links"] if one["exact"]) == 15


def test_a_run_of_answers_is_read_as_it_was_written(benchmark: Path, tmp_path: Path) -> None:
    """The whole chain: questions with answers, `evaluate answers --out`, `evaluate difficulty`."""
    questions = benchmark / "questions.jsonl"
    records = [json.loads(line) for line in questions.read_text(encoding="utf-8").splitlines()]
    given = tmp_path / "mine.jsonl"
    for file, of in (
        (questions, [{**one, "answer": f"Teacher of {one['question_id']}"} for one in records]),
        (given, [
            {"question_id": name, "answer": f"Teacher of {name if at % 3 else 'nobody'}"}
            for at, name in enumerate(PUPILS[:50])
        ]),
    ):  # fmt: skip
        write_lines(file, of)
    run = tmp_path / "run.json"
    made = suffice(
        "evaluate", "answers", "--dataset", "jsonl", "--path", benchmark, "--answers", given,
        "--out", run,
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    next_step = made.stderr.replace("\n", "").partition("next: suffice ")[2].split()
    assert next_step[:2] == ["evaluate", "difficulty"]
    printed = json.loads(evaluate(*next_step[2:], "--json").stdout)
    whole = printed["systems"]["mine"]["matrix"]["whole"]
    wrong = 17 + 10  # every third of fifty, and ten without an answer
    assert (whole["n"], whole["error"]["value"]) == (60, pytest.approx(wrong / 60))
    assert set(AnswerRun.load(run).question_ids) == set(PUPILS)

    held = suffice("evaluate", "difficulty", run, "--benchmark", benchmark, "--by", "retrieved")
    assert held.exit_code == 2
    assert "has no held documents" in held.stderr
    assert "make it again with: suffice evaluate answers" in _error_of(run, "version", 1, benchmark)
    assert "is a damaged run of answers" in _error_of(run, "gold", [], benchmark)
    assert "is a run of 'gate'" in _error_of(run, "task", "gate", benchmark)


def _error_of(run: Path, name: str, value: Any, benchmark: Path) -> str:
    """What is said of a run with one field changed."""
    other = run.with_name(f"{name}.json")
    changed = json.loads(run.read_text(encoding="utf-8")) | {name: value}
    other.write_text(json.dumps(changed), encoding="utf-8")
    result = suffice("evaluate", "difficulty", other, "--benchmark", benchmark)
    assert result.exit_code in (1, 2)
    return result.stderr
