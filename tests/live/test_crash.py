"""A writer killed a hundred times at any moment: what it acknowledged is there, nothing is half there, no repair by hand."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from suffice.engines.embedded import EmbeddedStore
from suffice.types import Document

KILLS = 100
GROUP = 20

# The nursery imports everything once and forks a writer for each line that it reads. A writer stamps every version of a
# document with a number, writes whole groups of documents, now and then deletes one, and says on the standard output what it
# is about to do and what has been acknowledged.
NURSERY = """
import os, random, sys
import numpy as np
from suffice.engines.embedded import EmbeddedStore
from suffice.types import Document

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def write(path, stamp, seed):
    random.seed(seed)
    with EmbeddedStore(path) as store:
        while True:
            stamp += 1
            number = random.randrange(12)
            names = [f"g{number}-{n}" for n in range(20)]
            if random.random() < 0.2:
                say("start", number, 0)
                store.delete(names)
                say("done", number, 0)
                continue
            say("start", number, stamp)
            texts = [f"group{number} member{n} stamp{stamp} " + "filler " * 30 for n in range(20)]
            vectors = np.random.default_rng(stamp).standard_normal((20, 16)).astype(np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            documents = [Document(a, b, entities=(f"stamp{stamp}",)) for a, b in zip(names, texts)]
            store.put(documents, vectors if number % 3 else None)
            say("done", number, stamp)

for line in sys.stdin:
    path, stamp, seed = line.rsplit(maxsplit=2)
    child = os.fork()
    if not child:
        write(path, int(stamp), int(seed))
    say("child", child)
    os.waitpid(child, 0)
    say("dead")
"""


class Nursery:
    def __init__(self) -> None:
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", NURSERY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, **one_thread},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def write_and_die(self, folder: Path, stamp: int, seed: int, delay_s: float) -> list[list[str]]:
        """What a writer said before it was killed, `delay_s` after it was born."""
        self.stdin.write(f"{folder} {stamp} {seed}\n")
        said: list[list[str]] = []
        while (line := self.stdout.readline().split()) != ["dead"]:
            if line[0] == "child":
                time.sleep(delay_s)
                try:
                    os.kill(int(line[1]), signal.SIGKILL)
                except ProcessLookupError:
                    pytest.fail("the writer died of an error of its own")
            else:
                said.append(line)
        return said

    def close(self) -> None:
        self.stdin.close()
        self.process.wait(timeout=10)
        self.stdout.close()


def stamps_in(store: EmbeddedStore) -> dict[int, int]:
    """The stamp of every group that is there, after text search, vectors, values and documents have agreed about it."""
    found: dict[int, int] = {}
    documents = list(store.documents())
    assert len(documents) == len(store)
    by_group: dict[int, list[Document]] = {}
    for document in documents:
        by_group.setdefault(int(document.doc_id.split("-")[0][1:]), []).append(document)
    for number, members in by_group.items():
        words = {word for member in members for word in member.text.split() if word.startswith("stamp")}
        assert len(members) == GROUP, f"group {number} is half there"
        assert len(words) == 1, f"group {number} mixes versions {words}"
        (word,) = words
        found[number] = int(word.removeprefix("stamp"))
        names = {member.doc_id for member in members}
        assert {hit.doc_id for hit in store.search_text([word], k=1000)[0]} == names
        assert set(store.lookup("entities", [word])[0]) == names
        vectors = np.random.default_rng(found[number]).standard_normal((GROUP, 16)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        nearest = [hits[0].doc_id for hits in store.search_vectors(vectors, k=1) if hits]
        if number % 3:
            assert nearest == [f"g{number}-{n}" for n in range(GROUP)]
        else:
            assert not set(nearest) & names
    total = sum(len(hits) for hits in store.search_text(["filler"], k=10_000))
    assert total == len(documents), "the text index holds what the truth does not"
    return found


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.mark.live
def test_a_hundred_kills_lose_nothing_that_was_acknowledged(nursery: Nursery, tmp_path: Path) -> None:
    chance = random.Random(20231007)
    folder = tmp_path / "store"
    state: dict[int, int] = {}
    stamp = writes = 0
    for kill in range(KILLS):
        said = nursery.write_and_die(folder, stamp, kill, chance.uniform(0.0, 0.5))
        pending: tuple[int, int] | None = None
        for word, number, version in said:
            if word == "start":
                pending = int(number), int(version)
            else:
                assert pending == (int(number), int(version))
                state[pending[0]], pending, writes = pending[1], None, writes + 1
            stamp = max(stamp, int(version))
        stamp += 1
        with EmbeddedStore(folder) as store:
            found = stamps_in(store)
        for number in set(state) | set(found):
            held = found.get(number, 0)
            allowed = {state.get(number, 0)} | ({pending[1]} if pending and pending[0] == number else set())
            assert held in allowed, f"kill {kill}: group {number} has stamp {held}, expected one of {allowed}"
        state = {number: found.get(number, 0) for number in set(state) | set(found)}
    assert (folder / "text-1").is_dir(), "the text index had to be made anew: a crash left it unusable"
    assert writes > KILLS / 2, "the child hardly wrote: the test proves nothing"
