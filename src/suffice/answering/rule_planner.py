"""Which of two: each is looked up, then they are compared. What the two share is the room next door, `reason.sharing`.

English word order decides: "..., A or B?", "Was A or B ...", "Between A and B, which ...".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from suffice.answering.answer_type import NATIONALITIES, AnswerType, expected_answer_type
from suffice.answering.plan import MAX_STEPS, Plan, SubQuestion, build_plan, whole_question_step
from suffice.errors import InputError
from suffice.text import names

__all__ = [
    "CAPITALS",
    "ROLES",
    "YES_OR_NO",
    "add_branch",
    "bare_name",
    "find_measure",
    "plan_bridge",
    "plan_by_rules",
    "plan_comparison",
    "plan_intersection",
    "two_choices",
]


_OR = re.compile(r"^(?P<head>[^,]*,|[^,:;]*[:;])?\s*(?P<first>.+?)\s*,?\s+or\s+(?P<second>.+)$")
_WAS_OR = re.compile(
    r"^(?:was|were|is|are|did|does|has)\s+(?P<first>.+?)\s+or\s+(?P<second>.+)$", re.IGNORECASE
)
_OUT_OF = re.compile(
    r"^(?P<head>who .+?|which(?: \w+){0,2}) (?:out of|between) (?P<first>.+?) (?:and|or) (?P<second>.+)$",
    re.IGNORECASE,
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
    r"(?:which|what)\s+(?:(?!(?:whose|has|had|have|with)\b)\w+\s+){0,2}(?:"
    + "|".join(ROLES)
    + r")s?\b",
    re.IGNORECASE,
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
    expects: AnswerType


_MEASURES = [
    _Measure(r"\b(?:died|die|dies|death|passed away)\b", "When did X die?", AnswerType.DATE),
    _Measure(
        r"\b(?:born|birth|older|younger|oldest|youngest|age)\b", "When was X born?", AnswerType.DATE
    ),
    _Measure(
        r"\b(?:more|fewer|most|fewest) (?!recent|to\b|of\b|than\b|in\b|diverse|\w+ly\b)((?:[a-z]+ ){0,3}?[a-z]+s\b|[a-z]+)",
        "How many {0} does X have?",
        AnswerType.NUMBER,
    ),
    _Measure(
        r"\b(?:came out|come out|released|release)\b", "When was X released?", AnswerType.DATE
    ),
    _Measure(
        r"\b(formed|founded|established|started|began|opened|created|published|built|debuted|invented|launched|completed)\b",
        "When was X {0}?",
        AnswerType.DATE,
    ),
    _Measure(r"\b(?:taller|higher|highest|tallest)\b", "How high is X?", AnswerType.NUMBER),
    _Measure(
        r"\b(?:larger|bigger|largest|biggest|smaller|smallest)\b",
        "How large is X?",
        AnswerType.NUMBER,
    ),
    _Measure(r"\b(?:longer|shorter|longest|shortest)\b", "How long is X?", AnswerType.NUMBER),
    _Measure(
        r"\b(?:first|earlier|later|earliest|latest|recent|recently)\b",
        "When was X?",
        AnswerType.DATE,
    ),
]
_PEOPLE = "|".join(sorted(map(str.capitalize, NATIONALITIES)))
_LIVED = re.compile(
    r"\blived?\b.*\blonger\b|\bolder (?:when|at the time) (?:\w+ ){0,3}(?:died|death)\b",
    re.IGNORECASE,
)
_LATE = re.compile(
    r"\b(?:later|last|latest|younger|youngest|recent|recently|newer)\b", re.IGNORECASE
)
_LEAST = re.compile(
    r"\b(?:fewer|fewest|less|least|smaller|smallest|shorter|shortest|lower|lowest)\b", re.IGNORECASE
)


def plan_comparison(question: str) -> list[SubQuestion]:
    """The steps where the question asks which of two; none where it does not."""
    found = two_choices(question)
    if found is None:
        return []
    head, first, second = found
    if _LIVED.search(head):
        return _lifetime_steps(first, second)
    measure = find_measure(head)
    if measure is None:
        return _supported_steps(head, first, second)
    told, expects, rest = measure
    if expects is AnswerType.DATE:
        pick = "latest" if _LATE.search(head) else "earliest"
    else:
        pick = "least" if _LEAST.search(head) else "most"
    steps: list[SubQuestion] = []
    ends = [add_branch(steps, rest, name, told, expects) for name in (first, second)]
    join = SubQuestion(
        f"Which one is it, by #{ends[0]} and #{ends[1]}?", AnswerType.CHOICE, pick, (first, second)
    )
    return [*steps, join]


def find_measure(head: str) -> tuple[str, AnswerType, str] | None:
    """What is looked up for X, the form of that, and the rest of the words. None where nothing is measured.

    Days are compared only where an order is asked for: "born in Indiana" is no matter of when.
    """
    for measure in _MEASURES:
        sign = re.search(measure.sign, head, re.IGNORECASE)
        if sign and (measure.expects is not AnswerType.DATE or _ORDER.search(head)):
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
        name = re.search(
            rf"\b(?:first|earlier|later|older|younger) (?P<name>[^\sa-z].*)$|(?P<last>{CAPITALS})$",
            first,
        )
        if name is None or not (start := name.start("name" if name["name"] else "last")):
            return None
        head, first = first[:start], first[start:]
    second, behind = _name_and_rest(found["second"])
    if found["head"] and re.search(r"[^\W\da-z_]", behind) and find_measure(head):
        second, behind = (
            found["second"],
            "",
        )  # "..., American author A or Canadian author B?": all that is the name
    head, first, second = (
        f"{head.strip(' ,:;')} {behind}".strip(),
        bare_name(first),
        bare_name(second),
    )
    return (head, first, second) if first and second and head else None


def _name_and_rest(text: str) -> tuple[str, str]:
    """ "B born first" is B, and what goes on in lower case behind it."""
    name = re.match(rf"(?:the )?{CAPITALS}", text)
    behind = text[name.end() :].strip(" ,") if name else ""
    return (name.group(), behind) if name and re.match(r"[a-z]+ ", behind + " ") else (text, "")


def bare_name(name: str) -> str:
    """Without what only introduces it: "the film", "both", "either", quotes."""
    bare = re.sub(
        r"^(?:the (?:film|song|movie|band|book)s?|both|either)\s+",
        "",
        name.strip(" ,;:?\"'“”"),
        flags=re.IGNORECASE,
    )
    # "American author Owen Wister" is Owen Wister.
    return re.sub(
        rf"^(?:(?:{_PEOPLE}) (?=[a-z]))?(?:(?!and |or )[a-z]+ )+(?=[^\W\da-z_])", "", bare
    )


def add_branch(
    steps: list[SubQuestion], head: str, name: str, told: str, expects: AnswerType
) -> int:
    """The steps from a name to what is measured; the number of the last."""
    subject = name
    if (role := _ROLE.search(head)) and not _OF_THEIR_OWN.match(head):
        what = re.search(
            r"\b(film|song|movie|album|book|novel|series|play|opera)s?\b", head, re.IGNORECASE
        )
        kind = f"the {what[1].lower()} " if what else ""
        steps.append(
            SubQuestion(f"Who is the {role[1].lower()} of {kind}{name}?", AnswerType.PERSON)
        )
        subject = f"#{len(steps)}"
    steps.append(SubQuestion(re.sub(r"\bX\b", lambda _: subject, told), expects))
    return len(steps)


def _lifetime_steps(first: str, second: str) -> list[SubQuestion]:
    ends = [
        SubQuestion(told.replace("X", name), AnswerType.DATE)
        for name in (first, second)
        for told in ("When was X born?", "When did X die?")
    ]
    return [
        *ends,
        SubQuestion(
            "Who lived longer, by #1 to #2 and #3 to #4?",
            AnswerType.CHOICE,
            "longest",
            (first, second),
        ),
    ]


# "Which filmmaker is a pioneer": that both make films need not be said.
_CLASS = re.compile(
    r"^(?!is|was|has|had|did|does)[\w-]+(?: [\w-]+)?(?= (?:is|was|were|are|has|had|have|did|does|can|could)\b)"
)


def _supported_steps(head: str, first: str, second: str) -> list[SubQuestion]:
    """Neither time nor size: the one of which the texts say it."""
    said = re.sub(
        r"^(?:which|who|what)\b(?: of the (?:following|two)\b)?", "", head, flags=re.IGNORECASE
    ).strip(" ,:")
    said = _CLASS.sub("", said).strip()
    if not said:
        return []
    steps = [SubQuestion(f"{name} {said}", AnswerType.YES_NO) for name in (first, second)]
    return [
        *steps,
        SubQuestion(
            "Which one is it, by #1 and #2?", AnswerType.CHOICE, "supported", (first, second)
        ),
    ]


# --- sharing: What two have in common, or whether they have it: what is said of each is looked up, then it is joined.

_ALIKE = re.compile(
    r"\b(?:the )?same (?P<what>[a-z]+(?: of [a-z]+)?)|\bshare (?:the |a )?(?:same )?(?P<shared>[a-z]+)",
    re.I,
)
YES_OR_NO = re.compile(r"^(?:are|were|is|was|do|does|did|have|has|had)\b", re.IGNORECASE)
_SINGULAR_VERBS = {"are": "Is", "were": "Was", "do": "Does", "have": "Has"}
_ABOUT_BOTH = re.compile(
    r"\b(?:both|in common|share[sd]?)\b|\b(?:are|were) (?:what|which)\b", re.IGNORECASE
)
_BEFORE = re.compile(
    r"^(?i:was|were|did|is|are)\s+(?P<first>.+?)\s+(?P<what>[a-z][a-z ]*?)\s+"
    r"(?:(?P<early>before|prior to|earlier than|sooner than)|after|later than)\s+(?P<second>.+)$"
)
_AS = re.compile(
    r"^(?:do|does|did|is|was|has|have)\s+(?P<first>.+?)\s+(?P<same>[a-z ]*?\bthe same .+?) as (?P<second>.+)$",
    re.I,
)
_COUNTRY_WORDS = ("country", "nationality", "countries", "citizenship")


def plan_intersection(question: str) -> list[SubQuestion]:
    """The steps where the question asks what two have in common, or whether; none where it does not."""
    plain = question.rstrip("? ")
    if found := _AS.match(plain):
        return _same_attribute_steps(
            found["same"], bare_name(found["first"]), bare_name(found["second"])
        )
    if steps := _order_steps(plain):
        return steps
    two = _two_names(question)
    if two is None:
        return []
    first, second, rest = two
    if YES_OR_NO.match(question):
        return _same_attribute_steps(question, first, second) or _both_steps(
            question, first, second, rest
        )
    if _ABOUT_BOTH.search(question):
        text = re.sub(r"\bboth (?:the )?|\bin common\b\s*", "", question, flags=re.IGNORECASE)
        joined = re.compile(re.escape(first) + r"\W+and\W+" + re.escape(second))
        each = [" ".join(name.join(joined.split(text)).split()) for name in (first, second)]
        if each[0] != each[1]:
            form = expected_answer_type(question)
            steps = [SubQuestion(one, form) for one in each]
            pick = "kind" if form is AnswerType.KIND else "shared"
            return [*steps, SubQuestion("What do #1 and #2 have in common?", form, pick)]
    return []


def _order_steps(question: str) -> list[SubQuestion]:
    """ "Was A released before B?" """
    found = _BEFORE.match(question)
    if found is None or not re.match(CAPITALS, found["second"].removeprefix("the ")):
        return []
    steps: list[SubQuestion] = []
    told = f"When was X {found['what']}?"
    ends = [
        add_branch(steps, "", bare_name(found[one]), told, AnswerType.DATE)
        for one in ("first", "second")
    ]
    pick = "before" if found["early"] else "after"
    return [
        *steps,
        SubQuestion(f"Does #{ends[0]} come {pick} #{ends[1]}?", AnswerType.YES_NO, pick),
    ]


# A name goes on until a lower-case word that leads to no further capital: "of the University", not "of the same city".
_TAIL = r"(?P<rest>(?:,?\s+(?!(?:of|the|de|la|du|von|van|and|in|on|for|to|a|at)\s+(?:the\s+)?[^\sa-z])[a-z].*)?)"


def _two_names(question: str) -> tuple[str, str, str] | None:
    """The two names that an "and" joins, and what follows them."""
    if not YES_OR_NO.match(question):
        question = re.sub(r"\bboth (?:the )?", "", question, flags=re.IGNORECASE)
        pair = re.search(
            rf"(?P<first>{CAPITALS}),? and (?P<second>{CAPITALS})(?P<rest>.*)$", question
        )
        return (pair["first"], pair["second"], pair["rest"].strip(" ,?")) if pair else None
    question = re.sub(
        r"\b(?:the )?directors? of (?:the )?(?:films?|movies?),? ",
        "",
        question,
        flags=re.IGNORECASE,
    )
    pair = re.search(
        rf"(?P<first>(?:film |song )?[^\sa-z].*?),?\s+and\s+(?P<second>.+?){_TAIL}\s*\??$",
        _after_opening(question),
    )
    if pair is None:
        return None
    second, people = _split_nationality(bare_name(pair["second"]))
    return bare_name(pair["first"]), second, f"{people} {pair['rest'].strip(' ,?')}".strip()


def _split_nationality(name: str) -> tuple[str, str]:
    """ "Luc Besson American" in front of "cinematographers" is Luc Besson: the people belongs to what he is said to be."""
    words = name.split()
    if len(words) > 1 and words[-1].casefold() in NATIONALITIES:
        return " ".join(words[:-1]), words[-1]
    return name, ""


def _after_opening(question: str) -> str:
    text = YES_OR_NO.sub("", question).strip()
    return re.sub(
        r"^(?:both |the )*(?:(?:films?|movies?|bands?|songs?|directors? of films?|director of film)\b[:,]? |[a-z]+s, )?",
        "",
        text,
    )


def _same_attribute_steps(question: str, first: str, second: str) -> list[SubQuestion]:
    found = _ALIKE.search(question)
    if found is None:
        return []
    what = (found["what"] or found["shared"]).casefold()
    country = what in _COUNTRY_WORDS
    names = [
        re.sub(r"^(?:director of )?(?:the )?(?:film|movie) ", "", one, flags=re.IGNORECASE)
        for one in (first, second)
    ]
    steps: list[SubQuestion] = []
    if what in ROLES:  # by the same director
        steps = [SubQuestion(f"Who is the {what} of {name}?", AnswerType.PERSON) for name in names]
        ends = [1, 2]
    else:
        told = "Which country is X from?" if country else f"What {what} is X in?"
        form = AnswerType.COUNTRY if country else expected_answer_type(told)
        if form is AnswerType.THING:
            form, told = AnswerType.KIND, f"What {what} is X?"
        ends = [add_branch(steps, question, name, told, form) for name in names]
        if form is AnswerType.KIND:
            return [
                *steps,
                SubQuestion(
                    f"Are #{ends[0]} and #{ends[1]} alike?", AnswerType.YES_NO, "alike", (what,)
                ),
            ]
    return [
        *steps,
        SubQuestion(f"Are #{ends[0]} and #{ends[1]} the same?", AnswerType.YES_NO, "same"),
    ]


def _both_steps(question: str, first: str, second: str, rest: str) -> list[SubQuestion]:
    said = re.sub(r"^(?:both\b|are\b|were\b)\s*", "", rest)
    if not said:
        return []
    opening = question.split()[0].casefold()
    verb = _SINGULAR_VERBS.get(opening, opening.capitalize())
    steps = [SubQuestion(f"{verb} {name} {said}?", AnswerType.YES_NO) for name in (first, second)]
    return [*steps, SubQuestion("Is it so, by #1 and #2?", AnswerType.YES_NO, "all")]


# --- bridging: Questions along a chain: "the director of X", "Y's mother", "the city where Z was born", innermost first.

_KINSHIP = {
    "paternal grandfather": ("father", "father"), "paternal grandmother": ("father", "mother"),
    "maternal grandfather": ("mother", "father"), "maternal grandmother": ("mother", "mother"),
    "father-in-law": ("spouse", "father"), "mother-in-law": ("spouse", "mother"), "stepmother": ("father", "spouse"),
    "stepfather": ("mother", "spouse"), "sibling-in-law": ("spouse", "sibling"), "sister-in-law": ("spouse", "sister"),
    "brother-in-law": ("spouse", "brother"), "child-in-law": ("child", "spouse"), "son-in-law": ("daughter", "spouse"),
    "daughter-in-law": ("son", "spouse"), "uncle": ("father", "sibling"), "aunt": ("father", "sibling"),
    "grandfather": ("father", "father"), "grandmother": ("father", "mother"), "grandchild": ("child", "child"),
}  # fmt: skip
_KINSHIP_WORDS = "|".join(re.escape(one) for one in _KINSHIP)
_LOWER_WORD = r"[a-zé][\w'-]*"
_NAME_PHRASE = r"(?:\"[^\"]+\"|“[^”]+”|#\d+|[^\W\da-z_][^?,;]*?(?:, [^\sa-z][^?,;]*?){0,2})"
_FOLLOWING_VERBS = (
    "is|was|were|are|did|does|do|has|had|have|died|die|born|work|worked|live|lived|won|play|played|located|from|be|get|study|"
    "studied|graduate|graduated|attend|attended|marry|married|belong|come|receive|received|start|started|end|ended"
)
_CUT = rf"(?=\s*(?:\?|$|,|;|\s(?:{_FOLLOWING_VERBS})\b))"
_WHICH = "that|who|which|where|whose|in which|for which|to which"
_INNER = [
    # the director of the film X; the composer of "X"
    re.compile(
        rf"\b[Tt]he (?P<role>{_LOWER_WORD}(?: {_LOWER_WORD}){{0,2}}) of (?P<of>(?:the )?(?:{_LOWER_WORD} ){{0,2}}{_NAME_PHRASE}){_CUT}"
    ),
    # X's mother, X's first wife
    re.compile(
        rf"(?P<of>\b[^\W\da-z_][^?;]*?|#\d+)(?:['’]s|s['’]) "
        rf"(?P<role>(?:(?:first|second|third|former|eldest|youngest|oldest|only|paternal|maternal|older|younger) )?{_LOWER_WORD})\b"
    ),
    # the country where X was born; the company that made X
    re.compile(
        rf"\b[Tt]he (?P<role>{_LOWER_WORD}(?: {_LOWER_WORD}){{0,3}}) (?P<clause>(?:{_WHICH}) "
        rf"[^?,;]*?{CAPITALS})"
    ),
    # ... and the verb that follows, where the name is who does it: the city where X was born
    re.compile(
        rf"\b[Tt]he (?P<role>{_LOWER_WORD}(?: {_LOWER_WORD}){{0,3}}) (?P<clause>(?:that|which|where|whom|in which|for which|to which) "
        rf"(?:the )?(?:{CAPITALS}|#\d+)(?: (?:is|was|were|are|has|had|did))?(?: {_LOWER_WORD}(?: (?:in|at|by|from|for|to|on)\b)?))"
    ),
]
_LAST = re.compile(
    r"^(?:who|what|where|when|which \w+)(?:'s)?\s*(?:is|was|are|were)?\s*(?:#\d+)?$", re.IGNORECASE
)


def plan_bridge(question: str) -> list[SubQuestion]:
    """Innermost first: each phrase that leads on from a name becomes a step, and its answer takes the phrase's place."""
    if re.match(
        rf"who (?:is|was) (?:the )?(?:{_KINSHIP_WORDS}) of |who (?:is|was) .*['’]s? (?:{_KINSHIP_WORDS})\??$",
        question,
        re.I,
    ):
        return _kinship_steps(question, 0)
    rest, steps = question.rstrip("? "), list[SubQuestion]()
    while len(steps) < MAX_STEPS - 2:
        found = _extract_innermost(rest, steps)
        if found is None:
            break
        rest = found
    text = rest + "?"
    steps += _kinship_steps(text, len(steps)) or [SubQuestion(text, expected_answer_type(text))]
    return steps if len(steps) > 1 else []


def _extract_innermost(rest: str, steps: list[SubQuestion]) -> str | None:
    """Take one phrase out of the rest, put its step behind the others; the rest with a number for it."""
    found_all: list[re.Match[str]] = []
    for pattern in _INNER:
        outer = list(pattern.finditer(rest))
        # A phrase may hold another one, which starts later.
        found_all += [
            *outer,
            *(again for one in outer if (again := pattern.search(rest, one.start() + 4))),
        ]
    for found in sorted(found_all, key=lambda one: (-one.start(), one.start() - one.end())):
        parts = found.groupdict()
        before, after = rest[: found.start()], rest[found.end() :]
        if _LAST.match(before.strip()) and not after.strip():
            continue  # that is the question itself
        if not (before + after).strip(" ,"):
            continue
        if not parts.get("clause") and not _is_relation(parts["role"]):
            continue
        if parts["role"].split()[-1] in _PREPOSITIONS:
            continue  # "the story of which athlete" asks, it does not tell
        if parts.get("clause"):
            step = f"Which {parts['role']} {re.sub(r'^(?:that|who|which|where) ', '', parts['clause'])}?"
            asked = SubQuestion(step, expected_answer_type(f"which {parts['role']}"))
        else:
            if (kin := parts["role"]) in _KINSHIP:
                steps += _kinship_steps(f"Who is the {kin} of {parts['of']}?", len(steps))
                return f"{before}#{len(steps)}{after}"
            form = _role_type(kin)
            asked = SubQuestion(
                f"{'Who' if form is AnswerType.PERSON else 'What'} is the {kin} of {parts['of']}?",
                form,
            )
        if len(asked.text) > 300:
            continue
        steps.append(asked)
        return f"{before}#{len(steps)}{after}"
    return None


_PREPOSITIONS = frozenset("of in at for to by from on with".split())
_RELATION_NOUNS = frozenset(
    "country city capital county state province district region continent birthplace hometown headquarters location place "
    "label band group company network team club party school university language employer spouse wife husband mother father "
    "son daughter child sibling brother sister king queen bishop mayor head".split()
)


def _is_relation(role: str) -> bool:
    """Does such a word relate one thing to another? "The director of", not "the season of"."""
    word = role.split()[-1].casefold()
    return (
        word in _RELATION_NOUNS
        or role in _KINSHIP
        or re.search(r"(?:er|or|ist|ian|ress|eur|ent)$", word) is not None
    )


def _role_type(role: str) -> AnswerType:
    """A person has a role; a country, a birthplace or a date does not."""
    form = expected_answer_type(f"what {role}")
    return AnswerType.PERSON if form is AnswerType.THING else form


def _kinship_steps(text: str, done: int) -> list[SubQuestion]:
    """The two steps that a grandmother is away."""
    found = re.search(
        rf"\bthe (?P<kin>{_KINSHIP_WORDS}) of (?P<one>[^?]+)|(?P<two>[^?]+)['’]s? (?P<kin2>{_KINSHIP_WORDS})\b",
        text,
    )
    if found is None:
        return []
    near, far = _KINSHIP[found["kin"] or found["kin2"]]
    one = re.sub(
        r"^who (?:is|was) ", "", (found["one"] or found["two"]).strip(), flags=re.IGNORECASE
    )
    return [
        SubQuestion(f"Who is the {near} of {one}?", AnswerType.PERSON),
        SubQuestion(f"Who is the {far} of #{done + 1}?", AnswerType.PERSON),
    ]


# --- rules: Plans without a language model: a question is taken apart along the names in it and the words that lead from one to another.

MAX_RULE_CHARS = 500  # characters; nobody asks a question of this form at greater length


def plan_by_rules(question: str) -> Plan:
    """The plan of the first rule that fits."""
    whole = whole_question_step(question)
    asked = whole.text
    for kind, rule in _RULES if len(asked) <= MAX_RULE_CHARS else ():
        steps = rule(asked)
        if steps:
            try:
                return build_plan(question, steps, kind=kind)
            except InputError:  # the rule misread the question: it is asked as a whole
                break
    return Plan(question, (whole,))


_WHEN = re.compile(
    r"^(?P<main>.+?)\s+(?:when|during the time (?:that|when)|(?:in|during) the year (?:that|when|in which)?|"
    r"at the time (?:that|of|when)|in the same year (?:that|as)|the year)\s+(?P<event>.*[^\sa-z].*?)\s*\??$"
)


def plan_temporal(question: str) -> list[SubQuestion]:
    found = _WHEN.match(question)
    if (
        found is None
        or YES_OR_NO.match(question)
        or len(found["main"].split()) < 3
        or not names(found["event"])
    ):
        return []
    return [
        SubQuestion(f"In what year was it that {found['event']}?", AnswerType.DATE),
        SubQuestion(f"{found['main']} in #1?", expected_answer_type(found["main"])),
    ]


_RULES: Sequence[tuple[str, Callable[[str], list[SubQuestion]]]] = (
    ("comparison", plan_comparison),
    ("intersection", plan_intersection),
    ("temporal", plan_temporal),
    ("bridge", plan_bridge),
)
