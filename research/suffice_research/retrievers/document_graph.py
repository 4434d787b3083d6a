"""The document graph of MAGAF 3.4, never materialised: documents that share metadata are linked.

The weight of an edge is the sum of 1.00 for a shared entity, 0.20 for the same category, 0.15 for
the same source, and 0.10 for dates within 7 days, else 0.04 within 30. Several shared entities
weigh no more than one: the paper gives 1.00 "when they share the same entity", it adds up relation
types, and its mean densities (0.462 and 0.625) are below the maximum of 1.45 that this allows.

Category and source edges alone are quadratic in the documents, so these relations are stored as
factors: B_r B_r' minus the diagonal, where B_r maps documents to values. A product goes from
documents to values and back; the date bands are differences of prefix sums over the days that
occur. "At least one" does not factor, so the entity edges are looked up, seed by seed. A document
with three entities takes about 100 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from suffice.errors import InputError
from suffice.retrieval.corpus import UNDATED, Corpus
from suffice.retrieval.ranking import Scores, Signal, top_k
from suffice_research.retrievers.signals import incidence

__all__ = ["SEEDS", "Codes", "DocumentGraph", "GraphSignal"]

ENTITY, CATEGORY, SOURCE = 1.00, 0.20, 0.15
WEEK, WEEK_DAYS = 0.10, 7
MONTH, MONTH_DAYS = 0.04, 30
SEEDS = 20
_BLOCK_CELLS = 4 * 1024 * 1024  # numbers in the tables of one block of rows

Ints = npt.NDArray[np.int32]
Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Codes:
    """One value per document, as a number in [0, count); -1 if a document has none."""

    codes: Ints
    count: int


class DocumentGraph:
    """The graph over the documents of a corpus, by position."""

    def __init__(self, corpus: Corpus) -> None:
        entities = incidence(corpus.column("entities"))
        self._set(_codes(corpus, "source"), _codes(corpus, "category"), corpus.days, entities)

    @classmethod
    def from_columns(
        cls, *, sources: Codes, categories: Codes, days: Ints, entities: sparse.csr_matrix
    ) -> DocumentGraph:
        """A graph without Document objects.

        `days` are ordinals (UNDATED if unknown); `entities` is a sparse (documents, entities)
        matrix of ones.
        """
        graph = cls.__new__(cls)
        graph._set(sources, categories, days, entities)
        return graph

    def _set(
        self, sources: Codes, categories: Codes, days: Ints, entities: sparse.csr_matrix
    ) -> None:
        lengths = {len(sources.codes), len(categories.codes), len(days), entities.shape[0]}
        if len(lengths) != 1:
            raise InputError(
                f"the columns have different lengths: {sorted(lengths)}",
                hint="give one entry a document",
            )
        for column in (sources, categories):
            if (
                len(column.codes)
                and not -1 <= column.codes.min() <= column.codes.max() < column.count
            ):
                raise InputError(
                    f"codes must lie between 0 and {column.count - 1}, or be -1 for none"
                )
        self._one_value = ((SOURCE, sources), (CATEGORY, categories))
        self._calendar = _Calendar(days)
        self._entities = sparse.csr_matrix(entities, dtype=np.float64, copy=True)
        self._entities.sum_duplicates()
        self._entities.data[:] = 1
        self._carriers = self._entities.T.tocsr()
        self._own = self._own_weight()

    def __len__(self) -> int:
        return int(self._entities.shape[0])

    @property
    def nbytes(self) -> int:
        """The memory used by the graph."""
        matrices = (
            part
            for one in (self._entities, self._carriers)
            for part in (one.data, one.indices, one.indptr)
        )
        columns = (column.codes for _, column in self._one_value)
        return sum(
            array.nbytes for array in (*matrices, *columns, *self._calendar.arrays(), self._own)
        )

    def propagate(self, scores: Numbers | sparse.csr_matrix, *, seeds: int = SEEDS) -> Scores:
        """Support from the strongest documents of each row for their neighbours.

        Each row's `seeds` highest positive scores (ties in document order) are propagated once
        along the edges; a seed is supported by the other seeds, not by itself. A row without a
        positive score gives zeros. (questions, documents) -> the same shape.
        """
        start = self._strongest(scores, seeds)
        support = np.zeros(start.shape, dtype=np.float32)
        for block in self._blocks(start.shape[0]):
            support[block] = self._product(start[block])
        return support

    def density(
        self, positions: Sequence[Sequence[int]] | npt.NDArray[np.integer[Any]]
    ) -> npt.NDArray[np.float64]:
        """Weighted density 2 * sum / (k (k - 1)) of sets of positions: (sets, k) -> (sets,).

        Sets of different sizes are padded with -1. A set of fewer than two documents has density 0.
        """
        sets = self._checked(positions)
        density = np.zeros(len(sets))
        if not len(self):
            return density
        width = sets.shape[1]
        for start in range(0, len(sets), step := max(1, _BLOCK_CELLS // max(width * width, 1))):
            block = sets[start : start + step]
            counts = (block >= 0).sum(axis=1)
            density[start : start + step] = self._inner_weight(block) / np.maximum(
                counts * (counts - 1), 1
            )
        return density

    def _product(self, rows: sparse.csr_matrix) -> Numbers:
        """rows @ A for non-negative rows: (questions, documents), sparse in, dense out, float64."""
        entries = rows.tocoo()
        result: Numbers = self._entity_product(rows)
        for weight, column in self._one_value:
            table = weight * _table(entries, column.codes, column.count, rows.shape[0])
            result += table[:, column.codes]
        calendar = self._calendar
        table = calendar.bands(_table(entries, calendar.codes, calendar.count, rows.shape[0]))
        result += table[:, calendar.codes]
        at = entries.row, entries.col
        result[at] -= entries.data * self._own[entries.col]
        # Subtracting a document's own weight leaves rounding errors far below the smallest edge.
        result[at] *= result[at] > 1e-9 * entries.data
        return result

    def _entity_product(self, rows: sparse.csr_matrix) -> Numbers:
        """What the seeds give to all documents that share an entity with them, including
        themselves.

        A few seeds at a time: a popular entity may be in nearly all documents.
        """
        result = np.zeros(rows.shape)
        seeds = np.unique(rows.indices)
        reach = np.asarray(self._entities[seeds] @ np.diff(self._carriers.indptr)).ravel()
        block = np.cumsum(reach) // _BLOCK_CELLS
        for some in np.split(seeds, np.flatnonzero(np.diff(block)) + 1):
            neighbours = self._entities[some] @ self._carriers
            neighbours.data[:] = ENTITY
            result += (rows[:, some] @ neighbours).toarray()
        return result

    def _own_weight(self) -> npt.NDArray[np.float64]:
        """The diagonal: the weight of each document as its own neighbour."""
        own: npt.NDArray[np.float64] = ENTITY * (np.diff(self._entities.indptr) > 0).astype(float)
        for weight, column in self._one_value:
            own += weight * (column.codes >= 0)
        own += WEEK * (self._calendar.codes >= 0)
        return own

    def _inner_weight(self, sets: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        """The sum over ordered pairs of different documents in each set."""
        total = np.zeros(len(sets))
        for apart in range(1, sets.shape[1]):
            one, other = sets[:, :-apart], sets[:, apart:]
            pairs = np.flatnonzero((one >= 0) & (other >= 0))
            shared = self._entities[one.ravel()[pairs]].multiply(
                self._entities[other.ravel()[pairs]]
            )
            holds = np.asarray(shared.sum(axis=1)).ravel() > 0
            np.add.at(total, pairs // one.shape[1], 2 * ENTITY * holds)
        for weight, column in self._one_value:
            codes = np.where(sets >= 0, column.codes[sets], -1)
            same = (codes[:, :, None] == codes[:, None, :]) & (codes >= 0)[:, :, None]
            total += weight * (same.sum(axis=(1, 2)) - (codes >= 0).sum(axis=1))
        total += self._calendar.inner_weight(sets)
        return total

    def _strongest(self, scores: Numbers | sparse.csr_matrix, seeds: int) -> sparse.csr_matrix:
        if seeds <= 0:
            raise InputError(f"seeds is {seeds!r}, expected a whole number of at least 1")
        if scores.ndim != 2 or scores.shape[1] != len(self):
            raise InputError(f"scores have shape {scores.shape}, expected (questions, {len(self)})")
        values = scores.data if sparse.issparse(scores) else scores
        if not np.isfinite(values).all():
            raise InputError(
                "seed scores must be finite numbers",
                hint="replace nan and infinity before propagating",
            )
        if not sparse.issparse(scores):
            best = top_k(scores, seeds, above=0.0)
            row, rank = np.nonzero(best.positions >= 0)
            entries = (best.scores[row, rank], (row, best.positions[row, rank]))
            return sparse.csr_matrix(entries, shape=scores.shape, dtype=np.float64)
        return _strongest_entries(sparse.csr_matrix(scores), seeds)

    def _blocks(self, rows: int) -> Iterator[slice]:
        widest = max(
            len(self), self._calendar.count, *(column.count for _, column in self._one_value), 1
        )
        step = max(1, _BLOCK_CELLS // widest)
        return (slice(start, start + step) for start in range(0, rows, step))

    def _checked(
        self, positions: Sequence[Sequence[int]] | npt.NDArray[np.integer[Any]]
    ) -> npt.NDArray[np.intp]:
        try:
            sets = np.asarray(positions)
        except ValueError as error:
            raise InputError(
                "the sets have different lengths", hint="end the shorter ones in -1"
            ) from error
        if sets.ndim != 2 or (sets.size and not np.issubdtype(sets.dtype, np.integer)):
            raise InputError(
                f"positions have shape {sets.shape} and type {sets.dtype}, "
                "expected whole numbers (sets, k)"
            )
        sets = sets.astype(np.intp)
        if sets.size and (sets.min() < -1 or sets.max() >= len(self)):
            raise InputError(f"positions must lie between 0 and {len(self) - 1}, or be -1 for none")
        ordered = np.sort(sets, axis=1)
        if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
            raise InputError("a set holds a document twice", hint="give each position once")
        return sets


class GraphSignal:
    """Graph support as a signal; the seeds are the strongest documents of another signal."""

    name = "graph"

    def __init__(self, graph: DocumentGraph, seeds: Signal, *, count: int = SEEDS) -> None:
        self._graph, self._seeds, self._count = graph, seeds, count

    def scores(self, questions: Sequence[str]) -> Scores:
        """(questions, documents)."""
        return self.spread(self._seeds.scores(questions))

    def spread(self, seed_scores: Numbers) -> Scores:
        """The same, from given seed scores."""
        return self._graph.propagate(seed_scores, seeds=self._count)


class _Calendar:
    """The days that occur, and for each the range of days within a week and within a month."""

    def __init__(self, days: Ints) -> None:
        dated = days != UNDATED
        self.days = np.unique(days[dated]).astype(np.int32)
        self.count = len(self.days)
        self.codes = np.where(dated, np.searchsorted(self.days, days), -1).astype(np.int32)
        reach = np.array([[WEEK_DAYS], [MONTH_DAYS]])
        self.first = np.searchsorted(self.days, self.days - reach, side="left").astype(np.int32)
        self.last = np.searchsorted(self.days, self.days + reach, side="right").astype(np.int32)

    def arrays(self) -> tuple[Ints, ...]:
        return (self.days, self.codes, self.first, self.last)

    def bands(self, table: Numbers) -> Numbers:
        """What each day receives from the sums of all days: (rows, days + 1), the last for none."""
        sums = np.cumsum(np.pad(table[:, :-1], ((0, 0), (1, 0))), axis=1)
        week, month = (sums[:, last] - sums[:, first] for first, last in zip(self.first, self.last))
        # A week lies within a month, so subtract what the wider band adds there.
        received = (WEEK - MONTH) * week + MONTH * month
        return np.pad(received, ((0, 0), (0, 1)))

    def inner_weight(self, sets: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        if not self.count:
            return np.zeros(len(sets))
        codes = np.where(sets >= 0, self.codes[sets], -1)
        days = self.days[codes]
        apart = np.abs(days[:, :, None] - days[:, None, :])
        pair = (
            (codes[:, :, None] >= 0) & (codes[:, None, :] >= 0) & ~np.eye(sets.shape[1], dtype=bool)
        )
        weights = np.where(apart <= WEEK_DAYS, WEEK, np.where(apart <= MONTH_DAYS, MONTH, 0.0))
        total: npt.NDArray[np.float64] = np.where(pair, weights, 0.0).sum(axis=(1, 2))
        return total


def _codes(corpus: Corpus, field: Literal["source", "category"]) -> Codes:
    column = corpus.column(field)
    codes = np.full(len(corpus), -1, dtype=np.int32)
    codes[np.diff(column.codes.starts) > 0] = column.codes.values
    return Codes(codes, len(column.values))


def _table(entries: sparse.coo_matrix, codes: Ints, count: int, rows: int) -> Numbers:
    """Each row's sums by value, (rows, count + 1); the last column, code -1, is 0: no value."""
    code = codes[entries.col]
    known = code >= 0
    cells = entries.row[known].astype(np.int64) * (count + 1) + code[known]
    return np.bincount(cells, weights=entries.data[known], minlength=rows * (count + 1)).reshape(
        rows, count + 1
    )


def _strongest_entries(scores: sparse.csr_matrix, seeds: int) -> sparse.csr_matrix:
    entries = scores.tocoo()
    entries.sum_duplicates()
    positive = entries.data > 0
    row, column, value = entries.row[positive], entries.col[positive], entries.data[positive]
    order = np.lexsort((column, -value, row))
    row, column, value = row[order], column[order], value[order]
    kept = np.arange(len(row)) - np.searchsorted(row, row) < seeds
    return sparse.csr_matrix(
        (value[kept], (row[kept], column[kept])), shape=scores.shape, dtype=np.float64
    )
