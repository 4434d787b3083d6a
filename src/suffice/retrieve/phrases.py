"""Which of many known phrases a text contains: longest match on whole words, linear in the text however many are known.

Metadata (sources, entities) and links (titles) both look for names of a closed vocabulary. Both phrases and texts are brought
into the form of title keys, so accents, case and punctuation do not matter; where a name could be a common word, `Words` still
knows how the text wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from suffice.text import OPENERS, STOP_WORDS, key_words

__all__ = ["Match", "Phrases", "Words"]

_EMPTY = STOP_WORDS | OPENERS  # words that name nothing by themselves


@dataclass(frozen=True, slots=True)
class Match:
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
        return cls(tuple(key_words(text)))

    @property
    def any_capital(self) -> bool:
        """Whether the text uses capitals at all: if not, their absence says nothing about a name."""
        return any(map(_capital, self.written))

    def content(self, start: int, end: int) -> list[str]:
        """The words of a span that can name something: no stop words, question words or single letters."""
        return [word for word in self.written[start:end] if len(word) > 1 and word.casefold() not in _EMPTY]

    def as_name(self, start: int, end: int) -> bool:
        """Whether a span is written as a name: one of its content words, or all its words if it has none, have a capital.

        Scripts without capitals count as written with one; numbers do not.
        """
        content = self.content(start, end)
        return any(map(_capital, content)) if content else all(map(_capital, self.written[start:end]))


def _capital(word: str) -> bool:
    return word != word.lower() or (word.lower() == word.upper() and word.isalpha())


class Phrases:
    """An automaton over title keys, as `suffice.text.title_key` makes them. Empty keys are never found."""

    def __init__(self, keys: Iterable[str]) -> None:
        # An Aho-Corasick automaton knows letters, not words. Every word gets a blank on both sides, so that a match begins and
        # ends between words and two neighbouring matches do not claim the same blank.
        self._automaton = AhoCorasick(
            (_padded(key.split()) or "\n" for key in keys),  # no padded text contains a line break
            matchkind=MatchKind.LeftmostLongest,
            implementation=Implementation.ContiguousNFA,
            store_patterns=False,
        )

    def find(self, texts: Iterable[Words]) -> Iterator[list[Match]]:
        """For each text its matches from left to right, none overlapping; where several begin, the longest."""
        for words in texts:
            padded = _padded(words.written).casefold()
            matches = []
            word, seen = 0, 0
            for phrase, start, end in self._automaton.find_matches_as_indexes(padded):
                word += padded.count(" ", seen, start) // 2
                length = padded.count(" ", start, end) // 2
                matches.append(Match(phrase, word, word + length))
                word, seen = word + length, end
            yield matches


def _padded(words: Sequence[str]) -> str:
    return " " + "  ".join(words) + " " if words else ""
