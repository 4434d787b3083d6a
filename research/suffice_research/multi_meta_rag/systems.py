"""The systems of the Multi-Meta-RAG study: chunk search without a filter, with the published
filters, and with ours.

Chunks have 256 words and punctuation marks with an overlap of 32, as in the paper. The filter is
applied inside the store's own search. Question vectors and the cross-encoder's scores are computed
once and shared, so that systems differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.gold import GoldQuestion
from suffice.evaluation.metrics import Rankings, judge_rankings
from suffice.gate.gate import Gate
from suffice.protocols import Encoder, Progress, Reranker, Retriever
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.filters import VocabularyExtractor
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.metadata import Vocabulary
from suffice.retrieval.search import RerankRetriever, VectorSearch
from suffice.retrieval.soft_filter import SoftFilter, SourceQuota
from suffice.types import DocId, Document, Filter, Hit
from suffice_research.multi_meta_rag.answering import AnswerScores
from suffice_research.multi_meta_rag.fact_recall import FactIndex
from suffice_research.multi_meta_rag.filter_quality import FilterQuality
from suffice_research.multi_meta_rag.stepwise import StepwiseFilter

__all__ = ["DEPTH", "FilterBench", "K", "Results", "SystemOutcome"]

Floats = npt.NDArray[np.floating[Any]]
DEPTH, K = 20, 10  # the paper's: 20 chunks from the store, 10 after reranking
_AT_ONCE = 64


class _CachedSearch:
    """An encoder's vectors of the questions, each computed once."""

    def __init__(
        self, encoder: Encoder, questions: Sequence[str], progress: Progress | None
    ) -> None:
        self.name, self.dimension = encoder.name, encoder.dimension
        self._encoder, self._vectors = encoder, dict[str, Floats]()
        self._add(questions, progress)

    def _add(self, questions: Sequence[str], progress: Progress | None = None) -> None:
        texts = [one for one in dict.fromkeys(questions) if one not in self._vectors]
        for start in range(0, len(texts), _AT_ONCE):
            block = texts[start : start + _AT_ONCE]
            self._vectors.update(zip(block, self._encoder.encode(block, query=True)))
            if progress is not None:
                progress(f"questions by {self.name}", min(start + _AT_ONCE, len(texts)), len(texts))

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        self._add(texts)
        return (
            np.stack([self._vectors[text] for text in texts])
            if texts
            else np.zeros((0, self.dimension), np.float32)
        )


@dataclass(frozen=True)
class SystemOutcome:
    """The results of one system: rankings judged by the quoted facts, and by whole articles."""

    facts: Rankings
    articles: Rankings
    relaxed: float  # share of questions with a hit that does not pass the filter

    def rows(self, which: npt.NDArray[Any]) -> SystemOutcome:
        return SystemOutcome(self.facts.rows(which), self.articles.rows(which), self.relaxed)


@dataclass
class Results:
    """The measurements, for the tables and for the summary."""

    benches: dict[str, dict[str, SystemOutcome]] = field(
        default_factory=dict
    )  # encoder -> system -> outcome
    reranked: dict[str, dict[str, SystemOutcome]] = field(default_factory=dict)
    quality: dict[str, FilterQuality] = field(default_factory=dict)
    emptied: dict[str, tuple[int, int]] = field(
        default_factory=dict
    )  # who -> missing fields fail, missing fields pass
    emptied_elsewhere: int = (
        0  # of the published ones, by sources alone, if the corpus had all outlets
    )
    invented: dict[str, tuple[int, int]] = field(
        default_factory=dict
    )  # data set -> invented, questions
    extraction_ms: float = 0.0  # processor time per question
    kinds: tuple[str, ...] = ()
    sample: tuple[int, ...] = ()
    questions: int = 0
    # By the language model, on a sample of all questions; the other rows use the same sample.
    extracted: dict[str, FilterQuality] = field(default_factory=dict)
    extracted_found: dict[str, SystemOutcome] = field(default_factory=dict)
    extracted_questions: int = 0
    extracted_unread: int = 0  # model answers without a filter
    answers: dict[tuple[str, str], AnswerScores] = field(
        default_factory=dict
    )  # (who reads, system) -> scores
    answer_kinds: dict[str, tuple[str, ...]] = field(default_factory=dict)  # who reads -> kinds


class FilterBench:
    """One encoder over the chunks of the corpus, and the questions to search for."""

    def __init__(
        self,
        encoder: Encoder,
        chunks: Sequence[Document],
        examples: Sequence[GoldQuestion],
        facts: FactIndex,
        *,
        progress: Progress | None = None,
    ) -> None:
        self.examples, self.facts = tuple(examples), facts
        self.questions = [example.question.text for example in examples]
        vectors = [np.zeros((0, encoder.dimension), np.float32)]
        for start in range(0, len(chunks), _AT_ONCE):
            vectors.append(
                encoder.encode([searchable_text(one) for one in chunks[start : start + _AT_ONCE]])
            )
            if progress is not None:
                progress(
                    f"chunks by {encoder.name}", min(start + _AT_ONCE, len(chunks)), len(chunks)
                )
        self.store = MemoryStore(chunks, np.concatenate(vectors))
        self.parents: dict[DocId, DocId] = {one.doc_id: one.parent or one.doc_id for one in chunks}
        self.dense = VectorSearch(self.store, _CachedSearch(encoder, self.questions, progress))
        self.vocabulary = Vocabulary.of_store(self.store)
        self.extractor = VocabularyExtractor(self.vocabulary)

    # ---- systems

    def soft(self, *, strict: bool = False) -> Retriever:
        return SoftFilter(
            self.dense, self.store, self.vocabulary, strict=strict, extractor=self.extractor
        )

    def quota(self, retriever: Retriever) -> Retriever:
        return SourceQuota(retriever, self.store, self.vocabulary, per_source=1, depth=DEPTH)

    def reranked(self, retriever: Retriever, reranker: Reranker, share: float = 1.0) -> Retriever:
        return RerankRetriever(retriever, reranker, self.store, depth=DEPTH, share=share)

    def relaxed_by(self, gate: Gate) -> Retriever:
        documents = {one.doc_id: one for one in self.store.documents()}

        def p_complete(questions: Sequence[str], found: Sequence[tuple[Hit, ...]]) -> list[float]:
            p: list[float] = gate.probabilities(zip(questions, found), documents=documents).tolist()
            return p

        return StepwiseFilter(self.soft(), self.store, self.extractor, p_complete)

    def found_chunks(
        self,
        retriever: Retriever,
        questions: Sequence[str],
        *,
        k: int,
        filters: Sequence[Filter | None] | None = None,
    ) -> list[list[Document]]:
        """The first k chunks for any questions, including null questions."""
        found = retriever.search(questions, k=k, filters=filters)
        documents = {one.doc_id: one for one in self.store.documents()}
        return [[documents[hit.doc_id] for hit in hits] for hits in found]

    # ---- judging

    def outcome(
        self,
        retriever: Retriever,
        *,
        filters: Sequence[Filter | None] | None = None,
        which: Sequence[int] | None = None,
    ) -> SystemOutcome:
        """Search all questions, or those at `which` (the others stay unanswered), and judge the
        results.
        """
        chosen = range(len(self.questions)) if which is None else which
        found: list[tuple[Hit, ...]] = [()] * len(self.questions)
        questions = [self.questions[at] for at in chosen]
        passing = None if filters is None else [filters[at] for at in chosen]
        for at, hits in zip(chosen, retriever.search(questions, k=K, filters=passing)):
            found[at] = hits
        articles = [[self.parents[hit.doc_id] for hit in hits] for hits in found]
        relaxed = float(np.mean([any(hit.relaxed for hit in found[at]) for at in chosen]))
        gold = [example.gold.doc_ids for example in self.examples]
        return SystemOutcome(
            self.facts.judge(found, depth=K), judge_rankings(articles, gold, depth=K), relaxed
        )

    def missing_fails(self) -> list[Filter]:
        """Our filters, with documents that lack a field failing, as in a plain database."""
        return [
            replace(one.filter, lenient=False) for one in self.extractor.extract(self.questions)
        ]
