"""Compute features from question and hits: one pass over the text, then what a reader adds.

All text processing is here, because it takes most of the time. The terms:

- *source*: a hit whose title the question names, or else the hit that covers most of the question
- *loose* word: asked about but not part of a name; it relates a source to what is asked for
  ("the *director* of …")
- *absent* name: in the text of a source or in the question, but the title of no hit. It may be the
  missing document.

If a hit has no title, the names that its sentences describe are used instead ("Ada Lovelace was
…"). `suffice.gate.features` lists all columns.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import accumulate, chain, compress
from math import isfinite
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from ahocorasick_rs import BytesAhoCorasick, Implementation

from suffice.errors import InputError
from suffice.gate.features import (
    ABSENT_COLUMNS,
    COUNTING,
    HIT_COLUMNS,
    READING,
    SET_COLUMNS,
    Feature,
)
from suffice.gate.hits import MAX_PASSAGE_CHARS, NormalizedHits
from suffice.gate.question import (
    PARAPHRASES,
    SENTENCE_OPENERS,
    STOP_WORD_RARITY,
    ParsedQuestion,
    WordTable,
    capitalized_runs,
    display_name,
    encode_text,
    is_role_word,
    normalize,
    search_key,
    title_search_key,
    unique_names,
)
from suffice.gate.reader import MAX_CHARS, Reader, Reading, reading_features
from suffice.text import described_names, written_day
from suffice.types import Document

Floats = npt.NDArray[np.floating[Any]]


class FastModel(Protocol):
    """The model of a gate that uses only the plain features."""

    @property
    def name(self) -> str: ...

    def log_odds_of(self, batch: FeatureBatch) -> Floats:
        """(questions,) for a batch without extra features."""


@dataclass(frozen=True, slots=True)
class Readers:
    """The models whose results are columns of a standard gate: both, or none for a fast gate."""

    reader: Reader | None = None
    fast: FastModel | None = None

    @property
    def names(self) -> dict[str, str | None]:
        reader, fast = (None if one is None else one.name for one in (self.reader, self.fast))
        return {"reader": reader, "fast": fast}


NO_READERS = Readers()


@dataclass(frozen=True, slots=True)
class FeatureBatch:
    """Questions and their hits as model input; every sequence has one entry per question.

    `extra` and `hit_extra` hold the columns of `extra_features`, which readers add.
    """

    hits: Sequence[NormalizedHits]
    questions: Sequence[ParsedQuestion]
    extractions: Sequence[Extraction]
    extra: Floats | None = None  # (questions, extra_features)
    hit_extra: Sequence[Floats] | None = None  # (hits, columns) per question
    extra_features: tuple[Feature, ...] = ()
    readings: Sequence[Reading] | None = None  # only with a reader

    def __len__(self) -> int:
        return len(self.questions)

    def select(self, at: Iterable[int]) -> FeatureBatch:
        rows = [int(i) for i in at]
        extra = None if self.extra is None else self.extra[rows]
        hit_extra = None if self.hit_extra is None else [self.hit_extra[i] for i in rows]
        hits, questions = [self.hits[i] for i in rows], [self.questions[i] for i in rows]
        extractions = [self.extractions[i] for i in rows]
        readings = None if self.readings is None else [self.readings[i] for i in rows]
        return FeatureBatch(
            hits, questions, extractions, extra, hit_extra, self.extra_features, readings
        )

    def with_extra(
        self, features: tuple[Feature, ...], extra: Floats, hit_extra: Sequence[Floats]
    ) -> FeatureBatch:
        """A copy with more columns in front of the extra ones."""
        if self.extra is not None and self.hit_extra is not None:
            extra = np.column_stack([extra, self.extra])
            blocks = zip(hit_extra, self.hit_extra, strict=True)
            hit_extra = [np.column_stack(pair) for pair in blocks]
        features = (*features, *self.extra_features)
        return replace(self, extra=extra, hit_extra=hit_extra, extra_features=features)


def featurize(
    hits: Sequence[NormalizedHits],
    questions: Sequence[ParsedQuestion],
    words: WordTable,
    readers: Readers = NO_READERS,
) -> FeatureBatch:
    """The model input for each question and its hits."""
    hits = list(map(drop_shared_sentences, hits, questions))
    pairs = zip(questions, hits, strict=True)
    extractions = [_extract_one(question, one, words) for question, one in pairs]
    batch = FeatureBatch(hits, questions, extractions)
    if readers.fast is not None:
        odds = readers.fast.log_odds_of(batch).astype(np.float32)
        nothing = [np.zeros((len(one.hits), 0), np.float32) for one in extractions]
        batch = batch.with_extra(COUNTING, odds[:, None], nothing)
    if readers.reader is not None:
        readings = [readers.reader.read(*reader_input(one)) for one in hits]
        batch = batch.with_extra(READING, *reading_features(readings))
        batch = replace(batch, readings=readings)
    return batch


def _extract_one(question: ParsedQuestion, hits: NormalizedHits, words: WordTable) -> Extraction:
    documents, scores = hits.documents, [hit.score for hit in hits.evidence.hits]
    texts = [text_with_byline(one) for one in documents]
    return extract(question, [one.title for one in documents], texts, scores, words)


MIN_SHARING = 3  # hits with the same sentence, and at least half of the list
_WITHIN_LINE = re.compile(r"(?<=[.!?])(?=\s)")


def drop_shared_sentences(hits: NormalizedHits, question: ParsedQuestion) -> NormalizedHits:
    """The hits without sentences that at least half of them, and three, share word for word.

    A footer, a greeting or an injected order says nothing about the hit that contains it, but makes
    the hits look connected. What may be evidence stays: a sentence with a word of the question, a
    line without the end of a sentence (a heading, a row, "column: value"), and a hit's only text.
    """
    documents = hits.documents
    if len(documents) < MIN_SHARING:
        return hits
    texts = [_split_sentences(one.text[:MAX_CHARS]) for one in documents]
    held = Counter(chain.from_iterable({key for key, _ in text if key} for text in texts))
    least = max(MIN_SHARING, len(documents) / 2)
    shared = {key for key, count in held.items() if count >= least and not _asks(question, key)}
    if not shared:
        return hits
    changed = dict(hits.evidence.documents)
    for document, text in zip(documents, texts, strict=True):
        kept = [part for key, part in text if key not in shared]
        if len(kept) < len(text) and (left := "".join(kept).strip()):
            changed[document.doc_id] = replace(document, text=left + document.text[MAX_CHARS:])
    return replace(hits, evidence=replace(hits.evidence, documents=changed))


def _split_sentences(text: str) -> list[tuple[str, str]]:
    """The parts of a text in order, each with the key under which it is compared; "" if never."""
    parts = []
    for line in text.splitlines(keepends=True):
        for at, part in enumerate(_WITHIN_LINE.split(line)):
            is_sentence = at or part.endswith((".", "!", "?"))
            parts.append((" ".join(part.casefold().split()) if is_sentence else "", part))
    return parts


def _asks(question: ParsedQuestion, sentence: str) -> bool:
    """Whether the sentence contains a content word of the question."""
    flat = normalize(encode_text(sentence))
    return any(stem in flat for stem in question.stems)


def reader_input(hits: NormalizedHits) -> tuple[str, list[str], list[str]]:
    """The question, and the titles and texts of its hits."""
    documents = hits.documents
    texts = list(map(text_with_byline, documents))
    return hits.question, [one.title for one in documents], texts


def text_with_byline(document: Document) -> str:
    """The text after its source and date: questions mention them, the text often does not."""
    day = document.published_at
    if not document.source and not day:
        return document.text
    when = written_day(day) if day else ""
    return ". ".join(filter(None, (document.source, when, document.text)))


MAX_TITLE_CHARS = 200
PASSAGE_CACHE_SIZE = 2_048  # entries of a few kilobytes
SHORT_TITLE_KEY = 4  # a title key of one or two letters and its spaces would match everywhere


class Passage(NamedTuple):
    """A hit's title and text, parsed once for any number of questions."""

    key: bytes  # the title's search key
    words: list[bytes]  # the title's
    flat: bytes  # title and text, normalized
    runs: list[bytes]  # capitalized runs, in order
    names: frozenset[bytes]  # the same without repeats
    has_text: bool
    subjects: tuple[bytes, ...]  # search keys of the names it describes; () if it has a title


# What a loader uses as the title of a text without one: its file name or number.
_NO_TITLE = re.compile(
    r"[\w./\\ -]*\.(?:csv|docx?|eml|html?|jsonl?|log|md|odt|pdf|pptx?|rst|rtf|tsv|txt|xlsx?|xml)"
    r"|(?:(?:chunk|doc|document|file|id|item|node|page|paragraph|part|passage|record|row|section|text)"
    r"[ _#-]*)?[\W\d_]*",
    re.IGNORECASE,
)


def parse_passage(title: str, text: str) -> Passage:
    """Parse a passage. Recent ones are cached, because the same documents come up repeatedly."""
    return _parse_passage(title[:MAX_TITLE_CHARS], text[:MAX_PASSAGE_CHARS])


def clear_passage_cache() -> None:
    _parse_passage.cache_clear()


@lru_cache(maxsize=PASSAGE_CACHE_SIZE)
def _parse_passage(title: str, text: str) -> Passage:
    raw = encode_text(f"{title}. {text}" if title else text)
    key, runs = title_search_key(title), capitalized_runs(raw)
    subjects: tuple[bytes, ...] = ()
    if _NO_TITLE.fullmatch(title):
        found = described_names(text)
        subjects = tuple(search_key(name) for _, name in found)
        opening = len(text) - len(text.lstrip())
        if found and text[opening : found[0][0]] in ("", "The ", "A ", "An "):
            key = subjects[0]
    flat = normalize(raw)
    return Passage(key, key.split(), flat, runs, frozenset(runs), bool(text), subjects)


def word_holders(question: ParsedQuestion, passages: Sequence[Passage]) -> list[list[int]]:
    """Which passages contain each content word of the question, as the verdict counts it."""
    return [[at for at, one in enumerate(passages) if stem in one.flat] for stem in question.stems]


# Limits on the time that hostile input can take.
MAX_LINKED = 50  # hits whose titles are searched in the others: the time is quadratic
MAX_SOURCES = 3  # sources that provide absent names
MAX_ABSENT_NAMES = 12  # per source
NEAR_BYTES = 60  # between a name and the word that relates it
FAR = 999
TITLE_PREFIX = 12  # bytes of a title in the automaton: more take longer to build


@dataclass(frozen=True, slots=True)
class Extraction:
    """The result of one pass, float32: a row per hit and per absent name, and the set's figures."""

    hits: Floats  # (hits, HIT_COLUMNS)
    absent: Floats  # (names, ABSENT_COLUMNS)
    absent_runs: tuple[bytes, ...]  # the names as written in the text
    figures: Floats  # of the set: (SET_COLUMNS,)

    @property
    def absent_names(self) -> tuple[str, ...]:
        """The absent names, formatted for display."""
        return tuple(map(display_name, self.absent_runs))


def extract(
    question: ParsedQuestion,
    titles: Sequence[str],
    texts: Sequence[str],
    scores: Sequence[float | None] | None,
    words: WordTable,
) -> Extraction:
    """Extract from titles, texts and scores in rank order; use "" or None for missing values.

    Without hits there are no rows, and the set's figures are zeros.
    """
    if not len(titles) == len(texts) == (len(titles) if scores is None else len(scores)):
        known = "no" if scores is None else len(scores)
        raise InputError(
            f"the hits do not line up: {len(titles)} titles, {len(texts)} texts, {known} scores",
            hint='give one of each per hit; "" or None where there is none',
        )
    if not titles:
        hits, absent = _pack_rows([], HIT_COLUMNS), _pack_rows([], ABSENT_COLUMNS)
        return Extraction(hits, absent, (), np.zeros(len(SET_COLUMNS), dtype=np.float32))
    passages = list(map(parse_passage, titles, texts))
    return _Extractor(question, passages, scores, words).extraction()


class _Extractor:
    """The state of one pass; each method fills in what the next ones need.

    Words of the question are identified by their position in it. Plain lists and sets: numpy arrays
    this small are slower.
    """

    __slots__ = (  # so many attributes are slow in an instance dictionary
        "agents", "anchors", "borne", "by_any", "by_named", "carriers", "closeness", "counted",
        "covered", "flats", "found", "has_text", "holders", "in_named", "k", "keys", "leading",
        "leads", "links_out", "loose", "matches", "mentioned", "mentions", "named", "near",
        "near_agent", "pointers", "question", "ranks", "relating", "relations", "resolved", "runs",
        "same_title", "scores", "shares_any", "shares_named", "sources", "times", "title_rare",
        "title_share", "title_words", "to", "total", "words",
    )  # fmt: skip

    def __init__(
        self,
        question: ParsedQuestion,
        passages: Sequence[Passage],
        scores: Sequence[float | None] | None,
        words: WordTable,
    ) -> None:
        self.question, self.words, self.k = question, words, len(passages)
        (
            self.keys, self.title_words, self.flats, self.runs, self.mentioned, self.has_text,
            subjects,
        ) = zip(*passages)  # fmt: skip
        self.borne = [b"|".join((key, *more)) for key, more in zip(self.keys, subjects)]
        counts = Counter(self.keys)
        self.same_title = [counts[key] - 1 for key in self.keys]
        self.scores, self.ranks = _score_shares(scores, self.k), _ranks(self.k)
        self.total = sum(question.rarity) or 1.0
        self._match_titles()
        self._split_words()
        self._search()
        self._link()
        self._share_names()

    def _match_titles(self) -> None:
        """Which titles the question names, and how much of each is in it."""
        flat, is_asked = self.question.flat, set(self.question.tokens).__contains__
        self.title_share, self.title_rare, named = [], [], []
        for at, words in enumerate(self.title_words):
            rare = self.words.rarities(words)
            whole, rarest = sum(rare), max(rare, default=0.0)
            inside = sum(compress(rare, map(is_asked, words)))
            self.title_share.append(inside / whole if whole else 0.0)
            self.title_rare.append(rarest)
            if inside == whole and rarest > STOP_WORD_RARITY and self.keys[at] in flat:
                named.append(at)
        # A title inside a longer named title does not count as named: "Smith" in "Joseph Smith".
        longer = {self.keys[at] for at in named}
        self.anchors = [at for at in named if not _only_inside(self.keys[at], longer, flat)]
        self.named = [at in self.anchors for at in range(self.k)]

    def _split_words(self) -> None:
        """Which words are in a named title, and which are loose: neither there nor in a name."""
        content = self.question.content
        in_titles = {word for at in self.anchors for word in self.title_words[at]}
        in_names = in_titles.union(b"".join(self.question.names).split())
        self.in_named = {at for at, word in enumerate(content) if word in in_titles}
        self.loose = {at for at, word in enumerate(content) if word not in in_names}
        self.agents = {at for at in self.loose if is_role_word(content[at])}

    def _search(self) -> None:
        """Search all texts at once: one automaton for words, phrases, names, numbers and titles."""
        question, keys = self.question, self.keys
        roles = [question.content[at] for at in sorted(self.agents)]
        phrases = [phrase for role in roles for phrase in PARAPHRASES.get(role, ())]
        self.to = [at for at, key in enumerate(keys[:MAX_LINKED]) if len(key) > SHORT_TITLE_KEY]
        titles = [keys[at][:TITLE_PREFIX] for at in self.to]
        groups = (question.stems, phrases, question.names, question.numbers, titles)
        patterns = list(chain.from_iterable(groups))
        # This automaton is the fastest to build.
        finder = BytesAhoCorasick(patterns, implementation=Implementation.NoncontiguousNFA)
        find = partial(finder.find_matches_as_indexes, overlapping=True)
        self.matches = list(map(find, self.flats))
        self.found = [{match[0] for match in matches} for matches in self.matches]
        holders: list[list[int]] = [[] for _ in patterns]
        for at, found in enumerate(self.found):
            for which in found:
                holders[which].append(at)
        ends = list(accumulate(map(len, groups)))
        self.holders, _, self.mentions, self.counted, self.pointers = (
            holders[start:end] for start, end in zip([0, *ends], ends)
        )
        of_phrases = set(range(ends[0], ends[1]))
        self.relating, self.leading = self.loose | of_phrases, self.agents | of_phrases
        self.covered = self._held(range(len(self.holders)), self.total)
        self.sources = self.anchors or [self.covered.index(max(self.covered))]
        self.carriers = self._carriers()

    def _carriers(self) -> list[list[int]]:
        """The hits whose title contains each name of the question, or is contained in it."""
        flat, titles = self.question.flat, list(enumerate(zip(self.keys, self.borne)))
        in_question = [len(key) > SHORT_TITLE_KEY and key in flat for key in self.keys]
        return [
            [
                at
                for at, (key, borne) in titles
                if name in borne or (in_question[at] and key in name)
            ]
            for name in self.question.names
        ]

    def _held(self, words: Iterable[int], whole: float) -> list[float]:
        """The share of the whole that each hit contains of these words, weighted by rarity."""
        sums, rarity = [0.0] * self.k, self.question.rarity
        for word in words:
            for at in self.holders[word]:
                sums[at] += rarity[word]
        return [one / whole for one in sums]

    def _weight(self, words: Iterable[int]) -> float:
        """The share of these words among all words of the question, weighted by rarity."""
        return sum(map(self.question.rarity.__getitem__, words)) / self.total

    def _words_of(self, hits: Collection[int]) -> set[int]:
        """The words that at least one of these hits contains."""
        last = len(self.holders)  # words are followed by phrases, names, numbers and titles
        found = set[int]().union(*[self.found[at] for at in hits])
        return {which for which in found if which < last}

    def _link(self) -> None:
        """Which hit mentions whose title."""
        k, keys = self.k, self.keys
        self.relations = {at: self._places(self.relating, at) for at in self.sources}
        self.leads = {at: self._places(self.leading, at) for at in self.sources}
        self.by_named, self.near, self.near_agent, self.resolved = ([False] * k for _ in range(4))
        self.closeness, self.by_any, self.links_out = [0.0] * k, [0] * k, [0] * k
        for to, pointers in zip(self.to, self.pointers):
            for by in pointers:
                if by != to and keys[to] in self.flats[by] and keys[to] not in keys[by]:
                    self.links_out[by] += 1
                    self.by_any[to] += 1
                    if by in self.relations:
                        self._link_from_source(by, to, self.flats[by].index(keys[to]))

    def _places(self, wanted: Collection[int], at: int) -> list[int]:
        """Where the wanted patterns occur in this hit, in order."""
        return sorted([place for which, place, _ in self.matches[at] if which in wanted])

    def _link_from_source(self, by: int, to: int, place: int) -> None:
        _, distance = _distances(place, self.relations[by])
        _, to_agent = _distances(place, self.leads[by])
        self.by_named[to] |= self.named[by]
        self.closeness[to] = max(self.closeness[to], NEAR_BYTES / (NEAR_BYTES + distance))
        self.near[to] |= distance < NEAR_BYTES
        self.near_agent[to] |= to_agent < NEAR_BYTES
        nearest = to_agent if self.agents else distance
        self.resolved[by] |= not self.named[to] and nearest < NEAR_BYTES

    def _share_names(self) -> None:
        """Names that several hits mention and the question does not."""
        flat, self.times = self.question.flat, Counter(chain.from_iterable(self.mentioned))
        several = {name: name.lower() for name, n in self.times.items() if n > 1 and len(name) > 2}
        common = {
            name for name, low in several.items() if low not in SENTENCE_OPENERS and low not in flat
        }
        anchored = common & set[bytes]().union(*[self.mentioned[at] for at in self.anchors])
        self.shares_any = [min(len(common & own), 6) for own in self.mentioned]
        self.shares_named = [min(len(anchored & own), 4) for own in self.mentioned]
        for at in self.anchors:
            self.shares_named[at] = 0

    def extraction(self) -> Extraction:
        """Build the columns from what was found."""
        by_sources = self._words_of(self.sources)
        lack = self.loose - by_sources  # these must come from other hits
        lacks = self._weight(lack)
        gains, order = self._greedy()
        runs, absent, dangling = self._absent(lacks)
        figures = _pack_rows([self._figures(order, by_sources, lacks, dangling)], SET_COLUMNS)[0]
        names = _pack_rows(absent, ABSENT_COLUMNS)
        return Extraction(self._hits(gains, lack), names, runs, figures)

    def _greedy(self) -> tuple[list[float], list[float]]:
        """What each of the four hits that cover most together adds: by hit, and in order."""
        gains, order, rarity = [0.0] * self.k, [0.0] * 4, self.question.rarity
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
        k, unknown = self.k, [-1.0] * self.k
        alone = [word for word, holders in enumerate(self.holders) if len(holders) == 1]
        outside = [word for word in range(len(self.holders)) if word not in self.in_named]
        residual, relation, fills = (
            self._held(group, self._weight(group) * self.total or 1.0)
            for group in (outside, self.loose, lack)
        )
        n = len(self.question.numbers)
        columns = (
            self.ranks, self.scores, self.named, self.title_share,
            [min(len(title), 8) for title in self.title_words], self.title_rare, self.covered,
            self._held(alone, self.total), gains, residual, relation, fills if lack else unknown,
            _tally(self.mentions, k), _tally(self.carriers, k),
            [count / n for count in _tally(self.counted, k)] if n else unknown, self.by_named,
            [min(count, 5) for count in self.by_any], [min(count, 5) for count in self.links_out],
            self.near, self.near_agent, self.closeness, self.shares_named, self.shares_any,
            self.same_title, self.has_text,
        )  # fmt: skip
        return _pack_rows(zip(*columns), HIT_COLUMNS)

    def _absent(self, lacks: float) -> tuple[tuple[bytes, ...], list[list[float]], int]:
        """The absent names, a row each, and how many sources lead to one of them but to no hit."""
        rows: dict[bytes, list[float]] = {}
        runs: dict[bytes, bytes] = {}
        dangling = 0
        for at in self.sources[:MAX_SOURCES]:
            points_on = self._absent_from(at, lacks, rows, runs)
            dangling += points_on and not self.resolved[at]
        for row in rows.values():
            row[13] = len(rows)
        agents, names = len(self.agents), self.question.display_names.items()
        for (name, text), carriers, holders in zip(names, self.carriers, self.mentions):
            if not carriers:
                parts = name.split()
                rare = max(self.words.rarities(parts))
                rows.pop(name, None)  # a source may name it too: the question's row wins
                runs.pop(name, None)
                rows[name] = [
                    0, 0, 0, 0, len(holders), min(len(parts), 6), rare, 0, 0, 1, 0, 0, lacks,
                    len(rows), 0, agents,
                ]  # fmt: skip
                runs[name] = text.encode()
        return tuple(runs.values()), list(rows.values()), dangling

    def _absent_from(
        self, at: int, lacks: float, rows: dict[bytes, list[float]], runs: dict[bytes, bytes]
    ) -> bool:
        """Add the absent names of one source; return whether one follows a word like "director"."""
        titles, question, flat = b"|".join(self.borne), self.question.flat, self.flats[at]
        source = (self.covered[at], 0, self.ranks[at], self.resolved[at], lacks, 0)
        fresh, points_on = 0, False
        for name, run in unique_names(self.runs[at]).items():
            if name in titles or name in question or name in rows:
                continue
            if fresh == MAX_ABSENT_NAMES:
                break
            fresh += 1
            parts, start = name.split(), max(flat.find(name), 0)
            _, to_relation = _distances(start, self.relations[at])
            behind, to_agent = _distances(start, self.leads[at])
            after = behind < NEAR_BYTES // 2
            points_on |= after
            rows[name] = [
                1, NEAR_BYTES / (NEAR_BYTES + to_relation), NEAR_BYTES / (NEAR_BYTES + to_agent),
                after, self.times.get(run, 1), min(len(parts), 6), max(self.words.rarities(parts)),
                min(start / 400, 3.0), *source, any(map(bytes.isdigit, parts)), len(self.agents),
            ]  # fmt: skip
            runs[name] = run
        return points_on

    def _figures(
        self, order: list[float], by_sources: set[int], lacks: float, dangling: int
    ) -> list[float]:
        question, n = self.question, max(len(self.question.names), 1)
        width = max(len(question.content), 1)
        bridged = [at for at in range(self.k) if self.by_named[at] and not self.named[at]]
        by_chain = by_sources | self._words_of(bridged)
        titles = set(chain.from_iterable(self.title_words))
        in_titles = [at for at, word in enumerate(question.content) if word in titles]
        counts = list(map(len, self.holders))
        missing = [at for at, count in enumerate(counts) if not count]
        resolved = sum([self.resolved[at] for at in self.sources])
        return [
            self.k, len(question.content), len(question.names), len(question.numbers),
            self.total / width, len(self.anchors), self.carriers.count([]) / n,
            self.mentions.count([]) / n, 1 - self._weight(missing) if question.content else 0.0,
            self._weight(in_titles), self._weight(by_sources), self._weight(by_chain),
            self._weight(self.in_named), *order,
            max([question.rarity[at] for at in missing], default=0.0), len(missing) / width,
            counts.count(1) / width, min(sum([min(count, 5) for count in self.by_any]), 20),
            len(bridged), sum([self.near[at] for at in bridged]),
            sum([self.near_agent[at] for at in bridged]), len(self.loose), len(self.agents),
            *_score_ladder(self.scores), len(set(self.keys)) / self.k, resolved, dangling,
            len(self.sources) - resolved - dangling, lacks, self._weight(self.loose - by_chain),
            self.counted.count([]) if question.numbers else -1.0,
        ]  # fmt: skip


def _pack_rows(rows: Iterable[Iterable[float]], columns: tuple[str, ...]) -> Floats:
    values = tuple(chain.from_iterable(rows))
    packed = struct.pack(f"{len(values)}f", *values)  # twice as fast as numpy for so few numbers
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
    """Scores as shares of the best one; -1 if unknown, or if some are negative."""
    known = [score for score in scores or () if score is not None and score == score]
    top = max(known, default=0.0)
    if scores is None or top <= 0 or not isfinite(top) or min(known) < 0:
        return [-1.0] * k
    return [score / top if score is not None and score == score else -1.0 for score in scores]


def _score_ladder(shares: Sequence[float]) -> list[float]:
    """The second to fifth and the tenth known share, their mean and spread; -1 without any."""
    known = [share for share in shares if share >= 0]
    if not known:
        return [-1.0] * 7
    mean = sum(known) / len(known)
    spread = (sum([(share - mean) ** 2 for share in known]) / len(known)) ** 0.5
    return [*[known[at] if at < len(known) else 0.0 for at in (1, 2, 3, 4, 9)], mean, spread]


def _distances(at: int, places: Sequence[int]) -> tuple[int, int]:
    """The distance to the last of the sorted places before it, and to the nearest one."""
    if not places:
        return FAR, FAR
    right = bisect_left(places, at)
    behind = at - places[right - 1] if right else FAR
    return behind, min(behind, places[right] - at) if right < len(places) else behind


def _only_inside(key: bytes, others: Collection[bytes], flat: bytes) -> bool:
    """Whether the key occurs in the text only as part of one of the others."""
    return any(
        key in other and key != other and flat.count(key) <= flat.count(other) for other in others
    )
