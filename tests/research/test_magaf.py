"""MAGAF again: Table 1 exact, its predictor as good as printed on the collection's own test part,
and the stored study holds.

The whole study takes minutes; here the paper's predictor is measured in full, the rest on a small
collection, and the figures of the docs are those of the stored study.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from suffice.evaluation.metrics import Predictions
from suffice.evaluation.searching import RetrievedQuestion, retrieve_dataset
from suffice.evaluation.significance import interval
from suffice_research.controlled import controlled_collection
from suffice_research.magaf import published as paper
from suffice_research.magaf import study
from suffice_research.magaf.density import READINGS, density_readings, mean_weight
from suffice_research.magaf.diagrams import question_graph
from suffice_research.magaf.protocol import (
    HYBRID,
    MODELS,
    K,
    features_of,
    measure,
    model_outputs,
    parts_of,
    question_annotations,
)
from suffice_research.magaf.tables import Setting, null_rejection
from suffice_research.paper_features import MAGAF
from suffice_research.paper_models import PAPER_MODELS
from suffice_research.study import Study, table_cell

STORED = (
    Path(__file__).resolve().parent.parent.parent / "docs" / "results" / "runs" / "study-magaf.json"
)


@pytest.fixture(scope="module")
def cases() -> tuple[RetrievedQuestion, ...]:
    return retrieve_dataset(controlled_collection(), [HYBRID], [K]).questions(HYBRID, K)


def test_the_paper_s_predictor_is_as_good_as_printed_on_the_test_part(cases):
    parts = parts_of(cases, 42)
    assert (len(parts.fit), len(parts.calibrate), len(parts.test)) == (1790, 382, 384)
    complete = np.array([case.complete for case in cases])
    (model,) = (one for one in MODELS if one.name == "MAGAF-calibrated")
    annotations, _ = question_annotations(cases, parts, 42)
    table = features_of(cases, annotations[""])
    assert (table[:, [one.name for one in MAGAF].index("top1")] == 1).all()  # as in its Table 10
    output, _ = model_outputs(model, table, complete, parts, 42)
    predictions = Predictions(complete[parts.test].astype(float), output.p)
    auroc, ece = interval(predictions, "auroc", seed=42), interval(predictions, "ece", seed=42)
    assert auroc.low is not None
    assert (
        auroc.low >= paper.TABLE_4.figures["MAGAF-calibrated"]["auroc"]
    )  # the whole interval is above
    assert ece.value is not None
    assert ece.value <= paper.TABLE_4.figures["MAGAF-calibrated"]["ece"]


def test_the_parts_share_no_question_and_keep_the_mix_of_types(cases):
    parts = parts_of(cases, 42)
    texts = [
        {cases[at].question.text for at in rows}
        for rows in (parts.fit, parts.calibrate, parts.test)
    ]
    assert len(set.union(*texts)) == sum(map(len, texts))
    counts = {
        kind: sum(cases[at].gold.kind == kind for at in parts.test)
        for kind in ("comparison", "inference", "null")
    }
    assert counts == {kind: paper.TABLE_5.figures[kind]["n"] for kind in counts}


# ---- a small collection


@pytest.fixture(scope="module")
def small(few_trees: None) -> Setting:
    """What is shown does not depend on the size of the forests, the paper's of 180 trees neither."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            PAPER_MODELS,
            "magaf",
            lambda seed: RandomForestClassifier(5, max_depth=5, random_state=seed),
        )
        made = measure(controlled_collection(documents=87), seed=7, folds=False)
    return Setting(made, with_paper=True)


def test_every_table_and_figure_of_the_paper_is_there_and_ours_beside_it(small):
    sections = study._sections(small)
    titles = [one.title for section in sections for one in section.shown]
    for wanted in (
        "Table 1",
        "Table 3",
        *(f"Table {at}" for at in range(4, 12)),
        *(f"Figure {at}" for at in range(1, 8)),
    ):
        assert any(title.startswith(f"{wanted}.") for title in titles), wanted
    for beyond in (
        "Our gate against",
        "Null questions",
        "Hop count given, type predicted",
        "What one expansion",
        "Risk",
        "ROC",
    ):
        assert any(title.startswith(beyond) for title in titles), beyond


def test_the_gate_is_judged_on_the_same_questions_as_the_paper_s_predictors(small):
    measured = small.measured
    sizes = {len(output.p) for output in measured.rows.values()} | {
        len(measured.complete),
        len(measured.actions),
    }
    assert sizes == {len(measured.parts.test)}
    names = {f"MAGAF-calibrated{one}" for one in ("", ", gold hops", ", predicted")}
    assert set(measured.rows) >= names | {"our gate"}


def test_no_null_question_is_rejected_where_the_best_score_is_one(small):
    table: Any
    (table,) = null_rejection(small)
    assert {row[1].measured.value for row in table.rows} == {0.0}
    cell: Any = partial(table_cell, table)
    assert cell("hybrid-metagraph", "own scores").value == 0.0
    assert cell("tfidf", "own scores").value > 0.0


def test_the_drawn_question_has_its_attention_and_its_edges(small):
    drawn = question_graph(small)
    attention = [float(one.label) for one in drawn.arrows if one.head]
    assert sum(attention) == pytest.approx(1.0, abs=0.002)
    assert attention == sorted(attention, reverse=True)
    assert all(0 < float(one.label) <= 1.45 for one in drawn.arrows if not one.head)


def test_the_first_reading_of_the_density_is_the_feature_s(small):
    measured = small.measured
    feature = measured.features[:, [one.name for one in MAGAF].index("graph_density_top4")]
    weight = next(iter(READINGS.values()))
    read = [mean_weight(documents, weight) for documents in measured.top_documents]
    np.testing.assert_allclose(read, feature, atol=1e-6)
    assert mean_weight((), weight) == 0
    table = density_readings(small)
    assert [row[0] for row in table.rows] == list(READINGS)
    assert "Nearest to the paper's two means: " in table.note


def test_what_is_complete_stays_complete_after_an_expansion(small):
    assert (small.measured.complete <= small.measured.after).all()
    assert (small.measured.share >= small.measured.complete).all()


# ---- the stored study


@pytest.fixture(scope="module")
def stored() -> Study:
    if not STORED.is_file():
        pytest.skip("no stored study: make results writes it")
    return Study.load(STORED)
