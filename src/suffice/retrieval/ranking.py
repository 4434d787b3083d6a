"""From scores to hits: input checks, the k best of a row, and hits with named scores.

A signal scores every document of a corpus for every question. Ties go to the document that comes
first, so the same scores give the same hits on every machine.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.retrieval.corpus import Corpus, Mask
from suffice.types import DocId, Filter, Hit, RetrieverScore

Scores = npt.NDArray[np.float32]
Filters = Sequence[Filter | None] | None  # one entry per question
HitLists = list[tuple[Hit, ...]]  # one entry per question
BLOCK_BYTES = 64 * 1024 * 1024  # questions are scored in blocks of this size, to bound memory
K_HINT = "k is how many hits to return"


@runtime_checkable
class Signal(Protocol):
    """One signal for ranking: a score for every document, higher is better."""

    name: str

    def scores(self, questions: Sequence[str]) -> Scores:
        """(questions, documents), float32, finite."""
        ...


@dataclass(frozen=True, slots=True)
class Ranking:
    """Positions and scores of the best documents, (questions, k). Short rows end in -1 and nan."""

    positions: npt.NDArray[np.intp]
    scores: Scores


def check_search(questions: Sequence[str], k: int, filters: Filters = None) -> int:
    """k as an int; InputError unless questions, k and filters fit together.

    Empty questions are allowed and have no hits. A k above the corpus size returns all hits.
    """
    if isinstance(questions, str) or not isinstance(questions, Sequence):
        raise InputError(
            "questions must be a list of texts",
            hint=f"pass [question], not a {type(questions).__name__}",
        )
    for at, question in enumerate(questions):
        if not isinstance(question, str):
            raise InputError(f"question {at} is {question!r}, expected a text")
    number = _at_least_one("k", k, K_HINT)
    if filters is not None and len(filters) != len(questions):
        raise InputError(
            f"{len(filters)} filters for {len(questions)} questions",
            hint="give one filter, or None, a question",
        )
    return number


def check_depth(depth: int) -> int:
    """The depth as an int; InputError unless it is at least 1."""
    return _at_least_one("depth", depth, "depth is how many hits to choose from")


def _at_least_one(name: str, value: int, hint: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number <= 0 or isinstance(value, bool):
        raise InputError(f"{name} is {value!r}, expected a whole number of at least 1", hint=hint)
    return number


def top_k(
    scores: npt.NDArray[Any], k: int, mask: Mask | None = None, *, above: float = -np.inf
) -> Ranking:
    """The k highest scores of each row of (questions, documents), ties in document order.

    Leaves out documents where `mask`, (documents,) or (questions, documents), is False, and scores
    that are nan or not above `above`: with 0.0, documents unrelated to the question are not hits.
    """
    scores = np.asarray(scores)
    if not np.issubdtype(scores.dtype, np.floating):
        scores = scores.astype(np.float32)
    rows, documents = scores.shape
    if k <= 0:
        raise InputError(f"k is {k!r}, expected a whole number of at least 1", hint=K_HINT)
    width = min(k, documents)
    positions = np.full((rows, width), -1, np.intp)
    values = np.full((rows, width), np.nan, np.float32)
    if not rows or not width:
        return Ranking(positions, values)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    # max propagates nan without a copy; partition would sort nan above every score.
    if np.isnan(scores.max()):
        scores = np.where(np.isnan(scores), -np.inf, scores)
    # A score that at least k documents of the row reach, so that few are left to sort.
    bar = np.nextafter(np.array(above, scores.dtype), np.array(np.inf, scores.dtype))
    if width < documents:
        bar = np.maximum(bar, _score_bar(scores, width))
    # Several times as fast as np.nonzero in two dimensions.
    row, at = np.divmod(np.flatnonzero(scores >= bar), documents)
    found = scores[row, at]
    order = np.lexsort((at, -found, row))
    row, at, found = row[order], at[order], found[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    best = rank < width
    positions[row[best], rank[best]] = at[best]
    values[row[best], rank[best]] = found[best]
    return Ranking(positions, values)


def _score_bar(scores: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """For each row a score that at least `count` documents reach, rarely many more: (questions, 1).

    Splits the row into runs and takes the count-th highest of their maxima: one fast pass, while
    partitioning the row takes several.
    """
    rows, documents = scores.shape
    length = documents // (8 * count)
    if length > 1:
        runs = documents // length
        scores = scores[:, : runs * length].reshape(rows, runs, length).max(axis=2)
    last = scores.shape[1] - count
    return np.partition(scores, last, axis=1)[:, last, None]


def make_hits(
    ranking: Ranking, ids: Sequence[DocId], parts: Mapping[str, npt.NDArray[Any]]
) -> HitLists:
    """Hits of each row; `parts` has the (questions, documents) scores listed in each hit."""
    row, rank = np.nonzero(ranking.positions >= 0)
    at = ranking.positions[row, rank]
    columns = [
        [RetrieverScore(name, score) for score in matrix[row, at].tolist()]
        for name, matrix in parts.items()
    ]
    positive = [tuple([part for part in one if part.score > 0]) for one in zip(*columns)]
    scores = ranking.scores[row, rank].tolist()
    hits = [
        Hit(ids[document], score, one)
        for document, score, one in zip(at.tolist(), scores, positive or [()] * len(row))
    ]
    ends = np.cumsum(np.bincount(row, minlength=len(ranking.positions))).tolist()
    return [tuple(hits[start:end]) for start, end in zip([0, *ends], ends)]


def name_parts(name: str, hits: Sequence[Sequence[Hit]]) -> HitLists:
    """The hits with their score as the part `name`, if a store returned a score without parts."""
    return [tuple([_with_part(name, hit) for hit in row]) for row in hits]


def _with_part(name: str, hit: Hit) -> Hit:
    if hit.parts or hit.score is None:
        return hit
    # dataclasses.replace is ten times slower, and this runs for every hit of every search.
    return Hit(hit.doc_id, hit.score, (RetrieverScore(name, hit.score),), hit.matched, hit.relaxed)


def cap_scores(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The hits in this order, no score above the one before it; parts keep their scores."""
    capped: list[Hit] = []
    for hit in hits:
        last = capped[-1].score if capped else None
        above = last is not None and hit.score is not None and hit.score > last
        capped.append(replace(hit, score=last) if above else hit)
    return tuple(capped)


def question_blocks(questions: Sized, documents: int) -> Iterator[slice]:
    """Slices of the questions whose score rows together fit into BLOCK_BYTES."""
    size = max(1, BLOCK_BYTES // (4 * max(documents, 1)))
    for start in range(0, len(questions), size):
        yield slice(start, min(start + size, len(questions)))


def filter_masks(corpus: Corpus, filters: Filters) -> Mask | None:
    """Which documents each question may find: (questions, documents), or None without a filter."""
    if not filters or not any(filters):
        return None
    masks = {one: corpus.mask(one) for one in set(filters)}
    return np.stack([masks[one] for one in filters])
