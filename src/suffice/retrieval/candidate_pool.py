"""The candidates of one question, and their features given the documents already held.

Everything is an array over the candidates. Features that do not depend on the held set are computed
when candidates are added. The rest is computed for every pick from boolean tables: which words and
names of the question a candidate has, and which names of the corpus it bears or mentions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from suffice.lexicon import FUNCTION_WORDS
from suffice.retrieval.metadata import Mentions, matching_metadata
from suffice.retrieval.name_links import NameLinks, codes, subject_names
from suffice.retrieval.search import BM25_AND_DENSE, convex_combination
from suffice.retrieval.word_vectors import WordVectors
from suffice.text import bare_title, names, stem, title_key, tokens
from suffice.types import DocId, Document, Hit, RetrieverScore

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

K1, B = 1.2, 0.75
CONTEXT_CHARS = 80  # context before and after a mention
RARE_NAME = 0.3  # of `NameLinks.rarity`: more common names say nothing
ASKED_NAMES, ASKED_WORDS = 8, 4  # of a held document, in its next query
MAX_CHARS = 4000  # read of a text: a long book must not delay a search
KEPT_TEXTS = 4096  # kept between questions as they were read: some MB of passages
_COMPARING = frozenset(
    "or both same than older younger earlier later first more less longer between".split()
)


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of the ranker. `direction` is 1 if a higher value can only help."""

    name: str
    description: str
    direction: int = 0


TITLED_FEATURES = (
    Feature("bm25", "BM25 with the question, divided by the best of the pool.", 1),
    Feature("bm25_rank", "One over the rank in the text search; 0 where it was not found.", 1),
    Feature("dense", "Similarity with the question, divided by the best of the pool.", 1),
    Feature("dense_rank", "One over the rank in the vector search; 0 where it was not found.", 1),
    Feature("named", "The question names it: one over the number of documents of that name.", 1),
    Feature("named_best", "It has the best BM25 of the documents of a name in the question.", 1),
    Feature("title_asked", "Share of its title's words that are in the question.", 1),
    Feature("asked_title", "Share of the question that its title covers.", 1),
    Feature("covered", "Share of the question that it covers.", 1),
    Feature("names_had", "Share of the question's names that it has.", 1),
    Feature("support_out", "How good the best candidate is that names it.", 1),
    Feature("support_in", "How good the best candidate is that it names.", 1),
    Feature("support_shared", "How good the best candidate is that shares a rare name with it.", 1),
    Feature("namesakes", "How many candidates have its title."),
    Feature("namesake_bm25", "Its BM25 divided by the best of the candidates with its title.", 1),
    Feature("agrees", "Share of the metadata in the question that it carries.", 1),
    Feature("question_words", "How many words the question has."),
    Feature("question_names", "How many names the question has."),
    Feature("question_compares", "The question compares."),
    Feature("adds", "Share of the question that it covers and no held document does.", 1),
    Feature("adds_best", "The same, divided by the best of the candidates.", 1),
    Feature("adds_namesake", "The same, divided by the best of the candidates with its title.", 1),
    Feature(
        "names_added", "Share of the question's names that it has and no held document has.", 1
    ),
    Feature("agrees_new", "Share of the metadata in the question that it adds to the held.", 1),
    Feature("from_held", "A held document names it: one over the documents of that name.", 1),
    Feature("bridge", "The same, by a name that is not in the question.", 1),
    Feature("bridge_context", "Share of the question around that name.", 1),
    Feature("into_held", "It names a held document: how rare that name is.", 1),
    Feature("shared", "The rarest name outside the question that it shares with the held.", 1),
    Feature("same_title", "A held document has its title."),
    Feature("held", "How many are held."),
    Feature("held_covers", "Share of the question that is covered already."),
    Feature("names_left", "Share of the question's names that no held document has."),
    Feature("bridges", "How many candidates a held document leads to."),
    Feature("asked_rank", "One over its best rank in a search that a held document asked.", 1),
    Feature("shared_context", "Share of the question beside a rare name that a held one has.", 1),
    Feature("shared_rarity", "How rare the rarest of these names is.", 1),
)
FEATURES = (
    *TITLED_FEATURES,  # the rest is set only if most candidates have no title, otherwise 0
    Feature("fused", "What text and vector search together give it, divided by the best.", 1),
    Feature("fused_rank", "One over its rank by that; 0 where neither search found it.", 1),
    Feature("pairs", "Share of the question's pairs of neighbouring words that it has.", 1),
    Feature("sentence", "Share of the question that its best sentence covers.", 1),
    Feature("alike", "How much of the question words of like meaning cover.", 1),
    Feature("alike_best", "The same, divided by the best of the candidates.", 1),
    Feature("alike_adds", "How much of that no held document covers as well.", 1),
    Feature("length", "Logarithm of the length of its text."),
    Feature("untitled", "Most candidates have no title."),
)
COLUMN = {feature.name: at for at, feature in enumerate(FEATURES)}


@dataclass(frozen=True)
class QuestionTerms:
    """Patterns of a question's words with their weights (summing to 1), its names and metadata."""

    text: str
    stems: tuple[str, ...]
    content: tuple[str, ...]  # a word of the question for each of the stems
    patterns: tuple[str, ...]
    weights: Floats
    names: Ints
    metadata: Mentions | None = None
    words: int = 0
    compares: bool = False
    asked: tuple[str, ...] = ()  # all words of the question
    pairs: tuple[str, ...] = ()  # patterns of neighbouring words


def question_terms(
    question: str, names: Ints, links: NameLinks, metadata: Mentions | None = None
) -> QuestionTerms:
    """The terms of a question. Weights are BM25's: a word in few documents has a higher weight."""
    words = tokens(question)
    stemmed: dict[str, str] = {}
    for word in words:
        if word not in FUNCTION_WORDS:
            stemmed.setdefault(stem(word), word)
    stems = tuple(stemmed)
    size = len(links.ids)
    counts = np.array([links.stems.get(one, 0) for one in stems], dtype=np.float32)
    weights = np.log1p((size - np.minimum(counts, size) + 0.5) / (counts + 0.5)).astype(np.float32)
    # A stem matches every word that begins with it; a short word or a number matches only itself.
    patterns = tuple(f" {one}" if len(one) > 4 and one.isalpha() else f" {one} " for one in stems)
    weights = weights / (float(weights.sum()) or 1.0)
    compares = not _COMPARING.isdisjoint(words)
    pairs = [one for one in dict.fromkeys(pairwise(words)) if not FUNCTION_WORDS.issuperset(one)]
    return QuestionTerms(
        question,
        stems,
        tuple(stemmed.values()),
        patterns,
        weights,
        names,
        metadata or None,
        len(words),
        compares,
        tuple(words),
        tuple(f" {one} {other} " for one, other in pairs),
    )


class CandidatePool:
    """Candidates as they were added; `held` has the positions of those chosen, in order."""

    titled = True  # whether most of the first candidates have a title

    def __init__(
        self,
        question: QuestionTerms,
        links: NameLinks,
        bm25: Sequence[Hit],
        dense: Sequence[Hit],
        words: WordVectors | None = None,
    ) -> None:
        self.question, self.links, self._words = question, links, words
        self._weighted = list(zip(question.patterns, question.weights))
        self.ids: list[DocId] = []
        self.at: dict[DocId, int] = {}
        self.documents: list[Document] = []
        self.reasons: list[Mapping[str, float]] = []  # which searches found each, with which score
        self.held: list[int] = []
        self.expanded: set[int] = set()  # candidates whose links were added
        self._marked, self._marked_expanded = 0, frozenset[int]()
        self._read: dict[int, int] = {}  # how many candidates each held one was compared with
        self._rare_names: dict[int, tuple[list[str], Ints]] = {}  # of the held: see `_read_beside`
        self.quality = np.zeros(0, np.float32)  # of each candidate on its own
        self._bm25 = {hit.doc_id: rank for rank, hit in enumerate(bm25, 1)}
        self._dense = {hit.doc_id: (rank, hit.score or 0.0) for rank, hit in enumerate(dense, 1)}
        scores = [score for _, score in self._dense.values()]
        self._dense_top = max(max(scores, default=0.0), 1e-6)
        self._dense_low = min(scores, default=0.0)
        self._found = bm25, dense
        self._texts: list[str] = []
        self._keys: list[list[str]] = []  # spellings of each one's title or subject, padded
        self._numbers: dict[str, int] = {}  # of each title
        self._titles: list[int] = []  # the number of each one's title
        self._rows: list[int] = []  # row in the links, -1 for a document added later
        self._has: Bools = np.zeros((0, len(question.patterns)), np.bool_)
        self._alike: Floats = np.zeros((0, len(question.patterns)), np.float32)
        self._base: Floats = np.zeros((0, len(FEATURES)), np.float32)
        self._raw_bm25: Floats = np.zeros(0, np.float32)
        self._metadata: list[frozenset[str]] = []
        self._context: Floats = np.zeros(0, np.float32)
        self.asking = 0  # how many of the held have made a query: see `next_query`
        self._asked: dict[DocId, float] = {}  # see `add_asked`
        self._beside: Floats = np.zeros((0, 2), np.float32)  # shared_context, shared_rarity

    def __len__(self) -> int:
        return len(self.ids)

    def hold(self, at: int) -> None:
        """Choose a candidate."""
        self.held.append(at)

    def mark(self) -> None:
        """Remember the current candidates, for `release`."""
        self._marked, self._marked_expanded = len(self), frozenset(self.expanded)

    def release(self) -> None:
        """Drop all held documents, and the candidates added since the mark."""
        self.held.clear()
        self._read.clear()
        self._rare_names.clear()  # a position may belong to another candidate next time
        self.expanded = set(self._marked_expanded)
        end = self._marked
        if end < len(self):
            for doc_id in self.ids[end:]:
                del self.at[doc_id]
            lists = (self.ids, self.documents, self.reasons, self._texts, self._keys, self._rows)
            for one in (*lists, self._titles, self._metadata):
                del one[end:]
            self._has, self._base = self._has[:end], self._base[:end]
            self._alike = self._alike[:end]
            self._raw_bm25 = self._raw_bm25[:end]
            self._link()
        self._asked.clear()
        self._settled = False
        self.asking = 0
        self._context = np.zeros(len(self), np.float32)
        self._beside = np.zeros((len(self), 2), np.float32)

    def hit(self, at: int, score: float) -> Hit:
        parts = tuple(RetrieverScore(name, value) for name, value in self.reasons[at].items())
        return Hit(self.ids[at], score, parts)

    def join(
        self, documents: Sequence[Document], reasons: Mapping[DocId, Mapping[str, float]]
    ) -> None:
        """Add documents that are not in the pool yet; `reasons` say which searches found each."""
        new = [document for document in documents if document.doc_id not in self.at]
        if not new:
            return
        if not self.ids:
            self.titled = 2 * sum(bool(one.title) for one in new) >= len(new)
        for document in new:
            self.at[document.doc_id] = len(self.ids)
            self.ids.append(document.doc_id)
        self.documents += new
        self.reasons += [reasons.get(document.doc_id, {}) for document in new]
        self._rows += [self.links.position.get(document.doc_id, -1) for document in new]
        self._describe(new)
        self._link()
        self._context = np.concatenate([self._context, np.zeros(len(new), np.float32)])
        self._beside = np.concatenate([self._beside, np.zeros((len(new), 2), np.float32)])

    def next_query(self, at: int) -> str:
        """The next query, given a candidate: the question's words that it lacks, and the names
        close to those that it has.

        If there is no such name, its rarest words there. Empty if it says nothing new.
        """
        question = self.question
        known = set(question.stems)
        beside = " ".join(self._best_sentences(self.documents[at].text))
        named = names(beside) if self.titled else [*names(beside), *codes(beside)]
        found = [one for one in named if not known.issuperset(map(stem, tokens(one)))]
        if not found:
            rest = dict.fromkeys(tokens(beside))
            rare = [one for one in rest if one not in FUNCTION_WORDS and stem(one) not in known]
            found = sorted(rare, key=lambda one: self.links.stems.get(stem(one), 0))[:ASKED_WORDS]
        missing = [word for word, has in zip(question.content, self._has[at].tolist()) if not has]
        return " ".join((*missing, *found[:ASKED_NAMES])) if found else ""

    def _best_sentences(self, text: str) -> list[str]:
        """The two sentences that cover most of the question, best first."""
        cut = _SENTENCE.split(text[:MAX_CHARS])
        return sorted(cut, key=lambda one: -_weight_in(_pad(one), self._weighted))[:2]

    def add_asked(self, hits: Sequence[Hit]) -> None:
        """Record what the query of a held document found, best first."""
        for rank, hit in enumerate(hits, 1):
            self._asked[hit.doc_id] = max(self._asked.get(hit.doc_id, 0.0), 1 / rank)
        self._settled = False

    def _describe(self, new: Sequence[Document]) -> None:
        """Words, ranks and metadata: the features of a candidate on its own."""
        question = self.question
        texts = [_padded_text(one.text[:MAX_CHARS]) for one in new]
        titles = [self._add_keys(_called(one)) for one in new]
        in_text, in_title = np.split(_count([*texts, *titles], question.patterns), 2)
        counts = in_text + in_title
        lengths = np.array([len(text) for text in texts], np.float32)
        norm = K1 * (1 - B + B * lengths / max(self.links.letters, 1.0))
        raw = (counts * (K1 + 1) / (counts + norm[:, None])) @ question.weights
        near = [self._dense.get(one.doc_id) for one in new]
        words = np.array([max(title.count(" ") - 1, 1) for title in titles], np.float32)
        base = np.zeros((len(new), len(FEATURES)), np.float32)
        base[:, COLUMN["bm25_rank"]] = [1 / self._bm25.get(one.doc_id, np.inf) for one in new]
        similarities = [one[1] if one else self._dense_low for one in near]
        base[:, COLUMN["dense"]] = [one / self._dense_top for one in similarities]
        base[:, COLUMN["dense_rank"]] = [1 / one[0] if one else 0 for one in near]
        base[:, COLUMN["title_asked"]] = np.minimum((in_title > 0).sum(axis=1) / words, 1)
        base[:, COLUMN["asked_title"]] = (in_title > 0) @ question.weights
        base[:, COLUMN["covered"]] = (counts > 0) @ question.weights
        base[:, COLUMN["question_words"]] = min(question.words, 50)
        base[:, COLUMN["question_names"]] = min(len(question.names), 8)
        base[:, COLUMN["question_compares"]] = question.compares
        if not self.titled:
            self._describe_untitled(new, texts, counts > 0, base)
        if question.metadata is not None:
            self._metadata += [frozenset(matching_metadata(question.metadata, one)) for one in new]
        self._texts += texts
        self._has = np.concatenate([self._has, counts > 0])
        self._base = np.concatenate([self._base, base])
        self._raw_bm25 = np.concatenate([self._raw_bm25, raw.astype(np.float32)])

    def _add_keys(self, called: Sequence[str]) -> str:
        """Add the names of a candidate, its title first; returns the one that the question names,
        otherwise the first, padded.
        """
        padded = [_pad(one) for one in called]
        keys = [_pad(bare_title(called[0])) if ")" in called[0] else padded[0], *padded[1:]]
        self._keys.append([key for key in keys if key.strip()])
        # Equal titles have equal numbers; an empty title equals no other.
        first = keys[0] if keys[0].strip() else f"\0{len(self._titles)}"
        self._titles.append(self._numbers.setdefault(first, len(self._numbers)))
        if len(called) == 1:
            return padded[0]
        asked = set(self.question.asked)
        which = (at for at, one in enumerate(called) if asked.issuperset(tokens(one)))
        return padded[next(which, 0)]

    def _describe_untitled(
        self, new: Sequence[Document], texts: Sequence[str], has: Bools, base: Floats
    ) -> None:
        """Features from a closer reading of the text: there are no titles to rely on."""
        question = self.question
        base[:, COLUMN["untitled"]] = 1
        fused = [self._fused.get(one.doc_id, (0.0, 0.0)) for one in new]
        base[:, [COLUMN["fused"], COLUMN["fused_rank"]]] = fused
        if question.pairs:
            pairs = [sum(one in text for one in question.pairs) for text in texts]
            base[:, COLUMN["pairs"]] = np.array(pairs, np.float32) / len(question.pairs)
        base[:, COLUMN["sentence"]] = [self._best_sentence(one.text) for one in new]
        base[:, COLUMN["length"]] = [np.log1p(len(text)) for text in texts]
        alike = has.astype(np.float32)
        if self._words is not None and question.content:
            alike = np.maximum(alike, self._words.likeness(question.content, texts))
        base[:, COLUMN["alike"]] = alike @ question.weights
        self._alike = np.concatenate([self._alike, alike])

    @cached_property
    def _fused(self) -> dict[DocId, tuple[float, float]]:
        return _fuse(*self._found)

    def _best_sentence(self, text: str) -> float:
        """The largest share of the question that one sentence of a text covers."""
        return max(_weight_in(one, self._weighted) for one in _padded_sentences(text[:MAX_CHARS]))

    def _link(self) -> None:
        """Features from names and titles, for all candidates: a new one may name an old one."""
        links, n = self.links, len(self)
        self._bears, self._bearer = links.borne.gather(np.array(self._rows, dtype=np.int64))
        self._title = np.array(self._titles, np.int64)
        base = self._base
        base[:, COLUMN["bm25"]] = bm25 = self._raw_bm25 / (self._raw_bm25.max() or 1.0)
        base[:, COLUMN["namesakes"]] = np.minimum(np.bincount(self._title)[self._title], 10)
        base[:, COLUMN["namesake_bm25"]] = self._divide_by_namesakes(bm25)
        mine = (self._bears[:, None] == self.question.names).any(axis=1)
        name, bearer = self._bears[mine], self._bearer[mine]
        base[:, COLUMN["named"]] = _highest(bearer, self._share_of(name), n)
        # 1 for the best by BM25 among those that bear each name of the question.
        order = np.lexsort((bearer, -bm25[bearer], name))
        first = _run_starts(name[order])
        best = np.zeros(n, np.float32)
        best[bearer[order][first]] = 1
        base[:, COLUMN["named_best"]] = best
        dense = np.maximum(base[:, COLUMN["dense"]], 0)
        self.quality = ((bm25 + dense + best) / 3).astype(np.float32)
        self._settled = False

    def _share_of(self, names: Ints) -> Floats:
        """One over the number of documents that bear each name."""
        return (1 / np.maximum(self.links.bearing[names], 1)).astype(np.float32)

    def _positions(self, numbers: Ints) -> tuple[Ints, Ints]:
        """The positions of those numbers that are among the names, and which of them are."""
        if not len(self._names):
            return numbers[:0], numbers[:0]
        place = np.minimum(np.searchsorted(self._names, numbers), len(self._names) - 1)
        here = np.flatnonzero(self._names[place] == numbers)
        return place[here], here

    def _settle(self) -> None:
        """Features between candidates. Slow, so computed only when a choice needs them."""
        base, links, borne = self._base, self.links, self._bears
        mentioned, self._mentioner = links.mentioned.gather(np.array(self._rows, dtype=np.int64))
        # Renumber the names, so that properties of names are small tables.
        self._names, codes = np.unique(np.concatenate([borne, mentioned]), return_inverse=True)
        self._borne, self._mentioned = codes[: len(borne)], codes[len(borne) :]
        self._in_question = np.zeros(len(self._names), np.bool_)
        self._in_question[self._positions(self.question.names)[0]] = True
        self._share = self._share_of(self._names)
        self._rarity = links.rarity[self._names].astype(np.float32)
        # Which of the question's names each candidate bears or mentions: (candidates, names).
        column = np.full(len(self._names), -1, np.int64)
        column[self._in_question] = np.arange(int(self._in_question.sum()))
        self._had = np.zeros((len(self), len(self.question.names)), np.bool_)
        for name, candidate in ((self._borne, self._bearer), (self._mentioned, self._mentioner)):
            known = column[name] >= 0
            self._had[candidate[known], column[name[known]]] = True
        base[:, COLUMN["names_had"]] = self._had.sum(axis=1) / max(self._had.shape[1], 1)
        mentioners = self._best_two(self._mentioned, self._mentioner)
        bearers = self._best_two(self._borne, self._bearer)
        outside = np.where(self._in_question, np.float32(0), self._rarity)
        for feature, two, name, candidate, worth in (
            ("support_out", mentioners, self._borne, self._bearer, self._share),
            ("support_in", bearers, self._mentioned, self._mentioner, self._rarity),
            ("support_shared", mentioners, self._mentioned, self._mentioner, outside),
        ):
            base[:, COLUMN[feature]] = self._support(two, name, candidate, worth)
        if self._metadata:
            named = sorted(set().union(*self._metadata))
            carries = [[one in carried for one in named] for carried in self._metadata]
            self._carries = np.array(carries, np.bool_).reshape(len(self), -1)
            base[:, COLUMN["agrees"]] = self._carries.mean(axis=1) if named else 0
        asked = [self._asked.get(doc_id, 0.0) for doc_id in self.ids] if self._asked else 0
        base[:, COLUMN["asked_rank"]] = asked
        self._settled = True

    def _divide_by_namesakes(self, values: Floats) -> Floats:
        """Each value divided by the highest among the candidates with the same title."""
        top = _highest(self._title, values, len(self._numbers))[self._title]
        return np.divide(values, top, out=np.zeros_like(values), where=top > 0)

    def _best_two(self, names: Ints, candidates: Ints) -> tuple[Ints, Ints]:
        """For each name, the best and second-best candidate that has it; -1 for none."""
        by_quality = np.argsort(-self.quality, kind="stable")
        rank = np.empty(len(self), np.int64)
        rank[by_quality] = np.arange(len(self))
        # Sorting one number is much faster than sorting by two.
        name, at = np.divmod(np.sort(names * len(self) + rank[candidates]), len(self))
        who = by_quality[at]
        start = _run_starts(name)
        best, second = np.full(len(self._names), -1), np.full(len(self._names), -1)
        best[name[start]] = who[start]
        more = start + 1 < np.append(start[1:], len(name))
        second[name[start[more]]] = who[start[more] + 1]
        return best, second

    def _support(
        self, two: tuple[Ints, Ints], names: Ints, candidates: Ints, worth: Floats
    ) -> Floats:
        """For each candidate, the best other one that shares a name, by quality times weight."""
        best, second = two[0][names], two[1][names]
        other = np.where(best != candidates, best, second)
        value = np.where(other >= 0, self.quality[other] * worth[names], 0).astype(np.float32)
        return _highest(candidates, value, len(self))

    def _read_held(self) -> None:
        """Compare the held documents with the candidates added since."""
        for at in self.held:
            if (start := self._read.get(at, 0)) < len(self):
                self._read_context(at, range(start, len(self)))
                self._read_beside(at, start)
                self._read[at] = len(self)

    def _read_context(self, at: int, candidates: range) -> None:
        """How much of the question is around the places where a held document names a candidate."""
        text, keys = self._texts[at], self._keys
        named = [(other, key) for other in candidates for key in keys[other] if key in text]
        for other, key in named:
            if other != at:
                share = _weight_in(_around(text, key), self._weighted)
                self._context[other] = max(self._context[other], share)

    def _read_beside(self, at: int, start: int) -> None:
        """How much of the rest of the question is next to a rare name that a held document has."""
        keys, numbers = self._names_of(at)
        if not len(numbers):
            return
        key_of = np.full(len(self._names), -1, np.int64)
        place, here = self._positions(numbers)
        key_of[place] = here
        pairs = np.flatnonzero((key_of[self._mentioned] >= 0) & (self._mentioner >= start))
        pairs = pairs[self._mentioner[pairs] != at]
        if not len(pairs):
            return
        most = float(np.where(self._has[at], 0, self.question.weights).sum())
        rest = [one for one, has in zip(self._weighted, self._has[at].tolist()) if not has]
        # Rarest first: most of the others then cannot change anything and need no reading.
        pairs = pairs[np.argsort(-self._rarity[self._mentioned[pairs]], kind="stable")]
        named, others = self._mentioned[pairs], self._mentioner[pairs]
        worths = self._rarity[named]
        context, rarity = self._beside.T
        np.maximum.at(rarity, others, worths)
        best = context.tolist()
        for key, other, worth in zip(key_of[named].tolist(), others.tolist(), worths.tolist()):
            if worth * most > best[other]:
                share = _weight_in(_around(self._texts[other], keys[key]), rest)
                best[other] = max(best[other], worth * share)
        context[:] = best

    def _names_of(self, at: int) -> tuple[list[str], Ints]:
        """The rare names of a document that are not in the question, and their numbers."""
        if at not in self._rare_names:
            asked, document = set(self.question.stems), self.documents[at]
            text = document.text[:MAX_CHARS]
            found = names(f"{document.title}. {text}")
            found += [] if self.titled else codes(text)
            keys = [
                one
                for one in dict.fromkeys(map(title_key, found))
                if not asked.issuperset(map(stem, one.split()))
            ]
            numbers = self.links.numbers(keys)
            known = np.flatnonzero(numbers >= 0)  # of a corpus that names nothing: none
            rare = known[self.links.rarity[numbers[known]] >= RARE_NAME]
            self._rare_names[at] = [f" {keys[one]} " for one in rare.tolist()], numbers[rare]
        return self._rare_names[at]

    def features(self) -> Floats:
        """(candidates, features), given what is held now."""
        if not len(self):
            return self._base.copy()
        if not self._settled:
            self._settle()
        rows, weights, held = self._base.copy(), self.question.weights, self.held
        free = np.ones(len(self), np.bool_)
        free[held] = False
        covered = self._has[held].any(axis=0)
        adds = ((self._has & ~covered) @ weights).astype(np.float32)
        rows[:, COLUMN["adds"]] = adds
        rows[:, COLUMN["adds_best"]] = adds / (adds[free].max(initial=0) or 1)
        rows[:, COLUMN["adds_namesake"]] = self._divide_by_namesakes(np.where(free, adds, 0))
        rows[:, COLUMN["held"]] = len(held)
        rows[:, COLUMN["held_covers"]] = weights[covered].sum()
        if count := self._had.shape[1]:
            new = ~self._had[held].any(axis=0)
            rows[:, COLUMN["names_added"]] = (self._had & new).sum(axis=1) / count
            rows[:, COLUMN["names_left"]] = new.sum() / count
        if self._metadata and self._carries.shape[1]:
            fresh = self._carries & ~self._carries[held].any(axis=0)
            rows[:, COLUMN["agrees_new"]] = fresh.mean(axis=1)
        if not self.titled:
            alike = rows[:, COLUMN["alike"]]
            rows[:, COLUMN["alike_best"]] = alike / (alike[free].max(initial=0) or 1)
            more = self._alike - self._alike[held].max(axis=0, initial=0)
            rows[:, COLUMN["alike_adds"]] = np.maximum(more, 0) @ weights
        if held:
            self._read_held()
            self._link_to_held(rows, ~free)
            rows[:, COLUMN["shared_context"]], rows[:, COLUMN["shared_rarity"]] = self._beside.T
        return rows

    def _link_to_held(self, rows: Floats, held: Bools) -> None:
        n = len(self)
        mentioned, own = np.zeros(len(self._names), np.bool_), np.zeros(len(self._names), np.bool_)
        mentioned[self._mentioned[held[self._mentioner]]] = True
        own[self._borne[held[self._bearer]]] = True
        leads = mentioned[self._borne] & ~held[self._bearer]
        from_held = _highest(self._bearer[leads], self._share[self._borne[leads]], n)
        leads &= ~self._in_question[self._borne]
        bridge = _highest(self._bearer[leads], self._share[self._borne[leads]], n)
        rows[:, COLUMN["from_held"]] = from_held
        rows[:, COLUMN["bridge"]] = bridge
        rows[:, COLUMN["bridge_context"]] = np.where(from_held > 0, self._context, 0)
        rows[:, COLUMN["bridges"]] = np.minimum((bridge > 0).sum(), 20)
        free = ~held[self._mentioner]
        into = own[self._mentioned] & free
        both = mentioned[self._mentioned] & free & ~self._in_question[self._mentioned]
        for feature, which in (("into_held", into), ("shared", both)):
            worth = self._rarity[self._mentioned[which]]
            rows[:, COLUMN[feature]] = _highest(self._mentioner[which], worth, n)
        same = np.zeros(len(self._numbers), np.bool_)
        same[self._title[held]] = True
        rows[:, COLUMN["same_title"]] = same[self._title]


_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
# ASCII punctuation becomes blanks, and so do these signs; other letters stay, as bytes above 127.
_ASCII_LOWER = bytes(one if one > 127 or chr(one).isalnum() else 32 for one in range(256)).lower()
_OTHER_SIGNS = [sign.encode() for sign in "–—‘’“”…"]
_SIGN = b"\xe2\x80"  # how each of them begins


def _weight_in(text: str, weighted: Sequence[tuple[str, np.float32]]) -> float:
    """The total weight of these patterns in a padded text."""
    return float(sum([weight for one, weight in weighted if one in text]))


def _around(text: str, key: str) -> str:
    """The words around the first occurrence of a key in a padded text; empty if there is none."""
    found = text.find(key)
    return (
        text[max(0, found - CONTEXT_CHARS) : found + len(key) + CONTEXT_CHARS] if found >= 0 else ""
    )


def _pad(text: str) -> str:
    """The words in lower case between blanks; outside ASCII by a faster rule than `tokens`."""
    # Bytes are translated several times as fast as texts.
    encoded = text.encode("utf-8", "surrogatepass").translate(_ASCII_LOWER)
    if text.isascii():
        return (b" " + b" ".join(encoded.split()) + b" ").decode()
    if _SIGN in encoded:
        for sign in _OTHER_SIGNS:
            encoded = encoded.replace(sign, b" ")
    words = encoded.decode("utf-8", "surrogatepass").split()
    return f" {' '.join(words).casefold()} "


@lru_cache(KEPT_TEXTS)
def _padded_text(text: str) -> str:
    return _pad(text)


@lru_cache(KEPT_TEXTS)
def _padded_sentences(text: str) -> tuple[str, ...]:
    return tuple(map(_pad, _SENTENCE.split(text)))


def _called(document: Document) -> Sequence[str]:
    """The title of a document or the names of its subject; an empty one if it has neither."""
    if document.title:
        return [document.title]
    read = _subject_names if len(document.text) <= MAX_CHARS else subject_names
    return read(document.text) or [""]


_subject_names = lru_cache(KEPT_TEXTS)(subject_names)


def _count(texts: Sequence[str], patterns: Sequence[str]) -> Floats:
    """How often each pattern is in each text: (texts, patterns)."""
    # One search through all texts is faster than one for each; no pattern has a line break.
    joined = "\n".join(texts)
    ends = np.cumsum([len(text) + 1 for text in texts])
    counts = np.zeros((len(texts), len(patterns)), np.float32)
    for column, pattern in enumerate(patterns):
        found, at = list[int](), joined.find(pattern)
        while at >= 0:
            found.append(at)
            at = joined.find(pattern, at + len(pattern))
        if found:
            rows = np.searchsorted(ends, found, side="right")
            counts[:, column] = np.bincount(rows, minlength=len(texts))
    return counts


def _fuse(bm25: Sequence[Hit], dense: Sequence[Hit]) -> dict[DocId, tuple[float, float]]:
    """Each hit's score as fused by `hybrid`, divided by the best, and one over its rank."""
    at: dict[DocId, int] = {}
    for hit in (*bm25, *dense):
        at.setdefault(hit.doc_id, len(at))
    parts = np.full((2, 1, len(at)), np.nan, np.float32)
    for part, hits in zip(parts, (bm25, dense)):
        part[0, [at[hit.doc_id] for hit in hits]] = [hit.score or 0.0 for hit in hits]
    (fused,) = convex_combination(parts, np.array(BM25_AND_DENSE, np.float32))
    order = np.argsort(-fused, kind="stable").tolist()
    rank = {one: 1 / place for place, one in enumerate(order, 1)}
    best = float(fused.max(initial=0)) or 1.0
    return {doc_id: (float(fused[one]) / best, rank[one]) for doc_id, one in at.items()}


def _run_starts(values: Ints) -> Ints:
    """The positions where a value differs from the one before it, and the first."""
    differs = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return np.flatnonzero(differs)


def _highest(group: Ints, values: Floats, count: int) -> Floats:
    """The highest value of each group, 0 if it has none: (count,)."""
    top = np.zeros(count, np.float32)
    np.maximum.at(top, group, values)
    return top
