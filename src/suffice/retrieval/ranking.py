"""From scores to hits: what every retriever shares: checked input, the k best of a row, and hits that say who found them.

A signal scores every document of a corpus for every question. Ranking never sorts a whole row, breaks ties by document order,
and gives the same hits for the same scores on every machine.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.retrieval.corpus import Corpus, Mask
from suffice.types import DocId, Filter, Hit, Part

__all__ = [
    "Ranking",
    "Scores",
    "Signal",
    "cap_scores",
    "check_search",
    "filter_masks",
    "make_hits",
    "name_parts",
    "question_blocks",
    "top_k",
]

Scores = npt.NDArray[np.float32]
BLOCK_BYTES = (
    64 * 1024 * 1024
)  # a block of questions is scored at a time, so that memory does not grow with their number


@runtime_checkable
class Signal(Protocol):
    """One reason to rank a document high: scores of every document of a corpus, higher is better."""

    name: str

    def scores(self, questions: Sequence[str]) -> Scores:
        """(questions, documents), float32, finite."""
        ...


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best documents of each row, best first: (questions, k) positions and scores. A short row ends in -1 and nan."""

    positions: npt.NDArray[np.intp]
    scores: Scores


def check_search(
    questions: Sequence[str], k: int, filters: Sequence[Filter | None] | None = None
) -> int:
    """k as a plain integer, if questions, k and filters fit together; InputError otherwise.

    Empty questions are allowed (they have no hits), and so is a k above the corpus size (all hits come back).
    """
    if isinstance(questions, str) or not isinstance(questions, Sequence):
        raise InputError(
            "questions must be a list of texts",
            hint=f"pass [question], not a {type(questions).__name__}",
        )
    for at, question in enumerate(questions):
        if not isinstance(question, str):
            raise InputError(f"question {at} is {question!r}, expected a text")
    try:
        number = operator.index(k)
    except TypeError:
        number = 0
    if number <= 0 or isinstance(k, bool):
        raise InputError(
            f"k is {k!r}, expected a whole number of at least 1",
            hint="k is how many hits to return",
        )
    if filters is not None and len(filters) != len(questions):
        raise InputError(
            f"{len(filters)} filters for {len(questions)} questions",
            hint="give one filter, or None, a question",
        )
    return number


def top_k(
    scores: npt.NDArray[Any], k: int, mask: Mask | None = None, *, above: float = -np.inf
) -> Ranking:
    """The k highest scores of each row, ties in document order. (questions, documents) -> Ranked (questions, <= k).

    A document is left out where `mask` ((documents,) or (questions, documents)) is False, and where its score is nan or not
    above `above`: with 0.0 a document that shares nothing with the question is no hit, however short the list stays.
    """
    scores = np.asarray(
        scores, dtype=None if np.issubdtype(np.asarray(scores).dtype, np.floating) else np.float32
    )
    rows, documents = scores.shape
    if k <= 0:
        raise InputError(
            f"k is {k!r}, expected a whole number of at least 1",
            hint="k is how many hits to return",
        )
    width = min(k, documents)
    if not rows or not width:
        return Ranking(
            np.full((rows, width), -1, np.intp), np.full((rows, width), np.nan, np.float32)
        )
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    if np.isnan(
        scores.max()
    ):  # max passes nan on without a copy; partition would take nan for the highest score of all
        scores = np.where(np.isnan(scores), -np.inf, scores)
    # A bar that at least k scores of the row reach, so that few are left to sort, unless many tie with the last.
    bar = np.nextafter(np.array(above, scores.dtype), np.array(np.inf, scores.dtype))
    if width < documents:
        bar = np.maximum(bar, _score_bar(scores, width))
    row, at = np.nonzero(scores >= bar)
    found = scores[row, at]
    order = np.lexsort((at, -found, row))
    row, at, found = row[order], at[order], found[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    kept = rank < width
    positions = np.full((rows, width), -1, np.intp)
    values = np.full((rows, width), np.nan, np.float32)
    positions[row[kept], rank[kept]] = at[kept]
    values[row[kept], rank[kept]] = found[kept]
    return Ranking(positions, values)


def _score_bar(scores: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """For each row a score that at least `count` of its documents reach, seldom many more: (questions, 1).

    The row is cut into runs; the count-th highest of the runs' maxima is reached by as many runs. Taking maxima is one quick
    pass where partitioning the row is several.
    """
    rows, documents = scores.shape
    length = documents // (8 * count)
    if length > 1:
        runs = documents // length
        scores = scores[:, : runs * length].reshape(rows, runs, length).max(axis=2)
    last = scores.shape[1] - count
    return np.partition(scores, last, axis=1)[:, last, None]


def make_hits(
    ranked: Ranking, ids: Sequence[DocId], parts: Mapping[str, npt.NDArray[Any]]
) -> list[tuple[Hit, ...]]:
    """Ranked rows as hits. `parts` holds each signal's own scores, (questions, documents): every hit names those above zero."""
    row, rank = np.nonzero(ranked.positions >= 0)
    at = ranked.positions[row, rank]
    columns = [
        [Part(name, score) for score in matrix[row, at].tolist()] for name, matrix in parts.items()
    ]
    shares = (
        [tuple([part for part in one if part.score > 0]) for one in zip(*columns)]
        if columns
        else [()] * len(row)
    )
    scores = ranked.scores[row, rank].tolist()
    hits = [
        Hit(ids[document], score, share)
        for document, score, share in zip(at.tolist(), scores, shares)
    ]
    ends = np.cumsum(np.bincount(row, minlength=len(ranked.positions))).tolist()
    return [tuple(hits[start:end]) for start, end in zip([0, *ends], ends)]


def name_parts(name: str, found: Sequence[Sequence[Hit]]) -> list[tuple[Hit, ...]]:
    """Hits that each name their finder: those of a store say no more than a score."""
    return [
        tuple(
            hit if hit.parts or hit.score is None else replace(hit, parts=(Part(name, hit.score),))
            for hit in hits
        )
        for hits in found
    ]


def cap_scores(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The hits in this order, with no score above the one in front of it; their parts keep the scores that were given."""
    lowered: list[Hit] = []
    for hit in hits:
        last = lowered[-1].score if lowered else None
        above = last is not None and hit.score is not None and hit.score > last
        lowered.append(replace(hit, score=last) if above else hit)
    return tuple(lowered)


def question_blocks(questions: Sequence[str], documents: int) -> Iterator[slice]:
    """Slices of the questions whose score rows fit into BLOCK_BYTES together."""
    size = max(1, BLOCK_BYTES // (4 * max(documents, 1)))
    for start in range(0, len(questions), size):
        yield slice(start, min(start + size, len(questions)))


def filter_masks(corpus: Corpus, filters: Sequence[Filter | None] | None) -> Mask | None:
    """Which documents each question may find: (questions, documents), or None where no question has a filter."""
    if not filters or not any(filters):
        return None
    masks = {one: corpus.mask(one) for one in set(filters)}
    return np.stack([masks[one] for one in filters])
