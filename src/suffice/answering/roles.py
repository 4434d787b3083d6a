"""Who did what to whom: whether a sentence contradicts an answer extracted from it.

    Who taught Augustus De Morgan?    Ada Lovelace was taught by Augustus De Morgan.

The words match, the roles do not. The rules find the question's verb in the sentence, its voice,
and on which side of it the question's names are. They also detect negation: "has never visited
Lisbon" does not give the date of a visit. The rules can only object: if they cannot analyse a
sentence, for example because it has another verb, they return "unknown".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import NamedTuple

from suffice.answering.answer_type import VOCABULARY
from suffice.lexicon import FUNCTION_WORDS, MONTHS, WEEKDAYS

_WORDS = VOCABULARY["roles_of_verbs"]
_WORD = re.compile(
    r"['’]s\b|[^\W_](?:[\w.'’&/-]*?\w)??(?=['’]s\b|[^\w.'’&/-]|[.'’&/-]*(?:\s|$))|[,;:().]"
)
_WH = frozenset("who whom whose what which when where why how".split())
_DO = frozenset("do does did can could may might must shall should will would".split())
_BE = frozenset("is are was were be been being am got gets get".split())
_HAVE = frozenset("has have had having".split())
_ADVERBS = frozenset("not never n't still also ever first finally then once".split())
_DIRECTIONS = frozenset("to from into onto".split())
_AUXILIARIES = _DO | _BE | _HAVE
_CLAUSE_VERBS = frozenset(_WORDS["clause_verbs"].split("|"))
_CIRCUMSTANCES = frozenset(_WORDS["circumstances"].split())  # prepositions of time, place, manner
_GOVERNORS = frozenset(_WORDS["prepositions"].split()) | _DIRECTIONS | _CIRCUMSTANCES
_SYMMETRIC = frozenset(_WORDS["symmetric"].split())
_BREAKS = frozenset(", ; : ( ) .".split())
_DETERMINERS = frozenset("the a an its his her their our my your 's ’s this that".split())
_POSSESSIVE = frozenset(("'s", "’s"))
_CONJUNCTIONS = frozenset("; but although though whereas while yet however because".split())
_NOMINAL_ENDINGS = tuple("ation ition ion ment al ance ence ure y e".split())
_TIME = re.compile(
    rf"\d+|{'|'.join((*MONTHS, *WEEKDAYS))}|today|tonight|night|morning|noon|evening|week|year",
    re.IGNORECASE,
)
_LED_NAME = re.compile(
    r"\b(?P<led>of|from|to|against|over|by|into|for|with|behind|before|after|above|below|under)\s+"
    r"(?:(?:the|a|an|his|her|their)\s+)?(?P<name>[^\W\d_a-z][\w'’&-]*(?:\s+[^\W\d_a-z][\w'’&-]*)*)"
)
_COMPARED = re.compile(
    r"\b(?:as (?P<as>\w+) as|(?P<than>\w+) than) (?P<other>[^?,]+)\W*$", re.IGNORECASE
)
_LIMIT = r"(?!(?: \w+){0,3}? (?:more|less|fewer|\w+er) than\b| exceed\b)"  # "not longer than"
_NOT = re.compile(r"\b(?:not|never|no)\b|n['’]t\b", re.IGNORECASE)
_NEGATION = re.compile(  # lower case, or at the start of a clause: "Never" may be part of a name
    rf"\b(?:(?:not|no(?! matter| doubt)){_LIMIT}|never|nobody|none|neither|nor|without|cannot)\b"
    r"|n['’]t\b"
    rf"|^\W*(?:(?:Not|No){_LIMIT}|Never|Nobody|None|Neither)\b"
    rf"|\b(?:{_WORDS['denials']})\b"
)
_CLAUSE_END = re.compile(
    r"[;.!?]\s+|,?\s+(?:but|although|though|whereas|while|yet|however|because)\b"
    r"|,\s+(?:and|so)\s+(?=ANSWER)|,\s+(?=not\b)"
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
_SPEAKERS = frozenset("i me my you your we us our".split())  # refers to whoever speaks in the text
_LIFE = re.compile(r"when (?:was|did) (?P<who>[^?]+?) (?P<what>born|die)\W*$", re.IGNORECASE)
_HOPED = frozenset(  # also: reported or asked
    "if unless whether hope hopes hoped wish wishes want wants plan plans planned claim claims"
    " claimed allegedly reportedly perhaps maybe say says said tell tells told ask asks asked"
    " believe believes believed think thinks thought suggest suggests suggested propose proposes"
    " proposed wonder wonders wondered".split()
)
_MODAL = frozenset("can could may might must shall should will would".split())
_LIMITS = frozenset("only few some most half partly almost nearly".split())
_CONTRACTED = re.compile(
    r"\b(?:(?P<irregular>ca|wo|sha)n|(?P<verb>[a-z]+)n)['’]t\b|\bcannot\b", re.I
)
_UNCONTRACTED = {"ca": "can", "wo": "will", "sha": "shall"}
_UN = re.compile(r"\b(?:un|non-?)(?P<rest>[a-z]{4,})\b", re.IGNORECASE)
_NO_SUCH = re.compile(
    r"\b(?:no|not|without)\s+(?:an?\s+|the\s+|any\s+)?(?P<what>\w+)", re.IGNORECASE
)
MAX_WORDS = 20  # in a question that the rules can analyse
MAX_CHARS = 4000  # of question and sentence together: bounds the time that hostile input can take
MAX_VERBS = 6  # examined per sentence: each is compared with every name
_MAX_GAP = 4  # words between "was" and its participle, or between a preposition and its name


_ANSWER = "ANSWER"  # placeholder, so that a negation inside the answer does not count


class Role(Enum):
    AGENT = "agent"  # who does it
    OTHER = "other"


class _Mention(NamedTuple):
    words: tuple[str, ...]
    role: Role
    governor: str  # the preposition before it


@dataclass(frozen=True, slots=True)
class _Asked:
    """The verb of a question, the roles of its words, and the role of what is asked for."""

    verb: str
    gap: Role | None  # None for when, where, how
    governor: str  # of what is asked for, as in "from whom"
    subject: tuple[_Mention, ...]  # before the verb
    rest: tuple[_Mention, ...]
    kind: tuple[str, ...] = ()  # "fish" in "which fish"


class Agreement(Enum):
    """Whether a sentence says about the question's names what the extracted answer says."""

    STATED = "stated"
    UNKNOWN = "unknown"
    CONTRADICTED = "contradicted"


def agreement(question: str, sentence: str, answer: str) -> Agreement:
    """Compare the roles in question and sentence.

    Contradicted: the names have other roles, or the sentence denies what is asked. Stated: all
    names are around the question's verb in the right roles.
    """
    if len(question) + len(sentence) > MAX_CHARS:
        return Agreement.UNKNOWN
    if _is_swapped(question, sentence) or _adds_denied(question, answer):
        return Agreement.CONTRADICTED
    for judge in (_possession, _compare, _life):
        if (found := judge(question, sentence, answer)) is not Agreement.UNKNOWN:
            return found
    sentence = _spell_out(question, sentence)
    said = _split(sentence)
    asked = _parse(_split(question), said)
    if asked is None:
        return Agreement.UNKNOWN
    if _roles_differ(asked, said, answer) or _is_denied(asked, question, sentence, answer):
        return Agreement.CONTRADICTED
    low = [one.casefold() for one in said]
    clauses = [one for one in _CLAUSE_END.split(sentence) if answer in one]
    plain = not any(_denies(one, asked.verb) for one in clauses)
    plain = plain and not _is_question(sentence)
    stated = plain and any(_states(asked, low, at, answer) for at in _verbs(asked, low))
    return Agreement.STATED if stated else Agreement.UNKNOWN


def may_state(question: str, sentence: str) -> bool:
    """Whether a sentence has the question's verb and all its names and so may state an answer.

    `agreement` then tells for a given answer.
    """
    if len(question) + len(sentence) > MAX_CHARS:
        return False
    said = _split(_spell_out(question, sentence))
    asked = _parse(_split(question), said)
    if asked is None or not (asked.subject or asked.rest):
        return False
    low = [one.casefold() for one in said]
    mentions = (*asked.subject, *asked.rest)
    named = all(_places(one.words, low, whole=True) for one in mentions)
    return named and bool(_verbs(asked, low))


def polarity(question: str, sentence: str) -> bool | None:
    """Whether a sentence says yes or no to a question; None if the rules cannot analyse it."""
    if len(question) + len(sentence) > MAX_CHARS or _is_question(sentence):
        return None
    if _NOT.search(question):
        return None
    words = [one for one in _split(question) if one.casefold() not in _ADVERBS | {"any"}]
    words = [one for one in words if one not in _BREAKS]
    low = [one.casefold() for one in words]
    auxiliary = low and low[0] in _AUXILIARIES
    if not auxiliary or len(low) > MAX_WORDS or not _SPEAKERS.union({"or", "both"}).isdisjoint(low):
        return None
    sentence = _spell_out(question, sentence)
    said = _split(sentence)
    main = _main_verb(words, low, 0, said)
    if main is None:
        return None
    passive = (low[0] in _BE or low[main - 1] == "been") and _is_past(low[main])
    subject = tuple(_mentions(words[1:main], Role.OTHER if passive else Role.AGENT))
    rest = tuple(
        one._replace(role=Role.AGENT if passive and one.governor == "by" else Role.OTHER)
        for one in _mentions(words[main + 1 :], Role.OTHER)
    )
    asked = _Asked(verb_key(low[main]), None, low[0], subject, rest)
    heard = [one.casefold() for one in said]
    answers = {_affirms(asked, said, heard, at) for at in _verbs(asked, heard)} - {None}
    return answers.pop() if len(answers) == 1 else None


def _affirms(asked: _Asked, said: list[str], low: list[str], verb: int) -> bool | None:
    """Whether a clause with every word of the question affirms or denies it."""
    start, end = _clause(low, verb)
    keys = [verb_key(one) for one in low]
    passive = _is_passive(low, verb)
    mentions = (*asked.subject, *asked.rest)
    if not mentions or not _fits(asked, low, verb, "") or not _have_roles(asked, low, verb):
        return None
    for words, role, _ in mentions:
        wanted = [verb_key(one) for one in words]
        places = _whole_places(wanted, keys[:end])
        if any(_is_longer_name(said, at + len(words)) for at in places if _is_name(words[-1])):
            return None
        inside = any(start <= at for at in places)
        if not inside and not (places and _stands_for(low, verb, role, passive)):
            return None
    own = {asked.verb, *(verb_key(word) for one in mentions for word in one.words)}
    others = {one for one in low[start:end] if verb_key(one) not in own} - {asked.governor}
    if not _HOPED.isdisjoint(others):
        return None
    tokens = ["" if verb_key(one) in own and _NEGATION.search(one) else one for one in said]
    before, after = tokens[start:verb], tokens[verb + 1 : end]
    denied = _is_verb_denied(before)
    if denied is False:
        denied = _is_rest_denied(after, own)
    if denied is not False:
        return None if denied is None else False
    past = asked.governor in _MODAL and not passive and _is_past(low[verb])
    vague = low[verb - 1] == "to" or (past and low[verb] not in _UNCHANGED)
    return None if vague or not (_MODAL | _LIMITS).isdisjoint(others) else True


def _is_verb_denied(before: list[str]) -> bool | None:
    """Whether the words before a verb negate it.

    None if they negate something else: "Ann, who never smiles, visited", "Ann denied that she
    visited".
    """
    near = re.split(r" , | that ", " ".join(before))
    if _NEGATION.search(near[-1]):
        return True
    return None if any(map(_NEGATION.search, near)) else False


def _is_rest_denied(after: list[str], asked: set[str]) -> bool | None:
    """Whether the words after a verb negate what is asked: "lentils and no meat".

    None if they negate something else: "in the yard, not in the kitchen", "dogs are allowed, cats
    are not".
    """
    for part in " ".join(after).split(","):
        if found := _NEGATION.search(part):
            behind = _split(part[found.end() :])
            there = behind if any(map(str.isalnum, behind)) else _split(part[: found.start()])
            return True if asked.intersection(map(verb_key, there)) else None
    return False


def _is_longer_name(said: Sequence[str], end: int) -> bool:
    """Whether a name continues here: "Hotel Miramar Beach" is not "Hotel Miramar"."""
    return end < len(said) and said[end] not in _BREAKS | _POSSESSIVE and said[end][0].isupper()


def _is_question(sentence: str) -> bool:
    return sentence.rstrip(" \"'”’)]").endswith("?")


def _spell_out(question: str, sentence: str) -> str:
    """Write "can't" as "can not"; "undelivered" as "not delivered" if the question has the verb."""
    asked = {verb_key(one) for one in _split(question)}

    def spell(found: re.Match[str]) -> str:
        word = found["rest"]
        said = verb_key(word) in asked or any(_names_action(word, one) for one in asked)
        return f"not {word}" if said and found.group().casefold() not in question else found.group()

    return _UN.sub(spell, _CONTRACTED.sub(_uncontracted, sentence))


def _uncontracted(found: re.Match[str]) -> str:
    short = found["irregular"]
    verb = _UNCONTRACTED[short.casefold()] if short else found["verb"] or "can"
    return f"{verb} not"


def _adds_denied(question: str, answer: str) -> bool:
    """Whether an answer negates a word of the question: "lentils and no meat"."""
    denied = {one["what"].casefold() for one in _NO_SUCH.finditer(answer)}
    return bool(denied.intersection(one.casefold() for one in _split(question)))


@lru_cache(maxsize=4096)
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
    """The roles in a question whose verb also occurs in the sentence; None if there is none."""
    words = [one for one in words if one.casefold() not in _ADVERBS and one not in ".:"]
    low = [one.casefold() for one in words]
    wh = next((at for at, one in enumerate(low) if one in _WH), None)
    if wh is None or len(words) > MAX_WORDS or wh > (low[0] in _GOVERNORS | {"by", "of"}):
        return None
    if not {"or", "whom"}.isdisjoint(low[wh + 1 :]) or not _SPEAKERS.isdisjoint(low):
        return None
    if doing := _verb_of_doer(low, said):  # "Who is the teacher of X?"
        return _Asked(doing, Role.AGENT, "", (), tuple(_mentions(words[5:], Role.OTHER)))
    found = _finite_verb(words, low) if wh == 0 else None
    if found is not None:  # "Who taught X?"
        rest = tuple(_mentions(words[found + 1 :], Role.OTHER))
        return _Asked(verb_key(low[found]), Role.AGENT, "", (), rest)
    aux = next((at for at, one in enumerate(low) if at > wh and one in _AUXILIARIES), None)
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
    governor = low[wh - 1] if wh else low[-1] if low[-1] in _GOVERNORS | {"by"} else ""
    fronted = bool(wh) and governor in _CIRCUMSTANCES  # "in which year", but not "depend on"
    adverbial = low[wh] in ("when", "where", "why", "how", "whose") or fronted
    if low[wh] == "why" or (low[wh] == "how" and wh + 1 == aux):  # the position does not tell
        governor = low[wh]
    gap: Role | None = None
    if not subject and _SUBJECTS.isdisjoint(low[aux + 1 : main]):
        gap = subject_role  # "Who was taught by X?", but not "What did they call X?"
    elif not adverbial and (not passive or governor == "by"):
        gap = Role.AGENT if governor == "by" else Role.OTHER
    kind = tuple(one for one in low[wh + 1 : aux] if one not in FUNCTION_WORDS)
    return _Asked(verb_key(low[main]), gap, governor, subject, rest, kind)


def _verb_of_doer(low: list[str], said: list[str]) -> str | None:
    """For "who is the teacher of ...", the verb "teach", if the sentence has it."""
    if low[:1] != ["who"] or low[2:3] != ["the"] or low[4:5] != ["of"] or low[1] not in _BE:
        return None
    doer = low[3]
    if len(doer) < 6 or not doer.endswith(("er", "or")):
        return None
    keys = {verb_key(one) for one in said}
    return next((one for one in (verb_key(doer[:-2]), verb_key(doer[:-1])) if one in keys), None)


def _finite_verb(words: list[str], low: list[str]) -> int | None:
    """The verb whose subject is asked for: the first after the question word and its noun."""
    if low[0] not in ("who", "what", "which"):
        return None
    for at in range(1, len(words)):
        if low[at] in _AUXILIARIES | _GOVERNORS | _BREAKS or _is_name(words[at]):
            return None
        nouns = at == 1 and low[0] == "which"  # "which animals chased"
        if not nouns and (_is_past(low[at]) or _is_third(low[at])):
            return at
    return None


def _main_verb(words: list[str], low: list[str], aux: int, said: list[str]) -> int | None:
    """The verb after "did", "was" or "has" and its subject, if the sentence has that verb."""
    forms: dict[str, set[str]] = {}
    for word in said:
        forms.setdefault(verb_key(word), set()).add(word.casefold())
    keys = [one.casefold() for one in said]
    after_be = low[aux] in _BE | _HAVE
    for at in range(aux + 1, len(words)):
        found = forms.get(verb_key(low[at]), set())
        found = found or {one for one in keys if _names_action(one, verb_key(low[at]))}
        empty = low[at] in FUNCTION_WORDS and low[at] not in _IRREGULAR
        no_subject = at == aux + 1 and low[aux] in _DO
        if not found or empty or no_subject or _is_name(words[at]):
            continue
        if low[at - 1] in _DETERMINERS:  # a noun: "the record"
            continue
        inflected = found != {low[at]} or not _DO.isdisjoint(keys) or _is_used(low[at], keys)
        if _is_past(low[at]) if after_be else _is_base(low[at]) and inflected:
            return at
    return None


def _is_used(base: str, low: Sequence[str]) -> bool:
    """Whether a sentence uses this form as a verb, or as a noun with its complement.

    Examples: "to pass", "the herons eat", "the lead of".
    """
    for before, word, following in zip(("", *low), low, (*low[1:], "")):
        plural = _is_third(before) or before in ("to", "they", "who")
        known = _IRREGULAR.get(base) == base and before not in _DETERMINERS | _GOVERNORS
        if word == base and (plural or known or following == "of"):
            return True
    return False


def _mentions(words: Sequence[str], role: Role) -> Iterator[_Mention]:
    """Names and other content words, each with the preposition that governs it."""
    run: list[str] = []
    governor = ""
    for word, following in pairwise((*words, ",", ",")):
        low = word.casefold()
        if run and _is_name(run[-1]) and low == "of" and _is_name(following):
            run.append(word)  # "the Treaty of Morn"
            continue
        plain = low in FUNCTION_WORDS | _GOVERNORS | _BREAKS | _POSSESSIVE | {"by", "been"}
        if run and plain:
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
    """Whether no verb of the sentence has the question's roles around it."""
    if asked.verb in _SYMMETRIC:
        return False
    low = [one.casefold() for one in said]
    verbs = _verbs(asked, low)
    if not verbs and asked.gap is Role.AGENT and "from" in low:
        return _is_given_to(asked, low, answer)
    return bool(verbs) and not any(_fits(asked, low, at, answer) for at in verbs)


def _is_given_to(asked: _Asked, low: Sequence[str], answer: str) -> bool:
    """Whether the answer is B in "a gift from A to B", and the question names A."""
    start = low.index("from")
    middle = next((at for at in range(start, len(low)) if low[at] == "to"), len(low))
    taker = _whole_places([one.casefold() for one in _answer_words(answer)], low[middle:])
    givers = (_places(one.words, low[start:middle], whole=True) for one in asked.rest)
    return bool(taker) and taker[0] <= 2 and any(givers)


def _verbs(asked: _Asked, low: Sequence[str]) -> list[int]:
    """The positions of the question's verb, or of a noun for the same action."""
    keys = [verb_key(one) for one in low]
    found = [at for at, one in enumerate(keys) if one == asked.verb]
    verbs = [at for at in found if _is_verb(low, at)]
    if verbs and low[-2:-1] and low[-2] in _DO:  # "..., but their mother does."
        verbs.append(len(low) - 2)
    nouns = [at for at, one in enumerate(low) if at in found or _names_action(one, asked.verb)]
    return (verbs or [at for at in nouns if _is_nominal(low, at)])[:MAX_VERBS]


def _names_action(noun: str, verb: str) -> bool:
    """Whether a noun derives from a verb: "acquisition" from "acquir", "denial" from "deny"."""
    if not noun.endswith(_NOMINAL_ENDINGS):
        return False
    stems = (noun.removesuffix(one) for one in _NOMINAL_ENDINGS if noun.endswith(one))
    for stem in (re.sub("i$", "y", one) for one in stems):
        size = max(min(4, len(verb)), len(verb) - 1, len(stem) - 1)
        if stem[:size] == verb[:size]:
            return True
    return False


def _is_nominal(low: Sequence[str], at: int) -> bool:
    """Whether a noun stands for the verb: "the defeat of A by B", "A's attack on B"."""
    if _is_verb(low, at) and not low[at].endswith(_NOMINAL_ENDINGS):
        return False
    owned = at > 0 and not _POSSESSIVE.isdisjoint(low[max(at - 2, 0) : at])
    return owned or low[at + 1 : at + 2] in (["of"], ["from"], ["by"])


def _clause(low: Sequence[str], verb: int) -> tuple[int, int]:
    """First and last word of a verb's clause, judged by conjunctions and punctuation."""

    def ends(at: int) -> bool:
        if low[at] == ".":
            return at > 0 and len(low[at - 1]) > 3
        following = low[at + 1] if at + 1 < len(low) else ""
        joined = following in _AUXILIARIES or _is_past(following) or following in _CLAUSE_VERBS
        again = verb_key(following) == verb_key(low[verb])  # "is led by Ann and leads Bob"
        if low[at] == "and" and (joined or again):
            return True
        return low[at] in _CONJUNCTIONS or (low[at] == "so" and low[at - 1] == ",")

    start = next((at + 1 for at in range(verb - 1, -1, -1) if ends(at)), 0)
    return start, next((at for at in range(verb + 1, len(low)) if ends(at)), len(low))


def _states(asked: _Asked, low: Sequence[str], verb: int, answer: str) -> bool:
    """Whether the question's words and the answer are around this verb in their roles."""
    mentions = (*asked.subject, *asked.rest)
    said = [one.casefold() for one in _answer_words(answer)]
    if asked.verb in ("be", "have", "do") or not mentions or not said:
        return False
    passive, (start, end) = _is_passive(low, verb), _clause(low, verb)
    own = {asked.verb, *(verb_key(word) for one in mentions for word in one.words)}
    if any(one in _HOPED and verb_key(one) not in own for one in low[start:end]):
        return False
    for one in mentions:
        wanted = {word.casefold() for word in one.words}
        if wanted <= set(said) or set(said) <= wanted:
            return False
    if not _have_roles(asked, low, verb):
        return False
    places = [at for at in _whole_places(said, low) if start <= at < end]
    return any(_answers(asked, low, at, len(said), verb, passive) for at in places)


def _have_roles(asked: _Asked, low: Sequence[str], verb: int) -> bool:
    """Whether all words of the question are around this verb in their roles."""
    either = asked.verb in _SYMMETRIC
    passive, (start, end) = _is_passive(low, verb), _clause(low, verb)
    for words, role, governor in (*asked.subject, *asked.rest):
        places = _places(words, low, whole=True)
        if not places:
            return False
        if governor in _CIRCUMSTANCES or (not governor and _TIME.fullmatch(words[-1])):
            continue
        inside = [at for at in places if start <= at < end]
        if inside and all(_is_aside(low, at, verb) for at in inside):
            return False
        part = any("of" in low[max(at - 2, 0) : at] for at in inside)  # "the nest of the swifts"
        free = part or governor in ("", "by") or governor in low[verb + 1 : verb + 4]  # "hand over"
        led = governor not in ("", "by") and governor in {_governor(low, at) for at in inside}
        alike = part or either or any(_role(low, at, verb, passive) is role for at in inside)
        if inside and not (led or (free and alike)):
            return False
        if not inside and (places[0] > start or not _stands_for(low, verb, role, passive)):
            return False
    return True


def _answers(
    asked: _Asked, low: Sequence[str], at: int, size: int, verb: int, passive: bool | None
) -> bool:
    """Whether the words at this position are what the question asks for."""
    words = low[at : at + size]
    verbal = any(one in _AUXILIARIES or (one in _IRREGULAR and _is_past(one)) for one in words)
    if verbal or at <= verb < at + size:
        return False
    if all(one in FUNCTION_WORDS | _GOVERNORS for one in words):
        return False
    role = None if _is_aside(low, at, verb) else _role(low, at, verb, passive)
    own = low[at] if low[at] in _GOVERNORS else _governor(low, at)
    if asked.governor == "of":
        own = "of" if "of" in low[max(at - 2, 0) : at] else own
    elif asked.governor == "to" and at == verb + 1:  # "lent Ina a tent"
        own = "to"
    if asked.gap is None:  # when, where, how: neither subject nor object
        return role is not None if asked.governor in ("", own) else False
    if asked.gap is Role.OTHER and asked.governor not in ("by", own) and not _is_nominal(low, verb):
        return False  # "in 2012" is not what somebody smokes
    # In "Petra bakes, you bring", the verb has another subject.
    return role is asked.gap and _SUBJECTS.isdisjoint(low[at + size : verb])


def _stands_for(low: Sequence[str], verb: int, role: Role, passive: bool | None) -> bool:
    """Whether a pronoun, or an omitted word, fills this role: "but admitted it"."""
    start, _ = _clause(low, verb)
    before = [one for one in low[start:verb] if one not in _BREAKS | _ADVERBS | _AUXILIARIES]
    if (role is Role.OTHER) is bool(passive):
        return not before or not {*_SUBJECTS, *_PRONOUNS}.isdisjoint(before)
    return low[verb] in _DO or not _PRONOUNS.isdisjoint(low[verb + 1 : verb + 4])


def _answer_words(answer: str) -> tuple[str, ...]:
    words = _split(answer)
    opening = takewhile(lambda one: one.casefold() in _DETERMINERS | {"by"}, words)
    return tuple(words[len([*opening]) :])


def _is_verb(low: Sequence[str], at: int) -> bool:
    """Whether this word is a verb and not a noun, as in "a call", "on loan", "its record"."""
    before = low[at - 1] if at else ""
    if low[at + 1 : at + 2] == [":"]:
        return False
    return _is_past(low[at]) or before not in _DETERMINERS | _GOVERNORS - {"to"}


def _fits(asked: _Asked, low: list[str], verb: int, answer: str) -> bool:
    passive = _is_passive(low, verb)
    for words, _, governor in asked.subject:  # "is derived from X" is not said of X
        led = {_governor(low, at) for at in _places(words, low)}
        if led and not governor and led <= _DIRECTIONS and not _is_nominal(low, verb):
            return False
    for at, (words, role, governor) in enumerate((*asked.subject, *asked.rest)):
        # Words that are neither names nor subject or object may be anywhere.
        core = any(map(_is_name, words)) or (not governor and at <= len(asked.subject))
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
    """Whether the words can have this role: no position in the clause contradicts it."""
    start, end = _clause(low, verb)
    places = [at for at in _places(words, low) if start <= at < end]
    if passive and role is Role.AGENT:  # "is included in the plan": the plan includes it
        places = [at for at in places if _governor(low, at) not in _CIRCUMSTANCES]
    found = [_role(low, at, verb, passive) for at in places]
    if role is not None and found and all(one not in (None, role) for one in found):
        return False
    led = {_governor(low, at) for at in places} & _DIRECTIONS
    if governor not in _DIRECTIONS or not led:
        return True
    return bool(led & ({"from"} if governor == "from" else _DIRECTIONS - {"from"}))


def _governor(low: Sequence[str], place: int, gap: int = _MAX_GAP) -> str:
    """The preposition of a noun phrase.

    "the" starts a phrase, so "in 1702 the treaty" has none. A time ends one: "on Friday night
    Anselm". "to his gardener, Tom Bick" has one.
    """
    if place > 2 and low[place - 1] == "," and _is_apposition(low, place):
        return _governor(low, place - 1, _MAX_GAP + 2)
    for at in range(place - 1, max(place - 1 - gap, -1), -1):
        if low[at] in _GOVERNORS or low[at] == "by":
            return "" if low[at] == "to" and low[at - 1 : at] == ["up"] else low[at]
        if _TIME.fullmatch(low[at]) and not _TIME.fullmatch(low[place]):
            return ""
        if low[at] in _BREAKS or (low[at] in _DETERMINERS and low[at] not in _POSSESSIVE):
            before = low[at - 1] if at and low[at] in _DETERMINERS else ""
            return before if before in _GOVERNORS or before == "by" else ""
    return ""


def _is_apposition(low: Sequence[str], place: int) -> bool:
    """Whether the words here are between a comma and the next punctuation mark, after a verb."""
    end = next((at for at in range(place, len(low)) if low[at] in _BREAKS), len(low))
    name = low[place:end]
    behind = any(one in _AUXILIARIES or _is_past(one) for one in low[: place - 1])
    return behind and len(name) <= _MAX_GAP and not any(one in FUNCTION_WORDS for one in name)


def _is_passive(low: Sequence[str], verb: int) -> bool | None:
    """Whether a verb is passive: "was (often) taught", "a song written by".

    None: cannot be told, as in "a system modelled after".
    """
    if not _is_past(low[verb]):
        return False
    near = low[max(verb - _MAX_GAP, 0) : verb]
    helper = max((at for at, one in enumerate(near) if one in _BE), default=None)
    following = low[verb + 1] if verb + 1 < len(low) else ""
    if following == "by" or (helper is not None and _BREAKS.isdisjoint(near[helper:])):
        return True
    if low[verb] == "born":
        return True
    if verb == 0 or low[verb - 1] in _BREAKS:
        return None
    start, end = _clause(low, verb)
    others = (one for at, one in enumerate(low[start:end], start) if at != verb)
    alone = not any(one in _AUXILIARIES or _is_past(one) for one in others)
    return None if following in _GOVERNORS | _BREAKS and not alone else False


def _role(low: Sequence[str], place: int, verb: int, passive: bool | None) -> Role | None:
    """The role of a word by the side of the verb it is on; None if that does not tell."""
    if _is_nominal(low, verb):
        return _role_to_noun(low, place, verb)
    if place == verb or passive is None:
        return None
    if place > verb:
        return Role.AGENT if passive and _governor(low, place) == "by" else Role.OTHER
    between = low[place:verb]
    if low[verb] == "born" and between[-1] in _BREAKS:  # "Ada (born 1815)", not "Ada and Max (born"
        apart = any(one in FUNCTION_WORDS | _BREAKS for one in between[:-1])
        return None if apart else Role.OTHER
    if "whom" in between:
        return Role.OTHER
    if not _POSSESSIVE.isdisjoint(between[:4]):  # "Nadia's cousin taught her"
        return None
    if ":" in between:  # "Lea: Jon reviewed it"
        return None
    if not passive and not _PRONOUNS.isdisjoint(low[verb + 1 : verb + 3]):
        start, _ = _clause(low, verb)
        subject = place >= start and {"who", "and"}.isdisjoint(between)
        return Role.AGENT if subject else None  # "Hedwig sat for Tan, who painted her"
    # "In the marsh, the herons eat ...", "the parents of X moved ..."
    if _governor(low, place) or "of" in low[max(place - 2, 0) : place] or ";" in between:
        return None
    return Role.OTHER if passive else Role.AGENT


def _is_aside(low: Sequence[str], place: int, verb: int) -> bool:
    """Whether a word before a verb belongs to another clause: "Vera, who taught Ada, left"."""
    before = reversed(low[:place])
    opening = next((one for one in before if one in _BREAKS or one in ("who", "which")), "")
    return opening in ("who", "which") and "," in low[place:verb]


def _role_to_noun(low: Sequence[str], place: int, noun: int) -> Role | None:
    """The role of a word to an action noun.

    "the defeat of OTHER by AGENT", "the lead of AGENT over OTHER", "AGENT's visit to OTHER", "a
    gift from AGENT to OTHER".
    """
    if place < noun:
        return Role.AGENT if not _POSSESSIVE.isdisjoint(low[place:noun]) else None
    rest = low[noun + 1 : place]
    if any(one in _AUXILIARIES | _BREAKS for one in rest):
        return None
    led = next((one for one in reversed(rest) if one in _GOVERNORS or one in ("of", "by")), "")
    end = next((at for at in range(place, len(low)) if low[at] in _BE | _BREAKS), len(low))
    phrase = low[noun + 1 : end]
    if led == "of":
        alone = not any(one in _GOVERNORS or one == "by" for one in phrase)
        owned = not _POSSESSIVE.isdisjoint(low[max(noun - 2, 0) : noun])
        return (
            None if alone and not owned else Role.OTHER if owned or "by" in phrase else Role.AGENT
        )
    by_from = led == "from" and "to" in phrase
    return Role.AGENT if led == "by" or by_from else Role.OTHER if led else None


def _places(mention: Sequence[str], low: Sequence[str], *, whole: bool = False) -> list[int]:
    """The positions of a mention, or of the name in it.

    Failing these, unless `whole`, the end of the name or the beginning of the rest.
    """
    wanted = [one.casefold() for one in mention]
    if not wanted or (found := _whole_places(wanted, low)):
        return found if wanted else []
    named = [one.casefold() for one in mention if _is_name(one)]
    if named and (len(named) < len(wanted) or not whole):
        return _whole_places(named, low) or ([] if whole else _whole_places(named[-1:], low))
    sizes = () if whole or named else range(len(wanted) - 1, 0, -1)
    return next((found for size in sizes if (found := _whole_places(wanted[:size], low))), [])


def _whole_places(wanted: Sequence[str], low: Sequence[str]) -> list[int]:
    size = len(wanted)
    return [at for at in range(len(low) - size + 1) if list(low[at : at + size]) == list(wanted)]


def _is_swapped(question: str, sentence: str) -> bool:
    """Whether two names have swapped their prepositions: "from A to B" and "from B to A"."""
    asked, said = map(_led_names, (question, sentence))
    for (one, led), (other, led_too) in pairwise(asked):
        here, there = said.count((one, led_too)), said.count((other, led))
        if led != led_too and here and there and (one, led) not in said:
            return True
    return False


def _led_names(text: str) -> list[tuple[str, str]]:
    """Names, each with the preposition before it."""
    found = _LED_NAME.finditer(text)
    return [(one["name"].casefold(), one["led"].casefold()) for one in found]


def _compare(question: str, sentence: str, answer: str) -> Agreement:
    """Check comparisons: who is older than whom, who is as heavy as whom."""
    asked = _COMPARED.search(question)
    copula = r"(?:who|what|which\b[^?]*?) (?:is|are|was|were)\b"
    if asked is None or not re.match(copula, question, re.IGNORECASE):
        return Agreement.UNKNOWN
    how = asked["as"] or asked["than"]
    said = re.search(rf"\b{how} (?:as|than)\b", sentence, re.IGNORECASE)
    words = {one.casefold() for one in _split(asked["other"])} - _DETERMINERS
    if said is None or _NEGATION.search(sentence):
        return Agreement.UNKNOWN
    low, high = (
        {one.casefold() for one in _split(part)}
        for part in (sentence[: said.start()], sentence[said.end() :])
    )
    found = {one.casefold() for one in _answer_words(answer)}
    if words <= high and found <= low:
        return Agreement.STATED
    crossed = found - words <= high and words - found <= low and not found <= low
    return Agreement.CONTRADICTED if crossed else Agreement.UNKNOWN


_OF_WHOM = (
    re.compile(  # "Who was the teacher of X?", "Who was X's teacher?", "Whose teacher was X?"
        r"^(?:who|what) (?:is|was|are|were) (?:the (?:[a-z]+ )*?(?P<noun>[a-z]+) of (?P<of>[^?]+)"
        r"|(?P<owner>[^?]+?)['’]s? (?:[a-z]+ )*?(?P<owned>[a-z]+))\W*$"
        r"|^whose (?:[a-z]+ )*?(?P<held>[a-z]+) (?:is|was|are|were) (?P<holder>[^?]+?)\W*$",
        re.IGNORECASE,
    )
)


def _possession(question: str, sentence: str, answer: str) -> Agreement:
    """Check whether "the teacher of X" is said about the right person."""
    found = _OF_WHOM.match(question.strip())
    if found is None:
        return Agreement.UNKNOWN
    noun = found["noun"] or found["owned"] or found["held"]
    owner = re.search(
        rf"\b{noun} of (?:the )?(?P<of>[^,;.]+)|(?P<own>[^,;.]+?)['’]s? (?:[a-z]+ )?{noun}\b",
        sentence,
        re.IGNORECASE,
    )
    if owner is None:
        return Agreement.UNKNOWN
    said = {one.casefold() for one in _split(owner["of"] or owner["own"])}
    whose = found["of"] or found["owner"] or answer
    other = answer if found["held"] is None else found["holder"]
    wanted, held = ({one.casefold() for one in _split(text)} for text in (whose, other))
    if not wanted & said and held <= said and other[:1].isupper():
        return Agreement.CONTRADICTED
    one, two = re.escape(other), re.escape(whose)
    be = r"(?:,|,? (?:is|was|are|were))?"
    stated = (  # "Rurik, the nephew of Anselm", "Anselm's nephew was Rurik"
        rf"{one}{be} (?:the |a |an )?(?:\w+ )?{noun} of (?:the )?{two}"
        rf"|\b{noun} of (?:the )?{two}{be} {one}|{two}['’]s? (?:\w+ )?{noun}{be} {one}"
        rf"|{one}{be} {two}['’]s? (?:\w+ )?{noun}"
    )
    plain = not _NEGATION.search(sentence) and re.search(stated, sentence)
    return Agreement.STATED if plain else Agreement.UNKNOWN


def _life(question: str, sentence: str, answer: str) -> Agreement:
    """Check life dates: in "Ada (1815 – 1852)" the first is the birth, the second the death."""
    asked = _LIFE.match(question.strip())
    if asked is None:
        return Agreement.UNKNOWN
    dates = re.search(
        rf"{re.escape(asked['who'])} \(([^()–—]*\d{{3}}[^()–—]*)[–—]([^()]*)\)", sentence
    )
    if dates is None:
        return Agreement.UNKNOWN
    own, other = dates.groups() if asked["what"] == "born" else dates.groups()[::-1]
    if answer in other and answer not in own:
        return Agreement.CONTRADICTED
    return Agreement.STATED if answer in own else Agreement.UNKNOWN


# --- negation


def _denies(clause: str, verb: str) -> bool:
    """Whether a clause negates something; not if the question itself asks for a denial."""
    found = (one.group() for one in _NEGATION.finditer(clause))
    return any(verb_key(one) != verb and not _names_action(one, verb) for one in found)


def _is_denied(asked: _Asked, question: str, sentence: str, answer: str) -> bool:
    """Whether what the question presupposes occurs only in clauses that negate it."""
    if _NEGATION.search(question):
        return False
    sentence = _FRONTED.sub(
        "", sentence.replace(answer, _ANSWER)
    )  # applies to all clauses: "For sale items, ..."
    clauses = [one for one in _CLAUSE_END.split(sentence) if one.strip()]
    denied = [one for one in clauses if _denies(one, asked.verb)]
    stated = [one for one in clauses if one not in denied]
    if not denied:
        return False
    own = next((one for one in stated if _ANSWER in one), None)
    missing, subject = (
        {verb_key(word) for one in mentions for word in one.words}
        for mentions in (asked.rest, asked.subject)
    )
    kinds = set(map(verb_key, asked.kind))
    for clause in stated:
        here = set(map(verb_key, _split(clause)))
        missing, subject, kinds = missing - here, subject - here, kinds - here
    there = {verb_key(word) for one in denied for word in _split(one)}
    missing, subject, kinds = missing & there, subject & there, kinds & there
    if own is None:
        return bool(missing | subject) and asked.verb in there
    words = [one.casefold() for one in _split(own)]
    if {"one", "ones"} & set(words):  # "the meeting on Monday ..., the one on Friday ..."
        subject &= {verb_key(one) for one in _split(question) if _is_name(one)}
    after = next(
        (words[at + 1 : at + 3] for at, one in enumerate(words) if verb_key(one) == asked.verb), []
    )
    if (kinds or (missing and asked.gap is None)) and _SUBSTITUTES.isdisjoint(after):
        return True
    first = words[0] if words else ""
    verbal = (_is_past(first) or _is_third(first)) and not _BE & set(words[1:2])
    elided = _SHARES_SUBJECT.match(own) or verbal
    return bool(subject) and not elided
