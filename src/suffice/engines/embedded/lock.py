"""One writer at a time: the right to write an embedded store is a locked file in its folder."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from suffice.errors import EngineError, disk_hint

__all__ = ["writer_lock"]

LOCK = "writer.lock"
POLL_S = 0.02


@contextmanager
def writer_lock(folder: Path, *, wait_s: float) -> Iterator[None]:
    """Hold the right to write. The operating system takes it back from a process that dies, so no lock is ever left behind."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise EngineError(f"{folder} cannot be written: {error}", hint=disk_hint(error)) from error
    try:
        until = time.monotonic() + wait_s
        while not _taken(handle):
            if time.monotonic() >= until:
                raise EngineError(
                    f"{folder} is being written by another process or thread (waited {wait_s:g} s)",
                    hint="wait until it is done, or open the store with a longer wait_s",
                    retryable=True,
                )
            time.sleep(POLL_S)
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
