"""The figures of PAR-RAG (Zhang et al., 2025): a large language model plans, reads and reviews,
compared with systems that do not plan.

The tables are from its first version (arXiv 2504.16787v1: Qwen-Plus, 500 questions per data set,
ten passages). From the last version, which revised them, we have only the relative gains in its
summary. It has no reader without a language model, so its figures are beside ours to compare
directions, never values.
"""

from __future__ import annotations

from suffice_research.published import PublishedTable

__all__ = ["COMPLEXITY", "FIGURE_2", "GAINS", "TABLE_2", "TABLE_4"]

_PAPER = "PAR-RAG"
_SETS = ("2wikimultihopqa", "hotpotqa", "musique")
_PRINTED = {"fixed k": "Vanilla RAG", "interleaved": "IRCoT+HippoRAG", "always": "PAR RAG"}


def _table(
    first: str, second: str, rows: dict[str, tuple[float, ...]]
) -> dict[str, dict[str, float]]:
    names = [f"{part}@{one}" for one in _SETS for part in (first, second)]
    return {system: dict(zip(names, values, strict=True)) for system, values in rows.items()}


# Our most similar system -> its figures. RAPTOR has none.
TABLE_2 = PublishedTable(
    _PAPER,
    "Table 2",
    "Exact match and F1 on three multi-hop data sets.",
    _table(
        "em",
        "token_f1",
        {
            "fixed k": (0.45, 0.516, 0.42, 0.564, 0.15, 0.206),
            "RAPTOR": (0.29, 0.397, 0.28, 0.424, 0.14, 0.239),
            "interleaved": (0.63, 0.726, 0.57, 0.722, 0.29, 0.387),
            "always": (0.73, 0.78, 0.75, 0.796, 0.40, 0.51),
        },
    ),
    printed=_PRINTED,
    cautions={
        "em": "its reader is Qwen-Plus, a language model of the largest kind",
        "token_f1": "as for exact match",
    },
)

FIGURE_2 = PublishedTable(
    _PAPER,
    "Figure 2",
    "Ablations: exact match and F1 without the plan, and without the review.",
    _table(
        "em",
        "token_f1",
        {
            "no plan": (0.61, 0.691, 0.51, 0.67, 0.26, 0.377),
            "no review": (0.64, 0.708, 0.52, 0.677, 0.30, 0.418),
            "always": (0.73, 0.78, 0.75, 0.796, 0.40, 0.51),
        },
    ),
    printed=_PRINTED,
)

TABLE_4 = PublishedTable(
    _PAPER,
    "Table 4",
    "Seconds and tokens a question.",
    _table(
        "seconds",
        "tokens",
        {
            "fixed k": (4.05, 854.50, 2.28, 775.38, 3.88, 832.70),
            "RAPTOR": (1.08, 1073.48, 1.17, 1033.98, 0.96, 994.30),
            "interleaved": (4.46, 1773.77, 5.23, 2226.32, 5.31, 2070.50),
            "always": (23.32, 10132.81, 23.8, 8902.45, 33.01, 11206.45),
        },
    ),
    printed=_PRINTED,
)

# From the summary of the last version; its classifier is a BERT with linguistic features.
COMPLEXITY = PublishedTable(
    _PAPER,
    "the summary of its last version",
    "Two-hop questions taken for one hop, recovery from a wrong class, errors of the plan.",
    {"always": {"two hops as one": 0.1868, "recovered": 0.7582, "plan": 0.27}},
)

# From the last version: how far its exact match is above that of the best other system, relative to
# it.
GAINS = PublishedTable(
    _PAPER,
    "the summary of its last version",
    "Relative gain in exact match over the best other system.",
    {"always": {"2wikimultihopqa": 0.1639, "hotpotqa": 0.0517, "musique": 0.0645}},
    printed=_PRINTED,
)
