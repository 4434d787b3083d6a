"""A plan: sub-questions whose answers together answer the question.

    1  Who is the director of Dog Law?
    2  When was #1 born?

"#1" stands for the answer to sub-question 1. Rules or a language model make a plan, and it is
always checked: steps do not depend on each other in a circle, there are few of them, and each asks
for something. A model's plan that fails the check is replaced by the rules' plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from suffice.answering.answer_type import (
    NATIONALITIES,
    AnswerType,
    country_key,
    expected_answer_type,
    parse_number,
)
from suffice.answering.prompting import object_schema
from suffice.errors import InputError
from suffice.lexicon import FUNCTION_WORDS, STOP_WORDS
from suffice.text import names, parse_day, title_key, tokens

MAX_STEPS = 8
MAX_STEP_CHARS = 400
MAX_QUESTION_CHARS = 2000  # if asked as a whole
_PLACEHOLDER = re.compile(r"#(\d{1,3})")
_EXACT = frozenset({AnswerType.DATE, AnswerType.NUMBER, AnswerType.YES_NO})
_NAMED = frozenset({AnswerType.PERSON, AnswerType.CHOICE})

PLAN_SCHEMA = object_schema(
    steps={
        "type": "array",
        "items": {"type": "string", "minLength": 5, "maxLength": MAX_STEP_CHARS},
        "minItems": 1,
        "maxItems": MAX_STEPS,
    }
)


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """One step. With `combine`, it does not search but combines the answers it depends on.

    `choices` are the two options to pick from, in the order of those answers.
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
        """The number of steps that search."""
        return sum(not step.combine for step in self.steps)


def whole_question_step(question: str) -> SubQuestion:
    """The question itself as a step. A "#1" in it is not a placeholder."""
    plain = _PLACEHOLDER.sub(lambda found: f"number {found[1]}", " ".join(question.split()))
    text = plain[:MAX_QUESTION_CHARS]
    return SubQuestion(text, expected_answer_type(text))


def build_plan(
    question: str, steps: Sequence[SubQuestion], *, kind: str = "plain", by: str = "rules"
) -> Plan:
    """Order the steps by their dependencies; InputError says what is wrong with them."""
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
    """Why a step cannot be answered; empty if it can."""
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
    """Put each step after its dependencies and renumber; otherwise keep the order."""
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
    # Small models copy steps from the exemplars, which then share no word with the question.
    words = set(tokens(question)) - FUNCTION_WORDS
    for number, step in enumerate(steps, start=1):
        if not step.depends_on and words.isdisjoint(tokens(step.text)):
            raise InputError(f"step {number} has no word of the question")
    plan = build_plan(question, steps, kind=kind, by="model")
    # A plan for "when" that ends with a name does not answer the question. THING may be anything.
    wanted, given = expected_answer_type(question), plan.steps[-1].answer_type
    clash = (wanted in _EXACT and given is not AnswerType.THING) or (
        given in _EXACT and wanted in _NAMED
    )
    if wanted is not given and clash:
        raise InputError(f"the last step asks for a {given}, the question for a {wanted}")
    return plan


# --- combining earlier answers, without a search

Combiner = Callable[[Sequence[str], Sequence[str]], str | None]  # takes choices and answers


def combine(
    kind: str, choices: Sequence[str], answers: Sequence[str | None], scores: Sequence[float]
) -> str | None:
    """The combined answer; None if an answer is missing or cannot be compared.

    `scores` say how well each answer is supported; "supported" uses only these.
    """
    if kind == "supported" and len(choices) == len(scores) > 1 and max(scores) > min(scores):
        return choices[max(range(len(scores)), key=scores.__getitem__)]
    known = [answer for answer in answers if answer is not None]
    if kind not in COMBINERS or not known or len(known) < len(answers):
        return None
    return COMBINERS[kind](choices, known)


def supporting_steps(
    kind: str, choices: Sequence[str], answer: str, steps: Sequence[tuple[str | None, float]]
) -> list[int]:
    """The positions of the (answer, confidence) pairs that a combined answer depends on.

    One "no" is enough for a combined "no". "supported" depends on the chosen one if the texts
    state it: a better fit alone is a guess. Any other answer depends on all.
    """
    every = list(range(len(steps)))
    if kind == "all" and answer == "no":
        no = [at for at in every if not (steps[at][0] or "").casefold().startswith("yes")]
        return [max(no, key=lambda at: steps[at][1])]
    if kind == "supported":
        chosen = list(choices).index(answer)
        return [chosen] if steps[chosen][0] == "yes" else []
    return every


def _pick_by(measure: Callable[[str], object], best: Callable[..., int]) -> Combiner:
    def pick(choices: Sequence[str], answers: Sequence[str]) -> str | None:
        values = [measure(answer) for answer in answers]
        if None in values or len(values) != len(choices):
            return None
        return choices[best(range(len(values)), key=values.__getitem__)]

    return pick


def _longest(choices: Sequence[str], answers: Sequence[str]) -> str | None:
    """Who lived longer, from the dates born, died, born, died."""
    days = [day for answer in answers if (day := parse_day(answer)) is not None]
    if len(days) != len(answers) or len(days) != 2 * len(choices):
        return None
    lives = zip(days[::2], days[1::2])
    ages = [[late - early for early, late in zip(born, died)] for born, died in lives]
    return choices[max(range(len(ages)), key=ages.__getitem__)]


def _same(_: Sequence[str], answers: Sequence[str]) -> str | None:
    return "yes" if len({country_key(answer) for answer in answers}) == 1 else "no"


def _in_order(early: bool) -> Combiner:
    """Whether the first day comes before the second, or after it."""

    def compare(_: Sequence[str], answers: Sequence[str]) -> str | None:
        days = [day for answer in answers if (day := parse_day(answer)) is not None]
        if len(answers) != 2 or len(days) != 2:
            return None
        return "yes" if (days[0] < days[1]) is early and days[0] != days[1] else "no"

    return compare


def _all(_: Sequence[str], answers: Sequence[str]) -> str | None:
    return "yes" if all(answer.casefold().startswith("yes") for answer in answers) else "no"


def _shared(_: Sequence[str], answers: Sequence[str]) -> str | None:
    """The first answer, or a name in it, if every other answer contains it."""
    for candidate in [answers[0], *names(answers[0])]:
        key = title_key(candidate)
        if key and all(key in title_key(other) for other in answers[1:]):
            return candidate
    return None


def _kind(_: Sequence[str], answers: Sequence[str]) -> str | None:
    """The words that all answers share, without stop words at the ends."""
    first, *others = (answer.replace(",", " ").split() for answer in answers)
    known = [{_singular(word) for word in words} for words in others]
    shared = [word for word in first if all(_singular(word) in words for words in known)]
    while shared and shared[-1].casefold() in STOP_WORDS:
        shared.pop()
    while shared and shared[0].casefold() in STOP_WORDS:
        shared.pop(0)
    return " ".join(shared) or None


def _alike(choices: Sequence[str], answers: Sequence[str]) -> str | None:
    """Whether all are of one kind, ignoring the word for the kind and their nationality."""
    ignored = STOP_WORDS | NATIONALITIES | {_singular(one) for one in choices}
    shared = (_kind((), answers) or "").split()
    return "yes" if any(_singular(word) not in ignored for word in shared) else "no"


def _singular(word: str) -> str:
    return re.sub(r"(?: s|s)$", "", title_key(word))


COMBINERS: Mapping[str, Combiner] = {
    "earliest": _pick_by(parse_day, min),
    "latest": _pick_by(parse_day, max),
    "most": _pick_by(parse_number, max),
    "least": _pick_by(parse_number, min),
    "longest": _longest,
    "before": _in_order(True),
    "after": _in_order(False),
    "same": _same,
    "all": _all,
    "shared": _shared,
    "kind": _kind,
    "alike": _alike,
}
