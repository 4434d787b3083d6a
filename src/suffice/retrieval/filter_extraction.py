"""From a question to its metadata filter without a language model: what it names of the corpus's closed vocabulary.

    VocabularyExtractor(Vocabulary.of_store(store)).extract(["What did Fortune say after October 31, 2023?"])

Sources, days and ranges by default, other fields on request. A date on which the corpus has no document is most often the date
of an event, not of an article ("its launch in June 2017"): it is left out, with a note. So is a range that holds every document
("before 2030"), since it says nothing.
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
from suffice.retrieval.filters import FILTERED_FIELDS, bounds, filter_for, parse_filter
from suffice.retrieval.metadata import Mentions, Vocabulary
from suffice.text import date_mentions, tokens
from suffice.types import FIELDS, Extraction, Field, Filter

MAX_FAILURES_IN_A_ROW = 2  # after which the model is not asked again: each wait costs a time-out
MAX_ANSWER_CHARS = 20_000

__all__ = ["ModelExtractor", "VocabularyExtractor", "filter_schema", "parse_answer"]


class VocabularyExtractor:
    """Reads the filter off what a question names.

    `slack_days` widens ranges with an open end: "after October 31" is said of the report of that very day too, and a date stamp
    is in some time zone. `today` is the clock for "yesterday"; without it such words name nothing.
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
        """One extraction a question; nothing named, empty filter."""
        return [
            self.of_mentions(one) for one in self.vocabulary.mentions(questions, today=self.clock)
        ]

    def of_mentions(self, mentions: Mentions) -> Extraction:
        """The same for a question that has been read already."""
        spans = [
            *(DateRange(day, day) for day in mentions.days),
            *map(self._widened, mentions.ranges),
        ]
        held = {span: self.vocabulary.days_in(span) for span in spans}
        everything = len(self.vocabulary.days)
        kept = [
            span
            for span in spans
            if held[span] and (len(held[span]) < everything or span.first == span.last)
        ]
        denied = [day for one in mentions.excluded_dates for day in self.vocabulary.days_in(one)]
        known = replace(
            mentions,
            days=tuple(span.first for span in kept if span.first and span.first == span.last),
            ranges=tuple(span for span in kept if span.first is None or span.first != span.last),
            excluded_dates=tuple(DateRange(day, day) for day in denied),
        )
        notes = [
            f"{'no' if not held[span] else 'every'} document is of {span}: left out"
            for span in spans
            if span not in kept
        ]
        return Extraction(filter_for(known, fields=self.fields), self.name, tuple(notes))

    def _widened(self, span: DateRange) -> DateRange:
        if span.first is not None and span.last is not None:
            return span
        try:
            return DateRange(
                span.first and span.first - self._slack, span.last and span.last + self._slack
            )
        except OverflowError:
            return span


# --- model_extract: From a question to its metadata filter through a language model, as Multi-Meta-RAG does it, but not on trust.

LISTED_AT_MOST = 300  # sources in the prompt; a longer list costs more than it helps
MOST_VALUES = (
    8  # in one list of the answer: a small model without an end would never close the bracket
)
_SOME_DAY = date(2000, 7, 1)  # whether a question speaks of time does not depend on the clock

_FIELD_NAMES: dict[str, Field] = {
    "sources": "source", "news_source": "source", "publisher": "source", "outlet": "source", "publication": "source",
    "categories": "category", "topic": "category", "section": "category",
    "entity": "entities", "people": "entities",
    "date": "published_at", "dates": "published_at", "published": "published_at", "publication_date": "published_at",
    "published_date": "published_at", "publish_date": "published_at", "publishedat": "published_at",
}  # fmt: skip
_OPERATORS = {
    "in": "$in", "any": "$in", "or": "$in", "contains": "$in", "nin": "$nin", "notin": "$nin", "not": "$nin", "exclude": "$nin",
    "eq": "$eq", "equals": "$eq", "=": "$eq", "==": "$eq", "is": "$eq", "ne": "$ne", "neq": "$ne", "!=": "$ne",
    "gt": "$gt", ">": "$gt", "after": "$gt", "gte": "$gte", ">=": "$gte", "since": "$gte", "from": "$gte",
    "lt": "$lt", "<": "$lt", "before": "$lt", "lte": "$lte", "<=": "$lte", "until": "$lte", "to": "$lte",
}  # fmt: skip

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
    """Filters by a language model, checked against the closed vocabulary; a question's filter is asked for once.

    `fallback` answers where the model does not: by default the extractor that needs none.
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
        self._known: dict[str, Extraction] = {}
        self._remember = remember

    def extract(self, questions: Sequence[str]) -> list[Extraction]:
        """One extraction a question. No failure of the model gets out: the notes tell of it."""
        failures = 0
        found: dict[str, Extraction] = {}
        for question in dict.fromkeys(questions):
            if (known := self._known.get(question)) is not None:
                found[question] = known
                continue
            if failures >= MAX_FAILURES_IN_A_ROW:
                found[question] = self._fallen_back(
                    question, "the model was not asked: it had failed before"
                )
                continue
            try:
                found[question] = self._ask(question)
                failures = 0
                self._keep(question, found[question])
            except ModelError as error:
                failures += 1
                found[question] = self._fallen_back(question, f"the model did not answer: {error}")
            except InputError as error:
                found[question] = self._fallen_back(
                    question, f"the model's answer could not be read: {error}"
                )
        return [found[question] for question in questions]

    def _ask(self, question: str) -> Extraction:
        (answer,) = self.model.complete([self.prompt(question)], schema=self.schema)
        filter, notes = parse_answer(answer, self.vocabulary, fields=self.fields)
        grounded, more = _grounded(filter, question)
        return Extraction(grounded, self.name, (*notes, *more))

    def _fallen_back(self, question: str, why: str) -> Extraction:
        (one,) = self.fallback.extract([question])
        return Extraction(one.filter, one.by, (why, *one.notes))

    def _keep(self, question: str, extraction: Extraction) -> None:
        if len(self._known) >= self._remember:
            self._known.pop(next(iter(self._known)))
        self._known[question] = extraction

    def prompt(self, question: str) -> str:
        """What the model is asked: the rules, the sources it may name, three examples, the question."""
        sources = self.vocabulary.values["source"][:LISTED_AT_MOST]
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
    """The JSON schema of an answer: known names where they can be listed, texts of bounded length elsewhere."""
    day = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
    properties: dict[str, Any] = {}
    for field in fields:
        known = vocabulary.values[field]
        value: dict[str, Any] = {"type": "string", "maxLength": 80}
        if field == "published_at":
            value = day
        elif 0 < len(known) <= LISTED_AT_MOST:
            value = {"type": "string", "enum": list(known)}
        listed = {"type": "array", "items": value, "minItems": 1, "maxItems": MOST_VALUES}
        bounds = {"$gte": day, "$lte": day} if field == "published_at" else {}
        operators = {"$in": listed, "$nin": listed, **bounds}
        properties[field] = {
            "type": "object",
            "properties": operators,
            "additionalProperties": False,
        }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _grounded(filter: Filter, question: str) -> tuple[Filter, list[str]]:
    """Only what the question has a word of: a name shares a content word with it, and a date needs some date in it."""
    words = set(tokens(question))
    dated = bool(date_mentions(question) or relative_dates(question, _SOME_DAY))
    conditions, notes = [], []
    for one in filter.conditions:
        if one.field == "published_at":
            kept = one.values if dated else ()
        else:
            kept = tuple(value for value in one.values if words & (set(tokens(value)) - STOP_WORDS))
        notes += [
            f"dropped {value!r}: the question does not name it"
            for value in one.values
            if value not in kept
        ]
        if kept:
            conditions.append(replace(one, values=kept))
    return replace(filter, conditions=tuple(conditions)), notes


# ------------------------------------------------------------------------------------------------- reading the answer


def parse_answer(
    answer: str, vocabulary: Vocabulary, *, fields: Sequence[Field] = FILTERED_FIELDS
) -> tuple[Filter, tuple[str, ...]]:
    """The lenient filter in a model's answer and notes on what was mended or dropped; InputError if there is none in it."""
    mapping = _find_object(answer)
    notes: list[str] = []
    conditions = []
    for field, operators in _fields(mapping, fields, notes):
        for operator, operand in operators:
            conditions += _conditions(field, operator, operand, vocabulary, notes)
    try:
        whole = parse_filter({"$and": conditions}, vocabulary) if conditions else Filter()
    except InputError as error:  # two ends of a range that exclude each other
        notes.append(f"dropped the dates: {error}")
        rest = [one for one in conditions if "published_at" not in one]
        whole = parse_filter({"$and": rest}, vocabulary) if rest else Filter()
    return Filter(whole.conditions, lenient=True), tuple(notes)


def _find_object(answer: str) -> Mapping[str, Any]:
    """The first object in an answer, as JSON or as Python writes it; a model likes to put words and fences around it."""
    start, end = answer.find("{"), answer.rfind("}")
    if start < 0 or end < start or len(answer) > MAX_ANSWER_CHARS:
        raise InputError(f"no JSON object in {answer[:80]!r}")
    text = answer[start : end + 1]
    try:
        found, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            raise InputError(f"no JSON object in {answer[:80]!r}") from None
    if isinstance(found, Mapping) and isinstance(found.get("filter"), Mapping):
        found = found["filter"]  # {"query": ..., "filter": ...}: the question is never rewritten
    if not isinstance(found, Mapping):
        raise InputError(f"no JSON object in {answer[:80]!r}")
    return found


def _fields(
    mapping: Mapping[str, Any], fields: Sequence[Field], notes: list[str]
) -> Iterator[tuple[Field, list[tuple[str, Any]]]]:
    joined = mapping.get("$and")
    parts = (
        [mapping, *(one for one in joined if isinstance(one, Mapping))]
        if isinstance(joined, list)
        else [mapping]
    )
    for part in parts:
        for name, wanted in part.items():
            if name == "$and" or wanted in (None, [], {}, ""):
                continue
            plain = str(name).strip().casefold().replace(" ", "_")
            field = next((one for one in FIELDS if one == plain), None) or _FIELD_NAMES.get(plain)
            if field is None or field not in fields:
                notes.append(f"dropped {str(name)[:60]!r}: no such field to filter by")
                continue
            if field != name:
                notes.append(f"read {str(name)[:60]!r} as {field!r}")
            yield field, _operators(field, wanted, notes)


def _operators(field: Field, wanted: Any, notes: list[str]) -> list[tuple[str, Any]]:
    if not isinstance(wanted, Mapping):
        return [("$in", wanted)]
    found = []
    for name, operand in wanted.items():
        plain = str(name).strip().casefold().lstrip("$").replace("_", "").replace(" ", "")
        operator = _OPERATORS.get(plain)
        if operator is None:
            notes.append(f"dropped {field} {str(name)[:60]!r}: no such operator")
            continue
        if operator != name:
            notes.append(f"read {str(name)[:60]!r} as {operator!r}")
        found.append((operator, operand))
    return found


def _conditions(
    field: Field, operator: str, operand: Any, vocabulary: Vocabulary, notes: list[str]
) -> list[dict[str, Any]]:
    """What is sound of one operator: each value is tried alone, so that a wrong one does not take the others with it."""
    operator = {"$eq": "$in", "$ne": "$nin"}.get(operator, operator)
    values = list(operand) if isinstance(operand, list | tuple) else [operand]
    kept = []
    for value in values[:100]:
        try:
            alone = parse_filter(
                {field: {operator: [value] if operator in ("$in", "$nin") else value}}, vocabulary
            )
        except InputError as error:
            notes.append(f"dropped: {error}")
            continue
        if field == "published_at" and operator == "$in" and not _has_documents(alone, vocabulary):
            notes.append(f"no document is of {str(value)[:60]}: left out")
            continue
        kept.append(value)
    if not kept:
        return []
    return (
        [{field: {operator: kept}}]
        if operator in ("$in", "$nin")
        else [{field: {operator: value}} for value in kept]
    )


def _has_documents(filter: Filter, vocabulary: Vocabulary) -> bool:
    days = {day.isoformat() for day in vocabulary.days}
    for one in filter.conditions:
        if one.operator == "$in" and days.isdisjoint(one.values):
            return False
    since, until = bounds(filter.conditions)
    return any(since <= day <= until for day in days)
