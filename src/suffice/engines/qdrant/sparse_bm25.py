"""BM25 as sparse vectors: a document's half and the question's half of the score, whose inner product is the whole.

A document keeps, for each word, tf / (tf + k1 (1 - b + b length / mean)). The question brings the words' IDF, from frequencies
that we hold ourselves (`facts`): so the score is Lucene's BM25 over the whole collection, however it is sharded, where the
server's own IDF would be each shard's. `mean` is the mean length at the time of writing; `facts` says when it is made anew.

A word is known by the CRC-32 of its letters. Among a million words about 116 pairs share a number and count for one another.
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

__all__ = [
    "K1",
    "B",
    "TermCounts",
    "TermIds",
    "bm25_weights",
    "counts_from_weights",
    "document_terms",
    "question_terms",
]

K1, B = 1.2, 0.75

TermIds = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class TermCounts:
    """The words of a text: their numbers, each once and rising, how often each stands there, and how many words there are."""

    numbers: TermIds
    counts: npt.NDArray[np.float64]
    length: int


def document_terms(document: Document) -> TermCounts:
    said = Counter(word for word in tokens(searchable_text(document)) if word not in STOP_WORDS)
    counted: Counter[int] = Counter()
    for word, count in said.items():
        counted[_term_id(word)] += count
    numbers = np.array(sorted(counted), dtype=np.uint32)
    return TermCounts(
        numbers,
        np.array([counted[one] for one in numbers.tolist()], dtype=np.float64),
        said.total(),
    )


def question_terms(question: str) -> TermIds:
    """The numbers of a question's words, each once; stop words say nothing."""
    return np.array(
        sorted({_term_id(word) for word in set(tokens(question)) - STOP_WORDS}), dtype=np.uint32
    )


def bm25_weights(counts: npt.NDArray[Any], length: int, mean: float) -> npt.NDArray[np.float64]:
    """The documents' half of BM25."""
    return np.asarray(counts / (counts + _norm(length, mean)))


def counts_from_weights(
    weights: npt.NDArray[Any], length: int, mean: float
) -> npt.NDArray[np.float64]:
    """How often the words stood in the text, from the weights that were made of it. Past some hundred it is a guess, and no
    matter: the weight is almost 1 then, whatever the mean."""
    return np.asarray(
        np.maximum(np.round(weights * _norm(length, mean) / np.maximum(1 - weights, 1e-7)), 1)
    )


def _norm(length: int, mean: float) -> float:
    return K1 * (1 - B + B * length / max(mean, 1.0))


def _term_id(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "replace"))
