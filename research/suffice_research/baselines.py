"""The gate's baselines in one table: query-performance predictors, cross-encoders, papers.

A baseline is a few features of each question and a small model over them. With one feature the
model is Platt scaling, so that a bare score also gets a probability; for the papers it is their
own. All are fitted on the same folds as the gate. `suffice evaluate gate` shows them beside it.

Each predictor from a paper is listed twice: *deployable*, with only what a gate in use knows, and
*oracle*, given the question's type, labels or hop count, as in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, did_you_mean
from suffice.evaluation.searching import RetrievedQuestion
from suffice.protocols import Reranker
from suffice_research.paper_features import QuestionAnnotations, frames_features, magaf_features
from suffice_research.paper_models import paper_model

__all__ = ["BASELINES", "Baseline", "baseline_predictions"]

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
Folds = Sequence[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]  # (fit on, predict)
Estimator = Callable[[Floats, Bools, int], Callable[[Floats], Floats]]  # (table, labels, seed)
VALIDATION = 0.15 / 0.85  # share of the rows to fit on: the paper's 70 / 15 / 15
TEXT_CHARACTERS = 4000  # of a hit for a cross-encoder, which cuts at 512 tokens anyway


@dataclass(frozen=True, slots=True)
class Baseline:
    """A name, its meaning, its features for each question, and the model over them."""

    name: str
    meaning: str
    figures: Callable[[Sequence[RetrievedQuestion]], Floats]
    model: Estimator


def score_figures(questions: Sequence[RetrievedQuestion]) -> Floats:
    """(questions, 5): top score, spread, margin, NQC and WIG. Missing scores and hits count as 0."""
    lists = [one.evidence.hits for one in questions]
    counts = np.array([max(len(hits), 1) for hits in lists])
    scores = np.zeros((len(lists), max([2, *map(len, lists)])))
    for row, hits in enumerate(lists):
        scores[row, : len(hits)] = [np.nan if hit.score is None else hit.score for hit in hits]
    scores[~np.isfinite(scores)] = 0.0
    present = np.arange(scores.shape[1]) < counts[:, None]
    mean = scores.sum(axis=1) / counts
    spread = np.sqrt((np.where(present, scores - mean[:, None], 0.0) ** 2).sum(axis=1) / counts)
    background = np.array([one.background for one in questions])
    words = np.array([max(len(one.question.text.split()), 1) for one in questions])
    nqc = np.divide(spread, np.abs(background), out=np.zeros(len(lists)), where=background != 0)
    wig = (mean - background) / np.sqrt(words)
    return np.column_stack([scores[:, 0], spread, scores[:, 0] - scores[:, 1], nqc, wig])


def cross_encoder_figures(questions: Sequence[RetrievedQuestion], reranker: Reranker) -> Floats:
    """(questions, 3): best and mean relevance of a hit, and relevance of all hits as one text."""
    out = np.zeros((len(questions), 3))
    for row, one in enumerate(questions):
        hits, text = one.hits, one.question.text
        if hits:
            shown = [f"{hit['title']}. {hit['text']}"[:TEXT_CHARACTERS] for hit in hits]
            each = np.asarray(reranker.score(text, shown), dtype=np.float64)
            # Each hit gets an equal share of the text, or the encoder would only see the first two.
            share = max(200, 2000 // len(shown))
            whole = np.asarray(reranker.score(text, [" ".join(part[:share] for part in shown)]))
            out[row] = each.max(), each.mean(), whole[0]
    return out


def platt_model(table: Floats, complete: Bools, seed: int) -> Callable[[Floats], Floats]:
    """Logistic regression on standardized columns."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    regression = LogisticRegression(C=100.0, max_iter=1000)
    model = make_pipeline(StandardScaler(), regression).fit(table, complete)
    return lambda rows: np.asarray(model.predict_proba(rows)[:, 1], dtype=np.float64)


def _score_baseline(at: int, name: str, meaning: str) -> Baseline:
    return Baseline(name, meaning, lambda questions: score_figures(questions)[:, [at]], platt_model)


SCORE_BASELINES = (
    _score_baseline(0, "top score", "Score of the first hit."),
    _score_baseline(1, "score std", "Standard deviation of the scores."),
    _score_baseline(2, "margin", "First score less the second."),
    _score_baseline(3, "NQC", "Spread of the scores over the mean score of a deep ranking."),
    _score_baseline(
        4,
        "WIG",
        "Mean score above that of a deep ranking, over the square root of the question's words.",
    ),
)


def _oracle_labels(questions: Sequence[RetrievedQuestion]) -> QuestionAnnotations:
    gold = [one.gold for one in questions]
    kinds, labels = [one.kind for one in gold], [one.labels for one in gold]
    return QuestionAnnotations(kinds, labels, [one.hops for one in gold])


def _evidence(questions: Sequence[RetrievedQuestion]) -> list[Any]:
    return [one.evidence for one in questions]


def magaf_model(table: Floats, complete: Bools, seed: int) -> Callable[[Floats], Floats]:
    """MAGAF's forest, with Platt scaling on a validation part."""
    order = np.random.default_rng(seed).permutation(len(complete))
    held_out, rest = np.split(order, [round(len(order) * VALIDATION)])
    model = paper_model("magaf", seed)
    if min(len(np.unique(complete[held_out])), len(np.unique(complete[rest]))) < 2:
        return model.fit(table, complete).predict
    validation = (table[held_out], complete[held_out])
    return model.fit(table[rest], complete[rest], validation=validation).predict


def frames_model(table: Floats, complete: Bools, seed: int) -> Callable[[Floats], Floats]:
    """FRAMES' best by ROC-AUC: a balanced logistic regression, uncalibrated as in the paper."""
    return paper_model("frames-lr", seed).fit(table, complete).predict


BASELINES = (
    *SCORE_BASELINES,
    Baseline(
        "FRAMES",
        "FRAMES' 18 features, labels guessed; logistic regression.",
        lambda questions: frames_features(_evidence(questions)),
        frames_model,
    ),
    Baseline(
        "MAGAF",
        "MAGAF's 20 features, types guessed; random forest, Platt.",
        lambda questions: magaf_features(_evidence(questions)),
        magaf_model,
    ),
    Baseline(
        "FRAMES (oracle)",
        "The same, told the labels and the hop count.",
        lambda questions: frames_features(
            _evidence(questions), question_labels=_oracle_labels(questions), hops=True
        ),
        frames_model,
    ),
    Baseline(
        "MAGAF (oracle)",
        "The same, told the type and the hop count.",
        lambda questions: magaf_features(
            _evidence(questions), question_labels=_oracle_labels(questions)
        ),
        magaf_model,
    ),
)


CROSS_ENCODED = (
    ("cross-encoder max", "CRAG-style: relevance of the most relevant hit."),
    ("cross-encoder mean", "Mean relevance of the hits."),
    ("cross-encoder whole", "Relevance of all hits as one text."),
)


def baseline_predictions(
    questions: Sequence[RetrievedQuestion],
    folds: Folds,
    *,
    names: Sequence[str] | None = None,
    reranker: Reranker | None = None,
    seed: int = 42,
) -> dict[str, Floats]:
    """Out-of-fold probabilities of each baseline; a reranker adds the cross-encoder ones (slow)."""
    known = [one.name for one in BASELINES] + [name for name, _ in CROSS_ENCODED]
    for name in names or ():
        if name not in known:
            raise InputError(f"no baseline is named {name!r}", hint=did_you_mean(name, known))
    wanted = known if names is None else names
    complete = np.array([one.complete for one in questions], dtype=bool)
    found = {}
    for one in BASELINES:
        if one.name in wanted:
            table = np.asarray(one.figures(questions), dtype=np.float64)
            found[one.name] = _predict_folds(table, complete, folds, one.model, seed)
    if reranker is not None and any(name in wanted for name, _ in CROSS_ENCODED):
        read = cross_encoder_figures(questions, reranker)
        for at, (name, _) in enumerate(CROSS_ENCODED):
            if name in wanted:
                found[name] = _predict_folds(read[:, [at]], complete, folds, platt_model, seed)
    return found


def _predict_folds(
    table: Floats, complete: Bools, folds: Folds, model: Estimator, seed: int
) -> Floats:
    p = np.full(len(complete), np.nan)
    for rest, held_out in folds:
        labels = complete[rest]
        if labels.all() or not labels.any():  # one class only: predict its share
            p[held_out] = labels.mean()
        else:
            p[held_out] = model(table[rest], labels, seed)(table[held_out])
    return p
