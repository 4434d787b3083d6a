"""Counting hops: counters learn and are judged apart, every count is tried, wrong files are named."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.datasets.gold import Gold, GoldQuestion
from suffice.errors import InputError
from suffice.types import Question
from suffice_research.answers import AnswerOutcome, make_answer_run
from suffice_research.par_rag import complexity
from suffice_research.par_rag.complexity import Complexity, HopQuestions, ToldHops
from suffice_research.study import table_cell

SHORT = [(f"Where was poet number {at} born?", 1) for at in range(12)]
LONG = [
    (f"Which of the two films, A{at} or B{at}, has the director who died first?", 4)
    for at in range(12)
]


class Vectors:
    """An encoder that knows how long a question is."""

    name, dimension = "length", 2

    def encode(self, texts, *, query=False):
        return np.array([[len(text) / 50, 1.0] for text in texts], np.float32)


def sets() -> list[HopQuestions]:
    return [
        HopQuestions("short", SHORT[:8], SHORT[8:]),
        HopQuestions("long", LONG[:8], LONG[8:]),
        HopQuestions("mixed", SHORT[:4] + LONG[:4], SHORT[8:] + LONG[8:]),
    ]


def test_counters_learn_hops_and_a_data_set_can_be_left_out():
    gates = {"short": np.array([1, 1, 1, 2])}
    counts = complexity.counts_of(sets(), gates, encoder=Vectors())
    table: Any = complexity.counter_table(sets(), counts, seed=1)
    cell: Any = partial(table_cell, table)
    assert cell(f"{complexity.HEAD}, all data sets", "all").value == 1.0
    assert cell(f"{complexity.LINEAR}, other data sets", "short, n = 4").value == 1.0
    assert cell("its gate", "short, n = 4").value == 0.75
    assert cell("its gate", "all") is None  # it has not counted everything
    assert cell("always two", "all").value == 0.0
    confused = complexity.confusion_table(sets(), counts, seed=1)
    assert {row[1] for row in confused.rows} == {1, 4}


def test_without_an_encoder_its_rows_are_left_out():
    counts = complexity.counts_of(sets(), {})
    assert not any(name.startswith(complexity.BERT) for name in counts)


# ---- the loop


def found() -> Complexity:
    """Three questions of two, three and four hops; the loop is right only with the true count, and
    with the last one always.
    """
    gold = (2, 3, 4)
    questions = [
        GoldQuestion(
            Question(str(at), f"question {at}"),
            Gold(str(at), frozenset(f"{at}-{n}" for n in range(hops)), "yes", hops=hops),
        )
        for at, hops in enumerate(gold)
    ]
    systems = {
        f"{name}, {said}": [
            AnswerOutcome(
                "yes" if said == hops or hops == 4 else "no", tuple(sorted(one.gold.doc_ids))
            )
            for one, hops in zip(questions, gold)
        ]
        for name in complexity.SYSTEMS
        for said in complexity.HOPS
    }
    run = make_answer_run("village", questions, systems, seed=1)
    return Complexity(run, np.array(gold), np.array([2, 1, 4]), np.array([3, 3, 4]))


def test_recovery_counts_only_what_was_miscounted():
    counts = {"its gate": {"village": np.array([3, 3, 1])}}
    table: Any = complexity.recovery_table({"village": found()}, counts)
    (row,) = table.rows
    counter, _, miscounted, all_the_same, with_true_count, kept, counted_right = row
    assert (counter, miscounted) == ("its gate", 2)
    assert all_the_same.measured.value == 0.5
    assert all_the_same.paper == 0.7582
    assert (with_true_count.value, kept.measured.value, counted_right.value) == (1.0, 0.5, 1.0)


def test_a_forced_count_is_wrong_for_every_question():
    gold = np.array([1, 2, 3, 4])
    for label in ("one less", "one more", "farthest"):
        assert (complexity._miscounted(gold, label) != gold).all()
        assert set(complexity._miscounted(gold, label)) <= set(complexity.HOPS)
    table: Any = complexity.forced_table({"village": found()})
    assert [row[2] for row in table.rows[:3]] == ["one less", "one more", "farthest"]
    assert table.rows[0][-1].value == pytest.approx(1 / 3)  # the last question stays right


def test_an_error_is_the_plan_s_before_it_is_the_reader_s():
    one = found()
    table: Any = complexity.error_table({"village": one})
    (always, _) = table.rows
    assert always[2] == 1  # with the gate's counts only the first is wrong
    plan, evidence, silent, reading = always[3:]
    assert (plan.measured.value, evidence.value, silent.value, reading.value) == (0, 0, 0, 1)
    assert plan.paper == 0.27


def test_a_gate_that_is_told_the_hops_judges_as_before():
    class Gate:
        def check_batch(self, pairs, **options):
            return ["verdict"] * len(pairs)

    gate: Any = Gate()
    told: Any = ToldHops(gate, 3.0)
    assert told.hops(["a", "b"]) == [3.0, 3.0]
    assert told.check_batch([("q", [])]) == ["verdict"]
    assert not hasattr(told, "find_answer")


# ---- files


def test_one_hop_questions_are_squad_s_that_have_an_answer(tmp_path: Path):
    assert complexity.one_hop_questions(None, seed=1, limit=5) is None
    assert complexity.one_hop_questions(tmp_path, seed=1, limit=5) is None
    rows = [{"question": f"Who is {at}?", "is_impossible": at % 2 == 0} for at in range(10)]
    document = {"data": [{"paragraphs": [{"qas": rows}, {"qas": rows}]}]}
    (tmp_path / "squad2").mkdir()
    path = tmp_path / "squad2" / "dev.json.gz"
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    found = complexity.one_hop_questions(tmp_path, seed=1, limit=5)
    assert found is not None
    assert len(found.taught) + len(found.judged) == 5  # each once
    for damaged in (b"no gzip", gzip.compress(b"{"), gzip.compress(b"[]"), path.read_bytes()[:40]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"dev\.json\.gz is not SQuAD"):
            complexity.one_hop_questions(tmp_path, seed=1, limit=5)
