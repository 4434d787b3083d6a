"""Which of two: each is looked up, then they are compared. What the two share is the room next door, `reason.sharing`.

English word order decides: "..., A or B?", "Was A or B ...", "Between A and B, which ...".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from suffice.reason.plan import SubQuestion
from suffice.reason.spans import PEOPLES, Expects

__all__ = ["CAPITALS", "ROLES", "bare_name", "branch", "comparison", "measured", "two_choices"]

_OR = re.compile(r"^(?P<head>[^,]*,|[^,:;]*[:;])?\s*(?P<first>.+?)\s*,?\s+or\s+(?P<second>.+)$")
_WAS_OR = re.compile(r"^(?:was|were|is|are|did|does|has)\s+(?P<first>.+?)\s+or\s+(?P<second>.+)$", re.IGNORECASE)
_OUT_OF = re.compile(
    r"^(?P<head>who .+?|which(?: \w+){0,2}) (?:out of|between) (?P<first>.+?) (?:and|or) (?P<second>.+)$", re.IGNORECASE
)
_BETWEEN = re.compile(
    r"^(?:between|of|out of|among)\s+(?:the \w+ )?(?:two \w+ )?(?P<first>.+?)\s+(?:and|or)\s+(?P<second>.+?)\s*,?\s+"
    r"(?P<head>(?:which|who|what)\b.+)$",
    re.IGNORECASE,
)
CAPITALS = r"[^\W\da-z_][^\s,;?]*(?:\s(?:(?:of|the|de|von|van|da|la)\b|and(?= the)|[^\Wa-z_][^\s,;?]*|\([^)]*\)))*"
ROLES = (
    "director composer performer singer author writer producer founder creator editor screenwriter publisher "
    "mother father wife husband spouse"
).split()
_ROLE = re.compile(r"\b(" + "|".join(ROLES) + r")s?\b", re.IGNORECASE)
# "Which singer is younger" compares singers; "which song has the singer who is younger" goes from songs to singers.
_OF_THEIR_OWN = re.compile(
    r"(?:which|what)\s+(?:(?!(?:whose|has|had|have|with)\b)\w+\s+){0,2}(?:" + "|".join(ROLES) + r")s?\b", re.IGNORECASE
)
_ORDER = re.compile(
    r"\b(?:first|earlier|later|earliest|latest|last|recent|recently|before|after|prior|older|younger|oldest|youngest|newer)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Measure:
    """What is looked up for each of the two, and which of them is asked for."""

    sign: str
    question: str  # with X for the one
    expects: Expects


_MEASURES = [
    _Measure(r"\b(?:died|die|dies|death|passed away)\b", "When did X die?", Expects.DATE),
    _Measure(r"\b(?:born|birth|older|younger|oldest|youngest|age)\b", "When was X born?", Expects.DATE),
    _Measure(
        r"\b(?:more|fewer|most|fewest) (?!recent|to\b|of\b|than\b|in\b|diverse|\w+ly\b)((?:[a-z]+ ){0,3}?[a-z]+s\b|[a-z]+)",
        "How many {0} does X have?",
        Expects.NUMBER,
    ),
    _Measure(r"\b(?:came out|come out|released|release)\b", "When was X released?", Expects.DATE),
    _Measure(
        r"\b(formed|founded|established|started|began|opened|created|published|built|debuted|invented|launched|completed)\b",
        "When was X {0}?",
        Expects.DATE,
    ),
    _Measure(r"\b(?:taller|higher|highest|tallest)\b", "How high is X?", Expects.NUMBER),
    _Measure(r"\b(?:larger|bigger|largest|biggest|smaller|smallest)\b", "How large is X?", Expects.NUMBER),
    _Measure(r"\b(?:longer|shorter|longest|shortest)\b", "How long is X?", Expects.NUMBER),
    _Measure(r"\b(?:first|earlier|later|earliest|latest|recent|recently)\b", "When was X?", Expects.DATE),
]
_PEOPLE = "|".join(sorted(map(str.capitalize, PEOPLES)))
_LIVED = re.compile(r"\blived?\b.*\blonger\b|\bolder (?:when|at the time) (?:\w+ ){0,3}(?:died|death)\b", re.IGNORECASE)
_LATE = re.compile(r"\b(?:later|last|latest|younger|youngest|recent|recently|newer)\b", re.IGNORECASE)
_LEAST = re.compile(r"\b(?:fewer|fewest|less|least|smaller|smallest|shorter|shortest|lower|lowest)\b", re.IGNORECASE)


def comparison(question: str) -> list[SubQuestion]:
    """The steps where the question asks which of two; none where it does not."""
    found = two_choices(question)
    if found is None:
        return []
    head, first, second = found
    if _LIVED.search(head):
        return _lifetimes(first, second)
    measure = measured(head)
    if measure is None:
        return _supported(head, first, second)
    told, expects, rest = measure
    if expects is Expects.DATE:
        pick = "latest" if _LATE.search(head) else "earliest"
    else:
        pick = "least" if _LEAST.search(head) else "most"
    steps: list[SubQuestion] = []
    ends = [branch(steps, rest, name, told, expects) for name in (first, second)]
    join = SubQuestion(f"Which one is it, by #{ends[0]} and #{ends[1]}?", Expects.CHOICE, pick, (first, second))
    return [*steps, join]


def measured(head: str) -> tuple[str, Expects, str] | None:
    """What is looked up for X, the form of that, and the rest of the words. None where nothing is measured.

    Days are compared only where an order is asked for: "born in Indiana" is no matter of when.
    """
    for measure in _MEASURES:
        sign = re.search(measure.sign, head, re.IGNORECASE)
        if sign and (measure.expects is not Expects.DATE or _ORDER.search(head)):
            told = measure.question.format(*sign.groups())
            return told, measure.expects, f"{head[: sign.start()]} {head[sign.end() :]}"
    return None


def two_choices(question: str) -> tuple[str, str, str] | None:
    """What is asked, and the two that it is asked of."""
    plain = re.sub(r"\?\s+|\s+[-–—]+\s+", ", ", question.rstrip("? "))
    if found := _BETWEEN.match(plain):
        return found["head"], bare_name(found["first"]), bare_name(found["second"])
    if found := _OUT_OF.match(plain):
        second, behind = _name_and_rest(found["second"])
        if behind or found["head"].casefold().startswith("who"):
            return f"{found['head']} {behind}".strip(), bare_name(found["first"]), bare_name(second)
    if found := _WAS_OR.match(plain):
        second, behind = _name_and_rest(found["second"])
        return (behind, bare_name(found["first"]), bare_name(second)) if behind else None
    found = _OR.match(plain)
    if found is None or not re.search(r"\b(?:which|who|what|whose)\b", plain, re.IGNORECASE):
        return None
    head, first = found["head"] or "", found["first"]
    if not head:  # no comma before the two: the first one is the name that ends there
        name = re.search(rf"\b(?:first|earlier|later|older|younger) (?P<name>[^\sa-z].*)$|(?P<last>{CAPITALS})$", first)
        if name is None or not (start := name.start("name" if name["name"] else "last")):
            return None
        head, first = first[:start], first[start:]
    second, behind = _name_and_rest(found["second"])
    if found["head"] and re.search(r"[^\W\da-z_]", behind) and measured(head):
        second, behind = found["second"], ""  # "..., American author A or Canadian author B?": all that is the name
    head, first, second = f"{head.strip(' ,:;')} {behind}".strip(), bare_name(first), bare_name(second)
    return (head, first, second) if first and second and head else None


def _name_and_rest(text: str) -> tuple[str, str]:
    """ "B born first" is B, and what goes on in lower case behind it."""
    name = re.match(rf"(?:the )?{CAPITALS}", text)
    behind = text[name.end() :].strip(" ,") if name else ""
    return (name.group(), behind) if name and re.match(r"[a-z]+ ", behind + " ") else (text, "")


def bare_name(name: str) -> str:
    """Without what only introduces it: "the film", "both", "either", quotes."""
    bare = re.sub(r"^(?:the (?:film|song|movie|band|book)s?|both|either)\s+", "", name.strip(" ,;:?\"'“”"), flags=re.IGNORECASE)
    # "American author Owen Wister" is Owen Wister.
    return re.sub(rf"^(?:(?:{_PEOPLE}) (?=[a-z]))?(?:(?!and |or )[a-z]+ )+(?=[^\W\da-z_])", "", bare)


def branch(steps: list[SubQuestion], head: str, name: str, told: str, expects: Expects) -> int:
    """The steps from a name to what is measured; the number of the last."""
    subject = name
    if (role := _ROLE.search(head)) and not _OF_THEIR_OWN.match(head):
        what = re.search(r"\b(film|song|movie|album|book|novel|series|play|opera)s?\b", head, re.IGNORECASE)
        kind = f"the {what[1].lower()} " if what else ""
        steps.append(SubQuestion(f"Who is the {role[1].lower()} of {kind}{name}?", Expects.PERSON))
        subject = f"#{len(steps)}"
    steps.append(SubQuestion(re.sub(r"\bX\b", lambda _: subject, told), expects))
    return len(steps)


def _lifetimes(first: str, second: str) -> list[SubQuestion]:
    ends = [
        SubQuestion(told.replace("X", name), Expects.DATE)
        for name in (first, second)
        for told in ("When was X born?", "When did X die?")
    ]
    return [*ends, SubQuestion("Who lived longer, by #1 to #2 and #3 to #4?", Expects.CHOICE, "longest", (first, second))]


# "Which filmmaker is a pioneer": that both make films need not be said.
_CLASS = re.compile(r"^(?!is|was|has|had|did|does)[\w-]+(?: [\w-]+)?(?= (?:is|was|were|are|has|had|have|did|does|can|could)\b)")


def _supported(head: str, first: str, second: str) -> list[SubQuestion]:
    """Neither time nor size: the one of which the texts say it."""
    said = re.sub(r"^(?:which|who|what)\b(?: of the (?:following|two)\b)?", "", head, flags=re.IGNORECASE).strip(" ,:")
    said = _CLASS.sub("", said).strip()
    if not said:
        return []
    steps = [SubQuestion(f"{name} {said}", Expects.YES_NO) for name in (first, second)]
    return [*steps, SubQuestion("Which one is it, by #1 and #2?", Expects.CHOICE, "supported", (first, second))]
