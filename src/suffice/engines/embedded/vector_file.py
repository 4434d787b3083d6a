"""The vector file of an embedded store: a float16 record per slot, append-only, searched exactly.

A record has its document's row and place next to the vector, so a search needs no table. Readers
map the slots of their generation; the next writer overwrites what a crashed one left.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.embedded.sqlite_documents import os_errors
from suffice.errors import DataError
from suffice.retrieval.corpus import Mask
from suffice.retrieval.ranking import top_k
from suffice.retrieval.store_checks import Floats, Halves, similarity
from suffice.storage.artefacts import fsync_path

__all__ = ["NearestRecords", "Records", "append_records", "nearest_records", "open_records"]

BLOCK_RECORDS = 16_384  # compared at once: 16 MB of float32 at 256 dimensions

Records = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class NearestRecords:
    """The nearest records of one question, best first."""

    rows: npt.NDArray[np.int64]
    scores: Floats


def _record_dtype(dimension: int) -> np.dtype[np.void]:
    return np.dtype([("row", "<i8"), ("place", "<i8"), ("vector", "<f2", (dimension,))])


def append_records(
    file: Path, slot: int, rows: npt.ArrayLike, places: npt.ArrayLike, vectors: Halves
) -> None:
    """Write records from this slot on, durably. Existing ones there belong to no generation."""
    records = np.empty(len(vectors), _record_dtype(vectors.shape[1]))
    records["row"], records["place"], records["vector"] = rows, places, vectors
    with os_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as stream:
            stream.seek(slot * records.itemsize)
            stream.write(records.tobytes())
            stream.flush()
            os.fsync(stream.fileno())
        if slot == 0:  # a new file: its name must be durable, too
            fsync_path(file.parent)


def open_records(file: Path, dimension: int, slots: int) -> Records | None:
    """Map the first slots of the file. FileNotFoundError if it is gone, DataError if too short."""
    if not slots:
        return None
    dtype = _record_dtype(dimension)
    if file.stat().st_size < slots * dtype.itemsize:
        message = f"{file} is shorter than the {slots} vectors it should hold"
        raise DataError(message, hint="build the library again")
    return np.memmap(file, dtype, "r", shape=(slots,))


def nearest_records(
    records: Records, questions: Floats, k: int, masks: Sequence[Mask]
) -> list[NearestRecords]:
    """For each question, the k records of highest inner product within its mask, ties by place."""
    best: list[list[tuple[Any, Any, Any]]] = [[] for _ in questions]
    for start in range(0, len(records), BLOCK_RECORDS):
        allowed = np.stack([mask[start : start + BLOCK_RECORDS] for mask in masks])
        block = np.asarray(records[start : start + BLOCK_RECORDS])
        used = allowed.any(axis=0)
        if not used.all():
            block, allowed = block[used], allowed[:, used]
        if not len(block):
            continue
        # top_k breaks ties by position, so sort by place first.
        order = np.argsort(block["place"], kind="stable")
        scores = similarity(questions, block["vector"])[:, order]
        ranked = top_k(scores, k, allowed[:, order])
        for found, at, values in zip(best, ranked.positions, ranked.scores):
            slots, values = order[at[at >= 0]], values[at >= 0]
            found.append((block["row"][slots], block["place"][slots], values))
    return [_merge(found, k) for found in best]


def _merge(found: Sequence[tuple[Any, Any, Any]], k: int) -> NearestRecords:
    if not found:
        return NearestRecords(np.empty(0, np.int64), np.empty(0, np.float32))
    rows, places, scores = (np.concatenate(column) for column in zip(*found))
    order = np.lexsort((places, -scores))[:k]
    return NearestRecords(rows[order], scores[order])
