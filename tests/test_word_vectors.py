"""Words of like meaning cover a part of a question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from suffice.retrieval import word_vectors
from suffice.retrieval.encoders import WordLlamaEncoder
from suffice.retrieval.word_vectors import WordVectors


@pytest.fixture(scope="module")
def words() -> WordVectors:
    made = WordVectors.of(WordLlamaEncoder())
    assert made is not None
    return made


def test_a_marriage_is_more_of_a_wedding_than_an_invoice_is(words: WordVectors) -> None:
    like = words.likeness(["wedding", "paid"], [" their marriage ", " an invoice was paid ", ""])
    assert like.shape == (3, 2)
    assert like[0, 0] > like[1, 0]
    assert like[1, 1] == pytest.approx(1)
    assert not like[2].any()


def test_nothing_asked_and_nothing_said(words: WordVectors) -> None:
    assert words.likeness([], [" marriage "]).shape == (1, 0)
    assert words.likeness(["wedding"], []).shape == (0, 1)


def test_what_is_kept_is_bounded_and_changes_nothing(
    words: WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [" a marriage ", " a harbour master ", " x" * 3000]
    whole = words.likeness(["wedding"], texts)
    monkeypatch.setattr(word_vectors, "KEPT", 3)
    np.testing.assert_array_equal(words.likeness(["wedding"], texts), whole)
    np.testing.assert_array_equal(words.likeness(["wedding"], texts), whole)


def test_an_encoder_of_sentences_gives_no_words() -> None:
    class Sentences:
        name, dimension = "sentences", 2

        def encode(self, texts: Sequence[str], *, query: bool = False) -> npt.NDArray[np.float32]:
            return np.ones((len(texts), 2), np.float32)

    assert WordVectors.of(Sentences()) is None
