"""GRADE's claims on real questions: what must hold on MuSiQue and 2Wiki."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.films import films

from suffice.datasets.gold import Gold, GoldQuestion
from suffice.evaluation.report import Table
from suffice.evaluation.significance import Interval
from suffice.types import Question
from suffice_research.grade.answers import _judged, answer_domain, answer_section
from suffice_research.grade.study import _made, study
from suffice_research.study import Study, table_cell


@pytest.fixture(scope="module")
def measured(data_folder: Path) -> Study:
    return study(data=data_folder, retrievers=("bm25",))


def test_incompleteness_rises_along_both_axes(measured: Study) -> None:
    table = measured.table("What a step")
    for name in ("musique", "2wikimultihopqa"):
        for column in ("one hop more", "one quarter of D_r further"):
            slope = table_cell(table, f"{name}, bm25", column)
            assert isinstance(slope, Interval)
            assert slope.low is not None
            assert slope.low > 0.05


def test_the_error_follows_the_farthest_document_more_than_the_mean_one(measured: Study) -> None:
    for name in ("musique", "2wikimultihopqa"):
        row = measured.table(f"Question by question: correlation of D_r with error on {name}")
        least, mean = (
            table_cell(row, "bm25, average", "min"),
            table_cell(row, "bm25, average", "mean"),
        )
        assert isinstance(least, Interval)
        assert isinstance(mean, Interval)
        assert (least.low or 0) > 0.2
        assert (least.value or 0) > (mean.value or 1)


def test_made_questions_have_a_matrix_their_missing_links_and_an_audit() -> None:
    section = _made(films(), 42, None)
    titles = [one.title for one in section.shown]
    assert any("made questions" in title for title in titles)
    assert {"Questions that need missing links", "Balance"} <= set(titles)


def test_made_questions_are_answered_judged_and_shown_beside_the_paper() -> None:
    found = answer_domain("films", films(), per_hops=4, retrievers=("bm25",))
    assert list(found.systems) == ["read ten, bm25", "ask, bm25"]
    asked = found.systems["ask, bm25"].matrix
    assert asked.levels[:3] == (1, 2, 3)
    assert (asked.by_hops[0].error.value or 0) < 1
    section = answer_section([found])
    accuracy = next(one for one in section.shown if one.title == "Figure 2: accuracy by hops")
    assert isinstance(accuracy, Table)
    assert table_cell(accuracy, "paper, Sports", "2 hops") == 0.68
    assert {"Table 4: questions over missing links", "Figure 4's matrix: ask, bm25 on films"} <= {
        one.title for one in section.shown
    }


class _Judge:
    """A model that replies as it is told."""

    def __init__(self, *replies: str) -> None:
        self.replies, self.prompts = list(replies), list[str]()

    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        self.prompts += prompts
        return self.replies[: len(prompts)]


def test_a_model_judges_and_the_rules_where_it_talks_nonsense() -> None:
    questions = [
        GoldQuestion(Question(f"q{at}", "Who?"), Gold(f"q{at}", frozenset(), answer="Ada Lovelace"))
        for at in range(4)
    ]
    answers = ["the countess", "Ada Lovelace", "Ada Lovelace", None]
    assert _judged(questions, answers, None).tolist() == [False, True, True, False]
    judge = _Judge('{"correct": true}', "hm", '{"correct": "no"}')
    assert _judged(questions, answers, judge).tolist() == [True, True, True, False]
    assert len(judge.prompts) == 3
