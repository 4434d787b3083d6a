"""Marks of writes that have not ended: a library that was cut off says so.

Each batch of a library is durable and searchable on its own. So a killed process, a full disk or a
bad record leaves a library that answers and lacks documents. A writer therefore puts a small file
beside the manifest before its first batch and removes it after its last. It holds a lock on the
file meanwhile: a mark that nobody holds is of a writer that was cut off.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from suffice.errors import EngineError, SufficeError, disk_hint
from suffice.storage import write_atomically

__all__ = ["UnfinishedWrite", "mark_write", "unfinished_writes"]

PATTERN = "unfinished-*.json"
MAX_BYTES = 100_000
STORED = ("source", "resume", "started")
FROM_PYTHON = "add the same documents again"


@dataclass(frozen=True, slots=True)
class UnfinishedWrite:
    """Documents of a source that are being stored, or were when their writer was cut off."""

    source: str  # "" for documents that a program gave
    resume: str  # the command that goes on where it stopped
    started: str
    running: bool = False

    def __str__(self) -> str:
        what = f"documents of {self.source}" if self.source else "documents"
        if self.running:
            return f"{what} are being added since {self.started}: a search may miss some"
        return f"adding {what}, begun {self.started}, was cut off: some are missing"

    @property
    def next_step(self) -> str:
        return "wait for its end" if self.running else self.resume or FROM_PYTHON


def unfinished_writes(folder: Path) -> list[UnfinishedWrite]:
    """The writes of this library that have not ended, the oldest first."""
    found = [one for file in folder.glob(PATTERN) if (one := _read(file)) is not None]
    return sorted(found, key=lambda one: one.started)


@contextmanager
def mark_write(
    folder: Path, source: str, resume: str, *, generation: Callable[[], int]
) -> Iterator[None]:
    """Mark the library while the block runs; the mark stays if the block fails after it stored.

    At its end the marks of earlier writes of the same source go, too: this one did their work.
    """
    before = generation()
    file = folder / f"unfinished-{secrets.token_hex(8)}.json"
    mark = UnfinishedWrite(source, resume, datetime.now().astimezone().isoformat(" ", "minutes"))
    try:
        write_atomically(file, json.dumps({name: getattr(mark, name) for name in STORED}) + "\n")
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise EngineError(f"{folder} cannot be written: {error}", hint=disk_hint(error)) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    except BaseException:
        with suppress(SufficeError, OSError):  # where the store fails, the mark stays
            if generation() == before:
                file.unlink()
        raise
    else:
        file.unlink(missing_ok=True)
        if source or generation() != before:  # a program that adds nothing has made up for nothing
            for other in folder.glob(PATTERN):
                one = _read(other)
                if one is not None and one.source == source and not one.running:
                    other.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _read(file: Path) -> UnfinishedWrite | None:
    """None for a mark that is gone, or a file that is none."""
    with suppress(OSError, ValueError, TypeError, LookupError, RecursionError):
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            running = not _is_free(handle)
            value = json.loads(os.read(handle, MAX_BYTES))
        finally:
            os.close(handle)
        texts = {name: str(value[name]) for name in STORED}
        return UnfinishedWrite(**texts, running=running)
    return None


def _is_free(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
