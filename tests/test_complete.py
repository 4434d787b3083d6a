"""`lib.complete` and `suffice search --complete`, with the gate that ships, in a village where one
page leads to the next.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.commands import suffice
from tests.corpora import documents

from suffice.answering.expand import StopReason
from suffice.gate.gate import Gate
from suffice.gate.policy import Policy
from suffice.library import Library
from suffice.types import Action

QUESTION = "Where was the mathematician who taught Mary Somerville born?"
VILLAGE = list(documents("complete"))


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("complete") / "village"
    Library.build(path, VILLAGE).close()
    return path


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate.load()


def test_one_call_holds_what_is_needed_and_no_more(village: Path, gate: Gate) -> None:
    with Library.open(village) as lib:
        found = lib.complete(QUESTION, gate)
    assert [hit.doc_id for hit in found.hits] == ["somerville", "wallace"]
    assert found.verdict.action is Action.ANSWER
    assert found.stopped is StopReason.ANSWER
    rising = [step.verdict.p_complete for step in found.trace.steps if step.verdict]
    assert rising == sorted(rising)
    assert found.trace.question.text == QUESTION


def test_names_are_kept_beside_the_links_and_follow_the_documents(
    tmp_path: Path, gate: Gate
) -> None:
    with Library.build(tmp_path / "alive", VILLAGE[:4]) as lib:
        lib.complete(QUESTION, gate)
        (kept,) = (tmp_path / "alive").glob("names-*")
        lib.add(VILLAGE[4:])
        lib.complete(QUESTION, gate)
        (now,) = (tmp_path / "alive").glob("names-*")
        assert now != kept
        (now / "manifest.json").write_text("{", encoding="utf-8")
        assert len(lib.name_links().ids) == len(VILLAGE)  # damaged: found again


# ---- the command


def test_the_command_shows_the_rounds(village: Path) -> None:
    result = suffice("search", village, QUESTION, "--complete")
    assert result.exit_code == 0, result.output
    assert "the first hit" in result.stdout
    assert "holds wallace" in result.stdout
    assert "stopped: the gate says answer" in result.stdout
    assert "ANSWER" in result.stdout
    assert result.stdout.rstrip().endswith("William Wallace")


def test_the_command_as_json(village: Path) -> None:
    result = suffice("search", village, QUESTION, "--complete", "--k", "4", "--json")
    printed = json.loads(result.stdout)
    assert printed["stopped"]["name"] == "answer"
    assert [hit["title"] for hit in printed["hits"]] == ["Mary Somerville", "William Wallace"]
    assert [one["held"] for one in printed["rounds"]] == [["somerville"], ["somerville", "wallace"]]
    assert (
        printed["rounds"][0]["p_complete"]
        < printed["rounds"][-1]["p_complete"]
        == printed["verdict"]["estimate"]["p_complete"]
    )


def test_markup_in_a_title_stays_text(village: Path) -> None:
    result = suffice("search", village, "leek soup", "--complete", "--k", "1")
    assert "Leek [b]soup" in result.stdout


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same village, where the page on Wallace is from another source."""
    path = tmp_path_factory.mktemp("complete") / "archive"
    sources = {"wallace": "Gazette"}
    documents = [replace(one, source=sources.get(one.doc_id, "Parish")) for one in VILLAGE]
    Library.build(path, documents).close()
    return path


@pytest.mark.parametrize("retriever", ["bridge", "bm25"])
def test_a_strict_filter_holds_for_queries_and_links(
    archive: Path, gate: Gate, retriever: str
) -> None:
    with Library.open(archive) as lib:
        found = lib.complete(
            QUESTION, gate, retriever=retriever, filter={"source": "Parish"}, strict=True
        )
        sources = {one.source for one in lib.get([hit.doc_id for hit in found.hits]) if one}
    assert sources == {"Parish"}


def test_a_filter_that_is_passed_is_strict_and_a_guess_is_soft(archive: Path, gate: Gate) -> None:
    """As in `filtered` and `ask`: no document outside your own filter is used."""
    question = f"According to Parish: {QUESTION}"
    with Library.open(archive) as lib:
        own = lib.complete(question, gate, filter={"source": "Parish"}, retriever="bm25")
        guess = lib.complete(question, gate, filter="auto", retriever="bm25")
    assert "wallace" not in {hit.doc_id for hit in own.hits}
    assert "wallace" in {hit.doc_id for hit in guess.hits}


@pytest.mark.parametrize(("options", "held"), [([], False), (["--no-strict"], True)])
def test_the_command_is_strict_unless_told(archive: Path, options: list[str], held: bool) -> None:
    wanted = ["--complete", "--retriever", "bm25", "--json", *options]
    wanted += ["--filter", '{"source": "Parish"}']
    found = json.loads(suffice("search", archive, QUESTION, *wanted).stdout)
    assert ("wallace" in {hit["doc_id"] for hit in found["hits"]}) is held


def test_a_soft_filter_hides_nothing_that_is_needed(archive: Path, gate: Gate) -> None:
    wants_all = replace(gate, policy=Policy(answer_at=0.9))
    with Library.open(archive) as lib:
        found = lib.complete(QUESTION, wants_all, filter={"source": "Parish"}, strict=False)
        nothing = lib.complete(QUESTION, gate, filter={})
    assert {"somerville", "wallace"} <= {hit.doc_id for hit in found.hits}
    assert [hit.doc_id for hit in nothing.hits] == ["somerville", "wallace"]
