"""What a question names: the sources, categories, entities, titles and dates of a corpus.

A corpus has a closed vocabulary, so finding its names in a question needs no model, only care about
how people write them:

- A source may be written without its leading "The", in other case, punctuation or spacing ("CBS
  Sports", "Techcrunch"), or only by its first part: "Fox News" means "FOX News - Lifestyle" and
  every other source that begins with it. It counts only if it is written as a name ("The Age", not
  "the age"). If a single word is left of a "The ..." ("Verge"), it needs a word about news next to
  it.
- A category ("business", "sports") is a common word. It counts only next to a word about news ("a
  business article", "category: science"), and not inside a name ("BBC Sports report").
- Entities and titles follow `phrase_matcher`; if several names overlap, the longest wins.
- Dates follow `dates`; a corpus without dates has none.

A question all in lower or upper case is read as if every word were capitalized.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Literal

from suffice.protocols import Store
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.phrase_matcher import PhraseMatch, PhraseMatcher, TextMatches
from suffice.text import DateRange, QuestionDates, question_dates, title_key
from suffice.types import FIELDS, Document, Field

_NEWS = frozenset(
    "article articles blog column coverage desk feature features headline headlines interview item "
    "items journalism news newsletter outlet page pages piece pieces post posts publication "
    "publications report reported reporting reports review reviews section source stories story "
    "writer writers".split()
)
_BY = frozenset("by from in per to via with".split())  # "as reported by", "according to"
_UNDER = frozenset("category categories section topic under".split())
_HEAD = re.compile(r"\s+[-–—|/]+\s+|:\s+")
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_DOMAINS = frozenset("com org net".split())
# Names after "not by", "not reported by" or "other than" are excluded, but not after "not only by".
_NOT = re.compile(
    r"\b(?:(?:not|never)(?: (?!only|just|merely)\w+(?:ed|en|wn)){0,2}|nor|neither|except|excluding|"
    r"without|other than|rather than|apart from)(?: (?:by|from|in|on|for|any))*(?: the)?$"
)
_AND = frozenset(("and", "or", "nor", "the"))  # between two names in a list


@dataclass(frozen=True, slots=True)
class Mentions:
    """What a question names, in order of appearance, spelled as in the corpus."""

    sources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    days: tuple[date, ...] = ()
    ranges: tuple[DateRange, ...] = ()  # more than one day
    in_full: tuple[str, ...] = ()  # the sources whose full name is in the question
    excluded: tuple[str, ...] = ()  # sources after "not", "except", "other than"
    excluded_categories: tuple[str, ...] = ()
    excluded_dates: tuple[DateRange, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) for one in fields(self))


def matching_metadata(mentions: Mentions, document: Document) -> tuple[str, ...]:
    """What a document has of the named things, like "source: The Verge" and "date: 2023-10-07"."""
    day, entities = document.published_at, set(document.entities)
    found = [f"source: {one}" for one in mentions.sources if one == document.source]
    found += [f"category: {one}" for one in mentions.categories if one == document.category]
    found += [f"entity: {one}" for one in mentions.entities if one in entities]
    found += [f"title: {one}" for one in mentions.titles if one == document.title]
    if day is not None:
        found += [f"date: {one}" for one in mentions.days if one == day]
        found += [f"date: {one}" for one in mentions.ranges if day in one]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a spelling stands for."""

    kind: Literal["source", "entity", "title"]
    value: str
    whole: bool = True  # the full name, not only its first part
    bare: bool = False  # a single word without its "The"


class Vocabulary:
    """The closed vocabulary of a corpus: the values of each field, and titles."""

    def __init__(self, values: Mapping[Field, Iterable[str]], titles: Iterable[str] = ()) -> None:
        self.values: dict[Field, tuple[str, ...]] = {
            field: tuple(dict.fromkeys(values.get(field, ()))) for field in FIELDS
        }
        self._known = {field: frozenset(known) for field, known in self.values.items()}
        meanings: dict[str, dict[_Meaning, None]] = {}
        for source in self.values["source"]:
            for spelling, meaning in _spellings(source):
                meanings.setdefault(spelling, {}).setdefault(meaning)
        for name in self.values["entities"]:
            meanings.setdefault(title_key(name), {}).setdefault(_Meaning("entity", name))
        for title in dict.fromkeys(titles):
            meanings.setdefault(title_key(title), {}).setdefault(_Meaning("title", title))
        meanings.pop("", None)
        self._number = {key: at for at, key in enumerate(meanings)}
        self._meanings = [tuple(one) for one in meanings.values()]
        self._matcher = PhraseMatcher(self._number)
        self._categories: dict[str, tuple[str, ...]] = {}
        for value in self.values["category"]:
            if key := title_key(value):
                self._categories[key] = (*self._categories.get(key, ()), value)
        self.days = tuple(date.fromisoformat(day) for day in sorted(self.values["published_at"]))
        self._span = DateRange(self.days[0], self.days[-1]) if self.days else None

    @classmethod
    def of(cls, corpus: Corpus) -> Vocabulary:
        titles = (document.title for document in corpus.documents if document.title)
        return cls({field: corpus.column(field).values for field in FIELDS}, titles)

    @classmethod
    def of_store(cls, store: Store) -> Vocabulary:
        """The values in a store, without titles."""
        return cls({field: store.values(field) for field in FIELDS})

    def mentions(self, questions: Sequence[str], *, today: date | None = None) -> list[Mentions]:
        """What each question names. `today` is the clock for "yesterday" and "last month"."""
        return [self._read(question, today) for question in questions]

    def resolve(self, field: Field, name: str) -> tuple[str, ...]:
        """The values that a name matches in a filter: itself or other spellings; () if unknown."""
        if name in self._known[field]:
            return (name,)
        if field == "category":
            return self._categories.get(title_key(name), ())
        kind = "source" if field == "source" else "entity"
        number = self._number.get(title_key(name))
        meanings = () if number is None else self._meanings[number]
        return tuple(meaning.value for meaning in meanings if meaning.kind == kind)

    def days_in(self, span: DateRange) -> tuple[date, ...]:
        """The days of a range on which the corpus has a document."""
        start = bisect_left(self.days, span.first) if span.first else 0
        end = bisect_right(self.days, span.last) if span.last else len(self.days)
        return self.days[start:end]

    def _read(self, question: str, today: date | None) -> Mentions:
        uncased = question.islower() or question.isupper()
        (text,) = self._matcher.find([question.title() if uncased else question])
        kinds = ("source", "entity", "title", "in_full", "excluded")
        found: dict[str, dict[str, None]] = {kind: {} for kind in kinds}
        taken: set[int] = set()
        excluded_until = -1  # where a list of excluded names ends
        for match in text.matches:
            for meaning in self._meanings[match.phrase]:
                kind: str = meaning.kind
                if kind == "source":
                    single = match.end - match.start == 1
                    if not _is_source(text, match, needs_news=meaning.bare or (uncased and single)):
                        continue
                    between = map(str.casefold, text.words[excluded_until : match.start])
                    listed = excluded_until >= 0 and _AND.issuperset(between)
                    if listed or _is_excluded(text, match.start):
                        kind, excluded_until = "excluded", match.end
                    elif meaning.whole:
                        found["in_full"].setdefault(meaning.value)
                found[kind].setdefault(meaning.value)
                taken.update(range(match.start, match.end))
        dates = QuestionDates()
        if self._span:
            dates = question_dates(question, span=self._span, today=today)
        categories = dict(self._find_categories(text, taken, uncased=uncased))
        days = [one.first for one in dates.named if one.first and one.first == one.last]
        return Mentions(
            sources=tuple(found["source"]),
            categories=tuple(one for one, excluded in categories.items() if not excluded),
            entities=tuple(found["entity"]),
            titles=tuple(found["title"]),
            days=tuple(days),
            ranges=tuple(one for one in dates.named if not one.first or one.first != one.last),
            in_full=tuple(found["in_full"]),
            excluded=tuple(one for one in found["excluded"] if one not in found["source"]),
            excluded_categories=tuple(one for one, excluded in categories.items() if excluded),
            excluded_dates=dates.excluded,
        )

    def _find_categories(
        self, text: TextMatches, taken: set[int], *, uncased: bool
    ) -> Iterator[tuple[str, bool]]:
        """Categories, and whether the question excludes them."""
        folded = [word.casefold() for word in text.words]
        for length in sorted({key.count(" ") + 1 for key in self._categories}):
            for start in range(len(folded) - length + 1):
                end = start + length
                values = self._categories.get(" ".join(folded[start:end]))
                if not values or not taken.isdisjoint(range(start, end)):
                    continue
                next_to_news = end < len(folded) and folded[end] in _NEWS | _UNDER
                under = start > 0 and folded[start - 1] in _UNDER
                under |= folded[max(0, start - 2) : start] == ["category", "of"]
                if (next_to_news or under) and (uncased or not _inside_name(text, start, end)):
                    excluded = _is_excluded(text, start)
                    yield from ((value, excluded) for value in values)


def _spellings(source: str) -> Iterator[tuple[str, _Meaning]]:
    """Every way to write a source, and its meaning."""
    head = _HEAD.split(source.strip(), maxsplit=1)[0]
    for name, whole in ((source, True), (head, head == source.strip())):
        words = title_key(name).split()
        if not words:
            continue
        kept = words[:-1] if len(words) > 1 and words[-1] in _DOMAINS else words
        short = kept[1:] if kept[0] == "the" and len(kept) > 1 else kept
        full = _Meaning("source", source, whole)
        yield " ".join(words), full
        yield " ".join(kept), full
        bare = short != kept and len(short) == 1
        yield " ".join(short), _Meaning("source", source, whole, bare=bare)
        if len(kept) > 1 and len("".join(kept)) >= 6:
            yield "".join(kept), full
        if "&" in name:
            yield title_key(name.replace("&", " and ")), full
        apart = title_key(" ".join(_CAMEL.findall(name.removesuffix(".com"))))
        if " " in apart:
            yield apart, full


def _is_source(text: TextMatches, match: PhraseMatch, *, needs_news: bool) -> bool:
    before = text.words[match.start - 1].casefold() if match.start else ""
    after = text.words[match.end].casefold() if match.end < len(text.words) else ""
    if match.end - match.start == 1 and after.isdecimal():
        return False  # "Fortune 500" is no magazine
    beside_news = after in _NEWS or before in _BY
    return text.is_name(match.start, match.end) and (not needs_news or beside_news)


def _is_excluded(text: TextMatches, start: int) -> bool:
    before = " ".join(text.words[max(0, start - 6) : start]).casefold()
    return bool(_NOT.search(before))


def _inside_name(text: TextMatches, start: int, end: int) -> bool:
    """Whether these words are part of a longer name: "BBC Sports", but not "the Sports page"."""
    # Skip the first word, which is always capitalized.
    neighbours = [at for at in (start - 1, end) if 0 < at < len(text.words)]
    return text.is_name(start, end) and any(text.is_name(at, at + 1) for at in neighbours)
