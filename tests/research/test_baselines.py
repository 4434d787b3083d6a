"""The baselines: right where one can check by hand, fitted on other folds only, and as good as the
papers say on their data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from suffice.datasets.gold import Gold
from suffice.errors import InputError
from suffice.evaluation.gate_evaluation import grouped_folds
from suffice.evaluation.metrics import Predictions, score
from suffice.evaluation.searching import RetrievedQuestion, retrieve_dataset, to_labelled_question
from suffice.types import Document, Evidence, Hit, Question
from suffice_research.baselines import (
    BASELINES,
    baseline_predictions,
    cross_encoder_figures,
    score_figures,
)
from suffice_research.controlled import controlled_collection


def case(
    scores: Sequence[float | None],
    *,
    gold: int = 1,
    background: float = 2.0,
    question: str = "who was it then",
) -> RetrievedQuestion:
    """Hits d0, d1, ... with these scores; the question needs the first `gold` of d0, d1, ..."""
    documents = {
        f"d{at}": Document(f"d{at}", f"text {at}", f"Title {at}") for at in range(len(scores))
    }
    parsed = Question(question, question)
    hits = tuple(Hit(f"d{at}", one) for at, one in enumerate(scores))
    needed = frozenset(f"d{at}" for at in range(gold))
    return RetrievedQuestion(
        parsed,
        Gold("q", needed, hops=gold),
        Evidence(parsed, hits, documents),
        background=background,
    )


def test_the_figures_of_a_short_list() -> None:
    top, spread, margin, nqc, wig = score_figures([case([5.0, 3.0, 1.0])])[0]
    assert (top, margin) == (5.0, 2.0)
    assert spread == pytest.approx(np.std([5.0, 3.0, 1.0]))
    assert nqc == pytest.approx(spread / 2.0)
    assert wig == pytest.approx((3.0 - 2.0) / np.sqrt(4))


def test_lists_without_hits_or_scores_count_as_zero() -> None:
    rows = score_figures(
        [case([]), case([None, None]), case([float("nan")]), case([1.0], background=0.0)]
    )
    assert np.isfinite(rows).all()
    assert rows[0, 0] == rows[1, 0] == rows[2, 0] == 0.0


def test_complete_means_every_needed_document_and_never_a_null_question() -> None:
    assert case([1.0, 1.0], gold=2).complete
    assert not case([1.0], gold=2).complete
    assert not case([1.0], gold=0).complete


class Reader:
    """A stand-in for a cross-encoder: how often the text says "text"."""

    def score(self, question: str, texts: Sequence[str]) -> np.ndarray:
        return np.array([float(text.count("text") + text.endswith("1")) for text in texts])


def test_the_cross_encoder_sees_each_hit_and_all_of_them() -> None:
    best, mean, whole = cross_encoder_figures([case([1.0, 1.0, 1.0]), case([])], Reader())[0]
    assert (best, mean, whole) == (2.0, pytest.approx(4 / 3), 3.0)


def many(count: int = 120) -> list[RetrievedQuestion]:
    """Complete where the top score is high: something to learn."""
    rng = np.random.default_rng(3)
    return [
        case(
            [5.0 * (at % 2) + rng.random(), rng.random()],
            gold=1 if at % 2 else 3,
            question=f"question number {at}",
        )
        for at in range(count)
    ]


def test_every_baseline_gives_a_probability_for_every_case() -> None:
    cases = many(80)
    complete = [one.complete for one in cases]
    folds = grouped_folds([one.question.text for one in cases], complete, 2, 1)
    found = baseline_predictions(cases, folds, reranker=Reader())
    assert list(found)[: len(BASELINES)] == [one.name for one in BASELINES]
    assert len(found) == len(BASELINES) + 3
    for p in found.values():
        assert ((p >= 0) & (p <= 1)).all()
    assert score(Predictions(complete, found["top score"]), "auroc") == pytest.approx(1.0)


def test_the_label_of_a_held_out_case_changes_nothing_about_it() -> None:
    cases = many(80)
    folds = grouped_folds(
        [one.question.text for one in cases], [one.complete for one in cases], 2, 1
    )[:1]
    before = baseline_predictions(cases, folds, names=["MAGAF", "NQC"])
    held_out = folds[0][1]
    for at in held_out:
        one = cases[at]
        cases[at] = RetrievedQuestion(
            one.question,
            Gold("q", frozenset({"elsewhere"})),
            one.evidence,
            background=one.background,
        )
    after = baseline_predictions(cases, folds, names=["MAGAF", "NQC"])
    for name in before:
        np.testing.assert_allclose(before[name][held_out], after[name][held_out])


def test_one_class_only_is_its_share() -> None:
    cases = [case([1.0], question=f"q {at}") for at in range(12)]
    folds = grouped_folds([one.question.text for one in cases], [True] * 12, 3, 0)
    assert (baseline_predictions(cases, folds, names=["margin"])["margin"] == 1.0).all()


def test_an_unknown_baseline_is_named_with_its_neighbours() -> None:
    with pytest.raises(InputError, match="no baseline is named 'MAGAV'") as error:
        baseline_predictions(many(20), [], names=["MAGAV"])
    assert "MAGAF" in error.value.hint


def test_cases_of_a_collection_hold_what_was_retrieved() -> None:
    found = retrieve_dataset(
        controlled_collection(documents=120), ["tfidf", "bm25"], [2, 4], limit=20
    )
    assert sorted(found.by) == [("bm25", 2), ("bm25", 4), ("tfidf", 2), ("tfidf", 4)]
    for short, long in zip(found.questions("bm25", 2), found.questions("bm25", 4)):
        assert short.evidence.hits == long.evidence.hits[:2]
        assert short.deeper[:2] == short.evidence.hits
        assert set(short.gold_titles) == short.gold.doc_ids
        assert all(hit.doc_id in short.evidence.documents for hit in short.deeper)
    labelled = to_labelled_question(found.questions("bm25", 4)[0])
    assert labelled.needed == found.questions("bm25", 4)[0].gold.doc_ids


def test_hits_that_did_not_come_cannot_be_judged() -> None:
    with pytest.raises(InputError, match="came without hits"):
        retrieve_dataset(controlled_collection(documents=120), ["given"], [4], limit=3)
    with pytest.raises(InputError, match="expected at least one"):
        retrieve_dataset(controlled_collection(documents=120), [], [4])
