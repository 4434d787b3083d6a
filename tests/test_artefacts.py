from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import DataError, InputError, NotReadyError
from suffice.storage import (
    BadRecords,
    check_replaceable,
    new_artefact,
    open_artefact,
    read_json_array,
    read_jsonl,
    records,
    sha256_of,
    write_atomically,
)
from suffice.storage.artefacts import is_device

REBUILD = "suffice build"


def make(path: Path, text: str = "hello", version: int = 1) -> Path:
    with new_artefact(path, kind="thing", version=version, settings={"k": 1}, seed=42) as draft:
        (draft / "part.txt").write_text(text)
    return path


def test_an_artefact_opens_with_its_manifest(tmp_path: Path) -> None:
    manifest = open_artefact(make(tmp_path / "a"), kind="thing", version=1, rebuild=REBUILD)
    assert (manifest.settings, manifest.seed) == ({"k": 1}, 42)
    assert manifest.packages["numpy"]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_the_current_folder_can_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "a")
    (tmp_path / "a" / "sub").mkdir()
    for place, path in (("a", "."), ("a", ""), ("a/sub", "..")):
        monkeypatch.chdir(tmp_path / place)
        assert open_artefact(Path(path), kind="thing", version=1, rebuild=REBUILD).seed == 42
    with pytest.raises(NotReadyError):
        open_artefact(Path("/"), kind="thing", version=1, rebuild=REBUILD)


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = make(tmp_path / "a"), make(tmp_path / "b")
    assert sha256_of(first / "manifest.json") == sha256_of(second / "manifest.json")


def test_a_failure_while_filling_leaves_the_old_state(tmp_path: Path) -> None:
    make(tmp_path / "a", "old")

    def fail() -> None:
        with new_artefact(tmp_path / "a", kind="thing", version=1) as draft:
            (draft / "part.txt").write_text("half")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / "a" / "part.txt").read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_a_crash_between_the_two_renames_is_repaired_on_open(tmp_path: Path) -> None:
    make(tmp_path / "a", "old").rename(tmp_path / ".a.old")
    open_artefact(tmp_path / "a", kind="thing", version=1, rebuild=REBUILD)
    assert (tmp_path / "a" / "part.txt").read_text() == "old"


def test_an_altered_file_is_an_error(tmp_path: Path) -> None:
    (make(tmp_path / "a") / "part.txt").write_text("hullo")
    with pytest.raises(DataError, match="altered"):
        open_artefact(tmp_path / "a", kind="thing", version=1, rebuild=REBUILD)


@pytest.mark.parametrize(("written", "word"), [(2, "newer"), (0, "older")])
def test_another_format_version_is_an_error_with_the_rebuild_command(
    tmp_path: Path, written: int, word: str
) -> None:
    with pytest.raises(NotReadyError, match=word) as caught:
        open_artefact(
            make(tmp_path / "a", version=written), kind="thing", version=1, rebuild=REBUILD
        )
    assert caught.value.hint == REBUILD


def test_another_kind_a_missing_folder_and_a_broken_manifest_have_their_own_errors(
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match="is a thing, expected a gate"):
        open_artefact(make(tmp_path / "a"), kind="gate", version=1, rebuild=REBUILD)
    with pytest.raises(NotReadyError, match="no such folder"):
        open_artefact(tmp_path / "none", kind="thing", version=1, rebuild=REBUILD)
    for broken in ("{", "[]", '{"surprise": 1}'):
        (tmp_path / "a" / "manifest.json").write_text(broken)
        with pytest.raises(DataError):
            open_artefact(tmp_path / "a", kind="thing", version=1, rebuild=REBUILD)


def test_a_manifest_cannot_point_outside_its_folder(tmp_path: Path) -> None:
    manifest = make(tmp_path / "a") / "manifest.json"
    content = json.loads(manifest.read_text())
    content["files"] = {"../secret": "0"}
    manifest.write_text(json.dumps(content))
    with pytest.raises(DataError, match="outside"):
        open_artefact(tmp_path / "a", kind="thing", version=1, rebuild=REBUILD)


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "deep" / "file.txt"
    write_atomically(target, "old")

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(target, "new")
    assert target.read_text() == "old"
    assert [one.name for one in target.parent.iterdir()] == ["file.txt"]


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as caught:
        write_atomically(tmp_path, "text")
    assert caught.value.filename == str(tmp_path)


def test_drafts_of_dead_writers_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".a.0f3k2x9_.draft").mkdir()
    (tmp_path / ".a.0f3k2x9_.draft" / "half.txt").write_text("ha")
    (tmp_path / ".notes[1].0f3k2x9_.draft").write_text("ha")
    (tmp_path / ".mine.draft").write_text("not of ours")
    make(tmp_path / "a")
    write_atomically(tmp_path / "notes[1]", "whole")
    (tmp_path / ".a.1f3k2x9_.draft").mkdir()
    open_artefact(tmp_path / "a", kind="thing", version=1, rebuild=REBUILD)
    assert sorted(one.name for one in tmp_path.iterdir()) == [".mine.draft", "a", "notes[1]"]


def test_the_draft_of_a_living_writer_stays(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield "slow "
        write_atomically(tmp_path / "a", "quick")
        yield "writer"

    write_atomically(tmp_path / "a", lines())
    assert (tmp_path / "a").read_text() == "slow writer"
    with new_artefact(tmp_path / "b", kind="thing", version=1) as draft:
        make(tmp_path / "b", "quick")
        (draft / "part.txt").write_text("slow")
    assert (tmp_path / "b" / "part.txt").read_text() == "slow"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "b"]


def test_a_folder_opened_between_the_two_renames_is_still_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "a", "old")
    rename, meddled = os.rename, iter([True])

    def opened_in_between(old: Path, new: Path) -> None:
        if new == tmp_path / "a" and old.suffix == ".draft" and next(meddled, False):
            open_artefact(
                tmp_path / "a", kind="thing", version=1, rebuild=REBUILD
            )  # brings the old one back
        rename(old, new)

    monkeypatch.setattr("os.rename", opened_in_between)
    make(tmp_path / "a", "new")
    assert (tmp_path / "a" / "part.txt").read_text() == "new"
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


# --- records


def lines(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "records.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1}\n{"a": ', ":2: not valid JSON"),
        (b"[1]\n", ":1: expected a JSON object, found list"),
        (b'{"a": "\xff"}\n', ":1: not UTF-8"),
        (b"[" * 100_000 + b"\n", ":1: not valid JSON"),
        (b'{"a": "' + b"x" * 300 + b'"}\n', ":1: the line is longer than 200 bytes"),
    ],
)
def test_a_bad_line_says_where_and_what(
    tmp_path: Path, content: bytes, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "longer" in message:
        monkeypatch.setattr(records, "MAX_RECORD_BYTES", 200)
    with pytest.raises(InputError, match=message) as caught:
        list(read_jsonl(lines(tmp_path, content), BadRecords()))
    assert caught.value.hint


def test_the_list_of_bad_records_stays_short() -> None:
    bad = BadRecords(skip=True)
    for number in range(1000):
        bad.report(InputError(str(number)))
    assert (bad.count, len(bad.examples)) == (1000, BadRecords.KEPT)


def test_missing_empty_and_folder_paths_have_their_own_errors(tmp_path: Path) -> None:
    for path, message in [
        (tmp_path, "is a folder"),
        (tmp_path / "no", "does not exist"),
        (lines(tmp_path, b""), "is empty"),
    ]:
        with pytest.raises(InputError, match=message):
            list(read_jsonl(path, BadRecords()))


VALUES = st.lists(
    st.dictionaries(
        st.text(), st.integers() | st.text() | st.lists(st.floats(allow_nan=False)), max_size=3
    ),
    max_size=6,
)


@given(values=VALUES, indent=st.sampled_from([None, 1]), block=st.integers(1, 40))
def test_a_json_array_is_read_the_same_whatever_the_block_size(
    tmp_path_factory: pytest.TempPathFactory,
    values: list[dict[str, object]],
    indent: int | None,
    block: int,
) -> None:
    path = tmp_path_factory.mktemp("array") / "array.json"
    path.write_text(json.dumps(values, indent=indent), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "_BLOCK", block)
        assert [one.value for one in read_json_array(path, BadRecords())] == values


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[{"a": 1}, {"a": ', "not valid JSON"),
        (b'[{"a": 1}', "the file ends inside the array"),
        (b'[{"a": 1} {"a": 2}]', "expected ',' or ']'"),
        (b'{"a": 1}', "expected a JSON array"),
        (b'[{"a": "\xff\xfe"}]', "not UTF-8"),
        (b"\x00\x01\x02", "expected a JSON array"),
    ],
)
def test_a_damaged_array_ends_the_reading_even_when_bad_records_are_skipped(
    tmp_path: Path, content: bytes, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        list(read_json_array(lines(tmp_path, content), BadRecords(skip=True)))


def test_only_an_artefact_of_the_same_kind_may_be_replaced(tmp_path: Path) -> None:
    check_replaceable(tmp_path / "new", kind="thing")
    (tmp_path / "empty").mkdir()
    check_replaceable(tmp_path / "empty", kind="thing")
    check_replaceable(make(tmp_path / "old"), kind="thing")
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    make(tmp_path / "gate")
    for path, kind in (("documents", "thing"), ("file", "thing"), ("gate", "library")):
        with pytest.raises(InputError, match="would be overwritten"):
            check_replaceable(tmp_path / path, kind=kind)
    (tmp_path / "gate" / "manifest.json").write_text("[]")
    with pytest.raises(
        InputError, match=r"cannot read .*manifest\.json: it is not a JSON"
    ) as caught:
        check_replaceable(tmp_path / "gate", kind="thing")
    assert f"mv {tmp_path / 'gate'} " in caught.value.hint


def test_a_device_or_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, ["One.\n", "Two.\n"])
    assert os.read(reader, 100) == b"One.\nTwo.\n"
    os.close(reader)
    assert [one.name for one in tmp_path.iterdir() if one.is_fifo()] == ["pipe"]
    assert is_device(Path(os.devnull))
    assert not is_device(tmp_path / "new")
