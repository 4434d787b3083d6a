"""Every store of ours keeps the one contract, so that a retriever gives the same answers on each."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from suffice.engines.embedded import EmbeddedStore
from suffice.engines.qdrant import QdrantStore
from suffice.protocols import Store
from suffice.retrieval.memory import MemoryStore
from suffice.testing import STORE_CHECKS, StoreCheck

Make = Callable[[], Store]


@pytest.fixture
def memory() -> Make:
    return MemoryStore


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Make]:
    number = count()
    made: list[EmbeddedStore] = []

    def make() -> EmbeddedStore:
        made.append(EmbeddedStore(tmp_path / str(next(number))))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def qdrant(qdrant_hosts: str) -> Iterator[Make]:
    made: list[QdrantStore] = []

    def make() -> QdrantStore:
        made.append(QdrantStore(f"qdrant://{qdrant_hosts}/contract-{uuid.uuid4().hex}"))
        return made[-1]

    yield make
    for store in made:
        store.drop()
        store.close()


LIVE = (pytest.mark.live, pytest.mark.xdist_group("qdrant"))


@pytest.mark.parametrize("kind", ["memory", "embedded", pytest.param("qdrant", marks=LIVE)])
@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__.strip("_"))
def test_a_store(kind: str, check: StoreCheck, request: pytest.FixtureRequest) -> None:
    check(request.getfixturevalue(kind))
