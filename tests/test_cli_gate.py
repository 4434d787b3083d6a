"""`suffice check`, `suffice fit` and `suffice evaluate gate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands import as_json, suffice, typed, write_lines
from tests.small_gate import fresh, labelled, shown, small_gate
from typer.testing import Result

from suffice.library import Library
from suffice.types import Document

pytestmark = pytest.mark.usefixtures("few_trees")

QUESTION = "Who taught the teacher of Ada Lovelace?"
HITS = [
    {
        "doc_id": "ada",
        "title": "Ada Lovelace",
        "text": "Ada Lovelace was taught by Mary Somerville.",
        "score": 7.5,
    },
    {
        "doc_id": "mary",
        "title": "Mary Somerville",
        "text": "Mary Somerville was taught by John Playfair.",
        "score": 5.0,
    },
]


def lines(result: Result) -> list[Any]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gates") / "small"
    small_gate().save(folder)
    return folder


@pytest.fixture
def hits(tmp_path: Path) -> Path:
    (tmp_path / "hits.json").write_text(json.dumps(HITS), encoding="utf-8")
    return tmp_path / "hits.json"


# ---- check


def test_one_question_gets_a_verdict_in_words(gate: Path, hits: Path) -> None:
    result = suffice("check", QUESTION, "--hits", hits, "--gate", gate)
    assert result.exit_code == 0, result.output
    assert "p_complete 0." in result.stdout
    assert result.stdout.split()[0] in ("ANSWER", "EXPAND", "ABSTAIN")
    assert "next: " in result.stderr


def test_one_question_gets_a_verdict_as_json(gate: Path, hits: Path) -> None:
    found = as_json(suffice("check", QUESTION, "--hits", hits, "--gate", gate, "--json"))
    assert found["action"] in ("answer", "expand", "abstain")
    assert 0 <= found["low"] <= found["p_complete"] <= found["high"] <= 1
    assert {"question", "missing", "next_queries", "reasons"} <= set(found)


def test_a_library_is_searched_or_has_the_texts_of_ids(gate: Path, tmp_path: Path) -> None:
    folder, question = tmp_path / "library", "Who taught Mary Somerville?"
    documents = [Document(one["doc_id"], one["text"], title=one["title"]) for one in HITS]  # type: ignore[arg-type]
    Library.build(folder, documents, encoder=None).close()
    options = ("--gate", gate, "--json")
    searched = as_json(suffice("check", question, "--library", folder, *options))
    found = suffice("search", folder, question, "--json").stdout
    assert searched == as_json(suffice("check", question, "--hits", "-", *options, given=found))
    ids = json.dumps([*({"id": one["doc_id"]} for one in HITS), {"id": "nowhere"}, "a text"])
    given = ("check", QUESTION, "--hits", "-")
    named = as_json(suffice(*given, "--library", folder, *options, given=ids))
    bare = as_json(suffice(*given, *options, given=ids))
    assert named["p_complete"] != bare["p_complete"]
    nameless = suffice("check", "--library", folder)
    assert (nameless.exit_code, "needs the question" in nameless.stderr) == (2, True)


def test_a_batch_is_one_verdict_a_line(gate: Path, tmp_path: Path) -> None:
    records = [
        {"question_id": f"q{at}", "question": one.question, "hits": shown(one)}
        for at, one in enumerate(fresh()[:20])
    ]
    text = "".join(json.dumps(one) + "\n" for one in records)
    (tmp_path / "batch.jsonl").write_text(text, encoding="utf-8")
    found = lines(suffice("check", "--batch", tmp_path / "batch.jsonl", "--gate", gate, "--json"))
    assert [one["question_id"] for one in found] == [f"q{at}" for at in range(20)]
    assert lines(suffice("check", "--batch", "-", "--gate", gate, "--json", given=text)) == found
    in_words = suffice("check", "--batch", tmp_path / "batch.jsonl", "--gate", gate)
    assert len(in_words.stdout.splitlines()) == 20
    assert "20 questions:" in in_words.stderr


def test_a_trec_run_is_checked_with_its_topics_and_corpus(gate: Path, tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text("q1 Q0 ada 1 7.5 x\nq1 Q0 mary 2 5.0 x\n", encoding="utf-8")
    (tmp_path / "topics.tsv").write_text(f"q1\t{QUESTION}\n", encoding="utf-8")
    documents: list[dict[str, Any]] = [
        {name: one[name] for name in ("doc_id", "title", "text")} for one in HITS
    ]
    write_lines(tmp_path / "corpus.jsonl", documents)
    files = (
        "--run",
        tmp_path / "run.txt",
        "--queries",
        tmp_path / "topics.tsv",
        "--corpus",
        tmp_path / "corpus.jsonl",
    )
    (found,) = lines(suffice("check", *files, "--gate", gate, "--json"))
    (tmp_path / "hits.json").write_text(json.dumps(HITS), encoding="utf-8")
    alone = as_json(
        suffice("check", QUESTION, "--hits", tmp_path / "hits.json", "--gate", gate, "--json")
    )
    assert found == {"question_id": "q1", **alone}
    with Library.build(tmp_path / "library", [Document(**one) for one in documents], encoder=None):
        pass
    stored = suffice(
        "check", *files[:4], "--library", tmp_path / "library", "--gate", gate, "--json"
    )
    assert lines(stored) == [found]
    assert suffice("check", "--run", tmp_path / "run.txt", "--gate", gate).exit_code == 2


def test_bad_lines_of_a_batch_stop_it_or_are_skipped(gate: Path, tmp_path: Path) -> None:
    good = json.dumps({"question": QUESTION, "hits": HITS})
    odd = json.dumps({"question": QUESTION, "hits": [{"text": "x", "score": "high"}]})
    batch = tmp_path / "batch.jsonl"
    batch.write_text(f"{good}\n{odd}\n{{}}\nno json\n{good}\n", encoding="utf-8")
    words = ("check", "--batch", batch, "--gate", gate, "--json")
    stopped = suffice(*words)
    assert stopped.exit_code == 2
    assert "batch.jsonl:2: hit 1: its score is of type str" in stopped.stderr
    kept = suffice(*words, "--skip-bad")
    assert len(lines(kept)) == 2
    assert "skipped 3 bad records" in kept.stderr


# ---- fit


def test_a_missing_fit_extra_fails_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suffice.evaluation.gate_evaluation.util.find_spec", lambda name: None)
    one = {"doc_id": "a", "text": "Ada was taught by Mary."}
    (tmp_path / "documents.jsonl").write_text(json.dumps(one), encoding="utf-8")
    record = {"question": "Who taught Ada?", "gold": ["a"], "answer": "Mary"}
    (tmp_path / "examples.jsonl").write_text(json.dumps(record), encoding="utf-8")
    for words in (
        ["fit", "--dataset", "musique", "--out", tmp_path],
        ["evaluate", "gate", "--collection", "controlled", "--gate", "fitted"],
        [
            "evaluate",
            "answers",
            "--dataset",
            "jsonl",
            "--path",
            tmp_path,
            "--encoder",
            "never-opened",
            "--gate",
            "fitted",
        ],
    ):
        result = suffice(*words)
        assert result.exit_code == 2
        assert "pip install 'suffice[fit]'" in result.stderr


def test_a_gate_is_fitted_from_examples_and_then_evaluated(tmp_path: Path) -> None:
    records = [
        {
            "question": one.question,
            "gold": sorted(one.needed or ()),
            "hits": shown(one),
            "kind": one.kind,
        }
        for one in labelled()[:120]
    ]
    write_lines(tmp_path / "examples.jsonl", records)
    made = typed(
        f"fit --examples {tmp_path}/examples.jsonl --out {tmp_path}/gate --k 6 --policy cost "
        "--preset fast --json"
    )
    assert as_json(made)["questions"] == 120
    evaluated = suffice(
        "evaluate", "gate", "--collection", "controlled", "--limit", 60, "--k", 6, "--gate", tmp_path / "gate",
        "--no-baselines", "--json", "--out", tmp_path / "run.json",
    )  # fmt: skip
    found = as_json(evaluated)
    assert {"n", "positive_rate", "auroc", "ap", "brier", "ece", "aurc", "risk", "coverage"} <= set(
        found
    )
    assert (found["n"], found["gate"]) == (60, str(tmp_path / "gate"))
    assert (tmp_path / "run.json").is_file()
