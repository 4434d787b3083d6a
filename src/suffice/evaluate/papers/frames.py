"""FRAMES: "Coverage-Aware Prediction of Multi-Hop RAG Answer Correctness on FRAMES", Hughes 2026.

Measured on the public test.tsv, titles only: our figures should equal these but for parsing.
"""

from __future__ import annotations

from suffice.evaluate.papers import Published

__all__ = ["TABLE_1", "TABLE_2", "TABLE_4", "TABLE_5"]

_PAPER = "FRAMES coverage (Hughes 2026)"

TABLE_1 = Published(
    _PAPER,
    "Table 1",
    "Parsed FRAMES dataset summary used in the experiment.",
    {
        "collection": {
            "questions": 824,
            "article mentions": 2674,
            "titles": 2517,
            "mean articles": 3.25,
            "median articles": 3,
            "fewest articles": 2,
            "most articles": 23,
        }
    },
)

TABLE_2 = Published(
    _PAPER,
    "Table 2",
    "Reasoning-type distribution; categories are multi-label.",
    {
        "questions": {
            "Multiple constraints": 549,
            "Numerical reasoning": 293,
            "Post processing": 107,
            "Tabular reasoning": 236,
            "Temporal reasoning": 278,
        }
    },
)

_PRINTED = {
    "bm25": "BM25-title",
    "hybrid-title": "Hybrid-title",
    "tfidf-char": "TF-IDF-char-title",
    "tfidf-word": "TF-IDF-word-title",
}
_KS = (4, 8, 10, 15, 25)


def _by_depth(metric: str, rows: dict[str, tuple[float, ...]]) -> dict[str, dict[str, float]]:
    return {system: {f"{metric}@{k}": value for k, value in zip(_KS, values)} for system, values in rows.items()}


TABLE_4 = Published(
    _PAPER,
    "Table 4",
    "Mean retrieval coverage by method and top-k.",
    _by_depth(
        "coverage",
        {
            "bm25": (0.484, 0.533, 0.546, 0.565, 0.582),
            "hybrid-title": (0.488, 0.538, 0.547, 0.571, 0.590),
            "tfidf-char": (0.453, 0.506, 0.521, 0.548, 0.581),
            "tfidf-word": (0.403, 0.454, 0.468, 0.484, 0.513),
        },
    ),
    _PRINTED,
)

TABLE_5 = Published(
    _PAPER,
    "Table 5",
    "Strict coverage-gated correctness by method and top-k.",
    _by_depth(
        "strict",
        {
            "bm25": (0.174, 0.218, 0.225, 0.243, 0.263),
            "hybrid-title": (0.174, 0.217, 0.225, 0.250, 0.273),
            "tfidf-char": (0.155, 0.200, 0.218, 0.239, 0.265),
            "tfidf-word": (0.131, 0.167, 0.178, 0.191, 0.216),
        },
    ),
    _PRINTED,
)
