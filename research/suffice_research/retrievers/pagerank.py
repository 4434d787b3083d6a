"""Personalised PageRank over mention links.

As in HippoRAG, but the graph consists of mentions, so no model is needed to build it. A walk starts
at the documents whose titles the question names and at the best hits, follows links in both
directions, and sometimes restarts. All questions in a batch walk at once: a step is one sparse
product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from suffice.errors import InputError
from suffice.protocols import Retriever
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.links import MentionLinks, TitleIndex, named_titles
from suffice.retrieval.ranking import Scores, question_blocks
from suffice.types import Hit

__all__ = ["PageRank"]

Floats = npt.NDArray[np.floating[Any]]
RESTART = 0.5  # HippoRAG's: short walks, as chains of evidence are short
STEPS = 24  # after these, the first step's remainder weighs less than 1e-7
NAMED = 0.5  # share of the start for named titles, if there are any


class PageRank:
    """A signal: the probability that a question's walk is at each document."""

    def __init__(
        self,
        corpus: Corpus,
        seeds: Retriever,
        mentions: MentionLinks,
        titles: TitleIndex,
        *,
        restart: float = RESTART,
        depth: int = 20,
        name: str = "ppr",
    ) -> None:
        if not 0 < restart <= 1:
            raise InputError(
                f"restart is {restart!r}, expected a share above 0 and at most 1",
                hint="for example 0.5",
            )
        self.name, self.seeds, self.titles, self.restart, self.depth = (
            name,
            seeds,
            titles,
            restart,
            depth,
        )
        self._position = corpus.position
        self._step = _step_matrix(mentions, self._position)

    def scores(self, questions: Sequence[str]) -> Scores:
        """(questions, documents), rows that sum to 1, or to 0 if no document matches."""
        scores = np.zeros((len(questions), len(self._position)), np.float32)
        for block in question_blocks(questions, len(self._position)):
            scores[block] = self._walk(self._starts(questions[block])).T
        return scores

    def _starts(self, questions: Sequence[str]) -> Floats:
        """Where each walk starts: (documents, questions), columns that sum to 1 or 0."""
        start = np.zeros((len(self._position), len(questions)))
        found = self.seeds.search(questions, k=self.depth)
        named = named_titles(questions, self.titles)
        for at, (hits, titles) in enumerate(zip(found, named, strict=True)):
            shares = _shares(hits)
            known = [self._position[one] for one in titles if one in self._position]
            of_named = 0.0 if not known else NAMED if shares else 1.0
            for row in known:
                start[row, at] += of_named / len(known)
            for hit, share in zip(hits, shares):
                if hit.doc_id in self._position:
                    start[self._position[hit.doc_id], at] += (1 - of_named) * share
        return start

    def _walk(self, start: Floats) -> Floats:
        here = start
        for _ in range(STEPS if self.restart < 1 else 0):
            moved = self._step @ here
            # A walk that reaches a document without links restarts.
            moved += start * (here.sum(axis=0) - moved.sum(axis=0))
            here = self.restart * start + (1 - self.restart) * moved
        return here


def _step_matrix(mentions: MentionLinks, place: dict[str, int]) -> sparse.csr_matrix:
    """A step along a link in either direction: (to, from), columns that sum to 1 or 0."""
    row = np.repeat(np.arange(len(mentions.ids)), np.diff(mentions.starts))
    where = np.array([place.get(doc_id, -1) for doc_id in mentions.ids], dtype=np.int64)
    ends = (
        np.stack([where[row], where[mentions.targets]]) if len(row) else np.zeros((2, 0), np.int64)
    )
    ends = ends[:, (ends >= 0).all(axis=0)]
    ones = np.ones(2 * ends.shape[1])
    joined = sparse.csr_matrix(
        (ones, (np.r_[ends[0], ends[1]], np.r_[ends[1], ends[0]])), shape=(len(place), len(place))
    )
    joined.data[:] = 1  # documents that name each other count once
    degree = np.asarray(joined.sum(axis=0)).ravel()
    scale = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    return sparse.csr_matrix(joined @ sparse.diags(scale))


def _shares(hits: Sequence[Hit]) -> list[float]:
    """Each hit's share of the start, by score; by reciprocal rank if scores are missing or 0."""
    scores = [max(hit.score or 0.0, 0.0) for hit in hits]
    if any(hit.score is None for hit in hits) or not sum(scores):
        scores = [1 / rank for rank in range(1, len(hits) + 1)]
    total = sum(scores)
    return [score / total for score in scores]
