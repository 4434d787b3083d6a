"""Frozen records back from JSON, by what their annotations say: a value of another type is refused with its place.

record_of(Citation, {"doc_id": "ada", "sentence": 0, "text": "Ada was taught by Mary."})
"""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

__all__ = ["dataclass_from_json"]

T = TypeVar("T")
LARGEST = {
    int: 2**63 - 1,
    float: sys.float_info.max,
}  # a whole number may be larger than any float, and than any count


def dataclass_from_json(kind: type[T], value: Any, place: str = "") -> T:
    """The record of this kind. ValueError where a field is missing, is not known, or holds something else."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{place or kind.__name__} is {_shown(value)}, expected an object")
    hints = _hints(kind)
    if odd := sorted(set(hints) ^ set(value)):
        raise ValueError(
            f"{place or kind.__name__}: {odd[0]!r} is {'missing' if odd[0] in hints else 'not known'}"
        )
    return kind(
        **{
            name: _value(hint, value[name], f"{place}.{name}".strip("."))
            for name, hint in hints.items()
        }
    )


def _hints(kind: Any) -> dict[str, Any]:
    known = get_type_hints(kind)
    return {field.name: known[field.name] for field in fields(kind)}


def _value(hint: Any, value: Any, place: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (meant,) = (one for one in inner if one is not types.NoneType)
        return None if value is None else _value(meant, value, place)
    if origin is tuple and isinstance(value, list):
        return tuple(_value(inner[0], one, f"{place}[{at}]") for at, one in enumerate(value))
    if origin is not None:
        if isinstance(value, Mapping) and isinstance(origin, type) and issubclass(origin, Mapping):
            return value
    elif is_dataclass(hint):
        return dataclass_from_json(hint, value, place)  # type: ignore[arg-type]
    elif issubclass(hint, Enum) and value in [one.value for one in hint]:
        return hint(value)
    elif _fits(hint, value):
        return value
    raise ValueError(f"{place} is {_shown(value)}, expected {getattr(hint, '__name__', hint)}")


def _fits(hint: type, value: Any) -> bool:
    if hint in (int, float):
        number = isinstance(value, hint | int) and not isinstance(value, bool)
        return number and abs(value) <= LARGEST[hint]
    return isinstance(value, hint)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
