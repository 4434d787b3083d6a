"""Made questions: how they are worded, what they need, and which of them may stay."""

from __future__ import annotations

import pytest

from suffice.types import Document
from suffice_grade.bridge_questions import write_bridge_questions, write_intersection_questions
from suffice_grade.chain_questions import RuleQuestions, Wording
from suffice_grade.claims import PageIndex, RuleClaims, parse_pages
from suffice_grade.comparison_questions import write_comparison_questions
from suffice_grade.knowledge_graph import (
    KnowledgeGraph,
    RuleEquivalences,
    build_graph,
    merge_equivalent_names,
    shortest_paths,
)
from suffice_grade.stage_protocols import (
    Claim,
    GeneratedQuestion,
    Triple,
)
from suffice_grade.triples import RuleTriples
from suffice_grade.validation import RuleJudge
from tests.benchmark_village import village


class Village:
    def __init__(self) -> None:
        self.documents = village()
        self.pages = PageIndex(parse_pages(self.documents).values(), self.documents)
        self.claims: list[Claim] = [
            one for found in RuleClaims(self.pages.by_title).claims(self.documents) for one in found
        ]
        triples = [one for found in RuleTriples(self.pages).triples(self.claims) for one in found]
        equal = RuleEquivalences(self.pages).equivalences(0, triples, self.claims)
        self.graph: KnowledgeGraph = build_graph(
            merge_equivalent_names(triples, equal, {claim.claim_id: (0,) for claim in self.claims}),
            self.pages,
        )
        self.paths = shortest_paths(self.graph)
        self.wording = Wording(self.pages)

    def chain(self, start: str, end: str) -> GeneratedQuestion:
        path = next(path for path in self.paths if path.ends == (start, end))
        (made,) = RuleQuestions(self.wording).write([path], [])
        assert made is not None
        return made

    def valid(self, made: list[GeneratedQuestion]) -> list[GeneratedQuestion]:
        judged = RuleJudge(self.documents, self.pages).judge(made)
        return [one for one, verdict in zip(made, judged, strict=True) if verdict.valid]

    def why(self, made: GeneratedQuestion, documents: list[Document] | None = None) -> str:
        return RuleJudge(documents or self.documents, self.pages).judge([made])[0].why


@pytest.fixture(scope="module")
def place() -> Village:
    return Village()


def test_a_chain_becomes_one_sentence_that_asks_for_its_end(place: Village) -> None:
    made = place.chain("The Mill", "Clara Berg")
    assert made.text in (
        "Who is the mother of the director of film The Mill?",
        "Who is the mother of the person who directed film The Mill?",
    )
    assert (made.answer, made.hops, made.doc_ids) == ("Clara Berg", 2, ("d0", "d3"))


def test_five_facts_need_five_documents(place: Village) -> None:
    made = place.chain("The Mill", "1820")
    assert (made.hops, len(set(made.doc_ids))) == (5, 5)
    assert made.text.count("father") == 3
    assert place.why(made) == ""


def test_comparisons_say_who_is_first_and_need_both(place: Village) -> None:
    made = write_comparison_questions(place.graph, place.paths, place.wording, per_form=50)
    films = next(
        one for one in made if one.kind == "comparison" and one.text.startswith("Which film")
    )
    years = {"The Mill": 1951, "The Ferry": 1938, "Night Train": 1960}
    compared = sorted((year, name) for name, year in years.items() if name in films.text)
    early = any(word in films.text for word in ("first", "earlier"))
    assert films.answer == compared[0 if early else -1][1]
    assert len(films.doc_ids) == len(compared) == 2
    assert {one.hops for one in made if one.kind == "bridge_comparison"} >= {3, 4}
    assert all(len(one.doc_ids) == one.hops for one in made)


def test_a_bridge_leaves_a_page_out_and_asks_a_fact_of_it(place: Village) -> None:
    made = write_bridge_questions(place.claims, place.graph, place.paths, place.wording, most=50)
    left_out = [
        one
        for one in made
        if one.text.startswith("The Ferry is a 1938 Swedish comedy film directed by a ")
    ]
    assert left_out
    assert "Erik Strand" not in left_out[0].text
    assert left_out[0].doc_ids == ("d1", "d4")


def test_an_intersection_needs_the_cast_and_the_birth() -> None:
    graph = KnowledgeGraph(
        [
            Triple("The Mill", "cast", "Karl Lund", "d0", "d0#0", several=True),
            Triple("The Mill", "cast", "Eva Dahl", "d0", "d0#0", several=True),
            Triple("Karl Lund", "birth date", "9 August 1919", "d8", "d8#0"),
        ]
    )
    (made,) = write_intersection_questions(graph, Wording(Village().pages), most=5)
    assert (made.answer, made.doc_ids) == ("Karl Lund", ("d0", "d8"))
    assert "born in 1919" in made.text


def test_a_document_that_tells_it_all_makes_a_question_invalid(place: Village) -> None:
    made = place.chain("The Mill", "Clara Berg")
    assert place.why(made) == ""
    gossip = Document("g", "The Mill was directed by the daughter of Clara Berg.", title="Gossip")
    assert place.why(made, [*place.documents, gossip]) == "answerable from one document"


def test_a_document_that_names_a_later_step_makes_a_detour(place: Village) -> None:
    made = place.chain("The Mill", "Prince Magnus of Vik")
    documents = list(place.documents)
    documents[3] = Document(
        "d3", documents[3].text + " Her grandfather was Prince Magnus of Vik.", title="Anna Holm"
    )
    assert place.why(made, documents) == "a detour past a document"
