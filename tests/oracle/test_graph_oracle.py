"""The factored graph against what it must equal: a dense matrix written down pair by pair."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import numpy.typing as npt
import pytest

from suffice.retrieval.corpus import Corpus
from suffice.types import Document
from suffice_research.retrievers.document_graph import DocumentGraph


def newsroom(seed: int, size: int) -> Corpus:
    """Documents with holes everywhere: some have no source, category, date or entity."""
    rng = np.random.default_rng(seed)

    def perhaps(value: str) -> str | None:
        return value if rng.random() < 0.8 else None

    def entities() -> tuple[str, ...]:
        return tuple(f"entity {n}" for n in rng.choice(12, size=rng.integers(0, 4), replace=False))

    return Corpus(
        Document(
            doc_id=str(n),
            text="",
            source=perhaps(f"source {rng.integers(4)}"),
            category=perhaps(f"category {rng.integers(3)}"),
            published_at=date(2023, 9, 1) + timedelta(days=int(rng.integers(120)))
            if rng.random() < 0.8
            else None,
            entities=entities(),
        )
        for n in range(size)
    )


def dense_reference(corpus: Corpus) -> npt.NDArray[np.float64]:
    """The edges of MAGAF 3.4, one pair at a time."""
    weights = np.zeros((len(corpus), len(corpus)))
    for i, a in enumerate(corpus.documents):
        for j, b in enumerate(corpus.documents):
            if i == j:
                continue
            weights[i, j] += 1.00 * bool(set(a.entities) & set(b.entities))
            weights[i, j] += 0.20 * (a.category is not None and a.category == b.category)
            weights[i, j] += 0.15 * (a.source is not None and a.source == b.source)
            if a.published_at and b.published_at:
                apart = abs((a.published_at - b.published_at).days)
                weights[i, j] += 0.10 if apart <= 7 else 0.04 if apart <= 30 else 0.0
    return weights


@pytest.mark.parametrize("seed", range(5))
def test_propagation_equals_the_dense_matrix(seed: int) -> None:
    corpus = newsroom(seed, 90)
    scores = np.random.default_rng(seed).random((7, 90)).astype(np.float32)
    seeds = np.zeros_like(scores)
    for row, best in enumerate(np.argsort(-scores, axis=1)[:, :20]):
        seeds[row, best] = scores[row, best]
    np.testing.assert_allclose(
        DocumentGraph(corpus).propagate(scores),
        seeds @ dense_reference(corpus),
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("seed", range(5))
def test_density_equals_the_dense_matrix(seed: int) -> None:
    corpus = newsroom(seed, 60)
    rng = np.random.default_rng(seed)
    weights = dense_reference(corpus)
    sets = np.stack([rng.choice(60, size=8, replace=False) for _ in range(30)])
    expected = [2 * np.triu(weights[np.ix_(one, one)]).sum() / (8 * 7) for one in sets]
    np.testing.assert_allclose(DocumentGraph(corpus).density(sets), expected, atol=1e-12)
