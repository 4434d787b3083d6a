"""Who did what to whom: whether a sentence speaks against an answer that was read out of it.

    Who taught Augustus De Morgan?    Ada Lovelace was taught by Augustus De Morgan.

The words fit, the roles do not. The rules find the verb of the question in the sentence, its voice,
and on which side of it the question's names stand. They also see what a sentence denies: "has
never visited Lisbon" tells no day of a visit. They only object: where they cannot follow a
sentence, such as one with another verb, they say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from suffice.answering.answer_type import VOCABULARY
from suffice.lexicon import FUNCTION_WORDS

_WORDS = VOCABULARY["roles_of_verbs"]
_WORD = re.compile(
    r"['’]s\b|[^\W_](?:[\w.'’&/-]*\w)??(?=['’]s\b|[^\w.'’&/-]|[.'’&/-]*(?:\s|$))|[,;:().]"
)
_WH = frozenset("who whom whose what which when where why how".split())
_DO = frozenset("do does did can could may might must shall should will would".split())
_BE = frozenset("is are was were be been being am got gets get".split())
_HAVE = frozenset("has have had having".split())
_ADVERBS = frozenset("not never n't still also ever first finally then once".split())
_DIRECTIONS = frozenset("to from into onto".split())
_CIRCUMSTANCES = frozenset(_WORDS["circumstances"].split())  # prepositions of time, place, manner
_GOVERNORS = frozenset(_WORDS["prepositions"].split()) | _DIRECTIONS | _CIRCUMSTANCES
_SYMMETRIC = frozenset(_WORDS["symmetric"].split())
_BREAKS = frozenset(", ; : ( ) .".split())
_DETERMINERS = frozenset("the a an its his her their our my your 's ’s this that".split())
_NEGATION = re.compile(  # in small letters, or where a clause begins: "Never" may be in a name
    r"\b(?:not|never|nobody|none|neither|nor|no(?! matter| doubt)|without|cannot)\b|n['’]t\b"
    r"|^\W*(?:Not|Never|Nobody|None|Neither|No)\b"
    rf"|\b(?:{_WORDS['denials']})\b"
)
_CLAUSE_END = re.compile(
    r"[;.!?]\s+|,?\s+(?:but|although|though|whereas|while|yet|however|because)\b"
    r"|,\s+(?:and\s+|so\s+)?(?=(?:he|she|it|they|we|you|I|the|a|an|her|his|their|in|all)\b)"
    rf"|\s+and\s+(?=(?:will|can|does|did|has|is|was|may|must|\w+ed|{_WORDS['clause_verbs']})\b)",
)
_FRONTED = re.compile(r"^(?:In|On|At|For|During|Before|After|Since|With|By)\b[^,;.]*,\s+")
_SHARES_SUBJECT = re.compile(r"\s*(?:he|she|it|they|we|you|I|both|all of them)\b", re.IGNORECASE)
_SUBSTITUTES = frozenset("one ones it them that so".split())
_IRREGULAR: dict[str, str] = {
    form: group.split()[0] for group in _WORDS["irregular"].split(";") for form in group.split()
}
_UNCHANGED = frozenset(_WORDS["unchanged"].split())
_IRREGULAR |= {word: word for word in _UNCHANGED}
_PRONOUNS = frozenset("him her them it one ones himself herself itself themselves".split())
_SUBJECTS = frozenset("i you he she it we they".split())
_SPEAKERS = frozenset("i me my you your we us our".split())  # whoever that is in the text
MAX_WORDS = 20  # of a question whose roles can be told
_MAX_GAP = 4  # words between "was" and its participle, or a preposition and its name


_ANSWER = "ANSWER"  # stands for it: what it denies itself is not denied


class Role(Enum):
    AGENT = "agent"  # who does it
    OTHER = "other"


class _Mention(NamedTuple):
    words: tuple[str, ...]
    role: Role
    governor: str  # the preposition before it


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question's verb, the roles of its words, and that of what is asked for."""

    verb: str
    gap: Role | None  # None: when, where, how
    governor: str  # of what is asked for: "from whom"
    subject: tuple[_Mention, ...]  # before the verb
    rest: tuple[_Mention, ...]


class Agreement(Enum):
    """Whether a sentence says of the question's names what an answer read out of it says."""

    STATED = "stated"
    UNKNOWN = "unknown"
    CONTRADICTED = "contradicted"


def agreement(question: str, sentence: str, answer: str) -> Agreement:
    """Contradicted: the names have other roles, or what is asked is denied. Stated: all of them
    stand around the question's verb as they should.
    """
    said = _split(sentence)
    if _possessor_differs(question, sentence, answer):
        return Agreement.CONTRADICTED
    asked = _parse(_split(question), said)
    if asked is None:
        return Agreement.UNKNOWN
    if _roles_differ(asked, said, answer) or _is_denied(asked, question, sentence, answer):
        return Agreement.CONTRADICTED
    low = [one.casefold() for one in said]
    plain = not any(_NEGATION.search(one) for one in _CLAUSE_END.split(sentence) if answer in one)
    stated = plain and any(_states(asked, low, at, answer) for at in _verbs(asked, low))
    return Agreement.STATED if stated else Agreement.UNKNOWN


def verb_key(word: str) -> str:
    """One key for the forms of a verb: "taught" and "teaches" are "teach"."""
    word = word.casefold()
    if known := _IRREGULAR.get(word) or _IRREGULAR.get(word.removesuffix("s")):
        return known
    for ending, then in (
        ("ies", "y"),
        ("ied", "y"),
        ("ing", ""),
        ("ed", ""),
        ("es", ""),
        ("s", ""),
    ):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and not word.endswith("ss"):
            word = stem + then
            break
    if known := _IRREGULAR.get(word):
        return known
    return re.sub(r"([bdgklmnprt])\1$", r"\1", word).removesuffix("e")


def _split(text: str) -> list[str]:
    return _WORD.findall(text)


def _is_name(word: str) -> bool:
    return word[0].isupper() or not word.replace("-", "").isalpha()


def _is_past(word: str) -> bool:
    known = _IRREGULAR.get(word)
    return word.endswith("ed") if known is None else known != word or word in _UNCHANGED


def _is_third(word: str) -> bool:
    return word.endswith("s") and not word.endswith("ss")


def _is_base(word: str) -> bool:
    other = _is_past(word) or _is_third(word) or word.endswith("ing")
    return _IRREGULAR.get(word) == word or not other


# --- the question


def _parse(words: list[str], said: list[str]) -> _Asked | None:
    """The roles in a question whose verb the sentence has, too; None where there is no such."""
    words = [one for one in words if one.casefold() not in _ADVERBS and one not in ".:"]
    low = [one.casefold() for one in words]
    wh = next((at for at, one in enumerate(low) if one in _WH), None)
    if wh is None or len(words) > MAX_WORDS or wh > (low[0] in _GOVERNORS | {"by"}):
        return None
    if not {"or", "whom"}.isdisjoint(low[wh + 1 :]) or not _SPEAKERS.isdisjoint(low):
        return None
    if doing := _verb_of_doer(low, said):  # "Who is the teacher of X?"
        return _Asked(doing, Role.AGENT, "", (), tuple(_mentions(words[5:], Role.OTHER)))
    found = _finite_verb(words, low) if wh == 0 else None
    if found is not None:  # "Who taught X?"
        rest = tuple(_mentions(words[found + 1 :], Role.OTHER))
        return _Asked(verb_key(low[found]), Role.AGENT, "", (), rest)
    aux = next((at for at, one in enumerate(low) if at > wh and one in _DO | _BE | _HAVE), None)
    main = None if aux is None else _main_verb(words, low, aux, said)
    if aux is None or main is None:
        return None
    passive = (low[aux] in _BE and _is_past(low[main])) or low[main - 1] == "been"
    subject_role = Role.OTHER if passive else Role.AGENT
    subject = tuple(_mentions(words[aux + 1 : main], subject_role))
    rest = tuple(
        one._replace(role=Role.AGENT if passive and one.governor == "by" else Role.OTHER)
        for one in _mentions(words[main + 1 :], Role.OTHER)
    )
    governor = low[wh - 1] if wh else low[-1] if low[-1] in _DIRECTIONS | {"by"} else ""
    adverbial = low[wh] in ("when", "where", "why", "how", "whose") or governor in _CIRCUMSTANCES
    gap: Role | None = None
    if not subject:
        gap = subject_role  # "Who was taught by X?"
    elif not adverbial and (not passive or governor == "by"):
        gap = Role.AGENT if governor == "by" else Role.OTHER
    return _Asked(verb_key(low[main]), gap, governor, subject, rest)


def _verb_of_doer(low: list[str], said: list[str]) -> str | None:
    """Of "who is the teacher of ...": "teach", where the sentence has that verb."""
    if low[:1] != ["who"] or low[2:3] != ["the"] or low[4:5] != ["of"] or low[1] not in _BE:
        return None
    doer = low[3]
    if len(doer) < 6 or not doer.endswith(("er", "or")):
        return None
    keys = {verb_key(one) for one in said}
    return next((one for one in (verb_key(doer[:-2]), verb_key(doer[:-1])) if one in keys), None)


def _finite_verb(words: list[str], low: list[str]) -> int | None:
    """The verb whose subject is asked for: the first behind the question word and its noun."""
    if low[0] not in ("who", "what", "which"):
        return None
    for at in range(1, len(words)):
        if low[at] in _DO | _BE | _HAVE | _GOVERNORS | _BREAKS or _is_name(words[at]):
            return None
        nouns = at == 1 and low[0] == "which"  # "which animals chased"
        if not nouns and (_is_past(low[at]) or _is_third(low[at])):
            return at
    return None


def _main_verb(words: list[str], low: list[str], aux: int, said: list[str]) -> int | None:
    """The verb behind "did", "was" or "has", and behind the subject, if the sentence has it."""
    forms: dict[str, set[str]] = {}
    for word in said:
        forms.setdefault(verb_key(word), set()).add(word.casefold())
    after_be = low[aux] in _BE | _HAVE
    for at in range(aux + 1, len(words)):
        found = forms.get(verb_key(low[at]), set())
        empty = low[at] in FUNCTION_WORDS and low[at] not in _IRREGULAR
        if not found or empty or _is_name(words[at]):
            continue
        if low[at + 1 : at + 2] == ["than"]:
            return at
        if low[at - 1] in _DETERMINERS:  # a noun: "the record"
            continue
        inflected = found != {low[at]} or not _DO.isdisjoint(map(str.casefold, said))
        if _is_past(low[at]) if after_be else _is_base(low[at]) and inflected:
            return at
    return None


def _mentions(words: Sequence[str], role: Role) -> Iterator[_Mention]:
    """Names, and other words that mean something, each with the preposition that governs it."""
    run: list[str] = []
    governor = ""
    for word, following in pairwise((*words, ",", ",")):
        low = word.casefold()
        if run and _is_name(run[-1]) and low == "of" and _is_name(following):
            run.append(word)  # "the Treaty of Morn"
            continue
        plain = low in FUNCTION_WORDS | _GOVERNORS | _BREAKS or low in ("by", "'s", "’s")
        if run and (plain or (_is_name(word) != _is_name(run[-1]) and run[-1] != "of")):
            yield _Mention(tuple(run), role, governor)
            run = []
        if low in _GOVERNORS or low == "by":
            governor = low
        elif word in _BREAKS or (plain and low not in _DETERMINERS and low != "of"):
            governor = ""
        if not plain:
            run.append(word)


# --- the sentence


def _roles_differ(asked: _Asked, said: list[str], answer: str) -> bool:
    """Whether no verb of the sentence has the roles of the question around it."""
    if asked.verb in _SYMMETRIC:
        return False
    low = [one.casefold() for one in said]
    verbs = _verbs(asked, low)
    return bool(verbs) and not any(_fits(asked, low, at, answer) for at in verbs)


def _verbs(asked: _Asked, low: Sequence[str]) -> list[int]:
    """Where the sentence has the question's verb."""
    found = (at for at, one in enumerate(low) if verb_key(one) == asked.verb)
    return [at for at in found if _is_verb(low, at) or _is_nominal(low, at)]


def _is_nominal(low: Sequence[str], at: int) -> bool:
    """ "the defeat of A by B": as a passive."""
    return low[at + 1 : at + 2] == ["of"] and "by" in low[at + 3 : at + 8]


def _states(asked: _Asked, low: Sequence[str], verb: int, answer: str) -> bool:
    """Whether the words of the question and the answer stand around this verb in their roles."""
    passive = _is_passive(low, verb)
    mentions = (*asked.subject, *asked.rest)
    if asked.verb in _SYMMETRIC or not mentions:
        return False
    said = [one.casefold() for one in _answer_words(answer)]
    for words, role, governor in mentions:
        wanted = [one.casefold() for one in words]
        places = _whole_places(wanted, low)
        fitting = [at for at in places if _role(low, at, verb, passive) is role]
        if governor in _CIRCUMSTANCES:
            fitting = places
        if not any(_governor(low, at) == governor or governor in ("", "by") for at in fitting):
            return False
        if set(said) & set(wanted):
            return False
    wanted_roles = (asked.gap,) if asked.gap else tuple(Role)
    for at in _whole_places(said, low):
        between = set(low[at + len(said) : verb])  # "Petra bakes, you bring": another subject
        apart = not asked.gap or between.isdisjoint(_BREAKS | _SUBJECTS)
        if _role(low, at, verb, passive) in wanted_roles and apart:
            return True
    return False


def _answer_words(answer: str) -> tuple[str, ...]:
    return tuple(one for one in _split(answer) if one.casefold() not in _DETERMINERS | {"by"})


def _is_verb(low: Sequence[str], at: int) -> bool:
    """Not a noun: "a call", "on loan", "its record"."""
    before = low[at - 1] if at else ""
    if low[at + 1 : at + 2] == [":"]:
        return False
    return _is_past(low[at]) or before not in _DETERMINERS | _GOVERNORS - {"to"}


def _fits(asked: _Asked, low: list[str], verb: int, answer: str) -> bool:
    passive = _is_passive(low, verb)
    for words, _, governor in asked.subject:  # "is derived from X" is not said of X
        led = {_governor(low, at) for at in _places(words, low)}
        if led and not governor and led <= _DIRECTIONS:
            return False
    for at, (words, role, governor) in enumerate((*asked.subject, *asked.rest)):
        # What is neither a name nor subject or object may stand anywhere.
        core = _is_name(words[0]) or (not governor and at <= len(asked.subject))
        free = governor in _CIRCUMSTANCES or not core
        if not free and not _may_stand(role, governor, words, low, verb, passive):
            return False
    words = _answer_words(answer)
    return _may_stand(asked.gap, asked.governor, words, low, verb, passive)


def _may_stand(
    role: Role | None,
    governor: str,
    words: Sequence[str],
    low: Sequence[str],
    verb: int,
    passive: bool | None,
) -> bool:
    """Whether words stand in a role somewhere, or nowhere that tells."""
    places = _places(words, low)
    found = [_role(low, at, verb, passive) for at in places]
    if role is not None and found and all(one not in (None, role) for one in found):
        return False
    led = {_governor(low, at) for at in places} & _DIRECTIONS
    if governor not in _DIRECTIONS or not led:
        return True
    return bool(led & ({"from"} if governor == "from" else _DIRECTIONS - {"from"}))


def _governor(low: Sequence[str], place: int) -> str:
    """The preposition of a noun phrase; "the" begins one, so that "in 1702 the treaty" has none."""
    for at in range(place - 1, max(place - 1 - _MAX_GAP, -1), -1):
        if low[at] in _GOVERNORS or low[at] == "by":
            return low[at]
        if low[at] in _BREAKS or (low[at] in _DETERMINERS and low[at] not in ("'s", "’s")):
            before = low[at - 1] if at and low[at] in _DETERMINERS else ""
            return before if before in _GOVERNORS or before == "by" else ""
    return ""


def _is_passive(low: Sequence[str], verb: int) -> bool | None:
    """ "was taught", "was often taught", "a song written by"; None: "a system modelled after"."""
    if _is_nominal(low, verb):
        return True
    if not _is_past(low[verb]):
        return False
    near = low[max(verb - _MAX_GAP, 0) : verb]
    helper = max((at for at, one in enumerate(near) if one in _BE), default=None)
    following = low[verb + 1] if verb + 1 < len(low) else ""
    if following == "by" or (helper is not None and _BREAKS.isdisjoint(near[helper:])):
        return True
    opens = verb == 0 or low[verb - 1] in _BREAKS or low[verb] == "born"  # "Ada (born 1815)"
    return None if opens or following in _GOVERNORS | _BREAKS else False


def _role(low: Sequence[str], place: int, verb: int, passive: bool | None) -> Role | None:
    """What a word is to a verb, by the side on which it stands; None where that tells nothing."""
    if place == verb or passive is None:
        return None
    if place > verb:
        return Role.AGENT if passive and _governor(low, place) == "by" else Role.OTHER
    between = low[place:verb]
    if "whom" in between:
        return Role.OTHER
    if not passive and not _PRONOUNS.isdisjoint(low[verb + 1 : verb + 3]):
        return None  # "Hedwig sat for Tan, who painted her"
    # "In the marsh, the herons eat ...", "the parents of X moved ..."
    if _governor(low, place) or "of" in low[max(place - 2, 0) : place] or ";" in between:
        return None
    return Role.OTHER if passive else Role.AGENT


def _places(mention: Sequence[str], low: Sequence[str]) -> list[int]:
    """Where a mention stands: whole, or by the end of a name, or by the beginning of the rest."""
    wanted = [one.casefold() for one in mention]
    if not wanted or (whole := _whole_places(wanted, low)):
        return whole if wanted else []
    if _is_name(mention[0]):
        return _whole_places(wanted[-1:], low)
    return next(
        (
            found
            for size in range(len(wanted) - 1, 0, -1)
            if (found := _whole_places(wanted[:size], low))
        ),
        [],
    )


def _whole_places(wanted: Sequence[str], low: Sequence[str]) -> list[int]:
    size = len(wanted)
    return [at for at in range(len(low) - size + 1) if list(low[at : at + size]) == list(wanted)]


_OF_WHOM = (
    re.compile(  # "Who was the teacher of X?", "Who was X's teacher?", "Whose teacher was X?"
        r"^(?:who|what) (?:is|was|are|were) (?:the (?:[a-z]+ )*?(?P<noun>[a-z]+) of (?P<of>[^?]+)"
        r"|(?P<owner>[^?]+?)['’]s? (?:[a-z]+ )*?(?P<owned>[a-z]+))\W*$"
        r"|^whose (?:[a-z]+ )*?(?P<held>[a-z]+) (?:is|was|are|were) (?P<holder>[^?]+?)\W*$",
        re.IGNORECASE,
    )
)


def _possessor_differs(question: str, sentence: str, answer: str) -> bool:
    """Whether "the teacher of X" is said of the wrong one."""
    found = _OF_WHOM.match(question.strip())
    if found is None:
        return False
    noun = found["noun"] or found["owned"] or found["held"]
    owner = re.search(
        rf"\b{noun} of (?:the )?(?P<of>[^,;.]+)|(?P<own>[^,;.]+?)['’]s? (?:[a-z]+ )?{noun}\b",
        sentence,
        re.IGNORECASE,
    )
    if owner is None:
        return False
    said = {one.casefold() for one in _split(owner["of"] or owner["own"])}
    whose = found["of"] or found["owner"] or answer
    other = answer if found["held"] is None else found["holder"]
    wanted, held = ({one.casefold() for one in _split(text)} for text in (whose, other))
    return not wanted & said and held <= said and other[:1].isupper()


# --- what is denied


def _is_denied(asked: _Asked, question: str, sentence: str, answer: str) -> bool:
    """Whether what the question presupposes stands in clauses that deny it, and only there."""
    if _NEGATION.search(question):
        return False
    sentence = _FRONTED.sub(
        "", sentence.replace(answer, _ANSWER)
    )  # it holds for all clauses: "For sale items, ..."
    clauses = [one for one in _CLAUSE_END.split(sentence) if one.strip()]
    denied = [one for one in clauses if _NEGATION.search(one)]
    stated = [one for one in clauses if not _NEGATION.search(one)]
    if not denied:
        return False
    own = next((one for one in stated if _ANSWER in one), None)
    missing, subject = (
        {verb_key(word) for one in mentions for word in one.words}
        for mentions in (asked.rest, asked.subject)
    )
    for clause in stated:
        here = set(map(verb_key, _split(clause)))
        missing, subject = missing - here, subject - here
    there = {verb_key(word) for one in denied for word in _split(one)}
    missing, subject = missing & there, subject & there
    if own is None:
        return bool(missing | subject) and asked.verb in there
    words = [one.casefold() for one in _split(own)]
    after = next(
        (words[at + 1 : at + 3] for at, one in enumerate(words) if verb_key(one) == asked.verb), []
    )
    if missing and asked.gap is None and _SUBSTITUTES.isdisjoint(after):
        return True
    first = words[0] if words else ""
    verbal = (_is_past(first) or _is_third(first)) and not _BE & set(words[1:2])
    elided = _SHARES_SUBJECT.match(own) or verbal
    return bool(subject) and not elided
