"""A long log: memory of the process that reads and writes, and what Dask costs and gains.

Runs `suffice check --batch - --json` in its own process, fed line by line, and hashes its output.
Each question has two hits of thirty words, the smallest log possible, so that moving blocks weighs
as much as it can; the fast gate checks them, for the same reason. Times are wall times, because the
question is how two workers share the work; the hash shows that they produce the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import psutil
from tests.dask_cluster import DaskCluster

from benchmarks.reporting import (
    ResultTable,
    peak_bytes,
    print_all,
    print_progress,
    run_in_subprocess,
)
from suffice.engines.batch import BatchRunner
from suffice.jobs import Job, split_into_blocks
from suffice_research.controlled import controlled_collection

HITS, WORDS = 2, 30
MOST_GROWTH = 1.25  # of the peak, from 10,000 checks to the largest count


def questions(count: int) -> Iterator[str]:
    """Lines of a log, made on demand."""
    texts = [
        " ".join(document.text.split()[:WORDS]) for document in controlled_collection().documents()
    ]
    for at in range(count):
        hits = [
            {
                "doc_id": f"d{at}-{n}",
                "text": texts[(at * 7 + n * 13) % len(texts)],
                "score": 2.0 - n,
            }
            for n in range(HITS)
        ]
        yield (
            json.dumps(
                {
                    "question_id": f"q{at}",
                    "question": f"What did {texts[at % len(texts)][:40]} say?",
                    "hits": hits,
                }
            )
            + "\n"
        )


class Sink:
    """A standard output that keeps the hash of what was written."""

    def __init__(self) -> None:
        self.digest, self.lines = hashlib.sha256(), 0

    def write(self, text: str) -> None:
        self.digest.update(text.encode())
        self.lines += text.count("\n")

    def isatty(self) -> bool:
        return False

    def flush(self) -> None:
        """Nothing is buffered."""


def run_checks(count: int, scheduler: str | None) -> dict[str, Any]:
    """One run of the command in this process."""
    from suffice.cli.app import app

    sink, started, spent = Sink(), time.perf_counter(), time.process_time()
    words = [
        "check",
        "--batch",
        "-",
        "--json",
        "--preset",
        "fast",
        *(("--scheduler", scheduler) if scheduler else ()),
    ]
    with patch.object(sys, "stdin", questions(count)), patch.object(sys, "stdout", sink):
        app(words, standalone_mode=False)
    seconds, cpu = time.perf_counter() - started, time.process_time() - spent
    return {
        "lines": sink.lines,
        "sha256": sink.digest.hexdigest(),
        "seconds": seconds,
        "cpu": cpu,
        "peak": peak_bytes(),
    }


def run_apart(count: int, scheduler: str | None) -> dict[str, Any]:
    print_progress(f"{count:,} checks {'on two workers' if scheduler else 'in one process'}")
    found = run_in_subprocess(
        "benchmarks.bench_batch",
        "--one",
        str(count),
        *(("--scheduler", scheduler) if scheduler else ()),
    )
    if found["lines"] != count:
        raise RuntimeError(f"{found['lines']} verdicts of {count} checks")
    print_progress(json.dumps(found))
    return found


def memory(cluster: DaskCluster, counts: Sequence[int], here: Sequence[int]) -> ResultTable:
    rows, peaks, same = [], [], True
    for count in counts:
        there = run_apart(count, cluster.address)
        alone = run_apart(count, None) if count in here else None
        same &= alone is None or alone["sha256"] == there["sha256"]
        peaks.append(there["peak"])
        rows.append(
            _row(
                count,
                "two workers",
                there,
                _memory_mib(cluster.scheduler),
                _memory_mib(cluster.workers[0]),
            )
        )
        if alone:
            rows.append(_row(count, "one process", alone, "--", "--"))
    growth = peaks[-1] / peaks[0]
    return ResultTable(
        "A log that does not end",
        f"The reading process at {counts[-1]:,} checks holds {growth:.2f} times what it holds at {counts[0]:,}; at most "
        f"{MOST_GROWTH} is required. In one process the gate is in that memory, too. The output has the same hash on workers "
        f"and in one process at {', '.join(f'{one:,}' for one in here)} checks.",
        (
            "checks",
            "where",
            "seconds",
            "a second",
            "reader's processor, s",
            "reader's peak, MiB",
            "scheduler, MiB",
            "a worker, MiB",
        ),
        tuple(rows),
        kept=growth <= MOST_GROWTH and same,
    )


def _row(count: int, where: str, found: dict[str, Any], *others: str) -> tuple[str, ...]:
    rate, peak = f"{count / found['seconds']:,.0f}", f"{found['peak'] / 2**20:.0f}"
    return (
        f"{count:,}",
        where,
        f"{found['seconds']:.1f}",
        rate,
        f"{found['cpu']:.1f}",
        peak,
        *others,
    )


def _memory_mib(process: subprocess.Popen[bytes]) -> str:
    """Resident memory of a process now."""
    return f"{psutil.Process(process.pid).memory_info().rss / 2**20:.0f}"


# ---- what a block costs


def identity_job(block: Sequence[str], ready: object) -> list[str]:
    return list(block)


def overhead(address: str, blocks: int) -> ResultTable:
    """Blocks of 256 lines of this log, with an empty job."""
    held = list(split_into_blocks(questions(256 * blocks), 256))
    BatchRunner(address).close()  # wait for the workers
    size = sum(map(len, held[0])) / 2**10
    started = time.perf_counter()
    with BatchRunner(address) as batch:
        connected = time.perf_counter()
        list(batch(Job("nothing", identity_job), held[:1]))
        first = time.perf_counter()
        list(batch(Job("nothing", identity_job), held))
        done = time.perf_counter()
    with TemporaryDirectory() as folder, BatchRunner(checkpoint=Path(folder)) as batch:
        begun = time.perf_counter()
        list(batch(Job("nothing", identity_job, key="nothing"), held))
        keeping = time.perf_counter() - begun
    rows = (
        ("connect to a scheduler", f"{1000 * (connected - started):.0f}"),
        ("the first block there and back", f"{1000 * (first - connected):.0f}"),
        ("each further one", f"{1000 * (done - first) / blocks:.1f}"),
        ("keep a finished block on disk", f"{1000 * keeping / blocks:.1f}"),
    )
    return ResultTable(
        "What a block costs besides the work",
        f"{blocks} blocks of 256 lines, {size:.0f} KiB each, two workers.",
        ("", "ms"),
        rows,
    )


def tables(quick: bool, checks: int = 100_000) -> Iterator[ResultTable]:
    counts = [1_000, 3_000] if quick else [10_000, checks]
    with TemporaryDirectory() as folder:
        cluster = DaskCluster(Path(folder))
        try:
            cluster.add_worker()
            cluster.add_worker()
            yield overhead(cluster.address, 20 if quick else 100)
            yield memory(cluster, counts, counts[:1])
        finally:
            cluster.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--checks", type=int, default=100_000, help="the longest log")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--scheduler", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(run_checks(asked.one, asked.scheduler)))
        return 0
    return print_all(tables(asked.quick, asked.checks))


if __name__ == "__main__":
    sys.exit(main())
