"""MAGAF: "Metadata-Aware Multi-Hop RAG Retrieval Quality Prediction with Graph and Attention Features", Nilsson 2026.

Its figures were measured on the author's controlled collection, which is not public. Ours is generated to the same counts and
set so that plain TF-IDF comes out near the paper's row; all other rows are comparisons of order and distance, not of decimals.
"""

from __future__ import annotations

from suffice.evaluate.papers import Published

__all__ = ["TABLE_1", "TABLE_3"]

_PAPER = "MAGAF (Nilsson 2026)"

TABLE_1 = Published(
    _PAPER,
    "Table 1",
    "Evaluation collection summary.",
    {
        "collection": {
            "queries": 2556,
            "documents": 609,
            "query types": 4,
            "null queries": 382,
            "non-null queries": 2174,
            "mean path length": 2.572,
            "two-hop paths": 1196,
            "three-hop paths": 712,
            "four-hop paths": 266,
            "sources": 23,
            "categories": 5,
        }
    },
)

_PRINTED = {
    "tfidf": "TF-IDF",
    "metadata-tfidf": "Metadata-TF-IDF",
    "dense-proxy": "Dense-proxy",
    "graph": "Graph-propagated",
    "hybrid-metagraph": "Hybrid-MetaGraph",
}

#            k  recall complete ndcg  mrr
_ROWS = {
    "tfidf": (
        (2, 0.345, 0.121, 0.437, 0.563),
        (4, 0.417, 0.210, 0.431, 0.572),
        (8, 0.478, 0.293, 0.460, 0.577),
    ),
    "metadata-tfidf": (
        (2, 0.385, 0.169, 0.479, 0.574),
        (4, 0.476, 0.289, 0.479, 0.584),
        (8, 0.532, 0.355, 0.505, 0.591),
    ),
    "dense-proxy": (
        (2, 0.395, 0.184, 0.486, 0.572),
        (4, 0.498, 0.314, 0.493, 0.582),
        (8, 0.550, 0.370, 0.517, 0.591),
    ),
    "graph": (
        (2, 0.336, 0.099, 0.429, 0.569),
        (4, 0.419, 0.201, 0.430, 0.581),
        (8, 0.492, 0.287, 0.464, 0.590),
    ),
    "hybrid-metagraph": (
        (2, 0.401, 0.190, 0.494, 0.575),
        (4, 0.501, 0.320, 0.498, 0.585),
        (8, 0.550, 0.374, 0.522, 0.594),
    ),
}
_COLUMNS = ("recall", "complete", "ndcg", "mrr")

TABLE_3 = Published(
    _PAPER,
    "Table 3",
    "Retrieval performance across cutoff values.",
    {
        system: {f"{name}@{k}": value for k, *values in rows for name, value in zip(_COLUMNS, values)} | {"null_rejection": 0.0}
        for system, rows in _ROWS.items()
    },
    _PRINTED,
    {
        "null_rejection": "The paper scales each question's scores so that the best is 1, and a fixed threshold then rejects "
        "nothing. Measured here on the retriever's own scores at 0.5: not the same thing, shown for completeness."
    },
)
