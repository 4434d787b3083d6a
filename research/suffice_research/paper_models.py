"""The papers' predictors of complete evidence, with the papers' settings, for any feature table.

`classic("magaf")` is MAGAF's forest, calibrated by Platt scaling on a validation part;
`classic("frames-lr")` is the best of the FRAMES paper. The other names are the papers' baselines.
Settings that a paper leaves open are scikit-learn's defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, NotReadyError, did_you_mean
from suffice.gate.calibration import Platt
from suffice.numeric import log_odds_array

__all__ = ["PAPER_MODELS", "PaperModel", "paper_model"]

Floats = npt.NDArray[np.floating[Any]]
Part = tuple[npt.ArrayLike, npt.ArrayLike]  # rows, and which of them are complete


def _logistic(seed: int, *, balanced: bool) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    weight = "balanced" if balanced else None
    return make_pipeline(
        StandardScaler(), LogisticRegression(class_weight=weight, max_iter=2_000, random_state=seed)
    )


def _forest(seed: int, *, trees: int, depth: int, leaf: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(
        trees, max_depth=depth, min_samples_leaf=leaf, class_weight="balanced", random_state=seed
    )  # fmt: skip


def _boosting(seed: int, **settings: float) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(random_state=seed, **settings)


PAPER_MODELS: dict[str, Callable[[int], Any]] = {
    "magaf": lambda seed: _forest(seed, trees=180, depth=5, leaf=6),
    "magaf-lr": lambda seed: _logistic(seed, balanced=True),
    "magaf-gbdt": lambda seed: _boosting(seed),
    "frames-lr": lambda seed: _logistic(seed, balanced=True),
    "frames-rf": lambda seed: _forest(seed, trees=100, depth=7, leaf=5),
    "frames-gb": lambda seed: _boosting(seed, n_estimators=100, learning_rate=0.06, max_depth=2),
}


class PaperModel:
    """One of the papers' models: rows of features in, the probability of completeness out."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.scale: Platt | None = None
        self._columns = 0

    def fit(
        self, rows: npt.ArrayLike, complete: npt.ArrayLike, *, validation: Part | None = None
    ) -> PaperModel:
        """Fit on one part and, if another is given as (rows, complete), calibrate on it by Platt
        scaling.
        """
        table, labels = _table(rows), np.asarray(complete)
        if labels.shape != (len(table),) or not np.isin(labels, (0, 1)).all():
            raise InputError(
                f"{len(table)} rows and labels of shape {labels.shape}, expected true or false "
                f"for each row"
            )
        if len(np.unique(labels)) < 2:
            raise InputError("all rows have the same label", hint="give examples of both kinds")
        self.model.fit(table, labels.astype(bool))
        self._columns, self.scale = table.shape[1], None
        if validation is not None:
            self.scale = Platt.fit(self._odds(_table(validation[0])), validation[1])
        return self

    def predict(self, rows: npt.ArrayLike) -> Floats:
        """p_complete: (rows,)."""
        table = _table(rows)
        if not self._columns:
            raise NotReadyError("the model is not fitted", hint="call fit first")
        if table.shape[1] != self._columns:
            raise InputError(
                f"the rows have {table.shape[1]} columns, the model was fitted on {self._columns}"
            )
        if not len(table):
            return np.zeros(0)
        return (
            np.asarray(self.model.predict_proba(table)[:, 1])
            if self.scale is None
            else self.scale.apply(self._odds(table))
        )

    def _odds(self, table: Floats) -> Floats:
        return log_odds_array(self.model.predict_proba(table)[:, 1])


def paper_model(name: str, seed: int = 42) -> PaperModel:
    """An unfitted model of this name. 42 is the papers' seed."""
    if name not in PAPER_MODELS:
        raise InputError(
            f"no classic model is named {name!r}", hint=did_you_mean(name, PAPER_MODELS)
        )
    return PaperModel(PAPER_MODELS[name](seed))


def _table(rows: npt.ArrayLike) -> Floats:
    table = np.asarray(rows, dtype=float)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise InputError(
            f"features have shape {table.shape}, expected a table of finite numbers, one row "
            f"for each question"
        )
    return table
