"""A real Dask scheduler and its workers, each a process of its own on this machine, and jobs that
they can do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "10",
}  # as docs/howto/scale.md says


class DaskCluster:
    """A scheduler on a free port, and as many workers as are asked for; all are stopped by their
    pid.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        address_file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", address_file)
        for _ in range(300):
            if address_file.exists() and address_file.read_text(encoding="utf-8").endswith("}"):
                break
            time.sleep(0.1)
        self.address: str = json.loads(address_file.read_text(encoding="utf-8"))["address"]

    def add_worker(self) -> subprocess.Popen[bytes]:
        here = self.folder / f"worker-{len(self.workers)}"
        worker = self._start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--local-directory", here
        )
        self.workers.append(worker)
        return worker

    def _start(self, what: str, *words: object) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "dask",
            what,
            *map(str, words),
            "--host",
            "127.0.0.1",
            "--no-dashboard",
        ]
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        with (self.folder / f"{what}.log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=ROOT,
                stdout=log,
                stderr=log,
                env={**os.environ, **SETTINGS, "PYTHONPATH": path},
            )

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait(timeout=20)


def slow_shout(block: Sequence[str], ready: object) -> list[str]:
    """A tenth of a second a block."""
    time.sleep(0.1)
    return [word.upper() for word in block]


def careless_shout(block: Sequence[str], ready: object) -> list[str]:
    """Fails at the word 'seven'."""
    if "seven" in block:
        raise OSError("no room left")
    return slow_shout(block, ready)


def weigh(block: Sequence[str], ready: object) -> list[int]:
    return [len(word) for word in block]
