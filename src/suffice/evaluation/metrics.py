"""All metrics of our tables, by name: `recall@4`, `ndcg@8`, `auroc`, `f1@0.29`, `ece`, `em`.

An undefined value is None and printed `--`: a mean over no questions, AUROC with only one class.
Ranking metrics have one value per question, which makes intervals and paired comparisons possible.
Probability metrics take a row of weights per resample: a row of ones gives the plain figure, and
rows of bootstrap counts give a thousand figures from one sort.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, did_you_mean

__all__ = [
    "ANSWER_METRICS",
    "METRICS",
    "PROBABILITY",
    "RANKING",
    "Predictions",
    "Rankings",
    "judge_rankings",
    "per_question",
    "reliability",
    "score",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MAX_GOLD = 2**53  # documents per question: above it, floats skip whole numbers


# ------------------------------------------------------------------------------------ rankings


@dataclass(frozen=True)
class Rankings:
    """Ranked hits compared with gold labels.

    `relevance` (questions, depth): how many new gold documents the hit at this rank adds; 0 or 1
    unless one hit holds several gold facts. `gold` (questions,): the number of gold documents; 0 is
    a null question, which counts in `null_rejection` only. `top_score` (questions,): the first
    hit's score, -inf if nothing was found, NaN if unknown.
    """

    relevance: Floats
    gold: Ints
    top_score: Floats

    def __init__(
        self,
        relevance: npt.ArrayLike,
        gold: npt.ArrayLike,
        top_score: npt.ArrayLike | None = None,
    ) -> None:
        relevance_, gold_ = _as_array(relevance, "relevance", 2), _as_array(gold, "gold", 1)
        scores = np.full(len(gold_), np.nan)
        if top_score is not None:
            scores = _as_array(top_score, "top_score", 1, finite=False)
        if not len(relevance_) == len(gold_) == len(scores):
            raise InputError(
                f"relevance has {len(relevance_)} rows, gold {len(gold_)}, "
                f"top_score {len(scores)}: expected one a question"
            )
        whole = (gold_ >= 0) & (gold_ % 1 == 0) & (gold_ <= MAX_GOLD)
        if (relevance_ < 0).any() or not whole.all():
            raise InputError(
                "relevance must not be negative, and gold must be counts: 0, 1, 2, ..."
            )
        over = np.flatnonzero(relevance_.sum(axis=1) > gold_)
        if len(over):
            at = over[0]
            raise InputError(
                f"question {at} has {relevance_[at].sum():g} relevant hits "
                f"but {gold_[at]:g} gold documents",
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
        raise InputError(f"{name} contains NaN or infinity")
    return array


def judge_rankings(
    ranked: Sequence[Sequence[str]],
    gold: Sequence[Collection[str]],
    *,
    depth: int,
    top_scores: Sequence[float | None] | None = None,
) -> Rankings:
    """Compare ranked document ids with gold ids. A document ranked twice counts once."""
    if len(ranked) != len(gold):
        raise InputError(f"{len(ranked)} rankings for {len(gold)} questions: expected one each")
    if depth < 1:
        raise InputError(f"depth is {depth}, expected at least 1")
    relevance = np.zeros((len(ranked), depth))
    for row, (ids, wanted) in enumerate(zip(ranked, map(set, gold))):
        for rank, doc_id in enumerate(list(dict.fromkeys(ids))[:depth]):
            relevance[row, rank] = doc_id in wanted
    known = top_scores
    if known is None:
        known = [None if ids else -np.inf for ids in ranked]
    scores = [np.nan if score is None else float(score) for score in known]
    return Rankings(relevance, [len(set(wanted)) for wanted in gold], scores)


def _with_gold(rankings: Rankings, values: npt.NDArray[Any]) -> Floats:
    """The values, NaN for null questions."""
    return np.where(rankings.gold > 0, values, np.nan).astype(np.float64)


def _gold_found(rankings: Rankings, k: int) -> Floats:
    found: Floats = rankings.relevance[:, :k].sum(axis=1)
    return found


def _relevant(rankings: Rankings, k: int) -> npt.NDArray[np.bool_]:
    return np.asarray(rankings.relevance[:, :k] > 0)


def recall_at_k(rankings: Rankings, k: int) -> Floats:
    return _with_gold(rankings, _gold_found(rankings, k) / np.maximum(rankings.gold, 1))


def complete_at_k(rankings: Rankings, k: int) -> Floats:
    return _with_gold(rankings, _gold_found(rankings, k) >= rankings.gold)


def precision_at_k(rankings: Rankings, k: int) -> Floats:
    return _with_gold(rankings, _relevant(rankings, k).sum(axis=1) / k)


def hit_at_k(rankings: Rankings, k: int) -> Floats:
    return _with_gold(rankings, _relevant(rankings, k).sum(axis=1) > 0)


def reciprocal_rank_at_k(rankings: Rankings, k: int) -> Floats:
    relevant = _relevant(rankings, k)
    first = 1 / (relevant.argmax(axis=1) + 1)
    return _with_gold(rankings, np.where(relevant.any(axis=1), first, 0.0))


def average_precision_at_k(rankings: Rankings, k: int) -> Floats:
    relevant = _relevant(rankings, k)
    precisions = np.cumsum(relevant, axis=1) / np.arange(1, k + 1)
    gained = (precisions * relevant).sum(axis=1)
    return _with_gold(rankings, gained / np.maximum(rankings.gold, 1))


def ndcg_at_k(rankings: Rankings, k: int) -> Floats:
    discounts = 1 / np.log2(np.arange(2, k + 2))
    best = np.concatenate([[1.0], np.cumsum(discounts)])[np.minimum(rankings.gold, k)]
    return _with_gold(rankings, _relevant(rankings, k) @ discounts / best)


def official_map_at_k(rankings: Rankings, k: int) -> Floats:
    """MultiHop-RAG's `MAP@k`: each hit adds its new gold divided by its rank, not the precision.

    Two gold documents on ranks 1 and 2 give (1/1 + 1/2) / 2 = 0.75, where the usual MAP gives 1.
    The divisor is min(gold, k).
    """
    gained = rankings.relevance[:, :k] @ (1 / np.arange(1, k + 1))
    return _with_gold(rankings, gained / np.clip(rankings.gold, 1, k))


def null_rejection(rankings: Rankings, threshold: float) -> Floats:
    """1 if a null question's best score is below the threshold, or if nothing was found."""
    known = (rankings.gold == 0) & ~np.isnan(rankings.top_score)
    return np.where(known, rankings.top_score < threshold, np.nan)


@dataclass(frozen=True, slots=True)
class RankingMetric:
    """A name, its meaning, and a function that returns one value per question."""

    name: str
    meaning: str
    values: Callable[[Rankings, Any], Floats]
    at: str = "k"  # the parameter after the @
    default: float | None = None  # without @; None: the depth of the ranking


RANKING: tuple[RankingMetric, ...] = (
    RankingMetric("recall", "Share of the gold documents among the first k hits.", recall_at_k),
    RankingMetric("complete", "1 if all gold documents are in the first k, else 0.", complete_at_k),
    RankingMetric("coverage", "The FRAMES paper's word for recall.", recall_at_k),
    RankingMetric("strict", "The FRAMES paper's word for complete.", complete_at_k),
    RankingMetric("precision", "Share of gold; empty places count as wrong.", precision_at_k),
    RankingMetric("ndcg", "Gain discounted by log2(rank + 1), relative to the best.", ndcg_at_k),
    RankingMetric("mrr", "1 / rank of the first gold document, or 0.", reciprocal_rank_at_k),
    RankingMetric("map", "Mean precision at the rank of each gold.", average_precision_at_k),
    RankingMetric("hits", "1 if any gold document is among the first k hits, else 0.", hit_at_k),
    RankingMetric("official_hits", "MultiHop-RAG's script: any gold in the first k.", hit_at_k),
    RankingMetric("official_map", "MultiHop-RAG's script: new gold / rank.", official_map_at_k),
    RankingMetric("official_mrr", "MultiHop-RAG's script: 1 / first rank.", reciprocal_rank_at_k),
    RankingMetric(
        "null_rejection",
        "Share of null questions whose best score stays below the threshold.",
        null_rejection,
        "threshold",
        0.5,
    ),
)


# ------------------------------------------------------------------------------------ probabilities


@dataclass(frozen=True)
class Predictions:
    """Probabilities and labels of 0 or 1; fractions are allowed for `mae` and `brier` only."""

    labels: Floats
    probabilities: Floats

    def __init__(self, labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> None:
        for name, values in (("labels", labels), ("probabilities", probabilities)):
            object.__setattr__(self, name, unit_interval(values, name))
        if len(self.labels) != len(self.probabilities):
            raise InputError(
                f"{len(self.labels)} labels for {len(self.probabilities)} probabilities: "
                "expected one each"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def require_binary(self, name: str) -> None:
        if not np.isin(self.labels, (0.0, 1.0)).all():
            raise InputError(
                f"{name} needs labels that are 0 or 1", hint="fractions fit mae and brier only"
            )


def unit_interval(values: npt.ArrayLike, name: str) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers: {error}") from error
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, it has shape {array.shape}")
    inside = (array >= 0) & (array <= 1)  # NaN fails both
    if not inside.all():
        raise InputError(f"{name} must lie between 0 and 1, found {array[~inside][0]}")
    return array


def _ratio(over: Floats, under: Floats) -> Floats:
    """over / under, NaN if under is 0."""
    undefined = np.full(np.shape(under), np.nan)
    ratio: Floats = np.divide(over, under, out=undefined, where=under > 0)
    return ratio


def _weighted_mean(values: npt.NDArray[Any], weights: Floats) -> Floats:
    return _ratio(weights @ values, weights.sum(axis=1))


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


@dataclass(frozen=True)
class ProbabilityGroups:
    """Weight of true and of all questions in each group of equal probability, best group first.

    No threshold can separate equal probabilities, so they are one step: (resamples, groups).
    """

    thresholds: Floats
    true: Floats
    all: Floats

    @classmethod
    def of(cls, labels: Floats, p: Floats, weights: Floats) -> ProbabilityGroups:
        if not len(p):
            nothing = np.zeros((len(weights), 0))
            return cls(np.zeros(0), nothing, nothing)
        order = np.argsort(-p, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(p[order]) != 0])
        ordered = weights[:, order]
        true = np.add.reduceat(ordered * labels[order], starts, axis=1)
        return cls(p[order][starts], true, np.add.reduceat(ordered, starts, axis=1))

    def risks(self) -> tuple[Floats, Floats]:
        """Share answered, and share of these that is wrong, when answering down to each group."""
        answered = np.cumsum(self.all, axis=1)
        wrong = np.cumsum(self.all - self.true, axis=1)
        total = np.broadcast_to(answered[:, -1:], answered.shape)
        return _ratio(answered, total), _ratio(wrong, answered)


def auroc(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    groups = ProbabilityGroups.of(labels, p, weights)
    false = groups.all - groups.true
    true_above = np.cumsum(groups.true, axis=1) - groups.true
    won = (false * (true_above + groups.true / 2)).sum(axis=1)
    return _ratio(won, groups.true.sum(axis=1) * false.sum(axis=1))


def auprc(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    groups = ProbabilityGroups.of(labels, p, weights)
    true, every = (np.cumsum(one, axis=1) for one in (groups.true, groups.all))
    precisions = np.nan_to_num(_ratio(true, every))
    return _ratio((groups.true * precisions).sum(axis=1), groups.true.sum(axis=1))


def aurc(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    if not len(p):
        return np.full(len(weights), np.nan)
    coverage, risk = ProbabilityGroups.of(labels, p, weights).risks()
    area: Floats = (np.diff(coverage, axis=1, prepend=0) * np.nan_to_num(risk)).sum(axis=1)
    return area


def coverage_at_risk(labels: Floats, p: Floats, weights: Floats, risk: float) -> Floats:
    if not len(p):
        return np.full(len(weights), np.nan)
    coverage, risks = ProbabilityGroups.of(labels, p, weights).risks()
    within = np.nan_to_num(risks, nan=np.inf) <= risk
    largest: Floats = np.where(within, coverage, 0.0).max(axis=1)
    return largest


def risk_at_coverage(labels: Floats, p: Floats, weights: Floats, coverage: float) -> Floats:
    """Among questions with equal probability, a random share is answered."""
    if not len(p):
        return np.full(len(weights), np.nan)
    groups = ProbabilityGroups.of(labels, p, weights)
    allowed = coverage * groups.all.sum(axis=1, keepdims=True)
    taken = np.clip(allowed - (np.cumsum(groups.all, axis=1) - groups.all), 0, groups.all)
    wrong = np.nan_to_num(_ratio(groups.all - groups.true, groups.all))
    return _ratio((taken * wrong).sum(axis=1), taken.sum(axis=1))


def brier(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    return _weighted_mean((p - labels) ** 2, weights)


def log_loss(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    # A certain prediction that is wrong has infinite loss; scikit-learn clips the same way.
    tiny = np.finfo(np.float64).eps
    inside = np.clip(p, tiny, 1 - tiny)
    return _weighted_mean(-(labels * np.log(inside) + (1 - labels) * np.log1p(-inside)), weights)


def ece(labels: Floats, p: Floats, weights: Floats, bins: float) -> Floats:
    gaps = np.zeros((len(p), int(bins)))
    gaps[np.arange(len(p)), bin_numbers(p, int(bins))] = p - labels
    return _ratio(np.abs(weights @ gaps).sum(axis=1), weights.sum(axis=1))


def mae(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    return _weighted_mean(np.abs(p - labels), weights)


def positive_rate(labels: Floats, p: Floats, weights: Floats, _: float | None = None) -> Floats:
    return _weighted_mean(labels, weights)


def bin_numbers(p: Floats, bins: int) -> npt.NDArray[np.intp]:
    return np.minimum((p * bins).astype(np.intp), bins - 1)


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One bin of a calibration curve: number of questions, mean prediction, observed share."""

    low: float
    high: float
    count: int
    predicted: float | None
    observed: float | None


def reliability(predictions: Predictions, bins: int = 10) -> tuple[ReliabilityBin, ...]:
    """The calibration curve in bins of equal width; the weighted mean gap is the ECE."""
    where = bin_numbers(predictions.probabilities, bins)
    counts = np.bincount(where, minlength=bins)
    predicted = np.bincount(where, predictions.probabilities, bins)
    observed = np.bincount(where, predictions.labels, bins)
    found = []
    for at, n in enumerate(counts):
        means = (predicted[at] / n, observed[at] / n) if n else (None, None)
        found.append(ReliabilityBin(at / bins, (at + 1) / bins, int(n), *means))
    return tuple(found)


def ece_by_chance(
    probabilities: npt.ArrayLike, *, bins: int = 10, draws: int = 1000, seed: int = 0
) -> float | None:
    """The mean ECE of these probabilities if they were all true; None without questions.

    With few questions, bins vary by chance, so even a perfect forecast has an ECE.
    """
    p = unit_interval(probabilities, "probabilities")
    if not len(p):
        return None
    where, rng = bin_numbers(p, bins), np.random.default_rng(seed)
    expected = np.bincount(where, p, bins)
    drawn = (np.bincount(where, rng.random(len(p)) < p, bins) for _ in range(draws))
    return float(np.mean([np.abs(one - expected).sum() for one in drawn]) / len(p))


@dataclass(frozen=True, slots=True)
class ProbabilityMetric:
    """A name, its meaning, and the function."""

    name: str
    meaning: str
    function: Callable[[Floats, Floats, Floats, Any], Floats]
    at: str = ""  # the parameter after the @; empty: none
    default: float | None = None
    fractions: bool = False  # whether labels between 0 and 1 make sense
    higher_is_better: bool = True

    def values(self, predictions: Predictions, weights: Floats, at: float | None = None) -> Floats:
        """One value per row of weights; NaN if undefined."""
        if not self.fractions:
            predictions.require_binary(self.name)
        at = self.default if at is None else at
        return self.function(predictions.labels, predictions.probabilities, weights, at)


def _metric(
    name: str, meaning: str, function: Any, at: str = "", default: float | None = None
) -> ProbabilityMetric:
    lower = name in ("brier", "log_loss", "ece", "mae", "aurc", "risk_at_coverage")
    fractions = name in ("brier", "mae", "positive_rate")
    return ProbabilityMetric(name, meaning, function, at, default, fractions, not lower)


PROBABILITY: tuple[ProbabilityMetric, ...] = (
    _metric("accuracy", "Share of right decisions.", accuracy_at_threshold, "threshold", 0.5),
    _metric("precision", 'Share of "yes" that is right.', precision_at_threshold, "threshold", 0.5),
    _metric("recall", "Share of positives found.", recall_at_threshold, "threshold", 0.5),
    _metric("f1", "Harmonic mean of precision and recall.", f1_at_threshold, "threshold", 0.5),
    _metric("auroc", "Chance that a positive is above a negative; ties count half.", auroc),
    _metric("auprc", "Average precision over the ranking of probabilities.", auprc),
    _metric("brier", "Mean squared distance to what came true.", brier),
    _metric("log_loss", "Mean surprise in nats at what came true.", log_loss),
    _metric("ece", "Gap between predicted and observed share, over equal bins.", ece, "bins", 10),
    _metric("mae", "Mean distance to what came true, or to the share of gold found.", mae),
    _metric("aurc", "Area under the risk-coverage curve.", aurc),
    _metric(
        "coverage_at_risk", "Largest share answered at this risk.", coverage_at_risk, "risk", 0.1
    ),
    _metric(
        "risk_at_coverage", "Risk if this share is answered.", risk_at_coverage, "coverage", 0.5
    ),
    _metric("positive_rate", "Share of positives: what a constant guess gets.", positive_rate),
)


# ------------------------------------------------------------------------------------ by name

METRICS: tuple[RankingMetric | ProbabilityMetric, ...] = (*RANKING, *PROBABILITY)
# `precision` and `recall` exist for both; the type of the data decides.
_RANKING = {metric.name: metric for metric in RANKING}
_PROBABILITY = {metric.name: metric for metric in PROBABILITY}
_Metric = TypeVar("_Metric", RankingMetric, ProbabilityMetric)
_SUFFIX_EXPECTED = {
    "": "no number behind the name",
    "k": "a whole number of hits of at least 1, like recall@4",
    "bins": "a whole number of bins from 1 to 1000, like ece@10",
    "risk": "a share between 0 and 1, like coverage_at_risk@0.1",
    "coverage": "a share above 0, up to 1, like risk_at_coverage@0.5",
    "threshold": "a number, like f1@0.5",
}


@dataclass(frozen=True, slots=True)
class MetricRef(Generic[_Metric]):
    """A metric and the number after its @: a cutoff, a threshold, bins. None: its default."""

    metric: _Metric
    at: float | None

    def __str__(self) -> str:
        return self.metric.name if self.at is None else f"{self.metric.name}@{self.at:g}"


def ranking_metric(name: str) -> MetricRef[RankingMetric]:
    """The metric named like `recall@4`; InputError with the nearest names if there is none."""
    return _parse(name, _RANKING)


def probability_metric(name: str) -> MetricRef[ProbabilityMetric]:
    """The metric named like `f1@0.29`; InputError with the nearest names if there is none."""
    return _parse(name, _PROBABILITY)


def _parse(name: str, table: Mapping[str, _Metric]) -> MetricRef[_Metric]:
    base, at_sign, suffix = name.strip().partition("@")
    metric = table.get(base)
    if metric is None:
        raise InputError(f"no metric is named {name!r}", hint=did_you_mean(base, table))
    return MetricRef(metric, _parse_suffix(name, metric.at, suffix) if at_sign else None)


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


def per_question(rankings: Rankings, name: str) -> Floats:
    """A ranking metric for each question: (questions,), NaN where it does not apply."""
    wanted = ranking_metric(name)
    at = wanted.metric.default if wanted.at is None else wanted.at
    if wanted.metric.at == "k":
        at = rankings.depth if at is None else int(at)
        if at > rankings.depth:
            raise InputError(
                f"{name} needs {at} hits, but the ranking was kept {rankings.depth} deep",
                hint="evaluate deeper",
            )
    return wanted.metric.values(rankings, at)


def score(what: Rankings | Predictions, name: str) -> float | None:
    """One figure of rankings or predictions; None if undefined."""
    if isinstance(what, Rankings):
        values = per_question(what, name)
        values = values[~np.isnan(values)]
        return float(values.mean()) if values.size else None
    wanted = probability_metric(name)
    return none_if_nan(wanted.metric.values(what, np.ones((1, len(what))), wanted.at)[0])


def none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


# ------------------------------------------------------------------------------------ answers

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_QUOTED = re.compile(r'The answer to the question is "(.*?)"')
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Normalize like SQuAD's evaluation script: "The Beatles!" and "beatles" become equal."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _exact(answer: str, gold: str) -> float:
    return float(normalize_answer(answer) == normalize_answer(gold))


def _f1(answer: str, gold: str) -> float:
    ours, theirs = normalize_answer(answer).split(), normalize_answer(gold).split()
    if not ours or not theirs:  # two empty answers agree; otherwise nothing is shared
        return float(ours == theirs)
    shared = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * shared / (len(ours) + len(theirs))


def _contained(answer: str, gold: str) -> float:
    wanted = normalize_answer(gold)
    return float(bool(wanted) and f" {wanted} " in f" {normalize_answer(answer)} ")


def _overlap(answer: str, gold: str) -> float:
    """The lenient rule of the MultiHop-RAG papers: right if one word is shared exactly."""
    quoted = _QUOTED.search(answer)  # the sentence that MultiHop-RAG's prompt asks for
    words = set((quoted[1] if quoted else answer).lower().split())
    return float(not words.isdisjoint(gold.lower().split()))


def _best_of_gold(
    score: Callable[[str, str], float], answers: Sequence[str], gold: Sequence[Sequence[str]]
) -> Floats:
    """The score of each answer with its closest gold answer; NaN if there is none."""
    if isinstance(answers, str) or any(isinstance(options, str) for options in gold):
        raise InputError(
            "expected a list of answers and, for each, a list of gold answers; found a bare text"
        )
    if len(answers) != len(gold):
        raise InputError(f"{len(answers)} answers for {len(gold)} questions: expected one each")
    best = (
        max((score(answer, option) for option in options), default=np.nan)
        for answer, options in zip(answers, gold)
    )
    return np.fromiter(best, np.float64, len(answers))


AnswerMetric = Callable[[Sequence[str], Sequence[Sequence[str]]], Floats]
ANSWER_METRICS: dict[str, AnswerMetric] = {
    "em": partial(_best_of_gold, _exact),
    "token_f1": partial(_best_of_gold, _f1),
    "accuracy": partial(_best_of_gold, _contained),  # contains a gold answer word for word
    "word_overlap": partial(_best_of_gold, _overlap),
}
exact_match, token_f1, gold_contained, word_overlap = ANSWER_METRICS.values()
