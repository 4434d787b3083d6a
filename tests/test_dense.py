"""Dense retrieval: unit vectors from the default encoder, exact search in blocks, and the paper's proxy."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from suffice.errors import InputError
from suffice.protocols import Encoder
from suffice.registry import ENCODERS
from suffice.retrieval.dense import (
    VectorSearch,
    WordLlamaEncoder,
    nearest_vectors,
    unit_vectors,
)
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.ranking import top_k
from suffice.types import Condition, Document, Filter
from suffice_research.retrievers.signals import DenseProxy


@pytest.fixture(scope="module")
def encoder() -> WordLlamaEncoder:
    return WordLlamaEncoder()


def test_the_default_encoder_is_registered_and_keeps_the_port() -> None:
    made = ENCODERS.get("wordllama")()
    assert isinstance(made, Encoder)
    assert (made.name, made.dimension) == ("wordllama", 256)


def test_vectors_have_length_one_and_an_empty_text_gives_zeros(encoder: WordLlamaEncoder) -> None:
    vectors = encoder.encode(
        ["Ada Lovelace", "", " \n\t", "日本語のテキスト", "نص عربي", "\x00\x07", "\ud800"]
    )
    assert vectors.dtype == np.float32
    assert vectors.shape == (7, 256)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 0, 1, 1, 1, 1], atol=1e-5)


def test_no_texts_give_no_vectors(encoder: WordLlamaEncoder) -> None:
    assert encoder.encode([]).shape == (0, 256)


def test_meaning_without_shared_words_is_near(encoder: WordLlamaEncoder) -> None:
    question, doctor, soup = encoder.encode(
        ["a physician in a hospital", "the doctor treats patients", "leek and potato soup"]
    )
    assert question @ doctor > question @ soup + 0.1


def test_a_text_has_the_same_vector_in_every_batch(encoder: WordLlamaEncoder) -> None:
    alone = encoder.encode(["Mary Somerville wrote about astronomy"])
    crowd = encoder.encode(["soup " * 500, "Mary Somerville wrote about astronomy", ""])
    np.testing.assert_allclose(alone[0], crowd[1], atol=1e-6)


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
        "import logging\nfrom suffice.retrieval.dense import WordLlamaEncoder\nWordLlamaEncoder().encode(['a'])\n"
        "print(logging.getLogger().handlers, logging.getLogger().level)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"[] {logging.WARNING}"


def test_unit_leaves_a_zero_row_as_it_is() -> None:
    np.testing.assert_allclose(
        unit_vectors(np.array([[3.0, 4.0], [0.0, 0.0]])), [[0.6, 0.8], [0, 0]]
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_search_in_blocks_equals_one_product(dtype, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    matrix = unit_vectors(random.standard_normal((1000, 16))).astype(dtype)
    matrix[700] = matrix[3]  # a tie across blocks
    np.save(tmp_path / "vectors.npy", matrix)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    queries = np.vstack(
        [unit_vectors(random.standard_normal((20, 16))), matrix[3:4].astype(np.float32)]
    )
    whole = top_k(np.round(queries @ matrix.astype(np.float32).T, 6), 10)
    for rows in (7, 64, 10_000):
        found = nearest_vectors(mapped, queries, k=10, block_rows=rows)
        assert found.positions.tolist() == whole.positions.tolist()
        np.testing.assert_allclose(found.scores, whole.scores, atol=2e-6)
    assert found.positions[-1, :2].tolist() == [3, 700]


def test_a_mask_and_a_k_above_the_matrix_are_kept_to() -> None:
    matrix = np.eye(4, dtype=np.float32)
    found = nearest_vectors(
        matrix, matrix[:2], k=9, mask=np.array([False, True, True, False]), block_rows=2
    )
    assert [sorted(row[row >= 0].tolist()) for row in found.positions] == [[1, 2], [1, 2]]
    masks = np.array([[True, False, False, False], [False, False, False, False]])
    assert nearest_vectors(matrix, matrix[:2], k=1, mask=masks).positions.tolist() == [[0], [-1]]


def test_vectors_of_another_dimension_are_refused() -> None:
    with pytest.raises(InputError, match="do not fit"):
        nearest_vectors(np.eye(4), np.ones((1, 3)), k=1)


def test_an_empty_matrix_has_no_neighbours() -> None:
    assert nearest_vectors(np.zeros((0, 4)), np.ones((2, 4)), k=3).positions.shape == (2, 0)


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


@pytest.mark.parametrize("k", [0, -5])
def test_dense_search_checks_k(store: MemoryStore, encoder: WordLlamaEncoder, k: int) -> None:
    with pytest.raises(InputError, match="k is"):
        VectorSearch(store, encoder).search(["a"], k=k)


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
