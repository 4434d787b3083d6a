"""A place's own model: what its few labels teach by themselves, as one more column beside what the gate sees.

A gate that is moved brings what it learned elsewhere. Every labelled question of the new place also teaches something about ten
hits, and about what its questions look like: from a hundred labels on, a small model of these alone knows things that no
correction of the old odds can say. Its log-odds become the column OWN, and the correction weighs it against the old ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, InputError
from suffice.gate.calibration import Platt
from suffice.gate.features import Feature
from suffice.gate.featurize import FeatureBatch
from suffice.gate.model import GateModel
from suffice.gate.policy import Costs, Policy, choose_by_cost, choose_by_f1, choose_by_risk
from suffice.gate.question import WordTable
from suffice.gate.training import TrainingSet, group_folds

__all__ = [
    "LOCAL_FEATURE",
    "NO_CORRECTION",
    "SHIFTED",
    "TRANSFERABLE_FEATURES",
    "Correction",
    "LocalModel",
    "PolicyRule",
    "fit_local_model",
]


Floats = npt.NDArray[np.floating[Any]]
LOCAL_FEATURE = Feature(
    "own", "own", "Log-odds by a model of the labels that the gate was adapted to, alone."
)


@dataclass(frozen=True)
class LocalModel:
    """The model, and the scale on which its odds are probabilities."""

    model: GateModel
    scale: Platt

    def odds(self, seen: FeatureBatch) -> Floats:
        """(questions,)."""
        return self.scale.odds(self.model.odds(seen.described_by(self.model)))


def fit_local_model(
    taught: TrainingSet, words: WordTable, seed: int
) -> tuple[LocalModel, Floats] | None:
    """The model of these labels, and its log-odds of each question by models that have not seen it; None of too few labels."""
    try:
        model = taught.model(words, seed)
    except InputError:  # fewer of one kind than there are folds
        return None
    scale = Platt.fit(model.odds_at_fit, taught.complete)
    return LocalModel(model, scale), scale.odds(model.odds_at_fit)


# --- adapting: Moving a gate to another corpus: a small correction of its log-odds, learned from a few labels or from none.

Bools = npt.NDArray[np.bool_]
# The gate's features that a correction may weigh anew. Chosen on data sets that the gate was not fitted on.
TRANSFERABLE_FEATURES = (
    "guess_hops", "weakest", "short", "p1", "p2", "p3", "p4", "held", "pair", "triple", "absent", "absent1", "cov_any",
    "resolved", "dangling", "named", "names_no_text", "missing_words", "lacks", "cov_sources", "s_mean",
)  # fmt: skip
PENALTIES = (
    300.0,
    100.0,
    30.0,
    10.0,
    3.0,
    1.0,
)  # strongest first: of equals the one that changes least
OFFSET_PENALTY = 0.01  # the force on the offset
SHIFTED = ", then shifted"
FOLDS = 5
LABELS_FOR_EQUAL_SAY = 100.0  # labels that give the place's own model as much say as the gate's
MAX_COEFFICIENT = 1e6  # that a number of a saved correction may be: one beyond would come as far as a sum that is none
MAX_SPREADS = 4.0  # spreads beyond which a feature of another corpus says no more


@dataclass(frozen=True, slots=True)
class Correction:
    """A linear map of log-odds and standardised features to log-odds."""

    offset: float = 0.0
    slope: float = 1.0
    weights: tuple[float, ...] = ()  # per name, in units of the spread at fit time
    names: tuple[str, ...] = ()
    force: float = 0.0

    def __call__(self, odds: Floats, features: Floats) -> Floats:
        """(n,) log-odds and (n, names) standardised features to (n,) corrected log-odds."""
        reach, weights = _correction_arrays(self.names, self.weights)
        within = np.minimum(np.maximum(features, -reach), reach)
        return np.asarray(self.offset + self.slope * odds + within @ weights, dtype=np.float64)

    @classmethod
    def learn(
        cls,
        odds: Floats,
        features: Floats,
        complete: Bools,
        groups: Sequence[str],
        names: Sequence[str],
        *,
        seed: int,
    ) -> tuple[Correction, Floats]:
        """The correction with the best log loss on left-out groups, and the log-odds it gives to each left-out question."""
        rows = _design_matrix(odds, features, names)
        say = len(odds) / LABELS_FOR_EQUAL_SAY
        own = np.array([name == LOCAL_FEATURE.name for name in names])
        rest = np.array([0.0, 1 / (1 + say) if own.any() else 1.0, *(own * say / (1 + say))])
        target = complete.astype(np.float64)
        folds = group_folds(groups, FOLDS, seed)
        left_out = []
        for force in PENALTIES:
            held = np.empty(len(odds))
            for fold in range(FOLDS):
                away = folds == fold
                if away.any():
                    held[away] = rows[away] @ _penalized_logistic(
                        rows[~away], target[~away], rest, force
                    )
            left_out.append(held)
        losses = [
            float(np.logaddexp(0, np.where(complete, -held, held)).mean()) for held in left_out
        ]
        best = int(np.argmin(losses))
        found = _penalized_logistic(rows, target, rest, PENALTIES[best])
        weights = tuple(float(weight) for weight in found[2:])
        return cls(
            float(found[0]), float(found[1]), weights, tuple(names), PENALTIES[best]
        ), left_out[best]

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Correction:
        try:
            weights, names = tuple(map(float, record["weights"])), tuple(map(str, record["names"]))
            offset, slope, force = (float(record[name]) for name in ("offset", "slope", "force"))
            if not all(abs(one) <= MAX_COEFFICIENT for one in (*weights, offset, slope, force)):
                raise ValueError(f"a number in it is beyond {MAX_COEFFICIENT:,g}, or none")
            return cls(offset, slope, weights, names, force)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"the gate's correction cannot be read: {error!r}",
                hint="fit and save the gate again",
            ) from error


NO_CORRECTION = Correction()


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """How a policy is chosen."""

    name: str
    alpha: float | None
    delta: float
    costs: Costs

    def __post_init__(self) -> None:
        if self.name not in ("f1", "cost", "risk"):
            raise InputError(f"policy is {self.name!r}, expected 'f1', 'cost' or 'risk'")
        if self.name == "risk" and self.alpha is None:
            raise InputError(
                "policy 'risk' needs alpha, the share of incomplete among answered",
                hint="for example alpha=0.1",
            )

    @classmethod
    def of(cls, policy: Policy) -> PolicyRule:
        """The rule that chose a policy; one set by hand is chosen anew by F1."""
        if policy.promise:
            return cls("risk", policy.promise.alpha, policy.promise.delta, policy.costs)
        name = policy.chosen_by.removesuffix(SHIFTED)
        return cls(name if name in ("f1", "cost") else "f1", None, 0.1, policy.costs)

    @property
    def promises(self) -> bool:
        return self.alpha is not None

    @property
    def none(self) -> Policy:
        return Policy(None, None, self.costs)

    def choose(self, p: Floats, complete: Bools) -> Policy:
        if self.alpha is not None:
            return choose_by_risk(p, complete, alpha=self.alpha, delta=self.delta, costs=self.costs)
        return (
            choose_by_cost(p, complete, costs=self.costs)
            if self.name == "cost"
            else choose_by_f1(p, complete, costs=self.costs)
        )


def _feature_limits(names: Sequence[str]) -> Floats:
    return np.array([np.inf if name == LOCAL_FEATURE.name else MAX_SPREADS for name in names])


@lru_cache(maxsize=64)  # a correction is the same in every check
def _correction_arrays(names: tuple[str, ...], weights: tuple[float, ...]) -> tuple[Floats, Floats]:
    return _feature_limits(names), np.array(weights)


def _design_matrix(odds: Floats, features: Floats, names: Sequence[str]) -> Floats:
    """(n, 2 + names): one, the odds, and the features as far as they reach; the place's own odds reach as far as they like."""
    reach = _feature_limits(names)
    return np.column_stack([np.ones(len(odds)), odds, np.clip(features, -reach, reach)]).astype(
        np.float64
    )


def _penalized_logistic(rows: Floats, target: Floats, rest: Floats, force: float) -> Floats:
    """Logistic regression pulled towards its rest, by Newton's steps; the force keeps every step well defined."""
    pull = np.full(rows.shape[1], force)
    pull[0] = OFFSET_PENALTY
    found = rest.copy()
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(rows @ found, -30, 30)))
        slope = rows.T @ (p - target) + pull * (found - rest)
        curve = (rows * np.maximum(p * (1 - p), 1e-6)[:, None]).T @ rows + np.diag(pull)
        step = np.linalg.solve(curve, slope)
        found = found - np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-7:
            break
    return found
