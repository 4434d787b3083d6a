from __future__ import annotations

import numpy as np
import pytest
from tests.corpora import documents

from suffice.datasets.gold import Gold, GoldQuestion
from suffice.errors import InputError
from suffice.evaluation.metrics import score
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.metadata import Vocabulary
from suffice.types import Condition, Filter, Hit, Question
from suffice_research.multi_meta_rag.fact_recall import FactIndex
from suffice_research.multi_meta_rag.filter_quality import (
    empty_filters,
    filter_quality,
    gold_metadata,
    published_filter,
)

ARTICLES = documents("filter_quality")


def example(name: str, *gold: str) -> GoldQuestion:
    return GoldQuestion(Question(name, name), Gold(name, frozenset(gold)))


def test_what_is_known_of_the_evidence() -> None:
    known, partly, null = gold_metadata(
        [example("a", "trial", "verdict"), example("b", "trial", "rumour"), example("c")], ARTICLES
    )
    assert known.sources == frozenset({"The Verge", "Fortune"})
    assert known.days == frozenset({"2023-10-04", "2023-11-03"})
    assert (partly.sources, partly.days) == (None, None)
    assert (null.sources, null.days) == (None, None)


def test_filters_are_counted_value_by_value() -> None:
    gold = gold_metadata(
        [example("a", "trial", "verdict"), example("b", "trial"), example("c", "rumour")], ARTICLES
    )
    sources = Condition("source", "$in", ("The Verge", "Wired"))
    days = Condition("published_at", "$in", ("2023-10-04", "2023-10-09"))
    since = Condition("published_at", "$gte", ("2023-10-01",))
    found = filter_quality(
        [
            Filter((sources, days)),
            Filter((Condition("source", "$in", ("The Verge",)), since)),
            Filter(),
        ],
        gold,
    )
    np.testing.assert_array_equal(found.exact, [0, 1, np.nan])
    assert (found.source_precision, found.source_recall) == (2 / 3, 2 / 3)
    assert (found.dates_named, found.dates_right, found.days_found, found.days_gold) == (3, 2, 2, 3)
    assert (found.day_precision, found.date_precision) == (1 / 2, 2 / 3)
    nothing = filter_quality([Filter()] * 3, gold)
    assert (nothing.source_precision, nothing.date_recall) == (None, 0.0)
    with pytest.raises(InputError, match="one each"):
        filter_quality([], gold)


def test_a_filter_that_nothing_passes_empties_the_result() -> None:
    corpus = Corpus(ARTICLES)
    filters = [
        Filter((Condition("source", "$in", ("Wired",)),)),
        Filter((Condition("source", "$in", ("Fortune",)),)),
    ]
    assert empty_filters(filters, corpus, lenient=False).tolist() == [True, False]
    assert empty_filters(filters, corpus, lenient=True).tolist() == [False, False]


def test_published_filters_stay_as_they_are() -> None:
    vocabulary = Vocabulary({"source": ["Fortune"], "published_at": ["2023-10-04"]})
    filter = {
        "source": {"$in": ["Financial Times", "Fortune"]},
        "published_at": {"$in": ["October 4, 2023"]},
    }
    assert published_filter(filter, vocabulary).conditions == (
        Condition("source", "$in", ("Financial Times", "Fortune")),
        Condition("published_at", "$in", ("2023-10-04",)),
    )
    assert (
        published_filter({"source": {"$ne": "Fortune"}}, vocabulary).conditions[0].operator
        == "$nin"
    )


def test_a_chunk_counts_for_the_facts_it_holds_whatever_the_quotation_marks() -> None:
    facts = FactIndex(
        ARTICLES,
        [
            ['"He lied," they said.', "The verdict came."],
            ["The verdict came.", "Nobody said this."],
        ],
    )
    judged = facts.judge(
        [[Hit("rumour"), Hit("trial"), Hit("trial"), Hit("verdict")], [Hit("verdict")]], depth=4
    )
    np.testing.assert_array_equal(judged.relevance, [[0, 1, 0, 1], [1, 0, 0, 0]])
    assert facts.unfound == 1
    assert score(judged, "official_mrr@4") == (1 / 2 + 1) / 2
    assert score(judged, "complete@4") == 0.5
    with pytest.raises(InputError, match="one each"):
        facts.judge([])
