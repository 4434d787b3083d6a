"""Another share of complete sets, found without labels: only as far as it is sure, and only where it explains what is seen.

The same retriever on harder questions returns complete sets more rarely, and probabilities learned elsewhere are then too high.
If nothing but the share has changed, the log-odds of recent questions are a mixture of those that complete and incomplete sets
had at fit time, and the share is the mixture's weight. If the questions have changed too, no mixture looks like what is seen,
and the likeliest weight runs astray: then the share stays. docs/decisions/0012-no-shift.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, InputError

__all__ = ["Share", "Shares"]

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
BINS = 12
DRAWS = 300  # samples by which chance is judged
ROUNDS = 200
EDGE = 1e-3
SURE = (0.05, 0.95)
LENIENT = 1.25  # times the misfit that chance alone stays below in nineteen of twenty samples


@dataclass(frozen=True, slots=True)
class Share:
    """The share of complete sets among recent questions: likeliest, and between which it surely lies.

    `misfit` is the share of questions that would have to have other log-odds for the mixture to look like what is seen; by
    chance it stays below `by_chance`.
    """

    likeliest: float
    low: float
    high: float
    misfit: float
    by_chance: float

    @property
    def explains(self) -> bool:
        return self.misfit <= LENIENT * self.by_chance

    def nearest_to(self, share: float) -> float:
        """As near to this share as the interval allows."""
        return min(max(share, self.low), self.high)


@dataclass(frozen=True, slots=True)
class Shares:
    """How many complete and incomplete sets had log-odds in which bin, by models that had not seen them."""

    edges: tuple[float, ...]
    complete: tuple[int, ...]
    incomplete: tuple[int, ...]

    def __post_init__(self) -> None:
        lengths = {len(self.edges) + 1, len(self.complete), len(self.incomplete)}
        if (
            len(lengths) != 1
            or min(*self.complete, *self.incomplete) < 0
            or not (np.diff(self.edges) > 0).all()
        ):
            raise InputError(
                "bins of log-odds must rise, with a count of complete and of incomplete sets in each"
            )

    @classmethod
    def of(cls, odds: Floats, complete: Bools) -> Shares:
        edges = np.unique(np.quantile(odds, np.linspace(0, 1, BINS + 1)[1:-1]))
        both = (
            np.bincount(np.searchsorted(edges, odds[one]), minlength=len(edges) + 1)
            for one in (complete, ~complete)
        )
        return cls(tuple(edges.tolist()), *(tuple(counts.tolist()) for counts in both))

    @property
    def share(self) -> float:
        """Of complete sets at fit time."""
        return sum(self.complete) / (sum(self.complete) + sum(self.incomplete))

    def seen_in(self, odds: Floats, *, seed: int = 0) -> Share:
        """The share among questions with these log-odds."""
        rng = np.random.default_rng(seed)
        recent = np.bincount(np.searchsorted(self.edges, odds), minlength=len(self.edges) + 1)
        held, lost = (
            np.array(counts) + 0.5 for counts in (self.complete, self.incomplete)
        )  # no bin is impossible
        share = float(_weights(recent[None], _scaled(held[None]), _scaled(lost[None]))[0])
        mixed = share * _scaled(held) + (1 - share) * _scaled(lost)
        # What would other samples have shown, at fit time and now?
        then = [
            _scaled(rng.multinomial(int(counts.sum()), _scaled(counts), DRAWS) + 0.5)
            for counts in (held, lost)
        ]
        low, high = np.quantile(
            _weights(rng.multinomial(len(odds), _scaled(recent), DRAWS), *then), SURE
        )
        by_chance = _misfit(rng.multinomial(len(odds), mixed, DRAWS), *then)
        misfit = _misfit(recent[None], _scaled(held[None]), _scaled(lost[None]))
        return Share(
            share, float(low), float(high), float(misfit[0]), float(np.quantile(by_chance, SURE[1]))
        )

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Shares:
        try:
            counts = (tuple(map(int, record[name])) for name in ("complete", "incomplete"))
            return cls(tuple(map(float, record["edges"])), *counts)
        except (KeyError, TypeError, ValueError, InputError) as error:
            raise DataError(
                f"the gate's shares cannot be read: {error!r}", hint="fit and save the gate again"
            ) from error


def _scaled(counts: npt.NDArray[Any]) -> Floats:
    """As shares of the last axis."""
    return np.asarray(counts / counts.sum(-1, keepdims=True))


def _weights(recent: Any, held: Floats, lost: Floats) -> Floats:
    """The likeliest weight of `held` in each sample, by expectation and maximisation: (samples, bins) to (samples,)."""
    weight = np.full(len(recent), 0.5)
    for _ in range(ROUNDS):
        ours = weight[:, None] * held
        by_bin = ours / (ours + (1 - weight)[:, None] * lost)
        weight = np.clip((recent * by_bin).sum(1) / recent.sum(1), EDGE, 1 - EDGE)
    return weight


def _misfit(recent: Any, held: Floats, lost: Floats) -> Floats:
    """Half the distance between what is seen and the mixture that is likeliest: (samples, bins) to (samples,)."""
    weight = _weights(recent, held, lost)[:, None]
    return np.asarray(np.abs(_scaled(recent) - weight * held - (1 - weight) * lost).sum(1) / 2)
