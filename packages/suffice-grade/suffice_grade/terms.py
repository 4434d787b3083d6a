"""The corpus's own vocabulary: names without capitals, and words for properties.

A title or heading of several words is a name wherever it occurs ("the payment gateway"). So is a
phrase that several documents, but not many, use as a subject. A word before a colon is a property
if several documents have it there and the corpus also writes it in lower case; the name of a
speaker is not. One pass; memory is bounded by the vocabulary.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from suffice.lexicon import FUNCTION_WORDS
from suffice.text import title_key
from suffice.types import Document
from suffice_grade.vocabulary import FIRST_NAMES, GENERIC_HEADINGS, base_title

KEY = r"[^\W\d_][\w/-]*(?: [\w/&-]+){0,3}"  # what may come before a colon
MIN_DOCUMENTS = 3  # with a key or a phrase
MAX_SHARE = 0.05  # of the documents: a phrase in more of them is a common one
MAX_COUNTED = 1_000_000  # phrases; above it, those seen once are dropped

_LINE_KEY = re.compile(rf"^[ \t]*(?:[-*•] +)?\**(?P<key>{KEY})\**: +\S", re.MULTILINE)
_SMALL_WORD = re.compile(r"(?<![\w-])[a-z]+(?![\w:-])")
_PLURAL = re.compile(r"(?P<inside>(?<=[\w,] ))?\b(?P<word>[A-Z][a-z]+[^\Wsui]s)\b")
_SUBJECT = re.compile(
    r"\b[Tt]he (?P<phrase>[a-z][\w-]+(?: [a-z][\w-]+){1,2}) (?:is|was|are|were|has|had) "
)
_POINTING = frozenset("last next previous current following same first second new old only".split())
# A name, its article, and a word or sign that shows where it ends: not "the Titan sunflower".
_NAME = re.compile(
    r"\b(?P<the>[Tt]he )?"
    r"(?P<name>[A-Z][\w-]{0,40}(?: (?:(?:of|and) (?:the )?)?[A-Z][\w-]{0,40}){0,5})"
    r"(?=[,.;:!?)’']|$| (?:is|was|are|were|has|had|in|on|at|of|by|and|or|to|from|for|with|which|"
    r"that|after|before|until|since|as|[a-z]+(?:s|ed) (?:an?|the|to|in|on|at|by|its))\b)"
)
_HEADING = re.compile(r"^#{1,6} +(?P<text>[^\n#]{3,60})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CorpusTerms:
    """Keys of `things` without capitals, `keys` for properties, and all lower-case words (`small`).

    `plurals` are capitalized only at the start of a sentence: "Outsiders" is not a name. `definite`
    names mostly stand with "the". `parts` often start longer names: "Chicago". `page` is the
    subject of the sentence being parsed.
    """

    things: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    small: frozenset[str] = frozenset()
    plurals: frozenset[str] = frozenset()
    definite: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    page: str = ""


NO_TERMS = CorpusTerms()


def collect_terms(documents: Iterable[Document]) -> CorpusTerms:
    """The vocabulary of these documents."""
    keys, phrases, things = Counter[str](), Counter[str](), set[str]()
    small, opening, inside = set[str](), set[str](), set[str]()
    alone, within = Counter[str](), Counter[str]()  # "Chicago", and "Chicago Fire"
    articles = Counter[str]()  # how much more often with "the" than without
    texts = 0
    for document in documents:
        texts += 1
        text = document.text
        small.update(_SMALL_WORD.findall(text))
        for match in _PLURAL.finditer(text):
            (opening if match["inside"] is None else inside).add(match["word"])
        for match in _NAME.finditer(text):
            articles[match["name"]] += 1 if match["the"] else -1
            first, *rest = match["name"].split()
            if not rest:
                alone[first] += 1
            elif not rest[0].isupper():  # "Flexport CEO Mira Holt"
                within[first] += 1
        inside.add(base_title(document.title))  # "Athens" may be a page
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
        frozenset(name for name, more in articles.items() if more > 0),
        frozenset(name for name, times in within.items() if 3 * times > alone[name]),
    )


def _is_thing(key: str) -> bool:
    words = key.split()
    content = [word for word in words if word not in FUNCTION_WORDS]
    if words and words[0] in _POINTING:
        return False
    good = 2 <= len(words) <= 4 and len(content) == len(words) and key not in GENERIC_HEADINGS
    return good and not key.replace(" ", "").isdigit()
