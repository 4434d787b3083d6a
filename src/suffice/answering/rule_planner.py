"""Plans without a language model: split a question along its names and the words between them.

    comparison     Which film has the director born first, A or B?   find each date, then compare
    intersection   Which actor starred in both A and B?              find each, then what they share
    temporal       Who was mayor of X when Y was built?              first when, then who
    bridge         When did X's mother die?                          first who, then the question

Any other question is a single step: itself. The rules follow English word order, not meaning. If
they are wrong, a step of the plan finds nothing, and the review reports it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from suffice.answering.answer_type import (
    NATIONALITIES,
    VOCABULARY,
    AnswerType,
    expected_answer_type,
)
from suffice.answering.plan import MAX_STEPS, Plan, SubQuestion, build_plan, whole_question_step
from suffice.errors import InputError
from suffice.lexicon import PREPOSITIONS
from suffice.text import names

MAX_RULE_CHARS = 500  # real questions of these forms are shorter


def _any_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _remove(pattern: str, text: str) -> str:
    return re.sub(pattern, "", text, flags=re.IGNORECASE)


def plan_by_rules(question: str) -> Plan:
    """The plan of the first rule that fits."""
    whole = whole_question_step(question)
    rules: Sequence[tuple[str, Callable[[str], list[SubQuestion]]]] = (
        ("comparison", plan_comparison),
        ("intersection", plan_intersection),
        ("temporal", plan_temporal),
        ("bridge", plan_bridge),
    )
    for kind, rule in rules if len(whole.text) <= MAX_RULE_CHARS else ():
        steps = rule(whole.text)
        if steps:
            try:
                return build_plan(question, steps, kind=kind)
            except InputError:  # the rule misread the question
                break
    return Plan(question, (whole,))


# --- comparison: which of two

CAPITALS = (
    r"[^\W\da-z_][^\s,;?]*"
    r"(?:\s(?:(?:of|the|de|von|van|da|la)\b|and(?= the)|[^\Wa-z_][^\s,;?]*|\([^)]*\)))*"
)
_OR = re.compile(r"^(?P<head>[^,]*,|[^,:;]*[:;])?\s*(?P<first>.+?)\s*,?\s+or\s+(?P<second>.+)$")
_WAS_OR = _any_case(r"^(?:was|were|is|are|did|does|has)\s+(?P<first>.+?)\s+or\s+(?P<second>.+)$")
_OUT_OF = _any_case(
    r"^(?P<head>who .+?|which(?: \w+){0,2}) (?:out of|between)"
    r" (?P<first>.+?) (?:and|or) (?P<second>.+)$"
)
_BETWEEN = _any_case(
    r"^(?:between|of|out of|among)\s+(?:the \w+ )?(?:two \w+ )?"
    r"(?P<first>.+?)\s+(?:and|or)\s+(?P<second>.+?)\s*,?\s+(?P<head>(?:which|who|what)\b.+)$"
)
_ROLES = VOCABULARY["roles"].split()
_ROLE = _any_case(rf"\b({'|'.join(_ROLES)})s?\b")
_WORK = _any_case(r"\b(film|song|movie|album|book|novel|series|play|opera)s?\b")
# "Which singer is younger" compares singers; "which song has the singer who is younger" goes from
# songs to singers.
_ASKS_FOR_ROLE = _any_case(
    r"(?:which|what)\s+(?:(?!(?:whose|has|had|have|with)\b)\w+\s+){0,2}"
    rf"(?:{'|'.join(_ROLES)})s?\b"
)
_ORDER = _any_case(
    r"\b(?:first|earlier|later|earliest|latest|last|recent|recently|before|after|prior|older"
    r"|younger|oldest|youngest|newer)\b"
)
_LATE = _any_case(r"\b(?:later|last|latest|younger|youngest|recent|recently|newer)\b")
_LEAST = _any_case(
    r"\b(?:fewer|fewest|less|least|smaller|smallest|shorter|shortest|lower|lowest)\b"
)
_LIVED_LONGER = _any_case(
    r"\blived?\b.*\blonger\b|\bolder (?:when|at the time) (?:\w+ ){0,3}(?:died|death)\b"
)
# In "which filmmaker is a pioneer", both make films, so no text needs to state that.
_ASKED_CLASS = re.compile(
    r"^(?!is|was|has|had|did|does)[\w-]+(?: [\w-]+)?"
    r"(?= (?:is|was|were|are|has|had|have|did|does|can|could)\b)"
)
_NATIONALITY = "|".join(sorted(map(str.capitalize, NATIONALITIES)))


def plan_comparison(question: str) -> list[SubQuestion]:
    """The steps if the question asks which of two; otherwise none."""
    found = two_choices(question)
    if found is None:
        return []
    head, first, second = found
    both = (first, second)
    if _LIVED_LONGER.search(head):
        dates = [
            one for name in both for one in (f"When was {name} born?", f"When did {name} die?")
        ]
        steps = [SubQuestion(date, AnswerType.DATE) for date in dates]
        text = "Who lived longer, by #1 to #2 and #3 to #4?"
        return [*steps, SubQuestion(text, AnswerType.CHOICE, "longest", both)]
    measure = _find_measure(head)
    if measure is None:  # neither time nor size: pick the one for which the texts support it
        subject = _remove(r"^(?:which|who|what)\b(?: of the (?:following|two)\b)?", head)
        subject = _ASKED_CLASS.sub("", subject.strip(" ,:")).strip()
        if not subject:
            return []
        steps = [SubQuestion(f"{name} {subject}", AnswerType.YES_NO) for name in both]
        text = "Which one is it, by #1 and #2?"
        return [*steps, SubQuestion(text, AnswerType.CHOICE, "supported", both)]
    template, answer_type, rest = measure
    if answer_type is AnswerType.DATE:
        pick = "latest" if _LATE.search(head) else "earliest"
    else:
        pick = "least" if _LEAST.search(head) else "most"
    steps = []
    one, two = (_add_branch(steps, rest, name, template, answer_type) for name in both)
    text = f"Which one is it, by #{one} and #{two}?"
    return [*steps, SubQuestion(text, AnswerType.CHOICE, pick, both)]


def _find_measure(head: str) -> tuple[str, AnswerType, str] | None:
    """The question about X, its answer type, and the other words; None if nothing is measured.

    Dates are compared only if an order is asked for: "born in Indiana" does not ask when.
    """
    for pattern, question in VOCABULARY["measures"].items():
        sign, answer_type = re.search(pattern, head, re.I), expected_answer_type(question)
        if sign and (answer_type is not AnswerType.DATE or _ORDER.search(head)):
            rest = f"{head[: sign.start()]} {head[sign.end() :]}"
            return question.format(*sign.groups()), answer_type, rest
    return None


def two_choices(question: str) -> tuple[str, str, str] | None:
    """What is asked, and the two options: "..., A or B?", "Was A or B ..."."""
    plain = re.sub(r"\?\s+|\s+[-–—]+\s+", ", ", question.rstrip("? "))
    if found := _BETWEEN.match(plain):
        return found["head"], _bare_name(found["first"]), _bare_name(found["second"])
    if found := _OUT_OF.match(plain):
        second, rest = _split_name(found["second"])
        if rest or found["head"].casefold().startswith("who"):
            head = f"{found['head']} {rest}".strip()
            return head, _bare_name(found["first"]), _bare_name(second)
    if found := _WAS_OR.match(plain):
        second, rest = _split_name(found["second"])
        return (rest, _bare_name(found["first"]), _bare_name(second)) if rest else None
    found = _OR.match(plain)
    if found is None or not re.search(r"\b(?:which|who|what|whose)\b", plain, re.IGNORECASE):
        return None
    head, first = found["head"] or "", found["first"]
    if not head:  # no comma before the two: the first is the name at the end
        name = re.search(
            r"\b(?:first|earlier|later|older|younger) (?P<name>[^\sa-z].*)$"
            rf"|(?P<last>{CAPITALS})$",
            first,
        )
        if name is None or not (start := name.start("name" if name["name"] else "last")):
            return None
        head, first = first[:start], first[start:]
    second, rest = _split_name(found["second"])
    if found["head"] and re.search(r"[^\W\da-z_]", rest) and _find_measure(head):
        second, rest = found["second"], ""  # "..., American author A or Canadian author B?"
    head = f"{head.strip(' ,:;')} {rest}".strip()
    first, second = _bare_name(first), _bare_name(second)
    return (head, first, second) if first and second and head else None


def _split_name(text: str) -> tuple[str, str]:
    """Split "B born first" into B and the words in lower case behind it."""
    name = re.match(rf"(?:the )?{CAPITALS}", text)
    rest = text[name.end() :].strip(" ,") if name else ""
    return (name.group(), rest) if name and re.match(r"[a-z]+ ", rest + " ") else (text, "")


def _bare_name(name: str) -> str:
    """Drop quotes and introductory words: "American author Owen Wister" is Owen Wister."""
    bare = _remove(
        r"^(?:the (?:film|song|movie|band|book)s?|both|either)\s+", name.strip(" ,;:?\"'“”")
    )
    introduction = rf"^(?:(?:{_NATIONALITY}) (?=[a-z]))?(?:(?!and |or )[a-z]+ )+(?=[^\W\da-z_])"
    return re.sub(introduction, "", bare)


def _add_branch(
    steps: list[SubQuestion], head: str, name: str, template: str, answer_type: AnswerType
) -> int:
    """Add the steps from a name to what is measured; return the number of the last."""
    subject = name
    if (role := _ROLE.search(head)) and not _ASKS_FOR_ROLE.match(head):
        work = _WORK.search(head)
        kind = f"the {work[1].lower()} " if work else ""
        text = f"Who is the {role[1].lower()} of {kind}{name}?"
        steps.append(SubQuestion(text, AnswerType.PERSON))
        subject = f"#{len(steps)}"
    steps.append(SubQuestion(re.sub(r"\bX\b", lambda _: subject, template), answer_type))
    return len(steps)


# --- intersection: what two have in common, or whether they have it

_YES_NO = _any_case(r"^(?:are|were|is|was|do|does|did|have|has|had)\b")
_SAME = _any_case(
    r"\b(?:the )?same (?P<what>[a-z]+(?: of [a-z]+)?)"
    r"|\bshare (?:the |a )?(?:same )?(?P<shared>[a-z]+)"
)
_SAME_AS = _any_case(
    r"^(?:do|does|did|is|was|has|have)\s+(?P<first>.+?)\s+(?P<same>[a-z ]*?\bthe same .+?)"
    r" as (?P<second>.+)$"
)
_SINGULAR_VERBS = {"are": "Is", "were": "Was", "do": "Does", "have": "Has"}
_ABOUT_BOTH = _any_case(r"\b(?:both|in common|share[sd]?)\b|\b(?:are|were) (?:what|which)\b")
_BEFORE = re.compile(
    r"^(?i:was|were|did|is|are)\s+(?P<first>.+?)\s+(?P<what>[a-z][a-z ]*?)\s+"
    r"(?:(?P<early>before|prior to|earlier than|sooner than)|after|later than)\s+(?P<second>.+)$"
)
_COUNTRY_WORDS = ("country", "nationality", "countries", "citizenship")
# A name ends at a lower-case word that does not lead to another capital: "of the University" does,
# "of the same city" does not.
_NAME_TAIL = (
    r"(?P<rest>(?:,?\s+(?!(?:of|the|de|la|du|von|van|and|in|on|for|to|a|at)\s+(?:the\s+)?[^\sa-z])"
    r"[a-z].*)?)"
)


def plan_intersection(question: str) -> list[SubQuestion]:
    """The steps if the question asks what two have in common, or whether; otherwise none."""
    plain = question.rstrip("? ")
    if found := _SAME_AS.match(plain):
        return _same_attribute_steps(
            found["same"], _bare_name(found["first"]), _bare_name(found["second"])
        )
    if steps := _order_steps(plain):
        return steps
    two = _two_names(question)
    if two is None:
        return []
    first, second, rest = two
    if _YES_NO.match(question):
        steps = _same_attribute_steps(question, first, second)
        return steps or _both_steps(question, first, second, rest)
    if not _ABOUT_BOTH.search(question):
        return []
    text = _remove(r"\bboth (?:the )?|\bin common\b\s*", question)
    joined = re.compile(re.escape(first) + r"\W+and\W+" + re.escape(second))
    each = [" ".join(name.join(joined.split(text)).split()) for name in (first, second)]
    if each[0] == each[1]:
        return []
    answer_type = expected_answer_type(question)
    pick = "kind" if answer_type is AnswerType.KIND else "shared"
    return [
        *(SubQuestion(one, answer_type) for one in each),
        SubQuestion("What do #1 and #2 have in common?", answer_type, pick),
    ]


def _order_steps(question: str) -> list[SubQuestion]:
    """The steps of "Was A released before B?"."""
    found = _BEFORE.match(question)
    if found is None or not re.match(CAPITALS, found["second"].removeprefix("the ")):
        return []
    steps: list[SubQuestion] = []
    template = f"When was X {found['what']}?"
    one, two = (
        _add_branch(steps, "", _bare_name(found[name]), template, AnswerType.DATE)
        for name in ("first", "second")
    )
    pick = "before" if found["early"] else "after"
    return [*steps, SubQuestion(f"Does #{one} come {pick} #{two}?", AnswerType.YES_NO, pick)]


def _two_names(question: str) -> tuple[str, str, str] | None:
    """The two names that an "and" joins, and what follows them."""
    if not _YES_NO.match(question):
        question = _remove(r"\bboth (?:the )?", question)
        pair = re.search(
            rf"(?P<first>{CAPITALS}),? and (?P<second>{CAPITALS})(?P<rest>.*)$", question
        )
        return (pair["first"], pair["second"], pair["rest"].strip(" ,?")) if pair else None
    question = _remove(r"\b(?:the )?directors? of (?:the )?(?:films?|movies?),? ", question)
    body = re.sub(
        r"^(?:both |the )*"
        r"(?:(?:films?|movies?|bands?|songs?|directors? of films?|director of film)\b[:,]? "
        r"|[a-z]+s, )?",
        "",
        _YES_NO.sub("", question).strip(),
    )
    pair = re.search(
        rf"(?P<first>(?:film |song )?[^\sa-z].*?),?\s+and\s+(?P<second>.+?){_NAME_TAIL}\s*\??$",
        body,
    )
    if pair is None:
        return None
    second, rest = _bare_name(pair["second"]), pair["rest"].strip(" ,?")
    *words, last = second.split() or [""]
    if words and last.casefold() in NATIONALITIES:  # "... and Luc Besson American filmmakers?"
        second, rest = " ".join(words), f"{last} {rest}".strip()
    return _bare_name(pair["first"]), second, rest


def _same_attribute_steps(question: str, first: str, second: str) -> list[SubQuestion]:
    found = _SAME.search(question)
    if found is None:
        return []
    what = (found["what"] or found["shared"]).casefold()
    both = [_remove(r"^(?:director of )?(?:the )?(?:film|movie) ", one) for one in (first, second)]
    steps: list[SubQuestion] = []
    if what in _ROLES:  # by the same director
        steps = [SubQuestion(f"Who is the {what} of {name}?", AnswerType.PERSON) for name in both]
        return [*steps, SubQuestion("Are #1 and #2 the same?", AnswerType.YES_NO, "same")]
    template, answer_type = "Which country is X from?", AnswerType.COUNTRY
    if what not in _COUNTRY_WORDS:
        template = f"What {what} is X in?"
        answer_type = expected_answer_type(template)
    if answer_type is AnswerType.THING:
        template, answer_type = f"What {what} is X?", AnswerType.KIND
    one, two = (_add_branch(steps, question, name, template, answer_type) for name in both)
    if answer_type is AnswerType.KIND:
        text = f"Are #{one} and #{two} alike?"
        return [*steps, SubQuestion(text, AnswerType.YES_NO, "alike", (what,))]
    return [*steps, SubQuestion(f"Are #{one} and #{two} the same?", AnswerType.YES_NO, "same")]


def _both_steps(question: str, first: str, second: str, rest: str) -> list[SubQuestion]:
    shared = re.sub(r"^(?:both\b|are\b|were\b)\s*", "", rest)
    if not shared:
        return []
    opening = question.split()[0].casefold()
    verb = _SINGULAR_VERBS.get(opening, opening.capitalize())
    steps = [SubQuestion(f"{verb} {name} {shared}?", AnswerType.YES_NO) for name in (first, second)]
    return [*steps, SubQuestion("Is it so, by #1 and #2?", AnswerType.YES_NO, "all")]


# --- temporal: what was true when something else happened

_WHEN = re.compile(
    r"^(?P<main>.+?)\s+(?:when|during the time (?:that|when)"
    r"|(?:in|during) the year (?:that|when|in which)?|at the time (?:that|of|when)"
    r"|in the same year (?:that|as)|the year)\s+(?P<event>.*[^\sa-z].*?)\s*\??$"
)


def plan_temporal(question: str) -> list[SubQuestion]:
    """The steps if the question dates its main clause by an event; otherwise none."""
    found = _WHEN.match(question)
    if found is None or _YES_NO.match(question):
        return []
    if len(found["main"].split()) < 3 or not names(found["event"]):
        return []
    return [
        SubQuestion(f"In what year was it that {found['event']}?", AnswerType.DATE),
        SubQuestion(f"{found['main']} in #1?", expected_answer_type(found["main"])),
    ]


# --- bridge: "the director of X", "Y's mother", "the city where Z was born", innermost first

_KINSHIP: dict[str, list[str]] = VOCABULARY["kinship"]
_KINSHIP_WORDS = "|".join(re.escape(one) for one in _KINSHIP)
_KINSHIP_OF = re.compile(
    rf"\bthe (?P<kin>{_KINSHIP_WORDS}) of (?P<one>[^?]+)"
    rf"|(?P<two>[^?]+)['’]s? (?P<kin2>{_KINSHIP_WORDS})\b"
)
_WHO_IS_KIN = _any_case(
    rf"who (?:is|was) (?:the )?(?:{_KINSHIP_WORDS}) of "
    rf"|who (?:is|was) .*['’]s? (?:{_KINSHIP_WORDS})\??$"
)
_LOWER_WORD = r"[a-zé][\w'-]*"
_NAME_PHRASE = r"(?:\"[^\"]+\"|“[^”]+”|#\d+|[^\W\da-z_][^?,;]*?(?:, [^\sa-z][^?,;]*?){0,2})"
_NAME_END = (
    r"(?=\s*(?:\?|$|,|;|\s(?:is|was|were|are|did|does|do|has|had|have|died|die|born|work|worked"
    r"|live|lived|won|play|played|located|from|be|get|study|studied|graduate|graduated|attend|attended"
    r"|marry|married|belong|come|receive|received|start|started|end|ended)\b))"
)
_RELATIONS = [
    # the director of the film X; the composer of "X"
    re.compile(
        rf"\b[Tt]he (?P<role>{_LOWER_WORD}(?: {_LOWER_WORD}){{0,2}}) of"
        rf" (?P<of>(?:the )?(?:{_LOWER_WORD} ){{0,2}}{_NAME_PHRASE}){_NAME_END}"
    ),
    # X's mother, X's first wife
    re.compile(
        r"(?P<of>\b[^\W\da-z_][^?;]*?|#\d+)(?:['’]s|s['’]) "
        r"(?P<role>(?:(?:first|second|third|former|eldest|youngest|oldest|only|paternal|maternal"
        rf"|older|younger) )?{_LOWER_WORD})\b"
    ),
    # the country where X was born; the company that made X
    re.compile(
        rf"\b[Tt]he (?P<role>{_LOWER_WORD}(?: {_LOWER_WORD}){{0,3}})"
        r" (?P<clause>(?:that|who|which|where|whose|in which|for which|to which) "
        rf"[^?,;]*?{CAPITALS})"
    ),
    # ... and the verb that follows, if the name is its subject: the city where X was born
    re.compile(
        rf"\b[Tt]he (?P<role>{_LOWER_WORD}(?: {_LOWER_WORD}){{0,3}})"
        r" (?P<clause>(?:that|which|where|whom|in which|for which|to which) "
        rf"(?:the )?(?:{CAPITALS}|#\d+)(?: (?:is|was|were|are|has|had|did))?"
        rf"(?: {_LOWER_WORD}(?: (?:in|at|by|from|for|to|on)\b)?))"
    ),
]
_BARE_QUESTION = _any_case(
    r"^(?:who|what|where|when|which \w+)(?:'s)?\s*(?:is|was|are|were)?\s*(?:#\d+)?$"
)
_RELATION_NOUNS = frozenset(VOCABULARY["relation_nouns"].split())


def plan_bridge(question: str) -> list[SubQuestion]:
    """Turn each phrase that leads from a name to another thing into a step and a number."""
    if _WHO_IS_KIN.match(question):
        return _kinship_steps(question, 0)
    rest, steps = question.rstrip("? "), list[SubQuestion]()
    while len(steps) < MAX_STEPS - 2:
        shorter = _extract_innermost(rest, steps)
        if shorter is None:
            break
        rest = shorter
    text = rest + "?"
    last = _kinship_steps(text, len(steps)) or [SubQuestion(text, expected_answer_type(text))]
    steps += last
    return steps if len(steps) > 1 else []


def _extract_innermost(rest: str, steps: list[SubQuestion]) -> str | None:
    """Move the innermost phrase into `steps`; return the rest with a number in its place."""
    matches: list[re.Match[str]] = []
    for pattern in _RELATIONS:
        outer = list(pattern.finditer(rest))
        # A phrase may contain another one, which starts later.
        inner = (pattern.search(rest, one.start() + 4) for one in outer)
        matches += [*outer, *(one for one in inner if one)]
    for found in sorted(matches, key=lambda one: (-one.start(), one.start() - one.end())):
        before, after = rest[: found.start()], rest[found.end() :]
        if _BARE_QUESTION.match(before.strip()) and not after.strip():
            continue  # this is the question itself
        if not (before + after).strip(" ,"):
            continue
        if new := _relation_steps(found, len(steps)):
            steps += new
            return f"{before}#{len(steps)}{after}"
    return None


def _relation_steps(found: re.Match[str], done: int) -> list[SubQuestion]:
    """The steps that resolve a phrase; none if it does not relate two things."""
    parts = found.groupdict()
    role, clause = parts["role"], parts.get("clause")
    last = role.split()[-1]
    if last in PREPOSITIONS:
        return []  # "the story of which athlete" is a question itself
    if clause:
        text = f"Which {role} {re.sub(r'^(?:that|who|which|where) ', '', clause)}?"
        answer_type = expected_answer_type(f"which {role}")
    else:
        word = last.casefold()
        agent = re.search(r"(?:er|or|ist|ian|ress|eur|ent)$", word)
        if word not in _RELATION_NOUNS and role not in _KINSHIP and not agent:
            return []  # "the season of"
        if role in _KINSHIP:
            return _kinship_steps(f"Who is the {role} of {parts['of']}?", done)
        answer_type = expected_answer_type(f"what {role}")
        if answer_type is AnswerType.THING:  # a role is held by a person
            answer_type = AnswerType.PERSON
        question_word = "Who" if answer_type is AnswerType.PERSON else "What"
        text = f"{question_word} is the {role} of {parts['of']}?"
    return [SubQuestion(text, answer_type)] if len(text) <= 300 else []


def _kinship_steps(text: str, done: int) -> list[SubQuestion]:
    """The two steps to a grandmother, an uncle or an in-law; none if there is no such relation."""
    found = _KINSHIP_OF.search(text)
    if found is None:
        return []
    near, far = _KINSHIP[found["kin"] or found["kin2"]]
    name = _remove(r"^who (?:is|was) ", (found["one"] or found["two"]).strip())
    return [
        SubQuestion(f"Who is the {near} of {name}?", AnswerType.PERSON),
        SubQuestion(f"Who is the {far} of #{done + 1}?", AnswerType.PERSON),
    ]
