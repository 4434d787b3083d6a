"""BM25 as sparse vectors: the document's part and the question's part, whose product is the score.

A document stores tf / (tf + k1 (1 - b + b length / mean)) for each word. The question has a 1 for
each of its words, which the server multiplies by the word's IDF in the shard it searches. `mean` is
the mean length of the first documents of a collection.

A word is identified by its CRC-32. Among a million words, about 116 pairs collide and count for
each other.
"""

from __future__ import annotations

import zlib
from collections import Counter
from typing import TYPE_CHECKING

from suffice.lexicon import STOP_WORDS
from suffice.retrieval.corpus import searchable_text
from suffice.text import tokens
from suffice.types import Document

if TYPE_CHECKING:
    from qdrant_client.models import SparseVector

__all__ = ["document_vector", "document_words", "question_vector"]

K1, B = 1.2, 0.75


def document_words(document: Document) -> list[str]:
    return [word for word in tokens(searchable_text(document)) if word not in STOP_WORDS]


def document_vector(words: list[str], mean: float) -> SparseVector:
    """The document's part of BM25."""
    norm = K1 * (1 - B + B * len(words) / mean)
    return _sparse_vector({term: n / (n + norm) for term, n in _count_terms(words).items()})


def question_vector(question: str) -> SparseVector:
    """A 1 for each word of the question, without stop words."""
    return _sparse_vector(dict.fromkeys(_count_terms(set(tokens(question)) - STOP_WORDS), 1.0))


def _count_terms(words: list[str] | set[str]) -> Counter[int]:
    return Counter(zlib.crc32(word.encode("utf-8", "replace")) for word in words)


def _sparse_vector(weights: dict[int, float]) -> SparseVector:
    from qdrant_client.models import SparseVector  # lazy: slow to import, and an extra

    return SparseVector(indices=list(weights), values=list(weights.values()))
