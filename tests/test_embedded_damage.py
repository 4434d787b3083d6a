"""Damage to an embedded store: indexes are rebuilt, a damaged database is reported."""

from __future__ import annotations

import errno
import json
import shutil
import sqlite3
import time
from pathlib import Path

import pytest
from tests.embedded_helpers import ids, text_folder

from suffice.engines.embedded import EmbeddedStore
from suffice.engines.embedded.text_index import DamagedIndexError, TextIndexWriter
from suffice.engines.embedded.writer import GRACE_GENERATIONS
from suffice.errors import DataError, EngineError, NotReadyError
from suffice.testing import VILLAGE, VILLAGE_VECTORS
from suffice.types import Document


def remove(folder: Path) -> None:
    shutil.rmtree(text_folder(folder))


def remove_description(folder: Path) -> None:
    (text_folder(folder) / "meta.json").unlink()


def garble_description(folder: Path) -> None:
    (text_folder(folder) / "meta.json").write_text("{ not json")


def cut_short(folder: Path) -> None:
    for file in text_folder(folder).glob("*.*"):
        if file.name != "meta.json" and file.stat().st_size > 10:
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty_it(folder: Path) -> None:
    TextIndexWriter(text_folder(folder), fresh=True).close()


@pytest.mark.parametrize(
    "damage", [remove, remove_description, garble_description, cut_short, empty_it]
)
@pytest.mark.parametrize("first", ["read", "write"])
def test_a_damaged_text_index_is_rebuilt_from_the_database(
    damage: object, first: str, folder: Path
) -> None:
    damage(folder)  # type: ignore[operator]
    with EmbeddedStore(folder) as store:
        if first == "write":
            store.put([Document("new", "a zeppelin")])
            assert ids(store, "zeppelin") == ["new"]
        assert ids(store, "engine") == ["babbage", "ada"]
        assert ids(store, "東京") == ["tokyo"]


@pytest.mark.parametrize("moment", ["add", "commit"])
def test_a_text_index_that_fails_during_a_write_is_rebuilt(
    moment: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedStore(folder) as store:
        whole = getattr(TextIndexWriter, moment)
        calls = iter([True])

        def failing(self: TextIndexWriter, *arguments: object) -> None:
            if next(calls, False):
                raise DamagedIndexError("a file stands in the way")
            whole(self, *arguments)

        monkeypatch.setattr(TextIndexWriter, moment, failing)
        assert store.put([Document("new", "a zeppelin"), VILLAGE[0]], VILLAGE_VECTORS[:2]) == 2
        assert ids(store, "zeppelin engine") == ["new", "babbage", "ada"]
        assert len(store) == len(VILLAGE) + 1


def test_a_full_disk_does_not_rebuild_the_text_index(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: TextIndexWriter) -> None:
        raise DamagedIndexError("An IO error occurred: 'No space left on device (os error 28)'")

    with EmbeddedStore(folder) as store:
        index = text_folder(folder)
        with monkeypatch.context() as patch:
            patch.setattr(TextIndexWriter, "commit", full)
            with pytest.raises(EngineError, match="No space left") as caught:
                store.put([Document("new", "a zeppelin")])
        assert "has room" in caught.value.hint
        assert store.put([Document("newer", "a zeppelin")]) == 1
        assert ids(store, "zeppelin") == ["newer"]
    assert text_folder(folder) == index


def test_a_vector_file_that_cannot_be_written_is_an_engines_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with EmbeddedStore(folder) as store:
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", broken)
            with pytest.raises(EngineError, match="cannot be written") as caught:
                store.put([Document("new", "a zeppelin")], VILLAGE_VECTORS[:1])
        assert "check it" in caught.value.hint
        assert ids(store, "zeppelin") == []


def test_files_that_a_dying_commit_left_do_not_stop_the_next(folder: Path) -> None:
    with EmbeddedStore(folder) as store:
        for n in range(
            GRACE_GENERATIONS + 2
        ):  # so that the next put forgets a row, for which tantivy writes a file
            store.put([Document("ada", f"version{n}")])
    index = text_folder(folder)
    opstamp = json.loads((index / "meta.json").read_text())["opstamp"]
    left = [f"{file.stem}.{opstamp + n}.del" for file in index.glob("*.idx") for n in range(1, 9)]
    for name in left:
        (index / name).write_bytes(b"half")
    managed = index / ".managed.json"
    for _ in range(100):  # tantivy may still rewrite its list of files after it was closed
        managed.write_text(json.dumps(sorted({*json.loads(managed.read_text()), *left})))
        time.sleep(0.05)
        if set(left) <= {*json.loads(managed.read_text())}:
            break
    with EmbeddedStore(folder) as store:
        store.put([Document("ada", "the last version")])
        assert ids(store, "last") == ["ada"]
    assert text_folder(folder) == index, "there was no need to rebuild the index"


def test_damage_behind_an_open_reader_is_healed_at_the_next_search(folder: Path) -> None:
    with EmbeddedStore(folder) as store:
        assert ids(store, "poet") == ["byron"]
        remove(folder)
        store.put([Document("new", "another poet")])
        assert ids(store, "poet") == ["new", "byron"]


def test_a_damaged_database_is_reported(folder: Path) -> None:
    (folder / "truth.sqlite").write_bytes(b"not a database at all, only some bytes" * 200)
    with pytest.raises(DataError, match="damaged") as caught:
        EmbeddedStore(folder)
    assert "backup" in caught.value.hint


def test_damage_inside_the_database_is_reported(folder: Path) -> None:
    file = folder / "truth.sqlite"
    whole = bytearray(file.read_bytes())
    for page in range(1, len(whole) // 4096):
        whole[page * 4096 : page * 4096 + 512] = b"\xff" * 512
    file.write_bytes(whole)
    with pytest.raises(DataError, match="damaged"), EmbeddedStore(folder) as store:
        list(store.documents())


def test_a_foreign_database_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    other = sqlite3.connect(folder / "truth.sqlite")
    other.execute("CREATE TABLE theirs (x)")
    other.commit()
    other.close()
    with pytest.raises(DataError, match="not a store"):
        EmbeddedStore(folder)


def test_a_store_of_a_newer_format_is_not_read(folder: Path) -> None:
    database = sqlite3.connect(folder / "truth.sqlite")
    database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(NotReadyError, match="newer"):
        EmbeddedStore(folder)


def test_a_vector_file_cut_short_is_damage(folder: Path) -> None:
    file = folder / "vectors-1.f16"
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(DataError, match="shorter"), EmbeddedStore(folder) as store:
        store.search_vectors(VILLAGE_VECTORS, k=1)


def test_a_vector_file_that_is_gone_is_damage(folder: Path) -> None:
    (folder / "vectors-1.f16").unlink()
    with EmbeddedStore(folder) as store, pytest.raises(DataError, match="missing"):
        store.search_vectors(VILLAGE_VECTORS, k=1)
