"""Which of many known names a text contains: longest match on whole words, linear in the text however many are known.

Metadata (sources, entities) and links (titles) both look for names of a closed vocabulary. Names and texts are compared as
title keys, so accents, case and punctuation do not matter, except where a name could be a common word:

- two or more content words ("New York", "artificial intelligence") count wherever they stand;
- one content word ("Saw", "The Lake") counts only where the text writes it with a capital;
- without a content word, two words or more count if all have a capital ("The Who"); one alone ("It", "Who", "7") never does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from suffice.lexicon import FUNCTION_WORDS
from suffice.text import title_words

__all__ = ["PhraseMatch", "PhraseMatcher", "TextMatches", "Words"]


@dataclass(frozen=True, slots=True)
class PhraseMatch:
    """Phrase number `phrase` stands at words [start, end) of a text."""

    phrase: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text as it wrote them, without accents and punctuation."""

    written: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Words:
        return cls(tuple(title_words(text)))

    def as_name(self, match: PhraseMatch) -> bool:
        """Whether a match is written as a name: one of its content words, or all its words if it has none, have a capital.

        Scripts without capitals count as written with one; numbers do not.
        """
        words = self.written[match.start : match.end]
        content = _content(words)
        return any(map(_capital, content)) if content else all(map(_capital, words))


@dataclass(frozen=True, slots=True)
class TextMatches:
    """A text's words, and the phrases among them from left to right, none overlapping."""

    words: Words
    matches: tuple[PhraseMatch, ...]


def _capital(word: str) -> bool:
    return word != word.lower() or (word.lower() == word.upper() and word.isalpha())


def _content(words: Sequence[str]) -> list[str]:
    """The words that can name something: no stop words, question words or single letters."""
    return [word for word in words if len(word) > 1 and word.casefold() not in FUNCTION_WORDS]


class PhraseMatcher:
    """An automaton over title keys, as `suffice.text.title_key` makes them; a phrase is known by its place among them."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._needs_capital = bytearray()
        # Every word gets a blank on both sides: an automaton knows letters, not words, and so a match begins and ends between
        # words and two neighbouring matches do not claim the same blank.
        self._automaton = AhoCorasick(
            map(self._pattern, keys),
            matchkind=MatchKind.LeftmostLongest,
            implementation=Implementation.ContiguousNFA,
            store_patterns=False,
        )

    def _pattern(self, key: str) -> str:
        words = key.split()
        content = _content(words)
        self._needs_capital.append(len(content) < 2)
        nameless = len(words) < 2 if not content else len(content) == 1 and content[0].isdecimal()
        return _NEVER if nameless else _padded(words)

    def read(self, texts: Iterable[str]) -> Iterator[TextMatches]:
        """Each text's words and the phrases it names; where several begin, the longest."""
        for text in texts:
            words = Words.of(text)
            yield TextMatches(words, tuple(self._named(words)))

    def _named(self, words: Words) -> Iterator[PhraseMatch]:
        cased = _padded(words.written)
        folded = cased.casefold()
        aligned = len(cased) == len(folded)  # it is, but for a few letters like the German sharp s
        word, seen = 0, 0
        for phrase, start, end in self._automaton.find_matches_as_indexes(folded):
            # Every common word is somebody's title: most candidates fall here, so this comes before all counting.
            if (
                self._needs_capital[phrase]
                and aligned
                and (span := cased[start:end]) == folded[start:end]
                and span.isascii()
            ):
                continue
            word += folded.count(" ", seen, start) // 2
            match = PhraseMatch(phrase, word, word + folded.count(" ", start, end) // 2)
            word, seen = match.end, end
            if not self._needs_capital[phrase] or words.as_name(match):
                yield match


_NEVER = "\n"  # stands in no padded text


def _padded(words: Sequence[str]) -> str:
    return " " + "  ".join(words) + " " if words else ""
