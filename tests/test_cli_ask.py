"""`suffice ask` on a small library on disk, with and without a model."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.commands import suffice
from tests.small_world import COMPARISON, FILMS
from tests.stand_in_server import fails, serving
from typer.testing import Result

from suffice.answering.traces import read_traces
from suffice.cli.ask import _progress_text
from suffice.library import Library


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("village") / "library"
    Library.build(folder, FILMS).close()
    return folder


def run_ask(library: Path, *words: object) -> Result:
    return suffice("ask", library, COMPARISON, *words)


def test_without_a_model_the_path_of_sentences_is_shown(library: Path) -> None:
    result = run_ask(library)
    assert result.exit_code == 0, result.output
    assert "no language model" in result.stderr
    assert "1. Who is the director of the film Shadows In Paradise?" in result.stdout
    assert "[storm #0] Jerome Storm (November 11, 1890" in result.stdout
    assert "p_complete" in result.stderr
    assert "ANSWER" in result.stdout or "missing:" in result.stdout


def test_json_is_the_whole_trace(library: Path) -> None:
    result = run_ask(library, "--json")
    trace = json.loads(result.stdout)
    assert trace["model_configured"] is False
    assert trace["plan"][:2] == [
        "Who is the director of the film Shadows In Paradise?",
        "When was #1 born?",
    ]
    assert {one["doc_id"] for one in trace["citations"]} >= {"dog", "storm"}
    assert trace["action"] in ("answer", "abstain")


def test_a_dead_server_is_reported_and_the_reader_answers(library: Path) -> None:
    with serving(fails(500)) as (url, _):
        pass
    result = run_ask(library, "--model", "stand-in", "--base-url", url)
    assert result.exit_code == 0, result.output
    assert "refused" in result.stderr
    assert "no language model" not in result.stderr
    assert "Jerome Storm" in result.stdout


def test_saved_traces_are_replayed_from_the_command_line(library: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    run_ask(library, "--trace", file)
    again = suffice("ask", library, "--replay", file, "--json")
    assert again.exit_code == 0, again.output
    assert again.stdout == file.read_text(encoding="utf-8")
    assert "1 of 1 traces replayed identically" in again.stderr
    file.write_text(file.read_text(encoding="utf-8").replace("Jerome", "Jeremy"), encoding="utf-8")
    parted = suffice("ask", library, "--replay", file)
    assert parted.exit_code == 1
    assert "does not replay" in parted.stderr


def test_the_live_view_shows_the_plan_and_its_answers(library: Path, tmp_path: Path) -> None:
    run_ask(library, "--trace", tmp_path / "trace.jsonl")
    (trace,) = read_traces(tmp_path / "trace.jsonl")
    begun = replace(trace, steps=trace.steps[:1])
    assert _progress_text(begun).splitlines()[1:3] == [
        "├─ 1. Who is the director of the film Shadows In Paradise?  = Aki Kaurismäki",
        "├─ 2. When was #1 born?  = ...",
    ]
    assert "= 4 April 1957" in _progress_text(trace)
    assert "p_complete " in _progress_text(trace).splitlines()[-1]


def test_a_trace_that_cannot_be_saved_does_not_cost_the_answer(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    result = run_ask(library, "--trace", tmp_path / "t.jsonl")
    assert result.exit_code == 1
    assert "Jerome Storm" in result.stdout
    assert f"error: {tmp_path / 't.jsonl'}: No space left on device" in result.stderr


def test_how_sure_an_answer_must_be_can_be_chosen(library: Path) -> None:
    question = "Who directed Dog Law?"
    sure = suffice("ask", library, question, "--min-probability", "1")
    assert (sure.exit_code, "ABSTAIN" in sure.stdout) == (0, True)
    assert "--min-probability" in sure.stderr
    less = suffice("ask", library, question, "--min-probability", "0.5", "--json")
    assert "Storm" in json.loads(less.stdout)["answer"]
    assert suffice("ask", library, question, "--min-probability", "2").exit_code == 2
