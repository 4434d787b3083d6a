"""The store on Qdrant, as far as it needs no server: addresses, failing over, BM25's two halves,
points.
"""

from __future__ import annotations

import sys
from datetime import date
from typing import Any

import httpx
import numpy as np
import pytest
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from suffice.engines.library_location import open_location
from suffice.engines.qdrant import QdrantAddress, QdrantStore, is_qdrant_address
from suffice.engines.qdrant.connection import MissingCollectionError, QdrantCluster
from suffice.engines.qdrant.schema import (
    document_from_payload,
    payload_from_document,
    point_id,
    qdrant_filter,
)
from suffice.engines.qdrant.sparse_bm25 import document_vector, document_words, question_vector
from suffice.errors import EngineError, InputError, MissingExtraError, NotReadyError
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.memory import Bm25
from suffice.testing import VILLAGE
from suffice.types import Condition, Document, Filter

# ---- addresses


def test_an_address_says_where_and_how() -> None:
    address = QdrantAddress.parse(
        "qdrant://a:6333,b/news?shards=6&replicas=2&tls=true&exact=false&read_consistency=majority"
    )
    assert address.hosts == ("a:6333", "b:6333")
    assert (address.collection, address.shards, address.replicas) == ("news", 6, 2)
    assert (address.tls, address.exact, address.read_consistency) == (True, False, "majority")
    assert QdrantAddress.parse(str(address)) == address


def test_an_address_of_the_newer_internet() -> None:
    assert QdrantAddress.parse("qdrant://[::1]:7000/x").hosts == ("[::1]:7000",)
    assert QdrantAddress.parse("qdrant://[::1]/x").local


@pytest.mark.parametrize(
    "text",
    [
        "qdrant://host:6333",
        "qdrant:///news",
        "http://host:6333/news",
        "qdrant://host:port/news",
        "qdrant://host/ne ws",
        "qdrant://host/a/b",
        "qdrant://host/news?shard=3",
        "qdrant://host/news?shards=0",
        "qdrant://host/news?tls=perhaps",
        "qdrant://host/news?timeout_s=nan",
    ],
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        QdrantAddress.parse(text)


def test_a_key_in_an_address_is_refused_without_repeating_it() -> None:
    with pytest.raises(InputError) as caught:
        QdrantAddress.parse("qdrant://user:secret@host/news")
    assert "secret" not in f"{caught.value}{caught.value.hint}"


def test_a_folder_is_no_address(tmp_path: Any) -> None:
    assert not is_qdrant_address(tmp_path)
    assert not is_qdrant_address("qdrant")
    assert is_qdrant_address("qdrant://host/x")


def test_a_key_does_not_travel_unencrypted_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDRANT_API_KEY", "secret")
    with pytest.raises(InputError, match="unencrypted") as caught:
        QdrantStore("qdrant://elsewhere:6333/news")
    assert "secret" not in str(caught.value)
    for fine in (
        "qdrant://localhost/news",
        "qdrant://elsewhere/news?tls=true",
        "qdrant://elsewhere/news?tls=false",
    ):
        QdrantStore(fine).close()


# ---- failing over


def asking(hosts: str, patience_s: float = 30) -> QdrantCluster:
    return QdrantCluster(QdrantAddress.parse(f"qdrant://{hosts}/x?patience_s={patience_s}"))


def refusal(status: int, content: str = "") -> UnexpectedResponse:
    return UnexpectedResponse(status, content, content.encode(), httpx.Headers())


def test_the_next_node_is_asked_when_one_is_gone_and_kept() -> None:
    cluster = asking("a,b,c")
    tried: list[str] = []

    def what(client: Any) -> str:
        host = str(client._client.rest_uri)
        tried.append(host)
        if "//a" in host:
            raise ResponseHandlingException(httpx.ConnectError("refused"))
        if "//b" in host:
            raise refusal(503)
        return host

    assert "//c" in cluster.ask(what)
    assert "//c" in cluster.ask(what)
    assert len(tried) == 4
    assert cluster.calls == 2


def test_when_no_node_answers_the_error_says_so_and_may_be_retried() -> None:
    def what(client: Any) -> None:
        raise ResponseHandlingException(httpx.ConnectError("refused"))

    with pytest.raises(
        EngineError, match=r"no node of a:6333, b:6333 answered in 0\.1 s"
    ) as caught:
        asking("a,b", patience_s=0.1).ask(what)
    assert caught.value.retryable
    assert caught.value.hint


@pytest.mark.parametrize(
    ("status", "content", "error", "words"),
    [
        (401, "", EngineError, "refuses the key"),
        (404, "Collection `x` doesn't exist", MissingCollectionError, "Collection"),
        (400, "Wrong input", EngineError, "answered 400: Wrong input"),
    ],
)
def test_what_does_not_pass_is_not_tried_again(
    status: int, content: str, error: type[Exception], words: str
) -> None:
    tried = []

    def what(client: Any) -> None:
        tried.append(client)
        raise refusal(status, content)

    with pytest.raises(error, match=words):
        asking("a,b").ask(what)
    assert len(tried) == 1


def test_without_the_extra_the_pip_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(MissingExtraError) as caught:
        QdrantStore("qdrant://localhost/x")
    assert caught.value.hint == "pip install 'suffice[qdrant]'"


def test_a_missing_library_names_the_build_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(QdrantStore, "generation", 0)
    with pytest.raises(NotReadyError) as caught:
        open_location("qdrant://localhost/x")
    assert caught.value.hint == "make it with: suffice build FILE --store qdrant://localhost/x"


# ---- words


def test_the_two_halves_of_bm25_make_the_whole() -> None:
    words = [document_words(document) for document in VILLAGE]
    mean = sum(map(len, words)) / len(words)
    vectors = [document_vector(one, mean) for one in words]
    for question in ("Who designed the engine in London?", "Ada", "nothing known", "東京"):
        asked = question_vector(question)
        assert set(asked.values) <= {1.0}
        scores = []
        for vector in vectors:
            weights = dict(zip(vector.indices, vector.values))
            shared = set(weights) & set(asked.indices)
            counts = {term: sum(term in one.indices for one in vectors) for term in shared}
            idf = {
                term: np.log1p((len(VILLAGE) - n + 0.5) / (n + 0.5)) for term, n in counts.items()
            }
            scores.append(sum(idf[term] * weights[term] for term in shared))
        expected = Bm25(Corpus(VILLAGE)).scores([question])[0].tolist()
        assert scores == pytest.approx(expected, abs=1e-5)


# ---- points


def test_a_document_comes_back_from_its_point() -> None:
    odd = Document("odd", "", entities=("a", "b", "a"), extra={"deep": {"n": 2**70, "none": None}})
    for document in (*VILLAGE, odd, Document("bare", "")):
        assert document_from_payload(payload_from_document(document, 3)) == document


def test_a_point_has_the_id_that_its_document_gives_it() -> None:
    assert point_id("ada") == point_id("ada") != point_id("Ada")


def test_a_lenient_filter_lets_through_what_lacks_the_field() -> None:
    filter = Filter((Condition("published_at", "$gte", ("2024-01-15",)),))
    day = date(2024, 1, 15).toordinal()
    assert qdrant_filter(filter) == {"must": [{"key": "day", "range": {"gte": day}}]}
    lenient = qdrant_filter(Filter(filter.conditions, lenient=True))
    assert lenient == {
        "must": [
            {
                "should": [
                    {"key": "day", "range": {"gte": day}},
                    {"is_empty": {"key": "published_at"}},
                ]
            }
        ],
    }
    assert qdrant_filter(Filter()) is None
