"""Soft filters and source quotas, each as a small story."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.corpora import documents

from suffice.errors import InputError
from suffice.retrieval.builtin import hybrid_spread
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.metadata import Vocabulary
from suffice.retrieval.search import TextSearch
from suffice.retrieval.soft_filter import (
    SoftFilter,
    SourceQuota,
    SpreadRetriever,
)
from suffice.types import Condition, Document, Filter, Hit

NEWSROOM = documents("soft_filter")  # fmt: skip
STORE = MemoryStore(NEWSROOM)
VOCABULARY = Vocabulary.of_store(STORE)
QUESTION = "What did The Verge and Fortune say of the trial of the founder of the exchange?"


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.doc_id for hit in hits]


def soft(**options: Any) -> SoftFilter:
    return SoftFilter(TextSearch(STORE), STORE, VOCABULARY, **options)


# ---- failures seen elsewhere


def test_a_document_whose_source_nobody_wrote_down_is_not_filtered_away() -> None:
    (hits,) = soft(strict=True).search([QUESTION], k=9)
    assert "nobody" in ids(hits)
    assert "other" not in ids(hits)


def test_the_question_is_searched_word_for_word() -> None:
    searched: list[str] = []

    class Listening(TextSearch):
        def search(
            self, questions: Sequence[str], *, k: int, filters: Any = None
        ) -> list[tuple[Hit, ...]]:
            searched.extend(questions)
            return super().search(questions, k=k, filters=filters)

    SoftFilter(Listening(STORE), STORE, VOCABULARY).search([QUESTION], k=3)
    assert set(searched) == {QUESTION}


def test_needed_evidence_behind_a_wrong_date_comes_back() -> None:
    question = "What did Fortune say of the trial verdict on October 4, 2023?"
    (hits,) = soft().search([question], k=3)
    assert "fortune" in ids(hits)
    assert next(hit for hit in hits if hit.doc_id == "fortune").relaxed


# ---- quota


def test_each_named_source_gets_its_best_before_the_rest_competes() -> None:
    plain = soft().search([QUESTION], k=4)[0]
    assert ids(plain)[:2] == ["verge-2", "verge-1"]
    (hits,) = SourceQuota(soft(), STORE, VOCABULARY, per_source=1).search([QUESTION], k=4)
    assert ids(hits)[:2] == ["verge-2", "fortune"]
    assert "source: Fortune" in hits[1].matched
    scores = [hit.score for hit in hits if hit.score is not None]
    assert scores == sorted(scores, reverse=True)


def test_a_quota_of_nothing_or_without_named_sources_changes_nothing() -> None:
    base = soft()
    assert SourceQuota(base, STORE, VOCABULARY, per_source=0).search(
        [QUESTION], k=4
    ) == base.search([QUESTION], k=4)
    assert SourceQuota(base, STORE, VOCABULARY).search(["the trial"], k=4) == base.search(
        ["the trial"], k=4
    )
    assert SourceQuota(base, STORE, VOCABULARY).search([], k=4) == []
    with pytest.raises(InputError):
        SourceQuota(base, STORE, VOCABULARY, per_source=-1)


# ---- spread


class Deep(TextSearch):
    """Remembers how deep it was searched."""

    def search(
        self, questions: Sequence[str], *, k: int, filters: Any = None
    ) -> list[tuple[Hit, ...]]:
        self.depths = [*getattr(self, "depths", []), (len(questions), k)]
        return super().search(questions, k=k, filters=filters)


def test_each_named_source_and_day_has_a_place_and_the_order_stays() -> None:
    base = Deep(STORE)
    spread = SpreadRetriever(base, STORE, VOCABULARY)
    days = "What was said of the founder and his trial on October 6, 2023 and November 3, 2023?"
    plain = "What did Fortune say of the trial of the founder?"
    found = spread.search([QUESTION, plain, days], k=2)
    assert base.depths == [(1, 2), (2, 30)]  # only what names several is searched deeper
    assert found[1] == base.search([plain], k=2)[0]
    assert "fortune" not in ids(base.search([QUESTION], k=3)[0])
    for hits, wanted in ((found[0], "fortune"), (found[2], "verge-3")):
        assert wanted in ids(hits)
        scores = [hit.score for hit in hits if hit.score is not None]
        assert scores == sorted(scores, reverse=True)
    assert ids(found[0]) == [ids(base.search([QUESTION], k=1)[0])[0], "fortune"]
    assert {"verge-3", "fortune"} < set(ids(spread.search([days], k=3)[0]))
    assert spread.search([], k=4) == []
    assert ids(spread.search([QUESTION], k=1)[0]) == ids(base.search([QUESTION], k=1)[0])


def test_a_filter_holds_and_documents_without_metadata_change_nothing() -> None:
    only = Filter((Condition("source", "$nin", ("Fortune",)),))
    (hits,) = SpreadRetriever(TextSearch(STORE), STORE, VOCABULARY).search(
        [QUESTION], k=2, filters=[only]
    )
    assert "fortune" not in ids(hits)
    assert len(hits) == 2
    bare = MemoryStore([Document("a", "The trial."), Document("b", "The founder.")])
    assert not isinstance(hybrid_spread(bare, encoder=Numbers()), SpreadRetriever)
    assert isinstance(hybrid_spread(STORE, encoder=Numbers()), SpreadRetriever)


class Numbers:
    """An encoder that is never asked."""

    name, dimension = "numbers", 1

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
        raise AssertionError(texts)
