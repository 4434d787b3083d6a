"""`suffice improve`: the whole loop, resuming, what runs again, and corpora that allow no questions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands import as_json, suffice, write_lines
from tests.films import films

from suffice.cli.demo import CORPUS
from suffice.datasets import load
from suffice.datasets.labels import read_questions
from suffice.errors import InputError
from suffice.evaluation import adaptation
from suffice.evaluation.gate_runs import GateRun
from suffice.gate import training
from suffice.gate.gate import Gate
from suffice.gate.gate_ref import gate_identity
from suffice.gate.training import LabelledQuestion
from suffice.library import Library
from suffice.storage import sha256_of
from suffice.types import Document
from suffice_grade.improve import STAGES, _Example, _split


@pytest.fixture(scope="module", autouse=True)
def quick_fits() -> Iterator[None]:
    """Its trees take seconds for each of the sixteen gates of a cross-validation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "_fit_local_model", lambda *_: None)
        patch.setattr(training, "PENALTIES", (300.0, 10.0))
        patch.setattr(adaptation, "_curve_sizes", lambda most: [most])
        yield


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Films, directors, fathers and towns: rules make 160 questions of them."""
    path = tmp_path_factory.mktemp("films") / "library"
    Library.build(path, films(), encoder=None).close()
    return path


@pytest.fixture(scope="module")
def looped(library: Path) -> tuple[Path, Any]:
    out = library.parent / "improved"
    return out, as_json(improve(library, out, "--questions", 60, "--json"))


PAGES = 20  # of the handbook: too few for made questions to measure a gate


def handbook_pages() -> list[Document]:
    return list(load("jsonl", corpus=CORPUS).documents())[:PAGES]


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    """A part of a company's handbook, which allows hardly any questions."""
    Library.build(tmp_path / "library", handbook_pages(), encoder=None).close()
    return tmp_path / "library"


def improve(library: Path, out: Path, *words: object) -> Any:
    return suffice("improve", library, "--out", out, "--preset", "fast", "--k", 4, *words)


def stages(result: Any) -> dict[str, str]:
    return dict(as_json(result)["stages"])


def test_the_loop_ends_with_a_gate_and_a_report(looped: tuple[Path, Any]) -> None:
    out, found = looped
    assert found["stages"] == dict.fromkeys(STAGES, "done")
    assert found["questions"]["made"] > 100
    Gate.load(out / "gate")
    page = (out / "report.html").read_text(encoding="utf-8")
    for heading in (
        "The gate on made questions",
        "misses evidence in its first 4",
        "What to do next",
    ):
        assert heading in page
    assert "--ask questions.txt" in found["next"][0]["command"]


def test_made_questions_measure_the_gate_and_never_change_it(looped: tuple[Path, Any]) -> None:
    out, found = looped
    assert (found["gate"]["source"], found["gate"]["adapted"]) == (None, False)
    assert gate_identity(Gate.load(out / "gate")) == gate_identity(Gate.load(preset="fast"))
    why = "The shipped gate stays: fewer than 20 labels, and made questions are not your users'."
    assert why in found["summary"]
    assert found["next"][1]["what"] == "For now, use the gate as it ships."
    assert len(GateRun.load(out / "stages" / "evaluation" / "made-before.json")) >= 60
    assert not (out / "stages" / "evaluation" / "made-after.json").exists()


def test_nothing_is_tested_on_what_was_learned_from() -> None:
    texts = [f"Where was number {at} born?" for at in range(120)]
    examples = [_Example(str(at), LabelledQuestion(text, [])) for at, text in enumerate(texts * 2)]
    learn, test = _split(examples)
    assert {x.labelled.question for x in learn}.isdisjoint(x.labelled.question for x in test)
    assert 40 < len(test) < 120  # a third of 240, twins together
    assert _split(examples[:59])[1] == []


def test_a_second_run_does_nothing_and_a_damaged_stage_is_made_again(
    library: Path, looped: tuple[Path, Any]
) -> None:
    out, _ = looped
    again = improve(library, out, "--questions", 60)
    assert again.exit_code == 0, again.output
    assert "questions: up to date" in again.stderr
    assert "done" not in again.stderr
    assert len(again.stdout.splitlines()) < 12
    (out / "stages" / "difficulty" / "result.json").write_text('{"half', encoding="utf-8")
    (out / "report.html").unlink()
    found = stages(improve(library, out, "--questions", 60, "--json"))
    assert [name for name in STAGES if found[name] == "done"] == ["difficulty", "report"]


def test_a_damaged_gate_is_named_and_made_again_once_it_is_moved(
    library: Path, looped: tuple[Path, Any]
) -> None:
    out, _ = looped
    (out / "gate" / "manifest.json").write_text('{"half', encoding="utf-8")
    refused = improve(library, out, "--questions", 60)
    assert refused.exit_code == 2
    assert f"cannot read {out / 'gate' / 'manifest.json'}: " in refused.stderr
    assert f"mv {out / 'gate'} {out / 'gate-damaged'}" in refused.stderr
    (out / "gate").rename(out / "gate-damaged")
    found = stages(improve(library, out, "--questions", 60, "--json"))
    assert found["gate"] == "done"
    Gate.load(out / "gate")


def test_an_interruption_loses_only_the_stage_that_was_running(
    library: Path, looped: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    out, _ = looped
    with monkeypatch.context() as patch:
        patch.setattr(GateRun, "save", stop)
        stopped = improve(library, out, "--questions", 60, "--stage", "evaluation", "--restart")
    assert stopped.exit_code == 130
    assert not (out / "stages" / "evaluation").exists()
    found = stages(improve(library, out, "--questions", 60, "--json"))
    assert [name for name in STAGES if found[name] == "done"] == ["evaluation"]


def test_one_stage_names_the_one_that_is_missing(library: Path, tmp_path: Path) -> None:
    early = improve(library, tmp_path, "--stage", "evaluation")
    assert early.exit_code == 2
    assert "needs the stage 'questions'" in early.stderr
    assert "--stage questions" in early.stderr
    alone = as_json(improve(library, tmp_path, "--stage", "questions", "--json"))
    assert alone["stages"] == {"questions": "done"}
    assert alone["report"] is None
    again = improve(library, tmp_path, "--stage", "questions", "--restart", "--json")
    assert stages(again) == {"questions": "done"}


def test_with_too_few_questions_it_asks_for_labels_and_adapts_to_them(
    handbook: Path, tmp_path: Path
) -> None:
    out, asked = tmp_path / "improved", tmp_path / "asked.txt"
    alone = as_json(improve(handbook, out, "--json"))
    assert (alone["gate"]["source"], alone["gate"]["adapted"]) == (None, False)
    assert "The gate learns only from your labels" in alone["next"][0]["what"]
    titles = [one.title for one in handbook_pages()]
    asked.write_text("\n".join(f"What is written about {one}?" for one in titles), encoding="utf-8")
    with_list = improve(handbook, out, "--ask", asked)
    assert "suffice serve --label" in with_list.stderr
    to_label = out / "to-label.jsonl"
    rows = [json.loads(line) for line in to_label.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == len(titles)
    assert all(row["complete"] is None and row["hits"][0]["text"] for row in rows)
    for at, row in enumerate(rows):
        row["complete"] = at % 2 == 0
    labels = "".join(json.dumps(row) + "\n" for row in rows)
    (out / "labels.jsonl").write_text(labels + '{"question": "half a li', encoding="utf-8")
    labelled = as_json(improve(handbook, out, "--ask", asked, "--json"))
    assert labelled["stages"]["questions"] == labelled["stages"]["labels"] == "up to date"
    assert labelled["stages"]["gate"] == labelled["stages"]["report"] == "done"
    gate = labelled["gate"]
    assert (gate["source"], gate["labels"], gate["unreadable"]) == ("labels", len(rows), 1)
    assert "The gate on your labels" in (out / "report.html").read_text(encoding="utf-8")


def test_equal_labels_leave_the_gate_as_it_is(handbook: Path, tmp_path: Path) -> None:
    out = tmp_path / "improved"
    out.mkdir()
    hits = [{"id": "a", "text": "The office is closed on Mondays."}]
    rows = [
        {"question": f"Who is number {at}?", "hits": hits, "complete": False} for at in range(20)
    ]
    write_lines(out / "labels.jsonl", rows)
    found = as_json(improve(handbook, out, "--stage", "gate", "--json"))
    assert (found["gate"]["source"], found["gate"]["adapted"]) == (None, False)
    assert "The shipped gate stays: all 20 labels say the same" in " ".join(found["summary"])


def test_labels_in_the_list_are_never_overwritten(handbook: Path, tmp_path: Path) -> None:
    out, asked = tmp_path / "improved", tmp_path / "asked.txt"
    asked.write_text("Who signs for trips?\n", encoding="utf-8")
    assert improve(handbook, out, "--ask", asked, "--stage", "labels").exit_code == 0
    to_label = out / "to-label.jsonl"
    to_label.write_text(to_label.read_text().replace("null}", "true}"), encoding="utf-8")
    before = sha256_of(to_label)
    asked.write_text("Who signs for trips?\nWho founded it?\n", encoding="utf-8")
    refused = improve(handbook, out, "--ask", asked, "--stage", "labels")
    assert refused.exit_code == 2
    assert "has labels" in refused.stderr
    assert sha256_of(to_label) == before


def test_a_folder_of_documents_is_built_and_followed(tmp_path: Path) -> None:
    notes, out = tmp_path / "notes", tmp_path / "improved"
    notes.mkdir()
    for name in ("lamp", "boat"):
        (notes / f"{name}.md").write_text(f"# {name}\n\nThe {name} is red.\n", encoding="utf-8")
    first = improve(notes, out, "--stage", "questions")
    assert "library: 2 documents" in first.stderr, first.output
    (notes / "boat.md").write_text("# boat\n\nThe boat is blue now.\n", encoding="utf-8")
    assert "questions: done" in improve(notes, out, "--stage", "questions").stderr
    inside = improve(notes, notes / "improved")
    assert inside.exit_code == 2
    assert "inside" in inside.stderr


def test_a_folder_of_another_kind_is_left_alone(library: Path, tmp_path: Path) -> None:
    notes, out = tmp_path / "notes", tmp_path / "work"
    notes.mkdir()
    (notes / "lamp.md").write_text("# lamp\n\nThe lamp is red.\n", encoding="utf-8")
    Library.build(out / "library", handbook_pages(), encoder=None).close()
    for source in (library, notes):
        refused = improve(source, out)
        assert refused.exit_code == 2
        assert "was not made by suffice improve" in refused.stderr
        assert "suffice improve LIBRARY --out DIR" in refused.stderr
    with Library.open(out / "library") as kept:
        assert len(kept) == PAGES


def test_questions_are_read_from_lines_logs_and_traces(tmp_path: Path) -> None:
    file = tmp_path / "asked"
    file.write_text("Who?\n\nWho?\n  Where?\n", encoding="utf-8")
    assert read_questions(file) == ["Who?", "Where?"]
    file.write_text(
        '{"question": "Who?", "hits": []}\n{"input": "Where?"}\n{"ques', encoding="utf-8"
    )
    assert read_questions(file) == ["Who?", "Where?"]
    file.write_text("\n\n", encoding="utf-8")
    with pytest.raises(InputError, match="has no questions"):
        read_questions(file)
