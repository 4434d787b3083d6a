"""From a question to its metadata filter: by the corpus's vocabulary, or by a language model.

    VocabularyExtractor(Vocabulary.of_store(store)).extract(
        ["What did Fortune say after October 31, 2023?"]
    )

`ModelExtractor` asks a language model, as Multi-Meta-RAG does, and checks the answer: a wrong
operator or field name is fixed where the meaning is plain; a value that the corpus does not know,
or that the question does not mention (small models copy from the examples), is dropped. The notes
say so. Without a usable answer the fallback decides. The question itself is never rewritten.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from suffice.errors import InputError, ModelError
from suffice.lexicon import STOP_WORDS
from suffice.protocols import Extractor, LanguageModel
from suffice.retrieval.dates import DateRange, relative_dates
from suffice.retrieval.filters import FILTERED_FIELDS, date_bounds, filter_for, parse_filter
from suffice.retrieval.metadata import Mentions, Vocabulary
from suffice.text import date_mentions, tokens
from suffice.types import Extraction, Field, Filter

MAX_LISTED = 300  # sources in the prompt; a longer list costs more than it helps
MAX_VALUES = 8  # in one list of the answer: a small model might never close the bracket
MAX_TRIED = 100  # values of one list of the answer that are read
MAX_FAILURES_IN_A_ROW = 2  # after which the model is not asked again: each wait costs a time-out
MAX_ANSWER_CHARS = 20_000
_ANY_DAY = date(2000, 7, 1)  # whether a question mentions time does not depend on the clock


class VocabularyExtractor:
    """Makes the filter from what a question names: sources, days and ranges, or other `fields`.

    A date without a document is most often the date of an event ("its launch in June 2017"): it is
    left out, with a note. So is a range that contains every document ("before 2030").

    `slack_days` widens ranges with an open end: "after October 31" may include the report of that
    day, and time zones differ. `today` is the clock for "yesterday"; without it such words are
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
        """One extraction a question; its filter is empty where the question names nothing."""
        mentions = self.vocabulary.mentions(questions, today=self.clock)
        return [self.of_mentions(one) for one in mentions]

    def of_mentions(self, mentions: Mentions) -> Extraction:
        """The same for a question that was read before."""
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

    `fallback` decides where the model does not: by default a VocabularyExtractor.
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
        self.model, self.vocabulary, self.fields, self.clock = (
            model,
            vocabulary,
            tuple(fields),
            today,
        )
        self.fallback = fallback or VocabularyExtractor(vocabulary, fields=fields, today=today)
        self.schema = filter_schema(vocabulary, self.fields)
        self._cache: dict[str, Extraction] = {}
        self._remember = remember

    def extract(self, questions: Sequence[str]) -> list[Extraction]:
        """One extraction a question. A failure of the model is a note, never an error."""
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
        """The rules, the sources the model may name, three examples, the question."""
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
    """The JSON schema of an answer: known names where they can be listed, else bounded texts."""
    day = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
    properties: dict[str, Any] = {}
    for field in fields:
        known = vocabulary.values[field]
        value: dict[str, Any] = {"type": "string", "maxLength": 80}
        if field == "published_at":
            value = day
        elif 0 < len(known) <= MAX_LISTED:
            value = {"type": "string", "enum": list(known)}
        listed = {"type": "array", "items": value, "minItems": 1, "maxItems": MAX_VALUES}
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
    """The lenient filter in a model's answer, and notes on what was fixed or dropped.

    InputError if there is no JSON object in it.
    """
    notes: list[str] = []
    parts = [
        part
        for field, operators in _fields(_find_object(answer), fields, notes)
        for operator, operand in operators
        for part in _valid_parts(field, operator, operand, vocabulary, notes)
    ]
    try:
        whole = parse_filter({"$and": parts}, vocabulary) if parts else Filter()
    except InputError as error:  # two ends of a range that exclude each other
        notes.append(f"dropped the dates: {error}")
        parts = [one for one in parts if "published_at" not in one]
        whole = parse_filter({"$and": parts}, vocabulary) if parts else Filter()
    return Filter(whole.conditions, lenient=True), tuple(notes)


def _find_object(answer: str) -> Mapping[str, Any]:
    """The first object in an answer, as JSON or as Python writes it, whatever surrounds it."""
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
    """The valid values of one operator; each is tried alone, so a wrong one drops no other."""
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
    days = {day.isoformat() for day in vocabulary.days}
    for one in filter.conditions:
        if one.operator == "$in" and days.isdisjoint(one.values):
            return False
    since, until = date_bounds(filter.conditions)
    return any(since <= day <= until for day in days)
