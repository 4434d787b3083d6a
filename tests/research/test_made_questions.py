"""The loop: which made questions teach a gate, and how well they can be told from real ones."""

from __future__ import annotations

from collections import Counter

from suffice.datasets.gold import Gold, GoldQuestion
from suffice.types import Question
from suffice_research.training.made_questions import balanced, distinguishability, draw_like


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
