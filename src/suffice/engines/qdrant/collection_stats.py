"""What the store knows of its collection as a whole: generation, places, lengths, and in how many documents each word stands.

They live in a small collection beside the documents: point 0 is the head, points 1 to 64 are pages of word frequencies, by the
highest bits of the word's number. A write changes the head and the pages that it touches in one request. Readers look at the
head now and then, and fetch the pages that changed since.

A writer that dies leaves `writing` set: the next one counts everything anew before it goes on.
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

__all__ = [
    "HEADER_POINT",
    "PAGE_COUNT",
    "CollectionStats",
    "DocumentFrequencies",
    "StatsChange",
    "StatsHeader",
    "page_points",
    "parse_header",
]

FORMAT = 1
HEADER_POINT, PAGE_COUNT = 0, 64
_PAGE_SHIFT = 26  # 32 less the 6 that say the page

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StatsHeader:
    generation: int = 0
    documents: int = 0
    words: int = 0  # in all documents together
    mean: float = 0.0  # words in a document, as the weights in the collection were made with
    places: int = 0  # the next document's place in the order of insertion
    dimension: int = 0  # of the vectors; 0 as long as there are none
    encoder: str | None = None
    writing: bool = False
    build: str = ""  # drawn anew whenever the collection is made anew
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
class DocumentFrequencies:
    """In how many documents each word stands: numbers rising, counts beside them."""

    numbers: TermIds
    counts: Counts

    @classmethod
    def none(cls) -> DocumentFrequencies:
        return cls(np.zeros(0, np.uint32), np.zeros(0, np.int64))

    def of(self, numbers: TermIds) -> Counts:
        if not len(self.numbers):
            return np.zeros(len(numbers), np.int64)
        at = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return np.where(self.numbers[at] == numbers, self.counts[at], 0)

    def changed(self, numbers: TermIds, by: Counts) -> DocumentFrequencies:
        """With so many more (or fewer) documents for each of these words; a word in no document is forgotten."""
        both = np.concatenate([self.numbers, numbers])
        distinct, of = np.unique(both, return_inverse=True)
        summed = (
            np.bincount(of, np.concatenate([self.counts, by]), len(distinct))
            .round()
            .astype(np.int64)
        )
        return DocumentFrequencies(distinct[summed > 0], summed[summed > 0])

    def page(self, number: int) -> DocumentFrequencies:
        start, end = np.searchsorted(
            self.numbers.astype(np.int64) >> _PAGE_SHIFT, [number - 1, number]
        )
        return DocumentFrequencies(self.numbers[start:end], self.counts[start:end])


@dataclass(frozen=True)
class CollectionStats:
    """Head and frequencies of one generation."""

    head: StatsHeader
    frequencies: DocumentFrequencies

    def idf(self, numbers: TermIds) -> npt.NDArray[np.float64]:
        """Lucene's: never negative. A word that nobody has counted yet weighs as one that stands nowhere."""
        count, total = self.frequencies.of(numbers), max(self.head.documents, 1)
        return np.asarray(np.log1p((np.maximum(total - count, 0) + 0.5) / (count + 0.5)))

    def with_pages(
        self, head: StatsHeader, pages: Mapping[int, Mapping[str, Any]]
    ) -> CollectionStats:
        """At another generation, with these pages in the place of those held."""
        kept = [
            _decode_page(pages[one]) if one in pages else self.frequencies.page(one)
            for one in range(1, PAGE_COUNT + 1)
        ]
        numbers, counts = (
            np.concatenate([getattr(one, name) for one in kept]) for name in ("numbers", "counts")
        )
        return CollectionStats(head, DocumentFrequencies(numbers, counts))


class StatsChange:
    """What a write does to the facts, gathered batch by batch."""

    def __init__(self) -> None:
        self.documents = self.words = 0
        self._numbers: list[TermIds] = []
        self._by: list[Counts] = []
        self._waiting = 0

    def count(self, numbers: TermIds, length: int, by: int) -> None:
        """A document came (1) or went (-1)."""
        self.documents += by
        self.words += by * length
        self._numbers.append(numbers)
        self._by.append(np.full(len(numbers), by, np.int64))
        self._waiting += len(numbers)
        if (
            self._waiting > 5_000_000
        ):  # so that a long write holds a vocabulary, not every word it saw
            self._fold()

    def _fold(self) -> None:
        folded = _sum_by_term(self._numbers, self._by)
        self._numbers, self._by, self._waiting = [folded[0]], [folded[1]], 0

    def apply(self, facts: CollectionStats, head: StatsHeader) -> tuple[CollectionStats, list[int]]:
        """The facts after it, and which pages differ."""
        self._fold()
        numbers, by = self._numbers[0], self._by[0]
        numbers, by = numbers[by != 0], by[by != 0]
        head = replace(
            head, documents=head.documents + self.documents, words=head.words + self.words
        )
        touched = np.unique((numbers.astype(np.int64) >> _PAGE_SHIFT) + 1).tolist()
        return CollectionStats(head, facts.frequencies.changed(numbers, by)), touched


def _sum_by_term(numbers: list[TermIds], by: list[Counts]) -> tuple[TermIds, Counts]:
    distinct, of = np.unique(
        np.concatenate([*numbers, np.zeros(0, np.uint32)]), return_inverse=True
    )
    summed = np.bincount(of, np.concatenate([*by, np.zeros(0, np.int64)]), len(distinct))
    return distinct.astype(np.uint32), summed.round().astype(np.int64)


def page_points(facts: CollectionStats, pages: Iterable[int]) -> list[dict[str, Any]]:
    """Pages as points of the collection beside the documents; each knows since which generation it is as it is."""
    made = []
    for number in pages:
        page = facts.frequencies.page(number)
        payload = {
            "since": facts.head.generation,
            "numbers": _encode_array(page.numbers, "<u4"),
            "counts": _encode_array(page.counts, "<i8"),
        }
        made.append({"id": number, "payload": payload, "vector": {}})
    return made


def _encode_array(values: npt.NDArray[Any], kind: str) -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode()


def _decode_page(payload: Mapping[str, Any]) -> DocumentFrequencies:
    numbers = np.frombuffer(base64.b64decode(payload["numbers"]), "<u4").astype(np.uint32)
    return DocumentFrequencies(
        numbers, np.frombuffer(base64.b64decode(payload["counts"]), "<i8").astype(np.int64)
    )
