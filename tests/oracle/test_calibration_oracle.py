"""Calibration against those who also compute it: scikit-learn's sigmoid and isotonic fits, and
Venn-Abers by its definition.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression

from suffice.gate.calibration import Platt, VennAbers


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose score is its only column."""

    def fit(self, rows: np.ndarray, labels: np.ndarray) -> Given:
        self.classes_ = np.array([False, True])
        return self

    def decision_function(self, rows: np.ndarray) -> np.ndarray:
        return rows[:, 0]

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return rows[:, 0] > 0


def cases(n: int, seed: int, decimals: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n).round(decimals)
    return scores, rng.random(n) < 1 / (1 + np.exp(-scores))


@pytest.mark.parametrize("seed", range(5))
def test_platt_is_scikit_learns_sigmoid_calibration(seed: int) -> None:
    scores, complete = cases(200, seed, 3)
    model = FrozenEstimator(Given().fit(scores[:, None], complete))
    oracle = CalibratedClassifierCV(model, method="sigmoid").fit(scores[:, None], complete)
    grid = np.linspace(-4, 4, 50)
    # Ours has a faint pull on the slope, theirs none.
    assert Platt.fit(scores, complete).apply(grid) == pytest.approx(
        oracle.predict_proba(grid[:, None])[:, 1], abs=2e-3
    )


@pytest.mark.parametrize(("n", "decimals"), [(1, 1), (2, 1), (7, 0), (40, 1), (120, 6)])
@pytest.mark.parametrize("seed", range(4))
def test_venn_abers_is_an_isotonic_fit_with_the_case_added_under_each_label(
    n: int, decimals: int, seed: int
) -> None:
    scores, complete = cases(n, seed, decimals)
    grid = np.concatenate([scores[:20], np.linspace(-4, 4, 15)])
    low, high = VennAbers.fit(scores, complete).apply(grid)
    for score, *bounds in zip(grid, low, high, strict=True):
        for label, found in zip((0, 1), bounds, strict=True):
            model = IsotonicRegression().fit(np.append(scores, score), np.append(complete, label))
            assert found == pytest.approx(float(model.predict([score])[0]), abs=1e-9)
