"""Text as it looks: what cannot be seen is taken out, and letters that only look like Latin ones are read as those.

Zero-width characters, marks of direction and tags, fullwidth and mathematical letters, stacked accents, and Cyrillic or Greek
letters inside Latin words hide a name from a reader of bytes, and show it to people. Real text in another script stays as it
is: a letter is exchanged only in a word that has Latin letters as well.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["legible"]

LONG = 20_000  # characters that are looked at: more than is read of a text, however much of it cannot be seen

# Soft hyphen, zero-width, direction, invisible operators, variation selectors, byte order mark, tags.
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff"
)
_MARKS = "\u0300-\u036f\u0489\u1ab0-\u1aff\u20d0-\u20ff"
_STYLED = "\u2460-\u24ff\uff01-\uff5e\U0001d400-\U0001d7ff\U0001f130-\U0001f189"
_ODD = re.compile(f"[{_UNSEEN}{_MARKS}{_STYLED}]")
_GONE = re.compile(f"[{_UNSEEN}{_MARKS}]")
# Of Unicode's confusables the Cyrillic and Greek letters that stand for one Latin letter.
_SEEMS = str.maketrans(
    "АВЕЅІЈКМНОРСТХУҮԚԜаеѕіјкорсухѵһԁԛԝгпΑΒΕΖΗΙΚΜΝΟΡΤΥΧαορυνικ",
    "ABESIJKMHOPCTXYYQWaesijkopcyxvhdqwrnABEZHIKMNOPTYXaopuvik",
)
_OTHER = "".join(map(chr, _SEEMS))
_MIXED = re.compile(rf"\b(?=\w*[A-Za-z])\w*[{_OTHER}]\w*")
_MAYBE_MIXED = re.compile(f"[A-Za-z][{_OTHER}]|[{_OTHER}][A-Za-z]")


def legible(text: str) -> str:
    """The text itself where there is nothing to mend, as in nearly all there is."""
    if text.isascii():
        return text
    if _ODD.search(text, 0, LONG):
        text = _GONE.sub("", unicodedata.normalize("NFKC", text[:LONG]))
    if _MAYBE_MIXED.search(text, 0, LONG):
        text = _MIXED.sub(lambda word: word.group().translate(_SEEMS), text[:LONG])
    return text
