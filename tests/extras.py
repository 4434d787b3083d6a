"""Every extra, from the wheel, in an environment of its own: the line that the doctor gives brings
it, and the doctor sees it.

Not collected with the others, for it installs everything there is: `make extras`, or `make extras
ONLY=fit`.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.live.test_wheel import Installed, installed, plain  # noqa: F401 - a fixture

from suffice.cli.doctor import EXTRAS

BROUGHT: set[str] = set()
# docs/decisions/0020-service-and-guarantees.md; spaCy also needs a model
ALONE = {"dspy", "ragas", "deepeval", "ir-measures"}


def found(python: Path, at: Path) -> dict[str, str | None]:
    """What the doctor found of each extra; what is lacking it tells with the line that brings it."""
    doctor = [str(python), "-P", "-m", "suffice", "doctor", "--json"]
    report = json.loads(
        subprocess.run(
            doctor, capture_output=True, text=True, check=True, cwd=at, env=plain()
        ).stdout
    )
    parts = {one["name"].removeprefix("extra "): one for one in report["parts"]}
    assert {name: parts[name]["get_it"] for name in EXTRAS} == {
        name: f"pip install 'suffice[{name}]'" for name in EXTRAS
    }
    return {name: parts[name]["found"] for name in EXTRAS}


@pytest.mark.parametrize("extra", [*EXTRAS, "all"])
def test_the_line_that_is_given_brings_the_extra(
    extra: str,
    installed: Installed,  # noqa: F811
    tmp_path: Path,
) -> None:
    shutil.copytree(installed.folder, tmp_path / "env", symlinks=True, copy_function=os.link)
    python = tmp_path / "env" / "bin" / "python"
    assert {name for name, what in found(python, tmp_path).items() if what} == BROUGHT
    line = shlex.split(f"pip install 'suffice[{extra}]'")
    words = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "--disable-pip-version-check",
        *line[1:],
        "--quiet",
    ]
    done = subprocess.run(
        words, capture_output=True, text=True, cwd=tmp_path, env=plain(), check=False
    )
    if extra == "ir-measures" and "trec_eval" in done.stderr:
        pytest.skip(
            "pytrec-eval-terrier has no wheel for this machine, and its sources are out of reach"
        )
    assert done.returncode == 0, done.stderr
    wanted = EXTRAS.keys() - ALONE if extra == "all" else {extra}
    assert {name for name, what in found(python, tmp_path).items() if what} >= wanted
