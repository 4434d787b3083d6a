from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np
import pytest

from suffice.errors import InputError
from suffice.retrieval.corpus import Corpus
from suffice.types import Document
from suffice_research.retrievers.document_graph import Codes, DocumentGraph, GraphSignal
from suffice_research.retrievers.signals import incidence

DOCUMENTS = (
    Document(
        "ftx-verge",
        "",
        source="The Verge",
        category="business",
        published_at=date(2023, 10, 1),
        entities=("FTX", "Bankman"),
    ),
    Document(
        "ftx-fortune",
        "",
        source="Fortune",
        category="business",
        published_at=date(2023, 10, 8),
        entities=("FTX", "Bankman"),
    ),
    Document(
        "ftx-late",
        "",
        source="Fortune",
        category="law",
        published_at=date(2023, 11, 1),
        entities=("FTX",),
    ),
    Document(
        "messi",
        "",
        source="Sporting News",
        category="sports",
        published_at=date(2024, 6, 1),
        entities=("Messi",),
    ),
    Document("bare", ""),
)


@pytest.fixture(scope="module")
def graph() -> DocumentGraph:
    return DocumentGraph(Corpus(DOCUMENTS))


def seeded(*positions: int) -> np.ndarray:
    scores = np.zeros((1, len(DOCUMENTS)), dtype=np.float32)
    scores[0, list(positions)] = 1.0
    return scores


def test_edge_weights_are_those_of_the_paper(graph: DocumentGraph) -> None:
    support = graph.propagate(seeded(0))[0]
    entities_category_week = 1.00 + 0.20 + 0.10  # two shared entities weigh as much as one
    entity_and_no_more = 1.00  # 31 days apart, other source, other category
    np.testing.assert_allclose(
        support, [0, entities_category_week, entity_and_no_more, 0, 0], atol=1e-6
    )


def test_a_seed_does_not_support_itself_and_an_isolated_one_supports_nobody(
    graph: DocumentGraph,
) -> None:
    assert not graph.propagate(seeded(3)).any()
    assert not graph.propagate(seeded(4)).any()


def test_only_the_strongest_seeds_travel(graph: DocumentGraph) -> None:
    scores = np.array([[0.9, 0.0, 0.5, 0.0, 0.0]], dtype=np.float32)
    np.testing.assert_array_equal(
        graph.propagate(scores, seeds=1), graph.propagate(seeded(0)) * np.float32(0.9)
    )


def test_columns_and_documents_make_the_same_graph(graph: DocumentGraph) -> None:
    corpus = Corpus(DOCUMENTS)
    columns = DocumentGraph.from_columns(
        sources=Codes(np.array([0, 1, 1, 2, -1], np.int32), 3),
        categories=Codes(np.array([0, 0, 1, 2, -1], np.int32), 3),
        days=corpus.days,
        entities=incidence(corpus.column("entities")),
    )
    every = np.eye(len(DOCUMENTS), dtype=np.float32)
    np.testing.assert_array_equal(columns.propagate(every), graph.propagate(every))


def test_an_empty_corpus_has_an_empty_graph() -> None:
    empty = DocumentGraph(Corpus([]))
    assert empty.propagate(np.zeros((2, 0), np.float32)).shape == (2, 0)
    assert empty.density([[-1, -1]]).tolist() == [0.0]
    assert len(empty) == 0


@pytest.mark.parametrize(
    "scores",
    [np.full((1, 5), np.nan), np.array([[np.inf, 0, 0, 0, 0]]), np.zeros((1, 4)), np.zeros(5)],
    ids=["nan", "infinite", "other length", "one dimension"],
)
def test_scores_that_do_not_fit_are_refused(graph: DocumentGraph, scores: np.ndarray) -> None:
    with pytest.raises(InputError):
        graph.propagate(scores)


@pytest.mark.parametrize(
    "positions",
    [[[0, 5]], [[-2, 0]], [[1, 1]], [0, 1], [[0, 1], [2]], [[0.5, 1.0]]],
    ids=["past the end", "below -1", "twice", "flat", "ragged", "fractions"],
)
def test_positions_that_do_not_fit_are_refused(
    graph: DocumentGraph, positions: list[list[int]]
) -> None:
    with pytest.raises(InputError):
        graph.density(positions)


class Fixed:
    name = "fixed"

    def scores(self, questions: Sequence[str]) -> np.ndarray:
        return np.repeat(seeded(0), len(questions), axis=0)


def test_the_signal_spreads_what_its_seeds_found(graph: DocumentGraph) -> None:
    signal = GraphSignal(graph, Fixed())
    assert signal.name == "graph"
    np.testing.assert_array_equal(
        signal.scores(["a", "b"]), graph.propagate(np.repeat(seeded(0), 2, axis=0))
    )


def test_many_rows_in_blocks_equal_one_row_at_a_time(
    graph: DocumentGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = np.random.default_rng(1).random((9, 5)).astype(np.float32)
    sets = np.array([[0, 1, 2], [1, 2, 3], [2, 3, 4]])
    whole, dense = graph.propagate(scores), graph.density(sets)
    monkeypatch.setattr("suffice_research.retrievers.document_graph._BLOCK_CELLS", 10)
    np.testing.assert_array_equal(graph.propagate(scores), whole)
    np.testing.assert_array_equal(graph.density(sets), dense)
