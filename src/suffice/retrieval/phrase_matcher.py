"""Which of many known names a text contains: longest match on whole words, linear in the text.

Names and texts are compared as title keys, so accents, case and punctuation do not matter, except
where a name could be a common word:

- two or more content words ("New York", "artificial intelligence") match wherever they are;
- one content word ("Saw", "The Lake") matches only where the text writes it with a capital;
- without a content word, two or more words match if all have a capital ("The Who"); a single one
  ("It", "Who", "7") never does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from suffice.lexicon import FUNCTION_WORDS
from suffice.text import title_words

_NEVER = "\n"  # a pattern that no padded text contains


@dataclass(frozen=True, slots=True)
class PhraseMatch:
    """Phrase number `phrase` is at words [start, end) of a text."""

    phrase: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TextMatches:
    """A text's words as written, without accents and punctuation, and the phrases among them."""

    words: tuple[str, ...]
    matches: tuple[PhraseMatch, ...] = ()  # from left to right, none overlapping

    def is_name(self, start: int, end: int) -> bool:
        """Whether these words are written as a name.

        One of the content words has a capital, or all words if there is no content word. Scripts
        without capitals count as capitals; numbers do not.
        """
        words = self.words[start:end]
        content = _content_words(words)
        return any(map(_is_capital, content)) if content else all(map(_is_capital, words))


def _is_capital(word: str) -> bool:
    return word != word.lower() or (word.lower() == word.upper() and word.isalpha())


def _content_words(words: Sequence[str]) -> list[str]:
    """The words that can name something: no stop words, question words or single letters."""
    return [word for word in words if len(word) > 1 and word.casefold() not in FUNCTION_WORDS]


class PhraseMatcher:
    """An automaton over title keys, as `suffice.text.title_key` makes them."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._needs_capital = bytearray()
        # Every word gets a blank on both sides: a match begins and ends between words, and two
        # neighbouring matches do not claim the same blank.
        self._automaton = AhoCorasick(
            map(self._pattern, keys),
            matchkind=MatchKind.LeftmostLongest,
            implementation=Implementation.ContiguousNFA,
            store_patterns=False,
        )

    def _pattern(self, key: str) -> str:
        words = key.split()
        content = _content_words(words)
        self._needs_capital.append(len(content) < 2)
        number = len(content) == 1 and content[0].isdecimal()
        return _NEVER if number or (not content and len(words) < 2) else _pad(words)

    def find(self, texts: Iterable[str]) -> Iterator[TextMatches]:
        """Each text's words and the phrases in it; where several begin, the longest."""
        for text in texts:
            words = tuple(title_words(text))
            yield TextMatches(words, tuple(self._find(TextMatches(words))))

    def _find(self, text: TextMatches) -> Iterator[PhraseMatch]:
        cased = _pad(text.words)
        folded = cased.casefold()
        aligned = len(cased) == len(folded)  # but for a few letters like the German sharp s
        word, seen = 0, 0
        for phrase, start, end in self._automaton.find_matches_as_indexes(folded):
            needs_capital = self._needs_capital[phrase]
            # Every common word is somebody's title: most candidates end here, before any counting.
            if needs_capital and aligned:
                span = cased[start:end]
                if span == folded[start:end] and span.isascii():
                    continue
            word += folded.count(" ", seen, start) // 2
            match = PhraseMatch(phrase, word, word + folded.count(" ", start, end) // 2)
            word, seen = match.end, end
            if not needs_capital or text.is_name(match.start, match.end):
                yield match


def _pad(words: Sequence[str]) -> str:
    return " " + "  ".join(words) + " " if words else ""
