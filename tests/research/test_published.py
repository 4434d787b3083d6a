"""The papers' figures, and tables of a run that stand beside them."""

from __future__ import annotations

import pytest

from suffice.evaluation.retrieval_runs import RetrievalRun, SystemResult
from suffice_research.published import PublishedTable, beside_paper


def small_run(**options: object) -> RetrievalRun:
    """Four questions, the last one null; `tfidf` finds half of what `hybrid-metagraph` finds."""
    systems = (
        SystemResult("tfidf", ((1,), (), (2,), ()), (1.0, 1.0, 1.0, 0.9)),
        SystemResult(
            "hybrid-metagraph",
            ((1, 2), (3,), (1, 4), ()),
            (1.0, 1.0, 1.0, 0.2),
            {"q1": "TimeoutError: slow"},
        ),
    )
    kinds = ("bridge", "bridge", "comparison", "null")
    settings = {
        "dataset": "village",
        "ks": (2, 4),
        "question_ids": ("q0", "q1", "q2", "q3"),
        **options,
    }
    return RetrievalRun(kinds=kinds, gold=(2, 1, 2, 0), systems=systems, **settings)  # type: ignore[arg-type]


def test_a_papers_figure_and_the_difference_stand_beside_ours_and_missing_ones_are_dashes():
    run = small_run()
    paper = PublishedTable("Paper", "Table 9", "made up", {"tfidf": {"recall@2": 0.3}})
    single = beside_paper(run, ["recall"], paper)
    assert single.columns == ("retriever", "k", "measured", "paper", "difference")
    assert single.texts[0] == ["tfidf", "2", "0.333", "0.300", "+0.033"]
    assert single.texts[1] == ["tfidf", "4", "0.333", "--", "--"]
    wide = beside_paper(run, ["recall", "mrr"], paper)
    assert wide.columns[2:] == ("recall", "mrr")
    assert wide.texts[0][2:] == ["0.333 (0.300)", "0.500"]
    assert wide.records()[0]["recall"] == {"value": pytest.approx(1 / 3), "paper": 0.3}
