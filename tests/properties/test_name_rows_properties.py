"""After any writes, the name links are those of a build from nothing, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.retrieval.corpus import RaggedRows
from suffice.retrieval.name_links import NameLinks, link_names, name_links, name_rows
from suffice.retrieval.name_rows import NameRows
from suffice.types import Document

# Names inside one another, shared, with accents, and such as are common words of many texts.
NAMES = (
    "New York|New York Times|Times|file|File|less|Less|saw|Saw|it|It|The Who|who|Ada|São|são|1984"
    "|straße|x-200|IBM|東京|Jon Vale|ﬁle|"
).split("|")
OTHERS = 'is was a of in . , ( ) sao strasse fi less(1) --file "Saw" born 1990 known as'.split()
TITLES = st.sampled_from(NAMES)
TEXTS = st.lists(st.sampled_from([*NAMES, *OTHERS]), max_size=10).map(" ".join)
ENTITIES = st.lists(st.sampled_from(["Ada", "New York", "IBM", ""]), max_size=2).map(tuple)
IDS = st.sampled_from("abcdefghijkl")
DOCUMENTS = st.builds(Document, IDS, TEXTS, TITLES, entities=ENTITIES)
WRITES = st.lists(
    st.tuples(st.lists(DOCUMENTS, max_size=6), st.lists(IDS, max_size=3)), min_size=1, max_size=5
)


def fetch(held: dict[str, Document]) -> Callable[[Sequence[str]], list[Document | None]]:
    return lambda ids: [held.get(one) for one in ids]


def same(one: NameLinks, other: NameLinks) -> None:
    for field in fields(NameLinks):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, RaggedRows):
            np.testing.assert_array_equal(left.starts, right.starts)
            left, right = left.values, right.values
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype
            np.testing.assert_array_equal(left, right)
        elif isinstance(left, dict):
            assert list(left.items()) == list(right.items())
        else:
            assert left == right


def saved_bytes(made: NameLinks | NameRows, folder: Path) -> dict[str, bytes]:
    made.save(folder)
    return {one.name: one.read_bytes() for one in folder.iterdir()}


@settings(max_examples=100)
@given(WRITES, st.sampled_from([0.0, 1.0]))
def test_any_writes_lead_to_the_links_of_a_build_from_nothing(
    writes: list[tuple[list[Document], list[str]]], few: float
) -> None:
    held: dict[str, Document] = {}
    rows: NameRows | None = None
    for put, gone in writes:
        held |= {one.doc_id: one for one in put}
        for doc_id in gone:
            held.pop(doc_id, None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("suffice.retrieval.name_links.FEW", few)
            rows = name_rows(held.values, known=rows, get=fetch(held))
        same(link_names(rows), name_links(held.values))


@settings(max_examples=10)
@given(WRITES)
def test_they_are_the_same_on_disk(writes: list[tuple[list[Document], list[str]]]) -> None:
    held: dict[str, Document] = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        for at, (put, gone) in enumerate(writes):
            held |= {one.doc_id: one for one in put}
            for doc_id in gone:
                held.pop(doc_id, None)
            known = NameRows.load(folder / f"{at}") if at else None
            rows = name_rows(held.values, known=known)
            now = saved_bytes(link_names(rows), folder / "now")
            assert now == saved_bytes(name_links(held.values), folder / "anew")
            anew = saved_bytes(name_rows(held.values), folder / "rows")
            assert anew == saved_bytes(rows, folder / f"{at + 1}")
