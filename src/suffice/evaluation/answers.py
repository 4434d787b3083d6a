"""Answers beside gold answers: who was right, who rather said nothing, on what evidence, and what it took.

A run holds one or several systems on the same questions: answers from a file, or what `evaluate.answer_systems` made of them.
Every figure is computed from it afterwards. No answer counts as a wrong one; a figure of answered questions alone says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError, did_you_mean
from suffice.evaluation.metrics import ANSWER_METRICS, Predictions, score
from suffice.evaluation.significance import (
    Difference,
    Interval,
    compare,
    interval,
    mean_interval,
    paired_difference,
)
from suffice.evaluation.tables import Cell, Table
from suffice.storage import BadRecords, package_versions, read_json_records, write_atomically
from suffice.types import Cost, DocId

__all__ = [
    "COVERAGES",
    "MEASURES",
    "ORDERS",
    "AnswerOutcome",
    "AnswerRun",
    "answer_tables",
    "confidence_table",
    "correctness_table",
    "differences_table",
    "equal_coverage_table",
    "equal_documents_table",
    "evidence_table",
    "file_answers_table",
    "judge_answers",
    "kinds_table",
    "make_answer_run",
    "read_answers",
]


Floats = npt.NDArray[np.float64]
VERSION = 2


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """What one system made of one question."""

    answer: str | None  # None: it abstained, or nothing was found
    held: tuple[DocId, ...] | None = None  # its documents in the end, in order; None: nobody knows
    cost: Cost = Cost()  # noqa: RUF009 - frozen
    candidate: str | None = None  # what it would have said, had it had to answer
    sure: Mapping[str, float] = field(
        default_factory=dict, hash=False
    )  # by whom it is taken for how sure, see ORDERS
    error: str | None = None  # what the language model failed with


# Who may say which answers are the surest. Only the order counts, so that scales need not compare.
ORDERS: Mapping[str, Callable[[Mapping[str, float]], float | None]] = {
    "gate": lambda sure: sure.get("gate"),
    "review": lambda sure: sure.get("review"),
    "reader": lambda sure: sure.get("reader"),
    "first hit": lambda sure: sure.get("hit"),
    "gate x review": lambda sure: (
        sure["gate"] * sure["review"] if "gate" in sure and "review" in sure else None
    ),
}


@dataclass(frozen=True)
class AnswerRun:
    """Systems beside gold answers, as a document. Columns have one entry a question."""

    dataset: str
    question_ids: tuple[str, ...]
    kinds: tuple[str | None, ...]
    gold: tuple[str, ...]
    needed: tuple[
        tuple[DocId, ...], ...
    ]  # the documents that the answer rests on; empty: not known
    systems: Mapping[str, tuple[AnswerOutcome, ...]]
    seed: int = 42
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=package_versions)

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def kinds_known(self) -> list[str]:
        return sorted({kind for kind in self.kinds if kind})

    def outcomes(self, system: str) -> tuple[AnswerOutcome, ...]:
        if system not in self.systems:
            raise InputError(
                f"the run has no system named {system!r}", hint=did_you_mean(system, self.systems)
            )
        return self.systems[system]

    def values(self, system: str, measure: str, kind: str | None = None) -> Floats:
        """One value a question, of all or of one kind; NaN where the measure does not apply."""
        if measure not in MEASURES:
            raise InputError(
                f"no measure of answers is named {measure!r}", hint=did_you_mean(measure, MEASURES)
            )
        values = MEASURES[measure](self, self.outcomes(system))
        return values if kind is None else values[[one == kind for one in self.kinds]]

    def figure(self, system: str, measure: str, kind: str | None = None) -> Interval:
        """The mean with its bootstrap interval."""
        return mean_interval(self.values(system, measure, kind), seed=self.seed)

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
        return (
            None
            if np.isnan(fine).any()
            else Predictions(fine, places / max(int(places.max(initial=0)), 1))
        )

    def complete(self, outcomes: Sequence[AnswerOutcome]) -> Floats:
        """1 where all needed documents are held, NaN where one of the two is not known."""
        known = [
            None if one.held is None or not needed else set(needed) <= set(one.held)
            for one, needed in self._beside(outcomes)
        ]
        return np.array([np.nan if one is None else float(one) for one in known])

    def scores(self, answers: Sequence[str | None], metric: str) -> Floats:
        """An answer metric of each; no answer is a wrong one."""
        values = ANSWER_METRICS[metric](
            [one or "" for one in answers], [[one] for one in self.gold]
        )
        return np.where([one is None for one in answers], 0.0, values)

    def _right(self, answers: Sequence[str | None]) -> Floats:
        return self.scores(answers, "em")

    def _beside(
        self, outcomes: Sequence[AnswerOutcome]
    ) -> Iterable[tuple[AnswerOutcome, tuple[DocId, ...]]]:
        return zip(outcomes, self.needed, strict=True)

    def save(self, path: Path) -> Path:
        document = {"kind": "run", "task": "answers", "version": VERSION, **asdict(self)}
        write_atomically(
            Path(path),
            json.dumps(document, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n",
        )
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

        errors = {
            name: one.error
            for name, one in zip(self.question_ids, self.outcomes(system))
            if one.error
        }
        kinds = self.kinds_known if len(self.kinds_known) > 1 else []
        return {
            "figures": figures(None),
            "by_kind": {kind: figures(kind) for kind in kinds},
            "errors": errors,
        }


def _answered_mask(outcomes: Sequence[AnswerOutcome]) -> npt.NDArray[np.bool_]:
    return np.array([one.answer is not None for one in outcomes], dtype=bool)


def _score_measure(metric: str) -> Callable[[AnswerRun, Sequence[AnswerOutcome]], Floats]:
    return lambda run, outcomes: run.scores([one.answer for one in outcomes], metric)


def _answered_only(
    values: Callable[[AnswerRun, Sequence[AnswerOutcome]], Floats],
) -> Callable[[AnswerRun, Sequence[AnswerOutcome]], Floats]:
    return lambda run, outcomes: np.where(_answered_mask(outcomes), values(run, outcomes), np.nan)


def _cost_measure(part: str) -> Callable[[AnswerRun, Sequence[AnswerOutcome]], Floats]:
    return lambda _, outcomes: np.array([float(getattr(one.cost, part)) for one in outcomes])


MEASURES: Mapping[str, Callable[[AnswerRun, Sequence[AnswerOutcome]], Floats]] = {
    **{name: _score_measure(name) for name in ANSWER_METRICS},
    "answered": lambda _, outcomes: _answered_mask(outcomes).astype(float),
    "f1_of_answered": _answered_only(_score_measure("token_f1")),
    "wrong_of_answered": _answered_only(
        lambda run, outcomes: 1 - _score_measure("em")(run, outcomes)
    ),
    "complete": lambda run, outcomes: run.complete(outcomes),
    "incomplete_of_answered": _answered_only(lambda run, outcomes: 1 - run.complete(outcomes)),
    "documents": lambda _, outcomes: np.array(
        [np.nan if one.held is None else float(len(one.held)) for one in outcomes]
    ),
    **{part: _cost_measure(part) for part in ("rounds", "calls", "tokens", "seconds")},
}


# ---------------------------------------------------------------------------------------------------- from a file


def make_answer_run(
    dataset: str,
    examples: Sequence[GoldQuestion],
    systems: Mapping[str, Sequence[AnswerOutcome]],
    *,
    seed: int = 42,
    **more: Any,
) -> AnswerRun:
    """A run over questions that have a gold answer."""
    if not examples:
        raise InputError(
            f"no question of {dataset!r} has a gold answer", hint="choose a data set with answers"
        )
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
    dataset: str,
    examples: Iterable[GoldQuestion],
    answers: Mapping[str, str],
    *,
    system: str,
    seed: int = 42,
    **more: Any,
) -> AnswerRun:
    """Put answers, by question id or by the question's own words, beside the gold ones. Questions without gold are left out."""
    held = [example for example in examples if example.gold.answer]
    said = [answers.get(one.question.question_id, answers.get(one.question.text)) for one in held]
    if held and not any(one is not None for one in said):
        raise InputError(
            "none of the answers belongs to a question of the data set",
            hint="name the questions by id, or by their words",
        )
    return make_answer_run(
        dataset,
        held,
        {system: [AnswerOutcome(one, candidate=one) for one in said]},
        seed=seed,
        **more,
    )


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


# --- answer_tables: What a run of answers shows: how right, on what evidence, at what cost, by kind; and what it is worth to know when to stop.

COVERAGES = (0.3, 0.5, 0.7)
NAIVE, SINGLE, FIXED, LINKS, ALWAYS, ASK = (
    "naive",
    "single passage",
    "fixed k",
    "along links",
    "always",
    "ask",
)
INTERVAL_NOTE = "In brackets: 95 % bootstrap interval over questions."
# (system, who puts its surest first): with the gate, and what that is held against
GATE_COMPARISONS = (
    ((ASK, "gate"), ((ALWAYS, "review"), (FIXED, "reader"))),
    ((ALWAYS, "gate"), ((ALWAYS, "review"), (ALWAYS, "reader"), (ALWAYS, "first hit"))),
)


def answer_tables(run: AnswerRun) -> list[Table]:
    """Everything that the run can show, in order."""
    tables = [
        correctness_table(run),
        evidence_table(run),
        differences_table(run, NAIVE),
        kinds_table(run),
    ]
    tables += [confidence_table(run), equal_coverage_table(run), equal_documents_table(run)]
    return [table for table in tables if table.rows]


def file_answers_table(run: AnswerRun) -> Table:
    """Answers that came in a file: right or not, for all questions and by kind."""
    (system,) = run.systems
    kinds = run.kinds_known if len(run.kinds_known) > 1 else []
    rows: list[tuple[Cell, ...]] = []
    for kind in (None, *kinds):
        count = len(run) if kind is None else run.kinds.count(kind)
        rows.append(
            (kind or "all", count, *(run.figure(system, name, kind) for name in ANSWER_METRICS))
        )
    silent = sum(one.answer is None for one in run.systems[system])
    note = f"{INTERVAL_NOTE} Word overlap is the rule of the MultiHop-RAG papers: one shared word is right."
    note += f" {silent:,} questions have no answer and count as wrong." if silent else ""
    columns = ("questions", "n", "exact match", "F1", "accuracy", "word overlap")
    return Table(f"Answers of {system} on {run.dataset}", columns, tuple(rows), note)


# ------------------------------------------------------------------------------------------------------ each system


def _table(
    run: AnswerRun, title: str, columns: dict[str, str], note: str, plain: Sequence[str] = ()
) -> Table:
    """A row a system, a column a measure; measures in `plain` are shown without an interval."""
    rows: list[tuple[Cell, ...]] = []
    for system in run.systems:
        figures = {name: run.figure(system, name) for name in columns.values()}
        rows.append(
            (system, *(one.value if name in plain else one for name, one in figures.items()))
        )
    return Table(f"{title} on {run.dataset}", ("system", *columns), tuple(rows), note)


def correctness_table(run: AnswerRun) -> Table:
    columns = {
        "exact match": "em",
        "F1": "token_f1",
        "accuracy": "accuracy",
        "answered": "answered",
    }
    columns |= {"F1 of answered": "f1_of_answered", "wrong of answered": "wrong_of_answered"}
    note = (
        f"n = {len(run):,} questions. No answer counts as wrong; accuracy: the gold answer stands in the answer; wrong of "
        f"answered: not an exact match. {INTERVAL_NOTE}"
    )
    return _table(run, "Answers", columns, note)


def evidence_table(run: AnswerRun, *, timed: bool = True) -> Table:
    columns = {
        "complete": "complete",
        "incomplete of answered": "incomplete_of_answered",
        "documents": "documents",
    }
    spent = {name: name for name in ("rounds", "calls", "tokens", *(["seconds"] if timed else []))}
    note = (
        "Complete: all gold documents are held in the end. Incomplete of answered: answered though one was not. The rest a "
        f"question, on average; a round is a look beyond the first. {INTERVAL_NOTE}"
    )
    return _table(run, "Evidence and cost", columns | spent, note, ("documents", *spent))


def differences_table(run: AnswerRun, against: str) -> Table:
    """Each system against one of them, paired over questions."""
    measures = {
        "exact match": "em",
        "F1": "token_f1",
        "accuracy": "accuracy",
        "complete": "complete",
    }
    others = [one for one in run.systems if one != against] if against in run.systems else []
    rows: list[tuple[Cell, ...]] = []
    for one in others:
        rows.append((one, *(run.above(one, against, name) for name in measures.values())))
    note = "Above 0: better. Paired bootstrap over questions, 95 %."
    return Table(f"Above {against} on {run.dataset}", ("system", *measures), tuple(rows), note)


def kinds_table(
    run: AnswerRun, *, systems: Sequence[str] | None = None, against: str = SINGLE, fewest: int = 10
) -> Table:
    """F1 by kind of question, and how far that is above the plainest system."""
    rows: list[tuple[Cell, ...]] = []
    for kind in run.kinds_known if len(run.kinds_known) > 1 else []:
        count = run.kinds.count(kind)
        if count < fewest:
            continue
        for system in systems or run.systems:
            told: list[Cell] = [
                run.figure(system, "token_f1", kind),
                run.figure(system, "answered", kind).value,
            ]
            base = against in run.systems and system != against
            rows.append(
                (
                    kind,
                    count,
                    system,
                    *told,
                    run.above(system, against, "token_f1", kind) if base else None,
                )
            )
    columns = ("kind", "n", "system", "F1", "answered", f"above {against}")
    return Table(
        f"F1 by kind on {run.dataset}",
        columns,
        tuple(rows),
        f"No answer counts as wrong. {INTERVAL_NOTE}",
    )


# ------------------------------------------------------------------------------------------------------ when to stop


def confidence_table(run: AnswerRun) -> Table:
    """Area under the risk-coverage curve of what each system would have said, by who puts the surest first."""
    rows: list[tuple[Cell, ...]] = []
    for system in (one for one in (FIXED, ALWAYS, ASK) if one in run.systems):
        for order in ORDERS:
            both = [run.ordered(system, order, good) for good in ("complete", "right")]
            if all(one is not None for one in both):
                rows.append((system, order, *(_figure(one, "aurc", run.seed) for one in both)))
    note = (
        "Area under the risk-coverage curve, lower is better: the share of incomplete (of wrong) among the answered, averaged "
        f"over all shares of questions that might be answered, the surest first. Nothing to say counts as both. {INTERVAL_NOTE}"
    )
    return Table(
        f"Who knows best what to answer on {run.dataset}",
        ("system", "order", "incomplete", "wrong"),
        tuple(rows),
        note,
    )


def equal_coverage_table(run: AnswerRun) -> Table:
    """At the same share answered: with the gate against without, the share that lacks evidence and the share that is wrong."""
    rows: list[tuple[Cell, ...]] = []
    for first, second in ((one, other) for one, others in GATE_COMPARISONS for other in others):
        for coverage in COVERAGES:
            cells: list[Cell] = []
            for good in ("complete", "right"):
                one, other = (ranked_answers(run, pair, good) for pair in (first, second))
                if one is not None and other is not None:
                    name = f"risk_at_coverage@{coverage:g}"
                    cells += [
                        score(one, name),
                        score(other, name),
                        compare(one, other, name, seed=run.seed),
                    ]
            if len(cells) == 6:
                rows.append((", by ".join(first), ", by ".join(second), coverage, *cells))
    faults = (
        "incomplete",
        "without it",
        "difference",
        "wrong",
        "wrong without it",
        "difference of wrong",
    )
    columns = ("with the gate", "without", "coverage", *faults)
    note = (
        "Of the answered, the surest first, at the same coverage of all questions; below 0: fewer with the gate. Differences "
        "with 95 % interval, paired bootstrap over questions."
    )
    return Table(f"At equal coverage on {run.dataset}", columns, tuple(rows), note)


def ranked_answers(run: AnswerRun, pair: tuple[str, str], good: str) -> Predictions | None:
    system, order = pair
    return run.ordered(system, order, good) if system in run.systems else None


def _figure(predictions: Predictions | None, name: str, seed: int) -> Interval:
    return Interval(None) if predictions is None else interval(predictions, name, seed=seed)


def equal_documents_table(run: AnswerRun) -> Table:
    """Completeness beside the first documents of one look, as many for each question as the system holds for it."""
    looks = [one for one in (FIXED, LINKS) if one in run.systems]
    rows: list[tuple[Cell, ...]] = []
    for system in (one for one in run.systems if looks and one not in (SINGLE, NAIVE, *looks)):
        ours = run.complete(run.outcomes(system))
        cells: list[Cell] = [
            run.figure(system, "documents").value,
            mean_interval(ours, seed=run.seed),
        ]
        for look in looks:
            same = _complete_at_size(run, look, system)
            cells += [
                mean_interval(same, seed=run.seed),
                paired_difference(ours, same, seed=run.seed),
            ]
        rows.append((system, *cells))
    columns = [name for look in looks for name in (look, f"above {look}")]
    note = f"One look, by words and vectors or along links, is given as many documents as the system holds. {INTERVAL_NOTE}"
    return Table(
        f"Complete at equal documents on {run.dataset}",
        ("system", "documents", "complete", *columns),
        tuple(rows),
        note,
    )


def _complete_at_size(run: AnswerRun, look: str, system: str) -> npt.NDArray[np.float64]:
    """Is one look complete with as many documents of each question as the system holds?"""
    pairs = zip(run.outcomes(look), run.outcomes(system), strict=True)
    return run.complete(
        [replace(one, held=(one.held or ())[: len(other.held or ())]) for one, other in pairs]
    )
