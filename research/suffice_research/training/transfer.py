"""Moving house: how a gate fares on a data set that it was not fitted on.

As it comes, and after `adapt` with a few labels.
One gate, fitted on all other data sets, serves all three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.gold import draw_key
from suffice.errors import InputError
from suffice.evaluation.gate_evaluation import gate_inputs
from suffice.evaluation.metrics import Predictions, score
from suffice.evaluation.searching import RetrievedQuestion, to_labelled_question
from suffice.evaluation.significance import Interval

if TYPE_CHECKING:
    from suffice.gate.gate import Gate

__all__ = ["DRAWS", "LABELS", "Recipe", "TransferResult", "leave_one_out", "measure_transfer"]

Floats = npt.NDArray[np.float64]
Recipe = Callable[
    [Mapping[str, Sequence[RetrievedQuestion]]], "Gate"
]  # the drawn cases of each data set -> a gate

LABELS = (25, 50, 100, 200, 400)
DRAWS = 3
# share of the questions that no draw may label: all curves of a draw are judged on the same ones
KEPT = 0.4


@dataclass(frozen=True)
class TransferResult:
    """One data set, judged by a gate that has not seen it. `adapted`: number of labels -> figure,
    mean [least, most] of the
    draws; 0 labels: the gate as it comes, on the same questions."""

    name: str
    complete: npt.NDArray[np.bool_]
    p: Floats
    auroc_adapted: Mapping[int, Interval]
    ece_adapted: Mapping[int, Interval]


def leave_one_out(
    training: Mapping[str, Sequence[RetrievedQuestion]],
    judged: Mapping[str, Sequence[RetrievedQuestion]],
    recipe: Recipe,
    *,
    labels: Sequence[int] = LABELS,
    draws: int = DRAWS,
    seed: int = 42,
) -> Iterator[TransferResult]:
    """For each data set in `judged`: a gate made of the `training` of all others, moved to its
    cases.

    Data sets share no questions, so leaving out the name leaves out the questions.
    """
    for name, cases in judged.items():
        gate = recipe({other: members for other, members in training.items() if other != name})
        yield measure_transfer(name, gate, cases, labels=labels, draws=draws, seed=seed)


def measure_transfer(
    name: str,
    gate: Gate,
    cases: Sequence[RetrievedQuestion],
    *,
    labels: Sequence[int] = LABELS,
    draws: int = DRAWS,
    seed: int = 42,
) -> TransferResult:
    """What the gate says of these cases: as it comes, and adapted to more and more of them."""
    complete = np.array([case.complete for case in cases], dtype=bool)
    figures: dict[int, list[tuple[float, float]]] = {count: [] for count in (0, *labels)}
    for draw in range(draws):
        pool, kept = _parts(cases, seed + draw)
        truth = complete[kept].astype(float)
        for count, rows in figures.items():
            if count <= len(pool):
                p = _adapt_gate(gate, [cases[at] for at in pool[:count]]).probabilities(
                    gate_inputs([cases[at] for at in kept])
                )
                auroc, ece = (score(Predictions(truth, p), metric) for metric in ("auroc", "ece"))
                rows += [(auroc, ece)] if auroc is not None and ece is not None else []
    curves = [{count: _over_draws(rows, at) for count, rows in figures.items()} for at in (0, 1)]
    p = gate.probabilities(gate_inputs(cases))
    return TransferResult(name, complete, np.asarray(p), *curves)


def _adapt_gate(gate: Gate, some: Sequence[RetrievedQuestion]) -> Gate:
    if not some:
        return gate
    try:
        return gate.adapt([to_labelled_question(case) for case in some])
    except InputError:  # among so few there was no complete one, or no other: nothing to learn
        return gate


def _parts(cases: Sequence[RetrievedQuestion], seed: int) -> tuple[list[int], list[int]]:
    """Cases that may be labelled, in the order they are; and those that are only judged. A question
    is in one part only.
    """
    texts = sorted({case.question.text for case in cases}, key=lambda text: draw_key(seed, text))
    place = {text: at for at, text in enumerate(texts)}
    order = sorted(range(len(cases)), key=lambda at: place[cases[at].question.text])
    kept = round(len(texts) * KEPT)
    count = sum(place[case.question.text] < kept for case in cases)
    return order[count:], order[:count]


def _over_draws(draws: Sequence[tuple[Any, ...]], at: int) -> Interval:
    values = [one[at] for one in draws]
    return Interval(float(np.mean(values)), min(values), max(values)) if values else Interval(None)
