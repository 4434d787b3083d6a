"""Open relations, layout and the corpus's own vocabulary: facts of any text."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.types import Document
from suffice_grade.chain_questions import RuleQuestions, Wording
from suffice_grade.claims import PageIndex, RuleClaims, parse_pages
from suffice_grade.knowledge_graph import (
    KnowledgeGraph,
    RuleEquivalences,
    build_graph,
    merge_equivalent_names,
    shortest_paths,
)
from suffice_grade.layout import read_layout
from suffice_grade.open_relations import inverse, kind_of, open_relations
from suffice_grade.relation_words import words_of
from suffice_grade.stage_protocols import Claim, Triple
from suffice_grade.stated_facts import stated_facts
from suffice_grade.terms import CorpusTerms, collect_terms
from suffice_grade.triples import RuleTriples


def read(*documents: Document) -> list[Triple]:
    pages = PageIndex(parse_pages(documents).values(), documents)
    claims = [
        one for found in RuleClaims(pages.by_title, pages.terms).claims(documents) for one in found
    ]
    return [one for found in RuleTriples(pages).triples(claims) for one in found]


def facts(*documents: Document) -> set[tuple[str, str, str]]:
    return {(one.subject, one.relation, one.object) for one in read(*documents)}


def page(title: str, text: str) -> Document:
    return Document(title or text[:20], text, title=title)


# Documents and every fact that is read of them: `about` says which of them a rule was made for.
TOLD = [
    json.loads(line)
    for line in Path(__file__).with_name("stated_facts.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("told", TOLD, ids=lambda told: told["about"])
def test_documents_state_these_facts_and_no_others(told: dict[str, Any]) -> None:
    found = facts(*(page(title, text) for title, text in told["documents"]))
    assert sorted(map(list, found)) == told["facts"]


SENTENCES = {
    "Team Tern is led by Mira Holt.": ("Team Tern", "led by", "Mira Holt"),
    "Mira Holt has led Team Tern since May.": ("Mira Holt", "leads", "Team Tern"),
    "The default port of Atlas is 5432.": ("Atlas", "default port", "5432"),
    "Atlas's owner is Mira Holt.": ("Atlas", "owner", "Mira Holt"),
    "Mira Holt is the head of Team Tern.": ("Team Tern", "head", "Mira Holt"),
    "Mira Holt, the head of Team Tern, resigned.": ("Team Tern", "head", "Mira Holt"),
    "OpenAI CEO Sam Altman resigned.": ("OpenAI", "CEO", "Sam Altman"),
    "Atlas was released on 3 May 2024.": ("Atlas", "released on", "3 May 2024"),
    "Piko is a brand of Telvo.": ("Piko", "brand of", "Telvo"),
    "Adobe bought Figma for $20 billion.": ("Adobe", "buys Figma for", "$20 billion"),
    "Tesla was founded in 2003 by Martin Eberhard.": ("Tesla", "founded by", "Martin Eberhard"),
    "The staging database is hosted by Vultan.": ("staging database", "hosted by", "Vultan"),
    "Marc Tessier was born in Gaspe, Quebec.": ("Marc Tessier", "born in", "Gaspe, Quebec"),
    '"We worked hard for this," said Mira Holt.': ("Mira Holt", "said", "We worked hard for this"),
    "Hasaris Labs' hiring plan was widened in Oslo.": (
        "Hasaris Labs",
        "hiring plan",
        "was widened",
    ),
}
TERMS = CorpusTerms(frozenset({"staging database"}))


@pytest.mark.parametrize(("sentence", "fact"), SENTENCES.items())
def test_a_sentence_is_read_in_its_own_words(sentence: str, fact: tuple[str, str, str]) -> None:
    assert fact in {(one[0], one[1], one[2]) for one in open_relations(sentence, "", TERMS)}


@pytest.mark.parametrize(
    "sentence",
    [
        "Team Tern is not led by Mira Holt.",
        "Team Tern will be led by Mira Holt.",
        "If Team Tern is led by Mira Holt, call her.",
        "Adobe bought Figma investors a dinner.",  # not Figma
        "The Forge Open pays 7,000 for first place.",  # not 7,000 in all
        "Whoever leads wins.",
        "It is led by Mira Holt.",
        "Former OpenAI CEO Sam",
        "",
    ],
)
def test_what_is_not_sure_is_not_read(sentence: str) -> None:
    assert not list(open_relations(sentence, "", TERMS))


def test_active_and_passive_meet_in_the_graph() -> None:
    assert (inverse("leads"), inverse("led by"), inverse("default port")) == (
        "led by", "leads", "",
    )  # fmt: skip
    documents = [
        page("a", "Team Tern maintains Project Atlas."),
        page("b", "Mira Holt leads Team Tern."),
    ]
    graph = build_graph(read(*documents), PageIndex(parse_pages(documents).values(), documents))
    assert graph.only("Team Tern")["led by"].object == "Mira Holt"
    assert {path.ends for path in shortest_paths(graph)} == {
        ("Project Atlas", "Mira Holt"), ("Mira Holt", "Project Atlas"),
    }  # fmt: skip


def test_a_hub_is_asked_only_for_what_can_be_the_only_one() -> None:
    def fact(subject: str, relation: str, name: str, doc_id: str, kind: str = "") -> Triple:
        return Triple(subject, relation, name, doc_id, doc_id, phrase="x", object_kind=kind)

    facts = [
        fact("Oslo", "visits", "Bergen", "a"),
        fact("Oslo", "mayor", "Mira Holt", "b", "person"),
        fact("Oslo", "rebuilt in", "1624", "c", "date"),
        fact("Oslo", "said", "It is cold", "d", "thing"),
    ]
    small, around = (
        KnowledgeGraph(facts),
        [fact(f"A{at}", "based in", "Oslo", f"z{at}") for at in range(20)],
    )
    assert set(small.only("Oslo")) == {"visits", "mayor", "rebuilt in", "said"}
    assert set(KnowledgeGraph([*facts, *around]).only("Oslo")) == {"mayor", "rebuilt in"}


def test_objects_have_a_kind() -> None:
    kinds = {
        "3 May 2024": "date", "$20 billion": "amount", "34 Nm": "amount", "2.0.1": "version",
        "gw-ant-1": "id", "--all": "id", "/etc/fstab": "id", "max_rows": "id", "PW-1": "id",
        "Mira Holt": "person", "Norway": "place", "Strandholm Group": "organisation",
        "respiratory depression": "thing", "Kestrel": "",
    }  # fmt: skip
    assert {name: kind_of(name) for name in kinds} == kinds
    assert kind_of("Aarhus", "place") == "place"


# -------------------------------------------------------------------------------------------- layout


def test_news_say_who_said_what_where_and_when() -> None:
    text = 'Eddy Cue runs services. "There was no valid alternative to it," Cue said on Monday.'
    article = Document("n", text, "The trial", source="The Verge", published_at=date(2023, 9, 26))
    assert {
        ("Eddy Cue", "said", "There was no valid alternative to it"),
        ("The trial", "outlet", "The Verge"),
        ("The trial", "publication date", "26 September 2023"),
    } <= facts(article)


def test_phrases_that_some_documents_have_as_subject_are_things() -> None:
    texts = ["The payment gateway is down."] * 3 + [f"Text {at} is other." for at in range(97)]
    found = collect_terms(page("", text) for text in texts)
    assert found.things == {"payment gateway"}
    assert collect_terms([]) == CorpusTerms()


# -------------------------------------------------------------------------------------- equivalence


def test_rules_find_the_paper_s_examples_and_short_names() -> None:
    def fact(subject: str, relation: str, name: str, doc_id: str) -> Triple:
        kind = kind_of(name)
        return Triple(
            subject, relation, name, doc_id, f"{doc_id}#0", phrase=relation, object_kind=kind
        )

    triples = [
        fact("Matthew Perry", "had", "elevated ketamine levels in his blood", "a"),
        fact("elevated ketamine levels", "led to", "respiratory depression", "b"),
        fact("human spillover cases", "persist", "bird flu (H5N1)", "c"),
        fact("H5N1 virus", "indicates", "potential reduction in its lethality", "d"),
        fact("Mara Kleliran", "leads", "Hasaris", "e"),
        fact("Hasaris Labs", "sues", "Kestrel", "f"),
        fact("Lina Khan", "leads", "Federal Trade Commission", "g"),
        fact("FTC", "sues", "Amazon", "h"),
    ]
    spelled = "The Federal Trade Commission (FTC) sued."
    claims = [Claim(one.claim_id, one.doc_id, "", spelled, spelled) for one in triples]
    pages = PageIndex([])
    equal = RuleEquivalences(pages).equivalences(0, triples, claims)
    merged = merge_equivalent_names(triples, equal, {one.claim_id: (0,) for one in triples})
    found = {
        path.ends: {one.link for one in path.triples}
        for path in shortest_paths(build_graph(merged, pages))
    }
    assert found["Matthew Perry", "respiratory depression"] == {"", "context"}
    lethality = "potential reduction in its lethality"
    assert found["human spillover cases", lethality] == {"", "exact"}
    assert found["Mara Kleliran", "Kestrel"] == {"", "context"}
    assert found["Lina Khan", "Amazon"] == {"", "exact"}


# ---------------------------------------------------------------------- places and dated events

OHIO = page("Ohio", "Ohio became a state on March 1, 1803. In 1851, Ohio adopted a second charter.")
PLACES = (
    OHIO,
    page("Dayton", "Dayton is a city in the U.S. state of Ohio. The state of Ohio has others."),
    page("Columbus", "Columbus is the capital and most populous city of the state of Ohio."),
    page(
        "Jo Barr",
        "Jo Barr (born 4 May 1956 in Akron, Ohio) is an American film director. He fishes.",
    ),
    page("Roses (1990 film)", "It was shown again later. Ohio abolished its tax in 1990 after it."),
    page("Roses Again", "Roses Again is a 1999 film directed by Jo Barr."),
    page("Al Barr", "Al Barr (born 1980) is an American poet. He is the son of Jo Barr."),
)


def test_a_capital_leads_both_ways_and_a_former_one_does_not() -> None:
    pages = PageIndex(parse_pages(PLACES).values(), PLACES)
    graph = build_graph(read(*PLACES), pages)
    assert graph.only("Ohio")["capital"].object == "Columbus"
    former = page("Chillicothe", "Chillicothe is a city. Chillicothe was the capital of Ohio.")
    assert "Chillicothe" not in {one[2] for one in facts(*PLACES, former) if one[0] == "Ohio"}


@pytest.mark.parametrize(
    ("sentence", "asked", "value"),
    [
        ("In 1973, Detroit elected its first mayor, Cole Young.",
         "In what year did X elect its first mayor?", "1973"),
        ("Detroit joined the war in 1917 on the side of Ohio.",
         "In what year did X join the war?", "1917"),
        ("The Detroit was destroyed by fire on 11 June 1805.",
         "When was X destroyed by fire?", "11 June 1805"),
        ("Detroit ceded land in 1805.", "In what year did X cede land?", "1805"),
        ("Detroit won the cup in 1935.", "", ""),  # perhaps not only then
        ("Detroit won its first cup in 1935.", "In what year did X win its first cup?", "1935"),
        ("Detroit was governed from Ohio in 1910 and 1912.", "", ""),
        ("Detroit was not settled in 1910.", "", ""),
        ("Detroit Tigers were founded in 1894.", "", ""),
        ("Detroit handled 4,120 flights in 2013.", "", ""),
        ("Detroit opened on May 4 and was dedicated in 1907.", "", ""),
        ("", "", ""),
    ],
)  # fmt: skip
def test_a_dated_event_is_asked_for_in_its_own_words(sentence: str, asked: str, value: str) -> None:
    found = [(one.ask, one.value) for one in stated_facts(sentence, "Detroit")]
    assert found == ([(asked, value)] if asked else [])


def test_chains_end_at_what_any_document_dates_of_a_page() -> None:
    pages = PageIndex(parse_pages(PLACES).values(), PLACES)
    paths = shortest_paths(build_graph(read(*PLACES), pages))
    made = [one for one in RuleQuestions(Wording(pages)).write(paths) if one]
    asked = {one.text: one.answer for one in made}
    assert asked["In what year did the state where Jo Barr was born adopt a second charter?"] == (
        "1851"
    )
    assert asked["In what year did the state where Jo Barr was born abolish its tax?"] == "1990"
    # Who directs is a director: only the son is asked about his father's profession.
    told = [one.text for one in made if one.answer == "film director"]
    assert [("Al Barr" in one, "Roses" in one) for one in told] == [(True, False)]
    assert not any("located located" in one for one in asked)


def test_a_table_is_asked_how_many_and_not_what_points_to_the_row_above() -> None:
    def asked(relation: str, value: str) -> tuple[str, ...]:
        fact = Triple("Oslo", relation, value, "a", "a#0", phrase=relation, object_kind="amount")
        return words_of(fact, PageIndex([])).ask

    assert asked("cases", "1,106") == ("How many cases does X have?",)
    assert asked("meaning", "The same of its text.") == ()
    for relation, value in (("seconds", "3"), ("cases", "0.5"), ("status", "3"), ("class", "1")):
        assert not any(one.startswith("How many") for one in asked(relation, value))


# ------------------------------------------------------------------------------------ hostile input


@settings(max_examples=30, deadline=None)
@given(st.text(alphabet="AaTthe is by of:|-#*`\"“\n\t '().,1\ud800é", max_size=200))
def test_any_text_is_read_without_an_error(text: str) -> None:
    for one in read(page("Title", text), page("", text)):
        assert one.subject
        assert one.object


@pytest.mark.parametrize(
    "text",
    [
        "A " * 60_000,
        "|" * 100_000,
        " " * 100_000 + "x",
        ("| a | b |\n" * 20_000),
        "NAME\n" + "  -" + "a-" * 40_000 + "\nOPTIONS\n",
        '"' * 50_000 + " said A",
        "(" * 50_000,
        "x: " * 30_000,
    ],
    ids=lambda text: text[:6],
)
def test_huge_lines_cost_linear_time(text: str) -> None:
    read_layout(page("Title", text))
    list(open_relations(text[:5_000]))
