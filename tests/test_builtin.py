"""The named retrievers on a small village: each is registered, answers, and handles bad input."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pytest

from suffice.errors import InputError
from suffice.protocols import Retriever
from suffice.registry import RETRIEVERS
from suffice.retrieval.builtin import RESEARCH_RETRIEVERS
from suffice.retrieval.encoders import WordLlamaEncoder
from suffice.retrieval.memory import MemoryStore
from suffice.types import Condition, Document, Filter

NAMES = (
    "tfidf metadata-tfidf dense-proxy graph hybrid-metagraph "
    "bm25 bm25-title tfidf-word tfidf-char hybrid-title hybrid-title-paper "
    "dense hybrid rrf ppr iterative filtered filtered-rerank bridge"
).split()

VILLAGE = [
    Document(
        "teacher",
        "Mary Somerville taught Ada Lovelace mathematics and astronomy.",
        "The teacher",
        source="The Verge",
        category="science",
        published_at=date(2023, 10, 7),
        entities=("Mary Somerville", "Ada Lovelace"),
    ),
    Document(
        "engine",
        "Ada Lovelace described a program for the analytical engine.",
        "The engine",
        source="Engadget",
        category="technology",
        published_at=date(2023, 10, 9),
        entities=("Ada Lovelace",),
    ),
    Document(
        "soup", "The soup of the day is leek and potato.", "Menu", source="Kitchen", category="food"
    ),
    Document("blank", ""),
]


class CountsSharedWords:
    """A reranker as small as can be."""

    def score(self, question: str, texts: Sequence[str]) -> np.ndarray:
        words = set(question.casefold().split())
        return np.array([len(words & set(text.casefold().split())) for text in texts], np.float32)


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore(
        VILLAGE,
        WordLlamaEncoder().encode([f"{document.title} {document.text}" for document in VILLAGE]),
    )


def build(name: str, store: MemoryStore, **options: Any) -> Retriever:
    if name == "filtered-rerank":
        options.setdefault("reranker", CountsSharedWords())
    return RETRIEVERS.get(name)(store, **options)


every_name = pytest.mark.parametrize("name", NAMES)


def test_a_paper_retriever_without_the_research_package_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(RETRIEVERS.__dict__, "_plugins", {})
    monkeypatch.setattr(RETRIEVERS, "_factories", {"bm25": RETRIEVERS.get("bm25")})
    for name in RESEARCH_RETRIEVERS:
        with pytest.raises(InputError, match=f"no retriever is named '{name}'") as failure:
            RETRIEVERS.get(name)
        assert "pip install ./research" in failure.value.hint


WITHOUT_SCIPY = """
import sys
sys.modules.update(scipy=None, sklearn=None)
from suffice.registry import RETRIEVERS
from suffice.retrieval import MemoryStore, WordLlamaEncoder, builtin
from suffice.types import Document
village = [Document("ada", "Mary Somerville taught Ada.", "Ada"), Document("mary", "A teacher.", "Mary Somerville")]
store = MemoryStore(village, WordLlamaEncoder().encode([one.text for one in village]))
for name in ("bm25", "dense", "hybrid", "rrf", "filtered", "bridge"):
    assert RETRIEVERS.get(name)(store).search(["Who taught Ada?"], k=2)[0], name
"""


def test_the_core_needs_neither_scipy_nor_scikit_learn() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_SCIPY], check=True)


@every_name
def test_the_document_that_answers_comes_first_and_says_who_found_it(
    name: str, store: MemoryStore
) -> None:
    retriever = build(name, store)
    assert isinstance(retriever, Retriever)
    (hits,) = retriever.search(["Who taught mathematics to Ada Lovelace, as The Verge wrote?"], k=3)
    assert hits[0].doc_id == "teacher"
    assert hits[0].parts
    assert len({hit.doc_id for hit in hits}) == len(hits)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]


@every_name
def test_an_empty_question_has_no_hits_and_k_above_the_corpus_is_fine(
    name: str, store: MemoryStore
) -> None:
    nothing, hits = build(name, store).search(["", "Ada and the soup of The Verge"], k=1000)
    assert nothing == ()
    assert 2 <= len(hits) <= len(VILLAGE)


@every_name
def test_a_filter_of_the_caller_is_kept(name: str, store: MemoryStore) -> None:
    engadget = Filter((Condition("source", "$in", ("Engadget",)),))
    hits, free = build(name, store).search(
        ["Ada Lovelace", "Ada Lovelace"], k=4, filters=[engadget, None]
    )
    assert [hit.doc_id for hit in hits if not hit.relaxed] == ["engine"]
    assert {"teacher", "engine"} <= {hit.doc_id for hit in free}


def test_bm25_sees_what_is_written_later_unless_it_has_settings_of_its_own() -> None:
    store = MemoryStore(VILLAGE)
    through, own = build("bm25", store), build("bm25", store, k1=1.5)
    store.put([Document("late", "a telescope")])
    assert [hit.doc_id for hit in through.search(["telescope"], k=1)[0]] == ["late"]
    assert own.search(["telescope"], k=1) == [()]


def test_the_parts_of_a_hybrid_hit_are_named(store: MemoryStore) -> None:
    ((hit, *_),) = build("hybrid-metagraph", store).search(["Ada Lovelace in The Verge"], k=1)
    assert [part.name for part in hit.parts] == ["tfidf", "metadata", "graph"]
    ((hit, *_),) = build("hybrid", store).search(["Ada Lovelace"], k=1)
    assert [part.name for part in hit.parts] == ["bm25", "dense"]
    ((hit, *_),) = build("hybrid-title", store).search(["Ada Lovelace"], k=1)
    assert [part.name for part in hit.parts] == ["bm25", "tfidf-word", "tfidf-char"]


def test_an_encoder_is_taken_by_name_or_as_it_is(store: MemoryStore) -> None:
    by_name = build("dense", store, encoder="wordllama").search(["astronomy"], k=1)
    assert by_name == build("dense", store, encoder=WordLlamaEncoder()).search(["astronomy"], k=1)
    with pytest.raises(InputError, match="no encoder is named"):
        build("dense", store, encoder="word-lama")


def test_filtered_rerank_looks_inside_the_source_that_the_question_names(
    store: MemoryStore,
) -> None:
    ((first, *_),) = build("filtered-rerank", store).search(
        ["What did Engadget report about Ada Lovelace?"], k=2
    )
    assert first.doc_id == "engine"
    assert first.parts[-1].name == "rerank"
    assert first.matched == ("source: Engadget", "entity: Ada Lovelace")


def test_a_strict_filter_shows_nothing_else_but_what_has_no_source(store: MemoryStore) -> None:
    (hits,) = build("filtered-rerank", store, strict=True).search(
        ["What did Engadget report about Ada Lovelace?"], k=4
    )
    assert [hit.doc_id for hit in hits] == ["engine", "blank"]
