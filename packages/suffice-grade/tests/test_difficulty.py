from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from suffice.datasets.gold import Gold, GoldQuestion
from suffice.errors import InputError
from suffice.retrieval.encoders import WordLlamaEncoder
from suffice.types import Document, Question
from suffice_grade.difficulty_matrix import (
    QuestionDifficulty,
    axis_slopes,
    build_difficulty_matrix,
    error_rate,
    question_difficulty,
)

HOPS = np.repeat([2, 3, 4, 5], 100)
RANDOM = np.random.default_rng(7)
PLACE = RANDOM.random(400)  # D_r
ERRORS = (RANDOM.random(400) < 0.1 * (HOPS - 2) + 0.6 * PLACE).astype(float)
WORLD = QuestionDifficulty(
    tuple(map(str, range(400))),
    HOPS,
    {"min": PLACE, "power": PLACE**2, "mean": PLACE + RANDOM.normal(0, 0.3, 400)},
)


def test_the_matrix_counts_every_question_once_and_rises_to_the_hard_corner() -> None:
    found = build_difficulty_matrix(WORLD, ERRORS)
    assert found.levels == (2, 3, 4, 5)
    assert sum(cell.n for row in found.cells for cell in row) == found.whole.n == 400
    assert [cell.n for cell in found.by_hops] == [100] * 4
    assert (found.cells[0][0].error.value or 0) < (found.cells[3][3].error.value or 0)
    assert found.whole.error.value == pytest.approx(ERRORS.mean())


def test_an_empty_cell_has_no_rate_and_a_thin_one_says_so() -> None:
    few = WORLD.rows(np.array([at < 100 or at == 399 for at in range(400)]))
    found = build_difficulty_matrix(few, ERRORS[[*range(100), 399]])
    lone = [cell for cell in found.cells[1] if cell.n]
    assert [cell.n for cell in lone] == [1]
    assert lone[0].thin
    assert [cell.error.value for cell in found.cells[1] if not cell.n] == [None] * 3


def test_the_interval_of_plain_errors_is_wilsons_to_the_last_digit() -> None:
    for n in (1, 3, 10, 137):
        for failed in {0, 1, n // 2, n - 1, n}:
            found = error_rate(np.array([1.0] * failed + [0.0] * (n - failed)))
            wilson = binomtest(failed, n).proportion_ci(method="wilson")
            assert (found.low, found.high) == (wilson.low, wilson.high)


def test_each_axis_gets_its_own_slope() -> None:
    only_hops = (RANDOM.random(400) < 0.25 * (HOPS - 2)).astype(float)
    found = axis_slopes(WORLD, only_hops)
    assert found.hop.low is not None
    assert found.hop.low > 0.2
    assert found.quartile.low is not None
    assert found.quartile.low < 0 < (found.quartile.high or 0)
    flat = WORLD.rows(HOPS == 2)
    assert axis_slopes(flat, ERRORS[HOPS == 2]).hop.value is None  # one row only


def test_questions_whose_documents_are_not_there_are_left_out_and_counted() -> None:
    documents = [
        Document("ada", "Ada was taught by Mary."),
        Document("mary", "Mary was taught by John."),
    ]
    golds = {"q1": {"ada", "mary"}, "q2": {"ada", "lost"}, "q3": set()}
    examples = [
        GoldQuestion(Question(name, "Who taught Ada?"), Gold(name, frozenset(ids)))
        for name, ids in golds.items()
    ]
    found = question_difficulty(examples, documents, WordLlamaEncoder())
    assert (found.question_ids, found.levels, found.left_out) == (("q1",), (2,), 2)
    with pytest.raises(InputError, match="no question"):
        question_difficulty(examples[1:], documents, WordLlamaEncoder())


def test_errors_must_be_one_share_a_question() -> None:
    with pytest.raises(InputError, match="expected one"):
        build_difficulty_matrix(WORLD, ERRORS[:10])
    with pytest.raises(InputError, match="from 0 to 1"):
        build_difficulty_matrix(WORLD, ERRORS * np.nan)
