"""The text index of an embedded store: tantivy over our own words, so that every store sees the same ones.

Documents are cut into words by `suffice.text`; tantivy only splits at spaces. It keeps no text: a hit is a row and a score.
Two things differ from exact BM25: tantivy rounds document lengths to 256 steps, and counts deleted documents in a word's
frequency until it has merged them away.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import tantivy

from suffice.errors import SufficeError
from suffice.retrieval.corpus import field_values, searchable_text
from suffice.text import STOP_WORDS, tokens
from suffice.types import FIELDS, Condition, Document, Filter

__all__ = ["DamagedIndexError", "TextIndexReader", "TextIndexWriter", "search_index"]

HEAP_BYTES = 128_000_000
BM25_SCALE = 2.2  # tantivy multiplies by k1 + 1, Lucene and bm25s do not
MAX_WORD_BYTES = 65_000  # bytes in a word or value; tantivy takes no longer ones
MAX_ROW = 2**63 - 1

Occur, Query = tantivy.Occur, tantivy.Query


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("row", indexed=True, fast=True)
    builder.add_integer_field("day", indexed=True, fast=True)
    builder.add_text_field("words", tokenizer_name="whitespace", index_option="freq")
    for field in FIELDS:
        builder.add_text_field(field, tokenizer_name="raw", index_option="basic")
    return builder.build()


SCHEMA = _schema()


class DamagedIndexError(Exception):
    """The index cannot be used. It is derived: the store makes a new one from the truth."""

    @property
    def elsewhere(self) -> bool:
        """Whether the trouble is the disk's or the process's, so that a new index would fail like this one."""
        return bool(_SYSTEM_ERROR.search(str(self)))


# As Rust tells them, and Python: no memory, no permission, too many open files, no room, read-only, no quota.
_SYSTEM_ERROR = re.compile(r"(os error |code: |Errno )(12|13|23|24|28|30|122)\b")


@contextmanager
def _index_errors() -> Iterator[None]:
    try:
        yield
    except SufficeError:
        raise
    except (OSError, ValueError) as error:
        raise DamagedIndexError(str(error)) from error
    except BaseException as error:
        if (
            type(error).__name__ != "PanicException"
        ):  # what tantivy throws at a file that ends too early
            raise
        raise DamagedIndexError(str(error)) from None


class TextIndexReader:
    """An index as a reader sees it: `searcher` is a frozen look at its last commit."""

    def __init__(self, folder: Path) -> None:
        with _index_errors():
            self._index = tantivy.Index.open(str(folder))
            self._index.config_reader("manual")

    def searcher(self) -> tantivy.Searcher:
        with _index_errors():
            self._index.reload()
            return self._index.searcher()


def search_index(
    searcher: tantivy.Searcher, question: str, limit: int, filter: Filter | None
) -> list[tuple[float, int]]:
    """Scores and rows of the documents that share words with the question and pass the filter, best first."""
    words = [
        word
        for word in dict.fromkeys(tokens(question))
        if word not in STOP_WORDS and len(word) <= MAX_WORD_BYTES // 4
    ]
    if not words:
        return []
    with _index_errors():
        query = Query.boolean_query(
            [
                (Occur.Should, Query.term_query(SCHEMA, "words", word, index_option="freq"))
                for word in words
            ]
        )
        if filter:
            # A constant score of nothing: passing a filter must not raise a document.
            clauses = [
                (Occur.Must, _clause(one, lenient=filter.lenient)) for one in filter.conditions
            ]
            passing = Query.const_score_query(Query.boolean_query(clauses), 0.0)
            query = Query.boolean_query([(Occur.Must, query), (Occur.Must, passing)])
        hits = searcher.search(query, limit, count=False).hits
        rows = searcher.fast_field_values("row", [address for _, address in hits])
    return [(round(score / BM25_SCALE, 5), int(row or 0)) for (score, _), row in zip(hits, rows)]


def _clause(condition: Condition, *, lenient: bool) -> tantivy.Query:
    if condition.operator == "$nin":
        return _all_but(Query.term_set_query(SCHEMA, condition.field, list(condition.values)))
    if condition.operator == "$in":
        passing = Query.term_set_query(SCHEMA, condition.field, list(condition.values))
    else:
        day = date.fromisoformat(condition.values[0]).toordinal()
        low, high = (day, None) if condition.operator == "$gte" else (None, day)
        passing = Query.range_query(SCHEMA, "day", tantivy.FieldType.Integer, low, high)
    if not lenient:
        return passing
    any_value = Query.regex_query(SCHEMA, condition.field, r"(.|\n)+")
    return Query.boolean_query([(Occur.Should, passing), (Occur.Should, _all_but(any_value))])


def _all_but(query: tantivy.Query) -> tantivy.Query:
    return Query.boolean_query([(Occur.Must, Query.all_query()), (Occur.MustNot, query)])


class TextIndexWriter:
    """An index as its one writer sees it: nothing is visible before `commit`."""

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        with _index_errors():
            if fresh:
                shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
            self._writer = tantivy.Index(SCHEMA, str(folder)).writer(HEAP_BYTES, 1)
            # A writer that died while committing leaves files under names that the next commit would choose again.
            self._writer.garbage_collect_files()

    def add(self, rows: Iterable[tuple[int, Document]]) -> None:
        with _index_errors():
            for row, document in rows:
                self._writer.add_document(
                    tantivy.Document.from_dict(_index_fields(row, document), SCHEMA)
                )

    def forget(self, rows: Sequence[int]) -> None:
        if rows:
            with _index_errors():  # by query: deleting by term silently finds no unsigned number
                self._writer.delete_documents_by_query(Query.term_set_query(SCHEMA, "row", rows))

    def forget_from(self, row: int) -> None:
        """Forget every document from this row on: what a crashed writer left before its truth was committed."""
        with _index_errors():
            beyond = Query.range_query(
                SCHEMA, "row", tantivy.FieldType.Unsigned, lower_bound=row, upper_bound=MAX_ROW
            )
            self._writer.delete_documents_by_query(beyond)

    def commit(self) -> None:
        with _index_errors():
            self._writer.commit()

    def close(self) -> None:
        """Drop what is not committed and let running merges end."""
        with _index_errors():
            self._writer.rollback()
            self._writer.wait_merging_threads()


def _index_fields(row: int, document: Document) -> dict[str, Any]:
    words = [word for word in tokens(searchable_text(document)) if word not in STOP_WORDS]
    found: dict[str, Any] = {"row": row, "words": " ".join(words)}
    for field in FIELDS:
        if values := field_values(document, field):
            found[field] = list(dict.fromkeys(values))
    if document.published_at:
        found["day"] = document.published_at.toordinal()
    return found
