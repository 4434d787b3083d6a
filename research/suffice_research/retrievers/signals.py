"""The papers' signals: TF-IDF, metadata agreement, MAGAF's dense proxy, and blends of signals."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize

from suffice.errors import InputError
from suffice.retrieval.corpus import Column, Corpus, RaggedRows, searchable_text
from suffice.retrieval.metadata import Mentions, Vocabulary
from suffice.retrieval.ranking import Scores, Signal
from suffice.retrieval.search import check_fusion, weighted_sum
from suffice.types import FIELDS

__all__ = [
    "Agreement",
    "Analyzer",
    "Background",
    "Blend",
    "DenseProxy",
    "Tfidf",
    "incidence",
]

Analyzer = Literal["word", "char"]

# Character n-grams take a hundred times the memory of the text, so the rest is ignored.
MAX_CHARS = 200_000
SOURCE, CATEGORY, ENTITY, EXACT_DATE, SOURCE_STRING = 0.35, 0.15, 0.40, 0.20, 0.10


def incidence(column: Column) -> sparse.csr_matrix:
    """Which document has which value: a sparse (documents, values) matrix of ones."""
    codes = column.codes
    ones = np.ones(len(codes.values), dtype=np.float32)
    shape = (len(codes), len(column.values))
    return sparse.csr_matrix((ones, codes.values, codes.starts), shape=shape)


@dataclass(frozen=True)
class Background:
    """Document frequencies of terms, for a corpus that is only partly known."""

    documents: int
    holders: Mapping[str, int]

    @classmethod
    def of(
        cls, texts: Iterable[str], *, analyzer: Analyzer = "word", ngrams: tuple[int, int] = (1, 2)
    ) -> Background:
        terms = _vectorizer(analyzer, ngrams, sublinear=True).build_analyzer()
        counts: Counter[str] = Counter()
        documents = 0
        for text in texts:
            documents += 1
            counts.update(set(terms(_cut(text, analyzer))))
        return cls(documents, counts)

    def rarity(self, terms: Sequence[str], max_df: float) -> Any:
        """scikit-learn's IDF of each term; 0 for one in more than `max_df` of the documents."""
        frequency = np.array([self.holders.get(term, 0) for term in terms], dtype=np.float64)
        idf = np.log((1 + self.documents) / (1 + frequency)) + 1
        common = frequency > max_df * self.documents
        return idf if common.all() else np.where(common, 0.0, idf)


class Tfidf:
    """Cosine similarity of TF-IDF vectors over title and text. Case and accents do not matter.

    `analyzer` "word" splits at punctuation and spaces; "char" uses character n-grams inside words,
    padded with a space at both ends. Terms in more than `max_df` of the documents are dropped,
    unless none would remain. Term rarity comes from the corpus, or from a `background` if this is
    only part of a corpus.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        analyzer: Analyzer = "word",
        ngrams: tuple[int, int] = (1, 2),
        sublinear: bool = True,
        max_df: float = 0.92,
        background: Background | None = None,
        name: str = "tfidf",
    ) -> None:
        if analyzer not in ("word", "char"):
            raise InputError(f"analyzer is {analyzer!r}, expected 'word' or 'char'")
        if not 1 <= ngrams[0] <= ngrams[1]:
            raise InputError(
                f"ngrams is {ngrams!r}, expected two numbers like (1, 2)",
                hint="the shortest and the longest n-gram",
            )
        if not 0 < max_df <= 1:
            raise InputError(f"max_df is {max_df!r}, expected a share above 0 and up to 1")
        self.name = name
        texts = [_cut(searchable_text(document), analyzer) for document in corpus.documents]
        vectorizer = _vectorizer(analyzer, ngrams, sublinear=sublinear)
        if background is None:
            self._transform, weights = _fit(texts, max_df, vectorizer)
        else:
            self._transform, weights = _fit_with_background(texts, max_df, vectorizer, background)
        self._weights = _TermWeights(sparse.csr_matrix(weights.T))

    def scores(self, questions: Sequence[str]) -> Scores:
        """(questions, documents), from 0 to 1; 0 where question and document share no term."""
        if self._transform is None or not len(questions):  # scikit-learn rejects an empty list
            return np.zeros((len(questions), self._weights.documents), np.float32)
        return self._weights.product(self._transform(questions))


_Transform = Callable[[Sequence[str]], sparse.csr_matrix]


def _cut(text: str, analyzer: Analyzer) -> str:
    return text[:MAX_CHARS] if analyzer == "char" else text


def _vectorizer(analyzer: Analyzer, ngrams: tuple[int, int], *, sublinear: bool) -> Any:
    return TfidfVectorizer(
        analyzer="char_wb" if analyzer == "char" else "word",
        ngram_range=ngrams,
        sublinear_tf=sublinear,
        strip_accents="unicode",
        dtype=np.float32,
    )


def _fit(
    texts: list[str], max_df: float, vectorizer: Any
) -> tuple[_Transform | None, sparse.csr_matrix]:
    """The vectorizer and the documents' vectors, (documents, terms); None without any term."""
    for share in (max_df, 1.0):
        vectorizer.set_params(max_df=share)
        try:
            weights = vectorizer.fit_transform(texts)
            return vectorizer.transform, weights
        except ValueError:  # scikit-learn's error if no terms remain
            continue
    return None, sparse.csr_matrix((len(texts), 0), dtype=np.float32)


def _fit_with_background(
    texts: list[str], max_df: float, vectorizer: Any, background: Background
) -> tuple[_Transform | None, sparse.csr_matrix]:
    """The same, with the background's term rarity; each text is tokenized once."""
    names = CountVectorizer().get_params()
    counter = CountVectorizer(**{name: vectorizer.get_params()[name] for name in names})
    try:
        counts = counter.fit_transform(texts)
    except ValueError:  # no terms at all
        return None, sparse.csr_matrix((len(texts), 0), dtype=np.float32)
    rarity = background.rarity(counter.get_feature_names_out(), max_df).astype(np.float32)

    def weigh(counted: sparse.csr_matrix) -> sparse.csr_matrix:
        if vectorizer.sublinear_tf:
            counted.data = 1 + np.log(counted.data)
        return normalize(sparse.csr_matrix(counted @ sparse.diags(rarity)), copy=False)

    return lambda questions: weigh(counter.transform(questions)), weigh(counts)


class _TermWeights:
    """What each term adds to each document: (terms, documents), common terms as full rows.

    For a term in many documents, adding a full row is several times faster.
    """

    COMMON = 1 / 8  # of the documents: a full row takes at most four times the memory

    def __init__(self, weights: sparse.csr_matrix) -> None:
        terms, self.documents = weights.shape
        holders = np.diff(weights.indptr)
        common = np.flatnonzero(holders > self.COMMON * self.documents)
        self._row = np.full(terms, -1)
        self._row[common] = np.arange(len(common))
        self._full: Scores = weights[common].toarray()
        rare = np.repeat(self._row < 0, holders)
        starts = np.concatenate([[0], np.cumsum(np.where(self._row < 0, holders, 0))])
        entries = (weights.data[rare], weights.indices[rare], starts)
        self._sparse = sparse.csr_matrix(entries, shape=weights.shape)

    def product(self, questions: sparse.csr_matrix) -> Scores:
        """(questions, terms) -> (questions, documents)."""
        full = self._row[questions.indices]
        question = np.repeat(np.arange(questions.shape[0]), np.diff(questions.indptr))
        rare = full < 0
        entries = (questions.data[rare], (question[rare], questions.indices[rare]))
        product = sparse.csr_matrix(entries, shape=questions.shape) @ self._sparse
        scores: Scores = product.toarray()
        common = np.flatnonzero(full >= 0)
        weights = questions.data[common]
        for at, row, weight in zip(question[common].tolist(), full[common].tolist(), weights):
            scores[at] += weight * self._full[row]
        return scores


class Agreement:
    """How well a document's metadata agrees with what the question names (MAGAF 3.4), 0 to 1.20.

    0.35 for its source, 0.15 for its category, 0.40 for one of its entities or its title, 0.20 for
    its exact day. The paper's 0.10 "source-string adjustment for punctuation variants" is added if
    the question has the whole name of the source, ignoring case, punctuation, spacing and a leading
    "The": "The Independent, Sports" gets it for "The Independent - Sports", while "The Independent"
    alone gets 0.35 for every source that starts with it.
    """

    name = "metadata"

    def __init__(self, corpus: Corpus, vocabulary: Vocabulary | None = None) -> None:
        self._vocabulary = vocabulary or Vocabulary.of(corpus)
        titles: dict[str, int] = {}
        codes = [titles.setdefault(document.title, len(titles)) for document in corpus.documents]
        by_title = RaggedRows(np.arange(len(codes) + 1), np.array(codes, np.int64))
        columns = {str(field): corpus.column(field) for field in FIELDS}
        columns["title"] = Column(tuple(titles), by_title)
        self._positions = {name: one.position for name, one in columns.items()}
        self._carriers = {name: incidence(one).T.tocsr() for name, one in columns.items()}

    def scores(self, questions: Sequence[str]) -> Scores:
        return self.of_mentions(self._vocabulary.mentions(questions))

    def of_mentions(self, mentions: Sequence[Mentions]) -> Scores:
        """The same for questions that are already parsed."""
        days = [[day.isoformat() for day in one.days] for one in mentions]
        entities = self._carries("entities", [one.entities for one in mentions])
        titles = self._carries("title", [one.titles for one in mentions])
        parts = (
            (SOURCE, self._carries("source", [one.sources for one in mentions])),
            (SOURCE_STRING, self._carries("source", [one.in_full for one in mentions])),
            (CATEGORY, self._carries("category", [one.categories for one in mentions])),
            (ENTITY, (entities + titles) > 0),
            (EXACT_DATE, self._carries("published_at", days)),
        )
        weighted = (np.float32(weight) * part for weight, part in parts)
        total = sum(weighted, start=sparse.csr_matrix(entities.shape))
        scores: Scores = total.toarray().astype(np.float32)
        return scores

    def _carries(self, name: str, wanted: Sequence[Sequence[str]]) -> sparse.csr_matrix:
        """Which documents have one of the values each question names: (questions, documents)."""
        position, carriers = self._positions[name], self._carriers[name]
        pairs = [
            (row, position[value])
            for row, values in enumerate(wanted)
            for value in values
            if value in position
        ]
        row, column = zip(*pairs) if pairs else ((), ())
        ones = np.ones(len(row), dtype=np.float32)
        shape = (len(wanted), carriers.shape[0])
        return (sparse.csr_matrix((ones, (row, column)), shape=shape) @ carriers) > 0


class Blend:
    """Several signals as one: the weighted sum, each divided by its highest score."""

    def __init__(
        self, signals: Sequence[Signal], *, weights: Sequence[float], name: str = "blend"
    ) -> None:
        self.name, self.signals = name, tuple(signals)
        _, self._weights = check_fusion("sum", weights, len(self.signals))

    def scores(self, questions: Sequence[str]) -> Scores:
        """(questions, documents), from 0 to the sum of the weights; 0 if no signal finds it."""
        parts = np.stack([signal.scores(questions) for signal in self.signals])
        return weighted_sum(parts, self._weights)


class DenseProxy:
    """MAGAF's stand-in for a dense retriever: a blend, with ties broken by a perturbation.

    The perturbation comes from a generator seeded with the sha256 of the question, so it is the
    same in every process. A document that the blend does not find stays unfound.
    """

    name = "dense-proxy"

    def __init__(self, blend: Signal, *, perturbation: float = 0.001) -> None:
        self.blend, self.perturbation = blend, perturbation

    def scores(self, questions: Sequence[str]) -> Scores:
        """(questions, documents): the blend's scores, each at most `perturbation` higher."""
        scores = np.array(self.blend.scores(questions), dtype=np.float32)
        for question, row in zip(questions, scores):
            digest = hashlib.sha256(question.encode("utf-8", "replace")).digest()
            rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
            noise = rng.random(len(row), dtype=np.float32)
            row += np.float32(self.perturbation) * noise * (row > 0)
        return scores
