"""The papers' retrievers, by name: each is a function from a store to a retriever.

Those of MAGAF and FRAMES score whole collections: they read the documents once, when created. In a
remote store they score each question's candidates instead. `ppr` follows the links between the
documents that existed when it was created.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from suffice.protocols import Encoder, Retriever, Store
from suffice.retrieval.builtin import DEFAULT_ENCODER, hybrid
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.links import MentionLinks, TitleIndex, mention_links
from suffice.retrieval.ranking import Filters, HitLists, Signal
from suffice.retrieval.search import ListFusion, SignalRetriever
from suffice_research.retrievers.candidates import CandidateRetriever, Signals
from suffice_research.retrievers.document_graph import DocumentGraph, GraphSignal
from suffice_research.retrievers.iterative_search import IterativeSearch
from suffice_research.retrievers.pagerank import PageRank
from suffice_research.retrievers.signals import Analyzer, Blend, DenseProxy

__all__ = [
    "BestIsOne",
    "bm25_title",
    "dense_proxy",
    "graph",
    "hybrid_metagraph",
    "hybrid_title",
    "hybrid_title_paper",
    "iterative",
    "metadata_tfidf",
    "ppr",
    "tfidf",
    "tfidf_char",
    "tfidf_word",
]

METAGRAPH = (0.58, 0.42, 0.001)  # lexical, metadata, graph: MAGAF 3.3
TITLE = (0.45, 0.35, 0.20)  # BM25, TF-IDF word, TF-IDF char: FRAMES
TITLE_K1 = 1.5  # of FRAMES' BM25
# MAGAF leaves these open. Metadata has the lowest weight in Metadata-TF-IDF and the graph's seeds,
# more in Dense-proxy, most in Hybrid-MetaGraph, as the order of its Table 3 suggests: see
# docs/decisions/0004-lexical.md.
INTERPOLATION = (0.75, 0.25)
PROXY = (2 / 3, 1 / 3)


def tfidf(store: Store, **options: Any) -> Retriever:
    """TF-IDF of words and word pairs, sublinear, without terms in more than 92 % of documents."""
    return _scored(store, lambda of: [of.tfidf(**options)])


def metadata_tfidf(store: Store, *, weights: tuple[float, float] = INTERPOLATION) -> Retriever:
    """TF-IDF interpolated with metadata agreement."""
    return _scored(store, _lexical_and_metadata, weights=weights)


def dense_proxy(
    store: Store, *, weights: tuple[float, float] = PROXY, perturbation: float = 0.001
) -> Retriever:
    """MAGAF's stand-in for a dense retriever: TF-IDF and metadata with a small perturbation."""

    def proxy(of: Signals) -> list[Signal]:
        blend = Blend(_lexical_and_metadata(of), weights=weights)
        return [DenseProxy(blend, perturbation=perturbation)]

    return _scored(store, proxy)


def graph(store: Store, *, weights: tuple[float, float] = (0.5, 0.5), seeds: int = 20) -> Retriever:
    """The 20 strongest lexical-metadata candidates, and their support in the document graph."""

    def supported(of: Signals) -> list[Signal]:
        blend = Blend(_lexical_and_metadata(of), weights=INTERPOLATION, name="seed")
        return [blend, GraphSignal(DocumentGraph(of.corpus), blend, count=seeds)]

    return _scored(store, supported, weights=weights, neighbours=True)


def hybrid_metagraph(
    store: Store, *, weights: tuple[float, float, float] = METAGRAPH, seeds: int = 20
) -> Retriever:
    """norm(0.58 lexical + 0.42 metadata + 0.001 graph), the parts normalised as well.

    Normalising divides by the question's highest score, so the first hit has score 1.
    """

    def supported(of: Signals) -> list[Signal]:
        signals = _lexical_and_metadata(of)
        blend = Blend(signals, weights=weights[:2])
        return [*signals, GraphSignal(DocumentGraph(of.corpus), blend, count=seeds)]

    return BestIsOne(_scored(store, supported, weights=weights, neighbours=True))


@dataclass(frozen=True)
class BestIsOne:
    """A retriever whose scores are divided by the highest of each question."""

    inner: Retriever

    def search(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        return [
            tuple(replace(hit, score=(hit.score or 0.0) / (hits[0].score or 1.0)) for hit in hits)
            for hits in self.inner.search(questions, k=k, filters=filters)
        ]


def bm25_title(store: Store) -> Retriever:
    """FRAMES' BM25, with k1 = 1.5; in a remote store the BM25 of that store."""
    return _scored(store, lambda of: [of.bm25(k1=TITLE_K1)])


def tfidf_word(store: Store, *, ngrams: tuple[int, int] = (1, 2)) -> Retriever:
    """Plain TF-IDF of words and word pairs, with stop words."""
    return _scored(store, lambda of: [_plain(of, "word", ngrams)])


def tfidf_char(store: Store, *, ngrams: tuple[int, int] = (3, 5)) -> Retriever:
    """Plain TF-IDF of character 3- to 5-grams inside words."""
    return _scored(store, lambda of: [_plain(of, "char", ngrams)])


def hybrid_title(
    store: Store, *, weights: tuple[float, float, float] = TITLE, k1: float = 1.2
) -> Retriever:
    """0.45 BM25 + 0.35 TF-IDF word + 0.20 TF-IDF char, each divided by its highest score."""

    def signals(of: Signals) -> list[Signal]:
        return [of.bm25(k1=k1), _plain(of, "word", (1, 2)), _plain(of, "char", (3, 5))]

    return _scored(store, signals, weights=weights)


def hybrid_title_paper(store: Store) -> Retriever:
    """`hybrid-title` with FRAMES' k1 = 1.5. The shipped gates were trained on lists with 1.2."""
    return hybrid_title(store, k1=TITLE_K1)


def ppr(
    store: Store,
    *,
    encoder: str | Encoder = DEFAULT_ENCODER,
    mentions: MentionLinks | None = None,
    restart: float = 0.5,
    depth: int = 20,
) -> Retriever:
    """Personalised PageRank over mention links, from named titles and the best hybrid hits.

    `mentions` are the current links of the store's documents; computed here if None.
    """
    corpus = Corpus(store.documents())
    titles = TitleIndex.of(corpus.documents)
    links = mention_links(corpus.documents, titles) if mentions is None else mentions
    seeds = hybrid(store, encoder=encoder)
    walk = PageRank(corpus, seeds, links, titles, restart=restart, depth=depth)
    return SignalRetriever(corpus, [walk])


def iterative(
    store: Store, *, encoder: str | Encoder = DEFAULT_ENCODER, rounds: int = 2, depth: int = 100
) -> Retriever:
    """Hybrid search, then again with the best sentence of the best hit added to the question."""
    first = hybrid(store, encoder=encoder)
    again = IterativeSearch(first, store, rounds=rounds)
    return ListFusion({"hybrid": first, "iterative": again}, fusion="rrf", depth=depth)


def _lexical_and_metadata(of: Signals) -> list[Signal]:
    return [of.tfidf(), of.agreement]


def _plain(of: Signals, analyzer: Analyzer, ngrams: tuple[int, int]) -> Signal:
    name = f"tfidf-{analyzer}"
    return of.tfidf(analyzer=analyzer, ngrams=ngrams, sublinear=False, max_df=1.0, name=name)


def _scored(
    store: Store,
    signals: Callable[[Signals], Sequence[Signal]],
    *,
    weights: Sequence[float] | None = None,
    neighbours: bool = False,
) -> Retriever:
    """Signals over all documents, read now; in a remote store, over each question's candidates.

    With `neighbours`, documents that share an entity with the best candidates are added.
    """
    if getattr(store, "distant", False):
        return CandidateRetriever(store, signals, weights=weights, neighbours=neighbours)
    corpus = Corpus(store.documents())
    return SignalRetriever(corpus, signals(Signals(corpus)), weights=weights)
