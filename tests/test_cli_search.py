"""`suffice search --filter auto`: by the vocabulary or by a model, and relaxed filters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import suffice
from tests.stand_in_server import fails, says, serving

from suffice.library import Library
from suffice.testing import VILLAGE


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("libraries") / "village"
    Library.build(path, VILLAGE, encoder=None).close()
    return path


def found(village: Path, question: str, *options: str) -> list[str]:
    result = suffice("search", village, question, "--strict", "--json", *options)
    assert result.exit_code == 0, result.output
    return [hit["doc_id"] for hit in json.loads(result.stdout)["hits"]]


def test_auto_extracts_the_filter_from_the_question(village: Path) -> None:
    question = "What did BBC write of the engine, the river and Ada?"
    assert set(found(village, question)) >= {"ada", "babbage", "river"}
    assert set(found(village, question, "--filter", "auto")) == {"babbage", "river"}


def test_the_clock_can_be_set(village: Path) -> None:
    question = "What was written yesterday of the engine?"
    assert found(village, question, "--filter", "auto", "--today", "2023-11-02") == ["babbage"]
    result = suffice("search", village, question, "--today", "tomorrow")
    assert result.exit_code == 2
    assert "--today 2023-12-01" in result.output


def test_a_model_may_make_the_filter_and_may_fail(village: Path) -> None:
    question = "What did BBC write of the engine and of Ada?"
    with serving(says('{"source": {"$nin": ["BBC"]}}')) as (url, _):
        options = ("--filter", "auto", "--model", "stand-in", "--base-url", url)
        assert set(found(village, question, *options)) == {"ada", "byron"}
    with serving(fails(500)) as (url, _):
        options = ("--filter", "auto", "--model", "stand-in", "--base-url", url)
        assert found(village, question, *options, "--timeout-s", "1") == ["babbage"]


def test_the_extracted_filter_is_shown(village: Path) -> None:
    question = "What did BBC write of the engine in June 1990?"
    shown = suffice("search", village, question, "--filter", "auto")
    assert "filter: source is BBC" in shown.stderr
    assert "note: no document is of 1990-06-01 to 1990-06-30: left out" in shown.stderr
    read = json.loads(suffice("search", village, question, "--filter", "auto", "--json").stdout)[
        "filter"
    ]
    assert read["conditions"] == [{"field": "source", "operator": "$in", "values": ["BBC"]}]
    silent = suffice("search", village, "the engine", "--filter", "auto")
    assert "filter: none" in silent.stderr


def test_a_library_is_the_first_argument_or_an_option(village: Path) -> None:
    question = "Who wrote about engines?"
    words = ("search", "--json", "--retriever", "bm25")
    first = suffice(*words, village, question)
    assert first.exit_code == 0, first.output
    for option in ("--library", "--store"):
        assert suffice(*words, question, option, village).output == first.output


def test_an_empty_library_is_said(tmp_path: Path) -> None:
    Library.build(tmp_path / "empty", (), encoder=None).close()
    found = suffice("search", tmp_path / "empty", "Who?")
    assert "has no documents\nnext: suffice build FOLDER --out" in found.stderr


def test_hits_of_a_completed_search_bring_their_texts_to_a_check(village: Path) -> None:
    question = "Who taught Ada?"
    found = suffice("search", village, question, "--complete", "--gate", "fast", "--json")
    record = json.loads(found.stdout)
    assert all(hit["text"] for hit in record["hits"])
    words = ["check", question, "--hits", "-", "--preset", "fast", "--json"]
    checked = suffice(*words, given=found.stdout)
    assert json.loads(checked.stdout)["notes"] == []
