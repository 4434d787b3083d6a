"""What to look for in a sentence: the question's words, its names, and words that say the answer.

The answer is often said by another word than the question: a director is told of as "directed by".
Words are compared by their beginnings, and a country's name with its nationality.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from suffice.answering.answer_type import COUNTRIES
from suffice.lexicon import FUNCTION_WORDS
from suffice.text import names, title_key, tokens

__all__ = ["BORN", "DIED", "QuestionCues", "has_life_dates", "mentions_cue", "stem"]

_CUE_WORDS = {
    "die": "died death dead killed buried", "death": "died dead killed", "born": "birth",
    "birth": "born", "birthplace": "born", "director": "directed directs",
    "composer": "composed music score soundtrack songwriter",
    "performer": "recorded song single album sung", "singer": "sung sang recorded",
    "author": "wrote written novel book", "writer": "wrote written", "wrote": "written author",
    "mother": "son daughter child wife", "father": "son daughter child",
    "spouse": "married wife husband", "wife": "married husband", "husband": "married wife",
    "child": "son daughter father mother", "son": "father mother", "sibling": "brother sister",
    "released": "release premiered film song album single movie cartoon",
    "formed": "founded established began",
    "founded": "formed established founder launched started created opened",
    "established": "founded formed opened created founder", "launched": "founded started",
    "opened": "founded established", "published": "released founded", "founder": "founded",
    "producer": "produced", "employer": "worked professor", "burial": "buried",
    "located": "city town village county", "studied": "educated university college",
    "study": "studied educated university", "graduate": "graduated studied educated",
}  # fmt: skip
_NOISE = FUNCTION_WORDS | frozenset(
    "film song movie band called named known considered did same person".split()
)
# In lower case only: "The Toast of Death" has not died.
BORN = re.compile(r"\bborn\b|\bb\.")
DIED = re.compile(r"\b(?:died|death|dead|killed|murdered|executed)\b|\bd\.|†")
_LIFE_DATES = re.compile(
    r"\([^()]*\d{3,4}[^()]{0,60}?[–—-][^()]{0,60}?\d{3,4}"
    r"|\([^()]*\d{4},? +[A-Z][a-z]+ \d{1,2}, \d{4}"
)
_RELEASE_YEAR = re.compile(r"\b(?:is|was) an? (?:[A-Z]\w+ )?\d{4}\b")  # "is a 1944 cartoon"


def stem(word: str) -> str:
    """One form for a word and its plural, mostly also for derived words; a key for countries."""
    if country := COUNTRIES.get(word):
        return f"@{country}"
    if len(word) > 3 and word[-1] == "s" and word[-2] not in "su":
        word = word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]
    return word[:5]


_CUES: dict[str, frozenset[str]] = {}  # by stem: "founded" and "founder" have the same
for _word, _others in _CUE_WORDS.items():
    _stems = {stem(one) for one in (_word, *_others.split())}
    _CUES[stem(_word)] = _CUES.get(stem(_word), frozenset()) | _stems


@dataclass(frozen=True, slots=True)
class QuestionCues:
    """What a reader looks for; `life` is "birth" or "death" if the question asks for one."""

    stems: tuple[str, ...]
    names: tuple[str, ...]  # as title keys, in the order of the question
    words: tuple[str, ...]
    cues: frozenset[str]
    life: str
    kind: tuple[str, ...] = ()  # stems of "which American comedian", the noun last

    @classmethod
    def from_question(cls, question: str) -> QuestionCues:
        words = tokens(question)
        stems = dict.fromkeys(stem(word) for word in words if word not in _NOISE)
        named = tuple(key for name in names(question) if (key := title_key(name)))
        cues = frozenset(cue for one in stems for cue in _CUES.get(one, ()))
        life = ""
        if not cues:
            inside = {stem(word) for name in named for word in name.split()}
            cues = frozenset(one for one in stems if one not in inside)
        elif not {"die", "died", "death"}.isdisjoint(words):
            life = "death"
        elif not {"born", "birth", "birthplace"}.isdisjoint(words):
            life = "birth"
        return cls(tuple(stems), named, tuple(words), cues, life, _asked_kind(words))

    def covered_by(self, stems: frozenset[str]) -> frozenset[str]:
        """The stems of the question that these stems say, by the same word or another."""
        return frozenset(
            one for one in self.stems if one in stems or not stems.isdisjoint(_CUES.get(one, ()))
        )


def _asked_kind(words: Sequence[str]) -> tuple[str, ...]:
    """The words after "which" or "what", up to where its description starts."""
    start = next((at for at, word in enumerate(words) if word in ("which", "what")), len(words))
    asked = takewhile(
        lambda word: word not in FUNCTION_WORDS and not word.endswith("ed"),
        words[start + 1 : start + 7],
    )
    return tuple(map(stem, asked))


def has_life_dates(text: str) -> bool:
    """Whether a text has the dates of a life: "(6 January 1874 – 11 November 1948)"."""
    return _LIFE_DATES.search(text) is not None


def mentions_cue(question: str, text: str) -> bool:
    """Whether a text has a word for what is asked; True if no such words are known."""
    asked = QuestionCues.from_question(question)
    if not any(one in _CUES for one in asked.stems):
        return True
    life_word = BORN if asked.life == "birth" else DIED
    if asked.life and (has_life_dates(text) or life_word.search(text)):
        return True
    if "relea" in asked.stems and _RELEASE_YEAR.search(text):
        return True
    return any(stem(word) in asked.cues for word in tokens(text))
