"""Lists for the gate: nothing but the texts says whether one is complete, and no part leaks."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from suffice.datasets.gold import Gold
from suffice.errors import InputError
from suffice.evaluation.searching import RetrievedQuestion
from suffice.types import Document, Evidence, Hit, Question
from suffice_research.controlled import controlled_collection
from suffice_research.training import cases, gate_data, sources
from suffice_research.training.cases import (
    EVERYDAY,
    LEARN,
    PARTS,
    STACK,
    TEST,
    UNSEEN,
    Case,
    Passage,
    Span,
)
from suffice_research.training.gate_data import (
    DRAWN_HITS,
    GateData,
    drawn_list,
    join_hits,
    one_sentence_each,
    vary_hits,
)
from suffice_research.training.sources import ProgressLog

NEEDED = tuple(Passage(f"Mill {at}", f"The mill number {at} has a wheel.") for at in range(2))
LOOK_ALIKES = tuple(Passage(f"Barn {at}", f"The barn number {at} has a door.") for at in range(20))
QUESTION = "Which of the two mills has the larger wheel?"


def case(needed: int = 2) -> Case:
    return Case("made", "mills", QUESTION, NEEDED[:needed], LOOK_ALIKES, part=STACK)


def found(needed: int = 2) -> RetrievedQuestion:
    """What a retriever finds: one mill and a barn, with scores and titles."""
    documents = {
        f"p{at}": Document(f"p{at}", title=one.title, text=one.text, source="The Miller")
        for at, one in enumerate((NEEDED[0], LOOK_ALIKES[3]))
    }
    hits = (Hit("p0", 7.0), Hit("p1", 5.0))
    question = Question("q0", QUESTION)
    gold = Gold("q0", frozenset(["p0", "p9"][:needed]))
    return RetrievedQuestion(question, gold, Evidence(question, hits, documents), deeper=hits)


def draw_many(needed: int, times: int = 2000) -> list[RetrievedQuestion]:
    draw = np.random.default_rng(3)
    return [drawn_list(case(needed), found(needed), draw) for _ in range(times)]


# ---- single sentences


def test_of_a_needed_passage_the_sentence_with_the_answer_stays() -> None:
    mill = Passage("Mill", "The mill is old. Its wheel is four metres wide. The wheel is larger.")
    barn = Passage("Barn", "The barn is red. A larger wheel is in it.")
    start = mill.text.index("four")
    marked = Case(
        "made", "mills", "How large is the wheel of the mill?", (mill,), (barn,),
        answers=(Span(mill, start, start + len("four metres")),), part=STACK,
    )  # fmt: skip
    whole = found(1)
    documents = {
        "p0": Document("p0", title=mill.title, text=mill.text),
        "p1": Document("p1", title=barn.title, text=barn.text),
    }
    short = one_sentence_each(
        marked, replace(whole, evidence=replace(whole.evidence, documents=documents))
    )
    assert short is not None
    assert short[0].needed == (Passage("", "Its wheel is four metres wide."),)
    assert short[0].distractors == (Passage("", "A larger wheel is in it."),)
    assert [hit.doc_id for hit in short[1].evidence.hits] == ["p1"]  # never a needed one
    assert short[1].evidence.documents["p1"].text == "A larger wheel is in it."
    assert not short[1].evidence.documents["p1"].title


# ---- drawn lists


@pytest.mark.parametrize("needed", [1, 2])
def test_half_of_the_drawn_lists_are_complete_whatever_their_size(needed: int) -> None:
    drawn = draw_many(needed)
    assert np.mean([one.complete for one in drawn]) == pytest.approx(0.5, abs=0.04)
    sizes = {
        label: Counter(len(one.evidence.hits) for one in drawn if one.complete is label)
        for label in (True, False)
    }
    assert set(sizes[True]) == set(sizes[False]) == set(range(needed, DRAWN_HITS + 1))
    for size in sizes[True]:  # about 200 lists each: three standard errors are 0.11
        both = sizes[True][size] + sizes[False][size]
        assert sizes[True][size] / both == pytest.approx(0.5, abs=0.12)


def test_a_drawn_list_is_labelled_by_what_it_holds() -> None:
    for one in draw_many(2, times=200):
        titles = [one.evidence.documents[hit.doc_id].title for hit in one.evidence.hits]
        assert len(set(titles)) == len(titles) == len({hit.doc_id for hit in one.evidence.hits})
        assert one.complete == {"Mill 0", "Mill 1"}.issubset(titles)
        assert set(one.gold_titles.values()) == {"Mill 0", "Mill 1"}
        assert set(one.gold_titles) == one.gold.doc_ids
        assert {hit.score for hit in one.evidence.hits} <= {None}
        assert one.deeper == one.evidence.hits


def test_the_place_in_a_drawn_list_says_nothing() -> None:
    places = [
        at / (len(one.evidence.hits) - 1)
        for one in draw_many(2)
        if len(one.evidence.hits) > 1
        for at, hit in enumerate(one.evidence.hits)
        if hit.doc_id in one.gold.doc_ids
    ]
    assert np.mean(places) == pytest.approx(0.5, abs=0.03)


# ---- as stores hand them over


def test_hits_are_left_as_they_are_or_lose_scores_or_titles() -> None:
    whole = found()
    assert vary_hits(whole, bytes([1, 1, 0])) == whole
    plain = vary_hits(whole, bytes([0, 1, 0]))
    assert [hit.score for hit in (*plain.evidence.hits, *plain.deeper)] == [None] * 4
    assert plain.evidence.documents == whole.evidence.documents
    for key, text in (
        (bytes([1, 4, 0]), "Mill 0"),  # the title is put into the text
        (bytes([1, 4, 1]), "The mill number 0 has a wheel."),  # or lost
    ):
        bare = vary_hits(whole, key)
        assert {one.title for one in bare.evidence.documents.values()} == {""}
        assert bare.evidence.documents["p0"].text.startswith(text)
        assert bare.evidence.documents["p0"].text.endswith("has a wheel.")
        assert bare.evidence.hits == whole.evidence.hits
        assert (bare.gold, bare.complete) == (whole.gold, whole.complete)
    both = vary_hits(whole, bytes([8, 8, 2]))
    assert both.evidence.hits[0].score is None
    assert both.evidence.documents["p1"].title == ""


# ---- the parts


@pytest.fixture
def everyday(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GateData]:
    """Some of our own cases, and the controlled collection: what needs no data folder."""
    folder = tmp_path_factory.mktemp("everyday")
    for name in ("home_texts", "commerce"):  # the first is of a domain that nothing learns from
        shutil.copy(EVERYDAY / f"{name}.jsonl", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "SOURCES", {})
        patch.setattr(gate_data, "EVERYDAY", folder)
        small = partial(controlled_collection, documents=80)
        patch.setattr(sources, "controlled_collection", small)
        yield GateData(folder, only=("everyday", "controlled"), say=ProgressLog())


def texts(cases: list[RetrievedQuestion]) -> set[str]:
    return {one.question.text for one in cases}


def test_no_question_is_in_two_parts(everyday: GateData) -> None:
    of_part = {
        part: texts(everyday.judged("everyday", (part,), questions=10_000)) for part in PARTS
    }
    assert all(of_part.values())
    every = [text for part in of_part.values() for text in part]
    assert len(every) == len(set(every))
    learned = everyday.training("everyday", (STACK,), questions=30, lists=1)
    assert texts(learned) <= of_part[STACK]
    unseen = [kinds for _, kinds in everyday.unseen(questions=20)]
    assert unseen
    for kinds in unseen:
        assert texts(kinds[""]) == texts(kinds["drawn"]) <= of_part[UNSEEN]
        assert texts(kinds["single sentences"]) <= of_part[UNSEEN]


def test_a_set_without_parts_is_judged_on_questions_that_it_did_not_give(
    everyday: GateData,
) -> None:
    learned = texts(everyday.training("controlled", (STACK,), questions=10_000, lists=1))
    judged = texts(everyday.judged("controlled", (TEST,), questions=10_000))
    assert learned
    assert judged
    assert not learned & judged
    both = texts(everyday.judged("controlled", (STACK, TEST), questions=10_000))
    assert both == learned | judged
    fitted = texts(everyday.judged("controlled", (LEARN,), questions=10_000))  # by the fast gate
    assert fitted
    assert not fitted & both


def test_each_question_gives_retrieved_lists_and_as_many_drawn_ones(everyday: GateData) -> None:
    made = everyday.training("everyday", (STACK,), questions=5, lists=2)
    assert len(texts(made)) == 5
    assert set(Counter(one.question.text for one in made).values()) == {4}
    assert all(len(one.evidence.hits) <= 10 for one in made)
    again = everyday.training("everyday", (STACK,), questions=5, lists=2)
    assert again == made
    assert everyday.training("everyday", (STACK,), questions=5, lists=2, seed=1) != made


def test_an_unknown_set_and_an_absent_folder_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="does not exist") as caught:
        GateData(tmp_path / "nowhere", say=ProgressLog())
    assert "--data" in caught.value.hint
    monkeypatch.setattr(cases, "SOURCES", {})
    with pytest.raises(InputError, match="no data set is named 'musik'") as caught:
        GateData(tmp_path, only=("musik",), say=ProgressLog())
    assert "everyday" in caught.value.hint


def test_joined_hits_hold_what_they_held_in_fewer_chunks() -> None:
    whole = found()
    whole = replace(whole, gold=replace(whole.gold, doc_ids=frozenset(["p0", "p1"])))
    joined = join_hits(whole)
    (chunk,) = joined.hits
    first, second = (f"{one.title}\n{one.text}" for one in (NEEDED[0], LOOK_ALIKES[3]))
    assert (chunk["title"], chunk["text"], chunk["score"]) == ("", f"{first} {second}", 7.0)
    assert joined.complete
    assert joined.gold.doc_ids == {chunk["doc_id"]}
    gap = join_hits(found())  # p9 was not found, and is not in the chunk
    assert not gap.complete
    assert gap.gold.doc_ids == {chunk["doc_id"], "p9"}
    empty = replace(whole, evidence=replace(whole.evidence, hits=()), deeper=())
    assert join_hits(empty) == empty
