"""Locks on open files, which the system releases if their process dies.

By flock, or on Windows by a lock on one byte. A platform that has neither grants every lock.
"""

from __future__ import annotations

import os
import time
from importlib import import_module
from typing import Any

POLL_S = 0.02
ON_WINDOWS = os.name == "nt"
BEYOND = 2**30  # Windows keeps others from reading what is locked: lock a byte beyond the content


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


_POSIX: Any = _import("fcntl")
_WINDOWS: Any = None if _POSIX else _import("msvcrt")


def lock_file(handle: int, *, wait: bool, shared: bool = False) -> bool:
    """Lock an open file until it is closed; False if another process holds the lock.

    Windows has no shared locks: there, `shared` is exclusive.
    """
    if _POSIX is not None:
        mode = _POSIX.LOCK_SH if shared else _POSIX.LOCK_EX
        try:
            _POSIX.flock(handle, mode if wait else mode | _POSIX.LOCK_NB)
        except BlockingIOError:
            return False
    elif _WINDOWS is not None:
        while not _lock_byte(handle):
            if not wait:
                return False
            time.sleep(POLL_S)
    return True


def _lock_byte(handle: int) -> bool:
    here = os.lseek(handle, 0, os.SEEK_CUR)
    os.lseek(handle, BEYOND, os.SEEK_SET)
    try:
        _WINDOWS.locking(handle, _WINDOWS.LK_NBLCK, 1)
    except OSError:
        return False
    finally:
        os.lseek(handle, here, os.SEEK_SET)
    return True
