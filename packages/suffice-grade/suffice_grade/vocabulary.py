"""The word lists of the rules (`vocabulary.toml`), and what a name looks like in a text."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from suffice.storage.records import read_toml
from suffice.text import bare_title

FOLDER = Path(__file__).parent
_WORDS = read_toml(FOLDER / "vocabulary.toml")
NATIONALITIES: dict[str, str] = _WORDS["nationalities"]  # demonym -> country
COUNTRIES = frozenset(NATIONALITIES.values()) | {
    " ".join(name.split()) for name in _WORDS["countries"].split(";")
}
KINDS: dict[str, str] = {
    noun: kind for kind, nouns in _WORDS["page_kinds"].items() for noun in nouns.split()
}
RANKS: dict[str, str] = {  # rank -> "man", "woman", or "" if it does not tell
    rank: "" if sex == "unknown" else sex
    for sex, ranks in _WORDS["ranks"].items()
    for rank in ranks.split()
}
SEX_OF_WORD = dict.fromkeys(_WORDS["men"].split(), "man")
SEX_OF_WORD |= dict.fromkeys(_WORDS["women"].split(), "woman")
SEX_OF_NAME = dict.fromkeys(_WORDS["male_names"].split(), "man")
SEX_OF_NAME |= dict.fromkeys(_WORDS["female_names"].split(), "woman")
AREAS: tuple[str, ...] = tuple(_WORDS["areas"].split())  # nouns for places that contain others
TITLE_NOUNS = frozenset(_WORDS["title_nouns"].split())
GENERIC_HEADINGS = frozenset(" ".join(one.split()) for one in _WORDS["generic_headings"].split(";"))
NAMING_KEYS = frozenset(_WORDS["naming_keys"].split())
NOT_KEYS = frozenset(_WORDS["not_keys"].split())
ATTRIBUTES = frozenset(_WORDS["attributes"].split())
ROLES = frozenset(" ".join(one.split()) for one in _WORDS["roles"].split(","))
ORGANISATIONS = frozenset(_WORDS["organisations"].split())
FIRST_NAMES = frozenset(_WORDS["first_names"].split())
OVERLAPPING_COUNTRIES: list[list[str]] = _WORDS["overlapping_countries"]


def any_of(name: str) -> str:
    """A pattern that matches any entry of a word list."""
    return f"(?:{'|'.join(' '.join(one.split()) for one in _WORDS['lists'][name].split(','))})"


_CAPITAL = r"(?:[dl]['’]|al-|el-)?[^\W\d_a-zß-öø-ÿ][\w'’.-]*"
_SMALL = (
    r"(?:of|the|de'|de|da|di|del|della|van|von|der|den|la|le|du|bin|ibn|al|zu|y|dos|das|ten|ter|"
    r"af|av|ap|ben|el|e|mac|ingen|bint|no|zum|zur)"
)
NAME = re.compile(rf'{_CAPITAL}(?: (?:{_SMALL} ){{0,3}}{_CAPITAL}| "[^"]{{2,20}}" {_CAPITAL})*')
_RANK = "|".join(sorted((word for word in RANKS if word.isalpha()), key=len, reverse=True))
# ", 3rd Baron Willoughby of Parham", ", Count of Hesbaye", ", Jr.": part of the name before it.
_RANKED = re.compile(
    rf", (?:\d+(?:st|nd|rd|th) )?(?:(?:Grand |Crown |Hereditary )?(?:{_RANK}) "
    rf"(?:(?:of|von|de|in) )?{NAME.pattern}(?: and {_CAPITAL}(?=,? and [A-Z]))?|Baronet\b)"
    rf"|, (?:Holy Roman Emperor|Dauphin of France|Jr\.?|Sr\.?)(?!\w)"
)
_NEXT = re.compile(r",? (?:and|&) |, ")
# "Guy II, constable of Champagne, and Mathilde of Bourbon"
_AND = re.compile(
    r"(?:, (?:[a-z][\w-]* ){1,4}(?:of|in) [A-Z][\w’'-]+)?,? (?:and|&|by) (?:of )?"
    r"(?:(?:his|her) (?:\w+ )?(?:wife|husband|consort),? |the former |the )?"
)
_PLACE = re.compile(rf"(?:the )?{NAME.pattern}(?:, (?:{NAME.pattern}))*")


class NameList(NamedTuple):
    """Consecutive names in a text, and where they end."""

    names: tuple[str, ...]
    end: int


def base_title(title: str) -> str:
    """A title without the parenthesis at its end."""
    return bare_title(title) or title


def without_rank(name: str) -> str:
    """The name without leading ranks, unless it consists of ranks only."""
    words = name.split()
    while len(words) > 1 and words[0] in RANKS and words[1] not in ("of", "von", "de"):
        words.pop(0)
    return " ".join(words)


def names_at(text: str, at: int, *, joined: Collection[str] = (), commas: bool = True) -> NameList:
    """The names that start here: "A", "A and B", "A, B and C".

    `joined` are pairs of words whose "and" belongs to one name ("Greece and Denmark"). Without
    `commas` only "and" continues the list.
    """
    found: list[str] = []
    start = end = at
    while (match := NAME.match(text, at)) is not None:
        end = match.end()
        if (rank := _RANKED.match(text, end)) is not None:
            end = rank.end()
        pair = re.match(r" and ([A-Z][\w-]+)", text[end:])
        if pair and f"{text[start:end].split()[-1]} and {pair[1]}" in joined:
            end += pair.end()
        name = text[start:end]
        last = name.split()[-1]
        # A full stop ends the sentence, unless it belongs to an initial or an abbreviation.
        stopped = name.endswith(".") and len(last) > 2 and last not in ("Jr.", "Sr.")
        if stopped:
            name, end = name.rstrip("."), end - 1
        found.append(re.sub(r"['’]s?$", "", re.sub(r' "[^"]*"', "", name)))
        following = (_NEXT if commas else _AND).match(text, end)
        if stopped or text[end - 2 : end] in ("'s", "’s") or following is None:
            break
        start = at = following.end()
    return NameList(tuple(found), end)


def place_at(text: str, at: int) -> str | None:
    """The place that starts here, with surrounding places: "Cahir, County Tipperary, Ireland"."""
    match = _PLACE.match(text, at)
    return match.group().rstrip(".") if match else None
