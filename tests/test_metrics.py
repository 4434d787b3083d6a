"""Metrics: small rankings and probabilities whose figures can be worked out on paper."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from tests.values import known

from suffice.errors import InputError
from suffice.evaluation.metrics import (
    METRICS,
    Predictions,
    Rankings,
    ece_by_chance,
    exact_match,
    judge_rankings,
    normalize_answer,
    per_question,
    probability_metric,
    ranking_metric,
    reliability,
    score,
    token_f1,
)
from suffice_research.curves import ece_debiased, risk_coverage

# Gold on ranks 1 and 3 of two; nothing found of two; a null question.
STORY = judge_rankings(
    [["a", "x", "b", "y"], ["x", "y", "z", "w"], ["x"]], [{"a", "b"}, {"c", "d"}, set()], depth=4
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("recall@2", [0.5, 0]),
        ("recall@4", [1, 0]),
        ("coverage@4", [1, 0]),
        ("complete@2", [0, 0]),
        ("complete@4", [1, 0]),
        ("strict@4", [1, 0]),
        ("precision@4", [0.5, 0]),
        ("hits@1", [1, 0]),
        ("mrr@4", [1, 0]),
        ("map@4", [(1 + 2 / 3) / 2, 0]),
        ("official_map@4", [(1 + 1 / 3) / 2, 0]),
        ("official_hits@4", [1, 0]),
        ("official_mrr@4", [1, 0]),
        ("ndcg@4", [(1 + 0.5) / (1 + 1 / np.log2(3)), 0]),
    ],
)
def test_a_ranking_gives_the_figure_worked_out_by_hand_and_nothing_for_a_null_question(
    name, expected
):
    values = per_question(STORY, name)
    assert values[:2] == pytest.approx(expected)
    assert np.isnan(values[2])
    assert score(STORY, name) == pytest.approx(np.mean(expected))


def test_one_hit_that_brings_two_gold_facts_counts_both_in_recall_and_in_the_official_map():
    one_chunk = Rankings([[2, 0]], [2])
    assert score(one_chunk, "recall@1") == 1
    assert score(one_chunk, "official_map@2") == 1
    assert score(one_chunk, "precision@2") == 0.5


def test_null_rejection_counts_null_questions_whose_best_score_stays_below_the_threshold():
    scores = [
        9.0,
        0.2,
        0.7,
        -np.inf,
        np.nan,
    ]  # a real question, low, high, nothing found, no score known
    judged = Rankings(np.zeros((5, 1)), [1, 0, 0, 0, 0], scores)
    assert score(judged, "null_rejection") == pytest.approx(2 / 3)
    assert score(judged, "null_rejection@0.1") == pytest.approx(1 / 3)


def test_figures_over_no_questions_are_none_and_not_zero():
    assert score(judge_rankings([], [], depth=3), "recall@3") is None
    assert score(judge_rankings([["x"]], [set()], depth=3), "complete@3") is None
    assert score(STORY.rows(np.array([0, 1])), "null_rejection") is None
    assert all(
        score(Predictions([], []), metric.name) is None
        for metric in METRICS
        if hasattr(metric, "fractions")
    )


def test_a_document_ranked_twice_counts_once_and_a_name_without_k_reads_the_whole_ranking():
    twice = judge_rankings([["a", "a", "b"]], [{"a", "b"}], depth=3)
    assert twice.relevance.tolist() == [[1, 1, 0]]
    assert score(twice, "recall") == 1


def test_asking_deeper_than_the_ranking_was_kept_is_an_error_and_not_a_low_figure():
    with pytest.raises(InputError, match="kept 4 deep"):
        score(STORY, "recall@5")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("recal@4", "no metric"),
        ("recall@0", "at least 1"),
        ("recall@four", "at least 1"),
        ("recall@", "at least 1"),
        ("recall@2.5", "at least 1"),
        ("recall@-1", "at least 1"),
        ("recall@1e400", "at least 1"),
        ("null_rejection@nan", "a number"),
        ("", "no metric"),
    ],
)
def test_a_wrong_ranking_metric_name_says_what_was_expected(name, says):
    with pytest.raises(InputError, match=says) as caught:
        ranking_metric(name)
    if name == "recal@4":
        assert "recall" in caught.value.hint


@pytest.mark.parametrize(
    "name",
    ["auroc@3", "ece@0", "ece@100000", "coverage_at_risk@2", "f1@inf", "recall@4x", "ndcg@4"],
)
def test_a_wrong_probability_metric_name_is_an_error(name):
    with pytest.raises(InputError):
        probability_metric(name)


def test_a_metric_name_prints_as_it_is_written():
    assert [str(ranking_metric(name)) for name in ("recall@4", "mrr")] == ["recall@4", "mrr"]
    assert str(probability_metric("f1@0.29")) == "f1@0.29"


@pytest.mark.parametrize(
    ("relevance", "gold"),
    [
        ([[1, np.nan]], [2]),
        ([[1, 0]], [np.inf]),
        ([1, 0], [2]),
        ([[1, 0]], [[2]]),
        ([[1, 0]], [2, 2]),
        ([[-1, 0]], [2]),
        ([[1, 0]], [1.5]),
        ([[1, 1]], [1]),
        ([["a", "b"]], [1]),
        ([[1], [1, 0]], [1, 1]),
    ],
)
def test_broken_judgements_are_input_errors(relevance, gold):
    with pytest.raises(InputError):
        Rankings(relevance, gold)


@pytest.mark.parametrize(("ranked", "gold", "depth"), [([["a"]], [], 2), ([["a"]], [{"a"}], 0)])
def test_judging_needs_one_ranking_a_question_and_a_depth(ranked, gold, depth):
    with pytest.raises(InputError):
        judge_rankings(ranked, gold, depth=depth)


# ---- probabilities

FOUR = Predictions([1, 0, 1, 0], [0.9, 0.8, 0.4, 0.1])


def test_equal_probabilities_are_one_step_whatever_the_order():
    for labels in ([1, 0, 1, 0], [0, 0, 1, 1]):
        constant = Predictions(labels, [0.5] * 4)
        assert [
            score(constant, name) for name in ("auroc", "auprc", "aurc", "coverage_at_risk")
        ] == [0.5, 0.5, 0.5, 0.0]


def test_a_sure_prediction_that_is_wrong_costs_much_but_not_infinitely():
    assert 30 < (score(Predictions([0], [1.0]), "log_loss") or 0) < 40


def test_the_risk_coverage_curve_starts_at_the_surest_answer_and_ends_at_all_of_them():
    curve = risk_coverage(FOUR)
    assert curve.thresholds.tolist() == [0.9, 0.8, 0.4, 0.1]
    assert curve.coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert curve.risk.tolist() == pytest.approx([0, 1 / 2, 1 / 3, 1 / 2])
    assert len(risk_coverage(Predictions([], [])).risk) == 0


def test_reliability_bins_hold_all_questions_and_empty_bins_have_no_figure():
    bins = reliability(Predictions([1, 0, 1], [1.0, 0.95, 0.0]))
    assert [one.count for one in bins] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 2]
    assert bins[9].observed == 0.5
    assert bins[1].predicted is None


def test_fractions_fit_mae_but_not_auroc():
    partly = Predictions([0.5, 1.0], [0.4, 0.8])
    assert score(partly, "mae") == pytest.approx(0.15)
    for name in ("auroc", "f1", "log_loss"):
        with pytest.raises(InputError, match="0 or 1"):
            score(partly, name)


@pytest.mark.parametrize(
    ("labels", "probabilities"),
    [
        ([1], [np.nan]),
        ([1], [1.2]),
        ([2], [0.5]),
        ([1, 0], [0.5]),
        ([[1]], [[0.5]]),
        (["yes"], [0.5]),
        ([-1], [0.5]),
    ],
)
def test_broken_predictions_are_input_errors(labels, probabilities):
    with pytest.raises(InputError):
        Predictions(labels, probabilities)


def test_a_debiased_ece_is_nearer_to_the_true_one_than_the_plain():
    """Two bins of a forecast that is 0.05 off in each, and of one that is true."""
    rng, p = np.random.default_rng(0), np.repeat([0.35, 0.65], 50)
    for off in (0.0, 0.05):
        drawn = [(rng.random(100) < p + off).astype(float) for _ in range(300)]
        plain = float(np.mean([known(score(Predictions(one, p), "ece")) for one in drawn]))
        debiased = float(np.mean([known(ece_debiased(one, p)) for one in drawn]))
        assert abs(debiased - off) < abs(plain - off)
    assert ece_debiased([0, 1], [0.0, 1.0]) == 0
    assert ece_debiased([], []) is None
    with pytest.raises(InputError):
        ece_debiased([1], [1.5])


def test_an_honest_forecast_has_an_ece_by_chance_that_shrinks_with_the_questions():
    assert ece_by_chance([0.5]) == pytest.approx(0.5)  # one coin: always half off
    assert ece_by_chance([0.25, 0.25], draws=20_000) == pytest.approx(
        0.25 * 9 / 16 + 0.25 * 6 / 16 + 0.75 / 16, abs=0.005
    )
    few, many = (known(ece_by_chance(np.linspace(0, 1, n))) for n in (100, 10_000))
    assert 0.05 < few < 0.15
    assert many < 0.015
    assert ece_by_chance([0.0, 1.0]) == 0
    assert ece_by_chance([]) is None
    with pytest.raises(InputError):
        ece_by_chance([1.5])


# ---- answers


def test_answers_are_compared_without_articles_case_and_punctuation():
    assert normalize_answer("The  Beatles!") == "beatles"
    assert exact_match(["the beatles.", "No"], [["Beatles"], ["yes", "no"]]).tolist() == [1, 1]


def test_token_f1_takes_the_closest_gold_answer_and_handles_empty_ones():
    found = token_f1(["New York City", "", "x", "a"], [["York", "the New York"], [""], [], ["b"]])
    assert found[:2].tolist() == pytest.approx([0.8, 1.0])
    assert np.isnan(found[2])
    assert found[3] == 0


@pytest.mark.parametrize(("given", "gold"), [("yes", [["yes"]]), (["yes"], ["yes"]), (["yes"], [])])
def test_answers_of_the_wrong_shape_are_input_errors(given, gold):
    with pytest.raises(InputError):
        exact_match(given, gold)


def test_every_metric_has_a_meaning_and_a_name_of_its_own_in_its_table():
    for kind in ("values", "function"):
        names = [
            metric.name for metric in METRICS if (kind == "function") == hasattr(metric, "function")
        ]
        assert len(names) == len(set(names)) > 10
    assert all(metric.meaning.endswith(".") for metric in METRICS)


def test_metrics_do_not_load_what_draws_or_renders():
    code = (
        "import sys, suffice.evaluation.metrics, suffice.evaluation.report;"
        "print([m for m in ('matplotlib', 'jinja2', 'rich', 'sklearn') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
