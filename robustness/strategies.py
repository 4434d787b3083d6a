"""Hypothesis strategies: inputs like a valid value, in which any part may be any other JSON."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from robustness.mutations import ODD_TEXTS, Input, Seed

__all__ = ["similar_inputs", "similar_values"]

_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(ODD_TEXTS)
)
ANY_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def similar_values(value: Any) -> st.SearchStrategy[Any]:
    """Values like this one: lists of other lengths, objects with missing or extra fields, leaves of
    any type.
    """
    if isinstance(value, dict):
        fields = {name: similar_values(one) for name, one in value.items()}
        kept: st.SearchStrategy[Any] = st.fixed_dictionaries(
            {}, optional=fields
        ) | st.fixed_dictionaries(fields)
    elif isinstance(value, list):
        kept = (
            st.lists(st.one_of([similar_values(one) for one in value]), max_size=4)
            if value
            else st.just([])
        )
    elif isinstance(value, str):
        kept = st.just(value) | st.text()
    else:
        kept = st.just(value) | (st.integers() if isinstance(value, int) else st.floats())
    return kept | kept | ANY_JSON


def similar_inputs(seed: Seed) -> st.SearchStrategy[Input]:
    """Inputs like a JSON seed; one value if its lines are values."""
    first = json.loads((seed.values or ("null",))[0])
    return similar_values(first).map(lambda value: Input(seed.part, json.dumps(value).encode()))
