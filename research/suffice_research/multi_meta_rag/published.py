"""The figures that Multi-Meta-RAG (Poliakov and Shvai, 2024) reports on MultiHop-RAG.

Its encoder is voyage-02, its reranker bge-reranker-large, its filters GPT-3.5's, over whole
articles. Our copy of the corpus has only parts of most articles, so the figures are shown side by
side only to compare the gain from the filter.
"""

from __future__ import annotations

from suffice_research.published import PublishedTable

__all__ = ["ANSWERS", "OUTLETS_ELSEWHERE", "TABLE", "published_words"]

# The authors' prompt lists the 49 outlets of the whole corpus; no article in our copy is from these
# seven.
OUTLETS_ELSEWHERE = (
    "BBC News - Technology",
    "Eos: Earth And Space Science News",
    "Financial Times",
    "Rivals",
    "Science News For Students",
    "Scitechdaily | Science Space And Technology News 2017",
    "Wide World Of Sports",
)

TABLE = PublishedTable(
    paper="Multi-Meta-RAG",
    table="Table 2",
    caption=(
        "Retrieval with voyage-02 and a reranker on MultiHop-RAG, without and with "
        "GPT-3.5's filters."
    ),
    figures={
        "baseline + rerank": {"official_mrr@10": 0.60, "official_hits@4": 0.66},
        "filter + rerank": {"official_mrr@10": 0.66, "official_hits@4": 0.77},
    },
    printed={"baseline + rerank": "voyage-02", "filter + rerank": "voyage-02, Multi-Meta-RAG"},
    cautions={"official_mrr": "other encoder, reranker and corpus"},
)

# With the filter, from Table 2 of another version of the paper (arXiv 2406.13213) than our copy. We
# do not have its baseline, so the gain is unknown.
_OTHER_VERSION = {"official_mrr@10": 0.675, "official_hits@4": 0.792}

# Table 3: reader, filter, accuracy.
ANSWERS = (
    ("PaLM, in the paper", "baseline", 0.47),
    ("PaLM, in the paper", "published filter (GPT-3.5)", 0.61),
    ("GPT-4, in the paper", "baseline", 0.56),
    ("GPT-4, in the paper", "published filter (GPT-3.5)", 0.63),
)


def published_words() -> str:
    """What our copy of the paper reports, and what the other version reports."""
    pairs = (("MRR@10", "official_mrr@10"), ("Hits@4", "official_hits@4"))
    said = [
        f"{name} {TABLE.figures['baseline + rerank'][metric]:.2f} and "
        f"{TABLE.figures['filter + rerank'][metric]:.2f}"
        for name, metric in pairs
    ]
    other = " and ".join(f"{name} {_OTHER_VERSION[metric]}" for name, metric in pairs)
    return (
        f"{', '.join(said)}. Another version of its Table 2 (arXiv 2406.13213) has {other} with the "
        "filter; its baseline is not at hand, so that no gain follows from it"
    )
