"""How familiarity and intervals work: `python -m suffice_research.training.familiarity --data DIR`.

Each data set is judged by a gate that was not trained on it: for training sets, the shipped recipe
without that set; for unseen domains, the shipped gate. It measures how well familiarity tells the
set from the training questions, how many of its verdicts have low familiarity, and in how many
groups of verdicts with similar p the share of complete lists lies in the mean interval: as
calibrated, and widened by familiarity. research/results/gate.md is generated from the study written
with `--out`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.evaluation.gate_evaluation import gate_inputs
from suffice.evaluation.report import Cell, Section, Table
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.searching import RetrievedQuestion, to_labelled_question
from suffice.gate.extraction import Readers
from suffice.gate.gate import FAST, STANDARD, Gate, open_readers
from suffice.gate.policy import PolicyRule
from suffice.gate.question import WordTable
from suffice.gate.reader import Reader
from suffice.gate.training import MIN_TO_FIT, build_training_set, fit_gate
from suffice.numeric import sigmoid
from suffice.storage import package_versions
from suffice.types import LOW_FAMILIARITY
from suffice_research.stored_readings import StoredReader
from suffice_research.study import Study
from suffice_research.training.cases import TEST
from suffice_research.training.gate import (
    EVERYDAY_SHARE,
    JUDGED,
    QUESTIONS,
    collect_training,
    fast_of_learned,
)
from suffice_research.training.gate_data import KS, GateData
from suffice_research.training.interval_coverage import GROUP, GroupCoverage, coverage, together
from suffice_research.training.sources import SEED, ProgressLog, exit_code

__all__ = ["Depth", "familiarity_study", "judge", "main"]

LEFT_OUT, SEEN, UNSEEN = "left out", "seen", "unseen"
TO_COVER = 0.9  # of the groups in left-out and unseen domains: the target when choosing the shift
Floats = npt.NDArray[np.floating[Any]]


def _auroc(near: Floats, far: Floats) -> float:
    """The probability that a far one is beyond a near one."""
    from sklearn.metrics import roc_auc_score

    unseen = np.repeat([0, 1], [len(near), len(far)])
    return float(roc_auc_score(unseen, np.concatenate([near, far])))


@dataclass(frozen=True, slots=True)
class Depth:
    """The quality of familiarity and the interval on the lists of one set."""

    name: str
    seen: str
    lists: int
    auroc: float  # of familiarity, between this set and the training questions
    low: float  # share of verdicts with low familiarity
    calibrated: GroupCoverage
    widened: GroupCoverage

    def __str__(self) -> str:
        return (
            f"{self.name + ', ' + self.seen:36} {self.lists:4} lists  AUROC {self.auroc:.3f}"
            f"  low {self.low:.2f}  before {self.calibrated}  after {self.widened}"
        )


def judge(gate: Gate, name: str, seen: str, lists: Sequence[RetrievedQuestion]) -> Depth:
    batch = gate._batch(gate_inputs(lists), None)
    odds = gate.model.log_odds(gate.model.describe(batch).table)
    p, before = sigmoid(odds), gate.interval.apply(odds)
    familiarity = gate.forms.measure(batch).values
    usual = np.linspace(0, 1, len(lists))  # familiarity of training questions is uniform
    complete = np.array([one.complete for one in lists], dtype=bool)
    after = gate.widened(odds, familiarity)
    return Depth(
        name,
        seen,
        len(lists),
        _auroc(1 - usual, 1 - familiarity),
        float((familiarity < LOW_FAMILIARITY).mean()),
        coverage(p, before, complete),
        coverage(p, after, complete),
    )


class GatesOfSets:
    """The shipped recipe over these data sets or all but one; features are computed once."""

    def __init__(
        self, training: Mapping[str, Sequence[RetrievedQuestion]], readers: Readers, preset: str
    ) -> None:
        self._readers, self._words = readers, WordTable.load()
        self._card = {"preset": preset, **readers.names}
        examples = [to_labelled_question(one) for lists in training.values() for one in lists]
        sets = [name for name, lists in training.items() for _ in lists]
        self._built = build_training_set(
            examples, self._words, readers, k=max(KS), min_examples=MIN_TO_FIT, data_sets=sets
        )
        self._sets = np.array(sets)

    def without(self, name: str | None = None) -> Gate:
        rest = self._built.where(self._sets != name) if name is not None else self._built
        options: Any = {"k": max(KS), "seed": SEED, "card": self._card}
        fitted = fit_gate(rest, self._words, PolicyRule("f1"), **options)
        return Gate(self._words, *fitted, self._readers)


# ---- the study

SAYS = (
    f"Left out: a gate that was fitted without this data set, of which the reader knows other questions. Unseen: neither has "
    f"learned from the domain. Seen: the gate has learned from other questions of it. A group is {GROUP} verdicts or a few more "
    "of neighbouring p; it is covered where its share of complete lists lies in its mean interval. A share of so few lists is "
    "itself off by up to 0.1, so that even a perfect interval leaves some groups out. AUROC: how well familiarity tells the "
    f"set from the training questions. Low: the share of verdicts of a familiarity below {LOW_FAMILIARITY}."
)


def familiarity_study(
    found: Sequence[Depth], *, settings: Mapping[str, Any], seconds: float
) -> Study:
    """Tables of the measured sets, and whether the interval keeps its promise."""
    return Study(
        name="familiarity",
        title="How well the gate knows its depth",
        seed=SEED,
        settings=settings,
        data={},
        sections=(Section("How well it knows its depth", (_depth_table(found),), SAYS),),
        summary=(*_summary(found), *_fewer(settings)),
        timings={"measuring": seconds},
        commit=source_commit(),
        packages=package_versions(),
    )


def _parts(found: Sequence[Depth]) -> Iterator[tuple[str, list[Depth]]]:
    for seen in (LEFT_OUT, UNSEEN, SEEN):
        if some := [one for one in found if one.seen == seen]:
            yield seen, some


def _depth_table(found: Sequence[Depth]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for seen, some in _parts(found):
        for one in some:
            about = (one.name, seen, one.lists, one.auroc, one.low)
            rows.append((*about, *_cells(one.calibrated, one.widened)))
        before, after = (
            together([getattr(one, name) for one in some]) for name in ("calibrated", "widened")
        )
        lists = sum(one.lists for one in some)
        rows.append((f"all {seen}", seen, lists, None, None, *_cells(before, after)))
    columns = (
        "data set", "seen", "n", "AUROC", "low", "groups", "covered as calibrated",
        "width as calibrated", "covered", "width",
    )  # fmt: skip
    return Table("Familiarity and interval", columns, tuple(rows))


def _cells(before: GroupCoverage, after: GroupCoverage) -> tuple[Cell, ...]:
    return (before.groups, before.covered, before.width, after.covered, after.width)


def _summary(found: Sequence[Depth]) -> Iterator[str]:
    for seen, some in _parts(found):
        if seen != SEEN:
            all_ = together([one.widened for one in some])
            reached = "reached" if all_.covered >= TO_COVER * all_.groups else "not reached"
            yield (
                f"Interval, {seen} domains: {all_.covered} of {all_.groups} groups are covered, by intervals of "
                f"mean width {all_.width:.2f}; to reach {TO_COVER:.0%}: {reached}."
            )


def _fewer(settings: Mapping[str, Any]) -> Iterator[str]:
    if settings.get("questions"):
        yield (
            f"These gates have learned from at most {settings['questions']} questions of a data set (everyday: "
            f"{EVERYDAY_SHARE} times as many), the one that ships from {QUESTIONS[settings['preset']]}."
        )


# ---- the command


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
    parser.add_argument(
        "--leave-out",
        help="data sets to leave out in turn, with commas: a fit each; all, unless told",
    )
    parser.add_argument("--out", type=Path, help="write the study here, as JSON")
    args = parser.parse_args(arguments)
    return exit_code(lambda: _run(args, ProgressLog()))


def _left_out(given: str | None, known: Mapping[str, object]) -> list[str]:
    names = given.split(",") if given else list(known)
    if unknown := [name for name in names if name not in known]:
        raise InputError(
            f"no data set is named {', '.join(map(repr, unknown))}",
            hint=f"known: {', '.join(known)}",
        )
    return names


def _run(args: argparse.Namespace, say: ProgressLog) -> None:
    data = GateData(args.data, only=args.only.split(",") if args.only else (), say=say)
    reader = fast = None
    if args.preset == STANDARD:
        reader = StoredReader(Reader(), args.readings, progress=say.progress)
    training = collect_training(data, args.preset, questions=args.questions)
    left_out = _left_out(args.leave_out, training)
    judged = {name: data.judged(name, (TEST,), questions=args.judged) for name in training}
    unseen = list(data.unseen(questions=args.judged))
    if reader is not None:
        groups: Iterable[Sequence[RetrievedQuestion]] = (
            *training.values(), *judged.values(), *(one for _, kinds in unseen for one in kinds.values())
        )  # fmt: skip
        every = [one for group in groups for one in group]
        reader.read_all(map(to_labelled_question, every), k=max(KS))
        fast = fast_of_learned(data, questions=QUESTIONS[FAST])
    found: list[Depth] = []

    def measure(gate: Gate, name: str, seen: str, lists: Sequence[RetrievedQuestion]) -> None:
        if lists:
            found.append(judge(gate, name, seen, lists))
            say(str(found[-1]))

    started = time.perf_counter()
    gates = GatesOfSets(training, open_readers(args.preset, reader=reader, fast=fast), args.preset)
    for name in left_out:
        measure(gates.without(name), name, LEFT_OUT, judged[name])
    gate = gates.without()
    for name, lists in judged.items():
        measure(gate, name, SEEN, lists)
    for name, kinds in unseen:
        for kind, lists in kinds.items():
            measure(gate, ", ".join(filter(None, (name, kind))), UNSEEN, lists)
    settings = {
        "preset": args.preset,
        "judged": args.judged,
        "questions": args.questions,
        "leave-out": args.leave_out,
    }
    study = familiarity_study(found, settings=settings, seconds=time.perf_counter() - started)
    for line in study.summary:
        say(line)
    if args.out:
        say(f"study at {study.save(args.out)}")


if __name__ == "__main__":
    sys.exit(main())
