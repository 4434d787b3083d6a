"""Tables: how figures are printed, that nothing hostile gets through, and the papers' figures beside ours."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from suffice.errors import InputError
from suffice.evaluation.retrieval import (
    RetrievalRun,
    SystemResult,
    comparison_table,
    kind_table,
    retrieval_table,
)
from suffice.evaluation.significance import Difference, Interval
from suffice.evaluation.tables import SignedNumber, Table, format_cell
from suffice_research.frames import published
from suffice_research.magaf import published as magaf_published
from suffice_research.published import PublishedTable, beside_paper, paper_tables


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


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (0.4174, "0.417"),
        (None, "--"),
        (float("nan"), "--"),
        (2556, "2,556"),
        ("tfidf", "tfidf"),
        (Interval(0.417, 0.3951, 0.4349), "0.417 [0.40, 0.43]"),
        (Interval(None), "--"),
        (Interval(0.5), "0.500"),
        (SignedNumber(0.0124), "+0.012"),
        (SignedNumber(-0.0001), "+0.000"),
        (SignedNumber(None), "--"),
        (Difference(-0.02, -0.05, 0.01, 0.2), "-0.020 [-0.05, +0.01]"),
        (Difference(None), "--"),
    ],
)
def test_a_cell_reads_as_the_house_prints_it(cell, text):
    assert format_cell(cell) == text


HOSTILE = Table("a | <b>", ("name", "x"), (("[red]<script>|`\n", 0.5), ("\\", None)), "note & more")


def test_hostile_names_stay_text_in_every_rendering():
    html = HOSTILE.to_html()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<b>" not in html
    markdown = HOSTILE.to_markdown()
    assert markdown.splitlines()[2] == "| [red]<script>\\|` | 0.500 |"
    assert markdown.splitlines()[3] == "| \\\\ | -- |"
    console = Console(file=io.StringIO(), width=60)
    console.print(HOSTILE.to_rich())
    assert "[red]" in console.file.getvalue()  # type: ignore[attr-defined]


def test_figures_stand_right_and_names_left():
    table = Table("t", ("retriever", "k", "recall"), (("bm25", 4, Interval(0.5)),))
    assert table.to_markdown().splitlines()[1] == "| --- | ---: | ---: |"
    assert '<td class="n">0.500</td>' in table.to_html()


def test_a_row_of_the_wrong_length_is_an_error_and_an_empty_table_is_not():
    with pytest.raises(InputError, match="2 cells for 1 columns"):
        Table("t", ("a",), ((1, 2),))
    assert Table("t", ("a",), ()).to_markdown().startswith("| a |")


def test_a_retrieval_table_has_a_row_for_each_system_and_k():
    table = retrieval_table(small_run(), ["recall", "complete", "null_rejection"])
    assert table.columns == ("retriever", "k", "recall", "complete", "null_rejection")
    assert table.texts == [
        ["tfidf", "2", "0.333", "0.000", "0.000"],
        ["tfidf", "4", "0.333", "0.000", "0.000"],
        ["hybrid-metagraph", "2", "0.500", "0.333", "1.000"],
        ["hybrid-metagraph", "4", "1.000", "1.000", "1.000"],
    ]
    assert "3 questions and 1 null questions" in table.note
    assert "hybrid-metagraph: 1 of 4 questions failed" in table.note


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


def test_kinds_show_where_a_system_is_weak_and_a_kind_without_gold_is_undefined():
    table = kind_table(small_run(), "complete@4")
    assert table.columns == ("retriever", "bridge (n=2)", "comparison (n=1)", "null (n=1)")
    assert table.texts[1] == ["hybrid-metagraph", "1.000", "1.000", "--"]


def test_systems_are_compared_with_the_first_or_with_a_named_one():
    table = comparison_table(small_run(), "recall@4")
    assert [row[0] for row in table.rows] == ["hybrid-metagraph"]
    assert table.texts[0][1].startswith("+0.667")
    assert (
        comparison_table(small_run(), "recall@4", against="hybrid-metagraph")
        .texts[0][1]
        .startswith("-0.667")
    )


def test_records_are_json_values_with_unrounded_figures():
    row = retrieval_table(small_run(), ["recall"], intervals=True).records()[0]
    assert row["retriever"] == "tfidf"
    assert row["recall"]["value"] == pytest.approx(1 / 3)
    assert set(row["recall"]) == {"value", "low", "high"}


def test_the_papers_figures_are_whole_and_plausible():
    assert set(magaf_published.TABLE_3.figures) == {
        "tfidf",
        "metadata-tfidf",
        "dense-proxy",
        "graph",
        "hybrid-metagraph",
    }
    assert all(len(row) == 4 * 3 + 1 for row in magaf_published.TABLE_3.figures.values())
    assert magaf_published.TABLE_3.get("hybrid-metagraph", "complete@4") == 0.320
    assert magaf_published.TABLE_3.get("tfidf", "recall@4") == 0.417
    assert magaf_published.TABLE_3.get("tfidf", "recall@5") is None
    for table in (published.TABLE_4, published.TABLE_5):
        assert (
            set(table.figures)
            == set(table.printed)
            == {"bm25", "hybrid-title", "tfidf-char", "tfidf-word"}
        )
        for row in table.figures.values():
            assert list(row.values()) == sorted(row.values())  # reading deeper never loses
    for system, row in published.TABLE_4.figures.items():
        assert all(
            published.TABLE_5.figures[system][name.replace("coverage", "strict")] < value
            for name, value in row.items()
        )
    collection = magaf_published.TABLE_1.figures["collection"]
    hops = {2: "two-hop paths", 3: "three-hop paths", 4: "four-hop paths"}
    assert sum(collection[name] for name in hops.values()) == collection["non-null queries"]
    mean = (
        sum(count * collection[name] for count, name in hops.items())
        / collection["non-null queries"]
    )
    assert mean == pytest.approx(collection["mean path length"], abs=0.0005)
    assert (
        sum(published.TABLE_2.figures["questions"].values())
        > published.TABLE_1.figures["collection"]["questions"]
    )
