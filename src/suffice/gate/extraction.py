"""A hit's title and text, read once for any number of questions, as a question is read once for any number of hits.

The same documents are found again and again, so the last ones read are kept: what is known of a page follows from its title and
text alone.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, compress
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from ahocorasick_rs import BytesAhoCorasick, Implementation

from suffice.errors import InputError
from suffice.gate import question
from suffice.gate import question as question_module
from suffice.gate.question import (
    PARAPHRASES,
    SENTENCE_OPENERS,
    STOP_WORD_RARITY,
    ParsedQuestion,
    WordTable,
    is_role_word,
)

__all__ = [
    "ABSENT_COLUMNS",
    "HIT_COLUMNS",
    "MAX_PASSAGE_CHARS",
    "SET_COLUMNS",
    "SHORT_TITLE_KEY",
    "Extraction",
    "Passage",
    "clear_passage_cache",
    "extract",
    "parse_passage",
]


# What a reader would be shown, and a bound on the time that a hostile input can take.
MAX_PASSAGE_CHARS = 4_000  # of one hit
MAX_TITLE_CHARS = 200
PASSAGE_CACHE_SIZE = 2_048  # pages, a few kilobytes each
SHORT_TITLE_KEY = (
    4  # a title key of a letter or two, between its spaces: found everywhere by chance
)


class Passage(NamedTuple):
    key: bytes  # the title as it is looked for
    words: list[bytes]  # of the title
    flat: bytes  # title and text, folded
    runs: list[bytes]  # capitalised runs, in order
    names: frozenset[bytes]  # the same, each once
    has_text: bool


def parse_passage(title: str, text: str) -> Passage:
    return _parse_passage(title[:MAX_TITLE_CHARS], text[:MAX_PASSAGE_CHARS])


def clear_passage_cache() -> None:
    """Read every page anew, as a process does that has just begun."""
    _parse_passage.cache_clear()


@lru_cache(maxsize=PASSAGE_CACHE_SIZE)
def _parse_passage(title: str, text: str) -> Passage:
    raw = question.encode_text(f"{title}. {text}" if title else text)
    key, runs = question.title_search_key(title), question.capitalized_runs(raw)
    return Passage(key, key.split(), question.normalize(raw), runs, frozenset(runs), bool(text))


# --- reading: One pass over a question and its hits: what the question names, what each hit covers, and which hit points to which.

Floats = npt.NDArray[np.floating[Any]]
# Bounds on the time that a hostile input can take.
MAX_LINKED = (
    50  # hits whose titles are looked for in the others: beyond, time would grow with their square
)
MAX_SOURCES = 3  # sources that absent names are taken from
MAX_ABSENT_NAMES = 12  # absent names from one source
NEAR_BYTES = 60  # bytes between a name and the word that relates it
FAR = 999
TITLE_PREFIX = 12  # bytes of a title that the automaton looks for: the longer it is the longer it takes to make

HIT_COLUMNS = (
    "rank", "score", "named", "title_share", "title_words", "title_rare", "covered", "only_here", "gain", "residual",
    "relation", "fills", "names", "title_names", "numbers", "linked_by_named", "linked_by_any", "links_out", "near",
    "near_agent", "closeness", "shares_named", "shares_any", "same_title", "has_text",
)  # fmt: skip
ABSENT_COLUMNS = (
    "from_source", "closeness", "agent_closeness", "after_agent", "mentions", "words", "rare", "place", "source_covered",
    "asked", "source_rank", "source_resolved", "lacks", "rivals", "digits", "agents",
)  # fmt: skip
SET_COLUMNS = (
    "k", "content", "names", "numbers", "rarity", "named", "names_no_title", "names_no_text", "cov_any", "cov_titles",
    "cov_sources", "cov_linked", "cov_named", "greedy1", "greedy2", "greedy3", "greedy4", "rarest_missing", "missing_words",
    "single_holder", "links", "bridged", "bridged_near", "bridged_agent", "loose", "agents", "s2", "s3", "s4", "s5", "s10",
    "s_mean", "s_std", "distinct_titles", "resolved", "dangling", "terminal", "lacks", "lacks_linked",
    "numbers_missing",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one pass found: a row per hit, a row per absent name, and the figures of the whole set; all float32."""

    hits: Floats  # (hits, HIT_COLUMNS)
    absent: Floats  # (names, ABSENT_COLUMNS)
    absent_runs: tuple[bytes, ...]  # the names as they stand in the text
    whole: Floats  # (WHOLE_COLUMNS,)

    @property
    def absent_names(self) -> tuple[str, ...]:
        """The absent names, for people."""
        return tuple(map(question_module.display_name, self.absent_runs))


def extract(
    asked: ParsedQuestion,
    titles: Sequence[str],
    texts: Sequence[str],
    scores: Sequence[float | None] | None,
    words: WordTable,
) -> Extraction:
    """Read the hits for the question: in rank order, `titles` and `texts` may be empty strings, `scores` unknown.

    Zero hits give no rows and zeros for the whole.
    """
    if not len(titles) == len(texts) == (len(titles) if scores is None else len(scores)):
        counts = f"{len(titles)} titles, {len(texts)} texts, {'no' if scores is None else len(scores)} scores"
        raise InputError(
            f"the hits do not line up: {counts}",
            hint='give one of each per hit; "" or None where there is none',
        )
    if not titles:
        return Extraction(
            _pack_rows([], HIT_COLUMNS),
            _pack_rows([], ABSENT_COLUMNS),
            (),
            np.zeros(len(SET_COLUMNS), dtype=np.float32),
        )
    return _Extractor(asked, titles, texts, scores, words).reading()


class _Extractor:
    """The state of one pass; each method fills in what the next ones need.

    Words of the question are told by their place in it. Plain lists and sets, since arrays this small cost more.
    """

    __slots__ = (  # more than Python keeps cheaply in a dictionary
        "agents", "anchors", "asked", "by_any", "by_named", "carriers", "closeness", "counted", "covered", "flats", "found",
        "has_text", "holders", "in_named", "k", "keys", "leading", "leads", "links_out", "loose", "matches", "mentioned",
        "mentions", "named", "near", "near_agent", "pointers", "ranks", "relating", "relations", "resolved", "runs",
        "same_title", "scores", "shares_any", "shares_named", "sources", "times", "title_rare", "title_share", "title_words",
        "to", "total", "words",
    )  # fmt: skip

    def __init__(
        self,
        asked: ParsedQuestion,
        titles: Sequence[str],
        texts: Sequence[str],
        scores: Sequence[float | None] | None,
        words: WordTable,
    ) -> None:
        self.asked, self.words, self.k = asked, words, len(titles)
        pages = list(map(parse_passage, titles, texts))
        self.keys, self.title_words, self.flats, self.runs, self.mentioned, self.has_text = zip(
            *pages
        )
        self.same_title = (
            [0] * self.k
            if len(set(self.keys)) == self.k
            else [self.keys.count(key) - 1 for key in self.keys]
        )
        self.scores, self.ranks = _score_shares(scores, self.k), _ranks(self.k)
        self.total = sum(asked.rarity) or 1.0
        self._name_titles()
        self._loosen()
        self._find()
        self._link()
        self._share_names()

    def _name_titles(self) -> None:
        """Which titles the question names, and how much of each stands in it."""
        flat, is_asked, rarities = (
            self.asked.flat,
            set(self.asked.tokens).__contains__,
            self.words.rarities,
        )
        self.title_share, self.title_rare, named = [], [], []
        for at, words in enumerate(self.title_words):
            rare = rarities(words)
            whole, inside, rarest = (
                sum(rare),
                sum(compress(rare, map(is_asked, words))),
                max(rare, default=0.0),
            )
            self.title_share.append(inside / whole if whole else 0.0)
            self.title_rare.append(rarest)
            if inside == whole and rarest > STOP_WORD_RARITY and self.keys[at] in flat:
                named.append(at)
        # A title inside a longer named title names nothing of its own: "Smith" in "Joseph Smith".
        longer = {self.keys[at] for at in named}
        self.anchors = [at for at in named if not _only_inside(self.keys[at], longer, flat)]
        self.named = [at in self.anchors for at in range(self.k)]

    def _loosen(self) -> None:
        """Which words stand in a named title, and which relate: neither there nor in a name."""
        content = self.asked.content
        in_titles = {word for at in self.anchors for word in self.title_words[at]}
        in_names = set(b"".join(self.asked.names).split())
        self.in_named = {at for at, word in enumerate(content) if word in in_titles}
        self.loose = {
            at for at, word in enumerate(content) if word not in in_titles and word not in in_names
        }
        self.agents = {at for at in self.loose if is_role_word(content[at])}

    def _find(self) -> None:
        """Where all that is looked for stands: one automaton for words, phrases, names, numbers and titles."""
        asked, keys = self.asked, self.keys
        said = [
            phrase
            for at in sorted(self.agents)
            for phrase in PARAPHRASES.get(asked.content[at], ())
        ]
        self.to = [at for at, key in enumerate(keys[:MAX_LINKED]) if len(key) > SHORT_TITLE_KEY]
        groups = (
            asked.stems,
            said,
            asked.names,
            asked.numbers,
            [keys[at][:TITLE_PREFIX] for at in self.to],
        )
        patterns = list(chain.from_iterable(groups))
        finder = BytesAhoCorasick(
            patterns, implementation=Implementation.NoncontiguousNFA
        )  # the quickest to make
        self.matches = [
            finder.find_matches_as_indexes(flat, overlapping=True) for flat in self.flats
        ]
        self.found = [{match[0] for match in matches} for matches in self.matches]
        holders: list[list[int]] = [[] for _ in patterns]
        for at, found in enumerate(self.found):
            for which in found:
                holders[which].append(at)
        ends = list(accumulate(map(len, groups)))
        self.holders, _, self.mentions, self.counted, self.pointers = (
            holders[start:end] for start, end in zip([0, *ends], ends)
        )
        phrases = set(range(ends[0], ends[1]))
        self.relating, self.leading = self.loose | phrases, self.agents | phrases
        self.covered = self._held(range(len(self.holders)), self.total)
        self.sources = self.anchors or [self.covered.index(max(self.covered))]
        titles, within = (
            b"|".join(keys),
            [at for at, key in enumerate(keys) if len(key) > SHORT_TITLE_KEY and key in asked.flat],
        )
        self.carriers = [
            [at for at, key in enumerate(keys) if name in key or (at in within and key in name)]
            if name in titles
            else [at for at in within if keys[at] in name]
            for name in asked.names
        ]

    def _held(self, words: Iterable[int], whole: float) -> list[float]:
        """How much of the whole each hit holds of these words, by rarity."""
        sums, rarity = [0.0] * self.k, self.asked.rarity
        for word in words:
            for at in self.holders[word]:
                sums[at] += rarity[word]
        return [one / whole for one in sums]

    def _weight(self, words: Iterable[int]) -> float:
        """The share that some of the question's words have in all, by rarity."""
        return sum(map(self.asked.rarity.__getitem__, words)) / self.total

    def _words_of(self, hits: Collection[int]) -> set[int]:
        """The words that some of these hits hold."""
        last = len(self.holders)  # behind the words come phrases, names, numbers and titles
        return {
            which for which in set[int]().union(*[self.found[at] for at in hits]) if which < last
        }

    def _link(self) -> None:
        """Which hit mentions whose title."""
        k, keys = self.k, self.keys
        self.relations = {at: self._places(self.relating, at) for at in self.sources}
        self.leads = {at: self._places(self.leading, at) for at in self.sources}
        self.by_named, self.near, self.near_agent, self.resolved = (
            [False] * k,
            [False] * k,
            [False] * k,
            [False] * k,
        )
        self.closeness, self.by_any, self.links_out = [0.0] * k, [0] * k, [0] * k
        for to, pointers in zip(self.to, self.pointers):
            for by in pointers:
                if by != to and keys[to] in self.flats[by] and keys[to] not in keys[by]:
                    self.links_out[by] += 1
                    self.by_any[to] += 1
                    if by in self.relations:
                        self._link_from_source(by, to, self.flats[by].index(keys[to]))

    def _places(self, wanted: Collection[int], at: int) -> list[int]:
        """Where one of the wanted stands in this hit, in order."""
        return sorted([place for which, place, _ in self.matches[at] if which in wanted])

    def _link_from_source(self, by: int, to: int, place: int) -> None:
        distance, to_agent = (
            _distances(place, self.relations[by])[1],
            _distances(place, self.leads[by])[1],
        )
        self.by_named[to] |= self.named[by]
        self.closeness[to] = max(self.closeness[to], NEAR_BYTES / (NEAR_BYTES + distance))
        self.near[to] |= distance < NEAR_BYTES
        self.near_agent[to] |= to_agent < NEAR_BYTES
        self.resolved[by] |= (
            not self.named[to] and (to_agent if self.agents else distance) < NEAR_BYTES
        )

    def _share_names(self) -> None:
        """Names that several hits mention and the question does not."""
        flat, self.times = self.asked.flat, Counter(chain.from_iterable(self.mentioned))
        several = [
            (name, name.lower())
            for name, count in self.times.items()
            if count > 1 and len(name) > 2
        ]
        common = {name for name, low in several if low not in SENTENCE_OPENERS and low not in flat}
        anchored = common & set[bytes]().union(*[self.mentioned[at] for at in self.anchors])
        self.shares_any = (
            [min(len(common & own), 6) for own in self.mentioned] if common else [0] * self.k
        )
        self.shares_named = (
            [min(len(anchored & own), 4) for own in self.mentioned] if anchored else [0] * self.k
        )
        for at in self.anchors:
            self.shares_named[at] = 0

    def reading(self) -> Extraction:
        """The columns, from what was found."""
        by_sources = self._words_of(self.sources)
        lack = self.loose - by_sources  # these must come from elsewhere
        lacks = self._weight(lack)
        gains, order = self._greedy()
        runs, absent, dangling = self._absent(lacks)
        whole = self._whole(order, by_sources, lacks, dangling)
        return Extraction(
            self._hits(gains, lack),
            _pack_rows(absent, ABSENT_COLUMNS),
            runs,
            _pack_rows([whole], SET_COLUMNS)[0],
        )

    def _greedy(self) -> tuple[list[float], list[float]]:
        """What each of the four hits that cover most together adds, by hit and in order."""
        gains, order, rarity = [0.0] * self.k, [0.0] * 4, self.asked.rarity
        adds, left = self.covered.copy(), set(range(len(self.holders)))
        for place in range(4):
            gain = max(adds)
            if gain <= 1e-9:
                break
            best = adds.index(gain)
            gains[best] = order[place] = gain
            for word in sorted(left & self.found[best]):
                for at in self.holders[word]:
                    adds[at] -= rarity[word] / self.total
            left -= self.found[best]
        return gains, order

    def _hits(self, gains: list[float], lack: set[int]) -> Floats:
        alone = [word for word, holders in enumerate(self.holders) if len(holders) == 1]
        outside = [word for word in range(len(self.holders)) if word not in self.in_named]
        residual, relation, fills = (
            self._held(group, self._weight(group) * self.total or 1.0)
            for group in (outside, self.loose, lack)
        )
        n = len(self.asked.numbers)
        return _pack_rows(
            zip(
                self.ranks, self.scores, self.named, self.title_share, [min(len(title), 8) for title in self.title_words],
                self.title_rare, self.covered, self._held(alone, self.total), gains, residual, relation,
                fills if lack else [-1.0] * self.k, _tally(self.mentions, self.k), _tally(self.carriers, self.k),
                [count / n for count in _tally(self.counted, self.k)] if n else [-1.0] * self.k,
                self.by_named, [min(count, 5) for count in self.by_any], [min(count, 5) for count in self.links_out],
                self.near, self.near_agent, self.closeness, self.shares_named, self.shares_any,
                self.same_title, self.has_text,
            ),
            HIT_COLUMNS,
        )  # fmt: skip

    def _absent(self, lacks: float) -> tuple[tuple[bytes, ...], list[list[float]], int]:
        """Names that no title carries, with a row each, and how many sources point to one of them instead of to a hit."""
        rows: dict[bytes, list[float]] = {}
        runs: dict[bytes, bytes] = {}
        dangling = 0
        for at in self.sources[:MAX_SOURCES]:
            points_on = self._absent_from(at, lacks, rows, runs)
            dangling += points_on and not self.resolved[at]
        for row in rows.values():
            row[13] = len(rows)
        agents = len(self.agents)
        for (name, text), carriers, holders in zip(
            self.asked.written.items(), self.carriers, self.mentions
        ):
            if not carriers:
                parts = name.split()
                rare = max(self.words.rarities(parts))
                rows.pop(
                    name, None
                )  # a source names it too, as "St. Alban's": the question's row takes its place
                runs.pop(name, None)
                rows[name] = [
                    0, 0, 0, 0, len(holders), min(len(parts), 6), rare, 0, 0, 1, 0, 0, lacks, len(rows), 0, agents,
                ]  # fmt: skip
                runs[name] = text.encode()
        return tuple(runs.values()), list(rows.values()), dangling

    def _absent_from(
        self, at: int, lacks: float, rows: dict[bytes, list[float]], runs: dict[bytes, bytes]
    ) -> bool:
        """Add the absent names of one source; does a word like "director" stand right before one of them?"""
        titles, question, flat = b"|".join(self.keys), self.asked.flat, self.flats[at]
        relations, leads = self.relations[at], self.leads[at]
        agents, source = (
            len(self.agents),
            (self.covered[at], 0, self.ranks[at], self.resolved[at], lacks, 0),
        )
        fresh, points_on = 0, False
        for name, run in question_module.unique_names(self.runs[at]).items():
            if name in titles or name in question or name in rows:
                continue
            if fresh == MAX_ABSENT_NAMES:
                break
            fresh += 1
            parts, start = name.split(), max(flat.find(name), 0)
            (_, to_relation), (behind, to_agent) = (
                _distances(start, relations),
                _distances(start, leads),
            )
            after = behind < NEAR_BYTES // 2
            points_on |= after
            rows[name] = [
                1, NEAR_BYTES / (NEAR_BYTES + to_relation), NEAR_BYTES / (NEAR_BYTES + to_agent), after,
                self.times.get(run, 1), min(len(parts), 6),
                max(self.words.rarities(parts)), min(start / 400, 3.0), *source, any(map(bytes.isdigit, parts)), agents,
            ]  # fmt: skip
            runs[name] = run
        return points_on

    def _whole(
        self, order: list[float], by_sources: set[int], lacks: float, dangling: int
    ) -> list[float]:
        asked, n = self.asked, max(len(self.asked.names), 1)
        width = max(len(asked.content), 1)
        bridged = [at for at in range(self.k) if self.by_named[at] and not self.named[at]]
        by_chain = by_sources | self._words_of(bridged)
        titles = set(chain.from_iterable(self.title_words))
        in_titles = [at for at, word in enumerate(asked.content) if word in titles]
        counts = list(map(len, self.holders))
        missing = [at for at, count in enumerate(counts) if not count]
        resolved = sum([self.resolved[at] for at in self.sources])
        return [
            self.k, len(asked.content), len(asked.names), len(asked.numbers), self.total / width, len(self.anchors),
            self.carriers.count([]) / n, self.mentions.count([]) / n,
            1 - self._weight(missing) if asked.content else 0.0, self._weight(in_titles),
            self._weight(by_sources), self._weight(by_chain), self._weight(self.in_named), *order,
            max([asked.rarity[at] for at in missing], default=0.0), len(missing) / width, counts.count(1) / width,
            min(sum([min(count, 5) for count in self.by_any]), 20), len(bridged), sum([self.near[at] for at in bridged]),
            sum([self.near_agent[at] for at in bridged]), len(self.loose), len(self.agents), *_score_ladder(self.scores),
            len(set(self.keys)) / self.k, resolved, dangling, len(self.sources) - resolved - dangling, lacks,
            self._weight(self.loose - by_chain), self.counted.count([]) if asked.numbers else -1.0,
        ]  # fmt: skip


def _pack_rows(rows: Iterable[Iterable[float]], columns: tuple[str, ...]) -> Floats:
    values = tuple(chain.from_iterable(rows))
    packed = struct.pack(
        f"{len(values)}f", *values
    )  # half of the time that numpy takes for a few hundred numbers
    return np.frombuffer(packed, dtype=np.float32).reshape(-1, len(columns))


@lru_cache(maxsize=64)
def _ranks(k: int) -> tuple[float, ...]:
    return tuple(at / max(k - 1, 1) for at in range(k))


def _tally(groups: Iterable[Iterable[int]], k: int) -> list[int]:
    """In how many of the groups each hit is."""
    counts = [0] * k
    for at in chain.from_iterable(groups):
        counts[at] += 1
    return counts


def _score_shares(scores: Sequence[float | None] | None, k: int) -> list[float]:
    """Scores as shares of the best one; -1 where unknown, or where negative scores have no zero to be a share of."""
    known = [score for score in scores or () if score is not None and score == score]
    top = max(known, default=0.0)
    if scores is None or top <= 0 or not isfinite(top) or min(known) < 0:
        return [-1.0] * k
    return [score / top if score is not None and score == score else -1.0 for score in scores]


def _score_ladder(shares: Sequence[float]) -> list[float]:
    """The second to fifth and the tenth known share, their mean and spread; -1 where none is known."""
    known = [share for share in shares if share >= 0]
    if not known:
        return [-1.0] * 7
    mean = sum(known) / len(known)
    spread = (sum([(share - mean) ** 2 for share in known]) / len(known)) ** 0.5
    return [*[known[at] if at < len(known) else 0.0 for at in (1, 2, 3, 4, 9)], mean, spread]


def _distances(at: int, places: Sequence[int]) -> tuple[int, int]:
    """How far behind the last of the sorted places it stands, and how far from the nearest; without any, FAR."""
    if not places:
        return FAR, FAR
    right = bisect_left(places, at)
    behind = at - places[right - 1] if right else FAR
    return behind, min(behind, places[right] - at) if right < len(places) else behind


def _only_inside(key: bytes, others: Collection[bytes], flat: bytes) -> bool:
    """Does the key stand in the text only as a part of one of the others?"""
    return any(
        key in other and key != other and flat.count(key) <= flat.count(other) for other in others
    )
