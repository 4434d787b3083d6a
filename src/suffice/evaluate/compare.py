"""How sure a figure is, and whether one system is really better than another: bootstrap over questions.

A resample draws as many questions as there are, with replacement; here it is a row of counts, so that a thousand resamples are
one matrix product. Intervals are percentiles of the resampled figures. Same seed, same interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.evaluate.metrics import Judged, Predictions, defined, per_question, probability_metric

__all__ = [
    "Difference",
    "Interval",
    "Statistic",
    "compare",
    "difference_of",
    "interval",
    "interval_of",
    "interval_of_mean",
    "paired_difference",
    "resampled",
]

Floats = npt.NDArray[np.float64]
Statistic = Callable[[Floats], Floats]  # weights (resamples, questions) -> one figure a resample, NaN where undefined
_CELLS = 4_000_000  # weights held at once: 32 MB, whatever the number of questions


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its bootstrap interval; all None where the figure is not defined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """How much a first system is above a second on the same questions. `p` is two-sided: how easily chance alone does this."""

    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None


def interval(
    what: Judged | Predictions,
    name: str,
    *,
    groups: npt.ArrayLike | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """A metric with its interval: `interval(judged, "complete@4")`, `interval(predictions, "auroc")`.

    `groups` has a value for each row; rows of one value are drawn together, as those of one question must be.
    """
    statistic = _statistic(what, name)
    if groups is None:
        return _interval(statistic, len(what), resamples, level, seed)
    different, of = np.unique(np.asarray(groups), return_inverse=True)
    if of.shape != (len(what),):
        raise InputError(f"groups have shape {of.shape}, expected one for each of {len(what)} rows")
    return _interval(lambda weights: statistic(weights[:, of]), len(different), resamples, level, seed)


def interval_of_mean(values: npt.ArrayLike, *, resamples: int = 1000, level: float = 0.95, seed: int = 0) -> Interval:
    """The mean of values (questions,) with its interval; NaN values do not take part."""
    column = _column(values)
    return _interval(_mean_of(column), len(column), resamples, level, seed)


def interval_of(statistic: Statistic, questions: int, *, resamples: int = 1000, level: float = 0.95, seed: int = 0) -> Interval:
    """Any figure with its interval: what the statistic makes of how often each of so many questions was drawn."""
    return _interval(statistic, questions, resamples, level, seed)


def difference_of(
    first: Statistic, second: Statistic, questions: int, *, resamples: int = 1000, level: float = 0.95, seed: int = 0
) -> Difference:
    """Any figure minus another of the same questions, on the same draws."""
    return _difference(lambda weights: first(weights) - second(weights), questions, resamples, level, seed)


def compare(
    first: Judged | Predictions,
    second: Judged | Predictions,
    name: str,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Difference:
    """A metric of the first minus that of the second, on the same questions in the same order."""
    if len(first) != len(second):
        raise InputError(f"a paired comparison needs the same questions: the first has {len(first)}, the second {len(second)}")
    if isinstance(first, Judged) and isinstance(second, Judged):
        options = {"resamples": resamples, "seed": seed}
        return paired_difference(per_question(first, name), per_question(second, name), level=level, **options)
    one, other = _statistic(first, name), _statistic(second, name)
    return _difference(lambda weights: one(weights) - other(weights), len(first), resamples, level, seed)


def paired_difference(
    first: npt.ArrayLike, second: npt.ArrayLike, *, resamples: int = 1000, level: float = 0.95, seed: int = 0
) -> Difference:
    """The mean difference of two columns of values (questions,); questions where one is NaN do not take part."""
    one, other = _column(first), _column(second)
    if len(one) != len(other):
        raise InputError(f"a paired comparison needs the same questions: the first has {len(one)}, the second {len(other)}")
    return _difference(_mean_of(one - other), len(one), resamples, level, seed)


def resampled(systems: Sequence[Judged | Predictions], name: str, *, resamples: int = 1000, seed: int = 0) -> Floats:
    """A metric of several systems on the same questions, each resample the same for all: (1 + resamples, systems).

    The first row is the plain figure; NaN where a figure is not defined.
    """
    sizes = {len(one) for one in systems}
    if len(sizes) != 1:
        raise InputError(f"a paired comparison needs systems on the same questions, found {sorted(sizes)} of them")
    questions = sizes.pop()
    statistics = [_statistic(one, name) for one in systems]
    blocks = [np.ones((1, questions)), *(_counts(questions, resamples, seed) if questions else ())]
    return np.concatenate([np.column_stack([one(weights) for one in statistics]) for weights in blocks])


def _column(values: npt.ArrayLike) -> Floats:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"expected numbers: {error}") from error
    if column.ndim != 1 or np.isinf(column).any():
        raise InputError(f"expected one finite value (or NaN) for each question, found shape {column.shape}")
    return column


def _statistic(what: Judged | Predictions, name: str) -> Statistic:
    if isinstance(what, Judged):
        return _mean_of(per_question(what, name))
    wanted = probability_metric(name)
    return lambda weights: wanted.metric.values(what, weights, wanted.at)


def _mean_of(values: Floats) -> Statistic:
    known = ~np.isnan(values)
    parts = np.stack([np.where(known, values, 0.0), known], axis=1)

    def weighted_mean(weights: Floats) -> Floats:
        total, count = (weights @ parts).T
        means: Floats = np.divide(total, count, out=np.full(len(weights), np.nan), where=count > 0)
        return means

    return weighted_mean


def _interval(statistic: Statistic, questions: int, resamples: int, level: float, seed: int) -> Interval:
    value, low, high, _ = _resampled(statistic, questions, resamples, level, seed)
    return Interval(value, low, high)


def _difference(statistic: Statistic, questions: int, resamples: int, level: float, seed: int) -> Difference:
    value, low, high, draws = _resampled(statistic, questions, resamples, level, seed)
    if value is None:
        return Difference(None)
    # One is added to both counts: with a thousand resamples nobody can know that p is below one in a thousand.
    against = min(int((draws <= 0).sum()), int((draws >= 0).sum()))
    return Difference(value, low, high, min(1.0, 2 * (against + 1) / (len(draws) + 1)))


def _resampled(
    statistic: Statistic, questions: int, resamples: int, level: float, seed: int
) -> tuple[float | None, float | None, float | None, Floats]:
    if resamples < 1 or not 0 < level < 1:
        raise InputError(f"resamples is {resamples} and level {level}: expected at least 1, and a share between 0 and 1")
    value = defined(statistic(np.ones((1, questions)))[0]) if questions else None
    if value is None:
        return None, None, None, np.zeros(0)
    draws = np.concatenate([statistic(weights) for weights in _counts(questions, resamples, seed)])
    draws = draws[~np.isnan(draws)]  # a resample of one class only has no AUROC
    if not len(draws):
        return value, None, None, draws
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return value, float(low), float(high), draws


def _counts(questions: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each resample drew each question: blocks of (resamples, questions)."""
    if questions * resamples <= _CELLS:
        yield _whole_counts(questions, resamples, seed)
        return
    random = np.random.default_rng(seed)
    rows = max(1, _CELLS // questions)
    for start in range(0, resamples, rows):
        yield _drawn(random, min(rows, resamples - start), questions)


@lru_cache(maxsize=1)  # a report asks for a hundred intervals over the same questions: drawing is most of the work
def _whole_counts(questions: int, resamples: int, seed: int) -> Floats:
    return _drawn(np.random.default_rng(seed), resamples, questions)


def _drawn(random: np.random.Generator, rows: int, questions: int) -> Floats:
    drawn = random.integers(0, questions, (rows, questions)) + np.arange(rows)[:, None] * questions
    counts = np.bincount(drawn.ravel(), minlength=rows * questions).reshape(rows, questions).astype(np.float64)
    counts.flags.writeable = False
    return counts
