"""The quality of filters made from questions, compared with the metadata of the evidence where it
is known.

Sources: whether the named sources are exactly those of the evidence, and precision and recall of
the values. Dates: a value is a day, or one range; it is right if some evidence was published then,
and a day of the evidence is found if some value contains it. Most questions name no date, so the
recall of dates is always low.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.filters import parse_filter
from suffice.retrieval.metadata import Vocabulary
from suffice.types import Condition, Document, Filter

__all__ = [
    "FilterQuality",
    "GoldMetadata",
    "empty_filters",
    "filter_quality",
    "gold_metadata",
    "published_filter",
]

Span = tuple[str, str]
_FIRST, _LAST = "0000-00-00", "9999-99-99"


@dataclass(frozen=True, slots=True)
class GoldMetadata:
    """The sources and days of a question's evidence; None if one of them is unknown."""

    sources: frozenset[str] | None
    days: frozenset[str] | None


@dataclass(frozen=True)
class FilterQuality:
    """Counts over all questions whose gold metadata is known.

    `exact` has one entry per question, NaN if it is unknown.
    """

    exact: npt.NDArray[np.float64]
    sources_named: int
    sources_right: int
    sources_gold: int
    dates_named: int
    dates_right: int
    days_named: int  # how many of the dates are single days
    days_right: int
    days_found: int
    days_gold: int

    @property
    def source_precision(self) -> float | None:
        return _share(self.sources_right, self.sources_named)

    @property
    def source_recall(self) -> float | None:
        return _share(self.sources_right, self.sources_gold)

    @property
    def date_precision(self) -> float | None:
        return _share(self.dates_right, self.dates_named)

    @property
    def day_precision(self) -> float | None:
        return _share(self.days_right, self.days_named)

    @property
    def date_recall(self) -> float | None:
        return _share(self.days_found, self.days_gold)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def gold_metadata(
    examples: Sequence[GoldQuestion], documents: Iterable[Document]
) -> list[GoldMetadata]:
    """What is known about each question's evidence; nothing for a null question."""
    by_id = {document.doc_id: document for document in documents}
    found = []
    for example in examples:
        evidence = [by_id.get(doc_id) for doc_id in sorted(example.gold.doc_ids)]
        sources = [one.source if one else None for one in evidence]
        days = [
            one.published_at.isoformat() if one and one.published_at else None for one in evidence
        ]
        found.append(
            GoldMetadata(
                frozenset(filter(None, sources)) if evidence and all(sources) else None,
                frozenset(filter(None, days)) if evidence and all(days) else None,
            )
        )
    return found


def filter_quality(filters: Sequence[Filter], gold: Sequence[GoldMetadata]) -> FilterQuality:
    """Compare filters with the metadata of the evidence, question by question."""
    if len(filters) != len(gold):
        raise InputError(f"{len(filters)} filters for {len(gold)} questions: expected one each")
    exact = np.full(len(gold), np.nan)
    counts = np.zeros(9, dtype=int)
    for at, (filter, wanted) in enumerate(zip(filters, gold)):
        if wanted.sources is not None:
            named = _values(filter, "source")
            exact[at] = named == wanted.sources
            counts[:3] += (len(named), len(named & wanted.sources), len(wanted.sources))
        if wanted.days is not None:
            spans = _spans(filter)
            right = [
                span for span in spans if any(span[0] <= day <= span[1] for day in wanted.days)
            ]
            found = sum(any(first <= day <= last for first, last in spans) for day in wanted.days)
            days, days_right = (sum(first == last for first, last in one) for one in (spans, right))
            counts[3:] += (len(spans), len(right), days, days_right, found, len(wanted.days))
    return FilterQuality(exact, *counts.tolist())


def _values(filter: Filter, field: str) -> frozenset[str]:
    return frozenset(
        value
        for one in filter.conditions
        if one.field == field and one.operator == "$in"
        for value in one.values
    )


def _spans(filter: Filter) -> list[Span]:
    """The days in a filter, and its range as one value."""
    spans = [(day, day) for day in sorted(_values(filter, "published_at"))]
    first = max(
        (one.values[0] for one in filter.conditions if one.operator == "$gte"), default=None
    )
    last = min((one.values[0] for one in filter.conditions if one.operator == "$lte"), default=None)
    return spans if first is None and last is None else [*spans, (first or _FIRST, last or _LAST)]


def empty_filters(
    filters: Sequence[Filter], corpus: Corpus, *, lenient: bool
) -> npt.NDArray[np.bool_]:
    """Which filters no document passes, if documents without a field fail or (`lenient`) pass:
    (questions,).
    """
    return np.array(
        [not corpus.mask(replace(filter, lenient=lenient)).any() for filter in filters], dtype=bool
    )


def published_filter(filter: Mapping[str, Any], vocabulary: Vocabulary) -> Filter:
    """A filter from query_metadata_filters.json as published: unknown sources are kept and match
    nothing; dates become days.
    """
    conditions: list[Condition] = []
    for field, operators in filter.items():
        for operator, operand in operators.items():
            values = tuple(operand) if isinstance(operand, list) else (operand,)
            if field == "published_at":
                conditions += parse_filter({field: {operator: list(values)}}, vocabulary).conditions
            else:
                conditions.append(
                    Condition("source", "$in" if operator in ("$in", "$eq") else "$nin", values)
                )
    return Filter(tuple(conditions))
