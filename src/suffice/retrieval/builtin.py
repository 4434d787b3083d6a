"""The built-in retrievers, by name. Importing this module registers them.

Each is a function from a store to a retriever. `bridge` follows the links of the documents that
existed when it was created; all others see later writes. The retrievers of the papers' tables are
in the research package.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import Any

from suffice.errors import InputError
from suffice.protocols import Encoder, Extractor, Reranker, Retriever, Store
from suffice.registry import ENCODERS, RERANKERS, RETRIEVERS
from suffice.retrieval.bridge import CHOSEN_SINGLY, BridgeRetriever, Ranker, RankerByTitles
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.filters import VocabularyExtractor
from suffice.retrieval.memory import Bm25
from suffice.retrieval.metadata import Vocabulary
from suffice.retrieval.name_links import NameLinks, name_links
from suffice.retrieval.search import (
    BM25_AND_DENSE,
    ListFusion,
    RerankRetriever,
    SignalRetriever,
    TextSearch,
    VectorSearch,
)
from suffice.retrieval.soft_filter import SoftFilter, SourceQuota, SpreadRetriever

DEFAULT_ENCODER = "wordllama"
DEFAULT_RERANKER = "ms-marco-MiniLM-L-12-v2"
READ_AGAIN = 16  # hits of `bridge` that a reranker reads
RESEARCH_RETRIEVERS = (
    "tfidf metadata-tfidf dense-proxy graph hybrid-metagraph bm25-title tfidf-word "
    "tfidf-char hybrid-title hybrid-title-paper ppr iterative bridge-quality"
).split()


def bm25(
    store: Store,
    *,
    k1: float | None = None,
    b: float | None = None,
    stop_words: Collection[str] | None = None,
) -> Retriever:
    """BM25 as the store computes it (k1 1.2, b 0.75). With an option: an index in memory."""
    given: dict[str, Any] = {"k1": k1, "b": b, "stop_words": stop_words}
    options = {name: value for name, value in given.items() if value is not None}
    if not options:
        return TextSearch(store)
    corpus = Corpus(store.documents())
    return SignalRetriever(corpus, [Bm25(corpus, **options)])


def dense(store: Store, *, encoder: str | Encoder = DEFAULT_ENCODER) -> Retriever:
    """Nearest neighbours of the question's vector; the store has vectors of the same encoder."""
    return VectorSearch(store, _open_encoder(encoder))


def hybrid(
    store: Store,
    *,
    encoder: str | Encoder = DEFAULT_ENCODER,
    fusion: str = "convex",
    weights: tuple[float, float] = BM25_AND_DENSE,
    depth: int = 100,
) -> Retriever:
    """The store's BM25 and dense lists, 100 hits deep, in convex combination."""
    text, vectors = TextSearch(store), VectorSearch(store, _open_encoder(encoder))
    return ListFusion({"bm25": text, "dense": vectors}, weights=weights, fusion=fusion, depth=depth)


def hybrid_spread(store: Store, *, encoder: str | Encoder = DEFAULT_ENCODER) -> Retriever:
    """`hybrid` with a place for each source and day that the question names, if several."""
    return _spread(hybrid(store, encoder=encoder), store, Vocabulary.of_store(store))


def rrf(store: Store, *, encoder: str | Encoder = DEFAULT_ENCODER, depth: int = 100) -> Retriever:
    """The store's BM25 and dense lists by reciprocal rank: 1 / (60 + rank), summed."""
    return hybrid(store, encoder=encoder, fusion="rrf", weights=(1.0, 1.0), depth=depth)


def filtered(
    store: Store,
    *,
    encoder: str | Encoder = DEFAULT_ENCODER,
    reranker: str | Reranker | None = None,
    share: float = 0.5,
    depth: int = 20,
    strict: bool = False,
    per_source: int = 1,
    extractor: Extractor | None = None,
    today: date | None = None,
) -> Retriever:
    """The nearest documents among those that pass the question's own metadata filter.

    The known sources and dates are those in the store when the retriever is created. Unless
    `strict`, other documents follow those that pass. Each source that the question names gets
    `per_source` of the first places; 0 leaves the order unchanged. `today` is the clock for
    "yesterday"; pass an `extractor` to make the filters in another way. A `reranker` reorders the
    first `depth` hits.
    """
    vocabulary = Vocabulary.of_store(store)
    nearest = VectorSearch(store, _open_encoder(encoder))
    extractor = extractor or VocabularyExtractor(vocabulary, today=today)
    found: Retriever = SoftFilter(nearest, store, vocabulary, strict=strict, extractor=extractor)
    if reranker is not None:
        judge = RERANKERS.get(reranker)() if isinstance(reranker, str) else reranker
        found = RerankRetriever(found, judge, store, depth=depth, share=share)
    if not per_source:
        return found
    return SourceQuota(found, store, vocabulary, per_source=per_source, depth=depth)


def filtered_rerank(
    store: Store,
    *,
    encoder: str | Encoder = DEFAULT_ENCODER,
    reranker: str | Reranker = DEFAULT_RERANKER,
    depth: int = 20,
    strict: bool = False,
    share: float = 0.5,
    per_source: int = 1,
    extractor: Extractor | None = None,
    today: date | None = None,
) -> Retriever:
    """Multi-Meta-RAG: `filtered`, with its 20 nearest reordered by a cross-encoder.

    The cross-encoder and the vectors have equal weight. `share=1, per_source=0` is what the paper
    does: it finds the first report sooner and the second one less often.
    """
    return filtered(
        store,
        encoder=encoder,
        reranker=reranker,
        share=share,
        depth=depth,
        strict=strict,
        per_source=per_source,
        extractor=extractor,
        today=today,
    )


def bridge(
    store: Store,
    *,
    encoder: str | Encoder = DEFAULT_ENCODER,
    links: NameLinks | None = None,
    ranker: Ranker | None = None,
    depth: int = 30,
    spread: bool = True,
    reranker: str | Reranker | None = None,
) -> Retriever:
    """Documents chosen one by one along the names that link them, each for what it adds.

    `links` are those of the store's current documents; without them, every document is read to find
    them. With `spread`, each source and day that the question names gets a place, if it names
    several. With a `reranker`, for example "reader", the first 16 are read again: better for texts
    without titles, and slower.
    """
    _check_kind("ranker", ranker, Ranker, hint="suffice.retrieval.bridge.TreeRanker.load(PATH)")
    _check_kind("links", links, NameLinks, hint="leave it out: a library has its own")
    vocabulary = Vocabulary.of_store(store)
    chosen: Retriever = BridgeRetriever(
        store,
        _open_encoder(encoder),
        links if links is not None else name_links(store.documents),
        ranker or RankerByTitles.load(),
        vocabulary=vocabulary,
        depth=depth,
    )
    if reranker is not None:
        judge = RERANKERS.get(reranker)() if isinstance(reranker, str) else reranker
        _check_kind("reranker", judge, Reranker, hint="for example reranker='reader'")
        chosen = RerankRetriever(chosen, judge, store, depth=READ_AGAIN, share=0.5)
    return _spread(chosen, store, vocabulary, depth=CHOSEN_SINGLY) if spread else chosen


def _check_kind(name: str, value: object, kind: type, *, hint: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise InputError(f"{name} is {value!r:.60}, expected a {kind.__name__}", hint=hint)


def _spread(
    retriever: Retriever, store: Store, vocabulary: Vocabulary, depth: int = 30
) -> Retriever:
    """Wrap the retriever, unless no document has a source or a date."""
    if not vocabulary.values["source"] and not vocabulary.days:
        return retriever
    return SpreadRetriever(retriever, store, vocabulary, depth=depth)


def _open_encoder(encoder: str | Encoder) -> Encoder:
    return ENCODERS.get(encoder)() if isinstance(encoder, str) else encoder


for _factory in (bm25, dense, hybrid, hybrid_spread, rrf, filtered, filtered_rerank, bridge):
    RETRIEVERS.add(_factory.__name__.replace("_", "-"), _factory)
RETRIEVERS.expect(
    RESEARCH_RETRIEVERS,
    hint="it comes with the research package: in a clone of suffice, run pip install ./research",
)
