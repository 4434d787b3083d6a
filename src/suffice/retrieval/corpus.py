"""Documents in order, their metadata as columns, and long documents split into chunks.

Rows are positions in the order of the documents, so scores, masks and columns always line up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.text import CJK
from suffice.types import Condition, DocId, Document, Field, Filter

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
UNDATED = np.int32(-(2**30))  # so far from any real day that no date window includes it


@dataclass(frozen=True)
class RaggedRows:
    """Rows of different lengths: row i is values[starts[i]:starts[i + 1]]."""

    starts: Ints
    values: npt.NDArray[Any]

    @classmethod
    def from_sizes(cls, sizes: npt.ArrayLike, values: npt.NDArray[Any]) -> RaggedRows:
        """Consecutive rows of these sizes."""
        return cls(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), values)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def row(self, at: int) -> npt.NDArray[Any]:
        return self.values[self.starts[at] : self.starts[at + 1]]

    def row_numbers(self) -> Ints:
        """The row of each value."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def gather(self, rows: Ints) -> tuple[Ints, Ints]:
        """The values of several rows, and for each its position in `rows`. -1 is an empty row."""
        first = self.starts[np.maximum(rows, 0)]
        sizes = np.where(rows >= 0, self.starts[rows + 1] - first, 0)
        position = np.repeat(np.arange(len(rows)), sizes)
        inside = np.arange(len(position)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.values[first[position] + inside], position

    def take(self, rows: Ints) -> RaggedRows:
        """These rows, in this order. Fast and without further memory if most are neighbours."""
        ends = np.flatnonzero(np.diff(rows) != 1)
        first, last = (np.append(rows[:1], rows[ends + 1]), np.append(rows[ends], rows[-1:]))
        runs = zip(self.starts[first].tolist(), self.starts[last + 1].tolist())
        parts = [self.values[start:end] for start, end in runs] or [self.values[:0]]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return RaggedRows.from_sizes(np.diff(self.starts)[rows], values)

    def followed_by(self, other: RaggedRows) -> RaggedRows:
        """These rows, then those of the other."""
        if not len(self):
            return other
        starts = np.concatenate([self.starts, self.starts[-1] + other.starts[1:]])
        return RaggedRows(starts, np.concatenate([self.values, other.values]))

    def inverted(self, count: int) -> RaggedRows:
        """For each of `count` values the rows that contain it, in order."""
        order = np.argsort(self.values, kind="stable")
        sizes = np.bincount(self.values, minlength=count)
        return RaggedRows.from_sizes(sizes, self.row_numbers()[order])


@dataclass(frozen=True)
class Column:
    """One metadata field: its values, and the positions of each document's values among them."""

    values: tuple[str, ...]
    codes: RaggedRows

    @cached_property
    def position(self) -> dict[str, int]:
        return {value: at for at, value in enumerate(self.values)}

    @cached_property
    def documents(self) -> RaggedRows:
        """The documents that have each value, in order."""
        return self.codes.inverted(len(self.values))


def duplicate_id(doc_id: DocId) -> InputError:
    return InputError(f"document id {doc_id!r} occurs twice", hint="give each document its own id")


class Corpus:
    """Documents in order, each id once."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents = tuple(documents)
        self.ids: tuple[DocId, ...] = tuple(document.doc_id for document in self.documents)
        self.position: dict[DocId, int] = {}
        for at, doc_id in enumerate(self.ids):
            if self.position.setdefault(doc_id, at) != at:
                raise duplicate_id(doc_id)
        self._columns: dict[Field, Column] = {}

    def __len__(self) -> int:
        return len(self.documents)

    def column(self, field: Field) -> Column:
        """The values of source, category, entities or published_at (ISO days), first seen first."""
        if field not in self._columns:
            codes: dict[str, int] = {}
            rows = [
                sorted({codes.setdefault(value, len(codes)) for value in field_values(one, field)})
                for one in self.documents
            ]
            flat = np.array([code for row in rows for code in row], dtype=np.int64)
            ragged = RaggedRows.from_sizes([len(row) for row in rows], flat)
            self._columns[field] = Column(tuple(codes), ragged)
        return self._columns[field]

    @cached_property
    def days(self) -> npt.NDArray[np.int32]:
        """Publication days as ordinals: (documents,), UNDATED where unknown."""
        dates = (document.published_at for document in self.documents)
        days = (day.toordinal() if day else UNDATED for day in dates)
        return np.fromiter(days, np.int32, len(self))

    def mask(self, filter: Filter | None) -> Mask:
        """Which documents pass the filter: (documents,)."""
        passing = np.ones(len(self), dtype=bool)
        for condition in filter.conditions if filter else ():
            passes = self._passes(condition)
            if filter and filter.lenient:
                passes |= np.diff(self.column(condition.field).codes.starts) == 0
            passing &= passes
        return passing

    def _passes(self, condition: Condition) -> Mask:
        if condition.operator in ("$gte", "$lte"):
            bound = date.fromisoformat(condition.values[0]).toordinal()
            if condition.operator == "$gte":
                return np.asarray(self.days >= bound)
            return np.asarray((self.days <= bound) & (self.days != UNDATED))
        column = self.column(condition.field)
        wanted = np.zeros(len(column.values), dtype=bool)
        wanted[[column.position[one] for one in condition.values if one in column.position]] = True
        carries: Mask = np.zeros(len(self), dtype=bool)
        carries[column.codes.row_numbers()[wanted[column.codes.values]]] = True
        return carries if condition.operator == "$in" else ~carries


def field_values(document: Document, field: Field) -> tuple[str, ...]:
    """A document's values of one metadata field; dates as ISO days."""
    if field == "entities":
        return document.entities
    if field == "published_at":
        return (document.published_at.isoformat(),) if document.published_at else ()
    value = document.source if field == "source" else document.category
    return (value,) if value else ()


def searchable_text(document: Document) -> str:
    """The text that text search and encoders see: title, then text."""
    if document.title and document.text:
        return f"{document.title}\n{document.text}"
    return document.title or document.text


# A word, a character of a script without spaces, or a punctuation mark. The limit of 64 splits text
# without spaces.
_TOKEN = re.compile(rf"[{CJK}]|[^\W{CJK}]{{1,64}}|[^\w\s]")


def chunk_documents(
    documents: Iterable[Document], *, tokens: int = 256, overlap: int = 32
) -> Iterator[Document]:
    """Split long documents into chunks of at most `tokens` tokens, with `overlap` tokens in common.

    A chunk has the id "parent#0", "parent#1", ..., its parent's title and metadata, and a slice of
    the text. Short documents and existing chunks stay unchanged.
    """
    if tokens < 1 or not 0 <= overlap < tokens:
        raise InputError(
            f"chunks of {tokens} tokens with an overlap of {overlap}",
            hint="the overlap must be smaller than the chunk",
        )
    for document in documents:
        spans = [match.span() for match in _TOKEN.finditer(document.text)]
        if document.parent is not None or len(spans) <= tokens:
            yield document
            continue
        for number, start in enumerate(range(0, len(spans) - overlap, tokens - overlap)):
            end = min(start + tokens, len(spans))
            text = document.text[spans[start][0] : spans[end - 1][1]]
            doc_id = f"{document.doc_id}#{number}"
            yield replace(document, doc_id=doc_id, text=text, parent=document.doc_id)
