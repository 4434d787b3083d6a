"""Verbs and nouns that say the same from the other side, and verbs that deny one another.

    Who bought the mill from Cora?    Cora sold the mill to Odo.

The question has another verb than the sentence. `as_converse` gives it the sentence's verb: to whom
did Cora sell the mill? `as_opposite` gives it a verb that denies it: "reject" for "approve". The
tables are in `vocabulary.toml`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from suffice.answering.answer_type import VOCABULARY
from suffice.answering.clauses import (
    Argument,
    QuestionClause,
    Role,
    is_name,
    lower_words,
    verb_key,
)

Parse = Callable[[str, Sequence[str]], QuestionClause | None]
_WORDS = VOCABULARY["roles_of_verbs"]


class Converse(NamedTuple):
    """Beside "buy": "sell", whose subject is `here` ("from") at "buy"; `there` ("to") is the
    preposition that the subject of "buy" has at "sell". Without a preposition it is the object.
    """

    verb: str
    here: str
    there: str


def _read_converses(table: str) -> Mapping[str, tuple[Converse, ...]]:
    found = defaultdict[str, list[Converse]](list)
    for line in filter(str.strip, table.split(";")):
        one, other = ((*side.split(), "")[:2] for side in line.split(":"))
        for (verb, here), (converse, there) in ((one, other), (other, one)):
            found[verb_key(verb)].append(Converse(verb_key(converse), here, there))
    return {verb: tuple(some) for verb, some in found.items()}


def _read_sides(
    table: str, key: Callable[[str], str] = str.casefold
) -> Mapping[str, frozenset[str]]:
    found = defaultdict[str, set[str]](set)
    for line in filter(str.strip, table.split(";")):
        sides = [[key(one) for one in side.split()] for side in line.split(":")]
        for words, others in (sides, sides[::-1]):
            for word in words:
                found[word].update(others)
    return {word: frozenset(some) for word, some in found.items()}


_CONVERSES = _read_converses(_WORDS["converses"])
_OPPOSITES = _read_sides(_WORDS["opposites"], verb_key)
_NOUNS = _read_sides(_WORDS["converse_nouns"])
_COMPARATIVES = _read_sides(_WORDS["comparatives"])
_CLAUSE_WORDS = frozenset("who whom whose which that where when while because if".split())
_ORDER = {"before": "after", "after": "before"}


def converse_nouns(noun: str) -> frozenset[str]:
    """Nouns for the other side of a relation: "pupil" and "student" for "teacher"."""
    return _NOUNS.get(noun.casefold(), frozenset())


def opposite_comparatives(word: str) -> frozenset[str]:
    """Comparatives that say the same with both sides exchanged: "younger" for "older"."""
    return _COMPARATIVES.get(word.casefold(), frozenset())


def as_converse(parse: Parse, question: str, words: Sequence[str]) -> QuestionClause | None:
    """The question with the verb of the sentence (in lower case), if that is a converse of its own:
    "buy" and "sell", or the same verb with "before" and "after".
    """
    keys = {verb_key(one) for one in words}
    asks_whom = not {"who", "whom"}.isdisjoint(lower_words(question))
    for verb, asked in _parsed(parse, question, words, _CONVERSES):
        for one in _CONVERSES[verb]:
            if verb not in keys and one.verb in keys:
                return _turn(asked, one, asks_whom)
    low = set(lower_words(question))
    for here, there in _ORDER.items():
        if here in low and there in words and here not in words and there not in low:
            same = parse(question, words)
            if same is not None and any(part.preposition == here for part in same.rest):
                return _turn(same, Converse(same.verb, here, there), asks_whom)
    return None


def as_opposite(parse: Parse, question: str, words: Sequence[str]) -> QuestionClause | None:
    """The question with a verb of the sentence that denies its own: "reject" for "approve"."""
    keys = {verb_key(one) for one in words}
    for verb, asked in _parsed(parse, question, words, _OPPOSITES):
        for other in _OPPOSITES[verb] & keys:
            if verb not in keys:
                return replace(asked, verb=other)
    return None


def _parsed(
    parse: Parse, question: str, words: Sequence[str], table: Mapping[str, object]
) -> Iterator[tuple[str, QuestionClause]]:
    """The question's verbs that a table has, each with the question as a clause of this verb; none
    of a question with a second clause, which may have this verb: "the man who taught Ann".
    """
    low = lower_words(question)
    if not _CLAUSE_WORDS.isdisjoint(low[2:]):  # before, they ask: "From whom ..."
        return
    for word in dict.fromkeys(low):
        verb = verb_key(word)
        if verb not in table:
            continue
        # Forms that the question does not have, so that they count as verbs of the sentence.
        forms = [one for one in (f"{verb}ing", f"{word}ing") if verb_key(one) == verb]
        asked = parse(question, [*words, *forms])
        if asked is not None and asked.verb == verb:
            yield verb, asked


def _turn(asked: QuestionClause, one: Converse, asks_whom: bool) -> QuestionClause:
    """The same question about the same event, seen from the other side."""
    other_side = _counterpart(asked, one, asks_whom)

    def turned(part: Argument) -> Argument:
        if part.role is Role.AGENT:
            # "sold Odo the mill", "sold the mill to Odo": without "to", either will do.
            there = "" if one.there == "to" and part.words else one.there
            return part._replace(role=Role.OTHER, preposition=there)
        if part is other_side:
            return part._replace(role=Role.AGENT, preposition="")
        return part

    parts = [*map(turned, asked.arguments)]
    subject, rest = (
        tuple(part for part in parts if (part.role is Role.AGENT) is first)
        for first in (True, False)
    )
    return replace(asked, verb=one.verb, gap=turned(asked.gap), subject=subject, rest=rest)


def _counterpart(asked: QuestionClause, one: Converse, asks_whom: bool) -> Argument | None:
    """What is the subject of the other verb; None if the question does not say."""
    every = [asked.gap, *asked.subject, *asked.rest]
    objects = [part for part in every if part.role is Role.OTHER]
    if one.here and asked.gap.preposition == one.here:
        return asked.gap  # "For whom does Ann work?"
    led = next((part for part in objects if part.preposition == one.here), None)
    if led is not None or one.here != "to":
        return led
    bare = [part for part in objects if not part.preposition]
    if asked.gap in bare:  # "Whom did Ann teach the violin?"
        return asked.gap if asks_whom else next(iter(bare[1:]), None)
    if len(bare) > 1 or (bare and is_name(bare[0].words[0])):  # "Who lent Ilse the projector?"
        return bare[0]
    return None
