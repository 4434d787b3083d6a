"""One gate and one library under threads, tasks, forks and processes: the same verdicts as alone,
and nobody waits for ever.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.small_world import BRIDGE, COMPARISON, FILMS

from suffice import Document, Gate, Library, ask

ROOT = Path(__file__).parents[1]
PATIENCE_S = 240  # this machine may be busy; a deadlock is not patient
QUESTIONS = (BRIDGE, COMPARISON, "Who sells bread in the village?")


@pytest.fixture(autouse=True)
def nobody_waits_for_ever() -> Iterator[None]:
    faulthandler.dump_traceback_later(PATIENCE_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate.load()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    with Library.build(tmp_path_factory.mktemp("concurrency") / "library", FILMS) as made:
        yield made


def heard(question: str, library: Library, gate: Gate) -> list[object]:
    """Everything suffice says about a question, through four entry points."""
    hits = library.search(question, k=5)
    scored = [(one, hit.score) for one, hit in zip(library.get([hit.doc_id for hit in hits]), hits)]
    completion = library.complete(question, gate, k=4)
    return [
        [hit.doc_id for hit in hits],
        gate.check(question, scored).p_complete,
        completion.verdict.p_complete,
        [hit.doc_id for hit in completion.hits],
        ask(question, library, gate).answer,
    ]


@pytest.fixture(scope="module")
def alone(library: Library, gate: Gate) -> dict[str, list[object]]:
    return {question: heard(question, library, gate) for question in QUESTIONS}


def test_threads_hear_what_one_alone_hears(
    library: Library, gate: Gate, alone: dict[str, list[object]]
) -> None:
    questions = QUESTIONS * 2
    with ThreadPoolExecutor(8) as crowd:
        answers = list(crowd.map(lambda question: heard(question, library, gate), questions))
    assert answers == [alone[question] for question in questions]


def test_tasks_of_an_event_loop_hear_what_one_alone_hears(
    library: Library, gate: Gate, alone: dict[str, list[object]]
) -> None:
    async def all_at_once() -> list[list[object]]:
        return await asyncio.gather(
            *(asyncio.to_thread(heard, question, library, gate) for question in QUESTIONS)
        )

    assert asyncio.run(all_at_once()) == [alone[question] for question in QUESTIONS]


def test_a_batch_says_what_single_checks_say_whoever_else_asks(gate: Gate) -> None:
    pairs = [(question, [one.text for one in FILMS[:3]]) for question in QUESTIONS]
    single = [gate.check(*pair) for pair in pairs]
    with ThreadPoolExecutor(4) as crowd:
        batches = list(crowd.map(lambda _: gate.check_batch(pairs), range(12)))
    for batch in batches:
        assert [one.action for one in batch] == [one.action for one in single]
        assert [one.p_complete for one in batch] == pytest.approx(
            [one.p_complete for one in single], abs=1e-6
        )


def test_threads_that_read_see_one_generation_whole_while_one_writes(
    tmp_path: Path, gate: Gate
) -> None:
    # Both halves of a pair carry one stamp, and each names the other: what is made of a generation,
    # such as links, has to be of
    # the generation whose documents are read.
    def pair(stamp: int) -> list[Document]:
        return [
            Document(f"left {stamp}", f"Left tells of Right Half {stamp}.", f"Left Half {stamp}"),
            Document(f"right {stamp}", f"Right tells of Left Half {stamp}.", f"Right Half {stamp}"),
        ]

    over = threading.Event()
    with Library.build(tmp_path / "library", [*FILMS, *pair(0)]) as library:

        def read(_: int) -> int:
            looks = 0
            while not over.is_set() or not looks:
                looks += 1
                with library.store.pinned():
                    stamps = {one.doc_id for one in library.documents()} - {
                        one.doc_id for one in FILMS
                    }
                    links = library._cached("mentions", library.links)
                    assert len(stamps) % 2 == 0
                    for half in stamps:
                        side, stamp = half.split()
                        assert links.out([half]) == [
                            (f"{'right' if side == 'left' else 'left'} {stamp}",)
                        ]
                assert library.complete("Who tells of Left Half 0?", gate, k=3).hits
            return looks

        with ThreadPoolExecutor(4) as readers:
            reading = [readers.submit(read, number) for number in range(4)]
            for stamp in range(1, 10):
                library.add(pair(stamp))
                if stamp % 3 == 0:
                    library.delete([one.doc_id for one in pair(stamp - 1)])
            over.set()
            assert all(one.result() for one in reading)


FORKS = """
import json, os, signal, sys
import suffice
from tests.test_concurrency import QUESTIONS, heard

QUESTIONS = QUESTIONS[:1]

library, gate = suffice.Library.open(sys.argv[1]), suffice.Gate.load()
alone = {question: heard(question, library, gate) for question in QUESTIONS}
held, hold = os.pipe()
children = []
for number in range(2):
    child = os.fork()
    if not child:
        signal.alarm(200)                       # a child that waits for ever is killed, and told
        gate.readers.reader._read_window.cache_clear()      # or it would read nothing itself
        same = [heard(question, library, gate) == alone[question] for question in QUESTIONS]
        os.close(hold)
        os.read(held, 1)                        # until the parent has closed the library and others have written to it
        seen = library.get(["new"])[0].text
        library.add([suffice.Document(f"child {number}", "A child writes.")])
        library.close()
        print(json.dumps({"same": same, "seen": seen}), flush=True)
        os._exit(0)
    children.append(child)
assert all(heard(question, library, gate) == alone[question] for question in QUESTIONS)
library.add([suffice.Document("new", "Written by the parent.")])
library.close()
os.close(hold)
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
with suffice.Library.open(sys.argv[1]) as library:
    assert all(library.get([f"child {number}" for number in range(2)]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_children_share_a_loaded_gate_and_an_open_library(tmp_path: Path) -> None:
    Library.build(tmp_path / "library", FILMS).close()
    done = subprocess.run(
        [sys.executable, "-c", FORKS, str(tmp_path / "library")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "TOKENIZERS_PARALLELISM": "false",
            "OMP_NUM_THREADS": "2",  # a pool of threads that the children do not inherit
        },
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == [{"same": [True], "seen": "Written by the parent."}] * 2


def test_a_child_that_forks_in_the_middle_of_a_look_reads_on(library: Library) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    script = (
        "import os, sys, suffice\n"
        "library = suffice.Library.open(sys.argv[1])\n"
        "with library.store.pinned():\n"
        "    child = os.fork()\n"
        "    documents = len(list(library.documents()))\n"
        "if not child:\n"
        "    os._exit(0 if documents == len(library) > 0 else 3)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", script, str(library.path)], timeout=PATIENCE_S, cwd=ROOT
        ).returncode
        == 0
    )


def _heard_elsewhere(path: Path) -> dict[str, list[object]]:
    with Library.open(path) as library:
        return {question: heard(question, library, Gate.load()) for question in QUESTIONS[:1]}


def test_processes_hear_what_one_alone_hears(
    library: Library, alone: dict[str, list[object]]
) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        answers = pool.map(_heard_elsewhere, [library.path] * 2)
    assert answers == [{question: alone[question] for question in QUESTIONS[:1]}] * 2


# ---- what is made of a generation


def test_links_that_another_process_is_removing_are_found_again(tmp_path: Path) -> None:
    with Library.build(tmp_path / "library", FILMS) as library:
        folder = library.path / f"links-{library.store.generation}"
        (folder / "manifest.json").unlink()
        assert library.links().out(["dog"]) == [("storm",)]
        assert (folder / "manifest.json").exists()


def test_who_is_behind_does_not_remove_the_links_of_who_is_ahead(tmp_path: Path) -> None:
    with Library.build(tmp_path / "library", FILMS) as library:
        ahead = library.path / f"links-{library.store.generation + 1}"
        behind = library.path / f"links-{library.store.generation - 1}"
        ahead.mkdir()
        behind.mkdir()
        (library.path / f"links-{library.store.generation}" / "manifest.json").unlink()
        library.links()
        assert ahead.exists()
        assert not behind.exists()
