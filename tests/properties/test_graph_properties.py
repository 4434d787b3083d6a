"""What holds for every document graph: symmetric, non-negative, linear in its seeds, blind to the
order of documents.
"""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from suffice.retrieval.corpus import Corpus
from suffice.types import Document
from suffice_research.retrievers.document_graph import DocumentGraph

documents = st.builds(
    Document,
    doc_id=st.uuids().map(str),
    text=st.just(""),
    source=st.sampled_from([None, "A", "B"]),
    category=st.sampled_from([None, "x", "y"]),
    published_at=st.none()
    | st.integers(0, 60).map(lambda days: date(2023, 10, 1) + timedelta(days=days)),
    entities=st.lists(st.sampled_from("efgh"), unique=True, max_size=3).map(tuple),
)
corpora = st.lists(documents, min_size=1, max_size=12, unique_by=lambda document: document.doc_id)


@given(corpora)
def test_support_is_symmetric_and_never_negative(found: list[Document]) -> None:
    matrix = DocumentGraph(Corpus(found)).propagate(np.eye(len(found), dtype=np.float32))
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-6)
    assert (matrix >= 0).all()
    assert not matrix.diagonal().any()


@given(corpora, st.integers(0, 2**32 - 1))
def test_support_adds_up_over_seeds(found: list[Document], seed: int) -> None:
    graph = DocumentGraph(Corpus(found))
    scores = np.random.default_rng(seed).random((1, len(found))).astype(np.float32)
    alone = graph.propagate(np.eye(len(found), dtype=np.float32))
    np.testing.assert_allclose(
        graph.propagate(scores, seeds=len(found)), scores @ alone, rtol=1e-4, atol=1e-5
    )


@given(corpora, st.randoms(use_true_random=False))
def test_the_order_of_documents_does_not_matter(found: list[Document], random) -> None:
    order = list(range(len(found)))
    random.shuffle(order)
    here = DocumentGraph(Corpus(found))
    there = DocumentGraph(Corpus([found[at] for at in order]))
    every = np.eye(len(order), dtype=np.float32)
    edges = here.propagate(every)[np.ix_(order, order)]
    np.testing.assert_allclose(there.propagate(every), edges, atol=1e-6)
    everything = np.arange(len(found))[None, :]
    np.testing.assert_allclose(here.density(everything), there.density(everything), atol=1e-9)


@given(corpora)
def test_density_lies_between_nothing_and_the_heaviest_edge(found: list[Document]) -> None:
    density = DocumentGraph(Corpus(found)).density(np.arange(len(found))[None, :])[0]
    assert 0 <= density <= 1.00 + 0.20 + 0.15 + 0.10 + 1e-9
