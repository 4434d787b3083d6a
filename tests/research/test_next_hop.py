"""The next-hop encoder: bge-small with adapters, and what its searches tell the ranker."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.research.test_bridge_quality import DIRECTOR, FILM, QUESTION, RIVER

from suffice.errors import DataError, NotReadyError
from suffice.integrations.onnx import BGE_SMALL, bge_small, packaged_model
from suffice.types import Hit
from suffice_research.next_hop import (
    ADAPTERS_FILE,
    SHIPPED_MODEL,
    Ahead,
    NextHopEncoder,
    OnnxNextHopEncoder,
    adapted,
)


@pytest.fixture(scope="module")
def shipped() -> OnnxNextHopEncoder:
    return OnnxNextHopEncoder()


def test_with_the_film_held_the_vector_moves_to_its_director(shipped: OnnxNextHopEncoder) -> None:
    assert isinstance(shipped, NextHopEncoder)
    passages = bge_small(threads=1).encode([FILM, DIRECTOR, RIVER])
    before, after = shipped.encode([QUESTION] * 2, [[], [FILM]]) @ passages.T
    assert before.argmax() == 0
    assert after.argmax() == 1
    assert shipped.encode([QUESTION], [[FILM]]).tolist() == [
        shipped.encode([RIVER, QUESTION], [[], [FILM]])[1].tolist()
    ]


@pytest.mark.parametrize("odd", ["", " ", "x" * 100_000, "\ud800", "[SEP][CLS]"])
def test_odd_texts_have_unit_vectors(shipped: OnnxNextHopEncoder, odd: str) -> None:
    vectors = shipped.encode([odd, odd], [[], [odd, FILM]])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-5)


def test_adapters_that_are_zero_change_nothing_and_those_of_another_model_are_refused() -> None:
    from suffice.integrations.onnx import pad_tokens
    from suffice.storage.artefacts import open_onnx

    plain = (packaged_model(BGE_SMALL) / "model.onnx").read_bytes()
    name = "encoder.layer.3.attention.self.query"
    down, up = np.ones((384, 2), np.float32), np.zeros((2, 384), np.float32)
    zero = {f"{name}.down": down, f"{name}.up": up}
    feed = pad_tokens([((101, 2054, 102), (0, 0, 0))])
    first, second = (
        open_onnx(one, threads=1, hint="").run(None, feed)[0]
        for one in (plain, adapted(plain, zero))
    )
    assert np.allclose(first, second, atol=1e-5)
    with pytest.raises(NotReadyError, match="another model"):
        adapted(plain, {"decoder.down": down})


def test_damaged_adapters_say_how_to_make_them_again(tmp_path: Path) -> None:
    folder = tmp_path / "next-hop"
    shutil.copytree(SHIPPED_MODEL, folder)
    (folder / ADAPTERS_FILE).write_bytes(b"nothing")
    with pytest.raises(DataError):
        OnnxNextHopEncoder(folder)
    with pytest.raises(NotReadyError):
        OnnxNextHopEncoder(tmp_path / "nowhere")


def test_what_is_ahead_counts_ranks_without_the_held_and_remembers_the_best() -> None:
    ahead = Ahead()
    ahead.add([Hit("a", 0.9, ()), Hit("b", 0.5, ()), Hit("c", 0.4, ())], frozenset())
    assert ahead.rows(["a", "c", "d"]).tolist() == [
        [1, 1, 1],
        [0, pytest.approx(1 / 3), pytest.approx(1 / 3)],
        [0, 0, 0],
    ]
    ahead.add([Hit("a", 0.9, ()), Hit("c", 0.8, ()), Hit("b", 0.8, ())], frozenset({"a"}))
    assert ahead.rows(["a", "b", "c"]).tolist() == [[0, 0, 1], [0, 0.5, 0.5], [0, 1, 1]]
    ahead.add([], frozenset())
    assert ahead.rows(["b"]).tolist() == [[0, 0, 0.5]]
