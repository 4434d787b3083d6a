"""Dense retrieval: texts as unit vectors, and exact search among them by matrix products.

The default encoder is wordllama: static word-piece vectors that come with its package, numpy alone, no network. Vectors may be
float16 and memory-mapped: they are read in blocks, so that a search holds a block and the best k, never the whole matrix.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from suffice.errors import InputError, NotReadyError
from suffice.jobs import Job, JobRunner, split_into_blocks
from suffice.protocols import Encoder, Progress, Store, StoreQuery
from suffice.registry import ENCODERS
from suffice.retrieval.corpus import Mask
from suffice.retrieval.ranking import Ranking, Scores, Signal, check_search, name_parts, top_k
from suffice.retrieval.store_checks import similarity
from suffice.types import Filter, Hit

__all__ = [
    "BlockEncoder",
    "DenseProxy",
    "PortableEncoder",
    "VectorSearch",
    "WordLlamaEncoder",
    "nearest_vectors",
    "unit_vectors",
]


BLOCK_ROWS = 65_536
_BATCH = 1024
_PIECE = 256  # longest run of letters that is cut into word pieces at once: cutting takes more than linear time


def unit_vectors(vectors: npt.NDArray[Any]) -> Scores:
    """Each row at length one, float32; a row of zeros stays one."""
    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Scores = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return scaled


class WordLlamaEncoder:
    """The mean of a text's word-piece vectors, at length one. Spaces carry no meaning; their number and kind do not count.

    The mean is a sum of word vectors, so each distinct word of a batch is cut into pieces once, and a text of any length costs
    no more than counting its words.
    """

    name = "wordllama"
    dimension = 256

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Scores:
        """(texts, 256); a text without a word gives a zero vector. Questions and documents are encoded alike."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            vectors[start : start + len(batch)] = unit_vectors(self._sums(batch))
        return vectors

    def _sums(self, texts: Sequence[str]) -> Scores:
        codes: dict[str, int] = {}
        columns: list[int] = []
        counts: list[int] = []
        starts = [0]
        for text in texts:
            for word, count in Counter(_words(text)).items():
                columns.append(codes.setdefault(word, len(codes)))
                counts.append(count)
            starts.append(len(columns))
        words = sparse.csr_matrix(
            (np.array(counts, np.float32), columns, starts), shape=(len(texts), len(codes))
        )
        return np.asarray(words @ self._word_vectors(list(codes)), dtype=np.float32)

    def _word_vectors(self, words: list[str]) -> Scores:
        """The sum of each word's piece vectors: (words, 256)."""
        tokenizer, embedding = self._model
        cut = [encoding.ids for encoding in tokenizer.encode_batch(words, add_special_tokens=False)]
        starts = np.cumsum([0, *map(len, cut)])
        pieces = np.fromiter((piece for word in cut for piece in word), np.int64, starts[-1])
        ones = np.ones(len(pieces), np.float32)
        chosen = sparse.csr_matrix((ones, pieces, starts), shape=(len(words), len(embedding)))
        return np.asarray(chosen @ embedding, dtype=np.float32)

    @cached_property
    def _model(self) -> tuple[Any, Scores]:
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        import wordllama  # late: slow to import

        root.handlers[:] = handlers  # importing it configures everybody's logging
        root.setLevel(level)
        folder = Path(str(wordllama.__file__)).parent
        model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
        model.tokenizer.no_padding()
        return model.tokenizer, model.embedding


def _words(text: str) -> Iterator[str]:
    # A lone surrogate, as broken JSON escapes leave it, cannot be written as UTF-8 and would stop the tokenizer.
    for word in text.encode("utf-8", "replace").decode("utf-8").split():
        yield from (word[start : start + _PIECE] for start in range(0, len(word), _PIECE))


ENCODERS.add("wordllama", WordLlamaEncoder)


def nearest_vectors(
    matrix: npt.NDArray[Any],
    queries: npt.NDArray[Any],
    *,
    k: int,
    mask: Mask | None = None,
    block_rows: int = BLOCK_ROWS,
) -> Ranking:
    """The k rows of `matrix` with the highest inner product with each query, ties in row order: Ranked (queries, <= k).

    `matrix` is (documents, dimension), float16 or float32, possibly memory-mapped; `mask` as in `top_k`.
    """
    queries = np.asarray(queries, dtype=np.float32)
    if matrix.ndim != 2 or queries.ndim != 2 or matrix.shape[1] != queries.shape[1]:
        raise InputError(
            f"query vectors of shape {queries.shape} do not fit document vectors of shape {matrix.shape}",
            hint="encode questions with the encoder that the documents were encoded with",
        )
    best = top_k(np.zeros((len(queries), 0), np.float32), k)
    for start in range(0, len(matrix), block_rows):
        block = matrix[start : start + block_rows]
        passing = None if mask is None else mask[..., start : start + block_rows]
        found = top_k(similarity(queries, block), k, passing)
        positions = np.hstack(
            [best.positions, np.where(found.positions >= 0, found.positions + start, -1)]
        )
        scores = np.hstack([best.scores, found.scores])
        # Earlier blocks stand to the left, so ties stay in row order. Padding is nan, which is never chosen.
        among = top_k(scores, k)
        chosen = np.take_along_axis(positions, np.maximum(among.positions, 0), axis=1)
        best = Ranking(np.where(among.positions >= 0, chosen, -1), among.scores)
    return best


class VectorSearch:
    """Nearest neighbours of the question's vector, as the store finds them. A question without a word has no hits."""

    def __init__(self, store: Store, encoder: Encoder, *, name: str = "dense") -> None:
        self.store, self.encoder, self.name = store, encoder, name

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = check_search(questions, k, filters)
        looks = self.looks(questions, k=k, filters=filters or [None] * len(questions))
        kept = [at for at, one in enumerate(looks) if one.vector is not None]
        found: list[tuple[Hit, ...]] = [()] * len(questions)
        if kept:
            passing = None if filters is None else [filters[at] for at in kept]
            vectors = np.stack([np.asarray(looks[at].vector) for at in kept])
            hits = name_parts(self.name, self.store.search_vectors(vectors, k=k, filters=passing))
            for at, one in zip(kept, hits):
                found[at] = one
        return found

    def looks(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None]
    ) -> list[StoreQuery]:
        """The same as looks into the store, for who looks for other things at the same time."""
        vectors = self.encoder.encode(questions, query=True)
        return [
            StoreQuery(
                k, vector=vector if question.strip() and vector.any() else None, filter=filter
            )
            for question, vector, filter in zip(questions, vectors, filters)
        ]


class DenseProxy:
    """MAGAF's stand-in for a dense retriever: a blend of lexical and metadata scores, with ties broken by a perturbation.

    The perturbation is drawn from a generator seeded with the sha256 of the question, so it is the same in every process. It is
    at most `perturbation`, and a document that the blend does not find stays unfound.
    """

    name = "dense-proxy"

    def __init__(self, blend: Signal, *, perturbation: float = 0.001) -> None:
        self.blend, self.perturbation = blend, perturbation

    def scores(self, questions: Sequence[str]) -> Scores:
        """(questions, documents): the blend's scores, each at most `perturbation` higher."""
        scores = np.array(self.blend.scores(questions), dtype=np.float32)
        for question, row in zip(questions, scores):
            seed = int.from_bytes(
                hashlib.sha256(question.encode("utf-8", "replace")).digest()[:8], "big"
            )
            noise = np.random.default_rng(seed).random(len(row), dtype=np.float32)
            row += np.float32(self.perturbation) * noise * (row > 0)
        return scores


# --- encoding: Vectors of many texts, block by block, wherever the blocks are encoded: the encoder is known by name and by what it says.

AT_ONCE = 256
PROBE = ("Ada Lovelace was taught by Augustus De Morgan.", "Who taught the teacher of Ada?")

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class PortableEncoder:
    """An encoder that other processes can open, too; the one at hand does not travel with it."""

    name: str
    said: str  # a hash of its vectors of the PROBE
    at_hand: Encoder | None = None

    @classmethod
    def of(cls, name: str, encoder: Encoder) -> PortableEncoder:
        return cls(name, _fingerprint(encoder), encoder)

    def open(self) -> Encoder:
        """NotReadyError where the encoder of this name is another one here."""
        if self.at_hand is not None:
            return self.at_hand
        encoder = ENCODERS.get(self.name)()
        if _fingerprint(encoder) != self.said:
            raise NotReadyError(
                f"the encoder {self.name!r} gives other vectors here",
                hint="install the same models and packages there and here",
            )
        return encoder

    def __reduce__(self) -> tuple[Any, ...]:
        return PortableEncoder, (self.name, self.said)


def _fingerprint(encoder: Encoder) -> str:
    return hashlib.sha256(np.asarray(encoder.encode(PROBE), dtype=np.float32).tobytes()).hexdigest()


class BlockEncoder:
    """An Encoder that does its work in blocks, wherever `mapped` does; `name` is the one under which it is registered."""

    def __init__(
        self, name: str, encoder: Encoder, mapped: JobRunner, progress: Progress | None = None
    ) -> None:
        self.name, self.dimension = name, encoder.dimension
        self._encoder, self._mapped, self._progress = (
            PortableEncoder.of(name, encoder),
            mapped,
            progress,
        )

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        """(texts, dimension), float32."""
        key = f"{self.name} {self._encoder.said} {query}"
        job = Job(
            "encoding",
            partial(_encode_block, query=query),
            self._encoder,
            PortableEncoder.open,
            key=key,
        )
        found = [np.zeros((0, self.dimension), np.float32)]
        done = 0
        for vectors in self._mapped(job, split_into_blocks(texts, AT_ONCE, chars=len)):
            found.append(vectors)
            done += len(vectors)
            if self._progress is not None:
                self._progress("encoding", done, len(texts))
        return np.concatenate(found)


def _encode_block(texts: Sequence[str], encoder: Encoder, *, query: bool) -> Floats:
    return np.asarray(encoder.encode(texts, query=query), dtype=np.float32)
