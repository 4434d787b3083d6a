"""Small formulas that several parts of suffice use."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

MIN_PROBABILITY = 1e-6  # 0 and 1 have no log-odds: clipped to one in a million


def log_odds(p: float, *, least: float = MIN_PROBABILITY) -> float:
    """The log-odds of one probability, clipped to [least, 1 - least]."""
    clipped = min(max(p, least), 1 - least)
    return math.log(clipped / (1 - clipped))


def log_odds_array(p: npt.ArrayLike, *, least: float = MIN_PROBABILITY) -> npt.NDArray[Any]:
    """The same for an array; numpy's logarithm may differ from `math.log` in the last digit."""
    import numpy as np

    clipped = np.minimum(np.maximum(p, least), 1 - least)  # faster than np.clip on one row
    return np.asarray(np.log(clipped / (1 - clipped)))


def sigmoid(log_odds: npt.ArrayLike) -> Floats:
    """The probability of log-odds, which are clipped at 30."""
    import numpy as np

    clipped = np.minimum(np.maximum(log_odds, -30), 30)
    return np.asarray(1 / (1 + np.exp(-clipped)), dtype=np.float64)


def multiply_rows(rows: npt.NDArray[Any], weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """`rows @ weights`, but a row's result does not depend on the number of rows.

    BLAS sums in a different order for a different number of rows: a check in a batch would differ
    from the same check alone in the last digits.
    """
    import numpy as np

    found = np.array([row @ weights for row in rows])
    return found if len(rows) else found.reshape(0, *weights.shape[1:])
