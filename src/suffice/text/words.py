"""Words and sentences of a text, by rules: no model, no corpus.

Tokens are casefolded runs of letters and digits. Each Chinese or Japanese character is a token,
because those scripts have no spaces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set
from itertools import filterfalse

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


def sentences(text: str, *, language: str = "en") -> list[str]:
    """The sentences of a text, stripped, without empty ones."""
    from sentencex import segment  # lazy: it loads its language tables on import

    # Half a surrogate pair, from broken JSON, cannot be encoded for the library.
    whole = text.encode("utf-8", "replace").decode() if _HALF_PAIR.search(text) else text
    return [stripped for one in segment(language, whole) if (stripped := one.strip())]
