"""Encoders and rerankers that read no text twice, for gates that are fitted on several folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.protocols import Encoder, Progress, Reranker, component_name

__all__ = ["CachedEncoder", "CachedReranker"]

Floats = npt.NDArray[np.floating[Any]]
BATCH = 256


class CachedEncoder:
    """The same vectors as the encoder's, each computed once."""

    def __init__(self, encoder: Encoder, *, progress: Progress | None = None) -> None:
        self.encoder, self.progress = encoder, progress
        self.name, self.dimension = encoder.name, encoder.dimension
        self._vectors: dict[tuple[str, bool], Floats] = {}

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        fresh = [text for text in dict.fromkeys(texts) if (text, query) not in self._vectors]
        for start in range(0, len(fresh), BATCH):
            some = fresh[start : start + BATCH]
            vectors = np.asarray(self.encoder.encode(some, query=query), dtype=np.float32)
            self._vectors |= {(text, query): row for text, row in zip(some, vectors)}
            if self.progress is not None:
                self.progress("encoding", min(start + BATCH, len(fresh)), len(fresh))
        rows = [self._vectors[text, query] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), np.float32)


class CachedReranker:
    """The same scores as the cross-encoder's, each pair of question and text read once."""

    def __init__(self, reranker: Reranker) -> None:
        self.reranker, self.name = reranker, component_name(reranker)
        self._scores: dict[tuple[str, str], float] = {}

    def score(self, question: str, texts: Sequence[str]) -> Floats:
        fresh = [text for text in dict.fromkeys(texts) if (question, text) not in self._scores]
        if fresh:
            scores = map(float, self.reranker.score(question, fresh))
            self._scores |= {(question, text): one for text, one in zip(fresh, scores, strict=True)}
        return np.array([self._scores[question, text] for text in texts], dtype=np.float32)
