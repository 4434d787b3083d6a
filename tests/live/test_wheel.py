"""The wheel in a clean environment, far from the source tree: what it holds, and every command,
with and without extras.
"""

from __future__ import annotations

import email
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.films import films

from suffice.datasets.jsonl import document_record

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
UV = ROOT / ".cache" / "uv" / "bin" / "uv"  # `make test` installs it; faster than pip

# The extras of the environment that runs the tests. Its entry points name the packages beside
# suffice, which are lent, too.
LENT = os.pathsep.join(
    [
        sysconfig.get_path("purelib"),
        str(ROOT / "packages" / "suffice-grade"),
        str(ROOT / "research"),
    ]
)

QUESTION = "Who is the father of the director of The Alder Tree?"
HITS = [
    {
        "title": "The Alder Tree",
        "text": "The Alder Tree is a 1950 Norwegian drama film directed by Anna Berg.",
    }
]

# All commands in one process: starting Python a dozen times would take longer than the work.
SMOKE = """
import json, shlex, sys
from typer.testing import CliRunner
import suffice
from suffice.cli.app import app
results = {"file": suffice.__file__}
for line in json.load(sys.stdin):
    done = CliRunner().invoke(app, shlex.split(line))
    results[line] = [done.exit_code, done.output]
print(json.dumps(results))
"""

# What is typed, and a word of what it says; in this order, for one makes what the next one needs.
WITHOUT_EXTRAS = {
    "doctor": "ready",
    "build corpus.jsonl --out library": "library of 20 documents",
    f'search library "{QUESTION}" --k 2': "The Alder Tree",
    f'search library "{QUESTION}" --complete': "Anna Berg",
    f'check "{QUESTION}" --hits hits.json': "missing: Anna Berg",
    f'ask library "{QUESTION}"': "1. Who is the director of The Alder Tree?",
    "evaluate retrieval --dataset jsonl --path made --retriever bm25 --k 4 --out run.json": "bm25",
    "evaluate gate --dataset jsonl --path made --limit 15 --no-baselines": "auroc",
    "report run.json": "bm25",
    "serve key new --keys keys.json --name shop": "not shown again",
    "serve key list --keys keys.json": "shop",
    "serve key revoke shop --keys keys.json": "revoked shop",
}
LACKING = {  # a missing extra is an error with the command that installs it
    "grade corpus.jsonl --out none": "pip install ./packages/suffice-grade",
    "improve library": "pip install ./packages/suffice-grade",
    "evaluate difficulty run.json --benchmark made --k 4": "pip install ./packages/suffice-grade",
    "evaluate answers --dataset jsonl --path made": "pip install ./research",
    "evaluate expansion --dataset jsonl --path made": "pip install ./research",
    "fit --dataset jsonl --path made --out gate": "pip install 'suffice[fit]'",
    "report run.json --out page.html": "pip install 'suffice[report]'",
    "serve --port 0": "pip install 'suffice[serve]'",
    "mcp": "pip install 'suffice[mcp]'",
    (
        f'ask library "{QUESTION}" --model m --base-url http://127.0.0.1:9/v1'
    ): "pip install 'suffice[llm]'",
    "build corpus.jsonl --store qdrant://127.0.0.1:9/films": "pip install 'suffice[qdrant]'",
    (
        "evaluate retrieval --dataset jsonl --path made --scheduler tcp://127.0.0.1:9"
    ): "pip install 'suffice[dask]'",
}
GRADE = "grade corpus.jsonl --out made"  # makes the data set that other commands need
WITH_EXTRAS = {
    "evaluate difficulty run.json --benchmark made --k 4": "hops",
    (
        "evaluate answers --dataset jsonl --path made --limit 10 --gate default --systems naive"
    ): "naive",
    "fit --benchmark made --k 4 --preset fast --out gate": "gate for",
    f'check "{QUESTION}" --hits hits.json --gate gate': "p_complete",
    "report run.json --out page.html": "page.html",
}


class Installed(NamedTuple):
    wheel: Path
    folder: Path  # of the environment

    def suffice(
        self, lines: list[str], cwd: Path, *, extras: bool = False
    ) -> dict[str, tuple[int, str]]:
        """What each line comes to.

        Extras are those of the environment that runs the tests, lent by path; not its suffice.
        """
        lent = {"PYTHONPATH": LENT} if extras else {}
        done = subprocess.run(
            [self.folder / "bin" / "python", "-P", "-c", SMOKE],
            input=json.dumps(lines), capture_output=True, text=True, check=True, cwd=cwd, env={**plain(), **lent},
        )  # fmt: skip
        results = json.loads(done.stdout)
        assert Path(results.pop("file")).is_relative_to(self.folder)
        return {line: (code, output) for line, (code, output) in results.items()}


def plain() -> dict[str, str]:
    """The surroundings without anything that points back here."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "SUFFICE_DATA", "OPENAI_API_KEY", "OPENAI_BASE_URL")
    return {name: value for name, value in os.environ.items() if name not in hidden} | {
        "COLUMNS": "160",
        "OMP_NUM_THREADS": "1",
    }


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    pytest.importorskip("build", reason="pip install build hatchling")
    place = tmp_path_factory.mktemp("wheel")
    run = [sys.executable, "-m"]
    subprocess.run(
        [*run, "build", "--no-isolation", "--outdir", place, ROOT], check=True, capture_output=True
    )
    (wheel,) = place.glob("*.whl")
    subprocess.run([*run, "venv", "--without-pip", place / "env"], check=True)
    python = str(place / "env" / "bin" / "python")
    # Without compiling: of what is installed, these commands read a tenth.
    pip = [
        *run,
        "pip",
        "--python",
        python,
        "--disable-pip-version-check",
        "install",
        "--no-compile",
    ]
    installer = [str(UV), "pip", "install", "--python", python] if UV.exists() else pip
    subprocess.run(
        [*installer, "--quiet", "--constraint", ROOT / "constraints.txt", wheel],
        check=True,
        env=plain(),
    )
    return Installed(wheel, place / "env")


@pytest.fixture(scope="module")
def workspace(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    lines = [json.dumps(document_record(one)) + "\n" for one in films()]
    (folder / "corpus.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "hits.json").write_text(json.dumps(HITS), encoding="utf-8")
    code, output = installed.suffice([GRADE], folder, extras=True)[GRADE]
    assert (code, "answer leakage: 0 of" in output) == (0, True), output
    return folder


def test_the_wheel_holds_the_package_whole_and_nothing_else(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
        (stated,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
        metadata = email.message_from_bytes(wheel.read(stated))
    package = ROOT / "src"
    there = {
        str(file.relative_to(package))
        for file in (package / "suffice").rglob("*")
        if file.is_file()
    }
    assert packed == {name for name in there if "__pycache__" not in name}
    assert {
        "suffice/py.typed",
        "suffice/models/gate-fast/manifest.json",
        "suffice/models/gate-standard/manifest.json",
        "suffice/models/reader/manifest.json",
        "suffice/service/page/index.html",
    } <= packed
    assert metadata["Version"] == PROJECT["version"]
    assert sorted(metadata.get_all("Provides-Extra", [])) == sorted(
        PROJECT["optional-dependencies"]
    )


def test_the_sdist_holds_what_the_tests_need_and_nothing_that_git_ignores(
    installed: Installed,
) -> None:
    (sdist,) = installed.wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "src/suffice/__init__.py",
        "tests/live/test_wheel.py",
        "Makefile",
        "constraints.txt",
        "PKG-INFO",
    } <= names
    assert [
        name
        for name in names
        if re.match(r"(\.venv|site|runs|demo|shared|dist|build)/|.*__pycache__", name)
    ] == []


def test_every_command_does_its_work_without_an_extra(
    installed: Installed, workspace: Path
) -> None:
    results = installed.suffice([*WITHOUT_EXTRAS, *LACKING], workspace)
    for line, word in WITHOUT_EXTRAS.items():
        code, output = results[line]
        assert (code, word in output) == (0, True), f"suffice {line}\n{output}"
    for line, word in LACKING.items():
        code, output = results[line]
        assert (code, word in output) == (2, True), f"suffice {line}\n{output}"


def test_what_is_fitted_reported_and_served_is_so_with_the_extras(
    installed: Installed, workspace: Path
) -> None:
    results = installed.suffice(list(WITH_EXTRAS), workspace, extras=True)
    for line, word in WITH_EXTRAS.items():
        code, output = results[line]
        assert (code, word in output) == (0, True), f"suffice {line}\n{output}"


def test_the_script_is_on_the_path_and_the_service_comes_and_goes(
    installed: Installed, workspace: Path
) -> None:
    script = installed.folder / "bin" / "suffice"
    version = subprocess.run(
        [script, "--version"],
        capture_output=True,
        text=True,
        check=True,
        cwd=workspace,
        env=plain(),
    ).stdout
    assert version.strip() == PROJECT["version"]
    lent = {**plain(), "PYTHONPATH": LENT}
    words = shlex.split("serve --port 0 --library library --gate gate")
    with subprocess.Popen(
        [script, *words], cwd=workspace, env=lent, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        assert "http://127.0.0.1:" in json.loads(running.stderr.readline())["address"]
        running.terminate()
        running.stderr.read()
    assert running.returncode in (
        0,
        -signal.SIGTERM,
    )  # uvicorn ends by the signal that stopped it
