"""Faults that reading generated questions found, each with the rule that prevents it."""

from __future__ import annotations

import pytest

from suffice.types import Document
from suffice_grade.chain_questions import Wording
from suffice_grade.claims import PageIndex, RuleClaims, parse_pages
from suffice_grade.fact_questions import Facts, write_fact_comparisons
from suffice_grade.knowledge_graph import build_graph
from suffice_grade.open_relations import OpenMatch, open_relations
from suffice_grade.relation_words import with_article, words_of
from suffice_grade.stage_protocols import GeneratedQuestion, ReasoningPath, Triple
from suffice_grade.terms import collect_terms
from suffice_grade.triples import RuleTriples
from suffice_grade.validation import RuleJudge

NO_PAGES = PageIndex([])


def fact(subject: str, relation: str, value: str, phrase: str, kind: str = "") -> Triple:
    return Triple(subject, relation, value, "d0", "d0#0", phrase=phrase, object_kind=kind)


def why(documents: list[Document], text: str, triple: Triple, kind: str = "single") -> str:
    path = ReasoningPath((triple,))
    pages = PageIndex(parse_pages(documents).values(), documents)
    made = GeneratedQuestion("q", text, triple.object, kind, 1, (path,), ("d0",))
    return RuleJudge(documents, pages).judge([made])[0].why


# ----------------------------------------------------------------------------------- the sentences


@pytest.mark.parametrize(
    "sentence",
    [
        "Enceladus is the moon of Saturn with jets of ice.",  # not its only moon
        "Malin's receptionist is called Beryl.",  # a name is not an event
        "Mount Fuji's cone is almost perfectly even.",
        "Mr Farrow lent Mirek his saw.",  # he did not lend Mirek
    ],
)
def test_a_fact_that_its_sentence_limits_is_not_read(sentence: str) -> None:
    assert not list(open_relations(sentence))


@pytest.mark.parametrize(
    ("sentence", "several"),
    [
        ("R-241 carries gun type C-25, hose pack 1 and a tool.", True),
        ("R-241 carries gun type C-25.", False),
        ("R-241 carries gun type C-25, which is new.", False),
        ("Orlo was called at 9:15 and at 11.", True),
        ("Orlo was called at 9:15.", False),
    ],
)
def test_the_first_of_a_list_is_not_the_only_one(sentence: str, several: bool) -> None:
    found: list[OpenMatch] = list(open_relations(sentence))
    assert [one.several for one in found] == [several]


MANUAL = """XKILL(1)                 User Commands                XKILL(1)

NAME
       xkill - kill a client by its X resource

SYNOPSIS
       xkill [-display displayname]

{footer}         September 2022             XKILL(1)"""


@pytest.mark.parametrize(
    ("footer", "versions"),
    [("xkill 1.0.6", ["1.0.6"]), ("X Version 11", []), ("Linux man-pages 6.03", [])],
)
def test_a_program_has_its_own_version(footer: str, versions: list[str]) -> None:
    documents = [Document("xkill(1)", MANUAL.format(footer=footer), title="xkill(1)")]
    pages = PageIndex(parse_pages(documents).values(), documents)
    claims = RuleClaims(pages.by_title, pages.terms).claims(documents)
    found = RuleTriples(pages).triples([claim for some in claims for claim in some])
    assert [one.object for some in found for one in some if one.relation == "version"] == versions


# --------------------------------------------------------------------------------------- the words


def test_a_name_has_the_article_that_the_text_gives_it() -> None:
    terms = collect_terms(
        [
            Document("1", "The Danube is long. Ships sail up the Danube. Danube ports are busy."),
            Document("2", "The Titan sunflower is tall. Titan, the moon, is cold. Ask the FTC."),
        ]
    )
    shown = [with_article(name, terms) for name in ("Danube", "Titan", "FTC", "The Hague")]
    assert shown == ["the Danube", "Titan", "the FTC", "The Hague"]
    named = [with_article(name) for name in ("University of Tarbek", "Karsa dam", "Oslo")]
    assert named == ["the University of Tarbek", "the Karsa dam", "Oslo"]


@pytest.mark.parametrize(
    "triple",
    [
        fact("Black Sea", "joined by", "Bosporus", "is joined by"),  # who or what?
        fact("Karsa dam", "built from", "1953", "was built from", "date"),
        fact("Gartner", "analyst", "Mira Holt", "analyst", "person"),  # one of many
        fact("Barbarian", "best subclass", "Berserker", "is the best subclass for"),
    ],
)
def test_what_nobody_would_ask_is_not_asked(triple: Triple) -> None:
    assert not words_of(triple, NO_PAGES).ask


def test_only_things_of_a_kind_are_compared() -> None:
    def asked(names: tuple[str, str]) -> list[str]:
        documents = [Document(f"d{at}", f"Price: {at}.50", title=it) for at, it in enumerate(names)]
        triples = [
            Triple(name, "price", f"{at}.50", f"d{at}", f"d{at}#0", object_kind="amount",
                   phrase="price")
            for at, name in enumerate(names)
        ]  # fmt: skip
        pages = PageIndex(parse_pages(documents).values(), documents)
        made = write_fact_comparisons(Facts(build_graph(triples, pages), Wording(pages)), most=5)
        return [one.text for one in made]

    assert asked(("Search service", "Mail service"))
    assert not asked(("Basket", "GH-3450"))
    assert not asked(("Fort Gannet", "Haskell Pianos"))


# -------------------------------------------------------------------------------------- the checks


def test_what_happened_is_not_asked_where_another_article_may_say_otherwise() -> None:
    lifted = fact("Kestrel Labs", "dividend", "was lifted", "dividend was")
    gold = Document("d0", "Kestrel Labs' dividend was lifted.")
    text = "What happened to the dividend of Kestrel Labs?"
    other = "Kestrel Labs confirmed in Oslo that its dividend was scrapped."
    assert why([gold, Document("d1", "Kestrel Labs hired nobody.")], text, lifted) == ""
    refused = "perhaps otherwise in another document"
    assert why([gold, Document("d1", other)], text, lifted) == refused


# ----------------------------------------------------------------------------------------- reports
