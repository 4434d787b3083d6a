"""Iterative expansion in a village: the second search uses what the first one read."""

from __future__ import annotations

import pytest
from tests.corpora import documents

from suffice.errors import InputError
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.search import TextSearch
from suffice.types import Condition, Filter
from suffice_research.retrievers.iterative_search import IterativeSearch, best_sentence

VILLAGE = list(documents("iterative_search"))


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore(VILLAGE)


def test_the_best_sentence_shares_most_words_with_the_question() -> None:
    assert (
        best_sentence("Who was the tutor of Ada?", VILLAGE[0].text)
        == "The tutor of Ada was Mary Somerville."
    )
    assert best_sentence("Who?", "First. Second.") == "First."
    assert best_sentence("Who?", "") == ""


def test_what_the_first_hit_says_finds_the_second_document(store: MemoryStore) -> None:
    question = "Where did the tutor of Ada spend her childhood?"
    plain = TextSearch(store)
    assert "mary" not in [hit.doc_id for hit in plain.search([question], k=4)[0]]
    assert "mary" in [
        hit.doc_id for hit in IterativeSearch(plain, store).search([question], k=4)[0]
    ]


def test_more_rounds_read_more_documents_and_end(store: MemoryStore) -> None:
    (hits,) = IterativeSearch(TextSearch(store), store, rounds=6).search(["tutor of Ada"], k=4)
    assert {"ada", "mary"} <= {hit.doc_id for hit in hits}


def test_questions_that_find_nothing_stay_empty(store: MemoryStore) -> None:
    assert IterativeSearch(TextSearch(store), store).search(["", "zebra"], k=2) == [(), ()]


def test_a_filter_holds_in_every_round(store: MemoryStore) -> None:
    only = Filter((Condition("source", "$in", ("almanac",)),))
    (hits,) = IterativeSearch(TextSearch(store), store).search(
        ["Somerville, tutor of Ada"], k=4, filters=[only]
    )
    assert [hit.doc_id for hit in hits] == ["mary"]


@pytest.mark.parametrize("rounds", [0, 1, 2.5, True])
def test_one_round_would_be_no_expansion(store: MemoryStore, rounds: int) -> None:
    with pytest.raises(InputError, match="rounds"):
        IterativeSearch(TextSearch(store), store, rounds=rounds)
