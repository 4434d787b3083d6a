"""The store on a real Qdrant server: what the contract does not say. One server for the whole file."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import suffice
from tests.properties.test_name_rows_properties import same
from tests.qdrant_server import Servers
from tests.values import known

from suffice.datasets import jsonl
from suffice.engines.qdrant import QdrantStore
from suffice.errors import EngineError, InputError, NotReadyError
from suffice.library import Library
from suffice.registry import RETRIEVERS
from suffice.retrieval.bridge import BridgeRetriever, TreeRanker
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.encoders import WordLlamaEncoder
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.name_links import name_links
from suffice.retrieval.name_rows import NameRows
from suffice.testing import VILLAGE, VILLAGE_VECTORS
from suffice.types import Document, Hit
from suffice_research.controlled import controlled_collection

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("qdrant")]

ENCODER = WordLlamaEncoder()


@pytest.fixture
def address(qdrant_hosts: str) -> Iterator[str]:
    made = f"qdrant://{qdrant_hosts}/t-{uuid.uuid4().hex}"
    yield made
    with QdrantStore(made) as store:
        store.drop()


def ids(hits: tuple[Hit, ...]) -> list[str]:
    return [hit.doc_id for hit in hits]


@pytest.fixture(scope="module")
def news(qdrant_hosts: str) -> Iterator[tuple[MemoryStore, QdrantStore]]:
    """The controlled collection in memory and on three shards."""
    documents = list(controlled_collection(documents=300).documents())
    vectors = ENCODER.encode([searchable_text(one) for one in documents])
    with QdrantStore(
        f"qdrant://{qdrant_hosts}/news-{uuid.uuid4().hex}?shards=3", refresh_s=600
    ) as store:
        store.put(documents, vectors)
        yield MemoryStore(documents, vectors), store
        store.drop()


QUESTIONS = [one.question.text for one in controlled_collection(documents=300).questions()][:40]


def overlap(ours: list[tuple[Hit, ...]], theirs: list[tuple[Hit, ...]]) -> float:
    """Mean share of the hits that both have."""
    pairs = [(set(ids(one)), set(ids(other))) for one, other in zip(ours, theirs)]
    return float(np.mean([len(one & other) / max(len(one), 1) for one, other in pairs]))


def test_bm25_on_three_shards_is_nearly_bm25_over_the_whole(
    news: tuple[MemoryStore, QdrantStore],
) -> None:
    exact, sharded = (store.search_text(QUESTIONS, k=10) for store in news)
    assert overlap(exact, sharded) > 0.8  # a shard has 100 documents


def test_bm25_on_one_shard_is_bm25(address: str) -> None:
    documents = list(controlled_collection(documents=300).documents())
    with QdrantStore(address) as store:
        store.put(documents)
        found = store.search_text(QUESTIONS, k=10)
        exact = MemoryStore(documents).search_text(QUESTIONS, k=10)
    for ours, theirs in zip(exact, found):
        assert [hit.score for hit in theirs] == pytest.approx([hit.score for hit in ours], abs=2e-5)
        # Scores that differ in the sixth digit alone may change places.
        least = known(ours[-1].score) + 1e-4
        assert {hit.doc_id for hit in ours if known(hit.score) > least} <= set(ids(theirs))


def test_vector_search_finds_the_same_on_three_shards(
    news: tuple[MemoryStore, QdrantStore],
) -> None:
    vectors = ENCODER.encode(QUESTIONS)
    exact, sharded = (store.search_vectors(vectors, k=10) for store in news)
    assert [set(ids(one)) for one in sharded] == [set(ids(one)) for one in exact]


@pytest.mark.parametrize("name", ["hybrid-metagraph", "hybrid-title", "filtered", "bridge"])
def test_a_retriever_finds_there_nearly_what_it_finds_in_memory(
    name: str, news: tuple[MemoryStore, QdrantStore]
) -> None:
    make: Any = RETRIEVERS.get(name)
    here, there = (make(store).search(QUESTIONS[:5], k=8) for store in news)
    assert overlap(here, there) > 0.8


def test_a_bridge_question_costs_hops_and_two_round_trips(
    news: tuple[MemoryStore, QdrantStore],
) -> None:
    _, store = news
    bridge = BridgeRetriever(store, ENCODER, name_links(store.documents), TreeRanker.load(), hops=3)
    bridge.search(QUESTIONS[:1], k=10)
    spent = []
    for question in QUESTIONS[:5]:
        before = store.round_trips
        bridge.search([question], k=10)
        spent.append(store.round_trips - before)
    assert max(spent) <= 3 + 2, spent


def test_a_second_store_sees_what_the_first_wrote(address: str) -> None:
    with QdrantStore(address) as writer, QdrantStore(address, refresh_s=0) as reader:
        assert len(reader) == 0
        writer.put(VILLAGE, VILLAGE_VECTORS)
        assert (len(reader), reader.generation) == (len(writer), writer.generation)
        assert reader.search_text(["engine"], k=3) == writer.search_text(["engine"], k=3)


def test_a_rebuild_takes_the_place_of_the_old_in_one_step(address: str) -> None:
    with QdrantStore(address) as store, QdrantStore(address, refresh_s=0) as reader:
        store.put(VILLAGE, VILLAGE_VECTORS)
        before = store.generation
        seen_meanwhile: list[int] = []
        count = store.rebuild(
            VILLAGE[:2], acknowledged=lambda _: seen_meanwhile.append(len(reader))
        )
        assert count == 2
        assert seen_meanwhile == [len(VILLAGE)]
        assert reader.generation > before
        assert [one.doc_id for one in reader.documents()] == ["ada", "babbage"]
        assert ids(reader.search_text(["poet"], k=3)[0]) == []


def test_vectors_for_a_collection_without_are_refused(address: str) -> None:
    with QdrantStore(address) as store:
        store.put(VILLAGE)
        before = store.generation
        with pytest.raises(InputError, match="made without vectors") as caught:
            store.put([VILLAGE[0]], VILLAGE_VECTORS[:1])
        assert "--rebuild" in str(caught.value.hint)
        assert store.generation == before


def test_what_a_writer_that_died_has_stored_is_searched_and_counted(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with QdrantStore(address, batch=2, refresh_s=0) as store:
        store.put(VILLAGE[:2])
        before = store.generation

        def die(_: object) -> None:
            monkeypatch.setattr(QdrantStore, "_raise_generation", lambda *_: None)
            raise ZeroDivisionError

        with monkeypatch.context(), pytest.raises(ZeroDivisionError):
            store.put(VILLAGE[2:], acknowledged=die)
        monkeypatch.undo()
        assert store.generation > before
        assert len(store) == 4
        assert ids(store.search_text(["poet"], k=3)[0]) == ["byron"]
        store.put(VILLAGE[4:])
        assert [one.doc_id for one in store.documents()] == [one.doc_id for one in VILLAGE]


def test_a_collection_of_others_is_left_alone(qdrant_hosts: str) -> None:
    from qdrant_client import QdrantClient, models

    name = f"theirs-{uuid.uuid4().hex}"
    client = QdrantClient(url=f"http://{qdrant_hosts}", check_compatibility=False)
    client.create_collection(
        name, vectors_config=models.VectorParams(size=2, distance=models.Distance.DOT)
    )
    try:
        with (
            QdrantStore(f"qdrant://{qdrant_hosts}/{name}") as store,
            pytest.raises(NotReadyError, match="did not make"),
        ):
            store.put(VILLAGE)
    finally:
        client.delete_collection(name)
        client.close()


def test_build_and_search_by_the_command_line(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUFFICE_CACHE", str(tmp_path / "cache"))
    jsonl.write(controlled_collection(documents=60), tmp_path / "data")
    built = suffice("build", tmp_path / "data", "--store", address)
    assert built.exit_code == 0, built.output
    with Library.open(address) as library:
        title = next(library.documents()).title
        assert (len(library), library.encoder_name) == (60, "wordllama")
    for words in (
        ["search", address, title],
        ["search", "--store", address, title, "--retriever", "bridge", "--json"],
    ):
        found = suffice(*words)
        assert found.exit_code == 0, found.output
        assert title.split()[0] in found.output
    again = suffice(
        "build", tmp_path / "data", "--store", address, "--rebuild", "--encoder", "none"
    )
    assert again.exit_code == 0, again.output
    with Library.open(address) as library:
        assert (len(library), library.encoder_name) == (60, None)


def test_name_links_follow_the_writes(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUFFICE_CACHE", str(tmp_path))
    with Library.build(address, VILLAGE, encoder=None, links=False) as library:
        library.name_links()
        library.add([Document("note", "Whoever has x-200 may ask Lord Byron.", "Whoever")])
        library.delete([VILLAGE[0].doc_id])
        same(library.name_links(), name_links(library.documents))
        (rows,) = library.path.glob("name-rows-*")
        assert rows.name == f"name-rows-{library.store.generation}"
        assert NameRows.load(rows).ids == tuple(one.doc_id for one in library.documents())


def test_a_key_is_needed_and_never_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    with Servers(key="the right key") as servers:
        address = f"qdrant://{servers.hosts}/locked?patience_s=5"
        with (
            QdrantStore(address, api_key="a wrong key") as store,
            pytest.raises(EngineError, match="refuses the key"),
        ):
            store.put(VILLAGE)
        monkeypatch.setenv("QDRANT_API_KEY", "the right key")
        with QdrantStore(address) as store:
            store.put(VILLAGE)
            assert len(store) == len(VILLAGE)
    assert "right key" not in caplog.text
    assert "wrong key" not in caplog.text
