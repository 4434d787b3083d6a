"""Small formulas that more than one part needs."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.numeric import multiply_rows


@pytest.mark.parametrize("shape", [(97, 2), (97,)])
def test_a_row_is_multiplied_the_same_alone_and_among_others(shape: tuple[int, ...]) -> None:
    draw = np.random.default_rng(1)
    rows, weights = draw.normal(size=(700, 97)).astype(np.float32), draw.normal(size=shape)
    found = multiply_rows(rows, weights)
    np.testing.assert_allclose(found, rows @ weights, rtol=1e-6, atol=1e-9)
    for count in (1, 38, 305):
        assert np.array_equal(multiply_rows(rows[:count], weights), found[:count])
    assert multiply_rows(rows[:0], weights).shape == (rows[:0] @ weights).shape
