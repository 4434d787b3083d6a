"""A corpus in memory: documents in order, and their metadata as columns that numpy can mask, count and multiply.

The retrievers of the papers score every document for every question; they all share this one view. Rows are positions in the
order of the documents, so a score vector, a mask and a column always line up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from suffice.errors import InputError
from suffice.text import CJK
from suffice.types import Condition, DocId, Document, Field, Filter

__all__ = [
    "UNDATED",
    "Column",
    "Corpus",
    "Mask",
    "chunk_documents",
    "field_values",
    "searchable_text",
]


Mask = npt.NDArray[np.bool_]
UNDATED = np.int32(-(2**30))  # so far from every real day that no date window reaches it


@dataclass(frozen=True)
class Column:
    """One metadata field: its values, and which document carries which: a sparse (documents, values) matrix of ones."""

    values: tuple[str, ...]
    incidence: sparse.csr_matrix

    @cached_property
    def position(self) -> dict[str, int]:
        return {value: at for at, value in enumerate(self.values)}


class Corpus:
    """Documents in order, each id once."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents = tuple(documents)
        self.ids: tuple[DocId, ...] = tuple(document.doc_id for document in self.documents)
        self.position: dict[DocId, int] = {}
        for at, doc_id in enumerate(self.ids):
            if self.position.setdefault(doc_id, at) != at:
                raise InputError(
                    f"document id {doc_id!r} occurs twice", hint="give each document its own id"
                )
        self._columns: dict[Field, Column] = {}

    def __len__(self) -> int:
        return len(self.documents)

    def column(self, field: Field) -> Column:
        """The values of source, category, entities or published_at (ISO days), in order of first appearance."""
        if field not in self._columns:
            self._columns[field] = self._build_column(field)
        return self._columns[field]

    @cached_property
    def days(self) -> npt.NDArray[np.int32]:
        """Publication days as ordinals: (documents,), UNDATED where unknown."""
        dates = (document.published_at for document in self.documents)
        return np.fromiter(
            (day.toordinal() if day else UNDATED for day in dates), np.int32, len(self)
        )

    def mask(self, filter: Filter | None) -> Mask:
        """Which documents pass the filter: (documents,)."""
        passing = np.ones(len(self), dtype=bool)
        for condition in filter.conditions if filter else ():
            passes = self._passes(condition)
            passing &= (
                passes | ~self._carries(condition.field) if filter and filter.lenient else passes
            )
        return passing

    def _carries(self, field: Field) -> Mask:
        """Which documents have a value of this field at all."""
        return np.asarray(np.diff(self.column(field).incidence.indptr) > 0)

    def _passes(self, condition: Condition) -> Mask:
        if condition.operator in ("$gte", "$lte"):
            bound = date.fromisoformat(condition.values[0]).toordinal()
            if condition.operator == "$gte":
                return np.asarray(self.days >= bound)
            return np.asarray((self.days <= bound) & (self.days != UNDATED))
        column = self.column(condition.field)
        wanted = np.zeros(len(column.values), dtype=np.float32)
        wanted[
            [column.position[value] for value in condition.values if value in column.position]
        ] = 1
        carries: Mask = np.asarray(column.incidence @ wanted) > 0
        return carries if condition.operator == "$in" else ~carries

    def _build_column(self, field: Field) -> Column:
        codes: dict[str, int] = {}
        columns: list[int] = []
        starts = [0]
        for document in self.documents:
            columns += sorted(
                {codes.setdefault(value, len(codes)) for value in field_values(document, field)}
            )
            starts.append(len(columns))
        ones = np.ones(len(columns), dtype=np.float32)
        matrix = sparse.csr_matrix((ones, columns, starts), shape=(len(self), len(codes)))
        return Column(tuple(codes), matrix)


def field_values(document: Document, field: Field) -> tuple[str, ...]:
    """A document's values of one metadata field; dates as ISO days."""
    if field == "entities":
        return document.entities
    if field == "published_at":
        return (document.published_at.isoformat(),) if document.published_at else ()
    value = document.source if field == "source" else document.category
    return (value,) if value else ()


def searchable_text(document: Document) -> str:
    """What text search and encoders see of a document: title, then text."""
    return (
        f"{document.title}\n{document.text}"
        if document.title and document.text
        else document.title or document.text
    )


# --- chunks: Chunks: long documents cut into overlapping pieces that are retrieved on their own and know their parent.

# What counts towards the size of a chunk: a word, a character of a script without spaces, a mark. The limit keeps text without
# any space from being one endless word.
_PIECE = re.compile(rf"[{CJK}]|[^\W{CJK}]{{1,64}}|[^\w\s]")


def chunk_documents(
    documents: Iterable[Document], *, tokens: int = 256, overlap: int = 32
) -> Iterator[Document]:
    """Documents of at most `tokens` words and marks; neighbours share `overlap` of them.

    A chunk has the id "parent#0", "parent#1", ..., its parent's title and metadata, and a slice of its text as it stands there.
    A document that is short enough stays as it is; so does one that is a chunk already.
    """
    if tokens < 1 or not 0 <= overlap < tokens:
        raise InputError(
            f"chunks of {tokens} tokens with an overlap of {overlap}",
            hint="the overlap must be smaller than the chunk",
        )
    for document in documents:
        spans = [match.span() for match in _PIECE.finditer(document.text)]
        if document.parent is not None or len(spans) <= tokens:
            yield document
            continue
        for number, start in enumerate(range(0, len(spans) - overlap, tokens - overlap)):
            end = min(start + tokens, len(spans))
            text = document.text[spans[start][0] : spans[end - 1][1]]
            yield replace(
                document, doc_id=f"{document.doc_id}#{number}", text=text, parent=document.doc_id
            )
