"""Learn the weight of a judge behind a gate from labelled questions, and label with a judge.

    opinions = ask_judge(judge, lists)
    gain = learn_judge(base, labels, odds, opinions, rule, ...)   the gate with its judge's weight
    for row in label_by_judge(lists, judge): ...      rows for `suffice adapt`, marked as a judge's

No figure covers data it was learned from: the gate's log-odds come from gates that had not seen the
question, and the judge's weight from the other half of the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.labels import JUDGED_BY, JudgedLabels, Label
from suffice.errors import ModelError
from suffice.evaluation.metrics import Predictions
from suffice.evaluation.significance import Interval, interval
from suffice.gate.extraction import FeatureBatch, reader_input
from suffice.gate.gate import Gate
from suffice.gate.hits import DocumentMap, normalize_hits
from suffice.gate.judge import (
    GateNumbers,
    JudgeBudget,
    JudgeCalibration,
    JudgedQuestions,
    add_costs,
    fit_judge,
)
from suffice.gate.policy import PolicyRule
from suffice.gate.training import TrainingSet
from suffice.numeric import sigmoid
from suffice.protocols import HitTexts, Judge, Progress, component_name
from suffice.types import Cost, Opinion

__all__ = ["JudgeGain", "ask_judge", "label_by_judge", "learn_judge", "mark_judged"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
AT_ONCE = 8  # lists between two progress updates
MIN_SURE = 0.8  # a judge's minimum confidence for a label; doubtful labels teach little


@dataclass(frozen=True)
class JudgeGain:
    """A gate with its judge's weight, and the figures of both on labels they had not seen."""

    gate: Gate  # with the judge's calibration
    calibration: JudgeCalibration
    p: Floats  # of gate and judge together
    answered: Bools
    alone: Interval  # AUROC of the judge by itself
    sent: float  # share of the labelled questions that are worth a call
    failed: int
    cost: Cost  # of asking about every label

    def as_json(self) -> dict[str, Any]:
        record = {name: getattr(self, name) for name in ("sent", "failed")}
        about = {"alone": asdict(self.alone), "cost": asdict(self.cost)}
        known = self.calibration
        policy = None if known.policy is None else known.policy.as_json()
        more = {"words": known.words, "yes": known.yes, "no": known.no, "policy": policy}
        return {**record, **about, **more}


def ask_judge(
    judge: Judge, lists: Sequence[HitTexts], progress: Progress | None = None
) -> list[Opinion]:
    """An opinion on each list, a few at a time. ModelError if the first few all fail."""
    found: list[Opinion] = []
    for start in range(0, len(lists), AT_ONCE):
        found += judge.judge(lists[start : start + AT_ONCE])
        if all(one.log_odds is None for one in found):
            raise ModelError(
                f"the judge {component_name(judge)} gave no usable answer: {found[0].error}",
                hint="check its address and model name, use a stronger model, or give it more "
                "time: JudgeBudget(seconds=30), on the command line and for a service "
                "--judge-limit seconds=30",
            )
        if progress is not None:
            progress("asking the judge", len(found), len(lists))
    return found


def learn_judge(
    base: Gate,
    labels: TrainingSet,
    odds: Floats,
    opinions: Sequence[Opinion],
    rule: PolicyRule,
    *,
    name: str,
    budget: JudgeBudget,
    aside: Bools | None = None,
    seed: int = 42,
) -> JudgeGain:
    """Learn how much the opinions of the judge of this name are worth to this gate.

    `odds` are the gate's log-odds for each label, from a gate that was not trained on it. If the
    labels have `data_sets`, each is a kind of text. `aside` marks labels that nothing was learned
    from; if given, the policy is chosen on those.
    """
    scores = np.array([np.nan if one.log_odds is None else one.log_odds for one in opinions])
    numbers = _numbers(base, labels.batch, odds)
    kinds = None if labels.data_sets is None else np.array(labels.data_sets, str)
    every = JudgedQuestions(numbers, scores, labels.complete, kinds)
    options: Any = {"budget": budget, "policy": base.policy, "seed": seed}
    # For the figures, learn on halves, so that labels kept for a promise also count once.
    plain = rule if not rule.promises else PolicyRule("f1", costs=rule.costs)
    calibration, p = fit_judge(name, every, plain, **options)
    if aside is not None and rule.promises:
        kept = every[aside]
        calibration, _ = fit_judge(name, every[~aside], rule, aside=kept, **options)
    policy = calibration.policy
    at = None if policy is None else policy.answer_at
    usable = np.isfinite(scores)
    judged_alone = Predictions(labels.complete[usable].astype(float), sigmoid(scores[usable]))
    cost = Cost()
    for one in opinions:
        cost = add_costs(cost, one.cost)
    return JudgeGain(
        replace(base, judge_calibration=calibration),
        calibration,
        p,
        np.zeros(len(p), bool) if at is None else p >= at,
        interval(judged_alone, "auroc"),
        float(calibration.sends(numbers, budget.share).mean()),
        int((~usable).sum()),
        cost,
    )


def _numbers(gate: Gate, batch: FeatureBatch, odds: Floats) -> GateNumbers:
    low, high = gate.widened(odds, gate.forms.measure(batch).values)
    p = sigmoid(odds)
    return GateNumbers(odds, np.minimum(low, p), np.maximum(high, p))


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
    opinions = ask_judge(judge, [reader_input(one) for one in read], progress)
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
