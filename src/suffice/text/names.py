"""Names in a text, and the look-up form of titles."""

from __future__ import annotations

import re

from suffice.lexicon import SENTENCE_OPENERS
from suffice.text.words import title_words, tokens

_PARENTHESES = re.compile(r"\s*\([^()]*\)\s*$")


def bare_title(title: str) -> str:
    """A title without the closing parenthesis that distinguishes namesakes; may be empty."""
    return _PARENTHESES.sub("", title)


def title_key(title: str) -> str:
    """The look-up form of a title: "Lothair II (emperor)" becomes "lothair ii".

    A title that is only a parenthesis keeps it; one without letters and digits gives "".
    """
    bare = bare_title(title)
    return " ".join(title_words(bare if tokens(bare) else title)).casefold()


# Capitalised words, acronyms, and numbers after one, joined by the small words of names.
_WORD = r"(?:[^\W\d_a-z][\w'’.&-]*[\w]|[^\W\d_a-z])"
_SMALL = r"(?:of|the|and|de|da|di|del|della|van|von|der|den|la|le|du|bin|ibn|al|&)"
_NAME = re.compile(rf"{_WORD}(?:\s+(?:{_SMALL}\s+){{0,2}}(?:{_WORD}|\d[\w.-]*))*")


def names(text: str) -> list[str]:
    """Capitalised names in order of first appearance, without words that only open a sentence."""
    found: dict[str, None] = {}
    for match in _NAME.finditer(text):
        words = match.group().split()
        while words and words[0].casefold().strip("'’.") in SENTENCE_OPENERS:
            words.pop(0)
        while words and (
            words[-1].casefold() in SENTENCE_OPENERS or re.fullmatch(_SMALL, words[-1])
        ):
            words.pop()
        name = re.sub(r"['’]s$", "", " ".join(words)).strip(".'’")
        if name:
            found.setdefault(name)
    return list(found)


# A sentence that says what something is. Possessive quantifiers: a list of names never backtracks.
_DESCRIPTION = re.compile(
    r"(?:^|[.!?][\"”)]?\s|\n)\s*(?:(?:The|A|An)\s)?"
    rf"({_WORD}(?:\s(?:{_SMALL}\s){{0,2}}+(?:{_WORD}|\d[\w-]*)){{0,9}}+)"
    r"(?:\s?\([^()\n]{0,120}\)|,[^.\n]{0,80},)?\s(?:is|was|are|were)\s"
    r"(?:an?|the|one|born|built|made|known|part|among|[a-z]+ed|[a-z]+ing)\b"
)


def described_names(text: str) -> list[tuple[int, str]]:
    """The names that the sentences of a text describe, and where each starts.

    described_names("Ada Lovelace (born 1815) was a countess.")     # [(0, "Ada Lovelace")]
    """
    return [
        (match.start(1), match[1])
        for match in _DESCRIPTION.finditer(text)
        if match[1].split()[0].casefold() not in SENTENCE_OPENERS
    ]
