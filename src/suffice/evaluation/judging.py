"""Fit how much a judge behind a gate counts, from labelled questions, and label with a judge.

    opinions = ask_about_labels(judge, lists)
    gain = fit_judge(gate, complete, odds, opinions, ...)   the gate with its judge's scale
    for row in label_by_judge(lists, judge): ...            rows for `suffice adapt`

No figure covers data it was fitted on: the gate's log-odds come from gates that had not seen the
question, and the scale of the judge from the other folds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.labels import JUDGED_BY, JudgedLabels, Label
from suffice.errors import ModelError
from suffice.evaluation.gate_evaluation import Folds
from suffice.gate.extraction import reader_input
from suffice.gate.gate import Gate
from suffice.gate.hits import DocumentMap, normalize_hits
from suffice.gate.judge import JudgeScale, ask_judge, is_unsure
from suffice.numeric import log_odds, sigmoid
from suffice.protocols import HitTexts, Judge, Progress, component_name
from suffice.types import Opinion

__all__ = [
    "JudgeGain",
    "ask_about_labels",
    "fit_judge",
    "fit_scale",
    "label_by_judge",
    "mark_judged",
]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
AT_ONCE = 8  # lists between two progress updates
MIN_SURE = 0.8  # a judge's minimum confidence for a label; doubtful labels teach little
PRIOR_SPREAD = 2.0  # of constant and slope, around 0: few labels move them little


@dataclass(frozen=True)
class JudgeGain:
    """A gate with its judge's scale, and p of both for each label by a scale of other labels."""

    gate: Gate
    scale: JudgeScale
    p: Floats
    sent: float  # share of the labelled questions that the judge would be asked about
    failed: int

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self.scale), "sent": self.sent, "failed": self.failed}


def ask_about_labels(
    judge: Judge, lists: Sequence[HitTexts], progress: Progress | None = None
) -> list[Opinion]:
    """An opinion on each list, a few at a time. ModelError if the first few all fail."""
    found: list[Opinion] = []
    for start in range(0, len(lists), AT_ONCE):
        found += ask_judge(judge, lists[start : start + AT_ONCE])
        if all(one.log_odds is None for one in found):
            raise ModelError(
                f"the judge {component_name(judge)} gave no usable answer: {found[0].error}",
                hint="check its address and model name, or use a stronger model",
            )
        if progress is not None:
            progress("asking the judge", len(found), len(lists))
    return found


def fit_scale(judge: str, scores: Floats, complete: Bools, odds: Floats) -> JudgeScale:
    """Platt's logistic curve over the judge's log-odds, beside the gate's: what both know counts
    once. NaN is no opinion; a judge that ranks the wrong way round gets slope 0.
    """
    usable = np.isfinite(scores)
    design = np.column_stack([np.ones(usable.sum()), scores[usable]])
    labels, offset = complete[usable].astype(float), odds[usable]
    found, penalty = np.zeros(2), np.eye(2) / PRIOR_SPREAD**2
    for _ in range(50):  # Newton's method
        p = sigmoid(design @ found + offset)
        slope = design.T @ (labels - p) - penalty @ found
        curvature = (design * (p * (1 - p))[:, None]).T @ design + penalty
        step = np.linalg.solve(curvature, slope)
        found = found + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-8:
            break
    constant, weight = found.tolist()
    if weight <= 0 or not len(labels) or not np.ptp(scores[usable]):
        constant = weight = 0.0
    return JudgeScale(judge, weight, constant, int(usable.sum()))


def fit_judge(
    gate: Gate, complete: Bools, odds: Floats, opinions: Sequence[Opinion], name: str, folds: Folds
) -> JudgeGain:
    """Fit the scale of the judge of this name for this gate.

    `odds` are the gate's log-odds for each label, from a gate that was not trained on it.
    """
    scores = np.array([np.nan if one.log_odds is None else one.log_odds for one in opinions])
    answer_at = gate.policy.answer_at
    unsure = is_unsure(odds, log_odds(0.5 if answer_at is None else answer_at))
    moved = np.zeros(len(odds))
    for learned, held_out in folds:
        scale = fit_scale(name, scores[learned], complete[learned], odds[learned])
        moved[held_out] = np.where(unsure[held_out], scale.effects(scores[held_out]), 0.0)
    whole = fit_scale(name, scores, complete, odds)
    return JudgeGain(
        replace(gate, judge_scale=whole),
        whole,
        sigmoid(odds + moved),
        float(unsure.mean()) if whole.slope else 0.0,
        int(np.isnan(scores).sum()),
    )


def mark_judged(gate: Gate, labels: JudgedLabels | None) -> Gate:
    """The gate with a note in its card if a judge gave labels."""
    if labels is None or not labels.used:
        return gate
    note = f"{labels.used} of the labels were given by a judge"
    return replace(gate, card={**gate.card, "history": [*gate.card.get("history", []), note]})


def label_by_judge(
    lists: Sequence[Label],
    judge: Judge,
    *,
    k: int,
    now: Callable[[], str],
    documents: DocumentMap | None = None,
    progress: Progress | None = None,
) -> Iterator[dict[str, Any]]:
    """A row for each list that the judge is sure of, in the format of `suffice adapt`.

    `by` marks the row as a judge's. The judge sees the first `k` hits, as the gate does.
    """
    read = [normalize_hits(one.question, one.hits, documents=documents or {}, k=k) for one in lists]
    opinions = ask_about_labels(judge, [reader_input(one) for one in read], progress)
    for one, said in zip(lists, opinions, strict=True):
        p = None if said.log_odds is None else float(sigmoid(said.log_odds))
        if p is None or max(p, 1 - p) < MIN_SURE:
            continue
        yield {
            "question": one.question,
            "hits": [dict(hit) for hit in one.hits[:k]],
            "complete": p > 0.5,
            "by": f"{JUDGED_BY}{component_name(judge)}",
            "p_judge": round(p, 4),
            "at": now(),
        }
