"""Static word vectors and word rarity by look-up: no tokeniser runs at check time.

The table ships with the package and is made by `python -m training.words` from wordllama's tokens. A word that is not in it has
no vector and is as rare as can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.assess.folding import QUIET
from suffice.errors import DataError
from suffice.files import open_artefact
from suffice.files.weights import read_array

__all__ = ["KIND", "ORDINARY", "SHIPPED", "VERSION", "Words"]

Floats = npt.NDArray[np.floating[Any]]
KIND, VERSION = "table of words", 1
REBUILD = "python -m training.words"
ORDINARY = 0.05  # rarity of every quiet word
_UNKNOWN = repeat(1.0)
_SHORTEST = np.float32(1e-12)  # nothing has no direction: zero, not a division by it
_LARGEST = 1e4  # vectors are about as long as one, rarities are shares
SHIPPED = Path(__file__).parent.parent / "models" / "words"


class Words:
    """A vocabulary with a vector and a rarity per word. Words are folded: lower-case UTF-8 bytes.

    A rarity is from 0 (everywhere) to 1 (unknown). A plural is as rare as its singular, and words that no question is about
    ("the", "which") are all ORDINARY.
    """

    def __init__(self, words: Sequence[bytes], rarity: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        known = dict(zip(words, np.asarray(rarity, dtype=float).tolist(), strict=True))
        plurals = {word + b"s": rare for word, rare in known.items()}
        self._rarity = {**plurals, **known, **dict.fromkeys(QUIET, ORDINARY)}
        self._row = dict(zip(words, range(1, len(words) + 1), strict=True))
        given = np.asarray(vectors)
        self._vectors = np.concatenate([np.zeros((1, given.shape[1]), dtype=given.dtype), given])  # row 0 is nothing

    @classmethod
    def load(cls, path: Path = SHIPPED) -> Words:
        open_artefact(path, kind=KIND, version=VERSION, rebuild=REBUILD)
        words, rarity, vectors = (
            read_array(path / f"{name}.npy", largest=_LARGEST, hint=REBUILD) for name in ("words", "rarity", "vectors")
        )
        kinds, shapes = [one.dtype.kind for one in (words, rarity, vectors)], (words.shape, rarity.shape, vectors.shape[:1])
        if kinds != ["S", "f", "f"] or set(shapes) != {words.shape[:1]} or vectors.ndim != 2:
            raise DataError(f"the arrays in {path} do not fit together", hint=REBUILD)
        return cls(words.tolist(), rarity, vectors)

    def __len__(self) -> int:
        return len(self._row)

    @property
    def dimensions(self) -> int:
        return int(self._vectors.shape[1])

    def rarities(self, words: Iterable[bytes]) -> list[float]:
        return list(map(self._rarity.get, words, _UNKNOWN))

    def vectors(self, bags: Sequence[Sequence[bytes]]) -> Floats:
        """A unit vector per bag of words: (bags, dimensions), float32; without a known word, zero."""
        if not bags:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        rows: list[int] = []
        starts = []
        for bag in bags:
            starts.append(len(rows))
            rows.append(0)  # reduceat needs something in every bag
            rows += filter(None, map(self._row.get, bag))
        sums = np.add.reduceat(self._vectors.take(rows, axis=0), starts, axis=0, dtype=np.float32)
        norms = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        return np.asarray(sums / np.maximum(norms, _SHORTEST)[:, None])
