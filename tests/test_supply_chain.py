"""What is installed: locked by hash as it is pinned, under licences that are allowed, and no more than the core needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("packaging", reason="it comes with the test tools")

from robustness.supply import (
    LOCK,
    ROOT,
    bare_check,
    base_install,
    disagreements,
    forbidden,
    licences,
    pins,
)


def test_the_lock_is_what_the_constraints_say_and_has_a_hash_for_everything() -> None:
    assert disagreements() == [], "run `make lock`"


def test_every_installed_package_has_a_licence_that_is_allowed() -> None:
    found = licences(pins(LOCK))
    assert base_install() - {"suffice"} <= set(found)
    assert forbidden(found) == []


def test_the_core_builds_searches_checks_and_asks_with_every_extra_absent() -> None:
    result = bare_check()
    assert 0 < result["p"] < 1
    assert result["hits"] == 2
    assert result["absent"] > 50  # where the tests run there is much that could have been leant on


@pytest.mark.parametrize(
    "work",
    [
        "suffice.Gate.load(preset='fast').check('Who taught Ada?', ['Ada was taught by Mary.'])",
        # On one thread: otherwise the reader has threads to compute with.
        "Reader(threads=1).read('Who taught Ada?', ['Ada'], ['Ada was taught by Mary.'])",
    ],
    ids=["gate", "reader"],
)
def test_nothing_is_told_to_anybody_and_nothing_left_behind(tmp_path: Path, work: str) -> None:
    # onnxruntime would write a session's mark into the temporary folder and begin to send.
    script = (
        "import suffice, threading, pathlib\n"
        "from suffice.gate.reader import Reader\n"
        f"{work}\n"
        "print(len(list(pathlib.Path('/proc/self/task').iterdir())) if pathlib.Path('/proc/self/task').exists() else 1)\n"
    )
    environment = {
        name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"
    }
    folders = {
        "HOME": tmp_path / "home",
        "TMPDIR": tmp_path / "tmp",
        "XDG_CACHE_HOME": tmp_path / "home" / "cache",
    }
    for folder in folders.values():
        folder.mkdir(parents=True)
    environment |= {
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment |= {name: str(folder) for name, folder in folders.items()}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=True,
    )
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []
    assert done.stdout == "1\n", "a thread runs that we did not start"
