"""Lexical signals: Okapi BM25, TF-IDF over words, TF-IDF over characters.

All three are one sparse product: a (questions, terms) matrix times the (terms, documents) matrix made once from the corpus.
A score of zero means that question and document share no term: no hit.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from suffice.errors import InputError
from suffice.protocols import Store
from suffice.retrieval.corpus import Corpus, searchable_text
from suffice.retrieval.ranking import Scores, check_search, name_parts
from suffice.text import STOP_WORDS, tokens
from suffice.types import Filter, Hit

__all__ = ["Analyzer", "Background", "Bm25", "TextSearch", "Tfidf"]

Analyzer = Literal["word", "char"]

CHARACTERS = 200_000  # character n-grams take a hundred times the memory of the text; what follows in a longer one is not read


class Bm25:
    """Okapi BM25 over title and text, in Lucene's form, whose IDF is never negative; the index is bm25s's.

    A word counts once however often the question repeats it: repetition in a question is grammar, not emphasis.
    Words that no document holds are passed over.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        k1: float = 1.2,
        b: float = 0.75,
        stop_words: Collection[str] = STOP_WORDS,
        name: str = "bm25",
    ) -> None:
        if not (math.isfinite(k1) and k1 >= 0):
            raise InputError(
                f"k1 is {k1!r}, expected a number of at least 0",
                hint="usual values lie between 0.9 and 2.0",
            )
        if not 0 <= b <= 1:
            raise InputError(
                f"b is {b!r}, expected a number from 0 to 1", hint="the usual value is 0.75"
            )
        self.name = name
        self._stop_words = frozenset(stop_words)
        self._term: dict[str, int] = {}
        rows = [
            [
                self._term.setdefault(word, len(self._term))
                for word in tokens(searchable_text(document))
                if word not in self._stop_words
            ]
            for document in corpus.documents
        ]
        self._weights = TermWeights(_bm25_weights(rows, self._term, k1, b))

    def scores(self, questions: Sequence[str]) -> Scores:
        """(questions, documents); a document that shares no word with the question scores 0."""
        terms: list[int] = []
        starts = [0]
        for question in questions:
            terms += sorted({self._term[word] for word in tokens(question) if word in self._term})
            starts.append(len(terms))
        ones = np.ones(len(terms), np.float32)
        asked = sparse.csr_matrix((ones, terms, starts), shape=(len(questions), len(self._term)))
        return self._weights.product(asked)


def _bm25_weights(
    rows: list[list[int]], term: dict[str, int], k1: float, b: float
) -> sparse.csr_matrix:
    """What each term adds to each document's score: (terms, documents)."""
    if not term:  # bm25s divides by the mean length
        return sparse.csr_matrix((0, len(rows)), dtype=np.float32)
    import bm25s  # late: slow to import

    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG when imported
    index = bm25s.BM25(k1=k1, b=b, method="lucene")
    index.index((rows, term), create_empty_token=False, show_progress=False)
    # bm25s keeps a (documents, terms) matrix by columns, which is the same arrays as (terms, documents) by rows.
    arrays = (index.scores["data"], index.scores["indices"], index.scores["indptr"])
    return sparse.csr_matrix(arrays, shape=(len(term), len(rows)))


@dataclass(frozen=True)
class Background:
    """In how many of so many documents each term stands: how rare terms are in a corpus of which only a part is at hand."""

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
        held = np.array([self.holders.get(term, 0) for term in terms], dtype=np.float64)
        idf = np.log((1 + self.documents) / (1 + held)) + 1
        return (
            np.where(held > max_df * self.documents, 0.0, idf)
            if (held <= max_df * self.documents).any()
            else idf
        )


class Tfidf:
    """Cosine similarity of TF-IDF vectors over title and text.

    `analyzer` "word" cuts at punctuation and spaces; "char" takes character n-grams inside words, padded with a space at their
    ends, so that an n-gram knows where a word begins, of the first 200,000 characters of a document. Case and accents do not
    matter. Terms in more than `max_df` of the documents are left out, unless that would leave none (a corpus of one document).
    How rare a term is says the corpus itself, or a `background` where it is only a part of one.
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
        self._transform, weights = _fit(
            texts, max_df, _vectorizer(analyzer, ngrams, sublinear=sublinear), background
        )
        self._weights = TermWeights(sparse.csr_matrix(weights.T))

    def scores(self, questions: Sequence[str]) -> Scores:
        """(questions, documents), between 0 and 1; a document that shares no term with the question scores 0."""
        if self._transform is None or not len(
            questions
        ):  # scikit-learn refuses to transform nothing
            return np.zeros((len(questions), self._weights.documents), np.float32)
        return self._weights.product(self._transform(questions))


_Transform = Callable[[Sequence[str]], sparse.csr_matrix]


def _cut(text: str, analyzer: Analyzer) -> str:
    return text[:CHARACTERS] if analyzer == "char" else text


def _vectorizer(analyzer: Analyzer, ngrams: tuple[int, int], *, sublinear: bool) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer  # late: slow to import

    return TfidfVectorizer(
        analyzer="char_wb" if analyzer == "char" else "word",
        ngram_range=ngrams,
        sublinear_tf=sublinear,
        strip_accents="unicode",
        dtype=np.float32,
    )


def _fit(
    texts: list[str], max_df: float, vectorizer: Any, background: Background | None
) -> tuple[_Transform | None, sparse.csr_matrix]:
    """The vectorizer and the documents' vectors, (documents, terms); no vectorizer where the texts hold no term at all."""
    if background is not None:
        return _fit_with_background(texts, max_df, vectorizer, background)
    for share in (max_df, 1.0):
        vectorizer.set_params(max_df=share)
        try:
            weights = vectorizer.fit_transform(texts)
            return vectorizer.transform, weights
        except ValueError:  # scikit-learn's only word for "no terms remain"
            continue
    return None, sparse.csr_matrix((len(texts), 0), dtype=np.float32)


def _fit_with_background(
    texts: list[str], max_df: float, vectorizer: Any, background: Background
) -> tuple[_Transform | None, sparse.csr_matrix]:
    """The same, with the background's word on how rare a term is; each text is cut into terms once."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize

    counter = CountVectorizer(
        **{name: vectorizer.get_params()[name] for name in CountVectorizer().get_params()}
    )
    try:
        counts = counter.fit_transform(texts)
    except ValueError:  # no terms at all
        return None, sparse.csr_matrix((len(texts), 0), dtype=np.float32)
    rarity = sparse.diags(
        background.rarity(counter.get_feature_names_out(), max_df).astype(np.float32)
    )

    def weigh(counted: sparse.csr_matrix) -> sparse.csr_matrix:
        if vectorizer.sublinear_tf:
            counted.data = 1 + np.log(counted.data)
        return normalize(sparse.csr_matrix(counted @ rarity), copy=False)

    return lambda questions: weigh(counter.transform(questions)), weigh(counts)


class TermWeights:
    """What each term adds to each document: (terms, documents), the common terms as full rows, the others sparse.

    A common term touches so many documents that adding its whole row is several times faster than picking them one by one.
    """

    COMMON = (
        1 / 8
    )  # of the documents: where a full row takes at most four times the memory of its entries

    def __init__(self, weights: sparse.csr_matrix) -> None:
        terms, self.documents = weights.shape
        holders = np.diff(weights.indptr)
        common = np.flatnonzero(holders > self.COMMON * self.documents)
        self._row = np.full(terms, -1)
        self._row[common] = np.arange(len(common))
        self._full: Scores = weights[common].toarray()
        rare = np.repeat(self._row < 0, holders)
        starts = np.concatenate([[0], np.cumsum(np.where(self._row < 0, holders, 0))])
        self._sparse = sparse.csr_matrix(
            (weights.data[rare], weights.indices[rare], starts), shape=weights.shape
        )

    def product(self, asked: sparse.csr_matrix) -> Scores:
        """(questions, terms) -> (questions, documents)."""
        full = self._row[asked.indices]
        question = np.repeat(np.arange(asked.shape[0]), np.diff(asked.indptr))
        rare = full < 0
        entries = (asked.data[rare], (question[rare], asked.indices[rare]))
        scores: Scores = (sparse.csr_matrix(entries, shape=asked.shape) @ self._sparse).toarray()
        common = np.flatnonzero(full >= 0)
        for at, row, weight in zip(
            question[common].tolist(), full[common].tolist(), asked.data[common]
        ):
            scores[at] += weight * self._full[row]
        return scores


class TextSearch:
    """BM25 as the store does it: the retriever for corpora that live on disk or on other machines."""

    def __init__(self, store: Store, *, name: str = "bm25") -> None:
        self.store, self.name = store, name

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = check_search(questions, k, filters)
        return name_parts(self.name, self.store.search_text(questions, k=k, filters=filters))
