"""Which of several systems really differ: all pairs by paired bootstrap, corrected by Holm, and shown as letters.

Two systems that share a letter cannot be told apart; two that share none differ. "a" is among the best. The letters are the
compact display of Piepho (2004), by insertion and absorption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from string import ascii_lowercase

import numpy as np
import numpy.typing as npt

from suffice.evaluate.compare import resampled
from suffice.evaluate.metrics import Judged, Predictions, probability_metric

__all__ = ["holm", "letters", "significance_letters"]

Floats = npt.NDArray[np.float64]
Pair = tuple[str, str]
RESAMPLES = 10_000  # Holm's strictest level for ten systems is 0.0011: a thousand resamples could not reach it


def significance_letters(
    systems: Mapping[str, Judged | Predictions],
    metric: str,
    *,
    alpha: float = 0.05,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, str]:
    """Letters of each system by one metric, on the same questions in the same order."""
    found = resampled(list(systems.values()), metric, resamples=resamples, seed=seed)
    differ = {pair for pair, p in holm(_pairs(list(systems), found[1:])).items() if p < alpha}
    sign = 1.0 if _higher_is_better(next(iter(systems.values())), metric) else -1.0
    plain = dict(zip(systems, np.nan_to_num(sign * found[0], nan=-np.inf).tolist()))
    return letters(sorted(systems, key=lambda name: -plain[name]), differ)


def _higher_is_better(system: Judged | Predictions, metric: str) -> bool:
    return isinstance(system, Judged) or probability_metric(metric).metric.higher_is_better


def _pairs(names: Sequence[str], draws: Floats) -> dict[Pair, float]:
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


def letters(order: Sequence[str], differ: set[Pair]) -> dict[str, str]:
    """Letters for systems in this order, best first, from the pairs that differ."""
    groups = [frozenset(order)]
    for first, second in combinations(order, 2):
        if (first, second) in differ or (second, first) in differ:
            split: list[frozenset[str]] = []
            for group in groups:
                split += [group - {first}, group - {second}] if {first, second} <= group else [group]
            groups = _absorbed(split)
    groups.sort(key=lambda group: sorted(order.index(name) for name in group))
    return {name: "".join(_letter(at) for at, group in enumerate(groups) if name in group) for name in order}


def _absorbed(groups: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Without groups that another one holds."""
    distinct = list(dict.fromkeys(group for group in groups if group))
    return [one for one in distinct if not any(one < other for other in distinct)]


def _letter(at: int) -> str:
    return ascii_lowercase[at % 26] + "'" * (at // 26)
