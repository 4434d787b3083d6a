"""The graph, its missing links, its clusters and the paths through it."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from suffice.errors import MissingExtraError
from suffice.retrieval.encoders import WordLlamaEncoder
from suffice.types import Document
from suffice_grade.claims import PageIndex, RuleClaims, parse_pages
from suffice_grade.knowledge_graph import (
    KnowledgeGraph,
    RuleEquivalences,
    build_graph,
    merge_equivalent_names,
    sample_paths,
    shortest_paths,
    soft_clusters,
)
from suffice_grade.stage_protocols import Claim, Equivalence, Triple
from suffice_grade.triples import RuleTriples
from tests.benchmark_village import village


def triple(
    subject: str, relation: str, object_: str, doc_id: str, *, several: bool = False
) -> Triple:
    return Triple(subject, relation, object_, doc_id, f"{doc_id}#0", several)


def village_graph() -> KnowledgeGraph:
    documents = village()
    pages = PageIndex(parse_pages(documents).values(), documents)
    claims = [claim for claims in RuleClaims(pages.by_title).claims(documents) for claim in claims]
    triples = [one for found in RuleTriples(pages).triples(claims) for one in found]
    equal = RuleEquivalences(pages).equivalences(0, triples, claims)
    return build_graph(
        merge_equivalent_names(triples, equal, {claim.claim_id: (0,) for claim in claims}), pages
    )


def test_a_king_with_and_without_his_rank_is_one() -> None:
    edge = village_graph().only("Prince Magnus of Vik")["father"]
    assert (edge.object, edge.link) == ("Harald II of Vik", "exact")


def test_a_film_about_a_city_is_not_the_city() -> None:
    film = Document(
        "f", "The Saint in New York is a 1938 crime film.", title="The Saint in New York"
    )
    pages = PageIndex(parse_pages([film]).values(), [film])
    claims = [Claim("f#0", "f", film.title, film.text, film.text)]
    raised = replace(triple("Ben", "raised in", "New York", "b"), phrase="was raised in")
    assert not RuleEquivalences(pages).equivalences(0, [raised], claims)


def test_names_equal_in_a_cluster_get_mirrored_edges_only_there() -> None:
    facts = triple("Sophia", "husband", "King Gustav III", "s")
    same = Equivalence(("Gustav III of Sweden", "King Gustav III"), always=False, cluster=3)
    inside = merge_equivalent_names([facts], [same], {"s#0": (3,)})
    outside = merge_equivalent_names([facts], [same], {"s#0": (1,)})
    assert {(one.object, one.link) for one in inside} == {
        ("King Gustav III", ""),
        ("Gustav III of Sweden", "context"),
    }
    assert outside == [facts]


GOVERNMENT = ("the Biden administration", "the U.S. government")


@pytest.mark.parametrize("names", [GOVERNMENT, GOVERNMENT[::-1]])
def test_an_equivalence_adds_the_paper_s_government_path_and_deletes_none(
    names: tuple[str, ...],
) -> None:
    biden, government = GOVERNMENT
    facts = [
        triple("Intel", "sued", biden, "a"),
        triple(government, "appointed", "Lina Khan", "b"),
        triple(biden, "announced", "tariffs", "c"),
        triple(government, "announced", "sanctions", "d"),
        triple("Oslo", "asked", government, "e"),
    ]
    clusters = {one.claim_id: (2,) for one in facts}
    same = Equivalence(names, always=False, cluster=2)
    before = {path.ends for path in shortest_paths(KnowledgeGraph(facts))}
    graph = KnowledgeGraph(merge_equivalent_names(facts, [same], clusters))
    after = {path.ends for path in shortest_paths(graph)}
    assert before == {("Intel", "tariffs"), ("Oslo", "Lina Khan"), ("Oslo", "sanctions")}
    assert after == before | {("Intel", "Lina Khan")}
    assert graph.edges(biden, "appointed")
    assert graph.edges("Oslo", "asked")[1].object == biden


def test_a_mirror_with_the_fuller_name_is_taken() -> None:
    facts = [triple("Charles", "father", "George Stewart", "c")]
    same = Equivalence(("George Stewart, 9th Seigneur", "George Stewart"), always=False, cluster=0)
    graph = KnowledgeGraph(merge_equivalent_names(facts, [same], {"c#0": (0,)}))
    assert graph.only("Charles")["father"].object == "George Stewart, 9th Seigneur"


def test_only_says_what_has_no_rival() -> None:
    graph = KnowledgeGraph(
        [
            triple("A", "birth date", "1904", "a"),
            triple("A", "birth date", "2 June 1904", "b"),
            triple("A", "spouse", "Eva", "a"),
            triple("A", "spouse", "Ida", "c"),
            triple("A", "school", "Lund", "a", several=True),
        ]
    )
    assert {relation: edge.object for relation, edge in graph.only("A").items()} == {
        "birth date": "2 June 1904"
    }


def test_paths_are_shortest_acyclic_and_one_for_a_pair() -> None:
    chain = [triple(a, "father", b, f"doc {a}") for a, b in ("AB", "BC", "CD", "DA")]
    paths = shortest_paths(KnowledgeGraph([*chain, triple("A", "sibling", "C", "doc other")]))
    ends = [path.ends for path in paths]
    assert len(ends) == len(set(ends))
    assert ("A", "C") not in ends  # one step by the other way
    assert all(len({one.subject for one in path.triples}) == len(path.triples) for path in paths)


def test_a_sample_is_even_over_chains_of_relations() -> None:
    graph = KnowledgeGraph(
        [triple(f"A{at}", "father", f"B{at}", f"a{at}") for at in range(9)]
        + [triple(f"B{at}", "birth date", f"19{at:02}", f"b{at}") for at in range(9)]
        + [triple("B0", "birth place", "Lund", "b0")]
    )
    chosen = sample_paths(shortest_paths(graph), 3)
    assert {path.triples[-1].relation for path in chosen} == {"birth date", "birth place"}
    assert chosen == sample_paths(list(reversed(shortest_paths(graph))), 3)


def test_a_sample_prefers_new_facts_to_repeated_ones() -> None:
    mayors = [triple(f"A{at}", "nationality", "Sund", f"a{at}") for at in range(20)]
    mayors += [triple("Sund", "largest city", "Lund", "sund")]
    others = [triple(f"C{at}", "nationality", f"D{at}", f"c{at}") for at in range(4)]
    others += [triple(f"D{at}", "largest city", f"E{at}", f"d{at}") for at in range(4)]
    paths = shortest_paths(KnowledgeGraph([*mayors, *others]))
    assert len({path.ends[1] for path in sample_paths(paths, 5)}) == 5
    assert len(sample_paths(paths, 12)) == 12


def test_the_page_of_the_subject_is_preferred_to_another_with_the_same_fact() -> None:
    edges = [triple("Ohio", "country", "United States", one) for one in ("ohio", "zoo", "a")]
    assert KnowledgeGraph(edges).only("Ohio")["country"].doc_id == "zoo"
    graph = KnowledgeGraph(edges, {"ohio": "Ohio", "zoo": "The zoo"})
    assert graph.only("Ohio")["country"].doc_id == "ohio"


def test_a_son_in_open_words_may_have_brothers() -> None:
    edge = replace(triple("A", "son", "B", "b"), phrase="was the son of", object_kind="person")
    assert "son" not in KnowledgeGraph([edge]).only("A")
    assert "third son" in KnowledgeGraph([replace(edge, relation="third son")]).only("A")


def test_clusters_part_films_from_kings() -> None:
    films = [
        f"The film number {at} was directed by a director and released in cinemas."
        for at in range(40)
    ]
    kings = [f"King number {at} ruled the kingdom and was the son of a queen." for at in range(40)]
    found = soft_clusters(films + kings, WordLlamaEncoder(), sizes=(2, 4))
    assert len(found) == 80
    assert not {one[0] for one in found[:40]} & {one[0] for one in found[40:]}
    assert soft_clusters(["one claim"], WordLlamaEncoder()) == [(0,)]


def test_without_scikit_learn_clustering_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.decomposition", None)
    claims = [f"Claim {at} is about a film." for at in range(20)]
    with pytest.raises(MissingExtraError) as caught:
        soft_clusters(claims, WordLlamaEncoder())
    assert "suffice[fit]" in caught.value.hint
    assert soft_clusters(claims[:3], WordLlamaEncoder()) == [(0,)] * 3
