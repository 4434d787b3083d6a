"""Search and fusion: several scores, one ranking, and every hit names its scores; reranking."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.values import known

from suffice.errors import InputError, ModelError
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.search import (
    FUSIONS,
    ListFusion,
    RerankRetriever,
    SignalRetriever,
    TextSearch,
)
from suffice.types import Document, Hit, RetrieverScore
from suffice_research.retrievers.signals import Blend

NAN = np.nan
CORPUS = Corpus(
    [Document("a", "", source="The Verge"), Document("b", ""), Document("c", ""), Document("d", "")]
)


class Fixed:
    """A signal with the same scores for every question but the empty one."""

    def __init__(self, name: str, *scores: float) -> None:
        self.name, self._row = name, np.array(scores, np.float32)

    def scores(self, questions: Sequence[str]) -> np.ndarray:
        return (
            np.stack([self._row * bool(question) for question in questions])
            if questions
            else np.zeros((0, 4), np.float32)
        )


class Listed:
    """A retriever with fixed hits."""

    def __init__(self, *hits: Hit) -> None:
        self.hits, self.depth = hits, 0

    def search(self, questions, *, k: int, filters=None) -> list[tuple[Hit, ...]]:
        self.depth = k
        return [self.hits[:k] if question else () for question in questions]


def fused(name: str, parts: list[list[float]], weights: list[float]) -> list[float]:
    array = np.array(parts, np.float32)[:, None, :]
    return FUSIONS[name](array, np.array(weights, np.float32))[0].round(5).tolist()


def test_the_weighted_sum_divides_each_part_by_its_highest() -> None:
    assert fused("sum", [[10, 5, NAN], [NAN, 2, 4]], [0.6, 0.4]) == pytest.approx([0.6, 0.5, 0.4])


def test_negative_scores_add_nothing_to_a_sum() -> None:
    assert fused("sum", [[-1, 5, -3]], [1]) == [0, 1, 0]
    assert fused("sum", [[-1, -2, NAN]], [1]) == [0, 0, 0]


def test_the_convex_combination_stretches_what_was_found_to_zero_and_one() -> None:
    assert fused("convex", [[-0.2, 0.2, 0.0], [NAN, 7, NAN]], [3, 1]) == pytest.approx(
        [0, 1, 0.375]
    )


def test_reciprocal_rank_looks_at_order_only() -> None:
    expected = [1 / 61, 1 / 62 + 1 / 61, 0]
    assert fused("rrf", [[900, 3, NAN], [NAN, 0.1, NAN]], [1, 1]) == pytest.approx(
        expected, abs=1e-5
    )


def test_the_highest_opinion_is_enough() -> None:
    assert fused("max", [[10, 5, NAN], [NAN, 4, 2]], [1, 0.8]) == pytest.approx([1, 0.8, 0.4])


@given(
    parts=arrays.arrays(
        np.float32,
        st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(0, 6)),
        elements=st.sampled_from([np.nan]) | st.floats(-100, 100, width=32),
    )
)
@pytest.mark.parametrize("name", FUSIONS)
def test_every_fusion_is_finite_not_negative_and_leaves_its_input_alone(
    name: str, parts: np.ndarray
) -> None:
    before = parts.copy()
    result = FUSIONS[name](parts, np.ones(len(parts), np.float32))
    assert result.shape == parts.shape[1:]
    assert np.isfinite(result).all()
    assert (result >= 0).all()
    np.testing.assert_array_equal(parts, before)


def test_signals_are_fused_and_each_hit_says_which_found_it() -> None:
    retriever = SignalRetriever(
        CORPUS, [Fixed("text", 8, 4, 0, 0), Fixed("date", 0, 1, 2, 0)], weights=(0.6, 0.4)
    )
    (hits, nothing) = retriever.search(["when?", ""], k=10)
    assert [(hit.doc_id, round(hit.score or 0, 5)) for hit in hits] == [
        ("a", 0.6),
        ("b", 0.5),
        ("c", 0.4),
    ]
    assert hits[1].parts == (RetrieverScore("text", 4), RetrieverScore("date", 1))
    assert hits[2].parts == (RetrieverScore("date", 2),)
    assert nothing == ()


@pytest.mark.parametrize("fusion", FUSIONS)
def test_whatever_some_signal_found_is_a_hit_under_every_fusion(fusion: str) -> None:
    retriever = SignalRetriever(
        CORPUS, [Fixed("text", 8, 4, 0, 0), Fixed("date", 0, 1, 2, 0)], fusion=fusion
    )
    assert {hit.doc_id for hit in retriever.search(["q"], k=10)[0]} == {"a", "b", "c"}


def test_a_single_signal_keeps_its_scale() -> None:
    ((hit,),) = SignalRetriever(CORPUS, [Fixed("text", 8, 0, 0, 0)]).search(["q"], k=1)
    assert hit == Hit("a", 8.0, (RetrieverScore("text", 8.0),))


def test_many_questions_are_scored_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.retrieval.ranking.BLOCK_BYTES", 64)
    retriever = SignalRetriever(CORPUS, [Fixed("x", 1, 2, 3, 4), Fixed("y", 4, 3, 2, 1)])
    found = retriever.search(["q", ""] * 25, k=2)
    assert [len(hits) for hits in found] == [2, 0] * 25


def test_lists_are_fused_by_reciprocal_rank() -> None:
    text = Listed(Hit("a", 12.0), Hit("b", 9.0))
    dense = Listed(Hit("b", 0.9, matched=("source: X",)), Hit("c", -0.2))
    fusion = ListFusion({"bm25": text, "dense": dense})
    hits, nothing = fusion.search(["q", ""], k=5)
    assert [hit.doc_id for hit in hits] == ["b", "a", "c"]
    assert hits[0].score == pytest.approx(1 / 62 + 1 / 61)
    assert hits[0].parts == (RetrieverScore("bm25", 9.0), RetrieverScore("dense", 0.9))
    assert hits[2].parts == (RetrieverScore("dense", -0.2),)
    assert nothing == ()
    assert text.depth == 100


def test_a_list_without_scores_counts_by_its_order() -> None:
    fusion = ListFusion(
        {"x": Listed(Hit("a"), Hit("b")), "y": Listed(Hit("c", 1.0))},
        fusion="convex",
        weights=(1, 1),
    )
    assert [hit.doc_id for hit in fusion.search(["q"], k=3)[0]] == ["a", "c", "b"]


def test_a_blend_is_a_signal() -> None:
    blend = Blend([Fixed("text", 8, 4, 0, 0), Fixed("date", 0, 1, 2, 0)], weights=(0.6, 0.4))
    np.testing.assert_allclose(
        blend.scores(["q", ""]), [[0.6, 0.5, 0.4, 0.0], [0.0, 0.0, 0.0, 0.0]], atol=1e-6
    )


def test_an_unknown_fusion_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="'rff'") as caught:
        ListFusion({"x": Listed()}, fusion="rff")
    assert "'rrf'" in caught.value.hint


@pytest.mark.parametrize("weights", [(1,), (1, -1), (1, NAN), (1, 2, 3)])
def test_weights_must_fit_the_parts(weights: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="weights are"):
        SignalRetriever(CORPUS, [Fixed("x", 1, 1, 1, 1), Fixed("y", 1, 1, 1, 1)], weights=weights)


def test_nothing_to_fuse_and_two_parts_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="nothing to fuse"):
        ListFusion({})
    with pytest.raises(InputError, match="one name"):
        SignalRetriever(CORPUS, [Fixed("x", 1, 1, 1, 1), Fixed("x", 1, 1, 1, 1)])


def test_the_weakest_hit_of_a_short_list_still_counts_more_than_no_hit() -> None:
    words = Listed(Hit("a", 4.0), Hit("b", 2.0))
    meaning = Listed(Hit("a", 0.9), Hit("noise", 0.3), Hit("b", 0.2))
    fusion = ListFusion({"words": words, "meaning": meaning}, fusion="convex", weights=(0.7, 0.3))
    assert [hit.doc_id for hit in fusion.search(["q"], k=3)[0]] == ["a", "b", "noise"]


STORE = MemoryStore(
    [
        Document("short", "the tutor"),
        Document("long", "the tutor of Ada Lovelace was Mary Somerville"),
        Document("middle", "the tutor came from Scotland"),
    ]
)


class PrefersLength:
    def score(self, question: str, texts: Sequence[str]) -> np.ndarray:
        return np.array([len(text) for text in texts], np.float32)


class Says:
    def __init__(self, value: object) -> None:
        self.value = value

    def score(self, question: str, texts: Sequence[str]) -> np.ndarray:
        return np.asarray(self.value)


class Ghosts:
    def search(self, questions, *, k: int, filters=None) -> list[tuple[Hit, ...]]:
        return [(Hit("gone", 2.0), Hit("short", 1.0)) for _ in questions]


def test_the_judge_puts_the_hits_in_a_new_order_and_signs_them() -> None:
    (hits, nothing) = RerankRetriever(TextSearch(STORE), PrefersLength(), STORE).search(
        ["tutor", ""], k=2
    )
    assert [hit.doc_id for hit in hits] == ["long", "middle"]
    assert hits[0].score == 45
    assert [part.name for part in hits[0].parts] == ["bm25", "rerank"]
    assert nothing == ()


def test_what_is_not_judged_follows_in_the_retrievers_order() -> None:
    (plain,) = TextSearch(STORE).search(["tutor"], k=3)
    (hits,) = RerankRetriever(TextSearch(STORE), PrefersLength(), STORE, depth=2).search(
        ["tutor"], k=3
    )
    assert {hit.doc_id for hit in hits[:2]} == {hit.doc_id for hit in plain[:2]}
    assert hits[2].doc_id == plain[2].doc_id
    assert hits[2].score == hits[1].score
    assert [part.name for part in hits[2].parts] == ["bm25"]


def test_a_document_that_left_the_store_falls_away() -> None:
    (hits,) = RerankRetriever(Ghosts(), PrefersLength(), STORE).search(["tutor"], k=5)
    assert hits == (Hit("short", 9.0, (RetrieverScore("rerank", 9.0),)),)


class LetsLongIn:
    def search(self, questions, *, k: int, filters=None) -> list[tuple[Hit, ...]]:
        return [
            (Hit("short", 3.0), Hit("long", 2.0, relaxed=True), Hit("middle", 1.0))
            for _ in questions
        ]


def test_what_passes_the_filter_stays_in_front_of_what_was_let_in() -> None:
    (hits,) = RerankRetriever(LetsLongIn(), PrefersLength(), STORE).search(["tutor"], k=3)
    assert [(hit.doc_id, hit.score) for hit in hits] == [
        ("middle", 28.0),
        ("short", 9.0),
        ("long", 9.0),
    ]
    assert hits[2].parts == (RetrieverScore("rerank", 45.0),)


def test_with_a_share_the_retriever_keeps_a_say() -> None:
    class FixedRetriever:
        def search(self, questions, *, k: int, filters=None) -> list[tuple[Hit, ...]]:
            return [(Hit("short", 1.0), Hit("middle", 0.9), Hit("long", 0.0)) for _ in questions]

    def ranked(share: float) -> list[tuple[str, float]]:
        (hits,) = RerankRetriever(FixedRetriever(), PrefersLength(), STORE, share=share).search(
            ["tutor"], k=3
        )
        return [(hit.doc_id, round(known(hit.score), 3)) for hit in hits]

    assert ranked(0.5) == [("middle", 0.714), ("short", 0.5), ("long", 0.5)]
    assert [name for name, _ in ranked(0.0)] == ["short", "middle", "long"]
    assert [name for name, _ in ranked(1.0)] == ["long", "middle", "short"]
    with pytest.raises(InputError, match="share"):
        RerankRetriever(FixedRetriever(), PrefersLength(), STORE, share=1.1)


def test_a_retriever_without_scores_is_blended_by_rank() -> None:
    class Silent:
        def search(self, questions, *, k: int, filters=None) -> list[tuple[Hit, ...]]:
            return [(Hit("short"), Hit("long")) for _ in questions]

    (hits,) = RerankRetriever(Silent(), Says([1.0, 1.0]), STORE, share=0.5).search(["tutor"], k=2)
    assert [hit.doc_id for hit in hits] == ["short", "long"]


@pytest.mark.parametrize("nonsense", [[1.0], [[1.0, 2.0, 3.0]], [1.0, np.nan, 2.0], 3.0])
def test_a_judge_that_answers_nonsense_is_an_error(nonsense: object) -> None:
    with pytest.raises(ModelError, match="the reranker gave scores"):
        RerankRetriever(TextSearch(STORE), Says(nonsense), STORE).search(["tutor"], k=3)


@pytest.mark.parametrize("k", [0, -2])
def test_k_and_depth_are_checked(k: int) -> None:
    with pytest.raises(InputError, match="k is"):
        RerankRetriever(TextSearch(STORE), PrefersLength(), STORE).search(["tutor"], k=k)
    with pytest.raises(InputError, match="depth is"):
        RerankRetriever(TextSearch(STORE), PrefersLength(), STORE, depth=k)
