"""What a drawing of question and hits holds: names with their places, links between hits, and loose
ends.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.small_world import COMPARISON, FILMS

from suffice.gate.evidence_graph import EvidenceGraph, build_evidence_graph
from suffice.gate.hits import normalize_hits
from suffice.gate.question import WordTable
from suffice.types import Document

WORDS = WordTable.load()
FILM = {one.doc_id: one for one in FILMS}


def drawn(question: str, *hits: Document, missing: tuple[str, ...] = ()) -> EvidenceGraph:
    return build_evidence_graph(normalize_hits(question, hits).evidence, WORDS, missing)


def test_a_title_is_one_name_and_stands_where_it_is_written() -> None:
    made = drawn(COMPARISON, FILM["dog"], FILM["paradise"])
    assert [(one.text, one.found_in) for one in made.names] == [
        ("Shadows In Paradise", ("paradise",)),
        ("Dog Law", ("dog",)),
    ]
    assert all(COMPARISON[one.start : one.end] == one.text for one in made.names)


def test_what_no_hit_holds_is_named_with_nobody() -> None:
    made = drawn("Did Jerome Storm direct Metropolis in 1927?", FILM["storm"])
    assert {one.text: one.found_in for one in made.names} == {
        "Jerome Storm": ("storm",),
        "Metropolis": (),
        "1927": (),
    }


def test_an_ordinary_word_with_a_capital_names_nothing() -> None:
    made = drawn("Who directed the film Dog Law (Film)?", FILM["dog"], FILM["storm"])
    assert [(one.text, one.found_in) for one in made.names] == [("Dog Law", ("dog",))]


def test_links_go_from_the_text_to_the_title_it_mentions() -> None:
    assert drawn(COMPARISON, FILM["dog"], FILM["storm"], FILM["bakery"]).links == (
        ("dog", "storm"),
    )


def test_a_loose_end_knows_who_leads_on_to_it() -> None:
    made = drawn(
        COMPARISON, FILM["paradise"], FILM["bakery"], missing=("Aki Kaurismäki", "Dog Law", "…")
    )
    assert [(one.text, one.mentioned_by, one.in_question) for one in made.missing] == [
        ("Aki Kaurismäki", ("paradise",), False),
        ("Dog Law", (), True),
        ("…", (), False),
    ]


def test_the_outlet_of_a_hit_counts_as_held() -> None:
    made = drawn(
        "What did The Verge report?", Document("a", "A phone came out.", source="The Verge")
    )
    assert made.names[0].found_in == ("a",)


@pytest.mark.parametrize(
    "question",
    ["", "?", "ß SS Straße İstanbul", "U.S. and J. R. R. Tolkien's (Hobbit)", "\ud800 Ada"],
)
def test_odd_questions_are_drawn_without_a_fall(question: str) -> None:
    made = drawn(question, FILM["dog"])
    assert all(question[one.start : one.end] == one.text for one in made.names)


@given(st.text(max_size=80), st.lists(st.text(max_size=40), max_size=4))
def test_places_lie_in_the_question_and_never_overlap(question: str, texts: list[str]) -> None:
    made = build_evidence_graph(normalize_hits(question, texts).evidence, WORDS, texts)
    ends = [0]
    for one in made.names:
        assert ends[-1] <= one.start < one.end <= len(question)
        ends.append(one.end)
