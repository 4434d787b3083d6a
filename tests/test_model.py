"""The gate's model: learns a village, keeps copies together, survives being saved, refuses what it cannot use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
)

from suffice.errors import DataError, InputError, NotReadyError
from suffice.gate.extraction import Extraction, extract
from suffice.gate.model import GateModel, OnnxTrees, SubmodelLabels, Submodels, trees_to_onnx
from suffice.gate.question import ParsedQuestion, WordTable, parse_question

pytestmark = pytest.mark.usefixtures("few_trees")


class Village(NamedTuple):
    words: WordTable
    asked: list[ParsedQuestion]
    readings: list[Extraction]
    lessons: list[SubmodelLabels]
    texts: list[str]


def build(n: int, seed: int, words: WordTable) -> Village:
    """Films with a director, directors with a mother: the film is always found, the director only sometimes."""
    rng = np.random.default_rng(seed)
    village = Village(words, [], [], [], [])
    for at in range(n):
        film, person, mother = f"Lantern {at} of Rovena", f"Marek Dolan{at}", f"Hilde Dolan{at}"
        complete = bool(rng.random() < 0.5)
        pages = [
            (film, f"{film} is a film. Its director was {person}."),
            (person, f"{person} was born to {mother}, a painter."),
        ]
        others = [
            (f"Mill {i}", f"Mill {i} stands near a river, {rng.integers(1900, 2000)}.")
            for i in rng.integers(0, 99, 3)
        ]
        hits = (pages if complete else pages[:1]) + others
        question = f"Who is the mother of the director of {film}?"
        asked = parse_question(question, words)
        reading = extract(
            asked,
            [t for t, _ in hits],
            [x for _, x in hits],
            [9.0 - i for i in range(len(hits))],
            words,
        )
        held = [i < (2 if complete else 1) for i in range(len(hits))]
        absent = [not complete and name == person for name in reading.absent_names]
        village.asked.append(asked)
        village.readings.append(reading)
        village.lessons.append(SubmodelLabels(complete, held, absent, {"hops": 2.0}))
        village.texts.append(question)
    return village


@pytest.fixture(scope="module")
def village() -> Village:
    return build(90, 0, WordTable.load())


@pytest.fixture(scope="module")
def model(village: Village) -> GateModel:
    return GateModel(village.words).fit(*village[1:4], groups=village.texts)


@pytest.fixture(scope="module")
def saved(model: GateModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    model.save(folder)
    return folder


def test_a_complete_set_is_told_from_one_without_its_bridge(
    village: Village, model: GateModel
) -> None:
    new = build(40, 7, village.words)
    p = model.predict(new.asked, new.readings)
    complete = np.array([one.complete for one in new.lessons])
    assert p.shape == (40,)
    assert p[complete].min() > p[~complete].max()
    assert np.allclose(model.odds(model.describe(new.asked, new.readings)).argsort(), p.argsort())
    assert len(model.odds_at_fit) == len(village.lessons)


def test_a_model_is_as_quick_and_says_the_same_before_and_after_it_is_saved(
    village: Village, model: GateModel, saved: Path
) -> None:
    assert all(
        isinstance(one.trees, OnnxTrees)
        for one in (model._parts.hit, model._whole.boosted, model._whole.extra)
    )
    again = GateModel.load(saved, village.words)
    assert (
        model.predict(village.asked, village.readings)
        == again.predict(village.asked, village.readings)
    ).all()


def test_without_onnx_a_model_is_fitted_all_the_same(
    village: Village, model: GateModel, monkeypatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    without = GateModel(village.words).fit(*village[1:4], groups=village.texts)
    assert isinstance(without._whole.extra.trees, ExtraTreesClassifier)
    both = [one.predict(village.asked[:9], village.readings[:9]) for one in (model, without)]
    np.testing.assert_allclose(*both, atol=1e-5)


def test_questions_of_several_data_sets_are_told_to_fit(village: Village) -> None:
    sets = ["films", "plays"] * (len(village.lessons) // 2)
    several = GateModel(village.words).fit(*village[1:4], groups=village.texts, sets=sets)
    complete = np.array([one.complete for one in village.lessons])
    assert several.odds_at_fit[complete].mean() > several.odds_at_fit[~complete].mean()
    with pytest.raises(InputError, match="1 data sets for"):
        GateModel(village.words).fit(*village[1:4], sets=["films"])


def test_parts_say_which_hits_are_evidence(village: Village) -> None:
    parts = Submodels(village.words).fit(village.asked, village.readings, village.lessons)
    for p, lesson in zip(parts.hit_probabilities(village.readings), village.lessons, strict=True):
        held = np.array(lesson.held)
        assert p[held].min() > p[~held].max()
    absent = parts.absent_probabilities(village.readings)
    assert [len(one) for one in absent] == [len(one.absent) for one in village.readings]
    assert parts.hit_probabilities([]) == []


def test_one_by_one_and_all_at_once_are_the_same(village: Village, model: GateModel) -> None:
    together = model.predict(village.asked[:8], village.readings[:8])
    alone = [
        model.predict([a], [r])[0]
        for a, r in zip(village.asked[:8], village.readings[:8], strict=True)
    ]
    assert together == pytest.approx(alone, abs=1e-6)


def test_no_question_no_hit_and_many_hits_are_ordinary(
    village: Village, model: GateModel, saved: Path
) -> None:
    loaded = GateModel.load(saved, village.words)
    asked = parse_question("Who is the mother of Ada?", village.words)
    none = extract(asked, [], [], None, village.words)
    many = extract(asked, ["Ada"] * 40, ["Ada was a village."] * 40, [None] * 40, village.words)
    for one in (model, loaded):
        assert one.predict([], []).shape == (0,)
        p = one.predict([asked, asked], [none, many])
        assert ((p > 0) & (p < 1)).all()
        assert len(one.judge([asked], [none])[1]) == 1


def test_what_is_loaded_says_the_same(village: Village, model: GateModel, saved: Path) -> None:
    loaded, new = GateModel.load(saved, village.words), build(60, 3, village.words)
    assert loaded.predict(new.asked, new.readings) == pytest.approx(
        model.predict(new.asked, new.readings), abs=1e-5
    )
    ours, theirs = (one.judge(new.asked, new.readings) for one in (loaded, model))
    assert ours[0] == pytest.approx(theirs[0], abs=1e-4)
    for mine, yours in zip(ours[1], theirs[1], strict=True):
        assert mine == pytest.approx(yours, abs=1e-5)
    assert loaded.features == model.features
    assert loaded.settings == model.settings


def test_the_same_data_and_seed_give_the_same_bytes(
    village: Village, saved: Path, tmp_path: Path
) -> None:
    GateModel(village.words).fit(*village[1:4], groups=village.texts).save(tmp_path)
    names = {file.name for file in saved.iterdir()}
    assert {"model.json", "question.json", "hit.onnx", "boosted.onnx", "extra.onnx"} <= names
    for name in names:
        assert (saved / name).read_bytes() == (tmp_path / name).read_bytes(), name


def test_copies_of_a_question_do_not_make_the_gate_surer(
    village: Village, model: GateModel
) -> None:
    double = [items * 2 for items in village[1:4]]
    grouped = GateModel(village.words).fit(*double, groups=village.texts * 2)  # type: ignore[arg-type]
    first, second = np.split(grouped.odds_at_fit, 2)
    assert np.allclose(first, second)  # both copies were judged by models that saw neither


def test_extra_columns_are_learned_wanted_ever_after_and_saved(
    village: Village, tmp_path: Path
) -> None:
    complete = np.array([one.complete for one in village.lessons], dtype=float)
    more = np.column_stack([complete, np.zeros(len(complete))])
    hit_more = [np.array(one.held, dtype=float)[:, None] for one in village.lessons]
    model = GateModel(village.words).fit(*village[1:4], more=more, hit_more=hit_more)
    model.save(tmp_path)
    loaded = GateModel.load(tmp_path, village.words)
    given: dict[str, Any] = {"more": more[:5], "hit_more": hit_more[:5]}
    before = model.predict(village.asked[:5], village.readings[:5], **given)
    assert loaded.predict(village.asked[:5], village.readings[:5], **given) == pytest.approx(
        before, abs=1e-5
    )
    assert [one.name for one in loaded.features][-2:] == ["more_0", "more_1"]
    for missing in (
        {},
        {"more": more[:5]},
        {"hit_more": hit_more[:5]},
        {**given, "more": more[:5, :1]},
    ):
        with pytest.raises(InputError):
            loaded.predict(village.asked[:5], village.readings[:5], **missing)


def copied(saved: Path, folder: Path) -> Path:
    for file in saved.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


@pytest.mark.parametrize(
    "name",
    ["model.json", "question.json", "question.npy", "hit.onnx", "boosted.onnx", "extra.onnx"],
)
@pytest.mark.parametrize("damage", ["missing", "cut", "swapped"])
def test_a_damaged_file_is_refused(
    name: str, damage: str, village: Village, saved: Path, tmp_path: Path
) -> None:
    file = copied(saved, tmp_path) / name
    whole = file.read_bytes()
    file.unlink()
    if damage != "missing":
        file.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b'{"format": 1}')
    with pytest.raises(DataError):
        GateModel.load(tmp_path, village.words)


@pytest.mark.parametrize(
    ("key", "value", "said"), [("format", 2, "format 2"), ("schema", "abc", "other columns")]
)
def test_another_format_or_schema_is_refused(
    key: str, value: object, said: str, village: Village, saved: Path, tmp_path: Path
) -> None:
    record = copied(saved, tmp_path) / "model.json"
    record.write_text(
        json.dumps({**json.loads(record.read_text("utf-8")), key: value}), encoding="utf-8"
    )
    with pytest.raises(NotReadyError, match=said):
        GateModel.load(tmp_path, village.words)


def test_too_few_or_unfitting_lessons_are_told(village: Village) -> None:
    words, asked, readings, lessons, _ = village
    with pytest.raises(InputError, match="complete, expected at least 5"):
        GateModel(words).fit([], [], [])
    with pytest.raises(InputError, match="complete, expected at least 5"):
        GateModel(words).fit(asked[:6], readings[:6], lessons[:6])
    with pytest.raises(InputError, match="expected as many of each"):
        GateModel(words).fit(asked, readings, lessons[:-1])
    with pytest.raises(InputError, match="lesson 1 has 0 hits"):
        GateModel(words).fit(
            asked, readings, [SubmodelLabels(True, [], [], {"hops": 2.0}), *lessons[1:]]
        )
    with pytest.raises(InputError, match="groups"):
        GateModel(words).fit(asked, readings, lessons, groups=["a"])
    with pytest.raises(InputError, match="different questions"):
        GateModel(words).fit(asked, readings, lessons, groups=["a"] * len(asked))
    with pytest.raises(NotReadyError):
        GateModel(words).predict(asked, readings)


def test_a_few_dozen_questions_are_enough_to_fit(village: Village) -> None:
    small = GateModel(village.words).fit(*(items[:24] for items in village[1:4]))  # type: ignore[arg-type]
    p = small.predict(village.asked[24:], village.readings[24:])
    complete = np.array([one.complete for one in village.lessons[24:]])
    assert p[complete].mean() > p[~complete].mean()


@pytest.mark.parametrize(
    "kind",
    [
        HistGradientBoostingClassifier(max_iter=30, random_state=0),
        ExtraTreesClassifier(30, random_state=0),
    ],
)
def test_rows_right_at_a_threshold_fall_to_the_same_side_as_in_scikit_learn(kind: Any) -> None:
    rng = np.random.default_rng(0)
    rows = (rng.integers(0, 40, (400, 6)) / 7).astype(np.float32)
    kind.fit(rows, rows[:, 0] + rows[:, 1] * rows[:, 2] / 3 > 6)
    steps = [np.nextafter(rows, np.float32(to)) for to in (-np.inf, np.inf)]
    middles = (rows + np.roll(rows, 1, axis=0)) / 2
    asked = np.concatenate([rows, *steps, middles, np.full((1, 6), 1e30, np.float32)])
    trees = OnnxTrees(trees_to_onnx(kind, 6), columns=6)
    assert trees.p(asked) == pytest.approx(kind.predict_proba(asked)[:, 1], abs=1e-5)
    assert trees.p(asked[:0]).shape == (0,)
    with pytest.raises(DataError, match="expected 'rows' of 7 columns"):
        OnnxTrees(trees_to_onnx(kind, 6), columns=7)


def test_only_two_class_tree_models_are_saved() -> None:
    rows = np.arange(60, dtype=np.float32).reshape(-1, 1)
    with pytest.raises(InputError, match="two classes"):
        trees_to_onnx(ExtraTreesClassifier(3).fit(rows, np.arange(60) % 3), 1)
    with pytest.raises(InputError, match="not a tree model that can be saved"):
        trees_to_onnx(GradientBoostingClassifier(n_estimators=2).fit(rows, rows[:, 0] > 30), 1)


def test_checking_imports_no_scikit_learn(saved: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from suffice.gate.model import GateModel; "
        f"GateModel.load(Path({str(saved)!r})); print([m for m in ('sklearn', 'onnx', 'wordllama') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
