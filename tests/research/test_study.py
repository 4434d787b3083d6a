"""A study is a document: it comes back from its file, says what is wrong with another, and becomes
a page.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docs.generators.markdown import table_texts
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.errors import DataError, InputError, NotReadyError
from suffice.evaluation.gate_runs import reliability_lines
from suffice.evaluation.heatmap import Heatmap
from suffice.evaluation.metrics import Predictions
from suffice.evaluation.report import (
    Line,
    Lines,
    Section,
    Table,
    draw_plot,
    format_cell,
    page_html,
)
from suffice.evaluation.significance import Difference, Interval
from suffice_research.curves import risk_lines, roc_lines
from suffice_research.figures import (
    Arrow,
    Box,
    Curves,
    Diagram,
    PaperBars,
    PaperSeries,
    Point,
    Points,
    figure_from_json,
    figure_json,
)
from suffice_research.published_cells import SignedNumber, WithPublished
from suffice_research.run_sections import study_page, study_report
from suffice_research.study import STUDIES, Study, table_cell

HOSTILE = "<script>alert('x')</script> & $\\frac{1}$ --> \"q\""
HALF = Interval(0.5, 0.4, 0.6)
TABLE = Table(
    "Table 4. Predictors",
    ("predictor", "n", "auroc", "against", "shift", "plain"),
    (
        (
            "MAGAF",
            384,
            WithPublished(HALF, 0.884),
            Difference(0.1, 0.0, 0.2, 0.04),
            SignedNumber(-0.25),
            0.123456789,
        ),
        (HOSTILE, 1, WithPublished(0.5, None), Difference(None), SignedNumber(None), None),
    ),
    "a note",
)
FIGURES = (
    PaperBars(
        "Figure 4",
        "AUROC",
        (PaperSeries("a", (HALF, Interval(None)), (0.884, None)),),
        ("AUROC", "F1"),
        says="see",
    ),
    Curves(
        "by k",
        "k",
        "recall",
        (2, 4),
        (PaperSeries("a", (HALF, HALF), (0.4, 0.6)), PaperSeries(HOSTILE, (HALF, Interval(None)))),
    ),
    Lines(
        "ROC",
        "x",
        "y",
        (Line("a", (0.0, 1.0), (0.0, 1.0)), Line("b", (0.1,), (0.2,), (7,))),
        diagonal=True,
    ),
    Points("cost", "ms", "recall", (Point(HOSTILE, HALF, HALF), Point("b", HALF, Interval(None)))),
    Heatmap(
        "by type", "share", ("tfidf", HOSTILE), ("null", "temporal"), ((0.1, None), (0.9, 0.5))
    ),
    Diagram(
        "pipeline",
        (Box("q", HOSTILE, 0, 0), Box("d", "word " * 90, 1.5, 1, 2), Box("e", "", 3, 1)),
        (Arrow("q", "d", HOSTILE), Arrow("d", "e", "0.5", 0.3, head=False), Arrow("q", "q")),
    ),
)


def small(**options: object) -> Study:
    record = {
        "sections": (Section("One", (TABLE, *FIGURES), "in words"),),
        "summary": ("It held.",),
        "notes": ("Because.",),
    }
    more = {
        "settings": {"k": 4},
        "data": {"village.jsonl": "ab" * 32},
        "timings": {"search": 1.5},
        **record,
        **options,
    }
    return Study("magaf", "MAGAF again", 42, **more)  # type: ignore[arg-type]


def test_a_study_comes_back_from_its_file_as_it_was(tmp_path: Path):
    again = Study.load(small().save(tmp_path / "study.json"))
    assert again.to_json() == small().to_json()
    assert [[format_cell(cell) for cell in row] for row in again.tables[0].rows] == table_texts(
        TABLE
    )
    assert again.figures == FIGURES


def test_without_timings_two_studies_are_the_same_bytes():
    assert small(timings={"search": 9.9}).to_json(timings=False) == small().to_json(timings=False)


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("{", InputError, "not valid JSON"),
        ("[]", InputError, "not a study"),
        ('{"kind":"run"}', InputError, "not a study"),
        ('{"kind":"study","version":99}', NotReadyError, "format version 99"),
        ('{"kind":"study","version":1}', DataError, "damaged study"),
    ],
)
def test_what_is_not_a_study_is_said_so(tmp_path: Path, text, error, says):
    path = tmp_path / "study.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=says) as caught:
        Study.load(path)
    assert "suffice reproduce" in caught.value.hint


@pytest.mark.parametrize(
    "cell", [{"interval": [1, 2, 3, 4]}, {"beside": ["x", 1]}, {"secret": 1}, [1]]
)
def test_a_damaged_cell_is_a_damaged_study(tmp_path: Path, cell):
    document = json.loads(small().to_json())
    document["sections"][0]["shown"][0]["rows"][0][2] = cell
    path = tmp_path / "study.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DataError, match="damaged"):
        Study.load(path)


def test_a_table_is_found_by_how_its_title_begins_and_a_cell_by_row_and_column():
    assert table_cell(small().table("Table 4"), "MAGAF", "n") == 384
    with pytest.raises(InputError, match="no table 'Table 5'"):
        small().table("Table 5")
    with pytest.raises(InputError, match="no cell"):
        table_cell(small().table("Table 4"), "MAGAF", "nothing")


def test_a_measured_figure_with_interval_says_how_far_the_paper_is():
    assert (
        format_cell(WithPublished(Interval(0.963, 0.9451, 0.98), 0.884))
        == "0.963 [0.95, 0.98] (0.884, +0.079)"
    )
    assert format_cell(WithPublished(0.424, 0.417)) == "0.424 (0.417)"
    assert "<small>paper 0.884, -0.384</small>" in page_html(study_page(small()))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda one: type(one).__name__)
def test_every_kind_of_figure_comes_back_from_json_and_is_drawn_the_same_twice(figure):
    assert figure_from_json(json.loads(json.dumps(figure_json(figure)))) == figure
    ElementTree.fromstring(
        draw_plot(figure)
    )  # our own drawing: well formed, whatever the names were
    assert draw_plot(figure) == draw_plot(figure)


def test_a_diagram_whose_arrow_leads_nowhere_is_refused():
    record = figure_json(Diagram("lost", (Box("q", "question", 0, 0),), (Arrow("q", "nowhere"),)))
    with pytest.raises(ValueError, match="nowhere"):
        figure_from_json(record)


def test_figures_without_anything_in_them_can_be_drawn():
    for figure in (
        Lines("empty", "x", "y", ()),
        Heatmap("empty", "x", (), (), ()),
        Diagram("empty", ()),
        PaperBars("empty", "x", (), ("a", "b")),
    ):
        ElementTree.fromstring(draw_plot(figure))


SOME = {"gate": Predictions([1, 1, 0, 0], [0.9, 0.6, 0.6, 0.1])}


def test_a_roc_line_rises_from_the_corner_and_takes_ties_in_one_step():
    line = roc_lines("ROC", SOME).lines[0]
    assert line.x == (0.0, 0.0, 0.5, 1.0)
    assert line.y == (0.0, 0.5, 1.0, 1.0)


def test_risk_grows_as_less_sure_questions_are_answered():
    line = risk_lines("risk", SOME).lines[0]
    assert line.x == (0.25, 0.75, 1.0)
    assert line.y == pytest.approx((0.0, 1 / 3, 0.5))


def test_reliability_counts_what_came_true_in_each_bin():
    line = reliability_lines("honest?", SOME, bins=2).lines[0]
    assert (line.y, line.sizes) == ((0.0, 2 / 3), (1, 3))


def test_the_page_of_a_study_holds_tables_figures_reasons_and_nothing_from_outside(tmp_path: Path):
    page = study_report(
        small(), tmp_path / "report.html", command="suffice reproduce magaf"
    ).read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>", " ", page)
    for shown in (
        "MAGAF again",
        "It held.",
        "Because.",
        "in words",
        "Table 4. Predictors",
        "ab" * 32,
        "suffice reproduce magaf",
    ):
        assert shown in text, shown
    assert page.count("<svg") == len(FIGURES)
    assert "<script" not in page
    assert not re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(?:https?:)?//""", page)
    assert page_html(study_page(small())) == page_html(study_page(small()))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing"], "no study is named 'nothing'"),
        (["magaf", "--data", "."], "holds no multihop_rag/"),
        (["frames"], "test.tsv"),
    ],
)
def test_a_mistake_is_said_before_the_work_begins(
    words, says, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["reproduce", *words])
    assert result.exit_code == 2
    assert says in result.output
    assert "hint:" in result.output


def test_a_study_whose_report_was_not_written_does_not_count_as_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(STUDIES, "names", lambda: ["mine"])
    monkeypatch.setattr(STUDIES, "get", lambda name: lambda *, data, progress: small())
    words = ["reproduce", "mine", "--out", str(tmp_path)]
    (tmp_path / "report.html").mkdir()  # stands for a disk that is full, or a run that was killed
    assert CliRunner().invoke(app, words).exit_code != 0
    assert not (tmp_path / "study.json").exists()
    (tmp_path / "report.html").rmdir()
    assert CliRunner().invoke(app, words).exit_code == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["report.html", "study.json"]
