"""The last step of a plan by rules: combine earlier answers. A missing answer gives no answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from suffice.answering.answer_type import (
    NATIONALITIES,
    country_key,
    parse_day,
    parse_number,
)
from suffice.lexicon import STOP_WORDS
from suffice.text import names, title_key

__all__ = ["combine", "supporting_steps"]

Combiner = Callable[[Sequence[str], Sequence[str]], str | None]  # of choices and answers


def combine(
    kind: str, choices: Sequence[str], answers: Sequence[str | None], scores: Sequence[float]
) -> str | None:
    """The combined answer; None if an answer is missing or cannot be compared.

    `scores` say how well each answer was supported: "supported" needs nothing else.
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
    """The positions of the (answer, confidence) pairs that a combined answer rests on.

    One "no" is enough for a "no" to both, and "supported" rests on the chosen one, if the texts
    say it: a better fit alone is a guess. Any other answer rests on all.
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
    """From born, died, born, died: who lived longer."""
    days = [parse_day(answer) for answer in answers]
    if len(days) != 2 * len(choices):
        return None
    ages = []
    for born, died in zip(days[::2], days[1::2]):
        if born is None or died is None:
            return None
        ages.append(tuple(late - early for early, late in zip(born, died)))
    return choices[max(range(len(ages)), key=ages.__getitem__)]


def _same(_: Sequence[str], answers: Sequence[str]) -> str | None:
    return "yes" if len({country_key(answer) for answer in answers}) == 1 else "no"


def _in_order(early: bool) -> Combiner:
    """Whether the first day comes before the second, or after it."""

    def compare(_: Sequence[str], answers: Sequence[str]) -> str | None:
        days = [parse_day(answer) for answer in answers]
        if len(days) != 2 or days[0] is None or days[1] is None:
            return None
        return "yes" if (days[0] < days[1]) is early and days[0] != days[1] else "no"

    return compare


def _all(_: Sequence[str], answers: Sequence[str]) -> str | None:
    return "yes" if all(answer.casefold().startswith("yes") for answer in answers) else "no"


def _shared(_: Sequence[str], answers: Sequence[str]) -> str | None:
    """The first answer, or a name in it, that every other answer contains."""
    for candidate in [answers[0], *names(answers[0])]:
        key = title_key(candidate)
        if key and all(key in title_key(other) for other in answers[1:]):
            return candidate
    return None


def _kind(_: Sequence[str], answers: Sequence[str]) -> str | None:
    """The words that all have, without stop words at the ends."""
    first, *others = (answer.replace(",", " ").split() for answer in answers)
    known = [{_singular(word) for word in words} for words in others]
    shared = [word for word in first if all(_singular(word) in words for words in known)]
    while shared and shared[-1].casefold() in STOP_WORDS:
        shared.pop()
    while shared and shared[0].casefold() in STOP_WORDS:
        shared.pop(0)
    return " ".join(shared) or None


def _alike(choices: Sequence[str], answers: Sequence[str]) -> str | None:
    """Whether they are of one kind, apart from the word for the kind and their nationality."""
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
