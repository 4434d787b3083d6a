"""Metadata filters: their syntax, and filters made from a question.

    {"source": {"$in": ["The Verge", "Engadget"]},
     "published_at": {"$gte": "2023-10-01", "$lt": "November 2023"}}

Fields: source, category, entities, published_at. Operators: $in, $nin, $eq, $ne, and for dates $gt,
$gte, $lt, $lte. A plain value means $eq; `$and` at the top level joins several filters. Dates are
ISO days or words ("October 31, 2023"); a month or a year means all its days. A null in a list means
"or no such field", as in MongoDB, and makes the whole filter lenient.

A filter made from a question is a guess: it is lenient, and `soft_filter` never lets it empty the
result. `VocabularyExtractor` uses the names of the corpus. `ModelExtractor` asks a language model,
as Multi-Meta-RAG does, and checks the answer. A wrong operator or field name is fixed if the
meaning is clear; a value that the corpus does not have, or that the question does not mention, is
dropped. Notes report both. The question itself is never rewritten.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from suffice.errors import InputError, ModelError, did_you_mean
from suffice.lexicon import STOP_WORDS
from suffice.protocols import Extractor, LanguageModel
from suffice.retrieval.metadata import Mentions, Vocabulary
from suffice.text import DateRange, date_mentions, relative_dates, tokens
from suffice.types import FIELDS, Condition, Extraction, Field, Filter, Operator

MAX_VALUES = 10_000
FILTERED_FIELDS: tuple[Field, ...] = ("source", "published_at")  # in filters made from questions
_LISTS: dict[str, Operator] = {"$in": "$in", "$nin": "$nin", "$eq": "$in", "$ne": "$nin"}
_BOUNDS = ("$gt", "$gte", "$lt", "$lte")
_EXAMPLE = (
    'a filter looks like {"source": {"$in": ["The Verge"]}, "published_at": {"$gte": "2023-10-01"}}'
)


def parse_filter(
    filter: Mapping[str, Any], vocabulary: Vocabulary, *, skip_unknown: bool = False
) -> Filter:
    """Parse a filter, with values spelled as in the corpus.

    A name that the corpus does not have is an error; with `skip_unknown` it is left out, and a list
    of only unknown names becomes no condition. "Fox News" matches all sources that begin with it.
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
        # Conditions are joined by "and", so several months cannot be several ranges. Use the days
        # of the corpus that are in them.
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
        if not rest.strip() or rest.startswith("T"):  # ignore the time of "2023-10-07T12:00:00"
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
    """The first and last ISO day that pass the ranges; "" and the last possible day if open."""
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
    latest passes. If lenient, documents without a source pass a question that names its sources.
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


MAX_LISTED = 300  # sources in the prompt; a longer list costs more than it helps
MAX_ANSWER_VALUES = 8  # per list of the answer: a small model might never close the bracket
MAX_TRIED = 100  # values read from one list of the answer
MAX_FAILURES_IN_A_ROW = 2  # then stop asking the model: each failure costs a timeout
MAX_ANSWER_CHARS = 20_000
_ANY_DAY = date(2000, 7, 1)  # whether a question mentions time does not depend on the clock


class VocabularyExtractor:
    """Makes the filter from what a question names: sources, days and ranges, or other `fields`.

    A date without a document is usually the date of an event ("its launch in June 2017"): it is
    left out, with a note. So is a range that contains every document ("before 2030").

    `slack_days` widens ranges with an open end: "after October 31" may include the report of that
    day, and time zones differ. `today` is the clock for "yesterday"; without it, such words are
    ignored.
    """

    name = "vocabulary"

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        fields: Sequence[Field] = FILTERED_FIELDS,
        slack_days: int = 1,
        today: date | None = None,
    ) -> None:
        self.vocabulary, self.fields, self.clock = vocabulary, tuple(fields), today
        self._slack = timedelta(days=slack_days)

    def extract(self, questions: Sequence[str]) -> list[Extraction]:
        """One extraction per question; its filter is empty if the question names nothing."""
        mentions = self.vocabulary.mentions(questions, today=self.clock)
        return [self.of_mentions(one) for one in mentions]

    def of_mentions(self, mentions: Mentions) -> Extraction:
        """The same for a question that was already parsed."""
        vocabulary = self.vocabulary
        spans = [
            *(DateRange(day, day) for day in mentions.days),
            *map(self._widen, mentions.ranges),
        ]
        days = {span: vocabulary.days_in(span) for span in spans}
        kept = [
            span
            for span in spans
            if days[span] and (len(days[span]) < len(vocabulary.days) or span.first == span.last)
        ]
        excluded = [day for one in mentions.excluded_dates for day in vocabulary.days_in(one)]
        known = replace(
            mentions,
            days=tuple(span.first for span in kept if span.first and span.first == span.last),
            ranges=tuple(span for span in kept if not span.first or span.first != span.last),
            excluded_dates=tuple(DateRange(day, day) for day in excluded),
        )
        notes = [
            f"{'every' if days[span] else 'no'} document is of {span}: left out"
            for span in spans
            if span not in kept
        ]
        return Extraction(filter_for(known, fields=self.fields), self.name, tuple(notes))

    def _widen(self, span: DateRange) -> DateRange:
        if span.first is not None and span.last is not None:
            return span
        try:
            first = span.first and span.first - self._slack
            return DateRange(first, span.last and span.last + self._slack)
        except OverflowError:
            return span


_FIELD_ALIASES: dict[Field, str] = {
    "source": "sources news_source publisher outlet publication",
    "category": "categories topic section",
    "entities": "entity people",
    "published_at": "date dates published publication_date published_date publish_date publishedat",
}
_FIELD_NAMES = {
    name: field for field, names in _FIELD_ALIASES.items() for name in (field, *names.split())
}
_OPERATORS = {
    name: operator
    for operator, names in {
        "$in": "in any or contains",
        "$nin": "nin notin not exclude",
        "$eq": "eq equals = == is",
        "$ne": "ne neq !=",
        "$gt": "gt > after",
        "$gte": "gte >= since from",
        "$lt": "lt < before",
        "$lte": "lte <= until to",
    }.items()
    for name in names.split()
}

PROMPT = """\
Read the question and answer with a JSON filter on the metadata of the articles that it asks for.
Use only what the question names. Leave out what it does not name. Answer {{}} if it names nothing.
Fields: {fields}. Operators: "$in", "$nin" (not these), and for published_at also "$gte" and "$lte". Dates: 2023-10-07.
Sources: {sources}
{today}
Question: Who faces a trial for fraud, as reported by both {first} and {second}?
Answer: {{"source": {{"$in": ["{first}", "{second}"]}}}}

Question: After the {first} report on October 7, 2023, did the article of October 30, 2023 say the same?
Answer: {{"source": {{"$in": ["{first}"]}}, "published_at": {{"$in": ["2023-10-07", "2023-10-30"]}}}}

Question: What was written about it in November 2023, other than by {second}?
Answer: {{"source": {{"$nin": ["{second}"]}}, "published_at": {{"$gte": "2023-11-01", "$lte": "2023-11-30"}}}}

Question: {question}
Answer:"""


class ModelExtractor:
    """Filters by a language model, checked against the vocabulary; each question is asked once.

    `fallback` decides if the model does not; by default a VocabularyExtractor.
    """

    name = "model"

    def __init__(
        self,
        model: LanguageModel,
        vocabulary: Vocabulary,
        *,
        fields: Sequence[Field] = FILTERED_FIELDS,
        today: date | None = None,
        fallback: Extractor | None = None,
        remember: int = 10_000,
    ) -> None:
        self.model, self.vocabulary = model, vocabulary
        self.fields, self.clock = tuple(fields), today
        self.fallback = fallback or VocabularyExtractor(vocabulary, fields=fields, today=today)
        self.schema = filter_schema(vocabulary, self.fields)
        self._cache: dict[str, Extraction] = {}
        self._remember = remember

    def extract(self, questions: Sequence[str]) -> list[Extraction]:
        """One extraction per question. A failure of the model is a note, never an error."""
        failures = 0
        found: dict[str, Extraction] = {}
        for question in dict.fromkeys(questions):
            if question in self._cache:
                found[question] = self._cache[question]
                continue
            why = "the model was not asked: it had failed before"
            if failures < MAX_FAILURES_IN_A_ROW:
                try:
                    found[question] = self._ask(question)
                    failures = 0
                    continue
                except ModelError as error:
                    failures += 1
                    why = f"the model did not answer: {error}"
                except InputError as error:
                    why = f"the model's answer could not be read: {error}"
            (one,) = self.fallback.extract([question])
            found[question] = Extraction(one.filter, one.by, (why, *one.notes))
        return [found[question] for question in questions]

    def _ask(self, question: str) -> Extraction:
        (answer,) = self.model.complete([self.prompt(question)], schema=self.schema)
        filter, notes = parse_answer(answer, self.vocabulary, fields=self.fields)
        grounded, more = _drop_ungrounded(filter, question)
        if len(self._cache) >= self._remember:
            self._cache.pop(next(iter(self._cache)))
        self._cache[question] = Extraction(grounded, self.name, (*notes, *more))
        return self._cache[question]

    def prompt(self, question: str) -> str:
        """The prompt: rules, the sources the model may name, three examples, the question."""
        sources = self.vocabulary.values["source"][:MAX_LISTED]
        first, second = [*sources[:2], "The Daily", "The Weekly"][:2]
        return PROMPT.format(
            fields=", ".join(self.fields),
            sources=", ".join(sources) or "(none)",
            today=f"Today is {self.clock}.\n" if self.clock else "",
            first=first,
            second=second,
            question=" ".join(question.split()),
        )


def filter_schema(
    vocabulary: Vocabulary, fields: Sequence[Field] = FILTERED_FIELDS
) -> dict[str, Any]:
    """The JSON schema of an answer: known names if they can be listed, else bounded strings."""
    day = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
    properties: dict[str, Any] = {}
    for field in fields:
        known = vocabulary.values[field]
        value: dict[str, Any] = {"type": "string", "maxLength": 80}
        if field == "published_at":
            value = day
        elif 0 < len(known) <= MAX_LISTED:
            value = {"type": "string", "enum": list(known)}
        listed = {"type": "array", "items": value, "minItems": 1, "maxItems": MAX_ANSWER_VALUES}
        bounds = {"$gte": day, "$lte": day} if field == "published_at" else {}
        operators = {"$in": listed, "$nin": listed, **bounds}
        properties[field] = {
            "type": "object",
            "properties": operators,
            "additionalProperties": False,
        }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _drop_ungrounded(filter: Filter, question: str) -> tuple[Filter, list[str]]:
    """Only names that share a content word with the question, and dates if it mentions any."""
    words = set(tokens(question))
    dated = bool(date_mentions(question) or relative_dates(question, _ANY_DAY))
    conditions, notes = [], []
    for one in filter.conditions:
        if one.field == "published_at":
            kept = one.values if dated else ()
        else:
            kept = tuple(value for value in one.values if words & (set(tokens(value)) - STOP_WORDS))
        dropped = [value for value in one.values if value not in kept]
        notes += [f"dropped {value!r}: the question does not name it" for value in dropped]
        if kept:
            conditions.append(replace(one, values=kept))
    return replace(filter, conditions=tuple(conditions)), notes


def parse_answer(
    answer: str, vocabulary: Vocabulary, *, fields: Sequence[Field] = FILTERED_FIELDS
) -> tuple[Filter, tuple[str, ...]]:
    """The lenient filter in a model's answer, and notes on what was fixed or dropped."""
    notes: list[str] = []
    parts = [
        part
        for field, operators in _fields(_find_object(answer), fields, notes)
        for operator, operand in operators
        for part in _valid_parts(field, operator, operand, vocabulary, notes)
    ]
    try:
        whole = parse_filter({"$and": parts}, vocabulary) if parts else Filter()
    except InputError as error:  # a range whose ends exclude each other
        notes.append(f"dropped the dates: {error}")
        parts = [one for one in parts if "published_at" not in one]
        whole = parse_filter({"$and": parts}, vocabulary) if parts else Filter()
    return Filter(whole.conditions, lenient=True), tuple(notes)


def _find_object(answer: str) -> Mapping[str, Any]:
    """The first object in an answer, in JSON or Python syntax, whatever surrounds it."""
    start, end = answer.find("{"), answer.rfind("}")
    missing = InputError(f"no JSON object in {answer[:80]!r}")
    if start < 0 or end < start or len(answer) > MAX_ANSWER_CHARS:
        raise missing
    text = answer[start : end + 1]
    try:
        found, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            raise missing from None
    if isinstance(found, Mapping) and isinstance(found.get("filter"), Mapping):
        found = found["filter"]  # {"query": ..., "filter": ...}: the question is never rewritten
    if not isinstance(found, Mapping):
        raise missing
    return found


def _fields(
    mapping: Mapping[str, Any], fields: Sequence[Field], notes: list[str]
) -> Iterator[tuple[Field, list[tuple[str, Any]]]]:
    joined = mapping.get("$and")
    parts = [mapping, *(joined if isinstance(joined, list) else ())]
    for name, operand in (
        item for part in parts if isinstance(part, Mapping) for item in part.items()
    ):
        if name == "$and" or operand in (None, [], {}, ""):
            continue
        plain = str(name).strip().casefold().replace(" ", "_")
        field = _FIELD_NAMES.get(plain)
        if field is None or field not in fields:
            notes.append(f"dropped {str(name)[:60]!r}: no such field to filter by")
            continue
        if field != name:
            notes.append(f"read {str(name)[:60]!r} as {field!r}")
        yield field, _operators(field, operand, notes)


def _operators(field: Field, operand: Any, notes: list[str]) -> list[tuple[str, Any]]:
    if not isinstance(operand, Mapping):
        return [("$in", operand)]
    found = []
    for name, value in operand.items():
        plain = str(name).strip().casefold().lstrip("$").replace("_", "").replace(" ", "")
        operator = _OPERATORS.get(plain)
        if operator is None:
            notes.append(f"dropped {field} {str(name)[:60]!r}: no such operator")
            continue
        if operator != name:
            notes.append(f"read {str(name)[:60]!r} as {operator!r}")
        found.append((operator, value))
    return found


def _valid_parts(
    field: Field, operator: str, operand: Any, vocabulary: Vocabulary, notes: list[str]
) -> list[dict[str, Any]]:
    """The valid values of one operator. Each is tried alone, so a wrong one drops no other."""
    operator = {"$eq": "$in", "$ne": "$nin"}.get(operator, operator)
    several = operator in ("$in", "$nin")
    values = list(operand) if isinstance(operand, list | tuple) else [operand]
    valid = []
    for value in values[:MAX_TRIED]:
        try:
            alone = parse_filter({field: {operator: [value] if several else value}}, vocabulary)
        except InputError as error:
            notes.append(f"dropped: {error}")
            continue
        if field == "published_at" and operator == "$in" and not _has_documents(alone, vocabulary):
            notes.append(f"no document is of {str(value)[:60]}: left out")
            continue
        valid.append(value)
    if several:
        return [{field: {operator: valid}}] if valid else []
    return [{field: {operator: value}} for value in valid]


def _has_documents(filter: Filter, vocabulary: Vocabulary) -> bool:
    since, until = date_bounds(filter.conditions)
    listed = [one.values for one in filter.conditions if one.operator == "$in"]
    days = (day.isoformat() for day in vocabulary.days)
    return any(since <= day <= until and all(day in one for one in listed) for day in days)
