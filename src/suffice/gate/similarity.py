"""Likeness in meaning, for the quality preset: what an encoder, and if wanted a cross-encoder, see of question and hits.

Texts are compared as vectors: the question with each hit, with its title and by clauses, and the hits with one another. A hit
that answers the second half of a question need not be like the question; it is like another hit, or like one clause. What the
nearest hits leave of the question's vector is what they do not explain. A cross-encoder reads question and hit together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.gate.extraction import MAX_PASSAGE_CHARS
from suffice.gate.features import Feature
from suffice.gate.hits import UNNAMED_ID_PREFIX, DocumentMap, NormalizedHits, normalize_hits
from suffice.protocols import Encoder, Reranker
from suffice.types import Evidence

__all__ = [
    "RELEVANCE",
    "RELEVANCE_HIT",
    "SIMILARITY",
    "SIMILARITY_HIT",
    "agreement_features",
    "normalize_other_runs",
    "relevance_features",
    "similarity_features",
    "split_clauses",
    "unpack_pair",
]


Floats = npt.NDArray[np.floating[Any]]
NEAREST_HITS = 4  # hits that are seen one by one, nearest first
RELEVANT_HITS = 5  # the same for the cross-encoder
MAX_CLAUSES = 8
NO_RELEVANCE = -12.0  # a cross-encoder's score for a hit that is not there
MIN_CLAUSE_WORDS = 3  # words of a clause
_ORDINALS = ("nearest", "second nearest", "third nearest", "fourth nearest", "fifth nearest")
_CLAUSE_BREAK = re.compile(
    r"[,;?]|\b(?:that|which|who|whose|whom|where|when|and|or|than|if|while)\b"
)  # not the "Who" it opens with

SIMILARITY_HIT = {
    "cosine": "Cosine with the question.",
    "cosine_behind": "How far that is behind the nearest hit's.",
    "cosine_place": "Its place by cosine, from 0 (nearest) to 1.",
    "among": "Mean cosine with the other hits.",
    "twin": "Cosine with the hit most like it.",
    "apart": "That, less its cosine with the question.",
    "by_nearest": "Cosine with the hit nearest to the question.",
    "with_nearest": "Cosine with the sum of question and nearest hit.",
    "title": "Cosine of its title with the question; 0 without a title, as in all of these.",
    "title_behind": "How far that is behind the nearest title's.",
    "title_told": "Cosine of its title with the text of the hit most like it: does another hit speak of it?",
    "title_over": "Its title's cosine with the question, less its text's.",
    "clause": "Cosine with the clause of the question most like it.",
    "clauses_won": "To how many clauses it is the nearest hit.",
    "clause_behind": "How far it is behind the nearest hit in the clause where it does best.",
    "explains": "Share of the question's vector that it explains, if it is among the four that explain most together.",
    "unexplained": "Cosine with what those four leave of the question's vector.",
}
_SET_SIMILARITY = {
    "cosine_mean": "Mean cosine of the hits with the question.",
    "cosine_least": "The smallest.",
    **{
        f"cosine{at}": f"Cosine of the {which} hit."
        for at, which in enumerate(_ORDINALS[:NEAREST_HITS], 1)
    },
    "together": "Mean cosine between two hits.",
    "twins": "The largest cosine between two hits.",
    "loneliest": "Cosine of the hit least like any other with the one most like it.",
    **{
        f"title{at}": f"Cosine of the {which} title."
        for at, which in enumerate(_ORDINALS[:NEAREST_HITS], 1)
    },
    "title_mean": "Mean cosine of the titles with the question.",
    "clauses": "How many clauses the question has.",
    "clause_least": "Cosine of the clause that the hits are least like with the hit nearest to it.",
    "clause_mean": "Mean over clauses of the cosine with the nearest hit.",
    "clause_hits": "How many hits are the nearest to some clause.",
    **{
        f"left{at}": f"Length of what the {at} hits that explain most leave of the question's vector."
        for at in (1, 2, 3, 4)
    },
}
SIMILARITY = tuple(
    Feature("similarity", name, meaning) for name, meaning in _SET_SIMILARITY.items()
)

RELEVANCE_HIT = {
    "relevance": "The cross-encoder's score.",
    "relevance_behind": "How far that is behind the best one.",
    "relevance_place": "Its place by that score, from 0 (best) to 1.",
}
_SET_RELEVANCE = {
    **{
        f"relevance{at}": f"The cross-encoder's score for the hit it puts in place {at}."
        for at in range(1, RELEVANT_HITS + 1)
    },
    "relevance_mean": "Mean score of the cross-encoder.",
}
RELEVANCE = tuple(Feature("relevance", name, meaning) for name, meaning in _SET_RELEVANCE.items())


# ------------------------------------------------------------------------------------------------------ an encoder


def similarity_features(
    evidence: Sequence[Evidence], encoder: Encoder
) -> tuple[Floats, list[Floats], Floats]:
    """Columns of each question, (questions, SIMILARITY), of each hit, (hits, SIMILARITY_HIT) a question, and the questions'
    vectors."""
    if not evidence:
        return (
            np.zeros((0, len(SIMILARITY)), np.float32),
            [],
            np.zeros((0, encoder.dimension), np.float32),
        )
    texts = [_texts(one) for one in evidence]
    titles = [[one.documents[hit.doc_id].title for hit in one.hits] for one in evidence]
    parts = [split_clauses(one.question.text) for one in evidence]
    every = list(
        dict.fromkeys(text for kind in (texts, titles, parts) for block in kind for text in block)
    )
    vectors = encoder.encode(every) if every else np.zeros((0, encoder.dimension), np.float32)
    at = {text: place for place, text in enumerate(every)}
    asked = encoder.encode([one.question.text[:MAX_PASSAGE_CHARS] for one in evidence], query=True)
    whole, hits = np.zeros((len(evidence), len(SIMILARITY)), np.float32), []
    for row, blocks in enumerate(zip(texts, titles, parts, strict=True)):
        block, figures = _compare_vectors(
            asked[row], *(vectors[[at[text] for text in one]] for one in blocks)
        )
        hits.append(block)
        whole[row] = figures
    return whole, hits, np.asarray(asked, dtype=np.float32)


def split_clauses(question: str) -> list[str]:
    """The parts of a question between its commas, relative words and conjunctions; none where it is all one."""
    parts = [part.strip() for part in _CLAUSE_BREAK.split(question[:MAX_PASSAGE_CHARS])]
    found = [part for part in parts if len(part.split()) >= MIN_CLAUSE_WORDS]
    return found[:MAX_CLAUSES] if len(found) > 1 else []


def _texts(evidence: Evidence) -> list[str]:
    found = [evidence.documents[hit.doc_id] for hit in evidence.hits]
    return [f"{one.title}\n{one.text[:MAX_PASSAGE_CHARS]}".strip() for one in found]


def _compare_vectors(
    question: Floats, texts: Floats, titles: Floats, parts: Floats
) -> tuple[Floats, list[float]]:
    """The columns of one question's hits, and those of the whole; all from unit vectors."""
    k = len(texts)
    if not k:
        return np.zeros((0, len(SIMILARITY_HIT)), np.float32), [0.0] * len(SIMILARITY)
    cosines, by_title = texts @ question, titles @ question
    others = max(k - 1, 1)
    between = _zero_diagonal(texts @ texts.T)
    twin, told = between.max(1), _zero_diagonal(titles @ texts.T).max(1)
    nearest = texts[cosines.argmax()]
    by_clause = texts @ parts.T if len(parts) else cosines[:, None]
    best = by_clause.max(0)
    won = np.bincount(by_clause.argmax(0), minlength=k)
    explains, left, rest = _matching_pursuit(question, texts)
    hits = [
        cosines, cosines - cosines.max(), _rank_shares(cosines), between.sum(1) / others, twin, twin - cosines, texts @ nearest,
        texts @ _unit(question + nearest), by_title, by_title - by_title.max(), told, by_title - cosines,
        by_clause.max(1), won, (by_clause - best).max(1), explains, texts @ _unit(rest),
    ]  # fmt: skip
    whole = [
        cosines.mean(), cosines.min(), *_largest(cosines, NEAREST_HITS), between.sum() / others / k, twin.max(), twin.min(),
        *_largest(by_title, NEAREST_HITS), by_title.mean(), by_clause.shape[1], best.min(), best.mean(), (won > 0).sum(), *left,
    ]  # fmt: skip
    return np.column_stack(hits).astype(np.float32), [float(one) for one in whole]


def _zero_diagonal(square: Floats) -> Floats:
    """With zeros where a hit would meet itself."""
    np.fill_diagonal(square, 0.0)
    return square


def _matching_pursuit(
    question: Floats, texts: Floats, steps: int = 4
) -> tuple[Floats, list[float], Floats]:
    """Matching pursuit: take away the part of the question along the hit most like what is left, up to four times.

    What each hit took, the length of what was left after each step, and what is left in the end.
    """
    rest, took, left = question.astype(np.float64), np.zeros(len(texts)), []
    basis: list[Floats] = []
    free = np.ones(len(texts), bool)
    for _ in range(steps):
        if free.any():
            at = int(np.where(free, texts @ rest, -np.inf).argmax())
            free[at] = False
            along = texts[at] - sum(((texts[at] @ one) * one for one in basis), np.zeros_like(rest))
            if (length := np.linalg.norm(along)) > 1e-3:  # a text seen twice explains nothing new
                basis.append(along / length)
                share = rest @ basis[-1]
                took[at], rest = share**2, rest - share * basis[-1]
        left.append(float(np.linalg.norm(rest)))
    return took, left, rest


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-6))


def _rank_shares(values: Floats) -> Floats:
    """Place by value, from 0 (largest) to 1; ties by order."""
    return np.argsort(np.argsort(-values, kind="stable"), kind="stable") / max(len(values) - 1, 1)


def _largest(values: Floats, count: int, nothing: float = 0.0) -> Floats:
    """The largest so many, in order; `nothing` behind them where there are fewer."""
    return np.pad(
        -np.sort(-values)[:count], (0, max(0, count - len(values))), constant_values=nothing
    )


# ------------------------------------------------------------------------------------------------------ a cross-encoder


def relevance_features(
    evidence: Sequence[Evidence], reranker: Reranker
) -> tuple[Floats, list[Floats]]:
    """Columns of each question, (questions, RELEVANCE), and of each hit, (hits, RELEVANCE_HIT) a question."""
    whole, hits = np.full((len(evidence), len(RELEVANCE)), NO_RELEVANCE, np.float32), []
    for row, one in enumerate(evidence):
        texts = _texts(one)
        scores = np.asarray(
            reranker.score(one.question.text[:MAX_PASSAGE_CHARS], texts) if texts else (),
            dtype=np.float64,
        )
        if texts:
            whole[row] = [*_largest(scores, RELEVANT_HITS, NO_RELEVANCE), scores.mean()]
        hits.append(
            np.column_stack(
                [scores, scores - scores.max(initial=-np.inf), _rank_shares(scores)]
            ).astype(np.float32)
        )
    return whole, hits


# --- agreement: Agreement between retrievers: what other runs for the same question say of these hits.

MAX_OTHER_RUNS = 16  # read of one question: an endless generator must end
_AGREEMENT_HIT_WIDTH, _AGREEMENT_WIDTH = 2, 5  # columns, as assess.features describes them


def unpack_pair(pair: Any) -> tuple[Any, Any, Any]:
    """Question, hits and other runs of a (question, hits) or (question, hits, others)."""
    match pair:
        case (question, hits):
            return question, hits, ()
        case (question, hits, others):
            return question, hits, others
    raise InputError(
        f"a pair is of type {type(pair).__name__}, expected (question, hits) or (question, hits, others)"
    )


def normalize_other_runs(
    own: NormalizedHits, others: Iterable[Iterable[Any]], documents: DocumentMap | None = None
) -> list[NormalizedHits]:
    """The other runs for the same question, each to the depth of its own hits."""
    if isinstance(others, str | bytes) or not isinstance(others, Iterable):
        raise InputError(
            f"others is of type {type(others).__name__}, expected a list of runs",
            hint="others=[hits, more hits]",
        )
    depth = max(len(own.evidence.hits), 1)
    runs = zip(range(MAX_OTHER_RUNS), others)
    return [
        normalize_hits(own.evidence.question.text, run, documents=documents, k=depth)
        for _, run in runs
    ]


def agreement_features(
    taken: Sequence[NormalizedHits], others: Sequence[Sequence[NormalizedHits]]
) -> tuple[Floats, list[Floats]]:
    """Columns of each question, (questions, WHOLE), and of each hit, (hits, HIT) a question."""
    found = [_compare_runs(own, runs) for own, runs in zip(taken, others, strict=True)]
    whole = np.array([one for one, _ in found], dtype=np.float32).reshape(-1, _AGREEMENT_WIDTH)
    return whole, [hits for _, hits in found]


def _compare_runs(
    own: NormalizedHits, runs: Sequence[NormalizedHits]
) -> tuple[list[float], Floats]:
    k = len(own.evidence.hits)
    if not runs or not k:
        return [-1.0] * _AGREEMENT_WIDTH, np.full((k, _AGREEMENT_HIT_WIDTH), -1.0, np.float32)
    places = np.array(
        [_positions_in_run(own, run) for run in runs]
    )  # (runs, hits), -1 where a run lacks the hit
    held = places >= 0
    best = np.where(held, 1 / (1 + np.maximum(places, 0)), 0.0).max(0)
    lengths = np.array([len(run.evidence.hits) for run in runs])
    only_there = float((lengths - held.sum(1)).mean()) / k
    order = float(np.mean([_order_agreement(row[row >= 0]) for row in places]))
    whole = [
        float(held.mean()),
        float(held.all(0).mean()),
        float((places[:, 0] == 0).mean()),
        order,
        only_there,
    ]
    return whole, np.column_stack([held.mean(0), best]).astype(np.float32)


def _positions_in_run(own: NormalizedHits, run: NormalizedHits) -> list[int]:
    """Where the run has each of the hits."""
    at: dict[tuple[str, str], int] = {}
    for place, keys in enumerate(_hit_keys(run)):
        for key in keys:
            at.setdefault(key, place)
    return [min((at[key] for key in keys if key in at), default=-1) for keys in _hit_keys(own)]


def _hit_keys(taken: NormalizedHits) -> list[list[tuple[str, str]]]:
    """What each hit may be known by in another run: its id, those of the hits folded into it, its text."""
    found = []
    for hit in taken.evidence.hits:
        names = [
            name
            for name in (hit.doc_id, *taken.folded.get(hit.doc_id, ()))
            if not name.startswith(UNNAMED_ID_PREFIX)
        ]
        text = taken.evidence.documents[hit.doc_id].text
        found.append([("id", name) for name in names] + ([("text", text)] if text else []))
    return found


def _order_agreement(places: npt.NDArray[np.integer[Any]]) -> float:
    """Share of pairs of shared hits that both runs rank alike; one half where there is no pair."""
    if len(places) < 2:
        return 0.5
    first, second = np.triu_indices(len(places), 1)
    return float((places[first] < places[second]).mean())
