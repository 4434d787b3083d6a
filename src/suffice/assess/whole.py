"""The gate over the whole: four unlike models of one table, whose weighted mean log-odds is the gate's.

Three learn what they can of the questions at hand: a logistic regression, boosted trees, extra trees. What they learn of one
data set misleads on another, where questions need more documents or retrievers are worse. The fourth is *steady*: a logistic
regression over the few columns that point the same way everywhere, and it may not turn their direction. Each data set counts
alike in it, and in each the complete as much as the others, so that it learns what tells questions of one set apart and nothing
of how the sets differ. The more data sets teach, the more it counts: with one there is no other to be ready for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.assess.features import STEADY, logit
from suffice.assess.parts import Judge, boosted

__all__ = ["BOOSTED_TREES", "EXTRA_TREES", "Whole"]

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
BOOSTED_TREES, EXTRA_TREES, EXTRA_LEAVES = 120, 100, 64
SHARE = 0.6  # of the steady model, where many data sets teach
FORCE = 0.01  # that holds its weights back
_LINEAR, _TREES = ("linear", "steady"), ("boosted", "extra")


@dataclass(frozen=True)
class Linear:
    """Logistic regression; it was fitted on standardised columns, which its weights make up for."""

    weights: Floats
    offset: float

    @classmethod
    def fit(cls, rows: Floats, yes: Bools) -> Linear:
        from sklearn.linear_model import LogisticRegression  # late: checking needs no scikit-learn

        mean, scale = _scales(rows)
        model = LogisticRegression(C=0.01, max_iter=2000).fit((rows - mean) / scale, yes)
        weights = model.coef_[0] / scale
        return cls(weights, float(model.intercept_[0] - mean @ weights))

    @classmethod
    def steady(cls, rows: Floats, yes: Bools, weights: Floats, directions: npt.NDArray[np.int_]) -> Linear:
        """Columns of direction 1 get no negative weight, those of -1 no positive one, all others none."""
        from scipy.optimize import minimize  # late: checking needs no scipy

        used = np.flatnonzero(directions)
        mean, scale = _scales(rows[:, used])
        forward = (rows[:, used] - mean) / scale * directions[used]

        def loss(told: Floats) -> tuple[float, Floats]:
            odds = forward @ told[1:] + told[0]
            missed = weights * (1 / (1 + np.exp(-odds)) - yes)
            slope = np.concatenate([[missed.sum()], missed @ forward + FORCE * told[1:]])
            return float(weights @ (np.logaddexp(0, odds) - yes * odds) + FORCE / 2 * told[1:] @ told[1:]), slope

        bounds = [(None, None)] + [(0, None)] * len(used)
        found = minimize(loss, np.zeros(1 + len(used)), jac=True, bounds=bounds, method="L-BFGS-B").x
        whole = np.zeros(rows.shape[1])
        whole[used] = found[1:] * directions[used] / scale
        return cls(whole, float(found[0] - mean @ whole[used]))

    def as_json(self) -> dict[str, Any]:
        return {"weights": self.weights.tolist(), "offset": self.offset}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Linear:
        return cls(np.array(told["weights"], dtype=float), float(told["offset"]))


@dataclass(frozen=True)
class Whole:
    """The four models, and the share of the steady one."""

    linear: Linear
    steady: Linear
    boosted: Judge
    extra: Judge
    share: float

    @classmethod
    def fit(
        cls, rows: Floats, yes: Bools, names: Sequence[str], *, sets: npt.NDArray[Any] | None = None, seed: int = 0
    ) -> Whole:
        """`names` are those of the columns, `sets` the data set of each row where there are several."""
        from sklearn.ensemble import ExtraTreesClassifier  # late: checking needs no scikit-learn

        extra = ExtraTreesClassifier(
            EXTRA_TREES, min_samples_leaf=4, max_leaf_nodes=EXTRA_LEAVES, max_features=0.3, random_state=seed
        )
        first, second = (Judge.fit(rows, yes, model, fewest=1) for model in (boosted(BOOSTED_TREES, 25, seed), extra))
        directions = np.array([STEADY.get(name, 0) for name in names])
        weights, teaching = _alike(yes, np.zeros(len(yes)) if sets is None else sets)
        steady = Linear.steady(rows, yes, weights, directions)
        return cls(Linear.fit(rows, yes), steady, first, second, SHARE * (1 - 1 / teaching))

    def ready(self) -> Whole:
        return replace(self, boosted=self.boosted.ready(), extra=self.extra.ready())

    @property
    def columns(self) -> set[int]:
        """How many columns the models take; one number, where they fit together."""
        return {len(self.linear.weights), len(self.steady.weights), self.boosted.columns, self.extra.columns}

    def odds(self, rows: Floats) -> Floats:
        """(rows, columns) to (rows,)."""
        weights, offsets = self._lines
        lines = np.minimum(np.maximum(rows @ weights + offsets, -_MOST), _MOST)
        trees = logit(np.array([self.boosted.p(rows), self.extra.p(rows)], dtype=float)).sum(0)
        return np.asarray((1 - self.share) * (lines[:, 0] + trees) / 3 + self.share * lines[:, 1])

    @cached_property
    def _lines(self) -> tuple[Floats, Floats]:
        """The weights of both linear models, a column each, and their offsets."""
        both = self.linear, self.steady
        return np.array([one.weights for one in both]).T.copy(), np.array([one.offset for one in both])

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the trees; what else there is to know is returned."""
        told = {name: getattr(self, name).as_json() for name in _LINEAR}
        told |= {name: getattr(self, name).save(folder / f"{name}.onnx") for name in _TREES}
        return {**told, "share": self.share}

    @classmethod
    def load(cls, folder: Path, told: Mapping[str, Any]) -> Whole:
        linear, steady = (Linear.from_json(told[name]) for name in _LINEAR)
        first, second = (Judge.load(folder / f"{name}.onnx", told[name]) for name in _TREES)
        return cls(linear, steady, first, second, float(told["share"]))


_MOST = float(logit(np.array(1.0)))  # no model may shout louder than trees that are sure


def _scales(rows: Floats) -> tuple[Floats, Floats]:
    mean, scale = rows.mean(0, dtype=float), rows.std(0, dtype=float)
    scale[scale < 1e-9] = 1.0
    return mean, scale


def _alike(yes: Bools, sets: npt.NDArray[Any]) -> tuple[Floats, int]:
    """Weights by which every set counts alike, and in it both labels; and how many sets have both and so teach something."""
    weights = np.zeros(len(yes))
    teaching = 0
    for one in np.unique(sets):
        mine = sets == one
        if len(np.unique(yes[mine])) == 2:
            teaching += 1
            for label in (mine & yes, mine & ~yes):
                weights[label] = 0.5 / label.sum()
    if not teaching:  # every set is all complete or not at all: they teach together what none teaches alone
        return _alike(yes, np.zeros(len(yes)))
    return weights / teaching, teaching
