"""Dates: those that a text mentions, and which days a question asks about.

    date_mentions("It opened on October 7, 2023.")          # the day, and where it stands
    question_dates("What was said between October and December 2023?", span=...)

In a question, a relation counts only directly before the date: "after the report published on
October 31, 2023" names a day, not a range. A bare year is a date only after such a word, as in "in
2023", because most four-digit numbers are something else.

With a clock, "yesterday", "in the last two weeks", "last Monday" and "in October" are understood,
too. A month without a year is the latest one that is not in the future. It counts only after a word
about time, because "May" and "March" are also ordinary words.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from suffice.lexicon import MONTHS, WEEKDAYS


@dataclass(frozen=True, slots=True)
class DateMention:
    """A day, month or year in a text: the first and last day it covers, and its position."""

    first: date
    last: date
    start: int
    end: int


_MONTH_NUMBERS = {
    form.casefold(): number
    for number, name in enumerate(MONTHS, start=1)
    for form in (name, name[:3], name[:3] + ".")
} | {"sept": 9, "sept.": 9}
_MONTH = (
    "(?=[adfjmnos])(?P<month>"
    + "|".join(sorted(map(re.escape, _MONTH_NUMBERS), key=len, reverse=True))
    + r")(?!\w)"
)
_YEAR = r"(?P<year>[12]\d{3})"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<!\w){_YEAR}-(?P<month_no>[01]?\d)-(?P<day>[0-3]?\d)(?!\d)",
        rf"(?<!\w){_MONTH}\s+{_DAY}\s*,?\s+{_YEAR}(?!\w)",
        rf"(?<!\w){_DAY}\s+(?:of\s+)?{_MONTH}\s*,?\s+{_YEAR}(?!\w)",
        rf"(?<!\w){_MONTH}\s*,?\s+{_YEAR}(?!\w)",
        r"(?<![\w.,$€£-])(?P<year>(?:1[5-9]|20)\d\d)(?![\w%]|[.,-]\d)",
    )
]


def date_mentions(text: str) -> list[DateMention]:
    """Dates in order: days ("October 7, 2023", "2023-10-07"), months ("October 2023"), years."""
    found: list[DateMention] = []
    taken = bytearray(len(text))
    for pattern in _DATES:
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(taken[start:end]):
                continue
            if (mention := _parse_date(match)) is not None:
                found.append(mention)
                taken[start:end] = b"x" * (end - start)
    return sorted(found, key=lambda mention: mention.start)


def _parse_date(match: re.Match[str]) -> DateMention | None:
    parts = match.groupdict()
    year = int(parts["year"])
    word, number = parts.get("month"), parts.get("month_no")
    month = _MONTH_NUMBERS[word.casefold()] if word else int(number) if number else None
    day = int(parts["day"]) if parts.get("day") else None
    if month is None:
        return DateMention(date(year, 1, 1), date(year, 12, 31), *match.span())
    try:
        first = date(year, month, day or 1)
    except ValueError:
        return None
    last = first if day else date(year, month, calendar.monthrange(year, month)[1])
    return DateMention(first, last, *match.span())


def parse_day(text: str) -> tuple[int, int, int] | None:
    """The first year, month and day in a text, 0 for unknown parts; None without a year."""
    if mentions := date_mentions(text):
        first, last = mentions[0].first, mentions[0].last
        whole_year, whole_month = (last - first).days > 31, last > first
        return first.year, 0 if whole_year else first.month, 0 if whole_month else first.day
    year = re.search(r"(?<!\d)\d{3,4}(?!\d)", text)
    return (int(year.group()), 0, 0) if year else None


def written_day(day: date) -> str:
    """The day in words: "October 7, 2023"."""
    return f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


# --- which days a question asks about

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DateRange:
    """First and last day, both included; None if open."""

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
    """The ranges that a question names, and those it excludes ("other than October 7, 2023")."""

    named: tuple[DateRange, ...] = ()
    excluded: tuple[DateRange, ...] = ()


# How the words before a date turn it into a range. "as of 2023" says when something holds, not when
# it was written.
_RELATIONS = {
    words: relation
    for relation, several in {
        "after": "after|later than",
        "since": "since|on or after|no earlier than|not before|starting",
        "state": "as of",
        "before": "before|prior to|earlier than",
        "until": "until|till|up to|by|on or before|no later than|not after",
        "within": "in|during|throughout|within|of|from",
        "not": "other than|except|except for|except in|excluding|not on|not in|not from",
    }.items()
    for words in several.split("|")
}
_LONGEST_FIRST = "|".join(sorted(map(re.escape, _RELATIONS), key=len, reverse=True))
_RELATION = re.compile(
    rf"\b({_LONGEST_FIRST})\s+(?:the\s+)?(?:early\s+|late\s+|mid-|the year\s+)?$", re.IGNORECASE
)
_OPENING = re.compile(r"\b(?:between|from)\s+(?:the\s+)?$", re.IGNORECASE)
_JOINT = re.compile(r"\s*,?\s*(?:and|to|until|till|through|[-–—])\s*", re.IGNORECASE)
# "between October 1 and ...", "from October to ...": only the second date has a year.
_START_WITHOUT_YEAR = re.compile(
    r"\b(?:between|from)\s+(?P<start>[^\W\d_]{3,9}\.?(?:\s+\d{1,2}(?:st|nd|rd|th)?)?)"
    r"\s*,?\s*(?:and|to|until|till|through|[-–—])\s*$",
    re.IGNORECASE,
)
_MAX_RELATION_CHARS = 60  # looking back further would be quadratic for long texts


def question_dates(question: str, *, span: DateRange, today: date | None = None) -> QuestionDates:
    """The dates in a question. A bare year outside `span`, the corpus's dates, is ignored.

    `today` is the clock for "yesterday"; without it, such words are ignored.
    """
    found = dict.fromkeys(_date_ranges(question, span, today))
    named = tuple(one for one, excluded in found if not excluded)
    return QuestionDates(named, tuple(one for one, out in found if out and one not in named))


def _date_ranges(
    question: str, span: DateRange, today: date | None
) -> Iterator[tuple[DateRange, bool]]:
    """Ranges, and whether the question excludes them."""
    mentions = date_mentions(question)
    if today is not None:
        relative = relative_dates(question, today, taken=mentions)
        mentions = sorted([*mentions, *relative], key=lambda one: one.start)
    at = 0
    while at < len(mentions):
        one, following = mentions[at], mentions[at + 1] if at + 1 < len(mentions) else None
        before = question[max(0, one.start - _MAX_RELATION_CHARS) : one.start]
        at += 1
        joined = following and _JOINT.fullmatch(question[one.end : following.start])
        if following and joined and _OPENING.search(before):
            at += 1
            years = _is_year(one) and _is_year(following)
            if not years or _overlap(one.first, following.last, span):
                first, last = sorted((one.first, following.last))
                yield DateRange(first, last), False
        elif (start := _start_without_year(before, one)) is not None:
            yield DateRange(start, one.last), False
        else:
            yield from _related_range(before, one, span)


def _related_range(
    before: str, mention: DateMention, span: DateRange
) -> Iterator[tuple[DateRange, bool]]:
    word = _RELATION.search(before)
    relation = _RELATIONS[" ".join(word.group(1).casefold().split())] if word else None
    first, last = mention.first, mention.last
    if _is_year(mention) and (relation is None or not _overlap(first, last, span)):
        return
    match relation:
        case "after":
            if last < date.max:
                yield DateRange(last + ONE_DAY, None), False
        case "since":
            yield DateRange(first, None), False
        case "before":
            if first > date.min:
                yield DateRange(None, first - ONE_DAY), False
        case "until":
            yield DateRange(None, last), False
        case "state":
            return
        case _:
            yield DateRange(first, last), relation == "not"


def _start_without_year(before: str, end: DateMention) -> date | None:
    opening = _START_WITHOUT_YEAR.search(before)
    if opening is None or _is_year(end):
        return None
    for year in (end.first.year, end.first.year - 1):  # "from November to January 2024"
        found = date_mentions(f"{opening['start']}, {year}")
        if found and not _is_year(found[0]) and found[0].first <= end.last:
            return found[0].first
    return None


def _is_year(mention: DateMention) -> bool:
    """Whether it is a four-digit number. "last year" is longer, and certainly a date."""
    return mention.end - mention.start == 4


def _overlap(first: date, last: date, span: DateRange) -> bool:
    return (span.first is None or last >= span.first) and (span.last is None or first <= span.last)


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
_NUMBER = rf"\d{{1,3}}|{'|'.join(_NUMBERS)}"
_UNIT = "day|week|month|year"
_RELATIVE = re.compile(
    rf"\b(?:(?P<word>today|yesterday)|(?P<count>{_NUMBER})\s+(?P<unit>{_UNIT})s?\s+ago|"
    rf"(?:the\s+)?(?:last|past)\s+(?P<span>{_NUMBER})\s+(?P<units>{_UNIT})s?|"
    rf"(?P<which>this|last|past|previous)\s+"
    rf"(?:(?P<whole>week|month|year)|(?P<weekday>{'|'.join(WEEKDAYS)})))\b",
    re.IGNORECASE,
)
_MONTH_WITHOUT_YEAR = re.compile(
    r"\b(?:in|during|throughout|within|since|after|before|until|till|by|on|from|of)\s+"
    r"(?:early\s+|late\s+|mid-)?"
    rf"(?P<date>(?:{'|'.join(MONTHS)})(?:\s+\d{{1,2}}(?:st|nd|rd|th)?)?)"
    r"(?!\s*,?\s*\d)\b"
)


def relative_dates(
    question: str, today: date, *, taken: Sequence[DateMention] = ()
) -> list[DateMention]:
    """Dates relative to the clock, unless they overlap one of `taken`."""
    found = []
    for match in _RELATIVE.finditer(question):
        try:
            found.append(DateMention(*_first_and_last(match, today), *match.span()))
        except (OverflowError, ValueError):
            continue  # "999 years ago"
    for match in _MONTH_WITHOUT_YEAR.finditer(question):
        for year in (today.year, today.year - 1):
            dates = date_mentions(f"{match['date']}, {year}")
            if dates and dates[0].first <= today and (dates[0].last - dates[0].first).days <= 31:
                found.append(DateMention(dates[0].first, dates[0].last, *match.span("date")))
                break
    return [
        one
        for one in found
        if not any(one.start < other.end and other.start < one.end for other in taken)
    ]


def _first_and_last(match: re.Match[str], today: date) -> tuple[date, date]:
    groups = {name: value and value.casefold() for name, value in match.groupdict().items()}
    if groups["word"]:
        day = today if groups["word"] == "today" else today - ONE_DAY
        return day, day
    if groups["count"]:
        day = _back(today, _number(groups["count"]), groups["unit"])
        return (day, day) if groups["unit"] == "day" else _whole(groups["unit"], day)
    if groups["span"]:
        return _back(today, _number(groups["span"]), groups["units"]), today
    last = groups["which"] != "this"
    if groups["weekday"]:
        wanted = [name.casefold() for name in WEEKDAYS].index(groups["weekday"])
        passed = (today.weekday() - wanted) % 7
        day = today - timedelta(days=(passed or 7) if last else passed)
        return day, day
    first, end = _whole(groups["whole"], _back(today, 1, groups["whole"]) if last else today)
    return first, min(end, today)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else _NUMBERS[text]


def _back(day: date, count: int, unit: str) -> date:
    if unit in ("day", "week"):
        return day - timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 - count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _whole(unit: str, day: date) -> tuple[date, date]:
    """The week (from Monday), month or year of a day."""
    if unit == "week":
        first = day - timedelta(days=day.weekday())
        return first, first + timedelta(days=6)
    if unit == "month":
        end = calendar.monthrange(day.year, day.month)[1]
        return day.replace(day=1), day.replace(day=end)
    return date(day.year, 1, 1), date(day.year, 12, 31)
