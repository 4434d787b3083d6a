"""A question, read once for any number of hits: what it names, and what it asks about."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.assess import folding
from suffice.assess.folding import QUIET
from suffice.assess.words import Words

__all__ = ["Asked", "ask"]

Floats = npt.NDArray[np.floating[Any]]
# Bounds on the time that a hostile question can take; a longer one repeats itself.
MAX_CHARS = 4_000
MAX_WORDS = 24  # content words that are looked for
MAX_NAMES = 24


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, read: its folded text, content words with their stems and rarity, and the names and numbers in it."""

    flat: bytes
    tokens: list[bytes]
    content: list[bytes]
    stems: list[bytes]
    rarity: Floats  # (content,)
    names: list[bytes]  # folded, between two spaces
    numbers: list[bytes]  # between two spaces
    written: dict[bytes, str]  # the names as they stand in the question


def ask(question: str, words: Words) -> Asked:
    """Read a question once, for any number of hits."""
    raw, flat = folding.both(question[:MAX_CHARS])
    tokens = flat.split()
    content = list(dict.fromkeys([word for word in tokens if word not in QUIET and len(word) > 1]))[:MAX_WORDS]
    names = list(islice(folding.names(flat, folding.name_spans(raw, folding.name_runs(raw))), MAX_NAMES))
    return Asked(
        flat,
        tokens,
        content,
        [folding.stem(word) for word in content],
        np.array([words.rarity(word) for word in content], dtype=np.float32),
        [name.key for name in names],
        [b" " + word + b" " for word in content if word.isdigit()],
        {name.key: folding.written(raw, name) for name in names},
    )
