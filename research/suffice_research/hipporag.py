"""The HippoRAG series of papers: recall@5 on 1,000 questions each of MuSiQue, HotpotQA and
2WikiMultiHopQA.

NV-Embed-v2 is an encoder of 7B parameters; HippoRAG 2, GFM-RAG, PropRAG and Ψ-RAG search graphs
that a language model built. The figures come from the notes with our samples of these questions
(684, 716 and 706 of them), not from the papers themselves. None of them publishes complete@5.
"""

from __future__ import annotations

from collections.abc import Mapping

from suffice.evaluation.retrieval_runs import RetrievalRun, retrieval_table
from suffice.evaluation.tables import Table
from suffice_research.published import PublishedTable

__all__ = ["PAPERS", "TABLES", "tables_beside"]

LLM_GRAPH = "at least one call of a language model a passage"
# What the notes with our samples say about the index; none gives seconds, tokens or memory.
INDEX_COSTS: Mapping[str, str] = {
    "NV-Embed-v2": "every passage through an encoder of 7B parameters",
    "HippoRAG 2": LLM_GRAPH,
    "GFM-RAG": LLM_GRAPH,
    "PropRAG": LLM_GRAPH,
    "Ψ-RAG": LLM_GRAPH,
}

PAPERS: Mapping[str, Mapping[str, float]] = {
    "NV-Embed-v2": {"musique": 0.697, "hotpotqa": 0.945, "2wikimultihopqa": 0.765},
    "HippoRAG 2": {"musique": 0.747, "hotpotqa": 0.963, "2wikimultihopqa": 0.904},
    "GFM-RAG": {"musique": 0.593, "hotpotqa": 0.896, "2wikimultihopqa": 0.936},
    "PropRAG": {"musique": 0.773, "hotpotqa": 0.970, "2wikimultihopqa": 0.937},
    "Ψ-RAG": {"hotpotqa": 0.960, "2wikimultihopqa": 0.961},
}

TABLES: Mapping[str, PublishedTable] = {
    name: PublishedTable(
        paper="HippoRAG 2, GFM-RAG, PropRAG, Ψ-RAG",
        table="retrieval",
        caption=(
            "Recall@5 on 1,000 questions, with encoders of 7B parameters and graphs built "
            "by a language model."
        ),
        figures={
            system: {"recall@5": figures[name]}
            for system, figures in PAPERS.items()
            if name in figures
        },
        cautions={"recall": "1,000 questions; ours are about 700 of them"},
    )
    for name in ("2wikimultihopqa", "hotpotqa", "musique")
}


def tables_beside(run: RetrievalRun, *, narrow: bool = False) -> list[Table]:
    """The run, and the published systems with the cost of their index if a source states it.

    A report (`narrow`) has its own tables of the run, without these systems.
    """
    if narrow:
        return []
    caution = "1,000 questions, of which ours are about 700. Seconds, tokens and memory of their "
    caution += "index, and complete@5: no source at hand states them."
    rows = [
        (system, figures[run.dataset], INDEX_COSTS[system])
        for system, figures in PAPERS.items()
        if run.dataset in figures
    ]
    title, columns = f"Published on {run.dataset}", ("system", "recall@5", "index")
    return [retrieval_table(run, intervals=True), Table(title, columns, tuple(rows), caution)]
