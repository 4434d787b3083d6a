"""Tables 6 to 10 of the FRAMES paper on the real file: the figures within a tolerance, and every
finding in its order.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from suffice.datasets import load
from suffice.evaluation.metrics import score
from suffice.evaluation.significance import Interval
from suffice_research.frames.prediction import (
    MODELS,
    Folds,
    ablation,
    complete_of,
    folds_of,
    importances,
    paper_rows,
)
from suffice_research.frames.published import SEED, TABLE_8, TABLE_9, TABLE_10
from suffice_research.frames.retrieval import SearchResults, search
from suffice_research.frames.tables import SETTINGS
from suffice_research.published_cells import WithPublished
from suffice_research.study import Study

TOLERANCE = 0.025


@pytest.fixture(scope="module")
def searched(data_folder: Path) -> SearchResults:
    return search(load("frames", data_folder / "frames" / "test.tsv"), seed=SEED)


@pytest.fixture(scope="module")
def folds(searched: SearchResults) -> Folds:
    return folds_of(
        [case.question.text for case in searched.cases()], complete_of(searched.cases()), SEED
    )


@pytest.fixture(scope="module")
def auroc(searched: SearchResults, folds: Folds) -> dict[str, float]:
    return {row.name: score(row.predictions, "auroc") or 0.0 for row in paper_rows(searched, folds)}


def test_roc_auc_is_the_papers_in_all_nine_rows(auroc: dict[str, float]) -> None:
    assert auroc.keys() == TABLE_8.figures.keys()
    apart = {name: round(auroc[name] - row["auroc"], 4) for name, row in TABLE_8.figures.items()}
    assert max(map(abs, apart.values())) <= TOLERANCE, apart


def test_the_study_behind_the_results_page_holds_these_very_figures(
    auroc: dict[str, float],
) -> None:
    stored = Path(__file__).parents[2] / "research" / "results" / "runs" / "study-frames.json"
    table = Study.load(stored).table("Table 8.")
    stored_auroc = {}
    for row in table.rows:
        cell = row[table.columns.index("auroc")]
        assert isinstance(cell, WithPublished)
        assert isinstance(cell.measured, Interval)
        stored_auroc[row[0], row[1]] = cell.measured.value
    for name, value in auroc.items():
        setting, _, model = name.partition(" / ")
        assert stored_auroc[SETTINGS[setting], MODELS[model]] == pytest.approx(value, abs=1e-5)


def test_all_features_together_beat_each_family(searched: SearchResults, folds: Folds) -> None:
    parts = {
        row.setting: score(row.predictions, "auroc") or 0.0 for row in ablation(searched, folds)
    }
    assert parts.keys() == TABLE_9.figures.keys()
    families = [value for name, value in parts.items() if not name.startswith("All")]
    assert parts["All operational + hop count"] > parts["All operational"] > max(families)
    apart = {name: round(parts[name] - row["auroc"], 4) for name, row in TABLE_9.figures.items()}
    assert max(map(abs, apart.values())) <= 0.03, apart


def test_the_boosted_trees_look_at_multiple_constraints_and_the_gap_first(
    searched: SearchResults, folds: Folds
) -> None:
    found = [one.feature for one in importances(searched, folds)]
    assert found[:3] == list(TABLE_10.figures)[:3]


def test_copies_of_a_question_share_a_fold() -> None:
    texts = [f"question {at % 60}" for at in range(120)]
    labels = np.array([at % 3 == 0 for at in range(60)] * 2)
    for rest, held_out in folds_of(texts, labels, SEED):
        assert not {texts[at] for at in rest} & {texts[at] for at in held_out}
