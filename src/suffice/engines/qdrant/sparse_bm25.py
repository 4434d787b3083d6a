"""BM25 as sparse vectors: the document's part and the question's part, whose product is the score.

A document stores tf / (tf + k1 (1 - b + b length / mean)) for each word; the question contributes
the IDF from `collection_stats`. So the score is Lucene's BM25 over the whole collection, however it
is sharded; the server's own IDF would be per shard. `mean` is the mean length at the time of
writing.

A word is identified by its CRC-32. Among a million words, about 116 pairs collide and count for
each other.
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.lexicon import STOP_WORDS
from suffice.retrieval.corpus import searchable_text
from suffice.text import tokens
from suffice.types import Document

__all__ = ["TermCounts", "bm25_weights", "counts_from_weights", "document_terms", "question_terms"]

K1, B = 1.2, 0.75

TermIds = npt.NDArray[np.uint32]
Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TermCounts:
    """The words of a text: ascending ids, how often each occurs, and the number of words."""

    ids: TermIds
    counts: Weights
    length: int


def document_terms(document: Document) -> TermCounts:
    words = [word for word in tokens(searchable_text(document)) if word not in STOP_WORDS]
    counted = Counter(map(_term_id, words))
    ids = sorted(counted)
    counts = np.array([counted[one] for one in ids], dtype=np.float64)
    return TermCounts(np.array(ids, dtype=np.uint32), counts, len(words))


def question_terms(question: str) -> TermIds:
    """The ids of a question's words, each once, without stop words."""
    ids = {_term_id(word) for word in set(tokens(question)) - STOP_WORDS}
    return np.array(sorted(ids), dtype=np.uint32)


def bm25_weights(counts: npt.NDArray[Any], length: int, mean: float) -> Weights:
    """The document's part of BM25."""
    return np.asarray(counts / (counts + _norm(length, mean)))


def counts_from_weights(weights: npt.NDArray[Any], length: int, mean: float) -> Weights:
    """Word counts recovered from weights; inexact above some hundred, where weights are near 1."""
    counts = weights * _norm(length, mean) / np.maximum(1 - weights, 1e-7)
    return np.asarray(np.maximum(np.round(counts), 1))


def _norm(length: int, mean: float) -> float:
    return K1 * (1 - B + B * length / max(mean, 1.0))


def _term_id(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "replace"))
