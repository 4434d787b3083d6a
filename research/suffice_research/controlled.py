"""The controlled collection: MAGAF's MultiHop-RAG-compatible collection, generated from a seed.

Articles: a beat is one trade with a few rival newsmakers; a few outlets follow each of them over
one season. So every article has similar ones: the same newsmaker in another outlet or on another
day, the same outlet and topic with another newsmaker. A beat depends only on the seed and its own
number: articles stream in bounded memory, and the first thousand are the same whether a million
follow or none.

Questions: 2,174 whose evidence is a path of two to four articles about one newsmaker, and 382 that
no path answers.

    comparison   names the newsmaker, outlets and dates: do these reports agree?
    temporal     likewise: what changed, what came first?
    inference    describes the newsmaker by what was reported about it, and names nothing
    null         names a newsmaker and outlets that never wrote about it

The words are in `controlled_words`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from random import Random
from typing import Literal, TypeVar

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.errors import InputError
from suffice.types import DocId, Document, Question, QuestionId
from suffice_research.controlled_words import (
    BODY_SENTENCES,
    CATEGORIES,
    FIRST_NAMES,
    GENERAL_SENTENCES,
    LEADS,
    NULL_QUESTIONS,
    PRODUCTS,
    QUOTES,
    RECAPS,
    RIVALS,
    SCALES,
    SECTORS,
    SIGNED,
    SOURCES,
    SYLLABLES,
    TITLES,
    TOPICS,
    UNSIGNED,
    Aspect,
    Sector,
)

T = TypeVar("T")

FIRST_DAY, SEASON_DAYS = date(2023, 9, 4), 112
# Not strftime, which depends on the locale.
MONTHS = {9: "September", 10: "October", 11: "November", 12: "December"}
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_PLACES = 8  # towns per beat, shared by the rivals
# Probabilities that an article names the trade's authority, and that it names a rival.
_WATCHED, _COMPARED = 0.35, 0.25


@dataclass(frozen=True, slots=True)
class Difficulty:
    """The parameters that make the collection hard to search.

    The defaults put plain TF-IDF where the paper's Table 3 has it.
    """

    story_sizes: tuple[int, ...] = (5, 10, 14)  # articles about each newsmaker of a beat
    outlets: int = 3  # outlets that follow one newsmaker
    # Probabilities:
    recalled: float = 0.2  # an article recalls an earlier one, with its outlet and topic
    signed: float = 0.3  # an article's own text names its outlet
    described: float = 0.4  # a question gives the topic of a later article than the first
    exact: float = 0.5  # a date in a question is a day, even if a month would do
    veiled: float = 0.95  # an inference question rewords a fact

    def __post_init__(self) -> None:
        # Of the eleven outlets in a category, two must stay unused for null questions.
        if not 2 <= self.outlets <= 9:
            raise InputError(f"outlets is {self.outlets}, expected 2 to 9")
        most = 10 * self.outlets  # one article for each outlet and topic
        if not self.story_sizes or not all(4 <= size <= most for size in self.story_sizes):
            raise InputError(
                f"story_sizes is {self.story_sizes}, expected one or more sizes from 4 to {most}"
            )
        for name in ("recalled", "signed", "described", "exact", "veiled"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}, expected a chance from 0 to 1")


@dataclass(frozen=True, slots=True)
class Newsmaker:
    """The subject of a story: a company, side, house or provider, and its surroundings."""

    name: str
    short: str
    person: str
    body: str
    places: tuple[str, ...]
    category: str
    sector: Sector
    rival: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """An article's content: on a day, something went well or badly for a newsmaker somewhere."""

    doc_id: DocId
    newsmaker: Newsmaker
    outlet: str
    day: date
    aspect: Aspect
    good: bool
    place: str

    @property
    def fact(self) -> str:
        return f"{self.aspect.noun} {self.aspect.good if self.good else self.aspect.bad}"


# Only Random.random() is stable across Python versions, so every draw uses it.


def pick(rng: Random, of: Sequence[T]) -> T:
    return of[int(rng.random() * len(of))]


def sample(rng: Random, of: Sequence[T], count: int) -> list[T]:
    """`count` different items in random order."""
    pool, draw = list(of), rng.random
    size = len(pool)
    for at in range(count):
        other = at + int(draw() * (size - at))
        pool[at], pool[other] = pool[other], pool[at]
    return pool[:count]


def possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def _stem(seed: int, number: int) -> str:
    """The invented name with this number; names are unique."""
    opening, middle, ending = SYLLABLES
    size = len(opening) * len(middle) * len(ending)
    longer, place = divmod(number, size)
    # 7919 is coprime to the size, so this only permutes the order.
    place = (place * 7919 + seed * 104729 + 17) % size
    place, first = divmod(place, len(opening))
    last, second = divmod(place, len(middle))
    syllables = [opening[first], middle[second]]
    # Used when the three-syllable names run out; counting from 1 keeps lengths apart.
    while longer:
        longer, extra = divmod(longer - 1, len(middle))
        syllables.append(middle[extra])
    return "".join(syllables) + ending[last]


class Newsroom:
    """Plans and writes any beat; deterministic for a seed and difficulty."""

    def __init__(self, seed: int, difficulty: Difficulty) -> None:
        self.seed, self.difficulty = seed, difficulty
        self.beat_size = sum(difficulty.story_sizes)
        self.stories = lru_cache(maxsize=64)(self._stories)

    def documents(self, count: int) -> Iterator[Document]:
        """The first `count` articles, beat by beat."""
        for beat in range(-(-count // self.beat_size)):
            rng = Random(f"{self.seed}/text/{beat}")
            left = count - beat * self.beat_size
            for story in self._stories(beat):
                for at, report in enumerate(story[:left]):
                    yield self._article(rng, report, story[:at])
                left = max(left - len(story), 0)

    def _stories(self, beat: int) -> tuple[tuple[Report, ...], ...]:
        """The reports about each newsmaker of the beat, oldest first."""
        rng = Random(f"{self.seed}/beat/{beat}")
        number = beat * self.beat_size + 1
        stories = []
        for newsmaker, size in zip(
            self._newsmakers(rng, beat), self.difficulty.story_sizes, strict=True
        ):
            stories.append(self._story(rng, newsmaker, size, number))
            number += size
        return tuple(stories)

    def _newsmakers(self, rng: Random, beat: int) -> list[Newsmaker]:
        names = list(CATEGORIES)
        category = names[beat % len(names)]
        about, sectors = CATEGORIES[category], SECTORS[category]
        sector = sectors[(beat // len(names) + self.seed) % len(sectors)]
        count = len(self.difficulty.story_sizes)
        needed = 1 + _PLACES + 2 * count
        stems = [_stem(self.seed, number) for number in range(beat * needed, (beat + 1) * needed)]
        body = f"{stems.pop()} {pick(rng, about.bodies)}"
        places = tuple(stems.pop() for _ in range(_PLACES))
        shorts = [stems.pop() for _ in range(count)]
        full = [
            f"{short} {suffix}"
            for short, suffix in zip(
                shorts, sample(rng, about.suffixes * count, count), strict=True
            )
        ]
        people = [f"{pick(rng, FIRST_NAMES)} {stem}" for stem in stems]
        rivals = [full[at - 1] if count > 1 else None for at in range(count)]
        return [
            Newsmaker(name, short, person, body, places, category, sector, rival)
            for name, short, person, rival in zip(full, shorts, people, rivals, strict=True)
        ]

    def _story(
        self, rng: Random, newsmaker: Newsmaker, size: int, number: int
    ) -> tuple[Report, ...]:
        # An outlet covers a topic of a newsmaker once, and no two reports share a day, so that a
        # question can identify one.
        outlets = sample(rng, SOURCES[newsmaker.category], self.difficulty.outlets)
        topics = [
            (outlet, aspect)
            for outlet in outlets
            for aspect in CATEGORIES[newsmaker.category].aspects
        ]
        days = sorted(sample(rng, range(SEASON_DAYS), size))
        return tuple(
            Report(
                doc_id=f"doc-{number + at:04d}",
                newsmaker=newsmaker,
                outlet=outlet,
                day=FIRST_DAY + timedelta(days=days[at]),
                aspect=aspect,
                good=rng.random() < 0.5,
                place=pick(rng, newsmaker.places),
            )
            for at, (outlet, aspect) in enumerate(sample(rng, topics, size))
        )

    def _article(self, rng: Random, report: Report, earlier: Sequence[Report]) -> Document:
        """The fact first, then its context and earlier reports, in any order."""
        newsmaker, about = report.newsmaker, CATEGORIES[report.newsmaker.category]
        watched = rng.random() < _WATCHED
        sentences = [
            pick(rng, SIGNED if rng.random() < self.difficulty.signed else UNSIGNED),
            pick(rng, SCALES),
            pick(rng, TOPICS),
            pick(rng, PRODUCTS),
            *sample(rng, about.colour, 2),
            *sample(rng, GENERAL_SENTENCES, 3),
        ]
        if watched:
            sentences.append(pick(rng, BODY_SENTENCES))
        if newsmaker.rival and rng.random() < _COMPARED:
            sentences.append(pick(rng, RIVALS))
        fill = _fill(rng, report)
        if earlier and rng.random() < self.difficulty.recalled:
            past = pick(rng, earlier)
            sentences.append(pick(rng, RECAPS))
            fill |= {
                "outlet": past.outlet,
                "past": past.aspect.noun,
                "month": MONTHS[past.day.month],
            }
        sentences = [
            pick(rng, LEADS),
            report.aspect.detail,
            *sample(rng, sentences, len(sentences)),
        ]
        return Document(
            doc_id=report.doc_id,
            text="\n".join(
                " ".join(sentences[at : at + 4]) for at in range(0, len(sentences), 4)
            ).format_map(fill),
            title=pick(rng, TITLES).format_map(fill),
            source=report.outlet,
            category=newsmaker.category,
            published_at=report.day,
            entities=(newsmaker.name, newsmaker.person, newsmaker.body)[: 3 if watched else 2],
        )


def _fill(rng: Random, report: Report) -> dict[str, str]:
    """The values for the gaps in the sentences."""
    newsmaker, about = report.newsmaker, CATEGORIES[report.newsmaker.category]
    return {
        "name": newsmaker.name,
        "names": possessive(newsmaker.name),
        "short": newsmaker.short,
        "shorts": possessive(newsmaker.short),
        "person": newsmaker.person,
        "body": newsmaker.body,
        "rival": newsmaker.rival or "",
        "label": newsmaker.sector.label,
        "kind": newsmaker.sector.kind,
        "product": pick(rng, newsmaker.sector.products),
        "who": about.who,
        "role": about.role,
        "source": report.outlet,
        "place": report.place,
        "noun": report.aspect.noun,
        "fact": report.fact,
        "season": "autumn" if report.day.month < 12 else "winter",
        "weekday": _WEEKDAYS[report.day.weekday()],
        "ordinal": pick(rng, ("first", "second", "third")),
        "count": str(3 + int(rng.random() * 37)),
        "quote": pick(rng, QUOTES[0 if report.good else 1]),
    }


# --------------------------------------------------------------------------------------- questions

Kind = Literal["comparison", "inference", "temporal", "null"]
Story = Sequence[Report]

PAPER_DOCUMENTS = 609
_TRIES = 10_000  # far more than any collection with enough paths needs

# Table 1's path lengths, spread evenly over the types; Table 5's test part (124, 137, 66, 57 of
# 384) is 15 % of the totals.
PATHS: dict[tuple[Kind, int], int] = {
    ("comparison", 2): 454,
    ("comparison", 3): 270,
    ("comparison", 4): 101,
    ("inference", 2): 501,
    ("inference", 3): 298,
    ("inference", 4): 112,
    ("temporal", 2): 241,
    ("temporal", 3): 144,
    ("temporal", 4): 53,
    ("null", 0): 382,
}


def controlled_collection(
    *, seed: int = 42, documents: int = PAPER_DOCUMENTS, difficulty: Difficulty | None = None
) -> Dataset:
    """The collection for a seed and size; the defaults are the paper's Table 1.

    A larger one has more newsmakers and articles of the same kind, with the same 2,556 questions
    spread over all of them; a smaller one has proportionally fewer questions. It always has 23
    outlets and 5 categories.
    """
    newsroom = Newsroom(_whole("seed", seed), difficulty or Difficulty())
    if _whole("documents", documents) < newsroom.beat_size:
        raise InputError(
            f"documents is {documents}, expected at least {newsroom.beat_size}",
            hint="one trade with its newsmakers takes that many articles",
        )
    return Dataset(
        "controlled",
        documents=lambda _: newsroom.documents(documents),
        questions=lambda _: _QuestionWriter(newsroom, documents).questions(),
    )


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name} is {value!r}, expected a whole number")
    return value


class _QuestionWriter:
    """Writes the questions of a collection: each path once per type, each wording once."""

    def __init__(self, newsroom: Newsroom, documents: int) -> None:
        self.newsroom, self.documents = newsroom, documents
        self.difficulty = newsroom.difficulty
        self.asked: set[object] = set()

    def questions(self) -> Iterator[GoldQuestion]:
        share = min(1.0, self.documents / PAPER_DOCUMENTS)
        plan = [
            (kind, hops) for (kind, hops), count in PATHS.items() for _ in range(int(count * share))
        ]
        for number, (kind, hops) in enumerate(
            sample(Random(f"{self.newsroom.seed}/plan"), plan, len(plan)), start=1
        ):
            rng = Random(f"{self.newsroom.seed}/question/{number}")
            yield self._question(rng, f"q-{number:04d}", kind, hops)

    def _question(
        self, rng: Random, question_id: QuestionId, kind: Kind, hops: int
    ) -> GoldQuestion:
        for _ in range(_TRIES):
            story, rivals = self._story(rng)
            if len(story) < max(hops, 1):
                continue
            path = sample(rng, story, hops)
            if kind == "inference" and not _fits_only_one(path, rivals):
                continue
            text, answer = self._words(rng, kind, path, story)
            needed = frozenset(report.doc_id for report in path)
            keys = {text, (kind, needed or text)}
            if not keys & self.asked:
                self.asked |= keys
                return GoldQuestion(
                    Question(question_id, text), Gold(question_id, needed, answer, kind, hops)
                )
        raise InputError(
            f"{self.documents} documents have too few different {kind} questions of {hops} hops "
            "with this seed",
            hint="make more documents, or longer stories",
        )

    def _story(self, rng: Random) -> tuple[Story, list[Story]]:
        """The story of a random article, and its rivals' stories within the collection."""
        beat, offset = divmod(int(rng.random() * self.documents), self.newsroom.beat_size)
        last = self.documents - beat * self.newsroom.beat_size
        drawn: Story = ()
        rivals: list[Story] = []
        start = 0
        for story in self.newsroom.stories(beat):
            covered = story[: max(last - start, 0)]
            if start <= offset < start + len(story):
                drawn = covered
            else:
                rivals.append(covered)
            start += len(story)
        return drawn, rivals

    def _words(self, rng: Random, kind: Kind, path: Story, story: Story) -> tuple[str, str]:
        """The text of a question, and its answer."""
        if kind == "null":
            return _null(rng, story)
        if kind == "inference":
            return self._inference(rng, path)
        if kind == "comparison":
            return self._comparison(rng, path, story)
        return self._temporal(rng, path, story)

    def _comparison(self, rng: Random, path: Story, story: Story) -> tuple[str, str]:
        mentions = self._mentions(rng, path, story, dated=False)
        first, rest = mentions[0], _listed(mentions[1:])
        who = CATEGORIES[path[0].newsmaker.category].who
        agree = _one_tone(path)
        form = int(rng.random() * 4)
        if form == 0:
            return f"Does {first} paint the same picture of the {who} as {rest}?", _yes(agree)
        if form == 1:
            return f"Is the news for the {who} in {first} at odds with that in {rest}?", _yes(
                not agree
            )
        well = form == 2
        claim = f"things are going {'well' if well else 'badly'} for the {who}"
        return f"Do {_listed(mentions)} agree that {claim}?", _yes(agree and path[0].good == well)

    def _temporal(self, rng: Random, path: Story, story: Story) -> tuple[str, str]:
        if len(path) == 2 and rng.random() < 0.5:
            first, second = path
            known = self._mentions(rng, path, story, dated=False)[0]
            asked = f"the {_spoken(rng, second.outlet)} story of {_day(second.day)}"
            return (
                f"Did {known} appear before or after {asked}?",
                "before" if first.day < second.day else "after",
            )
        path = sorted(path, key=lambda report: report.day)
        mentions = self._mentions(rng, path, story, dated=True)
        who = CATEGORIES[path[0].newsmaker.category].who
        if rng.random() < 0.5:
            return f"Did the outlook for the {who} change between {_listed(mentions)}?", _yes(
                not _one_tone(path)
            )
        before, last = _listed(mentions[:-1]), mentions[-1]
        return f"After {before}, did {last} strike the same note about the {who}?", _yes(
            _one_tone(path)
        )

    def _inference(self, rng: Random, path: Story) -> tuple[str, str]:
        newsmaker = path[0].newsmaker
        kind = newsmaker.sector.kind
        trade = (
            newsmaker.sector.veiled
            if self._veils(rng)
            else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
        )
        clues = [
            (report.aspect.veiled_good if report.good else report.aspect.veiled_bad)
            if self._veils(rng)
            else f"saw that its {report.fact}"
            for report in path
        ]
        who, count = (
            CATEGORIES[newsmaker.category].who,
            {2: "two", 3: "three", 4: "four"}[len(path)],
        )
        return (
            f"Which {who}, {trade}, {_listed(clues)}, according to {count} separate reports?",
            newsmaker.name,
        )

    def _veils(self, rng: Random) -> bool:
        return rng.random() < self.difficulty.veiled

    def _mentions(self, rng: Random, path: Story, story: Story, *, dated: bool) -> list[str]:
        """How the question names each article: by outlet and topic (always the first), or date."""
        mentions = []
        for at, report in enumerate(path):
            outlet, when = _spoken(rng, report.outlet), self._when(rng, report, story)
            if at > 0 and rng.random() >= self.difficulty.described:
                mentions.append(f"the {outlet} story of {when}")
                continue
            whose = "its" if at else possessive(report.newsmaker.name)
            published = f" published {'on' if ',' in when else 'in'} {when}" if dated else ""
            mentions.append(
                f"the {outlet} article on {whose} {report.aspect.noun} in {report.place}{published}"
            )
        return mentions

    def _when(self, rng: Random, report: Report, story: Story) -> str:
        """The day, or the month if it is the outlet's only article about the newsmaker in it."""
        alike = [
            one for one in story if (one.outlet, one.day.month) == (report.outlet, report.day.month)
        ]
        if len(alike) == 1 and rng.random() >= self.difficulty.exact:
            return f"{MONTHS[report.day.month]} {report.day.year}"
        return _day(report.day)


def _null(rng: Random, story: Story) -> tuple[str, str]:
    """A question about a newsmaker and two outlets that never wrote about it."""
    newsmaker = story[0].newsmaker
    silent = [
        outlet
        for outlet in SOURCES[newsmaker.category]
        if outlet not in {report.outlet for report in story}
    ]
    first, second = sample(rng, silent, 2)
    text = pick(rng, NULL_QUESTIONS).format(
        first=_plain(rng, first),
        second=_plain(rng, second),
        name=newsmaker.name,
        noun=pick(rng, CATEGORIES[newsmaker.category].aspects).noun,
        date=_day(FIRST_DAY + timedelta(days=int(rng.random() * SEASON_DAYS))),
    )
    return text, "Insufficient information."


def _fits_only_one(path: Story, rivals: Sequence[Story]) -> bool:
    """Whether the facts of a path, each on another topic, fit no rival of the same trade."""
    clues = {(report.aspect, report.good) for report in path}
    topics = {report.aspect for report in path}
    return len(topics) == len(path) and not any(
        clues <= {(one.aspect, one.good) for one in rival} for rival in rivals
    )


def _one_tone(path: Story) -> bool:
    return len({report.good for report in path}) == 1


def _plain(rng: Random, outlet: str) -> str:
    """The outlet's name, half the time without its punctuation, as people write it."""
    return re.sub(r"\s*[|&.-]\s*", " ", outlet) if rng.random() < 0.5 else outlet


def _spoken(rng: Random, outlet: str) -> str:
    """The outlet's name after "the"."""
    return _plain(rng, outlet).removeprefix("The ")


def _day(day: date) -> str:
    return f"{MONTHS[day.month]} {day.day}, {day.year}"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _yes(true: bool) -> str:
    return "yes" if true else "no"
