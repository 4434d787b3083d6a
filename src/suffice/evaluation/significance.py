"""How sure a figure is, and whether one system is really better than another: bootstrap over questions.

A resample draws as many questions as there are, with replacement; here it is a row of counts, so that a thousand resamples are
one matrix product. Intervals are percentiles of the resampled figures. Same seed, same interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from string import ascii_lowercase

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
    "holm",
    "interval",
    "letter_groups",
    "mean_interval",
    "paired_difference",
    "resample_metric",
    "significance_letters",
    "statistic_difference",
    "statistic_interval",
]


Floats = npt.NDArray[np.float64]
Statistic = Callable[
    [Floats], Floats
]  # weights (resamples, questions) -> one figure a resample, NaN where undefined
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
    what: Rankings | Predictions,
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
        return _interval_of(statistic, len(what), resamples, level, seed)
    different, of = np.unique(np.asarray(groups), return_inverse=True)
    if of.shape != (len(what),):
        raise InputError(f"groups have shape {of.shape}, expected one for each of {len(what)} rows")
    return _interval_of(
        lambda weights: statistic(weights[:, of]), len(different), resamples, level, seed
    )


def mean_interval(
    values: npt.ArrayLike, *, resamples: int = 1000, level: float = 0.95, seed: int = 0
) -> Interval:
    """The mean of values (questions,) with its interval; NaN values do not take part."""
    column = _as_column(values)
    return _interval_of(_mean_statistic(column), len(column), resamples, level, seed)


def statistic_interval(
    statistic: Statistic,
    questions: int,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Any figure with its interval: what the statistic makes of how often each of so many questions was drawn."""
    return _interval_of(statistic, questions, resamples, level, seed)


def statistic_difference(
    first: Statistic,
    second: Statistic,
    questions: int,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Difference:
    """Any figure minus another of the same questions, on the same draws."""
    return _difference_of(
        lambda weights: first(weights) - second(weights), questions, resamples, level, seed
    )


def compare(
    first: Rankings | Predictions,
    second: Rankings | Predictions,
    name: str,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Difference:
    """A metric of the first minus that of the second, on the same questions in the same order."""
    if len(first) != len(second):
        raise InputError(
            f"a paired comparison needs the same questions: the first has {len(first)}, the second {len(second)}"
        )
    if isinstance(first, Rankings) and isinstance(second, Rankings):
        options = {"resamples": resamples, "seed": seed}
        return paired_difference(
            per_question(first, name), per_question(second, name), level=level, **options
        )
    one, other = _statistic(first, name), _statistic(second, name)
    return _difference_of(
        lambda weights: one(weights) - other(weights), len(first), resamples, level, seed
    )


def paired_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Difference:
    """The mean difference of two columns of values (questions,); questions where one is NaN do not take part."""
    one, other = _as_column(first), _as_column(second)
    if len(one) != len(other):
        raise InputError(
            f"a paired comparison needs the same questions: the first has {len(one)}, the second {len(other)}"
        )
    return _difference_of(_mean_statistic(one - other), len(one), resamples, level, seed)


def resample_metric(
    systems: Sequence[Rankings | Predictions], name: str, *, resamples: int = 1000, seed: int = 0
) -> Floats:
    """A metric of several systems on the same questions, each resample the same for all: (1 + resamples, systems).

    The first row is the plain figure; NaN where a figure is not defined.
    """
    sizes = {len(one) for one in systems}
    if len(sizes) != 1:
        raise InputError(
            f"a paired comparison needs systems on the same questions, found {sorted(sizes)} of them"
        )
    questions = sizes.pop()
    statistics = [_statistic(one, name) for one in systems]
    blocks = [
        np.ones((1, questions)),
        *(_resample_counts(questions, resamples, seed) if questions else ()),
    ]
    return np.concatenate(
        [np.column_stack([one(weights) for one in statistics]) for weights in blocks]
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
        means: Floats = np.divide(total, count, out=np.full(len(weights), np.nan), where=count > 0)
        return means

    return weighted_mean


def _interval_of(
    statistic: Statistic, questions: int, resamples: int, level: float, seed: int
) -> Interval:
    value, low, high, _ = _bootstrap(statistic, questions, resamples, level, seed)
    return Interval(value, low, high)


def _difference_of(
    statistic: Statistic, questions: int, resamples: int, level: float, seed: int
) -> Difference:
    value, low, high, draws = _bootstrap(statistic, questions, resamples, level, seed)
    if value is None:
        return Difference(None)
    # One is added to both counts: with a thousand resamples nobody can know that p is below one in a thousand.
    against = min(int((draws <= 0).sum()), int((draws >= 0).sum()))
    return Difference(value, low, high, min(1.0, 2 * (against + 1) / (len(draws) + 1)))


def _bootstrap(
    statistic: Statistic, questions: int, resamples: int, level: float, seed: int
) -> tuple[float | None, float | None, float | None, Floats]:
    if resamples < 1 or not 0 < level < 1:
        raise InputError(
            f"resamples is {resamples} and level {level}: expected at least 1, and a share between 0 and 1"
        )
    value = none_if_nan(statistic(np.ones((1, questions)))[0]) if questions else None
    if value is None:
        return None, None, None, np.zeros(0)
    draws = np.concatenate(
        [statistic(weights) for weights in _resample_counts(questions, resamples, seed)]
    )
    draws = draws[~np.isnan(draws)]  # a resample of one class only has no AUROC
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


@lru_cache(
    maxsize=1
)  # a report asks for a hundred intervals over the same questions: drawing is most of the work
def _cached_counts(questions: int, resamples: int, seed: int) -> Floats:
    return _draw_counts(np.random.default_rng(seed), resamples, questions)


def _draw_counts(random: np.random.Generator, rows: int, questions: int) -> Floats:
    drawn = random.integers(0, questions, (rows, questions)) + np.arange(rows)[:, None] * questions
    counts = (
        np.bincount(drawn.ravel(), minlength=rows * questions)
        .reshape(rows, questions)
        .astype(np.float64)
    )
    counts.flags.writeable = False
    return counts


# --- letters: Which of several systems really differ: all pairs by paired bootstrap, corrected by Holm, and shown as letters.

Pair = tuple[str, str]
RESAMPLES = 10_000  # Holm's strictest level for ten systems is 0.0011: a thousand resamples could not reach it


def significance_letters(
    systems: Mapping[str, Rankings | Predictions],
    metric: str,
    *,
    alpha: float = 0.05,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, str]:
    """Letters of each system by one metric, on the same questions in the same order."""
    found = resample_metric(list(systems.values()), metric, resamples=resamples, seed=seed)
    differ = {
        pair for pair, p in holm(_pair_p_values(list(systems), found[1:])).items() if p < alpha
    }
    sign = 1.0 if _higher_is_better(next(iter(systems.values())), metric) else -1.0
    plain = dict(zip(systems, np.nan_to_num(sign * found[0], nan=-np.inf).tolist()))
    return letter_groups(sorted(systems, key=lambda name: -plain[name]), differ)


def _higher_is_better(system: Rankings | Predictions, metric: str) -> bool:
    return isinstance(system, Rankings) or probability_metric(metric).metric.higher_is_better


def _pair_p_values(names: Sequence[str], draws: Floats) -> dict[Pair, float]:
    """The two-sided p of each pair: how easily chance alone sets them so far apart."""
    p = {}
    for (at, first), (of, second) in combinations(enumerate(names), 2):
        apart = draws[:, at] - draws[:, of]
        apart = apart[~np.isnan(apart)]
        against = min(int((apart <= 0).sum()), int((apart >= 0).sum()))
        p[first, second] = min(1.0, 2 * (against + 1) / (len(apart) + 1))
    return p


def holm(p: Mapping[Pair, float]) -> dict[Pair, float]:
    """p values corrected for their number: the smallest times n, the next times n - 1, …, none below the one before."""
    corrected, above = {}, 0.0
    for at, (pair, value) in enumerate(sorted(p.items(), key=lambda item: item[1])):
        above = max(above, min(1.0, value * (len(p) - at)))
        corrected[pair] = above
    return corrected


def letter_groups(order: Sequence[str], differ: set[Pair]) -> dict[str, str]:
    """Letters for systems in this order, best first, from the pairs that differ."""
    groups = [frozenset(order)]
    for first, second in combinations(order, 2):
        if (first, second) in differ or (second, first) in differ:
            split: list[frozenset[str]] = []
            for group in groups:
                split += (
                    [group - {first}, group - {second}] if {first, second} <= group else [group]
                )
            groups = _without_subsets(split)
    groups.sort(key=lambda group: sorted(order.index(name) for name in group))
    return {
        name: "".join(_letter(at) for at, group in enumerate(groups) if name in group)
        for name in order
    }


def _without_subsets(groups: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Without groups that another one holds."""
    distinct = list(dict.fromkeys(group for group in groups if group))
    return [one for one in distinct if not any(one < other for other in distinct)]


def _letter(at: int) -> str:
    return ascii_lowercase[at % 26] + "'" * (at // 26)
