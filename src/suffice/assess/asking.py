"""A question, read once for any number of hits: what it names, and what it asks about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from suffice.assess import folding
from suffice.assess.folding import QUIET
from suffice.assess.words import Words

__all__ = ["Asked", "ask"]

# Bounds on the time that a hostile question can take; a longer one repeats itself.
MAX_CHARS = 4_000
MAX_WORDS = 24  # content words that are looked for
MAX_NAMES = 24


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, read: its folded text, content words with their stems and rarity, and the names and numbers in it."""

    flat: bytes  # folded, with one space between words
    tokens: list[bytes]
    content: list[bytes]
    stems: list[bytes]
    rarity: list[float]  # of the content words
    names: list[bytes]  # folded, between two spaces
    numbers: list[bytes]  # between two spaces
    written: dict[bytes, str]  # the names as they stand in the question
    form: bytes  # `flat` with NAME for each name: how it asks, not what about
    meant: npt.NDArray[np.float32] | None = None  # its vector, where an encoder looks too


def ask(question: str, words: Words) -> Asked:
    """Read a question once, for any number of hits."""
    raw = folding.plain(question[:MAX_CHARS])
    tokens = folding.fold(raw).split()
    content = [word for word in dict.fromkeys(tokens) if word not in QUIET and len(word) > 1][:MAX_WORDS]
    names = dict(islice(folding.names(folding.name_runs(raw)).items(), MAX_NAMES))
    flat = b" %b " % b" ".join(tokens)
    return Asked(
        flat,
        tokens,
        content,
        list(map(folding.stem, content)),
        words.rarities(content),
        list(names),
        [b" " + word + b" " for word in content if word.isdigit()],
        {name: folding.written(run) for name, run in names.items()},
        _masked(flat, names),
    )


def _masked(flat: bytes, names: Iterable[bytes]) -> bytes:
    for name in sorted(names, key=len, reverse=True):
        flat = flat.replace(name, b" NAME ")
    return flat
