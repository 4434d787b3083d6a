"""Correlations of difficulty with error, of two kinds.

By question: Pearson's r between D_r and error, which shows what one question's difficulty tells. By
cell, as in the paper: between a quartile's mean D_r and its error rate. These are only four points,
which easily lie on a line by chance; the interval shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.evaluation.report import UNDEFINED, Cell, Table
from suffice.evaluation.significance import (
    Difference,
    Interval,
    Statistic,
    statistic_difference,
    statistic_interval,
)
from suffice_grade.difficulty import split_by_quantiles
from suffice_grade.difficulty_matrix import (
    AGGREGATION_NAMES,
    Errors,
    QuestionDifficulty,
    SystemDifficulty,
    measure_difficulty,
)

__all__ = [
    "AVERAGE",
    "DIAGONAL",
    "CorrelatedDifficulty",
    "Correlation",
    "correlation_tables",
    "correlations",
    "measure_with_correlations",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
PARTS = 4
# With fewer failures or successes, a correlation depends on single questions: none is given.
FEWEST = 5
DIAGONAL, AVERAGE = "diagonal", "average"
WAYS = (
    (
        "question by question",
        False,
        "Diagonal: hops and quarter of D_r together, each from 0 to 1.",
    ),
    (
        "over four cells, the paper's way",
        True,
        "Diagonal: as many columns as rows. Few points: mind the interval.",
    ),
)


def correlation_tables(
    system: str, questions: QuestionDifficulty, errors: npt.ArrayLike, *, seed: int = 42
) -> list[Table]:
    """Pearson's r of D_r with error, by question and by cell, for each aggregation."""
    tables = []
    for way, cells, note in WAYS:
        rows: list[tuple[Cell, ...]] = []
        for one in correlations(questions, errors, cells=cells, seed=seed):
            above = (one.min_above[name] for name in ("power", "mean"))
            rows.append((one.where, one.n, *(one.by[name] for name in AGGREGATION_NAMES), *above))
        names = AGGREGATION_NAMES.values()
        columns = ("questions", "n", *names, "min above power mean", "min above mean")
        title = f"Correlation of D_r with the error of {system}, {way}"
        why = f"{UNDEFINED}: nearly all questions there fare alike, or too few cells."
        tables.append(Table(title, columns, tuple(rows), f"{note} {why}"))
    return tables


@dataclass(frozen=True)
class Correlation:
    """Correlation of difficulty with error: among questions with this many hops, averaged over
    hops, or along the diagonal.
    """

    where: str
    n: int
    by: Mapping[str, Interval]  # aggregation -> Pearson's r; None: undefined
    min_above: Mapping[
        str, Difference
    ]  # how much higher r is with the minimum than with this aggregation


def correlations(
    of: QuestionDifficulty, errors: npt.ArrayLike, *, cells: bool = False, seed: int = 42
) -> list[Correlation]:
    """By hop, averaged over hops, and along the diagonal. `cells`: over the quartiles of each, as
    in the paper.

    There is none if fewer than five questions fail, or fewer than five succeed.
    Along the diagonal, hops and D_r have the same weight: a question's position is the sum of both,
    each scaled from 0 to 1. In the paper's way it consists of the cells from the easiest to the
    hardest corner of a matrix with as many columns as rows.
    """
    wrong = of.check_errors(errors)
    rows = {f"{level} hops": np.flatnonzero(of.hops == level) for level in of.levels}
    made: dict[str, dict[str, Statistic]] = {where: {} for where in (*rows, AVERAGE, DIAGONAL)}
    for name, column in of.difficulty.items():
        for where, at in rows.items():
            way = (
                _undefined_statistic
                if _nearly_constant(wrong[at])
                else _over_cells
                if cells
                else _over_questions
            )
            made[where][name] = way(column, wrong, at)
        made[AVERAGE][name] = _mean_statistic([made[where][name] for where in rows])
        made[DIAGONAL][name] = (
            _diagonal_cells(of, column, wrong) if cells else _diagonal(of, column, wrong)
        )
    sizes = {where: len(at) for where, at in rows.items()}
    total = len(wrong)
    return [
        Correlation(
            where,
            sizes.get(where, total),
            {name: statistic_interval(one, total, seed=seed) for name, one in statistics.items()},
            {
                name: _difference(statistics["min"], one, total, seed)
                for name, one in statistics.items()
                if name != "min" and "min" in statistics
            },
        )
        for where, statistics in made.items()
    ]


def _difference(first: Statistic, second: Statistic, questions: int, seed: int) -> Difference:
    return statistic_difference(lambda w: first(w) - second(w), questions, seed=seed)


def _nearly_constant(wrong: Floats) -> bool:
    """Whether nearly all of them fail, or nearly none."""
    return bool(
        np.isin(wrong, (0.0, 1.0)).all() and min(wrong.sum(), len(wrong) - wrong.sum()) < FEWEST
    )


def _undefined_statistic(column: Floats, wrong: Floats, at: Ints) -> Statistic:
    return lambda weights: np.full(len(weights), np.nan)


def _over_questions(column: Floats, wrong: Floats, at: Ints) -> Statistic:
    """Pearson's r between the two, over the questions `at`."""
    x, y = (
        column[at] - column[at].mean(),
        wrong[at] - wrong[at].mean(),
    )  # centred, so that the squares do not lose digits
    parts = np.stack([np.ones(len(at)), x, y, x * x, y * y, x * y], axis=1)

    def correlation(weights: Floats) -> Floats:
        n, x, y, xx, yy, xy = (weights[:, at] @ parts).T
        return _pearson(n * xy - x * y, n * xx - x * x, n * yy - y * y)

    return correlation


def _pearson(covariance: Floats, one: Floats, other: Floats) -> Floats:
    spread = np.sqrt(np.maximum(one, 0.0) * np.maximum(other, 0.0))
    found: Floats = np.divide(
        covariance, spread, out=np.full(len(spread), np.nan), where=spread > 1e-12
    )
    return found


def _over_cells(column: Floats, wrong: Floats, at: Ints) -> Statistic:
    """Pearson's r between mean difficulty and error rate, over the quartiles of `at`."""
    bins = split_by_quantiles(column[at], parts=PARTS).bins
    groups = [at[bins == part] for part in range(PARTS)]
    return _over_groups(groups, column, wrong)


def _diagonal(of: QuestionDifficulty, column: Floats, wrong: Floats) -> Statistic:
    levels = of.levels
    depth = np.searchsorted(levels, of.hops) / max(len(levels) - 1, 1)
    place = depth + np.maximum(split_by_quantiles(column, parts=PARTS).bins, 0) / (PARTS - 1)
    return _over_questions(place, wrong, np.arange(len(wrong)))


def _diagonal_cells(of: QuestionDifficulty, column: Floats, wrong: Floats) -> Statistic:
    bins = split_by_quantiles(column, parts=len(of.levels)).bins
    groups = [
        np.flatnonzero((of.hops == level) & (bins == part)) for part, level in enumerate(of.levels)
    ]
    step = np.zeros(len(wrong))
    for part, group in enumerate(groups):
        step[group] = part
    return _over_groups(groups, step, wrong)


def _over_groups(groups: Sequence[Ints], column: Floats, wrong: Floats) -> Statistic:
    """Pearson's r over the means of the groups; undefined with fewer than three groups or an empty
    one.
    """
    members = np.zeros((len(wrong), len(groups)))
    for part, group in enumerate(groups):
        members[group, part] = 1.0

    def correlation(weights: Floats) -> Floats:
        count = weights @ members
        x, y = weights @ (members * column[:, None]), weights @ (members * wrong[:, None])
        with np.errstate(divide="ignore", invalid="ignore"):
            x, y = x / count, y / count
        x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
        found = _pearson((x * y).sum(1), (x * x).sum(1), (y * y).sum(1))
        return np.where(np.isnan(x).any(axis=1), np.nan, found)

    return correlation if len(groups) > 2 else lambda weights: np.full(len(weights), np.nan)


def _mean_statistic(statistics: Sequence[Statistic]) -> Statistic:
    """The mean of the defined ones: questions that all fail have no correlation."""

    def mean(weights: Floats) -> Floats:
        found = np.stack([one(weights) for one in statistics])
        known = ~np.isnan(found)
        total, count = np.where(known, found, 0.0).sum(0), known.sum(0)
        means: Floats = np.divide(total, count, out=np.full(len(weights), np.nan), where=count > 0)
        return means

    return mean


@dataclass(frozen=True)
class CorrelatedDifficulty(SystemDifficulty):
    """A system in the matrix, with its correlations."""

    by_question: tuple[Correlation, ...] = ()
    by_cell: tuple[Correlation, ...] = ()


def measure_with_correlations(
    system: str, questions: QuestionDifficulty, errors: Errors, *, seed: int = 42
) -> CorrelatedDifficulty:
    """Matrix, slopes and correlations of one system."""
    plain = measure_difficulty(system, questions, errors, seed=seed, more=False)
    part = questions.rows(np.array([one in errors for one in questions.question_ids]))
    wrong = np.array([errors[one] for one in part.question_ids])
    return CorrelatedDifficulty(
        plain.system,
        plain.matrix,
        plain.slopes,
        plain.without_result,
        plain.aggregation,
        by_question=tuple(correlations(part, wrong, seed=seed)),
        by_cell=tuple(correlations(part, wrong, cells=True, seed=seed)),
    )
