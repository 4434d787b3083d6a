"""Building and searching a library: documents a second, peak memory, size on disk, search p50 and p95, at growing sizes.

    python benchmarks/bench_library.py                 10,000 and 100,000 documents
    python benchmarks/bench_library.py --quick         10,000 documents
    python benchmarks/bench_library.py --sizes 1000000 one million (under 15 minutes, under 6 GiB)
    python benchmarks/bench_library.py --vectors       with wordllama vectors too

Every document has 200 words, drawn by Zipf's law from 50,000. Systems: `library` (the embedded store as a library uses it,
durable batch by batch), `tantivy` (the same texts in tantivy alone, its own words, one commit), `lancedb` where installed.
Each run is its own process, so that peak memory is its own. Ratios are against tantivy alone in the same run.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from suffice.types import Condition, Document, Filter

WORDS, VOCABULARY = 200, 50_000
QUESTIONS, K = 200, 10


def texts(count: int) -> Iterator[str]:
    """Zipf-drawn texts, the same for every system; drawn in blocks, so that the generator is no part of the picture."""
    random = np.random.default_rng(42)
    names = np.array([f"w{rank:x}" for rank in range(VOCABULARY)], dtype=object)
    weights = 1 / np.arange(1, VOCABULARY + 1)
    bounds = np.cumsum(weights / weights.sum())
    for start in range(0, count, 1000):
        drawn = np.minimum(np.searchsorted(bounds, random.random((min(1000, count - start), WORDS))), VOCABULARY - 1)
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
    return [" ".join(f"w{rank:x}" for rank in random.integers(100, 5000, size=6)) for _ in range(QUESTIONS)]


class Clock:
    """Time on the wall, which the machine's other work lengthens, and on the processor, all threads together."""

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
        from suffice.retrieve.dense import WordLlamaEncoder

        encoder = WordLlamaEncoder()
        encoder.encode(["warm"])
    clock = Clock()
    with EmbeddedStore(folder) as store:
        store.put(documents(count), encode=encoder and encoder.encode)
        built = clock.figures(count)
        found = {"p50 ms": timed(lambda question: store.search_text([question], k=K))}
        some = Filter(
            (Condition("source", "$in", ("source 3", "source 4")), Condition("published_at", "$gte", ("2023-06-01",)))
        )
        found["filtered p50 ms"] = timed(lambda question: store.search_text([question], k=K, filters=[some]))
        if encoder:
            found["dense p50 ms"] = timed(lambda q: store.search_vectors(encoder.encode([q], query=True), k=K))
        start = time.perf_counter()
        store.put(documents(100), encode=encoder and encoder.encode)
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
        writer.add_document(tantivy.Document(id=[document.doc_id], text=[f"{document.title}\n{document.text}"]))
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
            batch.append({"id": document.doc_id, "text": f"{document.title}\n{document.text}", "source": document.source or ""})
            if len(batch) == 10_000:
                yield pa.RecordBatch.from_pylist(batch)
                batch = []
        if batch:
            yield pa.RecordBatch.from_pylist(batch)

    clock = Clock()
    table = lancedb.connect(folder).create_table(
        "documents", rows(), schema=pa.schema([(name, pa.string()) for name in ("id", "text", "source")])
    )
    table.create_fts_index("text", use_tantivy=False, with_position=False)
    built = clock.figures(count)
    found = timed(lambda question: table.search(question, query_type="fts").limit(K).to_list())
    return {**built, **_searches({"p50 ms": found})}


SYSTEMS: dict[str, Callable[..., dict[str, Any]]] = {"library": run_library, "tantivy": run_tantivy, "lancedb": run_lancedb}


def _searches(found: dict[str, tuple[float, float]]) -> dict[str, float]:
    return {name.replace("p50", which): value for name, pair in found.items() for which, value in zip(("p50", "p95"), pair)}


def measured(system: str, count: int, vectors: bool) -> dict[str, Any]:
    """One system at one size in a process of its own."""
    command = [sys.executable, __file__, "--one", system, "--sizes", str(count)] + (["--vectors"] if vectors else [])
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise SystemExit(f"{system} at {count}: {finished.stderr[-2000:]}")
    return dict(json.loads(finished.stdout.splitlines()[-1]))


def one(system: str, count: int, vectors: bool) -> None:
    parent = Path(tempfile.mkdtemp(prefix="bench-library-"))
    try:
        figures = SYSTEMS[system](parent / "store", count, vectors=vectors)
        size = sum(file.stat().st_size for file in parent.rglob("*") if file.is_file())
    finally:
        shutil.rmtree(parent, ignore_errors=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**figures, "peak MiB": peak, "disk MiB": size / 2**20}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="10,000 documents only")
    parser.add_argument("--sizes", help="numbers of documents, separated by commas")
    parser.add_argument("--systems", default="library,tantivy,lancedb")
    parser.add_argument("--vectors", action="store_true", help="encode with wordllama as well")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = [int(size) for size in (given.sizes or ("10000" if given.quick else "10000,100000")).split(",")]
    if given.one:
        one(given.one, sizes[0], given.vectors)
        return
    systems = [name for name in given.systems.split(",") if name != "lancedb" or importlib.util.find_spec("lancedb")]
    figures: dict[int, dict[str, dict[str, Any]]] = {}
    for size in sizes:
        if not given.json:
            print(f"\n{size:,} documents of {WORDS} words" + (", with vectors" if given.vectors else ""), flush=True)
        rows = figures[size] = {}
        for system in systems:
            row = rows[system] = measured(system, size, given.vectors)
            if not given.json:
                print(f"  {system:<8} " + "  ".join(f"{name} {value:,.2f}" for name, value in row.items()), flush=True)
        if not given.json and {"library", "tantivy"} <= rows.keys():
            ours, alone = rows["library"], rows["tantivy"]
            print(f"  library / tantivy: built at {ours['docs/cpu-s'] / alone['docs/cpu-s']:.2f} of its speed, ", end="")
            print(f"searches in {ours['p50 ms'] / alone['p50 ms']:.2f} of its time", flush=True)
    if given.json:
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
