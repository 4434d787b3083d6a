"""The question model guesses what a question asks for from its words alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from suffice.errors import DataError, InputError, NotReadyError
from suffice.gate.features import QUESTION_COLUMNS
from suffice.gate.question import (
    ParsedQuestion,
    QuestionModel,
    WordTable,
    parse_question,
    question_features,
)

PEOPLE = ("Ada", "Boris", "Clara", "Dmitri", "Elena", "Farid", "Greta", "Hiro", "Ines", "Jonas")
ONE = "When was {0} born?"
TWO = "Who is the mother of the director of {0}?"
FOUR = "Which film has the director who died first, {0} or {1}?"


@pytest.fixture(scope="module")
def words() -> WordTable:
    return WordTable.load()


def village(words: WordTable) -> tuple[list[ParsedQuestion], list[float]]:
    questions, hops = [], []
    for at, person in enumerate(PEOPLE):
        for form, needed in ((ONE, 1.0), (TWO, 2.0), (FOUR, 4.0)):
            questions.append(parse_question(form.format(person, PEOPLE[at - 1]), words))
            hops.append(needed)
    return questions, hops


def test_the_structure_of_a_question_is_counted(words: WordTable) -> None:
    row = dict(
        zip(
            QUESTION_COLUMNS,
            np.expm1(question_features([parse_question(TWO.format("Ada"), words)]))[0]
            .round(3)
            .tolist(),
            strict=True,
        )
    )
    assert row["agents"] == 2  # mother, director
    assert row["of"] == 2
    assert row["names"] == 1
    assert row["kin"] == 1
    comparing = question_features([parse_question(FOUR.format("Ada", "Boris"), words)])[0]
    assert (
        np.expm1(comparing[QUESTION_COLUMNS.index("branches")]).round() == 4
    )  # two films, a director each


@pytest.mark.parametrize(
    ("question", "least", "likely"),
    [
        ("When was Ada Lovelace born?", 2, 2),
        ("Who was born first, Karen Joy Fowler or Bruce Chatwin?", 2, 2),
        ("Which film has the director who died first, The Red Eagle or Vishukkani?", 4, 4),
        ("Are both directors of films Target Zero and Midnight Court from the same country?", 4, 4),
        (
            "Which American filmmaker has directed more films, Jon Puno or Ken Kwapis?",
            2,
            2,
        ),  # asked for, not a step
        ("Which band has more members, Muzzle or Primus?", 2, 2),
        (
            (
                "When did the state that contains the county where Raven Creek is located "
                "reinstate the death penalty?"
            ),
            2,
            10 / 3,
        ),
        (
            (
                "Who is the mother of the director of the film that the writer of Lanterns's "
                "brother is in?"
            ),
            2,
            4,
        ),
        ("", 2, 2),
    ],
)
def test_the_form_of_a_question_says_how_many_documents_it_needs(
    question: str, least: float, likely: float, words: WordTable
) -> None:
    row = np.expm1(question_features([parse_question(question, words)]))[0]
    assert row[QUESTION_COLUMNS.index("least")] == pytest.approx(least, abs=1e-5)
    assert row[QUESTION_COLUMNS.index("likely")] == pytest.approx(likely, abs=0.01)


def test_an_empty_question_and_no_question_are_ordinary(words: WordTable) -> None:
    assert question_features([]).shape == (0, len(QUESTION_COLUMNS))
    assert np.isfinite(
        question_features([parse_question("", words), parse_question("?!", words)])
    ).all()


def test_hops_are_guessed_for_names_never_seen(words: WordTable) -> None:
    questions, hops = village(words)
    model = QuestionModel(words).fit(
        questions, {"hops": hops, "comparison": [float(one == 4) for one in hops]}
    )
    new = [parse_question(form.format("Zelda", "Yusuf"), words) for form in (ONE, TWO, FOUR)]
    guesses = model.predict(new)
    assert guesses.shape == (3, 2)
    assert guesses[0, 0] < guesses[1, 0] < guesses[2, 0]
    assert guesses[2, 1] > 0.5 > guesses[:2, 1].max()
    assert np.allclose(model.predict(new[:1])[0], guesses[0], atol=1e-5)
    assert model.predict([]).shape == (0, 2)
    assert np.isfinite(
        model.predict([parse_question("", words), parse_question("日本 ?" * 300, words)])
    ).all()


def test_a_saved_question_model_says_the_same_and_has_the_same_bytes(
    words: WordTable, tmp_path: Path
) -> None:
    questions, hops = village(words)
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        model = QuestionModel(words).fit(questions, {"hops": hops})
        model.save(folder)
    assert np.array_equal(
        QuestionModel.load(folders[0], words).predict(questions), model.predict(questions)
    )
    for file in folders[0].iterdir():
        assert file.read_bytes() == (folders[1] / file.name).read_bytes()


def test_damage_and_bad_input_are_told(words: WordTable, tmp_path: Path) -> None:
    questions, hops = village(words)
    with pytest.raises(NotReadyError):
        QuestionModel(words).predict(questions)
    with pytest.raises(NotReadyError):
        QuestionModel(words).save(tmp_path)
    for targets in ({}, {"hops": hops[:-1]}, {"hops": [float("nan")] * len(questions)}):
        with pytest.raises(InputError):
            QuestionModel(words).fit(questions, targets)
    with pytest.raises(DataError):
        QuestionModel.load(tmp_path, words)
    QuestionModel(words).fit(questions, {"hops": hops}).save(tmp_path)
    np.save(tmp_path / "question.npy", np.zeros((3, 1), np.float32))
    with pytest.raises(DataError, match="columns"):
        QuestionModel.load(tmp_path, words)
    (tmp_path / "question.json").write_text('{"targets": ["hops"]', encoding="utf-8")
    with pytest.raises(DataError):
        QuestionModel.load(tmp_path, words)
