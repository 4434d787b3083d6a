"""Encoders: unit vectors of the default encoder, vector search, and the papers' proxy."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.errors import InputError
from suffice.retrieval.encoders import WordLlamaEncoder
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.search import VectorSearch
from suffice.types import Condition, Document, Filter
from suffice_research.retrievers.signals import DenseProxy


@pytest.fixture(scope="module")
def encoder() -> WordLlamaEncoder:
    return WordLlamaEncoder()


def test_vectors_have_length_one_and_an_empty_text_gives_zeros(encoder: WordLlamaEncoder) -> None:
    vectors = encoder.encode(
        ["Ada Lovelace", "", " \n\t", "日本語のテキスト", "نص عربي", "\x00\x07", "\ud800"]
    )
    assert vectors.dtype == np.float32
    assert vectors.shape == (7, 256)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 0, 1, 1, 1, 1], atol=1e-5)


def test_meaning_without_shared_words_is_near(encoder: WordLlamaEncoder) -> None:
    question, doctor, soup = encoder.encode(
        ["a physician in a hospital", "the doctor treats patients", "leek and potato soup"]
    )
    assert question @ doctor > question @ soup + 0.1


def test_vectors_equal_wordllamas_own(encoder: WordLlamaEncoder) -> None:
    import wordllama

    texts = [
        "Ada Lovelace was taught mathematics by Mary Somerville.",
        "Who wrote, in 1843, the first program?",
    ]
    theirs = wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, disable_download=True
    ).embed(texts, norm=True)
    np.testing.assert_allclose(encoder.encode(texts), theirs, atol=1e-5)


def test_ten_megabytes_are_encoded_in_seconds(encoder: WordLlamaEncoder) -> None:
    vectors = encoder.encode(["word salad " * 900_000, "x" * 1_000_000])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_loading_the_encoder_leaves_logging_alone() -> None:
    code = (
        "import logging\nfrom suffice.retrieval.encoders import WordLlamaEncoder\nWordLlamaEncoder().encode(['a'])\n"
        "print(logging.getLogger().handlers, logging.getLogger().level)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"[] {logging.WARNING}"


@pytest.fixture(scope="module")
def store(encoder: WordLlamaEncoder) -> MemoryStore:
    documents = [
        Document("doctor", "the doctor treats patients", source="Lancet"),
        Document("soup", "leek and potato soup", source="Menu"),
        Document("stars", "the telescope shows planets"),
    ]
    return MemoryStore(documents, encoder.encode([document.text for document in documents]))


def test_the_nearest_document_is_found_and_says_by_whom(
    store: MemoryStore, encoder: WordLlamaEncoder
) -> None:
    first, nothing, second = VectorSearch(store, encoder).search(
        ["a physician in a hospital", " ", "astronomy"], k=1
    )
    assert first[0].doc_id == "doctor"
    assert first[0].parts[0].name == "dense"
    assert nothing == ()
    assert second[0].doc_id == "stars"


def test_filters_stay_with_their_questions_when_an_empty_one_falls_away(
    store: MemoryStore, encoder: WordLlamaEncoder
) -> None:
    menu = Filter((Condition("source", "$in", ("Menu",)),))
    found = VectorSearch(store, encoder).search(
        ["", "a physician", "a physician"], k=3, filters=[menu, menu, None]
    )
    assert [[hit.doc_id for hit in hits][:1] for hits in found] == [[], ["soup"], ["doctor"]]


class Gives:
    """An encoder that gives the same for any texts."""

    name, dimension = "gives", 2

    def __init__(self, given: Any) -> None:
        self.given = given

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
        return self.given


def test_an_encoder_may_give_lists_and_is_told_when_it_gives_something_else() -> None:
    store = MemoryStore([Document("a", "Ada"), Document("b", "Byron")], np.eye(2))
    (found,) = VectorSearch(store, Gives([[0.0, 1.0]])).search(["Byron"], k=1)
    assert found[0].doc_id == "b"
    assert VectorSearch(store, Gives([])).search([], k=1) == []
    for given, problem in (
        (None, "vectors have shape"),
        ([[np.nan, 1.0]], "nan or infinity"),
        (np.eye(2), "gave 2 vectors for 1 questions"),
    ):
        with pytest.raises(InputError, match=problem):
            VectorSearch(store, Gives(given)).search(["Byron"], k=1)


class Fixed:
    name = "fixed"

    def scores(self, questions: Sequence[str]) -> np.ndarray:
        return np.tile(np.array([0.5, 0.5, 0.0, 0.9], np.float32), (len(questions), 1))


def test_the_proxy_breaks_ties_alike_in_every_process_and_finds_nothing_new() -> None:
    proxy = DenseProxy(Fixed())
    first, second = proxy.scores(["Who taught Ada?", "Where is the soup?"])
    assert first[2] == second[2] == 0
    assert first[0] != first[1]
    assert abs(first - Fixed().scores(["x"])[0]).max() <= 0.001
    assert first.tolist() != second.tolist()
    assert proxy.scores(["Who taught Ada?"])[0].tolist() == first.tolist()
    # Fixed by sha256, not by hash(), which every process salts anew.
    np.testing.assert_allclose(first, [0.5000155, 0.5006524, 0.0, 0.9001585], atol=1e-6)
