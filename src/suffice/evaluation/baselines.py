"""What a gate has to beat, as one table: query-performance predictors, cross-encoders, and the two papers' own predictors.

A baseline is a few figures of each case and a small model over them. For one figure the model is Platt scaling, so that a bare
score gets an honest probability, too; for the papers it is their own. All are fitted on the same folds as the gate.

The papers' predictors stand here twice: *deployable*, told nothing that a gate in use would not know, and *oracle*, told the
question's type, labels or hop count as the papers do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, did_you_mean
from suffice.evaluation.retrieved_questions import RetrievedQuestion
from suffice.protocols import Reranker
from suffice_research.paper_features import QuestionAnnotations, frames_features, magaf_features
from suffice_research.paper_models import paper_model

__all__ = [
    "BASELINES",
    "Baseline",
    "Estimator",
    "baseline_predictions",
    "cross_encoder_figures",
    "score_figures",
]

Floats = npt.NDArray[np.floating[Any]]
Folds = Sequence[
    tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]
]  # (rows to fit on, rows to predict)
Estimator = Callable[
    [Floats, npt.NDArray[np.bool_], int], Callable[[Floats], Floats]
]  # (table, complete, seed) -> predict
VALIDATION = 0.15 / 0.85  # of the rows to fit on: the paper's 70 / 15 / 15
TEXT_CHARACTERS = 4000  # of a hit that a cross-encoder is shown; it cuts at 512 tokens anyway


@dataclass(frozen=True, slots=True)
class Baseline:
    """A name, what it means, its figures for each case, and the model over them."""

    name: str
    meaning: str
    figures: Callable[[Sequence[RetrievedQuestion]], Floats]
    model: Estimator


# ------------------------------------------------------------------------------------------------------ figures


def score_figures(cases: Sequence[RetrievedQuestion]) -> Floats:
    """(cases, 5): top score, spread, margin, NQC and WIG. Missing scores and hits count as 0."""
    depth = max([2, *(len(case.evidence.hits) for case in cases)])
    scores, counts = (
        np.zeros((len(cases), depth)),
        np.array([max(len(case.evidence.hits), 1) for case in cases]),
    )
    for row, case in enumerate(cases):
        scores[row, : len(case.evidence.hits)] = [
            np.nan if one is None else one for one in case.scores
        ]
    scores[~np.isfinite(scores)] = 0.0
    held = np.arange(depth) < counts[:, None]
    mean = scores.sum(axis=1) / counts
    spread = np.sqrt((np.where(held, scores - mean[:, None], 0.0) ** 2).sum(axis=1) / counts)
    background = np.array([case.background for case in cases])
    words = np.array([max(len(case.question.text.split()), 1) for case in cases])
    nqc = np.divide(spread, np.abs(background), out=np.zeros(len(cases)), where=background != 0)
    wig = (mean - background) / np.sqrt(words)
    return np.column_stack([scores[:, 0], spread, scores[:, 0] - scores[:, 1], nqc, wig])


def _score_column(at: int) -> Callable[[Sequence[RetrievedQuestion]], Floats]:
    return lambda cases: score_figures(cases)[:, [at]]


def cross_encoder_figures(cases: Sequence[RetrievedQuestion], reranker: Reranker) -> Floats:
    """(cases, 3): the best and the mean relevance of a hit, and the relevance of all hits as one text. Slow."""
    out = np.zeros((len(cases), 3))
    for row, case in enumerate(cases):
        texts = [
            f"{title}. {text}"[:TEXT_CHARACTERS] for title, text in zip(case.titles, case.texts)
        ]
        if texts:
            each = np.asarray(reranker.score(case.question.text, texts), dtype=np.float64)
            # As one text every hit gets a like share of what the encoder can read, or it would see the first two only.
            share = max(200, 2000 // len(texts))
            whole = np.asarray(
                reranker.score(case.question.text, [" ".join(text[:share] for text in texts)])
            )
            out[row] = each.max(), each.mean(), whole[0]
    return out


def _oracle_labels(cases: Sequence[RetrievedQuestion]) -> QuestionAnnotations:
    gold = [case.gold for case in cases]
    return QuestionAnnotations(
        [one.kind for one in gold], [one.labels for one in gold], [one.hops for one in gold]
    )


def _evidence(cases: Sequence[RetrievedQuestion]) -> list[Any]:
    return [case.evidence for case in cases]


# ------------------------------------------------------------------------------------------------------ models


def platt_model(
    table: Floats, complete: npt.NDArray[np.bool_], seed: int
) -> Callable[[Floats], Floats]:
    """Logistic regression on standardised columns."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=100.0, max_iter=1000)).fit(
        table, complete
    )
    return lambda rows: np.asarray(model.predict_proba(rows)[:, 1], dtype=np.float64)


def magaf_model(
    table: Floats, complete: npt.NDArray[np.bool_], seed: int
) -> Callable[[Floats], Floats]:
    """MAGAF's forest, with Platt scaling on a validation part."""
    order = np.random.default_rng(seed).permutation(len(complete))
    held, rest = np.split(order, [round(len(order) * VALIDATION)])
    if min(len(np.unique(complete[held])), len(np.unique(complete[rest]))) < 2:
        return paper_model("magaf", seed).fit(table, complete).predict
    return (
        paper_model("magaf", seed)
        .fit(table[rest], complete[rest], validation=(table[held], complete[held]))
        .predict
    )


def frames_model(
    table: Floats, complete: npt.NDArray[np.bool_], seed: int
) -> Callable[[Floats], Floats]:
    """FRAMES' best by ROC-AUC: a balanced logistic regression, which the paper does not calibrate."""
    return paper_model("frames-lr", seed).fit(table, complete).predict


BASELINES: tuple[Baseline, ...] = (
    Baseline("top score", "Score of the first hit.", _score_column(0), platt_model),
    Baseline("score std", "Standard deviation of the scores.", _score_column(1), platt_model),
    Baseline("margin", "First score less the second.", _score_column(2), platt_model),
    Baseline(
        "NQC",
        "Spread of the scores over the mean score of a deep ranking.",
        _score_column(3),
        platt_model,
    ),
    Baseline(
        "WIG",
        "Mean score above that of a deep ranking, over the square root of the question's words.",
        _score_column(4),
        platt_model,
    ),
    Baseline(
        "FRAMES",
        "FRAMES' 18 features, labels guessed; logistic regression.",
        lambda c: frames_features(_evidence(c)),
        frames_model,
    ),
    Baseline(
        "MAGAF",
        "MAGAF's 20 features, types guessed; random forest, Platt.",
        lambda c: magaf_features(_evidence(c)),
        magaf_model,
    ),
    Baseline(
        "FRAMES (oracle)",
        "The same, told the labels and the hop count.",
        lambda c: frames_features(_evidence(c), asked=_oracle_labels(c), hops=True),
        frames_model,
    ),
    Baseline(
        "MAGAF (oracle)",
        "The same, told the type and the hop count.",
        lambda c: magaf_features(_evidence(c), asked=_oracle_labels(c)),
        magaf_model,
    ),
)
CROSS_ENCODED = (
    ("cross-encoder max", "CRAG-style: relevance of the most relevant hit."),
    ("cross-encoder mean", "Mean relevance of the hits."),
    ("cross-encoder whole", "Relevance of all hits as one text."),
)


# ------------------------------------------------------------------------------------------------------ on folds


def baseline_predictions(
    cases: Sequence[RetrievedQuestion],
    folds: Folds,
    *,
    names: Sequence[str] | None = None,
    reranker: Reranker | None = None,
    seed: int = 42,
) -> dict[str, Floats]:
    """Out-of-fold probabilities of each baseline: name -> (cases,). With a reranker also the cross-encoder ones (slow)."""
    known = [one.name for one in BASELINES] + [name for name, _ in CROSS_ENCODED]
    for name in names or ():
        if name not in known:
            raise InputError(f"no baseline is named {name!r}", hint=did_you_mean(name, known))
    complete = np.array([case.complete for case in cases], dtype=bool)
    found = {}
    for one in BASELINES:
        if names is None or one.name in names:
            found[one.name] = _predict_folds(
                np.asarray(one.figures(cases), dtype=np.float64), complete, folds, one.model, seed
            )
    if reranker is not None and (names is None or any(name in names for name, _ in CROSS_ENCODED)):
        table = cross_encoder_figures(cases, reranker)
        for at, (name, _) in enumerate(CROSS_ENCODED):
            if names is None or name in names:
                found[name] = _predict_folds(table[:, [at]], complete, folds, platt_model, seed)
    return found


def _predict_folds(
    table: Floats, complete: npt.NDArray[np.bool_], folds: Folds, model: Estimator, seed: int
) -> Floats:
    p = np.full(len(complete), np.nan)
    for rest, held in folds:
        labels = complete[rest]
        # One class only: there is nothing to learn but its share.
        p[held] = (
            labels.mean()
            if labels.all() or not labels.any()
            else model(table[rest], labels, seed)(table[held])
        )
    return p
