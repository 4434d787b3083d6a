"""The benchmarks' ratios in one table: read back from the pages, and honest about what was not
measured.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.__main__ import page
from benchmarks.overview import TITLES, Ratio, read, table
from benchmarks.overview import page as overview
from benchmarks.reporting import ResultTable

SPEED = ResultTable(
    "Top 10 of 6,119 documents",
    "The fastest of the rounds; required of ours: at least 0.8.",
    ("system", "questions a second", "of bm25s"),
    (
        ("suffice bm25", "10,108", "1.63"),
        ("suffice bm25, memory store", "9,911", "1.60"),
        ("bm25s", "6,193", "1.00"),
    ),
    ("A note.",),
    True,
)
LOG = ResultTable(
    "A log that does not end",
    "",
    ("checks", "where", "a second"),
    (
        ("1,000", "two workers", "60"),
        ("1,000", "one process", "30"),
        ("9,000", "two workers", "90"),
    ),
)


def test_a_page_is_read_back_as_the_tables_it_was_made_of() -> None:
    written = page(
        "search",
        {"BM25": [SPEED], "Jobs": [LOG]},
        "python -m benchmarks search",
        False,
        ("1.0", "1.0"),
    )
    first, second = read(written)
    assert (first.title, first.says, first.columns, first.rows, first.kept) == (
        SPEED.title, SPEED.says, SPEED.columns, SPEED.rows, True,
    )  # fmt: skip
    assert (second.rows, second.kept) == (LOG.rows, None)


def test_a_rate_is_better_when_it_is_more_and_a_time_when_it_is_less() -> None:
    rate = Ratio("search", "", "Top 10", "questions a second", "suffice bm25", "bm25s", more=True)
    assert rate.of([SPEED]) == ("10,108", "6,193", "1.63")
    assert Ratio("search", "", "Top 10", "questions a second", "bm25s", "suffice bm25").of(
        [SPEED]
    ) == (
        "6,193",
        "10,108",
        "1.63",
    )
    alike = Ratio(
        "batch", "", "A log", "a second", "two workers", "one process", more=True, alike=True
    )
    assert alike.of([LOG]) == ("60", "30", "2.00")


def test_what_was_not_measured_is_said(tmp_path: Path) -> None:
    assert {row[-1] for row in table({}).rows} == {"--"}
    assert overview(tmp_path).count("not measured") == len(TITLES)
