"""Filters on metadata in the grammar of Multi-Meta-RAG, read strictly and applied softly.

    {"source": {"$in": ["The Verge", "Engadget"]}, "published_at": {"$gte": "2023-10-01", "$lt": "November 2023"}}

Fields: source, category, entities, published_at. Operators: $in, $nin, $eq, $ne, and for dates $gt, $gte, $lt, $lte; a plain
value means $eq; `$and` at the top joins several such filters. Dates are ISO days or words ("October 31, 2023"); a month or a
year stands for all its days. Whatever does not fit is an InputError that says what would.

A filter made from a question is a guess, so `SoftFilter` never lets it empty the result or hide what the question names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from suffice.errors import InputError, nearest
from suffice.ports import Retriever, Store
from suffice.retrieve.date_ranges import DateRange
from suffice.retrieve.metadata import Mentions, Vocabulary, matched
from suffice.retrieve.ranking import checked
from suffice.text import date_mentions
from suffice.types import FIELDS, Condition, DocId, Document, Field, Filter, Hit

__all__ = ["MAX_VALUES", "SoftFilter", "filter_for", "parse_filter"]

MAX_VALUES = 10_000
_LISTS = {"$in": "$in", "$nin": "$nin", "$eq": "$in", "$ne": "$nin"}
_BOUNDS = ("$gt", "$gte", "$lt", "$lte")
_EXAMPLE = 'a filter looks like {"source": {"$in": ["The Verge"]}, "published_at": {"$gte": "2023-10-01"}}'


# ---------------------------------------------------------------------------------------------------- reading


def parse_filter(filter: Mapping[str, Any], vocabulary: Vocabulary, *, skip_unknown: bool = False) -> Filter:
    """The filter that a mapping describes, in the spelling of the corpus.

    A name that the corpus does not know is an error, or with `skip_unknown` left out; a list of unknown names alone then is no
    condition. "Fox News" stands for all sources that begin so.
    """
    conditions = dict.fromkeys(_conditions(filter, _Reader(vocabulary, skip_unknown)))
    _check_range(conditions)
    return Filter(tuple(conditions))


def _conditions(filter: Any, reader: _Reader, *, top: bool = True) -> Iterator[Condition]:
    if not isinstance(filter, Mapping):
        raise InputError(f"a filter must be a mapping, found {_shown(filter)}", hint=_EXAMPLE)
    for name, wanted in filter.items():
        if name == "$and" and top:
            if not isinstance(wanted, list | tuple) or not wanted:
                raise InputError(f"$and holds a list of filters, found {_shown(wanted)}", hint=_EXAMPLE)
            if len(wanted) > MAX_VALUES:
                raise InputError(f"$and holds {len(wanted):,} filters; at most {MAX_VALUES:,} are allowed")
            for one in wanted:
                yield from _conditions(one, reader, top=False)
        elif name not in FIELDS:
            raise InputError(f"no field is named {_shown(name)}", hint=nearest(str(name)[:100], FIELDS))
        else:
            yield from reader.field(name, wanted)


class _Reader:
    """Turns what stands behind a field into conditions that the vocabulary knows."""

    def __init__(self, vocabulary: Vocabulary, skip_unknown: bool) -> None:
        self.vocabulary, self.skip_unknown = vocabulary, skip_unknown

    def field(self, field: Field, wanted: Any) -> Iterator[Condition]:
        operators = wanted if isinstance(wanted, Mapping) else {"$eq": wanted}
        if not operators:
            raise InputError(f"field {field!r} has no operator", hint=_EXAMPLE)
        for operator, operand in operators.items():
            if operator in _LISTS:
                values = self._list(field, operator, operand)
                one = self._dates(operator, values) if field == "published_at" else self._names(field, operator, values)
                yield from one
            elif operator in _BOUNDS and field == "published_at":
                yield _bound(operator, _read_date(operand))
            elif operator in _BOUNDS:
                raise InputError(f"{operator} is for dates; {field!r} takes {', '.join(_LISTS)}", hint=_EXAMPLE)
            else:
                raise InputError(
                    f"no operator is named {_shown(operator)}", hint=nearest(str(operator)[:100], (*_LISTS, *_BOUNDS))
                )

    def _list(self, field: Field, operator: str, operand: Any) -> list[Any]:
        if operator in ("$eq", "$ne"):
            return [operand]
        if not isinstance(operand, list | tuple):
            raise InputError(f"{field} {operator} takes a list, found {_shown(operand)}", hint=_EXAMPLE)
        if not operand:
            raise InputError(f"{field} {operator} has an empty list", hint="name at least one value, or leave the field out")
        if len(operand) > MAX_VALUES:
            raise InputError(f"{field} {operator} has {len(operand):,} values; at most {MAX_VALUES:,} are allowed")
        return list(operand)

    def _names(self, field: Field, operator: str, values: list[Any]) -> Iterator[Condition]:
        found: dict[str, None] = {}
        for value in values:
            if not isinstance(value, str):
                raise InputError(f"{field} {operator} takes texts, found {_shown(value)}", hint=_EXAMPLE)
            known = self.vocabulary.resolve(field, value)
            if not known and not self.skip_unknown:
                raise InputError(
                    f"no {field} is named {_shown(value)}", hint=nearest(value[:100], self.vocabulary.values[field])
                )
            found.update(dict.fromkeys(known))
        if found:
            yield Condition(field, "$in" if _LISTS[operator] == "$in" else "$nin", tuple(found))

    def _dates(self, operator: str, values: list[Any]) -> Iterator[Condition]:
        spans = [_read_date(value) for value in values]
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
                days.update((day, None) for day in self.vocabulary.values["published_at"] if date.fromisoformat(day) in span)
        if days or include:
            yield Condition("published_at", "$in" if include else "$nin", tuple(days) or (str(spans[0].first),))


def _read_date(value: Any) -> DateRange:
    """A day, month or year as its first and last day."""
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, date):
        return DateRange(value, value)
    if isinstance(value, str) and len(value) <= 100:
        found = date_mentions(value)
        rest = value[: found[0].start] + value[found[0].end :] if len(found) == 1 else "?"
        if not rest.strip() or rest.startswith("T"):  # the time of "2023-10-07T12:00:00" is not looked at
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
        raise InputError(f"no day lies {'after' if operator == '$gt' else 'before'} {last}") from error


def _check_range(conditions: Mapping[Condition, None]) -> None:
    since = max((one.values[0] for one in conditions if one.operator == "$gte"), default="")
    until = min((one.values[0] for one in conditions if one.operator == "$lte"), default="9999-12-31")
    if since > until:
        raise InputError(
            f"no date is both on or after {since} and on or before {until}", hint="check which end of the range is which"
        )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


# ------------------------------------------------------------------------------------------- from a question


def filter_for(mentions: Mentions, *, fields: Sequence[Field] = ("source", "published_at")) -> Filter:
    """The filter of Multi-Meta-RAG for what a question names: its sources and dates; other fields on request.

    Days alone become a list; with a range among the dates, everything from the earliest to the latest passes.
    """
    conditions = []
    lists: tuple[tuple[Field, tuple[str, ...]], ...] = (
        ("source", mentions.sources),
        ("category", mentions.categories),
        ("entities", mentions.entities),
    )
    for field, values in lists:
        if field in fields and values:
            conditions.append(Condition(field, "$in", values))
    if "source" in fields and mentions.excluded:
        conditions.append(Condition("source", "$nin", mentions.excluded))
    if "published_at" in fields:
        conditions += _date_conditions(mentions)
    return Filter(tuple(conditions))


def _date_conditions(mentions: Mentions) -> list[Condition]:
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


# ------------------------------------------------------------------------------------------------- soft search


class SoftFilter:
    """A retriever that prefers what passes the question's filter, and never lets the filter hide what it should not.

    Hits that pass come first. If they are fewer than k, the best of the others fill up, marked `relaxed`. If something the
    question names (a source, category, entity, title or date) is carried by none of the passing hits but by one of the k best
    unfiltered ones, that one takes the place of the last hit that is not itself the only cover of something named. Each hit
    says in `matched` what it carries. A relaxed hit's score never stands above the hit before it; its parts keep their scores.

    With `strict`, the filter alone decides. Without `filters`, they are made from what each question names. Without a
    `vocabulary`, it is the store's, read again when the store has changed.
    """

    def __init__(
        self,
        retriever: Retriever,
        store: Store,
        vocabulary: Vocabulary | None = None,
        *,
        strict: bool = False,
        make_filter: Callable[[Mentions], Filter] = filter_for,
    ) -> None:
        self._retriever, self._store, self._given = retriever, store, vocabulary
        self._strict, self._make_filter = strict, make_filter
        self._read_at: tuple[int, Vocabulary] | None = None

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = checked(questions, k, filters)
        named = self._vocabulary().mentions(questions)
        chosen = [self._make_filter(one) for one in named] if filters is None else [one or Filter() for one in filters]
        passing = self._retriever.search(questions, k=k, filters=chosen)
        asked = [at for at, one in enumerate(chosen) if one and not self._strict]
        free = dict(zip(asked, self._retriever.search([questions[at] for at in asked], k=k))) if asked else {}
        documents = self._documents([*passing, *free.values()])
        return [_soften(hits, free.get(at, ()), k, _Cover(named[at], documents)) for at, hits in enumerate(passing)]

    def _vocabulary(self) -> Vocabulary:
        if self._given is not None:
            return self._given
        generation = self._store.generation
        if self._read_at is None or self._read_at[0] != generation:
            self._read_at = (generation, Vocabulary.of_store(self._store))
        return self._read_at[1]

    def _documents(self, results: Sequence[tuple[Hit, ...]]) -> dict[DocId, Document]:
        ids = list(dict.fromkeys(hit.doc_id for hits in results for hit in hits))
        return {document.doc_id: document for document in self._store.get(ids) if document is not None}


class _Cover:
    """Which named things a hit carries."""

    def __init__(self, mentions: Mentions, documents: Mapping[DocId, Document]) -> None:
        self.mentions, self.documents = mentions, documents

    def of(self, hit: Hit) -> tuple[str, ...]:
        document = self.documents.get(hit.doc_id)
        return matched(self.mentions, document) if document else ()


def _soften(passing: Sequence[Hit], free: Sequence[Hit], k: int, cover: _Cover) -> tuple[Hit, ...]:
    kept = [replace(hit, matched=cover.of(hit)) for hit in passing]
    held = {hit.doc_id for hit in kept}
    others = [replace(hit, matched=cover.of(hit), relaxed=True) for hit in free if hit.doc_id not in held]
    let_in: list[Hit] = []
    for other in others:
        covered = {thing for hit in (*kept, *let_in) for thing in hit.matched}
        if set(other.matched) - covered and (len(kept) + len(let_in) < k or _drop_last_spare(kept, let_in)):
            let_in.append(other)
    fill = [other for other in others if other not in let_in][: max(0, k - len(kept) - len(let_in))]
    order = {other.doc_id: rank for rank, other in enumerate(others)}
    return _falling([*kept, *sorted((*let_in, *fill), key=lambda hit: order[hit.doc_id])])


def _drop_last_spare(kept: list[Hit], let_in: Sequence[Hit]) -> bool:
    """Take out the last hit whose named things others carry too; False if there is none. The first hit always stays."""
    for at in range(len(kept) - 1, 0, -1):
        elsewhere = {thing for hit in (*kept[:at], *kept[at + 1 :], *let_in) for thing in hit.matched}
        if set(kept[at].matched) <= elsewhere:
            del kept[at]
            return True
    return False


def _falling(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    falling: list[Hit] = []
    for hit in hits:
        last = falling[-1].score if falling else None
        above = hit.relaxed and last is not None and hit.score is not None and hit.score > last
        falling.append(replace(hit, score=last) if above else hit)
    return tuple(falling)
