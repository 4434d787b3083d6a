"""Encoders: texts as unit vectors.

The default encoder is wordllama: static word-piece vectors that ship with its package and need only
numpy. `BlockEncoder` encodes in blocks, in this process or on other machines.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import MissingExtraError, NotReadyError
from suffice.jobs import Job, JobRunner, split_into_blocks
from suffice.protocols import Encoder, Progress
from suffice.registry import ENCODERS
from suffice.retrieval.corpus import RaggedRows
from suffice.retrieval.ranking import (
    Scores,
)

BATCH = 1024  # texts whose words WordLlamaEncoder counts at once
BLOCK_TEXTS = 256  # texts per block of a BlockEncoder
MAX_WORD_CHARS = 256  # longer runs of letters are split: the tokenizer is slower than linear
MAX_GATHERED = 4096  # word vectors summed at once
PROBE = ("Ada Lovelace was taught by Augustus De Morgan.", "Who taught the teacher of Ada?")

Floats = npt.NDArray[np.floating[Any]]


def unit_vectors(vectors: npt.NDArray[Any]) -> Scores:
    """Each row normalized to length one, float32; a row of zeros stays zero."""
    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Scores = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return scaled


class WordLlamaEncoder:
    """The mean of a text's word-piece vectors, normalized. Whitespace has no effect.

    The mean is a sum of word vectors: each distinct word of a batch is tokenized once, and a text
    costs no more than counting its words.
    """

    name = "wordllama"
    dimension = 256

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Scores:
        """(texts, 256); a text without words gives zeros. Questions are encoded like documents."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            vectors[start : start + len(batch)] = unit_vectors(self._text_sums(batch))
        return vectors

    def encode_words(self, words: Sequence[str]) -> Scores:
        """(words, 256): see `suffice.retrieval.word_vectors`."""
        return unit_vectors(self._word_sums([word[:MAX_WORD_CHARS] for word in words]))

    def _text_sums(self, texts: Sequence[str]) -> Scores:
        counts = [Counter(_words(text)) for text in texts]
        codes: dict[str, int] = {}
        flat = [codes.setdefault(word, len(codes)) for one in counts for word in one]
        words = RaggedRows.from_sizes([len(one) for one in counts], np.array(flat, np.int64))
        weights = np.array([count for one in counts for count in one.values()], np.float32)
        return _weighted_sums(self._word_sums(list(codes)), words, weights)

    def _word_sums(self, words: list[str]) -> Scores:
        """The sum of each word's piece vectors: (words, 256)."""
        tokenizer, embedding = self._model
        encoded = tokenizer.encode_batch(words, add_special_tokens=False)
        ids = [one.ids for one in encoded]
        flat = np.array([piece for word in ids for piece in word], np.int64)
        pieces = RaggedRows.from_sizes([len(word) for word in ids], flat)
        return _weighted_sums(embedding, pieces, np.ones(len(flat), np.float32))

    @cached_property
    def _model(self) -> tuple[Any, Scores]:
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        try:
            import wordllama  # lazy: slow to import
        except ModuleNotFoundError as error:
            raise MissingExtraError("searching by vectors of wordllama", extra="vectors") from error

        root.handlers[:] = handlers  # importing it reconfigures the root logger
        root.setLevel(level)
        return _load_wordllama(Path(str(wordllama.__file__)).parent)


@cache  # shared in a process: loading takes longer than encoding a thousand texts
def _load_wordllama(folder: Path) -> tuple[Any, Scores]:
    import wordllama

    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    model.tokenizer.no_padding()
    return model.tokenizer, model.embedding


def _words(text: str) -> Iterator[str]:
    # A lone surrogate, from broken JSON escapes, would stop the tokenizer.
    for word in text.encode("utf-8", "replace").decode("utf-8").split():
        yield from (
            word[start : start + MAX_WORD_CHARS] for start in range(0, len(word), MAX_WORD_CHARS)
        )


def _weighted_sums(vectors: Scores, rows: RaggedRows, weights: Scores) -> Scores:
    """For each row, the weighted sum of its vectors, added one by one: (rows, dimension)."""
    sums = np.zeros((len(rows), vectors.shape[1]), np.float32)
    sizes = np.diff(rows.starts)
    for size in np.unique(sizes[sizes > 0]).tolist():  # rows of one size are summed together
        same = np.flatnonzero(sizes == size)
        for start in range(0, len(same), step := max(1, MAX_GATHERED // size)):
            chosen = same[start : start + step]
            for first in range(0, size, MAX_GATHERED):
                inside = np.arange(first, min(first + MAX_GATHERED, size))
                at = rows.starts[chosen, None] + inside
                part, weight = vectors[rows.values[at]], weights[at]
                if first:  # a very long row continues from the sum so far
                    part = np.concatenate([sums[chosen, None], part], axis=1)
                    weight = np.pad(weight, ((0, 0), (1, 0)), constant_values=1)
                sums[chosen] = np.einsum("rn,rnd->rd", weight, part)
    return sums


ENCODERS.add("wordllama", WordLlamaEncoder)


@dataclass(frozen=True)
class PortableEncoder:
    """An encoder by name, opened in each process; the loaded model is not pickled."""

    name: str
    fingerprint: str  # a hash of its vectors for PROBE
    loaded: Encoder | None = None

    @classmethod
    def of(cls, name: str, encoder: Encoder) -> PortableEncoder:
        return cls(name, _fingerprint(encoder), encoder)

    def open(self) -> Encoder:
        """NotReadyError if the encoder of this name gives different vectors here."""
        if self.loaded is not None:
            return self.loaded
        encoder = ENCODERS.get(self.name)()
        if _fingerprint(encoder) != self.fingerprint:
            raise NotReadyError(
                f"the encoder {self.name!r} gives other vectors here",
                hint="install the same models and packages there and here",
            )
        return encoder

    def __reduce__(self) -> tuple[Any, ...]:
        return PortableEncoder, (self.name, self.fingerprint)


def _fingerprint(encoder: Encoder) -> str:
    vectors = np.asarray(encoder.encode(PROBE), dtype=np.float32)
    return hashlib.sha256(vectors.tobytes()).hexdigest()


class BlockEncoder:
    """An Encoder that encodes in blocks, wherever `run` runs them; `name` is as registered."""

    def __init__(
        self, name: str, encoder: Encoder, run: JobRunner, progress: Progress | None = None
    ) -> None:
        self.name, self.dimension = name, encoder.dimension
        self._encoder, self._run = PortableEncoder.of(name, encoder), run
        self._progress = progress

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        """(texts, dimension), float32."""
        key = f"{self.name} {self._encoder.fingerprint} {query}"
        encode = partial(_encode_block, query=query)
        job = Job("encoding", encode, self._encoder, PortableEncoder.open, key=key)
        blocks = [np.zeros((0, self.dimension), np.float32)]
        done = 0
        for vectors in self._run(job, split_into_blocks(texts, BLOCK_TEXTS, chars=len)):
            blocks.append(vectors)
            done += len(vectors)
            if self._progress is not None:
                self._progress("encoding", done, len(texts))
        return np.concatenate(blocks)


def _encode_block(texts: Sequence[str], encoder: Encoder, *, query: bool) -> Floats:
    return np.asarray(encoder.encode(texts, query=query), dtype=np.float32)
