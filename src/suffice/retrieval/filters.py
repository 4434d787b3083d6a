"""Metadata filters in the grammar of Multi-Meta-RAG, parsed strictly.

    {"source": {"$in": ["The Verge", "Engadget"]},
     "published_at": {"$gte": "2023-10-01", "$lt": "November 2023"}}

Fields: source, category, entities, published_at. Operators: $in, $nin, $eq, $ne, and for dates $gt,
$gte, $lt, $lte; a plain value means $eq; `$and` at the top joins several filters. Dates are ISO
days or words ("October 31, 2023"); a month or a year stands for all its days.

A null in a list of values means "or no such field", as in MongoDB, and makes the whole filter
lenient. A filter made from a question is a guess: it is lenient, and `soft_filter` never lets it
empty the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from suffice.errors import InputError, did_you_mean
from suffice.retrieval.dates import DateRange
from suffice.retrieval.metadata import Mentions, Vocabulary
from suffice.text import date_mentions
from suffice.types import FIELDS, Condition, Field, Filter, Operator

MAX_VALUES = 10_000
FILTERED_FIELDS: tuple[Field, ...] = ("source", "published_at")  # of a question's own filter
_LISTS: dict[str, Operator] = {"$in": "$in", "$nin": "$nin", "$eq": "$in", "$ne": "$nin"}
_BOUNDS = ("$gt", "$gte", "$lt", "$lte")
_EXAMPLE = (
    'a filter looks like {"source": {"$in": ["The Verge"]}, "published_at": {"$gte": "2023-10-01"}}'
)


def parse_filter(
    filter: Mapping[str, Any], vocabulary: Vocabulary, *, skip_unknown: bool = False
) -> Filter:
    """The filter that a mapping describes, in the spelling of the corpus.

    A name that the corpus does not know is an error, or left out with `skip_unknown`; a list of
    only unknown names then is no condition. "Fox News" stands for all sources that begin so.
    """
    parser = _FilterParser(vocabulary, skip_unknown)
    conditions = dict.fromkeys(parser.parse(filter))
    since, until = date_bounds(conditions)
    if since > until:
        raise InputError(
            f"no date is both on or after {since} and on or before {until}",
            hint="check which end of the range is which",
        )
    return Filter(tuple(conditions), lenient=parser.lenient)


class _FilterParser:
    def __init__(self, vocabulary: Vocabulary, skip_unknown: bool) -> None:
        self.vocabulary, self.skip_unknown = vocabulary, skip_unknown
        self.lenient = False

    def parse(self, filter: Any, *, top: bool = True) -> Iterator[Condition]:
        if not isinstance(filter, Mapping):
            raise InputError(f"a filter must be a mapping, found {_shorten(filter)}", hint=_EXAMPLE)
        for name, operand in filter.items():
            if name == "$and" and top:
                if not isinstance(operand, list | tuple) or not operand:
                    raise InputError(
                        f"$and takes a list of filters, found {_shorten(operand)}", hint=_EXAMPLE
                    )
                _check_count(operand, "$and", "filters")
                for one in operand:
                    yield from self.parse(one, top=False)
            elif name not in FIELDS:
                hint = did_you_mean(str(name)[:100], FIELDS)
                raise InputError(f"no field is named {_shorten(name)}", hint=hint)
            else:
                yield from self._field(name, operand)

    def _field(self, field: Field, operand: Any) -> Iterator[Condition]:
        operators = operand if isinstance(operand, Mapping) else {"$eq": operand}
        if not operators:
            raise InputError(f"field {field!r} has no operator", hint=_EXAMPLE)
        for operator, value in operators.items():
            if operator in _LISTS:
                values = self._values(field, operator, value)
                if field == "published_at":
                    yield from self._dates(_LISTS[operator], values)
                else:
                    yield from self._names(field, operator, values)
            elif operator in _BOUNDS and field == "published_at":
                yield _bound(operator, _parse_date(value))
            elif operator in _BOUNDS:
                known = ", ".join(_LISTS)
                raise InputError(f"{operator} is for dates; {field!r} takes {known}", hint=_EXAMPLE)
            else:
                hint = did_you_mean(str(operator)[:100], (*_LISTS, *_BOUNDS))
                raise InputError(f"no operator is named {_shorten(operator)}", hint=hint)

    def _values(self, field: Field, operator: str, operand: Any) -> list[Any]:
        if operator in ("$eq", "$ne"):
            return [operand]
        if not isinstance(operand, list | tuple):
            raise InputError(
                f"{field} {operator} takes a list, found {_shorten(operand)}", hint=_EXAMPLE
            )
        if not operand:
            raise InputError(
                f"{field} {operator} has an empty list",
                hint="name at least one value, or leave the field out",
            )
        _check_count(operand, f"{field} {operator}", "values")
        known = [value for value in operand if value is not None]
        self.lenient |= operator == "$in" and 0 < len(known) < len(operand)
        return known or list(operand)

    def _names(self, field: Field, operator: str, values: list[Any]) -> Iterator[Condition]:
        names: dict[str, None] = {}
        for value in values:
            if not isinstance(value, str):
                raise InputError(
                    f"{field} {operator} takes texts, found {_shorten(value)}", hint=_EXAMPLE
                )
            known = self.vocabulary.resolve(field, value)
            if not known and not self.skip_unknown:
                hint = did_you_mean(value[:100], self.vocabulary.values[field])
                raise InputError(f"no {field} is named {_shorten(value)}", hint=hint)
            names.update(dict.fromkeys(known))
        if names:
            yield Condition(field, _LISTS[operator], tuple(names))

    def _dates(self, operator: Operator, values: list[Any]) -> Iterator[Condition]:
        spans = [_parse_date(value) for value in values]
        if operator == "$in" and len(spans) == 1 and spans[0].first != spans[0].last:
            yield from (_bound("$gte", spans[0]), _bound("$lte", spans[0]))
            return
        # Conditions are joined by "and", so several months cannot be several ranges: they become
        # the days in them that the corpus has.
        days: dict[str, None] = {}
        for span in spans:
            if span.first == span.last:
                days.setdefault(str(span.first))
            else:
                days.update((day.isoformat(), None) for day in self.vocabulary.days_in(span))
        if days or operator == "$in":
            yield Condition("published_at", operator, tuple(days) or (str(spans[0].first),))


def _check_count(values: Sequence[Any], where: str, what: str) -> None:
    if len(values) > MAX_VALUES:
        raise InputError(f"{where} has {len(values):,} {what}; at most {MAX_VALUES:,} are allowed")


def _parse_date(value: Any) -> DateRange:
    """A day, month or year as its first and last day."""
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, date):
        return DateRange(value, value)
    if isinstance(value, str) and len(value) <= 100:
        found = date_mentions(value)
        rest = value[: found[0].start] + value[found[0].end :] if len(found) == 1 else "?"
        if not rest.strip() or rest.startswith("T"):  # the time of "2023-10-07T12:00:00" is ignored
            return DateRange(found[0].first, found[0].last)
    raise InputError(
        f"published_at is compared with {_shorten(value)}, expected a date",
        hint="write an ISO day like 2023-10-07, or words like October 31, 2023 or October 2023",
    )


def _bound(operator: str, span: DateRange) -> Condition:
    first, last = span.first or date.min, span.last or date.max
    try:
        match operator:
            case "$gte":
                day = first
            case "$gt":
                day = last + timedelta(days=1)
            case "$lte":
                day = last
            case _:
                day = first - timedelta(days=1)
    except OverflowError as error:
        side = "after" if operator == "$gt" else "before"
        raise InputError(f"no day is {side} {last}") from error
    return Condition("published_at", "$gte" if "g" in operator else "$lte", (day.isoformat(),))


def date_bounds(conditions: Iterable[Condition]) -> tuple[str, str]:
    """The first and last ISO day that pass the ranges; "" and the last day of all where open."""
    ranges = [(one.operator, one.values[0]) for one in conditions if one.operator in _BOUNDS]
    since = max((day for operator, day in ranges if operator == "$gte"), default="")
    until = min((day for operator, day in ranges if operator == "$lte"), default=str(date.max))
    return since, until


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def filter_for(
    mentions: Mentions, *, fields: Sequence[Field] = FILTERED_FIELDS, lenient: bool = True
) -> Filter:
    """Multi-Meta-RAG's filter for what a question names: sources and dates, or other `fields`.

    Days alone become a list; with a range among the dates, everything from the earliest to the
    latest passes. Lenient: documents without a source pass a question that names its sources.
    """
    lists: tuple[tuple[Field, Operator, tuple[str, ...]], ...] = (
        ("source", "$in", mentions.sources),
        ("category", "$in", mentions.categories),
        ("entities", "$in", mentions.entities),
        ("source", "$nin", mentions.excluded),
        ("category", "$nin", mentions.excluded_categories),
    )
    conditions = [Condition(*one) for one in lists if one[0] in fields and one[2]]
    if "published_at" in fields:
        conditions += _date_conditions(mentions)
    return Filter(tuple(conditions), lenient=lenient)


def _date_conditions(mentions: Mentions) -> Iterator[Condition]:
    if mentions.ranges:
        spans = [*mentions.ranges, *(DateRange(day, day) for day in mentions.days)]
        firsts = [one.first for one in spans if one.first is not None]
        lasts = [one.last for one in spans if one.last is not None]
        if len(firsts) == len(spans):
            yield _bound("$gte", DateRange(min(firsts), None))
        if len(lasts) == len(spans):
            yield _bound("$lte", DateRange(None, max(lasts)))
    elif mentions.days:
        yield Condition("published_at", "$in", tuple(day.isoformat() for day in mentions.days))
    excluded = [
        one.first.isoformat()
        for one in mentions.excluded_dates
        if one.first and one.first == one.last
    ]
    if excluded:
        yield Condition("published_at", "$nin", tuple(excluded))
