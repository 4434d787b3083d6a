"""Tables: how figures are printed, and that nothing hostile gets through."""

from __future__ import annotations

import io

import pytest
from docs.generators.markdown import table_markdown, table_texts
from rich.console import Console

from suffice.errors import InputError
from suffice.evaluation.report import Page, Section, Table, format_cell, page_html
from suffice.evaluation.retrieval_runs import (
    RetrievalRun,
    SystemResult,
    comparison_table,
    kind_table,
    retrieval_table,
)
from suffice.evaluation.significance import Difference, Interval
from suffice_research.published_cells import SignedNumber


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


def shown(table: Table) -> str:
    """The table as a page has it."""
    page = page_html(Page("A page", "", (), (Section("Its section", (table,)),), ()))
    return page[page.index("<figure>") : page.index("</figure>")]


HOSTILE = Table("a | <b>", ("name", "x"), (("[red]<script>|`\n", 0.5), ("\\", None)), "note & more")


def test_hostile_names_stay_text_in_every_rendering():
    html = shown(HOSTILE)
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<b>" not in html
    markdown = table_markdown(HOSTILE)
    assert markdown.splitlines()[2] == "| [red]<script>\\|` | 0.500 |"
    assert markdown.splitlines()[3] == "| \\\\ | -- |"
    console = Console(file=io.StringIO(), width=60)
    console.print(HOSTILE.to_rich())
    assert "[red]" in console.file.getvalue()  # type: ignore[attr-defined]


def test_figures_stand_right_and_names_left():
    table = Table("t", ("retriever", "k", "recall"), (("bm25", 4, Interval(0.5)),))
    assert table_markdown(table).splitlines()[1] == "| --- | ---: | ---: |"
    assert '<td class="n">0.500</td>' in shown(table)


def test_a_row_of_the_wrong_length_is_an_error_and_an_empty_table_is_not():
    with pytest.raises(InputError, match="2 cells for 1 columns"):
        Table("t", ("a",), ((1, 2),))
    assert table_markdown(Table("t", ("a",), ())).startswith("| a |")


def test_a_retrieval_table_has_a_row_for_each_system_and_k():
    table = retrieval_table(small_run(), ["recall", "complete", "null_rejection"])
    assert table.columns == ("retriever", "k", "recall", "complete", "null_rejection")
    assert table_texts(table) == [
        ["tfidf", "2", "0.333", "0.000", "0.000"],
        ["tfidf", "4", "0.333", "0.000", "0.000"],
        ["hybrid-metagraph", "2", "0.500", "0.333", "1.000"],
        ["hybrid-metagraph", "4", "1.000", "1.000", "1.000"],
    ]
    assert "3 questions and 1 null questions" in table.note
    assert "hybrid-metagraph: 1 of 4 questions failed" in table.note


def test_kinds_show_where_a_system_is_weak_and_a_kind_without_gold_is_undefined():
    table = kind_table(small_run(), "complete@4")
    assert table.columns == ("retriever", "bridge (n=2)", "comparison (n=1)", "null (n=1)")
    assert table_texts(table)[1] == ["hybrid-metagraph", "1.000", "1.000", "--"]


def test_systems_are_compared_with_the_first_or_with_a_named_one():
    table = comparison_table(small_run(), "recall@4")
    assert [row[0] for row in table.rows] == ["hybrid-metagraph"]
    assert table_texts(table)[0][1].startswith("+0.667")
    other = comparison_table(small_run(), "recall@4", against="hybrid-metagraph")
    assert table_texts(other)[0][1].startswith("-0.667")


def test_records_are_json_values_with_unrounded_figures():
    row = retrieval_table(small_run(), ["recall"], intervals=True).records()[0]
    assert row["retriever"] == "tfidf"
    assert row["recall"]["value"] == pytest.approx(1 / 3)
    assert set(row["recall"]) == {"value", "low", "high"}
