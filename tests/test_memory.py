"""The store in memory, where it differs from others: what a view is and that it does not change under a reader."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from suffice.retrieval.memory import MemoryStore
from suffice.testing import VILLAGE, VILLAGE_VECTORS
from suffice.types import Document


def test_documents_can_be_given_when_it_is_made() -> None:
    store = MemoryStore(VILLAGE, VILLAGE_VECTORS)
    assert len(store) == len(VILLAGE)
    assert store.generation == 1
    assert store.search_vectors(VILLAGE_VECTORS[1:2], k=1)[0][0].doc_id == "babbage"


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
