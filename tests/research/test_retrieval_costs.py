"""What retrievers cost, measured in processes of their own, and systems that name their encoder."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.commands import suffice
from typer.testing import Result

from suffice.datasets import load
from suffice.errors import EngineError, InputError
from suffice.evaluation.retrieval import RetrievalSettings, compare_retrievers
from suffice.evaluation.significance import Interval
from suffice.library import Library
from suffice.registry import ENCODERS
from suffice.retrieval.builtin import bm25
from suffice_research import retrieval_costs
from suffice_research.retrieval_costs import (
    CostTask,
    latency_quantile,
    measure_cost,
)

DOCUMENTS = [
    {"doc_id": "ada", "title": "Ada", "text": "Ada was taught by Mary Somerville."},
    {"doc_id": "mary", "title": "Mary Somerville", "text": "Mary was taught by John Playfair."},
    {"doc_id": "soup", "title": "Soup", "text": "Leek soup is made of leeks."},
]
QUESTIONS = [
    {"question_id": "q1", "question": "Who taught Ada?", "gold": ["ada"]},
    {"question_id": "q2", "question": "Who taught Mary Somerville?", "gold": ["mary", "ada"]},
]


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("costs")
    for name, records in (("documents", DOCUMENTS), ("questions", QUESTIONS)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return folder


def evaluate(village: Path, *words: object) -> Result:
    return suffice("evaluate", "retrieval", "--dataset", "jsonl", "--path", village, *words)


def costs(village: Path, *words: object) -> Result:
    return suffice("evaluate", "costs", "--dataset", "jsonl", "--path", village, *words)


def test_the_command_measures_what_a_system_finds_and_costs(village: Path, tmp_path: Path) -> None:
    picture, checkpoint = tmp_path / "costs.svg", tmp_path / "blocks"
    words = ("--retriever", "bm25,all", "--k", "2", "--checkpoint", checkpoint)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retrieval_costs, "ALL_SYSTEMS", ("bm25", "dense:all-mpnet-base-v2"))
        result = costs(village, *words, "--json", "--plot", picture)
    assert result.exit_code == 0, result.output
    assert not checkpoint.exists()  # nothing is left to resume
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
    summary = json.loads(result.stdout)
    assert summary["retrievers"]["bm25"]["recall@2"]["value"] == 1.0
    assert summary["costs"]["bm25"]["index_s"] > 0
    assert "no encoder is named" in summary["not_run"]["dense:all-mpnet-base-v2"]


def test_a_process_that_dies_is_named() -> None:
    task = CostTask("crash", bm25, partial(os._exit, 9), (), ("a question",), max)
    with pytest.raises(EngineError, match="crash: its process ended with code 9"):
        measure_cost(task)


def test_what_cannot_travel_to_another_process_is_refused() -> None:
    with pytest.raises(InputError, match="mine cannot be sent to another process"):
        measure_cost(CostTask("mine", lambda store: bm25(store), None, (), ("a",), max))


class Letters:
    """A vector of how often each letter occurs."""

    name, dimension = "letters", 26

    def encode(self, texts: Sequence[str], *, query: bool = False) -> np.ndarray:
        counts = [[text.lower().count(chr(97 + at)) for at in range(26)] for text in texts]
        return np.array(counts, np.float32).reshape(len(texts), 26)


def test_systems_of_several_encoders_stand_in_one_run(
    village: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENCODERS._factories, "letters", Letters)
    monkeypatch.setitem(ENCODERS._factories, "more-letters", Letters)
    data = load("jsonl", village)
    names = ("dense:letters", "bm25", "dense", "dense:more-letters")
    run = compare_retrievers(data, RetrievalSettings(names, (2,), encoder="more-letters"))
    assert run.names == ("dense:letters", "bm25", "dense")  # the last is dense under another name
    assert run.system("dense").ranks == run.system("dense:letters").ranks
    assert set(run.timings) == set(run.names)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("dense:", "'dense:' names no encoder"),
        ("dense:leters", "no encoder is named 'leters'"),
        ("bm25:letters", "bm25:letters: bm25 takes no encoder"),
    ],
)
def test_a_wrong_system_fails_before_the_work(village: Path, name: str, why: str) -> None:
    begun: list[str] = []
    with pytest.raises(InputError, match=why):
        compare_retrievers(
            load("jsonl", village),
            RetrievalSettings(("bm25", name)),
            progress=lambda stage, done, total: begun.append(stage),
        )
    assert begun == []


def test_a_quantile_has_an_interval_where_there_are_enough_questions() -> None:
    times = [float(at) for at in range(1000)]
    assert latency_quantile(times, 0.5) == Interval(499.5, 469.0, 531.0)  # binomial: 469 to 531
    assert latency_quantile(times, 0.95).high == 964.0
    assert latency_quantile([3.0, 1.0, 2.0], 0.95) == Interval(2.9)
    assert latency_quantile([], 0.5) == Interval(None)


def test_a_library_is_searched_by_its_own_vectors(village: Path, tmp_path: Path) -> None:
    def run(name: str, retrievers: str) -> Result:
        library = str(tmp_path / name)
        return evaluate(village, "--library", library, "--json", "--retriever", retrievers)

    documents = list(load("jsonl", village).documents())
    Library.build(tmp_path / "words", documents, encoder=None).close()
    Library.build(tmp_path / "vectors", documents, encoder="wordllama").close()
    Library.build(tmp_path / "empty", [], encoder=None).close()
    needs = run("words", "bm25,dense")
    assert (needs.exit_code, "dense needs vectors" in needs.output) == (2, True)
    other = run("vectors", "dense:bge-small-en-v1.5")
    assert (other.exit_code, "a library has its own vectors" in other.output) == (2, True)
    every = json.loads(run("vectors", "bm25,dense").stdout)
    assert every["settings"]["encoder"] == "wordllama"
    assert json.loads(run("empty", "bm25").stdout)["settings"]["documents"] == 0
