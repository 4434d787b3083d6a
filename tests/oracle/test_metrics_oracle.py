"""Our figures against someone else's: scikit-learn, the plainest loops we could write, and
ir-measures where it is installed.

Why these: docs/decisions/0003-data-of-papers.md.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import metrics as theirs

from suffice.evaluation.metrics import Predictions, judge_rankings, per_question, score

DOCUMENTS = [f"d{at}" for at in range(40)]
KS = (1, 2, 4, 8, 40)


def rankings(seed: int) -> tuple[list[list[str]], list[set[str]]]:
    random = np.random.default_rng(seed)
    ranked = [random.permutation(DOCUMENTS).tolist() for _ in range(150)]
    gold = [
        set(random.choice(DOCUMENTS, random.integers(1, 9), replace=False).tolist()) for _ in ranked
    ]
    return ranked, gold


RANKED, GOLD = rankings(7)
JUDGED = judge_rankings(RANKED, GOLD, depth=len(DOCUMENTS))
TRUE = np.array([[document in gold for document in DOCUMENTS] for gold in GOLD])
RANK = np.array([[ids.index(document) for document in DOCUMENTS] for ids in RANKED])


@pytest.mark.parametrize("k", KS)
def test_recall_precision_ndcg_and_complete_equal_scikit_learn(k):
    shown = k > RANK
    assert score(JUDGED, f"recall@{k}") == pytest.approx(
        theirs.recall_score(TRUE, shown, average="samples")
    )
    assert score(JUDGED, f"precision@{k}") == pytest.approx(
        theirs.precision_score(TRUE, shown, average="samples")
    )
    assert score(JUDGED, f"ndcg@{k}") == pytest.approx(
        theirs.ndcg_score(TRUE, -RANK.astype(float), k=k)
    )
    # How deep one must read to see all that is relevant: complete when that is at most k.
    depth = [theirs.coverage_error(TRUE[[at]], -RANK[[at]]) for at in range(len(TRUE))]
    assert per_question(JUDGED, f"complete@{k}").tolist() == [
        float(needed <= k) for needed in depth
    ]


def test_average_precision_over_the_whole_ranking_equals_scikit_learn():
    assert score(JUDGED, "map") == pytest.approx(
        theirs.label_ranking_average_precision_score(TRUE, -RANK.astype(float))
    )


@pytest.mark.parametrize("k", KS)
def test_mrr_map_and_hits_equal_the_textbook_loop(k):
    for at, (ids, gold) in enumerate(zip(RANKED, GOLD)):
        ranks = [rank for rank, document in enumerate(ids[:k], start=1) if document in gold]
        assert per_question(JUDGED, f"hits@{k}")[at] == bool(ranks)
        assert per_question(JUDGED, f"mrr@{k}")[at] == pytest.approx(1 / ranks[0] if ranks else 0)
        precisions = [number / rank for number, rank in enumerate(ranks, start=1)]
        assert per_question(JUDGED, f"map@{k}")[at] == pytest.approx(sum(precisions) / len(gold))


@pytest.mark.parametrize("k", [4, 10])
def test_the_official_figures_equal_a_loop_that_follows_the_multihop_rag_script(k):
    maps, first, any_hit = [], [], []
    for ids, gold in zip(RANKED, GOLD):
        left, gained, found_at = set(gold), 0.0, 0
        for rank, document in enumerate(ids[:k], start=1):
            if document in gold:
                found_at = found_at or rank
                gained += (document in left) / rank
                left.discard(document)
        maps.append(gained / min(len(gold), k))
        first.append(1 / found_at if found_at else 0)
        any_hit.append(found_at > 0)
    assert score(JUDGED, f"official_map@{k}") == pytest.approx(np.mean(maps))
    assert score(JUDGED, f"official_mrr@{k}") == pytest.approx(np.mean(first))
    assert score(JUDGED, f"official_hits@{k}") == pytest.approx(np.mean(any_hit))


# ---- probabilities


def predictions(seed: int, *, ties: bool) -> Predictions:
    random = np.random.default_rng(seed)
    p = random.integers(0, 11, 300) / 10 if ties else random.random(300)
    return Predictions((random.random(300) < 0.2 + 0.6 * p).astype(int), p)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_probability_metrics_equal_scikit_learn(seed, ties):
    made = predictions(seed, ties=ties)
    y, p = made.labels, made.probabilities
    chosen = p >= 0.5
    for name, expected in {
        "accuracy": theirs.accuracy_score(y, chosen),
        "precision": theirs.precision_score(y, chosen),
        "recall": theirs.recall_score(y, chosen),
        "f1": theirs.f1_score(y, chosen),
        "auroc": theirs.roc_auc_score(y, p),
        "auprc": theirs.average_precision_score(y, p),
        "brier": theirs.brier_score_loss(y, p),
        "log_loss": theirs.log_loss(y, p),
        "mae": theirs.mean_absolute_error(y, p),
    }.items():
        assert score(made, name) == pytest.approx(expected), name


@pytest.mark.parametrize("seed", range(5))
def test_calibration_error_and_risk_equal_plain_loops(seed):
    made = predictions(seed, ties=False)
    y, p = made.labels, made.probabilities
    gap = 0.0
    for low in range(10):
        inside = (p >= low / 10) & (p < (low + 1) / 10)
        gap += abs(p[inside].mean() - y[inside].mean()) * inside.mean() if inside.any() else 0
    assert score(made, "ece") == pytest.approx(gap)

    risks = [
        np.mean([1 - y[at] for at in np.argsort(-p)[:answered]])
        for answered in range(1, len(p) + 1)
    ]
    assert score(made, "aurc") == pytest.approx(np.mean(risks))
    kept = [answered / len(p) for answered, risk in enumerate(risks, start=1) if risk <= 0.3]
    assert score(made, "coverage_at_risk@0.3") == pytest.approx(max(kept, default=0))


def test_one_class_only_is_undefined_here_where_scikit_learn_warns():
    one_class = Predictions([0, 0], [0.1, 0.9])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(theirs.roc_auc_score([0, 0], [0.1, 0.9]))
    assert score(one_class, "auroc") is None
