"""Check JSON values: single fields of a record, or a whole dataclass by its annotations.

required_text(record, "question")                  InputError with file:line, field and value
dataclass_from_json(Citation, {"doc_id": "ada", "sentence": 0, "text": "Ada taught."})
"""

from __future__ import annotations

import collections.abc
import hashlib
import re
import sys
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from functools import cache
from math import isfinite
from typing import Any, Literal, TypeGuard, TypeVar, Union, get_args, get_origin, get_type_hints

from suffice.errors import InputError, did_you_mean
from suffice.storage.records import SKIP_HINT, Record

T = TypeVar("T")
MAX_COUNT = 1_000_000_000  # Python parses any number, but larger ones make no sense
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_LARGEST = {int: 2**63 - 1, float: sys.float_info.max}


def field_error(record: Record, field: str, expected: str) -> InputError:
    """The error for a missing or unexpected field."""
    if field not in record.value:
        has = ", ".join(map(str, list(record.value)[:12])) or "nothing"
        problem = f"is missing, expected {expected}; it has: {has}"
    else:
        problem = f"is {_shorten(record.value[field], 80)}, expected {expected}"
    return InputError(f"{record.where}: field '{field}' {problem}", hint=SKIP_HINT)


def required_text(record: Record, field: str) -> str:
    """A required, non-blank string, stripped."""
    value = record.value.get(field)
    if not is_text(value) or not value.strip():
        raise field_error(record, field, "a text that is not empty")
    return value.strip()


def optional_text(record: Record, field: str) -> str | None:
    """A string, or None if missing, null or empty. Numbers are accepted as written."""
    value = record.value.get(field)
    if value is None:
        return None
    if isinstance(value, int | float):
        return str(value)
    if not is_text(value):
        raise field_error(record, field, "a text or null")
    return value.strip() or None


def optional_texts(record: Record, field: str) -> tuple[str, ...]:
    """A list of strings that may be missing or null. Integers are accepted: ids often are."""
    value = record.value.get(field)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(
        is_text(one) or (isinstance(one, int) and not isinstance(one, bool)) for one in value
    ):
        raise field_error(record, field, "a list of texts")
    return tuple(str(one) for one in value)


def required_list(record: Record, field: str) -> list[Any]:
    value = record.value.get(field)
    if not isinstance(value, list):
        raise field_error(record, field, "a list")
    return value


def optional_count(record: Record, field: str) -> int | None:
    value = record.value.get(field)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_COUNT:
        raise field_error(record, field, f"a whole number from 0 to {MAX_COUNT:,}")
    return value


def optional_date(record: Record, field: str) -> date | None:
    """The day of an ISO date or timestamp that may be missing, null or empty."""
    value = record.value.get(field)
    if value is None or value == "":
        return None
    try:
        return datetime.fromisoformat(value).date()
    except (ValueError, TypeError):
        expected = "an ISO date like 2023-10-07 or 2023-10-07T20:15:26Z"
        raise field_error(record, field, expected) from None


def is_text(value: object) -> TypeGuard[str]:
    """Whether the value is a string that UTF-8 can encode: JSON allows half a surrogate pair."""
    return isinstance(value, str) and _HALF_PAIR.search(value) is None


class UniqueIds:
    """Rejects ids that occur twice; the error names both places."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._line: dict[str, str] = {}

    def check(self, record_id: str, where: str) -> None:
        if record_id in self._line:
            raise InputError(
                f"{where}: {self.what} id {record_id!r} is already used on line"
                f" {self._line[record_id]}",
                hint="give each its own id, or pass --skip-bad to keep the first of each",
            )
        self._line[record_id] = where.rpartition(":")[2]  # all are in the same file


def content_id(title: str, body: str) -> str:
    """An id made from the content alone, so that two files with the same paragraph agree."""
    # Half a surrogate pair, from broken JSON, can be encoded only this way.
    encoded = f"{title}\n{body}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(encoded).hexdigest()[:12]
    return f"{title}#{digest}" if title else digest


def dataclass_from_json(kind: type[T], value: Any, place: str = "") -> T:
    """Build a dataclass from JSON; ValueError names a missing, unknown or mistyped field.

    Only a field whose default is None may be missing.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"{place or kind.__name__} is {_shorten(value)}, expected an object")
    hints, required = _field_types(kind)  # type: ignore[arg-type]
    if unknown := sorted(value.keys() - hints.keys()):
        nearest = did_you_mean(unknown[0], hints)
        raise ValueError(f"{place or kind.__name__}: {unknown[0]!r} is not known ({nearest})")
    if missing := sorted(required - value.keys()):
        raise ValueError(f"{place or kind.__name__}: {missing[0]!r} is missing")
    return kind(
        **{
            name: _value(hints[name], one, f"{place}.{name}".strip("."))
            for name, one in value.items()
        }
    )


@cache  # evaluating annotations is slow
def _field_types(kind: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """The types of its fields, and the names of those that are required."""
    known, every = get_type_hints(kind), fields(kind)
    required = (one.name for one in every if one.default is not None)
    return {one.name: known[one.name] for one in every}, frozenset(required)


def _value(hint: Any, value: Any, place: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (meant,) = (one for one in inner if one is not types.NoneType)
        return None if value is None else _value(meant, value, place)
    if origin is tuple and isinstance(value, list):
        if inner[0] is float and {*map(type, value)} == {float} and all(map(isfinite, value)):
            return tuple(value)  # a shortcut: some lists have thousands of numbers
        return tuple(_value(inner[0], one, f"{place}[{at}]") for at, one in enumerate(value))
    if origin is collections.abc.Mapping and isinstance(value, Mapping):
        return {name: _value(inner[1], one, f"{place}.{name}") for name, one in value.items()}
    if is_dataclass(hint):
        return dataclass_from_json(hint, value, place)  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, Enum) and value in [one.value for one in hint]:
        return hint(value)
    if hint is Any or (origin is Literal and value in inner) or _is_scalar(hint, value):
        return value
    raise ValueError(f"{place} is {_shorten(value)}, expected {getattr(hint, '__name__', hint)}")


def _is_scalar(hint: Any, value: Any) -> bool:
    if hint in _LARGEST:
        number = isinstance(value, hint | int) and not isinstance(value, bool)
        return number and abs(value) <= _LARGEST[hint]
    return isinstance(hint, type) and not issubclass(hint, Enum) and isinstance(value, hint)


def _shorten(value: Any, length: int = 40) -> str:
    text = repr(value)
    return text if len(text) <= length else f"{text[: length - 3]}..."
