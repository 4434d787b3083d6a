"""What holds for every filter and every question: it can be read or is refused, it narrows, and
softness never loses hits.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.errors import InputError
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.filters import VocabularyExtractor, parse_filter
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.metadata import Vocabulary
from suffice.retrieval.soft_filter import SoftFilter
from suffice.types import Document, Filter, Hit
from suffice_research.retrievers.signals import Agreement

SOURCES = ("The Verge", "Fortune", "FOX News - Health", "FOX News - Lifestyle")
DOCUMENTS = tuple(
    Document(
        str(n),
        f"trial of company {n % 3}",
        source=SOURCES[n % 4],
        category=("business", "law")[n % 2],
        published_at=date(2023, 10, 1) + timedelta(days=9 * n),
        entities=(f"Company {n % 3}",),
    )
    for n in range(8)
)
STORE = MemoryStore(DOCUMENTS)
CORPUS = Corpus(DOCUMENTS)
VOCABULARY = Vocabulary.of(CORPUS)
junk = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([*SOURCES, "2023-10-05", "October 2023"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["$in", "$nin", "$gte", "$lt", "$and", "source", "published_at", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)
questions = st.lists(
    st.sampled_from(
        [
            *SOURCES,
            "Fox News",
            "Company 1",
            "trial",
            "business article",
            "after October 2023",
            "on October 10, 2023",
        ]
    ),
    max_size=5,
).map(" of ".join) | st.text(max_size=60)


class Text:
    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        return STORE.search_text(questions, k=k, filters=filters)


@given(junk)
def test_anything_is_a_filter_or_an_input_error(found: object) -> None:
    with suppress(InputError):
        CORPUS.mask(parse_filter(found, VOCABULARY))  # type: ignore[arg-type]


@given(st.lists(st.sampled_from(SOURCES), min_size=1))
def test_in_and_not_in_share_the_documents_between_them(sources: list[str]) -> None:
    inside = CORPUS.mask(parse_filter({"source": {"$in": sources}}, VOCABULARY))
    outside = CORPUS.mask(parse_filter({"source": {"$nin": sources}}, VOCABULARY))
    assert (inside ^ outside).all()


@given(st.dates(date(2023, 9, 1), date(2024, 1, 31)))
def test_before_and_from_a_day_share_the_documents_between_them(day: date) -> None:
    before = CORPUS.mask(parse_filter({"published_at": {"$lt": day.isoformat()}}, VOCABULARY))
    since = CORPUS.mask(
        parse_filter({"published_at": {"$gte": f"{day:%B} {day.day}, {day.year}"}}, VOCABULARY)
    )
    assert (before ^ since).all()


@given(questions, st.integers(1, 10))
@settings(deadline=None)
def test_a_soft_filter_returns_as_many_hits_as_no_filter(question: str, k: int) -> None:
    (soft,) = SoftFilter(Text(), STORE, VOCABULARY).search([question], k=k)
    (plain,) = STORE.search_text([question], k=k)
    assert len(soft) == len(plain)
    assert len({hit.doc_id for hit in soft}) == len(soft)
    passing = CORPUS.mask(VocabularyExtractor(VOCABULARY).extract([question])[0].filter)
    assert all(passing[CORPUS.position[hit.doc_id]] != hit.relaxed for hit in soft)
    scores = [hit.score for hit in soft if hit.score is not None]
    assert scores == sorted(scores, reverse=True)


@given(questions)
def test_agreement_lies_between_nothing_and_everything(question: str) -> None:
    scores = Agreement(CORPUS).scores([question])
    assert scores.min() >= 0
    assert scores.max() <= 1.20 + 1e-6


@given(questions)
def test_agreement_does_not_depend_on_the_company_of_other_questions(question: str) -> None:
    agreement = Agreement(CORPUS)
    alone = agreement.scores([question])[0]
    assert agreement.scores(["Fortune", question, "The Verge"])[1] == pytest.approx(alone)
