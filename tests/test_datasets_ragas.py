"""ragas rows: hits, gold and the documents that a row shows."""

from __future__ import annotations

import pytest
from tests.dataset_files import lines

from suffice import datasets
from suffice.errors import InputError
from suffice.types import Hit


def row(**changes: object) -> dict[str, object]:
    known = {
        "user_input": "Who taught Ada?",
        "retrieved_contexts": ["De Morgan taught.", "Byron rhymed."],
        "retrieved_context_ids": ["d1", 2],
        "reference_context_ids": ["d1", "d9"],
        "reference": "De Morgan",
    }
    return {**known, **changes}


def test_a_ragas_row_gives_hits_gold_and_the_documents_it_shows(tmp_path):
    dataset = datasets.load(
        "ragas",
        lines(
            tmp_path / "rows.jsonl", row(), row(reference_contexts=["De Morgan taught.", "Frend."])
        ),
    )
    first, _ = dataset.questions()
    assert first.hits == (Hit("d1"), Hit("2"))
    assert (first.gold.doc_ids, first.gold.answer, first.gold.hops) == (
        frozenset({"d1", "d9"}),
        "De Morgan",
        2,
    )
    assert {one.doc_id: one.text for one in dataset.documents()} == {
        "d1": "De Morgan taught.",
        "2": "Byron rhymed.",
        "d9": "Frend.",
    }
    assert datasets.describe(dataset).unresolved == ()


def test_ragas_texts_without_ids_are_told_apart_by_what_they_say(tmp_path):
    bare = row(
        retrieved_context_ids=None, reference_context_ids=None, reference_contexts=["Byron rhymed."]
    )
    dataset = datasets.load("ragas", lines(tmp_path / "rows.jsonl", bare))
    (question,) = dataset.questions()
    assert {hit.doc_id for hit in question.hits or ()} > question.gold.doc_ids
    assert len(list(dataset.documents())) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"user_input": [{"content": "hi", "type": "human"}]}, "field 'user_input'"),
        ({"retrieved_context_ids": ["d1"]}, "expected one id for each of the 2 retrieved_contexts"),
        (
            {"reference_context_ids": None},
            "field 'reference_context_ids' is None, expected a list of ids",
        ),
        ({"reference_context_ids": "d1"}, "expected a list of texts"),
        ({"retrieved_contexts": [None, "b"]}, "field 'retrieved_contexts'"),
    ],
)
def test_a_bad_ragas_row_is_an_error(tmp_path, change, message):
    path = lines(tmp_path / "rows.jsonl", row(**change))
    with pytest.raises(InputError, match=message):
        list(datasets.load("ragas", path).questions())
    dataset = datasets.load("ragas", path, skip_bad=True)
    assert list(dataset.documents()) == []
