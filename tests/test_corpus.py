"""Chunks: pieces of a document that know their parent."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InputError
from suffice.retrieval.corpus import chunk_documents
from suffice.types import Document

NUMBERS = " ".join(map(str, range(600)))


def test_a_long_document_becomes_overlapping_chunks_that_inherit_its_metadata() -> None:
    whole = Document(
        "news",
        NUMBERS,
        "Title",
        "The Verge",
        "tech",
        date(2023, 10, 7),
        ("Ada",),
        extra={"url": "x"},
    )
    chunks = list(chunk_documents([whole]))
    assert [chunk.doc_id for chunk in chunks] == ["news#0", "news#1", "news#2"]
    assert {chunk.parent for chunk in chunks} == {"news"}
    words = [chunk.text.split() for chunk in chunks]
    assert [len(one) for one in words] == [256, 256, 152]
    assert words[0][-32:] == words[1][:32]
    assert all(
        (one.title, one.source, one.category, one.published_at)
        == ("Title", "The Verge", "tech", date(2023, 10, 7))
        for one in chunks
    )
    assert all((one.entities, one.extra) == (("Ada",), {"url": "x"}) for one in chunks)


def test_a_chunk_is_not_cut_again() -> None:
    chunks = list(chunk_documents([Document("a", NUMBERS)], tokens=100, overlap=0))
    assert list(chunk_documents(chunks, tokens=10, overlap=0)) == chunks


@pytest.mark.parametrize(("tokens", "overlap"), [(0, 0), (10, 10), (10, -1), (-5, -9)])
def test_an_impossible_size_is_refused(tokens: int, overlap: int) -> None:
    with pytest.raises(InputError, match="overlap"):
        list(chunk_documents([Document("a", "x")], tokens=tokens, overlap=overlap))


@given(text=st.text(max_size=300), tokens=st.integers(1, 20), data=st.data())
def test_every_word_is_in_some_chunk_and_the_id_says_which(
    text: str, tokens: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, tokens - 1))
    chunks = list(chunk_documents([Document("a", text)], tokens=tokens, overlap=overlap))
    assert all(chunk.text in text for chunk in chunks)
    assert (
        "".join(text.split()) == "".join("".join(chunk.text.split()) for chunk in chunks)
        or overlap
        or len(chunks) > 1
    )
    assert len({chunk.doc_id for chunk in chunks}) == len(chunks)
