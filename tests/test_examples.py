"""The examples run, offline, and print what they are there to show."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest
from docs.generators.code_blocks import NOTEBOOK, cell_outputs, execute

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

# What each needs beside suffice, and lines that it prints.
TOLD = {
    "langchain_gate.py": (
        "langchain_core",
        [
            "born? -> Metropolis (1927 film) | Fritz Lang",
            "Lovelace? -> I do not know; not found: Ada Lovelace",
        ],
    ),
    "llama_index_gate.py": (
        "llama_index",
        [
            "1 nodes: Empty Response",
            "3 nodes: answered from Metropolis (1927 film) | Fritz Lang | Superman",
        ],
    ),
    "haystack_gate.py": (
        "haystack",
        [
            "Metropolis is a 1927 German film directed by Fritz Lang.",
            "Fritz Lang was a film director, born in Vienna in 1890.",
            "-> not found: Ada Lovelace",
        ],
    ),
    "mcp_gate.py": (
        "mcp",
        ["abstain: missing ['Fritz Lang']", "answer: ['Metropolis (1927 film)', 'Fritz Lang']"],
    ),
    "otel_gate.py": (
        "opentelemetry.sdk",
        [
            "retrieval films {'gen_ai.operation.name': 'retrieval'",
            "gen_ai.evaluation.result: abstain 0.",
            "('Fritz Lang',)",
        ],
    ),
    "dspy_gate.py": (
        "dspy",
        ["born? -> Vienna", "Lovelace? -> not found: Ada Lovelace"],
    ),
    "ragas_metric.py": ("ragas", ["row0 incomplete", "row1 complete"]),
    "deepeval_metric.py": (
        "deepeval",
        ["fails - missing: Fritz Lang", "['response', 'retrieved_contexts', 'user_input']"],
    ),
    "ir_measures_complete.py": ("ir_measures", ["CompleteRecall@2 0.5", "CompleteRecall@3 1.0"]),
}

# These set something for the whole process, which other tests would meet.
APART = ("otel_gate.py", "dspy_gate.py")


def test_every_example_is_tried_and_short() -> None:
    found = {
        file.name: len(file.read_text(encoding="utf-8").splitlines())
        for file in EXAMPLES.glob("*.py")
    }
    assert sorted(found) == sorted(TOLD)
    assert {name: lines for name, lines in found.items() if lines >= 60} == {}


def there(module: str) -> bool:
    """Is it installed? A package inside one that is not there raises instead of being None."""
    return (
        util.find_spec(module.partition(".")[0]) is not None and util.find_spec(module) is not None
    )


@pytest.mark.parametrize("name", TOLD)
def test_the_example_prints_what_it_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needed, lines = TOLD[name]
    if not there(needed):
        (how,) = [
            line
            for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
            if line.startswith("pip install")
        ]
        pytest.skip(f"{needed} is not installed: {how}")
    monkeypatch.chdir(tmp_path)
    if name in APART:
        printed = subprocess.run(
            [sys.executable, EXAMPLES / name], capture_output=True, text=True, check=True
        ).stdout
    else:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        printed = capsys.readouterr().out
    for line in lines:
        assert line in printed


def test_the_notebook_tells_its_story_again(tmp_path: Path) -> None:
    stored = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    outputs = cell_outputs(execute(stored, tmp_path))
    for now, then in zip(outputs, cell_outputs(stored), strict=True):
        assert re.sub(r"\d+", "0", now) == re.sub(
            r"\d+", "0", then
        )  # a fitted gate's figures may move with the machine
    assert NOTEBOOK.stat().st_size < 30_000
