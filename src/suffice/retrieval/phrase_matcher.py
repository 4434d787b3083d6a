"""Which of many known names a text contains: longest match on whole words, linear in the text.

Names and texts are compared as title keys, so accents, case and punctuation do not matter, unless a
name could be a common word:

- two or more content words ("New York", "artificial intelligence") match anywhere;
- one content word ("Saw", "The Lake") matches only if the text capitalizes it;
- one content word without any capital ("less", "file") matches in any case, but not inside a
  compound ("--file", "file.txt");
- without a content word, two or more words match if all are capitalized ("The Who"); a single one
  ("it", "who") matches only before a section of a manual ("who(1)"), and a number never does.

A match of one content word is *doubtful* if its case says nothing: at the beginning of a sentence,
in a text without capitals, or if the name itself has none. A doubtful match counts unless the name
is a common word in the corpus, as counted by `WordUse`. Quotation marks, backticks and a section
("less(1)") remove the doubt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from suffice.lexicon import FUNCTION_WORDS
from suffice.text import title_word_spans, title_words, without_accents

RARE_TEXTS = 3  # a word in at most this many texts is never common
RARE_SHARE = 0.004  # nor is one in at most this share of the texts

_NEVER = "\n"  # a pattern that no padded text contains
_ANYWHERE, _WITH_CAPITAL, _IN_ANY_CASE, _BEFORE_SECTION = range(4)  # where a phrase matches
_QUOTES = {'"': '"', "'": "'", "`": "`'", "“": "”", "‘": "’", "«": "»", "„": "“”"}
_SECTION = re.compile(r"\([1-9][a-z]{0,3}\)")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;|\n*•–—-])[\s\"'“‘«„(\[]*$")
_LOOK_BACK = 8  # characters before a word searched for the end of the previous sentence
_JOINTS_BEFORE = frozenset("-_/\\.$@%+=<~#&")
_JOINTS_AFTER = re.compile(r"[-_/\\=@+]|[.:]\w|\((?!\s)(?![1-9][a-z]{0,3}\))")


@dataclass(frozen=True, slots=True)
class PhraseMatch:
    """Phrase number `phrase` is at words [start, end) of a text.

    `sure` is False if only the corpus can tell whether it is a name or a common word.
    """

    phrase: int
    start: int
    end: int
    sure: bool = True


@dataclass(frozen=True, slots=True)
class TextMatches:
    """A text's words as written, without accents and punctuation, and the phrases among them."""

    words: tuple[str, ...]
    matches: tuple[PhraseMatch, ...] = ()  # left to right, not overlapping
    common: frozenset[int] = frozenset()  # phrases here in lower case, without quotes
    capital: frozenset[int] = frozenset()  # phrases here with a capital inside a sentence

    def is_name(self, start: int, end: int) -> bool:
        """Whether these words are written as a name.

        One of the content words is capitalized, or all words if there is no content word. Scripts
        without case count as capitalized; numbers do not.
        """
        return _is_name(self.words[start:end])


def _is_name(words: Sequence[str]) -> bool:
    content = _content_words(words)
    return any(map(_is_capital, content)) if content else all(map(_is_capital, words))


def _is_capital(word: str) -> bool:
    return word != word.lower() or (word.lower() == word.upper() and word.isalpha())


def _content_words(words: Sequence[str]) -> list[str]:
    """The words that can name something: no stop words, question words or single letters."""
    return [word for word in words if len(word) > 1 and word.casefold() not in FUNCTION_WORDS]


def is_small(name: str) -> bool:
    """Whether a name is written without any capital: "less", "git"."""
    return name == name.lower() and name != name.upper()


class NameKeys:
    """Numbered title keys of names; `small` are those of names never written with a capital."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.small: set[int] = set()

    def add(self, key: str, *, small: bool) -> int:
        """The number of a key; `small` if its name is written without capitals."""
        known = len(self.numbers)
        number = self.numbers.setdefault(key, known)
        if not small:
            self.small.discard(number)
        elif number == known:
            self.small.add(number)
        return number


class WordUse:
    """In how many texts of a corpus each phrase is written as a name, and as a common word."""

    def __init__(self) -> None:
        self.texts = 0
        self._common: Counter[int] = Counter()
        self._capital: Counter[int] = Counter()

    def add(self, common: Iterable[int], capital: Iterable[int]) -> None:
        """Count a text with these phrases, taken from `TextMatches`."""
        self.texts += 1
        self._common.update(common)
        self._capital.update(capital)

    def common_phrases(self) -> frozenset[int]:
        """The phrases that are common words here: often in lower case, rarely capitalized."""
        rare = rare_limit(self.texts)
        return frozenset(
            phrase
            for phrase, count in self._common.items()
            if count > max(rare, self._capital[phrase])
        )


def rare_limit(texts: int) -> float:
    """A phrase in at most this many of the texts is not a common word."""
    return max(RARE_TEXTS, RARE_SHARE * texts)


class PhraseMatcher:
    """An automaton over title keys, as made by `suffice.text.title_key`.

    `small` are the numbers of the keys whose names have no capital, `common` those that are common
    words in the corpus; their doubtful matches are left out.
    """

    def __init__(
        self, keys: Iterable[str], *, small: Collection[int] = (), common: Collection[int] = ()
    ) -> None:
        self._small, self._common = frozenset(small), frozenset(common)
        self._rules = bytearray()
        # Every word has a blank on both sides: a match begins and ends between words, and two
        # neighbouring matches do not share a blank.
        self._automaton = AhoCorasick(
            map(self._pattern, keys),
            matchkind=MatchKind.LeftmostLongest,
            implementation=Implementation.ContiguousNFA,
            store_patterns=False,
        )

    def _pattern(self, key: str) -> str:
        words = key.split()
        content = _content_words(words)
        small = len(self._rules) in self._small
        rule = _ANYWHERE if len(content) > 1 else _IN_ANY_CASE if small else _WITH_CAPITAL
        self._rules.append(rule if content or len(words) > 1 else _BEFORE_SECTION)
        naming = content or words
        never = not words or (len(naming) == 1 and naming[0].isdecimal())
        return _NEVER if never else _pad(words)

    def find(self, texts: Iterable[str]) -> Iterator[TextMatches]:
        """Each text's words and the phrases in it; the longest if several begin at one word."""
        return map(self._find, texts)

    def find_in_questions(self, questions: Iterable[str]) -> Iterator[TextMatches]:
        """The same for questions. One without capitals, or all in capitals, is read as if every
        word were capitalized, but its matches are doubtful.
        """
        for one in questions:
            uncased = one.islower() or one.isupper()
            yield self._find(one.title(), case_counts=False) if uncased else self._find(one)

    def _find(self, text: str, *, case_counts: bool = True) -> TextMatches:
        text = without_accents(text)
        words = tuple(title_words(text))
        cased = _pad(words)
        folded = cased.casefold()
        aligned = len(cased) == len(folded)  # except for a few letters like the German sharp s
        signs = _Signs(text)
        matches: list[PhraseMatch] = []
        seen_as: dict[_Use, set[int]] = {_Use.WORD: set(), _Use.CAPITAL: set()}
        word, seen = 0, 0
        for phrase, start, end in self._automaton.find_matches_as_indexes(folded):
            rule = self._rules[phrase]
            # Almost every common word is a title: most candidates end here, before any counting.
            if rule == _WITH_CAPITAL and aligned:
                span = cased[start:end]
                if span == folded[start:end] and span.isascii():
                    seen_as[_Use.WORD].add(phrase)
                    continue
            word += folded.count(" ", seen, start) // 2
            first, last = word, word + folded.count(" ", start, end) // 2
            word, seen = last, end
            use = _Use.NAME
            if rule != _ANYWHERE:
                use = signs.use_of(words[first:last], first, rule, case_counts=case_counts)
                if use in seen_as:
                    seen_as[use].add(phrase)
                if use is _Use.NONE or (use is _Use.WORD and rule == _WITH_CAPITAL):
                    continue
            sure = use is _Use.NAME or (use is _Use.CAPITAL and rule == _WITH_CAPITAL)
            if sure or phrase not in self._common:
                matches.append(PhraseMatch(phrase, first, last, sure))
        common, capital = map(frozenset, seen_as.values())
        return TextMatches(words, tuple(matches), common, capital)


class _Use(Enum):
    """How a phrase that could be a common word is used at one place."""

    NAME = "between quotation marks, or before a section"
    CAPITAL = "with a capital inside a sentence"
    WORD = "in small letters"
    UNKNOWN = "with a capital that says nothing"
    NONE = "as a part of something longer"


class _Signs:
    """The characters around the words of a text; word positions are computed on first use."""

    def __init__(self, text: str) -> None:
        self._text = text  # without accents

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        return title_word_spans(self._text)

    def use_of(self, words: Sequence[str], first: int, rule: int, *, case_counts: bool) -> _Use:
        """How these words are used; `first` is the number of the first one."""
        last, named = first + len(words), _is_name(words)
        if rule == _BEFORE_SECTION:
            return _Use.NAME if self.before_section(last) else _Use.NONE
        if rule == _IN_ANY_CASE:
            if self.in_compound(first, last):
                return _Use.NONE
            if self.marked(first, last):
                return _Use.NAME
            named = named and not all(map(str.isupper, words))  # "FILE" is a placeholder
        if not named:
            return _Use.WORD
        if case_counts and not self.opens_sentence(first):
            return _Use.CAPITAL
        return _Use.NAME if self.marked(first, last) else _Use.UNKNOWN

    def marked(self, first: int, last: int) -> bool:
        """Whether words [first, last) are in quotation marks, or before a section."""
        start, end = self._spans[first][0], self._spans[last - 1][1]
        closing = _QUOTES.get(self._text[start - 1 : start], "")
        return self._text[end : end + 1] in set(closing) or self.before_section(last)

    def before_section(self, last: int) -> bool:
        """Whether the words end before the section of a manual: "less(1)"."""
        return _SECTION.match(self._text, self._spans[last - 1][1]) is not None

    def in_compound(self, first: int, last: int) -> bool:
        """Whether they are part of something longer: an option, a path, a file name, a call."""
        start, end = self._spans[first][0], self._spans[last - 1][1]
        before = self._text[start - 1 : start] in _JOINTS_BEFORE
        return before or _JOINTS_AFTER.match(self._text, end) is not None

    def opens_sentence(self, first: int) -> bool:
        start = self._spans[first][0]
        before = self._text[max(0, start - _LOOK_BACK) : start]
        return _SENTENCE_START.search(before) is not None


def _pad(words: Sequence[str]) -> str:
    return " " + "  ".join(words) + " " if words else ""
