"""A place's own model: what its few labels teach by themselves, as one more column beside what the gate sees.

A gate that is moved brings what it learned elsewhere. Every labelled question of the new place also teaches something about ten
hits, and about what its questions look like: from a hundred labels on, a small model of these alone knows things that no
correction of the old odds can say. Its log-odds become the column OWN, and the correction weighs it against the old ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.assess.calibration import Platt
from suffice.assess.features import Feature
from suffice.assess.lessons import Taught
from suffice.assess.looking import Looked
from suffice.assess.model import GateModel
from suffice.assess.words import Words
from suffice.errors import InputError

__all__ = ["OWN", "Own", "own_model"]

Floats = npt.NDArray[np.floating[Any]]
OWN = Feature("own", "own", "Log-odds by a model of the labels that the gate was adapted to, alone.")


@dataclass(frozen=True)
class Own:
    """The model, and the scale on which its odds are probabilities."""

    model: GateModel
    scale: Platt

    def odds(self, seen: Looked) -> Floats:
        """(questions,)."""
        return self.scale.odds(self.model.odds(seen.described_by(self.model)))


def own_model(taught: Taught, words: Words, seed: int) -> tuple[Own, Floats] | None:
    """The model of these labels, and its log-odds of each question by models that have not seen it; None of too few labels."""
    try:
        model = taught.model(words, seed)
    except InputError:  # fewer of one kind than there are folds
        return None
    scale = Platt.fit(model.odds_at_fit, taught.complete)
    return Own(model, scale), scale.odds(model.odds_at_fit)
