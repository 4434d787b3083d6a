"""What must hold for every ranking and every set of probabilities."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from suffice.evaluation.metrics import (
    PROBABILITY,
    RANKING,
    Predictions,
    Rankings,
    judge_rankings,
    per_question,
    score,
    token_f1,
)
from suffice.evaluation.retrieval_runs import RetrievalRun, SystemResult
from suffice.evaluation.significance import interval, paired_difference

BY_K = [metric.name for metric in RANKING if metric.at == "k"]
GROWING = ["recall", "complete", "hits", "mrr", "map", "official_hits", "official_mrr"]

document = st.sampled_from([f"d{at}" for at in range(12)])
ranking = st.lists(document, max_size=8)
golds = st.sets(document, max_size=5)
questions = st.lists(st.tuples(ranking, golds), min_size=1, max_size=12)


def judged(cases: list[tuple[list[str], set[str]]]) -> Rankings:
    return judge_rankings([ids for ids, _ in cases], [gold for _, gold in cases], depth=8)


@given(questions)
def test_every_figure_lies_between_zero_and_one_and_is_missing_exactly_for_null_questions(cases):
    made = judged(cases)
    for name in BY_K:
        for k in (1, 3, 8):
            values = per_question(made, f"{name}@{k}")
            assert (np.isnan(values) == (made.gold == 0)).all()
            assert ((values[made.gold > 0] >= 0) & (values[made.gold > 0] <= 1 + 1e-12)).all()


@given(questions)
def test_reading_deeper_never_loses_what_was_found(cases):
    made = judged(cases)
    real = made.gold > 0
    for name in GROWING:
        curve = np.stack([per_question(made, f"{name}@{k}")[real] for k in range(1, 9)])
        assert (np.diff(curve, axis=0) >= -1e-12).all()


@given(questions)
def test_complete_is_the_hardest_and_hits_the_easiest(cases):
    made = judged(cases)
    real = made.gold > 0
    for k in (1, 4, 8):
        complete, recall, hits = (
            per_question(made, f"{name}@{k}")[real] for name in ("complete", "recall", "hits")
        )
        assert (complete <= recall).all()
        assert (recall <= hits).all()
        assert (complete == (recall == 1)).all()


# ---- probabilities

pairs = st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1)), min_size=1, max_size=30)


def made_of(rows: list[tuple[int, float]]) -> Predictions:
    return Predictions([label for label, _ in rows], [p for _, p in rows])


@given(pairs)
def test_every_probability_metric_is_in_its_range_or_undefined(rows):
    for metric in PROBABILITY:
        value = score(made_of(rows), metric.name)
        assert value is None or 0 <= value <= (40 if metric.name == "log_loss" else 1 + 1e-9)


# ---- intervals, answers, documents


@given(questions, st.integers(0, 99))
def test_an_interval_is_ordered_and_stays_inside_the_range(cases, seed):
    found = interval(judged(cases), "recall@4", resamples=50, seed=seed)
    if found.value is not None:
        assert 0 <= (found.low or 0) <= (found.high or 0) <= 1
        assert found == interval(judged(cases), "recall@4", resamples=50, seed=seed)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20))
def test_swapping_the_two_systems_turns_the_sign_and_keeps_p(rows):
    first, second = [one for one, _ in rows], [other for _, other in rows]
    there, back = (
        paired_difference(first, second, resamples=60),
        paired_difference(second, first, resamples=60),
    )
    assert math.isclose(there.value or 0, -(back.value or 0), abs_tol=1e-12)
    assert there.p == back.p


@given(st.text(), st.text())
def test_token_f1_is_symmetric_and_one_for_the_same_text(one, other):
    assert token_f1([one], [[other]])[0] == token_f1([other], [[one]])[0]
    assert token_f1([one], [[one]])[0] == 1


@given(questions, st.text(max_size=20))
def test_a_run_comes_back_from_its_document_as_it_was(tmp_path_factory, cases, name):
    made = judged(cases)
    ranks = tuple(tuple((np.flatnonzero(row) + 1).tolist()) for row in made.relevance)
    scores = tuple([-math.inf, None, 0.25][at % 3] for at in range(len(cases)))
    ids = tuple(f"q{at}" for at in range(len(cases)))
    system = SystemResult(name, ranks, scores, {"q0": name})
    run = RetrievalRun(
        "set",
        (2, 8),
        ids,
        (None,) * len(cases),
        tuple(made.gold.tolist()),
        (system,),
        timings={name: 0.5},
    )
    path = tmp_path_factory.mktemp("runs") / "run.json"
    assert RetrievalRun.load(run.save(path)) == run
    assert (run.rankings(name).relevance == made.relevance).all()
