"""The vector file of an embedded store: one record a slot, float16, only ever appended to, searched exactly.

A record names the row and place of its document beside the vector, so a search needs no table. Readers map as many slots as
their generation has; what a crashed writer left behind them is written over by the next.
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
from suffice.retrieval.ranking import top_k
from suffice.retrieval.store_checks import Floats, Halves, similarity

__all__ = ["NearestRecords", "Records", "append_records", "nearest_records", "open_records"]

BLOCK_RECORDS = 16_384  # records compared at a time: 16 MB of float32 at 256 dimensions

Records = npt.NDArray[np.void]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class NearestRecords:
    """The nearest records of one question, best first: rows and scores."""

    rows: npt.NDArray[np.int64]
    scores: Floats


def _record_dtype(dimension: int) -> np.dtype[np.void]:
    return np.dtype([("row", "<i8"), ("place", "<i8"), ("vector", "<f2", (dimension,))])


def append_records(
    file: Path, slot: int, rows: npt.ArrayLike, places: npt.ArrayLike, vectors: Halves
) -> None:
    """Write records from this slot on, durably. Whatever stood there belonged to no generation."""
    records = np.empty(len(vectors), _record_dtype(vectors.shape[1]))
    records["row"], records["place"], records["vector"] = rows, places, vectors
    with os_errors(file):
        _write_at(file, slot, records)


def _write_at(file: Path, slot: int, records: Records) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        with os.fdopen(os.dup(handle), "r+b") as stream:
            stream.seek(slot * records.itemsize)
            stream.write(records.tobytes())
        os.fsync(handle)
    finally:
        os.close(handle)
    if slot == 0:  # a new file: its name must be durable too
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def open_records(file: Path, *, dimension: int, slots: int) -> Records:
    """The first slots of the file, mapped, not read. FileNotFoundError if it is gone, DataError if it is too short."""
    kind = _record_dtype(dimension)
    if file.stat().st_size < slots * kind.itemsize:
        raise DataError(
            f"{file} is shorter than the {slots} vectors it should hold",
            hint="build the library again",
        )
    return np.memmap(file, kind, "r", shape=(slots,))


def nearest_records(
    records: Records, questions: Floats, k: int, masks: Sequence[Mask]
) -> list[NearestRecords]:
    """For each question the k records with the highest inner product where its mask allows, ties by place."""
    best: list[list[tuple[Any, Any, Any]]] = [[] for _ in questions]
    for start in range(0, len(records), BLOCK_RECORDS):
        allowed = np.stack([mask[start : start + BLOCK_RECORDS] for mask in masks])
        slots = np.flatnonzero(allowed.any(axis=0))
        if not len(slots):
            continue
        block = records[start : start + BLOCK_RECORDS][slots]
        order = np.argsort(
            block["place"], kind="stable"
        )  # so that top_k's ties, by position, are ties by place
        block, allowed = block[order], allowed[:, slots[order]]
        ranked = top_k(similarity(questions, block["vector"]), k, allowed)
        for found, at, scores in zip(best, ranked.positions, ranked.scores):
            at, scores = at[at >= 0], scores[at >= 0]
            found.append((block["row"][at], block["place"][at], scores))
    return [_merge(found, k) for found in best]


def _merge(found: Sequence[tuple[Any, Any, Any]], k: int) -> NearestRecords:
    if not found:
        return NearestRecords(np.empty(0, np.int64), np.empty(0, np.float32))
    rows, places, scores = (np.concatenate(column) for column in zip(*found))
    order = np.lexsort((places, -scores))[:k]
    return NearestRecords(rows[order], scores[order])
