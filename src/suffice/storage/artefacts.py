"""Files and folders that a crash cannot break: written under a draft's name, fsynced and renamed.

An artefact (a library, a gate, a run) is a folder with `manifest.json`: its kind and format version, the settings and seed that
made it, the hashes of its inputs and of its own files, and the versions of the packages used. A crash at any moment leaves the
old state or the new one. A draft is locked as long as its maker lives; the next who writes the same thing removes what the dead
have left.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from suffice.errors import DataError, InputError, NotReadyError
from suffice.storage.records import name_file_in_errors

if sys.platform != "win32":
    import fcntl

__all__ = [
    "MANIFEST",
    "Manifest",
    "new_artefact",
    "open_artefact",
    "package_versions",
    "remove_dead_drafts",
    "sha256_of",
    "write_atomically",
]

MANIFEST = "manifest.json"
_PACKAGES = (
    "suffice",
    "numpy",
    "scipy",
    "scikit-learn",
    "bm25s",
    "tantivy",
    "wordllama",
    "onnxruntime",
)
_TRIES = 100
_MAX_MANIFEST_BYTES = 64 * 1024 * 1024  # a manifest names files and settings; it does not hold data


@dataclass(frozen=True)
class Manifest:
    """What made an artefact, and what its files must hash to."""

    kind: str
    version: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    packages: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        maps = (self.settings, self.inputs, self.files, self.packages)
        if (
            not isinstance(self.kind, str)
            or type(self.version) is not int
            or not all(isinstance(one, dict) for one in maps)
        ):
            raise TypeError("a field holds something of another kind")


@contextmanager
def new_artefact(
    path: Path,
    *,
    kind: str,
    version: int,
    settings: Mapping[str, Any] | None = None,
    inputs: Mapping[str, str] | None = None,
    seed: int | None = None,
) -> Iterator[Path]:
    """An empty folder to fill. Leaving the block without an error publishes it at `path`, in place of what was there.

    `settings` and `inputs` are read when the block ends: it may still fill them.
    """
    path = Path(path)
    draft, lock = _new_draft(path, folder=True)
    try:
        yield draft
        hashes = {
            str(one.relative_to(draft)): sha256_of(one)
            for one in sorted(draft.rglob("*"))
            if one.is_file()
        }
        manifest = Manifest(
            kind,
            version,
            dict(settings or {}),
            dict(inputs or {}),
            hashes,
            seed,
            package_versions(),
        )
        (draft / MANIFEST).write_text(
            json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n", encoding="utf-8"
        )
        for one in draft.rglob("*"):
            _sync(one)
        os.chmod(
            draft, 0o755
        )  # a draft is its maker's alone, what is published is everybody's to read
        _sync(draft)
        _replace_folder(draft, path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        os.close(lock)


def open_artefact(
    path: Path, *, kind: str, version: int, rebuild: str, check_hashes: bool = True
) -> Manifest:
    """The manifest of an artefact that this version can read. `rebuild` is the command that makes a new one."""
    path = Path(path)
    _recover_folder(path)
    remove_dead_drafts(path)
    if not (path / MANIFEST).is_file():
        raise NotReadyError(f"{path} is not a {kind}: it has no {MANIFEST}", hint=rebuild)
    try:
        if (path / MANIFEST).stat().st_size > _MAX_MANIFEST_BYTES:
            raise ValueError(f"it has more than {_MAX_MANIFEST_BYTES:,} bytes")
        found = Manifest(**json.loads((path / MANIFEST).read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{path / MANIFEST} cannot be read: {error}", hint=rebuild) from error
    if found.kind != kind:
        raise InputError(f"{path} is a {found.kind}, expected a {kind}", hint=rebuild)
    if found.version != version:
        age = "a newer" if found.version > version else "an older"
        raise NotReadyError(
            f"{path} has format version {found.version}, {age} one than this suffice reads ({version})",
            hint=rebuild,
        )
    if check_hashes:
        for name, expected in found.files.items():
            part = path / name
            if not _is_inside(part, path):
                raise DataError(
                    f"{path / MANIFEST} names a file outside its folder: {name!r:.200}",
                    hint=rebuild,
                )
            if not part.is_file() or sha256_of(part) != expected:
                raise DataError(
                    f"{part} is missing or altered: its hash is not the one in the manifest",
                    hint=rebuild,
                )
    return found


def _is_inside(part: Path, folder: Path) -> bool:
    """Whether it lies in the folder, also where it is a link. A name that no disk can hold lies nowhere."""
    try:
        part.is_file()
        return part.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):
        return False


def write_atomically(path: Path, content: str | bytes | Iterable[str]) -> None:
    """Write a file whole or not at all; several texts are streamed one after the other."""
    path = Path(path)
    blocks = [content] if isinstance(content, str | bytes) else content
    draft, handle = _new_draft(path, folder=False)
    try:
        with os.fdopen(handle, "wb", closefd=False) as stream:
            stream.writelines(
                block.encode() if isinstance(block, str) else block for block in blocks
            )
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(draft, 0o644)
        os.replace(draft, path)
        _sync(path.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


def sha256_of(path: Path) -> str:
    """The sha256 of a file's bytes, read in blocks."""
    with name_file_in_errors(path), Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def package_versions() -> dict[str, str]:
    """The installed versions of the packages that can change a result."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --------------------------------------------------------------------------------------------------- drafts


def _new_draft(path: Path, *, folder: bool) -> tuple[Path, int]:
    """An empty draft beside `path`, and the handle that locks it until it is closed or its process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_dead_drafts(path)
    for _ in range(_TRIES):
        told: dict[str, Any] = {"prefix": f".{path.name}.", "suffix": ".draft", "dir": path.parent}
        if folder:
            draft = Path(tempfile.mkdtemp(**told))
            handle = os.open(draft, os.O_RDONLY)
        else:
            handle, name = tempfile.mkstemp(**told)
            draft = Path(name)
        _lock(handle, wait=True)
        if (
            draft.exists()
        ):  # else somebody took it for a dead one's, in the moment before it was locked
            return draft, handle
        os.close(handle)
    raise OSError(errno.EBUSY, "no draft stays", str(path))


def remove_dead_drafts(path: Path) -> None:
    """Remove what those who died writing `path` have left; whoever writes or opens it does so by itself."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.draft"):
        with suppress(OSError):  # gone meanwhile, or somebody else's
            handle = os.open(left, os.O_RDONLY)
            try:
                if _lock(handle, wait=False):
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
            finally:
                os.close(handle)


def _lock(handle: int, *, wait: bool) -> bool:
    """Lock a draft; False where another process holds it, or where drafts cannot be locked and nobody can tell."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _old_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def _replace_folder(draft: Path, path: Path) -> None:
    # A folder cannot be renamed over a full one. The old one steps aside first; a crash between the two renames is
    # mended by _recover_folder, which every open calls. One that is opened just then is back in its place: once more.
    for last in (False,) * _TRIES + (True,):
        _recover_folder(path)
        if path.exists():
            os.rename(path, _old_path(path))
        try:
            os.rename(draft, path)
            break
        except OSError as error:
            if last or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                _recover_folder(path)
                raise
    _sync(path.parent)
    shutil.rmtree(_old_path(path), ignore_errors=True)


def _recover_folder(path: Path) -> None:
    if _old_path(path).exists():
        if path.exists():
            shutil.rmtree(_old_path(path), ignore_errors=True)
        else:
            with suppress(OSError):  # another process was quicker, or nothing can be written here
                os.rename(_old_path(path), path)
