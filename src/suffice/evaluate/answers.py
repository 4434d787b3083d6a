"""Answers beside gold answers: who was right, who rather said nothing, on what evidence, and what it took.

A run holds one or several systems on the same questions: answers from a file, or what `evaluate.answer_systems` made of them.
Every figure is computed from it afterwards. No answer counts as a wrong one; a figure of answered questions alone says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.gold import Example
from suffice.errors import InputError, nearest
from suffice.evaluate.compare import Difference, Interval, interval_of_mean, paired_difference
from suffice.evaluate.metrics import ANSWERS, Predictions
from suffice.files import BadRecords, package_versions, read_json_records, write_atomically
from suffice.types import Cost, DocId

__all__ = ["MEASURES", "ORDERS", "AnswerRun", "Outcome", "judge_answers", "read_answers", "run_of"]

Floats = npt.NDArray[np.float64]
VERSION = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one system made of one question."""

    answer: str | None  # None: it abstained, or nothing was found
    held: tuple[DocId, ...] | None = None  # its documents in the end, in order; None: nobody knows
    cost: Cost = Cost()  # noqa: RUF009 - frozen
    candidate: str | None = None  # what it would have said, had it had to answer
    sure: Mapping[str, float] = field(default_factory=dict, hash=False)  # by whom it is taken for how sure, see ORDERS
    error: str | None = None  # what the language model failed with


# Who may say which answers are the surest. Only the order counts, so that scales need not compare.
ORDERS: Mapping[str, Callable[[Mapping[str, float]], float | None]] = {
    "gate": lambda sure: sure.get("gate"),
    "review": lambda sure: sure.get("review"),
    "reader": lambda sure: sure.get("reader"),
    "first hit": lambda sure: sure.get("hit"),
    "gate x review": lambda sure: sure["gate"] * sure["review"] if "gate" in sure and "review" in sure else None,
}


@dataclass(frozen=True)
class AnswerRun:
    """Systems beside gold answers, as a document. Columns have one entry a question."""

    dataset: str
    question_ids: tuple[str, ...]
    kinds: tuple[str | None, ...]
    gold: tuple[str, ...]
    needed: tuple[tuple[DocId, ...], ...]  # the documents that the answer rests on; empty: not known
    systems: Mapping[str, tuple[Outcome, ...]]
    seed: int = 42
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=package_versions)

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def kinds_known(self) -> list[str]:
        return sorted({kind for kind in self.kinds if kind})

    def outcomes(self, system: str) -> tuple[Outcome, ...]:
        if system not in self.systems:
            raise InputError(f"the run has no system named {system!r}", hint=nearest(system, self.systems))
        return self.systems[system]

    def values(self, system: str, measure: str, kind: str | None = None) -> Floats:
        """One value a question, of all or of one kind; NaN where the measure does not apply."""
        if measure not in MEASURES:
            raise InputError(f"no measure of answers is named {measure!r}", hint=nearest(measure, MEASURES))
        values = MEASURES[measure](self, self.outcomes(system))
        return values if kind is None else values[[one == kind for one in self.kinds]]

    def figure(self, system: str, measure: str, kind: str | None = None) -> Interval:
        """The mean with its bootstrap interval."""
        return interval_of_mean(self.values(system, measure, kind), seed=self.seed)

    def above(self, system: str, other: str, measure: str, kind: str | None = None) -> Difference:
        """How far a system is above another on the same questions."""
        values = [self.values(one, measure, kind) for one in (system, other)]
        return paired_difference(*values, seed=self.seed)

    def ordered(self, system: str, by: str, good: str) -> Predictions | None:
        """What a system would have said to every question, the surest first, and whether that is "right" or "complete".

        A question to which it has nothing to say stands last, and is not good. None: this order is not known of the system.
        """
        outcomes = self.outcomes(system)
        said = [one.candidate for one in outcomes]
        sure = [None if one.candidate is None else ORDERS[by](one.sure) for one in outcomes]
        if any(one is None and text is not None for one, text in zip(sure, said)):
            return None
        order = np.array([-np.inf if one is None else one for one in sure])
        places = np.unique(order, return_inverse=True)[1]
        fine = self.complete(outcomes) if good == "complete" else self._right(said)
        fine = np.where([one is None for one in said], 0.0, fine)
        return None if np.isnan(fine).any() else Predictions(fine, places / max(int(places.max(initial=0)), 1))

    def complete(self, outcomes: Sequence[Outcome]) -> Floats:
        """1 where all needed documents are held, NaN where one of the two is not known."""
        known = [
            None if one.held is None or not needed else set(needed) <= set(one.held) for one, needed in self._beside(outcomes)
        ]
        return np.array([np.nan if one is None else float(one) for one in known])

    def scores(self, answers: Sequence[str | None], metric: str) -> Floats:
        """An answer metric of each; no answer is a wrong one."""
        values = ANSWERS[metric]([one or "" for one in answers], [[one] for one in self.gold])
        return np.where([one is None for one in answers], 0.0, values)

    def _right(self, answers: Sequence[str | None]) -> Floats:
        return self.scores(answers, "em")

    def _beside(self, outcomes: Sequence[Outcome]) -> Iterable[tuple[Outcome, tuple[DocId, ...]]]:
        return zip(outcomes, self.needed, strict=True)

    def save(self, path: Path) -> Path:
        document = {"kind": "run", "task": "answers", "version": VERSION, **asdict(self)}
        write_atomically(Path(path), json.dumps(document, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n")
        return Path(path)

    def summary(self) -> dict[str, Any]:
        """The run for a script: every measure of every system, of all questions and by kind."""
        return {
            "dataset": self.dataset,
            "n": len(self),
            "seed": self.seed,
            "settings": dict(self.settings),
            "systems": {name: self._told(name) for name in self.systems},
        }

    def _told(self, system: str) -> dict[str, Any]:
        def figures(kind: str | None) -> dict[str, Any]:
            return {name: asdict(self.figure(system, name, kind)) for name in MEASURES}

        errors = {name: one.error for name, one in zip(self.question_ids, self.outcomes(system)) if one.error}
        kinds = self.kinds_known if len(self.kinds_known) > 1 else []
        return {"figures": figures(None), "by_kind": {kind: figures(kind) for kind in kinds}, "errors": errors}


def _answered(outcomes: Sequence[Outcome]) -> npt.NDArray[np.bool_]:
    return np.array([one.answer is not None for one in outcomes], dtype=bool)


def _scored(metric: str) -> Callable[[AnswerRun, Sequence[Outcome]], Floats]:
    return lambda run, outcomes: run.scores([one.answer for one in outcomes], metric)


def _of_answered(values: Callable[[AnswerRun, Sequence[Outcome]], Floats]) -> Callable[[AnswerRun, Sequence[Outcome]], Floats]:
    return lambda run, outcomes: np.where(_answered(outcomes), values(run, outcomes), np.nan)


def _spent(part: str) -> Callable[[AnswerRun, Sequence[Outcome]], Floats]:
    return lambda _, outcomes: np.array([float(getattr(one.cost, part)) for one in outcomes])


MEASURES: Mapping[str, Callable[[AnswerRun, Sequence[Outcome]], Floats]] = {
    **{name: _scored(name) for name in ANSWERS},
    "answered": lambda _, outcomes: _answered(outcomes).astype(float),
    "f1_of_answered": _of_answered(_scored("token_f1")),
    "wrong_of_answered": _of_answered(lambda run, outcomes: 1 - _scored("em")(run, outcomes)),
    "complete": lambda run, outcomes: run.complete(outcomes),
    "incomplete_of_answered": _of_answered(lambda run, outcomes: 1 - run.complete(outcomes)),
    "documents": lambda _, outcomes: np.array([np.nan if one.held is None else float(len(one.held)) for one in outcomes]),
    **{part: _spent(part) for part in ("rounds", "calls", "tokens", "seconds")},
}


# ---------------------------------------------------------------------------------------------------- from a file


def run_of(
    dataset: str, examples: Sequence[Example], systems: Mapping[str, Sequence[Outcome]], *, seed: int = 42, **more: Any
) -> AnswerRun:
    """A run over questions that have a gold answer."""
    if not examples:
        raise InputError(f"no question of {dataset!r} has a gold answer", hint="choose a data set with answers")
    return AnswerRun(
        dataset,
        tuple(one.question.question_id for one in examples),
        tuple(one.gold.kind for one in examples),
        tuple(one.gold.answer or "" for one in examples),
        tuple(tuple(sorted(one.gold.doc_ids)) for one in examples),
        {name: tuple(outcomes) for name, outcomes in systems.items()},
        seed=seed,
        **more,
    )


def judge_answers(
    dataset: str, examples: Iterable[Example], answers: Mapping[str, str], *, system: str, seed: int = 42, **more: Any
) -> AnswerRun:
    """Put answers, by question id or by the question's own words, beside the gold ones. Questions without gold are left out."""
    held = [example for example in examples if example.gold.answer]
    said = [answers.get(one.question.question_id, answers.get(one.question.text)) for one in held]
    if held and not any(one is not None for one in said):
        raise InputError(
            "none of the answers belongs to a question of the data set", hint="name the questions by id, or by their words"
        )
    return run_of(dataset, held, {system: [Outcome(one, candidate=one) for one in said]}, seed=seed, **more)


def read_answers(path: Path, bad: BadRecords | None = None) -> dict[str, str]:
    """Answers from a JSON array or JSON Lines: `question_id` or `query`, and `answer` or `model_answer`."""
    found: dict[str, str] = {}
    bad = bad or BadRecords()
    for record in read_json_records(Path(path), bad):
        value = record.value
        name = value.get("question_id") or value.get("query") or value.get("question")
        said = value.get("model_answer", value.get("answer"))
        if not isinstance(name, str) or not isinstance(said, str):
            bad.report(
                InputError(
                    f"{record.where}: expected question_id or query, and answer, as texts",
                    hint='a line looks like {"question_id": "q0", "answer": "Sam"}',
                )
            )
            continue
        found[name] = said
    return found
