"""FRAMES, the second half of the paper: predicting whether every article was found. Tables 8 to 10.

The paper's protocol: stratified five-fold cross-validation with its seed, the same folds for every
model and feature set. Its pooled rows (every question once for each of four retrievers) are split
into folds row by row, so a question is on both sides. We measure them that way, and again with all
four rows of a question on one side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.evaluation.metrics import Predictions
from suffice.evaluation.searching import RetrievedQuestion
from suffice.evaluation.significance import Interval, interval
from suffice.protocols import Progress
from suffice_research.frames import published as paper
from suffice_research.frames.retrieval import NAMES, SearchResults
from suffice_research.paper_features import (
    FRAMES,
    FRAMES_WITH_HOPS,
    QuestionAnnotations,
    frames_features,
)
from suffice_research.paper_models import paper_model

__all__ = [
    "FAMILIES",
    "FOLDS",
    "MODELS",
    "FoldPredictions",
    "Folds",
    "Importance",
    "ablation",
    "columns",
    "complete_of",
    "folds_of",
    "importances",
    "informed_features",
    "kept_together",
    "out_of_fold",
    "paper_rows",
]

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.intp]
Folds = list[tuple[Ints, Ints]]  # (rows to fit on, rows to predict)

FOLDS = 5
MODELS = {
    "frames-lr": "logistic regression",
    "frames-rf": "random forest",
    "frames-gb": "gradient boosting",
}
SCALED = (
    "top1",
    "gap_1_2",
    "top10_mean",
    "top10_min",
)  # features on the scale of the retriever's scores
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "Prompt only": ("query",),
    "Reasoning types only": ("reasoning",),
    "Score distribution only": ("scores",),
    "Overlap only": ("overlap",),
    "Scores + overlap": ("scores", "overlap"),
    "All operational": ("query", "reasoning", "scores", "overlap"),
    "All operational + hop count": ("query", "reasoning", "scores", "overlap", "hops"),
}


@dataclass(frozen=True)
class FoldPredictions:
    """One predictor's output for rows it was not fitted on.

    `groups`: the question of each row, if a question has several rows.
    """

    setting: str
    model: str
    predictions: Predictions
    groups: Ints | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return f"{self.setting} / {self.model}"

    def figure(self, metric: str, seed: int) -> Interval:
        return interval(self.predictions, metric, groups=self.groups, seed=seed)


# ---- protocol


def folds_of(texts: Sequence[str], complete: Bools, seed: int) -> Folds:
    """Stratified folds over the distinct questions, as scikit-learn makes them; duplicates of a
    question share its fold.
    """
    from sklearn.model_selection import StratifiedKFold

    first = {text: at for at, text in reversed(list(enumerate(texts)))}
    different = sorted(first.values())
    labels = complete[different]
    if min(labels.sum(), (~labels).sum()) < FOLDS:
        raise InputError(
            (
                f"{int(labels.sum())} of {len(labels)} questions are complete: too few of one kind "
                f"for {FOLDS} folds"
            ),
            hint="give the whole test.tsv",
        )
    fold_of: dict[str, int] = {}
    parts = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(labels, labels)
    for fold, (_, held_out) in enumerate(parts):
        fold_of |= {texts[different[at]]: fold for at in held_out.tolist()}
    of = np.array([fold_of[text] for text in texts])
    return [(np.flatnonzero(of != fold), np.flatnonzero(of == fold)) for fold in range(FOLDS)]


def out_of_fold(
    tables: Floats | Sequence[Floats], complete: Bools, folds: Folds, model: str, seed: int
) -> Predictions:
    """Judge each row with the model fitted on the other folds; a list of tables has one for each
    fold.
    """
    p = np.zeros(len(complete))
    for at, (rest, held_out) in enumerate(folds):
        table = tables if isinstance(tables, np.ndarray) else tables[at]
        p[held_out] = (
            paper_model(model, seed).fit(table[rest], complete[rest]).predict(table[held_out])
        )
    return Predictions(complete.astype(float), p)


def informed_features(cases: Sequence[RetrievedQuestion]) -> Floats:
    """The paper's 19 features, with the reasoning labels and hop count given as in the paper."""
    gold = [case.gold for case in cases]
    question_labels = QuestionAnnotations(
        [one.kind for one in gold], [one.labels for one in gold], [one.hops for one in gold]
    )
    return frames_features(
        [case.evidence for case in cases], question_labels=question_labels, hops=True
    ).astype(float)


def complete_of(cases: Sequence[RetrievedQuestion]) -> Bools:
    return np.array([case.complete for case in cases], dtype=bool)


# ---- the nine rows


def paper_rows(
    searched: SearchResults, folds: Folds, *, progress: Progress | None = None
) -> list[FoldPredictions]:
    """Table 8: the hybrid without and with the hop count, then all retrievers pooled, split into
    folds row by row.
    """
    table, complete = informed_features(searched.cases()), complete_of(searched.cases())
    rows, labels, question = _pooled(searched)
    by_row = folds_of([str(at) for at in range(len(labels))], labels, searched.seed)
    plan: list[tuple[str, Floats, Bools, Folds, Ints | None]] = [
        ("operational", table[:, : len(FRAMES)], complete, folds, None),
        ("hops", table, complete, folds, None),
        ("all retrievers", rows, labels, by_row, question),
    ]
    found = []
    for setting, features, wanted, parts, groups in plan:
        for model in MODELS:
            found.append(
                FoldPredictions(
                    setting,
                    model,
                    out_of_fold(features, wanted, parts, model, searched.seed),
                    groups,
                )
            )
            if progress is not None:
                progress("fitting the paper's predictors", len(found), len(plan) * len(MODELS))
    return found


def kept_together(searched: SearchResults, folds: Folds) -> list[FoldPredictions]:
    """The pooled rows again, with all four rows of a question in the same fold."""
    rows, labels, question = _pooled(searched)
    parts = [
        (np.flatnonzero(np.isin(question, rest)), np.flatnonzero(np.isin(question, held_out)))
        for rest, held_out in folds
    ]
    return [
        FoldPredictions(
            "all, by question",
            model,
            out_of_fold(rows, labels, parts, model, searched.seed),
            question,
        )
        for model in MODELS
    ]


def _pooled(searched: SearchResults) -> tuple[Floats, Bools, Ints]:
    """Features with the retriever's name, labels and question of every pair of question and
    retriever.

    BM25's scores go up to thirty and TF-IDF's to one: each list is divided by its best score, as
    the hybrid does with its parts.
    """
    blocks = []
    scaled = [at for at, one in enumerate(FRAMES) if one.name in SCALED]
    best = [one.name for one in FRAMES].index("top1")
    for at, name in enumerate(NAMES):
        table = informed_features(searched.cases(name))[:, : len(FRAMES)]
        table[:, scaled] /= np.where(table[:, best] > 0, table[:, best], 1.0)[:, None]
        blocks.append(np.hstack([table, np.tile(np.eye(len(NAMES))[at], (len(table), 1))]))
    labels = np.concatenate([complete_of(searched.cases(name)) for name in NAMES])
    return np.concatenate(blocks), labels, np.tile(np.arange(len(blocks[0])), len(NAMES))


# ---- ablation, importances


def ablation(searched: SearchResults, folds: Folds) -> list[FoldPredictions]:
    """Table 9: logistic regression on parts of the features."""
    table, complete = informed_features(searched.cases()), complete_of(searched.cases())
    return [
        FoldPredictions(
            name,
            "frames-lr",
            out_of_fold(table[:, columns(name)], complete, folds, "frames-lr", searched.seed),
        )
        for name in FAMILIES
    ]


def columns(family: str) -> list[int]:
    return [at for at, one in enumerate(FRAMES_WITH_HOPS) if one.family in FAMILIES[family]]


@dataclass(frozen=True, slots=True)
class Importance:
    """A feature's share of the boosted trees' gain, fitted on all questions; the range is over the
    models of the folds.
    """

    feature: str
    share: Interval
    paper: float | None


def importances(searched: SearchResults, folds: Folds) -> list[Importance]:
    """Table 10, the largest first."""
    table, complete = (
        informed_features(searched.cases())[:, : len(FRAMES)],
        complete_of(searched.cases()),
    )
    parts: Iterable[Ints] = (np.arange(len(complete)), *(rest for rest, _ in folds))
    shares = np.array(
        [
            paper_model("frames-gb", searched.seed)
            .fit(table[part], complete[part])
            .model.feature_importances_
            for part in parts
        ]
    )
    found = [
        Importance(
            one.name,
            Interval(float(shares[0, at]), float(shares[:, at].min()), float(shares[:, at].max())),
            paper.TABLE_10.get(one.name, "importance"),
        )
        for at, one in enumerate(FRAMES)
    ]
    return sorted(found, key=lambda one: -(one.share.value or 0.0))
