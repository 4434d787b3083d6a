"""What a benchmark returns: a table, a sentence that says what it shows and requires, and whether
that was kept.

A bench module has `tables(quick)`, which yields tables as they are measured. `python -m benchmarks`
prints them all and, with `--write`, writes a page in research/results. The parts of `robustness/`
return the same.
"""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil


@dataclass(frozen=True)
class ResultTable:
    title: str
    says: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    kept: bool | None = None  # None if nothing is required

    def table(self) -> str:
        """As plain text: the first column left-aligned, figures right-aligned."""
        lines = [self.columns, *self.rows]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.columns))]
        laid = [
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
            for line in lines
        ]
        laid.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(laid)

    def verdict(self) -> str:
        return {None: "", True: "Kept.", False: "NOT kept."}[self.kept]


def print_tables(tables: Iterable[ResultTable]) -> Iterator[ResultTable]:
    """Print each table as soon as it is measured, and pass it on."""
    for one in tables:
        parts = (f"\n{one.title}", one.says, "", one.table(), *one.notes, one.verdict())
        print("\n".join(part for at, part in enumerate(parts) if part or at == 2), flush=True)
        yield one


def print_all(tables: Iterable[ResultTable]) -> int:
    """Print all tables; the exit status says whether every requirement was kept."""
    return int(any(one.kept is False for one in list(print_tables(tables))))


def collect_tables(name: str, tables: Iterable[ResultTable]) -> tuple[list[ResultTable], list[str]]:
    """Print and collect the tables of one section, and its name if it failed.

    A failure only costs its own figures.
    """
    print(f"\n=== {name} ===", flush=True)
    held: list[ResultTable] = []
    try:
        for one in print_tables(tables):
            held.append(one)
    except Exception:  # noqa: BLE001
        traceback.print_exc()
        return held, [name]
    return held, []


def missed_requirements(tables: Iterable[ResultTable]) -> list[str]:
    """Titles of the tables whose requirement was not kept."""
    return [one.title for one in tables if one.kept is False]


def machine_info() -> str:
    """Cores, processor and memory; nothing that identifies the machine."""
    try:
        listed = subprocess.run(
            ["lscpu"], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        listed = ""
    models = [
        line.partition(":")[2].strip()
        for line in listed.splitlines()
        if line.startswith("Model name:")
    ]
    memory = psutil.virtual_memory().total / 2**30
    model = " ".join([*models, f"({platform.machine()})"])
    return (
        f"{os.cpu_count()} cores, {model}, {memory:.0f} GiB, {platform.system()}, Python "
        f"{platform.python_version()}"
    )


def load_average() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def print_progress(what: str) -> None:
    print(f"... {what}", file=sys.stderr, flush=True)


def run_in_subprocess(module: str, *arguments: str) -> dict[str, Any]:
    """Run a measurement in its own process, so that its peak memory is its own; it prints one JSON
    object.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{module} {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def peak_bytes() -> int:
    """Peak memory of this process.

    On Linux a child inherits its parent's getrusage peak, so VmHWM is read first.
    """
    status = Path("/proc/self/status")
    peak = (
        re.search(r"VmHWM:\s*(\d+) kB", status.read_text(encoding="utf-8"))
        if status.exists()
        else None
    )
    return (
        int(peak[1]) * 1024 if peak else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    )
