"""The loop: which made questions teach a gate, and how well they can be told from real ones."""

from __future__ import annotations

from collections import Counter

from suffice.datasets.gold import Gold, GoldQuestion
from suffice.gate.training import LabelledQuestion
from suffice.types import Question
from suffice_research.training.made_questions import balanced
from suffice_research.training.made_standard import split_by_text


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


def test_a_question_and_its_twin_are_in_one_half() -> None:
    questions = [LabelledQuestion(f"Is Harbour{at} a port?", (), ("a",)) for at in range(200)]
    read, unread = split_by_text([*questions, *questions])
    assert not {one.question for one in read} & {one.question for one in unread}
    assert 150 < len(read) < 250
