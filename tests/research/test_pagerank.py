"""PageRank over mention links in a village."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.corpora import documents

from suffice.registry import RETRIEVERS
from suffice.retrieval import builtin  # noqa: F401 - importing it registers our retrievers
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.links import TitleIndex, mention_links
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.search import TextSearch
from suffice.types import Document
from suffice_research.retrievers.pagerank import PageRank

VILLAGE = list(documents("pagerank"))


def walk(**options: Any) -> PageRank:
    store = MemoryStore(VILLAGE)
    titles = TitleIndex.of(VILLAGE)
    return PageRank(
        Corpus(VILLAGE), TextSearch(store), mention_links(VILLAGE, titles), titles, **options
    )


def test_two_links_away_is_nearer_than_no_link() -> None:
    (row,) = walk().scores(["Who was Ada Lovelace?"])
    ada, mary, jedburgh, soup, *_ = row.tolist()
    assert ada > mary > jedburgh > 0
    assert soup == 0


def test_a_row_is_where_the_wanderer_is_found() -> None:
    rows = walk().scores(["Ada Lovelace and the Leek soup", "leeks", ""])
    assert rows.sum(axis=1) == pytest.approx([1, 1, 0], abs=1e-6)
    assert rows.dtype == np.float32
    assert (rows >= 0).all()


def test_it_is_the_pagerank_that_solving_the_equations_gives() -> None:
    one = walk()
    start = one._starts(["Ada Lovelace in Jedburgh"])
    dense = one._step.toarray()
    stuck = start @ (1 - dense.sum(axis=0))[None, :]  # who cannot go on starts anew
    exact = np.linalg.solve(np.eye(len(VILLAGE)) - 0.5 * (dense + stuck), 0.5 * start)
    assert one.scores(["Ada Lovelace in Jedburgh"])[0] == pytest.approx(exact[:, 0], abs=1e-6)


def test_a_circle_of_links_and_a_crowd_of_namesakes_are_borne() -> None:
    circle = [
        Document(f"d{at}", f"Number Page{(at + 1) % 50} follows.", f"Page{at}") for at in range(50)
    ]
    circle += [Document(f"t{at}", "Page0 again.", "Twin Peak") for at in range(40)]
    titles = TitleIndex.of(circle)
    one = PageRank(
        Corpus(circle), TextSearch(MemoryStore(circle)), mention_links(circle, titles), titles
    )
    assert one.scores(["Twin Peak and Page3"]).sum() == pytest.approx(1, abs=1e-5)


def test_by_name_it_finds_what_the_question_does_not_say() -> None:
    from suffice.retrieval.encoders import WordLlamaEncoder

    encoder = WordLlamaEncoder()
    store = MemoryStore(VILLAGE, encoder.encode([f"{one.title} {one.text}" for one in VILLAGE]))
    (hits,) = RETRIEVERS.get("ppr")(store, encoder=encoder).search(
        ["Who taught Ada Lovelace?"], k=3
    )
    assert {hit.doc_id for hit in hits[:2]} == {"ada", "mary"}
    assert hits[0].parts[0].name == "ppr"
