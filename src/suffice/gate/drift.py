"""Has the world moved since the gate was fitted? Feature distributions and shares of actions, then against now.

At fit time a `Profile` keeps for each feature the edges of up to ten bins and the share of questions in each: enough for the
population stability index and for Kolmogorov's distance at those edges, and no question can be read back from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, InputError

__all__ = [
    "DRIFTED_PSI",
    "MIN_QUESTIONS",
    "Drift",
    "FeatureDrift",
    "FeatureProfile",
    "FeatureScales",
]

Floats = npt.NDArray[np.floating[Any]]
BINS = 10
MIN_QUESTIONS = 30  # recent questions below which nothing can be said
DRIFTED_PSI = 0.25  # the index from which a feature counts as moved, as is customary
MAX_DRIFTED_SHARE = 0.10  # share of features that may move before the probabilities are suspect
MAX_ACTION_CHANGE = 0.10  # by how much the share of an action may change
TINY = 1e-4


@dataclass(frozen=True, slots=True)
class FeatureDrift:
    """How far one feature is from where it was: stability index (0: not at all; 0.25: much) and Kolmogorov's distance."""

    feature: str
    psi: float
    ks: float


@dataclass(frozen=True, slots=True)
class Drift:
    """What has changed since the fit, most moved features first."""

    questions: int
    features: tuple[FeatureDrift, ...]
    actions_then: Mapping[str, float]
    actions_now: Mapping[str, float]
    recalibrate: bool
    words: str

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class FeatureProfile:
    """The questions a gate was fitted on, as distributions: names, medians and spreads, bins and their shares."""

    names: tuple[str, ...]
    medians: tuple[float, ...]
    spreads: tuple[float, ...]
    edges: tuple[tuple[float, ...], ...]
    shares: tuple[tuple[float, ...], ...]
    questions: int
    complete: float  # share of complete sets
    actions: Mapping[str, float]

    @classmethod
    def of(
        cls, names: Sequence[str], table: Floats, complete: float, actions: Mapping[str, float]
    ) -> FeatureProfile:
        """From what the gate looks at, (questions, features)."""
        edges = [tuple(float(edge) for edge in _edges(column)) for column in table.T]
        shares = [tuple(_shares(column, cuts)) for column, cuts in zip(table.T, edges, strict=True)]
        medians, spreads = np.median(table, axis=0), table.std(axis=0)
        return cls(
            tuple(names),
            tuple(map(float, medians)),
            tuple(map(float, spreads)),
            tuple(edges),
            tuple(shares),
            len(table),
            float(complete),
            dict(actions),
        )

    def first(self, count: int) -> FeatureProfile:
        """Of the first so many features; bins and shares as they were, until the next profile is made."""
        return replace(
            self,
            names=self.names[:count],
            medians=self.medians[:count],
            spreads=self.spreads[:count],
        )

    def beside(self, name: str, median: float) -> FeatureProfile:
        """With one more feature, which is its own scale."""
        return replace(
            self,
            names=(*self.names, name),
            medians=(*self.medians, median),
            spreads=(*self.spreads, 1.0),
        )

    def drift(self, table: Floats, actions: Mapping[str, float]) -> Drift:
        """How far recent questions are from these."""
        if len(table) < MIN_QUESTIONS:
            raise InputError(
                f"{len(table)} recent questions, expected at least {MIN_QUESTIONS}",
                hint="collect more before looking for drift",
            )
        # What the index of two samples of one world amounts to on average, so that few questions do not look like drift.
        noise = [
            (len(shares) - 1) * (1 / len(table) + 1 / self.questions) for shares in self.shares
        ]
        moved = [
            FeatureDrift(name, *_distances(np.array(then), np.array(_shares(column, cuts))))
            for name, column, cuts, then in zip(
                self.names, table.T, self.edges, self.shares, strict=True
            )
        ]
        ranked = sorted(
            zip(moved, noise, strict=True), key=lambda pair: (-pair[0].psi, pair[0].feature)
        )
        far = [one for one, by_chance in ranked if one.psi > DRIFTED_PSI + 2 * by_chance]
        turned = [
            name
            for name in sorted({*self.actions, *actions})
            if self._turned(name, actions, len(table))
        ]
        recalibrate = bool(turned) or len(far) > MAX_DRIFTED_SHARE * len(moved)
        said = _summarize(len(table), far, turned, self.actions, actions, recalibrate)
        ordered = tuple(one for one, _ in ranked)
        return Drift(len(table), ordered, dict(self.actions), dict(actions), recalibrate, said)

    def _turned(self, name: str, actions: Mapping[str, float], recent: int) -> bool:
        then, now = self.actions.get(name, 0.0), actions.get(name, 0.0)
        share = (then * self.questions + now * recent) / (self.questions + recent)
        chance = 2 * (share * (1 - share) * (1 / recent + 1 / self.questions)) ** 0.5
        return bool(abs(now - then) > max(MAX_ACTION_CHANGE, chance))

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> FeatureProfile:
        try:
            return cls(
                tuple(map(str, record["names"])),
                tuple(map(float, record["medians"])),
                tuple(map(float, record["spreads"])),
                tuple(tuple(map(float, one)) for one in record["edges"]),
                tuple(tuple(map(float, one)) for one in record["shares"]),
                int(record["questions"]),
                float(record["complete"]),
                {str(name): float(share) for name, share in record["actions"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"the gate's profile cannot be read: {error!r}", hint="fit and save the gate again"
            ) from error


class FeatureScales:
    """Where each feature of a profile stands, its median at fit time and its spread then; as arrays, for checking."""

    def __init__(self, profile: FeatureProfile) -> None:
        self.column = {name: at for at, name in enumerate(profile.names)}
        self._medians, self._spreads = np.array(profile.medians), np.maximum(profile.spreads, 1e-6)
        self.of = lru_cache(maxsize=8)(self._of)  # the same few names in every check

    def _of(self, names: tuple[str, ...]) -> tuple[npt.NDArray[np.intp], Floats, Floats]:
        at = np.array([self.column[name] for name in names], dtype=np.intp)
        return at, self._medians[at], self._spreads[at]


def _edges(column: Floats) -> Floats:
    """Inner edges of bins of equal share; fewer where many questions have one value."""
    return np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1]))


def _shares(column: Floats, edges: Sequence[float]) -> list[float]:
    places = np.searchsorted(np.asarray(edges), column, side="left")
    counts = np.bincount(places, minlength=len(edges) + 1)
    return [float(share) for share in counts / max(len(column), 1)]


def _distances(then: Floats, now: Floats) -> tuple[float, float]:
    a, b = np.maximum(then, TINY), np.maximum(now, TINY)
    return float(((b - a) * np.log(b / a)).sum()), float(np.abs(np.cumsum(now - then)).max())


def _summarize(
    recent: int,
    far: list[FeatureDrift],
    turned: list[str],
    then: Mapping[str, float],
    now: Mapping[str, float],
    recalibrate: bool,
) -> str:
    parts = [f"{recent} recent questions."]
    if far:
        most = ", ".join(f"{one.feature} ({one.psi:.2f})" for one in far[:3])
        parts.append(f"{len(far)} features have moved, most of all {most}.")
    parts += [
        f"{name}: {then.get(name, 0.0):.0%} at fit time, {now.get(name, 0.0):.0%} now."
        for name in turned
    ]
    if recalibrate:
        parts.append(
            "Recalibrate: gate.adapt(labelled examples), or gate.shifted(recent) without labels."
        )
    else:
        parts.append("No need to recalibrate.")
    return " ".join(parts)
