"""Which of the models that ship a study opens, beside those that its stored run names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from docs.generators.freshness import STORED_RUNS

from suffice.storage import artefacts


@contextmanager
def only_models_of(run: str) -> Iterator[None]:
    """Fail if a model is opened that `STORED_RUNS` does not name: the run's age would ignore it."""
    named = next(one.models for one in STORED_RUNS if one.name == run)
    opened, read_json = set[str](), artefacts.read_json

    def recorded(path: Path) -> dict[str, Any]:
        if path.parent.parent.name == "models":
            opened.add(path.parent.name)
        return read_json(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(artefacts, "read_json", recorded)
        yield
    assert opened <= set(named), f"docs/generators/freshness.py: {run} loads {sorted(opened)}"
