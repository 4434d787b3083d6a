"""The loop: which made questions teach a gate, and how well they can be told from real ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from suffice.datasets.gold import Gold, GoldQuestion
from suffice.evaluation.benchmark_files import open_benchmark
from suffice.gate.training import LabelledQuestion
from suffice.types import Question
from suffice_research.training.made_questions import balanced, distinguishability, draw_like
from suffice_research.training.made_standard import is_complete, labelled_lists, split_by_text


def example(kind: str, at: int, hops: int = 2) -> GoldQuestion:
    name = f"{kind} {hops} {at}"
    return GoldQuestion(
        Question(name, f"What is {name}?"), Gold(name, frozenset({"a", "b"}), kind=kind, hops=hops)
    )


def test_a_quarter_of_the_lessons_compare_whatever_the_corpus_gives() -> None:
    examples = [example("chain", at) for at in range(200)] + [
        example("comparison", at) for at in range(500)
    ]
    examples += [example("bridge_comparison", at, hops=4) for at in range(500)]
    kinds = Counter(one.gold.kind for one in balanced(examples, 80))
    assert kinds == {"chain": 60, "comparison": 10, "bridge_comparison": 10}


def test_where_chains_are_few_comparisons_are_fewer() -> None:
    examples = [example("bridge", at) for at in range(20)] + [
        example("temporal", at, hops=3) for at in range(500)
    ]
    kinds = Counter(one.gold.kind for one in balanced(examples, 900))
    assert kinds == {"bridge": 20, "temporal": 7}


def test_lessons_need_several_documents() -> None:
    examples = [example("chain", at) for at in range(30)]
    examples += [example("single", at, hops=1) for at in range(300)]
    examples += [example("yes_no", at, hops=1 + at % 2) for at in range(40)]
    kinds = Counter((one.gold.kind, one.gold.hops) for one in balanced(examples, 900))
    assert kinds == {("chain", 2): 30, ("yes_no", 2): 20}


def test_the_draw_does_not_depend_on_the_order() -> None:
    examples = [example("chain", at) for at in range(50)]
    assert balanced(examples, 9) == balanced(examples[::-1], 9)


def test_templates_are_told_from_speech() -> None:
    made = [f"Who is the father of the director of film number {at}?" for at in range(40)]
    real = [f"Hey, tell me about that old movie, the one with number {at}" for at in range(40)]
    auroc, by_made, by_real = distinguishability(made, real)
    assert auroc > 0.99
    assert "father" in " ".join(by_made)
    assert "movie" in " ".join(by_real)


def test_what_looks_like_asked_questions_is_taken_first() -> None:
    made = [example("chain of a king", at) for at in range(30)]
    made += [example("film", at) for at in range(30)]
    like = [f"What is the film {at} about?" for at in range(30)]
    assert {one.gold.kind for one in draw_like(made, like, 20)} == {"film"}
    assert draw_like(made, like[:2], 5) == made[:5]  # too few to learn from


def write_benchmark(folder: Path, *, missed: int) -> list[GoldQuestion]:
    """Thirty questions, each with an unanswerable twin; BM25 does not find `missed` of them."""
    ports = [f"Harbour{at}" for at in range(30)]
    documents = [{"id": it, "title": it, "text": f"{it} is the port of Isle{it}."} for it in ports]
    hidden = [f"Nothing{at}" for at in range(missed)]
    documents += [{"id": it, "title": it, "text": "A lighthouse."} for it in hidden]
    rows = [
        {"question_id": it, "question": f"Is {it} a port?", "answer": "yes", "hops": 1,
         "gold": [it, *hidden[at : at + 1]]}
        for at, it in enumerate(ports)
    ]  # fmt: skip
    twins = [
        {**row, "question_id": f"{it}-twin", "without": it}
        for it, row in zip(ports, rows, strict=True)
    ]
    files: dict[str, list[dict[str, Any]]] = {
        "documents": documents,
        "questions": rows,
        "twins": twins,
    }
    for name, records in files.items():
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return list(open_benchmark(folder, twins=False).questions())


def test_where_every_list_is_complete_twins_show_what_is_not(tmp_path: Path) -> None:
    found = labelled_lists(tmp_path, write_benchmark(tmp_path, missed=1))
    assert Counter(map(is_complete, found)) == {True: 29, False: 31}


def test_where_lists_are_incomplete_no_twin_is_needed(tmp_path: Path) -> None:
    found = labelled_lists(tmp_path, write_benchmark(tmp_path, missed=6))
    assert Counter(map(is_complete, found)) == {True: 24, False: 6}


def test_a_question_and_its_twin_are_in_one_half() -> None:
    questions = [LabelledQuestion(f"Is Harbour{at} a port?", (), ("a",)) for at in range(200)]
    read, unread = split_by_text([*questions, *questions])
    assert not {one.question for one in read} & {one.question for one in unread}
    assert 150 < len(read) < 250
