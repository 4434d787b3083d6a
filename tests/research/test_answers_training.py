"""How likely an answer is right: learned from lists that answer, and from lists that do not."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from suffice.gate.reader import ANSWER_SIGNS, SHIPPED_READER, Reader
from suffice_research.training.answers import (
    DIRECTION,
    AnsweredList,
    KeptReader,
    choose_level,
    direction_lists,
    draw_lists,
    figures,
    fit_weights,
    left_out_probabilities,
    probabilities,
    save_weights,
)
from suffice_research.training.cases import EVERYDAY, everyday_cases


def answered(n: int, *, seed: int = 0, source: str = "colours") -> list[AnsweredList]:
    """Half of them right, and the surer the likelier."""
    draw, found = np.random.default_rng(seed), []
    for _ in range(n):
        right = draw.random() < 0.5
        signs = (1.0, *(draw.normal(2 if right else -2, 2, 3)), 0.0, 1.0, 0.0)
        said = "blue" if right else "red"
        found.append(AnsweredList(source, "Which colour?", (), ("blue",), said, signs))
    return found


def test_probabilities_are_as_often_right_as_they_say() -> None:
    weights = fit_weights(answered(800))
    assert len(weights) == len(ANSWER_SIGNS)
    judged = answered(800, seed=1)
    p, right = probabilities(judged, weights), np.array([one.right for one in judged])
    for low, high in ((0, 0.5), (0.5, 1)):
        some = (p >= low) & (p < high)
        assert right[some].mean() == pytest.approx(p[some].mean(), abs=0.06)
    level = choose_level(judged, p)
    assert right[p >= level].mean() >= 0.75
    row = figures(judged, p, level)["sources"]["colours"]
    assert row["right"] == pytest.approx(right.mean(), abs=1e-3)
    assert row["right of given"] >= 0.75


def test_the_level_holds_for_the_worst_source_left_out() -> None:
    easy = answered(150)
    misled = [  # surer than they should be: whoever learned from the others does not know
        replace(one, signs=(1.0, *(sign + 2 for sign in one.signs[1:4]), *one.signs[4:]))
        for one in answered(150, seed=2, source="shades")
    ]
    lists = [*easy, *misled]
    p, right = left_out_probabilities(lists), np.array([one.right for one in lists])
    pooled, level = choose_level(easy, p[:150]), choose_level(lists, p)
    assert level > pooled
    assert right[150:][p[150:] >= level].mean() >= 0.75 > right[150:][p[150:] >= pooled].mean()


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


def test_pairs_of_direction_are_whole() -> None:
    rows = [json.loads(line) for line in DIRECTION.read_text(encoding="utf-8").splitlines()]
    assert len({row["id"] for row in rows}) == len(rows) == 200
    for row in rows:
        assert row["answer"] in ("yes", "no") or row["answer"] in row["text"]
        assert row["asked"] != row["swapped"]
    assert len(direction_lists()) == 400


def test_weights_go_beside_the_model_and_change_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    shutil.copytree(SHIPPED_READER, folder)
    save_weights(np.array([-50.0, 0, 0, 0, 0, 0, 0]), folder)
    reader, again = (KeptReader(folder, tmp_path / "readings.db") for _ in range(2))
    assert reader.name == Reader(SHIPPED_READER).name
    asked = ("Who did it?", ["", "Log"], ["Nora did it.", "Nothing happened on Monday."])
    found, signs = reader.best_answer(*asked)
    assert reader.answer(*asked).p < 1e-6
    kept, same = again.best_answer(*asked)  # from the file
    assert (kept, same.tolist()) == (found, signs.tolist())
