"""Workers end with the process that started them, even if it is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

STUDY = """
import os, time
from suffice_research.worker_pool import worker_pool

def start(word):
    print(word, flush=True)

def work(seconds):
    print("working", flush=True)
    time.sleep(seconds)
    return os.getpid()

if __name__ == "__main__":
    with worker_pool(2, initializer=start, initargs=("started",)) as pool:
        print(len(list(pool.map(work, SECONDS))), "done", flush=True)
"""


def run_study(folder: Path, seconds: list[float]) -> subprocess.Popen[str]:
    study = folder / "study.py"
    study.write_text(STUDY.replace("SECONDS", str(seconds)), encoding="utf-8")
    return subprocess.Popen([sys.executable, str(study)], stdout=subprocess.PIPE, text=True)


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    with run_study(tmp_path, [600.0, 600.0]) as parent:
        assert parent.stdout is not None
        while (line := parent.stdout.readline()) != "working\n":
            assert line == "started\n"
        parent.kill()
        # The workers share this pipe: it ends with the last of them.
        parent.communicate(timeout=60)


def test_workers_do_their_work(tmp_path: Path) -> None:
    with run_study(tmp_path, [0.0] * 5) as parent:
        output, _ = parent.communicate(timeout=120)
    assert parent.returncode == 0
    assert output.count("started") in (1, 2)
    assert "5 done" in output
