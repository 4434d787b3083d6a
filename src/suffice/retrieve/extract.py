"""From a question to its metadata filter without a language model: what it names of the corpus's closed vocabulary.

    VocabularyExtractor(Vocabulary.of_store(store)).extract(["What did Fortune say after October 31, 2023?"])

Sources, days and ranges by default, other fields on request. A date on which the corpus has no document is most often the date
of an event, not of an article ("its launch in June 2017"): it is left out, with a note. So is a range that holds every document
("before 2030"), since it says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

from suffice.retrieve.date_ranges import DateRange
from suffice.retrieve.filters import FILTERED_FIELDS, filter_for
from suffice.retrieve.metadata import Mentions, Vocabulary
from suffice.types import Extraction, Field

__all__ = ["VocabularyExtractor"]


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
        return [self.of_mentions(one) for one in self.vocabulary.mentions(questions, today=self.clock)]

    def of_mentions(self, mentions: Mentions) -> Extraction:
        """The same for a question that has been read already."""
        spans = [*(DateRange(day, day) for day in mentions.days), *map(self._widened, mentions.ranges)]
        held = {span: self.vocabulary.days_in(span) for span in spans}
        everything = len(self.vocabulary.days)
        kept = [span for span in spans if held[span] and (len(held[span]) < everything or span.first == span.last)]
        denied = [day for one in mentions.excluded_dates for day in self.vocabulary.days_in(one)]
        known = replace(
            mentions,
            days=tuple(span.first for span in kept if span.first and span.first == span.last),
            ranges=tuple(span for span in kept if span.first is None or span.first != span.last),
            excluded_dates=tuple(DateRange(day, day) for day in denied),
        )
        notes = [f"{'no' if not held[span] else 'every'} document is of {span}: left out" for span in spans if span not in kept]
        return Extraction(filter_for(known, fields=self.fields), self.name, tuple(notes))

    def _widened(self, span: DateRange) -> DateRange:
        if span.first is not None and span.last is not None:
            return span
        try:
            return DateRange(span.first and span.first - self._slack, span.last and span.last + self._slack)
        except OverflowError:
            return span
