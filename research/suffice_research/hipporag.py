"""The HippoRAG series of papers: recall@5 on 1,000 questions each of MuSiQue, HotpotQA and
2WikiMultiHopQA.

NV-Embed-v2 is an encoder of 7B parameters; HippoRAG 2, GFM-RAG, PropRAG and Ψ-RAG search graphs
that a language model built. The figures come from the notes with our samples of these questions
(684, 716 and 706 of them), not from the papers themselves. None of them publishes complete@5.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["PAPERS"]

PAPERS: Mapping[str, Mapping[str, float]] = {
    "NV-Embed-v2": {"musique": 0.697, "hotpotqa": 0.945, "2wikimultihopqa": 0.765},
    "HippoRAG 2": {"musique": 0.747, "hotpotqa": 0.963, "2wikimultihopqa": 0.904},
    "GFM-RAG": {"musique": 0.593, "hotpotqa": 0.896, "2wikimultihopqa": 0.936},
    "PropRAG": {"musique": 0.773, "hotpotqa": 0.970, "2wikimultihopqa": 0.937},
    "Ψ-RAG": {"hotpotqa": 0.960, "2wikimultihopqa": 0.961},
}
