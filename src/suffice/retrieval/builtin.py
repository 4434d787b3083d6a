"""The retrievers by name: importing this module registers those that the papers and the product speak of.

Each is a function from a store to a retriever. Those of MAGAF and FRAMES but for `bm25` score whole collections: they read the
documents once, when they are made; in a store that is distant they score the candidates of each question instead. `ppr` and
`bridge` follow the links of the documents that were there when they were made. All others search in the store and see what is
written later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import date
from typing import Any

from suffice.errors import InputError, did_you_mean
from suffice.protocols import Encoder, Extractor, Reranker, Retriever, Store
from suffice.registry import ENCODERS, RERANKERS, RETRIEVERS
from suffice.retrieval.bridge import BridgeRetriever, Ranker, TreeRanker
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.dense import DenseProxy, VectorSearch
from suffice.retrieval.filter_extraction import VocabularyExtractor
from suffice.retrieval.fusion import Blend, ListFusion, RerankRetriever, SignalRetriever
from suffice.retrieval.lexical import Analyzer, Bm25, TextSearch
from suffice.retrieval.links import MentionLinks, TitleIndex, mention_links
from suffice.retrieval.metadata import Vocabulary
from suffice.retrieval.name_links import NameLinks, name_links
from suffice.retrieval.ranking import Signal
from suffice.retrieval.soft_filter import SoftFilter, SourceQuota
from suffice.text import STOP_WORDS
from suffice_research.retrievers.candidates import CandidateRetriever, Signals
from suffice_research.retrievers.graph import DocumentGraph, GraphSignal
from suffice_research.retrievers.iterative import IterativeSearch
from suffice_research.retrievers.pagerank import PageRank

__all__ = ["DEFAULT_ENCODER", "DEFAULT_RERANKER", "bridge"]

DEFAULT_ENCODER = "wordllama"
DEFAULT_RERANKER = "ms-marco-MiniLM-L-12-v2"

METAGRAPH = (0.58, 0.42, 0.001)  # lexical, metadata, graph: MAGAF 3.3
TITLE = (0.45, 0.35, 0.20)  # BM25, TF-IDF word, TF-IDF char: FRAMES
# MAGAF leaves these open, and we set them: metadata weighs least in Metadata-TF-IDF and the graph's seeds, more in Dense-proxy,
# most in Hybrid-MetaGraph, as the order of its Table 3 suggests. docs/decisions/0006-lexical.md says what follows from that.
INTERPOLATION = (0.75, 0.25)
PROXY = (2 / 3, 1 / 3)
# Static vectors know less than words; docs/decisions/0006-lexical.md has the figures. Give a stronger encoder more.
BM25_AND_DENSE = (0.7, 0.3)


# -------------------------------------------------------------------------------------------- MAGAF 3.3


def tfidf(store: Store, **options: Any) -> Retriever:
    """TF-IDF of words and word pairs, sublinear, without terms in more than 92 % of the documents."""
    return _scored(store, lambda of: [of.tfidf(**options)])


def metadata_tfidf(store: Store, *, weights: tuple[float, float] = INTERPOLATION) -> Retriever:
    """TF-IDF interpolated with metadata agreement."""
    return _scored(store, _lexical_and_metadata, weights=weights)


def dense_proxy(
    store: Store, *, weights: tuple[float, float] = PROXY, perturbation: float = 0.001
) -> Retriever:
    """The paper's stand-in for a dense retriever: TF-IDF and metadata, ties broken by a question-seeded perturbation."""

    def proxy(of: Signals) -> list[Signal]:
        return [
            DenseProxy(Blend(_lexical_and_metadata(of), weights=weights), perturbation=perturbation)
        ]

    return _scored(store, proxy)


def graph(store: Store, *, weights: tuple[float, float] = (0.5, 0.5), seeds: int = 20) -> Retriever:
    """The 20 strongest lexical-metadata candidates, and what they support in the document graph, in equal parts."""

    def supported(of: Signals) -> list[Signal]:
        blend = Blend(_lexical_and_metadata(of), weights=INTERPOLATION, name="seed")
        return [blend, GraphSignal(DocumentGraph(of.corpus), blend, count=seeds)]

    return _scored(store, supported, weights=weights, neighbours=True)


def hybrid_metagraph(
    store: Store, *, weights: tuple[float, float, float] = METAGRAPH, seeds: int = 20
) -> Retriever:
    """0.58 lexical + 0.42 metadata + 0.001 graph, each normalised by its highest score for the question."""

    def supported(of: Signals) -> list[Signal]:
        signals = _lexical_and_metadata(of)
        return [
            *signals,
            GraphSignal(DocumentGraph(of.corpus), Blend(signals, weights=weights[:2]), count=seeds),
        ]

    return _scored(store, supported, weights=weights, neighbours=True)


def _lexical_and_metadata(of: Signals) -> list[Signal]:
    return [of.tfidf(), of.agreement]


def _scored(
    store: Store,
    signals: Callable[[Signals], Sequence[Signal]],
    *,
    weights: Sequence[float] | None = None,
    neighbours: bool = False,
) -> Retriever:
    """Signals over all documents, read now; where a store says of itself that it is distant, over each question's candidates.

    With `neighbours`, documents that share an entity with the best candidates join them.
    """
    if getattr(store, "distant", False):
        return CandidateRetriever(store, signals, weights=weights, neighbours=neighbours)
    corpus = Corpus(store.documents())
    return SignalRetriever(corpus, signals(Signals(corpus)), weights=weights)


# -------------------------------------------------------------------------------------------- FRAMES


def bm25(
    store: Store,
    *,
    k1: float | None = None,
    b: float | None = None,
    stop_words: Collection[str] | None = None,
) -> Retriever:
    """BM25 as the store does it (k1 1.2, b 0.75, Lucene's stop words). With an option: an index of its own in memory."""
    if k1 is None and b is None and stop_words is None:
        return TextSearch(store)
    corpus = Corpus(store.documents())
    signal = Bm25(
        corpus,
        k1=1.2 if k1 is None else k1,
        b=0.75 if b is None else b,
        stop_words=STOP_WORDS if stop_words is None else stop_words,
    )
    return SignalRetriever(corpus, [signal])


def tfidf_word(store: Store, *, ngrams: tuple[int, int] = (1, 2)) -> Retriever:
    """Plain TF-IDF of words and word pairs; stop words stay in."""
    return _scored(store, lambda of: [_plain(of, "word", ngrams)])


def tfidf_char(store: Store, *, ngrams: tuple[int, int] = (3, 5)) -> Retriever:
    """Plain TF-IDF of character 3- to 5-grams inside words."""
    return _scored(store, lambda of: [_plain(of, "char", ngrams)])


def hybrid_title(store: Store, *, weights: tuple[float, float, float] = TITLE) -> Retriever:
    """0.45 BM25 + 0.35 TF-IDF word + 0.20 TF-IDF char, each normalised by its highest score for the question."""
    return _scored(
        store,
        lambda of: [of.bm25, _plain(of, "word", (1, 2)), _plain(of, "char", (3, 5))],
        weights=weights,
    )


def _plain(of: Signals, analyzer: Analyzer, ngrams: tuple[int, int]) -> Signal:
    return of.tfidf(
        analyzer=analyzer, ngrams=ngrams, sublinear=False, max_df=1.0, name=f"tfidf-{analyzer}"
    )


# -------------------------------------------------------------------------------------------- any store


def dense(store: Store, *, encoder: str | Encoder = DEFAULT_ENCODER) -> Retriever:
    """Nearest neighbours of the question's vector; the store holds the vectors of the same encoder."""
    return VectorSearch(store, _encoder(encoder))


def hybrid(
    store: Store,
    *,
    encoder: str | Encoder = DEFAULT_ENCODER,
    fusion: str = "convex",
    weights: tuple[float, float] = BM25_AND_DENSE,
    depth: int = 100,
) -> Retriever:
    """The store's BM25 and dense lists, 100 hits deep, in convex combination."""
    parts: dict[str, Retriever] = {
        "bm25": TextSearch(store),
        "dense": VectorSearch(store, _encoder(encoder)),
    }
    return ListFusion(parts, weights=weights, fusion=fusion, depth=depth)


def rrf(store: Store, *, encoder: str | Encoder = DEFAULT_ENCODER, depth: int = 100) -> Retriever:
    """The store's BM25 and dense lists by reciprocal rank: 1 / (60 + rank), summed."""
    return hybrid(store, encoder=encoder, fusion="rrf", weights=(1.0, 1.0), depth=depth)


def ppr(
    store: Store,
    *,
    encoder: str | Encoder = DEFAULT_ENCODER,
    mentions: MentionLinks | None = None,
    restart: float = 0.5,
    depth: int = 20,
) -> Retriever:
    """Personalised PageRank over mention links, from the titles that the question names and the best hybrid hits.

    `mentions` are the links of the store's documents as they are now; without them they are found here.
    """
    corpus = Corpus(store.documents())
    titles = TitleIndex.of(corpus.documents)
    links = mention_links(corpus.documents, titles) if mentions is None else mentions
    walk = PageRank(
        corpus, hybrid(store, encoder=encoder), links, titles, restart=restart, depth=depth
    )
    return SignalRetriever(corpus, [walk])


def iterative(
    store: Store, *, encoder: str | Encoder = DEFAULT_ENCODER, rounds: int = 2, depth: int = 100
) -> Retriever:
    """Hybrid, and hybrid again with the best sentence of the best hit added to the question, by reciprocal rank."""
    first = hybrid(store, encoder=encoder)
    return ListFusion(
        {"hybrid": first, "iterative": IterativeSearch(first, store, rounds=rounds)},
        fusion="rrf",
        depth=depth,
    )


def filtered(
    store: Store,
    *,
    encoder: str | Encoder = DEFAULT_ENCODER,
    strict: bool = False,
    per_source: int = 1,
    depth: int = 20,
    extractor: Extractor | None = None,
    today: date | None = None,
) -> Retriever:
    """Multi-Meta-RAG without its cross-encoder: the nearest among what passes the question's own metadata filter.

    The sources and dates it knows are those that the store holds when it is made. Unless `strict`, others fill up behind what
    passes. Each source that the question names gets `per_source` places among the first; 0 leaves the order alone. `today` is
    the clock for "yesterday"; an `extractor` makes the filters in another way.
    """
    vocabulary = Vocabulary.of_store(store)
    soft = _soft(store, encoder, vocabulary, strict, extractor, today)
    return (
        SourceQuota(soft, store, vocabulary, per_source=per_source, depth=depth)
        if per_source
        else soft
    )


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
    """Multi-Meta-RAG: the 20 nearest among what passes the question's own metadata filter, reordered by a cross-encoder.

    As `filtered`, with the cross-encoder's opinion and the vectors' in equal parts; `share=1, per_source=0` is the paper's way,
    which finds the first report sooner and the second one less often. Over chunks where the store holds chunks.
    """
    judge = RERANKERS.get(reranker)() if isinstance(reranker, str) else reranker
    vocabulary = Vocabulary.of_store(store)
    soft = _soft(store, encoder, vocabulary, strict, extractor, today)
    reranked = RerankRetriever(soft, judge, store, depth=depth, share=share)
    return (
        SourceQuota(reranked, store, vocabulary, per_source=per_source, depth=depth)
        if per_source
        else reranked
    )


def _soft(
    store: Store,
    encoder: str | Encoder,
    vocabulary: Vocabulary,
    strict: bool,
    extractor: Extractor | None,
    today: date | None,
) -> Retriever:
    nearest = VectorSearch(store, _encoder(encoder))
    made = extractor or VocabularyExtractor(vocabulary, today=today)
    return SoftFilter(nearest, store, vocabulary, strict=strict, extractor=made)


def bridge(
    store: Store,
    *,
    encoder: str | Encoder = DEFAULT_ENCODER,
    links: NameLinks | None = None,
    ranker: Ranker | None = None,
    preset: str = "fast",
    depth: int = 30,
) -> Retriever:
    """A set of documents chosen one by one along the names that link them, each for what those held do not say.

    `links` are those of the store's documents as they are now; without them they are found here, which reads every document.
    """
    if preset == "quality":  # lives further right, and is opened by its name
        if ranker is not None:
            raise InputError(
                "the quality preset has a ranker of its own",
                hint="leave one of preset and ranker out",
            )
        return RETRIEVERS.get("bridge-quality")(
            store, links=links, **({} if encoder == DEFAULT_ENCODER else {"encoder": encoder})
        )
    if preset != "fast":
        raise InputError(
            f"no preset is named {preset!r}", hint=did_you_mean(preset, ["fast", "quality"])
        )
    made = links if links is not None else name_links(store.documents)
    vocabulary = Vocabulary.of_store(store)
    return BridgeRetriever(
        store,
        _encoder(encoder),
        made,
        ranker or TreeRanker.load(),
        vocabulary=vocabulary,
        depth=depth,
    )


def _encoder(encoder: str | Encoder) -> Encoder:
    return ENCODERS.get(encoder)() if isinstance(encoder, str) else encoder


_NAMED: dict[str, Callable[..., Retriever]] = {
    "tfidf": tfidf,
    "metadata-tfidf": metadata_tfidf,
    "dense-proxy": dense_proxy,
    "graph": graph,
    "hybrid-metagraph": hybrid_metagraph,
    "bm25": bm25,
    "tfidf-word": tfidf_word,
    "tfidf-char": tfidf_char,
    "hybrid-title": hybrid_title,
    "dense": dense,
    "hybrid": hybrid,
    "rrf": rrf,
    "ppr": ppr,
    "iterative": iterative,
    "filtered": filtered,
    "filtered-rerank": filtered_rerank,
    "bridge": bridge,
}
for _name, _factory in _NAMED.items():
    RETRIEVERS.add(_name, _factory)
