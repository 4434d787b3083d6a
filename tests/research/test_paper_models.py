"""The papers' models keep the papers' settings and refuse what they cannot learn from."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from suffice.errors import InputError, NotReadyError
from suffice_research.paper_models import PAPER_MODELS, paper_model


def village(n: int = 240) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(n, 4))
    return rows, rows[:, 0] + 0.5 * rng.normal(size=n) > 0.4


@pytest.mark.parametrize("name", PAPER_MODELS)
def test_every_classic_learns_an_easy_village_and_repeats_itself(name: str) -> None:
    rows, complete = village()
    p = paper_model(name).fit(rows[:160], complete[:160]).predict(rows[160:])
    assert ((p >= 0) & (p <= 1)).all()
    assert p[complete[160:]].mean() > p[~complete[160:]].mean() + 0.3
    assert np.array_equal(p, paper_model(name).fit(rows[:160], complete[:160]).predict(rows[160:]))


def test_magaf_is_the_forest_of_the_paper_with_platt_on_the_validation_part() -> None:
    rows, complete = village()
    fitted = paper_model("magaf").fit(
        rows[:120], complete[:120], validation=(rows[120:180], complete[120:180])
    )
    forest = RandomForestClassifier(
        180, max_depth=5, min_samples_leaf=6, class_weight="balanced", random_state=42
    )
    raw = forest.fit(rows[:120], complete[:120]).predict_proba(rows[180:])[:, 1]
    p = fitted.predict(rows[180:])
    assert fitted.scale is not None
    assert np.array_equal(np.argsort(p, kind="stable"), np.argsort(raw, kind="stable"))
    assert not np.allclose(p, raw)


def test_the_settings_of_the_frames_paper() -> None:
    forest, boosting = paper_model("frames-rf").model, paper_model("frames-gb").model
    assert (
        forest.n_estimators,
        forest.max_depth,
        forest.min_samples_leaf,
        forest.class_weight,
    ) == (100, 7, 5, "balanced")
    assert (boosting.n_estimators, boosting.learning_rate, boosting.max_depth) == (100, 0.06, 2)
    assert paper_model("frames-lr").model[-1].class_weight == "balanced"


def test_bad_input_is_told() -> None:
    rows, complete = village(40)
    with pytest.raises(InputError, match="no classic model is named 'magaff'"):
        paper_model("magaff")
    with pytest.raises(InputError, match="same label"):
        paper_model("frames-lr").fit(rows, np.ones(40, bool))
    with pytest.raises(InputError, match="finite"):
        paper_model("frames-lr").fit(np.full((40, 4), np.nan), complete)
    with pytest.raises(InputError, match="labels of shape"):
        paper_model("frames-lr").fit(rows, complete[:-1])
    with pytest.raises(NotReadyError):
        paper_model("frames-lr").predict(rows)
    with pytest.raises(InputError, match="3 columns"):
        paper_model("frames-lr").fit(rows, complete).predict(rows[:, :3])
    assert paper_model("frames-lr").fit(rows, complete).predict(np.zeros((0, 4))).shape == (0,)
