"""Make the shipped word table: `python -m
suffice_research.training.word_table`.

It comes from wordllama's token table. It contains the words that are one whole token there. That
vocabulary is sorted by frequency, so a token's position shows how rare the word is; its vector is
weighted by that, since a sum over a text should reflect what the text is about. The first
dimensions carry most information (the table was trained that way), and using fewer of them keeps
the file small.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import wordllama
from safetensors import safe_open

from suffice.gate.question import SHIPPED_WORD_TABLE, WORD_TABLE_KIND, WORD_TABLE_VERSION
from suffice.storage import new_artefact, sha256_of

__all__ = ["make"]

DIMENSIONS = 128
COMMONEST = 250  # positions that are letters and bytes, before the first word
SIZE = 32_000
STEPS = 4096
_FOLDER = Path(wordllama.__file__).parent
TOKENS = _FOLDER / "tokenizers" / "l2_supercat_tokenizer_config.json"
WEIGHTS = _FOLDER / "weights" / "l2_supercat_256.safetensors"


def rarity(place: int) -> float:
    """From 0.0025 (the most frequent words) to 1 (the last in the vocabulary).

    In whole steps, so that sums over a question's words are exact in float32: the same in any
    order, on any machine.
    """
    return (
        round(
            STEPS * min(1.0, max(0.05, math.log(max(place - COMMONEST, 2)) / math.log(SIZE))) ** 2
        )
        / STEPS
    )


def places(vocabulary: dict[str, int]) -> dict[bytes, int]:
    """Each word in lower case with the position of its token; a lower-case token takes precedence
    over a capitalized one.
    """
    found: dict[bytes, int] = {}
    for token, place in sorted(vocabulary.items(), key=lambda item: item[1]):
        word, key = token[1:], token[1:].lower().encode()
        if (
            token[0] == "▁"
            and len(word) > 1
            and word.isalpha()
            and (key not in found or word.islower())
        ):
            found[key] = place
    return found


def make(path: Path = SHIPPED_WORD_TABLE) -> None:
    """Write the table to `path`: words.npy, rarity.npy and vectors.npy, in the same order."""
    found = places(json.loads(TOKENS.read_text(encoding="utf-8"))["model"]["vocab"])
    with safe_open(WEIGHTS, framework="np") as stream:
        table = stream.get_tensor(next(iter(stream.keys())))
    rare = np.array([rarity(place) for place in found.values()], dtype=np.float32)
    weighed = table[list(found.values()), :DIMENSIONS].astype(np.float32) * rare[:, None]
    inputs = {one.name: sha256_of(one) for one in (TOKENS, WEIGHTS)}
    with new_artefact(
        path,
        kind=WORD_TABLE_KIND,
        version=WORD_TABLE_VERSION,
        settings={"dimensions": DIMENSIONS},
        inputs=inputs,
    ) as draft:
        np.save(draft / "words.npy", np.array(list(found)), allow_pickle=False)
        np.save(draft / "rarity.npy", rare, allow_pickle=False)
        np.save(draft / "vectors.npy", weighed.astype(np.float16), allow_pickle=False)


if __name__ == "__main__":
    make()
    print(
        f"{SHIPPED_WORD_TABLE}: "
        f"{sum(one.stat().st_size for one in SHIPPED_WORD_TABLE.iterdir()) / 2**20:.2f} MiB"
    )
