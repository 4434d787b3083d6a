"""The store on Qdrant beside the embedded one: same hits, p50 and p95 of each operation, growth, memory, round trips.

    python -m benchmarks.bench_qdrant                            3 nodes, 3 shards, 2 copies, 100,000 documents
    python -m benchmarks.bench_qdrant --sizes 1000,10000         only these
    python -m benchmarks.bench_qdrant --folder DIR               keep the servers' folders, and take up what is in them

Documents have 20 to 80 words, drawn by Zipf's law from 50,000, and a wordllama vector. Servers are started here on 127.0.0.1; the
note below the table says whether they run under emulation, which makes each of their figures several times worse.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import numpy as np

from suffice.types import Document

VOCABULARY, SHORT, LONG = 50_000, 20, 80


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
            category=f"category {n % 7}",
            published_at=first + timedelta(days=n % 365),
            entities=(f"entity {n % 5000}", f"entity {n * 7 % 5000}"),
        )
