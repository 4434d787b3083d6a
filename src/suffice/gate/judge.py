"""A judge behind the gate: a slower reader, asked about lists that the gate is unsure of, or all.

    gate = Gate.load("my-gate", judge=judge)      any suffice.protocols.Judge
    gate = Gate.load(preset="deep")               the one of suffice-deep, asked about every list

Log-odds are added: logit p = gate * the gate's log-odds + constant + slope * the judge's, bounded.
`suffice adapt --judge` fits constant and slope from labels and stores them with the gate; without
them the judge's log-odds count as they are. The judge of a preset has a `scale` of its own. A judge
that fails or answers nonsense leaves the gate's own verdict, and a note says so. For the reasons,
see docs/decisions/0018-language-models.md and 0021-deep-reading.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.numeric import sigmoid
from suffice.protocols import HitTexts, Judge, component_name
from suffice.types import Action, JudgeReport, Opinion

__all__ = [
    "Consultation",
    "JudgeScale",
    "PresetJudge",
    "ask_judge",
    "check_judge",
    "consult",
    "is_unsure",
]

Floats = npt.NDArray[np.floating[Any]]
UNSURE = 2.0  # in log-odds, on either side of the threshold: p from 0.12 to 0.88 around 0.5
MAX_LOG_ODDS = 6.0  # of a judge
MAX_EFFECT = 3.0  # on the gate's log-odds: whoever can write a hit may fool a model


@dataclass(frozen=True, slots=True)
class JudgeScale:
    """How far the log-odds of one judge move those of one gate."""

    judge: str  # its name: another judge needs another scale
    slope: float = 1.0
    constant: float = 0.0
    labels: int = 0  # number it was fitted from; 0: not fitted
    gate: float = 1.0  # weight of the gate's own log-odds, next to the judge's
    max_log_odds: float = MAX_LOG_ODDS
    max_effect: float = MAX_EFFECT
    unsure: float = UNSURE  # lists this near to the threshold are sent
    any_language: bool = False  # reads what the gate was not trained on
    answer_at: float | None = None  # the threshold of a preset; None: the gate's own

    def __post_init__(self) -> None:
        limits = (self.slope, self.gate, self.max_log_odds, self.max_effect, self.unsure)
        if not (all(0 <= one < math.inf for one in limits) and math.isfinite(self.constant)):
            found = f"slope {self.slope} and constant {self.constant}"
            raise InputError(f"the scale of a judge has {found}: expected finite numbers")

    def effects(self, log_odds: npt.ArrayLike, odds: npt.ArrayLike = 0.0) -> Floats:
        """How far each opinion moves the gate's log-odds, `odds`; 0 without one (NaN)."""
        bounded = np.clip(np.asarray(log_odds, float), -self.max_log_odds, self.max_log_odds)
        moved = self.constant + self.slope * bounded + (self.gate - 1) * np.asarray(odds)
        moved = np.clip(moved, -self.max_effect, self.max_effect)
        return np.where(np.isnan(bounded) | (self.slope == 0), 0.0, moved)

    def __str__(self) -> str:
        if not self.slope:
            return f"the judge {self.judge} has no weight, as far as {self.labels:,} labels tell"
        formula = f"{self.constant:+.2f} {self.slope:+.2f} times its own"
        return f"the judge {self.judge} moves the log-odds by {formula} ({self.labels:,} labels)"


class PresetJudge(Judge, Protocol):
    """A judge that ships with its scale for the shipped gate."""

    @property
    def scale(self) -> JudgeScale: ...


@dataclass(frozen=True)
class Consultation:
    """The judge's opinions on some lists, None where it was not asked, and their effects."""

    judge: str
    opinions: tuple[Opinion | None, ...]
    effects: Floats  # on the gate's log-odds

    @property
    def notes(self) -> list[tuple[str, ...]]:
        """For each list, what the judge has not read, or why its opinion is missing."""
        start = f"the judge {self.judge} gave no usable answer"
        return [
            ()
            if one is None
            else (f"{start} ({one.error}): the gate decides",)
            if one.error
            else one.notes
            for one in self.opinions
        ]

    @property
    def read(self) -> npt.NDArray[np.bool_]:
        """Which lists have an opinion."""
        return np.array([one is not None and one.log_odds is not None for one in self.opinions])

    def needed(self, at: int, count: int) -> Floats | None:
        """The log-odds that each of so many hits is needed; None where the judge said none."""
        said = self.opinions[at]
        return np.array(said.needed) if said is not None and len(said.needed) == count else None

    def reports(self, odds: Floats, actions: Sequence[Action]) -> list[JudgeReport | None]:
        """Opinions in the form used in verdicts, with the gate's own results."""
        rows = zip(self.opinions, sigmoid(odds).tolist(), actions, strict=True)
        return [
            None
            if said is None
            else JudgeReport(
                self.judge,
                before,
                action,
                None if said.log_odds is None else float(sigmoid(said.log_odds)),
            )
            for said, before, action in rows
        ]


def check_judge(judge: Judge, scale: JudgeScale | None) -> None:
    """InputError if this is no judge, or not the one that the scale was fitted for."""
    if not callable(getattr(judge, "judge", None)):
        hint = "wrap a language model: suffice.integrations.judge.ModelJudge(model)"
        raise InputError(f"the judge is a {type(judge).__name__}", hint=hint)
    name = component_name(judge)
    if scale is not None and scale.judge != name:
        hint = f"open the gate with {scale.judge!r}, or run suffice adapt with --judge again"
        message = f"the gate was fitted with the judge {scale.judge!r}, not {name!r}"
        raise InputError(message, hint=hint)


def is_unsure(odds: Floats, threshold: float, unsure: float = UNSURE) -> npt.NDArray[np.bool_]:
    """Whether each verdict is near the threshold, all in log-odds: what a judge is asked about."""
    return np.asarray(np.abs(odds - threshold) <= unsure)


def consult(
    judge: Judge,
    scale: JudgeScale | None,
    lists: Sequence[HitTexts],
    odds: Floats,
    threshold: float,
    *,
    always: npt.NDArray[np.bool_] | None = None,
) -> Consultation:
    """Ask the judge about the lists near the threshold, in log-odds, and those that are `always`
    sent; never raise its errors.
    """
    name = component_name(judge)
    scale = scale or JudgeScale(name)
    sent = is_unsure(odds, threshold, scale.unsure)
    sent = (sent if always is None else sent | always) & (scale.slope > 0)
    unsure = np.flatnonzero(sent).tolist()
    opinions: list[Opinion | None] = [None] * len(lists)
    said = np.full(len(lists), np.nan)
    found = ask_judge(judge, [lists[row] for row in unsure])
    for row, opinion in zip(unsure, found, strict=True):
        opinions[row] = opinion
        said[row] = np.nan if opinion.log_odds is None else opinion.log_odds
    return Consultation(name, tuple(opinions), scale.effects(said, odds))


def ask_judge(judge: Judge, lists: Sequence[HitTexts]) -> list[Opinion]:
    """The judge's opinions; without log-odds if it fails: a judge is third-party code."""
    if not lists:
        return []
    try:
        found = list(judge.judge(lists))
    except Exception as error:  # noqa: BLE001 - whatever a judge does, the gate has a verdict
        # Keep only the error type: the message may quote a hit.
        return [Opinion(None, error=type(error).__name__)] * len(lists)
    if len(found) != len(lists):
        return [Opinion(None, error="it did not return one opinion for each list")] * len(lists)
    return [_usable(one) for one in found]


def _usable(said: Any) -> Opinion:
    if not isinstance(said, Opinion):
        return Opinion(None, error="it returned something else than an opinion")
    odds = said.log_odds
    if odds is None:
        return said if said.error else Opinion(None, error="no reason given")
    if isinstance(odds, int | float | np.number) and math.isfinite(odds):
        return said
    return Opinion(None, error="its log-odds are not a finite number")
