"""What a library keeps between writes for its name links, and what it does without it."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from robustness.artefact_targets import rehash_manifest
from tests.properties.test_name_rows_properties import same

from suffice.errors import DataError, InputError, NotReadyError
from suffice.library import Library
from suffice.retrieval.name_links import link_names, name_links, name_rows
from suffice.retrieval.name_rows import NameRows
from suffice.types import Document

ALBUMS = [
    Document("koop", "Flyin' the Koop is the second album by Stanton Moore.", "Flyin' the Koop"),
    Document("iii", "III is Stanton Moore's third album.", "III (Stanton Moore album)"),
    Document("city", "New Orleans lies on the Mississippi River.", "New Orleans"),
    *(Document(f"{at}", f"Note {at} says nothing.", f"Note {at}") for at in range(200)),
]
BATTLE = Document("battle", "It was fought in 1815.", "Mississippi River")


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.build(tmp_path / "library", ALBUMS, encoder=None, links=False) as made:
        made.name_links()
        yield made


def kept(library: Library) -> Path:
    (folder,) = library.path.glob("name-rows-*")
    return folder


def is_right(library: Library) -> bool:
    """The links are those of a build from nothing, and stored for the next reader."""
    found = library.name_links()
    same(found, name_links(library.documents))
    same(library.name_links(), found)
    return kept(library).name == f"name-rows-{library.store.generation}"


def test_a_write_reads_only_what_it_changes(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    def get(ids: Sequence[str]) -> list[Document | None]:
        fetched.extend(ids)
        return library.get(ids)

    def read() -> list[str]:
        fetched.clear()
        known = NameRows.load(kept(library))
        same(
            link_names(name_rows(library.documents, known=known, get=get)),
            name_links(library.documents),
        )
        assert is_right(library)
        return fetched

    library.add([BATTLE])
    assert read() == ["city", "battle"], "the city's text names the new title"
    library.add([replace(BATTLE, source="a source is in no link")])
    assert read() == []
    library.add([replace(ALBUMS[2], text="A city.")])
    assert read() == ["city"]
    library.delete(["iii", "5"])
    assert read() == []


def test_changing_nearly_everything_is_right_too(library: Library) -> None:
    library.add([replace(one, text=f"{one.text} And Mississippi.") for one in ALBUMS[1:]])
    assert is_right(library)
    library.delete([one.doc_id for one in ALBUMS])
    assert is_right(library)
    library.add([BATTLE])
    assert is_right(library)


@pytest.mark.parametrize("part", ["manifest.json", "mentioned.npy", "text_keys_bytes.npy"])
@pytest.mark.parametrize("content", [None, b"", b"{}", "half"])
def test_damaged_rows_are_made_again(
    library: Library, part: str, content: bytes | str | None
) -> None:
    file = kept(library) / part
    whole = file.read_bytes()
    file.unlink()
    if content is not None:
        file.write_bytes(whole[: len(whole) // 2] if isinstance(content, str) else content)
    library.add([BATTLE])
    assert is_right(library)


def test_rows_of_another_library_are_not_believed(library: Library, tmp_path: Path) -> None:
    """With the same ids and generations, but other texts."""
    others = [replace(one, text=f"{one.text} Mississippi River.") for one in ALBUMS]
    with Library.build(tmp_path / "other", others, encoder=None, links=False) as other:
        other.name_links()
        shutil.rmtree(kept(library))
        shutil.copytree(kept(other), library.path / kept(other).name)
        shutil.rmtree(library.path / f"names-{library.store.generation}")
    assert is_right(library)
    library.add([BATTLE])
    assert is_right(library)


def test_rows_by_other_rules_are_not_believed(library: Library) -> None:
    manifest = kept(library) / "manifest.json"
    told = json.loads(manifest.read_text(encoding="utf-8"))
    for change in (
        {"version": told["version"] + 1},
        {"kind": "name-links"},
        {"settings": {"unicode": "1.0"}},
        {"packages": {"suffice": "0.0.1"}},
    ):
        manifest.write_text(json.dumps(told | change), encoding="utf-8")
        with pytest.raises((NotReadyError, InputError)):
            NameRows.load(kept(library))
    library.add([BATTLE])
    assert is_right(library)


def test_a_writer_that_died_leaves_the_old_rows(library: Library) -> None:
    """A draft that was never renamed, and rows without the links that are made of them."""
    shutil.copytree(kept(library), library.path / ".name-rows-9.dead.draft")
    library.add([BATTLE])
    rows = name_rows(library.documents, known=NameRows.load(kept(library)))
    rows.save(library.path / f"name-rows-{library.store.generation}")
    same(library.name_links(), name_links(library.documents))
    assert is_right(library)


@pytest.mark.parametrize("saved", [0, 1, 11, 17, 18, 19, 30])
def test_a_process_killed_while_saving_harms_nothing(
    library: Library, saved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After this many arrays: of the rows first, then of the links."""
    library.add([BATTLE])
    save, calls = np.save, count()

    def save_or_die(*given: Any) -> None:
        if next(calls) == saved:
            os._exit(9)
        save(*given)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(np, "save", save_or_die)
        library.name_links()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert is_right(library)
    library.delete(["koop"])
    assert is_right(library)
    assert not list(library.path.glob(".name*")), "drafts of the dead are gone"


def test_a_read_only_library_is_linked(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library.add([BATTLE])
    for name in ("NameRows", "NameLinks"):
        monkeypatch.setattr(f"suffice.library.{name}.save", refuse)
    same(library.name_links(), name_links(library.documents))


def refuse(*_: object) -> None:
    raise PermissionError


def test_a_text_written_between_two_readings_is_read_again(library: Library) -> None:
    """A server's documents are always its latest."""
    known = NameRows.load(kept(library))
    first = [*ALBUMS, BATTLE]
    later = [*ALBUMS[:2], replace(ALBUMS[2], text="A city by Stanton Moore."), BATTLE]
    rows = name_rows(
        lambda: first, known=known, get=lambda ids: [one for one in later if one.doc_id in ids]
    )
    same(link_names(name_rows(lambda: later, known=rows)), name_links(lambda: later))
    with pytest.raises(InputError, match="second time"):
        name_rows(lambda: first, known=known, get=lambda ids: [None] * len(ids))


def test_readers_find_the_links_of_a_generation_while_others_write(tmp_path: Path) -> None:
    with Library.build(tmp_path / "library", ALBUMS, encoder=None, links=False) as library:
        done = threading.Event()

        def read() -> int:
            rounds = 0
            while not done.is_set() or not rounds:
                with library.store.pinned():
                    same(library.name_links(), name_links(library.documents))
                rounds += 1
            return rounds

        with ThreadPoolExecutor(2) as readers:
            reading = [readers.submit(read) for _ in range(2)]
            for at in range(12):
                library.add([replace(BATTLE, text=f"It was fought {at} times by Note {at}.")])
                library.delete([f"{at}"])
            done.set()
            assert all(one.result() for one in reading)
        assert is_right(library)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("borne", lambda array: array + 1000),
        ("stems", lambda array: array - 1),
        ("common", lambda array: np.append(array, np.int32(0))),
        ("sizes", lambda array: array[:-1]),
        ("sizes", lambda array: -array),
        ("digests", lambda array: array[:, :8]),
        ("letters", lambda array: array.astype(np.float64)),
        ("small", lambda array: np.ones_like(array) * 99),
        ("hashes", lambda array: array[1:]),
        ("text_keys_ends", lambda array: np.zeros_like(array)),
    ],
)
def test_numbers_that_do_not_fit_are_refused(library: Library, part: str, change: object) -> None:
    file = kept(library) / f"{part}.npy"
    assert callable(change)
    np.save(file, change(np.load(file)))
    rehash_manifest(kept(library), file.name)
    with pytest.raises(DataError):
        NameRows.load(kept(library))
    library.add([BATTLE])
    assert is_right(library)
