"""Have the questions changed since the fit? Compares features and actions at fit time and now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.gate.calibration import FeatureProfile, bin_shares

Floats = npt.NDArray[np.floating[Any]]
MIN_QUESTIONS = 30  # recent questions, at least
DRIFTED_PSI = 0.25  # the customary limit
MAX_DRIFTED_SHARE = 0.10  # share of drifted features above which the probabilities are suspect
MAX_ACTION_CHANGE = 0.10  # in the share of an action
TINY = 1e-4


@dataclass(frozen=True, slots=True)
class FeatureDrift:
    """Population stability index (0: none, 0.25: large) and Kolmogorov distance at the bins."""

    feature: str
    psi: float
    ks: float


@dataclass(frozen=True, slots=True)
class Drift:
    """What has changed since the fit, most drifted features first."""

    questions: int
    features: tuple[FeatureDrift, ...]
    actions_then: Mapping[str, float]
    actions_now: Mapping[str, float]
    recalibrate: bool
    words: str

    def __str__(self) -> str:
        return self.words


def measure_drift(profile: FeatureProfile, table: Floats, actions: Mapping[str, float]) -> Drift:
    """How far recent questions are from the profile; `actions` are the shares of their actions."""
    recent = len(table)
    if recent < MIN_QUESTIONS:
        raise InputError(
            f"{recent} recent questions, expected at least {MIN_QUESTIONS}",
            hint="collect more before you measure drift",
        )
    chance = 1 / recent + 1 / profile.questions
    features = [
        (FeatureDrift(name, *_distances(np.array(then), np.array(bin_shares(column, edges)))), then)
        for name, column, edges, then in zip(
            profile.names, table.T, profile.edges, profile.shares, strict=True
        )
    ]
    features.sort(key=lambda pair: (-pair[0].psi, pair[0].feature))
    # Two samples of the same questions also have a nonzero index; it grows as samples get smaller.
    far = [one for one, then in features if one.psi > DRIFTED_PSI + 2 * (len(then) - 1) * chance]
    changed = []
    for name in sorted({*profile.actions, *actions}):
        then, now = profile.actions.get(name, 0.0), actions.get(name, 0.0)
        if share_changed(then, now, profile.questions, recent):
            changed.append(f"{name}: {then:.0%} at fit time, {now:.0%} now.")
    recalibrate = bool(changed) or len(far) > MAX_DRIFTED_SHARE * len(features)
    parts = [f"{recent} recent questions with their hits."]
    if far:
        most = ", ".join(f"{one.feature} ({one.psi:.2f})" for one in far[:3])
        parts.append(
            f"They differ from those the gate was fitted on in {len(far)} of {len(features)}"
            f" features, most of all in {most}."
        )
    elif not changed:
        parts.append("They look like those the gate was fitted on.")
    advice = (
        "Recalibrate: label some of them, and adapt the gate."
        if recalibrate
        else "No need to recalibrate."
    )
    words = " ".join([*parts, *changed, advice])
    ordered, then_actions = tuple(one for one, _ in features), dict(profile.actions)
    return Drift(recent, ordered, then_actions, dict(actions), recalibrate, words)


def _distances(then: Floats, now: Floats) -> tuple[float, float]:
    a, b = np.maximum(then, TINY), np.maximum(now, TINY)
    return float(((b - a) * np.log(b / a)).sum()), float(np.abs(np.cumsum(now - then)).max())


def share_changed(then: float, now: float, questions: int, recent: int) -> bool:
    """Whether the share of an action changed by a lot, and by more than chance."""
    share = (then * questions + now * recent) / (questions + recent)
    chance = 2 * (share * (1 - share) * (1 / recent + 1 / questions)) ** 0.5
    return bool(abs(now - then) > max(MAX_ACTION_CHANGE, chance))
