"""Published systems beside a run: what they report, and what is known of their index."""

from __future__ import annotations

from suffice.evaluation.retrieval_runs import RetrievalRun, SystemResult
from suffice_research.hipporag import PAPERS, tables_beside


def test_published_systems_stand_beside_a_run_with_their_index() -> None:
    found = SystemResult("bm25", ((1,),), (1.0,))
    run = RetrievalRun("musique", (5,), ("q",), (None,), (2,), (found,))
    measured, published = tables_beside(run)
    assert measured.rows[0][0] == "bm25"
    rows = {row[0]: row[1:] for row in published.rows}
    assert set(rows) == {name for name, one in PAPERS.items() if "musique" in one}
    assert rows["PropRAG"] == (0.773, "at least one call of a language model a passage")
    assert tables_beside(run, narrow=True) == []
