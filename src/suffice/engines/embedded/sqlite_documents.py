"""The documents of an embedded store in one SQLite file, which decides what the store contains.

A row is one version of a document. Replacing a document gives it a new row and keeps its place: the
row of its first version, which is the insertion order. Rows are never reused, so a row in an index
always means the same text. Deleted rows stay listed until the text index has dropped them.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, EngineError, NotReadyError, SufficeError, disk_hint
from suffice.retrieval.corpus import field_values
from suffice.storage.artefacts import fsync_path
from suffice.types import Condition, DocId, Document, Field, Filter

__all__ = [
    "DocumentRow", "SqliteDocuments", "StoreState", "create_database", "os_errors", "sqlite_errors"
]  # fmt: skip

FORMAT = 1
APPLICATION_ID = 0x73756666  # "suff": marks a SQLite file as ours
MAX_PARAMETERS = 500  # in one statement
NO_LIMIT = 1_000_000_000

TABLES = """
CREATE TABLE state (generation INTEGER, next_row INTEGER, documents INTEGER,
                    text INTEGER, vectors INTEGER, dimension INTEGER, slots INTEGER);
CREATE TABLE documents (row INTEGER PRIMARY KEY, place INTEGER NOT NULL, doc_id TEXT NOT NULL UNIQUE, slot INTEGER,
                        source TEXT, category TEXT, published_at TEXT, parent TEXT, entities TEXT, extra TEXT,
                        title TEXT NOT NULL, text TEXT NOT NULL);
CREATE UNIQUE INDEX by_place ON documents (place);
CREATE INDEX by_source ON documents (source, place) WHERE source IS NOT NULL;
CREATE INDEX by_category ON documents (category, place) WHERE category IS NOT NULL;
CREATE INDEX by_published_at ON documents (published_at, place) WHERE published_at IS NOT NULL;
CREATE TABLE entities (value TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (value, row)) WITHOUT ROWID;
CREATE TABLE buried (row INTEGER PRIMARY KEY, died INTEGER NOT NULL);
CREATE TABLE empty_slots (slot INTEGER PRIMARY KEY);
INSERT INTO state VALUES (0, 1, 0, 0, 0, 0, 0);
"""
DOCUMENT_COLUMNS = "doc_id, text, title, source, category, published_at, entities, parent, extra"


@dataclass(frozen=True, slots=True)
class StoreState:
    """The parts of a generation."""

    generation: int
    next_row: int
    documents: int
    text: int  # number of the text index's folder, 0 before the first
    vectors: int  # number of the vector file, 0 before the first
    dimension: int
    slots: int  # records of the vector file that belong to this generation


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One version of a document: its row, its place in the insertion order, its vector's slot."""

    row: int
    place: int
    slot: int | None
    entities: tuple[str, ...]


class SqliteDocuments:
    """One connection to the file. Statements inside `reading` or `writing` see one generation."""

    def __init__(self, file: Path, *, frozen: bool = False) -> None:
        self.file, self.pid = file, os.getpid()
        log = file.with_name(file.name + "-wal")
        if frozen and log.exists() and log.stat().st_size:
            raise EngineError(
                f"{file} was not closed, and its folder is read-only",
                hint="open it once where its folder is writable",
            )
        mode = "ro&immutable=1" if frozen else "rw"
        with sqlite_errors(file):
            self._db = sqlite3.connect(
                f"{file.resolve().as_uri()}?mode={mode}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=30.0,
                cached_statements=256,
            )
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def _prepare(self) -> None:
        for pragma in ("synchronous=FULL", "cache_size=-65536", "journal_size_limit=67108864"):
            self._db.execute(f"PRAGMA {pragma}")
        version, application = (
            self._one(f"PRAGMA {x}") for x in ("user_version", "application_id")
        )
        if application != APPLICATION_ID:
            hint = "build the library again in another folder"
            raise DataError(f"{self.file} is not a store of suffice", hint=hint)
        if version != FORMAT:
            age = "a newer" if version > FORMAT else "an older"
            raise NotReadyError(
                f"{self.file} has format {version}, {age} one than this suffice reads ({FORMAT})",
                hint="build the library again",
            )

    def _one(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def reading(self) -> Iterator[StoreState]:
        """See one generation: writes of others stay invisible until the block ends."""
        self._db.execute("BEGIN")
        try:
            yield self.state()
        finally:
            self._db.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction: durable when the block ends, rolled back if it raises."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def state(self) -> StoreState:
        return StoreState(*self._db.execute("SELECT * FROM state").fetchone())

    # ------------------------------------------------------------------------------------- reading

    def get(self, doc_ids: Sequence[DocId]) -> dict[DocId, Document]:
        query = f"SELECT {DOCUMENT_COLUMNS} FROM documents WHERE doc_id IN"
        return {values[0]: _document(values) for values in self._each(query, doc_ids)}

    def documents(self) -> Iterator[tuple[DocumentRow, Document]]:
        query = f"SELECT row, place, slot, {DOCUMENT_COLUMNS} FROM documents ORDER BY place"
        for row, place, slot, *values in self._db.execute(query):
            document = _document(values)
            yield DocumentRow(row, place, slot, document.entities), document

    def locate(self, rows: Sequence[int]) -> dict[int, tuple[int, DocId]]:
        """Place and id of the documents of these rows; rows not in this generation are left out."""
        query = "SELECT row, place, doc_id FROM documents WHERE row IN"
        return {row: (place, doc_id) for row, place, doc_id in self._each(query, rows)}

    def lookup(self, field: Field, values: Sequence[str]) -> list[tuple[DocId, ...]]:
        query = (
            "SELECT doc_id FROM entities JOIN documents USING (row) WHERE value = ? ORDER BY place"
            if field == "entities"
            else f"SELECT doc_id FROM documents WHERE {field} = ? ORDER BY place"
        )
        return [tuple(doc_id for (doc_id,) in self._db.execute(query, (one,))) for one in values]

    def values(self, field: Field) -> dict[str, int]:
        query = (
            "SELECT value, count(*) FROM entities GROUP BY value"
            if field == "entities"
            else (
                f"SELECT {field}, count(*) FROM documents WHERE {field} IS NOT NULL GROUP "
                f"BY {field}"
            )
        )
        return dict(self._db.execute(query))

    def slots_matching(self, filter: Filter) -> npt.NDArray[np.int64]:
        """The vector slots of the documents that pass the filter."""
        tests: list[str] = ["slot IS NOT NULL"]
        values: list[str] = []
        for condition in filter.conditions:
            test, more = _sql_test(condition)
            tests.append(f"({test} OR {condition.field} IS NULL)" if filter.lenient else test)
            values += more
        return self._slots(f"SELECT slot FROM documents WHERE {' AND '.join(tests)}", values)

    def empty_slots(self) -> npt.NDArray[np.int64]:
        return self._slots("SELECT slot FROM empty_slots")

    def _slots(self, query: str, values: Sequence[str] = ()) -> npt.NDArray[np.int64]:
        return np.fromiter((slot for (slot,) in self._db.execute(query, values)), np.int64)

    def rows(self, doc_ids: Sequence[DocId]) -> dict[DocId, DocumentRow]:
        query = "SELECT doc_id, row, place, slot, entities FROM documents WHERE doc_id IN"
        return {
            doc_id: DocumentRow(row, place, slot, tuple(json.loads(entities)) if entities else ())
            for doc_id, row, place, slot, entities in self._each(query, doc_ids)
        }

    def _each(self, query: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(values), MAX_PARAMETERS):
            part = values[start : start + MAX_PARAMETERS]
            yield from self._db.execute(f"{query} ({','.join('?' * len(part))})", part)

    # ------------------------------------------------------------------------------------- writing

    def set_state(self, state: StoreState) -> None:
        columns = ", ".join(f"{field.name} = ?" for field in fields(StoreState))
        self._db.execute(f"UPDATE state SET {columns}", astuple(state))

    def insert(self, documents: Iterable[tuple[DocumentRow, Document]]) -> None:
        documents = list(documents)
        self._db.executemany(
            f"INSERT INTO documents (row, place, slot, {DOCUMENT_COLUMNS}) VALUES (?{', ?' * 11})",
            [(at.row, at.place, at.slot, *_column_values(document)) for at, document in documents],
        )
        self._db.executemany(
            "INSERT OR IGNORE INTO entities VALUES (?, ?)",
            [
                (one, at.row)
                for at, document in documents
                for one in field_values(document, "entities")
            ],
        )

    def remove(self, rows: Sequence[DocumentRow], *, generation: int) -> None:
        """Remove these versions; they stay listed as deleted in this generation."""
        run = self._db.executemany
        run("DELETE FROM documents WHERE row = ?", [(one.row,) for one in rows])
        entities = [(value, one.row) for one in rows for value in one.entities]
        run("DELETE FROM entities WHERE value = ? AND row = ?", entities)
        run("INSERT INTO buried VALUES (?, ?)", [(one.row, generation) for one in rows])
        slots = [(one.slot,) for one in rows if one.slot is not None]
        run("INSERT INTO empty_slots VALUES (?)", slots)

    def deleted_rows(self, *, until: int) -> list[int]:
        """Rows deleted in this generation or before that are still listed."""
        query = "SELECT row FROM buried WHERE died <= ?"
        return [row for (row,) in self._db.execute(query, (until,))]

    def deleted_count(self) -> int:
        return self._one("SELECT count(*) FROM buried")

    def forget_deleted(self, *, until: int = NO_LIMIT) -> None:
        self._db.execute("DELETE FROM buried WHERE died <= ?", (until,))

    def renumber_slots(self, old: npt.NDArray[np.int64]) -> None:
        """Record that the vector of slot old[n] is now in slot n, and that no slot is empty."""
        # A temporary table, because an index on slot would slow every insert.
        self._db.execute("CREATE TEMP TABLE moved (old INTEGER PRIMARY KEY, new INTEGER)")
        moves = zip(old.tolist(), range(len(old)))
        self._db.executemany("INSERT INTO moved VALUES (?, ?)", moves)
        new = "(SELECT new FROM moved WHERE old = slot)"
        self._db.execute(f"UPDATE documents SET slot = {new} WHERE slot IS NOT NULL")
        self._db.execute("DROP TABLE moved")
        self._db.execute("DELETE FROM empty_slots")


def create_database(file: Path) -> None:
    """Create an empty database under another name, then rename it, so that a crash is harmless."""
    draft = file.with_name(f".{file.name}.draft")
    with sqlite_errors(file), os_errors(file):
        for leftover in file.parent.glob(f"{draft.name}*"):
            leftover.unlink()
        database = sqlite3.connect(draft, isolation_level=None)
        try:
            database.execute("PRAGMA journal_mode=WAL")
            marks = f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT};"
            database.executescript(f"BEGIN; {TABLES} {marks} COMMIT;")
        finally:
            database.close()
        os.rename(draft, file)
        fsync_path(file.parent)


def _column_values(document: Document) -> tuple[Any, ...]:
    """A document's values in the order of DOCUMENT_COLUMNS."""
    day, entities, extra = document.published_at, document.entities, document.extra
    texts = document.doc_id, document.text, document.title, document.source, document.category
    return (
        *texts,
        day.isoformat() if day else None,
        json.dumps(entities) if entities else None,
        document.parent,
        json.dumps(dict(extra)) if extra else None,
    )


def _document(values: Sequence[Any]) -> Document:
    doc_id, text, title, source, category, day, entities, parent, extra = values
    published_at = date.fromisoformat(day) if day else None
    names = tuple(json.loads(entities)) if entities else ()
    more = json.loads(extra) if extra else {}
    return Document(doc_id, text, title, source, category, published_at, names, parent, more)


def _sql_test(condition: Condition) -> tuple[str, Sequence[str]]:
    field, operator = condition.field, condition.operator
    if operator in ("$gte", "$lte"):  # ISO dates sort by day
        return f"{field} {'>=' if operator == '$gte' else '<='} ?", condition.values
    test = f"{field} IN (SELECT value FROM json_each(?))"
    if field == "entities":
        test = "row IN (SELECT row FROM entities WHERE value IN (SELECT value FROM json_each(?)))"
    return (test if operator == "$in" else f"({test}) IS NOT TRUE"), [json.dumps(condition.values)]


@contextmanager
def os_errors(file: Path) -> Iterator[None]:
    """Turn an OSError into an EngineError."""
    try:
        yield
    except OSError as error:
        message = f"{file} cannot be written: {error.strerror or error}"
        raise EngineError(message, hint=disk_hint(error)) from error


@contextmanager
def sqlite_errors(file: Path) -> Iterator[None]:
    """Turn SQLite's errors into an EngineError or a DataError."""
    try:
        yield
    except SufficeError:
        raise
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            hint = "try again in a moment"
            raise EngineError(f"{file} is busy: {error}", hint=hint, retryable=True) from error
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR):
            hint = "check the disk; then restore it from a backup, or build the library again"
            raise DataError(f"{file} is damaged: {error}", hint=hint) from error
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            hint = "check the folder's permissions, and that the disk has room"
            raise EngineError(f"{file} cannot be opened or written: {error}", hint=hint) from error
        hint = "check that the disk is healthy and has room"
        raise EngineError(f"{file}: {error}", hint=hint) from error
