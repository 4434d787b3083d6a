"""Compare answers with gold answers: which are right, on what evidence, and at what cost.

A run has one or several systems on the same questions: answers from a file, or the output of
`suffice_research.answer_systems`. A missing answer counts as wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError, did_you_mean
from suffice.evaluation.metrics import ANSWER_METRICS
from suffice.evaluation.report import Cell, Table
from suffice.evaluation.result_files import load_result
from suffice.evaluation.significance import (
    Difference,
    Interval,
    mean_interval,
    paired_difference,
)
from suffice.registry import Registry
from suffice.storage import BadRecords, package_versions, read_json_records, write_atomically
from suffice.storage.fields import dataclass_from_json
from suffice.types import Cost, DocId

__all__ = ["AnswerOutcome", "AnswerRun", "answer_tables", "judge_answers", "read_answers"]

Floats = npt.NDArray[np.float64]
VERSION = 2
INTERVAL_NOTE = "In brackets: 95 % bootstrap interval over questions."
# Plug-ins `answers.NAME`: (run) -> more tables.
MORE_TABLES: Registry[list[Table]] = Registry("answers")


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """The outcome of one system for one question."""

    answer: str | None  # None: it abstained or found nothing
    held: tuple[DocId, ...] | None = None  # its final documents, in order; None: unknown
    cost: Cost = Cost()  # noqa: RUF009 - frozen
    candidate: str | None = None  # what it would have answered if forced to
    sure: Mapping[str, float] = field(default_factory=dict, hash=False)  # confidence, by whom
    error: str | None = None  # the language model's error


Outcomes = Sequence[AnswerOutcome]


@dataclass(frozen=True)
class AnswerRun:
    """Systems compared with gold answers, as a document. Columns have one entry per question."""

    dataset: str
    question_ids: tuple[str, ...]
    kinds: tuple[str | None, ...]
    gold: tuple[str, ...]
    needed: tuple[tuple[DocId, ...], ...]  # documents that the answer needs; empty: unknown
    systems: Mapping[str, tuple[AnswerOutcome, ...]]
    seed: int = 42
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=package_versions)

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def several_kinds(self) -> list[str]:
        """The kinds of question, if there are several."""
        kinds = sorted({kind for kind in self.kinds if kind})
        return kinds if len(kinds) > 1 else []

    def outcomes(self, system: str) -> tuple[AnswerOutcome, ...]:
        if system not in self.systems:
            known = did_you_mean(system, self.systems)
            raise InputError(f"the run has no system named {system!r}", hint=known)
        return self.systems[system]

    def values(self, system: str, measure: str, kind: str | None = None) -> Floats:
        """One value per question, of all or of one kind; NaN if the measure does not apply."""
        if measure not in MEASURES:
            known = did_you_mean(measure, MEASURES)
            raise InputError(f"no measure of answers is named {measure!r}", hint=known)
        values = MEASURES[measure](self, self.outcomes(system))
        return values if kind is None else values[[one == kind for one in self.kinds]]

    def figure(self, system: str, measure: str, kind: str | None = None) -> Interval:
        """The mean with its bootstrap interval."""
        return mean_interval(self.values(system, measure, kind), seed=self.seed)

    def above(self, system: str, other: str, measure: str, kind: str | None = None) -> Difference:
        """How far a system is above another on the same questions."""
        values = [self.values(one, measure, kind) for one in (system, other)]
        return paired_difference(*values, seed=self.seed)

    def complete(self, outcomes: Outcomes) -> Floats:
        """1 if all needed documents are held, NaN if either is unknown."""
        found = []
        for one, needed in zip(outcomes, self.needed, strict=True):
            known = one.held is not None and needed
            found.append(float(set(needed) <= set(one.held or ())) if known else np.nan)
        return np.array(found, dtype=np.float64)

    def scores(self, answers: Sequence[str | None], metric: str) -> Floats:
        """An answer metric for each question; a missing answer is wrong."""
        given, gold = [one or "" for one in answers], [[one] for one in self.gold]
        values = ANSWER_METRICS[metric](given, gold)
        return np.where([one is None for one in answers], 0.0, values)

    def save(self, path: Path) -> Path:
        document = {"kind": "run", "task": "answers", "version": VERSION, **asdict(self)}
        options: Any = {"sort_keys": True, "allow_nan": False, "ensure_ascii": False}
        write_atomically(Path(path), json.dumps(document, **options) + "\n")
        return Path(path)

    @staticmethod
    def load(path: Path) -> AnswerRun:
        """Load a run; the error says what the file is instead, or which version."""
        options: Any = {"version": VERSION, "command": "suffice evaluate answers", "kind": "run"}
        return load_result(path, _run_from_json, what="run of answers", task="answers", **options)

    def summary(self) -> dict[str, Any]:
        """The run for scripts: every measure of every system, for all questions and by kind."""

        def figures(system: str, kind: str | None = None) -> dict[str, Any]:
            return {name: asdict(self.figure(system, name, kind)) for name in MEASURES}

        systems = {}
        for name, outcomes in self.systems.items():
            errors = {at: one.error for at, one in zip(self.question_ids, outcomes) if one.error}
            by_kind = {kind: figures(name, kind) for kind in self.several_kinds}
            systems[name] = {"figures": figures(name), "by_kind": by_kind, "errors": errors}
        return {
            "dataset": self.dataset,
            "n": len(self),
            "seed": self.seed,
            "settings": dict(self.settings),
            "systems": systems,
        }


def _run_from_json(document: dict[str, Any]) -> AnswerRun:
    marks = ("kind", "task", "version")
    fields = {name: value for name, value in document.items() if name not in marks}
    run = dataclass_from_json(AnswerRun, fields)
    columns = [run.question_ids, run.kinds, run.gold, run.needed, *run.systems.values()]
    if len(set(map(len, columns))) > 1:
        raise ValueError("its columns have different lengths")
    return run


# ------------------------------------------------------------------------------------ measures

Measure = Callable[[AnswerRun, Outcomes], Floats]


def _answered(_: AnswerRun, outcomes: Outcomes) -> Floats:
    return np.array([one.answer is not None for one in outcomes], dtype=np.float64)


def _scored(metric: str) -> Measure:
    return lambda run, outcomes: run.scores([one.answer for one in outcomes], metric)


def _of_answered(measure: Measure, *, fault: bool = False) -> Measure:
    def values(run: AnswerRun, outcomes: Outcomes) -> Floats:
        found = measure(run, outcomes)
        return np.where(_answered(run, outcomes) > 0, 1 - found if fault else found, np.nan)

    return values


def _spent(part: str) -> Measure:
    return lambda _, outcomes: np.array([float(getattr(one.cost, part)) for one in outcomes])


def _documents(_: AnswerRun, outcomes: Outcomes) -> Floats:
    return np.array([np.nan if one.held is None else float(len(one.held)) for one in outcomes])


MEASURES: Mapping[str, Measure] = {
    **{name: _scored(name) for name in ANSWER_METRICS},
    "answered": _answered,
    "f1_of_answered": _of_answered(_scored("token_f1")),
    "wrong_of_answered": _of_answered(_scored("em"), fault=True),
    "complete": AnswerRun.complete,
    "incomplete_of_answered": _of_answered(AnswerRun.complete, fault=True),
    "documents": _documents,
    **{part: _spent(part) for part in ("rounds", "calls", "tokens", "seconds")},
}


# ------------------------------------------------------------------------------------ making a run


def make_answer_run(
    dataset: str,
    questions: Sequence[GoldQuestion],
    systems: Mapping[str, Outcomes],
    *,
    seed: int = 42,
    **more: Any,
) -> AnswerRun:
    """A run over questions that have a gold answer."""
    if not questions:
        raise InputError(
            f"no question of {dataset!r} has a gold answer", hint="choose a data set with answers"
        )
    return AnswerRun(
        dataset,
        tuple(one.question.question_id for one in questions),
        tuple(one.gold.kind for one in questions),
        tuple(one.gold.answer or "" for one in questions),
        tuple(tuple(sorted(one.gold.doc_ids)) for one in questions),
        {name: tuple(outcomes) for name, outcomes in systems.items()},
        seed=seed,
        **more,
    )


def judge_answers(
    dataset: str,
    questions: Iterable[GoldQuestion],
    answers: Mapping[str, str],
    *,
    system: str,
    seed: int = 42,
    **more: Any,
) -> AnswerRun:
    """Compare answers, by question id or text, with gold; skip questions without gold."""
    known = [one for one in questions if one.gold.answer]
    found = [answers.get(one.question.question_id, answers.get(one.question.text)) for one in known]
    if known and not any(one is not None for one in found):
        raise InputError(
            "none of the answers belongs to a question of the data set",
            hint="name the questions by id, or by their text",
        )
    outcomes = [AnswerOutcome(one, candidate=one) for one in found]
    return make_answer_run(dataset, known, {system: outcomes}, seed=seed, **more)


def read_answers(path: Path, bad: BadRecords | None = None) -> dict[str, str]:
    """Answers from JSON: `question_id` or `query`, and `answer` or `model_answer`.

    An id may be a number, as in a data set; null is no answer. A second, different answer to a
    question is a bad record.
    """
    found: dict[str, str] = {}
    bad = bad or BadRecords()
    for record in read_json_records(Path(path), bad):
        value = record.value
        named = (value.get(one) for one in ("question_id", "query", "question"))
        name = next((one for one in named if one not in (None, "")), None)
        name = str(name) if type(name) is int else name
        answer = value.get("model_answer", value.get("answer"))
        if isinstance(name, str) and answer is None and "answer" in value:
            continue  # null: the system gave none
        if not isinstance(name, str) or not isinstance(answer, str):
            problem = "expected question_id or query, and answer, as texts"
            hint = 'a line looks like {"question_id": "q0", "answer": "Sam"}'
            bad.reject(record.where, problem, hint=hint)
        elif found.setdefault(name, answer) != answer:
            problem = f"question {name!r} already has another answer: {found[name][:80]!r}"
            hint = "delete one of the two, or pass --skip-bad to keep the first"
            bad.reject(record.where, problem, hint=hint)
    return found


# ------------------------------------------------------------------------------------ tables


def answer_tables(run: AnswerRun) -> list[Table]:
    """All tables of the run, in order; those from plug-ins come last."""
    tables = [correctness_table(run), evidence_table(run), differences_table(run, "naive")]
    tables.append(kinds_table(run))
    for name in MORE_TABLES.names():
        tables += MORE_TABLES.get(name)(run)
    return [table for table in tables if table.rows]


def file_answers_table(run: AnswerRun) -> Table:
    """Answers from a file: the share that is right, for all questions and by kind."""
    (system,) = run.systems
    rows: list[tuple[Cell, ...]] = []
    for kind in (None, *run.several_kinds):
        count = len(run) if kind is None else run.kinds.count(kind)
        figures = (run.figure(system, name, kind) for name in ANSWER_METRICS)
        rows.append((kind or "all", count, *figures))
    silent = sum(one.answer is None for one in run.systems[system])
    note = f"{INTERVAL_NOTE} Word overlap is the rule of the MultiHop-RAG papers: "
    note += "one shared word is right."
    note += f" {silent:,} questions have no answer and count as wrong." if silent else ""
    columns = ("questions", "n", "exact match", "F1", "accuracy", "word overlap")
    return Table(f"Answers of {system} on {run.dataset}", columns, tuple(rows), note)


def _system_table(
    run: AnswerRun, title: str, columns: dict[str, str], note: str, plain: Sequence[str] = ()
) -> Table:
    """A row per system, a column per measure; measures in `plain` are shown without interval."""
    rows: list[tuple[Cell, ...]] = []
    for system in run.systems:
        figures = {name: run.figure(system, name) for name in columns.values()}
        cells = (one.value if name in plain else one for name, one in figures.items())
        rows.append((system, *cells))
    return Table(f"{title} on {run.dataset}", ("system", *columns), tuple(rows), note)


def correctness_table(run: AnswerRun) -> Table:
    columns = {"exact match": "em", "F1": "token_f1", "accuracy": "accuracy"}
    columns |= {"answered": "answered", "F1 of answered": "f1_of_answered"}
    columns |= {"wrong of answered": "wrong_of_answered"}
    note = (
        f"n = {len(run):,} questions. No answer counts as wrong; accuracy: the gold answer stands "
        f"in the answer; wrong of answered: not an exact match. {INTERVAL_NOTE}"
    )
    return _system_table(run, "Answers", columns, note)


def evidence_table(run: AnswerRun, *, timed: bool = True) -> Table:
    columns = {"complete": "complete", "incomplete of answered": "incomplete_of_answered"}
    plain = ["documents", "rounds", "calls", "tokens", *(["seconds"] if timed else [])]
    note = (
        "Complete: all gold documents are held in the end. Incomplete of answered: answered though "
        "one was not. The rest a question, on average; a round is a look beyond the first. "
        f"{INTERVAL_NOTE}"
    )
    every = columns | {name: name for name in plain}
    return _system_table(run, "Evidence and cost", every, note, plain)


def differences_table(run: AnswerRun, against: str) -> Table:
    """Each system against one of them, paired over questions."""
    measures = {"exact match": "em", "F1": "token_f1", "accuracy": "accuracy"}
    measures |= {"complete": "complete"}
    others = [one for one in run.systems if one != against] if against in run.systems else []
    rows: list[tuple[Cell, ...]] = []
    for one in others:
        rows.append((one, *(run.above(one, against, name) for name in measures.values())))
    note = "Above 0: better. Paired bootstrap over questions, 95 %."
    return Table(f"Above {against} on {run.dataset}", ("system", *measures), tuple(rows), note)


def kinds_table(
    run: AnswerRun,
    *,
    systems: Sequence[str] | None = None,
    against: str = "single passage",
    fewest: int = 10,
) -> Table:
    """F1 by kind of question, and the difference to the simplest system."""
    rows: list[tuple[Cell, ...]] = []
    for kind in run.several_kinds:
        count = run.kinds.count(kind)
        for system in (systems or run.systems) if count >= fewest else ():
            f1, answered = (run.figure(system, one, kind) for one in ("token_f1", "answered"))
            paired = against in run.systems and system != against
            gain = run.above(system, against, "token_f1", kind) if paired else None
            rows.append((kind, count, system, f1, answered.value, gain))
    columns = ("kind", "n", "system", "F1", "answered", f"above {against}")
    note = f"No answer counts as wrong. {INTERVAL_NOTE}"
    return Table(f"F1 by kind on {run.dataset}", columns, tuple(rows), note)
