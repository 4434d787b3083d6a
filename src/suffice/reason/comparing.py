"""Questions about two: which of them, are they alike, what do they share. Each of the two is looked up, then they are joined.

English word order decides: "..., A or B?", "Was A or B ...", "Between A and B, which ...", "Are A and B both ...".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from suffice.reason.plan import SubQuestion
from suffice.reason.spans import Expects, expected
from suffice.text import names

__all__ = ["CAPITALS", "comparison", "intersection", "two_choices"]

# ------------------------------------------------------------------------------------------------- which of two

_OR = re.compile(r"^(?P<head>[^,]*,|[^,:;]*[:;])?\s*(?P<first>.+?)\s*,?\s+or\s+(?P<second>.+)$")
_WAS_OR = re.compile(r"^(?:was|were|is|are|did|does|has)\s+(?P<first>.+?)\s+or\s+(?P<second>.+)$", re.IGNORECASE)
_OUT_OF = re.compile(r"^(?P<head>who .+?) (?:out of|between) (?P<first>.+?) (?:and|or) (?P<second>.+)$", re.IGNORECASE)
_BETWEEN = re.compile(
    r"^(?:between|of|out of|among)\s+(?:the \w+ )?(?:two \w+ )?(?P<first>.+?)\s+(?:and|or)\s+(?P<second>.+?)\s*,?\s+"
    r"(?P<head>(?:which|who|what)\b.+)$",
    re.IGNORECASE,
)
CAPITALS = r"[^\W\da-z_][^\s,;?]*(?:\s(?:(?:of|the|de|von|van|da|la)\b|and(?= the)|[^\Wa-z_][^\s,;?]*|\([^)]*\)))*"
_ROLES = (
    "director composer performer singer author writer producer founder creator editor screenwriter publisher "
    "mother father wife husband spouse"
).split()
_ROLE = re.compile(r"\b(" + "|".join(_ROLES) + r")s?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Measure:
    """What is looked up for each of the two, and which of them is asked for."""

    sign: str
    question: str  # with X for the one
    expects: Expects


_MEASURES = [
    _Measure(r"\b(?:died|die|dies|death)\b", "When did X die?", Expects.DATE),
    _Measure(r"\b(?:born|birth|older|younger|oldest|youngest|age)\b", "When was X born?", Expects.DATE),
    _Measure(
        r"\b(?:more|fewer|most|fewest) (?!recent|to\b|of\b|than\b|in\b|diverse)([a-z]+(?: [a-z]+)?)",
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
_LATE = re.compile(r"\b(?:later|last|latest|younger|youngest|recent|recently|newer)\b", re.IGNORECASE)
_LEAST = re.compile(r"\b(?:fewer|fewest|less|least|smaller|smallest|shorter|shortest|lower|lowest)\b", re.IGNORECASE)


def comparison(question: str) -> list[SubQuestion]:
    """The steps where the question asks which of two; none where it does not."""
    found = two_choices(question)
    if found is None:
        return []
    head, first, second = found
    if re.search(r"\blived longer\b", head):
        return _lifetimes(first, second)
    measure = next((one for one in _MEASURES if re.search(one.sign, head, re.IGNORECASE)), None)
    if measure is None:
        return _supported(head, first, second)
    sign = re.search(measure.sign, head, re.IGNORECASE)
    told = measure.question.format(*(sign.groups() if sign else ()))
    if measure.expects is Expects.DATE:
        pick = "latest" if _LATE.search(head) else "earliest"
    else:
        pick = "least" if _LEAST.search(head) else "most"
    steps: list[SubQuestion] = []
    ends = [_branch(steps, head, name, told, measure.expects) for name in (first, second)]
    join = SubQuestion(f"Which one is it, by #{ends[0]} and #{ends[1]}?", Expects.CHOICE, pick, (first, second))
    return [*steps, join]


def two_choices(question: str) -> tuple[str, str, str] | None:
    """What is asked, and the two that it is asked of."""
    plain = question.rstrip("? ")
    if found := _BETWEEN.match(plain):
        return found["head"], _bare(found["first"]), _bare(found["second"])
    if found := _OUT_OF.match(plain):
        return found["head"], _bare(found["first"]), _bare(found["second"])
    if found := _WAS_OR.match(plain):
        second, behind = _name_and_rest(found["second"])
        return (behind, _bare(found["first"]), _bare(second)) if behind else None
    found = _OR.match(plain)
    if found is None or not re.search(r"\b(?:which|who|what|whose)\b", plain, re.IGNORECASE):
        return None
    head, first = found["head"] or "", found["first"]
    if not head:  # no comma before the two: the first one is the name that ends there
        known = [name for name in names(first) if first.endswith(name)]
        if not known:
            return None
        head, first = first[: -len(known[-1])], known[-1]
    second, behind = _name_and_rest(found["second"])
    head, first, second = f"{head.strip(' ,:;')} {behind}".strip(), _bare(first), _bare(second)
    return (head, first, second) if first and second and head else None


def _name_and_rest(text: str) -> tuple[str, str]:
    """ "B born first" is B, and what goes on in lower case behind it."""
    name = re.match(CAPITALS, text)
    behind = text[name.end() :].strip() if name else ""
    return (name.group(), behind) if name and re.match(r"[a-z]+ ", behind + " ") else (text, "")


def _bare(name: str) -> str:
    return re.sub(r"^(?:the (?:film|song|movie|band|book)s?|both)\s+", "", name.strip(" ,;:?\"'“”"), flags=re.IGNORECASE)


def _branch(steps: list[SubQuestion], head: str, name: str, told: str, expects: Expects) -> int:
    """The steps from a name to what is measured; the number of the last."""
    subject = name
    if role := _ROLE.search(head):
        what = re.search(r"\b(film|song|movie|album|book|novel|series|play|opera)s?\b", head, re.IGNORECASE)
        kind = f"the {what[1].lower()} " if what else ""
        steps.append(SubQuestion(f"Who is the {role[1].lower()} of {kind}{name}?", Expects.PERSON))
        subject = f"#{len(steps)}"
    steps.append(SubQuestion(told.replace("X", subject), expects))
    return len(steps)


def _lifetimes(first: str, second: str) -> list[SubQuestion]:
    ends = [
        SubQuestion(told.replace("X", name), Expects.DATE)
        for name in (first, second)
        for told in ("When was X born?", "When did X die?")
    ]
    return [*ends, SubQuestion("Who lived longer, by #1 to #2 and #3 to #4?", Expects.CHOICE, "longest", (first, second))]


def _supported(head: str, first: str, second: str) -> list[SubQuestion]:
    """Neither time nor size: the one of which the texts say it."""
    said = re.sub(r"^(?:which|who|what)\b(?: of the (?:following|two)\b)?", "", head, flags=re.IGNORECASE).strip(" ,:")
    if not said:
        return []
    steps = [SubQuestion(f"{name} {said}", Expects.YES_NO) for name in (first, second)]
    return [*steps, SubQuestion("Which one is it, by #1 and #2?", Expects.CHOICE, "supported", (first, second))]


# ------------------------------------------------------------------------------------------------- both of two

_ALIKE = re.compile(r"\b(?:the )?same (?P<what>[a-z]+(?: of [a-z]+)?)|\bshare (?:the |a )?(?:same )?(?P<shared>[a-z]+)", re.I)
_OPENING = re.compile(r"^(?:are|were|is|was|do|does|did|have|has|had)\b", re.IGNORECASE)


def intersection(question: str) -> list[SubQuestion]:
    """The steps where the question asks what two have in common, or whether; none where it does not."""
    two = _two_names(question)
    if two is None:
        return []
    first, second, rest = two
    if _OPENING.match(question):
        return _alike(question, first, second) or _both(first, second, rest)
    if re.search(r"\b(?:both|in common|share[sd]?)\b", question, re.IGNORECASE):
        text = re.sub(r"\bboth (?:the )?|\bin common\b\s*", "", question, flags=re.IGNORECASE)
        joined = re.compile(re.escape(first) + r"\W+and\W+" + re.escape(second))
        each = [" ".join(name.join(joined.split(text)).split()) for name in (first, second)]
        if each[0] != each[1]:
            steps = [SubQuestion(one, expected(one)) for one in each]
            return [*steps, SubQuestion("What do #1 and #2 have in common?", steps[0].expects, "shared")]
    return []


def _two_names(question: str) -> tuple[str, str, str] | None:
    """The two names that an "and" joins, and what follows them."""
    if not _OPENING.match(question):
        question = re.sub(r"\bboth (?:the )?", "", question, flags=re.IGNORECASE)
        pair = re.search(rf"(?P<first>{CAPITALS}),? and (?P<second>{CAPITALS})(?P<rest>.*)$", question)
        return (pair["first"], pair["second"], pair["rest"].strip(" ,?")) if pair else None
    question = re.sub(r"\b(?:the )?directors? of (?:the )?(?:films?|movies?),? ", "", question, flags=re.IGNORECASE)
    goes_on = "both|originate|come|located|from|films?|movies?|bands?|have|has|share|are|were|in|of|the|play|work|born|alive|as"
    tail = rf"(?P<rest>(?:,?\s+(?:{goes_on})\b.*)?)"
    pair = re.search(rf"(?P<first>(?:film |song )?[^\sa-z].*?)\s+and\s+(?P<second>.+?){tail}\s*\??$", _after_opening(question))
    if pair is None:
        return None
    return _bare(pair["first"]), _bare(pair["second"]), pair["rest"].strip(" ,?")


def _after_opening(question: str) -> str:
    text = _OPENING.sub("", question).strip()
    return re.sub(
        r"^(?:both |the )*(?:(?:films?|movies?|bands?|songs?|directors? of films?|director of film)\b[:,]? )?", "", text
    )


def _alike(question: str, first: str, second: str) -> list[SubQuestion]:
    found = _ALIKE.search(question)
    if found is None:
        return []
    what = (found["what"] or found["shared"]).casefold()
    country = what in ("country", "nationality", "countries", "citizenship")
    steps: list[SubQuestion] = []
    ends = []
    for name in (first, second):
        name = re.sub(r"^(?:director of )?(?:the )?(?:film|movie) ", "", name, flags=re.IGNORECASE)
        told = "Which country is X from?" if country else f"What {what} is X in?"
        ends.append(_branch(steps, question, name, told, Expects.COUNTRY if country else expected(told)))
    return [*steps, SubQuestion(f"Are #{ends[0]} and #{ends[1]} the same?", Expects.YES_NO, "same")]


def _both(first: str, second: str, rest: str) -> list[SubQuestion]:
    said = re.sub(r"^(?:both\b|are\b|were\b)\s*", "", rest)
    if not said:
        return []
    steps = [SubQuestion(f"Is {name} {said}?", Expects.YES_NO) for name in (first, second)]
    return [*steps, SubQuestion("Is it so, by #1 and #2?", Expects.YES_NO, "all")]
