"""The FRAMES predictor on the paper's own data."""

from __future__ import annotations

from pathlib import Path

import pytest

from suffice.datasets import load
from suffice.evaluation.gate_evaluation import grouped_folds
from suffice.evaluation.metrics import Predictions, score
from suffice.evaluation.searching import retrieve_dataset
from suffice_research.baselines import baseline_predictions


def test_frames_predictor_is_as_good_as_its_paper_says(data_folder: Path) -> None:
    """ROC-AUC 0.796 with 18 features and 0.856 with the hop count, logistic regression,
    Hybrid-title, k = 10.
    """
    cases = retrieve_dataset(
        load("frames", data_folder / "frames" / "test.tsv"), ["hybrid-title"], [10]
    ).questions("hybrid-title", 10)
    complete = [one.complete for one in cases]
    folds = grouped_folds([one.question.text for one in cases], complete, 5, 2024)
    p = baseline_predictions(cases, folds, names=["FRAMES (oracle)"])["FRAMES (oracle)"]
    assert score(Predictions(complete, p), "auroc") == pytest.approx(0.856, abs=0.015)
