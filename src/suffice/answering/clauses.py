"""Clauses by rule: verb forms, the roles around a verb, and a question as a clause with a gap.

    Whom did Ada teach?        verb "teach", active; Ada is the agent, the gap is the other
    Mary was taught by Ada.    verb "taught", passive; Mary is the other, "by Ada" the agent

`parse_question` and `parse_yes_no_question` analyse a question, `find_clauses` finds its verb in a
sentence. `may_hold`, `holds` and `states` compare the two. Everything is decided by words and their
order, so many sentences are too hard: a role, or the voice of a verb, is then None.
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

MAX_WORDS = 20  # in a question that the rules can analyse
MAX_VERBS = 6  # examined per sentence: each is compared with every name
_MAX_GAP = 4  # words between "was" and its participle, or between a preposition and its name

_WORDS = VOCABULARY["roles_of_verbs"]
# Verbs and their forms
MODALS = frozenset("can could may might must shall should will would".split())
_DO = frozenset("do does did".split()) | MODALS
BE = frozenset("is are was were be been being am got gets get".split())
_AUXILIARIES = _DO | BE | frozenset("has have had having".split())
UNCHANGED = frozenset(_WORDS["unchanged"].split())
_IRREGULAR: dict[str, str] = {
    form: group.split()[0] for group in _WORDS["irregular"].split(";") for form in group.split()
} | {word: word for word in UNCHANGED}
_VERB_ENDINGS = {"ies": "y", "ied": "y", "ing": "", "ed": "", "es": "", "s": ""}
_NOUN_ENDINGS = tuple("ation ition ion ment al ance ence ure y e".split())
SYMMETRIC = frozenset(_WORDS["symmetric"].split())
CLAUSE_VERBS = frozenset(_WORDS["clause_verbs"].split("|"))
_HOPED = frozenset(_WORDS["hoped"].split())
# Other classes of words
_DIRECTIONS = frozenset("to from into onto".split())
_CIRCUMSTANCES = frozenset(_WORDS["circumstances"].split())  # prepositions of time, place, manner
_PREPOSITIONS = frozenset(_WORDS["prepositions"].split()) | _DIRECTIONS | _CIRCUMSTANCES
_TIME_CLAUSES = frozenset("after before until when once".split())
CONJUNCTIONS = "but although though whereas while yet however because".split()
DETERMINERS = frozenset("the a an its his her their our my your 's ’s this that".split())
_POSSESSIVE = frozenset(("'s", "’s"))
_SUBJECTS = frozenset("i you he she it we they".split())
_PRONOUNS = frozenset("him her them it one ones himself herself itself themselves".split())
_SPEAKERS = frozenset("i me my you your we us our".split())  # refers to whoever speaks in the text
_ADVERBS = frozenset("not never n't still also ever first finally then once".split())
_QUESTION_WORDS = frozenset("who whom whose what which when where why how".split())
_BREAKS = frozenset(", ; : ( ) .".split())
_NOT = re.compile(r"\b(?:not|never|no)\b|n['’]t\b", re.IGNORECASE)
_WORD = re.compile(
    r"['’]s\b|[^\W_](?:[\w.'’&/-]*?\w)??(?=['’]s\b|[^\w.'’&/-]|[.'’&/-]*(?:\s|$))|[,;:().]"
)
_MAY = "May_"  # not the verb: "in May", "May 2019"
_TIME = re.compile(
    rf"\d+|{'|'.join((*MONTHS, *WEEKDAYS))}|{_MAY}"
    r"|today|tonight|night|morning|noon|evening|week|year",
    re.IGNORECASE,
)


class Role(Enum):
    AGENT = "agent"  # who does it
    OTHER = "other"


class Argument(NamedTuple):
    """Words with a role at a verb: a name, or other content words."""

    words: tuple[str, ...]
    role: Role | None  # None for when, where, how
    preposition: str = ""


@dataclass(frozen=True, slots=True)
class QuestionClause:
    """The verb of a question, the arguments it names, and the gap: the argument it asks for."""

    verb: str  # its key
    gap: Argument  # without words; as a preposition also "why" and "how"
    subject: tuple[Argument, ...]  # before the verb
    rest: tuple[Argument, ...]
    kind: tuple[str, ...] = ()  # "fish" in "which fish"
    auxiliary: str = ""  # that opens a yes/no question

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return (*self.subject, *self.rest)

    @property
    def keys(self) -> set[str]:
        return {self.verb, *argument_keys(self.arguments)}


@dataclass(frozen=True, slots=True)
class Clause:
    """A verb of a sentence, or a noun for its action, and the clause around it."""

    words: Sequence[str]  # of the whole sentence, in lower case
    verb: int  # its position
    start: int
    end: int
    passive: bool | None  # None if it cannot be told, as in "a system modelled after"
    nominal: bool  # "the defeat of A by B"


def argument_keys(arguments: Sequence[Argument]) -> set[str]:
    return {verb_key(word) for one in arguments for word in one.words}


# --- words and their forms


def split_words(text: str) -> list[str]:
    """Words and punctuation marks. May, the month or a name, becomes `_MAY`."""
    words: list[str] = _WORD.findall(text)
    asks = text.rstrip().endswith("?")
    for at, (before, word, following) in enumerate(zip(("", *words), words, (*words[1:], ""))):
        opens = (not before or before in _BREAKS) and following.isalpha()
        if word == "May" and not (opens and (asks or following.islower())):
            words[at] = _MAY
    return words


def lower_words(text: str) -> list[str]:
    return [one.casefold() for one in split_words(text)]


def is_name(word: str) -> bool:
    return word[0].isupper() or not word.replace("-", "").isalpha()


@lru_cache(maxsize=4096)
def verb_key(word: str) -> str:
    """One key for the forms of a verb: "taught" and "teaches" are "teach"."""
    word = word.casefold()
    if known := _IRREGULAR.get(word) or _IRREGULAR.get(word.removesuffix("s")):
        return known
    for ending, base in _VERB_ENDINGS.items():
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and not word.endswith("ss"):
            word = stem + base
            break
    if known := _IRREGULAR.get(word):
        return known
    return re.sub(r"([bdgklmnprt])\1$", r"\1", word).removesuffix("e")


def is_past(word: str) -> bool:
    known = _IRREGULAR.get(word)
    return word.endswith("ed") if known is None else known != word or word in UNCHANGED


def _is_third_person(word: str) -> bool:
    return word.endswith("s") and not word.endswith("ss")


def _is_base(word: str) -> bool:
    other = is_past(word) or _is_third_person(word) or word.endswith("ing")
    return _IRREGULAR.get(word) == word or not other


def names_action(noun: str, verb: str) -> bool:
    """Whether a noun derives from a verb: "acquisition" from "acquir", "denial" from "deny"."""
    for ending in _NOUN_ENDINGS:
        if noun.endswith(ending):
            stem = re.sub("i$", "y", noun.removesuffix(ending))
            size = max(min(4, len(verb)), len(verb) - 1, len(stem) - 1)
            if stem[:size] == verb[:size]:
                return True
    return False


def occurrences(phrase: Sequence[str], words: Sequence[str]) -> list[int]:
    """The positions of all words of a phrase, in order."""
    size = len(phrase)
    return [at for at in range(len(words) - size + 1) if [*words[at : at + size]] == [*phrase]]


def places(phrase: Sequence[str], words: Sequence[str], *, whole: bool = False) -> list[int]:
    """The positions of a phrase, or of the name in it.

    Failing these, unless `whole`, the end of the name or the beginning of the rest.
    """
    wanted = [one.casefold() for one in phrase]
    name = [one.casefold() for one in phrase if is_name(one)]
    parts = [wanted, name]
    if not whole:
        parts += [name[-1:]] if name else [wanted[:size] for size in range(len(wanted) - 1, 0, -1)]
    return next((found for one in parts if one and (found := occurrences(one, words))), [])


# --- the question


def parse_question(question: str, sentence: Sequence[str]) -> QuestionClause | None:
    """A question with a question word, if the sentence (in lower case) has its verb."""
    words = [one for one in split_words(question) if one.casefold() not in _ADVERBS | {".", ":"}]
    low = [one.casefold() for one in words]
    wh = next((at for at, one in enumerate(low) if one in _QUESTION_WORDS), None)
    if wh is None or len(words) > MAX_WORDS or wh > (low[0] in _PREPOSITIONS | {"of"}):
        return None
    if not {"or", "whom"}.isdisjoint(low[wh + 1 :]) or not _SPEAKERS.isdisjoint(low):
        return None
    if verb := _verb_of_doer(low, sentence):  # "Who is the teacher of X?"
        return _agent_question(verb, words[5:])
    if finite := _finite_verb(words, low):  # "Who taught X?"
        return _agent_question(low[finite], words[finite + 1 :])
    aux = next((at for at, one in enumerate(low) if one in _AUXILIARIES), None)
    if aux is None or (main := _main_verb(words, low, aux, sentence)) is None:
        return None
    passive, subject, rest = _arguments_around(words, low, aux, main)
    gap = _gap(low, wh, aux, main, passive, bool(subject))
    kind = tuple(one for one in low[wh + 1 : aux] if one not in FUNCTION_WORDS)
    return QuestionClause(verb_key(low[main]), gap, subject, rest, kind)


def parse_yes_no_question(question: str, sentence: Sequence[str]) -> QuestionClause | None:
    """A question that opens with an auxiliary, if the sentence (in lower case) has its verb."""
    skipped = _ADVERBS | _BREAKS | {"any"}
    words = [one for one in split_words(question) if one.casefold() not in skipped]
    low = [one.casefold() for one in words]
    if not low or low[0] not in _AUXILIARIES or len(low) > MAX_WORDS or _NOT.search(question):
        return None
    if not _SPEAKERS.union({"or", "both"}).isdisjoint(low):
        return None
    if (main := _main_verb(words, low, 0, sentence)) is None:
        return None
    _, subject, rest = _arguments_around(words, low, 0, main)
    gap = Argument((), None)
    return QuestionClause(verb_key(low[main]), gap, subject, rest, auxiliary=low[0])


def _agent_question(verb: str, rest: Sequence[str]) -> QuestionClause:
    gap = Argument((), Role.AGENT)
    return QuestionClause(verb_key(verb), gap, (), tuple(_arguments(rest, Role.OTHER)))


def _verb_of_doer(low: list[str], sentence: Sequence[str]) -> str | None:
    """For "who is the teacher of ...", the verb "teach", if the sentence has it."""
    match low:
        case ["who", be, "the", doer, "of", *_] if be in BE and re.fullmatch(r".{4,}[eo]r", doer):
            keys = {verb_key(one) for one in sentence}
            return next((one for cut in (-2, -1) if (one := verb_key(doer[:cut])) in keys), None)
    return None


def _finite_verb(words: list[str], low: list[str]) -> int | None:
    """The verb whose subject is asked for: the first after the question word and its noun."""
    if low[0] not in ("who", "what", "which"):
        return None
    for at in range(1, len(words)):
        if low[at] in _AUXILIARIES | _PREPOSITIONS - {"by"} or is_name(words[at]):
            return None
        # "which animals chased", "which version of postgres does it use"
        noun = (at == 1 and low[0] == "which") or low[at - 1] == "of"
        if not noun and (is_past(low[at]) or _is_third_person(low[at])):
            return at
    return None


def _main_verb(words: list[str], low: list[str], aux: int, sentence: Sequence[str]) -> int | None:
    """The verb after "did", "was" or "has" and its subject, if the sentence has that verb."""
    takes_base = low[aux] in _DO
    first = aux + 2 if takes_base else aux + 1  # "did" has a subject before the verb
    for at in range(first, len(words)):
        word, key = low[at], verb_key(low[at])
        empty = word in FUNCTION_WORDS and word not in _IRREGULAR
        if empty or is_name(words[at]) or low[at - 1] in DETERMINERS:  # a noun: "the record"
            continue
        forms = {one for one in sentence if verb_key(one) == key}
        forms = forms or {one for one in sentence if names_action(one, key)}
        if not forms or not (_is_base(word) if takes_base else is_past(word)):
            continue
        inflected = forms != {word} or not _DO.isdisjoint(sentence)
        if not takes_base or inflected or _is_used(word, sentence):
            return at
    return None


def _is_used(base: str, words: Sequence[str]) -> bool:
    """Whether a sentence uses this form as a verb ("the herons eat") or as "the lead of"."""
    for before, word, following in zip(("", *words), words, (*words[1:], "")):
        plural = _is_third_person(before) or before in ("to", "they", "who")
        known = _IRREGULAR.get(base) == base and before not in DETERMINERS | _PREPOSITIONS
        if word == base and (plural or known or following == "of"):
            return True
    return False


def _arguments_around(
    words: list[str], low: list[str], aux: int, main: int
) -> tuple[bool, tuple[Argument, ...], tuple[Argument, ...]]:
    """Whether the question is passive, its subject, and the arguments after its verb."""
    passive = low[aux] in BE or low[main - 1] == "been"
    subject = _arguments(words[aux + 1 : main], Role.OTHER if passive else Role.AGENT)
    rest = (
        one._replace(role=Role.AGENT) if passive and one.preposition == "by" else one
        for one in _arguments(words[main + 1 :], Role.OTHER)
    )
    return passive, tuple(subject), tuple(rest)


def _gap(
    low: list[str], wh: int, aux: int, main: int, passive: bool, has_subject: bool
) -> Argument:
    """What a question with an auxiliary asks for."""
    preposition = low[wh - 1] if wh else low[-1] if low[-1] in _PREPOSITIONS else ""
    fronted = bool(wh) and preposition in _CIRCUMSTANCES  # "in which year", but not "depend on"
    adverbial = low[wh] in ("when", "where", "why", "how", "whose") or fronted
    if low[wh] == "why" or (low[wh] == "how" and wh + 1 == aux):  # the position does not tell
        preposition = low[wh]
    role: Role | None = None
    if not has_subject and _SUBJECTS.isdisjoint(low[aux + 1 : main]):
        # "Who was taught by X?", but not "What did they call X?"
        role = Role.OTHER if passive else Role.AGENT
    elif not adverbial and (not passive or preposition == "by"):
        role = Role.AGENT if preposition == "by" else Role.OTHER
    return Argument((), role, preposition)


def _arguments(words: Sequence[str], role: Role) -> Iterator[Argument]:
    """Names and other content words, each with the preposition that governs it."""
    run: list[str] = []
    preposition = ""
    for word, following in pairwise((*words, ",", ",")):
        low = word.casefold()
        if run and is_name(run[-1]) and low == "of" and is_name(following):
            run.append(word)  # "the Treaty of Morn"
            continue
        plain = low in FUNCTION_WORDS | _PREPOSITIONS | _BREAKS | _POSSESSIVE | {"been"}
        if not plain:
            run.append(word)
            continue
        if run:
            yield Argument(tuple(run), role, preposition)
            run = []
        if low in _PREPOSITIONS:
            preposition = low
        elif low not in DETERMINERS | {"of"}:
            preposition = ""


# --- the sentence


def find_clauses(verb: str, words: Sequence[str]) -> list[Clause]:
    """The clauses of a sentence (in lower case) with this verb, or else a noun for its action."""
    same = [at for at, one in enumerate(words) if verb_key(one) == verb]
    found = [at for at in same if _is_verb(words, at)]
    if found and words[-2:-1] and words[-2] in _DO:  # "..., but their mother does."
        found.append(len(words) - 2)
    if not found:
        nouns = (at for at, one in enumerate(words) if at in same or names_action(one, verb))
        found = [at for at in nouns if _is_nominal(words, at)]
    return [_clause_around(words, at) for at in found[:MAX_VERBS]]


def _is_verb(words: Sequence[str], at: int) -> bool:
    """Whether this word is a verb and not a noun, as in "a call", "on loan", "its record"."""
    before = words[at - 1] if at else ""
    if words[at + 1 : at + 2] == [":"]:
        return False
    return is_past(words[at]) or before not in DETERMINERS | _PREPOSITIONS - {"to"}


def _is_nominal(words: Sequence[str], at: int) -> bool:
    """Whether a noun stands for the verb: "the defeat of A by B", "A's attack on B"."""
    if _is_verb(words, at) and not words[at].endswith(_NOUN_ENDINGS):
        return False
    owned = not _POSSESSIVE.isdisjoint(words[max(at - 2, 0) : at])
    return owned or words[at + 1 : at + 2] in (["of"], ["from"], ["by"])


def _clause_around(words: Sequence[str], verb: int) -> Clause:
    """The clause of a verb, bounded by conjunctions and punctuation."""
    key = verb_key(words[verb])

    def ends(at: int) -> bool:
        word, following = words[at], words[at + 1] if at + 1 < len(words) else ""
        if word == ".":
            return at > 0 and len(words[at - 1]) > 3
        if word in _TIME_CLAUSES and _opens_clause(words, at):
            return True
        if word == "and":
            joined = following in _AUXILIARIES | CLAUSE_VERBS or is_past(following)
            return joined or verb_key(following) == key  # "is led by Ann and leads Bob"
        return word in (";", *CONJUNCTIONS) or (word == "so" and words[at - 1] == ",")

    start = next((at + 1 for at in range(verb - 1, -1, -1) if ends(at)), 0)
    end = next((at for at in range(verb + 1, len(words)) if ends(at)), len(words))
    passive = _is_passive(words, verb, [*words[start:verb], *words[verb + 1 : end]])
    return Clause(words, verb, start, end, passive, _is_nominal(words, verb))


def _opens_clause(words: Sequence[str], at: int) -> bool:
    """Whether a clause follows: "after Max had read it", not "after the defeat"."""
    near = [*takewhile(lambda one: one not in _BREAKS, words[at + 1 : at + 2 + _MAX_GAP])]
    return any(one in _AUXILIARIES or is_past(one) for one in near[1:])


def _is_passive(words: Sequence[str], verb: int, others: Sequence[str]) -> bool | None:
    """Whether a verb is passive: "was (often) taught", "a song written by"; see `Clause`."""
    if not is_past(words[verb]):
        return False
    following = words[verb + 1] if verb + 1 < len(words) else ""
    near = takewhile(
        lambda one: one not in _BREAKS, reversed(words[max(verb - _MAX_GAP, 0) : verb])
    )
    if following == "by" or words[verb] == "born" or not BE.isdisjoint(near):
        return True
    if verb == 0 or words[verb - 1] in _BREAKS:
        return None
    alone = not any(one in _AUXILIARIES or is_past(one) for one in others)
    return None if following in _PREPOSITIONS | _BREAKS and not alone else False


def _preposition_at(words: Sequence[str], place: int, reach: int = _MAX_GAP) -> str:
    """The preposition of a noun phrase.

    "the" starts a phrase, so "in 1702 the treaty" has none. A time ends one: "on Friday night
    Anselm". "to his gardener, Tom Bick" has one.
    """
    if place > 2 and words[place - 1] == "," and _is_apposition(words, place):
        return _preposition_at(words, place - 1, _MAX_GAP + 2)
    for at in range(place - 1, max(place - 1 - reach, -1), -1):
        word = words[at]
        if word in _PREPOSITIONS:
            return "" if word == "to" and words[at - 1 : at] == ["up"] else word
        if _TIME.fullmatch(word) and not _TIME.fullmatch(words[place]):
            return ""
        if word in _BREAKS or (word in DETERMINERS and word not in _POSSESSIVE):
            before = words[at - 1] if at and word in DETERMINERS else ""
            return before if before in _PREPOSITIONS else ""
    return ""


def _is_apposition(words: Sequence[str], place: int) -> bool:
    """Whether the words here are between a comma and the next punctuation mark, after a verb."""
    end = next((at for at in range(place, len(words)) if words[at] in _BREAKS), len(words))
    name = words[place:end]
    behind = any(one in _AUXILIARIES or is_past(one) for one in words[: place - 1])
    return behind and len(name) <= _MAX_GAP and not any(one in FUNCTION_WORDS for one in name)


def _role_at(clause: Clause, place: int) -> Role | None:
    """The role of a word by the side of the verb it is on; None if that does not tell."""
    if clause.nominal:
        return _role_to_noun(clause.words, place, clause.verb)
    if place == clause.verb or clause.passive is None:
        return None
    if place < clause.verb:
        return _role_before(clause, place)
    by = clause.passive and _preposition_at(clause.words, place) == "by"
    return Role.AGENT if by else Role.OTHER


def _role_before(clause: Clause, place: int) -> Role | None:
    words, verb = clause.words, clause.verb
    between = words[place:verb]
    if words[verb] == "born" and between[-1] in _BREAKS:  # "Ada (born", not "Ada and Max (born"
        apart = any(one in FUNCTION_WORDS | _BREAKS for one in between[:-1])
        return None if apart else Role.OTHER
    if "whom" in between:
        return Role.OTHER
    # "Nadia's cousin taught her", "Lea: Jon reviewed it"
    if not _POSSESSIVE.isdisjoint(between[:4]) or ":" in between:
        return None
    if not clause.passive and not _PRONOUNS.isdisjoint(words[verb + 1 : verb + 3]):
        subject = place >= clause.start and {"who", "and"}.isdisjoint(between)
        return Role.AGENT if subject else None  # "Hedwig sat for Tan, who painted her"
    # "In the marsh, the herons eat ...", "the parents of X moved ..."
    if _preposition_at(words, place) or _is_part(words, place) or ";" in between:
        return None
    return Role.OTHER if clause.passive else Role.AGENT


def _role_to_noun(words: Sequence[str], place: int, noun: int) -> Role | None:
    """The role of a word to an action noun.

    "the defeat of OTHER by AGENT", "the lead of AGENT over OTHER", "AGENT's visit to OTHER", "a
    gift from AGENT to OTHER".
    """
    if place < noun:
        return Role.AGENT if not _POSSESSIVE.isdisjoint(words[place:noun]) else None
    between = words[noun + 1 : place]
    if not (_AUXILIARIES | _BREAKS).isdisjoint(between):
        return None
    own = next((one for one in reversed(between) if one in _PREPOSITIONS | {"of"}), "")
    end = next((at for at in range(place, len(words)) if words[at] in BE | _BREAKS), len(words))
    phrase = words[noun + 1 : end]
    if own == "of":
        owned = not _POSSESSIVE.isdisjoint(words[max(noun - 2, 0) : noun])
        if owned or "by" in phrase:
            return Role.OTHER
        return None if _PREPOSITIONS.isdisjoint(phrase) else Role.AGENT
    if own == "by" or (own == "from" and "to" in phrase):
        return Role.AGENT
    return Role.OTHER if own else None


def _is_part(words: Sequence[str], place: int) -> bool:
    """Whether "of" is before a noun phrase: "the nest of the swifts"."""
    return "of" in words[max(place - 2, 0) : place]


def _is_aside(clause: Clause, place: int) -> bool:
    """Whether a word before a verb belongs to another clause: "Vera, who taught Ada, left"."""
    words = clause.words
    before = (one for one in reversed(words[:place]) if one in _BREAKS | {"who", "which"})
    return next(before, "") in ("who", "which") and "," in words[place : clause.verb]


def _stands_for(clause: Clause, role: Role | None) -> bool:
    """Whether a pronoun, or an omitted word, fills this role: "but admitted it"."""
    words, verb = clause.words, clause.verb
    if (role is Role.OTHER) is bool(clause.passive):
        before = {*words[clause.start : verb]} - _BREAKS - _ADVERBS - _AUXILIARIES
        return not before or not (_SUBJECTS | _PRONOUNS).isdisjoint(before)
    return words[verb] in _DO or not _PRONOUNS.isdisjoint(words[verb + 1 : verb + 4])


def lacks_subject(words: Sequence[str]) -> bool:
    """Whether a clause opens with its verb: "visited Bonn in 2015"."""
    first = words[0] if words else ""
    return (is_past(first) or _is_third_person(first)) and BE.isdisjoint(words[1:2])


# --- the question beside a clause


def may_hold(asked: QuestionClause, clause: Clause, answer: tuple[str, ...] = ()) -> bool:
    """Whether no word of question and answer is in a place that excludes its role."""
    for words, _, preposition in asked.subject:  # "is derived from X" is not said of X
        own = {_preposition_at(clause.words, at) for at in places(words, clause.words)}
        if own and not preposition and own <= _DIRECTIONS and not clause.nominal:
            return False
    for at, one in enumerate(asked.arguments):
        # Words that are neither names nor subject or object may be anywhere.
        core = any(map(is_name, one.words)) or (not one.preposition and at <= len(asked.subject))
        if core and one.preposition not in _CIRCUMSTANCES and not _may_stand(one, clause):
            return False
    return _may_stand(asked.gap._replace(words=answer), clause)


def _may_stand(argument: Argument, clause: Clause) -> bool:
    words, role, preposition = argument
    found = {
        at: _preposition_at(clause.words, at)
        for at in places(words, clause.words)
        if clause.start <= at < clause.end
    }
    if clause.passive and role is Role.AGENT:  # "is included in the plan": the plan includes it
        found = {at: own for at, own in found.items() if own not in _CIRCUMSTANCES}
    roles = {_role_at(clause, at) for at in found}
    if role is not None and roles and roles.isdisjoint((None, role)):
        return False
    own = _DIRECTIONS.intersection(found.values())
    if preposition not in _DIRECTIONS or not own:
        return True
    return "from" in own if preposition == "from" else own != {"from"}


def is_given_to(asked: QuestionClause, words: list[str], answer: Sequence[str]) -> bool:
    """Whether the answer is B in "a gift from A to B", and the question asks who gave it to A."""
    if asked.gap.role is not Role.AGENT or "from" not in words:
        return False
    start = words.index("from")
    middle = words.index("to", start) if "to" in words[start:] else len(words)
    taker = occurrences([one.casefold() for one in answer], words[middle:])
    givers = (places(one.words, words[start:middle], whole=True) for one in asked.rest)
    return bool(taker) and taker[0] <= 2 and any(givers)


def holds(asked: QuestionClause, clause: Clause) -> bool:
    """Whether every word of the question is in a place that proves its role."""
    if not asked.arguments or not _HOPED.isdisjoint(other_words(asked, clause)):
        return False
    return all(_stands(one, clause, asked.verb in SYMMETRIC) for one in asked.arguments)


def other_words(asked: QuestionClause, clause: Clause) -> set[str]:
    """The words of a clause that the question does not have."""
    keys = asked.keys
    return {one for one in clause.words[clause.start : clause.end] if verb_key(one) not in keys}


def _stands(argument: Argument, clause: Clause, either: bool) -> bool:
    """Whether the words have this role; either role will do at a symmetric verb."""
    phrase, role, preposition = argument
    words, verb = clause.words, clause.verb
    found = places(phrase, words, whole=True)
    if not found:
        return False
    if preposition in _CIRCUMSTANCES or (not preposition and _TIME.fullmatch(phrase[-1])):
        return True
    inside = [at for at in found if clause.start <= at < clause.end]
    if not inside:
        return found[0] <= clause.start and _stands_for(clause, role)
    if all(_is_aside(clause, at) for at in inside):
        return False
    if any(_is_part(words, at) for at in inside):
        return True
    if preposition not in ("", "by"):
        if preposition in {_preposition_at(words, at) for at in inside}:
            return True
        if preposition not in words[verb + 1 : verb + 4]:  # "hand over"
            return False
    return either or any(_role_at(clause, at) is role for at in inside)


def has_all_words(asked: QuestionClause, clause: Clause, cased: Sequence[str]) -> bool:
    """Whether a clause has all words of the question, or pronouns for them; in no longer name."""
    keys = [verb_key(one) for one in clause.words[: clause.end]]
    for words, role, _ in asked.arguments:
        found = occurrences([verb_key(one) for one in words], keys)
        after = (cased[at + len(words)] for at in found if at + len(words) < len(cased))
        if is_name(words[-1]) and any(one[0].isupper() for one in after):
            return False  # "Hotel Mira" is not "Hotel Mira Beach"
        if not found or (found[-1] < clause.start and not _stands_for(clause, role)):
            return False
    return True


def states(asked: QuestionClause, clause: Clause, answer: tuple[str, ...]) -> bool:
    """Whether the question holds in a clause and the answer fills its gap."""
    words = [one.casefold() for one in answer]
    if asked.verb in ("be", "have", "do") or not _is_noun_phrase(words) or not holds(asked, clause):
        return False
    for one in asked.arguments:
        named = {word.casefold() for word in one.words}
        if named.issuperset(words) or named.issubset(words):
            return False
    inside = (at for at in occurrences(words, clause.words) if clause.start <= at < clause.end)
    return any(_fills_gap(asked.gap, clause, at, at + len(words)) for at in inside)


def _is_noun_phrase(words: Sequence[str]) -> bool:
    if any(one in _AUXILIARIES or (one in _IRREGULAR and is_past(one)) for one in words):
        return False
    return any(one not in FUNCTION_WORDS | _PREPOSITIONS for one in words)


def _fills_gap(gap: Argument, clause: Clause, at: int, end: int) -> bool:
    """Whether the words at this position are what the question asks for."""
    words, verb = clause.words, clause.verb
    if at <= verb < end:
        return False
    role = None if _is_aside(clause, at) else _role_at(clause, at)
    own = words[at] if words[at] in _PREPOSITIONS else _preposition_at(words, at)
    if gap.preposition == "of" and _is_part(words, at):
        own = "of"
    elif gap.preposition == "to" and at == verb + 1:  # "lent Ina a tent"
        own = "to"
    if gap.role is None:  # when, where, how: neither subject nor object
        return role is not None and gap.preposition in ("", own)
    if gap.role is Role.OTHER and gap.preposition not in ("by", own) and not clause.nominal:
        return False  # "in 2012" is not what somebody smokes
    # In "Petra bakes, you bring", the verb has another subject.
    return role is gap.role and _SUBJECTS.isdisjoint(words[end:verb])
