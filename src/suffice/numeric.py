"""Small formulas that more than one part of suffice needs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

MIN_PROBABILITY = 1e-6  # 0 and 1 have no log-odds: they count as one in a million


def log_odds(p: float, *, least: float = MIN_PROBABILITY) -> float:
    """The log-odds of one probability, clipped to [least, 1 - least]."""
    clipped = min(max(p, least), 1 - least)
    return math.log(clipped / (1 - clipped))


def log_odds_array(p: npt.ArrayLike, *, least: float = MIN_PROBABILITY) -> npt.NDArray[Any]:
    """The same for an array; numpy's logarithm may differ from `math.log` in the last digit."""
    import numpy as np

    clipped = np.minimum(np.maximum(p, least), 1 - least)  # quicker than np.clip on one row
    return np.asarray(np.log(clipped / (1 - clipped)))


def sigmoid(log_odds: npt.ArrayLike) -> Floats:
    """The probability of log-odds; those beyond 30 count as 30."""
    import numpy as np

    clipped = np.minimum(np.maximum(log_odds, -30), 30)
    return np.asarray(1 / (1 + np.exp(-clipped)), dtype=np.float64)


def multiply_rows(rows: npt.NDArray[Any], weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """`rows @ weights`, such that a row's result does not depend on how many rows there are.

    BLAS adds up in another order for another number of rows: a check in a batch would differ from
    the same check alone in its last digits.
    """
    import numpy as np

    found = np.array([row @ weights for row in rows])
    return found if len(rows) else found.reshape(0, *weights.shape[1:])
