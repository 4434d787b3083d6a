"""How well the gate knows its depth: `python -m suffice_research.training.familiarity --data DIR`.

For each data set, a gate that has not learned from it: of the data sets that the shipped gate knows
the recipe without that one, of the unseen domains the shipped gate itself. It prints how well
familiarity tells the set from the training questions, how many of its verdicts are of low
familiarity, and in how many groups of verdicts of similar p the share of complete lists lies in the
mean interval: as calibrated, and widened by familiarity.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.evaluation.gate_evaluation import gate_inputs
from suffice.evaluation.reading_cache import CachedReader
from suffice.evaluation.searching import RetrievedQuestion, to_labelled_question
from suffice.gate.gate import FAST, STANDARD, Gate
from suffice.gate.reader import Reader
from suffice.numeric import sigmoid
from suffice.types import LOW_FAMILIARITY
from suffice_research.training.gate import JUDGED, collect_training, train_gate
from suffice_research.training.gate_data import KS, GateData
from suffice_research.training.reader_data import TEST
from suffice_research.training.sources import ProgressLog, exit_code

__all__ = ["GroupCoverage", "coverage", "judge", "main"]

GROUP = 100  # verdicts of similar p
Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class GroupCoverage:
    """In how many groups of verdicts the share of complete lists lies in the mean interval."""

    groups: int
    covered: int
    width: float  # mean

    def __str__(self) -> str:
        return f"{self.covered:3} of {self.groups:3} (width {self.width:.2f})"


def coverage(
    p: Floats, interval: tuple[Floats, Floats], complete: npt.NDArray[np.bool_], size: int = GROUP
) -> GroupCoverage:
    """Groups of at least so many verdicts with neighbouring p."""
    order = np.argsort(p, kind="stable")
    groups = np.array_split(order, max(1, len(order) // size))
    low, high = interval
    inside = [low[at].mean() <= complete[at].mean() <= high[at].mean() for at in groups]
    return GroupCoverage(len(groups), sum(map(bool, inside)), float((high - low).mean()))


def _auroc(near: Floats, far: Floats) -> float:
    """The chance that one of the far is beyond one of the near."""
    from sklearn.metrics import roc_auc_score

    unseen = np.repeat([0, 1], [len(near), len(far)])
    return float(roc_auc_score(unseen, np.concatenate([near, far])))


def judge(gate: Gate, name: str, lists: Sequence[RetrievedQuestion], say: ProgressLog) -> None:
    """Print the figures of a set."""
    batch = gate._batch(gate_inputs(lists), None)
    odds = gate.model.log_odds(gate.model.describe(batch).table)
    p, before = sigmoid(odds), gate.interval.apply(odds)
    familiarity = gate.forms.measure(batch).values
    usual = np.linspace(0, 1, len(lists))  # what training questions have
    complete = np.array([one.complete for one in lists], dtype=bool)
    after = gate.widened(odds, familiarity)
    say(
        f"{name:28} {len(lists):4} lists  AUROC {_auroc(1 - usual, 1 - familiarity):.3f}"
        f"  low {(familiarity < LOW_FAMILIARITY).mean():.2f}"
        f"  before {coverage(p, before, complete)}  after {coverage(p, after, complete)}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.training.familiarity",
        description="Measure familiarity and the coverage of the interval.",
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--preset", choices=(STANDARD, FAST), default=STANDARD)
    parser.add_argument("--readings", type=Path, help="where readings are kept for the next run")
    parser.add_argument("--questions", type=int, help="to learn from, of a data set at most")
    parser.add_argument("--judged", type=int, default=JUDGED, help="of a data set, at most")
    parser.add_argument("--only", help="some of the data sets, with commas: for trying out")
    args = parser.parse_args(arguments)
    return exit_code(lambda: _run(args, ProgressLog()))


def _run(args: argparse.Namespace, say: ProgressLog) -> None:
    data = GateData(args.data, only=args.only.split(",") if args.only else (), say=say)
    reader = None
    if args.preset == STANDARD:
        reader = CachedReader(Reader(), args.readings, progress=say.progress)
    training = collect_training(data, args.preset, questions=args.questions)
    judged = {name: data.judged(name, (TEST,), questions=args.judged) for name in training}
    unseen = list(data.unseen(questions=args.judged))
    if reader is not None:
        groups: Iterable[Sequence[RetrievedQuestion]] = (
            *training.values(), *judged.values(), *(one for _, kinds in unseen for one in kinds.values())
        )  # fmt: skip
        every = [one for group in groups for one in group]
        reader.read_all(map(to_labelled_question, every), k=max(KS))
    options: Any = {"preset": args.preset, "reader": reader}
    for name, lists in judged.items():
        rest = {other: some for other, some in training.items() if other != name}
        judge(train_gate(rest, **options), f"{name}, left out", lists, say)
    gate = train_gate(training, **options)
    for name, lists in judged.items():
        judge(gate, f"{name}, seen", lists, say)
    for name, kinds in unseen:
        for kind, lists in kinds.items():
            if lists:
                judge(gate, ", ".join(filter(None, (name, "unseen", kind))), lists, say)


if __name__ == "__main__":
    sys.exit(main())
