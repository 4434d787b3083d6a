"""One pass over a question and its hits: what the question names, what each hit covers, and which hit points to which.

Everything the features need from text is found here and only here, because text is where the time goes. A *source* is a hit
whose title the question names; without one, the hit that covers most of the question. A *loose* word is asked about but names
nothing: it relates a source to what is looked for ("the *director* of …"). An *absent* name stands in the text of a source, or
in the question, and is the title of no hit: perhaps the document that is missing. `suffice.assess.features` says what each
column means.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, compress
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.assess import folding
from suffice.assess.asking import Asked, ask
from suffice.assess.folding import KINSHIP, OPENERS, QUIET, SAID, folded, is_agent, title_key
from suffice.assess.words import Words
from suffice.errors import InputError

__all__ = [
    "ABSENT_COLUMNS", "HIT_COLUMNS", "KINSHIP", "MAX_CHARS", "QUIET", "WHOLE_COLUMNS", "Asked", "Reading", "ask", "folded",
    "is_agent", "read", "title_key",
]  # fmt: skip

Floats = npt.NDArray[np.floating[Any]]
# What a reader would be shown, and a bound on the time that a hostile input can take.
MAX_CHARS = 4_000  # of one hit
MAX_TITLE = 200
MAX_LINKED = 50  # hits whose titles are looked for in the others: beyond, time would grow with their square
MAX_SOURCES = 3  # sources that absent names are taken from
MAX_NAMES = 12  # absent names from one source
REACH = 60  # bytes between a name and the word that relates it
FAR = 999
SHORT = 4  # a title key of a letter or two, between its spaces: found everywhere by chance
ORDINARY = 0.05  # rarity of a quiet word

HIT_COLUMNS = (
    "rank", "score", "named", "title_share", "title_words", "title_rare", "covered", "only_here", "gain", "residual",
    "relation", "fills", "names", "title_names", "numbers", "linked_by_named", "linked_by_any", "links_out", "near",
    "near_agent", "closeness", "shares_named", "shares_any", "same_title", "has_text",
)  # fmt: skip
ABSENT_COLUMNS = (
    "from_source", "closeness", "agent_closeness", "after_agent", "mentions", "words", "rare", "place", "source_covered",
    "asked", "source_rank", "source_resolved", "lacks", "rivals", "digits", "agents",
)  # fmt: skip
WHOLE_COLUMNS = (
    "k", "content", "names", "numbers", "rarity", "named", "names_no_title", "names_no_text", "cov_any", "cov_titles",
    "cov_sources", "cov_linked", "cov_named", "greedy1", "greedy2", "greedy3", "greedy4", "rarest_missing", "missing_words",
    "single_holder", "links", "bridged", "bridged_near", "bridged_agent", "loose", "agents", "s2", "s3", "s4", "s5", "s10",
    "s_mean", "s_std", "distinct_titles", "resolved", "dangling", "terminal", "lacks", "lacks_linked",
    "numbers_missing",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reading:
    """What one pass found: a row per hit, a row per absent name, and the figures of the whole set; all float32."""

    hits: Floats  # (hits, HIT_COLUMNS)
    absent: Floats  # (names, ABSENT_COLUMNS)
    absent_names: tuple[str, ...]  # as they stand in the text
    whole: Floats  # (WHOLE_COLUMNS,)


def read(
    asked: Asked, titles: Sequence[str], texts: Sequence[str], scores: Sequence[float | None] | None, words: Words
) -> Reading:
    """Read the hits for the question: in rank order, `titles` and `texts` may be empty strings, `scores` unknown.

    Zero hits give no rows and zeros for the whole.
    """
    if not len(titles) == len(texts) == (len(titles) if scores is None else len(scores)):
        counts = f"{len(titles)} titles, {len(texts)} texts, {'no' if scores is None else len(scores)} scores"
        raise InputError(f"the hits do not line up: {counts}", hint='give one of each per hit; "" or None where there is none')
    if not titles:
        return Reading(_rows([], HIT_COLUMNS), _rows([], ABSENT_COLUMNS), (), np.zeros(len(WHOLE_COLUMNS), dtype=np.float32))
    return _Pass(asked, titles, texts, scores, words).reading()


class _Pass:
    """The state of one pass; each method fills in what the next ones need. Lists, since arrays this small cost more."""

    def __init__(
        self, asked: Asked, titles: Sequence[str], texts: Sequence[str], scores: Sequence[float | None] | None, words: Words
    ) -> None:
        self.asked, self.words, self.k = asked, words, len(titles)
        titles = [title[:MAX_TITLE] for title in titles]
        self.raws, self.flats = zip(*[folding.both(_shown(title, text[:MAX_CHARS])) for title, text in zip(titles, texts)])
        self.keys = [title_key(title) for title in titles]
        titled = Counter(self.keys)
        self.same_title = [titled[key] - 1 for key in self.keys]
        self.has_text = [bool(text) for text in texts]
        self.scores = _shares(scores, self.k)
        self.ranks = [at / max(self.k - 1, 1) for at in range(self.k)]
        self._cover()
        self._sources()
        self._loose()
        self._links()
        self._shared_names()

    def _cover(self) -> None:
        """Which hit holds which of the question's words, names and numbers."""
        asked, titles = self.asked, self.keys
        self.joined = b"|".join(self.flats)
        self.starts = list(accumulate([len(flat) + 1 for flat in self.flats], initial=0))
        by_word = [self._holders(stem) for stem in asked.stems]
        self.holds = list(zip(*by_word)) or [()] * self.k
        self.holders = list(map(sum, by_word))
        self.mentions = [self._holders(name) for name in asked.names]
        self.counted = [self._holders(number) for number in asked.numbers]
        self.carries = [[name in key or (len(key) > SHORT and key in name) for key in titles] for name in asked.names]
        self.rarity = asked.rarity.tolist()
        self.total = sum(self.rarity) or 1.0
        self.cover = np.array(self.holds, dtype=np.float32)
        self.covered = (self.cover @ asked.rarity / self.total).tolist()

    def _holders(self, part: bytes) -> list[bool]:
        """Which hits hold it: one search through all texts, from one that does on to the next."""
        found, starts, find = [False] * self.k, self.starts, self.joined.find
        place = find(part)
        while place >= 0:
            at = bisect_right(starts, place)
            found[at - 1] = True
            place = find(part, starts[at])
        return found

    def _sources(self) -> None:
        """Which titles the question names, and how much of each stands in it."""
        flat, rarity_of, asked_words = self.asked.flat, self.words.rarity, set(self.asked.tokens)
        self.title_words = [key.split() for key in self.keys]
        self.title_share, self.title_rare, named = [], [], []
        for key, title in zip(self.keys, self.title_words):
            whole = inside = rarest = 0.0
            for word in title:
                rare = ORDINARY if word in QUIET else rarity_of(word)
                whole += rare
                if word in asked_words:
                    inside += rare
                if rare > rarest:
                    rarest = rare
            named.append(inside == whole and rarest > ORDINARY and key in flat)
            self.title_share.append(inside / whole if whole else 0.0)
            self.title_rare.append(rarest)
        # A title inside a longer named title names nothing of its own: "Smith" in "Joseph Smith".
        longer = set(compress(self.keys, named))
        self.named = [
            is_named and not any(key in other and key != other and flat.count(key) <= flat.count(other) for other in longer)
            for is_named, key in zip(named, self.keys)
        ]
        self.anchors = list(compress(range(self.k), self.named))
        self.sources = self.anchors or [self.covered.index(max(self.covered))]

    def _loose(self) -> None:
        """Which words stand in a named title, and which relate: neither there nor in a name."""
        content, stems = self.asked.content, self.asked.stems
        in_titles = {word for at in self.anchors for word in self.title_words[at]}
        in_names = set(b"".join(self.asked.names).split())
        self.held = [word in in_titles for word in content]
        self.is_loose = [word not in in_titles and word not in in_names for word in content]
        self.agents = [word for word in compress(content, self.is_loose) if is_agent(word)]
        said = [phrase for word in self.agents for phrase in SAID.get(word, ())]
        self.agent_stems = [folding.stem(word) for word in self.agents] + said
        self.relation_stems = [*compress(stems, self.is_loose), *said]

    def _links(self) -> None:
        """Which hit mentions whose title: one search per title through all texts at once."""
        k, keys = self.k, self.keys
        self.relations = {at: _places(self.relation_stems, self.flats[at]) for at in self.sources}
        self.agent_places = {at: _places(self.agent_stems, self.flats[at]) for at in self.sources}
        self.by_named, self.near, self.near_agent, self.resolved = [False] * k, [False] * k, [False] * k, [False] * k
        self.closeness, self.by_any, self.links_out = [0.0] * k, [0] * k, [0] * k
        joined, starts = self.joined, self.starts
        for to, key in enumerate(keys[:MAX_LINKED]):
            place = joined.find(key) if len(key) > SHORT else -1
            while place >= 0:
                by = bisect_right(starts, place) - 1
                if by != to and key not in keys[by]:
                    self.links_out[by] += 1
                    self.by_any[to] += 1
                    if by in self.relations:
                        self._link_from_source(by, to, place - starts[by])
                place = joined.find(key, starts[by + 1])

    def _link_from_source(self, by: int, to: int, place: int) -> None:
        distance, to_agent = _distance(place, self.relations[by]), _distance(place, self.agent_places[by])
        self.by_named[to] |= self.named[by]
        self.closeness[to] = max(self.closeness[to], REACH / (REACH + distance))
        self.near[to] |= distance < REACH
        self.near_agent[to] |= to_agent < REACH
        self.resolved[by] |= not self.named[to] and (to_agent if self.agents else distance) < REACH

    def _shared_names(self) -> None:
        """Names that several hits mention and the question does not."""
        flat = self.asked.flat
        self.runs = list(map(folding.name_runs, self.raws))
        names = list(map(set, self.runs))
        self.seen = Counter(chain.from_iterable(names))
        several = [(name, name.lower()) for name, count in self.seen.items() if count > 1 and len(name) > 2]
        common = {name for name, low in several if low not in OPENERS and low not in flat}
        shared = [common.intersection(own) for own in names]
        anchored: set[bytes] = set().union(*[shared[at] for at in self.anchors])
        self.shares_any = [min(len(own), 6) for own in shared]
        self.shares_named = [0 if named else min(len(own & anchored), 4) for named, own in zip(self.named, shared)]

    def reading(self) -> Reading:
        """The columns, from what was found."""
        by_sources = _any([self.holds[at] for at in self.sources])
        lack = [loose and not held for loose, held in zip(self.is_loose, by_sources)]  # these must come from elsewhere
        lacks = self._weight(lack)
        gains, order = self._greedy()
        names, absent, dangling = self._absent(lacks)
        whole = self._whole(order, by_sources, lacks, dangling)
        return Reading(self._hits(gains, lack), _rows(absent, ABSENT_COLUMNS), names, _rows([whole], WHOLE_COLUMNS)[0])

    def _weight(self, chosen: Sequence[bool]) -> float:
        """The share that some of the question's words have in all, by rarity."""
        return float(sum(compress(self.rarity, chosen)) / self.total)

    def _greedy(self) -> tuple[list[float], list[float]]:
        """What each of the four hits that cover most together adds, by hit and in order."""
        gains, order = [0.0] * self.k, [0.0] * 4
        left, gaps = self.asked.rarity, 1 - self.cover
        for at in range(4):
            added = self.cover @ left
            best = int(added.argmax())
            gain = float(added[best]) / self.total
            if gain <= 0:
                break
            gains[best] = order[at] = gain
            left = left * gaps[best]
        return gains, order

    def _hits(self, gains: list[float], lack: list[bool]) -> Floats:
        alone = [count == 1 for count in self.holders]
        groups = np.array([alone, [not held for held in self.held], self.is_loose, lack], dtype=np.float32) * self.asked.rarity
        weights = np.maximum(groups.sum(1), 1e-6)
        weights[0] = self.total
        only_here, residual, relation, fills = ((groups @ self.cover.T) / weights[:, None]).tolist()
        n = len(self.asked.numbers)
        numbers = [count / n if n else -1.0 for count in _counts(self.counted, self.k)]
        return _rows(
            zip(
                self.ranks, self.scores, self.named, self.title_share, [min(len(title), 8) for title in self.title_words],
                self.title_rare, self.covered, only_here, gains, residual, relation, fills if any(lack) else [-1.0] * self.k,
                _counts(self.mentions, self.k), _counts(self.carries, self.k), numbers,
                self.by_named, [min(count, 5) for count in self.by_any], [min(count, 5) for count in self.links_out],
                self.near, self.near_agent, self.closeness, self.shares_named, self.shares_any,
                self.same_title, self.has_text,
            ),
            HIT_COLUMNS,
        )  # fmt: skip

    def _absent(self, lacks: float) -> tuple[tuple[str, ...], list[list[float]], int]:
        """Names that no title carries, with a row each, and how many sources point to one of them instead of to a hit."""
        rows: dict[bytes, list[float]] = {}
        written: list[str] = []
        dangling = 0
        for at in self.sources[:MAX_SOURCES]:
            points_on = self._absent_from(at, lacks, rows, written)
            dangling += points_on and not self.resolved[at]
        for row in rows.values():
            row[13] = len(rows)
        agents = len(self.agents)
        for (name, text), carriers, holders in zip(self.asked.written.items(), self.carries, self.mentions):
            if not any(carriers):
                parts = name.split()
                rare = max(map(self.words.rarity, parts))
                if name in rows:  # a source names it too, as "St. Alban's": the question's row takes its place
                    written.pop(list(rows).index(name))
                    del rows[name]
                rows[name] = [0, 0, 0, 0, sum(holders), min(len(parts), 6), rare, 0, 0, 1, 0, 0, lacks, len(rows), 0, agents]
                written.append(text)
        return tuple(written), list(rows.values()), dangling

    def _absent_from(self, at: int, lacks: float, rows: dict[bytes, list[float]], written: list[str]) -> bool:
        """Add the absent names of one source; does a word like "director" stand right before one of them?"""
        raw, titles, question, rarity_of = self.raws[at], b"|".join(self.keys), self.asked.flat, self.words.rarity
        relations, agent_places = self.relations[at], self.agent_places[at]
        fresh, points_on = 0, False
        for name in folding.names(self.flats[at], folding.name_spans(raw, self.runs[at])):
            key, start, end = name
            if key in titles or key in question or key in rows:
                continue
            if fresh == MAX_NAMES:
                break
            fresh += 1
            parts = key.split()
            to_agent, after = _distance(start, agent_places), _follows(start, agent_places)
            points_on |= after
            rows[key] = [
                1, REACH / (REACH + _distance(start, relations)), REACH / (REACH + to_agent), after,
                self.seen.get(raw[start:end], 1), min(len(parts), 6),
                max(map(rarity_of, parts)), min(start / 400, 3.0), self.covered[at], 0, self.ranks[at], self.resolved[at],
                lacks, 0, any(map(bytes.isdigit, parts)), len(self.agents),
            ]  # fmt: skip
            written.append(folding.written(raw, name))
        return points_on

    def _whole(self, order: list[float], by_sources: list[bool], lacks: float, dangling: int) -> list[float]:
        asked, n = self.asked, max(len(self.asked.names), 1)
        width = max(len(asked.content), 1)
        bridged = [at for at in range(self.k) if self.by_named[at] and not self.named[at]]
        by_chain = _any([by_sources, *[self.holds[at] for at in bridged]])
        in_titles = {word for title in self.title_words for word in title}
        missing = [not count for count in self.holders]
        resolved = sum([self.resolved[at] for at in self.sources])
        return [
            self.k, len(asked.content), len(asked.names), len(asked.numbers), self.total / width, len(self.anchors),
            _without(self.carries) / n, _without(self.mentions) / n,
            1 - self._weight(missing) if self.rarity else 0.0, self._weight([word in in_titles for word in asked.content]),
            self._weight(by_sources), self._weight(by_chain), self._weight(self.held), *order,
            max(compress(self.rarity, missing), default=0.0), sum(missing) / width, self.holders.count(1) / width,
            min(sum([min(count, 5) for count in self.by_any]), 20), len(bridged), sum([self.near[at] for at in bridged]),
            sum([self.near_agent[at] for at in bridged]), sum(self.is_loose), len(self.agents), *_ladder(self.scores),
            len(set(self.keys)) / self.k, resolved, dangling, len(self.sources) - resolved - dangling, lacks,
            self._weight([loose and not held for loose, held in zip(self.is_loose, by_chain)]),
            _without(self.counted) if asked.numbers else -1.0,
        ]  # fmt: skip


def _shown(title: str, text: str) -> str:
    return f"{title}. {text}" if title else text


def _rows(rows: Iterable[Iterable[float]], columns: tuple[str, ...]) -> Floats:
    return np.fromiter(chain.from_iterable(rows), dtype=np.float32).reshape(-1, len(columns))


def _counts(rows: Sequence[Sequence[bool]], width: int) -> list[int]:
    """Column by column: of how many rows it is true."""
    return list(map(sum, zip(*rows))) if rows else [0] * width


def _without(rows: Sequence[Sequence[bool]]) -> int:
    """How many rows have nothing true."""
    return sum([not any(row) for row in rows])


def _any(rows: Sequence[Sequence[bool]]) -> list[bool]:
    """Column by column: is it true of some row?"""
    return list(map(any, zip(*rows))) if len(rows) > 1 else list(rows[0])


def _shares(scores: Sequence[float | None] | None, k: int) -> list[float]:
    """Scores as shares of the best one; -1 where unknown, or where negative scores have no zero to be a share of."""
    known = [score for score in scores or () if score is not None and score == score]
    top = max(known, default=0.0)
    if scores is None or top <= 0 or not isfinite(top) or min(known) < 0:
        return [-1.0] * k
    return [score / top if score is not None and score == score else -1.0 for score in scores]


def _ladder(shares: Sequence[float]) -> list[float]:
    """The second to fifth and the tenth known share, their mean and spread; -1 where none is known."""
    known = [share for share in shares if share >= 0]
    if not known:
        return [-1.0] * 7
    mean = sum(known) / len(known)
    spread = (sum([(share - mean) ** 2 for share in known]) / len(known)) ** 0.5
    return [*[known[at] if at < len(known) else 0.0 for at in (1, 2, 3, 4, 9)], mean, spread]


def _places(stems: Sequence[bytes], flat: bytes) -> list[int]:
    """Where any of the stems stands first and second, in order; more of the same says no more."""
    found = []
    for stem in stems:
        at = flat.find(stem)
        if at >= 0:
            found.append(at + 1)
            at = flat.find(stem, at + 1)
            if at >= 0:
                found.append(at + 1)
    return sorted(found)


def _distance(at: int, places: Sequence[int]) -> int:
    """To the nearest of the places, which are sorted; without any, FAR."""
    if not places:
        return FAR
    right = bisect_left(places, at)
    after = places[right] - at if right < len(places) else FAR
    return min(after, at - places[right - 1]) if right else after


def _follows(at: int, places: Sequence[int]) -> bool:
    """Does one of the sorted places stand closely before?"""
    right = bisect_left(places, at)
    return right > 0 and at - places[right - 1] < REACH // 2
