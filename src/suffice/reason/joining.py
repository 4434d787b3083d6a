"""The last step of a plan by rules: what earlier answers say together. Nothing is looked up; a missing answer is no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from suffice.reason.spans import country_of, day_of, number_of
from suffice.text import names, title_key

__all__ = ["JOINS", "join"]

Answers = Sequence[str]


def join(kind: str, choices: Sequence[str], answers: Sequence[str | None], scores: Sequence[float]) -> str | None:
    """What the answers say together; None where one is missing or cannot be compared.

    `scores` say how well each was supported: "supported" needs nothing else.
    """
    if kind == "supported" and len(choices) == len(scores) > 1 and max(scores) > min(scores):
        return choices[max(range(len(scores)), key=scores.__getitem__)]
    known = [answer for answer in answers if answer is not None]
    if kind not in JOINS or not known or len(known) < len(answers):
        return None
    return JOINS[kind](choices, known)


def _by(measure: Callable[[str], object], best: Callable[..., int]) -> Callable[[Sequence[str], Answers], str | None]:
    def pick(choices: Sequence[str], answers: Answers) -> str | None:
        values = [measure(answer) for answer in answers]
        if None in values or len(values) != len(choices):
            return None
        return choices[best(range(len(values)), key=values.__getitem__)]

    return pick


def _longest(choices: Sequence[str], answers: Answers) -> str | None:
    """Born, died, born, died: who lived longer."""
    days = [day_of(answer) for answer in answers]
    if len(days) != 2 * len(choices):
        return None
    spans = []
    for born, died in zip(days[::2], days[1::2]):
        if born is None or died is None:
            return None
        spans.append(tuple(late - early for early, late in zip(born, died)))
    return choices[max(range(len(spans)), key=spans.__getitem__)]


def _same(_: Sequence[str], answers: Answers) -> str | None:
    return "yes" if len({country_of(answer) for answer in answers}) == 1 else "no"


def _all(_: Sequence[str], answers: Answers) -> str | None:
    return "yes" if all(answer.casefold().startswith("yes") for answer in answers) else "no"


def _shared(_: Sequence[str], answers: Answers) -> str | None:
    """The first answer, where every other one names it, too."""
    for candidate in [answers[0], *names(answers[0])]:
        key = title_key(candidate)
        if key and all(key in title_key(other) for other in answers[1:]):
            return candidate
    return None


JOINS: Mapping[str, Callable[[Sequence[str], Answers], str | None]] = {
    "earliest": _by(day_of, min),
    "latest": _by(day_of, max),
    "most": _by(number_of, max),
    "least": _by(number_of, min),
    "longest": _longest,
    "same": _same,
    "all": _all,
    "shared": _shared,
}
