"""Caches in a folder: an encoder and a cross-encoder that compute everything once.

On a CPU an encoder reads about twenty passages per second, so training on twenty thousand of them
should neither restart after an interruption nor encode anything twice. Each block of new texts
becomes a file of vectors and a file of the texts' hashes; the hash distinguishes questions from
passages, since encoders may.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError
from suffice.protocols import Encoder, Progress, Reranker, component_name
from suffice.storage import write_atomically
from suffice.storage.artefacts import read_array

__all__ = ["CachedEncoder", "CachedReranker"]

Floats = npt.NDArray[np.floating[Any]]
_AT_ONCE = 256


class CachedEncoder:
    """The same vectors as the encoder's, each computed once.

    The folder belongs to one encoder, and to one process at a time.
    """

    def __init__(self, encoder: Encoder, folder: Path, *, progress: Progress | None = None) -> None:
        self.encoder, self.folder, self.progress = encoder, Path(folder) / encoder.name, progress
        self.name, self.dimension = encoder.name, encoder.dimension
        self.folder.mkdir(parents=True, exist_ok=True)
        self._at: dict[str, int] = {}
        self._vectors = np.zeros((0, self.dimension), np.float32)
        paths = sorted(self.folder.glob("[0-9]*.json"))
        blocks = [self._block(path) for path in paths]
        self._know(
            [key for keys, _ in blocks for key in keys],
            np.concatenate([self._vectors, *(made for _, made in blocks)]),
        )
        self._files = 1 + int(paths[-1].stem) if paths else 0

    def _block(self, path: Path) -> tuple[list[str], Floats]:
        hint = f"delete {self.folder} and encode anew"
        vectors = read_array(path.with_suffix(".npy"), hint=hint)
        try:
            keys = json.loads(path.read_text("utf-8"))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path} cannot be read: {error}", hint=hint) from error
        if (
            not isinstance(keys, list)
            or vectors.shape != (len(keys), self.dimension)
            or vectors.dtype.kind != "f"
        ):
            raise DataError(f"{path} does not fit its vectors", hint=hint)
        return keys, vectors

    def _know(self, keys: Sequence[str], vectors: Floats) -> None:
        self._at.update((key, len(self._vectors) + at) for at, key in enumerate(keys))
        self._vectors = np.concatenate([self._vectors, vectors], dtype=np.float32)

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        keys = [_key(text, query) for text in texts]
        fresh = list(
            {
                key: text for key, text in zip(keys, texts, strict=True) if key not in self._at
            }.items()
        )
        for start in range(0, len(fresh), _AT_ONCE):
            self._keep(fresh[start : start + _AT_ONCE], query)
            if self.progress is not None:
                self.progress("encoding", min(start + _AT_ONCE, len(fresh)), len(fresh))
        return self._vectors[[self._at[key] for key in keys]]

    def _keep(self, block: Sequence[tuple[str, str]], query: bool) -> None:
        vectors = np.asarray(
            self.encoder.encode([text for _, text in block], query=query), dtype=np.float32
        )
        path = self.folder / f"{self._files:05d}.json"
        np.save(path.with_suffix(".npy"), vectors)
        write_atomically(
            path, json.dumps([key for key, _ in block]) + "\n"
        )  # last: a block without this file does not count
        self._files += 1
        self._know([key for key, _ in block], vectors)


def _key(text: str, query: bool) -> str:
    return hashlib.sha256(
        f"{'query' if query else 'text'}\0{text}".encode("utf-8", "surrogatepass")
    ).hexdigest()


class CachedReranker:
    """The same scores as the cross-encoder's, each pair of question and text read once.

    With a folder, once across all runs: the scores of a call are stored in an SQLite file before
    they are returned, so that an interrupted run can resume. Several threads may score.
    """

    def __init__(self, reranker: Reranker, folder: Path | None = None) -> None:
        self.reranker, self.name = reranker, component_name(reranker)
        self._known: dict[str, float] = {}
        self._lock = threading.Lock()
        self._path = Path(folder) / f"{self.name}.sqlite" if folder is not None else None
        if self._path is not None:
            self._known = _load_scores(self._path)

    def score(self, question: str, texts: Sequence[str]) -> Floats:
        keys = [_pair_key(question, text) for text in texts]
        fresh = {key: text for key, text in zip(keys, texts) if key not in self._known}
        if fresh:
            read = [float(one) for one in self.reranker.score(question, list(fresh.values()))]
            self._keep(dict(zip(fresh, read, strict=True)))
        return np.array([self._known[key] for key in keys], dtype=np.float32)

    def known(self, question: str, texts: Sequence[str]) -> list[float | None]:
        """The cached scores; nothing is read."""
        return [self._known.get(_pair_key(question, text)) for text in texts]

    def take(self, pairs: Mapping[tuple[str, str], float]) -> None:
        """Store scores of (question, text) computed elsewhere, replacing existing ones."""
        self._keep({_pair_key(*pair): float(score) for pair, score in pairs.items()})

    def _keep(self, scores: Mapping[str, float]) -> None:
        with self._lock:
            if self._path is not None:
                with closing(sqlite3.connect(self._path, timeout=30)) as db, db:
                    db.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?)", scores.items())
            self._known.update(scores)


@lru_cache(maxsize=8192)
def _pair_part(text: str) -> str:
    return _key(text, False)[:32]


def _pair_key(question: str, text: str) -> str:
    return _pair_part(question) + _pair_part(text)  # in parts: a text is in many pairs


def _load_scores(path: Path) -> dict[str, float]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=30)) as db, db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS scores (key TEXT PRIMARY KEY, score REAL NOT "
                "NULL) WITHOUT ROWID"
            )
            return dict(db.execute("SELECT key, score FROM scores"))
    except (OSError, sqlite3.Error) as error:
        raise DataError(
            f"{path} cannot hold scores: {error}", hint="remove the file, or choose another folder"
        ) from error
