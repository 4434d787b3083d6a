"""A plan: sub-questions whose answers together answer the question.

    1  Who is the director of Dog Law?
    2  When was #1 born?

"#1" stands for the answer to sub-question 1. Rules or a language model make a plan; either way it
is checked: it ends, it is short, and each step asks for something. A model's plan that fails the
check is not repaired: the rules' plan replaces it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from suffice.answering.answer_type import AnswerType, expected_answer_type
from suffice.errors import InputError
from suffice.lexicon import FUNCTION_WORDS
from suffice.text import tokens

__all__ = [
    "MAX_STEPS",
    "MAX_STEP_CHARS",
    "PLAN_SCHEMA",
    "Plan",
    "SubQuestion",
    "build_plan",
    "fill_answers",
    "parse_plan",
    "whole_question_step",
]

MAX_STEPS = 8
MAX_STEP_CHARS = 400
MAX_QUESTION_CHARS = 2000  # of a question that is asked as a whole
_PLACEHOLDER = re.compile(r"#(\d{1,3})")
_EXACT = frozenset({AnswerType.DATE, AnswerType.NUMBER, AnswerType.YES_NO})
_NAMED = frozenset({AnswerType.PERSON, AnswerType.CHOICE})

PLAN_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "items": {"type": "string", "minLength": 5, "maxLength": MAX_STEP_CHARS},
            "minItems": 1,
            "maxItems": MAX_STEPS,
        }
    },
    "required": ["steps"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """One step. With `combine`, it searches nothing and combines the answers it depends on.

    `choices` are the two that a combination picks from, in the order of those answers.
    """

    text: str
    answer_type: AnswerType
    combine: str = ""
    choices: tuple[str, ...] = ()

    @property
    def depends_on(self) -> tuple[int, ...]:
        """The numbers of the sub-questions whose answers this one contains."""
        return tuple(dict.fromkeys(int(number) for number in _PLACEHOLDER.findall(self.text)))


@dataclass(frozen=True, slots=True)
class Plan:
    """Sub-questions that depend only on earlier ones; the last one answers the question."""

    question: str
    steps: tuple[SubQuestion, ...]
    kind: str = "plain"  # plain, bridge, comparison, intersection or temporal
    by: str = "rules"
    notes: tuple[str, ...] = ()

    @property
    def hops(self) -> int:
        """How many steps search."""
        return sum(not step.combine for step in self.steps)


def whole_question_step(question: str) -> SubQuestion:
    """The question itself as a step. A "#1" in it is not a placeholder."""
    plain = _PLACEHOLDER.sub(lambda found: f"number {found[1]}", " ".join(question.split()))
    text = plain[:MAX_QUESTION_CHARS]
    return SubQuestion(text, expected_answer_type(text))


def build_plan(
    question: str, steps: Sequence[SubQuestion], *, kind: str = "plain", by: str = "rules"
) -> Plan:
    """Order the steps so that the plan works; InputError says what is wrong with them."""
    if not steps or len(steps) > MAX_STEPS:
        raise InputError(f"a plan of {len(steps)} steps, expected 1 to {MAX_STEPS}")
    seen: dict[str, int] = {}
    for number, step in enumerate(steps, start=1):
        if problem := _step_problem(step, number, len(steps)):
            raise InputError(f"step {number}: {problem}")
    for number, step in enumerate(steps, start=1):
        if (first := seen.setdefault(" ".join(tokens(step.text)), number)) != number:
            raise InputError(f"step {number} asks the same as step {first}")
    return Plan(question, _sort_steps(steps), kind, by)


def _step_problem(step: SubQuestion, number: int, count: int) -> str:
    """Why a step cannot be answered even in principle; empty if it can."""
    text = step.text.strip()
    if not text or len(text) > MAX_STEP_CHARS:
        return f"has {len(text)} characters, expected 1 to {MAX_STEP_CHARS}"
    if number in step.depends_on:
        return "needs its own answer"
    if wrong := [one for one in step.depends_on if not 1 <= one <= count]:
        return f"needs step {wrong[0]}, which does not exist"
    if not step.combine and FUNCTION_WORDS.issuperset(tokens(_PLACEHOLDER.sub(" ", text))):
        return "asks for nothing"
    return ""


def _sort_steps(steps: Sequence[SubQuestion]) -> tuple[SubQuestion, ...]:
    """Put each step after those it depends on and renumber; otherwise keep the order."""
    sorter = TopologicalSorter(
        {number: step.depends_on for number, step in enumerate(steps, start=1)}
    )
    try:
        sorter.prepare()
    except CycleError as error:
        cycle = " -> ".join(map(str, error.args[1]))
        raise InputError(f"the steps need each other in a circle: {cycle}") from None
    order: list[int] = []
    waiting: list[int] = []
    while sorter.is_active():
        waiting = sorted([*waiting, *sorter.get_ready()])
        order.append(waiting.pop(0))
        sorter.done(order[-1])
    new = {old: at for at, old in enumerate(order, start=1)}
    ordered = [steps[old - 1] for old in order]
    return tuple(
        replace(step, text=_PLACEHOLDER.sub(lambda found: f"#{new[int(found[1])]}", step.text))
        for step in ordered
    )


def fill_answers(text: str, answers: Mapping[int, str]) -> str:
    """Replace the placeholders in a sub-question by the known answers."""
    return _PLACEHOLDER.sub(lambda found: answers.get(int(found[1]), found[0]), text)


def parse_plan(question: str, answer: Mapping[str, Any] | None, *, kind: str) -> Plan:
    """The plan in a model's answer; InputError if there is none or it fails the check."""
    listed = answer.get("steps") if answer is not None else None
    if not isinstance(listed, list):
        raise InputError("no list of steps")
    steps = []
    for one in listed:
        text = one.get("question") if isinstance(one, Mapping) else one
        if not isinstance(text, str):
            raise InputError(f"a step is {type(one).__name__}, expected a text")
        bare = re.sub(r"^\s*(?:step )?\d+[.):]\s*", "", text, flags=re.IGNORECASE)
        plain = " ".join(bare.split())
        steps.append(SubQuestion(plain, expected_answer_type(plain)))
    # Small models copy from the exemplars.
    words = set(tokens(question)) - FUNCTION_WORDS
    for number, step in enumerate(steps, start=1):
        if not step.depends_on and words.isdisjoint(tokens(step.text)):
            raise InputError(f"step {number} has no word of the question")
    plan = build_plan(question, steps, kind=kind, by="model")
    # A plan for "when" that ends with a name does not answer the question.
    wanted, given = expected_answer_type(question), plan.steps[-1].answer_type
    if wanted is not given and (wanted in _EXACT or (given in _EXACT and wanted in _NAMED)):
        raise InputError(f"the last step asks for a {given}, the question for a {wanted}")
    return plan
