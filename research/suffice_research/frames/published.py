"""FRAMES: "Coverage-Aware Prediction of Multi-Hop RAG Answer Correctness on FRAMES", Hughes 2026.

Measured on the public test.tsv, titles only: our figures should equal these except for parsing, and
for what the paper leaves open about its features (see `evaluate.reproduce.frames`).
"""

from __future__ import annotations

from suffice_research.published import PublishedTable

__all__ = [
    "FIRST_HIT",
    "SEED",
    "TABLE_1",
    "TABLE_2",
    "TABLE_3",
    "TABLE_4",
    "TABLE_5",
    "TABLE_6",
    "TABLE_7",
    "TABLE_8",
    "TABLE_9",
    "TABLE_10",
]

SEED = 2024

_PAPER = "FRAMES coverage (Hughes 2026)"

TABLE_1 = PublishedTable(
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

TABLE_2 = PublishedTable(
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

TABLE_3 = PublishedTable(
    _PAPER,
    "Table 3",
    "Parsed gold article-count distribution after expanding wikipedia_link_11+.",
    {"questions": {"2": 314, "3": 286, "4": 132, "5-6": 55, "7-10": 26, "11+": 11}},
)

_PRINTED = {
    "bm25-title": "BM25-title",
    "hybrid-title-paper": "Hybrid-title",
    "tfidf-char": "TF-IDF-char-title",
    "tfidf-word": "TF-IDF-word-title",
}
_KS = (4, 8, 10, 15, 25)


def _by_depth(metric: str, rows: dict[str, tuple[float, ...]]) -> dict[str, dict[str, float]]:
    return {
        system: {f"{metric}@{k}": value for k, value in zip(_KS, values)}
        for system, values in rows.items()
    }


TABLE_4 = PublishedTable(
    _PAPER,
    "Table 4",
    "Mean retrieval coverage by method and top-k.",
    _by_depth(
        "coverage",
        {
            "bm25-title": (0.484, 0.533, 0.546, 0.565, 0.582),
            "hybrid-title-paper": (0.488, 0.538, 0.547, 0.571, 0.590),
            "tfidf-char": (0.453, 0.506, 0.521, 0.548, 0.581),
            "tfidf-word": (0.403, 0.454, 0.468, 0.484, 0.513),
        },
    ),
    _PRINTED,
)

TABLE_5 = PublishedTable(
    _PAPER,
    "Table 5",
    "Strict coverage-gated correctness by method and top-k.",
    _by_depth(
        "strict",
        {
            "bm25-title": (0.174, 0.218, 0.225, 0.243, 0.263),
            "hybrid-title-paper": (0.174, 0.217, 0.225, 0.250, 0.273),
            "tfidf-char": (0.155, 0.200, 0.218, 0.239, 0.265),
            "tfidf-word": (0.131, 0.167, 0.178, 0.191, 0.216),
        },
    ),
    _PRINTED,
)

FIRST_HIT = PublishedTable(
    _PAPER,
    "Retrieval coverage, in the text",
    (
        "The first relevant title stands near the top (of its mean reciprocal rank the paper "
        "says only: above 0.82)."
    ),
    {"hybrid-title-paper": {"precision@10": 0.159}},
    _PRINTED,
)

_BIN_METRICS = ("coverage@10", "strict@10", "coverage@25", "strict@25")


def _rows(
    metrics: tuple[str, ...], rows: dict[str, tuple[float, ...]]
) -> dict[str, dict[str, float]]:
    return {name: dict(zip(metrics, values, strict=True)) for name, values in rows.items()}


TABLE_6 = PublishedTable(
    _PAPER,
    "Table 6",
    "Hybrid-title coverage and strict correctness by parsed article-count bin.",
    _rows(
        _BIN_METRICS,
        {
            "2": (0.683, 0.449, 0.720, 0.510),
            "3": (0.519, 0.112, 0.561, 0.154),
            "4": (0.420, 0.053, 0.479, 0.098),
            "5-6": (0.410, 0.055, 0.446, 0.073),
            "7-10": (0.306, 0.077, 0.349, 0.154),
            "11+": (0.188, 0.000, 0.261, 0.000),
        },
    ),
)

TABLE_7 = PublishedTable(
    _PAPER,
    "Table 7",
    "Hybrid-title k=10 results by reasoning type.",
    _rows(
        ("coverage@10", "strict@10"),
        {
            "Multiple constraints": (0.481, 0.129),
            "Numerical reasoning": (0.610, 0.317),
            "Post processing": (0.511, 0.178),
            "Tabular reasoning": (0.543, 0.229),
            "Temporal reasoning": (0.554, 0.201),
        },
    ),
)

_FIGURES = ("auroc", "auprc", "brier", "accuracy", "f1")

# Systems are named setting / model, the models as in suffice_research.paper_models.
TABLE_8 = PublishedTable(
    _PAPER,
    "Table 8",
    "Five-fold prediction of strict correctness at k=10.",
    _rows(
        _FIGURES,
        {
            "operational / frames-lr": (0.796, 0.590, 0.178, 0.733, 0.534),
            "hops / frames-lr": (0.856, 0.689, 0.150, 0.778, 0.605),
            "operational / frames-rf": (0.768, 0.516, 0.161, 0.780, 0.517),
            "hops / frames-rf": (0.864, 0.686, 0.128, 0.807, 0.599),
            "operational / frames-gb": (0.774, 0.518, 0.142, 0.794, 0.370),
            "hops / frames-gb": (0.860, 0.673, 0.116, 0.845, 0.556),
            "all retrievers / frames-lr": (0.807, 0.580, 0.175, 0.737, 0.529),
            "all retrievers / frames-rf": (0.851, 0.650, 0.148, 0.801, 0.596),
            "all retrievers / frames-gb": (0.836, 0.619, 0.122, 0.826, 0.407),
        },
    ),
)

TABLE_9 = PublishedTable(
    _PAPER,
    "Table 9",
    "Logistic-regression feature ablation on Hybrid-title strict correctness at k=10.",
    _rows(
        _FIGURES,
        {
            "Prompt only": (0.675, 0.410, 0.227, 0.610, 0.422),
            "Reasoning types only": (0.708, 0.412, 0.210, 0.716, 0.491),
            "Score distribution only": (0.740, 0.492, 0.202, 0.697, 0.488),
            "Overlap only": (0.609, 0.296, 0.242, 0.624, 0.392),
            "Scores + overlap": (0.754, 0.509, 0.197, 0.701, 0.494),
            "All operational": (0.796, 0.590, 0.178, 0.733, 0.534),
            "All operational + hop count": (0.856, 0.689, 0.150, 0.778, 0.605),
        },
    ),
)

# Named like our own features; "printed" has the paper's names.
TABLE_10 = PublishedTable(
    _PAPER,
    "Table 10",
    "Top gradient-boosting feature importances for Hybrid-title operational prediction.",
    {
        "is_multiple_constraints": {"importance": 0.262},
        "gap_1_2": {"importance": 0.209},
        "top10_entropy": {"importance": 0.131},
        "top10_min": {"importance": 0.108},
        "title_jaccard_mean": {"importance": 0.075},
        "top1": {"importance": 0.038},
        "question_characters": {"importance": 0.036},
        "question_digits": {"importance": 0.030},
        "is_numerical_reasoning": {"importance": 0.025},
        "is_temporal_reasoning": {"importance": 0.022},
    },
    {
        "is_multiple_constraints": "rt_Multiple constraints",
        "gap_1_2": "top2_gap",
        "top10_entropy": "top10_score_entropy",
        "top10_min": "top10_min_score",
        "title_jaccard_mean": "top10_overlap_mean",
        "top1": "top1_score",
        "question_characters": "n_prompt_chars",
        "question_digits": "n_digits",
        "is_numerical_reasoning": "rt_Numerical reasoning",
        "is_temporal_reasoning": "rt_Temporal reasoning",
    },
)
