"""The corpus's own vocabulary: what it names without capitals, and its words for properties.

A title or a heading of several words names a thing wherever the text has it ("the payment
gateway"), and so does a phrase that several documents, but not many, have as a subject. A word
before a colon is a property where several documents have it there and the corpus also writes it
small; the name of a speaker is not. One pass, and memory is bounded by the vocabulary.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from suffice.benchmark.vocabulary import FIRST_NAMES, GENERIC_HEADINGS, base_title
from suffice.lexicon import FUNCTION_WORDS
from suffice.text import title_key
from suffice.types import Document

KEY = r"[^\W\d_][\w/-]*(?: [\w/&-]+){0,3}"  # a pattern for what may stand before a colon
MIN_DOCUMENTS = 3  # that have a key or a phrase
MAX_SHARE = 0.05  # of the documents: a phrase in more of them is a common one
MAX_COUNTED = 1_000_000  # phrases; beyond, those seen once are forgotten

_LINE_KEY = re.compile(rf"^[ \t]*(?:[-*•] +)?\**(?P<key>{KEY})\**: +\S", re.MULTILINE)
_SMALL_WORD = re.compile(r"(?<![\w-])[a-z]+(?![\w:-])")
_PLURAL = re.compile(r"(?P<inside>(?<=[\w,] ))?\b(?P<word>[A-Z][a-z]+[^\Wsui]s)\b")
_SUBJECT = re.compile(
    r"\b[Tt]he (?P<phrase>[a-z][\w-]+(?: [a-z][\w-]+){1,2}) (?:is|was|are|were|has|had) "
)
_POINTING = frozenset("last next previous current following same first second new old only".split())
_HEADING = re.compile(r"^#{1,6} +(?P<text>[^\n#]{3,60})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CorpusTerms:
    """Title keys of `things` without capitals, `keys` for properties, and all words in `small`.

    `plurals` have a capital only where they open a sentence: "Outsiders" are nobody's name.
    `page` is what the sentence that is read now is about.
    """

    things: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    small: frozenset[str] = frozenset()
    plurals: frozenset[str] = frozenset()
    page: str = ""


NO_TERMS = CorpusTerms()


def collect_terms(documents: Iterable[Document]) -> CorpusTerms:
    """The vocabulary of these documents."""
    keys, phrases, things = Counter[str](), Counter[str](), set[str]()
    small, opening, inside = set[str](), set[str](), set[str]()
    texts = 0
    for document in documents:
        texts += 1
        text = document.text
        small.update(_SMALL_WORD.findall(text))
        for match in _PLURAL.finditer(text):
            (opening if match["inside"] is None else inside).add(match["word"])
        inside.add(base_title(document.title))  # Athens has a page
        if ":" in text:
            found = {match["key"].casefold() for match in _LINE_KEY.finditer(text)}
            keys.update(key for key in found if not key[-1].isdigit())
        phrases.update({match["phrase"] for match in _SUBJECT.finditer(text)})
        if len(phrases) > MAX_COUNTED:
            phrases = Counter({one: count for one, count in phrases.items() if count > 1})
        names = [document.title, *(match["text"] for match in _HEADING.finditer(text))]
        things.update(key for name in names if _is_thing(key := title_key(name)))
    least, most = max(MIN_DOCUMENTS, texts // 2_000), max(MIN_DOCUMENTS, MAX_SHARE * texts)
    things.update(one for one, count in phrases.items() if least <= count <= most)
    words = small - FIRST_NAMES
    properties = (key for key, count in keys.items() if count >= least)
    return CorpusTerms(
        frozenset(one for one in things if _is_thing(one)),
        frozenset(key for key in properties if all(word in words for word in key.split())),
        frozenset(small),
        frozenset(opening - inside),
    )


def _is_thing(key: str) -> bool:
    words = key.split()
    content = [word for word in words if word not in FUNCTION_WORDS]
    if words and words[0] in _POINTING:
        return False
    good = 2 <= len(words) <= 4 and len(content) == len(words) and key not in GENERIC_HEADINGS
    return good and not key.replace(" ", "").isdigit()
