"""Days that a question names by the clock: "yesterday", "in the last two weeks", "three days ago", "last Monday", "in October".

The clock comes in as an argument: the same question on the same day always means the same days. A month or a day of a month
without its year ("since October", "on October 7") is the latest one that is not in the future, and counts only behind a word
about time, since "May" and "March" are words too.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from suffice.text import DateMention, date_mentions

__all__ = ["relative_dates"]

_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10, "few": 3}
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})"
_UNIT = r"(?P<unit>day|week|month|year)"
_DAYS = "|".join(calendar.day_name)
_MONTHS = "|".join(calendar.month_name[1:])
_RELATIVE = re.compile(
    rf"\b(?:(?P<word>today|yesterday)|{_COUNT}\s+{_UNIT}s?\s+ago|(?:the\s+)?(?:last|past)\s+(?P<span>\d{{1,3}}|{'|'.join(_NUMBERS)})"
    rf"\s+(?P<units>day|week|month|year)s?|(?P<which>this|last|past|previous)\s+(?:(?P<whole>week|month|year)|(?P<weekday>{_DAYS})))\b",
    re.IGNORECASE,
)
_YEARLESS = re.compile(
    rf"\b(?:in|during|throughout|within|since|after|before|until|till|by|on|from|of)\s+(?:early\s+|late\s+|mid-)?"
    rf"(?P<date>(?:{_MONTHS})(?:\s+\d{{1,2}}(?:st|nd|rd|th)?)?)(?!\s*,?\s*\d)\b"
)


def relative_dates(question: str, today: date, *, taken: Sequence[DateMention] = ()) -> list[DateMention]:
    """What the question names by the clock, in order; whatever overlaps one of `taken` is left to it."""
    found = [*_by_words(question, today), *_yearless(question, today)]
    return [one for one in found if not any(one.start < other.end and other.start < one.end for other in taken)]


def _by_words(question: str, today: date) -> Iterator[DateMention]:
    for match in _RELATIVE.finditer(question):
        try:
            first, last = _meant(match, today)
        except (OverflowError, ValueError):
            continue  # "999 years ago"
        yield DateMention(first, last, *match.span())


def _meant(match: re.Match[str], today: date) -> tuple[date, date]:
    one_day = timedelta(days=1)
    if word := match["word"]:
        day = today if word.casefold() == "today" else today - one_day
        return day, day
    if match["count"]:
        day = _back(today, _number(match["count"]), match["unit"].casefold())
        return (day, day) if match["unit"].casefold() == "day" else _whole(match["unit"].casefold(), day)
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


def _yearless(question: str, today: date) -> Iterator[DateMention]:
    for match in _YEARLESS.finditer(question):
        for year in (today.year, today.year - 1):
            found = date_mentions(f"{match['date']}, {year}")
            if found and found[0].first <= today and (found[0].last - found[0].first).days <= 31:
                yield DateMention(found[0].first, found[0].last, *match.span("date"))
                break
