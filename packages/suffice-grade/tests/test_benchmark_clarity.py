"""A question about a fact is clear to someone who has not seen its document."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suffice.types import Document
from suffice_grade.chain_questions import RuleQuestions, Wording
from suffice_grade.claims import PageIndex, parse_pages
from suffice_grade.clarity import (
    context_of,
    fits_what,
    has_one_answer,
    in_context,
    is_clear,
    is_full_name,
    is_listed,
)
from suffice_grade.fact_questions import Facts, write_yes_no_questions
from suffice_grade.knowledge_graph import build_graph
from suffice_grade.relation_words import words_of
from suffice_grade.stage_protocols import GeneratedQuestion, ReasoningPath, Triple
from suffice_grade.validation import RuleJudge

DOCUMENTS = [
    Document("ports", "Kestrel: 8080", title="Ports of our services"),
    Document("osk", "Greta Osk (born 1931) was a painter.", title="Greta Osk"),
    Document("day", "Our journal and the piece of the hope at sunrise.", title="Journal"),
    Document("ls", "ls lists files.", title="ls(1)"),
    Document("pair", "Chicago Fire met Chicago Bears. The Chicago Cubs won.", title=""),
]
PAGES = PageIndex(parse_pages(DOCUMENTS).values(), DOCUMENTS)


def fact(subject: str, relation: str, value: str, phrase: str, kind: str = "") -> Triple:
    return Triple(subject, relation, value, "ports", "ports#0", phrase=phrase, object_kind=kind)


def row(subject: str, relation: str, value: str, kind: str = "") -> Triple:
    return fact(subject, relation, value, relation, kind)


@pytest.mark.parametrize(
    "name",
    ["Mira Holt", "Kestrel 2", "MALLOC_ARENA_MAX", "suffice.toml", "OpenAI", "IAG", "France",
     "University of Tarbek", "King Aldric III", "Greta Osk", "Otto II, Count of Guelders"],
)  # fmt: skip
def test_these_names_are_whole(name: str) -> None:
    assert is_full_name(name, PAGES)


@pytest.mark.parametrize(
    "name",
    ["Mira", "Journal", "Bastable, Roger (the younger)", "Penhallow notes, copied by E.",
     "Brass band", "Mrs Tarn", "Dr Menon", "Two of the ships", "Building the tower", "the rest",
     "Brandvold: Symphony No. 2", "#20422", ""],
)  # fmt: skip
def test_these_are_not(name: str) -> None:
    assert not is_full_name(name, PAGES)


@pytest.mark.parametrize(
    "one",
    [
        fact("Low Tide", "painted by", "Greta Osk", "was painted by"),
        fact("Port Selwyn", "founded", "1911", "was founded in", "date"),
        fact("Kestrel Labs", "dividend", "was lifted", "dividend was"),
        fact("Salesforce", "chief executive", "Mira Holt", "is the chief executive of"),
        row("billing-service", "default port", "8443", "amount"),
    ],
)
def test_these_facts_are_clear(one: Triple) -> None:
    assert is_clear(one, PAGES)


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (fact("Reuter", "studies in", "Leiden", "studied in"), "a last name"),
        (fact("Low Tide", "painted by", "Greta", "was painted by"), "a first name"),
        (fact("Anna Brandt", "rebuilt in", "9 May", "was rebuilt in", "date"), "no year"),
        (fact("Karsa Dam", "built from", "1953", "was built from", "date"), "half of a span"),
        (fact("Mill Players", "formed by", "weavers and broke up", "formed by", "thing"), "cut"),
        (fact("Upper Fenn", "abbey", "was founded by Odra", "abbey was", "thing"), "who did it"),
        (fact("Ja Chase", "four receptions", "were tipped", "four receptions were"), "a count"),
        (fact("Chicago", "coach", "Mira Holt", "is the coach of"), "part of longer names"),
        (row("stock, orders", "topic", "paid"), "two things"),
        (row("head_seconds", "meaning", "for the request line"), "a fragment"),
        (row("Kestrel", "release date", "12 Oct"), "no year"),
    ],
)
def test_these_are_vague(one: Triple, why: str) -> None:
    assert not is_clear(one, PAGES), why


def test_a_row_is_asked_about_with_the_title_of_its_document() -> None:
    one = row("billing-service", "default port", "8443", "amount")
    assert is_listed(one)
    assert not is_listed(fact("billing-service", "runs", "the mail", "runs"))
    asked = in_context("What is the default port of billing-service?", one, PAGES)
    assert asked.startswith('According to "Ports of our services", what is the default port')
    elsewhere = replace(one, doc_id="pair")  # it has no title
    assert context_of(elsewhere, PAGES) == ""
    assert not is_clear(elsewhere, PAGES)
    twice = PageIndex([], [DOCUMENTS[0], replace(DOCUMENTS[0], doc_id="again")])
    assert context_of(one, twice) == ""


def test_only_facts_with_one_answer_are_asked_for() -> None:
    assert has_one_answer(fact("Low Tide", "painted by", "Greta Osk", "was painted by"))
    assert has_one_answer(fact("Hesper Cup", "named after", "Anna Hesper", "is named after"))
    assert not has_one_answer(fact("Fen Ladies", "plays", "34 matches", "played", "thing"))
    assert not has_one_answer(fact("Erik Kron", "joins in", "2014", "joined in", "date"))
    assert not has_one_answer(fact("France", "president", "Jon Ek", "was the president of"))


def test_what_does_not_ask_for_a_person() -> None:
    hero = fact("Oak Road", "hero", "Colm Derry", "hero is")
    assert not fits_what("What is the hero of Oak Road?", hero)
    assert fits_what("Who is the hero of Oak Road?", hero)
    assert fits_what("What is the default port of Kestrel?", row("Kestrel", "default port", "80"))


def test_a_column_with_one_value_says_nothing() -> None:
    rows = [row(f"part_{at}", "state", "done") for at in range(4)]
    rows += [row(f"part_{at}", "level", str(at % 2), "amount") for at in range(4)]
    rows = [replace(one, claim_id=f"ports#{at}") for at, one in enumerate(rows)]
    every = Facts(build_graph(rows, PAGES), Wording(PAGES)).every
    assert {one.relation for one in every} == {"level"}


def test_no_is_only_asked_with_a_value_of_the_same_table() -> None:
    ports = [row(f"part_{at}", "default port", f"80{at}0", "amount") for at in range(8)]
    ports = [replace(one, claim_id=f"ports#{at}") for at, one in enumerate(ports)]
    far = replace(row("part_x", "default port", "9"), doc_id="osk", object_kind="amount")
    made = write_yes_no_questions(
        Facts(build_graph([*ports, far], PAGES), Wording(PAGES)), [], most=90
    )
    assert {one.answer for one in made} == {"yes", "no"}
    assert not any(one.text.endswith(" 9?") for one in made if one.answer == "no")


def test_a_command_is_called_one_and_what_it_is_for_is_asked() -> None:
    wording = Wording(PAGES)
    assert wording.name("ls(1)") == "the command ls"
    assert wording.name("ls(1)", kind_word=False) == wording.name("ls(1)", kind_word=False)
    assert wording.name("apt.conf(5)") == "apt.conf(5)"
    shown = Triple("ls(1)", "purpose", "view timezones", "ls", "ls#0", phrase="purpose")
    assert words_of(shown, PAGES).ask == ("What is X for?",)
    named = replace(shown, object="Helper to store credentials")
    assert words_of(named, PAGES).ask == ("What is X?",)


def test_an_answer_says_more_than_its_question() -> None:
    option = Triple("run(1)", "option --location", "The location name", "run", "run#0")
    pages = PageIndex([], [Document("run", "run", title="run(1)")])
    option = replace(option, phrase=option.relation)
    assert not is_clear(option, pages)
    assert is_clear(replace(option, object="Where the backup is written"), pages)
    package = replace(option, relation="package", phrase="package", object="run tools")
    assert not is_clear(package, pages)


def test_a_namesake_in_another_document_makes_a_question_unclear() -> None:
    gold = Document("gold", "Irma Velde died in 1981.", title="Irma Velde")
    other = Document("other", "The prize went to Irma Velde, a sailor.")
    born = Triple("Irma Velde", "death date", "1981", "gold", "gold#0", object_kind="date")
    made = GeneratedQuestion(
        "q", "When did Irma Velde die?", "1981", "single", 1, (ReasoningPath((born,)),), ("gold",)
    )
    pages = PageIndex(parse_pages([gold]).values(), [gold])
    assert RuleJudge([gold], pages).judge([made])[0].valid
    why = RuleJudge([gold, other], pages).judge([made])[0].why
    assert why == "perhaps something else of that name"
    named = replace(other, text="Irma Velde is remembered at the harbour.")
    assert RuleJudge([gold, named], pages).judge([made])[0].valid


def test_a_chain_has_clear_steps_and_no_area_around_a_country() -> None:
    writer = RuleQuestions(Wording(PAGES))
    zone = replace(row("prod/ocr.yaml", "zone", "B, C", "thing"), doc_id="pair")
    counted = fact("B, C", "founder", "Mira Holt", "was founded by")
    assert writer.write([ReasoningPath((zone, counted))]) == [None]
    lies = Triple("Hungary", "located in", "Europe", "d", "d#0", object_kind="place")
    river = Triple("Europe", "capital", "Volga", "e", "e#0", object_kind="place")
    assert writer.write([ReasoningPath((lies, river))]) == [None]
