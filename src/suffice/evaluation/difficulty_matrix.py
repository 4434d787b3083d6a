"""GRADE's difficulty matrix: where a system errs, by hops and by how far a question stands from its evidence.

Rows are hops, columns quartiles of D_r over all questions. Correlations come in two kinds. Question by question, Pearson's
between D_r and error: what one question's difficulty says. Over cells, the paper's way, between a quartile's mean D_r and its
error rate: four points, which are easily on a line by chance; their interval tells. An error is 1 where the system failed, 0
where it did not, and may be a share in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.benchmark.difficulty import AGGREGATIONS, similarities, split_by_quantiles
from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError
from suffice.evaluation.significance import (
    Difference,
    Interval,
    Statistic,
    mean_interval,
    statistic_difference,
    statistic_interval,
)
from suffice.protocols import Encoder
from suffice.types import DocId, Document, QuestionId

__all__ = [
    "AVERAGE",
    "DIAGONAL",
    "THIN",
    "AxisSlopes",
    "Correlation",
    "DifficultyMatrix",
    "MatrixCell",
    "QuestionDifficulty",
    "axis_slopes",
    "build_difficulty_matrix",
    "correlations",
    "error_rate",
    "question_difficulty",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
PARTS = 4
MOST_HOPS = 5  # more count as so many, as in the paper
THIN = 10  # questions in a cell below which its error rate is mostly chance
FEWEST = 5  # failures, and successes, among some questions below which a correlation hangs on single ones: none is given
DIAGONAL, AVERAGE = "diagonal", "average"


# ------------------------------------------------------------------------------------------------------ the questions


@dataclass(frozen=True)
class QuestionDifficulty:
    """Questions with their hops and, for each aggregation, their difficulty: columns with one entry a question."""

    question_ids: tuple[QuestionId, ...]
    hops: Ints
    difficulty: Mapping[str, Floats]
    left_out: int = 0  # questions that need no document, or one that the corpus does not hold

    @property
    def levels(self) -> tuple[int, ...]:
        """The hops that occur, fewest first."""
        return tuple(np.unique(self.hops).tolist())

    def rows(self, which: npt.NDArray[np.bool_]) -> QuestionDifficulty:
        """Only these questions."""
        ids = tuple(one for one, chosen in zip(self.question_ids, which) if chosen)
        parts = {name: column[which] for name, column in self.difficulty.items()}
        return QuestionDifficulty(ids, self.hops[which], parts, self.left_out)


def question_difficulty(
    examples: Iterable[GoldQuestion], documents: Iterable[Document], encoder: Encoder
) -> QuestionDifficulty:
    """Hops and difficulty of every question whose documents the corpus holds. Memory follows the gold, not the corpus."""
    asked = list(examples)
    wanted = {doc_id for one in asked for doc_id in one.gold.doc_ids}
    held: dict[DocId, Document] = {one.doc_id: one for one in documents if one.doc_id in wanted}
    kept = [one for one in asked if one.gold.doc_ids and one.gold.doc_ids <= held.keys()]
    if not kept:
        raise InputError(
            "no question has all the documents that it needs in the corpus",
            hint="check that questions and documents fit",
        )
    needed = [[held[doc_id] for doc_id in sorted(one.gold.doc_ids)] for one in kept]
    found = similarities([one.question.text for one in kept], needed, encoder)
    hops = np.array([min(one.gold.hops or len(one.gold.doc_ids), MOST_HOPS) for one in kept])
    ids = tuple(one.question.question_id for one in kept)
    return QuestionDifficulty(
        ids, hops, {name: found.difficulty(name) for name in AGGREGATIONS}, len(asked) - len(kept)
    )


# ------------------------------------------------------------------------------------------------------ the matrix


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """The error rate of some questions. A thin one says little; an empty one nothing."""

    n: int
    error: Interval

    @property
    def thin(self) -> bool:
        return self.n < THIN


@dataclass(frozen=True)
class DifficultyMatrix:
    """Error rates by hops (down) and quartile of D_r (across), with the margins. `edges`: between the quartiles."""

    levels: tuple[int, ...]
    edges: tuple[float, ...]
    cells: tuple[tuple[MatrixCell, ...], ...]
    by_hops: tuple[MatrixCell, ...]
    by_quartile: tuple[MatrixCell, ...]
    whole: MatrixCell


def build_difficulty_matrix(
    of: QuestionDifficulty, errors: npt.ArrayLike, *, aggregation: str = "min", seed: int = 42
) -> DifficultyMatrix:
    """The matrix of one system, whose errors have one entry a question."""
    wrong = _check_errors(of, errors)
    cut = split_by_quantiles(of.difficulty[aggregation], parts=PARTS)

    def cell(which: npt.NDArray[np.bool_]) -> MatrixCell:
        return MatrixCell(int(which.sum()), error_rate(wrong[which], seed=seed))

    rows, columns = (
        [of.hops == level for level in of.levels],
        [cut.bins == part for part in range(PARTS)],
    )
    return DifficultyMatrix(
        of.levels,
        cut.edges,
        tuple(tuple(cell(row & column) for column in columns) for row in rows),
        tuple(map(cell, rows)),
        tuple(map(cell, columns)),
        cell(np.ones(len(wrong), bool)),
    )


def error_rate(wrong: Floats, *, seed: int = 42) -> Interval:
    """The mean error. Of plain errors Wilson's interval: a bootstrap of five right answers would be sure of itself."""
    if not len(wrong):
        return Interval(None)
    if np.isin(wrong, (0.0, 1.0)).all():
        from scipy.stats import binomtest

        found = binomtest(int(wrong.sum()), len(wrong)).proportion_ci(method="wilson")
        return Interval(float(wrong.mean()), float(found.low), float(found.high))
    return mean_interval(wrong, seed=seed)


def _check_errors(of: QuestionDifficulty, errors: npt.ArrayLike) -> Floats:
    wrong = np.asarray(errors, dtype=np.float64)
    if wrong.shape != of.hops.shape or not ((wrong >= 0) & (wrong <= 1)).all():
        raise InputError(
            f"errors of shape {wrong.shape} for {len(of.hops)} questions: expected one from 0 to 1 for each"
        )
    return wrong


# ------------------------------------------------------------------------------------------------------ correlations


@dataclass(frozen=True)
class Correlation:
    """Of difficulty with error, among the questions of so many hops, on average over hops, or along the diagonal."""

    where: str
    n: int
    by: Mapping[str, Interval]  # aggregation -> Pearson's r; None: not defined
    min_above: Mapping[
        str, Difference
    ]  # how much r is higher with the minimum than with this aggregation


def correlations(
    of: QuestionDifficulty, errors: npt.ArrayLike, *, cells: bool = False, seed: int = 42
) -> list[Correlation]:
    """Per hop, on average over hops, and along the diagonal. `cells`: over the quartiles of each, the paper's way.

    Where fewer than five questions fail, or fewer than five do not, there is none.
    Along the diagonal hops and D_r count alike: a question's place is the sum of both, each from 0 to 1. In the paper's way it
    is the cells from the easiest to the hardest corner of a matrix with as many columns as rows.
    """
    wrong = _check_errors(of, errors)
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
                name: statistic_difference(statistics["min"], one, total, seed=seed)
                for name, one in statistics.items()
                if name != "min" and "min" in statistics
            },
        )
        for where, statistics in made.items()
    ]


def _nearly_constant(wrong: Floats) -> bool:
    """Whether nearly all of them fail, or nearly none does."""
    return bool(
        np.isin(wrong, (0.0, 1.0)).all() and min(wrong.sum(), len(wrong) - wrong.sum()) < FEWEST
    )


def _undefined_statistic(column: Floats, wrong: Floats, at: Ints) -> Statistic:
    return lambda weights: np.full(len(weights), np.nan)


def _over_questions(column: Floats, wrong: Floats, at: Ints) -> Statistic:
    """Pearson's r between the two, of the questions `at`."""
    x, y = (
        column[at] - column[at].mean(),
        wrong[at] - wrong[at].mean(),
    )  # centred, lest the squares lose digits
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
    """Pearson's r between mean difficulty and error rate of the quartiles of the questions `at`."""
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
    """Pearson's r over the means of the groups; with fewer than three of them, or an empty one, there is none."""
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
    """The mean of those that are defined: a row of questions that all fail has no correlation."""

    def mean(weights: Floats) -> Floats:
        found = np.stack([one(weights) for one in statistics])
        known = ~np.isnan(found)
        total, count = np.where(known, found, 0.0).sum(0), known.sum(0)
        means: Floats = np.divide(total, count, out=np.full(len(weights), np.nan), where=count > 0)
        return means

    return mean


# ------------------------------------------------------------------------------------------------------ both axes


@dataclass(frozen=True)
class AxisSlopes:
    """What one more hop, and one quartile further away, add to the error rate, each with the other held: a plane's slopes."""

    hop: Interval
    quartile: Interval


def axis_slopes(
    of: QuestionDifficulty, errors: npt.ArrayLike, *, aggregation: str = "min", seed: int = 42
) -> AxisSlopes:
    """Slopes of a plane laid through the errors by least squares; None where the questions do not differ along an axis."""
    wrong = _check_errors(of, errors)
    bins = split_by_quantiles(of.difficulty[aggregation], parts=PARTS).bins
    plane = np.stack([np.ones(len(wrong)), of.hops.astype(float), bins.astype(float)], axis=1)
    products = (plane[:, :, None] * plane[:, None, :]).reshape(len(wrong), 9)
    sums = plane * wrong[:, None]

    def slope(at: int) -> Statistic:
        def slopes(weights: Floats) -> Floats:
            left, right = (weights @ products).reshape(-1, 3, 3), weights @ sums
            flat = np.abs(np.linalg.det(left)) < 1e-6
            left[flat] = np.eye(3)
            found: Floats = np.linalg.solve(left, right[:, :, None])[:, at, 0]
            found[flat] = np.nan
            return found

        return slopes

    return AxisSlopes(*(statistic_interval(slope(at), len(wrong), seed=seed) for at in (1, 2)))
