"""The papers' figures, and tables of a run that stand beside them."""

from __future__ import annotations

import re
from functools import partial

import pytest

from suffice.evaluation.report import page_html, run_page
from suffice.evaluation.retrieval_runs import PUBLISHED_TABLES, RetrievalRun, SystemResult
from suffice_research.frames import published
from suffice_research.magaf import published as magaf_published
from suffice_research.published import PublishedTable, beside_paper, beside_papers, paper_tables


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


def test_paper_tables_come_one_a_metric_at_the_cutoffs_that_both_have():
    tables = paper_tables(small_run(), magaf_published.TABLE_3)
    assert [table.title.split()[0] for table in tables] == [
        "recall",
        "complete",
        "ndcg",
        "mrr",
        "null_rejection",
    ]
    assert [row[1] for row in tables[0].rows] == [2, 4, 2, 4]
    assert [row[:2] for row in tables[4].rows] == [("tfidf", None), ("hybrid-metagraph", None)]
    assert "not the same thing" in tables[4].note
    assert "not the same thing" not in tables[0].note
    assert paper_tables(small_run(), published.TABLE_4)[0].rows[0][1] == 4
    assert paper_tables(small_run(ks=(5, 6)), published.TABLE_4) == []


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published figures of MAGAF as those of the village."""
    known = {"village": partial(beside_papers, papers=(magaf_published.TABLE_3,))}
    monkeypatch.setattr(PUBLISHED_TABLES, "_factories", known)


@pytest.mark.usefixtures("beside")
def test_the_report_shows_the_paper_beside_the_measured_and_how_to_make_it_again():
    command = "suffice evaluate retrieval --collection controlled"
    page = page_html(run_page(small_run(data={"village.jsonl": "ab" * 32}), command=command))
    text = re.sub(r"<[^>]+>", " ", page)
    for shown in (
        "Retrieval on village",
        "0.333 [",
        "0.417",  # the paper's recall@4 of TF-IDF
        "-0.084",  # the difference
        "suffice evaluate retrieval --collection controlled",
        "ab" * 32,
        "complete@4 against tfidf",
        "1 question failed",
    ):
        assert shown in text, shown
    assert page.count("<svg") == 3


@pytest.mark.usefixtures("beside")
def test_the_same_run_gives_the_same_report_beside_the_paper():
    assert page_html(run_page(small_run())) == page_html(run_page(small_run()))
