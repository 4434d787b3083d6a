"""Other names of a document's subject: what its title and its first words call it.

    aliases("IBM (company)", "International Business Machines (IBM) is ...")  ->  "International Business Machines"

Four rules, each checked against the document's own words, so that an alias is never invented: the part of a title before a
comma ("Springfield, Illinois"), the names in front of the first verb that share a word with the title ("Robert Zimmerman (born
...), known as Bob Dylan"), what stands behind "known as", and initials that the text itself uses ("USA").
"""

from __future__ import annotations

import re

from suffice.text import EMPTY_WORDS, date_mentions, key_words, names, title_key

__all__ = ["ALIASES", "aliases", "initials"]

ALIASES = 8  # of a document at most: a text that opens with a list of names must not claim them all
LEAD = 300  # letters at the beginning of a text that can introduce its subject

_VERB = re.compile(r"\s(?:is|was|are|were|has|had|refers)\s")
_KNOWN_AS = re.compile(
    r"\b(?:known(?:\s\w+){0,2}\s+as|called|nicknamed|abbreviated(?:\s\w+){0,2}\s+as|born|née|formerly|officially|or)\s+(?:the\s+)?[\"“']?",
    re.IGNORECASE,
)
_ACRONYM = re.compile(r"\b[A-Z](?:\.?[A-Z]){1,7}\b\.?")


def aliases(title: str, text: str) -> list[str]:
    """Title keys that the document's subject also goes by, without the title's own; at most ALIASES, likeliest first."""
    own = title_key(title)
    found: dict[str, None] = {}
    if "," in title and (head := title_key(title.partition(",")[0])):
        found.setdefault(head)
    lead = _lead(text)
    content = {word for word in own.split() if word not in EMPTY_WORDS and len(word) > 2}
    for name in names(lead):
        key = title_key(name)
        # "Richard Nixon" is a part of "Second inauguration of Richard Nixon", not another name of it.
        if content & set(key.split()) and " " in key and (f" {key} " not in f" {own} " or own == f"the {key}"):
            found.setdefault(key)
    for match in _KNOWN_AS.finditer(lead):
        after = names(lead[match.end() : match.end() + 60])
        # One word behind "called" or "born" is too often "American": two are a name.
        named = bool(after) and " " in after[0] and lead.startswith(after[0], match.end())
        if named and not date_mentions(lead[match.end() : match.end() + 20]):
            found.setdefault(title_key(after[0]))
    short = initials(title)
    for match in _ACRONYM.finditer(text[: 4 * LEAD] if short else lead):
        letters = match.group().replace(".", "")
        if len(letters) > 2 and letters.casefold() in (short, initials(lead[: match.start()][-80:], last=len(letters))):
            found.setdefault(letters.casefold())
    # "Michael J" is a name that a full stop cut off.
    return [key for key in found if key not in ("", own) and len(key.split()[-1]) > 1][:ALIASES]


def initials(name: str, *, last: int | None = None) -> str:
    """The first letters of a name's capitalised words: "United States of America" gives "usa". Below two letters: "".

    With `last`, of so many capitalised words at its end.
    """
    capitals = [word[0] for word in key_words(name) if word[0].isupper()]
    chosen = capitals[-last:] if last else capitals
    return "".join(chosen).casefold() if len(chosen) > 1 else ""


def _lead(text: str) -> str:
    """What stands in front of the first verb: the subject with all its names; a text that opens without one names none."""
    verb = _VERB.search(text[:LEAD])
    return text[: verb.start()] if verb else ""
