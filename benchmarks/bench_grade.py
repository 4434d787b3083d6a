"""`suffice grade` by rules on 2,500 to 10,000 real passages: time, peak memory, and their growth.

The passages are those of 2WikiMultiHopQA and MuSiQue, pooled; a hash of the id chooses them, so
that a smaller corpus is part of a larger one. The command runs in its own process, on one core.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import contextlib
import io
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.reporting import (
    ResultTable,
    peak_bytes,
    print_all,
    print_progress,
    run_in_subprocess,
)
from suffice.datasets import load
from suffice.datasets.gold import draw_key
from suffice.datasets.jsonl import document_record

DATA = Path(
    os.environ.get("SUFFICE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
)
CORPORA = ("2wikimultihopqa", "musique")
SIZES = (2_500, 5_000, 10_000)
MINUTES = 10  # required at the largest size, on the wall
MOST_GROWTH = 1.25  # of processor time a document, from the smallest to the largest corpus


def write_corpus(documents: int, path: Path) -> None:
    """So many passages of both corpora as a file, without those of equal id."""
    pooled = {one.doc_id: one for name in CORPORA for one in load(name, DATA / name).documents()}
    chosen = sorted(pooled, key=lambda doc_id: draw_key(42, doc_id))[:documents]
    lines = (json.dumps(document_record(pooled[one]), default=str) + "\n" for one in chosen)
    path.write_text("".join(lines), encoding="utf-8")


def grade(corpus: Path) -> dict[str, Any]:
    """One run of the command in this process."""
    from suffice.cli.app import app

    written, started, spent = io.StringIO(), time.perf_counter(), time.process_time()
    with TemporaryDirectory() as folder, contextlib.redirect_stdout(written):
        words = ["grade", str(corpus), "--out", f"{folder}/made", "--json"]
        app(words, standalone_mode=False)
    seconds, cpu = time.perf_counter() - started, time.process_time() - spent
    valid = json.loads(written.getvalue())["counts"]["valid"]
    return {"valid": valid, "seconds": seconds, "cpu": cpu, "peak": peak_bytes()}


def tables(quick: bool) -> Iterator[ResultTable]:
    if not all((DATA / name).is_dir() for name in CORPORA):
        print_progress(f"skipped: no real data; set SUFFICE_DATA to the folder with {CORPORA}")
        return
    sizes = SIZES[:2] if quick else SIZES
    rows, found = [], []
    for documents in sizes:
        print_progress(f"a benchmark of {documents:,} documents")
        with TemporaryDirectory() as folder:
            corpus = Path(folder) / "corpus.jsonl"
            write_corpus(documents, corpus)
            one = run_in_subprocess("benchmarks.bench_grade", "--one", str(corpus))
        found.append(one)
        rows.append(
            (
                f"{documents:,}",
                f"{one['seconds']:.0f}",
                f"{one['cpu']:.0f}",
                f"{one['cpu'] / documents * 1000:.1f}",
                f"{one['peak'] / 2**20:,.0f}",
                f"{one['valid']:,}",
            )
        )
    growth = found[-1]["cpu"] / sizes[-1] / (found[0]["cpu"] / sizes[0])
    yield ResultTable(
        "A benchmark by rules",
        f"Required: under {MINUTES} minutes on the wall, and a document of the largest corpus "
        f"takes at most {MOST_GROWTH} times the processor time of one of the smallest; "
        f"it took {growth:.2f} times.",
        ("documents", "seconds", "processor s", "ms a document", "peak MiB", "valid questions"),
        tuple(rows),
        kept=found[-1]["seconds"] < MINUTES * 60 and growth <= MOST_GROWTH,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the small sizes only")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(grade(asked.one)))
        sys.exit()
    sys.exit(print_all(tables(asked.quick)))
