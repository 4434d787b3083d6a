"""Saved traces: invalid ones are errors with their place, others replay to the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.small_world import BRIDGE, TinyLibrary, Wants, clock_of

from suffice.answering.ask import ask
from suffice.answering.budget import Budget
from suffice.answering.traces import (
    format_trace,
    read_traces,
    replay,
    save_traces,
    trace_from_json,
    trace_to_json,
)
from suffice.errors import InputError, SufficeError
from suffice.storage.fields import dataclass_from_json
from suffice.types import Citation, Trace

GATE = Wants("lothair", "a charter")


class Mumbles:
    """A model that says the same whatever it is asked: as a plan it does not hold, as an answer it
    is cited.
    """

    name = "mumbles"

    def complete(self, prompts: Sequence[str], *, schema: Any = None) -> list[str]:
        return ['{"answer": "Ermengarde of Tours", "sentences": [1, 2]}' for _ in prompts]


def recorded_trace() -> Trace:
    return ask(
        BRIDGE,
        TinyLibrary(),
        GATE,
        Mumbles(),
        budget=Budget(seconds=60, rounds=2),
        clock=clock_of(0, 0.1, 0.25),
    )


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_many_traces_in_one_file_replay_to_the_same_bytes(tmp_path: Path) -> None:
    file = save_traces(
        tmp_path / "t.jsonl", [recorded_trace(), ask(BRIDGE, TinyLibrary(), GATE), recorded_trace()]
    )
    assert "".join(
        trace_to_json(replay(one, TinyLibrary(), GATE)) + "\n" for one in read_traces(file)
    ) == file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{}", "version is 'None', expected 3"),
        ('{"version": 99, "steps": []}', "version is '99', expected 3"),
        ('{"version": 3}', "'calls' is missing"),
        ("[1, 2]", "expected a JSON object"),
        ("once upon a time", "not valid JSON"),
        ('{"question": "Who?", "hits": [' * 2000, "not valid JSON"),
    ],
)
def test_an_invalid_trace_is_an_error_with_its_line(line: str, why: str, tmp_path: Path) -> None:
    good = trace_to_json(recorded_trace())
    with pytest.raises(InputError, match=r"t.jsonl:2: ") as caught:
        list(read_traces(written(tmp_path / "t.jsonl", good, line, good)))
    assert why in str(caught.value)
    assert "suffice ask --trace" in caught.value.hint


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_trace_is_an_error(share: float, tmp_path: Path) -> None:
    good = trace_to_json(recorded_trace())
    with pytest.raises(InputError, match=r"t.jsonl:1: not valid JSON"):
        list(read_traces(written(tmp_path / "t.jsonl", good[: int(share * len(good))])))


def test_binary_files_and_endless_lines_are_errors(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(bytes(range(255, 10, -1)) * 40)
    with pytest.raises(InputError, match="bytes:1: not UTF-8"):
        list(read_traces(tmp_path / "bytes"))
    with (tmp_path / "huge").open("wb") as stream:
        stream.truncate(2**31)  # a hole: no byte of it is on the disk
    with pytest.raises(InputError, match="longer than"):
        list(read_traces(tmp_path / "huge"))
    with pytest.raises(InputError, match="nowhere"):
        list(read_traces(tmp_path / "nowhere"))


def test_lines_before_a_bad_one_are_read(tmp_path: Path) -> None:
    lines = read_traces(written(tmp_path / "t.jsonl", trace_to_json(recorded_trace()), "{}"))
    assert next(lines) == recorded_trace()
    with pytest.raises(InputError, match=r"t.jsonl:2"):
        next(lines)


def damaged(value: Any) -> Iterator[Any]:
    """The same JSON, with one thing after another replaced by something else, or gone."""
    others: tuple[Any, ...] = (None, 7, -1.5, "x", [], {}, True)
    for other in others:
        if other != value:
            yield other
    for key in (
        value
        if isinstance(value, dict)
        else range(min(len(value), 2))
        if isinstance(value, list)
        else ()
    ):
        rest = (
            {one: value[one] for one in value if one != key}
            if isinstance(value, dict)
            else [*value[:key], *value[key + 1 :]]
        )
        yield rest
        for other in damaged(value[key]):
            yield (
                {**value, key: other}
                if isinstance(value, dict)
                else [*value[:key], other, *value[key + 1 :]]
            )


def test_a_damaged_trace_is_an_error_or_does_not_replay() -> None:
    """Never a crash, and never a replay of something else: each of its parts is changed in turn."""
    library = TinyLibrary()
    trace = ask(BRIDGE, library, GATE, budget=Budget(rounds=0))
    record = json.loads(trace_to_json(trace))
    refused = different = 0
    for other in damaged(record):
        try:
            found = trace_from_json(other) if isinstance(other, dict) else None
        except ValueError:
            refused += 1
            continue
        if found is None:
            continue
        assert format_trace(found)
        try:
            assert trace_to_json(replay(found, library, GATE)) == trace_to_json(found)
        except SufficeError:
            different += 1
    assert refused > 500
    assert different > 150


@pytest.mark.parametrize(
    "value",
    [None, [], {"doc_id": "a"}, {"doc_id": "a", "sentence": True, "text": ""}, {"doc_id": 1}],
)
def test_a_dataclass_is_built_only_from_values_of_its_types(value: Any) -> None:
    assert dataclass_from_json(Citation, {"doc_id": "a", "sentence": 0, "text": "b"}) == Citation(
        "a", 0, "b"
    )
    with pytest.raises(ValueError, match=r"Citation|sentence"):
        dataclass_from_json(Citation, value)
