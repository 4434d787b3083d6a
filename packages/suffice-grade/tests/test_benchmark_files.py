"""The loop: questions made of a corpus, what a retriever finds for them, a gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands import suffice, write_lines
from tests.small_gate import collection

from suffice.datasets.jsonl import document_record, question_record
from suffice.errors import InputError, NotReadyError
from suffice.gate.gate import Gate
from suffice.testing import sample_questions
from suffice_grade.audit import audit
from suffice_grade.benchmark_files import (
    audit_tables,
    benchmark_questions,
    benchmark_report,
    missing_documents,
)
from suffice_grade.stage_protocols import question_from_record

pytestmark = pytest.mark.usefixtures("few_trees")


def written(folder: Path, **files: list[dict[str, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, records in files.items():
        write_lines(folder / f"{name}.jsonl", records)
    return folder


DOCUMENTS = [
    {
        "doc_id": "ada",
        "title": "Ada Lovelace",
        "text": "Ada Lovelace was taught by Mary Somerville.",
    },
    {
        "doc_id": "mary",
        "title": "Mary Somerville",
        "text": "Mary Somerville was taught by John Playfair.",
    },
    {"doc_id": "aunt", "title": "An aunt", "text": "The aunt of Ada Lovelace was taught nothing."},
]
QUESTION = {
    "question": "Who taught Mary Somerville, who taught Ada Lovelace?",
    "gold": ["ada", "mary"],
    "answer": "John Playfair",
}
TWIN = {**QUESTION, "question_id": "q1#twin", "without": "mary"}


def test_a_twin_is_asked_of_a_corpus_that_lacks_a_document(tmp_path: Path) -> None:
    made = written(
        tmp_path / "made",
        documents=DOCUMENTS,
        questions=[{**QUESTION, "question_id": "q1"}],
        twins=[TWIN],
    )
    assert missing_documents(made) == {"q1#twin": "mary"}
    whole, twin = benchmark_questions(made, "bm25", 2)
    assert [hit.doc_id for hit in whole.hits] == ["ada", "mary"]
    assert [hit.doc_id for hit in twin.hits] == ["ada", "aunt"]  # the next one moves up
    assert set(twin.needed or ()) == {"ada", "mary"}
    assert "mary" not in twin.documents
    assert len(benchmark_questions(made, "bm25", 2, twins=False)) == 1


def test_a_folder_that_is_no_benchmark_names_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError) as error:
        benchmark_questions(tmp_path, "bm25", 10)
    assert "suffice grade" in error.value.hint


def test_a_retriever_that_never_finds_all_teaches_nothing(tmp_path: Path) -> None:
    made = written(
        tmp_path / "made", documents=DOCUMENTS, questions=[{**QUESTION, "question_id": "q1"}]
    )
    with pytest.raises(InputError, match="none of the 1"):
        benchmark_questions(made, "bm25", 1)


def village_benchmark(folder: Path) -> Path:
    """A benchmark of 90 questions and 20 twins."""
    documents, examples = collection()
    question_records = [question_record(one) for one in examples[:90]]
    twins = [
        {**one, "question_id": f"{one['question_id']}#twin", "without": one["gold"][0]}
        for one in question_records[:20]
    ]
    return written(
        folder / "made",
        documents=list(map(document_record, documents.values())),
        questions=question_records,
        twins=twins,
    )


def test_a_gate_is_fitted_on_questions_and_twins_from_the_command_line(tmp_path: Path) -> None:
    made = village_benchmark(tmp_path)
    words = ["fit", "--benchmark", str(made), "--k", "6", "--preset", "fast", "--json"]
    words += ["--out", str(tmp_path / "gate")]
    result = suffice(*words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["questions"] == 110
    assert (
        0
        <= Gate.load(tmp_path / "gate")
        .check("Who taught Ada?", ["Ada was taught by Mary."])
        .p_complete
        <= 1
    )


@pytest.mark.parametrize("better", [True, False])
def test_a_gate_that_is_worse_on_real_labels_is_not_written(better: bool, tmp_path: Path) -> None:
    made, out = village_benchmark(tmp_path), tmp_path / "gate"
    fitted = tmp_path / "first"
    words = ["fit", "--benchmark", str(made), "--k", "6", "--preset", "fast", "--out"]
    first = suffice(*words, fitted)
    assert "can be worse than the shipped gate; --labels FILE compares both" in first.stderr
    gates = (Gate.load(fitted), Gate.load(preset="fast"))
    lists = [(one.question, one.hits[:6]) for one in sample_questions(60)]
    p, shipped = (gate.probabilities(lists) for gate in gates)
    complete = p > shipped if better else p < shipped  # which of the two gates the labels favour
    labels = tmp_path / "labels.jsonl"
    rows = [
        {"question": question, "hits": hits, "complete": bool(yes)}
        for (question, hits), yes in zip(lists, complete)
    ]
    write_lines(labels, rows)
    words += [str(out), "--labels", str(labels)]
    result = suffice(*words)
    assert (result.exit_code, out.exists()) == ((0, True) if better else (3, False)), result.output
    says = "better: the Brier score falls by" if better else "worse: the Brier score rises by"
    assert f"on 60 labels, {says}" in result.stdout
    assert suffice(*words, "--force").exit_code == 0
    assert out.exists()
    labels.write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    few = suffice(*words)
    assert few.exit_code == 2
    assert "has 1 labels that can be used, expected at least 20" in few.stderr


def test_the_page_of_a_benchmark_shows_audit_and_questions(tmp_path: Path) -> None:
    made = written(
        tmp_path / "made", documents=DOCUMENTS, questions=[{**QUESTION, "question_id": "q1"}]
    )
    found = audit([question_from_record({**QUESTION, "question_id": "q1"})], [])
    (twice,) = (row for row in audit_tables(found)[0].rows if row[0] == "duplicates")
    assert 0 in twice
    page = benchmark_report(made, found, tmp_path / "page.html", settings={"seed": "42"}).read_text(
        encoding="utf-8"
    )
    assert "John Playfair" in page
    assert "lexical shortcut" in page
