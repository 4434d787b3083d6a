"""The controlled collection has the paper's counts, says what its questions ask about, and is the
same everywhere.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tracemalloc
from collections import Counter
from datetime import date
from itertools import islice
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from suffice.datasets.gold import GoldQuestion, split
from suffice.errors import InputError
from suffice.text import date_mentions
from suffice.types import Document
from suffice_research.controlled import (
    PAPER_DOCUMENTS,
    Difficulty,
    Newsroom,
    Report,
    _stem,
    controlled_collection,
)
from suffice_research.controlled_words import CATEGORIES, SECTORS, SOURCES

DIGEST = "81a262e5d473f4f937547fdac0f40a322fe251664d73dfa1cae3fe5ff82db778"


def digest(**options: Any) -> str:
    collection = controlled_collection(**options)
    total = hashlib.sha256()
    for document in collection.documents():
        total.update(repr(document).encode())
    for example in collection.questions():
        gold = example.gold
        total.update(
            repr(
                (example.question, sorted(gold.doc_ids), gold.answer, gold.kind, gold.hops)
            ).encode()
        )
    return total.hexdigest()


@pytest.fixture(scope="module")
def documents() -> dict[str, Document]:
    return {document.doc_id: document for document in controlled_collection().documents()}


@pytest.fixture(scope="module")
def examples() -> list[GoldQuestion]:
    return list(controlled_collection().questions())


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    newsroom = Newsroom(42, Difficulty())
    beats = PAPER_DOCUMENTS // newsroom.beat_size
    return {
        report.doc_id: report
        for beat in range(beats)
        for story in newsroom.stories(beat)
        for report in story
    }


def named_outlets(text: str) -> set[str]:
    """The outlets that a text names, with or without the marks inside their names."""
    plain = _without_marks(text)
    return {source for source in _outlets() if _without_marks(source).removeprefix("the ") in plain}


def _outlets() -> set[str]:
    return {source for sources in SOURCES.values() for source in sources}


def _without_marks(text: str) -> str:
    return " ".join(re.sub(r"[|&.,?-]", " ", text).casefold().split())


def named_dates(text: str) -> list[tuple[date, date]]:
    return [(mention.first, mention.last) for mention in date_mentions(text)]


# --------------------------------------------------------------------------------------- the counts


def test_table_1_of_the_paper_holds_exactly(documents, examples):
    hops = Counter(example.gold.hops for example in examples if example.gold.doc_ids)
    assert len(examples) == 2556
    assert len(documents) == 609
    assert hops == {2: 1196, 3: 712, 4: 266}
    assert round(sum(size * count for size, count in hops.items()) / sum(hops.values()), 3) == 2.572
    assert Counter(example.gold.kind for example in examples) == {
        "comparison": 825,
        "inference": 911,
        "temporal": 438,
        "null": 382,
    }
    assert len({document.source for document in documents.values()}) == 23
    assert len({document.category for document in documents.values()}) == 5


def test_the_test_part_has_the_sizes_of_table_5(examples):
    test = Counter(example.gold.kind for example in split(examples).test)
    assert test == {"comparison": 124, "inference": 137, "null": 57, "temporal": 66}


def test_ids_count_up_from_one(documents, examples):
    assert list(documents) == [f"doc-{number:04d}" for number in range(1, 610)]
    assert [example.question.question_id for example in examples] == [
        f"q-{number:04d}" for number in range(1, 2557)
    ]
    assert all(example.gold.question_id == example.question.question_id for example in examples)


def test_plain_tfidf_comes_out_near_the_papers_row(documents, examples):
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_df=0.92)
    texts = vectorizer.fit_transform(
        [f"{document.title}\n{document.text}" for document in documents.values()]
    )
    answerable = [example for example in examples if example.gold.doc_ids]
    scores = (
        vectorizer.transform([example.question.text for example in answerable]) @ texts.T
    ).toarray()
    ids = np.array(list(documents))
    found = [set(ids[row[:4]]) for row in np.argsort(-scores, axis=1, kind="stable")]
    shares = [
        len(example.gold.doc_ids & top) / example.gold.hops
        for example, top in zip(answerable, found, strict=True)
    ]
    assert np.mean(shares) == pytest.approx(0.417, abs=0.04)
    assert np.mean([share == 1 for share in shares]) == pytest.approx(0.210, abs=0.04)


# ------------------------------------------------------------------------------------- the articles


def test_every_article_states_its_fact_in_100_to_250_words(documents, reports):
    assert documents.keys() == reports.keys()
    for doc_id, report in reports.items():
        document = documents[doc_id]
        assert report.fact in document.text
        assert report.newsmaker.name in document.text
        assert report.place in document.text
        assert 100 <= len(document.text.split()) <= 250
        assert "{" not in document.text + document.title
        assert (document.source, document.published_at) == (report.outlet, report.day)
        assert report.newsmaker.name in document.entities


def test_every_article_has_neighbours_that_look_right(reports):
    for report in reports.values():
        same_newsmaker = [
            other
            for other in reports.values()
            if other.newsmaker == report.newsmaker and other is not report
        ]
        assert any(
            other.outlet != report.outlet and other.day != report.day for other in same_newsmaker
        )
    twins = Counter(
        (report.outlet, report.aspect.noun, report.newsmaker.sector.label)
        for report in reports.values()
    )
    assert (
        sum(count > 1 for count in twins.values()) > 30
    )  # the same outlet and topic, another newsmaker of the trade


def test_an_outlet_takes_up_a_topic_of_a_newsmaker_once_and_no_two_reports_share_a_day(reports):
    assert (
        max(
            Counter(
                (one.newsmaker.name, one.outlet, one.aspect.noun) for one in reports.values()
            ).values()
        )
        == 1
    )
    assert max(Counter((one.newsmaker.name, one.day) for one in reports.values()).values()) == 1


def test_veiled_words_never_repeat_the_words_of_the_fact():
    for category in CATEGORIES.values():
        for aspect in category.aspects:
            veiled = set(f"{aspect.veiled_good} {aspect.veiled_bad}".split())
            assert not set(aspect.noun.split()) & veiled, aspect.noun
    for sectors in SECTORS.values():
        for sector in sectors:
            assert not set(f"{sector.label} {sector.kind}".split()) & set(sector.veiled.split()), (
                sector.label
            )


# ------------------------------------------------------------------------------------ the questions


def test_paths_share_an_entity_and_resolve_to_documents(documents, examples):
    for example in examples:
        carried = [set(documents[doc_id].entities) for doc_id in example.gold.doc_ids]
        assert len(carried) == example.gold.hops
        if carried:
            assert set.intersection(*carried)


def test_no_question_is_asked_twice(examples):
    assert len({example.question.text for example in examples}) == len(examples)


def test_comparison_and_temporal_questions_name_the_newsmaker_and_point_at_every_gold_article(
    examples, reports
):
    for example in examples:
        if example.gold.kind not in ("comparison", "temporal"):
            continue
        text = example.question.text
        for doc_id in example.gold.doc_ids:
            report = reports[doc_id]
            assert report.newsmaker.name in text
            assert report.outlet in named_outlets(text), text
            described = f"{report.aspect.noun} in {report.place}" in text
            dated = any(first <= report.day <= last for first, last in named_dates(text))
            assert described or dated, text


def test_what_a_question_points_at_is_one_article_only(examples, reports):
    """An outlet and a month, or an outlet and a topic, never fit a second article of the newsmaker."""
    pointer = re.compile(
        r"the ([^,?]+?) story of ((?:September|October|November|December)(?: \d+,)? 2023)"
    )
    for example in examples:
        if example.gold.kind not in ("comparison", "temporal"):
            continue
        maker = reports[min(example.gold.doc_ids)].newsmaker
        for outlet, when in pointer.findall(example.question.text):
            outlet = (
                outlet.split(" and the ")[-1]
                .split(" in the ")[-1]
                .split(" as the ")[-1]
                .split(" after the ")[-1]
            )
            (first, last), *_ = named_dates(when)
            fitting = [
                one.doc_id
                for one in reports.values()
                if one.newsmaker == maker
                and one.outlet in named_outlets(outlet)
                and first <= one.day <= last
            ]
            assert len(fitting) == 1, (example.question.text, outlet, when)
            assert fitting[0] in example.gold.doc_ids


def test_inference_questions_name_nothing_and_fit_one_newsmaker_only(documents, examples, reports):
    entities = {entity for document in documents.values() for entity in document.entities}
    facts: dict[str, set[tuple[str, bool]]] = {}
    for report in reports.values():
        facts.setdefault(report.newsmaker.name, set()).add((report.aspect.noun, report.good))
    trade = {report.newsmaker.name: report.newsmaker.sector for report in reports.values()}
    for example in examples:
        if example.gold.kind != "inference":
            continue
        text = example.question.text
        assert not named_outlets(text)
        assert not named_dates(text)
        assert not any(entity in text for entity in entities)
        path = [reports[doc_id] for doc_id in example.gold.doc_ids]
        clues = {(report.aspect.noun, report.good) for report in path}
        assert len(clues) == example.gold.hops
        fitting = [
            name
            for name, documents_with_it in facts.items()
            if clues <= documents_with_it and trade[name] == path[0].newsmaker.sector
        ]
        assert fitting == [example.gold.answer]


def test_null_questions_use_familiar_words_and_no_document_carries_them_together(
    documents, examples
):
    names = {document.entities[0] for document in documents.values()}
    for example in examples:
        if example.gold.kind != "null":
            continue
        text = example.question.text
        (name,) = [name for name in names if name in text]
        outlets = named_outlets(text)
        assert len(outlets) == 2
        assert outlets <= {document.source for document in documents.values()}
        assert not any(
            name in document.entities and document.source in outlets
            for document in documents.values()
        )
        assert example.gold.answer == "Insufficient information."


def test_answers_follow_from_the_gold_articles(examples, reports):
    for example in examples:
        if example.gold.kind not in ("comparison", "temporal"):
            continue
        path = [reports[doc_id] for doc_id in example.gold.doc_ids]
        text, answer = example.question.text, example.gold.answer
        agree = len({report.good for report in path}) == 1
        if "same picture" in text or "same note" in text:
            assert answer == ("yes" if agree else "no")
        elif "at odds" in text or "outlook" in text:
            assert answer == ("no" if agree else "yes")
        elif "are going" in text:
            well = "going well" in text
            assert answer == ("yes" if all(report.good == well for report in path) else "no")
        else:
            assert "before or after" in text
            first, second = sorted(
                path, key=lambda report: (report.day, report.day) in named_dates(text)
            )
            assert answer == ("before" if first.day < second.day else "after")


def test_people_leave_out_the_marks_in_outlets_names_about_half_the_time(examples):
    texts = " ".join(example.question.text for example in examples)
    for written, plain in (
        ("Globe | Markets", "Globe Markets"),
        ("St. Alban's Post", "St Alban's Post"),
    ):
        assert texts.count(written) > 10
        assert texts.count(plain) > 10


# --------------------------------------------------------------------------- seeds, sizes, mistakes


def test_the_default_collection_has_these_bytes():
    assert digest() == DIGEST


def test_another_process_with_another_hash_seed_makes_the_same_bytes():
    code = """if True:
        import hashlib
        from suffice_research.controlled import controlled_collection
        part = controlled_collection(seed=7, documents=100)
        held = [repr(one) for one in part.documents()] + [repr(one.question) for one in part.questions()]
        print(hashlib.sha256("".join(held).encode()).hexdigest())
    """
    printed = set()
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        printed.add(run.stdout)
    assert len(printed) == 1


def test_another_seed_makes_another_collection():
    assert digest(documents=60, seed=1) != digest(documents=60, seed=2)


def test_both_parts_can_be_read_again():
    collection = controlled_collection(documents=60)
    assert list(collection.documents()) == list(collection.documents())
    assert list(collection.questions()) == list(collection.questions())
    assert collection.bad.count == 0


def test_a_document_does_not_depend_on_how_many_follow(documents):
    assert list(islice(controlled_collection(documents=10**12).documents(), 609)) == list(
        documents.values()
    )


def test_documents_stream_in_bounded_memory():
    tracemalloc.start()
    count = sum(1 for _ in controlled_collection(documents=2_000).documents())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 2_000
    assert peak < 2_000_000


def test_a_large_collection_spreads_the_same_number_of_questions_over_all_its_documents():
    examples = list(controlled_collection(documents=60_900).questions())
    places = [
        int(doc_id.removeprefix("doc-")) for example in examples for doc_id in example.gold.doc_ids
    ]
    assert len(examples) == 2556
    assert max(places) <= 60_900
    assert min(np.histogram(places, bins=10, range=(1, 60_900))[0]) > 300


def test_a_collection_that_ends_inside_a_beat_asks_only_about_what_it_holds():
    collection = controlled_collection(documents=100)
    doc_ids = {document.doc_id for document in collection.documents()}
    assert len(doc_ids) == 100
    examples = list(collection.questions())
    assert all(example.gold.doc_ids <= doc_ids for example in examples)
    assert len(examples) == pytest.approx(2556 * 100 / 609, abs=10)


def test_no_two_numbers_share_a_name():
    assert len({_stem(42, number) for number in range(300_000)}) == 300_000


@pytest.mark.parametrize("documents", [0, -1, 28, 1.5, True, "609", None])
def test_an_impossible_size_is_an_input_error(documents):
    with pytest.raises(InputError, match="documents is"):
        controlled_collection(documents=documents)


@pytest.mark.parametrize("seed", [1.5, "x", None, True])
def test_a_seed_that_is_no_whole_number_is_an_input_error(seed):
    with pytest.raises(InputError, match="seed is"):
        controlled_collection(seed=seed)


@pytest.mark.parametrize(
    "wrong",
    [
        {"story_sizes": ()},
        {"story_sizes": (3, 9)},
        {"story_sizes": (31,)},
        {"outlets": 1},
        {"outlets": 10},
        {"veiled": 1.1},
    ]
    + [{name: float("nan")} for name in ("recalled", "signed", "described", "exact", "veiled")],
)
def test_an_impossible_difficulty_is_an_input_error(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        Difficulty(**wrong)


def test_a_collection_too_small_for_its_questions_says_so():
    tiny = controlled_collection(
        seed=23, documents=4, difficulty=Difficulty(story_sizes=(4,), outlets=2)
    )
    with pytest.raises(InputError, match="too few different inference questions of 3 hops"):
        list(tiny.questions())
