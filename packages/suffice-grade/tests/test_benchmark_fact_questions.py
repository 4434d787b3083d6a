"""Questions in the words of the text: their grammar, their forms, what is valid, look-alikes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from suffice.retrieval import WordLlamaEncoder
from suffice.types import Document
from suffice_grade.benchmark_files import benchmark_questions, look_alikes, open_benchmark
from suffice_grade.chain_questions import Wording
from suffice_grade.claims import PageIndex, parse_pages
from suffice_grade.difficulty_matrix import build_difficulty_matrix, question_difficulty
from suffice_grade.fact_questions import (
    Facts,
    write_condition_questions,
    write_fact_comparisons,
    write_fact_intersections,
    write_single_questions,
    write_yes_no_questions,
)
from suffice_grade.knowledge_graph import build_graph, shortest_paths
from suffice_grade.lookalikes import look_alike, other_subjects
from suffice_grade.news_questions import write_news_questions
from suffice_grade.pipeline import BenchmarkSettings, Stages, build_benchmark
from suffice_grade.relation_words import words_of
from suffice_grade.stage_protocols import Claim, GeneratedQuestion, ReasoningPath, Triple
from suffice_grade.validation import RuleJudge

# (subject, relation, object, words between them, kind of the object), a document each
CATALOGUE = (
    ("billing-service", "owned by", "Team Tern", "is owned by", "organisation"),
    ("shipping-service", "owned by", "Team Plover", "is owned by", "organisation"),
    ("search-service", "owned by", "Team Tern", "is owned by", "organisation"),
    ("Team Tern", "led by", "Mira Holt", "is led by", "person"),
    ("Team Plover", "led by", "Jon Ek", "is led by", "person"),
    ("Team Tern", "based in", "Oslo", "is based in", "place"),
    ("billing-service", "default port", "8080", "has the default port:", "id"),
    ("shipping-service", "default port", "9090", "has the default port:", "id"),
    ("Kestrel 2", "released on", "3 May 2021", "was released on", "date"),
    ("Heron 4", "released on", "9 June 2022", "was released on", "date"),
    ("billing-service", "depends on", "Kestrel 2", "depends on", "thing"),
    ("shipping-service", "depends on", "Kestrel 2", "depends on", "thing"),
    ("Mira Holt", "reports to", "Ada Lund", "reports to", "person"),
)


class Catalogue:
    def __init__(self) -> None:
        self.triples = [
            Triple(s, r, o, f"d{at}", f"d{at}#0", phrase=words, object_kind=kind)
            for at, (s, r, o, words, kind) in enumerate(CATALOGUE)
        ]
        self.documents = [
            Document(f"d{at}", f"{s} {words} {o}.")
            for at, (s, _, o, words, _) in enumerate(CATALOGUE)
        ]
        self.pages = PageIndex(parse_pages(self.documents).values(), self.documents)
        self.graph = build_graph(self.triples, self.pages)
        self.paths = shortest_paths(self.graph)
        self.wording = Wording(self.pages)
        self.facts = Facts(self.graph, self.wording)

    def valid(self, made: list[GeneratedQuestion]) -> dict[str, str]:
        """Text -> answer of the valid ones."""
        judged = RuleJudge(self.documents, self.pages).judge(made)
        return {one.text: one.answer for one, it in zip(made, judged, strict=True) if it.valid}

    def why(self, text: str, triple: Triple, answer: str = "") -> str:
        path = ReasoningPath((triple,))
        made = GeneratedQuestion("q", text, answer or triple.object, "single", 1, (path,), ("d0",))
        return RuleJudge(self.documents, self.pages).judge([made])[0].why


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue()


@pytest.mark.parametrize(
    ("relation", "phrase", "value", "kind", "asks"),
    [
        ("led by", "is led by", "Mira Holt", "person", "Who leads X?"),
        ("written by", "was written by", "Mira Holt", "person", "Who wrote X?"),
        ("owned by", "is owned by", "Team Tern", "organisation", "Which team owns X?"),
        ("default port", "default port", "8080", "id", "What is the default port of X?"),
        ("released on", "was released on", "3 May 2021", "date", "When was X released?"),
        ("released in", "was released in", "2021", "date", "In which year was X released?"),
        ("updated", "updated", "3 May 2021", "date", "When was X updated?"),
        ("based in", "is based in", "Oslo", "place", "Where is X based?"),
        ("moves to", "moved to", "Oslo", "place", "Where did X move to?"),
        ("reports to", "reports to", "Ada Lund", "person", "Who does X report to?"),
        ("supports", "supports", "5 users", "amount", "How many users does X support?"),
        ("costs", "costs", "$50", "amount", "How much does X cost?"),
        ("takes", "takes", "50 minutes", "amount", "How long does X take?"),
        ("acquires", "has acquired", "Giphy Inc", "organisation", "Which company did X acquire?"),
    ],
)
def test_a_relation_is_asked_in_the_words_of_its_text(
    relation: str, phrase: str, value: str, kind: str, asks: str
) -> None:
    triple = Triple("Kestrel", relation, value, "d", "d#0", phrase=phrase, object_kind=kind)
    assert asks in words_of(triple, PageIndex([])).ask


def test_one_document_questions_have_one_hop(catalogue: Catalogue) -> None:
    made = write_single_questions(catalogue.facts, most=50)
    assert {(one.kind, one.hops, len(one.doc_ids)) for one in made} == {("single", 1, 1)}
    valid = catalogue.valid(made)
    assert "8080" in valid.values()
    assert any("port" in text for text in valid)


def test_yes_and_no_are_both_asked_and_right(catalogue: Catalogue) -> None:
    made = write_yes_no_questions(catalogue.facts, catalogue.paths, most=50)
    answers = catalogue.valid(made)
    assert set(answers.values()) == {"yes", "no"}
    for one in made:
        assert (one.paths[0].ends[1] in one.text) == (one.answer == "yes")


def test_what_differs_is_compared_and_only_that(catalogue: Catalogue) -> None:
    made = write_fact_comparisons(catalogue.facts, most=50)
    released = next(one for one in made if "released" in one.text)
    if released.kind == "temporal":
        is_first = released.text.startswith("Was Kestrel 2") == ("before" in released.text)
        assert released.answer == ("yes" if is_first else "no")
    else:
        early = any(word in released.text for word in ("first", "earlier"))
        assert released.answer == ("Kestrel 2" if early else "Heron 4")
    twice = [
        Triple("A", "founded in", "2021", "a", "a#0", phrase="was founded in", object_kind="date")
    ]
    twice += [
        Triple("B", "founded in", "2021", "b", "b#0", phrase="was founded in", object_kind="date")
    ]
    facts = Facts(build_graph(twice, catalogue.pages), catalogue.wording)
    assert write_fact_comparisons(facts, most=5) == []


def test_a_subject_that_is_described_is_not_named(catalogue: Catalogue) -> None:
    conditions = catalogue.valid(write_condition_questions(catalogue.facts, most=50))
    assert conditions["Who leads the team that is based in Oslo?"] == "Mira Holt"
    both = catalogue.valid(write_fact_intersections(catalogue.facts, most=50))
    assert both == {
        "Which service is owned by Team Tern and depends on Kestrel 2?": "billing-service"
    }


def test_news_ask_who_reported_what_and_when() -> None:
    documents = [
        Document("a", "Kestrel Corporation acquired Plover.", source="The Herald", published_at=date(2023, 5, 1)),
        Document("b", "Kestrel Corporation opened in Oslo.", source="The Post", published_at=date(2023, 6, 1)),
        Document("c", "Mira Holt said the old port will close early next spring.", source="The Post"),
    ]  # fmt: skip
    triples = [
        Triple("Kestrel Corporation", "acquires", "Plover", "a", "a#0", phrase="acquired"),
        Triple("Kestrel Corporation", "opens in", "Oslo", "b", "b#0", phrase="opened in"),
        Triple(
            "Mira Holt",
            "said",
            "the old port will close early next spring",
            "c",
            "c#0",
            phrase="said",
        ),
    ]
    pages = PageIndex(parse_pages(documents).values(), documents)
    facts = Facts(build_graph(triples, pages), Wording(pages))
    made = {one.kind: one for one in write_news_questions(facts, [], documents, most=5)}
    assert set(made) == {"single", "across", "temporal"}
    assert all(it.valid for it in RuleJudge(documents, pages).judge(list(made.values())))
    assert (made["single"].answer, made["across"].answer) == ("Mira Holt", "Kestrel Corporation")
    assert {"The Herald", "The Post"} <= {
        name for name in ("The Herald", "The Post") if name in made["across"].text
    }
    is_first = made["temporal"].text.startswith("Did The Herald") == (
        " before " in made["temporal"].text
    )
    assert made["temporal"].answer == ("yes" if is_first else "no")


@pytest.mark.parametrize(
    ("text", "subject", "why"),
    [
        ("Which team owns billing-service?", "billing-service", ""),
        ("Which team owns it?", "it", "vague subject"),
        ("Which team owns the the billing-service?", "billing-service", "not grammatical"),
        ("Which team owns billing-service", "billing-service", "not grammatical"),
        ("Which team like Team Tern owns billing-service?", "billing-service", "answer in the question"),
        ("Which team owns billing-service?", "parcel-service", "fact not in its document"),
    ],
)  # fmt: skip
def test_validation_says_why(catalogue: Catalogue, text: str, subject: str, why: str) -> None:
    triple = Triple(subject, "owned by", "Team Tern", "d0", "d0#0", phrase="is owned by")
    assert catalogue.why(text, triple) == why


def test_what_two_documents_say_is_no_question_of_one(catalogue: Catalogue) -> None:
    again = [
        *catalogue.documents,
        Document("again", "Mira: billing-service is owned by Team Tern."),
    ]
    made = write_single_questions(catalogue.facts, most=50)
    judged = RuleJudge(again, catalogue.pages).judge(made)
    why = {one.paths[0].ends: it.why for one, it in zip(made, judged, strict=True)}
    assert why["billing-service", "Team Tern"] == "in another document, too"


def test_a_look_alike_speaks_of_something_else(catalogue: Catalogue) -> None:
    made = write_single_questions(catalogue.facts, most=50)
    by_id = {one.doc_id: one for one in catalogue.documents}
    others = other_subjects(made)
    for one in made:
        found = look_alike(one, by_id, others)
        if found is not None:
            doc_id, copy = found
            subject = one.paths[0].ends[0]
            assert subject in by_id[doc_id].text
            assert subject not in copy.text
            assert one.answer in copy.text
    kestrel = next(one for one in made if one.paths[0].ends[0] == "Kestrel 2")
    copied = look_alike(kestrel, by_id, others)
    assert copied is not None
    assert copied[1].text == "Kestrel 3 was released on 3 May 2021."


class _Claims:
    def claims(self, documents: Sequence[Document]) -> list[tuple[Claim, ...]]:
        return [
            (Claim(f"{one.doc_id}#0", one.doc_id, "", one.text, one.text),) for one in documents
        ]


class _Triples:
    def __init__(self, catalogue: Catalogue) -> None:
        self.by_claim = {one.claim_id: one for one in catalogue.triples}

    def triples(self, claims: Sequence[Claim]) -> list[tuple[Triple, ...]]:
        return [(self.by_claim[one.claim_id],) for one in claims]


def test_a_benchmark_of_open_facts_grades_and_labels_them(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    stages = Stages(claims=lambda pages: _Claims(), triples=lambda pages: _Triples(catalogue))
    built = build_benchmark(
        catalogue.documents,
        tmp_path / "b",
        stages=stages,
        settings=BenchmarkSettings(lookalikes=1.0),
    )
    assert {"single", "chain", "yes_no", "condition"} <= set(built.by_kind)
    assert built.by_hops[1] >= 5
    assert built.counts["lookalikes"] > 5
    data = open_benchmark(tmp_path / "b", twins=False)
    difficulty = question_difficulty(data.questions(), data.documents(), WordLlamaEncoder())
    matrix = build_difficulty_matrix(difficulty, [hops > 1 for hops in difficulty.hops])
    assert [cell.error.value for cell in matrix.by_hops][:2] == [0.0, 1.0]
    copies = look_alikes(tmp_path / "b")
    labelled = benchmark_questions(tmp_path / "b", "bm25", 4)
    changed = [
        one for one in labelled if any(hit.doc_id.endswith("~lookalike") for hit in one.hits)
    ]
    assert changed
    assert len(changed) <= len(copies)
    for one in changed:
        assert not set(one.needed or ()) <= {hit.doc_id for hit in one.hits}
        assert {hit.doc_id for hit in one.hits} <= set(one.documents)
