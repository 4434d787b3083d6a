"""MAGAF's Figures 1 and 2, redrawn: the pipeline, and the graph of one real question."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from suffice.evaluation.report import Plot
from suffice.retrieval.corpus import Corpus
from suffice_research.figures import Arrow, Box, Diagram
from suffice_research.magaf.protocol import K
from suffice_research.magaf.tables import Setting
from suffice_research.paper_features import MAGAF
from suffice_research.retrievers import METAGRAPH
from suffice_research.retrievers import document_graph as graph

__all__ = ["figures", "pipeline", "question_graph"]

INPUT, STEP, LEARNED, OUTPUT = 6, 0, 1, 2  # colours
NEEDED, NOT_NEEDED = 2, 6


def figures(at: Setting) -> tuple[Plot, ...]:
    """Figure 1 once, for the paper's collection; Figure 2 for each collection."""
    return (*((pipeline(),) if at.with_paper else ()), question_graph(at))


def pipeline() -> Diagram:
    """Figure 1."""
    lexical, metadata, support = (f"{weight:g}" for weight in METAGRAPH)
    edges = f"entity {graph.ENTITY:.2f}, category {graph.CATEGORY:.2f}, source {graph.SOURCE:.2f}"
    boxes = (
        Box("question", "Question: its words and its type", 0, 0, INPUT),
        Box("named", "Metadata that it names: source, category, entity, date", 1, 0, STEP),
        Box(
            "hybrid",
            f"norm({lexical} lexical + {metadata} metadata + {support} graph)",
            2,
            0,
            STEP,
        ),
        Box("four", f"The {K} best documents and their scores", 3, 0, STEP),
        Box("documents", "Documents with source, category, entities, date", 0, 1, INPUT),
        Box("graph", f"Document graph: {edges}, date", 1, 1, STEP),
        Box(
            "features",
            f"{len(MAGAF)} features: query, hops, scores, metadata, graph, attention",
            3,
            1,
            STEP,
        ),
        Box("forest", "Random forest of 180 trees", 3, 2, LEARNED),
        Box("platt", "Platt scaling on the calibration part", 2, 2, LEARNED),
        Box("p", "p: is all evidence among them?", 1, 2, OUTPUT),
        Box("action", "Answer, expand, or abstain", 0, 2, OUTPUT),
    )
    arrows = (
        ("question", "named"),
        ("named", "hybrid"),
        ("documents", "graph"),
        ("graph", "hybrid"),
        ("hybrid", "four"),
        ("four", "features"),
        ("graph", "features"),
        ("features", "forest"),
        ("forest", "platt"),
        ("platt", "p"),
        ("p", "action"),
    )
    says = "Grey: what is given; blue: computed by fixed rules; orange: learned; green: what comes out. Nothing is generated before."
    title = "Figure 1. From a question to a probability"
    return Diagram(title, boxes, tuple(Arrow(*ends) for ends in arrows), says)


def question_graph(at: Setting) -> Diagram:
    """Figure 2: attention from the question to its hits, and edges between them, as measured."""
    case = at.measured.example
    hits = case.evidence.hits[:K]
    documents = [case.evidence.documents[hit.doc_id] for hit in hits]
    scores = np.array([hit.score or 0.0 for hit in hits])
    attention = np.exp(scores - scores.max(initial=0.0))
    attention /= attention.sum()
    pairs = list(combinations(range(len(hits)), 2))
    known = graph.DocumentGraph(Corpus(documents))
    weights = known.density(np.array(pairs, int).reshape(-1, 2))
    boxes = [Box("question", case.question.text, (len(hits) - 1) / 2, 0)]
    for rank, (hit, document) in enumerate(zip(hits, documents)):
        name = document.title or hit.doc_id
        boxes.append(
            Box(
                str(rank),
                name,
                rank,
                1.2,
                NEEDED if hit.doc_id in case.gold.doc_ids else NOT_NEEDED,
            )
        )
    arrows = [Arrow("question", str(rank), f"{one:.3f}") for rank, one in enumerate(attention)]
    for (one, other), weight in zip(pairs, weights):
        if weight > 0:
            bend = 0.3 + 0.35 * (other - one - 1)
            arrows.append(Arrow(str(one), str(other), f"{weight:.2f}", bend, head=False))
    held = sum(hit.doc_id in case.gold.doc_ids for hit in hits)
    (density,) = known.density([list(range(len(hits)))])
    says = (
        f"{case.question.text} Above: attention, the softmax of the scores. Below: edges of the document graph, mean {density:.3f}. "
        f"Green: needed. The question needs {len(case.gold.doc_ids)} documents and these hold {held}: the density does not show it."
    )
    title = at.title("Figure 2", "Attention and graph of one question")
    return Diagram(title, tuple(boxes), tuple(arrows), says)
