"""The papers' figures, and tables of a run that stand beside them."""

from __future__ import annotations

import pytest
from docs.generators.markdown import table_texts
from tests.test_tables import small_run

from suffice_research.published import PublishedTable, beside_paper


def test_a_papers_figure_and_the_difference_stand_beside_ours_and_missing_ones_are_dashes():
    run = small_run()
    paper = PublishedTable("Paper", "Table 9", "made up", {"tfidf": {"recall@2": 0.3}})
    single = beside_paper(run, ["recall"], paper)
    assert single.columns == ("retriever", "k", "measured", "paper", "difference")
    assert table_texts(single)[0] == ["tfidf", "2", "0.333", "0.300", "+0.033"]
    assert table_texts(single)[1] == ["tfidf", "4", "0.333", "--", "--"]
    wide = beside_paper(run, ["recall", "mrr"], paper)
    assert wide.columns[2:] == ("recall", "mrr")
    assert table_texts(wide)[0][2:] == ["0.333 (0.300)", "0.500"]
    assert wide.records()[0]["recall"] == {"value": pytest.approx(1 / 3), "paper": 0.3}
