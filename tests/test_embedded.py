"""The embedded store's own promises: durability, one writer, healing indexes, clean-up, bounded
batches, clear errors.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.embedded_helpers import ids

from suffice.engines.embedded import EmbeddedStore
from suffice.engines.embedded.sqlite_documents import SqliteDocuments
from suffice.engines.embedded.writer import GRACE_GENERATIONS
from suffice.errors import EngineError, InputError
from suffice.retrieval.memory import MemoryStore
from suffice.testing import VILLAGE, VILLAGE_VECTORS
from suffice.types import Condition, Document, Filter


def test_what_was_put_is_there_after_closing(folder: Path) -> None:
    with EmbeddedStore(folder) as store:
        assert list(store.documents()) == list(VILLAGE)
        assert ids(store, "engine") == ["babbage", "ada"]
        assert store.search_vectors(VILLAGE_VECTORS[3:4], k=1)[0][0].doc_id == "river"


def test_a_long_stream_is_stored_in_batches_and_each_is_announced(tmp_path: Path) -> None:
    announced: list[int] = []
    seen: list[int] = []
    with (
        EmbeddedStore(tmp_path / "store", batch=100) as store,
        EmbeddedStore(tmp_path / "store") as reader,
    ):

        def note(batch: object) -> None:
            announced.append(len(list(batch)))  # type: ignore[call-overload]
            seen.append(len(reader))

        stream = (Document(f"d{n}", f"text number{n}") for n in range(250))
        assert store.put(stream, acknowledged=note) == 250
        assert announced == [100, 100, 50]
        assert seen == [100, 200, 250]
        assert store.generation == 3


def test_an_error_in_the_stream_keeps_the_batches_before_it(tmp_path: Path) -> None:
    def broken() -> Iterator[Document]:
        yield from (Document(f"d{n}", "text") for n in range(7))
        raise RuntimeError("the source went away")

    with EmbeddedStore(tmp_path / "store", batch=3) as store:
        with pytest.raises(RuntimeError, match="went away"):
            store.put(broken())
        assert [one.doc_id for one in store.documents()] == [f"d{n}" for n in range(6)]
        assert store.put([Document("d6", "text")]) == 1


def test_vectors_are_made_batch_by_batch_from_title_and_text(tmp_path: Path) -> None:
    batches: list[int] = []

    def encode(texts: object) -> np.ndarray:
        listed = list(texts)  # type: ignore[call-overload]
        batches.append(len(listed))
        return np.array([[len(text), 1.0] for text in listed])

    with EmbeddedStore(tmp_path / "store", batch=2) as store:
        store.put(
            [Document("a", "xx", title="t"), Document("b", "x"), Document("c", "")], encode=encode
        )
        assert batches == [2, 1]
        assert [hit.score for hit in store.search_vectors(np.array([[1.0, 0.0]]), k=3)[0]] == [
            4.0,
            1.0,
            0.0,
        ]


# A writer that dies between the commits of the indexes and of SQLite: a random kill seldom hits
# that moment.


def die_before_the_database_commit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, EmbeddedStore(folder) as store:
        patched.setattr(
            SqliteDocuments, "set_state", lambda *_: (_ for _ in ()).throw(RuntimeError("killed"))
        )
        new = [Document("ada", "a zeppelin"), Document("new", "a zeppelin too")]
        with pytest.raises(RuntimeError, match="killed"):
            store.put(new, VILLAGE_VECTORS[:2])


def test_a_crash_between_indexes_and_database_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_before_the_database_commit(folder, monkeypatch)
    with EmbeddedStore(folder) as store:
        assert list(store.documents()) == list(VILLAGE)
        assert ids(store, "zeppelin") == []
        assert ids(store, "Lovelace program") == ["ada"]
        assert [hits[0].doc_id for hits in store.search_vectors(VILLAGE_VECTORS, k=1)] == [
            one.doc_id for one in VILLAGE
        ]


def test_the_next_writer_uses_the_rows_of_a_dead_one_without_mixing_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_before_the_database_commit(folder, monkeypatch)
    with EmbeddedStore(folder) as store:
        store.put(
            [Document("other", "a submarine"), Document("more", "a submarine")], VILLAGE_VECTORS[:2]
        )
        assert ids(store, "zeppelin") == []
        assert ids(store, "submarine") == ["other", "more"]
        assert len(store) == len(VILLAGE) + 2


def test_a_death_while_the_folder_was_made_leaves_no_half_store(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / ".truth.sqlite.draft").write_bytes(b"half a page")
    (folder / ".truth.sqlite.draft-wal").write_bytes(b"half a log")
    with EmbeddedStore(folder) as store:
        assert store.put(VILLAGE) == len(VILLAGE)
    assert not list(folder.glob(".truth*"))


def test_a_snapshot_outlives_replacing_deleting_and_compacting(folder: Path) -> None:
    with EmbeddedStore(folder) as store:
        with store.pinned():
            before = store.generation
            with EmbeddedStore(folder) as other:
                for n in range(GRACE_GENERATIONS + 4):
                    other.put([Document("ada", f"version{n}")], VILLAGE_VECTORS[7 - 6 : 8 - 6])
                other.delete(["byron"])
                other.compact()
            assert store.generation == before
            assert ids(store, "poet Lovelace") == ["ada", "byron"]
            assert store.get(["ada"]) == [VILLAGE[0]]
            assert store.search_vectors(VILLAGE_VECTORS[2:3], k=1)[0][0].doc_id == "byron"
        assert ids(store, "poet Lovelace") == []
        assert ids(store, f"version{GRACE_GENERATIONS + 3}") == ["ada"]


def test_dead_rows_leave_the_indexes(folder: Path) -> None:
    with EmbeddedStore(folder) as store:
        for n in range(5):
            store.put([Document("ada", f"version{n}")], VILLAGE_VECTORS[:1])
        store.delete(["byron", "river"])
        store.compact()
        with store.snapshot() as snapshot:
            assert snapshot.searcher is not None
            assert snapshot.searcher.num_docs == len(store) == 4
            assert snapshot.records is not None
            assert len(snapshot.records) == 4
        assert [one.doc_id for one in store.documents()] == ["ada", "babbage", "tokyo", "arabic"]
        assert [
            hits[0].doc_id for hits in store.search_vectors(VILLAGE_VECTORS[[0, 1, 4, 5]], k=1)
        ] == [
            "ada",
            "babbage",
            "tokyo",
            "arabic",
        ]
        assert ids(store, "version4") == ["ada"]


def test_compacting_an_emptied_store_lets_vectors_of_another_dimension_in(folder: Path) -> None:
    with EmbeddedStore(folder) as store:
        store.delete([one.doc_id for one in VILLAGE])
        store.compact()
        store.put(VILLAGE[:1], np.ones((1, 3)))
        assert store.search_vectors(np.ones((1, 3)), k=1)[0][0].doc_id == "ada"


def test_many_deletes_are_cleaned_up_without_being_asked(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path / "store") as store:
        store.put([Document(f"d{n}", "same words") for n in range(1500)])
        store.delete([f"d{n}" for n in range(1400)])
        with store.snapshot() as snapshot:
            assert snapshot.searcher is not None
            assert snapshot.searcher.num_docs == 100
        assert ids(store, "words", k=200) == [f"d{n}" for n in range(1400, 1500)]


# Indexes are derived: whatever happens to the text index, the store rebuilds it.


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    with pytest.raises(InputError, match="is a file"):
        EmbeddedStore(tmp_path / "file")


def test_a_second_writer_waits_and_then_says_why_it_cannot_write(folder: Path) -> None:
    started, finish = threading.Event(), threading.Event()

    def slow() -> Iterator[Document]:
        yield Document("slow", "text")
        started.set()
        finish.wait(20)

    with EmbeddedStore(folder) as first, EmbeddedStore(folder, wait_s=0.1) as second:
        writing = threading.Thread(target=lambda: first.put(slow()))
        writing.start()
        started.wait(20)
        with pytest.raises(EngineError, match="being written") as caught:
            second.put([Document("quick", "text")])
        assert caught.value.retryable
        assert second.get(["ada"]) == [VILLAGE[0]]  # readers never wait
        finish.set()
        writing.join()
        assert second.put([Document("quick", "text")]) == 1
        assert first.get(["quick", "slow"]) == [Document("quick", "text"), Document("slow", "text")]


def test_threads_share_one_store(folder: Path) -> None:
    with EmbeddedStore(folder) as store:
        failures: list[BaseException] = []

        def work(n: int) -> None:
            try:
                for turn in range(5):
                    store.put([Document(f"t{n}-{turn}", f"thread{n}")])
                    assert len(ids(store, f"thread{n}")) == turn + 1
            except BaseException as error:  # noqa: BLE001 - handed to the main thread
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(store) == len(VILLAGE) + 15


def test_a_closed_store_says_so(folder: Path) -> None:
    store = EmbeddedStore(folder)
    store.close()
    with pytest.raises(EngineError, match="closed"):
        store.search_text(["engine"], k=1)


def test_documents_of_ten_megabytes_pass(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path / "store") as store:
        store.put([Document("big", "needle " + "hay " * 2_500_000)])
        assert ids(store, "needle") == ["big"]
        assert len((store.get(["big"])[0] or VILLAGE[0]).text) == 7 + 10_000_000


READ_ONLY = """
import mmap, os, sys
import numpy as np
from suffice.engines.embedded import EmbeddedStore
from suffice.errors import EngineError
from suffice.types import Document
if os.geteuid() == 0:  # who may do everything is stopped by no permission
    os.setgid(65534)
    os.setuid(65534)
with EmbeddedStore(sys.argv[1]) as store:
    assert [hit.doc_id for hit in store.search_text(["engine"], k=5)[0]] == ["babbage", "ada"]
    assert store.search_vectors(np.eye(6, 8)[3:4], k=1)[0][0].doc_id == "river"
    assert len(list(store.documents())) == 6
    for write in (lambda: store.put([Document("x", "y")]), lambda: store.delete(["ada"])):
        try:
            write()
        except EngineError as error:
            assert "cannot be written" in str(error), error
        else:
            raise SystemExit("a read-only folder was written")
print("ok")
"""


def test_a_folder_that_cannot_be_written_can_be_read() -> None:
    home = Path(tempfile.mkdtemp())
    try:
        with EmbeddedStore(home / "store") as store:
            store.put(VILLAGE, VILLAGE_VECTORS)
        for part in (home / "store").rglob("*"):
            part.chmod(0o555 if part.is_dir() else 0o444)
        (home / "store").chmod(0o555)
        home.chmod(0o755)
        found = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(home / "store")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.stdout == "ok\n", found.stderr
    finally:
        for part in (home, home / "store", *(home / "store").rglob("*")):
            part.chmod(0o755)
        shutil.rmtree(home)


def test_random_writes_leave_both_stores_with_the_same_answers(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    memory, words = MemoryStore(), [f"word{n}" for n in range(30)]
    with EmbeddedStore(tmp_path / "store", batch=7) as embedded:
        for _ in range(12):
            batch = [
                Document(
                    f"d{random.integers(40)}",
                    " ".join(random.choice(words, 12)),
                    source=f"s{random.integers(3)}",
                )
                for _ in range(10)
            ]
            vectors = random.standard_normal((10, 8))
            gone = [f"d{n}" for n in random.integers(40, size=4)]
            for store in (memory, embedded):
                store.put(batch, vectors)
                store.delete(gone)
        assert list(embedded.documents()) == list(memory.documents())
        filters = [Filter((Condition("source", "$in", (f"s{n % 3}",)),)) for n in range(len(words))]
        ours = embedded.search_text(words, k=99, filters=filters)
        theirs = memory.search_text(words, k=99, filters=filters)
        assert [{hit.doc_id for hit in hits} for hits in ours] == [
            {hit.doc_id for hit in hits} for hits in theirs
        ]
        queries = random.standard_normal((20, 8))
        assert embedded.search_vectors(queries, k=9) == memory.search_vectors(queries, k=9)


def test_everybody_who_may_read_the_folder_may_read_the_index(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path / "store") as store:
        store.put(VILLAGE, VILLAGE_VECTORS)
        for many in range(3):
            store.put([Document(f"d{many}", "One more.")], VILLAGE_VECTORS[:1])
    files = [one for one in (tmp_path / "store").rglob("*") if one.is_file()]
    assert {one.stat().st_mode & 0o777 for one in files} == {files[0].stat().st_mode & 0o777}
