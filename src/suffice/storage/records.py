"""Stream records from files of any size: lines, JSON Lines, JSON arrays and objects, TSV.

Errors name the file and line. A bad record stops reading, or is skipped and counted.
"""

from __future__ import annotations

import csv
import json
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from suffice.errors import InputError
from suffice.storage.artefacts import name_file_in_errors

MAX_RECORD_BYTES = 64 * 1024 * 1024
SKIP_HINT = "fix the record or leave it out (on the command line: --skip-bad)"  # also for HTTP
_UTF8_HINT = "convert the file to UTF-8, or check that it is not a binary file"
_BLOCK = 1024 * 1024
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object of a file; `where` is its position as `file:line`."""

    value: dict[str, Any]
    where: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One key and value of a file that is a single JSON object."""

    key: str
    value: Any
    where: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text file, without its end."""

    text: str
    where: str


class BadRecords:
    """How to handle a bad record: stop (default), or skip it, count it and list the first ones."""

    KEPT = 100  # enough to see the pattern, small enough for memory

    def __init__(self, *, skip: bool = False) -> None:
        self.skip = skip
        self.count = 0
        self.examples: list[str] = []

    def report(self, error: InputError) -> None:
        if not self.skip:
            raise error
        self.count += 1
        if len(self.examples) < self.KEPT:
            self.examples.append(str(error))

    def reject(self, where: str, problem: str, *, hint: str = SKIP_HINT) -> None:
        self.report(InputError(f"{where}: {problem}", hint=hint))


def readable_file(path: Path) -> Path:
    """Return the path if it is a readable file that is not empty; otherwise InputError."""
    path = Path(path)
    if path.is_dir():
        problem, hint = "is a folder, expected a file", "give the path of the file inside it"
    elif not path.exists():
        problem, hint = "does not exist", "check the path"
    elif path.is_fifo():  # a second reader would miss what the first one took
        problem, hint = "is a pipe, expected a file", "write it to a file first"
    elif path.stat().st_size == 0:
        problem, hint = "is empty", "check that the download or export finished"
    elif not os.access(path, os.R_OK):
        problem, hint = "is not readable", "check its permissions"
    else:
        return path
    raise InputError(f"{path} {problem}", hint=hint)


def read_lines(path: Path, bad: BadRecords) -> Iterator[Line]:
    """The lines of a UTF-8 file. A line that is too long or not UTF-8 is a bad record."""
    path = readable_file(path)
    with name_file_in_errors(path), path.open("rb") as stream:
        number = 0
        while block := stream.readline(MAX_RECORD_BYTES + 1):
            number += 1
            where = f"{path}:{number}"
            if len(block) > MAX_RECORD_BYTES:
                bad.reject(where, f"the line is longer than {MAX_RECORD_BYTES:,} bytes")
                while block and not block.endswith(b"\n"):
                    block = stream.readline(_BLOCK)
                continue
            try:
                text = block.decode("utf-8-sig")
            except UnicodeDecodeError as error:
                found = f"byte {block[error.start]:#04x} at {error.start}"
                bad.reject(where, f"not UTF-8 text ({found})", hint=_UTF8_HINT)
            else:
                yield Line(text.rstrip("\r\n"), where)


def read_jsonl(path: Path, bad: BadRecords) -> Iterator[Record]:
    """The objects of a JSON Lines file. Blank lines are skipped."""
    for line in read_lines(path, bad):
        if line.text.strip():
            try:
                value = json.loads(line.text)
            except (ValueError, RecursionError) as error:
                bad.reject(line.where, f"not valid JSON: {error}")
            else:
                yield from _objects(value, line.where, bad)


def read_json_records(path: Path, bad: BadRecords) -> Iterator[Record]:
    """The objects of a file that is a JSON array or JSON Lines, detected by the first character."""
    read = read_json_array if is_json_array(path) else read_jsonl
    return read(path, bad)


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file that ships with suffice."""
    return tomllib.loads("\n".join(line.text for line in read_lines(path, BadRecords())))


def is_json_array(path: Path) -> bool:
    """Whether the file starts like a JSON array."""
    with name_file_in_errors(path), readable_file(path).open("rb") as stream:
        return stream.read(_BLOCK).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")


def _objects(value: Any, where: str, bad: BadRecords) -> Iterator[Record]:
    if isinstance(value, dict):
        yield Record(value, where)
    else:
        bad.reject(where, f"expected a JSON object, found {type(value).__name__}")


def read_json_array(path: Path, bad: BadRecords) -> Iterator[Record]:
    """The objects of a file that is one JSON array, without loading the file.

    Anything else in it is a bad record. A damaged file raises an error even if bad records are
    skipped: nothing can be parsed after a broken bracket.
    """
    for value, where in _JsonStream(readable_file(path)).array():
        yield from _objects(value, where, bad)


def read_json_object(path: Path) -> Iterator[Entry]:
    """The keys and values of a file that is one JSON object, without loading the file."""
    yield from _JsonStream(readable_file(path)).object()


class _JsonStream:
    """A window over the file that grows until the next value fits, then moves past it."""

    _decoder = json.JSONDecoder()

    def __init__(self, path: Path) -> None:
        self.path = path
        self.window, self.at, self.line, self.ended = "", 0, 1, False

    def array(self) -> Iterator[tuple[Any, str]]:
        for where in self._places("[", "]", "array"):
            yield self._value(), where

    def object(self) -> Iterator[Entry]:
        for where in self._places("{", "}", "object"):
            key = self._value()
            if not isinstance(key, str) or self._peek() != ":":
                raise self._damaged("expected a key and ':'")
            self._skip(1)
            self._peek()
            yield Entry(key, self._value(), where)

    def _places(self, opening: str, closing: str, what: str) -> Iterator[str]:
        """Where each item starts; the caller consumes the item before requesting the next."""
        with (
            name_file_in_errors(self.path),
            self.path.open(encoding="utf-8-sig", errors="strict") as self.stream,
        ):
            if self._peek() != opening:
                found = repr(self.window[self.at : self.at + 20])
                raise InputError(
                    f"{self.path}:{self.line}: expected a JSON {what}, it starts with {found}"
                )
            self._skip(1)
            while (char := self._peek()) != closing:
                yield f"{self.path}:{self.line}"
                char = self._peek()
                if char == ",":
                    self._skip(1)
                elif char != closing:
                    expected = f"expected ',' or '{closing}'"
                    raise self._damaged(expected if char else f"the file ends inside the {what}")
            self._skip(1)
            if self._peek():
                raise self._damaged(f"something follows the end of the {what}")

    def _value(self) -> Any:
        while True:
            try:
                value, end = self._decoder.raw_decode(self.window, self.at)
                # A number or word at the very end of the window may continue in the next block.
                if end < len(self.window) or self.ended:
                    self._skip(end - self.at)
                    return value
            except (ValueError, RecursionError) as error:
                if self.ended or not isinstance(error, json.JSONDecodeError):
                    raise self._damaged(str(error)) from error
            if len(self.window) - self.at > MAX_RECORD_BYTES:
                raise self._damaged(f"a record is longer than {MAX_RECORD_BYTES:,} bytes")
            self._grow()

    def _peek(self) -> str:
        while True:
            while self.at < len(self.window) and self.window[self.at] in " \t\r\n":
                self._skip(1)
            if self.at < len(self.window):
                return self.window[self.at]
            if self.ended:
                return ""
            self._grow()

    def _skip(self, length: int) -> None:
        self.line += self.window.count("\n", self.at, self.at + length)
        self.at += length

    def _grow(self) -> None:
        # Doubling keeps the repeated parsing of one huge record linear in its size.
        try:
            block = self.stream.read(max(_BLOCK, len(self.window) - self.at))
        except UnicodeDecodeError as error:
            raise InputError(
                f"{self.path}: not UTF-8 text near line {self.line}", hint=_UTF8_HINT
            ) from error
        self.ended = not block
        self.window, self.at = self.window[self.at :] + block, 0

    def _damaged(self, why: str) -> InputError:
        return InputError(
            f"{self.path}:{self.line}: not valid JSON: {why}", hint="check that the file is whole"
        )


def read_tsv(path: Path, bad: BadRecords, *, columns: Sequence[str]) -> Iterator[Record]:
    """The rows of a tab-separated file whose header has these columns. Cells may span lines."""
    return read_table(path, bad, delimiter="\t", columns=columns)


def read_table(
    path: Path, bad: BadRecords, *, delimiter: str, columns: Sequence[str] = ()
) -> Iterator[Record]:
    """The rows of a file of cells, with a header. Cells may span lines."""
    places: list[str] = []

    def lines() -> Iterator[str]:
        for line in read_lines(path, bad):
            places.append(line.where)
            yield line.text + "\n"

    csv.field_size_limit(MAX_RECORD_BYTES)  # process-wide; a cell may contain ten long documents
    rows = csv.reader(lines(), delimiter=delimiter)
    header: list[str] = []
    while True:
        places.clear()
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            kind = "tab" if delimiter == "\t" else "comma"
            bad.reject(places[0], f"not a {kind}-separated row: {error}")
            continue
        if not header:
            header = _check_header(row, columns, places[0])
        elif len(row) == len(header):
            yield Record(dict(zip(header, row)), places[0])
        elif row:
            bad.reject(places[0], f"the row has {len(row)} cells, expected {len(header)}")


def _check_header(row: list[str], columns: Sequence[str], where: str) -> list[str]:
    missing = [column for column in columns if column not in row]
    if missing:
        found = ", ".join(repr(cell[:40]) for cell in row[:20])
        raise InputError(
            f"{where}: no column {', '.join(map(repr, missing))}; the header has: {found}",
            hint="check that the file has this format and that tabs separate its cells",
        )
    return row


def parse_records(
    records: Iterable[Record], bad: BadRecords, parse: Callable[[Record], T]
) -> Iterator[T]:
    """Parse each record; one that cannot be parsed goes to `bad`."""
    for record in records:
        try:
            value = parse(record)
        except InputError as error:
            bad.report(error)
        else:
            yield value
