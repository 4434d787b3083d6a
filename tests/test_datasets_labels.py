"""Labels as people give them: yes or no, per hit, gold ids; in our rows, tables and traces."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from suffice.datasets import read_labels, to_examples
from suffice.datasets.labels import read_lists, read_questions
from suffice.errors import InputError
from suffice.storage import BadRecords
from suffice.storage.fields import content_id
from suffice.types import Document

QUESTION = "Where was the director of Metropolis born?"
FILM: dict[str, Any] = {
    "id": "m",
    "title": "Metropolis",
    "text": "Metropolis was directed by Fritz Lang.",
}
LANG: dict[str, Any] = {
    "id": "l",
    "title": "Fritz Lang",
    "text": "Fritz Lang was born in Vienna.",
    "score": 3.5,
}
ROW: dict[str, Any] = {
    "question": QUESTION,
    "hits": [FILM, LANG],
    "by": "ada",
    "at": "2026-11-17T11:05:00Z",
}


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_yes_no_is_about_the_hits_and_gold_about_the_question(tmp_path: Path) -> None:
    rows = [
        {**ROW, "complete": True},
        {**ROW, "hits": [FILM], "complete": False},
        {**ROW, "hits": [LANG], "gold": ["l", "m"], "complete": None},
    ]
    said, no, gold = read_labels(write(tmp_path / "labels.jsonl", *rows))
    assert (said.is_complete, no.is_complete, gold.is_complete) == (True, False, False)
    assert (said.by, said.at) == ("ada", "2026-11-17T11:05:00Z")
    examples = to_examples([said, no, gold], k=10).examples
    assert [one.complete for one in examples] == [True, False, None]
    assert [one.needed for one in examples] == [None, None, {"l", "m"}]


def test_per_hit_labels_count_only_where_everything_needed_is_known(tmp_path: Path) -> None:
    both, none = {"m": True, "l": False}, {"m": False, "l": False}
    rows = [
        {**ROW, "question": "all judged, complete", "complete": True, "needed": both},
        {**ROW, "question": "some judged, complete", "complete": True, "needed": {"m": True}},
        {**ROW, "question": "nothing that was found is needed", "needed": none, "complete": None},
        {**ROW, "question": "who knows", "needed": both},
    ]
    labels = read_labels(write(tmp_path / "labels.jsonl", *rows))
    found = to_examples(labels, k=10)
    assert [(one.needed, one.complete) for one in found.examples] == [
        ({"m"}, None),
        (None, True),
        (None, False),
    ]
    assert len(found.left_out) == 1
    assert "labels.jsonl:4" in found.left_out[0]
    assert "whether a document is missing" in found.left_out[0]


def test_a_yes_about_more_hits_than_the_gate_reads_is_left_out(tmp_path: Path) -> None:
    rows = [{**ROW, "complete": True}, {**ROW, "question": "another", "complete": False}]
    found = to_examples(read_labels(write(tmp_path / "labels.jsonl", *rows)), k=1)
    assert [one.complete for one in found.examples] == [False]
    assert "reads the first 1 of 2 hits" in found.left_out[0]


def test_the_last_word_counts_and_an_undo_takes_it_back(tmp_path: Path) -> None:
    yes, no = {**ROW, "complete": True}, {**ROW, "complete": False}
    undo = {"undo": True, "question": QUESTION, "hits": [{"id": "l"}, {"id": "m"}]}
    other = {**ROW, "hits": [FILM], "complete": False}
    path = tmp_path / "labels.jsonl"
    assert [one.complete for one in read_labels(write(path, yes, other, no))] == [False, False]
    assert [one.complete for one in read_labels(write(path, yes, no, undo))] == [True]
    assert read_labels(write(path, yes, undo, undo)) == []
    ada, ben = {**yes, "by": "ada"}, {**no, "by": "ben"}
    assert [one.by for one in read_labels(write(path, ada, ben, {**undo, "by": "ada"}))] == ["ben"]
    skipped = {**yes, "complete": None, "by": "ben"}
    assert [one.by for one in read_labels(write(path, ada, skipped))] == ["ada"]
    assert read_labels(write(path, skipped)) == []


@pytest.mark.parametrize(
    ("label", "problem"),
    [
        ({}, "field 'complete' is missing"),
        ({"complete": "perhaps"}, "'perhaps', expected yes or no"),
        ({"complete": 0.7}, "0.7, expected yes or no"),
        ({"complete": True, "gold": ["m", "x"]}, "complete is yes, but"),
        ({"complete": False, "gold": ["m"]}, "complete is no, but"),
        ({"complete": True, "needed": {"m": False, "l": False}}, "no hit is needed"),
        ({"needed": {"m": False}, "gold": ["m"]}, "disagree about 'm'"),
        ({"needed": {"x": True}, "complete": True}, "'x' is none"),
        ({"complete": True, "hits": []}, "there are no hits"),
        ({"complete": True, "hits": None}, "field 'hits' is missing"),
        ({"complete": True, "hits": [FILM, {"score": 1}]}, "hit 2 is a dict without"),
        ({"complete": True, "question": " "}, "field 'question' is missing"),
    ],
)
def test_what_a_label_does_not_say_is_not_guessed(
    label: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "labels.jsonl", {**ROW, "complete": True}, {**ROW, **label})
    with pytest.raises(InputError, match=r"labels\.jsonl:2: ") as error:
        read_labels(path)
    assert problem in str(error.value)
    bad = BadRecords(skip=True)
    assert len(read_labels(path, bad=bad)) == 1
    assert bad.count == 1


def test_a_half_written_line_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "labels.jsonl", {**ROW, "complete": True})
    path.write_text(path.read_text() + '{"question": "Wh', encoding="utf-8")
    with pytest.raises(InputError, match=r"labels.jsonl:2: not valid JSON"):
        read_labels(path)


TEXTS = [FILM["text"], LANG["text"]]
DOCUMENTS = [{"page_content": text, "metadata": {"source": "film"}} for text in TEXTS]
TRACES: dict[str, dict[str, Any]] = {
    "ragas": {
        "user_input": QUESTION,
        "retrieved_contexts": TEXTS,
        "reference_contexts": TEXTS[:1],
    },
    "langsmith": {
        "inputs": {"question": QUESTION},
        "outputs": {"documents": DOCUMENTS, "answer": "Vienna"},
        "feedback_stats": {"user_score": {"n": 1, "avg": 1.0}},
    },
    "langfuse": {
        "input": {"messages": [{"role": "user", "content": QUESTION}]},
        "output": {"contexts": TEXTS},
        "scores": [{"name": "complete", "value": 1}, {"name": "tone", "value": 0}],
    },
    "retriever": {"input": QUESTION, "output": DOCUMENTS, "feedback": {"thumbs": "up"}},
    "plain": {"query": QUESTION, "contexts": TEXTS, "score": "\N{THUMBS UP SIGN}"},
}


@pytest.mark.parametrize("name", TRACES)
def test_rows_of_others_are_read(name: str, tmp_path: Path) -> None:
    (label,) = read_labels(write(tmp_path / "rows.jsonl", TRACES[name]))
    assert (label.question, label.is_complete) == (QUESTION, True)
    assert [hit["text"] for hit in label.hits] == TEXTS
    assert label.hits[0]["id"] == content_id("", TEXTS[0])


def test_of_several_scores_one_must_be_named(tmp_path: Path) -> None:
    row = {**TRACES["langfuse"], "scores": [{"name": n, "value": v} for n, v in zip("ab", (0, 1))]}
    path = write(tmp_path / "traces.jsonl", row)
    with pytest.raises(InputError, match="several scores: a, b") as error:
        read_labels(path)
    assert "--score" in error.value.hint
    assert [one.complete for one in read_labels(path, score="b")] == [True]


@pytest.mark.parametrize("name", ["langsmith", "langfuse", "retriever"])
def test_an_export_is_mostly_traces_without_feedback(name: str, tmp_path: Path) -> None:
    rated = TRACES[name]
    plain = {
        key: value for key, value in rated.items() if "feedback" not in key and key != "scores"
    }
    empty = [{**plain, "scores": []}, {**plain, "feedback_stats": {}}, {**plain, "feedback": None}]
    step = {"inputs": {"prompts": ["Who?"]}, "outputs": {"generations": []}}
    path = write(tmp_path / "traces.jsonl", plain, step, rated, *empty)
    assert [one.complete for one in read_labels(path)] == [True]
    assert read_labels(write(path, plain, *empty)) == []
    with pytest.raises(InputError, match="field 'question' is missing"):
        read_labels(write(path, {**step, "feedback": {"score": 1}}))


def test_a_score_that_no_trace_has_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "traces.jsonl", TRACES["langsmith"], TRACES["langfuse"])
    assert [one.complete for one in read_labels(path, score="user_score")] == [True]
    with pytest.raises(InputError, match="has no score 'user-score'") as error:
        read_labels(path, score="user-score")
    assert error.value.hint == "did you mean 'user_score'?"


def test_rows_of_a_table_may_wait_for_their_label(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("question,contexts,complete\nA?,One.,yes\nB?,Two.,\n", encoding="utf-8")
    assert [one.question for one in read_labels(path)] == ["A?"]


def test_a_table_has_cells_of_text_or_json(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["question", "contexts", "complete", "gold"])
        rows.writerow([QUESTION, json.dumps(TEXTS), "yes", ""])
        rows.writerow([QUESTION, "x" * 200_000, "No", ""])
        rows.writerow([QUESTION, json.dumps([FILM, LANG]), "", "m; l"])
        rows.writerow(["As pandas writes it?", str([TEXTS[0], 'It\'s "new".']), "yes", ""])
        rows.writerow(["A text?", "[1] Lang's own words.", "yes", ""])
    yes, no, gold, pandas, text = read_labels(path)
    assert (yes.complete, no.complete, gold.gold) == (True, False, frozenset("lm"))
    assert [hit["text"] for hit in pandas.hits] == [TEXTS[0], 'It\'s "new".']
    assert [hit["text"] for hit in text.hits] == ["[1] Lang's own words."]


@pytest.mark.parametrize("suffix", [".csv", ".CSV", ".tsv"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_table_may_be_excels(delimiter: str, encoding: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"labels{suffix}"
    with path.open("w", encoding=encoding, newline="") as file:
        rows = csv.writer(file, delimiter=delimiter)
        rows.writerow(["Question", "Retrieved contexts", "Complete", "Remark"])
        rows.writerow([QUESTION, "Fritz Lang, born in Vienna; a director.", "TRUE", "so, so"])
        rows.writerow(["Who?", json.dumps(TEXTS), "no", "down"])
    assert [(one.question, one.complete) for one in read_labels(path)] == [
        (QUESTION, True),
        ("Who?", False),
    ]
    assert [len(one.hits) for one in read_lists(path)] == [1, len(TEXTS)]
    assert read_questions(path) == [QUESTION, "Who?"]
    (rated,) = read_labels(path, score="Remark", bad=BadRecords(skip=True))
    assert rated.complete is False


def test_hits_that_are_ids_need_a_library(tmp_path: Path) -> None:
    row = {**ROW, "hits": [{"id": "m"}, {"id": "l"}], "complete": True}
    labels = read_labels(write(tmp_path / "labels.jsonl", row))
    with pytest.raises(InputError, match="hit 'l' has no text"):
        to_examples(labels, k=10)
    documents = {one["id"]: Document(one["id"], one["text"]) for one in (FILM, LANG)}
    assert len(to_examples(labels, k=10, documents=documents).examples) == 1
