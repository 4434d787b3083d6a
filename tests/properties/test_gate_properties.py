"""What must not change a verdict does not change it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.small_gate import K, fresh, shown, small_gate

from suffice.errors import InputError
from suffice.gate.hits import normalize_hits
from suffice.types import Verdict

places = st.integers(min_value=0, max_value=59)
words = st.text(max_size=60)
numbers = st.one_of(st.none(), st.floats(), st.integers(-(10**6), 10**6))


def verdict(question: str, hits: list[dict[str, Any]]) -> Verdict:
    return small_gate().check(question, hits)


def same(one: Verdict, other: Verdict) -> None:
    np.testing.assert_allclose(
        [one.estimate.p_complete, one.estimate.low, one.estimate.high],
        [other.estimate.p_complete, other.estimate.low, other.estimate.high],
        atol=1e-6,
    )
    assert (one.action, one.missing, one.next_queries) == (
        other.action,
        other.missing,
        other.next_queries,
    )
    assert [reason.words for reason in one.reasons] == [reason.words for reason in other.reasons]


@settings(max_examples=25)
@given(places, st.lists(st.text(min_size=1, max_size=8), min_size=K, max_size=K, unique=True))
def test_ids_are_only_names(place: int, ids: list[str]) -> None:
    example = fresh()[place]
    hits = shown(example)
    renamed = [{**hit, "id": name} for hit, name in zip(hits, ids, strict=True)]
    same(verdict(example.question, hits), verdict(example.question, renamed))


@settings(max_examples=25)
@given(places, st.floats(0.001, 1000))
def test_any_positive_factor_leaves_the_probability_where_it_was(place: int, factor: float) -> None:
    example = fresh()[place]
    hits = shown(example)
    scaled = [{**hit, "score": float(hit["score"]) * factor} for hit in hits]  # type: ignore[arg-type]
    before, after = verdict(example.question, hits), verdict(example.question, scaled)
    assert (
        abs(before.p_complete - after.p_complete) < 0.02
    )  # a share may fall to the other side of a split by rounding


@settings(max_examples=25)
@given(places, st.integers(0, K - 2), st.permutations(range(3)), st.booleans())
def test_copies_may_stand_in_any_order(
    place: int, which: int, order: list[int], other_ids: bool
) -> None:
    example = fresh()[place]
    hits = shown(example)
    copies = [
        {**hits[which], "id": f"copy {at}" if other_ids else hits[which]["id"]} for at in order
    ]
    same(
        verdict(example.question, hits),
        verdict(example.question, [*hits[: which + 1], *copies, *hits[which + 1 :]]),
    )


@settings(max_examples=25)
@given(places, st.lists(words, max_size=4))
def test_what_comes_after_the_cut_off_is_not_read(place: int, more: list[str]) -> None:
    example = fresh()[place]
    hits = shown(example)
    added = [{"id": f"more {at}", "text": text} for at, text in enumerate(more)]
    same(verdict(example.question, hits), verdict(example.question, [*hits, *added]))


@settings(max_examples=60)
@given(words, st.lists(st.tuples(words, words, numbers), max_size=5))
def test_any_text_gets_a_probability_within_its_interval(
    question: str, hits: list[tuple[str, str, Any]]
) -> None:
    estimate = small_gate().check(question, hits).estimate
    assert 0 <= estimate.low <= estimate.p_complete <= estimate.high <= 1


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.text(max_size=5), st.binary(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(
            st.sampled_from(["id", "text", "title", "score", "metadata", "published_at", "x"]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=50)
@given(st.lists(anything, max_size=4))
def test_any_shape_is_taken_or_refused_with_its_place(hits: list[Any]) -> None:
    message = ""
    taken: list[Any] = []
    try:
        taken = [hit.doc_id for hit in normalize_hits("question", hits).evidence.hits]
    except InputError as error:
        message = str(error)
    assert message.startswith("hit ") or len(set(taken)) == len(taken) <= len(hits)
