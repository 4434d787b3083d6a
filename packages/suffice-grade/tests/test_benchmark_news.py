"""Questions of news articles: a headline is no name, and what does not stand alone is not asked."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from suffice.types import Document
from suffice_grade.claims import HEADLINE, PageIndex, full_names, parse_page, with_full_names
from suffice_grade.open_relations import SAID, open_relations
from suffice_grade.pipeline import BenchmarkSettings, build_benchmark
from suffice_grade.relation_words import words_of
from suffice_grade.stage_protocols import Triple
from suffice_grade.terms import NO_TERMS, collect_terms


def article(day: int, source: str, title: str, text: str) -> Document:
    published = date(2024, 5, day)
    return Document(f"n{day}", text, title=title, source=source, published_at=published)


NEWS = [
    article(1, "The Ledger", "Mette Holm retires",
            "Snowboarder Mette Holm has retired. She was born in Aarhus. She won three titles."),
    article(2, "The Ledger", "Martin Vale joins Brightwater",
            "Former Skyhook Systems chief Martin Vale has joined Brightwater as a partner. "
            "Brightwater is based in London. Mr. Vale led Skyhook Systems for six years."),
    article(3, "Daily Signal", "Fennel Press sold to Marlowe House",
            "Fennel Press has been sold to Marlowe House. Fennel Press was founded by Grace Lin in "
            "1991. Marlowe House paid 18 million dollars for it."),
    article(4, "Daily Signal", "Heatwave hits Lagos",
            "A heatwave hit Lagos. Temperatures reached 41 degrees. Outsiders are aware that Lagos "
            "was closed in 2016. Riga's mayor welcomed the decision."),
    article(5, "The Ledger", "Skyhook Systems to cut jobs",
            "Skyhook Systems will cut 400 jobs in 2025, its new chief Ann Prewitt announced. "
            "Patrick Doyle said the city had given the company 12 million pounds in aid. "
            "Patrick Doyle criticised the chief executive of Skyhook Systems on Thursday."),
]  # fmt: skip


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder: Path = tmp_path_factory.mktemp("news") / "made"
    settings = BenchmarkSettings(twins=0, lookalikes=0)
    build_benchmark(NEWS, folder, settings=settings)
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return {one["question"]: one["answer"] for one in map(json.loads, lines)}


def test_a_headline_is_the_name_of_nothing(asked: dict[str, str]) -> None:
    assert {parse_page(one).kind for one in NEWS} == {HEADLINE}
    unquoted = [text for text in asked if '"' not in text]
    assert unquoted
    assert not [text for text in unquoted if any(one.title in text for one in NEWS)]
    name = article(6, "The Ledger", "The Mill on the Floss", "The Mill on the Floss is a novel.")
    assert parse_page(name).kind == "book"


def test_what_does_not_stand_alone_is_not_asked(asked: dict[str, str]) -> None:
    vague = ("the company", "Temperatures", "How much did", "announced", "Thursday", "mayor")
    assert not [text for text in asked for words in vague if words in text]
    assert "Outsiders" not in asked.values()


def test_mister_vale_has_a_first_name(asked: dict[str, str]) -> None:
    assert not [text for text in (*asked, *asked.values()) if "Mr. Vale" in text]
    assert "Martin Vale" in asked.values()


def test_a_last_name_with_two_bearers_stays_alone() -> None:
    text = "Russell Wilson threw. Zach Wilson was off. Wilson was close."
    assert full_names(text, NO_TERMS) == {}
    one = full_names("Russell Wilson threw.", NO_TERMS)
    assert with_full_names("Mr. Wilson was close.", one) == "Russell Wilson was close."
    assert with_full_names("Garrett Wilson was close.", one) == "Garrett Wilson was close."


def test_a_plural_that_only_opens_sentences_is_no_name() -> None:
    terms = collect_terms(NEWS)
    assert {"Temperatures", "Outsiders"} <= terms.plurals
    assert not {"Systems", "Lagos"} & terms.plurals


def test_something_happens_only_to_what_has_no_object() -> None:
    (lifted,) = open_relations("Kestrel's dividend was lifted in Oslo.")
    fact = triple(lifted.subject, lifted.relation, lifted.object, lifted.phrase)
    assert "What happened to X's dividend?" in words_of(fact, PageIndex([])).ask
    assert not list(open_relations("Riga's mayor welcomed the decision."))
    listed = triple("INC-1041", "root cause", "expired certificate", "root cause")
    assert not words_of(listed, PageIndex([])).ask


def test_a_report_is_no_quotation_and_an_association_keeps_its_name() -> None:
    reported, quoted = (
        next(one for one in open_relations(text) if one.relation == SAID)
        for text in (
            "CNBC said that Nima Lind will leave Snap soon.",
            '"It was only trained to answer," said Australian Retailers Association.',
        )
    )
    assert (reported.phrase, quoted.phrase) == ("said that", "said")
    assert quoted.subject == "Australian Retailers Association"


def test_who_or_what_a_single_word_replaced_is_not_asked() -> None:
    pages = PageIndex([])
    assert not words_of(triple("Lattice", "replaces", "BambooHR", "replaced"), pages).ask
    assert words_of(triple("Ann Holt", "replaces", "Mira Bell", "replaced"), pages).ask


def triple(subject: str, relation: str, name: str, phrase: str) -> Triple:
    return Triple(subject, relation, name, "d", "d#1", phrase=phrase)


# ------------------------------------------------------------------------ what news can be asked for


def test_two_outlets_are_asked_about_at_once(tmp_path: Path) -> None:
    news = [
        article(1, "The Ledger", "A museum opens",
                '"The paintings of Oslo deserved a far better house," said Mary Lind.'),
        article(2, "Daily Signal", "The harbour in court",
                '"There was never another bidder for Lagos at that time," said Martin Vale.'),
        article(3, "The Echo", "A quiet week",
                '"Nobody asked us about Lagos before the summer began," said Grace Holm.'),
    ]  # fmt: skip
    build_benchmark(news, tmp_path / "made", settings=BenchmarkSettings(twins=0, lookalikes=0))
    lines = (tmp_path / "made/questions.jsonl").read_text(encoding="utf-8").splitlines()
    both = [one for one in map(json.loads, lines) if one["kind"] == "comparison"]
    assert both
    for one in both:
        assert len(one["gold"]) == 2
        true = {"n2": "Martin Vale as saying", "n3": "Grace Holm as saying"}
        asked = [name for doc_id, name in true.items() if doc_id in one["gold"]]
        assert one["answer"] == ("yes" if all(name in one["question"] for name in asked) else "no")


def test_whom_a_role_belongs_to() -> None:
    former = "The board has former Skyhook chief executive Martin Vale."
    assert not [one for one in open_relations(former) if one.relation == "chief executive"]
    led = '"It was only trained to answer," said Skyhook Systems chief Martin Vale.'
    assert "Skyhook Systems" not in [
        one.subject for one in open_relations(led) if one.relation == SAID
    ]
