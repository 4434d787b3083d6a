"""Hits come in many shapes and leave in one."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from suffice.errors import InputError
from suffice.gate.hits import normalize_documents, normalize_hits
from suffice.types import Document, Evidence, Hit, LibraryHit, Question

ASKED = "Who taught the teacher of Ada?"


@dataclass
class LangChainDocument:
    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass
class TextNode:
    text: str
    node_id: str = "node-1"
    metadata: dict[str, Any] = field(default_factory=dict)

    def get_content(self) -> str:
        return self.text


@dataclass
class NodeWithScore:
    node: TextNode
    score: float | None = None


@dataclass
class HaystackDocument:
    content: str | None
    meta: dict[str, Any] = field(default_factory=dict)
    id: str = "h1"
    score: float | None = None


def one(hit: Any, **options: Any) -> tuple[Document, Hit]:
    evidence = normalize_hits(ASKED, [hit], **options).evidence
    return evidence.documents[evidence.hits[0].doc_id], evidence.hits[0]


ABOUT = {
    "title": "Ada",
    "source": "The Verge",
    "category": "people",
    "published_at": "2023-10-07",
    "entities": ["Ada"],
}

Row = namedtuple("Row", "score text id metadata")
SHAPES = {
    "dict": {"doc_id": "a", "text": "Ada was taught.", "score": 2, **ABOUT},
    "dict with other names": {
        "_id": "a",
        "page_content": "Ada was taught.",
        "score": np.float32(2),
        **ABOUT,
    },
    "dict with metadata inside": {
        "id": "a",
        "content": "Ada was taught.",
        "score": 2.0,
        "metadata": ABOUT,
    },
    "langchain": LangChainDocument("Ada was taught.", {**ABOUT, "score": 2.0}, id="a"),
    "langchain with its score beside it": (
        LangChainDocument("Ada was taught.", {**ABOUT, "doc_id": "a"}),
        2.0,
    ),
    "llama-index": NodeWithScore(TextNode("Ada was taught.", "a", ABOUT), 2.0),
    "haystack": HaystackDocument("Ada was taught.", ABOUT, "a", 2.0),
    "an object": SimpleNamespace(id="a", text="Ada was taught.", score=2.0, metadata=ABOUT),
    "a named tuple": Row(2.0, "Ada was taught.", "a", ABOUT),
    "document and score": (
        Document("a", "Ada was taught.", "Ada", "The Verge", "people", date(2023, 10, 7), ("Ada",)),
        2.0,
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_says_the_same(shape: str) -> None:
    document, hit = one(SHAPES[shape])
    assert document == Document(
        "a", "Ada was taught.", "Ada", "The Verge", "people", date(2023, 10, 7), ("Ada",)
    )
    assert hit == Hit("a", 2.0)


@pytest.mark.parametrize(
    ("hit", "doc_id", "text", "score"),
    [
        (("a", "Ada was taught.", 2.0), "a", "Ada was taught.", 2.0),
        (["a", "Ada was taught.", 2], "a", "Ada was taught.", 2.0),
        ((7, "Ada was taught.", None), "7", "Ada was taught.", None),
        (("a", "Ada was taught."), "a", "Ada was taught.", None),
        (TextNode("Ada was taught.", "a"), "a", "Ada was taught.", None),
        (HaystackDocument(None, id="a"), "a", "", None),
        ({"id": "a", "text": ["Ada ", "was taught."]}, "a", "Ada was taught.", None),
    ],
)
def test_tuples_and_bare_objects(hit: Any, doc_id: str, text: str, score: float | None) -> None:
    document, found = one(hit)
    assert (document.doc_id, document.text, found.score) == (doc_id, text, score)


def test_texts_without_ids_are_told_apart_by_their_place() -> None:
    evidence = normalize_hits(ASKED, ["Ada was taught.", ("Byron wrote.", 0.5)]).evidence
    assert len({hit.doc_id for hit in evidence.hits}) == 2
    assert [evidence.documents[hit.doc_id].text for hit in evidence.hits] == [
        "Ada was taught.",
        "Byron wrote.",
    ]


def test_hits_of_ours_find_their_documents() -> None:
    documents = {"a": Document("a", "Ada was taught.", "Ada")}
    assert one(Hit("a", 1.0), documents=documents) == (documents["a"], Hit("a", 1.0))
    assert one({"id": "a"}, documents=documents)[0] == documents["a"]
    assert one(Hit("b", 1.0), documents=documents)[0].text == ""
    whole = Evidence(Question("q", ASKED), (Hit("a", 1.0),), documents)
    assert normalize_hits(ASKED, whole).evidence.documents == documents


def test_duplicates_are_folded_into_the_first() -> None:
    hits = [
        ("a", "Ada was taught.", 3),
        ("b", "Byron wrote.", 2),
        ("a", "another text", 1),
        ("c", "Ada was taught.", 1),
    ]
    taken = normalize_hits(ASKED, hits)
    assert [hit.doc_id for hit in taken.evidence.hits] == ["a", "b"]
    assert taken.duplicates == {"a": ("a", "c")}
    assert "c" in taken.stands_for("a")
    assert "c" not in taken.stands_for("b")


def test_only_the_first_k_are_looked_at() -> None:
    endless = (f"text {number}" for number in count())
    assert len(normalize_hits(ASKED, endless, k=4).evidence.hits) == 4
    assert len(normalize_hits(ASKED, ["one", "two", object()], k=2).evidence.hits) == 2


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf"), None, 10**400])
def test_a_score_that_is_no_number_is_unknown(score: float | None) -> None:
    assert one(("a", "Ada was taught.", score))[1].score is None


def test_odd_metadata_is_left_out() -> None:
    document, _ = one(
        {
            "text": "Ada.",
            "title": 3,
            "source": ["x"],
            "published_at": "last Tuesday",
            "entities": [1, "Ada"],
        }
    )
    assert (document.title, document.source, document.published_at, document.entities) == (
        "",
        None,
        None,
        ("Ada",),
    )
    assert one({"text": "Ada.", "published_at": datetime(2023, 10, 7, 12)})[0].published_at == date(
        2023, 10, 7
    )


@pytest.mark.parametrize(
    ("hit", "message"),
    [
        (3, "hit 2 is 3, expected a text"),
        (None, "hit 2 is None"),
        (b"bytes", "hit 2 is of type bytes"),
        ({}, "without 'text'"),
        ({"txet": "Ada"}, "its keys: txet"),
        ({"text": None, "url": "a"}, "its keys: text: null, url"),
        ({"text": 3}, "hit 2: its text is 3"),
        ({"text": "Ada", "score": "high"}, "hit 2: its score is of type str"),
        ({"text": "Ada", "score": True}, "hit 2: its score is True"),
        ({"text": "Ada", "id": 1.5}, "hit 2: its id is 1.5"),
        ((1, 2, 3, 4), "hit 2 is a tuple of"),
        (("a", 3, 0.5), "hit 2 is a tuple of"),
        ((), "hit 2 is a tuple of"),
        (Document("a", None), "hit 2: a field of its Document"),  # type: ignore[arg-type]
        (NodeWithScore(3), "hit 2 is 3"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_hit_is_named(hit: Any, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        normalize_hits(ASKED, ["a first one", hit])


@pytest.mark.parametrize("hits", ["one text", b"bytes", {"documents": []}, 3, None])
def test_hits_must_be_a_list(hits: Any) -> None:
    with pytest.raises(InputError, match="expected a list of hits"):
        normalize_hits(ASKED, hits)


def test_the_question_must_be_a_text() -> None:
    with pytest.raises(InputError, match="the question is 3"):
        normalize_hits(3, [])  # type: ignore[arg-type]


# ---- documents for a library


MORE = {**ABOUT, "page": 3, "read_at": date(2024, 3, 12), "vector": np.zeros(2)}
DOCUMENTS = {
    "dict": {"id": "a", "text": "Ada was taught.", **MORE},
    "dict with metadata inside": {"doc_id": "a", "text": "Ada was taught.", "metadata": MORE},
    "langchain": LangChainDocument("Ada was taught.", MORE, id="a"),
    "llama-index": TextNode("Ada was taught.", "a", MORE),
    "llama-index with a score": NodeWithScore(TextNode("Ada was taught.", "a", MORE), 2.0),
    "haystack": HaystackDocument("Ada was taught.", MORE, "a"),
}


@pytest.mark.parametrize("shape", DOCUMENTS)
def test_a_document_of_every_shape_keeps_its_metadata(shape: str) -> None:
    (document,) = normalize_documents([DOCUMENTS[shape]])
    about = ("Ada", "The Verge", "people", date(2023, 10, 7), ("Ada",))
    extra = {"page": 3, "read_at": "2024-03-12"}
    assert document == Document("a", "Ada was taught.", *about, extra=extra)


def test_documents_without_an_id_of_their_own_are_told_apart_by_their_text() -> None:
    # A splitter gives every chunk the metadata of the whole, its id included.
    chunks = [LangChainDocument(text, {"doc_id": "whole"}) for text in ("Ada.", "Byron.", "Ada.")]
    one, two, again = normalize_documents(chunks)
    assert (one.doc_id == again.doc_id, one.doc_id == two.doc_id) == (True, False)
    assert one.extra == {"doc_id": "whole"}
    (plain,) = normalize_documents(["Ada."])
    assert plain.doc_id == one.doc_id


def test_our_documents_and_a_librarys_hits_pass_as_they_are() -> None:
    document = Document("a", "Ada was taught.", "Ada", extra={"page": 3})
    assert list(normalize_documents([document, LibraryHit("a", 1.0, document=document)])) == [
        document,
        document,
    ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (3, "document 2 is 3, expected a text"),
        ({"id": "a", "text": " "}, "document 2 has neither text nor title"),
        (HaystackDocument(None, id="picture"), "document 2 has neither text nor title"),
        (Hit("a"), "document 2 has neither text nor title"),
        ({"text": "Ada", "id": 1.5}, "document 2: its id is 1.5"),
    ],
)
def test_a_wrong_document_is_named(document: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(normalize_documents(["a first one", document]))


@pytest.mark.parametrize("documents", ["one text", {"text": "Ada"}, Document("a", "Ada"), 3])
def test_documents_must_be_a_list(documents: Any) -> None:
    with pytest.raises(InputError, match="expected a list of documents"):
        normalize_documents(documents)


def test_a_librarys_hit_brings_its_document_and_given_documents_come_first() -> None:
    stored, given = Document("a", "Ada was taught."), Document("a", "Ada, newer.")
    hit = LibraryHit("a", 1.0, document=stored)
    assert (hit.text, hit.title) == ("Ada was taught.", "")
    assert one(hit) == (stored, Hit("a", 1.0))
    assert one(hit, documents={"a": given})[0] == given
    assert one(LibraryHit("gone"))[0].text == ""
    assert "document" not in hit.as_json()


@pytest.mark.parametrize("documents", [[Document("a", "Ada.")], {"a": "Ada."}, "Ada."])
def test_documents_that_are_no_mapping_are_refused(documents: Any) -> None:
    with pytest.raises(InputError, match=r"of type (list|str), expected a") as caught:
        normalize_hits(ASKED, [Hit("a")], documents=documents)
    assert "{one.doc_id: one for one in documents}" in caught.value.hint


def test_hits_without_text_are_said() -> None:
    assert normalize_hits(ASKED, ["Ada.", {"id": "b", "title": "Byron"}]).notes == ()
    (note,) = normalize_hits(ASKED, [Hit("a"), Hit("b"), "Ada."]).notes
    assert "2 of 3 hits" in note


def test_hits_that_are_not_read_are_said() -> None:
    hits = ["Ada.", "Byron.", "Ada.", "Clara."]
    assert normalize_hits(ASKED, hits, k=3).notes == ()
    assert normalize_hits(ASKED, iter(hits), k=2).notes == (
        "Only the first 2 distinct hits were read.",
    )


def test_a_passage_with_the_id_of_another_is_said() -> None:
    hits = [("page", "Ada wrote."), ("page", "Babbage built."), ("page", "Ada wrote.")]
    found = normalize_hits(ASKED, [*hits, ("x", "Ada wrote."), {"id": "page"}])
    assert [one.text for one in found.documents] == ["Ada wrote."]
    assert found.notes == (
        "Not read: 1 hit with the id of an earlier hit and another text, the first 'page'. "
        "Give each passage its own id, or none.",
    )
    assert normalize_hits(ASKED, ["One.", "Two.", "Two."]).notes == ()
    again = [("x", "Clara."), ("page", "Ada wrote."), ("page", "Clara.")]
    assert normalize_hits(ASKED, again).notes == ()  # Clara's text was read
