"""The papers' retrievers over candidates of a remote store, compared with the whole corpus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from suffice.registry import RETRIEVERS
from suffice.retrieval import builtin  # noqa: F401 - importing it registers our retrievers
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.memory import MemoryStore
from suffice.testing import VILLAGE, check_retriever
from suffice.types import Condition, Filter
from suffice_research.controlled import controlled_collection
from suffice_research.retrievers.signals import Background, Tfidf

NAMES = [
    "tfidf",
    "metadata-tfidf",
    "dense-proxy",
    "graph",
    "hybrid-metagraph",
    "tfidf-word",
    "tfidf-char",
    "hybrid-title",
]
DATA = controlled_collection(documents=300)


class Distant(MemoryStore):
    """At hand, and treated as if it were far away."""

    distant = True
    read = 0

    def documents(self) -> Any:
        self.read += 1
        return super().documents()


@pytest.fixture(scope="module")
def stores() -> tuple[MemoryStore, Distant]:
    documents = list(DATA.documents())
    return MemoryStore(documents), Distant(documents)


@pytest.mark.parametrize("name", NAMES)
def test_a_retriever_among_candidates_keeps_the_contract(name: str) -> None:
    check_retriever(lambda store: RETRIEVERS.get(name)(store), Distant(VILLAGE))


@pytest.mark.parametrize("name", ["tfidf", "hybrid-metagraph", "graph"])
def test_candidates_hold_what_the_whole_corpus_would_rank_first(
    name: str, stores: tuple[MemoryStore, Distant]
) -> None:
    questions = [example.question.text for example in DATA.questions()][:6]
    whole, some = (RETRIEVERS.get(name)(store).search(questions, k=8) for store in stores)
    shared = [
        len({hit.doc_id for hit in one} & {hit.doc_id for hit in other}) / 8
        for one, other in zip(whole, some)
    ]
    assert np.mean(shared) > 0.95, shared


def test_a_filter_holds_among_candidates(stores: tuple[MemoryStore, Distant]) -> None:
    source = next(iter(stores[1].values("source")))
    some = Filter((Condition("source", "$in", (source,)),))
    question = next(iter(DATA.questions())).question.text
    (hits,) = RETRIEVERS.get("hybrid-metagraph")(stores[1]).search([question], k=5, filters=[some])
    assert hits
    assert {
        document and document.source for document in stores[1].get([hit.doc_id for hit in hits])
    } == {source}


def test_the_store_is_read_once_for_a_sample() -> None:
    store = Distant(VILLAGE)
    retriever = RETRIEVERS.get("hybrid-metagraph")(store)
    for _ in range(3):
        retriever.search(["Who designed the engine?"], k=2)
    assert store.read == 1


def test_rarity_comes_from_the_background_not_from_the_few_at_hand() -> None:
    corpus = Corpus(VILLAGE)
    texts = [f"{one.title}\n{one.text}" for one in VILLAGE]
    alone, with_background = Tfidf(corpus), Tfidf(corpus, background=Background.of(texts))
    questions = ["Who designed the engine in London?", "Ada the poet"]
    assert with_background.scores(questions) == pytest.approx(alone.scores(questions), abs=1e-5)
    engines = Background.of(["engine"] * 50 + ["london"])
    assert (
        engines.rarity(["engine"], 1.0)[0]
        < engines.rarity(["london"], 1.0)[0]
        < engines.rarity(["babbage"], 1.0)[0]
    )
