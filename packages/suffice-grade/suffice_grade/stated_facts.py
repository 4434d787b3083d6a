"""The question that a sentence answers if it dates something that its subject did.

    Detroit elected its first black mayor in 1973.   In what year did X elect its first black mayor?
    In 1884, Detroit was hit by a flood.             In what year was X hit by a flood?

No relation needs to be known: the question repeats the words of the text. It asks about X, so that
a chain can lead to X: "In what year did the birthplace of Y elect its first black mayor?"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from suffice.lexicon import MONTHS
from suffice_grade.inflection import base_form, is_base, is_past
from suffice_grade.open_relations import STATES_NOTHING
from suffice_grade.vocabulary import any_of

STATED = "stated: "  # prefix of the relation; the colon prevents parsing it as an open one
MIN_WORDS, MAX_WORDS = 2, 12
_MONTH = "|".join(MONTHS)
_DATE = (
    rf"(?:\d{{1,2}} (?:{_MONTH}) [12]\d{{3}}|(?:{_MONTH}) \d{{1,2}}, [12]\d{{3}}"
    rf"|(?:{_MONTH}) [12]\d{{3}}|[12]\d{{3}})"
)
_OPENING = re.compile(rf"(?:In|On) (?P<value>{_DATE}),? ")
# The name at the start of a sentence.
OPENER = re.compile(
    rf"(?:{_OPENING.pattern})?(?:[Tt]he )?"
    r"(?P<name>[A-Z][\w’'-]+(?: (?:of |the |and )?[A-Z][\w’'-]+){0,4})(?= [a-z])"
)
# Not one of two dates, and not the start of a span.
_CLOSING = re.compile(
    rf" (?:in|on) (?P<value>{_DATE})(?=[.,;]|$| [a-z])"
    r"(?! (?:to|until|till|or|through)\b|,? and (?:again )?[12]\d)"
)
_ASIDE = re.compile(r", [^,]{2,60},(?= [a-z])")
# Recurring events have several dates, and a text may state only one.
_REPEATED = re.compile(
    r"^(?:win|lose|beat|defeat|host|play|visit|release|publish|record|tour|perform|appear|score|"
    r"receive|reach|have|make|sign|see|say|report|announce|attend|show|begin|start|continue|add|"
    r"face|finish|compete|meet|call|run|vote|increase|rise|fall|decline|grow|drop|average|earn|write|"
    r"direct|produce|star)$"
)
_ONCE = re.compile(r"\b(?:first|last|final|only|inaugural|debut|original)\b")
_VAGUE = re.compile(
    rf"^{any_of('opens_back')}\b|\b(?:{any_of('points_back')}|he|she|they|them|him|we|us|our|"
    r"that|this|these|those|another|again|also|both|part|estimated|census|population|percent|"
    r"according)\b"
)


# A year, a number cut at its comma, or a second event: "opened in May and was dedicated".
_BROKEN = re.compile(r"[,;:]|\d{4}|\d$| and (?:was|were|is|has|had|[a-z]+ed)\b")


class StatedFact(NamedTuple):
    """What a sentence says about its subject for one year or day."""

    words: str  # "elected its first black mayor"
    ask: str  # "In what year did X elect its first black mayor?"
    value: str


def stated_facts(text: str, name: str) -> Iterator[StatedFact]:
    """The dated event in a sentence that starts with this name, or with a date and the name."""
    text = re.sub(r"\s*\([^()]*\)", "", text).rstrip(".")
    opening = _OPENING.match(text)
    body = text[opening.end() :] if opening else text
    subject = re.match(rf"(?:[Tt]he )?{re.escape(name)} (?=[a-z])", body) if name else None
    if subject is None or '"' in body or STATES_NOTHING.search(body):
        return
    body = _ASIDE.sub("", body[subject.end() :])
    closing = None if opening else _CLOSING.search(body)
    dated = opening or closing
    if dated is None:
        return
    said = body[: closing.start()] if closing else re.split(r"[,;:]", body, maxsplit=1)[0]
    if (ask := _question(said, dated["value"])) is not None:
        yield StatedFact(said, ask, dated["value"])


def happens_again(base: str, rest: str) -> bool:
    """Whether what this verb says may have several dates: "hosted a fair", not "its first fair"."""
    return _REPEATED.match(base) is not None and _ONCE.search(rest) is None


def _question(said: str, value: str) -> str | None:
    """Words that ask when; None for states, recurring events and references to earlier text."""
    verb, _, rest = said.partition(" ")
    few = MIN_WORDS <= len(said.split()) <= MAX_WORDS
    if not few or _VAGUE.search(said) or _BROKEN.search(said):
        return None
    year = re.fullmatch(r"\d{4}", value) is not None
    when = "In what year" if year else "When"
    if verb in ("was", "were"):
        passive = rest.split()
        first = next((word for word in passive if not word.endswith("ly")), "")
        done = is_past(first) or first.endswith(("ed", "en"))
        often = happens_again(base_form(first), rest)
        return f"{when} {verb} X {rest}?" if done and not often else None
    base = base_form(verb)
    often = happens_again(base, rest)
    known = is_past(verb) and (is_base(base) or verb.endswith("ed"))
    return f"{when} did X {base} {rest}?" if known and not often else None
