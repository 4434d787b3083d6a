"""The gate's model: learns a village, keeps copies together, survives being saved, refuses what it cannot use."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
)

from suffice.errors import DataError, InputError, NotReadyError
from suffice.gate.extraction import FeatureBatch, featurize
from suffice.gate.features import Feature
from suffice.gate.hits import NormalizedHits, normalize_hits
from suffice.gate.model import (
    GateModel,
    SubmodelLabels,
    Submodels,
    hit_features,
)
from suffice.gate.question import WordTable, parse_question
from suffice.gate.trees import trees_to_onnx
from suffice.storage.artefacts import OnnxTrees

pytestmark = pytest.mark.usefixtures("few_trees")


class Village(NamedTuple):
    words: WordTable
    batch: FeatureBatch
    labels: list[SubmodelLabels]
    texts: list[str]


def build(n: int, seed: int, words: WordTable) -> Village:
    """Films with a director, directors with a mother: the film is always found, the director only sometimes."""
    rng = np.random.default_rng(seed)
    hits, truths, texts = [], [], []
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
        found = (pages if complete else pages[:1]) + others
        texts.append(f"Who is the mother of the director of {film}?")
        hits.append(given(texts[-1], found, [9.0 - i for i in range(len(found))]))
        truths.append((complete, person))
    questions = [parse_question(text, words) for text in texts]
    batch = featurize(hits, questions, words)
    labels = []
    for one, (complete, person) in zip(batch.extractions, truths, strict=True):
        evidence = [i < (2 if complete else 1) for i in range(len(one.hits))]
        absent = [not complete and name == person for name in one.absent_names]
        labels.append(SubmodelLabels(complete, evidence, absent, {"hops": 2.0}))
    return Village(words, batch, labels, texts)


def given(
    question: str, found: Sequence[tuple[str, str]], scores: Sequence[float | None]
) -> NormalizedHits:
    named = enumerate(zip(found, scores, strict=True))
    hits = [
        {"doc_id": f"{at}", "title": title, "text": text, "score": score}
        for at, ((title, text), score) in named
    ]
    return normalize_hits(question, hits)


def log_odds(model: GateModel, batch: FeatureBatch) -> np.ndarray:
    return model.log_odds(model.describe(batch).table)


def first(batch: FeatureBatch, count: int) -> FeatureBatch:
    return batch.select(range(count))


def fit(village: Village, **options: Any) -> GateModel:
    return GateModel(village.words).fit(village.batch, village.labels, **options)


@pytest.fixture(scope="module")
def village() -> Village:
    return build(90, 0, WordTable.load())


@pytest.fixture(scope="module")
def model(village: Village) -> GateModel:
    return fit(village, groups=village.texts)


@pytest.fixture(scope="module")
def saved(model: GateModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    model.save(folder)
    return folder


def test_a_complete_set_is_told_from_one_without_its_bridge(
    village: Village, model: GateModel
) -> None:
    new = build(40, 7, village.words)
    odds = log_odds(model, new.batch)
    complete = np.array([one.complete for one in new.labels])
    assert odds.shape == (40,)
    assert odds[complete].min() > odds[~complete].max()
    assert len(model.log_odds_at_fit) == len(village.labels)


def test_a_model_is_as_quick_and_says_the_same_before_and_after_it_is_saved(
    village: Village, model: GateModel, saved: Path
) -> None:
    parts = (model._submodels.hit, model._ensemble.boosted, model._ensemble.extra)
    assert all(isinstance(one.trees, OnnxTrees) for one in parts)
    again = GateModel.load(saved, village.words)
    assert (log_odds(model, village.batch) == log_odds(again, village.batch)).all()


def test_without_onnx_a_model_is_fitted_all_the_same(
    village: Village, model: GateModel, monkeypatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    without = fit(village, groups=village.texts)
    assert isinstance(without._ensemble.extra.trees, ExtraTreesClassifier)
    some = first(village.batch, 9)
    np.testing.assert_allclose(log_odds(model, some), log_odds(without, some), atol=1e-4)


def test_questions_of_several_data_sets_are_told_to_fit(village: Village) -> None:
    sets = ["films", "plays"] * (len(village.labels) // 2)
    several = fit(village, groups=village.texts, data_sets=sets)
    complete = np.array([one.complete for one in village.labels])
    odds = several.log_odds_at_fit
    assert odds[complete].mean() > odds[~complete].mean()
    with pytest.raises(InputError, match="1 data sets for"):
        fit(village, data_sets=["films"])


def test_submodels_say_which_hits_are_evidence(village: Village) -> None:
    parts = Submodels(village.words).fit(village.batch, village.labels)
    rows = hit_features(village.batch.extractions, None)
    evidence = np.array([flag for one in village.labels for flag in one.evidence])
    p = parts.hit.p(rows)
    assert p[evidence].min() > p[~evidence].max()
    absent = parts.describe(village.batch).p_absent
    assert [len(one) for one in absent] == [len(one.absent) for one in village.batch.extractions]
    assert parts.describe(first(village.batch, 0)).p_absent == []


def test_the_same_data_and_seed_give_the_same_bytes(
    village: Village, saved: Path, tmp_path: Path
) -> None:
    fit(village, groups=village.texts).save(tmp_path)
    names = {file.name for file in saved.iterdir()}
    assert {"model.json", "question.json", "hit.onnx", "boosted.onnx", "extra.onnx"} <= names
    for name in names:
        assert (saved / name).read_bytes() == (tmp_path / name).read_bytes(), name


def test_copies_of_a_question_do_not_make_the_gate_surer(village: Village) -> None:
    twice = village.batch.select([*range(len(village.labels))] * 2)
    grouped = GateModel(village.words).fit(twice, village.labels * 2, groups=village.texts * 2)
    one, other = np.split(grouped.log_odds_at_fit, 2)
    assert np.allclose(one, other)  # both copies were judged by models that saw neither


def test_extra_columns_are_learned_wanted_ever_after_and_saved(
    village: Village, tmp_path: Path
) -> None:
    complete = np.array([one.complete for one in village.labels], dtype=float)
    extra = np.column_stack([complete, np.zeros(len(complete))])
    hit_extra = [np.array(one.evidence, dtype=float)[:, None] for one in village.labels]
    features = tuple(Feature("query", f"extra_{at}", "Extra.") for at in range(2))
    extended = village._replace(batch=village.batch.with_extra(features, extra, hit_extra))
    model = fit(extended)
    model.save(tmp_path)
    loaded, some = GateModel.load(tmp_path, village.words), first(extended.batch, 5)
    assert log_odds(loaded, some) == pytest.approx(log_odds(model, some), abs=1e-4)
    assert [one.name for one in loaded.features][-2:] == ["extra_0", "extra_1"]
    with pytest.raises(InputError, match="extra features are"):
        loaded.describe(first(village.batch, 5))
    with pytest.raises(InputError, match="a row for each hit"):
        loaded.describe(replace(some, hit_extra=hit_extra[:4]))


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
        file.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b'{"format": 2}')
    with pytest.raises(DataError):
        GateModel.load(tmp_path, village.words)


@pytest.mark.parametrize(
    ("key", "value", "message"), [("format", 1, "format 1"), ("schema", "abc", "other columns")]
)
def test_another_format_or_schema_is_refused(
    key: str, value: object, message: str, village: Village, saved: Path, tmp_path: Path
) -> None:
    record = copied(saved, tmp_path) / "model.json"
    record.write_text(
        json.dumps({**json.loads(record.read_text("utf-8")), key: value}), encoding="utf-8"
    )
    with pytest.raises(NotReadyError, match=message):
        GateModel.load(tmp_path, village.words)


def test_too_few_or_unfitting_labels_are_told(village: Village) -> None:
    words, batch, labels, _ = village
    for some in (0, 6):
        with pytest.raises(InputError, match="complete, expected at least 5"):
            GateModel(words).fit(first(batch, some), labels[:some])
    with pytest.raises(InputError, match="expected as many"):
        GateModel(words).fit(batch, labels[:-1])
    with pytest.raises(InputError, match="labels 1 have 0 hits"):
        GateModel(words).fit(batch, [SubmodelLabels(True, [], [], {"hops": 2.0}), *labels[1:]])
    with pytest.raises(InputError, match="groups"):
        GateModel(words).fit(batch, labels, groups=["a"])
    with pytest.raises(InputError, match="different questions"):
        GateModel(words).fit(batch, labels, groups=["a"] * len(labels))
    with pytest.raises(NotReadyError):
        GateModel(words).describe(batch)


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
    points = np.concatenate([rows, *steps, middles, np.full((1, 6), 1e30, np.float32)])
    trees = OnnxTrees(trees_to_onnx(kind, 6), columns=6)
    assert trees.p(points) == pytest.approx(kind.predict_proba(points)[:, 1], abs=1e-5)
    assert trees.p(points[:0]).shape == (0,)
    with pytest.raises(DataError, match="expected 'rows' of 7 columns"):
        OnnxTrees(trees_to_onnx(kind, 6), columns=7)


def test_checking_imports_no_scikit_learn(saved: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from suffice.gate.model import GateModel; "
        f"GateModel.load(Path({str(saved)!r})); print([m for m in ('sklearn', 'onnx', 'wordllama') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
