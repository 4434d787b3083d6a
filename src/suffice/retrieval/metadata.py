"""What a question names, and how well each document's metadata agrees with it (MAGAF 3.4).

A corpus is a closed vocabulary: its sources, categories, entities and titles are known, so finding them in a question needs no
model, only care about how people write them:

- a source may be written without its leading "The", in other case, punctuation or spacing ("CBS Sports", "Techcrunch"), or by
  its head alone: "Fox News" means "FOX News - Lifestyle" and every other source that begins so. It counts only where it is
  written as a name ("The Age", not "the age"); one word left of a "The ..." ("Verge") needs a word about news beside it.
- a category ("business", "sports") is a common word. It counts only beside a word about news ("a business article", "the sports
  section", "category: science"), and not inside a name ("BBC Sports report", "Science News For Students").
- entities and titles follow `suffice.retrieval.phrase_matcher`; where several names overlap, the longest is meant.
- dates follow `suffice.retrieval.dates`; a corpus without dates has none.

A question typed all in lower or all in upper case is read as if every word had a capital.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from suffice.protocols import Store
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.dates import DateRange, QuestionDates, question_dates
from suffice.retrieval.phrase_matcher import PhraseMatch, PhraseMatcher, Words
from suffice.text import title_key
from suffice.types import FIELDS, Document, Field

__all__ = ["Mentions", "Vocabulary", "matching_metadata"]

_NEWS = frozenset(
    "article articles blog column coverage desk feature features headline headlines interview item items journalism news "
    "newsletter outlet page pages piece pieces post posts publication publications report reported reporting reports review "
    "reviews section source stories story writer writers".split()
)
_BY = frozenset(
    "by from in per to via with".split()
)  # "as reported by", "according to", "an article from"
_UNDER = frozenset("category categories section topic under".split())
_HEAD = re.compile(r"\s+[-–—|/]+\s+|:\s+")
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_DOMAINS = frozenset("com org net".split())
# "not by", "not reported by", "other than", "neither": what stands behind them is ruled out, but not behind "not only by".
_NOT = re.compile(
    r"\b(?:(?:not|never)(?: (?!only|just|merely)\w+(?:ed|en|wn)){0,2}|nor|neither|except|excluding|without|other than|"
    r"rather than|apart from)(?: (?:by|from|in|on|for|any))*(?: the)?$"
)
_AND = frozenset(("and", "or", "nor", "the"))  # what may stand between two names of one list


@dataclass(frozen=True, slots=True)
class Mentions:
    """What a question names, in order of appearance, spelled as the corpus spells it."""

    sources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    days: tuple[date, ...] = ()
    ranges: tuple[DateRange, ...] = ()  # more than one day
    in_full: tuple[
        str, ...
    ] = ()  # the sources among `sources` whose whole name stands in the question
    excluded: tuple[str, ...] = ()  # sources behind a "not", "except", "other than"
    excluded_categories: tuple[str, ...] = ()
    excluded_dates: tuple[DateRange, ...] = ()

    def __bool__(self) -> bool:
        named = (self.sources, self.categories, self.entities, self.titles, self.days, self.ranges)
        return any((*named, self.excluded, self.excluded_categories, self.excluded_dates))


def matching_metadata(mentions: Mentions, document: Document) -> tuple[str, ...]:
    """Which of the named things a document carries, like "source: The Verge" and "date: 2023-10-07"."""
    day, carried = document.published_at, set(document.entities)
    found = [f"source: {one}" for one in mentions.sources if one == document.source]
    found += [f"category: {one}" for one in mentions.categories if one == document.category]
    found += [f"entity: {one}" for one in mentions.entities if one in carried]
    found += [f"title: {one}" for one in mentions.titles if one == document.title]
    if day is not None:
        found += [f"date: {one}" for one in mentions.days if one == day]
        found += [f"date: {one}" for one in mentions.ranges if day in one]
    return tuple(found)


_Kind = Literal["source", "entity", "title"]


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a spelling stands for."""

    kind: _Kind
    value: str
    whole: bool = True  # the whole name, not its head alone
    bare: bool = False  # one word that lost its "The"


class Vocabulary:
    """The closed vocabulary of a corpus: values of each field, and titles."""

    def __init__(self, values: Mapping[Field, Iterable[str]], titles: Iterable[str] = ()) -> None:
        self.values: dict[Field, tuple[str, ...]] = {
            field: tuple(dict.fromkeys(values.get(field, ()))) for field in FIELDS
        }
        self._known = {field: frozenset(known) for field, known in self.values.items()}
        meanings: dict[str, dict[_Meaning, None]] = {}
        for source in self.values["source"]:
            for spelling, meaning in _spellings(source):
                meanings.setdefault(spelling, {}).setdefault(meaning)
        named: tuple[tuple[_Kind, Iterable[str]], ...] = (
            ("entity", self.values["entities"]),
            ("title", dict.fromkeys(titles)),
        )
        for kind, names in named:
            for name in names:
                meanings.setdefault(title_key(name), {}).setdefault(_Meaning(kind, name))
        meanings.pop("", None)
        self._number = {key: at for at, key in enumerate(meanings)}
        self._meanings = [tuple(one) for one in meanings.values()]
        self._phrases = PhraseMatcher(self._number)
        self._categories = _by_key(self.values["category"])
        self.days = tuple(date.fromisoformat(day) for day in sorted(self.values["published_at"]))
        self._span = DateRange(self.days[0], self.days[-1]) if self.days else None

    @classmethod
    def of(cls, corpus: Corpus) -> Vocabulary:
        titles = (document.title for document in corpus.documents if document.title)
        return cls({field: corpus.column(field).values for field in FIELDS}, titles)

    @classmethod
    def of_store(cls, store: Store) -> Vocabulary:
        """From what a store knows of its values; titles are left to the links, which keep them already."""
        return cls({field: store.values(field) for field in FIELDS})

    def mentions(self, questions: Sequence[str], *, today: date | None = None) -> list[Mentions]:
        """What each question names. `today` is the clock for "yesterday" and "last month", which without one name nothing."""
        return [self._read(question, today) for question in questions]

    def resolve(self, field: Field, name: str) -> tuple[str, ...]:
        """The values that a name stands for in a filter: itself, or those it is another spelling of; () if unknown."""
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
        unmarked = question.islower() or question.isupper()
        (reading,) = self._phrases.read([question.title() if unmarked else question])
        words = reading.words
        found: dict[str, dict[str, None]] = {
            name: {} for name in ("source", "entity", "title", "in_full", "excluded")
        }
        taken: set[int] = set()
        denied_until = -1  # where a list of names that are ruled out ends
        for match in reading.matches:
            for meaning in self._meanings[match.phrase]:
                kind: str = meaning.kind
                if kind == "source":
                    if not _is_source(
                        words,
                        match,
                        needs_news=meaning.bare or (unmarked and match.end - match.start == 1),
                    ):
                        continue
                    listed = denied_until >= 0 and _AND.issuperset(
                        map(str.casefold, words.written[denied_until : match.start])
                    )
                    if listed or _NOT.search(_before(words, match)):
                        kind, denied_until = "excluded", match.end
                    if kind == "source" and meaning.whole:
                        found["in_full"].setdefault(meaning.value)
                found[kind].setdefault(meaning.value)
                taken.update(range(match.start, match.end))
        dates = (
            question_dates(question, span=self._span, today=today)
            if self._span
            else QuestionDates()
        )
        categories = dict(self._named_categories(words, taken, unmarked=unmarked))
        return Mentions(
            sources=tuple(found["source"]),
            categories=tuple(one for one, denied in categories.items() if not denied),
            entities=tuple(found["entity"]),
            titles=tuple(found["title"]),
            days=tuple(
                one.first for one in dates.named if one.first is not None and one.first == one.last
            ),
            ranges=tuple(one for one in dates.named if one.first is None or one.first != one.last),
            in_full=tuple(found["in_full"]),
            excluded=tuple(one for one in found["excluded"] if one not in found["source"]),
            excluded_categories=tuple(one for one, denied in categories.items() if denied),
            excluded_dates=dates.denied,
        )

    def _named_categories(
        self, words: Words, taken: set[int], *, unmarked: bool
    ) -> Iterator[tuple[str, bool]]:
        """Categories, and whether they are ruled out."""
        folded = [word.casefold() for word in words.written]
        for length in sorted({key.count(" ") + 1 for key in self._categories}):
            for start in range(len(folded) - length + 1):
                values = self._categories.get(" ".join(folded[start : start + length]))
                if values and taken.isdisjoint(range(start, start + length)):
                    beside = (
                        folded[start + length] in _NEWS | _UNDER
                        if start + length < len(folded)
                        else False
                    )
                    under = start > 0 and (
                        folded[start - 1] in _UNDER
                        or folded[max(0, start - 2) : start] == ["category", "of"]
                    )
                    if (beside or under) and (
                        unmarked or not _inside_name(words, start, start + length)
                    ):
                        denied = bool(
                            _NOT.search(_before(words, PhraseMatch(0, start, start + length)))
                        )
                        yield from ((value, denied) for value in values)


def _spellings(source: str) -> Iterator[tuple[str, _Meaning]]:
    """Every way in which a source may be written, and what it then means."""
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
        yield (
            " ".join(short),
            _Meaning("source", source, whole, bare=short != kept and len(short) == 1),
        )
        if len(kept) > 1 and len("".join(kept)) >= 6:
            yield "".join(kept), full
        if "&" in name:
            yield title_key(name.replace("&", " and ")), full
        apart = title_key(" ".join(_CAMEL.findall(name.removesuffix(".com"))))
        if " " in apart:
            yield apart, full


def _is_source(words: Words, match: PhraseMatch, *, needs_news: bool) -> bool:
    before = words.written[match.start - 1].casefold() if match.start else ""
    after = words.written[match.end].casefold() if match.end < len(words.written) else ""
    if match.end - match.start == 1 and after.isdecimal():
        return False  # "Fortune 500" is no magazine
    return words.as_name(match) and (not needs_news or after in _NEWS or before in _BY)


def _before(words: Words, match: PhraseMatch) -> str:
    return " ".join(words.written[max(0, match.start - 6) : match.start]).casefold()


def _inside_name(words: Words, start: int, end: int) -> bool:
    """Whether a capitalised span goes on from or into another name: "BBC Sports", "Science News", but not "the Sports page"."""
    neighbours = [
        at for at in (start - 1, end) if 0 < at < len(words.written)
    ]  # the first word always has a capital
    return words.as_name(PhraseMatch(0, start, end)) and any(
        words.as_name(PhraseMatch(0, at, at + 1)) for at in neighbours
    )


def _by_key(values: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for value in values:
        if key := title_key(value):
            found[key] = (*found.get(key, ()), value)
    return found
