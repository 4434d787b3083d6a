"""Tokens, names, title keys, dates and sentences of a text, by rules: no model, no corpus.

Tokens are casefolded runs of letters and digits. Each Chinese or Japanese character is a token,
because those scripts have no spaces.
"""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections.abc import Set
from dataclasses import dataclass
from datetime import date
from itertools import filterfalse

from suffice.lexicon import MONTHS, SENTENCE_OPENERS

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # the letters of a character class
_TOKEN = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")
_ASCII_TOKEN = re.compile("[A-Za-z0-9]+")
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_ASCII_WORDS = bytes(ord(chr(one).lower()) if chr(one).isalnum() else 32 for one in range(128))
_ASCII_WORDS += bytes(128)  # `bytes.translate` wants a full table, and is faster than `str`'s


def tokens(text: str) -> list[str]:
    """Casefolded words and numbers in order, without punctuation and underscores."""
    if text.isascii():  # same result, several times as fast
        return text.encode().translate(_ASCII_WORDS).decode().split()
    return _TOKEN.findall(text.casefold())


def jaccard(one: Set[str], other: Set[str]) -> float:
    """The share of words that two texts have in common; 1 if neither has any."""
    together = len(one | other)
    return len(one & other) / together if together else 1.0


def stem(token: str) -> str:
    """The stem shared by related words: "performer" gives "perform"; short words stay whole."""
    return token[: max(5, len(token) - 2)] if len(token) > 5 and token.isalpha() else token


_ASCII_GAPS = {code: " " for code in range(128) if not chr(code).isalnum()}


def title_words(text: str) -> list[str]:
    """The words of a text without accents and punctuation, with their capitals."""
    if text.isascii():  # same result, four times as fast
        return text.translate(_ASCII_GAPS).split()
    return _TOKEN.findall(without_accents(text))


def title_word_spans(text: str) -> list[tuple[int, int]]:
    """The position of each of the `title_words` in a text that is `without_accents`."""
    pattern = _ASCII_TOKEN if text.isascii() else _TOKEN
    return list(map(re.Match.span, pattern.finditer(text)))


def without_accents(text: str) -> str:
    """The text in compatibility form, without accents; all functions here find the same words."""
    if text.isascii():
        return text
    return "".join(filterfalse(unicodedata.combining, unicodedata.normalize("NFKD", text)))


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


@dataclass(frozen=True, slots=True)
class DateMention:
    """A day, month or year in a text: the first and last day it covers, and its position."""

    first: date
    last: date
    start: int
    end: int


_MONTH_NUMBERS = {
    form.casefold(): number
    for number, name in enumerate(MONTHS, start=1)
    for form in (name, name[:3], name[:3] + ".")
} | {"sept": 9, "sept.": 9}
_MONTH = (
    "(?=[adfjmnos])(?P<month>"
    + "|".join(sorted(map(re.escape, _MONTH_NUMBERS), key=len, reverse=True))
    + r")(?!\w)"
)
_YEAR = r"(?P<year>[12]\d{3})"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<!\w){_YEAR}-(?P<month_no>[01]?\d)-(?P<day>[0-3]?\d)(?!\d)",
        rf"(?<!\w){_MONTH}\s+{_DAY}\s*,?\s+{_YEAR}(?!\w)",
        rf"(?<!\w){_DAY}\s+(?:of\s+)?{_MONTH}\s*,?\s+{_YEAR}(?!\w)",
        rf"(?<!\w){_MONTH}\s*,?\s+{_YEAR}(?!\w)",
        r"(?<![\w.,$€£-])(?P<year>(?:1[5-9]|20)\d\d)(?![\w%]|[.,-]\d)",
    )
]


def date_mentions(text: str) -> list[DateMention]:
    """Dates in order: days ("October 7, 2023", "2023-10-07"), months ("October 2023"), years."""
    found: list[DateMention] = []
    taken = bytearray(len(text))
    for pattern in _DATES:
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(taken[start:end]):
                continue
            if (mention := _parse_date(match)) is not None:
                found.append(mention)
                taken[start:end] = b"x" * (end - start)
    return sorted(found, key=lambda mention: mention.start)


def _parse_date(match: re.Match[str]) -> DateMention | None:
    parts = match.groupdict()
    year = int(parts["year"])
    word, number = parts.get("month"), parts.get("month_no")
    month = _MONTH_NUMBERS[word.casefold()] if word else int(number) if number else None
    day = int(parts["day"]) if parts.get("day") else None
    if month is None:
        return DateMention(date(year, 1, 1), date(year, 12, 31), *match.span())
    try:
        first = date(year, month, day or 1)
    except ValueError:
        return None
    last = first if day else date(year, month, calendar.monthrange(year, month)[1])
    return DateMention(first, last, *match.span())


def sentences(text: str, *, language: str = "en") -> list[str]:
    """The sentences of a text, stripped, without empty ones."""
    from sentencex import segment  # lazy: it loads its language tables on import

    # Half a surrogate pair, from broken JSON, cannot be encoded for the library.
    whole = text.encode("utf-8", "replace").decode() if _HALF_PAIR.search(text) else text
    return [stripped for one in segment(language, whole) if (stripped := one.strip())]
