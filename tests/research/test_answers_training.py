"""How likely an answer is right: learned from lists that answer, given that they do."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from suffice.gate.calibration import Platt
from suffice.gate.reader import (
    ANSWER_SIGNS,
    SHIPPED_READER,
    AnswerModel,
    Reader,
)
from suffice_research.training.answers import (
    AnsweredList,
    KeptReader,
    choose_level,
    draw_lists,
    figures,
    fit_model,
    left_out_probabilities,
    probabilities,
    save_model,
)
from suffice_research.training.cases import EVERYDAY, everyday_cases


def answered(n: int, *, seed: int = 0, source: str = "colours") -> list[AnsweredList]:
    """From complete lists half of the answers are right, and the surer the likelier; each has an
    incomplete list beside it, where the reader is as sure.
    """
    draw, found = np.random.default_rng(seed), []
    for _ in range(n):
        right = draw.random() < 0.5
        signs = (1.0, *(draw.normal(2 if right else -2, 2, 2)), 0.0, 1.0)
        whole = AnsweredList(
            source, "Which colour?", (), ("blue",), "blue" if right else "red", signs,
            complete=draw.normal(2, 1), p_complete=0.9,
        )  # fmt: skip
        gap = replace(whole, gold=(), complete=draw.normal(-2, 1), p_complete=0.1, passed=False)
        found += [whole, gap]
    return found


def test_probabilities_are_as_often_right_as_they_say() -> None:
    model = fit_model(answered(800))
    assert len(model.weights) == len(ANSWER_SIGNS)
    assert model.weights[4] <= 0 <= min(model.weights[1:3])
    judged = answered(800, seed=1)
    right = np.array([one.right for one in judged])
    alone = probabilities(judged, model, gated=False)
    for low, high in ((0, 0.5), (0.5, 1)):
        some = (alone >= low) & (alone < high)
        assert right[some].mean() == pytest.approx(alone[some].mean(), abs=0.06)
    p = probabilities(judged, model)
    level = choose_level(judged, p)
    assert right[p >= level].mean() >= 0.75
    row = figures(judged, p, level, alone=alone)["sources"]["colours"]
    assert row["right"] == pytest.approx(2 * right.mean(), abs=1e-3)
    assert row["right of given"] >= 0.75
    assert row["abstained"] == 1.0


def test_the_verdict_is_a_factor_of_the_probability() -> None:
    model = AnswerModel(np.array([np.log(4), 0, 0, 0, 0]), Platt(1.0, 0.0))
    one = AnsweredList("a", "?", (), ("b",), "b", (1.0, 0, 0, 0, 0), p_complete=0.5)
    assert probabilities([one], model) == pytest.approx([0.4])
    unlikely = replace(one, p_complete=0.01)
    assert probabilities([unlikely], model) == pytest.approx([0.008])
    assert probabilities([unlikely], model, gated=False) == pytest.approx([0.4])
    assert probabilities([replace(one, answer="")], model).tolist() == [0.0]


def test_the_level_holds_for_the_worst_source_left_out() -> None:
    easy = answered(150)
    misled = [  # surer than they should be: whoever learned from the others does not know
        replace(one, signs=(1.0, *(sign + 2 for sign in one.signs[1:3]), *one.signs[3:]))
        for one in answered(150, seed=2, source="shades")
    ]
    lists = [*easy, *misled]
    p, right = left_out_probabilities(lists), np.array([one.right for one in lists])
    pooled, level = choose_level(easy, p[:300]), choose_level(lists, p)
    assert level > pooled
    assert right[300:][p[300:] >= level].mean() >= 0.75 > right[300:][p[300:] >= pooled].mean()


def test_an_answer_to_a_list_that_lacks_something_is_never_right() -> None:
    one = AnsweredList("a", "Which colour?", (), ("the blue one",), "blue one")
    assert (one.right, one.exact) == (True, 1.0)
    assert not replace(one, gold=()).right
    assert not replace(one, answer="").right
    assert not replace(one, answer="red").right


def test_each_question_has_a_list_with_everything_and_one_without(tmp_path: Path) -> None:
    for path in sorted(EVERYDAY.glob("*.jsonl"))[:8]:
        shutil.copy(path, tmp_path)
    cases = list(everyday_cases(tmp_path))
    lists = list(draw_lists(cases, ("test",), 40))
    assert lists == list(draw_lists(cases, ("test",), 40))
    assert {one.source for one in lists} == {"everyday"}
    asked = Counter(one.question for one in lists)
    by_question = {
        question: [one for one in lists if one.question == question] for question in asked
    }
    for pair in by_question.values():
        assert len(pair) in (1, 2)
        assert not pair[-1].gold
        if len(pair) == 2:
            whole, part = pair
            assert whole.gold
            assert len(set(whole.hits) - set(part.hits)) >= 1


def test_weights_go_beside_the_model_and_change_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    shutil.copytree(SHIPPED_READER, folder)
    save_model(AnswerModel(np.array([-50.0, 0, 0, 0, 0]), Platt(1.0, 0.0)), folder)
    reader, again = (KeptReader(folder, tmp_path / "readings.db") for _ in range(2))
    assert reader.name == Reader(SHIPPED_READER).name
    asked = ("Who did it?", ["", "Log"], ["Nora did it.", "Nothing happened on Monday."])
    found, signs, complete = reader.best_answer(*asked)
    assert reader.answer(*asked).p < 1e-6
    kept, same, as_complete = again.best_answer(*asked)  # from the file
    assert (kept, same.tolist(), as_complete) == (found, signs.tolist(), complete)
