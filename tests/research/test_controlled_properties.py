"""Whatever the seed, size and difficulty: ids are whole, gold resolves, and a prefix is a prefix."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from suffice_research.controlled import Difficulty, controlled_collection

chance = st.floats(0, 1)
difficulties = st.builds(
    Difficulty,
    story_sizes=st.lists(st.integers(5, 20), min_size=1, max_size=4).map(tuple),
    outlets=st.integers(3, 9),
    recalled=chance,
    signed=chance,
    described=chance,
    exact=chance,
    veiled=chance,
)
seeds = st.integers(-(2**63), 2**63)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, difficulty=difficulties, more=st.integers(0, 150))
def test_every_question_is_whole_and_its_gold_is_held(seed, difficulty, more):
    collection = controlled_collection(seed=seed, documents=80 + more, difficulty=difficulty)
    by_id = {document.doc_id: document for document in collection.documents()}
    assert len(by_id) == 80 + more
    texts = set()
    for example in collection.questions():
        gold = example.gold
        texts.add(example.question.text)
        assert gold.doc_ids <= by_id.keys()
        assert gold.hops == len(gold.doc_ids)
        assert (gold.kind == "null") == (not gold.doc_ids)
        assert example.question.text.endswith("?")
        assert "{" not in example.question.text
        names = [set(by_id[doc_id].entities) for doc_id in gold.doc_ids]
        assert not names or set.intersection(*names)
    assert len(texts) == sum(1 for _ in collection.questions())


@settings(max_examples=25, deadline=None)
@given(seed=seeds, difficulty=difficulties, size=st.integers(80, 160), more=st.integers(0, 200))
def test_a_smaller_collection_is_the_beginning_of_a_larger_one(seed, difficulty, size, more):
    small = list(
        controlled_collection(seed=seed, documents=size, difficulty=difficulty).documents()
    )
    large = list(
        controlled_collection(seed=seed, documents=size + more, difficulty=difficulty).documents()
    )
    assert large[:size] == small


@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_names_are_never_shared_by_two_newsmakers(seed):
    documents = list(controlled_collection(seed=seed, documents=290).documents())
    names = {document.entities[0] for document in documents}
    people = {document.entities[1] for document in documents}
    assert len(names) == len(people) == 30
    assert not names & people
