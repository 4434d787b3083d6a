"""The pool: what each candidate is worth by itself, and what it adds to those held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from tests.corpora import documents

from suffice.retrieval.candidate_pool import (
    COLUMN,
    FEATURES,
    MAX_CHARS,
    CandidatePool,
    question_terms,
)
from suffice.retrieval.metadata import Vocabulary
from suffice.retrieval.name_links import name_links
from suffice.retrieval.word_vectors import WordVectors
from suffice.types import Document, Hit

QUESTION = "When did the mother of the director of The Silent Tide die?"
DOCUMENTS = documents("candidate_pool")
LINKS = name_links(lambda: DOCUMENTS)


def pool_of(question: str, *documents: Document) -> CandidatePool:
    terms = question_terms(question, LINKS.question_names([question])[0], LINKS)
    pool = CandidatePool(
        terms, LINKS, [Hit("film", 2.0), Hit("tide", 1.0)], [Hit("tide", 0.9), Hit("film", 0.6)]
    )
    pool.join(documents or DOCUMENTS, {"film": {"bm25": 2.0}})
    pool.mark()
    return pool


def value(pool: CandidatePool, doc_id: str, feature: str) -> float:
    return float(pool.features()[pool.at[doc_id], COLUMN[feature]])


def test_the_film_is_named_and_nobody_else() -> None:
    pool = pool_of(QUESTION)
    assert value(pool, "film", "named_best") == 1
    assert [value(pool, one, "named") for one in ("vale", "ann", "roe")] == [0, 0, 0]


def test_a_held_film_leads_to_its_director() -> None:
    pool = pool_of(QUESTION)
    assert value(pool, "vale", "bridge") == 0
    pool.hold(pool.at["film"])
    assert value(pool, "vale", "bridge") == 1
    assert value(pool, "ann", "bridge") == 0
    pool.hold(pool.at["vale"])
    assert value(pool, "ann", "bridge") == 1


def test_the_words_around_a_name_say_which_link_is_meant() -> None:
    pool = pool_of(QUESTION)
    pool.hold(pool.at["vale"])
    assert value(pool, "ann", "bridge_context") > 0  # "his mother was Ann Vale"


def test_what_is_covered_already_adds_nothing() -> None:
    pool = pool_of(QUESTION)
    before = value(pool, "vale", "adds")
    pool.hold(pool.at["film"])
    assert 0 < value(pool, "vale", "adds") < before
    assert value(pool, "film", "adds") == 0
    assert value(pool, "vale", "held") == 1


def test_releasing_brings_the_start_back() -> None:
    pool = pool_of(QUESTION, *DOCUMENTS[:3])
    start = pool.features()
    pool.hold(0)
    pool.join(DOCUMENTS[3:], {})
    assert len(pool) == 5
    pool.release()
    assert pool.ids == ["film", "vale", "ann"]
    assert not pool.held
    np.testing.assert_allclose(pool.features(), start, atol=1e-6)


def test_metadata_that_the_question_names_counts_until_it_is_held() -> None:
    news = (
        Document("a", "Ada won.", source="The Verge"),
        Document("b", "Ada lost.", source="BBC"),
        Document("c", "Ada."),
    )
    question = "Did The Verge and BBC report on Ada?"
    links = name_links(lambda: news)
    vocabulary = Vocabulary({"source": ["The Verge", "BBC"]})
    terms = question_terms(
        question, links.question_names([question])[0], links, vocabulary.mentions([question])[0]
    )
    pool = CandidatePool(terms, links, [], [])
    pool.join(news, {})
    pool.hold(0)
    rows = pool.features()
    assert rows[:, COLUMN["agrees"]].tolist() == [0.5, 0.5, 0]
    assert rows[:, COLUMN["agrees_new"]].tolist() == [0, 0.5, 0]


@pytest.mark.parametrize("question", ["", "?", "the of and", "東京はどこですか", "x" * 5000])
def test_any_question_has_finite_features(question: str) -> None:
    rows = pool_of(question).features()
    assert rows.shape == (len(DOCUMENTS), len(FEATURES))
    assert np.isfinite(rows).all()


def test_documents_without_title_or_text_and_of_any_length_are_candidates() -> None:
    odd = (
        Document("empty", ""),
        Document("book", "tide " * 100_000),
        Document("new", "Unknown to the links.", "Tide"),
    )
    pool = pool_of(QUESTION, *DOCUMENTS, *odd)
    assert np.isfinite(pool.features()).all()
    assert max(len(text) for text in pool._texts) <= MAX_CHARS + 2


def test_a_held_document_asks_for_what_it_does_not_say() -> None:
    pool = pool_of(QUESTION)
    asked = pool.next_query(pool.at["film"])
    assert "Jon Vale" in asked
    assert "mother" in asked
    assert "Silent" not in asked  # the film has told that


def test_without_names_the_rarest_words_are_asked() -> None:
    plain = Document("plain", "the tide took the lighthouse with the oil drums.")
    pool = pool_of(QUESTION, plain)
    asked = pool.next_query(pool.at["plain"]).split()
    assert {"lighthouse", "oil", "drums"} <= set(asked)


def test_what_was_asked_counts_by_its_best_rank_until_it_is_released() -> None:
    pool = pool_of(QUESTION)
    pool.hold(pool.at["film"])
    pool.add_asked([Hit("roe", 3.0), Hit("ann", 2.0), Hit("elsewhere", 1.0)])
    pool.add_asked([Hit("ann", 3.0)])
    assert value(pool, "ann", "asked_rank") == 1
    assert value(pool, "roe", "asked_rank") == 1
    assert value(pool, "tide", "asked_rank") == 0
    pool.release()
    assert value(pool, "ann", "asked_rank") == 0


class Fishermen:
    """An encoder of words to whom "sea" is much like "tide"."""

    def encode_words(self, words: Sequence[str]) -> npt.NDArray[np.float32]:
        known = {"tide": (1, 0, 0), "ocean": (0.8, 0.6, 0)}
        return np.array([known.get(one, (0, 0, 1)) for one in words], np.float32)


def plain_pool(question: str) -> CandidatePool:
    """The candidates without titles."""
    plain = [replace(one, title="") for one in DOCUMENTS]
    links = name_links(lambda: plain)
    terms = question_terms(question, links.question_names([question])[0], links)
    hits = [Hit("film", 2.0), Hit("tide", 1.0)], [Hit("tide", 0.9), Hit("film", 0.6)]
    pool = CandidatePool(terms, links, *hits, WordVectors(Fishermen()))
    pool.join(plain, {})
    pool.mark()
    return pool


def test_both_searches_together_rank_as_hybrid_does() -> None:
    pool = plain_pool(QUESTION)
    assert not pool.titled
    fused = {one: value(pool, one, "fused") for one in ("film", "tide", "ann")}
    assert fused == {"film": 1.0, "tide": pytest.approx(0.3 / 0.7), "ann": 0.0}
    assert [value(pool, one, "fused_rank") for one in fused] == [1.0, 0.5, 0.0]


def test_without_a_title_the_subject_stands_in() -> None:
    pool = plain_pool("Who is Jon Vale?")
    assert value(pool, "vale", "title_asked") == value(pool, "vale", "named") == 1
    assert value(pool, "film", "title_asked") == 0


def test_a_word_of_like_meaning_covers_a_part_until_a_held_document_does() -> None:
    pool = plain_pool("ocean")
    part = value(pool, "tide", "alike")
    assert 0 < part < 1
    assert value(pool, "roe", "alike") == 0
    assert value(pool, "film", "alike_adds") == pytest.approx(part)
    assert value(pool, "film", "alike_best") == 1
    pool.hold(pool.at["tide"])
    assert value(pool, "film", "alike_adds") == 0


def test_words_beside_a_shared_name_say_more_than_the_name() -> None:
    documents = (
        *DOCUMENTS,
        Document("grave", "The grave of Ann Vale: mother, painter, she did die at sea.", "Grave"),
        Document("show", "A show with pictures by Ann Vale.", "Show"),
    )
    others = [Document(f"other{at}", "A village.") for at in range(40)]  # so that names are rare
    links = name_links(lambda: [*documents, *others])
    terms = question_terms(QUESTION, links.question_names([QUESTION])[0], links)
    pool = CandidatePool(terms, links, [], [])
    pool.join(documents[:-1], {})
    pool.hold(pool.at["vale"])
    pool.features()
    pool.join(documents[-1:], {})  # later ones are read, too
    rows = pool.features()[:, [COLUMN["shared_context"], COLUMN["shared_rarity"]]]
    grave, show = rows[pool.at["grave"]], rows[pool.at["show"]]
    assert grave[0] > show[0]
    assert grave[1] == show[1] > 0


def test_after_a_release_another_candidate_may_take_the_place() -> None:
    pool = pool_of(QUESTION, *DOCUMENTS[:1])
    for late, other in (("roe", "vale"), ("vale", "ann")):
        pool.join([one for one in DOCUMENTS if one.doc_id in (late, other)], {})
        pool.hold(pool.at[late])
        fresh = pool_of(QUESTION, *DOCUMENTS[:1])
        fresh.join([one for one in DOCUMENTS if one.doc_id in (late, other)], {})
        fresh.hold(fresh.at[late])
        assert (pool.features() == fresh.features()).all()
        pool.release()
