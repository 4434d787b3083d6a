"""The store in memory: immutable views, and exact vector search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from suffice.retrieval.encoders import unit_vectors
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.ranking import top_k
from suffice.testing import VILLAGE, VILLAGE_VECTORS
from suffice.types import Document


def test_a_reader_of_documents_is_not_disturbed_by_a_writer() -> None:
    store = MemoryStore(VILLAGE)
    reading = store.documents()
    first = next(reading)
    store.delete([one.doc_id for one in VILLAGE])
    assert [first, *reading] == list(VILLAGE)
    assert list(store.documents()) == []


def test_a_bad_document_in_the_middle_leaves_the_store_as_it_was() -> None:
    store = MemoryStore(VILLAGE)

    def broken() -> Iterator[Document]:
        yield Document("new", "text")
        raise RuntimeError("the source went away")

    with pytest.raises(RuntimeError, match="went away"):
        store.put(broken())
    assert store.get(["new"]) == [None]
    assert store.generation == 1


def test_hits_say_that_bm25_or_dense_found_them() -> None:
    store = MemoryStore(VILLAGE, VILLAGE_VECTORS)
    (text,) = store.search_text(["poet"], k=1)
    (near,) = store.search_vectors(VILLAGE_VECTORS[:1], k=1)
    assert [part.name for part in text[0].parts] == ["bm25"]
    assert [part.name for part in near[0].parts] == ["dense"]


def test_negative_inner_products_are_hits_too() -> None:
    store = MemoryStore([Document("a", ""), Document("b", "")], np.array([[1.0, 0.0], [-1.0, 0.0]]))
    (hits,) = store.search_vectors(np.array([[1.0, 0.0]]), k=5)
    assert [(hit.doc_id, hit.score) for hit in hits] == [("a", 1.0), ("b", -1.0)]


def numbered(vectors: np.ndarray, **metadata: Any) -> MemoryStore:
    return MemoryStore([Document(str(at), "", **metadata) for at in range(len(vectors))], vectors)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_vector_search_in_blocks_equals_one_product(
    dtype: type[np.floating], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(5)
    matrix = unit_vectors(random.standard_normal((1000, 16))).astype(dtype)
    matrix[700] = matrix[3]  # a tie
    queries = np.vstack([unit_vectors(random.standard_normal((20, 16))), matrix[3:4]])
    kept = matrix.astype(np.float16).astype(np.float32)  # what a store keeps
    whole = top_k(np.round(queries.astype(np.float32) @ kept.T, 6), 10)
    for rows in (1, 7, 10_000):
        monkeypatch.setattr("suffice.retrieval.ranking.BLOCK_BYTES", 4 * 1000 * rows)
        found = numbered(matrix).search_vectors(queries, k=10)
        assert [[int(hit.doc_id) for hit in hits] for hits in found] == whole.positions.tolist()
        scores = np.array([[hit.score for hit in hits] for hits in found])
        np.testing.assert_allclose(scores, whole.scores, atol=2e-6)
    assert [hit.doc_id for hit in found[-1][:2]] == ["3", "700"]
