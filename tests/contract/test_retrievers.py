"""Every retriever that is registered keeps the one contract, on every store of ours."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from suffice.engines.embedded import EmbeddedStore
from suffice.engines.qdrant import QdrantStore
from suffice.protocols import Store
from suffice.registry import RETRIEVERS
from suffice.retrieval import builtin  # noqa: F401 - importing it registers our retrievers
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.encoders import WordLlamaEncoder
from suffice.retrieval.memory import MemoryStore
from suffice.testing import VILLAGE, check_encoder, check_retriever

ENCODER = WordLlamaEncoder()


class Shortest:
    """A reranker that prefers short texts, so that the contract needs no model."""

    def score(self, question: str, texts: Sequence[str]) -> np.ndarray:
        return -np.array([float(len(text)) for text in texts], dtype=np.float32)


class PrefersShort:
    """A set scorer with its reader, for the bridge that reads: likewise without a model."""

    def score(self, question: str, held: Sequence[str], candidates: Sequence[str]) -> np.ndarray:
        return -np.array([float(len(text)) for text in candidates], dtype=np.float32)

    @property
    def reader(self) -> PrefersShort:
        return self

    def p(self, rows: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-rows[:, -1].astype(float) / 1000))


OPTIONS: dict[str, dict[str, object]] = {
    "filtered-rerank": {"reranker": Shortest()},
    "bridge-quality": {"encoder": ENCODER, "scorer": PrefersShort()},
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Store]:
    folder: Path = tmp_path_factory.mktemp("village")
    made: dict[str, Store] = {"memory": MemoryStore(), "embedded": EmbeddedStore(folder / "store")}
    for store in made.values():
        store.put(VILLAGE, ENCODER.encode([searchable_text(document) for document in VILLAGE]))
    return made


@pytest.mark.parametrize("kind", ["memory", "embedded"])
@pytest.mark.parametrize("name", RETRIEVERS.names())
def test_a_retriever(name: str, kind: str, stores: dict[str, Store]) -> None:
    check_retriever(
        lambda store: RETRIEVERS.get(name)(store, **OPTIONS.get(name, {})), stores[kind]
    )


@pytest.fixture(scope="module")
def distant(qdrant_hosts: str) -> Iterator[QdrantStore]:
    with QdrantStore(f"qdrant://{qdrant_hosts}/village-{uuid.uuid4().hex}") as store:
        store.put(VILLAGE, ENCODER.encode([searchable_text(document) for document in VILLAGE]))
        yield store
        store.drop()


@pytest.mark.live
@pytest.mark.xdist_group("qdrant")
@pytest.mark.parametrize("name", ["hybrid", "filtered-rerank", "bridge", "hybrid-metagraph", "ppr"])
def test_a_retriever_on_qdrant(name: str, distant: QdrantStore) -> None:
    check_retriever(lambda store: RETRIEVERS.get(name)(store, **OPTIONS.get(name, {})), distant)


def test_the_default_encoder() -> None:
    check_encoder(ENCODER)
