from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from suffice.errors import DataError, NotReadyError
from suffice.gate.question import SHIPPED_WORD_TABLE, WordTable


@pytest.fixture(scope="module")
def words() -> WordTable:
    return WordTable.load()


def test_a_common_word_is_less_rare_than_a_special_one_and_an_unknown_one_is_as_rare_as_can_be(
    words: WordTable,
) -> None:
    common, ordinary, special, unknown = words.rarities(
        [b"people", b"the", b"director", b"brontosaurus"]
    )
    assert 0 < ordinary < special < unknown == 1.0
    assert 0 < common < special


def test_a_plural_is_as_rare_as_its_singular(words: WordTable) -> None:
    one, many = words.rarities([b"android", b"androids"])
    assert one == many < 1.0


def test_related_words_lie_closer_than_unrelated_ones(words: WordTable) -> None:
    king, queen, potato = words.vectors([[b"king"], [b"queen"], [b"potato"]])
    assert king @ queen > king @ potato


def test_a_bag_has_a_unit_vector_whatever_its_order_and_an_unknown_or_empty_one_has_none(
    words: WordTable,
) -> None:
    ahead, back, unknown, empty = words.vectors(
        [[b"old", b"city"], [b"city", b"old"], [b"qqqq"], []]
    )
    np.testing.assert_allclose(ahead, back, atol=1e-6)
    assert np.linalg.norm(ahead) == pytest.approx(1.0, abs=1e-5)
    assert not unknown.any()
    assert not empty.any()
    assert words.vectors([]).shape == (0, words.dimensions)
    assert ahead.dtype == np.float32


def test_the_shipped_table_is_small() -> None:
    assert sum(file.stat().st_size for file in SHIPPED_WORD_TABLE.iterdir()) <= 4 * 2**20


def test_a_damaged_or_absent_table_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match="word table") as absent:
        WordTable.load(tmp_path / "nowhere")
    assert "suffice_research.training.word_table" in str(absent.value.hint)
    broken = tmp_path / "broken"
    shutil.copytree(SHIPPED_WORD_TABLE, broken)
    (broken / "rarity.npy").write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"rarity\.npy"):
        WordTable.load(broken)


def test_the_shipped_table_is_what_its_maker_makes(tmp_path: Path) -> None:
    training = pytest.importorskip(
        "suffice_research.training.word_table",
        reason="the training folder is not beside the package",
    )
    training.make(tmp_path / "words")
    for file in ("words.npy", "rarity.npy", "vectors.npy"):
        assert (tmp_path / "words" / file).read_bytes() == (SHIPPED_WORD_TABLE / file).read_bytes()
