"""Labelling: what comes next and to whom, and a file of labels that loses none."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from suffice.datasets import read_labels
from suffice.errors import EngineError, InputError
from suffice.gate.gate import Gate
from suffice.service import labelling
from suffice.service.labelling import (
    LEASE_S,
    LabelItem,
    LabelQueue,
    load_items,
    make_item,
    uncertainty,
)
from suffice.storage import append_record
from suffice.text import jaccard

TEA = "Who taught the teacher of Ada?"
FILMS = "Which film came out first, The Navigator or Metropolis?"
SOUP = "How long does leek soup keep?"


def item(question: str, text: str = "Ada was taught by Mary.") -> LabelItem:
    return make_item(question, [{"id": "a", "title": "Ada", "text": text, "score": 2}])


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.jsonl"


def labelled(queue: LabelQueue, by: str, complete: bool | None = True) -> str:
    """Answer what comes next; its question."""
    found, _ = queue.next(by)
    assert found is not None
    queue.answer(found, complete, {}, by)
    return found.question


# ---- order


def test_questions_near_the_threshold_come_first(path: Path) -> None:
    queue = LabelQueue(path, [item(TEA), item(FILMS), item(SOUP)])
    for one in queue._candidates.values():
        p = {TEA: 0.95, FILMS: 0.55, SOUP: 0.1}[one.item.question]
        one.uncertainty = uncertainty(p, 0.6)
    assert [labelled(queue, "ada") for _ in range(3)] == [FILMS, TEA, SOUP]
    assert (uncertainty(0.6, 0.6), uncertainty(0.0, 0.6), uncertainty(0.5, None)) == (1, 0, 1)


def test_what_is_like_a_seen_question_comes_later(path: Path) -> None:
    near = TEA.replace("Ada", "Byron")
    queue = LabelQueue(path, [item(TEA), item(near), item(SOUP)])
    for one in queue._candidates.values():
        one.uncertainty = {TEA: 0.9, near: 0.8, SOUP: 0.5}[one.item.question]
    assert [labelled(queue, "ada") for _ in range(3)] == [TEA, SOUP, near]
    assert jaccard(set("ab"), set("ab")) == jaccard(set(), set()) == 1
    assert jaccard(set("ab"), set("cd")) == 0


def test_the_gate_ranks_what_a_file_has(path: Path) -> None:
    gate = Gate.load(preset="fast")
    queue = LabelQueue(path, [item(TEA), item(FILMS), item(SOUP), item("Why?"), item("How so?")])
    assert [queue.rank_some(gate) for _ in range(3)] == [True, True, False]
    found, _ = queue.next("ada")
    expected = {
        one: uncertainty(
            gate.check(one, [dict(item(one).hits[0])]).p_complete, gate.policy.answer_at
        )
        for one in (TEA, FILMS, SOUP, "Why?", "How so?")
    }
    assert found is not None
    assert found.question == max(expected, key=lambda one: expected[one])


def test_served_checks_are_offered_and_the_oldest_make_room(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate.load(preset="fast")
    queue = LabelQueue(path, [item(TEA)])
    monkeypatch.setattr(labelling, "MAX_SERVED_ITEMS", 2)
    for question in (FILMS, SOUP, SOUP, "Who?"):
        hits = ["Leeks keep for days."]
        queue.offer(gate, question, hits, gate.check(question, hits, explain=False))
    queue.offer(gate, "No hits?", [], gate.check("No hits?", [], explain=False))
    queue.offer(gate, "No text?", [{"id": "x"}], gate.check("No text?", [{"id": "x"}]))
    assert {labelled(queue, "ada") for _ in range(3)} == {TEA, SOUP, "Who?"}
    assert queue.next("ada")[0] is None
    soup = next(row for row in rows(path) if row["question"] == SOUP)
    assert soup["hits"][0]["text"] == "Leeks keep for days."
    assert "№" not in soup["hits"][0]["id"]  # an id of the text, not of its place in one list


# ---- people


def test_an_answer_is_a_line_and_an_undo_another(path: Path) -> None:
    queue = LabelQueue(path, [item(TEA), item(FILMS)])
    first = labelled(queue, "ada", True)
    second, progress = queue.next("ada")
    assert second is not None
    assert (progress.labelled, progress.complete, progress.left) == (1, 1, 1)
    queue.answer(second, False, {"a": True}, "ada")
    assert queue.undo("ada")
    again, progress = queue.next("ada")
    assert again == second
    assert (progress.labelled, progress.left) == (1, 1)
    assert queue.undo("ada")
    assert queue.next("ada")[0] == item(first)  # the last that was taken back comes first
    assert not queue.undo("ada")
    one, two, undo, undone = rows(path)
    hit = {"id": "a", "title": "Ada", "text": "Ada was taught by Mary.", "score": 2.0}
    assert (one["question"], one["hits"], one["complete"], one["by"]) == (
        first,
        [hit],
        True,
        "ada",
    )
    assert "needed" not in one
    assert (two["complete"], two["needed"]) == (False, {"a": True})
    assert (undo["undo"], undo["question"], undo["hits"], undo["by"]) == (
        True,
        second.question,
        ["a"],
        "ada",
    )
    assert undone["question"] == first


def test_two_people_get_different_questions_until_nothing_else_is_left(path: Path) -> None:
    clock = Clock()
    queue = LabelQueue(path, [item(TEA), item(FILMS)], clock=clock)
    ada, bob = queue.next("ada")[0], queue.next("bob")[0]
    assert ada is not None
    assert bob is not None
    assert ada != bob
    assert queue.next("ada")[0] == ada  # still hers
    queue.answer(bob, True, {}, "bob")
    assert queue.next("bob")[0] == ada  # nothing else is left
    queue.answer(ada, False, {}, "ada")
    queue.answer(ada, True, {}, "bob")
    assert [(row["by"], row["complete"]) for row in rows(path)] == [
        ("bob", True),
        ("ada", False),
        ("bob", True),
    ]
    assert queue.next("ada")[1].labelled == 2
    assert queue.undo("bob")  # his own answer only
    assert [row.get("by") for row in rows(path)][-1] == "bob"
    assert queue.next("eve")[0] is None


def test_what_somebody_left_lying_goes_to_the_next(path: Path) -> None:
    clock = Clock()
    queue = LabelQueue(path, [item(TEA), item(FILMS)], clock=clock)
    ada, bob = queue.next("ada")[0], queue.next("bob")[0]
    clock.now = LEASE_S / 2
    assert queue.next("bob")[0] == bob
    clock.now = LEASE_S + 1
    assert bob is not None
    queue.answer(bob, True, {}, "bob")
    assert queue.next("bob")[0] == ada


def test_who_skips_is_not_asked_again_but_others_are(path: Path) -> None:
    queue = LabelQueue(path, [item(TEA)])
    labelled(queue, "ada", None)
    found, progress = queue.next("ada")
    assert (found, progress.labelled, progress.skipped, progress.left) == (None, 0, 1, 0)
    assert labelled(queue, "bob") == TEA


def test_enough_labels_of_both_kinds_name_the_next_command(path: Path) -> None:
    queue = LabelQueue(path, [item(f"Who is number {at}?") for at in range(22)])
    for _ in range(20):
        labelled(queue, "ada", True)
    assert queue.next("ada")[1].adapt is None
    labelled(queue, "ada", False)
    assert queue.next("ada")[1].adapt == "suffice adapt labels.jsonl --out my-gate"


def test_a_label_needs_hits_that_are_there_and_says_one_thing(path: Path) -> None:
    for needed, says in (
        ({"b": True}, "no hit has the id 'b'"),
        ({"a": False}, "complete is yes, but no hit is needed"),
    ):
        with pytest.raises(InputError, match=says):
            LabelQueue(path).answer(item(TEA), True, needed, "ada")
    assert not path.exists()


def test_adapting_reads_what_the_page_counts(path: Path) -> None:
    bare = make_item(f" {SOUP}\n", ["Leeks keep for days."])  # a hit without an id
    queue = LabelQueue(path, [item(TEA), item(FILMS), bare])
    for complete in (True, None, False):
        labelled(queue, "ada", complete)
    assert queue.undo("ada")  # the no
    assert queue.undo("ada")  # the skip, not the yes
    assert [one.complete for one in read_labels(path)] == [True]
    assert queue.next("bob")[1].labelled == 1
    labelled(queue, "ada")
    labelled(queue, "ada")
    append_record(path, {"query": "Who?", "contexts": ["A text."], "label": "no"})  # by a script
    assert len(read_labels(path)) == queue.next("ada")[1].labelled == 4
    assert queue.next("ada")[0] is None


# ---- the file


def test_a_restart_and_another_process_continue_from_the_file(path: Path) -> None:
    items = [item(TEA), item(FILMS), item(SOUP)]
    first, other = LabelQueue(path, items), LabelQueue(path, items)
    done = labelled(first, "ada")
    found, progress = other.next("bob")
    assert found is not None
    assert found.question != done
    assert progress.labelled == 1
    later = LabelQueue(path)  # without the file of questions: an undo still knows the texts
    assert later.undo("ada")
    assert later.next("ada")[0] == item(done)
    assert first.next("eve")[1].labelled == 0


def test_half_a_line_and_nonsense_lose_nothing_else(path: Path) -> None:
    queue = LabelQueue(path, [item(TEA), item(FILMS)])
    done = labelled(queue, "ada")
    whole = path.read_bytes()
    path.write_bytes(whole + b'[1]\n{"question": 3, "hits": [], "complete": true}\n\xff\n'
                     b'{"undo": true, "question": [], "hits": {}}\n' + b"[" * 100_000 + b"\n"
                     b'{"question": "x", "hits": [{}], "complete": true}\n' + whole[:40])  # fmt: skip
    queue = LabelQueue(path, [item(TEA), item(FILMS)])
    assert queue.next("bob")[1].labelled == 1
    other = labelled(queue, "bob")
    assert {done, other} == {TEA, FILMS}
    assert LabelQueue(path).next("bob")[1].labelled == 2
    assert path.read_bytes().startswith(whole)
    path.unlink()
    assert queue.next("bob")[1].labelled == 0


def test_many_writers_append_whole_lines(path: Path) -> None:
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda at: append_record(path, {"at": at, "x": "é" * 5000}), range(64)))
    assert sorted(row["at"] for row in rows(path)) == list(range(64))


def test_a_full_disk_leaves_no_half_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = LabelQueue(path, [item(TEA), item(FILMS)])
    labelled(queue, "ada")
    whole, write = path.read_bytes(), os.write
    monkeypatch.setattr("os.write", lambda handle, line: write(handle, line[:10]))
    with pytest.raises(EngineError, match="not stored") as caught:
        labelled(queue, "ada")
    assert "free some disk space" in caught.value.hint
    assert path.read_bytes() == whole


def test_a_file_of_questions_is_checked_and_sampled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "questions.jsonl"

    def write(*records: Any) -> Path:
        file.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
        return file

    row = {"question": TEA, "hits": [{"id": 7, "text": "Ada."}, "Mary.", "Ada."], "complete": None}
    (found,) = load_items(write(row, {**row, "complete": True}, {**row, "hits": []}))
    assert [hit["text"] for hit in found.hits] == ["Ada.", "Mary."]
    assert load_items(file, k=1)[0].ids == ["7"]
    for wrong, says in (
        ({"hits": []}, "questions.jsonl:1: field 'question' is missing"),
        ({"question": TEA, "hits": "a"}, "field 'hits' is 'a', expected a list"),
        ({"question": TEA, "hits": [{}]}, "questions.jsonl:1: hit 1 is a dict without"),
        ({"question": TEA, "hits": ["x" * 400_001]}, "which nobody reads"),
        ({"question": "x" * 10_001, "hits": ["x"]}, "the question has 10,001 characters"),
        ({**row, "complete": False}, "has no question that is to be labelled"),
    ):
        with pytest.raises(InputError, match="jsonl") as caught:
            load_items(write(wrong))
        assert says in str(caught.value)
    monkeypatch.setattr(labelling, "MAX_FILE_ITEMS", 5)
    many = [{**row, "question": f"{TEA} {at}"} for at in range(50)]
    sample = load_items(write(*many))
    assert len(sample) == 5
    assert load_items(write(*reversed(many))) == sample


def test_labels_need_a_place(tmp_path: Path) -> None:
    for wrong in (tmp_path, tmp_path / "nowhere" / "labels.jsonl"):
        with pytest.raises(InputError, match="cannot store labels"):
            LabelQueue(wrong)
