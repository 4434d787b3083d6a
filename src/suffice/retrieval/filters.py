"""Filters on metadata in the grammar of Multi-Meta-RAG, read strictly.

    {"source": {"$in": ["The Verge", "Engadget"]}, "published_at": {"$gte": "2023-10-01", "$lt": "November 2023"}}

Fields: source, category, entities, published_at. Operators: $in, $nin, $eq, $ne, and for dates $gt, $gte, $lt, $lte; a plain
value means $eq; `$and` at the top joins several such filters. Dates are ISO days or words ("October 31, 2023"); a month or a
year stands for all its days. Whatever does not fit is an InputError that says what would.

A null in a list of values means "or no such field", as in MongoDB, and makes the whole filter lenient. A filter made from a
question is a guess: it is lenient, and `suffice.retrieval.soft_filter` never lets it empty the result.
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

__all__ = ["FILTERED_FIELDS", "MAX_VALUES", "bounds", "filter_for", "parse_filter"]

MAX_VALUES = 10_000
FILTERED_FIELDS: tuple[Field, ...] = (
    "source",
    "published_at",
)  # that a question's own filter looks at unless told
_LISTS = {"$in": "$in", "$nin": "$nin", "$eq": "$in", "$ne": "$nin"}
_BOUNDS = ("$gt", "$gte", "$lt", "$lte")
_EXAMPLE = (
    'a filter looks like {"source": {"$in": ["The Verge"]}, "published_at": {"$gte": "2023-10-01"}}'
)


# ---------------------------------------------------------------------------------------------------- reading


def parse_filter(
    filter: Mapping[str, Any], vocabulary: Vocabulary, *, skip_unknown: bool = False
) -> Filter:
    """The filter that a mapping describes, in the spelling of the corpus.

    A name that the corpus does not know is an error, or with `skip_unknown` left out; a list of unknown names alone then is no
    condition. "Fox News" stands for all sources that begin so.
    """
    reader = _FilterParser(vocabulary, skip_unknown)
    conditions = dict.fromkeys(_conditions(filter, reader))
    _check_range(conditions)
    return Filter(tuple(conditions), lenient=reader.lenient)


def _conditions(filter: Any, reader: _FilterParser, *, top: bool = True) -> Iterator[Condition]:
    if not isinstance(filter, Mapping):
        raise InputError(f"a filter must be a mapping, found {_shown(filter)}", hint=_EXAMPLE)
    for name, wanted in filter.items():
        if name == "$and" and top:
            if not isinstance(wanted, list | tuple) or not wanted:
                raise InputError(
                    f"$and holds a list of filters, found {_shown(wanted)}", hint=_EXAMPLE
                )
            if len(wanted) > MAX_VALUES:
                raise InputError(
                    f"$and holds {len(wanted):,} filters; at most {MAX_VALUES:,} are allowed"
                )
            for one in wanted:
                yield from _conditions(one, reader, top=False)
        elif name not in FIELDS:
            raise InputError(
                f"no field is named {_shown(name)}", hint=did_you_mean(str(name)[:100], FIELDS)
            )
        else:
            yield from reader.field(name, wanted)


class _FilterParser:
    """Turns what stands behind a field into conditions that the vocabulary knows."""

    def __init__(self, vocabulary: Vocabulary, skip_unknown: bool) -> None:
        self.vocabulary, self.skip_unknown = vocabulary, skip_unknown
        self.lenient = False

    def field(self, field: Field, wanted: Any) -> Iterator[Condition]:
        operators = wanted if isinstance(wanted, Mapping) else {"$eq": wanted}
        if not operators:
            raise InputError(f"field {field!r} has no operator", hint=_EXAMPLE)
        for operator, operand in operators.items():
            if operator in _LISTS:
                values = self._list(field, operator, operand)
                one = (
                    self._dates(operator, values)
                    if field == "published_at"
                    else self._names(field, operator, values)
                )
                yield from one
            elif operator in _BOUNDS and field == "published_at":
                yield _bound(operator, _parse_date(operand))
            elif operator in _BOUNDS:
                raise InputError(
                    f"{operator} is for dates; {field!r} takes {', '.join(_LISTS)}", hint=_EXAMPLE
                )
            else:
                raise InputError(
                    f"no operator is named {_shown(operator)}",
                    hint=did_you_mean(str(operator)[:100], (*_LISTS, *_BOUNDS)),
                )

    def _list(self, field: Field, operator: str, operand: Any) -> list[Any]:
        if operator in ("$eq", "$ne"):
            return [operand]
        if not isinstance(operand, list | tuple):
            raise InputError(
                f"{field} {operator} takes a list, found {_shown(operand)}", hint=_EXAMPLE
            )
        if not operand:
            raise InputError(
                f"{field} {operator} has an empty list",
                hint="name at least one value, or leave the field out",
            )
        if len(operand) > MAX_VALUES:
            raise InputError(
                f"{field} {operator} has {len(operand):,} values; at most {MAX_VALUES:,} are allowed"
            )
        known = [value for value in operand if value is not None]
        self.lenient |= operator == "$in" and 0 < len(known) < len(operand)
        return known or list(operand)

    def _names(self, field: Field, operator: str, values: list[Any]) -> Iterator[Condition]:
        found: dict[str, None] = {}
        for value in values:
            if not isinstance(value, str):
                raise InputError(
                    f"{field} {operator} takes texts, found {_shown(value)}", hint=_EXAMPLE
                )
            known = self.vocabulary.resolve(field, value)
            if not known and not self.skip_unknown:
                raise InputError(
                    f"no {field} is named {_shown(value)}",
                    hint=did_you_mean(value[:100], self.vocabulary.values[field]),
                )
            found.update(dict.fromkeys(known))
        if found:
            yield Condition(field, "$in" if _LISTS[operator] == "$in" else "$nin", tuple(found))

    def _dates(self, operator: str, values: list[Any]) -> Iterator[Condition]:
        spans = [_parse_date(value) for value in values]
        include = _LISTS[operator] == "$in"
        if include and len(spans) == 1 and spans[0].first != spans[0].last:
            yield from (_bound("$gte", spans[0]), _bound("$lte", spans[0]))
            return
        # Conditions are joined by "and", so several months cannot be several ranges: they become the days that occur in them.
        days: dict[str, None] = {}
        for span in spans:
            if span.first == span.last:
                days.setdefault(str(span.first))
            else:
                days.update((day.isoformat(), None) for day in self.vocabulary.days_in(span))
        if days or include:
            yield Condition(
                "published_at", "$in" if include else "$nin", tuple(days) or (str(spans[0].first),)
            )


def _parse_date(value: Any) -> DateRange:
    """A day, month or year as its first and last day."""
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, date):
        return DateRange(value, value)
    if isinstance(value, str) and len(value) <= 100:
        found = date_mentions(value)
        rest = value[: found[0].start] + value[found[0].end :] if len(found) == 1 else "?"
        if not rest.strip() or rest.startswith(
            "T"
        ):  # the time of "2023-10-07T12:00:00" is not looked at
            return DateRange(found[0].first, found[0].last)
    raise InputError(
        f"published_at is compared with {_shown(value)}, expected a date",
        hint="write an ISO day like 2023-10-07, or words like October 31, 2023 or October 2023",
    )


def _bound(operator: str, span: DateRange) -> Condition:
    first, last = span.first or date.min, span.last or date.max
    try:
        match operator:
            case "$gte":
                return Condition("published_at", "$gte", (first.isoformat(),))
            case "$gt":
                return Condition("published_at", "$gte", ((last + timedelta(days=1)).isoformat(),))
            case "$lte":
                return Condition("published_at", "$lte", (last.isoformat(),))
            case _:
                return Condition("published_at", "$lte", ((first - timedelta(days=1)).isoformat(),))
    except OverflowError as error:
        raise InputError(
            f"no day lies {'after' if operator == '$gt' else 'before'} {last}"
        ) from error


def bounds(conditions: Iterable[Condition]) -> tuple[str, str]:
    """The first and the last day that pass the ranges among them, as ISO days; "" and the last day of all where it is open."""
    ends = [(one.operator, one.values[0]) for one in conditions if one.operator in ("$gte", "$lte")]
    since = max((day for operator, day in ends if operator == "$gte"), default="")
    return since, min(
        (day for operator, day in ends if operator == "$lte"), default=date.max.isoformat()
    )


def _check_range(conditions: Iterable[Condition]) -> None:
    since, until = bounds(conditions)
    if since > until:
        raise InputError(
            f"no date is both on or after {since} and on or before {until}",
            hint="check which end of the range is which",
        )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


# ------------------------------------------------------------------------------------------- from a question


def filter_for(
    mentions: Mentions, *, fields: Sequence[Field] = FILTERED_FIELDS, lenient: bool = True
) -> Filter:
    """The filter of Multi-Meta-RAG for what a question names: its sources and dates; other fields on request.

    Days alone become a list; with a range among the dates, everything from the earliest to the latest passes. It is lenient: a
    question that names its sources says nothing of documents whose source nobody wrote down.
    """
    lists: tuple[tuple[Field, Operator, tuple[str, ...]], ...] = (
        ("source", "$in", mentions.sources),
        ("category", "$in", mentions.categories),
        ("entities", "$in", mentions.entities),
        ("source", "$nin", mentions.excluded),
        ("category", "$nin", mentions.excluded_categories),
    )
    conditions = [
        Condition(field, operator, values)
        for field, operator, values in lists
        if field in fields and values
    ]
    if "published_at" in fields:
        conditions += _date_conditions(mentions)
    return Filter(tuple(conditions), lenient=lenient)


def _date_conditions(mentions: Mentions) -> list[Condition]:
    denied = [
        one.first.isoformat()
        for one in mentions.excluded_dates
        if one.first and one.first == one.last
    ]
    return [
        *_named_dates(mentions),
        *([Condition("published_at", "$nin", tuple(denied))] if denied else []),
    ]


def _named_dates(mentions: Mentions) -> list[Condition]:
    if not mentions.ranges:
        days = tuple(day.isoformat() for day in mentions.days)
        return [Condition("published_at", "$in", days)] if days else []
    spans = [*mentions.ranges, *(DateRange(day, day) for day in mentions.days)]
    firsts, lasts = [one.first for one in spans], [one.last for one in spans]
    conditions = []
    if None not in firsts:
        conditions.append(_bound("$gte", DateRange(min(one for one in firsts if one), None)))
    if None not in lasts:
        conditions.append(_bound("$lte", DateRange(None, max(one for one in lasts if one))))
    return conditions
