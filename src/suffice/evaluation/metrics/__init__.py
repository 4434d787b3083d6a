"""How good a ranking is, question by question.

Everything starts from a `Judged` record: which ranks hold gold, and how much gold there is. A metric maps it to one value a
question, NaN where the metric is not defined for that question; the mean over the defined ones is the figure in a table.
Keeping the values apart is what makes intervals and paired comparisons possible.

Null questions have no gold documents: they take part in `null_rejection` only.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, did_you_mean

__all__ = [
    "ANSWER_METRICS",
    "METRICS",
    "PROBABILITY",
    "RANKING",
    "MetricRef",
    "Predictions",
    "ProbabilityMetric",
    "RankingMetric",
    "Rankings",
    "ReliabilityBin",
    "RiskCurve",
    "ece_by_chance",
    "exact_match",
    "gold_contained",
    "judge_rankings",
    "mean",
    "none_if_nan",
    "normalize_answer",
    "per_question",
    "probability_metric",
    "ranking_metric",
    "reliability",
    "risk_coverage",
    "score",
    "token_f1",
    "word_overlap",
]


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MOST_GOLD = 2**53  # documents of a question: beyond, not every whole number is a floating-point one


@dataclass(frozen=True)
class Rankings:
    """Rankings after a look at the gold labels.

    `relevance` (questions, depth): how many gold documents the hit at this rank brings that no earlier hit brought; 0 behind
    the last hit. It is 0 or 1 unless one hit holds several gold facts. `gold` (questions,): how many there are; 0 is a null
    question. `top_score` (questions,): the first hit's score, -inf where nothing was found, NaN where it is unknown.
    """

    relevance: Floats
    gold: Ints
    top_score: Floats

    def __init__(
        self, relevance: npt.ArrayLike, gold: npt.ArrayLike, top_score: npt.ArrayLike | None = None
    ) -> None:
        relevance_, gold_ = _as_array(relevance, "relevance", 2), _as_array(gold, "gold", 1)
        scores = (
            np.full(len(gold_), np.nan)
            if top_score is None
            else _as_array(top_score, "top_score", 1, finite=False)
        )
        if not len(relevance_) == len(gold_) == len(scores):
            raise InputError(
                f"relevance has {len(relevance_)} rows, gold {len(gold_)}, top_score {len(scores)}: expected one a question"
            )
        if (
            (relevance_ < 0).any()
            or (gold_ < 0).any()
            or (gold_ % 1).any()
            or (gold_ > MOST_GOLD).any()
        ):
            raise InputError(
                "relevance must not be negative, and gold must be counts: 0, 1, 2, ..."
            )
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

    def rows(self, which: npt.NDArray[Any]) -> Rankings:
        """Only these questions: positions, or a mask."""
        return Rankings(self.relevance[which], self.gold[which], self.top_score[which])


def _as_array(values: npt.ArrayLike, name: str, dimensions: int, *, finite: bool = True) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers, all rows of one length: {error}") from error
    if array.ndim != dimensions:
        raise InputError(f"{name} must have {dimensions} dimension(s), it has shape {array.shape}")
    if finite and not np.isfinite(array).all():
        raise InputError(f"{name} holds NaN or infinity")
    return array


def judge_rankings(
    ranked: Sequence[Sequence[str]],
    gold: Sequence[Collection[str]],
    *,
    depth: int,
    top_scores: Sequence[float | None] | None = None,
) -> Rankings:
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
    return Rankings(relevance, [len(set(wanted)) for wanted in gold], scores)


# --------------------------------------------------------------------------- one value a question, NaN for null questions


def _per_gold(judged: Rankings, values: npt.NDArray[Any]) -> Floats:
    return np.where(judged.gold > 0, values, np.nan).astype(np.float64)


def _gold_found(judged: Rankings, k: int) -> Floats:
    found: Floats = judged.relevance[:, :k].sum(axis=1)
    return found


def _first_reciprocal_rank(judged: Rankings, k: int) -> Floats:
    """Reciprocal rank of the first relevant hit among the first k, 0 where there is none."""
    relevant = judged.relevance[:, :k] > 0
    return np.where(relevant.any(axis=1), 1 / (relevant.argmax(axis=1) + 1), 0.0)


def recall_at_k(judged: Rankings, k: int) -> Floats:
    return _per_gold(judged, _gold_found(judged, k) / np.maximum(judged.gold, 1))


def complete_at_k(judged: Rankings, k: int) -> Floats:
    return _per_gold(judged, _gold_found(judged, k) >= judged.gold)


def precision_at_k(judged: Rankings, k: int) -> Floats:
    return _per_gold(judged, (judged.relevance[:, :k] > 0).sum(axis=1) / k)


def hit_at_k(judged: Rankings, k: int) -> Floats:
    return _per_gold(judged, _first_reciprocal_rank(judged, k) > 0)


def reciprocal_rank_at_k(judged: Rankings, k: int) -> Floats:
    return _per_gold(judged, _first_reciprocal_rank(judged, k))


def average_precision_at_k(judged: Rankings, k: int) -> Floats:
    relevant = judged.relevance[:, :k] > 0
    precisions = np.cumsum(relevant, axis=1) / np.arange(1, k + 1)
    return _per_gold(judged, (precisions * relevant).sum(axis=1) / np.maximum(judged.gold, 1))


def ndcg_at_k(judged: Rankings, k: int) -> Floats:
    discounts = 1 / np.log2(np.arange(2, k + 2))
    best = np.concatenate([[1.0], np.cumsum(discounts)])[np.minimum(judged.gold, k)]
    return _per_gold(judged, (judged.relevance[:, :k] > 0) @ discounts / best)


def official_map_at_k(judged: Rankings, k: int) -> Floats:
    """MultiHop-RAG's `MAP@k`: each hit adds the gold it newly brings divided by its rank, not the precision up to there.

    Two gold documents on ranks 1 and 2 give (1/1 + 1/2) / 2 = 0.75, where the usual MAP gives 1. The divisor is min(gold, k).
    """
    gained = judged.relevance[:, :k] @ (1 / np.arange(1, k + 1))
    return _per_gold(judged, gained / np.clip(judged.gold, 1, k))


def null_rejection(judged: Rankings, threshold: float) -> Floats:
    """1 where a null question's best score stays below the threshold, 0 where it does not; nothing found is a rejection."""
    defined = (judged.gold == 0) & ~np.isnan(judged.top_score)
    return np.where(defined, judged.top_score < threshold, np.nan)


# ------------------------------------------------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True)
class RankingMetric:
    """A name, what it means, and the function to one value a question. `at` says what stands behind the @."""

    name: str
    meaning: str
    values: Callable[[Rankings, Any], Floats]
    at: str = "k"
    default: float | None = None  # without @: this; None: as deep as the ranking goes


RANKING: tuple[RankingMetric, ...] = (
    RankingMetric("recall", "Share of the gold documents among the first k hits.", recall_at_k),
    RankingMetric(
        "complete",
        "1 when every gold document is among the first k hits, else 0 (CompleteRecall@k).",
        complete_at_k,
    ),
    RankingMetric("coverage", "The FRAMES paper's word for recall.", recall_at_k),
    RankingMetric(
        "strict",
        "The FRAMES paper's word for complete (strict coverage-gated correctness).",
        complete_at_k,
    ),
    RankingMetric(
        "precision",
        "Share of gold among the first k places; empty places count as wrong.",
        precision_at_k,
    ),
    RankingMetric(
        "ndcg", "Gain discounted by log2(rank + 1), relative to the best possible order.", ndcg_at_k
    ),
    RankingMetric(
        "mrr",
        "1 / rank of the first gold document, 0 when none is among the first k.",
        reciprocal_rank_at_k,
    ),
    RankingMetric(
        "map",
        "Precision at the rank of each gold document found (0 where not), averaged over the gold.",
        average_precision_at_k,
    ),
    RankingMetric("hits", "1 when any gold document is among the first k hits, else 0.", hit_at_k),
    RankingMetric(
        "official_hits",
        "MultiHop-RAG's script: any gold in the first k; null questions left out.",
        hit_at_k,
    ),
    RankingMetric(
        "official_map",
        "MultiHop-RAG's script: sum of (newly found gold / rank), divided by min(gold, k).",
        official_map_at_k,
    ),
    RankingMetric(
        "official_mrr",
        "MultiHop-RAG's script: 1 / rank of the first gold among the first k.",
        reciprocal_rank_at_k,
    ),
    RankingMetric(
        "null_rejection",
        "Share of null questions whose best score stays below the threshold.",
        null_rejection,
        "threshold",
        0.5,
    ),
)


# --- probability: How good a probability is: does it separate, is it honest, and what does it cost to act on it?


@dataclass(frozen=True)
class Predictions:
    """Probabilities beside what came true. Labels are 0 or 1; fractions between are allowed for `mae` and `brier` alone."""

    labels: Floats
    probabilities: Floats

    def __init__(self, labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> None:
        for name, values in (("labels", labels), ("probabilities", probabilities)):
            object.__setattr__(self, name, _unit_interval(values, name))
        if len(self.labels) != len(self.probabilities):
            raise InputError(
                f"{len(self.labels)} labels for {len(self.probabilities)} probabilities: expected one each"
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def binary(self) -> bool:
        return bool(np.isin(self.labels, (0.0, 1.0)).all())


def _unit_interval(values: npt.ArrayLike, name: str) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers: {error}") from error
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, it has shape {array.shape}")
    if not ((array >= 0) & (array <= 1)).all():  # NaN fails both
        raise InputError(
            f"{name} must lie between 0 and 1, found {array[~((array >= 0) & (array <= 1))][0]}"
        )
    return array


def _ratio(over: Floats, under: Floats) -> Floats:
    """over / under, NaN where under is 0."""
    ratio: Floats = np.divide(over, under, out=np.full(np.shape(under), np.nan), where=under > 0)
    return ratio


def _weighted_mean(values: Floats, weights: Floats) -> Floats:
    return _ratio(weights @ values, weights.sum(axis=1))


# -------------------------------------------------------------------------------------------- at a threshold


def accuracy_at_threshold(labels: Floats, p: Floats, weights: Floats, threshold: float) -> Floats:
    return _weighted_mean((p >= threshold) == (labels > 0), weights)


def precision_at_threshold(labels: Floats, p: Floats, weights: Floats, threshold: float) -> Floats:
    chosen = (p >= threshold).astype(np.float64)
    return _ratio(weights @ (chosen * labels), weights @ chosen)


def recall_at_threshold(labels: Floats, p: Floats, weights: Floats, threshold: float) -> Floats:
    return _ratio(weights @ ((p >= threshold) * labels), weights @ labels)


def f1_at_threshold(labels: Floats, p: Floats, weights: Floats, threshold: float) -> Floats:
    chosen = (p >= threshold).astype(np.float64)
    return _ratio(2 * (weights @ (chosen * labels)), weights @ (chosen + labels))


# ------------------------------------------------------------------------------------------------ as an order


@dataclass(frozen=True)
class _ProbabilityGroups:
    """Weight of true and of all questions in each group of equal probability, best group first: (resamples, groups)."""

    thresholds: Floats
    true: Floats
    all: Floats


def _probability_groups(labels: Floats, p: Floats, weights: Floats) -> _ProbabilityGroups:
    if not len(p):
        nothing = np.zeros((len(weights), 0))
        return _ProbabilityGroups(np.zeros(0), nothing, nothing)
    order = np.argsort(-p, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(p[order]) != 0])
    ordered = weights[:, order]
    true = np.add.reduceat(ordered * labels[order], starts, axis=1)
    return _ProbabilityGroups(p[order][starts], true, np.add.reduceat(ordered, starts, axis=1))


def auroc(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    steps = _probability_groups(labels, p, weights)
    false = steps.all - steps.true
    true_above = np.cumsum(steps.true, axis=1) - steps.true
    won = (false * (true_above + steps.true / 2)).sum(axis=1)
    return _ratio(won, steps.true.sum(axis=1) * false.sum(axis=1))


def auprc(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    steps = _probability_groups(labels, p, weights)
    precisions = np.nan_to_num(_ratio(np.cumsum(steps.true, axis=1), np.cumsum(steps.all, axis=1)))
    return _ratio((steps.true * precisions).sum(axis=1), steps.true.sum(axis=1))


def _risk_by_group(labels: Floats, p: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Share answered and share of those that is wrong when answering down to each step: (resamples, groups) each."""
    steps = _probability_groups(labels, p, weights)
    answered = np.cumsum(steps.all, axis=1)
    wrong = np.cumsum(steps.all - steps.true, axis=1)
    return _ratio(answered, np.broadcast_to(answered[:, -1:], answered.shape)), _ratio(
        wrong, answered
    )


def aurc(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    if not len(p):
        return np.full(len(weights), np.nan)
    coverage, risk = _risk_by_group(labels, p, weights)
    area: Floats = (np.diff(coverage, axis=1, prepend=0) * np.nan_to_num(risk)).sum(axis=1)
    return area


def coverage_at_risk(labels: Floats, p: Floats, weights: Floats, risk: float) -> Floats:
    if not len(p):
        return np.full(len(weights), np.nan)
    coverage, risks = _risk_by_group(labels, p, weights)
    largest: Floats = np.where(np.nan_to_num(risks, nan=np.inf) <= risk, coverage, 0.0).max(axis=1)
    return largest


def risk_at_coverage(labels: Floats, p: Floats, weights: Floats, coverage: float) -> Floats:
    """Of questions with the same probability, a share is answered: what drawing lots among them gives on average."""
    if not len(p):
        return np.full(len(weights), np.nan)
    steps = _probability_groups(labels, p, weights)
    allowed = coverage * steps.all.sum(axis=1, keepdims=True)
    taken = np.clip(allowed - (np.cumsum(steps.all, axis=1) - steps.all), 0, steps.all)
    wrong = np.nan_to_num(_ratio(steps.all - steps.true, steps.all))
    return _ratio((taken * wrong).sum(axis=1), taken.sum(axis=1))


# ---------------------------------------------------------------------------------------------- as a number


def brier(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    return _weighted_mean((p - labels) ** 2, weights)


def log_loss(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    # A sure prediction that turns out wrong costs infinitely much; clipping as scikit-learn does keeps the mean readable.
    tiny = np.finfo(np.float64).eps
    inside = np.clip(p, tiny, 1 - tiny)
    return _weighted_mean(-(labels * np.log(inside) + (1 - labels) * np.log1p(-inside)), weights)


def ece(labels: Floats, p: Floats, weights: Floats, bins: float) -> Floats:
    gaps = np.zeros((len(p), int(bins)))
    gaps[np.arange(len(p)), _bin_numbers(p, int(bins))] = p - labels
    return _ratio(np.abs(weights @ gaps).sum(axis=1), weights.sum(axis=1))


def mae(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    return _weighted_mean(np.abs(p - labels), weights)


def positive_rate(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    return _weighted_mean(labels, weights)


def _bin_numbers(p: Floats, bins: int) -> npt.NDArray[np.intp]:
    return np.minimum((p * bins).astype(np.intp), bins - 1)


# ------------------------------------------------------------------------------------------------- curves


@dataclass(frozen=True, slots=True)
class RiskCurve:
    """What answering down to each threshold means: share answered, and share of the answered that is wrong."""

    thresholds: Floats
    coverage: Floats
    risk: Floats


def risk_coverage(predictions: Predictions) -> RiskCurve:
    """The risk-coverage curve, highest threshold first; empty without questions."""
    _require_binary(predictions, "risk_coverage")
    if not len(predictions):
        return RiskCurve(np.zeros(0), np.zeros(0), np.zeros(0))
    ones = np.ones((1, len(predictions)))
    coverage, risk = _risk_by_group(predictions.labels, predictions.probabilities, ones)
    return RiskCurve(
        _probability_groups(predictions.labels, predictions.probabilities, ones).thresholds,
        coverage[0],
        risk[0],
    )


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One bin of a calibration curve: how many questions, what was predicted on average, what came true."""

    low: float
    high: float
    count: int
    predicted: float | None
    observed: float | None


def reliability(predictions: Predictions, bins: int = 10) -> tuple[ReliabilityBin, ...]:
    """The calibration curve in bins of equal width; the frequency-weighted mean of |predicted - observed| is the ECE."""
    where = _bin_numbers(predictions.probabilities, bins)
    counts = np.bincount(where, minlength=bins)
    predicted = np.bincount(where, predictions.probabilities, bins)
    observed = np.bincount(where, predictions.labels, bins)
    return tuple(
        ReliabilityBin(
            at / bins,
            (at + 1) / bins,
            int(n),
            predicted[at] / n if n else None,
            observed[at] / n if n else None,
        )
        for at, n in enumerate(counts)
    )


def ece_by_chance(
    probabilities: npt.ArrayLike, *, bins: int = 10, draws: int = 1000, seed: int = 0
) -> float | None:
    """The ECE that these very probabilities would show on average if every one of them were true; None without questions.

    Few questions fall unevenly into bins, so an honest forecast has an ECE too: one near this level says nothing against it.
    """
    p = _unit_interval(probabilities, "probabilities")
    if not len(p):
        return None
    where, rng = _bin_numbers(p, bins), np.random.default_rng(seed)
    expected = np.bincount(where, p, bins)
    gaps = [
        np.abs(np.bincount(where, rng.random(len(p)) < p, bins) - expected).sum()
        for _ in range(draws)
    ]
    return float(np.mean(gaps) / len(p))


# ----------------------------------------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True)
class ProbabilityMetric:
    """A name, what it means, and the function. `at` says what may stand behind the @; empty: nothing may."""

    name: str
    meaning: str
    function: Callable[[Floats, Floats, Floats, Any], Floats]
    at: str = ""
    default: float | None = None
    fractions: bool = False  # labels between 0 and 1 make sense
    higher_is_better: bool = True

    def values(self, predictions: Predictions, weights: Floats, at: float | None = None) -> Floats:
        """One value a row of weights; NaN where it is not defined."""
        if not self.fractions:
            _require_binary(predictions, self.name)
        return self.function(
            predictions.labels,
            predictions.probabilities,
            weights,
            self.default if at is None else at,
        )


def _require_binary(predictions: Predictions, name: str) -> None:
    if not predictions.binary:
        raise InputError(
            f"{name} needs labels that are 0 or 1", hint="fractions fit mae and brier only"
        )


PROBABILITY: tuple[ProbabilityMetric, ...] = (
    ProbabilityMetric(
        "accuracy",
        "Share of right decisions at the threshold.",
        accuracy_at_threshold,
        "threshold",
        0.5,
    ),
    ProbabilityMetric(
        "precision",
        "Share of the positive decisions that are right; undefined without one.",
        precision_at_threshold,
        "threshold",
        0.5,
    ),
    ProbabilityMetric(
        "recall",
        "Share of the positives that are decided positive; undefined without one.",
        recall_at_threshold,
        "threshold",
        0.5,
    ),
    ProbabilityMetric(
        "f1",
        "Harmonic mean of precision and recall; undefined without positives and positive decisions.",
        f1_at_threshold,
        "threshold",
        0.5,
    ),
    ProbabilityMetric(
        "auroc",
        "Chance that a positive stands above a negative; ties count half. Needs both classes.",
        auroc,
    ),
    ProbabilityMetric(
        "auprc", "Average precision over the ranking of probabilities. Needs a positive.", auprc
    ),
    ProbabilityMetric(
        "brier",
        "Mean squared distance to what came true.",
        brier,
        fractions=True,
        higher_is_better=False,
    ),
    ProbabilityMetric(
        "log_loss", "Mean surprise in nats at what came true.", log_loss, higher_is_better=False
    ),
    ProbabilityMetric(
        "ece",
        "Gap between predicted and observed share, averaged over bins of equal width.",
        ece,
        "bins",
        10,
        higher_is_better=False,
    ),
    ProbabilityMetric(
        "mae",
        "Mean distance to what came true, or to the share of gold found.",
        mae,
        fractions=True,
        higher_is_better=False,
    ),
    ProbabilityMetric(
        "aurc",
        "Area under the risk-coverage curve: mean share of wrong answers over all thresholds.",
        aurc,
        higher_is_better=False,
    ),
    ProbabilityMetric(
        "coverage_at_risk",
        "Largest share answered with at most this share of wrong answers.",
        coverage_at_risk,
        "risk",
        0.1,
    ),
    ProbabilityMetric(
        "risk_at_coverage",
        "Share of wrong answers when this share is answered, the surest first; lots among equals.",
        risk_at_coverage,
        "coverage",
        0.5,
        higher_is_better=False,
    ),
    ProbabilityMetric(
        "positive_rate",
        "Share of positives: what a constant guess would be measured against.",
        positive_rate,
        fractions=True,
    ),
)


# --- answers: How close a given answer is to the gold answer, after SQuAD's normalisation: lower case, no punctuation, no articles.

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_QUOTED = re.compile(r'The answer to the question is "(.*?)"')
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """As SQuAD's evaluation script does it: "The Beatles!" and "beatles" become the same."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _exact(given: str, gold: str) -> float:
    return float(normalize_answer(given) == normalize_answer(gold))


def _f1(given: str, gold: str) -> float:
    ours, theirs = normalize_answer(given).split(), normalize_answer(gold).split()
    if not ours or not theirs:  # both empty agree, one empty shares nothing
        return float(ours == theirs)
    shared = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * shared / (len(ours) + len(theirs))


def _contained(given: str, gold: str) -> float:
    wanted = normalize_answer(gold)
    return float(bool(wanted) and f" {wanted} " in f" {normalize_answer(given)} ")


def _overlap(given: str, gold: str) -> float:
    quoted = _QUOTED.search(given)  # the sentence that MultiHop-RAG's prompt asks for
    return float(
        not set((quoted[1] if quoted else given).lower().split()).isdisjoint(gold.lower().split())
    )


def exact_match(given: Sequence[str], gold: Sequence[Sequence[str]]) -> Floats:
    """1 where an answer equals one of its gold answers: (questions,). NaN where there is no gold answer."""
    return _best_of_gold(_exact, given, gold)


def token_f1(given: Sequence[str], gold: Sequence[Sequence[str]]) -> Floats:
    """Overlap of words with the closest gold answer: (questions,). NaN where there is no gold answer."""
    return _best_of_gold(_f1, given, gold)


def gold_contained(given: Sequence[str], gold: Sequence[Sequence[str]]) -> Floats:
    """Accuracy: 1 where an answer holds a gold answer, word for word: (questions,). NaN where there is no gold answer."""
    return _best_of_gold(_contained, given, gold)


def word_overlap(given: Sequence[str], gold: Sequence[Sequence[str]]) -> Floats:
    """MultiHop-RAG's rule: 1 where an answer shares a word with a gold answer: (questions,). NaN where there is none."""
    return _best_of_gold(_overlap, given, gold)


def _best_of_gold(
    score: Callable[[str, str], float], given: Sequence[str], gold: Sequence[Sequence[str]]
) -> Floats:
    if isinstance(given, str) or any(isinstance(options, str) for options in gold):
        raise InputError(
            "expected a list of answers and, for each, a list of gold answers; found a bare text"
        )
    if len(given) != len(gold):
        raise InputError(f"{len(given)} answers for {len(gold)} questions: expected one each")
    best = (
        max((score(answer, option) for option in options), default=np.nan)
        for answer, options in zip(given, gold)
    )
    return np.fromiter(best, np.float64, len(given))


ANSWER_METRICS: dict[str, Callable[[Sequence[str], Sequence[Sequence[str]]], Floats]] = {
    "em": exact_match,
    "token_f1": token_f1,
    "accuracy": gold_contained,
    "word_overlap": word_overlap,
}


# --- metrics: Every figure that stands in one of our tables, by name: `recall@4`, `ndcg@8`, `auroc`, `f1@0.29`, `ece`.

_Metric = TypeVar("M", RankingMetric, ProbabilityMetric)

METRICS: tuple[RankingMetric | ProbabilityMetric, ...] = (*RANKING, *PROBABILITY)
# `precision` and `recall` exist for rankings and for decisions: what is measured tells which one is meant.
_RANKING = {metric.name: metric for metric in RANKING}
_PROBABILITY = {metric.name: metric for metric in PROBABILITY}


@dataclass(frozen=True, slots=True)
class MetricRef(Generic[_Metric]):
    """A metric and what stands behind its @: a cutoff, a threshold, a number of bins. None: its default."""

    metric: _Metric
    at: float | None

    def __str__(self) -> str:
        return self.metric.name if self.at is None else f"{self.metric.name}@{self.at:g}"


def ranking_metric(name: str) -> MetricRef[RankingMetric]:
    """The metric that `recall@4` names; InputError with the nearest names if there is none."""
    return _parse(name, _RANKING)


def probability_metric(name: str) -> MetricRef[ProbabilityMetric]:
    """The metric that `auroc` or `f1@0.29` names; InputError with the nearest names if there is none."""
    return _parse(name, _PROBABILITY)


def _parse(name: str, table: Mapping[str, _Metric]) -> MetricRef[_Metric]:
    base, at_sign, behind = name.strip().partition("@")
    metric = table.get(base)
    if metric is None:
        raise InputError(f"no metric is named {name!r}", hint=did_you_mean(base, table))
    return MetricRef(metric, _parse_suffix(name, metric.at, behind) if at_sign else None)


_SUFFIX_EXPECTED = {
    "": "no number behind the name",
    "k": "a whole number of hits of at least 1, like recall@4",
    "bins": "a whole number of bins from 1 to 1000, like ece@10",
    "risk": "a share between 0 and 1, like coverage_at_risk@0.1",
    "coverage": "a share above 0, up to 1, like risk_at_coverage@0.5",
    "threshold": "a number, like f1@0.5",
}


def _parse_suffix(name: str, meaning: str, text: str) -> float:
    try:
        value = float(int(text)) if meaning in ("k", "bins") else float(text)
    except (ValueError, OverflowError):
        value = math.nan
    allowed = {
        "": False,
        "k": value >= 1,
        "bins": 1 <= value <= 1000,
        "risk": 0 <= value <= 1,
        "coverage": 0 < value <= 1,
    }
    if not allowed.get(meaning, math.isfinite(value)):
        raise InputError(f"metric {name!r}: expected {_SUFFIX_EXPECTED[meaning]}")
    return value


def per_question(judged: Rankings, name: str) -> Floats:
    """A ranking metric's value for each question: (questions,), NaN where it does not apply."""
    wanted = ranking_metric(name)
    at = wanted.metric.default if wanted.at is None else wanted.at
    if wanted.metric.at == "k":
        at = judged.depth if at is None else int(at)
        if at > judged.depth:
            raise InputError(
                f"{name} looks at {at} hits, but the ranking was kept {judged.depth} deep",
                hint="evaluate deeper",
            )
    return wanted.metric.values(judged, at)


def score(what: Rankings | Predictions, name: str) -> float | None:
    """One figure: a ranking metric of judged rankings, or a probability metric of predictions. None where undefined."""
    if isinstance(what, Rankings):
        return mean(per_question(what, name))
    wanted = probability_metric(name)
    return none_if_nan(wanted.metric.values(what, np.ones((1, len(what))), wanted.at)[0])


def mean(values: npt.ArrayLike) -> float | None:
    """The mean of the defined values; None when there is none."""
    array = np.asarray(values, dtype=np.float64)
    array = array[~np.isnan(array)]
    return float(array.mean()) if array.size else None


def none_if_nan(value: float) -> float | None:
    """None for NaN."""
    return None if math.isnan(value) else float(value)
