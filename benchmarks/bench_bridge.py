"""Bridge: the cost of a question compared with BM25 and hybrid, and of building name links for 10 k
to 1 M documents.

`python -m benchmarks.bench_bridge --data DIR` answers MuSiQue's questions over its 11,656 passages,
one at a time on one core. The documents of the second table are those of bench_links: about 200
words, each naming four titles.
"""

from __future__ import annotations

import os

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # before numpy is imported: the figures are for one core

import argparse
import json
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from docs.generators.paths import DATA

from benchmarks.bench_links import documents, titles, vocabulary
from benchmarks.reporting import (
    ResultTable,
    peak_bytes,
    print_all,
    print_progress,
    run_in_subprocess,
)
from suffice.datasets import load
from suffice.evaluation.searching import index_documents
from suffice.integrations.onnx import bge_small
from suffice.library import Library
from suffice.protocols import Retriever
from suffice.registry import ENCODERS, RETRIEVERS
from suffice.retrieval import builtin  # noqa: F401 - importing it registers our retrievers
from suffice.retrieval.name_links import name_links
from suffice_research.bridge_quality import bridge_quality

MODULE = "benchmarks.bench_bridge"
ASKED, LIMIT_MS = 150, 20
ON_DISK = "bridge, library on disk"
FEW_ASKED, QUALITY_LIMIT_MS = 60, 1000
CHARGED = (
    "LLM-built graphs send every passage to a model: at least one call a passage, 1,000 "
    "for 1,000 passages; here 0."
)


def measure_questions(data: Path) -> dict[str, float]:
    """Medians over questions: wall and processor milliseconds of each retriever."""
    dataset = load("musique", data / "musique")
    encoder = ENCODERS.get("wordllama")()
    held = list(dataset.documents())
    store = index_documents(held, encoder, None)
    start = time.process_time()
    links = name_links(lambda: held)
    got = {"documents": float(len(held)), "links_s": time.process_time() - start}
    options: dict[str, dict[str, object]] = {
        "bm25": {},
        "hybrid": {"encoder": encoder},
        "bridge": {"encoder": encoder, "links": links},
    }
    questions = [one.question.text for one in dataset.questions()][: ASKED + 5]
    for name, given in options.items():
        got |= timed(name, RETRIEVERS.get(name)(store, **given), questions)
    with (
        TemporaryDirectory() as temporary,
        Library.build(Path(temporary) / "library", held, encoder="wordllama") as library,
    ):
        got |= timed(ON_DISK, library.retriever("bridge"), questions)
    return got


def measure_quality(data: Path) -> dict[str, float]:
    """The same for bridge-quality on one core."""
    dataset = load("musique", data / "musique")
    encoder = bge_small(threads=1)
    held = list(dataset.documents())
    store = index_documents(held, encoder, None)
    questions = [one.question.text for one in dataset.questions()][: FEW_ASKED + 5]
    retriever = bridge_quality(store, encoder=encoder, threads=1)
    return {"documents": float(len(held)), **timed("bridge-quality", retriever, questions)}


def timed(name: str, retriever: Retriever, questions: list[str]) -> dict[str, float]:
    """Milliseconds per question, without the first five."""
    wall, used = [], []
    for question in questions:
        begun, spent = time.perf_counter(), time.process_time()
        retriever.search([question], k=5)
        wall.append(time.perf_counter() - begun)
        used.append(time.process_time() - spent)
    medians = {
        f"{name}_{what}": float(np.median(one[5:])) * 1e3
        for what, one in (("wall", wall), ("cpu", used))
    }
    return {**medians, f"{name}_p95": float(np.percentile(used[5:], 95)) * 1e3}


def measure_links(count: int) -> dict[str, float]:
    in_titles, in_texts = vocabulary()
    names = titles(count, in_titles)
    start = time.process_time()
    for _ in documents(
        count, names, in_texts
    ):  # what making the texts costs, which happens twice below
        pass
    making, before = time.process_time() - start, peak_bytes()
    start = time.process_time()
    links = name_links(lambda: documents(count, names, in_texts))
    spent = time.process_time() - start - 2 * making
    return {
        "s": spent,
        "peak": peak_bytes(),
        "before": before,
        "mentions": len(links.mentioned.values),
    }


def tables(quick: bool, data: Path = DATA) -> Iterator[ResultTable]:
    if (data / "musique").is_dir():
        print_progress("questions over MuSiQue's passages")
        yield by_retriever(run_in_subprocess(MODULE, "--data", str(data), "--measure-questions"))
        if not quick:  # minutes to encode the passages
            print_progress("questions read by the set scorer")
            yield of_quality(run_in_subprocess(MODULE, "--data", str(data), "--measure-quality"))


def growth(quick: bool) -> Iterator[ResultTable]:
    got = {}
    for count in [10_000, 100_000] if quick else [10_000, 100_000, 1_000_000]:
        print_progress(f"name links of {count:,} documents")
        got[count] = run_in_subprocess(MODULE, "--measure-links", str(count))
    yield by_size(got)


def by_retriever(got: dict[str, float]) -> ResultTable:
    rows = []
    for name in ("bm25", "hybrid", "bridge", ON_DISK):
        ratio = got[f"{name}_cpu"] / got["hybrid_cpu"]
        figures = (got[f"{name}_wall"], got[f"{name}_cpu"], got[f"{name}_p95"], ratio)
        rows.append((name, *(f"{one:.1f}" for one in figures)))
    passages = got["documents"]
    return ResultTable(
        f"One question over {passages:,.0f} passages",
        (
            f"Medians of {ASKED} questions, five documents each, one core; in memory, unless "
            f"stated; required of bridge: at most {LIMIT_MS} ms."
        ),
        ("retriever", "wall ms", "processor ms", "processor ms p95", "x hybrid"),
        tuple(rows),
        (
            (
                f"Name links of 1,000 passages: {got['links_s'] / passages * 1000:.2f} s of "
                f"processor time, once. {CHARGED}"
            ),
        ),
        kept=got["bridge_cpu"] <= LIMIT_MS,
    )


def of_quality(got: dict[str, float]) -> ResultTable:
    figures = [got[f"bridge-quality_{what}"] for what in ("wall", "cpu", "p95")]
    return ResultTable(
        f"One question read by the set scorer, {got['documents']:,.0f} passages",
        (
            f"Medians of {FEW_ASKED} questions, five documents each, one core; required: at most "
            f"{QUALITY_LIMIT_MS:,} ms."
        ),
        ("retriever", "wall ms", "processor ms", "processor ms p95"),
        (("bridge-quality", *(f"{one:,.0f}" for one in figures)),),
        ("Two cores share the reading by default (`threads=0`).",),
        kept=got["bridge-quality_cpu"] <= QUALITY_LIMIT_MS,
    )


def by_size(got: dict[int, dict[str, float]]) -> ResultTable:
    rows = [
        (
            f"{count:,}",
            f"{one['s']:.1f}",
            f"{one['s'] / count * 1e6:.0f}",
            f"{one['mentions'] / count:.1f}",
            f"{one['peak'] / 2**20:,.0f}",
            f"{(one['peak'] - one['before']) / count:,.0f}",
        )
        for count, one in got.items()
    ]
    dearer = (got[max(got)]["s"] / max(got)) / (got[min(got)]["s"] / min(got))
    return ResultTable(
        "Name links by number of documents",
        (
            "Processor time of one core without making the texts; required: linear in the "
            "documents, bounded memory."
        ),
        ("documents", "s", "us each", "mentions each", "peak MiB", "bytes each"),
        tuple(rows),
        (f"A document costs {dearer:.2f} times as much among {max(got):,} as among {min(got):,}.",),
        kept=dearer < 2,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of data sets")
    parser.add_argument("--quick", action="store_true", help="10 k and 100 k documents only")
    parser.add_argument("--measure-links", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--measure-questions", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--measure-quality", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure_links:
        print(json.dumps(measure_links(chosen.measure_links)))
        return 0
    if chosen.measure_quality:
        print(json.dumps(measure_quality(chosen.data)))
        return 0
    if chosen.measure_questions:
        print(json.dumps(measure_questions(chosen.data)))
        return 0
    return print_all(chain(tables(chosen.quick, chosen.data), growth(chosen.quick)))


if __name__ == "__main__":
    sys.exit(main())
