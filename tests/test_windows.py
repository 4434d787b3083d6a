"""Without `fcntl`, as on Windows, a library is built, locked and searched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# The modules that look at the system's name when they are imported come first.
SCRIPT = """
import csv, fcntl, glob, hashlib, json, os, pathlib, shutil, sys, tempfile, tomllib, types

def locking(handle, mode, count):
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, count, 0, os.SEEK_CUR)
    except BlockingIOError as error:
        raise PermissionError(13, "Permission denied") from error

folder, has_locks = sys.argv[1:]
if has_locks == "locks":
    sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=locking)
sys.modules["fcntl"] = None
del os.register_at_fork
os.name = "nt"
import suffice.storage
os.name = "posix"
assert suffice.storage.locks.ON_WINDOWS

from suffice import Library

with Library.build(folder, ["Ada taught.", "Byron wrote."], encoder=None) as library:
    assert [hit.text for hit in library.search("Ada")] == ["Ada taught."]
    with library.writing("a file"):
        library.add(["More."])
        assert len(library.unfinished) == 1
    assert len(library) == 3 and library.unfinished == []
"""


@pytest.mark.parametrize("has_locks", ["locks", "no locks"])
def test_a_library_is_built_without_fcntl(tmp_path: Path, has_locks: str) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "library"), has_locks]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
