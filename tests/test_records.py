"""The streaming readers under the data sets: whole JSON objects, lines, and files that are either
array or lines.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InputError
from suffice.storage import (
    BadRecords,
    read_json_object,
    read_json_records,
    read_jsonl,
    read_lines,
    records,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda one: st.lists(one, max_size=3),
)


@given(
    st.dictionaries(st.text(max_size=4), json_values, max_size=6),
    st.sampled_from([None, 0, 3]),
    st.integers(1, 40),
)
def test_an_object_is_read_entry_by_entry_whatever_the_block_size(
    tmp_path_factory, content, indent, block
):
    path = tmp_path_factory.mktemp("o") / "o.json"
    path.write_text(json.dumps(content, indent=indent, ensure_ascii=False), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "_BLOCK", block)
        assert [(entry.key, entry.value) for entry in read_json_object(path)] == list(
            content.items()
        )


def test_an_entry_says_its_line(tmp_path):
    path = tmp_path / "o.json"
    path.write_text('{\n "a": 1,\n\n "b": [2,\n 3]\n}\n')
    assert [entry.where for entry in read_json_object(path)] == [f"{path}:2", f"{path}:4"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1', "the file ends inside the object"),
        ('{"a" 1}', "expected a key and ':'"),
        ("{1: 2}", "expected a key and ':'"),
        ('{"a": [1, 2', "not valid JSON"),
        ('{"a": 1 "b": 2}', "expected ',' or '}'"),
        ('{"a": 1} {"b": 2}', "something follows the end of the object"),
        ("[1]", "expected a JSON object, it starts with"),
        ('{"a": ' + "[" * 100_000, "not valid JSON"),
        ('{"a": ' + "9" * 5_000 + "}", "not valid JSON"),
    ],
)
def test_a_damaged_object_is_an_error(tmp_path, content, message):
    path = tmp_path / "o.json"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        list(read_json_object(path))
    assert message in str(caught.value)


def test_a_record_over_the_limit_ends_the_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", 1000)
    path = tmp_path / "o.json"
    path.write_text(json.dumps({"a": "x" * 3_000_000}))
    with pytest.raises(InputError, match="a record is longer than 1,000 bytes"):
        list(read_json_object(path))


def test_a_long_line_stops_at_once_or_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", 100)
    path = tmp_path / "l.jsonl"
    path.write_bytes(b'{"a": 1}\n' + b"x" * 5000 + b'\n{"a": 2}\n')
    with pytest.raises(InputError, match=r"l\.jsonl:2: the line is longer than 100 bytes"):
        list(read_jsonl(path, BadRecords()))
    bad = BadRecords(skip=True)
    assert [record.value for record in read_jsonl(path, bad)] == [{"a": 1}, {"a": 2}]
    assert bad.count == 1


def test_lines_have_numbers_and_no_line_ends(tmp_path):
    path = tmp_path / "l.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\nthree")
    assert [(line.text, line.where) for line in read_lines(path, BadRecords())] == [
        ("one", f"{path}:1"),
        ("", f"{path}:2"),
        ("three", f"{path}:3"),
    ]


def test_a_line_that_is_not_utf8_is_a_bad_record_and_the_next_is_read(tmp_path):
    path = tmp_path / "l.txt"
    path.write_bytes(b"caf\xe9\nok\n")
    bad = BadRecords(skip=True)
    assert [line.text for line in read_lines(path, bad)] == ["ok"]
    assert "not UTF-8 text (byte 0xe9 at 3)" in bad.examples[0]


@pytest.mark.parametrize(
    "content", ['[{"a": 1}, {"a": 2}]', '{"a": 1}\n{"a": 2}', '\ufeff\n [{"a": 1},\n{"a": 2}]\n']
)
def test_the_first_character_tells_an_array_from_lines(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content, encoding="utf-8")
    assert [record.value for record in read_json_records(path, BadRecords())] == [
        {"a": 1},
        {"a": 2},
    ]
