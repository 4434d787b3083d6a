"""Measuring the loop beside readers that look once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.small_world import BRIDGE, COMPARISON, FILMS, Wants
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.datasets import read
from suffice.datasets.dataset import Dataset
from suffice.errors import InputError
from suffice.evaluate.asking import SYSTEMS, asking_table, chosen_examples, compare_asking, shelved


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The village in 2WikiMultiHopQA's own layout."""
    folder = tmp_path_factory.mktemp("2wiki")
    told = [(BRIDGE, "compositional", "20 March 851", ["Lothair II", "Ermengarde of Tours"])]
    told.append((COMPARISON, "comparison", "Dog Law", ["Dog Law", "Jerome Storm", "Shadows in Paradise", "Aki Kaurismäki"]))
    questions = [
        {
            "_id": f"q{at}",
            "question": text,
            "type": kind,
            "answer": answer,
            "supporting_facts": [[title, 0] for title in titles],
        }
        | {"context": [[one.title, [one.text]] for one in FILMS], "evidences": []}
        for at, (text, kind, answer, titles) in enumerate(told)
    ]
    (folder / "2wikimultihopqa.json").write_text(json.dumps(questions), encoding="utf-8")
    corpus = [{"title": one.title, "text": one.text} for one in FILMS]
    (folder / "2wikimultihopqa_corpus.json").write_text(json.dumps(corpus), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def village(folder: Path) -> Dataset:
    return read("2wikimultihopqa", folder)


def test_the_loop_walks_where_one_look_does_not_reach(village: Dataset) -> None:
    examples = chosen_examples(village, limit=None)
    found = compare_asking(examples, shelved(village, retriever="bm25"), Wants(), systems=SYSTEMS)
    table = asking_table("village", examples, found)
    f1 = {row[0]: row[3].value for row in table.rows}  # type: ignore[union-attr]
    assert f1["ask"] == 1.0
    assert f1["single passage"] < 1.0
    assert len(table.rows) == len(SYSTEMS)


def test_halves_share_no_question_and_the_draw_is_the_same_again(village: Dataset) -> None:
    even, odd = (chosen_examples(village, limit=None, part=part) for part in ("even", "odd"))
    assert {one.question.text for one in even}.isdisjoint(one.question.text for one in odd)
    assert chosen_examples(village, limit=1) == chosen_examples(village, limit=1)
    with pytest.raises(InputError, match="part"):
        chosen_examples(village, limit=None, part="third")


def test_an_unknown_system_is_refused_with_the_nearest(village: Dataset) -> None:
    with pytest.raises(InputError) as caught:
        compare_asking([], shelved(village, retriever="bm25"), Wants(), systems=["asks"])
    assert "ask" in caught.value.hint


def test_the_command_prints_a_table_for_all_and_for_each_kind(folder: Path) -> None:
    words = ["evaluate", "asking", "--dataset", "2wikimultihopqa", "--path", str(folder), "--retriever", "bm25", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    tables = json.loads(result.stdout)
    assert len(tables) == 3
    assert "of these 2 questions" in result.stderr
