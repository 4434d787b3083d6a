"""What a run of answers shows: how right, on what evidence, at what cost, by kind; and what it is worth to know when to stop.

equal coverage     everyone answers the same share of the questions, the surest first: how many of these answers lack evidence
equal documents    a fixed k is given as many documents for each question as a system holds for it: who is complete
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from suffice.evaluate.answers import ORDERS, AnswerRun
from suffice.evaluate.compare import Interval, compare, interval, interval_of_mean, paired_difference
from suffice.evaluate.figures import Lines, risk_lines
from suffice.evaluate.metrics import ANSWERS, Predictions, score
from suffice.evaluate.tables import Cell, Table

__all__ = [
    "COVERAGES",
    "answer_tables",
    "differences",
    "equal_coverage",
    "equal_documents",
    "evidence",
    "given_answers",
    "kinds_table",
    "overview",
    "risk_figure",
    "sureness",
]

COVERAGES = (0.3, 0.5, 0.7)
NAIVE, SINGLE, FIXED, LINKS, FREE, ASK = "naive", "single passage", "fixed k", "along links", "always", "ask"
BRACKETS = "In brackets: 95 % bootstrap interval over questions."
# (system, who puts its surest first): with the gate, and what that is held against
AGAINST = (
    ((ASK, "gate"), ((FREE, "review"), (FIXED, "reader"))),
    ((FREE, "gate"), ((FREE, "review"), (FREE, "reader"), (FREE, "first hit"))),
)


def answer_tables(run: AnswerRun) -> list[Table]:
    """Everything that the run can show, in order."""
    tables = [overview(run), evidence(run), differences(run, NAIVE), kinds_table(run)]
    tables += [sureness(run), equal_coverage(run), equal_documents(run)]
    return [table for table in tables if table.rows]


def given_answers(run: AnswerRun) -> Table:
    """Answers that came in a file: right or not, for all questions and by kind."""
    (system,) = run.systems
    kinds = run.kinds_known if len(run.kinds_known) > 1 else []
    rows: list[tuple[Cell, ...]] = []
    for kind in (None, *kinds):
        count = len(run) if kind is None else run.kinds.count(kind)
        rows.append((kind or "all", count, *(run.figure(system, name, kind) for name in ANSWERS)))
    silent = sum(one.answer is None for one in run.systems[system])
    note = f"{BRACKETS} Word overlap is the rule of the MultiHop-RAG papers: one shared word is right."
    note += f" {silent:,} questions have no answer and count as wrong." if silent else ""
    columns = ("questions", "n", "exact match", "F1", "accuracy", "word overlap")
    return Table(f"Answers of {system} on {run.dataset}", columns, tuple(rows), note)


# ------------------------------------------------------------------------------------------------------ each system


def _table(run: AnswerRun, title: str, columns: dict[str, str], note: str, plain: Sequence[str] = ()) -> Table:
    """A row a system, a column a measure; measures in `plain` are shown without an interval."""
    rows: list[tuple[Cell, ...]] = []
    for system in run.systems:
        figures = {name: run.figure(system, name) for name in columns.values()}
        rows.append((system, *(one.value if name in plain else one for name, one in figures.items())))
    return Table(f"{title} on {run.dataset}", ("system", *columns), tuple(rows), note)


def overview(run: AnswerRun) -> Table:
    columns = {"exact match": "em", "F1": "token_f1", "accuracy": "accuracy", "answered": "answered"}
    columns |= {"F1 of answered": "f1_of_answered", "wrong of answered": "wrong_of_answered"}
    note = (
        f"n = {len(run):,} questions. No answer counts as wrong; accuracy: the gold answer stands in the answer; wrong of "
        f"answered: not an exact match. {BRACKETS}"
    )
    return _table(run, "Answers", columns, note)


def evidence(run: AnswerRun, *, timed: bool = True) -> Table:
    columns = {"complete": "complete", "incomplete of answered": "incomplete_of_answered", "documents": "documents"}
    spent = {name: name for name in ("rounds", "calls", "tokens", *(["seconds"] if timed else []))}
    note = (
        "Complete: all gold documents are held in the end. Incomplete of answered: answered though one was not. The rest a "
        f"question, on average; a round is a look beyond the first. {BRACKETS}"
    )
    return _table(run, "Evidence and cost", columns | spent, note, ("documents", *spent))


def differences(run: AnswerRun, against: str) -> Table:
    """Each system against one of them, paired over questions."""
    measures = {"exact match": "em", "F1": "token_f1", "accuracy": "accuracy", "complete": "complete"}
    others = [one for one in run.systems if one != against] if against in run.systems else []
    rows: list[tuple[Cell, ...]] = []
    for one in others:
        rows.append((one, *(run.above(one, against, name) for name in measures.values())))
    note = "Above 0: better. Paired bootstrap over questions, 95 %."
    return Table(f"Above {against} on {run.dataset}", ("system", *measures), tuple(rows), note)


def kinds_table(run: AnswerRun, *, systems: Sequence[str] | None = None, against: str = SINGLE, fewest: int = 10) -> Table:
    """F1 by kind of question, and how far that is above the plainest system."""
    rows: list[tuple[Cell, ...]] = []
    for kind in run.kinds_known if len(run.kinds_known) > 1 else []:
        count = run.kinds.count(kind)
        if count < fewest:
            continue
        for system in systems or run.systems:
            told: list[Cell] = [run.figure(system, "token_f1", kind), run.figure(system, "answered", kind).value]
            base = against in run.systems and system != against
            rows.append((kind, count, system, *told, run.above(system, against, "token_f1", kind) if base else None))
    columns = ("kind", "n", "system", "F1", "answered", f"above {against}")
    return Table(f"F1 by kind on {run.dataset}", columns, tuple(rows), f"No answer counts as wrong. {BRACKETS}")


# ------------------------------------------------------------------------------------------------------ when to stop


def sureness(run: AnswerRun) -> Table:
    """Area under the risk-coverage curve of what each system would have said, by who puts the surest first."""
    rows: list[tuple[Cell, ...]] = []
    for system in (one for one in (FIXED, FREE, ASK) if one in run.systems):
        for order in ORDERS:
            both = [run.ordered(system, order, good) for good in ("complete", "right")]
            if all(one is not None for one in both):
                rows.append((system, order, *(_figure(one, "aurc", run.seed) for one in both)))
    note = (
        "Area under the risk-coverage curve, lower is better: the share of incomplete (of wrong) among the answered, averaged "
        f"over all shares of questions that might be answered, the surest first. Nothing to say counts as both. {BRACKETS}"
    )
    return Table(
        f"Who knows best what to answer on {run.dataset}", ("system", "order", "incomplete", "wrong"), tuple(rows), note
    )


def equal_coverage(run: AnswerRun) -> Table:
    """At the same share answered: with the gate against without, the share that lacks evidence and the share that is wrong."""
    rows: list[tuple[Cell, ...]] = []
    for first, second in ((one, other) for one, others in AGAINST for other in others):
        for coverage in COVERAGES:
            cells: list[Cell] = []
            for good in ("complete", "right"):
                one, other = (_ordered(run, pair, good) for pair in (first, second))
                if one is not None and other is not None:
                    name = f"risk_at_coverage@{coverage:g}"
                    cells += [score(one, name), score(other, name), compare(one, other, name, seed=run.seed)]
            if len(cells) == 6:
                rows.append((", by ".join(first), ", by ".join(second), coverage, *cells))
    faults = ("incomplete", "without it", "difference", "wrong", "wrong without it", "difference of wrong")
    columns = ("with the gate", "without", "coverage", *faults)
    note = (
        "Of the answered, the surest first, at the same coverage of all questions; below 0: fewer with the gate. Differences "
        "with 95 % interval, paired bootstrap over questions."
    )
    return Table(f"At equal coverage on {run.dataset}", columns, tuple(rows), note)


def _ordered(run: AnswerRun, pair: tuple[str, str], good: str) -> Predictions | None:
    system, order = pair
    return run.ordered(system, order, good) if system in run.systems else None


def _figure(predictions: Predictions | None, name: str, seed: int) -> Interval:
    return Interval(None) if predictions is None else interval(predictions, name, seed=seed)


def equal_documents(run: AnswerRun) -> Table:
    """Completeness beside the first documents of one look, as many for each question as the system holds for it."""
    looks = [one for one in (FIXED, LINKS) if one in run.systems]
    rows: list[tuple[Cell, ...]] = []
    for system in (one for one in run.systems if looks and one not in (SINGLE, NAIVE, *looks)):
        ours = run.complete(run.outcomes(system))
        cells: list[Cell] = [run.figure(system, "documents").value, interval_of_mean(ours, seed=run.seed)]
        for look in looks:
            same = _as_many(run, look, system)
            cells += [interval_of_mean(same, seed=run.seed), paired_difference(ours, same, seed=run.seed)]
        rows.append((system, *cells))
    columns = [name for look in looks for name in (look, f"above {look}")]
    note = f"One look, by words and vectors or along links, is given as many documents as the system holds. {BRACKETS}"
    return Table(
        f"Complete at equal documents on {run.dataset}", ("system", "documents", "complete", *columns), tuple(rows), note
    )


def _as_many(run: AnswerRun, look: str, system: str) -> npt.NDArray[np.float64]:
    """Is one look complete with as many documents of each question as the system holds?"""
    pairs = zip(run.outcomes(look), run.outcomes(system), strict=True)
    return run.complete([replace(one, held=(one.held or ())[: len(other.held or ())]) for one, other in pairs])


def risk_figure(run: AnswerRun, good: str) -> Lines:
    """The share of incomplete (or wrong) among the answered, as more is answered."""
    pairs = dict.fromkeys(pair for one, others in AGAINST for pair in (one, *others))
    lines = {", by ".join(pair): one for pair in pairs if (one := _ordered(run, pair, good)) is not None}
    word = "incomplete" if good == "complete" else "wrong"
    return risk_lines(f"Risk of {word} answers on {run.dataset}", lines, word=word)
