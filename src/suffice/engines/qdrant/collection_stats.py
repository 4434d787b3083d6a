"""Statistics of the whole collection: generation, places, lengths, and each word's frequency.

They are points of a small collection next to the documents. Point 0 is the header; points 1 to 64
are pages of word frequencies, by the highest bits of the word's id. A write updates the header and
the pages it touches in one request. Readers check the header from time to time and fetch the pages
that changed. A writer that dies leaves `writing` set, and the next one counts everything again.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.qdrant.sparse_bm25 import TermIds
from suffice.errors import NotReadyError

__all__ = ["CollectionStats", "StatsChange", "StatsHeader", "TermFrequencies", "parse_header"]

FORMAT = 1
HEADER_POINT, PAGE_COUNT = 0, 64
_PAGE_SHIFT = 26  # 32 bits minus the 6 of the page
MAX_PENDING = 5_000_000  # word ids in a change before they are summed

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StatsHeader:
    generation: int = 0
    documents: int = 0
    words: int = 0  # in all documents together
    mean: float = 0.0  # words per document, as used for the stored weights
    places: int = 0  # the next document's place in the insertion order
    dimension: int = 0  # of the vectors; 0 if there are none yet
    encoder: str | None = None
    writing: bool = False
    build: str = ""  # new for every rebuild of the collection
    format: int = FORMAT

    def as_point(self) -> dict[str, Any]:
        return {"id": HEADER_POINT, "payload": asdict(self), "vector": {}}


def parse_header(payload: Mapping[str, Any], where: str) -> StatsHeader:
    if payload.get("format") != FORMAT:
        raise NotReadyError(
            f"{where} has format {payload.get('format')!r}, this suffice reads {FORMAT}",
            hint=f"build it again: suffice build FILE --store {where} --rebuild",
        )
    known = {field.name for field in fields(StatsHeader)}
    return StatsHeader(**{name: value for name, value in payload.items() if name in known})


@dataclass(frozen=True)
class TermFrequencies:
    """In how many documents each word occurs: ascending ids and their counts."""

    ids: TermIds
    counts: Counts

    @classmethod
    def empty(cls) -> TermFrequencies:
        return cls(np.zeros(0, np.uint32), np.zeros(0, np.int64))

    def of(self, ids: TermIds) -> Counts:
        if not len(self.ids):
            return np.zeros(len(ids), np.int64)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, self.counts[at], 0)

    def changed(self, ids: TermIds, by: Counts) -> TermFrequencies:
        """Add to the counts of these words; words in no document are dropped."""
        summed = _sum_by_term([self.ids, ids], [self.counts, by])
        return TermFrequencies(summed.ids[summed.counts > 0], summed.counts[summed.counts > 0])

    def page(self, number: int) -> TermFrequencies:
        start, end = np.searchsorted(self.ids.astype(np.int64) >> _PAGE_SHIFT, [number - 1, number])
        return TermFrequencies(self.ids[start:end], self.counts[start:end])


def _sum_by_term(ids: list[TermIds], by: list[Counts]) -> TermFrequencies:
    distinct, of = np.unique(np.concatenate([*ids, np.zeros(0, np.uint32)]), return_inverse=True)
    summed = np.bincount(of, np.concatenate([*by, np.zeros(0, np.int64)]), len(distinct))
    return TermFrequencies(distinct.astype(np.uint32), summed.round().astype(np.int64))


@dataclass(frozen=True)
class CollectionStats:
    """Header and frequencies of one generation."""

    header: StatsHeader
    frequencies: TermFrequencies

    @classmethod
    def empty(cls, header: StatsHeader | None = None) -> CollectionStats:
        return cls(header or StatsHeader(), TermFrequencies.empty())

    def idf(self, ids: TermIds) -> npt.NDArray[np.float64]:
        """Lucene's IDF, never negative. A word without a count has the IDF of one never seen."""
        count, total = self.frequencies.of(ids), max(self.header.documents, 1)
        return np.asarray(np.log1p((np.maximum(total - count, 0) + 0.5) / (count + 0.5)))

    def page_points(self, pages: Iterable[int]) -> list[dict[str, Any]]:
        """Pages as points, each with the generation since which it is unchanged."""
        points = []
        for number in pages:
            page = self.frequencies.page(number)
            numbers, counts = _encode_array(page.ids, "<u4"), _encode_array(page.counts, "<i8")
            payload = {"since": self.header.generation, "numbers": numbers, "counts": counts}
            points.append({"id": number, "payload": payload, "vector": {}})
        return points

    def with_pages(
        self, header: StatsHeader, pages: Mapping[int, Mapping[str, Any]]
    ) -> CollectionStats:
        """Another generation, with these pages replaced."""
        kept = [
            _decode_page(pages[one]) if one in pages else self.frequencies.page(one)
            for one in range(1, PAGE_COUNT + 1)
        ]
        ids, counts = [one.ids for one in kept], [one.counts for one in kept]
        return CollectionStats(header, TermFrequencies(np.concatenate(ids), np.concatenate(counts)))


class StatsChange:
    """The effect of a write on the statistics, collected batch by batch."""

    def __init__(self) -> None:
        self.documents = self.words = self._pending = 0
        self._ids: list[TermIds] = []
        self._by: list[Counts] = []

    def count(self, ids: TermIds, length: int, by: int) -> None:
        """Count a document that was added (1) or removed (-1)."""
        self.documents += by
        self.words += by * length
        self._ids.append(ids)
        self._by.append(np.full(len(ids), by, np.int64))
        self._pending += len(ids)
        if self._pending > MAX_PENDING:
            self._fold()

    def _fold(self) -> TermFrequencies:
        folded = _sum_by_term(self._ids, self._by)
        self._ids, self._by, self._pending = [folded.ids], [folded.counts], 0
        return folded

    def apply(
        self, stats: CollectionStats, header: StatsHeader
    ) -> tuple[CollectionStats, list[int]]:
        """The statistics after the change, and the numbers of the changed pages."""
        folded = self._fold()
        ids, by = folded.ids[folded.counts != 0], folded.counts[folded.counts != 0]
        documents, words = header.documents + self.documents, header.words + self.words
        touched = np.unique((ids.astype(np.int64) >> _PAGE_SHIFT) + 1).tolist()
        header = replace(header, documents=documents, words=words)
        return CollectionStats(header, stats.frequencies.changed(ids, by)), touched


def _encode_array(values: npt.NDArray[Any], kind: str) -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode()


def _decode_page(payload: Mapping[str, Any]) -> TermFrequencies:
    ids, counts = (base64.b64decode(payload[name]) for name in ("numbers", "counts"))
    return TermFrequencies(
        np.frombuffer(ids, "<u4").astype(np.uint32), np.frombuffer(counts, "<i8").astype(np.int64)
    )
