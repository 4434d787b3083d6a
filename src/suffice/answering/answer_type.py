"""The expected answer type of a question, and the spans of a text that have that type.

A person, place or thing is a name. Dates and numbers are recognized by their form. A country is its
name or its nationality. A kind is what something is said to be ("an American film director").
`extractive_reader` decides which span is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from suffice.lexicon import MONTHS, NUMBER_WORDS, SENTENCE_OPENERS, WEEKDAYS
from suffice.storage.records import read_toml
from suffice.text import date_mentions, title_key, tokens


class AnswerType(StrEnum):
    PERSON = "person"
    PLACE = "place"
    COUNTRY = "country"
    DATE = "date"
    NUMBER = "number"
    YES_NO = "yes or no"
    CHOICE = "choice"
    KIND = "kind"
    THING = "thing"


@dataclass(frozen=True, slots=True)
class Span:
    """Part of a text and its position."""

    text: str
    start: int
    end: int


VOCABULARY = read_toml(Path(__file__).parent / "vocabulary.toml")
_AUXILIARY = (
    r"(?:is|are|am|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|must|may|might)"
    r"(?:n['’]t)?\b"
)
_YES_NO = re.compile(rf"^(?:{_AUXILIARY}|(?:is it )?true that\b)", re.IGNORECASE)
# "Under clause 4, can Lena sell?": a verb before its subject. "A and B are both operas?" counts
# too, if no word asks for more.
_ASKS_LATER = re.compile(
    rf"(?:[,:;.]|\s[-–—])\s+{_AUXILIARY}\s+(?:(?-i:[^\Wa-z_])|(?:i|you|he|she|it|we|they|the|an?|my|your"
    r"|our|his|her|its|their|this|that|these|those|there|any|anyone|someone|all|both)\b)",
    re.IGNORECASE,
)
_STATES = re.compile(
    rf"^(?:(?!\b(?:that|who|which|when|where|if|while)\b).)*\b{_AUXILIARY}", re.IGNORECASE
)
_ORDERS = re.compile(r"\b(?:name|list|give|tell|find|this)\b", re.IGNORECASE)
# The first of these that matches asks. "Who", "when" and "where" ask at the start of a clause;
# elsewhere they describe, as in "the town where she lives".
_ASKING = r"(?P<asks>who|whom|whose|what|whats|which|when|where|why|how)\b"
_ASKS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"^(?!what if\b|when (?!{_AUXILIARY})){_ASKING}",
        r"\b(?P<asks>whats?(?! if\b)|how (?:many|much|long|old|tall|high|far|large|big|often))\b",
        rf"(?:[,;:.?!–—-]|\band)\s(?!which\b){_ASKING}",
        r"(?<!,\s)\b(?P<asks>which)\b",
        rf"\b(?:by|to|from|until|since|with|about|before|after) {_ASKING}",
        r"\b(?P<asks>whom|^when|(?:who|when|where)(?=\W*$))\b",
    )
)
_MAY_ASK = re.compile(r",\s+which\b", re.IGNORECASE)  # or describe
_IS_WHAT = re.compile(r"\b(?:are|were|is|was) (?:both )?what\W*$", re.IGNORECASE)
_OPEN_END = re.compile(
    r"\b(?:as|in|by|of|for|to|from|with|on|at|called|named)\s*\?$", re.IGNORECASE
)
_EITHER = re.compile(rf"^{_AUXILIARY} either\b", re.IGNORECASE)
MIN_CLAUSE = 3  # fewest words of a clause that answers a yes/no question
MAX_CHOICE = 20  # words of a question with "or" that offers a choice, not a statement
MAX_NAME = 8  # words: anything longer is a clause about a person
_DAYS = frozenset(map(str.casefold, (*MONTHS, *WEEKDAYS)))
_TIME = re.compile(
    r"\d|\b(?:spring|summer|autumn|fall|winter|morning|dawn|dusk|sunrise|sunset|noon|evening|night|midnight|today|tomorrow"
    r"|yesterday|now|century|year|month|week|day|hour|minute|before|after|during|until|since|when"
    r"|once|every|daily|weekly|monthly|annual|past|soon|never|always|first|second|third|fourth|fifth"
    r"|sixth|seventh|eighth|ninth|tenth|\w+teenth|twent(?:ieth|y-\w+)|thirt(?:ieth|y-\w+)|last)s?\b",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"\d|\b(?:one|no|none|half|all|both|zero|once|twice|every|each|daily|weekly|monthly|yearly|an?"
    r"|several|many|few|dozens?|hundreds|thousands|millions|little|overnight|\w+teen|\w+fold"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty)\b",
    re.IGNORECASE,
)
_SENTENCE_BREAK = re.compile(r"\w{4,}[.!?]\s+[^\Wa-z]")  # not after "Edward L." or "St."
_LETTERS = re.compile(r"[^\W\d_]{2}|[^\W\d_]\.")
_CHOICE = re.compile(r"\b(?:which|who|what|between)\b|^(?:was|were|is|are|did)\b", re.IGNORECASE)
_WHICH = r"(?:what|which)(?:['’]?s| is| was| are| were)?(?: the)?(?: name of the)? (?:\w+ ){0,2}"
_END = (
    rf"(?=\W*$|[^\w\s]|\s+(?:{_AUXILIARY}|(?:of|in|on|at|for|to|from|with|by|and|or|that|which|who"
    r"|where|when|the|an?|between|\w+ed|\w+ly|\w+s)\b|(?-i:[^\Wa-z_])))"
)
_TYPES = {
    AnswerType(name): re.compile(
        pattern.replace("{which}", _WHICH).replace("{end}", _END), re.IGNORECASE
    )
    for name, pattern in VOCABULARY["answer_types"].items()
}


def expected_answer_type(question: str) -> AnswerType:
    """The type of the answer, from the words that ask; THING if they do not tell."""
    text = " ".join(question.split())
    at = _place_that_asks(text)
    is_long_statement = _YES_NO.match(text) and len(text.split()) > MAX_CHOICE
    has_choice = re.search(r"\bor\b", text) and _CHOICE.search(text) and not _EITHER.match(text)
    if has_choice and not is_long_statement:
        return AnswerType.CHOICE
    if _asks_whether(text, at):
        return AnswerType.YES_NO
    if _IS_WHAT.search(text):
        return AnswerType.KIND
    if at is None and (found := _MAY_ASK.search(text)):
        at = found.end() - len("which")
    asked = f"what is the {text}" if at is None else text[at:]
    return next((name for name, one in _TYPES.items() if one.match(asked)), AnswerType.THING)


def _place_that_asks(question: str) -> int | None:
    """Where the word is that asks; None if there is none: "opening hours of the archive"."""
    found = (match.start("asks") for one in _ASKS if (match := one.search(question)))
    return next(found, None)


def _asks_whether(question: str, asks_at: int | None) -> bool:
    if _YES_NO.match(question):
        return True
    if later := _ASKS_LATER.search(question):
        return asks_at is None or later.start() < asks_at
    is_statement = question.endswith("?") and _STATES.search(question) is not None
    asks_for = asks_at is not None or any(
        one.search(question) for one in (_MAY_ASK, _ORDERS, _OPEN_END)
    )
    return is_statement and not asks_for


# --- finding spans

_MONTH = rf"(?:{'|'.join(MONTHS)}|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?"
# Chronicles give years of three digits after a day; `suffice.text` does not read these as dates.
_DATE = re.compile(
    # "18 August 183127 October 1888": if a dash was lost, the year ends after four digits.
    rf"\b\d{{1,2}} {_MONTH} \d{{4}}(?=\d{{1,2}} {_MONTH})"
    rf"|(?<=\d{{4}})\d{{1,2}} {_MONTH} \d{{4}}\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH},? \d{{3,4}}\b"
    rf"|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{3,4}}\b"
    rf"|\b{_MONTH} \d{{4}}\b|(?<![\d,.])(?:1\d|20)\d\d(?![\d,s]|\.\d)"
)
_NUMBER = re.compile(
    r"(?<![\w.,-])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
    r"(?: (?:million|billion|thousand|hundred|percent))?(?!\w)"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty)\b",
    re.IGNORECASE,
)
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}

NATIONALITIES: set[str] = set()


def _country_keys() -> dict[str, str]:
    """Map every word for a country or its people to one key; fills NATIONALITIES."""
    keys: dict[str, str] = {}
    for pair in VOCABULARY["nationalities"].split():
        country, nationality = pair.split(":")
        keys[country] = keys[nationality.replace("_", " ")] = country
        NATIONALITIES.add(nationality)
    keys |= dict.fromkeys(("united states", "american", "usa", "us"), "america")
    keys |= dict.fromkeys(("united kingdom", "uk", "british"), "britain")
    keys |= {"new zealand": "zealand", "south africa": "africa", "south korea": "korea"}
    keys["soviet union"] = "soviet"
    for word in ("us", "zealand", "africa"):  # ambiguous without the full name
        keys.pop(word)
    return keys


COUNTRIES = _country_keys()
_COUNTRY = re.compile(
    rf"\b(?:{'|'.join(sorted(COUNTRIES, key=len, reverse=True))})\b", re.IGNORECASE
)


def find_spans(text: str, answer_type: AnswerType) -> list[Span]:
    """All spans of this type, in order; none for types that have no recognizable form."""
    find = _FINDERS.get(answer_type)
    return [] if find is None else list(find(text))


def _matches(pattern: re.Pattern[str]) -> Callable[[str], Iterator[Span]]:
    return lambda text: (Span(one.group(), *one.span()) for one in pattern.finditer(text))


# Like the names in `suffice.text`, but with initials inside ("Edward L. Cahn"), and split at "and".
_PART = r"(?:(?:[^\W\d_a-z]\.)+(?=\s)|(?:St|Mt|Ft|Dr|Mr|Mrs)\.|[^\W\d_a-z][\w'’&-]{0,40})"
_SMALL = r"(?:of|the|de|da|di|del|della|van|von|der|den|la|le|du|bin|ibn|al|zu|y)"
_NAME = re.compile(rf"(?<![\w'’]){_PART}(?:\s+(?:{_SMALL}\s+){{0,2}}{_PART}){{0,11}}")
# "William, Duke of Nassau" and "James Douglas, 14th Earl of Morton" are one name each.
_RANK = (
    r"(?:Duke|Duchess|Earl|Count|Countess|Viscount|Viscountess|Baron|Baroness|Baronet|Marquess"
    r"|Marquis|Margrave|Landgrave|Elector|Prince|Princess|King|Queen|Lord|Lady|Emperor|Empress"
    r"|Archduke|Grand Duke)"
)
_TITLED = re.compile(
    rf"{_NAME.pattern},\s+(?:\d+(?:st|nd|rd|th)\s+)?{_RANK}"
    rf"(?:\s+(?:of|de|von)\s+(?:the\s+)?{_PART}(?:-\s?{_PART})?)?"
)
_QUOTED = re.compile(  # a title of several words
    r"[\"“](?=[^\W\da-z_][^\s\"“”]*\s)([^\"“”]{5,160}?)[,.]?[\"”]"
)


def _persons(text: str) -> Iterator[Span]:
    """Names with their ranks; a title in quotes is not a person."""
    titled = {found.start(): found for found in _TITLED.finditer(text)}
    quoted = [found.span() for found in _QUOTED.finditer(text)]
    for span in _names(text):
        if any(start <= span.start < end for start, end in quoted):
            continue
        found = titled.get(span.start)
        if found is not None:
            yield Span(found.group(), *found.span())
        elif not any(start < span.start < one.end() for start, one in titled.items()):
            yield span


def _names(text: str) -> Iterator[Span]:
    for found in _NAME.finditer(text):
        start, words = found.start(), found.group().split()
        while words and words[0].casefold() in SENTENCE_OPENERS:
            start = text.index(words[0], start) + len(words.pop(0))
        name = re.sub(r"['’]s?$", "", " ".join(words))
        if name:
            start = text.index(words[0], start)
            yield Span(name, start, found.end())


def _things(text: str) -> Iterator[Span]:
    """Names, and titles in quotes as a whole."""
    quoted = [Span(found[1], *found.span(1)) for found in _QUOTED.finditer(text)]
    named = (
        one
        for one in _names(text)
        if not any(title.start <= one.start < title.end for title in quoted)
    )
    return iter(sorted((*quoted, *named), key=lambda one: one.start))


def _places(text: str) -> Iterator[Span]:
    """Names after a preposition of place: "in Prague"."""
    place = re.compile(r"\b(?:in|at|near|from|to|of|into)\s+(?:the\s+)?$")
    return (span for span in _names(text) if place.search(text[: span.start]))


def _countries(text: str) -> Iterator[Span]:
    return (span for span in _matches(_COUNTRY)(text) if span.text[0].isupper())


# "is an American actor, writer and producer who ...": from the article to where the kind ends.
_KIND = re.compile(
    r"\b(?:is|was|are|were)\s+(?:(?:also|both|primarily|best known as)\s+)?"
    r"(?:(?:an?|the|one of the)\s+)?(?P<what>[^.;()]+?)"
    r"(?=\s*(?:[.;()]|$|,?\s(?:who|whose|which|that|where|when|from|by|for|known|born|best|based"
    r"|located|in|on|at|with|(?<!genus )(?<!species )(?<!family )(?<!type )(?<!kind )of"
    r"|belonging|starring|featuring|directed|written|produced|created|published|released|founded"
    r"|native|endemic|and (?:is|was))\b))"
)


def _kinds(text: str) -> Iterator[Span]:
    text = re.sub(r"\([^()]*\)", lambda aside: " " * len(aside.group()), text)
    return (Span(found["what"], *found.span("what")) for found in _KIND.finditer(text))


_FINDERS: dict[AnswerType, Callable[[str], Iterator[Span]]] = {
    AnswerType.PERSON: _persons,
    AnswerType.PLACE: _places,
    AnswerType.THING: _things,
    AnswerType.COUNTRY: _countries,
    AnswerType.DATE: _matches(_DATE),
    AnswerType.NUMBER: _matches(_NUMBER),
    AnswerType.KIND: _kinds,
}


# --- values that compare


def parse_day(text: str) -> tuple[int, int, int] | None:
    """The first year, month and day in a text, 0 for unknown parts; None without a year."""
    if mentions := date_mentions(text):
        first, last = mentions[0].first, mentions[0].last
        whole_year, whole_month = (last - first).days > 31, last > first
        return first.year, 0 if whole_year else first.month, 0 if whole_month else first.day
    year = re.search(r"(?<!\d)\d{3,4}(?!\d)", text)
    return (int(year.group()), 0, 0) if year else None


def parse_number(text: str) -> float | None:
    """The first number in a text, in digits or in words."""
    found = _NUMBER.search(text)
    if found is None:
        return None
    first, *rest = found.group().casefold().replace(",", "").split()
    value = float(NUMBER_WORDS.get(first, first))
    return value * _SCALES.get(rest[-1] if rest else first, 1.0)


def has_form(answer: str, answer_type: AnswerType) -> bool:
    """Whether the form of an answer matches the expected type."""
    said = title_key(answer) in ("yes", "no")
    if answer_type is AnswerType.YES_NO or said:  # a clause from the passage also answers yes/no
        if answer_type is AnswerType.CHOICE:  # "Did A or B win?" may be answered with no
            return True
        return answer_type is AnswerType.YES_NO and (said or len(tokens(answer)) >= MIN_CLAUSE)
    if _SENTENCE_BREAK.search(answer):
        return False
    if answer_type is AnswerType.DATE:
        return bool(_TIME.search(answer)) or not _DAYS.isdisjoint(
            one.removesuffix("s") for one in tokens(answer)
        )
    if answer_type is AnswerType.NUMBER:
        return parse_number(answer) is not None or bool(_AMOUNT.search(answer))
    if answer_type in (AnswerType.PERSON, AnswerType.PLACE, AnswerType.COUNTRY):
        dated = any(one.text == answer for one in find_spans(answer, AnswerType.DATE))
        long = answer_type is AnswerType.PERSON and len(tokens(answer)) > MAX_NAME
        return bool(_LETTERS.search(answer)) and not dated and not long
    return True


def country_key(text: str) -> str:
    """One key for a country and its people; any other text is its own key."""
    found = _COUNTRY.search(" ".join(tokens(text)))
    return COUNTRIES[found.group().casefold()] if found else title_key(text)
