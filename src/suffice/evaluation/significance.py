"""Confidence intervals and significant differences, by bootstrap over questions.

A resample draws as many questions as there are, with replacement. Here it is a row of counts, so a
thousand resamples are one matrix product. Intervals are percentiles; the same seed gives the same
interval. Several systems are compared pair by pair, corrected by Holm and shown as letters: systems
that share a letter do not differ significantly (compact letter display, Piepho 2004).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from string import ascii_lowercase
from typing import TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.evaluation.metrics import (
    Predictions,
    Rankings,
    none_if_nan,
    per_question,
    probability_metric,
)

__all__ = [
    "Difference",
    "Interval",
    "Statistic",
    "compare",
    "interval",
    "mean_interval",
    "paired_difference",
    "significance_letters",
    "statistic_difference",
    "statistic_interval",
]

Floats = npt.NDArray[np.float64]
# Weights (resamples, questions) -> one figure per resample, NaN if undefined.
Statistic = Callable[[Floats], Floats]
Pair = tuple[str, str]
_CELLS = 4_000_000  # weights in memory at once: 32 MB, whatever the number of questions
# Holm's strictest level for ten systems is 0.0011, which a thousand resamples cannot reach.
LETTER_RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its bootstrap interval; all None if the figure is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """How far the first system is above the second on the same questions; `p` is two-sided."""

    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None


class Bootstrap(TypedDict, total=False):
    """Bootstrap options: 1,000 resamples, 95 % and seed 0 by default."""

    resamples: int
    level: float
    seed: int


def interval(
    what: Rankings | Predictions,
    name: str,
    *,
    groups: npt.ArrayLike | None = None,
    **bootstrap: Unpack[Bootstrap],
) -> Interval:
    """A metric with its interval, like `interval(rankings, "complete@4")`.

    `groups` has a value for each row; rows with the same value are resampled together.
    """
    statistic, rows = _statistic(what, name), len(what)
    if groups is None:
        return statistic_interval(statistic, rows, **bootstrap)
    values, of = np.unique(np.asarray(groups), return_inverse=True)
    if of.shape != (rows,):
        raise InputError(f"groups have shape {of.shape}, expected one for each of {rows} rows")
    return statistic_interval(lambda w: statistic(w[:, of]), len(values), **bootstrap)


def mean_interval(values: npt.ArrayLike, **bootstrap: Unpack[Bootstrap]) -> Interval:
    """The mean of values (questions,) with its interval; NaN values are ignored."""
    column = _as_column(values)
    return statistic_interval(_mean_statistic(column), len(column), **bootstrap)


def statistic_interval(
    statistic: Statistic, questions: int, **bootstrap: Unpack[Bootstrap]
) -> Interval:
    """Any statistic of the resample counts with its interval."""
    value, low, high, _ = _bootstrap(statistic, questions, **bootstrap)
    return Interval(value, low, high)


def statistic_difference(
    difference: Statistic, questions: int, **bootstrap: Unpack[Bootstrap]
) -> Difference:
    """A difference of two statistics on the same questions and resamples."""
    value, low, high, draws = _bootstrap(difference, questions, **bootstrap)
    return Difference(None) if value is None else Difference(value, low, high, _two_sided_p(draws))


def compare(
    first: Rankings | Predictions,
    second: Rankings | Predictions,
    name: str,
    **bootstrap: Unpack[Bootstrap],
) -> Difference:
    """A metric of the first minus that of the second, on the same questions in the same order."""
    _require_same_size(len(first), len(second))
    if isinstance(first, Rankings) and isinstance(second, Rankings):
        columns = (per_question(one, name) for one in (first, second))
        return paired_difference(*columns, **bootstrap)
    one, other = _statistic(first, name), _statistic(second, name)
    return statistic_difference(lambda w: one(w) - other(w), len(first), **bootstrap)


def paired_difference(
    first: npt.ArrayLike, second: npt.ArrayLike, **bootstrap: Unpack[Bootstrap]
) -> Difference:
    """The mean difference of two columns; questions with a NaN are ignored."""
    one, other = _as_column(first), _as_column(second)
    _require_same_size(len(one), len(other))
    return statistic_difference(_mean_statistic(one - other), len(one), **bootstrap)


def _require_same_size(first: int, second: int) -> None:
    if first != second:
        raise InputError(
            f"a paired comparison needs the same questions: "
            f"the first has {first}, the second {second}"
        )


def _as_column(values: npt.ArrayLike) -> Floats:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"expected numbers: {error}") from error
    if column.ndim != 1 or np.isinf(column).any():
        raise InputError(
            f"expected one finite value (or NaN) for each question, found shape {column.shape}"
        )
    return column


def _statistic(what: Rankings | Predictions, name: str) -> Statistic:
    if isinstance(what, Rankings):
        return _mean_statistic(per_question(what, name))
    wanted = probability_metric(name)
    return lambda weights: wanted.metric.values(what, weights, wanted.at)


def _mean_statistic(values: Floats) -> Statistic:
    known = ~np.isnan(values)
    parts = np.stack([np.where(known, values, 0.0), known], axis=1)

    def weighted_mean(weights: Floats) -> Floats:
        total, count = (weights @ parts).T
        undefined = np.full(len(weights), np.nan)
        means: Floats = np.divide(total, count, out=undefined, where=count > 0)
        return means

    return weighted_mean


def _two_sided_p(draws: Floats) -> float:
    # Add one to both counts: a thousand resamples cannot show that p is below one in 1,000.
    against = min(int((draws <= 0).sum()), int((draws >= 0).sum()))
    return min(1.0, 2 * (against + 1) / (len(draws) + 1))


def _bootstrap(
    statistic: Statistic,
    questions: int,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float | None, float | None, float | None, Floats]:
    if resamples < 1 or not 0 < level < 1:
        raise InputError(
            f"resamples is {resamples} and level {level}: "
            f"expected at least 1, and a share between 0 and 1"
        )
    value = none_if_nan(statistic(np.ones((1, questions)))[0]) if questions else None
    if value is None:
        return None, None, None, np.zeros(0)
    blocks = _resample_counts(questions, resamples, seed)
    draws = np.concatenate([statistic(weights) for weights in blocks])
    draws = draws[~np.isnan(draws)]  # a resample with only one class has no AUROC
    if not len(draws):
        return value, None, None, draws
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return value, float(low), float(high), draws


def _resample_counts(questions: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each resample drew each question: blocks of (resamples, questions)."""
    if questions * resamples <= _CELLS:
        yield _cached_counts(questions, resamples, seed)
        return
    random = np.random.default_rng(seed)
    rows = max(1, _CELLS // questions)
    for start in range(0, resamples, rows):
        yield _draw_counts(random, min(rows, resamples - start), questions)


@lru_cache(maxsize=1)  # a report needs a hundred intervals over the same questions
def _cached_counts(questions: int, resamples: int, seed: int) -> Floats:
    return _draw_counts(np.random.default_rng(seed), resamples, questions)


def _draw_counts(random: np.random.Generator, rows: int, questions: int) -> Floats:
    drawn = random.integers(0, questions, (rows, questions)) + np.arange(rows)[:, None] * questions
    flat = np.bincount(drawn.ravel(), minlength=rows * questions)
    counts = flat.reshape(rows, questions).astype(np.float64)
    counts.flags.writeable = False
    return counts


# ------------------------------------------------------------------------------------ letters


def significance_letters(
    systems: Mapping[str, Rankings | Predictions],
    metric: str,
    *,
    alpha: float = 0.05,
    resamples: int = LETTER_RESAMPLES,
    seed: int = 0,
) -> dict[str, str]:
    """The letters of each system for one metric, best first, on the same questions."""
    sizes = {len(one) for one in systems.values()}
    if len(sizes) != 1:
        raise InputError(
            f"a paired comparison needs systems on the same questions, found {sorted(sizes)}"
        )
    questions = sizes.pop()
    statistics = [_statistic(one, metric) for one in systems.values()]
    blocks = [np.ones((1, questions))]
    blocks += _resample_counts(questions, resamples, seed) if questions else []
    figures = np.concatenate(
        [np.column_stack([one(weights) for one in statistics]) for weights in blocks]
    )
    p_values: dict[Pair, float] = {}
    for (at, first), (other, second) in combinations(enumerate(systems), 2):
        apart = figures[1:, at] - figures[1:, other]
        p_values[first, second] = _two_sided_p(apart[~np.isnan(apart)])
    differ = {pair for pair, p in holm(p_values).items() if p < alpha}
    ranked = isinstance(next(iter(systems.values())), Rankings)
    higher_is_better = ranked or probability_metric(metric).metric.higher_is_better
    sign = 1.0 if higher_is_better else -1.0
    plain = dict(zip(systems, np.nan_to_num(sign * figures[0], nan=-np.inf).tolist()))
    return letter_groups(sorted(systems, key=lambda name: -plain[name]), differ)


def holm(p_values: Mapping[Pair, float]) -> dict[Pair, float]:
    """p values corrected for their number: the smallest times n, the next times n - 1, ..."""
    corrected, above = {}, 0.0
    for at, (pair, value) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        above = max(above, min(1.0, value * (len(p_values) - at)))
        corrected[pair] = above
    return corrected


def letter_groups(order: Sequence[str], differ: set[Pair]) -> dict[str, str]:
    """Letters for systems in this order, best first, from the pairs that differ."""
    groups = [frozenset(order)]
    for first, second in combinations(order, 2):
        if (first, second) in differ or (second, first) in differ:
            split: list[frozenset[str]] = []
            for group in groups:
                both = {first, second} <= group
                split += [group - {first}, group - {second}] if both else [group]
            distinct = list(dict.fromkeys(group for group in split if group))
            groups = [one for one in distinct if not any(one < other for other in distinct)]
    groups.sort(key=lambda group: sorted(order.index(name) for name in group))
    letters = [ascii_lowercase[at % 26] + "'" * (at // 26) for at in range(len(groups))]
    return {
        name: "".join(letter for letter, group in zip(letters, groups) if name in group)
        for name in order
    }
