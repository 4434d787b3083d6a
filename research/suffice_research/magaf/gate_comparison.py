"""Beyond MAGAF's paper: our gate against its rows, null questions, predicted types and hops, and
the value of one expansion.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from suffice.evaluation.metrics import score
from suffice.evaluation.report import Cell, Table
from suffice.evaluation.significance import Difference, Interval, compare, interval, mean_interval
from suffice.types import Action
from suffice_research.magaf import published
from suffice_research.magaf.protocol import EVERYONE, GATE, GOLD_HOPS, GUESSED, ModelOutput
from suffice_research.magaf.tables import CALIBRATED, Setting

__all__ = ["against_the_gate", "expansion", "guesses", "nulls", "on_all_questions"]

ANSWERED = 0.95
LOWER_IS_BETTER = ("brier", "ece")
JUDGED = ("auroc", "brier", "ece")


def against_the_gate(at: Setting) -> Table:
    """The gate minus each of the paper's rows, on the same questions: better is above 0 for auroc,
    below 0 for brier and ece.
    """
    measured = at.measured
    ours = measured.predictions(measured.gate)
    rows: list[tuple[Cell, ...]] = []
    for label, others in _rivals(at).items():
        apart = [
            compare(ours, measured.predictions(others[metric]), metric, seed=measured.seed)
            for metric in JUDGED
        ]
        rows.append((label, *apart, _verdict(apart)))
    if at.with_paper:
        rows.append(_published_row(at))
    note = (
        "Our gate less the other, with the 95 % paired bootstrap interval over the test questions. The gate is told neither "
        "type nor hop count; the rows 'given' are told the type, those with 'gold hops' both. Best row: chosen on these same questions, in the paper's favour. better / "
        "worse: the interval leaves out 0; level: it does not."
    )
    columns = ("against", *JUDGED, "auroc, brier, ece")
    return Table(f"Our gate against the paper's predictors, {at.where}", columns, tuple(rows), note)


def _rivals(at: Setting) -> dict[str, dict[str, ModelOutput]]:
    """For each comparison, the predictor to compare with for each metric."""
    found: dict[str, dict[str, ModelOutput]] = {}
    for label, rows in (
        ("given", at.measured.given),
        ("gold hops", at.measured.oracle),
        ("predicted", at.measured.predicted),
    ):
        found[f"{CALIBRATED}, {label}"] = dict.fromkeys(JUDGED, rows[CALIBRATED])
        found[f"best row of each metric, {label}"] = {
            metric: rows[_best(at, rows, metric)] for metric in JUDGED
        }
    return found


def _best(at: Setting, rows: Mapping[str, ModelOutput], metric: str) -> str:
    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    return max(
        rows, key=lambda name: sign * (score(at.measured.predictions(rows[name]), metric) or 0.0)
    )


def _published_row(at: Setting) -> tuple[Cell, ...]:
    """Against the paper's best printed figure for each metric, treated as a constant."""
    cells: list[Difference] = []
    for metric in JUDGED:
        printed = [
            row[metric]
            for table in (published.TABLE_4, published.TABLE_6)
            for row in table.figures.values()
        ]
        figure = min(printed) if metric in LOWER_IS_BETTER else max(printed)
        found = at.of(at.measured.gate, metric)
        cells.append(
            Difference(
                *(
                    None if one is None else one - figure
                    for one in (found.value, found.low, found.high)
                )
            )
        )
    return ("best figure printed in the paper", *cells, _verdict(cells))


def on_all_questions(at: Setting) -> Table:
    """The paper's two best rows and the gate on every question, by folds; and the gate minus each
    of them.
    """
    measured = at.measured
    ours = measured.everyone[GATE]
    rows: list[tuple[Cell, ...]] = []
    for name, one in measured.everyone.items():
        figures = [interval(one, metric, seed=measured.seed) for metric in JUDGED]
        apart = [compare(ours, one, metric, seed=measured.seed) for metric in JUDGED]
        rows.append(
            (name, *figures, *apart, _verdict(apart))
            if name != GATE
            else (name, *figures, None, None, None, "")
        )
    note = (
        f"n = {len(ours):,}. Each question is judged by models fitted on other folds. Differences are our gate less the row, "
        "with 95 % paired bootstrap intervals. better / worse: the interval leaves out 0."
    )
    columns = (
        "predictor",
        *JUDGED,
        *(f"gate less it, {metric}" for metric in JUDGED),
        "the gate is",
    )
    return Table(f"All questions of {at.where}, by {EVERYONE} folds", columns, tuple(rows), note)


def _verdict(cells: list[Difference]) -> str:
    words = []
    for metric, one in zip(JUDGED, cells):
        sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
        low, high = sorted(sign * (end or 0.0) for end in (one.low, one.high))
        words.append("better" if low > 0 else "worse" if high < 0 else "level")
    return ", ".join(words)


# ---- null questions


def nulls(at: Setting) -> Table:
    """How many null questions are rejected if 95 % of the answerable questions are
    accepted.
    """
    measured = at.measured
    null = np.array([kind == "null" for kind in measured.kinds])
    rows: list[tuple[Cell, ...]] = (
        [("fixed score rule, as the paper prints it", 0.0, 0.0, 0.0)] if at.with_paper else []
    )
    for name in (CALIBRATED, CALIBRATED + GOLD_HOPS, CALIBRATED + GUESSED, GATE):
        outputs = measured.rows[name]
        rows.append(
            (
                name,
                _turned_away(outputs.p, null, measured.complete, measured.seed),
                _turned_away(outputs.p, null, ~null, measured.seed),
                mean_interval(
                    np.where(null, outputs.p < outputs.threshold, np.nan), seed=measured.seed
                ),
            )
        )
    note = (
        f"{int(null.sum())} null questions in the test part. 95 % of the complete: of those whose evidence is all there; of "
        "all with an answer: also of those whose evidence the hits do not hold, where letting through is no virtue. "
        f"{CALIBRATED} without 'predicted' is told which questions are null: its figure is no achievement."
    )
    columns = (
        "rule",
        "rejected at 95 % of the complete",
        "rejected at 95 % of all with an answer",
        "rejected at its own threshold",
    )
    return Table(f"Null questions, {at.where}", columns, tuple(rows), note)


def _turned_away(
    p: npt.NDArray[np.float64], null: npt.NDArray[np.bool_], kept: npt.NDArray[np.bool_], seed: int
) -> Interval:
    threshold = np.quantile(p[kept], 1 - ANSWERED, method="lower")
    return mean_interval(np.where(null, p < threshold, np.nan), seed=seed)


# ---- types, expansion


def guesses(at: Setting) -> Table:
    """How well type and hop count are predicted, and what the paper's predictor gains with the true
    ones and loses with the predicted ones.
    """
    measured = at.measured
    rows: list[tuple[Cell, ...]] = [
        (name, value, None, None, None, None) for name, value in measured.guessed.items()
    ]
    for metric in JUDGED:
        paper, oracle, guessed = (
            one[CALIBRATED] for one in (measured.given, measured.oracle, measured.predicted)
        )
        base = measured.predictions(paper)
        apart = (
            compare(measured.predictions(one), base, metric, seed=measured.seed)
            for one in (oracle, guessed)
        )
        figures = (at.of(one, metric) for one in (paper, oracle, guessed))
        rows.append((f"{metric} of {CALIBRATED}", *figures, *apart))
    note = (
        "The first column is the paper's: type given, hop count estimated. Gold hops: the data set's own count, an oracle. "
        "Predicted: the type, too. Estimates come from the question's words, by a linear model of the fit part. A null question "
        "counts as 0 hops. The last two columns: less the paper's."
    )
    return Table(
        f"Hop count given, type predicted, {at.where}",
        ("figure", "estimated", "gold hops", "predicted", "by gold hops", "by predicted type"),
        tuple(rows),
        note,
    )


def expansion(at: Setting) -> Table:
    """What the next four hits would add, for the questions that the gate answers, expands and
    rejects.
    """
    measured = at.measured
    rows: list[tuple[Cell, ...]] = []
    actions = np.array([str(one) for one in measured.actions])
    for action in (*map(str, Action), "all"):
        chosen = np.ones(len(actions), bool) if action == "all" else actions == action
        now, then = (
            np.where(chosen, one.astype(float), np.nan)
            for one in (measured.complete, measured.after)
        )
        means = [mean_interval(one, seed=measured.seed) for one in (now, then)]
        gained = mean_interval(np.where(chosen, then - now, np.nan), seed=measured.seed)
        rows.append(
            (action, int(chosen.sum()), *means, Difference(gained.value, gained.low, gained.high))
        )
    note = f"One expansion: the next four hits of the same search. {measured.policy}"
    columns = ("the gate says", "n", "complete at 4", "complete at 8", "gained")
    return Table(f"What one expansion is worth, {at.where}", columns, tuple(rows), note)
