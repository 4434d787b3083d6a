"""A plan: the sub-questions whose answers together answer the question, and which of them need which.

    1  Who is the director of Dog Law?
    2  When was #1 born?

"#1" stands for the answer to sub-question 1. A plan is made by rules (`reason.rules`) or by a language model that is shown
plans for questions of the same complexity (`reason.exemplars`), and is checked either way: it ends, it is short, and each step
asks for something. A model's plan that does not pass is not mended by guesswork: the rules' plan takes its place.
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
MAX_STEP_CHARS = 400  # characters of one sub-question
MAX_QUESTION_CHARS = 2000  # ... and of a question that is asked as it stands
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
    """One step. With a `join` nothing is looked up: the answers of the steps it needs are put together.

    `choices` are the two that a join picks from, in the order of the steps it needs.
    """

    text: str
    expects: AnswerType
    join: str = ""
    choices: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[int, ...]:
        """The numbers of the sub-questions whose answers stand in this one."""
        return tuple(dict.fromkeys(int(number) for number in _PLACEHOLDER.findall(self.text)))


@dataclass(frozen=True, slots=True)
class Plan:
    """Sub-questions in an order in which each needs only earlier ones; the last one answers the question."""

    question: str
    steps: tuple[SubQuestion, ...]
    kind: str = "plain"  # plain, bridge, comparison, intersection or temporal
    by: str = "rules"
    notes: tuple[str, ...] = ()

    @property
    def hops(self) -> int:
        """How many steps look something up."""
        return sum(not step.join for step in self.steps)


def whole_question_step(question: str) -> SubQuestion:
    """The question itself as a step. Its own "#1" is not a place for an answer."""
    text = _PLACEHOLDER.sub(lambda found: f"number {found[1]}", " ".join(question.split()))[
        :MAX_QUESTION_CHARS
    ]
    return SubQuestion(text, expected_answer_type(text))


def build_plan(
    question: str, steps: Sequence[SubQuestion], *, kind: str = "plain", by: str = "rules"
) -> Plan:
    """The plan of these steps in an order that works; InputError that says what is wrong with them."""
    if not steps or len(steps) > MAX_STEPS:
        raise InputError(f"a plan of {len(steps)} steps, expected 1 to {MAX_STEPS}")
    for number, step in enumerate(steps, start=1):
        if trouble := _step_problem(step, number, len(steps)):
            raise InputError(f"step {number}: {trouble}")
    seen: dict[str, int] = {}
    for number, step in enumerate(steps, start=1):
        if (first := seen.setdefault(" ".join(tokens(step.text)), number)) != number:
            raise InputError(f"step {number} asks the same as step {first}")
    return Plan(question, _sort_steps(steps), kind, by)


def _step_problem(step: SubQuestion, number: int, count: int) -> str:
    """Why a step cannot be answered even in principle; empty where it can."""
    text = step.text.strip()
    if not text or len(text) > MAX_STEP_CHARS:
        return f"has {len(text)} characters, expected 1 to {MAX_STEP_CHARS}"
    if number in step.needs:
        return "needs its own answer"
    if wrong := [one for one in step.needs if not 1 <= one <= count]:
        return f"needs step {wrong[0]}, which is not there"
    asked = [word for word in tokens(_PLACEHOLDER.sub(" ", text)) if word not in FUNCTION_WORDS]
    if not asked and not step.join:
        return "asks for nothing"
    return ""


def _sort_steps(steps: Sequence[SubQuestion]) -> tuple[SubQuestion, ...]:
    """Each step behind those it needs, numbered anew; otherwise in the order given."""
    sorter = TopologicalSorter({number: step.needs for number, step in enumerate(steps, start=1)})
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " -> ".join(map(str, error.args[1]))
        raise InputError(f"the steps need each other in a circle: {circle}") from None
    order: list[int] = []
    waiting: list[int] = []
    while sorter.is_active():
        waiting = sorted([*waiting, *sorter.get_ready()])
        order.append(waiting.pop(0))
        sorter.done(order[-1])
    new = {old: at for at, old in enumerate(order, start=1)}
    return tuple(
        replace(
            steps[old - 1],
            text=_PLACEHOLDER.sub(lambda m: f"#{new[int(m[1])]}", steps[old - 1].text),
        )
        for old in order
    )


def fill_answers(text: str, answers: Mapping[int, str]) -> str:
    """A sub-question with the answers that are known in their places."""
    return _PLACEHOLDER.sub(lambda found: answers.get(int(found[1]), found[0]), text)


def parse_plan(question: str, answer: Mapping[str, Any] | None, *, kind: str) -> Plan:
    """The plan in a model's answer; InputError where there is none, or it does not hold."""
    listed = answer.get("steps") if answer is not None else None
    if not isinstance(listed, list):
        raise InputError("no list of steps")
    steps = []
    for one in listed:
        text = one.get("question") if isinstance(one, Mapping) else one
        if not isinstance(text, str):
            raise InputError(f"a step is {type(one).__name__}, expected a text")
        plain = " ".join(
            re.sub(r"^\s*(?:step )?\d+[.):]\s*", "", text, flags=re.IGNORECASE).split()
        )
        steps.append(SubQuestion(plain, expected_answer_type(plain)))
    _check_grounded(question, steps)
    plan = build_plan(question, steps, kind=kind, by="model")
    _check_final_type(question, plan.steps[-1])
    return plan


def _check_grounded(question: str, steps: Sequence[SubQuestion]) -> None:
    """Small models copy from the examples: a step without an earlier answer must share a word with the question."""
    words = set(tokens(question)) - FUNCTION_WORDS
    for number, step in enumerate(steps, start=1):
        if not step.needs and words.isdisjoint(tokens(step.text)):
            raise InputError(f"step {number} has nothing of the question in it")


def _check_final_type(question: str, last: SubQuestion) -> None:
    """The last step's answer is the question's: a plan for "when" that ends with a name does not lead there."""
    wanted = expected_answer_type(question)
    if wanted is not last.expects and (
        wanted in _EXACT or (last.expects in _EXACT and wanted in _NAMED)
    ):
        raise InputError(f"the last step asks for a {last.expects}, the question for a {wanted}")
