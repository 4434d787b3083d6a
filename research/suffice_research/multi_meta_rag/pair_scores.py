"""The cross-encoder's scores as one small file: hours of reading, done once on some machine.

The file contains no text. It names a question by its hash and a chunk by its number, and has a hash
of all chunks: scores for another copy of the corpus are rejected.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.storage import write_atomically
from suffice_research.embedding_cache import CachedReranker

__all__ = ["StoredScores", "compare_scores", "load_scores", "scores_in_cache"]

_FIELDS = {
    "reranker": "U",
    "made_on": "U",
    "chunks": "U",
    "question": "U",
    "text": "u",
    "score": "f",
}


def _digest(texts: Sequence[str]) -> str:
    found = hashlib.sha256()
    for text in texts:
        found.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return found.hexdigest()[:16]


@dataclass(frozen=True)
class StoredScores:
    """Scores of pairs: the hash of the question, the number of the text, the score."""

    reranker: str
    made_on: str  # machine and number format: scores differ slightly between them
    chunks: str  # the hash of all texts
    question: npt.NDArray[Any]
    text: npt.NDArray[Any]
    score: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.score)

    def save(self, path: Path) -> None:
        file = BytesIO()
        np.savez_compressed(file, **{name: getattr(self, name) for name in _FIELDS})
        write_atomically(path, file.getvalue())

    def pairs(
        self, questions: Sequence[str], texts: Sequence[str]
    ) -> Mapping[tuple[str, str], float]:
        """The scores by (question, text), for the questions given here."""
        if self.chunks != _digest(texts):
            raise InputError(
                "the stored scores are of other chunks",
                hint="leave --scores out: the cross-encoder then reads, for hours",
            )
        asked = {_digest([one]): one for one in questions}
        return {
            (asked[question], texts[text]): score
            for question, text, score in zip(
                self.question.tolist(), self.text.tolist(), self.score.tolist(), strict=True
            )
            if question in asked
        }


def load_scores(path: Path) -> StoredScores:
    """The scores in a file; InputError if it is not such a file."""
    hint = "take the file of the repository, or write it with --keep-scores"
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            found = {name: file[name] for name in _FIELDS}
    except (OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} holds no scores: {error}", hint=hint) from error
    rows = [found[name] for name in ("question", "text", "score")]
    if (
        any(found[name].dtype.kind != kind for name, kind in _FIELDS.items())
        or any(one.ndim != 1 or len(one) != len(rows[0]) for one in rows)
        or not np.isfinite(found["score"]).all()
    ):
        raise InputError(
            f"{path} holds no scores: its columns are not as they should be", hint=hint
        )
    reranker, made_on, chunks = (str(found[name]) for name in ("reranker", "made_on", "chunks"))
    return StoredScores(reranker, made_on, chunks, *rows)


def compare_scores(one: StoredScores, other: StoredScores) -> tuple[int, float, float]:
    """Number of common pairs, correlation of their scores, and mean absolute difference."""
    if one.chunks != other.chunks:
        raise InputError("the scores are of different chunks", hint="make both from one corpus")
    known = dict(zip(zip(one.question.tolist(), one.text.tolist()), one.score.tolist()))
    pairs = zip(other.question.tolist(), other.text.tolist())
    both = [(known[pair], score) for pair, score in zip(pairs, other.score) if pair in known]
    if len(both) < 2:
        raise InputError("fewer than two pairs are in both files", hint="score the same questions")
    ours, theirs = np.array(both, dtype=float).T
    return len(both), float(np.corrcoef(ours, theirs)[0, 1]), float(np.abs(ours - theirs).mean())


def scores_in_cache(
    cached: CachedReranker, questions: Sequence[str], texts: Sequence[str], *, made_on: str
) -> StoredScores:
    """All cached scores for these questions and texts."""
    if len(texts) > np.iinfo(np.uint16).max:
        raise InputError(f"{len(texts):,} chunks are too many for the file", hint="take fewer")
    asked, numbers, scores = list[str](), list[int](), list[float]()
    for question in questions:
        digest = _digest([question])
        for number, score in enumerate(cached.known(question, texts)):
            if score is not None:
                asked.append(digest)
                numbers.append(number)
                scores.append(score)
    if not scores:
        raise InputError(
            "the cache has no score of these questions",
            hint="run `suffice reproduce multi-meta-rag --quality --cache DIR` first",
        )
    columns = np.array(asked), np.array(numbers, np.uint16), np.array(scores, np.float32)
    return StoredScores(cached.name, made_on, _digest(texts), *columns)
