"""How good a ranking is, question by question.

Everything starts from a `Judged` record: which ranks hold gold, and how much gold there is. A metric maps it to one value a
question, NaN where the metric is not defined for that question; the mean over the defined ones is the figure in a table.
Keeping the values apart is what makes intervals and paired comparisons possible.

Null questions have no gold documents: they take part in `null_rejection` only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError

__all__ = ["RANKING", "Judged", "RankingMetric", "judge"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MOST_GOLD = 2**53  # documents of a question: beyond, not every whole number is a floating-point one


@dataclass(frozen=True)
class Judged:
    """Rankings after a look at the gold labels.

    `relevance` (questions, depth): how many gold documents the hit at this rank brings that no earlier hit brought; 0 behind
    the last hit. It is 0 or 1 unless one hit holds several gold facts. `gold` (questions,): how many there are; 0 is a null
    question. `top_score` (questions,): the first hit's score, -inf where nothing was found, NaN where it is unknown.
    """

    relevance: Floats
    gold: Ints
    top_score: Floats

    def __init__(self, relevance: npt.ArrayLike, gold: npt.ArrayLike, top_score: npt.ArrayLike | None = None) -> None:
        relevance_, gold_ = _numbers(relevance, "relevance", 2), _numbers(gold, "gold", 1)
        scores = np.full(len(gold_), np.nan) if top_score is None else _numbers(top_score, "top_score", 1, finite=False)
        if not len(relevance_) == len(gold_) == len(scores):
            raise InputError(
                f"relevance has {len(relevance_)} rows, gold {len(gold_)}, top_score {len(scores)}: expected one a question"
            )
        if (relevance_ < 0).any() or (gold_ < 0).any() or (gold_ % 1).any() or (gold_ > MOST_GOLD).any():
            raise InputError("relevance must not be negative, and gold must be counts: 0, 1, 2, ...")
        over = np.flatnonzero(relevance_.sum(axis=1) > gold_)
        if len(over):
            raise InputError(
                f"question {over[0]} has {relevance_[over[0]].sum():g} relevant hits but {gold_[over[0]]:g} gold documents",
                hint="count each gold document once, at the first hit that brings it",
            )
        object.__setattr__(self, "relevance", relevance_)
        object.__setattr__(self, "gold", gold_.astype(np.int64))
        object.__setattr__(self, "top_score", scores)

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def depth(self) -> int:
        return int(self.relevance.shape[1])

    def rows(self, which: npt.NDArray[Any]) -> Judged:
        """Only these questions: positions, or a mask."""
        return Judged(self.relevance[which], self.gold[which], self.top_score[which])


def _numbers(values: npt.ArrayLike, name: str, dimensions: int, *, finite: bool = True) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers, all rows of one length: {error}") from error
    if array.ndim != dimensions:
        raise InputError(f"{name} must have {dimensions} dimension(s), it has shape {array.shape}")
    if finite and not np.isfinite(array).all():
        raise InputError(f"{name} holds NaN or infinity")
    return array


def judge(
    ranked: Sequence[Sequence[str]],
    gold: Sequence[Collection[str]],
    *,
    depth: int,
    top_scores: Sequence[float | None] | None = None,
) -> Judged:
    """Compare ranked document ids with the gold ids of each question. A document ranked twice counts at its first rank."""
    if len(ranked) != len(gold):
        raise InputError(f"{len(ranked)} rankings for {len(gold)} questions: expected one each")
    if depth < 1:
        raise InputError(f"depth is {depth}, expected at least 1")
    relevance = np.zeros((len(ranked), depth))
    for row, (ids, wanted) in enumerate(zip(ranked, gold)):
        wanted = set(wanted)
        for rank, doc_id in enumerate(dict.fromkeys(ids)):
            if rank >= depth:
                break
            if doc_id in wanted:
                relevance[row, rank] = 1
    known = top_scores if top_scores is not None else [None if ids else -np.inf for ids in ranked]
    scores = [np.nan if score is None else float(score) for score in known]
    return Judged(relevance, [len(set(wanted)) for wanted in gold], scores)


# --------------------------------------------------------------------------- one value a question, NaN for null questions


def _per_gold(judged: Judged, values: npt.NDArray[Any]) -> Floats:
    return np.where(judged.gold > 0, values, np.nan).astype(np.float64)


def _found(judged: Judged, k: int) -> Floats:
    found: Floats = judged.relevance[:, :k].sum(axis=1)
    return found


def _first(judged: Judged, k: int) -> Floats:
    """Reciprocal rank of the first relevant hit among the first k, 0 where there is none."""
    relevant = judged.relevance[:, :k] > 0
    return np.where(relevant.any(axis=1), 1 / (relevant.argmax(axis=1) + 1), 0.0)


def recall(judged: Judged, k: int) -> Floats:
    return _per_gold(judged, _found(judged, k) / np.maximum(judged.gold, 1))


def complete(judged: Judged, k: int) -> Floats:
    return _per_gold(judged, _found(judged, k) >= judged.gold)


def precision(judged: Judged, k: int) -> Floats:
    return _per_gold(judged, (judged.relevance[:, :k] > 0).sum(axis=1) / k)


def hits(judged: Judged, k: int) -> Floats:
    return _per_gold(judged, _first(judged, k) > 0)


def reciprocal_rank(judged: Judged, k: int) -> Floats:
    return _per_gold(judged, _first(judged, k))


def average_precision(judged: Judged, k: int) -> Floats:
    relevant = judged.relevance[:, :k] > 0
    precisions = np.cumsum(relevant, axis=1) / np.arange(1, k + 1)
    return _per_gold(judged, (precisions * relevant).sum(axis=1) / np.maximum(judged.gold, 1))


def ndcg(judged: Judged, k: int) -> Floats:
    discounts = 1 / np.log2(np.arange(2, k + 2))
    best = np.concatenate([[1.0], np.cumsum(discounts)])[np.minimum(judged.gold, k)]
    return _per_gold(judged, (judged.relevance[:, :k] > 0) @ discounts / best)


def official_map(judged: Judged, k: int) -> Floats:
    """MultiHop-RAG's `MAP@k`: each hit adds the gold it newly brings divided by its rank, not the precision up to there.

    Two gold documents on ranks 1 and 2 give (1/1 + 1/2) / 2 = 0.75, where the usual MAP gives 1. The divisor is min(gold, k).
    """
    gained = judged.relevance[:, :k] @ (1 / np.arange(1, k + 1))
    return _per_gold(judged, gained / np.clip(judged.gold, 1, k))


def null_rejection(judged: Judged, threshold: float) -> Floats:
    """1 where a null question's best score stays below the threshold, 0 where it does not; nothing found is a rejection."""
    defined = (judged.gold == 0) & ~np.isnan(judged.top_score)
    return np.where(defined, judged.top_score < threshold, np.nan)


# ------------------------------------------------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True)
class RankingMetric:
    """A name, what it means, and the function to one value a question. `at` says what stands behind the @."""

    name: str
    meaning: str
    values: Callable[[Judged, Any], Floats]
    at: str = "k"
    default: float | None = None  # without @: this; None: as deep as the ranking goes


RANKING: tuple[RankingMetric, ...] = (
    RankingMetric("recall", "Share of the gold documents among the first k hits.", recall),
    RankingMetric("complete", "1 when every gold document is among the first k hits, else 0 (CompleteRecall@k).", complete),
    RankingMetric("coverage", "The FRAMES paper's word for recall.", recall),
    RankingMetric("strict", "The FRAMES paper's word for complete (strict coverage-gated correctness).", complete),
    RankingMetric("precision", "Share of gold among the first k places; empty places count as wrong.", precision),
    RankingMetric("ndcg", "Gain discounted by log2(rank + 1), relative to the best possible order.", ndcg),
    RankingMetric("mrr", "1 / rank of the first gold document, 0 when none is among the first k.", reciprocal_rank),
    RankingMetric(
        "map", "Precision at the rank of each gold document found (0 where not), averaged over the gold.", average_precision
    ),
    RankingMetric("hits", "1 when any gold document is among the first k hits, else 0.", hits),
    RankingMetric("official_hits", "MultiHop-RAG's script: any gold in the first k; null questions left out.", hits),
    RankingMetric(
        "official_map", "MultiHop-RAG's script: sum of (newly found gold / rank), divided by min(gold, k).", official_map
    ),
    RankingMetric("official_mrr", "MultiHop-RAG's script: 1 / rank of the first gold among the first k.", reciprocal_rank),
    RankingMetric(
        "null_rejection",
        "Share of null questions whose best score stays below the threshold.",
        null_rejection,
        "threshold",
        0.5,
    ),
)
