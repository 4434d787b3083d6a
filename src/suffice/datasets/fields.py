"""What the readers ask of a record: a field of the right type, an id used once; and the line that says otherwise."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from suffice.errors import InputError
from suffice.storage import SKIP_HINT, BadRecords, Record, read_lines

__all__ = [
    "UniqueIds",
    "content_id",
    "field_error",
    "is_text",
    "optional_count",
    "optional_date",
    "optional_text",
    "optional_texts",
    "parse_records",
    "read_tsv",
    "required_list",
    "required_text",
]

T = TypeVar("T")
_MOST = 1_000_000_000  # of anything that is counted: Python reads any number, of which no mean can be told
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def field_error(record: Record, field: str, expected: str) -> InputError:
    """The error for a field that is missing or not what was expected."""
    if field not in record.value:
        has = ", ".join(map(str, list(record.value)[:12])) or "nothing"
        return InputError(
            f"{record.where}: field '{field}' is missing, expected {expected}; it has: {has}",
            hint=SKIP_HINT,
        )
    found = repr(record.value[field])
    shown = found if len(found) <= 80 else found[:77] + "..."
    return InputError(
        f"{record.where}: field '{field}' is {shown}, expected {expected}", hint=SKIP_HINT
    )


def parse_records(
    records: Iterable[Record], bad: BadRecords, parse: Callable[[Record], T]
) -> Iterator[T]:
    """What each record says; one that cannot be parsed goes to `bad`."""
    for record in records:
        try:
            value = parse(record)
        except InputError as error:
            bad.report(error)
        else:
            yield value


def required_text(record: Record, field: str) -> str:
    """A text that must be there and say something, without the space around it."""
    value = record.value.get(field)
    if not is_text(value) or not value.strip():
        raise field_error(record, field, "a text that is not empty")
    return value.strip()


def optional_text(record: Record, field: str) -> str | None:
    """A text that may be missing, null or empty: then None. Numbers are taken as they are written."""
    value = record.value.get(field)
    if value is None:
        return None
    if isinstance(value, int | float):
        return str(value)
    if not is_text(value):
        raise field_error(record, field, "a text or null")
    return value.strip() or None


def optional_texts(record: Record, field: str) -> tuple[str, ...]:
    """A list of texts that may be missing or null. Numbers count as texts: ids are often numbers."""
    value = record.value.get(field)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise field_error(record, field, "a list of texts")
    if not all(
        is_text(one) or (isinstance(one, int) and not isinstance(one, bool)) for one in value
    ):
        raise field_error(record, field, "a list of texts")
    return tuple(str(one) for one in value)


def required_list(record: Record, field: str) -> list[Any]:
    """A list that must be there."""
    value = record.value.get(field)
    if not isinstance(value, list):
        raise field_error(record, field, "a list")
    return value


def optional_count(record: Record, field: str) -> int | None:
    """A count that may be missing or null."""
    value = record.value.get(field)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST:
        raise field_error(record, field, f"a whole number from 0 to {_MOST:,}")
    return value


def optional_date(record: Record, field: str) -> date | None:
    """The day of an ISO date or time stamp that may be missing, null or empty."""
    value = record.value.get(field)
    if value is None or value == "":
        return None
    try:
        return datetime.fromisoformat(value).date()
    except (ValueError, TypeError):
        raise field_error(
            record, field, "an ISO date like 2023-10-07 or 2023-10-07T20:15:26Z"
        ) from None


def is_text(value: object) -> TypeGuard[str]:
    """Whether the value is a text that can be stored. JSON can spell half a surrogate pair, which UTF-8 cannot."""
    return isinstance(value, str) and _HALF_PAIR.search(value) is None


class UniqueIds:
    """Ids that may not come twice; the error names both places."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._line: dict[str, str] = {}

    def check(self, record_id: str, where: str) -> None:
        line = where.rpartition(":")[
            2
        ]  # the file is the same for all: keeping its name each time would cost more than the ids
        if record_id in self._line:
            raise InputError(
                f"{where}: {self.what} id {record_id!r} is already used on line {self._line[record_id]}",
                hint="give each its own id, or pass --skip-bad to keep the first and list the others",
            )
        self._line[record_id] = line


def content_id(title: str, body: str) -> str:
    """An id that follows from the content alone, so that two files that hold the same paragraph agree on it."""
    # Half a surrogate pair, as broken JSON has it, cannot be encoded otherwise; for any other text these are the same bytes.
    digest = hashlib.sha256(f"{title}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{title}#{digest}" if title else digest


def read_tsv(path: Path, bad: BadRecords, *, columns: Sequence[str]) -> Iterator[Record]:
    """The rows of a tab-separated file with a header, which must have these columns. A quoted cell may run over lines."""
    places: list[str] = []

    def lines() -> Iterator[str]:
        for line in read_lines(path, bad):
            places.append(line.where)
            yield line.text + "\n"

    rows = csv.reader(lines(), delimiter="\t")
    header: list[str] = []
    while True:
        places.clear()
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            bad.report(
                InputError(
                    f"{places[0]}: not a row of tab-separated cells: {error}", hint=SKIP_HINT
                )
            )
            continue
        if not header:
            header = _checked_header(row, columns, places[0])
        elif len(row) == len(header):
            yield Record(dict(zip(header, row)), places[0])
        elif row:
            found = f"the row has {len(row)} cells, expected {len(header)}"
            bad.report(InputError(f"{places[0]}: {found}", hint=SKIP_HINT))


def _checked_header(row: list[str], columns: Sequence[str], where: str) -> list[str]:
    missing = [column for column in columns if column not in row]
    if missing:
        found = ", ".join(repr(cell[:40]) for cell in row[:20])
        raise InputError(
            f"{where}: no column {', '.join(map(repr, missing))}; the header has: {found}",
            hint="check that the file has this format and that its cells are separated by tabs",
        )
    return row
