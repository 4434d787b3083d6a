"""Files of records, as the tests of the loaders write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def lines(path: Path, *objects: object) -> Path:
    """A JSON value a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in objects), encoding="utf-8")
    return path


def written(folder: Path, name: str, value: Any) -> Path:
    """One JSON value over several lines."""
    path = folder / name
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return path
