"""Questions along a chain: "the director of X", "Y's mother", "the city where Z was born", innermost first.

Each phrase that leads on from a name becomes a step, and the number of the step takes the phrase's place.
"""

from __future__ import annotations

import re

from suffice.reason.comparing import CAPITALS
from suffice.reason.plan import MOST_STEPS, SubQuestion
from suffice.reason.spans import Expects, expected

__all__ = ["bridge"]

_KIN = {
    "paternal grandfather": ("father", "father"), "paternal grandmother": ("father", "mother"),
    "maternal grandfather": ("mother", "father"), "maternal grandmother": ("mother", "mother"),
    "father-in-law": ("spouse", "father"), "mother-in-law": ("spouse", "mother"), "stepmother": ("father", "spouse"),
    "stepfather": ("mother", "spouse"), "sibling-in-law": ("spouse", "sibling"), "sister-in-law": ("spouse", "sister"),
    "brother-in-law": ("spouse", "brother"), "child-in-law": ("child", "spouse"), "son-in-law": ("daughter", "spouse"),
    "daughter-in-law": ("son", "spouse"), "uncle": ("father", "sibling"), "aunt": ("father", "sibling"),
    "grandfather": ("father", "father"), "grandmother": ("father", "mother"), "grandchild": ("child", "child"),
}  # fmt: skip
_KIN_WORDS = "|".join(re.escape(one) for one in _KIN)
_SMALL = r"[a-zé][\w'-]*"
_NAMED = r"(?:\"[^\"]+\"|“[^”]+”|#\d+|[^\W\da-z_][^?,;]*?(?:, [^\sa-z][^?,;]*?){0,2})"
_GOES_ON = (
    "is|was|were|are|did|does|do|has|had|have|died|die|born|work|worked|live|lived|won|play|played|located|from|be|get|study|"
    "studied|graduate|graduated|attend|attended|marry|married|belong|come|receive|received|start|started|end|ended"
)
_CUT = rf"(?=\s*(?:\?|$|,|;|\s(?:{_GOES_ON})\b))"
_WHICH = "that|who|which|where|whose|in which|for which|to which"
_INNER = [
    # the director of the film X; the composer of "X"
    re.compile(rf"\b[Tt]he (?P<role>{_SMALL}(?: {_SMALL}){{0,2}}) of (?P<of>(?:the )?(?:{_SMALL} ){{0,2}}{_NAMED}){_CUT}"),
    # X's mother, X's first wife
    re.compile(
        rf"(?P<of>\b[^\W\da-z_][^?;]*?|#\d+)(?:['’]s|s['’]) "
        rf"(?P<role>(?:(?:first|second|third|former|eldest|youngest|oldest|only|paternal|maternal|older|younger) )?{_SMALL})\b"
    ),
    # the country where X was born; the company that made X
    re.compile(
        rf"\b[Tt]he (?P<role>{_SMALL}(?: {_SMALL}){{0,3}}) (?P<clause>(?:{_WHICH}) "
        rf"[^?,;]*?{CAPITALS})"
    ),
    # ... and the verb that follows, where the name is who does it: the city where X was born
    re.compile(
        rf"\b[Tt]he (?P<role>{_SMALL}(?: {_SMALL}){{0,3}}) (?P<clause>(?:that|which|where|whom|in which|for which|to which) "
        rf"(?:the )?(?:{CAPITALS}|#\d+)(?: (?:is|was|were|are|has|had|did))?(?: {_SMALL}(?: (?:in|at|by|from|for|to|on)\b)?))"
    ),
]
_LAST = re.compile(r"^(?:who|what|where|when|which \w+)(?:'s)?\s*(?:is|was|are|were)?\s*(?:#\d+)?$", re.IGNORECASE)


def bridge(question: str) -> list[SubQuestion]:
    """Innermost first: each phrase that leads on from a name becomes a step, and its answer takes the phrase's place."""
    if re.match(rf"who (?:is|was) (?:the )?(?:{_KIN_WORDS}) of |who (?:is|was) .*['’]s? (?:{_KIN_WORDS})\??$", question, re.I):
        return _kin(question, 0)
    rest, steps = question.rstrip("? "), list[SubQuestion]()
    while len(steps) < MOST_STEPS - 2:
        found = _innermost(rest, steps)
        if found is None:
            break
        rest = found
    text = rest + "?"
    steps += _kin(text, len(steps)) or [SubQuestion(text, expected(text))]
    return steps if len(steps) > 1 else []


def _innermost(rest: str, steps: list[SubQuestion]) -> str | None:
    """Take one phrase out of the rest, put its step behind the others; the rest with a number for it."""
    found_all: list[re.Match[str]] = []
    for pattern in _INNER:
        outer = list(pattern.finditer(rest))
        # A phrase may hold another one, which starts later.
        found_all += [*outer, *(again for one in outer if (again := pattern.search(rest, one.start() + 4)))]
    for found in sorted(found_all, key=lambda one: (-one.start(), one.start() - one.end())):
        parts = found.groupdict()
        before, after = rest[: found.start()], rest[found.end() :]
        if _LAST.match(before.strip()) and not after.strip():
            continue  # that is the question itself
        if not (before + after).strip(" ,"):
            continue
        if not parts.get("clause") and not _leads_on(parts["role"]):
            continue
        if parts["role"].split()[-1] in _PREPOSITIONS:
            continue  # "the story of which athlete" asks, it does not tell
        if parts.get("clause"):
            step = f"Which {parts['role']} {re.sub(r'^(?:that|who|which|where) ', '', parts['clause'])}?"
            asked = SubQuestion(step, expected(f"which {parts['role']}"))
        else:
            if (kin := parts["role"]) in _KIN:
                steps += _kin(f"Who is the {kin} of {parts['of']}?", len(steps))
                return f"{before}#{len(steps)}{after}"
            form = _holder(kin)
            asked = SubQuestion(f"{'Who' if form is Expects.PERSON else 'What'} is the {kin} of {parts['of']}?", form)
        if len(asked.text) > 300:
            continue
        steps.append(asked)
        return f"{before}#{len(steps)}{after}"
    return None


_PREPOSITIONS = frozenset("of in at for to by from on with".split())
_LEADING = frozenset(
    "country city capital county state province district region continent birthplace hometown headquarters location place "
    "label band group company network team club party school university language employer spouse wife husband mother father "
    "son daughter child sibling brother sister king queen bishop mayor head".split()
)


def _leads_on(role: str) -> bool:
    """Does such a word relate one thing to another? "The director of", not "the season of"."""
    word = role.split()[-1].casefold()
    return word in _LEADING or role in _KIN or re.search(r"(?:er|or|ist|ian|ress|eur|ent)$", word) is not None


def _holder(role: str) -> Expects:
    """A person has a role; a country, a birthplace or a date does not."""
    form = expected(f"what {role}")
    return Expects.PERSON if form is Expects.THING else form


def _kin(text: str, done: int) -> list[SubQuestion]:
    """The two steps that a grandmother is away."""
    found = re.search(rf"\bthe (?P<kin>{_KIN_WORDS}) of (?P<one>[^?]+)|(?P<two>[^?]+)['’]s? (?P<kin2>{_KIN_WORDS})\b", text)
    if found is None:
        return []
    near, far = _KIN[found["kin"] or found["kin2"]]
    one = re.sub(r"^who (?:is|was) ", "", (found["one"] or found["two"]).strip(), flags=re.IGNORECASE)
    return [
        SubQuestion(f"Who is the {near} of {one}?", Expects.PERSON),
        SubQuestion(f"Who is the {far} of #{done + 1}?", Expects.PERSON),
    ]
