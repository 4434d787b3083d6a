"""Vectors of single words: how much of a question the words of a text cover by meaning.

A text that says "marriage" partly covers the "wedding" of a question. Static vectors are enough for
this: each distinct word is looked up once, and a batch of texts costs one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from suffice.protocols import Encoder

Floats = npt.NDArray[np.float32]

KEPT = 20_000  # word vectors cached between questions: 20 MB; when full, the newest half stays
UNLIKE = 0.3  # words with a lower cosine have nothing in common


@runtime_checkable
class WordEncoder(Protocol):
    """An encoder that can encode single words without their sentence."""

    def encode_words(self, words: Sequence[str]) -> Floats:
        """Unit vectors: (words, dimension)."""
        ...


class WordVectors:
    """The vectors of words seen so far."""

    def __init__(self, encoder: WordEncoder) -> None:
        self._encoder = encoder
        self._known: dict[str, Floats] = {}

    @classmethod
    def of(cls, encoder: Encoder) -> WordVectors | None:
        """None for an encoder of sentences: encoding a single word would cost it as much."""
        return cls(encoder) if isinstance(encoder, WordEncoder) else None

    def likeness(self, asked: Sequence[str], texts: Sequence[str]) -> Floats:
        """The similarity of each asked word to the most similar word of a text, from 0 to 1:
        (texts, asked).

        Texts are words between blanks.
        """
        words = [list(dict.fromkeys(text.split())) for text in texts]
        distinct = {word: at for at, word in enumerate(dict.fromkeys(chain.from_iterable(words)))}
        result = np.zeros((len(texts), len(asked)), np.float32)
        if not distinct or not asked:
            return result
        vectors = self._of([*asked, *distinct])
        cosines = vectors[len(asked) :] @ vectors[: len(asked)].T
        like = np.clip((cosines - UNLIKE) / (1 - UNLIKE), 0, 1)
        for at, some in enumerate(words):
            if some:
                result[at] = like[[distinct[word] for word in some]].max(axis=0)
        return result

    def _of(self, words: Sequence[str]) -> Floats:
        known = self._known  # other threads may add to it or replace it
        found = {word: known.get(word) for word in words}
        if new := [word for word, vector in found.items() if vector is None]:
            vectors: dict[str, Floats] = dict(zip(new, self._encoder.encode_words(new)))
            found |= vectors
            if len(known) + len(new) > KEPT:
                newest = list((known | vectors).items())[-KEPT // 2 :]
                self._known = dict(newest)
            else:
                known.update(vectors)
        rows = [vector for vector in map(found.__getitem__, words) if vector is not None]
        return np.concatenate(rows).reshape(len(words), -1)  # much faster than np.array
