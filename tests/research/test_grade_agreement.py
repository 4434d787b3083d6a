"""A model against the rules, and counting chains: on a small corpus, with a model that is not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from suffice.errors import InputError
from suffice.storage import BadRecords, read_json_records
from suffice_research.grade import agreement
from suffice_research.grade.chains import SHOWN, count_chains, sheet, table
from suffice_research.grade.readings import FOLDER
from tests.benchmark_village import village


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Claims and triples of the village are read once for both tests."""
    return tmp_path_factory.mktemp("village") / "made"


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")


def answer(prompt: dict[str, Any]) -> str:
    """A model that says something usable of every stage but the claims."""
    stage = prompt["key"].partition("/")[2]
    said = {
        "claims": "no JSON",
        "question": '{"question": "Who?", "answer": "x"}',
        "answer": '{"answer": "King Harald", "sentences": [1]}',
        "clear": '{"clear": true}',
        "judge": '{"correct": false}',
    }
    return said[stage]


def test_what_a_model_says_is_compared_with_the_rules(made: Path, tmp_path: Path) -> None:
    items = agreement.draw_items("village", village(), 4, made)
    assert len(items) == 4
    prompts = [one for at, item in enumerate(items) for one in agreement.prompts_of(at, item)]
    assert {one["key"].partition("/")[2] for one in prompts} == set(agreement.ASK)
    assert all("response_format" in one for one in prompts)
    write(tmp_path / "items.jsonl", [agreement._item_record(one) for one in items])
    answers = [{"key": one["key"], "text": answer(one)} for one in prompts]
    write(tmp_path / "answers.jsonl", answers[:-1])  # one never came
    rows = list(agreement.compare(tmp_path))
    assert [row["model_clear"] for row in rows] == [True] * 4
    assert [row["model_judges_right"] for row in rows] == [False, False, False, None]
    assert not any(row["model_question"] or row["model_claims"] for row in rows)
    for row in rows:
        row["read"] = dict.fromkeys(agreement.READ, "right") | {"model question": "none"}
    write(tmp_path / "read.jsonl", rows)
    found = agreement.summary(tmp_path / "read.jsonl")
    assert found["verdicts"]["model question"] == {"right": 0, "vague": 0, "wrong": 0, "none": 4}
    clear = found["agreement"]["model finds the rules' question clear, reader finds it right"]
    assert (clear["same"], clear["of"], clear["kappa"]) == (4, 4, None)
    rows[0]["read"]["rules claims"] = "fine"
    write(tmp_path / "read.jsonl", rows)
    with pytest.raises(InputError, match="'fine'"):
        agreement.summary(tmp_path / "read.jsonl")
    with pytest.raises(InputError, match="is not there"):
        agreement._read_items(tmp_path / "nowhere.jsonl")


def test_every_chain_of_a_corpus_is_counted(made: Path) -> None:
    counts, valid = count_chains(village(), made)
    assert counts["paths"]["5"] >= counts["questions"]["5"] >= counts["valid"]["5"] >= 1
    assert sum(counts["valid"].values()) == len(valid)
    lines = table(counts).splitlines()
    assert [line.split()[-1] for line in lines] == [
        "5",
        *(str(counts[name]["5"]) for name in SHOWN),
    ]
    read = list(sheet(valid, per_length=1))
    assert [one["hops"] for one in read] == [2, 3, 4, 5]
    assert all(one["verdict"] == "" for one in read)


def test_the_kept_reading_can_be_counted() -> None:
    path = FOLDER / agreement.READING
    if not path.is_file():
        pytest.skip("no reading is kept")
    found = agreement.summary(path)
    assert found["items"] == 100
    public = [one.value for one in read_json_records(path, BadRecords())]
    assert not any("words" in one for one in public if one["corpus"] != "everyday")
