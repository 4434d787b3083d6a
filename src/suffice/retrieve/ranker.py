"""Which candidate next: a small learned model over the features of (question, documents held, candidate).

`HandRanker` is a weighted sum for when nothing was learned; `TreeRanker` is boosted trees as ONNX, made by
`suffice.evaluate.train_bridge`.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from suffice.retrieve.pool import COLUMN, FEATURES

__all__ = ["HandRanker", "Ranker"]

Floats = npt.NDArray[np.floating[Any]]


@runtime_checkable
class Ranker(Protocol):
    def p(self, rows: Floats) -> Floats:
        """How likely each candidate is needed next: (rows, features) -> (rows,), higher is better."""
        ...


class HandRanker:
    """Weights set by hand, for a corpus before anything is learned."""

    WEIGHTS = {"bm25": 1.0, "dense": 1.0, "named_best": 1.0, "adds": 1.0, "bridge": 0.7, "support_out": 0.4, "into_held": 0.2}

    def p(self, rows: Floats) -> Floats:
        weights = np.zeros(len(FEATURES), np.float32)
        for name, weight in self.WEIGHTS.items():
            weights[COLUMN[name]] = weight
        return np.asarray(1 / (1 + np.exp(3 - rows @ weights)))
