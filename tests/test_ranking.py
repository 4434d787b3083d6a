"""Ranking: the k best of a row, ties in document order, and checked input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from suffice.errors import InputError
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.ranking import (
    check_search,
    filter_masks,
    make_hits,
    name_parts,
    question_blocks,
    top_k,
)
from suffice.types import Condition, Document, Filter, Hit, RetrieverScore


def test_a_zero_score_is_no_hit_where_only_positive_scores_count() -> None:
    ranked = top_k(np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]), 2, above=0.0)
    assert ranked.positions.tolist() == [[1, -1], [-1, -1]]
    assert np.isnan(ranked.scores).tolist() == [[False, True], [True, True]]


def test_nan_is_never_a_hit_and_pushes_no_one_out() -> None:
    assert top_k(np.array([[np.nan, 1.0, np.nan, 2.0]]), 2).positions.tolist() == [[3, 1]]
    assert top_k(np.array([[np.nan, np.nan]]), 1).positions.tolist() == [[-1]]


def test_a_mask_hides_documents_for_all_questions_or_for_each() -> None:
    scores = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
    assert top_k(scores, 1, np.array([False, True, True])).positions.tolist() == [[1], [1]]
    assert top_k(
        scores, 3, np.array([[True, False, False], [False, False, False]])
    ).positions.tolist() == [
        [0, -1, -1],
        [-1, -1, -1],
    ]


def test_an_empty_corpus_and_no_questions_give_empty_rows() -> None:
    assert top_k(np.zeros((2, 0)), 3).positions.shape == (2, 0)
    assert top_k(np.zeros((0, 5)), 3).positions.shape == (0, 3)


@given(
    scores=arrays.arrays(
        st.sampled_from([np.float32, np.float64]),
        st.tuples(st.integers(1, 4), st.integers(1, 30)),
        elements=st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, np.inf, -np.inf])
        | st.floats(-10, 10, width=32),
    ),
    k=st.integers(1, 35),
    above=st.sampled_from([-np.inf, 0.0]),
)
def test_top_k_is_the_head_of_a_full_sort(scores: Any, k: int, above: float) -> None:
    ranked = top_k(scores, k, above=above)
    for row, positions in zip(scores, ranked.positions):
        expected = [at for at in np.argsort(-row, kind="stable") if row[at] > above][:k]
        assert [at for at in positions.tolist() if at >= 0] == expected


@pytest.mark.parametrize("k", [0, -1, 1.5, "3", None, True])
def test_k_that_is_no_positive_whole_number_is_refused(k: Any) -> None:
    with pytest.raises(InputError, match="k is"):
        check_search(["q"], k)


def test_k_from_numpy_is_a_number_too() -> None:
    assert check_search(["q"], np.int64(3)) == 3  # type: ignore[arg-type]


def test_one_text_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(InputError, match="list of texts") as caught:
        check_search("who taught Ada?", 3)
    assert "[question]" in caught.value.hint


@pytest.mark.parametrize("bad", [None, 3, b"bytes", ["nested"]])
def test_a_question_that_is_no_text_is_named_by_its_place(bad: Any) -> None:
    with pytest.raises(InputError, match="question 1 is"):
        check_search(["fine", bad], 3)


def test_filters_must_be_as_many_as_questions() -> None:
    with pytest.raises(InputError, match="1 filters for 2 questions"):
        check_search(["a", "b"], 3, [None])


def test_a_hit_names_the_parts_that_found_it_with_their_own_scores() -> None:
    scores = np.array([[0.0, 0.9, 0.4]], np.float32)
    parts = {
        "bm25": np.array([[0.0, 7.5, 0.0]], np.float32),
        "date": np.array([[0.0, 0.0, 2.0]], np.float32),
    }
    (hits,) = make_hits(top_k(scores, 3, above=0.0), ["a", "b", "c"], parts)
    assert [(hit.doc_id, hit.parts) for hit in hits] == [
        ("b", (RetrieverScore("bm25", 7.5),)),
        ("c", (RetrieverScore("date", 2.0),)),
    ]


def test_hits_of_a_store_get_the_name_of_their_finder_once() -> None:
    named = Hit("b", 2.0, (RetrieverScore("mine", 2.0),))
    assert name_parts("bm25", [[Hit("a", 1.0), named, Hit("c")]]) == [
        (Hit("a", 1.0, (RetrieverScore("bm25", 1.0),)), named, Hit("c"))
    ]


def test_blocks_cover_all_questions_in_bounded_memory() -> None:
    questions = ["q"] * 100
    slices = list(question_blocks(questions, 1_000_000))
    assert [at for one in slices for at in range(100)[one]] == list(range(100))
    assert all((one.stop - one.start) * 4_000_000 <= 64 * 1024 * 1024 for one in slices)
    assert len(list(question_blocks(questions, 0))) == 1
    assert len(list(question_blocks(["q"] * 2, 10**12))) == 2


def test_questions_without_a_filter_need_no_mask() -> None:
    corpus = Corpus([Document("a", "x", source="The Verge"), Document("b", "y")])
    verge = Filter((Condition("source", "$in", ("The Verge",)),))
    assert filter_masks(corpus, None) is None
    assert filter_masks(corpus, [None, Filter()]) is None
    assert filter_masks(corpus, [None, verge]).tolist() == [[True, True], [True, False]]  # type: ignore[union-attr]
