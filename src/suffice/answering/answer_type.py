"""The expected answer type of a question, whether an answer has its form, and values that compare.

A person, place or thing is a name. Dates and numbers are recognized by their form. A country is its
name or its nationality. A kind is what something is said to be ("an American film director").
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

from suffice.lexicon import MONTHS, NUMBER_WORDS, WEEKDAYS
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


# --- values that compare

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
        dated = any(one.end - one.start == len(answer) for one in date_mentions(answer))
        long = answer_type is AnswerType.PERSON and len(tokens(answer)) > MAX_NAME
        return bool(_LETTERS.search(answer)) and not dated and not long
    return True


def country_key(text: str) -> str:
    """One key for a country and its people; any other text is its own key."""
    found = _COUNTRY.search(" ".join(tokens(text)))
    return COUNTRIES[found.group().casefold()] if found else title_key(text)
