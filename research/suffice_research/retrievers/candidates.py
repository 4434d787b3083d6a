"""The papers' retrievers over a few hundred candidates per question, for large or remote stores.

Candidates are the best hits of the store's text search, with and without the question's own filter,
and documents that share an entity with the best of them. The signals are the same as over a whole
corpus, with two exceptions: term rarity comes from a sample of the store (`Background`), since all
candidates contain the question's words, and BM25 is the store's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from suffice.protocols import Store, StoreQuery, documents_by_id
from suffice.retrieval.corpus import Corpus, searchable_text
from suffice.retrieval.filters import filter_for
from suffice.retrieval.memory import Bm25
from suffice.retrieval.metadata import Mentions, Vocabulary
from suffice.retrieval.ranking import Filters, HitLists, Scores, Signal, check_depth, check_search
from suffice.retrieval.search import SignalRetriever
from suffice.types import DocId, Document, Filter, Hit
from suffice_research.retrievers.signals import Agreement, Analyzer, Background, Tfidf

__all__ = ["DEPTH", "SAMPLE", "CandidateRetriever", "CorpusSample", "Signals"]

DEPTH = 200
SAMPLE = 20_000  # documents to estimate term rarity
BATCH = 16  # questions per store query
SEEDS = 20  # candidates whose entities add others
CARRIERS = 50  # documents added per entity


class CorpusSample:
    """Shared by all questions: term rarity in a sample of the store, and its metadata."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._backgrounds: dict[tuple[Analyzer, tuple[int, int]], Background] = {}

    @cached_property
    def texts(self) -> list[str]:
        return [searchable_text(document) for document in islice(self._store.documents(), SAMPLE)]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.of_store(self._store)

    def background(self, analyzer: Analyzer, ngrams: tuple[int, int]) -> Background:
        key = (analyzer, ngrams)
        if key not in self._backgrounds:
            self._backgrounds[key] = Background.of(self.texts, analyzer=analyzer, ngrams=ngrams)
        return self._backgrounds[key]


@dataclass(frozen=True)
class Signals:
    """The papers' signals over a whole corpus."""

    corpus: Corpus

    @property
    def agreement(self) -> Signal:
        return Agreement(self.corpus)

    def bm25(self, **options: Any) -> Signal:
        """`options` are those of Bm25."""
        return Bm25(self.corpus, **options)

    def tfidf(
        self, *, analyzer: Analyzer = "word", ngrams: tuple[int, int] = (1, 2), **options: Any
    ) -> Signal:
        """`options` are those of Tfidf."""
        return Tfidf(self.corpus, analyzer=analyzer, ngrams=ngrams, **options)


@dataclass(frozen=True)
class _CandidateSignals(Signals):
    """The same over the candidates of one question."""

    sample: CorpusSample
    mentions: Mentions
    bm25_scores: Mapping[DocId, float]  # the store's

    @property
    def agreement(self) -> Signal:
        return _Agreement(Agreement(self.corpus, self.sample.vocabulary), self.mentions)

    def bm25(self, **options: Any) -> Signal:
        return _StoreScores("bm25", self.corpus, self.bm25_scores)

    def tfidf(
        self, *, analyzer: Analyzer = "word", ngrams: tuple[int, int] = (1, 2), **options: Any
    ) -> Signal:
        background = self.sample.background(analyzer, ngrams)
        return Tfidf(
            self.corpus, analyzer=analyzer, ngrams=ngrams, background=background, **options
        )


class CandidateRetriever:
    """Computes `signals` over each question's candidates, and fuses them as over a corpus."""

    def __init__(
        self,
        store: Store,
        signals: Callable[[Signals], Sequence[Signal]],
        *,
        weights: Sequence[float] | None = None,
        depth: int = DEPTH,
        neighbours: bool = False,
    ) -> None:
        self._store, self._signals, self._weights = store, signals, weights
        self._depth, self._neighbours = check_depth(depth), neighbours
        self._sample = CorpusSample(store)

    def search(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        k = check_search(questions, k, filters)
        wanted = list(filters or [None] * len(questions))
        hits: HitLists = []
        for at in range(0, len(questions), BATCH):
            hits += self._search_batch(questions[at : at + BATCH], k, wanted[at : at + BATCH])
        return hits

    def _search_batch(
        self, questions: Sequence[str], k: int, filters: Sequence[Filter | None]
    ) -> HitLists:
        """All questions in one query to the store, and their neighbours in another."""
        named, depth = self._sample.vocabulary.mentions(questions), max(k, self._depth)
        owns = [None if filter else filter_for(one) for filter, one in zip(filters, named)]
        plain = [
            StoreQuery(depth, text=question, filter=filter)
            for question, filter in zip(questions, filters)
        ]
        narrow = [
            StoreQuery(depth, text=question, filter=own) if own else StoreQuery(depth)
            for question, own in zip(questions, owns)
        ]
        seen = self._store.query([*plain, *narrow])
        scores = [
            {
                hit.doc_id: hit.score or 0.0
                for hit in (*wide, *close)
                if hit.doc_id in seen.documents
            }
            for wide, close in zip(seen.hits, seen.hits[len(plain) :])
        ]
        candidates = [[seen.documents[doc_id] for doc_id in one] for one in scores]
        if self._neighbours:
            candidates = [
                [*one, *others] for one, others in zip(candidates, self._carriers(candidates))
            ]
        return [self._rank(*one, k) for one in zip(questions, filters, named, scores, candidates)]

    def _rank(
        self,
        question: str,
        filter: Filter | None,
        named: Mentions,
        bm25: Mapping[DocId, float],
        documents: Sequence[Document],
        k: int,
    ) -> tuple[Hit, ...]:
        if not documents:
            return ()
        corpus = Corpus(documents)
        (titles,) = Vocabulary({}, (one.title for one in documents if one.title)).mentions(
            [question]
        )
        candidates = _CandidateSignals(
            corpus, self._sample, replace(named, titles=titles.titles), bm25
        )
        retriever = SignalRetriever(corpus, self._signals(candidates), weights=self._weights)
        return retriever.search([question], k=k, filters=None if filter is None else [filter])[0]

    def _carriers(self, candidates: Sequence[Sequence[Document]]) -> list[list[Document]]:
        """Documents that share an entity with the first few, also without the question's words."""
        named = [
            dict.fromkeys(entity for one in some[:SEEDS] for entity in one.entities)
            for some in candidates
        ]
        entities = list(dict.fromkeys(entity for some in named for entity in some))
        if not entities:
            return [[] for _ in candidates]
        carrying = {
            entity: ids[:CARRIERS]
            for entity, ids in zip(entities, self._store.lookup("entities", entities))
        }
        others = []
        for some, few in zip(candidates, named):
            known = {document.doc_id for document in some}
            others.append(
                dict.fromkeys(
                    doc_id for entity in few for doc_id in carrying[entity] if doc_id not in known
                )
            )
        documents = documents_by_id(self._store.get, (doc_id for one in others for doc_id in one))
        return [[documents[doc_id] for doc_id in one if doc_id in documents] for one in others]


class _Agreement:
    """Metadata agreement with what one question names."""

    name = "metadata"

    def __init__(self, agreement: Agreement, mentions: Mentions) -> None:
        self._agreement, self._mentions = agreement, mentions

    def scores(self, questions: Sequence[str]) -> Scores:
        return self._agreement.of_mentions([self._mentions] * len(questions))


class _StoreScores:
    """Scores from the store; 0 for documents that it did not find."""

    def __init__(self, name: str, corpus: Corpus, scores: Mapping[DocId, float]) -> None:
        self.name = name
        self._row = np.array([scores.get(doc_id, 0.0) for doc_id in corpus.ids], np.float32)

    def scores(self, questions: Sequence[str]) -> Scores:
        return np.tile(self._row, (len(questions), 1))
