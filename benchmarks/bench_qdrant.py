"""The Qdrant store compared with the embedded one: same hits, operation times, memory, round trips,
quality.

    python -m benchmarks.bench_qdrant                            3 nodes, 3 shards, 2 copies; 1,000 and 10,000 documents
    python -m benchmarks.bench_qdrant --sizes 100000,1000000     only these
    python -m benchmarks.bench_qdrant --quality DATA             only bridge and hybrid-metagraph on three data sets

Documents have 20 to 80 words, drawn by Zipf's law from 50,000, and a wordllama vector. Servers are
started here on 127.0.0.1, or are those of QDRANT_URL (host:port, comma-separated).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from tests.qdrant_server import Servers

from benchmarks.reporting import ResultTable, print_all, print_progress
from suffice.datasets import load
from suffice.engines.embedded import EmbeddedStore
from suffice.engines.qdrant import QdrantStore
from suffice.protocols import Store
from suffice.registry import RETRIEVERS
from suffice.retrieval import builtin  # noqa: F401 - importing it registers our retrievers
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.encoders import WordLlamaEncoder
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.name_links import name_links
from suffice.types import Condition, Document, Filter, Hit

VOCABULARY, SHORT, LONG = 50_000, 20, 80
NODES, SETTINGS = 3, "shards=3&replicas=2&timeout_s=300&patience_s=900"
K, QUESTIONS, TOGETHER = 10, 100, 10
SOME = Filter(
    (
        Condition("source", "$in", ("source 3", "source 4")),
        Condition("published_at", "$gte", ("2023-06-01",)),
    )
)
KNOWING = Filter((Condition("category", "$in", ("category 1",)),), lenient=True)
SETS = ("2wikimultihopqa", "hotpotqa", "musique")
ENCODER = WordLlamaEncoder()


def documents(count: int) -> Iterator[Document]:
    random = np.random.default_rng(42)
    names = np.array([f"w{rank:x}" for rank in range(VOCABULARY)], dtype=object)
    weights = 1 / np.arange(1, VOCABULARY + 1)
    bounds = np.cumsum(weights / weights.sum())
    first = date(2023, 1, 1)
    for n in range(count):
        drawn = np.searchsorted(bounds, random.random(random.integers(SHORT, LONG + 1)))
        yield Document(
            f"doc-{n}",
            " ".join(names[np.minimum(drawn, VOCABULARY - 1)]),
            title=f"Title {n}",
            source=f"source {n % 50}",
            category=f"category {n % 7}" if n % 5 else None,
            published_at=first + timedelta(days=n % 365),
            entities=(f"entity {n % 5000}", f"entity {n * 7 % 5000}"),
        )


def questions() -> list[str]:
    random = np.random.default_rng(7)
    return [
        " ".join(f"w{rank:x}" for rank in random.integers(50, 3000, size=6))
        for _ in range(QUESTIONS)
    ]


@contextmanager
def cluster() -> Iterator[tuple[str, list[int]]]:
    """Hosts of a cluster, and its processes, to measure their memory; none if the servers are not
    ours.
    """
    if given := os.environ.get("QDRANT_URL"):
        yield given.rpartition("//")[2].strip("/"), []
        return
    with Servers(NODES) as servers:
        yield servers.hosts, [node.pid for node in servers.nodes if node.pid]


def where() -> str:
    return f"The {NODES} servers ran on one machine, beside one another, as they are."


# ---- one size


def measured(count: int) -> Iterator[ResultTable]:
    vectors = ENCODER.encode(questions())
    held = list(documents(count))
    encoded = np.concatenate(
        [
            ENCODER.encode([searchable_text(one) for one in held[at : at + 1000]])
            for at in range(0, count, 1000)
        ]
    )
    exact = MemoryStore(held, encoded)
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedStore(folder) as embedded,
        cluster() as (hosts, processes),
    ):
        embedded.put(held, encoded)
        empty = sum(psutil.Process(one).memory_info().rss for one in processes)
        with QdrantStore(f"qdrant://{hosts}/bench-{count}?{SETTINGS}", refresh_s=600) as distant:
            built = _filled(distant, held, encoded)
            yield _agreement(count, exact, embedded, distant, vectors)
            yield _operations(count, embedded, distant, vectors, held)
            full = sum(psutil.Process(one).memory_info().rss for one in processes)
            yield _costs(count, built, full - empty, distant)
            distant.drop()


def _filled(store: QdrantStore, held: Sequence[Document], vectors: Any) -> float:
    start, done = time.perf_counter(), 0

    def told(batch: Sequence[str]) -> None:
        nonlocal done
        done += len(batch)
        print_progress(
            f"{done:,} of {len(held):,} documents, "
            f"{done / (time.perf_counter() - start):.0f} a second"
        )

    store.put(held, vectors, acknowledged=told)
    return time.perf_counter() - start


def _agreement(
    count: int, exact: Store, embedded: Store, distant: Store, vectors: Any
) -> ResultTable:
    asked = questions()
    looks: dict[str, Callable[[Store, slice], list[tuple[Hit, ...]]]] = {
        "dense": lambda store, some: store.search_vectors(vectors[some], k=K),
        "dense, filtered": lambda store, some: store.search_vectors(
            vectors[some], k=K, filters=[SOME] * TOGETHER
        ),
        "dense, lenient filter": lambda store, some: store.search_vectors(
            vectors[some], k=K, filters=[KNOWING] * TOGETHER
        ),
        "BM25": lambda store, some: store.search_text(asked[some], k=K),
        "BM25, filtered": lambda store, some: store.search_text(
            asked[some], k=K, filters=[SOME] * TOGETHER
        ),
    }
    turns = [slice(at, at + TOGETHER) for at in range(0, len(asked), TOGETHER)]
    rows, kept = [], True
    for name, look in looks.items():
        print_progress(f"{name}, {len(asked)} questions")
        there, near, true = (
            [hits for some in turns for hits in look(store, some)]
            for store in (distant, embedded, exact)
        )
        with_embedded, with_exact = _overlap(near, there), _overlap(true, there)
        kept &= with_embedded >= (1.0 if "dense" in name else 0.9)
        rows.append(
            (
                name,
                *(f"{one:.4f}" for one in (with_embedded, with_exact, _overlap(near, true))),
                f"{_gap(true, there):.0e}",
            )
        )
    return ResultTable(
        f"The same {K} hits, {count:,} documents on 3 shards",
        (
            "Share of the first ten that both find. Required: 1.0 for vectors, 0.9 for BM25, whose "
            "IDF is that of a shard, beside the embedded store."
        ),
        ("search", "cluster and embedded", "cluster and exact", "embedded and exact", "worst gap"),
        tuple(rows),
        (
            (
                "Exact: the store in memory. The embedded store's BM25 rounds lengths to 256 "
                "steps, which the fourth column shows."
            ),
            (
                "Worst gap: of the cluster's n-th score from the exact n-th, as a share of it: "
                "two that tie may trade places."
            ),
        ),
        kept,
    )


def _overlap(ours: Sequence[Sequence[Hit]], theirs: Sequence[Sequence[Hit]]) -> float:
    """Mean share of the longer list that both contain; two empty lists agree."""
    pairs = [
        ({hit.doc_id for hit in one}, {hit.doc_id for hit in other})
        for one, other in zip(ours, theirs)
    ]
    return float(
        np.mean(
            [
                len(one & other) / max(len(one), len(other), 1) if one | other else 1.0
                for one, other in pairs
            ]
        )
    )


def _gap(true: Sequence[Sequence[Hit]], theirs: Sequence[Sequence[Hit]]) -> float:
    """Largest relative difference of scores at the same rank."""
    pairs = [
        (one.score or 0.0, other.score or 0.0)
        for some, others in zip(true, theirs)
        for one, other in zip(some, others)
    ]
    return max((abs(one - other) / max(abs(one), 1e-9) for one, other in pairs), default=0.0)


def _operations(
    count: int, embedded: Any, distant: Any, vectors: Any, held: Sequence[Document]
) -> ResultTable:
    asked = questions()
    links = name_links(lambda: iter(held))
    bridges = {
        id(store): RETRIEVERS.get("bridge")(store, encoder=ENCODER, links=links)
        for store in (embedded, distant)
    }
    operations: dict[str, Callable[[Any, int], Any]] = {
        "get 10": lambda store, n: store.get([f"doc-{(n * 31 + at) % count}" for at in range(10)]),
        "BM25": lambda store, n: store.search_text([asked[n]], k=K),
        "BM25, filtered": lambda store, n: store.search_text([asked[n]], k=K, filters=[SOME]),
        "dense": lambda store, n: store.search_vectors(vectors[n : n + 1], k=K),
        "dense, filtered": lambda store, n: store.search_vectors(
            vectors[n : n + 1], k=K, filters=[SOME]
        ),
        "carriers of an entity": lambda store, n: store.lookup("entities", [f"entity {n}"]),
        "bridge": lambda store, n: bridges[id(store)].search([asked[n]], k=K),
        "replace 10": lambda store, n: store.put(held[n : n + 10]),
    }
    rows = []
    for name, operation in operations.items():
        print_progress(name)
        turns = 10 if name in ("bridge", "replace 10") else 40
        here, there = (_timed(operation, store, turns) for store in (embedded, distant))
        before = distant.round_trips
        operation(distant, 0)
        rows.append(
            (name, *(f"{one:.1f}" for one in (*here, *there)), str(distant.round_trips - before))
        )
    return ResultTable(
        f"One operation at a time, {count:,} documents",
        "Milliseconds, and requests to the cluster; bridge (3 hops) may take 5.",
        ("operation", "embedded p50", "p95", "cluster p50", "p95", "round trips"),
        tuple(rows),
        (where(),),
        next(int(row[-1]) for row in rows if row[0] == "bridge") <= 5,
    )


def _timed(operation: Callable[[Any, int], Any], store: Any, turns: int) -> tuple[float, float]:
    operation(store, 0)
    took = []
    for n in range(1, turns + 1):
        start = time.perf_counter()
        operation(store, n)
        took.append(1000 * (time.perf_counter() - start))
    return float(np.percentile(took, 50)), float(np.percentile(took, 95))


def _costs(count: int, built: float, grown: int, store: QdrantStore) -> ResultTable:
    rows = [("documents a second, 2 copies each", f"{count / built:.0f}")]
    if grown:
        rows.append(
            ("memory of all nodes, KiB a document and copy", f"{grown / 1024 / count / 2:.2f}")
        )
    return ResultTable(f"Building, {count:,} documents", "", ("", ""), tuple(rows), (where(),))


# ---- quality


def quality(data: Path, limit: int, sets: Sequence[str] = SETS) -> Iterator[ResultTable]:
    """complete@k of two retrievers over both stores, on the questions of the data sets."""
    for name in sets:
        dataset = load(name, data / name)
        held = list(dataset.documents())
        encoded = ENCODER.encode([searchable_text(one) for one in held])
        examples = list(islice(dataset.questions(), limit))
        with (
            tempfile.TemporaryDirectory() as folder,
            EmbeddedStore(folder) as embedded,
            cluster() as (hosts, _),
        ):
            embedded.put(held, encoded)
            with QdrantStore(
                f"qdrant://{hosts}/quality-{name}?{SETTINGS}", refresh_s=600
            ) as distant:
                _filled(distant, held, encoded)
                yield _completeness(name, examples, held, embedded, distant)
                distant.drop()


def _completeness(
    name: str, examples: Sequence[Any], held: Sequence[Document], embedded: Any, distant: Any
) -> ResultTable:
    asked, gold = [one.question.text for one in examples], [one.gold.doc_ids for one in examples]
    links = name_links(lambda: iter(held))
    rows, kept = [], True
    for retriever, options in (
        ("bridge", {"encoder": ENCODER, "links": links}),
        ("hybrid-metagraph", {}),
    ):
        print_progress(f"{name}: {retriever}")
        found = [
            RETRIEVERS.get(retriever)(store, **options).search(asked, k=K)
            for store in (embedded, distant)
        ]
        for k in (2, 5, 10):
            here, there = (_complete(one, gold, k) for one in found)
            kept &= abs(here - there) <= 0.005
            rows.append(
                (f"{retriever} @{k}", f"{here:.4f}", f"{there:.4f}", f"{there - here:+.4f}")
            )
    return ResultTable(
        (
            f"Complete evidence on {name}: {len(held):,} documents on 3 shards, {len(asked):,} "
            f"questions"
        ),
        "Required: within 0.005.",
        ("retriever", "embedded", "cluster", "difference"),
        tuple(rows),
        (
            (
                "On the cluster hybrid-metagraph ranks each question's candidates, and the whole "
                "corpus in the embedded store."
            ),
        ),
        kept,
    )


def _complete(found: Sequence[Sequence[Hit]], gold: Sequence[Any], k: int) -> float:
    whole = [
        bool(one) and set(one) <= {hit.doc_id for hit in hits[:k]} for one, hits in zip(gold, found)
    ]
    return float(np.mean(whole))


def tables(quick: bool) -> Iterator[ResultTable]:
    for count in (1_000,) if quick else (1_000, 10_000):
        yield from measured(count)


def quality_tables(quick: bool) -> Iterator[ResultTable]:
    """On the real data, if available: SUFFICE_DATA, or the folder beside the project."""
    data = Path(
        os.environ.get("SUFFICE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
    )
    if data.is_dir():
        yield from quality(data, 50 if quick else 1_000)
    else:
        print_progress(f"no real data at {data}: quality is not measured")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="1,000 documents")
    parser.add_argument("--sizes", help="only these, with commas")
    parser.add_argument(
        "--quality",
        type=Path,
        metavar="DATA",
        help="bridge and hybrid-metagraph on the data sets in this folder",
    )
    parser.add_argument(
        "--sets", default=",".join(SETS), help="only these data sets, with --quality"
    )
    parser.add_argument(
        "--questions", type=int, default=1_000, help="of each data set, with --quality"
    )
    chosen = parser.parse_args()
    if chosen.quality:
        return print_all(quality(chosen.quality, chosen.questions, chosen.sets.split(",")))
    if chosen.sizes:
        return print_all(one for size in chosen.sizes.split(",") for one in measured(int(size)))
    return print_all(tables(chosen.quick))


if __name__ == "__main__":
    sys.exit(main())
