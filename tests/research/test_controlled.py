"""The controlled collection has the paper's counts, says what its questions ask about, and is the
same everywhere.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError
from suffice.types import Document
from suffice_research.controlled import (
    Difficulty,
    controlled_collection,
)

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


@pytest.mark.parametrize("documents", [0, -1, 28, 1.5, True, "609", None])
def test_an_impossible_size_is_an_input_error(documents):
    with pytest.raises(InputError, match="documents is"):
        controlled_collection(documents=documents)


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
