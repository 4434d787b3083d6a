"""Every store of ours keeps the one contract, so that a retriever gives the same answers on each."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from suffice.engines.embedded import EmbeddedStore
from suffice.ports import Store
from suffice.retrieve.memory import MemoryStore
from suffice.testing import STORE_CHECKS, Check

KINDS: dict[str, Callable[[Path], Store]] = {
    "memory": lambda folder: MemoryStore(),
    "embedded": EmbeddedStore,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__.strip("_"))
def test_a_store(kind: str, check: Check, tmp_path: Path) -> None:
    number = count()
    made: list[Store] = []

    def make() -> Store:
        made.append(KINDS[kind](tmp_path / str(next(number))))
        return made[-1]

    check(make)
    for store in made:
        if isinstance(store, EmbeddedStore):
            store.close()
