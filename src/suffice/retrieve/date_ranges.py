"""Which days a question asks about: "on October 7, 2023", "after November 2023", "between October and December 2023".

A relation counts only where it stands directly before the date. "After the report published on October 31, 2023" names a day,
not a range; so does "the article from October 31, 2023". A bare year is a date only behind such a word ("in 2023"), since most
numbers of four digits in a question are something else. With a clock, "yesterday", "since last month" and "in October" are
read too, see `suffice.retrieve.relative_dates`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from suffice.retrieve.relative_dates import relative_dates
from suffice.text import DateMention, date_mentions

__all__ = ["AskedDates", "DateRange", "asked_dates"]


@dataclass(frozen=True, slots=True)
class DateRange:
    """First and last day, both included; None where it is open."""

    first: date | None
    last: date | None

    def __contains__(self, day: date) -> bool:
        return (self.first is None or self.first <= day) and (self.last is None or day <= self.last)

    def __str__(self) -> str:
        if self.first is None or self.last is None:
            return f"since {self.first}" if self.first else f"until {self.last}"
        return f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True, slots=True)
class AskedDates:
    """The days and ranges that a question names, in order, and those that it rules out ("other than October 7, 2023")."""

    named: tuple[DateRange, ...] = ()
    denied: tuple[DateRange, ...] = ()


# How a word before a date turns it into a range: from which end of the date, and in which direction.
_AFTER, _SINCE, _BEFORE, _UNTIL, _WITHIN, _NOT = "after", "since", "before", "until", "within", "not"
_STATE = "state"  # "as of 2023" says when something holds, not when it was written
_RELATIONS = {
    "after": _AFTER,
    "later than": _AFTER,
    "since": _SINCE,
    "on or after": _SINCE,
    "no earlier than": _SINCE,
    "not before": _SINCE,
    "starting": _SINCE,
    "as of": _STATE,
    "before": _BEFORE,
    "prior to": _BEFORE,
    "earlier than": _BEFORE,
    "until": _UNTIL,
    "till": _UNTIL,
    "up to": _UNTIL,
    "by": _UNTIL,
    "on or before": _UNTIL,
    "no later than": _UNTIL,
    "not after": _UNTIL,
    "in": _WITHIN,
    "during": _WITHIN,
    "throughout": _WITHIN,
    "within": _WITHIN,
    "of": _WITHIN,
    "from": _WITHIN,
    "other than": _NOT,
    "except": _NOT,
    "except for": _NOT,
    "except in": _NOT,
    "excluding": _NOT,
    "not on": _NOT,
    "not in": _NOT,
    "not from": _NOT,
}
_LONGEST_FIRST = "|".join(sorted(map(re.escape, _RELATIONS), key=len, reverse=True))
_RELATION = re.compile(rf"\b({_LONGEST_FIRST})\s+(?:the\s+)?(?:early\s+|late\s+|mid-|the year\s+)?$", re.IGNORECASE)
_OPENING = re.compile(r"\b(?:between|from)\s+(?:the\s+)?$", re.IGNORECASE)
_JOINT = re.compile(r"\s*,?\s*(?:and|to|until|till|through|[-–—])\s*", re.IGNORECASE)
# "between October 1 and ...", "from October to ...": the year stands only behind the second date.
_YEARLESS = re.compile(
    r"\b(?:between|from)\s+(?P<start>[^\W\d_]{3,9}\.?(?:\s+\d{1,2}(?:st|nd|rd|th)?)?)\s*,?\s*(?:and|to|until|till|through|[-–—])\s*$",
    re.IGNORECASE,
)
_REACH = 60  # no relation is longer; looking back further would make long texts quadratic


def asked_dates(question: str, *, span: DateRange, today: date | None = None) -> AskedDates:
    """What a question says of days. A bare year outside `span`, the dates of the corpus, is nothing; `today` is the clock."""
    asked = dict.fromkeys(_asked(question, span, today))
    named = tuple(one for one, denied in asked if not denied)
    return AskedDates(named, tuple(one for one, denied in asked if denied and one not in named))


def _asked(question: str, span: DateRange, today: date | None) -> Iterator[tuple[DateRange, bool]]:
    """Ranges, and whether they are ruled out."""
    mentions = date_mentions(question)
    if today is not None:
        mentions = sorted([*mentions, *relative_dates(question, today, taken=mentions)], key=lambda one: one.start)
    at = 0
    while at < len(mentions):
        one, following = mentions[at], mentions[at + 1] if at + 1 < len(mentions) else None
        before = question[max(0, one.start - _REACH) : one.start]
        at += 1
        if following and _OPENING.search(before) and _JOINT.fullmatch(question[one.end : following.start]):
            at += 1
            if not (_is_year(one) and _is_year(following)) or _overlap(one.first, following.last, span):
                yield _ordered(one.first, following.last), False
        elif (start := _yearless_start(before, one)) is not None:
            yield DateRange(start, one.last), False
        else:
            yield from _related(before, one, span)


def _related(before: str, mention: DateMention, span: DateRange) -> Iterator[tuple[DateRange, bool]]:
    word = _RELATION.search(before)
    relation = _RELATIONS[" ".join(word.group(1).casefold().split())] if word else None
    if _is_year(mention) and (relation is None or not _overlap(mention.first, mention.last, span)):
        return
    one_day = timedelta(days=1)
    match relation:
        case "after":
            if mention.last < date.max:
                yield DateRange(mention.last + one_day, None), False
        case "since":
            yield DateRange(mention.first, None), False
        case "before":
            if mention.first > date.min:
                yield DateRange(None, mention.first - one_day), False
        case "until":
            yield DateRange(None, mention.last), False
        case "state":
            return
        case _:
            yield DateRange(mention.first, mention.last), relation == _NOT


def _yearless_start(before: str, end: DateMention) -> date | None:
    opening = _YEARLESS.search(before)
    if opening is None or _is_year(end):
        return None
    for year in (end.first.year, end.first.year - 1):  # "from November to January 2024" begins the year before
        found = date_mentions(f"{opening['start']}, {year}")
        if found and not _is_year(found[0]) and found[0].first <= end.last:
            return found[0].first
    return None


def _ordered(first: date, last: date) -> DateRange:
    return DateRange(min(first, last), max(first, last))


def _is_year(mention: DateMention) -> bool:
    """Whether it is a number of four digits; "last year" is longer, and surely a date."""
    return mention.end - mention.start == 4


def _overlap(first: date, last: date, span: DateRange) -> bool:
    return (span.first is None or last >= span.first) and (span.last is None or first <= span.last)
