"""What every store shares: vectors as halves, compared as floats."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.retrieval.store_checks import WIDENED, similarity


def test_every_finite_half_counts_as_the_same_float() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)][:, None]
    one = np.ones((1, 1), np.float32)
    assert np.array_equal(similarity(one, halves), np.round(halves.astype(np.float32).T, 6))


@pytest.mark.parametrize("documents", [0, 1, WIDENED // 64, WIDENED // 64 + 1])
def test_halves_are_compared_in_parts(documents: int) -> None:
    rng = np.random.default_rng(3)
    records = np.zeros(documents, [("place", "<i8"), ("vector", "<f2", (64,))])  # as in a file
    records["vector"] = rng.normal(size=(documents, 64)) / 8
    questions = rng.normal(size=(3, 64)).astype(np.float32)
    found = similarity(questions, records["vector"])
    assert found.shape == (3, documents)
    assert np.allclose(found, questions @ records["vector"].astype(np.float32).T, atol=2e-6)
