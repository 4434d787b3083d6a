"""Finished blocks on disk, so that a run that ended too early goes on where it was.

A block's file is named by a hash of all that its result was made of: the block itself, the job's key, the source of suffice and
the versions of its packages. A changed input, gate or setting therefore never meets an old result. A file is written whole or
not at all, begins with the hash of what follows, and is made anew where that does not fit. JSON and arrays; no pickle.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import fields, is_dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from suffice.engines.batch.made_with import made_with
from suffice.errors import DataError, InputError
from suffice.files import write_atomically
from suffice.files.weights import array_in
from suffice.ports import Job

__all__ = ["Kept"]

_ARRAY, _JSON = b"array", b"json"


class Kept:
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
            hint = "give --blocks another folder"
            raise InputError(f"{self.folder} cannot be a folder for blocks: {error}", hint=hint) from error
        told = json.dumps([job.name, job.key, made_with(), block], default=_plain, sort_keys=True)
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
            return array_in(content, f"the kept block {file.name}") if kind == _ARRAY else json.loads(content)
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


def _plain(value: Any) -> Any:
    """As JSON, for the hash alone."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(f"a block holds a {type(value).__name__}, which has no content of its own to be known by")
