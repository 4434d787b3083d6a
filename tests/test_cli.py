"""The command line: help, build, search, evaluate, errors and exit codes."""

from __future__ import annotations

import errno
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.commands import as_json, suffice, typed, write_lines
from typer.testing import CliRunner

from suffice.cli import app as cli_app
from suffice.cli import output
from suffice.cli.app import app
from suffice.errors import NotReadyError
from suffice.evaluation.report import Table
from suffice.evaluation.significance import Interval
from suffice.gate.gate import SHIPPED_MODELS
from suffice.registry import COMMANDS

DOCUMENTS = [
    {
        "doc_id": "ada",
        "title": "Ada Lovelace",
        "text": "Ada Lovelace was taught by Mary Somerville.",
        "source": "The Post",
    },
    {
        "doc_id": "mary",
        "title": "Mary Somerville",
        "text": "Mary Somerville was taught by John Playfair.",
        "source": "The Mail",
    },
    {
        "doc_id": "john",
        "title": "John Playfair",
        "text": "John Playfair was a geologist.",
        "source": "The Post",
    },
    {"doc_id": "cheese", "title": "Cheese", "text": "Cheese is made of milk.", "category": "food"},
]
EXAMPLES = [
    {
        "question_id": "q1",
        "question": "Who taught the teacher of Ada Lovelace?",
        "gold": ["ada", "mary"],
        "kind": "bridge",
    },
    {
        "question_id": "q2",
        "question": "What is cheese made of?",
        "gold": ["cheese"],
        "kind": "single",
    },
]


@pytest.fixture
def village(tmp_path: Path) -> Path:
    for name, records in (("documents.jsonl", DOCUMENTS), ("examples.jsonl", EXAMPLES)):
        write_lines(tmp_path / name, records)
    return tmp_path


def every_command(command: Any, name: str = "suffice") -> Iterator[tuple[str, Any]]:
    yield name, command
    for child, one in getattr(command, "commands", {}).items():
        yield from every_command(one, f"{name} {child}")


def test_every_help_ends_with_an_example_that_the_command_takes() -> None:
    top = typer.main.get_command(app)
    commands = dict(every_command(top))
    assert sorted(commands) == sorted(cli_app.EXAMPLES)
    for name, command in commands.items():
        help_text = suffice(*name.split()[1:], "--help").stdout
        assert f"  Example:\n    {cli_app.EXAMPLES[name]}" in help_text, name
        assert cli_app.EXAMPLES[name].startswith(name)
        if not getattr(command, "commands", {}):
            words = shlex.split(cli_app.EXAMPLES[name])[len(name.split()) :]
            command.make_context(name, words)  # an option that is not there is an error here


def test_a_command_of_a_missing_package_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(COMMANDS, "names", list)
    with pytest.raises(NotReadyError, match="`suffice evaluate answers` is part of") as caught:
        cli_app._plugin("evaluate.answers")
    assert caught.value.hint.endswith("pip install ./research")
    group = typer.Typer()
    group.command(context_settings=cli_app.ANY_WORDS)(cli_app._failing(caught.value))
    result = CliRunner().invoke(group, ["--dataset", "jsonl", "word"])
    assert result.exit_code == caught.value.exit_code
    assert "pip install ./research" in result.stderr


def test_the_version_is_the_package_version() -> None:
    from importlib.metadata import version

    assert suffice("--version").stdout.strip() == version("suffice")


def test_help_needs_no_heavy_import() -> None:
    code = (
        "import sys, suffice.cli.app; print([m for m in ('numpy', 'scipy', 'sklearn', "
        "'bm25s', 'tantivy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_doctor_finds_what_is_installed() -> None:
    findings = as_json(suffice("doctor", "--json"))
    assert findings["ready"] is True
    assert {"numpy", "extra report", "package suffice-grade"} <= {
        one["name"] for one in findings["parts"]
    }
    (gate,) = [one for one in findings["parts"] if one["name"] == "gate, preset fast"]
    assert (gate["found"], gate["problem"]) == ("ships with suffice", None)
    assert "encoder wordllama" in {one["name"] for one in findings["parts"] if one["found"]}


def test_the_doctor_loads_what_it_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gate-fast", "gate-standard"):
        shutil.copytree(SHIPPED_MODELS / name, tmp_path / name)
    model = tmp_path / "gate-fast" / "boosted.onnx"
    model.write_bytes(model.read_bytes()[:-20])  # a copy that was cut off
    monkeypatch.setattr("suffice.gate.gate.SHIPPED_MODELS", tmp_path)
    broken = suffice("doctor", "--json")
    assert broken.exit_code == 1
    parts = {one["name"]: one for one in json.loads(broken.stdout)["parts"]}
    # The standard gate is whole, but asks the fast one.
    for gate in (parts["gate, preset fast"], parts["gate, preset standard"]):
        assert gate["found"] is None
        assert "boosted.onnx is missing or altered" in gate["problem"]
        assert gate["get_it"].startswith("pip install --force-reinstall")
    assert parts["ranker of the bridge"]["found"]


def test_build_says_what_is_in_the_files_and_writes_nothing(village: Path) -> None:
    before = sorted(village.iterdir())
    counts = as_json(
        typed(
            f"build --corpus {village}/documents.jsonl --questions {village}/examples.jsonl --json"
        )
    )
    assert (counts["documents"], counts["questions"], counts["mentions"]) == (4, 2, 3)
    assert sorted(village.iterdir()) == before


def test_build_makes_a_library_that_search_reads(village: Path) -> None:
    result = suffice("build", "--corpus", village / "documents.jsonl", "--out", village / "library")
    assert result.exit_code == 0, result.output
    assert 'next: suffice check "your question" --library' in result.stderr
    found = as_json(
        suffice("search", village / "library", "Who taught Ada Lovelace?", "--k", 2, "--json")
    )
    assert found["hits"][0]["doc_id"] == "ada"
    assert found["hits"][0]["parts"]
    shown = suffice("search", village / "library", "Who taught Ada Lovelace?")
    assert "Ada Lovelace" in shown.stdout
    assert "bm25" in shown.stdout


def test_evaluate_gives_every_number_with_its_interval(village: Path) -> None:
    data = f"--corpus {village}/documents.jsonl --questions {village}/examples.jsonl"
    line = f"evaluate retrieval --dataset jsonl {data} --retriever tfidf,bm25,dense --k 1,2"
    files = f"--out {village}/run.json --report {village}/report.html"
    out = as_json(typed(f"{line} {files} --json"))
    assert list(out["retrievers"]) == ["tfidf", "bm25", "dense"]
    assert out["retrievers"]["bm25"]["recall@2"]["value"] == 1.0
    assert set(out["data"]) == {"documents.jsonl", "examples.jsonl"}
    assert (village / "run.json").is_file()
    assert "<html" in (village / "report.html").read_text(encoding="utf-8")
    assert "complete" in typed(line).stdout


def test_a_script_gets_the_error_as_json() -> None:
    result = suffice("build", "missing.jsonl", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["code"] == "bad_input"


def test_a_bug_is_exit_code_1_and_debug_shows_the_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("suffice.cli.doctor.find_parts", broken)
    result = suffice("doctor")
    assert result.exit_code == 1
    assert "error: ZeroDivisionError: oh" in result.stderr
    assert isinstance(suffice("--debug", "doctor").exception, ZeroDivisionError)
    output.settings["debug"] = False


def test_a_failing_disk_is_reported_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "gates/gate")

    monkeypatch.setattr("suffice.cli.doctor.find_parts", full)
    result = suffice("doctor", "--json")
    assert result.exit_code == 1
    assert "error: gates/gate: No space left on device\nhint: free some disk space" in result.stderr
    assert json.loads(result.stdout)["error"]["code"] == "disk"


def test_a_missing_report_extra_fails_before_the_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = typed(
        f"evaluate retrieval --dataset frames --path {tmp_path}/none --report {tmp_path}/r.html"
    )
    assert result.exit_code == 2
    assert "hint: pip install 'suffice[report]'" in result.stderr


def test_a_run_from_another_tool_is_scored_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "run.trec").write_text(
        "q1 Q0 a 1 9.5 theirs\nq1 Q0 b 2 8.0 theirs\nq2 Q0 c 1 3.0 theirs\n"
    )
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq1 0 b 1\nq2 0 d 1\n")
    found = as_json(
        typed(f"evaluate retrieval --dataset trec --path {tmp_path} --retriever given --k 2 --json")
    )
    assert found["retrievers"]["given"]["complete@2"]["value"] == 0.5


def test_a_collection_is_streamed_to_files_that_read_the_same(tmp_path: Path) -> None:
    made = as_json(
        typed(f"build --collection controlled --documents 900 --export {tmp_path}/out --json")
    )
    read = as_json(suffice("build", tmp_path / "out", "--json"))
    same = ("documents", "questions", "mentions", "by_kind", "by_hops")
    assert [made[name] for name in same] == [read[name] for name in same]
    assert made["documents"] == 900


def test_a_wide_table_in_a_pipe_keeps_the_names_of_its_rows_whole(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = tuple(Interval(0.5, 0.4, 0.6) for _ in range(7))
    columns = ("system", *(f"complete@{k}" for k in range(1, 8)))
    output.show_tables(
        [Table("By system", columns, (("our filter, relaxed by the gate", *figures),))]
    )
    assert "our filter, relaxed by the gate" in capsys.readouterr().out


def test_a_table_of_long_texts_in_a_pipe_wraps_them_instead_of_growing_without_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = (("Who taught the teacher of Ada? " * 40, 0.5),)
    output.show_tables([Table("Questions", ("question", "p"), rows)])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 240
