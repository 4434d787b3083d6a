"""Readings that are kept in a file come back, whole ones only, and are read ahead."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.test_reader import QUESTION, TEXTS, TITLES, CountingReader, close

from suffice.errors import DataError
from suffice.gate.extraction import Readers, featurize
from suffice.gate.hits import normalize_hits
from suffice.gate.question import WordTable, parse_question
from suffice.gate.training import LabelledQuestion
from suffice.types import Document, Hit
from suffice_research.stored_readings import StoredReader


@pytest.fixture
def counting() -> CountingReader:
    return CountingReader()


def test_readings_are_remembered_in_a_file(counting: CountingReader, tmp_path: Path) -> None:
    path = tmp_path / "readings.jsonl"
    lists = [(QUESTION, TITLES, TEXTS), ("Who \ud800\u2028?", ["", "é"], ["", "Ada.\nMary."])]
    first = [StoredReader(counting, path).read(*one) for one in lists]
    again = StoredReader(counting, path)
    assert all(close(again.read(*given), one, by=0) for given, one in zip(lists, first))
    assert counting.reads == 2
    assert len(path.read_text().splitlines()) == 2


def test_a_half_written_last_line_is_read_again(counting: CountingReader, tmp_path: Path) -> None:
    path = tmp_path / "readings.jsonl"
    lists = [(QUESTION, TITLES[:n], TEXTS[:n]) for n in (1, 2, 3)]
    for one in lists[:2]:
        StoredReader(counting, path).read(*one)
    path.write_bytes(path.read_bytes()[:-20])
    after = StoredReader(counting, path)
    for one in lists:  # the first is known
        after.read(*one)
    assert counting.reads == 4
    third = StoredReader(counting, path)  # what was written behind the half line is whole
    for one in lists:
        third.read(*one)
    assert counting.reads == 4


def test_a_damaged_line_is_told_in_its_place(counting: CountingReader, tmp_path: Path) -> None:
    path = tmp_path / "readings.jsonl"
    StoredReader(counting, path).read(QUESTION, TITLES, TEXTS)
    whole = path.read_text()
    for damaged in ("{}\n", '["key", 1]\n', "nothing\n"):
        path.write_text(whole + damaged)
        with pytest.raises(DataError, match="line 2 of") as caught:
            StoredReader(counting, path)
        assert "delete" in caught.value.hint


def test_readings_of_another_reader_are_not_taken(
    counting: CountingReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "readings.jsonl"
    StoredReader(counting, path).read(QUESTION, TITLES, TEXTS)
    monkeypatch.setattr(CountingReader, "name", "another")
    StoredReader(counting, path).read(QUESTION, TITLES, TEXTS)
    assert counting.reads == 2


def test_reading_all_ahead_gives_the_same(counting: CountingReader, tmp_path: Path) -> None:
    documents = {
        f"d{at}": Document(f"d{at}", title=title, text=text)
        for at, (title, text) in enumerate(zip(TITLES, TEXTS, strict=True))
    }
    examples = [
        LabelledQuestion(
            QUESTION, [Hit(name) for name in list(documents)[:n]], {"d0", "d1"}, documents=documents
        )
        for n in (3, 2, 3, 0)
    ]
    seen: list[tuple[str, int, int]] = []
    cached = StoredReader(counting, tmp_path / "all", progress=lambda *one: seen.append(one))
    cached.read_all(examples, k=2)  # the first two hits only: all but the last are alike
    assert seen == [("reading", 1, 2), ("reading", 2, 2)]
    pair = cached.read(QUESTION, TITLES[:2], TEXTS[:2])
    assert counting.reads == 0
    assert close(pair, counting.read(QUESTION, TITLES[:2], TEXTS[:2]), by=1e-3)
    cached.read_all(examples, k=2)
    assert len((tmp_path / "all").read_text().splitlines()) == 2


def test_lists_are_read_ahead_as_a_gate_reads_them(counting: CountingReader) -> None:
    shared = [f"{text} All rights are reserved." for text in TEXTS[:3]]
    cached = StoredReader(counting)
    cached.read_all([LabelledQuestion(QUESTION, shared, set())], k=3)
    hits, words = normalize_hits(QUESTION, shared), WordTable.load()
    featurize([hits], [parse_question(hits.question, words)], words, Readers(reader=cached))
    assert counting.reads == 0
