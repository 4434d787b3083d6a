"""MultiHop-RAG: evidence, null queries, articles, and bad records."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from tests.dataset_files import written

from suffice import datasets
from suffice.errors import InputError


def query(**changes: Any) -> dict[str, Any]:
    evidence = [
        {"title": "A", "url": "u", "fact": "f"},
        {"title": "B", "url": None, "fact": "g"},
        {"title": "A", "fact": "h"},
    ]
    return {
        "query": "Who?",
        "answer": "She",
        "question_type": "inference_query",
        "evidence_list": evidence,
        **changes,
    }


def article(**changes: Any) -> dict[str, Any]:
    known = {
        "title": "A",
        "author": "X",
        "source": "The Verge",
        "category": "technology",
        "url": "u",
        "body": "Text.",
    }
    return {**known, "published_at": "2023-09-28T23:30:00+00:00", **changes}


def test_an_article_keeps_its_day_and_what_we_do_not_read(tmp_path):
    path = written(
        tmp_path,
        "corpus.json",
        [article(), article(title="B", source=None, published_at=None, author=None)],
    )
    first, second = datasets.load("multihop_rag", tmp_path).documents()
    assert (first.doc_id, first.source, first.category, first.published_at) == (
        "A",
        "The Verge",
        "technology",
        date(2023, 9, 28),
    )
    assert first.extra == {"author": "X", "url": "u"}
    assert (second.source, second.published_at, second.extra) == (None, None, {"url": "u"})
    assert path.exists()


def test_evidence_is_gold_once_an_article_and_a_null_query_has_none(tmp_path):
    path = written(
        tmp_path, "MultiHopRAG.json", [query(), query(question_type="null_query", evidence_list=[])]
    )
    first, null = datasets.load("multihop_rag", path).questions()
    assert (first.gold.doc_ids, first.gold.hops, first.gold.kind) == (
        frozenset({"A", "B"}),
        2,
        "inference",
    )
    assert (null.gold.doc_ids, null.gold.hops, null.gold.kind) == (frozenset(), 0, "null")
    assert [first.gold.question_id, null.gold.question_id] == ["q0", "q1"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question_type": "hard"}, "field 'question_type' is 'hard', expected inference_query or"),
        (
            {"evidence_list": []},
            "field 'evidence_list' is .*expected at least one article for a inference_query",
        ),
        ({"question_type": "null_query"}, "expected none for a null_query"),
        ({"evidence_list": ["A"]}, "expected a list of objects with a title"),
        ({"evidence_list": [{"fact": "f"}]}, "field 'title' is missing"),
        ({"query": ""}, "field 'query' is ''"),
    ],
)
def test_a_bad_query_is_an_error(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        list(
            datasets.load(
                "multihop_rag", written(tmp_path, "q.json", [query(**change)])
            ).questions()
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"published_at": "last Tuesday"},
            "field 'published_at' is 'last Tuesday', expected an ISO date like 2023-10-07",
        ),
        ({"published_at": 20230928}, "field 'published_at'"),
        ({"body": None}, "field 'body' is None, expected a text"),
        ({"title": None, "url": None}, "field 'title' is None"),
        ({"source": ["The Verge"]}, "field 'source'"),
    ],
)
def test_a_bad_article_is_an_error(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        list(
            datasets.load(
                "multihop_rag", corpus=written(tmp_path, "c.json", [article(**change)])
            ).documents()
        )


def test_an_article_without_a_title_goes_by_its_url(tmp_path):
    (document,) = datasets.load(
        "multihop_rag", corpus=written(tmp_path, "c.json", [article(title=None)])
    ).documents()
    assert document.doc_id == "u"
