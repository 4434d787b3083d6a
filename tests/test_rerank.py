"""Reranking: the judge's order, whoever found the hits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from suffice.errors import InputError, ModelError
from suffice.retrieval.fusion import RerankRetriever
from suffice.retrieval.lexical import TextSearch
from suffice.retrieval.memory import MemoryStore
from suffice.types import Document, Hit, RetrieverScore

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


def test_ties_keep_the_order_of_the_retriever() -> None:
    (plain,) = TextSearch(STORE).search(["tutor"], k=3)
    (hits,) = RerankRetriever(TextSearch(STORE), Says([1.0, 1.0, 1.0]), STORE).search(
        ["tutor"], k=3
    )
    assert [hit.doc_id for hit in hits] == [hit.doc_id for hit in plain]


def test_only_the_first_hits_are_judged() -> None:
    (hits,) = RerankRetriever(TextSearch(STORE), PrefersLength(), STORE, depth=1).search(
        ["tutor"], k=1
    )
    assert [hit.doc_id for hit in hits] == ["short"]


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
    class Found:
        def search(self, questions, *, k: int, filters=None) -> list[tuple[Hit, ...]]:
            return [(Hit("short", 1.0), Hit("middle", 0.9), Hit("long", 0.0)) for _ in questions]

    def ranked(share: float) -> list[tuple[str, float]]:
        (hits,) = RerankRetriever(Found(), PrefersLength(), STORE, share=share).search(
            ["tutor"], k=3
        )
        return [(hit.doc_id, round(hit.score, 3)) for hit in hits]

    assert ranked(0.5) == [("middle", 0.714), ("short", 0.5), ("long", 0.5)]
    assert [name for name, _ in ranked(0.0)] == ["short", "middle", "long"]
    assert [name for name, _ in ranked(1.0)] == ["long", "middle", "short"]
    with pytest.raises(InputError, match="share"):
        RerankRetriever(Found(), PrefersLength(), STORE, share=1.1)


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
    with pytest.raises(InputError, match="k is"):
        RerankRetriever(TextSearch(STORE), PrefersLength(), STORE, depth=k)
