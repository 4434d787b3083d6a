"""Graph propagation: one question, 20 seeds, 10 k to 1 M documents; against a stored scipy matrix and NetworkX at 10 k.

The columns have the shape of the controlled collection: 23 sources, 5 categories, 112 days; ten articles share a newsmaker and
a person, and a third of all articles name one of 40 bodies. `python -m benchmarks.bench_graph` uses one core.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

from suffice.retrieve.graph import Codes, DocumentGraph


def columns(documents: int) -> dict[str, Any]:
    rng = np.random.default_rng(42)
    story = np.arange(documents, dtype=np.int32) // 10
    bodies = 40
    stories = int(story[-1]) + 1
    watched = np.flatnonzero(rng.random(documents) < 0.35)
    row = np.concatenate([np.arange(documents), np.arange(documents), watched])
    column = np.concatenate([bodies + story, bodies + stories + story, rng.integers(bodies, size=len(watched))])
    ones = np.ones(len(row), dtype=np.float32)
    return {
        "sources": Codes(rng.integers(23, size=documents).astype(np.int32), 23),
        "categories": Codes(((story // 3) % 5).astype(np.int32), 5),
        "days": (738_000 + rng.integers(112, size=documents)).astype(np.int32),
        "entities": sparse.csr_matrix((ones, (row, column)), shape=(documents, bodies + 2 * stories)),
    }


def seed_rows(documents: int, questions: int) -> list[sparse.csr_matrix]:
    rng = np.random.default_rng(7)
    rows = []
    for _ in range(questions):
        at = rng.choice(documents, size=20, replace=False)
        rows.append(sparse.csr_matrix((rng.random(20) + 0.1, (np.zeros(20, dtype=int), at)), shape=(1, documents)))
    return rows


def milliseconds(work: Callable[[Any], object], rows: Sequence[Any]) -> float:
    """The median over the questions."""
    work(rows[0])
    times = []
    for row in rows:
        start = time.perf_counter()
        work(row)
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1000


def materialised(parts: dict[str, Any]) -> sparse.csr_matrix:
    """The whole matrix, relation by relation, as a user with scipy would store it."""
    documents = len(parts["days"])
    total = (parts["entities"] @ parts["entities"].T).tocsr()
    for weight, codes in ((0.15, parts["sources"]), (0.20, parts["categories"])):
        one_hot = sparse.csr_matrix((np.ones(documents, np.float32), (np.arange(documents), codes.codes)))
        total = total + np.float32(weight) * (one_hot @ one_hot.T)
    for weight, days in ((0.06, 7), (0.04, 30)):
        calendar = parts["days"] - parts["days"].min()
        one_hot = sparse.csr_matrix((np.ones(documents, np.float32), (np.arange(documents), calendar)))
        near = np.abs(np.subtract.outer(np.arange(one_hot.shape[1]), np.arange(one_hot.shape[1]))) <= days
        total = total + np.float32(weight) * (one_hot @ sparse.csr_matrix(near.astype(np.float32)) @ one_hot.T)
    total.setdiag(0)
    total.eliminate_zeros()
    return total.tocsr()


def networkx_propagation(matrix: sparse.csr_matrix, documents: int) -> Callable[[sparse.csr_matrix], object]:
    """A twentieth of the edges in NetworkX, since all of them would not fit into memory: a lower bound of its time."""
    import networkx as nx

    rng = np.random.default_rng(1)
    entries = matrix.tocoo()
    kept = np.flatnonzero((entries.row < entries.col) & (rng.random(entries.nnz) < 0.05))
    graph = nx.Graph()
    graph.add_nodes_from(range(documents))
    graph.add_weighted_edges_from(zip(entries.row[kept].tolist(), entries.col[kept].tolist(), entries.data[kept].tolist()))

    def propagate(row: sparse.csr_matrix) -> dict[int, float]:
        support: dict[int, float] = {}
        for at, score in zip(row.indices.tolist(), row.data.tolist()):
            for neighbour, edge in graph[at].items():
                support[neighbour] = support.get(neighbour, 0.0) + score * edge["weight"]
        return support

    return propagate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 k and 100 k documents only")
    sizes = [10_000, 100_000] if parser.parse_args().quick else [10_000, 100_000, 1_000_000]
    console = Console(width=110)
    table = Table(
        "documents",
        "build s",
        "ms a question",
        "ms from a full row",
        "pagerank ms",
        "bytes a document",
        title="Factored document graph",
    )
    ours: dict[int, float] = {}
    for documents in sizes:
        parts = columns(documents)
        start = time.perf_counter()
        graph = DocumentGraph.from_columns(**parts)
        build = time.perf_counter() - start
        ours[documents] = milliseconds(graph.propagate, seed_rows(documents, 20))
        full = milliseconds(graph.propagate, [row.toarray() for row in seed_rows(documents, 10)])
        walk = milliseconds(graph.pagerank, seed_rows(documents, 2))
        times = (f"{build:.2f}", f"{ours[documents]:.2f}", f"{full:.2f}", f"{walk:.0f}")
        table.add_row(f"{documents:,}", *times, f"{graph.nbytes / documents:.0f}")
    console.print(table)
    console.print(against_peers(sizes[0], ours[sizes[0]]))


def against_peers(documents: int, ours: float) -> Table:
    parts, rows = columns(documents), seed_rows(documents, 20)
    start = time.perf_counter()
    matrix = materialised(parts)
    build = time.perf_counter() - start
    difference = abs((rows[0] @ matrix).toarray() - DocumentGraph.from_columns(**parts).propagate(rows[0])).max()
    table = Table("way", "ms a question", "times ours", "bytes a document", title=f"Peers at {documents:,} documents")
    table.add_row("factored (ours)", f"{ours:.2f}", "1.0", f"{DocumentGraph.from_columns(**parts).nbytes / documents:.0f}")
    same_type = [row.astype(matrix.dtype) for row in rows]  # otherwise scipy would copy the whole matrix for each question
    stored = milliseconds(lambda row: (row @ matrix).toarray(), same_type)
    size = (matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes) / documents
    table.add_row(f"scipy, all edges stored ({build:.0f} s to build)", f"{stored:.2f}", f"{stored / ours:.1f}", f"{size:,.0f}")
    sampled = milliseconds(networkx_propagation(matrix, documents), rows)
    table.add_row("NetworkX with 5 % of the edges", f"{sampled:.2f}", f"{sampled / ours:.1f}", "")
    table.caption = f"largest difference between ours and the stored matrix: {difference:.1e}"
    return table


if __name__ == "__main__":
    main()
