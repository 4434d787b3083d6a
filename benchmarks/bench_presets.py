"""Both presets of the gate beside a cross-encoder over the same hits: time on one core and on two, memory, and the size
of the wheel.

Each system runs in its own process on its own cores, so that its peak memory is its own. The systems take turns in
every round, and the median counts. Ten hits of 100 words, and ten of 600, which the reader reads in parts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench_gate import cases
from benchmarks.reporting import (
    ResultTable,
    peak_bytes,
    print_all,
    print_progress,
    run_in_subprocess,
)
from suffice.errors import NotReadyError
from suffice.evaluation.searching import RetrievedQuestion
from suffice.gate import extraction
from suffice.gate.gate import FAST, HARDENED, STANDARD, Gate
from suffice.gate.reader import Reader
from suffice.integrations.onnx import MINILM, minilm, packaged_model

CROSS_ENCODER = "cross-encoder"
SYSTEMS = (STANDARD, FAST, HARDENED, CROSS_ENCODER)
SHORT, LONG = 100, 600  # words of a hit
CORES = (1, 2)
ROUNDS, CALLS = 3, 5  # turns of every system, and questions timed in each
MOST_MS = {1: 600, 2: 350}  # of the standard preset
TIMES_CROSS_ENCODER = 2.2
ROOT = Path(__file__).resolve().parents[1]


# ---- one system, in its own process


def system(name: str, threads: int) -> Callable[[RetrievedQuestion], Any]:
    if name == CROSS_ENCODER:
        judge = minilm(threads=threads)
        return lambda case: judge.score(case.question.text, [hit["text"] for hit in case.hits])
    gate = Gate.load(preset=name)
    if gate.readers.reader is not None:
        gate = replace(gate, readers=replace(gate.readers, reader=Reader(threads=threads)))
    return lambda case: gate.check(case.question.text, case.hits)


def measure(name: str, cores: int, words: int, count: int) -> dict[str, Any]:
    """Milliseconds of each call on the wall and of the processor, and peak memory in bytes."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    held = cases(2 * count, words)[: count + 1]
    call = system(name, cores)
    call(held[0])
    wall, processor = [], []
    for case in held[1:]:
        extraction.clear_passage_cache()
        started, cpu = time.perf_counter(), time.process_time()
        call(case)
        wall.append((time.perf_counter() - started) * 1e3)
        processor.append((time.process_time() - cpu) * 1e3)
    return {"wall": wall, "processor": processor, "peak": peak_bytes()}


# ---- tables


def times(words: int, rounds: int) -> ResultTable:
    found: dict[tuple[str, int], dict[str, Any]] = {}
    systems = [name for name in SYSTEMS if name != CROSS_ENCODER or _has_cross_encoder()]
    cores = [count for count in CORES if count <= (os.cpu_count() or 1)]
    for turn in range(rounds):
        for name in systems:
            for count in cores:
                print_progress(f"{name}, {count} cores, {words} words, round {turn + 1}")
                asked = ("--measure", name, str(count), str(words), str(CALLS))
                one = run_in_subprocess("benchmarks.bench_presets", *asked)
                kept = found.setdefault((name, count), {"wall": [], "processor": [], "peak": 0})
                kept["wall"] += one["wall"]
                kept["processor"] += one["processor"]
                kept["peak"] = max(kept["peak"], one["peak"])
    rows = []
    for (name, count), one in found.items():
        wall, processor = (float(np.median(one[kind])) for kind in ("wall", "processor"))
        beside = found.get((CROSS_ENCODER, count))
        ratio = "--" if beside is None else f"{float(np.median(beside['wall'])) / wall:,.1f}"
        peak = f"{one['peak'] / 1e6:,.0f}"
        rows.append((name, str(count), f"{wall:,.1f}", f"{processor:,.1f}", ratio, peak))
    required, is_kept = "", None
    if words == SHORT:
        required = (
            f" Required of {STANDARD}: at most {MOST_MS[1]} ms on one core and {MOST_MS[2]} on two, and "
            f"{TIMES_CROSS_ENCODER} times as fast as the cross-encoder."
        )
        is_kept = _is_kept({key: float(np.median(one["wall"])) for key, one in found.items()})
    notes = () if CROSS_ENCODER in systems else (f"{MINILM} is not installed: not compared.",)
    return ResultTable(
        f"Presets, ten hits of {words} words",
        f"Milliseconds of a check, explained, texts new to it; peak memory of the whole process.{required}",
        ("system", "cores", "p50 ms", "processor ms", "times as fast as cross-encoder", "peak MB"),
        tuple(rows),
        notes,
        is_kept,
    )


def _is_kept(wall: dict[tuple[str, int], float]) -> bool:
    return all(
        wall[STANDARD, count] <= MOST_MS[count]
        and wall.get((CROSS_ENCODER, count), np.inf) >= TIMES_CROSS_ENCODER * wall[STANDARD, count]
        for count in CORES
        if (STANDARD, count) in wall
    )


def _has_cross_encoder() -> bool:
    try:
        return (packaged_model(MINILM) / "model.onnx").is_file()
    except NotReadyError:
        return False


def sizes() -> ResultTable:
    """Megabytes of the wheel, and what each shipped model takes of it."""
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder]
        done = subprocess.run([*build, str(ROOT)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the wheel cannot be built: {done.stderr[-2000:]}")
        (wheel,) = Path(folder).glob("*.whl")
        whole = wheel.stat().st_size
        models: dict[str, list[int]] = {}
        with zipfile.ZipFile(wheel) as archive:
            for one in archive.infolist():
                _, _, inside = one.filename.partition("suffice/models/")
                name = f"models/{inside.split('/')[0]}" if inside else "code and the rest"
                models.setdefault(name, []).append(one.compress_size)
    parts = {name: sum(sizes) for name, sizes in models.items()}
    rows = [("the wheel", whole), *sorted(parts.items(), key=lambda pair: -pair[1])]
    return ResultTable(
        "Size of the wheel",
        "Megabytes, compressed.",
        ("part", "MB"),
        tuple((name, f"{size / 1e6:,.2f}") for name, size in rows),
    )


def tables(quick: bool) -> Iterator[ResultTable]:
    yield times(SHORT, 1 if quick else ROUNDS)
    if not quick:
        yield times(LONG, 1)
    yield sizes()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round, short hits only")
    parser.add_argument(
        "--measure", nargs=4, metavar=("SYSTEM", "CORES", "WORDS", "CALLS"),
        help="one system in this process, as JSON",
    )  # fmt: skip
    chosen = parser.parse_args()
    if chosen.measure:
        name, *numbers = chosen.measure
        print(json.dumps(measure(name, *map(int, numbers))))
        return 0
    return print_all(tables(chosen.quick))


if __name__ == "__main__":
    sys.exit(main())
