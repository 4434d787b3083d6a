"""Marks of unfinished writes, so that an interrupted library can be detected.

Each batch of a library is durable and searchable on its own. So a killed process, a full disk or a
bad record leaves a library that works but lacks documents. A writer therefore creates a small file
next to the manifest before its first batch and removes it after its last. It locks the file
meanwhile: a mark without a lock belongs to an interrupted writer.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from suffice.errors import EngineError, SufficeError, disk_hint
from suffice.storage.artefacts import fsync_path
from suffice.storage.locks import ON_WINDOWS, lock_file

__all__ = ["UnfinishedWrite", "mark_write", "unfinished_writes"]

PATTERN = "unfinished-*.json"
MAX_BYTES = 100_000
FROM_PYTHON = "add the same documents again"


@dataclass(frozen=True, slots=True)
class UnfinishedWrite:
    """Documents of a source that are being stored, or were when the writer was interrupted."""

    source: str  # "" for documents passed by a program
    resume: str  # the command that continues where it stopped
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
    """The unfinished writes of this library, oldest first."""
    found = [_read(file)[0] for file in folder.glob(PATTERN)]
    return sorted(filter(None, found), key=lambda one: one.started)


@contextmanager
def mark_write(
    folder: Path, source: str, resume: str, *, generation: Callable[[], int]
) -> Iterator[None]:
    """Mark the library while the block runs; the mark stays if the block fails after a write.

    At its end, marks of earlier writes of the same source are removed, too: this one did their
    work.
    """
    before = generation()
    started = datetime.now().astimezone().isoformat(" ", "minutes")
    content = json.dumps({"source": source, "resume": resume, "started": started}) + "\n"
    try:
        file, lock = _create(folder, content.encode())
    except OSError as error:
        raise EngineError(f"{folder} cannot be written: {error}", hint=disk_hint(error)) from error
    try:
        yield
    except BaseException:
        with suppress(SufficeError, OSError):  # if the store fails, the mark stays
            if generation() == before:
                _remove(file, lock)
        raise
    else:
        _remove(file, lock)
        stored = generation() != before  # a program that adds nothing has completed nothing
        for other in folder.glob(PATTERN):
            mark, running = _read(other)
            same = mark is None or (mark.source == source and (stored or source))
            if same and not running:
                other.unlink(missing_ok=True)
    finally:
        lock.close()


def _create(folder: Path, content: bytes) -> tuple[Path, IO[bytes]]:
    """A new mark, and the open file that holds its lock."""
    while True:
        file = folder / f"unfinished-{secrets.token_hex(8)}.json"
        lock = file.open("xb", buffering=0)
        try:
            lock_file(lock.fileno(), wait=True)
            lock.write(content)
            os.fsync(lock.fileno())
            fsync_path(folder)
        except BaseException:
            _remove(file, lock)
            raise
        if file.exists():
            return file, lock
        lock.close()  # removed as dead by another writer before it was locked


def _remove(file: Path, lock: IO[bytes]) -> None:
    if ON_WINDOWS:  # it removes no open file
        lock.close()
    file.unlink(missing_ok=True)
    lock.close()


def _read(file: Path) -> tuple[UnfinishedWrite | None, bool]:
    """The mark, and whether its writer runs. No mark: the writer was killed before it stored."""
    running = False
    with suppress(OSError, ValueError, TypeError, LookupError, RecursionError):
        handle = os.open(file, os.O_RDONLY)
        try:
            running = not lock_file(handle, wait=False, shared=True)
            value = json.loads(os.read(handle, MAX_BYTES))
        finally:
            os.close(handle)
        texts = {name: str(value[name]) for name in ("source", "resume", "started")}
        return UnfinishedWrite(**texts, running=running), running
    return None, running
