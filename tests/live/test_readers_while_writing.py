"""Two processes read while one writes: no error, and each read sees one generation, whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from suffice.engines.embedded import EmbeddedStore

# A group is 20 documents that carry one stamp. The writer replaces whole groups and deletes whole
# groups, so at every
# generation a group is there with one stamp, or not there.
COMMON = """
import json, random, sys, time
import numpy as np
from suffice.engines.embedded import EmbeddedStore
from suffice.types import Document, Filter, Condition

path, seed, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
random.seed(seed)
names = {number: [f"g{number}-{n}" for n in range(20)] for number in range(8)}
until = time.monotonic() + seconds
"""

WRITER = (
    COMMON
    + """
writes = 0
with EmbeddedStore(path, batch=20) as store:
    while time.monotonic() < until:
        writes += 1
        number = random.randrange(8)
        if random.random() < 0.25:
            store.delete(names[number])
        else:
            stamp = f"stamp{writes}"
            documents = [Document(name, f"common group{number} {stamp}", source=stamp) for name in names[number]]
            store.put(documents, np.eye(8, dtype=np.float32)[[number] * 20])
        if writes % 20 == 0:
            store.compact()
print(json.dumps({"writes": writes}))
"""
)

READER = (
    COMMON
    + """
reads, generations = 0, set()
store = EmbeddedStore(path)
while time.monotonic() < until:
    number = random.randrange(8)
    wanted = set(names[number])
    with store.pinned():
        generation = store.generation
        documents = [one for one in store.get(names[number]) if one]
        by_text = {hit.doc_id for hit in store.search_text([f"group{number}"], k=50)[0]}
        by_vector = {h.doc_id for h in store.search_vectors(np.eye(8, dtype=np.float32)[[number]], k=20)[0] if h.score > 0.5}
        stamps = {one.source for one in documents}
        assert len(documents) in (0, 20), f"get sees {len(documents)} of group {number}"
        assert len(stamps) <= 1, f"get mixes {stamps}"
        assert by_text == by_vector == (wanted if documents else set()), (len(documents), len(by_text), len(by_vector))
        if documents:
            (stamp,) = stamps
            assert set(store.lookup("source", [stamp])[0]) == wanted
            asked = Filter((Condition("source", "$in", (stamp,)),))
            assert {hit.doc_id for hit in store.search_text(["common"], k=50, filters=[asked])[0]} == wanted
        assert len(store.search_text(["common"], k=500)[0]) == len(store) == len(list(store.documents()))
        assert store.generation == generation
    # Without a pin each call sees a generation of its own, still whole.
    assert len(store.search_text([f"group{number}"], k=50)[0]) in (0, 20)
    assert sum(one is not None for one in store.get(names[number])) in (0, 20)
    assert len([h for h in store.search_vectors(np.eye(8, dtype=np.float32)[[number]], k=20)[0] if h.score > 0.5]) in (0, 20)
    reads, generations = reads + 1, generations | {generation}
store.close()
print(json.dumps({"reads": reads, "generations": len(generations)}))
"""
)


def start(script: str, folder: Path, seed: int, seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, str(folder), str(seed), str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.live
def test_two_readers_see_whole_generations_while_one_writes(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    EmbeddedStore(folder).close()
    running = [
        start(WRITER, folder, 1, 4.0),
        start(READER, folder, 2, 3.5),
        start(READER, folder, 3, 3.5),
    ]
    reports = []
    for process in running:
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
        reports.append(json.loads(out))
    assert reports[0]["writes"] > 10
    assert all(report["reads"] > 20 and report["generations"] > 5 for report in reports[1:]), (
        reports
    )
    with EmbeddedStore(folder) as store:
        assert len(store) % 20 == 0
