"""Optional features: similarity by an encoder, relevance by a cross-encoder, agreement of runs.

A hit that answers the second half of a question need not be similar to the question, but it is
similar to another hit or to one clause. The part of the question's vector that remains after the
nearest hits is what they do not explain. A document found by several retrievers is more likely
evidence, and what only the others found may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.gate.features import AGREEMENT, AGREEMENT_HIT, RELEVANCE, SIMILARITY, SIMILARITY_HIT
from suffice.gate.hits import MAX_PASSAGE_CHARS, UNNAMED_ID_PREFIX, NormalizedHits
from suffice.protocols import Encoder, Reranker
from suffice.types import Evidence

Floats = npt.NDArray[np.floating[Any]]
NEAREST_HITS = EXPLAINING_HITS = 4
RELEVANT_HITS = 5
MAX_CLAUSES = 8
MIN_CLAUSE_WORDS = 3
NO_RELEVANCE = -12.0  # the score of a missing hit
_CLAUSE_BREAK = re.compile(  # case-sensitive, to skip the "Who" that opens a question
    r"[,;?]|\b(?:that|which|who|whose|whom|where|when|and|or|than|if|while)\b"
)


def similarity_features(
    evidence: Sequence[Evidence], encoder: Encoder
) -> tuple[Floats, list[Floats], Floats]:
    """(questions, SIMILARITY), (hits, SIMILARITY_HIT) per question, and the questions' vectors."""
    if not evidence:
        vectors = np.zeros((0, encoder.dimension), np.float32)
        return np.zeros((0, len(SIMILARITY)), np.float32), [], vectors
    texts = [_texts(one) for one in evidence]
    titles = [[one.documents[hit.doc_id].title for hit in one.hits] for one in evidence]
    clauses = [split_clauses(one.question.text) for one in evidence]
    blocks = (block for kind in (texts, titles, clauses) for block in kind)
    every = list(dict.fromkeys(text for block in blocks for text in block))
    vectors = encoder.encode(every) if every else np.zeros((0, encoder.dimension), np.float32)
    at = {text: place for place, text in enumerate(every)}
    question_texts = [one.question.text[:MAX_PASSAGE_CHARS] for one in evidence]
    questions = encoder.encode(question_texts, query=True)
    of_sets, of_hits = np.zeros((len(evidence), len(SIMILARITY)), np.float32), []
    for row, parts in enumerate(zip(texts, titles, clauses, strict=True)):
        compared = (vectors[[at[text] for text in one]] for one in parts)
        block, of_sets[row] = _compare_vectors(questions[row], *compared)
        of_hits.append(block)
    return of_sets, of_hits, np.asarray(questions, dtype=np.float32)


def split_clauses(question: str) -> list[str]:
    """The question split at commas, relative words and conjunctions; empty if it has one part."""
    parts = [part.strip() for part in _CLAUSE_BREAK.split(question[:MAX_PASSAGE_CHARS])]
    found = [part for part in parts if len(part.split()) >= MIN_CLAUSE_WORDS]
    return found[:MAX_CLAUSES] if len(found) > 1 else []


def _texts(evidence: Evidence) -> list[str]:
    found = [evidence.documents[hit.doc_id] for hit in evidence.hits]
    return [f"{one.title}\n{one.text[:MAX_PASSAGE_CHARS]}".strip() for one in found]


def _compare_vectors(
    question: Floats, texts: Floats, titles: Floats, clauses: Floats
) -> tuple[Floats, list[float]]:
    """The columns of one question's hits, and those of the set, from unit vectors."""
    k = len(texts)
    if not k:
        return np.zeros((0, len(SIMILARITY_HIT)), np.float32), [0.0] * len(SIMILARITY)
    cosines, by_title = texts @ question, titles @ question
    others = max(k - 1, 1)
    between = _zero_diagonal(texts @ texts.T)
    twin, title_text = between.max(1), _zero_diagonal(titles @ texts.T).max(1)
    nearest = texts[cosines.argmax()]
    by_clause = texts @ clauses.T if len(clauses) else cosines[:, None]
    best = by_clause.max(0)
    won = np.bincount(by_clause.argmax(0), minlength=k)
    explains, left, rest = _matching_pursuit(question, texts)
    hits = [
        cosines, cosines - cosines.max(), _rank_shares(cosines), between.sum(1) / others, twin,
        twin - cosines, texts @ nearest, texts @ _unit(question + nearest), by_title,
        by_title - by_title.max(), title_text, by_title - cosines, by_clause.max(1), won,
        (by_clause - best).max(1), explains, texts @ _unit(rest),
    ]  # fmt: skip
    whole = [
        cosines.mean(), cosines.min(), *_largest(cosines, NEAREST_HITS),
        between.sum() / others / k, twin.max(), twin.min(), *_largest(by_title, NEAREST_HITS),
        by_title.mean(), by_clause.shape[1], best.min(), best.mean(), (won > 0).sum(), *left,
    ]  # fmt: skip
    return np.column_stack(hits).astype(np.float32), [float(one) for one in whole]


def _zero_diagonal(square: Floats) -> Floats:
    np.fill_diagonal(square, 0.0)
    return square


def _matching_pursuit(question: Floats, texts: Floats) -> tuple[Floats, list[float], Floats]:
    """Remove the part of the question along the hit most similar to the rest, up to four times.

    Returns what each hit removed, the remaining length after each step, and the remaining vector.
    """
    rest, took, left = question.astype(np.float64), np.zeros(len(texts)), []
    basis: list[Floats] = []
    free = np.ones(len(texts), bool)
    for _ in range(EXPLAINING_HITS):
        if free.any():
            at = int(np.where(free, texts @ rest, -np.inf).argmax())
            free[at] = False
            along = texts[at] - sum(((texts[at] @ one) * one for one in basis), np.zeros_like(rest))
            if (length := np.linalg.norm(along)) > 1e-3:  # a repeated text explains nothing new
                basis.append(along / length)
                share = rest @ basis[-1]
                took[at], rest = share**2, rest - share * basis[-1]
        left.append(float(np.linalg.norm(rest)))
    return took, left, rest


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-6))


def _rank_shares(values: Floats) -> Floats:
    """Rank by value, from 0 (largest) to 1; ties by order."""
    order = np.argsort(np.argsort(-values, kind="stable"), kind="stable")
    return order / max(len(values) - 1, 1)


def _largest(values: Floats, count: int, padding: float = 0.0) -> Floats:
    """The largest values, in order, padded if there are fewer."""
    missing = (0, max(0, count - len(values)))
    return np.pad(-np.sort(-values)[:count], missing, constant_values=padding)


def relevance_features(
    evidence: Sequence[Evidence], reranker: Reranker
) -> tuple[Floats, list[Floats]]:
    """(questions, RELEVANCE), and (hits, RELEVANCE_HIT) per question."""
    of_sets = np.full((len(evidence), len(RELEVANCE)), NO_RELEVANCE, np.float32)
    of_hits = []
    for row, one in enumerate(evidence):
        texts, question = _texts(one), one.question.text[:MAX_PASSAGE_CHARS]
        scores = np.asarray(reranker.score(question, texts) if texts else (), dtype=np.float64)
        if texts:
            of_sets[row] = [*_largest(scores, RELEVANT_HITS, NO_RELEVANCE), scores.mean()]
        behind = scores - scores.max(initial=-np.inf)
        columns = [scores, behind, _rank_shares(scores)]
        of_hits.append(np.column_stack(columns).astype(np.float32))
    return of_sets, of_hits


def agreement_features(
    hits: Sequence[NormalizedHits], others: Sequence[Sequence[NormalizedHits]]
) -> tuple[Floats, list[Floats]]:
    """(questions, AGREEMENT), and (hits, AGREEMENT_HIT) per question; -1 without another run."""
    found = [_compare_runs(own, runs) for own, runs in zip(hits, others, strict=True)]
    of_sets = np.array([one for one, _ in found], dtype=np.float32).reshape(-1, len(AGREEMENT))
    return of_sets, [of_hits for _, of_hits in found]


def _compare_runs(
    own: NormalizedHits, runs: Sequence[NormalizedHits]
) -> tuple[list[float], Floats]:
    k = len(own.evidence.hits)
    if not runs or not k:
        unknown = np.full((k, len(AGREEMENT_HIT)), -1.0, np.float32)
        return [-1.0] * len(AGREEMENT), unknown
    # (runs, hits), -1 if a run lacks the hit
    places = np.array([_positions_in_run(own, run) for run in runs])
    present = places >= 0
    best = np.where(present, 1 / (1 + np.maximum(places, 0)), 0.0).max(0)
    lengths = np.array([len(run.evidence.hits) for run in runs])
    only_there = float((lengths - present.sum(1)).mean()) / k
    same_order = float(np.mean([_order_agreement(row[row >= 0]) for row in places]))
    shared, by_all = float(present.mean()), float(present.all(0).mean())
    same_first = float((places[:, 0] == 0).mean())
    of_hits = np.column_stack([present.mean(0), best]).astype(np.float32)
    return [shared, by_all, same_first, same_order, only_there], of_hits


def _positions_in_run(own: NormalizedHits, run: NormalizedHits) -> list[int]:
    at: dict[tuple[str, str], int] = {}
    for place, keys in enumerate(_hit_keys(run)):
        for key in keys:
            at.setdefault(key, place)
    return [min((at[key] for key in keys if key in at), default=-1) for keys in _hit_keys(own)]


def _hit_keys(hits: NormalizedHits) -> list[list[tuple[str, str]]]:
    """What identifies each hit in another run: its id, the ids of its duplicates, its text."""
    found = []
    for hit, document in zip(hits.evidence.hits, hits.documents, strict=True):
        ids = hits.stands_for(hit.doc_id)
        keys = [("id", one) for one in ids if not one.startswith(UNNAMED_ID_PREFIX)]
        found.append([*keys, ("text", document.text)] if document.text else keys)
    return found


def _order_agreement(places: npt.NDArray[np.integer[Any]]) -> float:
    """Share of pairs of shared hits that both runs rank alike; one half without a pair."""
    if len(places) < 2:
        return 0.5
    first, second = np.triu_indices(len(places), 1)
    return float((places[first] < places[second]).mean())
