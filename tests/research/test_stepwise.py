"""A filter that is relaxed step by step while the evidence looks incomplete."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest

from suffice.errors import InputError, ModelError
from suffice.retrieval.filters import VocabularyExtractor
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.metadata import Vocabulary
from suffice.retrieval.search import TextSearch
from suffice.retrieval.soft_filter import SoftFilter
from suffice.types import Document, Filter, Hit
from suffice_research.multi_meta_rag.stepwise import StepwiseFilter, relaxation_steps

STORE = MemoryStore(
    [
        Document(f"verge-{day}", "The trial", source="The Verge", published_at=date(2023, 10, day))
        for day in (4, 5, 6)
    ]
)
VOCABULARY = Vocabulary.of_store(STORE)
DATED = "What did The Verge say of the trial on October 4, 2023?"


def relaxing(judge: Any, target: float = 0.7) -> StepwiseFilter:
    inner = SoftFilter(TextSearch(STORE), STORE, VOCABULARY, strict=True)
    return StepwiseFilter(inner, STORE, VocabularyExtractor(VOCABULARY), judge, target=target)


def share_of_three(questions: Sequence[str], found: Sequence[Sequence[Hit]]) -> list[float]:
    return [len(hits) / 3 for hits in found]


def test_the_steps_give_up_dates_first_and_sources_last() -> None:
    (extraction,) = VocabularyExtractor(VOCABULARY).extract([DATED])
    fields = [
        [one.field for one in step.conditions] for step in relaxation_steps(extraction.filter)
    ]
    assert fields == [["source", "published_at"], ["source"], []]
    assert relaxation_steps(Filter()) == [Filter()]


def test_the_filter_gives_way_until_the_evidence_looks_complete() -> None:
    (kept,) = relaxing(share_of_three, 0.3).search([DATED], k=9)
    assert [(hit.doc_id, hit.relaxed) for hit in kept] == [("verge-4", False)]
    (hits,) = relaxing(share_of_three, 1.0).search([DATED], k=9)
    assert {hit.doc_id: hit.relaxed for hit in hits} == {
        "verge-4": False, "verge-5": True, "verge-6": True
    }  # fmt: skip


def test_if_no_step_is_good_enough_the_whole_filter_is_kept() -> None:
    (hits,) = relaxing(lambda questions, found: [0.1] * len(questions)).search([DATED], k=9)
    assert [hit.doc_id for hit in hits] == ["verge-4"]


@pytest.mark.parametrize("p", [[], [2.0], [float("nan")]])
def test_a_judge_that_talks_nonsense_is_an_error(p: list[float]) -> None:
    with pytest.raises(ModelError):
        relaxing(lambda questions, found: p).search([DATED], k=3)
    with pytest.raises(InputError):
        relaxing(share_of_three, 1.5)
