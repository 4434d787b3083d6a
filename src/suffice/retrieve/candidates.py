"""The papers' retrievers over a few hundred candidates a question, for stores that are too large or too far to be read whole.

Candidates are the best of the store's own text search, with and without the filter that the question asks for, and whoever
shares an entity with the strongest of them. On those the same signals are computed as over a whole corpus. Two things must not
be the candidates' own, since every one of them holds the question's words: how rare a term is comes from a sample of the store
(`Background`), and BM25 is the store's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np

from suffice.ports import Look, Store
from suffice.retrieve.corpus import Corpus, searchable
from suffice.retrieve.filters import filter_for
from suffice.retrieve.hybrid import SignalRetriever
from suffice.retrieve.lexical import Analyzer, Background
from suffice.retrieve.metadata import Agreement, Mentions, Vocabulary
from suffice.retrieve.ranking import Scores, Signal, checked
from suffice.types import DocId, Document, Filter, Hit

__all__ = ["DEPTH", "SAMPLE", "CandidateRetriever", "Candidates", "Sample"]

DEPTH = 200
SAMPLE = 20_000  # documents that say how rare a term is
SEEDS, CARRIERS = 20, 50  # candidates whose entities bring others in, and how many each entity brings


class Sample:
    """What the candidates of every question share: rarity by a sample of the store, and the values of its metadata."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @cached_property
    def texts(self) -> list[str]:
        return [searchable(document) for document in islice(self._store.documents(), SAMPLE)]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.of_store(self._store)

    def background(self, analyzer: Analyzer, ngrams: tuple[int, int]) -> Background:
        key = (analyzer, ngrams)
        if key not in self._backgrounds:
            self._backgrounds[key] = Background.of(self.texts, analyzer=analyzer, ngrams=ngrams)
        return self._backgrounds[key]

    @cached_property
    def _backgrounds(self) -> dict[tuple[Analyzer, tuple[int, int]], Background]:
        return {}


@dataclass(frozen=True)
class Candidates:
    """The candidates of one question, for those who make signals of them."""

    corpus: Corpus
    sample: Sample
    mentions: Mentions
    bm25: Mapping[DocId, float]

    @property
    def agreement(self) -> Signal:
        return _Agreement(Agreement(self.corpus, self.sample.vocabulary), self.mentions)

    @property
    def lexical(self) -> Signal:
        return _Found("bm25", self.corpus, self.bm25)


class CandidateRetriever:
    """Retriever port: `signals` are made anew of each question's candidates, and fused as over a whole corpus."""

    def __init__(
        self,
        store: Store,
        signals: Callable[[Candidates], Sequence[Signal]],
        *,
        weights: Sequence[float] | None = None,
        depth: int = DEPTH,
        neighbours: bool = False,
    ) -> None:
        self._store, self._signals, self._weights = store, signals, weights
        self._depth, self._neighbours, self._sample = checked([], depth), neighbours, Sample(store)

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = checked(questions, k, filters)
        wanted = filters or [None] * len(questions)
        return [self._searched(question, k, filter) for question, filter in zip(questions, wanted)]

    def _searched(self, question: str, k: int, filter: Filter | None) -> tuple[Hit, ...]:
        (named,) = self._sample.vocabulary.mentions([question])
        depth, own = max(k, self._depth), filter_for(named)
        looks = [Look(depth, text=question, filter=filter)]
        if own and not filter:
            looks.append(Look(depth, text=question, filter=own))
        seen = self._store.look(looks)
        bm25 = {hit.doc_id: hit.score or 0.0 for hits in seen.hits for hit in hits}
        documents = [seen.documents[doc_id] for doc_id in bm25 if doc_id in seen.documents]
        if self._neighbours:
            documents += self._carriers(documents)
        if not documents:
            return ()
        corpus = Corpus(documents)
        (titles,) = Vocabulary({}, (one.title for one in documents if one.title)).mentions([question])
        candidates = Candidates(corpus, self._sample, replace(named, titles=titles.titles), bm25)
        retriever = SignalRetriever(corpus, self._signals(candidates), weights=self._weights)
        return retriever.search([question], k=k, filters=None if filter is None else [filter])[0]

    def _carriers(self, documents: Sequence[Document]) -> list[Document]:
        """Others that share an entity with the first few: the graph may lead to what has no word of the question."""
        entities = list(dict.fromkeys(one for document in documents[:SEEDS] for one in document.entities))
        if not entities:
            return []
        known = {document.doc_id for document in documents}
        found = self._store.lookup("entities", entities)
        others = dict.fromkeys(doc_id for ids in found for doc_id in ids[:CARRIERS] if doc_id not in known)
        return [document for document in self._store.get(list(others)) if document is not None]


class _Agreement:
    """Metadata agreement with what one question was found to name."""

    name = "metadata"

    def __init__(self, agreement: Agreement, mentions: Mentions) -> None:
        self._agreement, self._mentions = agreement, mentions

    def scores(self, questions: Sequence[str]) -> Scores:
        return self._agreement.of_mentions([self._mentions] * len(questions))


class _Found:
    """Scores that a search gave already; 0 for those that it did not find."""

    def __init__(self, name: str, corpus: Corpus, scores: Mapping[DocId, float]) -> None:
        self.name = name
        self._row = np.array([scores.get(doc_id, 0.0) for doc_id in corpus.ids], np.float32)

    def scores(self, questions: Sequence[str]) -> Scores:
        return np.tile(self._row, (len(questions), 1))
