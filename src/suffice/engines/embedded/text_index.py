"""The text index of an embedded store: tantivy over the tokens of `suffice.text`.

Tantivy only splits at spaces, so every store sees the same words. It stores no text: a hit is a row
and a score. It differs from exact BM25 in two ways: document lengths are rounded to 256 steps, and
deleted documents count in word frequencies until they are merged away.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any

import tantivy

from suffice.errors import SufficeError
from suffice.lexicon import STOP_WORDS
from suffice.retrieval.corpus import field_values, searchable_text
from suffice.text import tokens
from suffice.types import FIELDS, Condition, Document, Filter

__all__ = ["DamagedIndexError", "TextIndexReader", "TextIndexWriter", "search_index"]

HEAP_BYTES = 128_000_000
BM25_SCALE = 2.2  # tantivy multiplies by k1 + 1, Lucene and bm25s do not
MAX_WORD_BYTES = 65_000  # tantivy's limit for a word or value
MAX_ROW = 2**63 - 1

Occur, Query = tantivy.Occur, tantivy.Query

# As printed by Rust and Python: out of memory, no permission, too many open files, disk full,
# read-only, quota exceeded.
_SYSTEM_ERROR = re.compile(r"(os error |code: |Errno )(12|13|23|24|28|30|122)\b")


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
    """The index cannot be used. The store can rebuild it from its documents."""

    @property
    def is_system_error(self) -> bool:
        """Whether the disk or the process is at fault, so that a new index would also fail."""
        return bool(_SYSTEM_ERROR.search(str(self)))


@contextmanager
def _index_errors() -> Iterator[None]:
    try:
        yield
    except SufficeError:
        raise
    except (OSError, ValueError) as error:
        raise DamagedIndexError(str(error)) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # tantivy panics if a file is truncated
            raise
        raise DamagedIndexError(str(error)) from None


class TextIndexReader:
    """Reads an index; `searcher` is a frozen view of its last commit."""

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
    """Scores and rows of documents that share words with the question and pass the filter."""
    words = [word for word in dict.fromkeys(tokens(question)) if word not in STOP_WORDS]
    words = [word for word in words if len(word) <= MAX_WORD_BYTES // 4]
    if not words:
        return []
    with _index_errors():
        terms = [Query.term_query(SCHEMA, "words", word, index_option="freq") for word in words]
        query = Query.boolean_query([(Occur.Should, term) for term in terms])
        if filter:
            clauses = [(Occur.Must, _clause(one, filter.lenient)) for one in filter.conditions]
            # Scored as 0, so that passing a filter does not raise the score.
            passing = Query.const_score_query(Query.boolean_query(clauses), 0.0)
            query = Query.boolean_query([(Occur.Must, query), (Occur.Must, passing)])
        hits = searcher.search(query, limit, count=False).hits
        rows = searcher.fast_field_values("row", [address for _, address in hits])
    return [(round(score / BM25_SCALE, 5), int(row or 0)) for (score, _), row in zip(hits, rows)]


def _clause(condition: Condition, lenient: bool) -> tantivy.Query:
    if condition.operator in ("$in", "$nin"):
        passing = Query.term_set_query(SCHEMA, condition.field, list(condition.values))
        if condition.operator == "$nin":
            return _not(passing)
    else:
        day = date.fromisoformat(condition.values[0]).toordinal()
        low, high = (day, None) if condition.operator == "$gte" else (None, day)
        passing = Query.range_query(SCHEMA, "day", tantivy.FieldType.Integer, low, high)
    if not lenient:
        return passing
    any_value = Query.regex_query(SCHEMA, condition.field, r"(.|\n)+")
    return Query.boolean_query([(Occur.Should, passing), (Occur.Should, _not(any_value))])


def _not(query: tantivy.Query) -> tantivy.Query:
    return Query.boolean_query([(Occur.Must, Query.all_query()), (Occur.MustNot, query)])


class TextIndexWriter:
    """The only writer of an index; nothing is visible before `commit`."""

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        self._folder = folder
        with _index_errors():
            if fresh:
                shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
            self._writer = tantivy.Index(SCHEMA, str(folder)).writer(HEAP_BYTES, 1)
            # A writer that died while committing leaves files whose names the next commit would
            # reuse.
            self._writer.garbage_collect_files()

    def add(self, rows: Iterable[tuple[int, Document]]) -> None:
        with _index_errors():
            for row, document in rows:
                fields = _index_fields(row, document)
                self._writer.add_document(tantivy.Document.from_dict(fields, SCHEMA))

    def remove(self, rows: Sequence[int]) -> None:
        if rows:
            # By query: deleting by term silently matches no unsigned number.
            self._delete(Query.term_set_query(SCHEMA, "row", rows))

    def remove_from(self, row: int) -> None:
        """Remove every row from this one on, left by a writer that crashed before publishing."""
        kind = tantivy.FieldType.Unsigned
        self._delete(Query.range_query(SCHEMA, "row", kind, lower_bound=row, upper_bound=MAX_ROW))

    def _delete(self, query: tantivy.Query) -> None:
        with _index_errors():
            self._writer.delete_documents_by_query(query)

    def commit(self) -> None:
        with _index_errors():
            self._writer.commit()
        self._share()

    def close(self) -> None:
        """Drop what is not committed and wait for running merges."""
        with _index_errors():
            self._writer.rollback()
            self._writer.wait_merging_threads()
        self._share()

    def _share(self) -> None:
        """Tantivy makes these two private: let everybody read them who may read the others."""
        with suppress(OSError):
            mode = (self._folder / ".tantivy-writer.lock").stat().st_mode & 0o777
            for name in ("meta.json", ".managed.json"):
                (self._folder / name).chmod(mode)


def _index_fields(row: int, document: Document) -> dict[str, Any]:
    words = [word for word in tokens(searchable_text(document)) if word not in STOP_WORDS]
    fields: dict[str, Any] = {"row": row, "words": " ".join(words)}
    for field in FIELDS:
        if values := field_values(document, field):
            fields[field] = list(dict.fromkeys(values))
    if document.published_at:
        fields["day"] = document.published_at.toordinal()
    return fields
