"""What the name links of a library cost after a write, beside a build from nothing in the same run.

`python -m benchmarks.bench_name_writes --data DIR` writes into libraries of 2,000 and of 20,000
passages of HotpotQA, 2Wiki and MuSiQue, with their titles and without. The links of both ways are
compared, too.
"""

from __future__ import annotations

import os

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # before numpy is imported: the figures are for one core

import argparse
import json
import random
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from docs.generators.paths import DATA

from benchmarks.reporting import ResultTable, print_all, print_progress, run_in_subprocess
from suffice.datasets import load
from suffice.library import Library
from suffice.types import Document

MODULE = "benchmarks.bench_name_writes"
SETS = ("hotpotqa", "2wikimultihopqa", "musique")
SIZES, QUICK_SIZES = (2_000, 20_000), (500, 2_000)
FEW, REPEATS = 10, 5


def measure(count: int, titled: bool, data: Path) -> dict[str, Any]:
    """Processor and wall seconds of each way, and whether both give the same links."""
    passages = shuffled_passages(data)
    if not titled:
        passages = [replace(one, title="") for one in passages]
    held, others = passages[:count], iter(passages[count:])
    chosen = iter(held)

    def few(passages: Iterator[Document]) -> list[Document]:
        return [next(passages) for _ in range(FEW)]

    with (
        TemporaryDirectory() as folder,
        Library.build(Path(folder) / "library", held, encoder=None, links=False) as library,
    ):
        library.name_links()
        writes: dict[str, Callable[[], object]] = {
            "one added": lambda: library.add([next(others)]),
            f"{FEW} added": lambda: library.add(few(others)),
            f"{FEW} changed": lambda: library.add(
                [replace(one, text=f"{one.text} More is not known.") for one in few(chosen)]
            ),
            f"{FEW} deleted": lambda: library.delete([one.doc_id for one in few(chosen)]),
        }
        found = {what: seconds(library, write) for what, write in writes.items()}
        by_writes = link_bytes(library)
        found["all anew"] = seconds(library, lambda: forget(library))
        return {"ways": found, "same": by_writes == link_bytes(library)}


def shuffled_passages(data: Path) -> list[Document]:
    passages = [
        replace(one, doc_id=f"{name}/{one.doc_id}")
        for name in SETS
        for one in load(name, data / name).documents()
    ]
    random.Random(7).shuffle(passages)
    return passages


def seconds(library: Library, write: Callable[[], object]) -> tuple[float, float]:
    """Medians of what the links take after the write, in seconds of this thread and of the clock."""
    used, wall = [], []
    for _ in range(REPEATS):
        write()
        begun, spent = time.perf_counter(), time.thread_time()
        library.name_links()
        used.append(time.thread_time() - spent)
        wall.append(time.perf_counter() - begun)
    return statistics.median(used), statistics.median(wall)


def link_bytes(library: Library) -> dict[str, bytes]:
    (folder,) = library.path.glob("names-*")
    return {one.name: one.read_bytes() for one in folder.glob("*.npy")}


def forget(library: Library) -> None:
    for folder in library.path.glob("name*-*"):
        shutil.rmtree(folder)


def tables(quick: bool, data: Path = DATA) -> Iterator[ResultTable]:
    if not all((data / name).is_dir() for name in SETS):
        return
    for titled in (True, False):
        got = {}
        for count in QUICK_SIZES if quick else SIZES:
            titles = "with" if titled else "without"
            print_progress(f"writes into {count:,} passages {titles} titles")
            words = ("--data", str(data), "--measure", str(count), *(() if titled else ("--bare",)))
            got[count] = run_in_subprocess(MODULE, *words)
        yield by_write(got, titled)


def by_write(got: dict[int, dict[str, Any]], titled: bool) -> ResultTable:
    rows = []
    for count, one in got.items():
        anew, anew_wall = one["ways"]["all anew"]
        for what, (used, wall) in one["ways"].items():
            milliseconds = (f"{used * 1e3:,.0f}", f"{wall * 1e3:,.0f}")
            times = (f"{anew / used:.1f}", f"{anew_wall / wall:.1f}")
            rows.append((f"{count:,}", what, *milliseconds, *times))
    return ResultTable(
        f"Name links after a write, passages {'with' if titled else 'without'} titles",
        f"Medians of {REPEATS} writes, one core, with reading and storing what is kept on disk; "
        "required: the links of a build from nothing, byte for byte.",
        ("passages", "written", "processor ms", "wall ms", "x all anew", "x, wall"),
        tuple(rows),
        ("`x` is how many times faster it is than all anew.",),
        kept=all(one["same"] for one in got.values()),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of data sets")
    parser.add_argument("--quick", action="store_true", help="small libraries")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(measure(chosen.measure, not chosen.bare, chosen.data)))
        return 0
    return print_all(tables(chosen.quick, chosen.data))


if __name__ == "__main__":
    sys.exit(main())
