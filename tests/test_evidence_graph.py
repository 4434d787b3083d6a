"""What a drawing of question and hits holds: names with their places, links between hits, and loose
ends.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.small_world import COMPARISON, FILMS

from suffice.gate.evidence_graph import EvidenceGraph, build_evidence_graph
from suffice.gate.extraction import extract, text_with_byline
from suffice.gate.features import SET_COLUMNS
from suffice.gate.hits import normalize_hits
from suffice.gate.question import WordTable, parse_question
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
    assert all(question[one.start : one.end] == one.text for one in made.words)


NAMELESS = "how many days of leave can I carry over into the next year?"
LEAVE = (
    Document("carry", "You can carry over five days of annual leave.", title="Holidays"),
    Document("cheese", "Cheese is made of milk.", title="Cheese"),
)


def test_a_question_without_names_shows_the_words_that_each_hit_holds() -> None:
    made = drawn(NAMELESS, *LEAVE)
    assert made.names == ()
    held = {one.text: one.found_in for one in made.words}
    assert held["days"] == held["leave"] == held["carry"] == ("carry",)
    assert held["next"] == ()
    assert not any("cheese" in found for found in held.values())
    assert all(NAMELESS[one.start : one.end] == one.text for one in made.words)


@pytest.mark.parametrize(
    ("question", "hits"),
    [(NAMELESS, LEAVE), (NAMELESS, LEAVE[:1]), (COMPARISON, (FILM["dog"], FILM["paradise"]))],
)
def test_page_and_verdict_agree_on_what_is_covered(
    question: str, hits: tuple[Document, ...]
) -> None:
    """What the verdict calls "the hits hold 60 % of what the question says", word by word."""
    made, parsed = drawn(question, *hits), parse_question(question, WORDS)
    texts = [text_with_byline(one) for one in hits]
    figures = extract(parsed, [one.title for one in hits], texts, None, WORDS).figures
    found = {one.text.lower() for one in made.words if one.found_in}
    rarity = {word.decode(): rare for word, rare in zip(parsed.content, parsed.rarity)}
    share = sum(rarity[word] for word in found) / sum(rarity.values())
    assert share == pytest.approx(float(figures[SET_COLUMNS.index("cov_any")]), abs=1e-6)
