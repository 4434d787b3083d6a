"""The value of knowing when to stop: tables from a run of answers.

At equal coverage, all systems answer the same share of the questions, the most confident first. At
equal documents, a fixed k gets as many documents as a system holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from suffice.evaluation.metrics import Predictions, score
from suffice.evaluation.report import Cell, Table
from suffice.evaluation.significance import compare, interval, mean_interval, paired_difference
from suffice_research.answers import INTERVAL_NOTE, AnswerRun

__all__ = [
    "COVERAGES",
    "GATE_COMPARISONS",
    "confidence_table",
    "equal_coverage_table",
    "equal_documents_table",
    "ordered_answers",
    "ranked_answers",
    "stopping_tables",
]

COVERAGES = (0.3, 0.5, 0.7)
NAIVE, SINGLE, FIXED, LINKS = "naive", "single passage", "fixed k", "along links"
ALWAYS, ASK = "always", "ask"
# (system, whose confidence ranks its answers): with the gate, and what to compare it with
GATE_COMPARISONS = (
    ((ASK, "gate"), ((ALWAYS, "review"), (FIXED, "reader"))),
    ((ALWAYS, "gate"), ((ALWAYS, "review"), (ALWAYS, "reader"), (ALWAYS, "first hit"))),
)
# Whose confidence may rank the answers. Only the order counts, so scales need not compare.
ORDERS: Mapping[str, Callable[[Mapping[str, float]], float | None]] = {
    "gate": lambda sure: sure.get("gate"),
    "review": lambda sure: sure.get("review"),
    "reader": lambda sure: sure.get("reader"),
    "first hit": lambda sure: sure.get("hit"),
    "gate x review": lambda sure: (
        sure["gate"] * sure["review"] if {"gate", "review"} <= sure.keys() else None
    ),
}


def stopping_tables(run: AnswerRun) -> list[Table]:
    """All stopping tables, for `suffice evaluate answers`."""
    return [confidence_table(run), equal_coverage_table(run), equal_documents_table(run)]


def ordered_answers(run: AnswerRun, system: str, by: str, good: str) -> Predictions | None:
    """A system's candidate answers by confidence, and whether each is "right" or "complete".

    A question without a candidate comes last and counts as not good. None: the order is unknown.
    """
    outcomes = run.outcomes(system)
    answers = [one.candidate for one in outcomes]
    sure = [None if one.candidate is None else ORDERS[by](one.sure) for one in outcomes]
    if any(one is None and text is not None for one, text in zip(sure, answers)):
        return None
    order = np.array([-np.inf if one is None else one for one in sure])
    places = np.unique(order, return_inverse=True)[1]
    fine = run.complete(outcomes) if good == "complete" else run.scores(answers, "em")
    fine = np.where([one is None for one in answers], 0.0, fine)
    if np.isnan(fine).any():
        return None
    return Predictions(fine, places / max(int(places.max(initial=0)), 1))


def confidence_table(run: AnswerRun) -> Table:
    """Area under the risk-coverage curve of each system's candidates, by who ranks them."""
    rows: list[tuple[Cell, ...]] = []
    for system in (one for one in (FIXED, ALWAYS, ASK) if one in run.systems):
        for order in ORDERS:
            both = [ordered_answers(run, system, order, good) for good in ("complete", "right")]
            known = [interval(one, "aurc", seed=run.seed) for one in both if one is not None]
            if len(known) == 2:
                rows.append((system, order, *known))
    note = (
        "Area under the risk-coverage curve, lower is better: the share of incomplete (of wrong) "
        "among the answered, averaged over all shares of questions that might be answered, the "
        f"surest first. Nothing to say counts as both. {INTERVAL_NOTE}"
    )
    columns = ("system", "order", "incomplete", "wrong")
    return Table(f"Who knows best what to answer on {run.dataset}", columns, tuple(rows), note)


def equal_coverage_table(run: AnswerRun) -> Table:
    """At equal coverage, with and without the gate: how many answers lack evidence or are wrong."""
    rows: list[tuple[Cell, ...]] = []
    for first, second in ((one, other) for one, others in GATE_COMPARISONS for other in others):
        for coverage in COVERAGES:
            name, cells = f"risk_at_coverage@{coverage:g}", list[Cell]()
            for good in ("complete", "right"):
                one, other = (ranked_answers(run, pair, good) for pair in (first, second))
                if one is not None and other is not None:
                    gap = compare(one, other, name, seed=run.seed)
                    cells += [score(one, name), score(other, name), gap]
            if len(cells) == 6:
                rows.append((", by ".join(first), ", by ".join(second), coverage, *cells))
    columns = (
        *("with the gate", "without", "coverage", "incomplete", "without it", "difference"),
        *("wrong", "wrong without it", "difference of wrong"),
    )
    note = (
        "Of the answered, the surest first, at the same coverage of all questions; below 0: fewer "
        "with the gate. Differences with 95 % interval, paired bootstrap over questions."
    )
    return Table(f"At equal coverage on {run.dataset}", columns, tuple(rows), note)


def ranked_answers(run: AnswerRun, pair: tuple[str, str], good: str) -> Predictions | None:
    """The candidates of (system, order); None if the run lacks them."""
    system, order = pair
    return ordered_answers(run, system, order, good) if system in run.systems else None


def equal_documents_table(run: AnswerRun) -> Table:
    """Completeness of one search with as many documents as the system holds for each question."""
    once = [one for one in (FIXED, LINKS) if one in run.systems]
    rows: list[tuple[Cell, ...]] = []
    for system in (one for one in run.systems if once and one not in (SINGLE, NAIVE, *once)):
        outcomes = run.outcomes(system)
        ours = run.complete(outcomes)
        cells: list[Cell] = [run.figure(system, "documents").value]
        cells.append(mean_interval(ours, seed=run.seed))
        for name in once:
            pairs = zip(run.outcomes(name), outcomes, strict=True)
            cut = [replace(a, held=(a.held or ())[: len(b.held or ())]) for a, b in pairs]
            same = run.complete(cut)
            gap = paired_difference(ours, same, seed=run.seed)
            cells += [mean_interval(same, seed=run.seed), gap]
        rows.append((system, *cells))
    pair_columns = [column for name in once for column in (name, f"above {name}")]
    columns = ("system", "documents", "complete", *pair_columns)
    note = (
        "One look, by words and vectors or along links, is given as many documents as the system "
        f"holds. {INTERVAL_NOTE}"
    )
    return Table(f"Complete at equal documents on {run.dataset}", columns, tuple(rows), note)
