"""The controlled collection: what MAGAF describes as MultiHop-RAG-compatible, made from a seed.

The paper gives the collection's Table 1 but not the collection. This one has the same counts: 609 articles of 23 outlets in
five categories; 2,174 questions whose evidence is a path of two to four articles about one newsmaker, and 382 that no path
answers.

    comparison   names the newsmaker, outlets and dates: do these reports agree?
    temporal     likewise: what changed, what came first?
    inference    describes the newsmaker by what was reported about it, and names nothing
    null         names a newsmaker and outlets that never wrote about it

Who reports what is in `controlled_news`, the words are in `controlled_words`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from random import Random
from typing import Literal

from suffice.datasets.controlled_news import (
    FIRST_DAY,
    MONTHS,
    SEASON_DAYS,
    Difficulty,
    Newsroom,
    Report,
    pick,
    possessive,
    sample,
)
from suffice.datasets.controlled_words import CATEGORIES, SOURCES
from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import Example, Gold
from suffice.errors import InputError
from suffice.types import Question, QuestionId

__all__ = ["PAPER_DOCUMENTS", "Difficulty", "controlled"]

Kind = Literal["comparison", "inference", "temporal", "null"]
Story = Sequence[Report]

PAPER_DOCUMENTS = 609
_TRIES = 10_000  # far more than any collection needs that has enough paths

# Table 1's path lengths, spread evenly over the types; Table 5's test part (124, 137, 66, 57 of 384) is 15 % of the totals.
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

_NULLS = (
    "Considering the information from an article by {first} and another by {second} about {name}, "
    "what reason did both give for the {noun}?",
    "Which adviser to {name}, quoted by {first} on the {noun}, was also interviewed by {second} on {date}?",
    "According to {first} and to what {second} wrote on {date}, how much did {name} spend on its {noun}?",
    "What did {first} call the biggest surprise in the {noun} of {name}, which {second} had ruled out on {date}?",
)


def controlled(*, seed: int = 42, documents: int = PAPER_DOCUMENTS, difficulty: Difficulty | None = None) -> Dataset:
    """The collection of that seed and size; the defaults are the paper's Table 1.

    A larger one has more newsmakers and articles of the same look, and the same 2,556 questions spread over all of them; a
    smaller one has proportionally fewer questions. Outlets and categories stay 23 and 5.
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
        examples=lambda _: _Desk(newsroom, documents).examples(),
    )


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name} is {value!r}, expected a whole number")
    return value


class _Desk:
    """Asks the questions of a collection, each path once for each type and each wording once."""

    def __init__(self, newsroom: Newsroom, documents: int) -> None:
        self.newsroom, self.documents = newsroom, documents
        self.difficulty = newsroom.difficulty
        self.asked: set[object] = set()

    def examples(self) -> Iterator[Example]:
        share = min(1.0, self.documents / PAPER_DOCUMENTS)
        plan = [(kind, hops) for (kind, hops), count in PATHS.items() for _ in range(int(count * share))]
        for number, (kind, hops) in enumerate(sample(Random(f"{self.newsroom.seed}/plan"), plan, len(plan)), start=1):
            rng = Random(f"{self.newsroom.seed}/question/{number}")
            yield self._example(rng, f"q-{number:04d}", kind, hops)

    def _example(self, rng: Random, question_id: QuestionId, kind: Kind, hops: int) -> Example:
        for _ in range(_TRIES):
            story, rivals = self._story(rng)
            if len(story) < max(hops, 1):
                continue
            path = sample(rng, story, hops)
            if kind == "inference" and not _fits_only_one(path, rivals):
                continue
            text, answer = self._question(rng, kind, path, story)
            needed = frozenset(report.doc_id for report in path)
            keys = {text, (kind, needed or text)}
            if not keys & self.asked:
                self.asked |= keys
                return Example(Question(question_id, text), Gold(question_id, needed, answer, kind, hops))
        raise InputError(
            f"{self.documents} documents hold too few different {kind} questions of {hops} hops with this seed",
            hint="make more documents, or longer stories",
        )

    def _story(self, rng: Random) -> tuple[Story, list[Story]]:
        """The story of an article drawn at random, and its rivals' stories, as far as they are in the collection."""
        beat, offset = divmod(int(rng.random() * self.documents), self.newsroom.beat_size)
        last = self.documents - beat * self.newsroom.beat_size
        drawn: Story = ()
        rivals: list[Story] = []
        start = 0
        for story in self.newsroom.stories(beat):
            held = story[: max(last - start, 0)]
            if start <= offset < start + len(story):
                drawn = held
            else:
                rivals.append(held)
            start += len(story)
        return drawn, rivals

    def _question(self, rng: Random, kind: Kind, path: Story, story: Story) -> tuple[str, str]:
        """The words of a question, and its answer."""
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
            return f"Is the news for the {who} in {first} at odds with that in {rest}?", _yes(not agree)
        well = form == 2
        claim = f"things are going {'well' if well else 'badly'} for the {who}"
        return f"Do {_listed(mentions)} agree that {claim}?", _yes(agree and path[0].good == well)

    def _temporal(self, rng: Random, path: Story, story: Story) -> tuple[str, str]:
        if len(path) == 2 and rng.random() < 0.5:
            first, second = path
            known = self._mentions(rng, path, story, dated=False)[0]
            asked = f"the {_spoken(rng, second.outlet)} story of {_day(second.day)}"
            return f"Did {known} appear before or after {asked}?", "before" if first.day < second.day else "after"
        path = sorted(path, key=lambda report: report.day)
        mentions = self._mentions(rng, path, story, dated=True)
        who = CATEGORIES[path[0].newsmaker.category].who
        if rng.random() < 0.5:
            return f"Did the outlook for the {who} change between {_listed(mentions)}?", _yes(not _one_tone(path))
        before, last = _listed(mentions[:-1]), mentions[-1]
        return f"After {before}, did {last} strike the same note about the {who}?", _yes(_one_tone(path))

    def _inference(self, rng: Random, path: Story) -> tuple[str, str]:
        newsmaker = path[0].newsmaker
        kind = newsmaker.sector.kind
        trade = newsmaker.sector.veiled if self._veils(rng) else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
        clues = [
            (report.aspect.veiled_good if report.good else report.aspect.veiled_bad)
            if self._veils(rng)
            else f"saw that its {report.fact}"
            for report in path
        ]
        who, count = CATEGORIES[newsmaker.category].who, {2: "two", 3: "three", 4: "four"}[len(path)]
        return f"Which {who}, {trade}, {_listed(clues)}, according to {count} separate reports?", newsmaker.name

    def _veils(self, rng: Random) -> bool:
        return rng.random() < self.difficulty.veiled

    def _mentions(self, rng: Random, path: Story, story: Story, *, dated: bool) -> list[str]:
        """How the question speaks of each article: by outlet and topic (the first always), or by outlet and date."""
        mentions = []
        for at, report in enumerate(path):
            outlet, when = _spoken(rng, report.outlet), self._when(rng, report, story)
            if at > 0 and rng.random() >= self.difficulty.described:
                mentions.append(f"the {outlet} story of {when}")
                continue
            whose = "its" if at else possessive(report.newsmaker.name)
            published = f" published {'on' if ',' in when else 'in'} {when}" if dated else ""
            mentions.append(f"the {outlet} article on {whose} {report.aspect.noun} in {report.place}{published}")
        return mentions

    def _when(self, rng: Random, report: Report, story: Story) -> str:
        """The day, or the month where the outlet has no other article about the newsmaker in it."""
        alike = [one for one in story if (one.outlet, one.day.month) == (report.outlet, report.day.month)]
        if len(alike) == 1 and rng.random() >= self.difficulty.exact:
            return f"{MONTHS[report.day.month]} {report.day.year}"
        return _day(report.day)


def _null(rng: Random, story: Story) -> tuple[str, str]:
    """A question about a newsmaker, put to two outlets that never wrote about it."""
    newsmaker = story[0].newsmaker
    silent = [outlet for outlet in SOURCES[newsmaker.category] if outlet not in {report.outlet for report in story}]
    first, second = sample(rng, silent, 2)
    text = pick(rng, _NULLS).format(
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
    return len(topics) == len(path) and not any(clues <= {(one.aspect, one.good) for one in rival} for rival in rivals)


def _one_tone(path: Story) -> bool:
    return len({report.good for report in path}) == 1


def _plain(rng: Random, outlet: str) -> str:
    """The outlet's name, half the time without the marks inside it, as people write it."""
    return re.sub(r"\s*[|&.-]\s*", " ", outlet) if rng.random() < 0.5 else outlet


def _spoken(rng: Random, outlet: str) -> str:
    """The outlet's name behind a "the"."""
    return _plain(rng, outlet).removeprefix("The ")


def _day(day: date) -> str:
    return f"{MONTHS[day.month]} {day.day}, {day.year}"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _yes(true: bool) -> str:
    return "yes" if true else "no"
