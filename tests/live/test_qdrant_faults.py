"""Three nodes, three shards, two copies of each: any one node may be killed while others read and
write; all of them at once
cost an error, and no restart of ours.

Each node in turn is killed with SIGKILL, the one that leads the cluster too; a writer and a reader
go on all the while.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.qdrant_server import STARTS_WITHIN_S, Node, Servers, UnavailableError, command

from suffice.engines.qdrant import QdrantStore
from suffice.errors import EngineError
from suffice.types import Document

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("qdrant")]

SETTINGS = "shards=3&replicas=2&timeout_s=60&patience_s=600"
WRITES_WHILE_DOWN = 4


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    try:
        command()
    except UnavailableError as why:
        pytest.skip(f"no Qdrant server: {why}")
    with Servers(3) as started:
        yield started


@pytest.fixture(scope="module")
def store(servers: Servers) -> Iterator[QdrantStore]:
    with QdrantStore(f"qdrant://{servers.hosts}/news?{SETTINGS}", refresh_s=0) as made:
        made.put(document(n) for n in range(60))
        wait_until_settled(
            servers
        )  # a copy that is not whole yet cannot stand in for one that is killed
        yield made


def document(n: int, version: int = 0) -> Document:
    return Document(f"d{n}", f"report number{n} of version{version}", source=f"source {n % 3}")


def get_result(node: Node, path: str) -> Any:
    with urllib.request.urlopen(f"http://{node.address}{path}", timeout=20) as answer:
        return json.load(answer)["result"]


def leader(servers: Servers) -> int:
    """Which node leads the cluster now."""
    cluster = get_result(servers.nodes[0], "/cluster")
    uri = cluster["peers"][str(cluster["raft_info"]["leader"])]["uri"]
    return next(
        at for at, node in enumerate(servers.nodes) if node.peer_uri.rstrip("/") == uri.rstrip("/")
    )


def settled(servers: Servers) -> bool:
    """Whether every copy of every shard is there and whole, as every node sees it."""
    try:
        for node in servers.nodes:
            state = get_result(node, "/collections/news/cluster")
            copies = [*state["local_shards"], *state["remote_shards"]]
            whole = len(copies) == 6 and all(one["state"] == "Active" for one in copies)
            if not whole or state["shard_transfers"]:
                return False
    except OSError:
        return False
    return True


def wait_until_settled(servers: Servers) -> None:
    deadline = time.monotonic() + 2 * STARTS_WITHIN_S
    while not settled(servers):
        assert time.monotonic() < deadline, "the cluster did not come together again"
        time.sleep(0.3)


class Reading(threading.Thread):
    """Somebody who searches and reads all the time, and keeps what went wrong."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.address, self.rounds, self.wrong = address, 0, list[str]()
        self._enough = threading.Event()

    def run(self) -> None:
        with QdrantStore(self.address) as store:
            while not self._enough.is_set():
                try:
                    found = [hit.doc_id for hit in store.search_text(["number7"], k=3)[0]]
                    stored = store.get(["d7"])[0]
                    if found != ["d7"] or stored is None:
                        self.wrong.append(f"found {found}, held {stored}")
                except Exception as error:  # noqa: BLE001 - whatever it is, it is a failed check
                    self.wrong.append(repr(error))
                self.rounds += 1
                self._enough.wait(0.1)  # the nodes need the processor, too

    def stop(self) -> None:
        self._enough.set()
        self.join(600)


def test_any_node_may_be_killed_while_others_read_and_write(
    servers: Servers, store: QdrantStore
) -> None:
    first = leader(servers)
    acknowledged = dict.fromkeys(range(60), 0)
    reading = Reading(str(store.address))
    reading.start()
    version = 0
    for at in (first, (first + 1) % 3):  # the leader, and one that is not
        servers.nodes[at].kill()
        for _ in range(WRITES_WHILE_DOWN):
            version += 1
            batch = [(7 * version + n) % 80 for n in range(10)]
            store.put([document(n, version) for n in batch])
            acknowledged |= dict.fromkeys(batch, version)
        servers.nodes[at].start()
        servers.nodes[at].wait()
        wait_until_settled(servers)
    reading.stop()
    assert reading.wrong == []
    assert reading.rounds > 5
    stored = store.get([f"d{n}" for n in acknowledged])
    assert [one and one.text for one in stored] == [
        document(n, last).text for n, last in acknowledged.items()
    ]
    assert len(store) == len(acknowledged)
    assert len(list(store.documents())) == len(acknowledged)
    for n, last in list(acknowledged.items())[::9]:
        assert store.search_text([f"number{n} version{last}"], k=1)[0][0].doc_id == f"d{n}"


def test_all_nodes_gone_is_an_error_with_a_hint_and_passes(
    servers: Servers, store: QdrantStore
) -> None:
    with QdrantStore(
        f"qdrant://{servers.hosts}/news?timeout_s=60&patience_s=2", refresh_s=0
    ) as hasty:
        before = hasty.search_text(["number7"], k=1)
        for node in servers.nodes:
            node.kill()
        with pytest.raises(EngineError, match="no node") as caught:
            hasty.search_text(["number7"], k=1)
        assert caught.value.retryable
        assert "nothing here needs a restart" in caught.value.hint
        for node in servers.nodes:
            node.start()
        for node in servers.nodes:
            node.wait()
        wait_until_settled(servers)
        assert hasty.search_text(["number7"], k=1) == before
        assert store.put([document(7, 999)]) == 1
