"""Does a promise about risk hold? Over many random halves: how often is the risk too high?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.gate.policy import choose_by_risk, realized_risk

__all__ = ["PromiseResult", "check_promise"]


@dataclass(frozen=True, slots=True)
class PromiseResult:
    """The outcome of a promise over many random halves of the questions, as shares of splits."""

    alpha: float
    delta: float
    exceeded: float  # the observed share of incomplete among the answered was above alpha
    broken: float  # ... by more than chance allows for a part of that size (exact binomial, 5 %)
    never: float  # no threshold kept the promise, and nothing was answered
    coverage: float  # mean share answered


def check_promise(
    p: npt.ArrayLike,
    complete: npt.ArrayLike,
    texts: Sequence[str],
    *,
    alphas: Sequence[float] = (0.05, 0.1, 0.2),
    delta: float = 0.1,
    splits: int = 200,
    seed: int = 42,
) -> list[PromiseResult]:
    """Choose the threshold on a random half of the questions, measure on the other; `splits` times.

    The promise is about the risk. The share in a finite half varies around it, so `exceeded` may be
    above delta even if the promise holds; `broken` allows for that.
    """
    from scipy.special import bdtrc

    p, complete = np.asarray(p, dtype=np.float64), np.asarray(complete, dtype=bool)
    names = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    group = np.array([names[text] for text in texts])
    rng = np.random.default_rng(seed)
    halves = [rng.permutation(len(names))[group] < len(names) / 2 for _ in range(splits)]
    found = []
    for alpha in alphas:
        exceeded, broken, never, coverage = 0, 0, 0, 0.0
        for half in halves:
            policy = choose_by_risk(p[half], complete[half], alpha=alpha, delta=delta)
            came = realized_risk(p[~half], complete[~half], policy.answer_at)
            never += policy.answer_at is None
            coverage += came.answered / max(came.questions, 1)
            if came.answered and came.incomplete / came.answered > alpha:
                exceeded += 1
                broken += bool(bdtrc(came.incomplete - 1, came.answered, alpha) < 0.05)
        share = 1 / max(splits, 1)
        figures = (exceeded * share, broken * share, never * share, coverage * share)
        found.append(PromiseResult(alpha, delta, *figures))
    return found
