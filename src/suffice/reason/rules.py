"""Plans without a language model: a question is taken apart along the names in it and the words that lead from one to another.

    comparison     Which film has the director born first, A or B?   for each the director, the day; then the earlier of the two
    intersection   Which actor starred in both A and B?              what is said of each; then what they share
    temporal       Who was mayor of X when Y was built?              first when, then who at that time
    bridge         When did X's mother die?                          who that is, and then the question about whoever it is

What fits none of these is one step: the question itself. The rules read English word order, not meaning; where they are wrong,
the plan has a step that finds nothing, and the review says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from suffice.errors import InputError
from suffice.reason.bridging import bridge
from suffice.reason.comparing import comparison
from suffice.reason.plan import Plan, SubQuestion, as_it_stands, plan_of
from suffice.reason.sharing import YES_OR_NO, intersection
from suffice.reason.spans import Expects, expected
from suffice.text import names

__all__ = ["plan_by_rules"]

READABLE = 500  # characters; nobody asks a question of this form at greater length


def plan_by_rules(question: str) -> Plan:
    """The plan of the first rule that fits."""
    whole = as_it_stands(question)
    asked = whole.text
    for kind, rule in _RULES if len(asked) <= READABLE else ():
        steps = rule(asked)
        if steps:
            try:
                return plan_of(question, steps, kind=kind)
            except InputError:  # the rule misread the question: it is asked as a whole
                break
    return Plan(question, (whole,))


_WHEN = re.compile(
    r"^(?P<main>.+?)\s+(?:when|during the time (?:that|when)|(?:in|during) the year (?:that|when|in which)?|"
    r"at the time (?:that|of|when)|in the same year (?:that|as)|the year)\s+(?P<event>.*[^\sa-z].*?)\s*\??$"
)


def _temporal(question: str) -> list[SubQuestion]:
    found = _WHEN.match(question)
    if found is None or YES_OR_NO.match(question) or len(found["main"].split()) < 3 or not names(found["event"]):
        return []
    return [
        SubQuestion(f"In what year was it that {found['event']}?", Expects.DATE),
        SubQuestion(f"{found['main']} in #1?", expected(found["main"])),
    ]


_RULES: Sequence[tuple[str, Callable[[str], list[SubQuestion]]]] = (
    ("comparison", comparison),
    ("intersection", intersection),
    ("temporal", _temporal),
    ("bridge", bridge),
)
