"""`suffice ask` on a small library on disk, with and without a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.small_world import BRIDGE, FILMS
from tests.stand_in_server import fails, serving
from typer.testing import CliRunner, Result

from suffice.assess.gate import Gate
from suffice.cli.app import app
from suffice.library import Library
from suffice.reason.tracing import dumped, read_traces, replay


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("village") / "library"
    Library.build(folder, FILMS).close()
    return folder


def asked(library: Path, *words: object) -> Result:
    return CliRunner().invoke(app, ["ask", str(library), BRIDGE, *map(str, words)])


def test_without_a_model_the_path_of_sentences_is_shown_and_that_is_said(library: Path) -> None:
    result = asked(library)
    assert result.exit_code == 0, result.output
    assert "no language model is configured" in result.stderr
    assert "1. Who is the mother of Lothair II?" in result.stdout
    assert "Ermengarde of Tours" in result.stdout
    assert "p_complete" in result.stderr
    assert "ANSWER" in result.stdout or "missing:" in result.stdout


def test_json_is_the_whole_journey(library: Path) -> None:
    result = asked(library, "--json")
    told = json.loads(result.stdout)
    assert told["model_configured"] is False
    assert told["plan"] == ["Who is the mother of Lothair II?", "When did #1 die?"]
    assert {one["doc_id"] for one in told["citations"]} >= {"lothair", "ermengarde"}
    assert told["action"] in ("answer", "abstain")


def test_a_kept_journey_can_be_walked_again(library: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    assert asked(library, "--trace", file).exit_code == 0
    (kept,) = read_traces(file)
    with Library.open(library) as lib:
        assert dumped(replay(kept, lib, Gate.load())) + "\n" == file.read_text(encoding="utf-8")


def test_a_model_that_fails_is_told_of(library: Path) -> None:
    with serving(fails(500)) as (url, _):
        result = asked(library, "--model", "stand-in", "--base-url", url, "--seconds", 2)
    assert result.exit_code == 0, result.output
    assert "note: the model did not answer" in result.stderr


@pytest.mark.parametrize("words", [["--exemplars", "nowhere.jsonl"], ["--gate", "nowhere"]])
def test_wrong_paths_are_errors_with_a_hint(library: Path, words: list[str]) -> None:
    result = asked(library, *words)
    assert result.exit_code == 2
    assert "error:" in result.stderr
