"""Building and searching a library: documents a second, peak memory, size on disk, search p50 and
p95, at growing sizes.

    python -m benchmarks.bench_library                   10,000, 100,000 and 1,000,000 documents
    python -m benchmarks.bench_library --quick           10,000 documents
    python -m benchmarks.bench_library --sizes 100000    only these
    python -m benchmarks.bench_library --vectors         with wordllama vectors too

Every document has 200 words, drawn by Zipf's law from 50,000. Systems: `library` (the embedded
store as a library uses it, durable batch by batch), `tantivy` (the same texts in tantivy alone, its
own words, one commit), `lancedb` where installed. Each run is its own process, so that peak memory
is its own. Ratios are against tantivy alone in the same run.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reporting import (
    ResultTable,
    peak_bytes,
    print_all,
    print_progress,
    run_in_subprocess,
)
from suffice.types import Condition, Document, Filter

MODULE = "benchmarks.bench_library"
WORDS, VOCABULARY = 200, 50_000
PEAK_MIB, BUILD_S = 6 * 1024, 15 * 60  # what is required of a million documents without vectors
QUESTIONS, K = 200, 10


def texts(count: int) -> Iterator[str]:
    """Texts drawn by Zipf's law in blocks, the same for every system."""
    random = np.random.default_rng(42)
    names = np.array([f"w{rank:x}" for rank in range(VOCABULARY)], dtype=object)
    weights = 1 / np.arange(1, VOCABULARY + 1)
    bounds = np.cumsum(weights / weights.sum())
    for start in range(0, count, 1000):
        drawn = np.minimum(
            np.searchsorted(bounds, random.random((min(1000, count - start), WORDS))),
            VOCABULARY - 1,
        )
        yield from (" ".join(row) for row in names[drawn])


def documents(count: int) -> Iterator[Document]:
    first = date(2023, 1, 1)
    for n, text in enumerate(texts(count)):
        yield Document(
            f"doc-{n}",
            text,
            title=f"Title {n}",
            source=f"source {n % 50}",
            category=f"category {n % 7}",
            published_at=first + timedelta(days=n % 365),
            entities=(f"entity {n % 5000}", f"entity {n * 7 % 5000}"),
        )


def questions() -> list[str]:
    random = np.random.default_rng(7)
    return [
        " ".join(f"w{rank:x}" for rank in random.integers(100, 5000, size=6))
        for _ in range(QUESTIONS)
    ]


class Clock:
    """Wall time, which other work on the machine lengthens, and processor time of all threads."""

    def __init__(self) -> None:
        self.wall, self.processor = time.perf_counter(), time.process_time()

    def figures(self, count: int) -> dict[str, float]:
        wall, processor = time.perf_counter() - self.wall, time.process_time() - self.processor
        return {"docs/s": count / wall, "docs/cpu-s": count / processor, "built s": wall}


def timed(ask: Callable[[str], Any]) -> tuple[float, float]:
    """p50 and p95 of one question at a time, in milliseconds."""
    for question in questions()[:5]:
        ask(question)
    took = []
    for question in questions():
        start = time.perf_counter()
        ask(question)
        took.append(1000 * (time.perf_counter() - start))
    return float(np.percentile(took, 50)), float(np.percentile(took, 95))


def run_library(folder: Path, count: int, *, vectors: bool) -> dict[str, Any]:
    from suffice.engines.embedded import EmbeddedStore

    encoder = None
    if vectors:
        from suffice.retrieval.encoders import WordLlamaEncoder

        encoder = WordLlamaEncoder()
        encoder.encode(["warm"])
    clock = Clock()
    with EmbeddedStore(folder) as store:
        store.put(documents(count), encode=encoder.encode if encoder else None)
        built = clock.figures(count)
        found = {"p50 ms": timed(lambda question: store.search_text([question], k=K))}
        some = Filter(
            (
                Condition("source", "$in", ("source 3", "source 4")),
                Condition("published_at", "$gte", ("2023-06-01",)),
            )
        )
        found["filtered p50 ms"] = timed(
            lambda question: store.search_text([question], k=K, filters=[some])
        )
        if encoder:
            found["dense p50 ms"] = timed(
                lambda q: store.search_vectors(encoder.encode([q], query=True), k=K)
            )
        start = time.perf_counter()
        store.put(documents(100), encode=encoder.encode if encoder else None)
        changed = time.perf_counter() - start
    return {**built, "replace 100 s": changed, **_searches(found)}


def run_tantivy(folder: Path, count: int, **_: Any) -> dict[str, Any]:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw")
    builder.add_text_field("text", stored=True, index_option="freq")
    schema = builder.build()
    folder.mkdir()
    clock = Clock()
    index = tantivy.Index(schema, str(folder))
    writer = index.writer(128_000_000, 1)
    for document in documents(count):
        writer.add_document(
            tantivy.Document(id=[document.doc_id], text=[f"{document.title}\n{document.text}"])
        )
    writer.commit()
    writer.wait_merging_threads()
    built = clock.figures(count)
    index.reload()
    searcher = index.searcher()

    def ask(question: str) -> list[Any]:
        hits = searcher.search(index.parse_query(question, ["text"]), K, count=False).hits
        return [searcher.doc(address)["id"] for _, address in hits]

    return {**built, **_searches({"p50 ms": timed(ask)})}


def run_lancedb(folder: Path, count: int, **_: Any) -> dict[str, Any]:
    import lancedb
    import pyarrow as pa

    def rows() -> Iterator[Any]:
        batch: list[dict[str, str]] = []
        for document in documents(count):
            batch.append(
                {
                    "id": document.doc_id,
                    "text": f"{document.title}\n{document.text}",
                    "source": document.source or "",
                }
            )
            if len(batch) == 10_000:
                yield pa.RecordBatch.from_pylist(batch)
                batch = []
        if batch:
            yield pa.RecordBatch.from_pylist(batch)

    clock = Clock()
    table = lancedb.connect(folder).create_table(
        "documents",
        rows(),
        schema=pa.schema([(name, pa.string()) for name in ("id", "text", "source")]),
    )
    table.create_fts_index("text", use_tantivy=False, with_position=False)
    built = clock.figures(count)
    found = timed(lambda question: table.search(question, query_type="fts").limit(K).to_list())
    return {**built, **_searches({"p50 ms": found})}


SYSTEMS: dict[str, Callable[..., dict[str, Any]]] = {
    "library": run_library,
    "tantivy": run_tantivy,
    "lancedb": run_lancedb,
}


def _searches(found: dict[str, tuple[float, float]]) -> dict[str, float]:
    return {
        name.replace("p50", which): value
        for name, pair in found.items()
        for which, value in zip(("p50", "p95"), pair)
    }


def one(system: str, count: int, vectors: bool) -> None:
    parent = Path(tempfile.mkdtemp(prefix="bench-library-"))
    try:
        figures = SYSTEMS[system](parent / "store", count, vectors=vectors)
        size = sum(file.stat().st_size for file in parent.rglob("*") if file.is_file())
    finally:
        shutil.rmtree(parent, ignore_errors=True)
    print(json.dumps({**figures, "peak MiB": peak_bytes() / 2**20, "disk MiB": size / 2**20}))


COLUMNS = {
    "docs/s": "{:,.0f}",
    "docs/cpu-s": "{:,.0f}",
    "built s": "{:,.0f}",
    "p50 ms": "{:.2f}",
    "p95 ms": "{:.2f}",
    "filtered p50 ms": "{:.2f}",
    "filtered p95 ms": "{:.2f}",
    "dense p50 ms": "{:.2f}",
    "dense p95 ms": "{:.2f}",
    "replace 100 s": "{:.2f}",
    "peak MiB": "{:,.0f}",
    "disk MiB": "{:,.0f}",
}


def tables(
    quick: bool,
    sizes: Sequence[int] = (),
    systems: Sequence[str] = tuple(SYSTEMS),
    vectors: bool = False,
) -> Iterator[ResultTable]:
    for size in sizes or ((10_000,) if quick else (10_000, 100_000, 1_000_000)):
        rows: dict[str, dict[str, float]] = {}
        left_out = []
        for system in systems:
            if system == "lancedb" and not importlib.util.find_spec("lancedb"):
                left_out.append(
                    "Left out: LanceDB, which is not installed here (pip install lancedb)."
                )
                continue
            print_progress(f"{system}, {size:,} documents")
            try:
                rows[system] = run_in_subprocess(
                    MODULE,
                    "--one",
                    system,
                    "--sizes",
                    str(size),
                    *(["--vectors"] if vectors else []),
                )
            except RuntimeError as error:
                if system == "library":
                    raise
                print_progress(str(error))
                left_out.append(
                    f"Left out: {system}, which failed at this size: {str(error).splitlines()[-1]}"
                )
        yield compared(size, rows, left_out, vectors)


def compared(
    size: int, rows: dict[str, dict[str, float]], left_out: list[str], vectors: bool
) -> ResultTable:
    columns = [name for name in COLUMNS if any(name in row for row in rows.values())]
    notes, kept = [], None
    if {"library", "tantivy"} <= rows.keys():
        ours, alone = rows["library"], rows["tantivy"]
        notes.append(
            f"The library is built at {ours['docs/cpu-s'] / alone['docs/cpu-s']:.2f} of tantivy's speed in processor time, and "
            f"searches in {ours['p50 ms'] / alone['p50 ms']:.2f} of its median time."
        )
    says = f"Building (making the texts included, alike for all) and searching, top {K}, {QUESTIONS} questions one at a time."
    if size >= 1_000_000 and not vectors and "library" in rows:
        says += (
            " Required of the library: under 15 minutes and 6 GiB to build, with bounded memory."
        )
        kept = rows["library"]["built s"] < BUILD_S and rows["library"]["peak MiB"] < PEAK_MIB
    return ResultTable(
        f"{size:,} documents of {WORDS} words" + (", with vectors" if vectors else ""),
        says,
        ("system", *columns),
        tuple(
            (name, *(COLUMNS[at].format(row[at]) if at in row else "" for at in columns))
            for name, row in rows.items()
        ),
        (*notes, *left_out),
        kept,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="10,000 documents only")
    parser.add_argument("--sizes", default="", help="numbers of documents, separated by commas")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--vectors", action="store_true", help="encode with wordllama as well")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",") if size]
    if given.one:
        one(given.one, sizes[0], given.vectors)
        return 0
    return print_all(tables(given.quick, sizes, given.systems.split(","), given.vectors))


if __name__ == "__main__":
    sys.exit(main())
