"""Days that a question names by the clock: "yesterday", "in the last two weeks", "three days ago", "last Monday", "in October".

The clock comes in as an argument: the same question on the same day always means the same days. A month or a day of a month
without its year ("since October", "on October 7") is the latest one that is not in the future, and counts only behind a word
about time, since "May" and "March" are words too.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from suffice.text import DateMention, date_mentions

__all__ = ["DateRange", "QuestionDates", "question_dates", "relative_dates"]


_NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "ten": 10,
    "few": 3,
}
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})"
_UNIT = r"(?P<unit>day|week|month|year)"
_DAYS = "|".join(calendar.day_name)
_MONTHS = "|".join(calendar.month_name[1:])
_RELATIVE = re.compile(
    rf"\b(?:(?P<word>today|yesterday)|{_COUNT}\s+{_UNIT}s?\s+ago|(?:the\s+)?(?:last|past)\s+(?P<span>\d{{1,3}}|{'|'.join(_NUMBERS)})"
    rf"\s+(?P<units>day|week|month|year)s?|(?P<which>this|last|past|previous)\s+(?:(?P<whole>week|month|year)|(?P<weekday>{_DAYS})))\b",
    re.IGNORECASE,
)
_MONTH_WITHOUT_YEAR = re.compile(
    rf"\b(?:in|during|throughout|within|since|after|before|until|till|by|on|from|of)\s+(?:early\s+|late\s+|mid-)?"
    rf"(?P<date>(?:{_MONTHS})(?:\s+\d{{1,2}}(?:st|nd|rd|th)?)?)(?!\s*,?\s*\d)\b"
)


def relative_dates(
    question: str, today: date, *, taken: Sequence[DateMention] = ()
) -> list[DateMention]:
    """What the question names by the clock, in order; whatever overlaps one of `taken` is left to it."""
    found = [*_by_words(question, today), *_months_without_year(question, today)]
    return [
        one
        for one in found
        if not any(one.start < other.end and other.start < one.end for other in taken)
    ]


def _by_words(question: str, today: date) -> Iterator[DateMention]:
    for match in _RELATIVE.finditer(question):
        try:
            first, last = _first_and_last(match, today)
        except (OverflowError, ValueError):
            continue  # "999 years ago"
        yield DateMention(first, last, *match.span())


def _first_and_last(match: re.Match[str], today: date) -> tuple[date, date]:
    one_day = timedelta(days=1)
    if word := match["word"]:
        day = today if word.casefold() == "today" else today - one_day
        return day, day
    if match["count"]:
        day = _back(today, _number(match["count"]), match["unit"].casefold())
        return (
            (day, day)
            if match["unit"].casefold() == "day"
            else _whole(match["unit"].casefold(), day)
        )
    if match["span"]:
        return _back(today, _number(match["span"]), match["units"].casefold()), today
    last = match["which"].casefold() != "this"
    if match["weekday"]:
        wanted = [name.casefold() for name in calendar.day_name].index(match["weekday"].casefold())
        gone = (today.weekday() - wanted) % 7
        day = today - timedelta(days=(gone or 7) if last else gone)
        return day, day
    unit = match["whole"].casefold()
    first, final = _whole(unit, _back(today, 1, unit) if last else today)
    return first, min(final, today)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else _NUMBERS[text.casefold()]


def _back(day: date, count: int, unit: str) -> date:
    if unit in ("day", "week"):
        return day - timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 - count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _whole(unit: str, day: date) -> tuple[date, date]:
    """The week (from Monday), month or year that a day lies in."""
    if unit == "week":
        first = day - timedelta(days=day.weekday())
        return first, first + timedelta(days=6)
    if unit == "month":
        return day.replace(day=1), day.replace(day=calendar.monthrange(day.year, day.month)[1])
    return date(day.year, 1, 1), date(day.year, 12, 31)


def _months_without_year(question: str, today: date) -> Iterator[DateMention]:
    for match in _MONTH_WITHOUT_YEAR.finditer(question):
        for year in (today.year, today.year - 1):
            found = date_mentions(f"{match['date']}, {year}")
            if found and found[0].first <= today and (found[0].last - found[0].first).days <= 31:
                yield DateMention(found[0].first, found[0].last, *match.span("date"))
                break


# --- date_ranges: Which days a question asks about: "on October 7, 2023", "after November 2023", "between October and December 2023".


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
class QuestionDates:
    """The days and ranges that a question names, in order, and those that it rules out ("other than October 7, 2023")."""

    named: tuple[DateRange, ...] = ()
    denied: tuple[DateRange, ...] = ()


# How a word before a date turns it into a range: from which end of the date, and in which direction.
_AFTER, _SINCE, _BEFORE, _UNTIL, _WITHIN, _NOT = (
    "after",
    "since",
    "before",
    "until",
    "within",
    "not",
)
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
_RELATION = re.compile(
    rf"\b({_LONGEST_FIRST})\s+(?:the\s+)?(?:early\s+|late\s+|mid-|the year\s+)?$", re.IGNORECASE
)
_OPENING = re.compile(r"\b(?:between|from)\s+(?:the\s+)?$", re.IGNORECASE)
_JOINT = re.compile(r"\s*,?\s*(?:and|to|until|till|through|[-–—])\s*", re.IGNORECASE)
# "between October 1 and ...", "from October to ...": the year stands only behind the second date.
_YEARLESS = re.compile(
    r"\b(?:between|from)\s+(?P<start>[^\W\d_]{3,9}\.?(?:\s+\d{1,2}(?:st|nd|rd|th)?)?)\s*,?\s*(?:and|to|until|till|through|[-–—])\s*$",
    re.IGNORECASE,
)
_REACH = 60  # no relation is longer; looking back further would make long texts quadratic


def question_dates(question: str, *, span: DateRange, today: date | None = None) -> QuestionDates:
    """What a question says of days. A bare year outside `span`, the dates of the corpus, is nothing; `today` is the clock."""
    asked = dict.fromkeys(_date_ranges(question, span, today))
    named = tuple(one for one, denied in asked if not denied)
    return QuestionDates(named, tuple(one for one, denied in asked if denied and one not in named))


def _date_ranges(
    question: str, span: DateRange, today: date | None
) -> Iterator[tuple[DateRange, bool]]:
    """Ranges, and whether they are ruled out."""
    mentions = date_mentions(question)
    if today is not None:
        mentions = sorted(
            [*mentions, *relative_dates(question, today, taken=mentions)], key=lambda one: one.start
        )
    at = 0
    while at < len(mentions):
        one, following = mentions[at], mentions[at + 1] if at + 1 < len(mentions) else None
        before = question[max(0, one.start - _REACH) : one.start]
        at += 1
        if (
            following
            and _OPENING.search(before)
            and _JOINT.fullmatch(question[one.end : following.start])
        ):
            at += 1
            if not (_is_year(one) and _is_year(following)) or _overlap(
                one.first, following.last, span
            ):
                yield _ordered(one.first, following.last), False
        elif (start := _yearless_start(before, one)) is not None:
            yield DateRange(start, one.last), False
        else:
            yield from _related(before, one, span)


def _related(
    before: str, mention: DateMention, span: DateRange
) -> Iterator[tuple[DateRange, bool]]:
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
    for year in (
        end.first.year,
        end.first.year - 1,
    ):  # "from November to January 2024" begins the year before
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
