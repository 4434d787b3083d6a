"""Static word vectors and word rarity by look-up: no tokeniser runs at check time.

The table ships with the package and is made by `python -m training.words` from wordllama's tokens. A word that is not in it has
no vector and is as rare as can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.files import open_artefact

__all__ = ["KIND", "SHIPPED", "VERSION", "Words"]

Floats = npt.NDArray[np.floating[Any]]
KIND, VERSION = "table of words", 1
SHIPPED = Path(__file__).parent.parent / "models" / "words"


class Words:
    """A vocabulary with a vector and a rarity per word. Words are folded: lower-case UTF-8 bytes."""

    def __init__(self, words: Sequence[bytes], rarity: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        self._rarity = dict(zip(words, np.asarray(rarity, dtype=float).tolist(), strict=True))
        self._row = dict(zip(words, range(1, len(words) + 1), strict=True))  # row 0 is every unknown word: nothing
        table = np.asarray(vectors, dtype=np.float32)
        self._vectors = np.vstack([np.zeros((1, table.shape[1]), dtype=np.float32), table])

    @classmethod
    def load(cls, path: Path = SHIPPED) -> Words:
        open_artefact(path, kind=KIND, version=VERSION, rebuild="python -m training.words")
        words, rarity, vectors = (np.load(path / f"{name}.npy", allow_pickle=False) for name in ("words", "rarity", "vectors"))
        return cls(words.tolist(), rarity, vectors)

    def __len__(self) -> int:
        return len(self._row)

    @property
    def dimensions(self) -> int:
        return int(self._vectors.shape[1])

    def rarity(self, word: bytes) -> float:
        """From 0 (everywhere) to 1 (unknown). A plural is as rare as its singular."""
        known = self._rarity.get(word)
        if known is None and word.endswith(b"s"):
            known = self._rarity.get(word[:-1])
        return 1.0 if known is None else known

    def vectors(self, bags: Sequence[Sequence[bytes]]) -> Floats:
        """A unit vector per bag of words: (bags, dimensions), float32; without a known word, zero."""
        if not bags:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        row_of = self._row.get
        rows: list[int] = []
        starts = []
        for bag in bags:
            starts.append(len(rows))
            rows.append(0)  # reduceat needs something in every bag
            rows += filter(None, map(row_of, bag))
        sums = np.add.reduceat(self._vectors.take(rows, axis=0), starts, axis=0)
        norms = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        norms[norms == 0] = 1.0
        return np.asarray(sums / norms[:, None], dtype=np.float32)
