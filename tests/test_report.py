"""Plots and the report: numbers first, the same bytes each time, nothing hostile and nothing from
the network.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from suffice.errors import InputError, MissingExtraError
from suffice.evaluation.report import Bars, Series, draw_plot, page_html, write_page
from suffice.evaluation.retrieval_runs import (
    RetrievalRun,
    SystemResult,
    depth_lines,
    metric_bars,
    retrieval_page,
)
from suffice.evaluation.significance import Interval
from suffice_research.figures import Curves, PaperSeries

HOSTILE = "<script>alert('x')</script> & $\\frac{1}$ --> \"q\""


def village(name: str = "tfidf", dataset: str = "village", **options: object) -> RetrievalRun:
    systems = (
        SystemResult(name, ((1,), (), (2,), ()), (1.0, 1.0, 1.0, 0.9)),
        SystemResult(
            "hybrid-metagraph", ((1, 2), (3,), (1, 4), ()), (1.0, 1.0, 1.0, 0.2), {"q1": HOSTILE}
        ),
    )
    more: dict[str, Any] = {
        "ks": (2, 4),
        "data": {"village.jsonl": "ab" * 32},
        "packages": {"numpy": "2"},
        "commit": "abc",
        **options,
    }
    ids, kinds = ("q0", "q1", "q2", "q3"), ("bridge", "bridge", HOSTILE, "null")
    return RetrievalRun(
        dataset, question_ids=ids, kinds=kinds, gold=(2, 1, 2, 0), systems=systems, **more
    )


def test_the_numbers_of_a_plot_can_be_read_without_drawing_it():
    bars = metric_bars(village(), "recall@4")
    assert [(series.name, round(series.values[0].value or 0, 3)) for series in bars.bars] == [
        ("tfidf", 0.333),
        ("hybrid-metagraph", 1.0),
    ]
    lines = depth_lines(village(), "recall")
    assert lines.lines[1].x == (2, 4)
    assert lines.lines[1].y == (0.5, 1.0)


@pytest.mark.parametrize(
    "figure", [metric_bars(village(), "recall@4"), depth_lines(village(), "complete")]
)
def test_the_same_numbers_give_the_same_bytes(figure):
    assert draw_plot(figure) == draw_plot(figure)
    assert draw_plot(figure, "png") == draw_plot(figure, "png")
    assert draw_plot(figure, "png").startswith(b"\x89PNG")
    assert b"<dc:date>" not in draw_plot(figure)


def test_hostile_names_undefined_figures_and_many_series_can_be_drawn():
    nothing, half = Interval(None), Interval(0.5)
    for figure in (
        Bars(
            HOSTILE,
            HOSTILE,
            (Series(HOSTILE, (nothing,)), Series("x" * 300, (Interval(0.0, 0.0, 0.0),))),
        ),
        Bars("empty", "recall", ()),
        Bars("三国演义", "k\x00\x1b", (Series("عربي \ud800", (half,)),)),
        Curves(
            HOSTILE,
            "k",
            "recall",
            (2, 4),
            tuple(PaperSeries(f"{HOSTILE}{at}", (half, nothing)) for at in range(12)),
        ),
        Curves("empty", "k", "recall", (2,), ()),
    ):
        ElementTree.fromstring(
            draw_plot(figure)
        )  # our own drawing: well formed, whatever the names were


def test_a_plot_of_an_unknown_format_is_an_input_error():
    with pytest.raises(InputError, match="svg"):
        draw_plot(metric_bars(village(), "recall@4"), "pdf")  # type: ignore[arg-type]


def test_the_report_fetches_nothing_runs_nothing_and_lets_no_markup_in():
    page = page_html(retrieval_page(village(HOSTILE, HOSTILE), command=HOSTILE))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    # Namespaces of SVG are names, not addresses that are fetched; everything else must be inside
    # the file.
    assert not re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(?:https?:)?//""", page)
    assert not re.findall(r"<(?:link|iframe|img|object|embed|form)\b", page)
    assert "default-src 'none'" in page


def test_names_in_any_script_and_broken_ones_can_be_reported(tmp_path: Path):
    run = village("三国 \ud800\x00", "عربي\ud800")
    assert "三国" in write_page(retrieval_page(run), tmp_path / "report.html").read_text(
        encoding="utf-8"
    )
    assert RetrievalRun.load(run.save(tmp_path / "run.json")) == run


def test_the_report_says_how_to_make_it_again_and_what_failed():
    command = "suffice evaluate retrieval --collection controlled"
    page = page_html(retrieval_page(village(), command=command))
    text = re.sub(r"<[^>]+>", " ", page)
    shown = ("Retrieval on village", "0.333 [", command, "ab" * 32, "1 question failed")
    assert all(one in text for one in (*shown, "complete@4 against tfidf"))
    assert page.count("<svg") == 3


def test_drawings_follow_the_page_in_the_dark_and_fit_a_phone():
    page = page_html(retrieval_page(village()))
    svg = page[page.index("<svg") : page.index("</svg>")]
    assert "currentColor" in svg
    assert "#1f2328" not in svg
    assert not re.search(r'<svg[^>]* (?:width|height)="', svg)
    assert "viewBox" in svg
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


def test_a_run_of_null_questions_only_still_has_a_report():
    run = RetrievalRun(
        "nothing", (2,), ("q0",), (None,), (0,), (SystemResult("tfidf", ((),), (None,)),)
    )
    assert "nothing can be said" in page_html(retrieval_page(run))


def test_the_report_is_written_whole(tmp_path: Path):
    path = write_page(retrieval_page(village()), tmp_path / "deep" / "report.html")
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert [one.name for one in path.parent.iterdir()] == ["report.html"]


def test_without_the_extra_the_error_says_the_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError) as caught:
        page_html(retrieval_page(village()))
    assert "suffice[report]" in caught.value.hint
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError) as caught:
        draw_plot(metric_bars(village(), "recall@4"))
    assert "suffice[report]" in caught.value.hint
