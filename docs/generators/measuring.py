"""Measuring again: the command that stands on a page is typed as it stands there, and what it wrote is stored."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from docs.generators.paths import ROOT
from suffice.evaluation.study import Study
from suffice.storage import write_atomically


def run_command(command: str, data: Path, *more: str, cwd: Path = ROOT) -> str:
    """What a command prints that begins with `suffice` or `python`; the folder of real data stands in the place of `$DATA`.

    `more` is added at the end, where it overrules what the page says: where to write, what to keep.
    """
    program, *words = [word.replace("$DATA", str(data)) for word in shlex.split(command)]
    start = [sys.executable] if program == "python" else [sys.executable, "-m", program]
    return subprocess.run(
        [*start, *words, *more], check=True, stdout=subprocess.PIPE, text=True, cwd=cwd
    ).stdout


def store_study(study: Path, stored: Path) -> None:
    """Keep a study without its timings: measured twice it is the same bytes."""
    write_atomically(stored, Study.load(study).to_json(timings=False))
