"""Which span of a sentence is the answer: the one of the right form that stands nearest to the word that says it.

Lives are read by their own rules, since encyclopaedias write them so: "(born in A, 1 May 1900 – 2 June 1980 in B)".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from suffice.reason.spans import COUNTRIES, PEOPLES, Expects, Span, spans
from suffice.reason.wanted import BORN, DIED, Wanted, stem
from suffice.text import EMPTY_WORDS, title_key

__all__ = ["best_span"]

KNOWN, OF_THE_KIND = 25, 80  # letters by which a title may stand further off, and one of the kind that is asked for
COUNTED = 40  # letters between a number and what it counts
_MONTHS = frozenset(
    "january february march april may june july august september october november december monday tuesday wednesday thursday "
    "friday saturday sunday he she it they his her in the this".split()
)
_NAMES = (Expects.PERSON, Expects.PLACE, Expects.THING)
_KIN = frozenset(map(stem, "father mother son daughter child spouse wife husband sibling brother sister".split()))
_DASH = re.compile(r"\s*(?:–|—|-|to|;)\s*")
_AT = re.compile(r"\b(?:in|at|near)\s+(?:the\s+)?$")
_OF_PEOPLE = frozenset("from nationality nationalities citizenship citizen".split())
_PEOPLE = re.compile(r"\b(?:is|was|were|are) (?:an?|the)\b")


def best_span(asked: Wanted, expects: Expects, text: str, title: str, known: Mapping[str, bool]) -> Span | None:
    """The span that answers best; None where nothing in the sentence looks like the answer.

    `known` are the titles at hand, and whether what bears it is of the kind that is asked for.
    """
    found = [one for one in spans(text, expects) if not _of_the_question(one, asked, title, expects)]
    days = spans(text, Expects.DATE)
    if expects in (*_NAMES, Expects.NUMBER):
        found = [one for one in found if not any(day.start <= one.start < day.end for day in days)]
    if asked.life and expects is Expects.DATE:
        return _life_date(found, text, asked.life)
    if asked.life and expects is Expects.PLACE:
        return _life_place(days, text, asked, title)
    if expects is Expects.PERSON:
        found = [one for one in found if not _no_person(one, text, known)]
    if not found:
        return None
    if expects is Expects.COUNTRY:
        return _land(found) if _OF_PEOPLE.isdisjoint(asked.words) else _people(found, text)
    if expects is Expects.PERSON and "mothe" in asked.stems and not re.search(r"\bmother\b", text):
        return _mother(found, text)
    cues = [one.span() for one in re.finditer(r"\w+", text) if stem(one.group().casefold()) in asked.cues]
    if expects is Expects.NUMBER and "many" in asked.words:
        return _counted(found, cues)
    return min(found, key=lambda one: _distance(one, cues) - _favour(title_key(one.text), asked, known))


def _favour(key: str, asked: Wanted, known: Mapping[str, bool]) -> int:
    """A name with a document of its own is more often asked for than one that is only mentioned; more so if of the kind.

    Which county, which award, which church: many a name says of which kind it is. Kin are all persons: there the place decides.
    """
    if asked.kind and asked.kind[-1] in map(stem, key.split()):
        return OF_THE_KIND
    titles = [title for title in known if title == key or (" " in key and title.startswith(f"{key} "))]
    if any(known[title] for title in titles) and _KIN.isdisjoint(asked.stems):
        return OF_THE_KIND
    return KNOWN if titles else 0


def _of_the_question(span: Span, asked: Wanted, title: str, expects: Expects) -> bool:
    """What the question itself names is not its answer."""
    if expects in (Expects.DATE, Expects.NUMBER):
        return title_key(span.text) in asked.words
    key = title_key(span.text)
    if not key or key in _MONTHS:
        return True
    if expects in (Expects.COUNTRY, Expects.KIND):
        return False
    if key in PEOPLES or (expects is Expects.PERSON and key in COUNTRIES):
        return True
    about = title if any(title and (title in name or name in title) for name in asked.names) else ""
    return any(_same_name(key, name) for name in (*asked.names, about) if name)


def _same_name(one: str, other: str) -> bool:
    """One inside the other, or with the same ends: "Taylor Alison Swift" is Taylor Swift."""
    some, others = one.split(), other.split()
    same_ends = len(some) > 1 and len(others) > 1 and (some[0], some[-1]) == (others[0], others[-1])
    return same_ends or f" {one} " in f" {other} " or f" {other} " in f" {one} "


def _no_person(span: Span, text: str, known: Mapping[str, bool]) -> bool:
    """A people ("Puerto Rican singer"), or a word that has its capital only from opening the sentence ("Founded in")."""
    words, behind = span.text.split(), re.match(r"\s+([a-z]+)", text[span.end :])
    if title_key(span.text) in known:
        return False
    if all(part.casefold() in PEOPLES for part in re.split(r"[\s-]+", span.text)):
        return True
    if behind and re.search(r"(?:an|ese|ish)$", words[-1]) and not _goes_on(behind[1]):
        return True
    return span.start == 0 and len(words) == 1 and re.search(r"(?:ed|ing)$", span.text) is not None


def _goes_on(word: str) -> bool:
    """Does such a word tell more of a name, rather than being what an adjective stands before?"""
    return word in EMPTY_WORDS or re.search(r"(?:ing|ed)$", word) is not None


# ------------------------------------------------------------------------------------------------------- lives


def _life_date(found: Sequence[Span], text: str, which: str) -> Span | None:
    """Born: the date behind the word, or the first of a life's. Died: the one behind the word, or the second of a life's."""
    life = _life(found, text)
    word = (BORN if which == "birth" else DIED).search(text)
    behind = [one for one in found if word and one.start > word.start()]
    if which == "birth":
        if life and not (behind and behind[0].start < life[0].start):
            return life[0]
        if behind:
            return behind[0]
        alone = [one for one in found if text.rfind("(", 0, one.start) > text.rfind(")", 0, one.start)]
        return alone[0] if alone and not DIED.search(text) else None
    if behind:
        return behind[0]
    return life[1] if life else None


def _life(days: Sequence[Span], text: str) -> tuple[Span, Span] | None:
    """Two dates with a dash between them: side by side, or in one parenthesis with the places. The dash may be lost."""
    for first, second in pairwise(days):
        between = text[first.end : second.start]
        inside = text.rfind("(", 0, first.start) > text.rfind(")", 0, first.start)
        if _DASH.fullmatch(between) or (inside and ")" not in between and (not between.strip() or re.search("[–—-]", between))):
            return first, second
    return None


def _life_place(days: Sequence[Span], text: str, asked: Wanted, title: str) -> Span | None:
    """The place behind "born in" or "died in", or beside the date in a life's parenthesis."""
    named = [one for one in spans(text, Expects.THING) if not _of_the_question(one, asked, title, Expects.PLACE)]
    named = [one for one in named if not any(day.start <= one.start < day.end for day in days)]
    born, died = BORN.search(text), DIED.search(text)
    word, other = (born, died) if asked.life == "birth" else (died, born)
    if word is not None:
        end = other.start() if other is not None and other.start() > word.start() else len(text)
        behind = [one for one in named if word.end() <= one.start < end and _AT.search(text[: one.start])]
        if behind:
            return behind[0]
    life = _life(days, text)
    if life is None or (close := text.find(")", life[1].end)) < 0 or (opened := text.rfind("(", 0, life[0].start)) < 0:
        return None
    dash = re.search("[–—-]", text[life[0].end : life[1].start])
    middle = life[0].end + dash.start() if dash else life[0].end
    start, end = (opened, middle) if asked.life == "birth" else (middle, close)
    inside = [one for one in named if start < one.start < end]
    near = [one for one in inside if _AT.search(text[: one.start])] or [one for one in inside if text[one.start - 2] in ",;–("]
    return near[0] if near else None


# ------------------------------------------------------------------------------------------------------- the rest


def _people(found: Sequence[Span], text: str) -> Span:
    """ "is a Finnish director": the people that somebody is said to be of, before any land that is mentioned."""
    said = _PEOPLE.search(text)
    of = [one for one in found if title_key(one.text) in PEOPLES and said and one.start >= said.end()]
    return of[0] if of else found[0]


def _land(found: Sequence[Span]) -> Span:
    """Where something is: a land before any people, for "English" may be its language."""
    return next((one for one in found if title_key(one.text) not in PEOPLES), found[0])


def _mother(found: Sequence[Span], text: str) -> Span | None:
    """ "The son of A and B", "of A by his wife B": B. "The daughter of A, an ambassador": A."""
    child = re.search(r"\b(?:son|daughter|child|born)\b[^.]*?\b(?:of|to)\b", text)
    behind = [one for one in found if child and one.start >= child.end()]
    if len(behind) > 1 and re.search(r"\b(?:and|by|with|wife)\b", text[behind[0].end : behind[1].start]):
        return behind[1]
    return behind[0] if behind else found[0]


def _counted(found: Sequence[Span], cues: Sequence[tuple[int, int]]) -> Span | None:
    """The number in front of what is counted: "three acts". A number of something else is none."""
    gaps = [(start - one.end, one.start, one) for one in found for start, _ in cues if 0 <= start - one.end <= COUNTED]
    return min(gaps)[2] if gaps else None


def _distance(span: Span, cues: Sequence[tuple[int, int]]) -> float:
    """How far a span stands from the word that says it; better behind it than before."""
    gaps = [span.start - end if span.start >= end else 15 + 2 * (start - span.end) for start, end in cues]
    return min((gap for gap in gaps if gap >= 0), default=1000 + span.start)
