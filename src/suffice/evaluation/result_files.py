"""Results on disk: one JSON document each, whose kind and version are checked before anything else of it is believed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from suffice.errors import DataError, InputError, NotReadyError
from suffice.storage import readable_file

__all__ = ["load_result", "result_text"]

T = TypeVar("T")


def result_text(document: Mapping[str, Any]) -> str:
    """The document as it is written: the same values give the same text, and what is no number stands in none."""
    return json.dumps(document, sort_keys=True, allow_nan=False, separators=(",", ":")) + "\n"


def load_result(
    path: Path, read: Callable[[dict[str, Any]], T], *, named: str, version: int, again: str, **marks: str
) -> T:  # fmt: skip
    """What `read` makes of the document; `marks` are what it must say of itself, as in kind="run".

    InputError where it is something else, NotReadyError where it has another version, DataError where it is damaged; `again`
    is the command that makes a new one.
    """
    path, hint = readable_file(Path(path)), f"make it again with: {again}"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a {named}: not valid JSON: {error}", hint=hint) from error
    if not isinstance(document, dict) or any(
        document.get(mark) != value for mark, value in marks.items()
    ):
        raise InputError(f"{path} is not a {named}", hint=hint)
    if document.get("version") != version:
        raise NotReadyError(
            f"{path} has format version {document.get('version')}, this suffice reads version {version}",
            hint=hint,
        )
    try:
        return read(document)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DataError(
            f"{path} is a damaged {named}: {type(error).__name__}: {error}", hint=hint
        ) from error
