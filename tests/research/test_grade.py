"""GRADE's claims on real questions: what must hold on MuSiQue and 2Wiki."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.films import films

from suffice.evaluation.significance import Interval
from suffice.evaluation.study import Study
from suffice_research.grade.study import _made, study


@pytest.fixture(scope="module")
def measured(data_folder: Path) -> Study:
    return study(data=data_folder, retrievers=("bm25",))


def test_incompleteness_rises_along_both_axes(measured: Study) -> None:
    table = measured.table("What a step")
    for name in ("musique", "2wikimultihopqa"):
        for column in ("one hop more", "one quarter of D_r further"):
            slope = table.cell(f"{name}, bm25", column)
            assert isinstance(slope, Interval)
            assert slope.low is not None
            assert slope.low > 0.05


def test_the_error_follows_the_farthest_document_more_than_the_mean_one(measured: Study) -> None:
    for name in ("musique", "2wikimultihopqa"):
        row = measured.table(f"Question by question: correlation of D_r with error on {name}")
        least, mean = row.cell("bm25, average", "min"), row.cell("bm25, average", "mean")
        assert isinstance(least, Interval)
        assert isinstance(mean, Interval)
        assert (least.low or 0) > 0.2
        assert (least.value or 0) > (mean.value or 1)


def test_the_study_comes_back_from_its_document(measured: Study, tmp_path: Path) -> None:
    again = Study.load(measured.save(tmp_path / "study.json"))
    assert again.to_json() == measured.to_json()
    assert len(again.figures) == 2


def test_made_questions_have_a_matrix_their_missing_links_and_an_audit() -> None:
    section = _made(films(), 42, None)
    titles = [one.title for one in section.shown]
    assert any("made questions" in title for title in titles)
    assert {"Questions that need missing links", "Balance"} <= set(titles)
