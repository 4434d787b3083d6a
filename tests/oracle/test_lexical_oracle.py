"""Our lexical scores against others': Lucene's BM25 written out and scikit-learn's cosine."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.lexicon import STOP_WORDS
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.memory import Bm25
from suffice.text import tokens
from suffice.types import Document
from suffice_research.retrievers.signals import Tfidf

WORDS = "ada mary soup village astronomy engine byron letter sea mountain the of and 1843".split()
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


def corpus_of(documents: list[str]) -> Corpus:
    return Corpus(Document(str(at), text) for at, text in enumerate(documents))


def lucene(
    documents: list[str], question: str, *, k1: float, b: float, stop_words: frozenset[str]
) -> list[float]:
    """BM25 as Lucene's paper trail writes it, one document and one word at a time."""
    cut = [[word for word in tokens(text) if word not in stop_words] for text in documents]
    mean = sum(map(len, cut)) / len(cut) or 1
    terms = {word for word in tokens(question) if word not in stop_words}
    scores = []
    for words in cut:
        counts = Counter(words)
        score = 0.0
        for word in terms & counts.keys():
            holders = sum(word in other for other in cut)
            idf = math.log(1 + (len(cut) - holders + 0.5) / (holders + 0.5))
            score += idf * counts[word] / (counts[word] + k1 * (1 - b + b * len(words) / mean))
        scores.append(score)
    return scores


@settings(max_examples=60, deadline=None)
@given(
    documents=st.lists(texts, min_size=1, max_size=8),
    question=texts,
    k1=st.sampled_from([0.0, 0.9, 1.2, 1.5]),
    b=st.sampled_from([0.0, 0.75, 1.0]),
    stop_words=st.sampled_from([STOP_WORDS, frozenset[str]()]),
)
def test_bm25_equals_lucenes_formula(
    documents: list[str], question: str, k1: float, b: float, stop_words: frozenset[str]
) -> None:
    ours = Bm25(corpus_of(documents), k1=k1, b=b, stop_words=stop_words).scores([question])[0]
    np.testing.assert_allclose(
        ours, lucene(documents, question, k1=k1, b=b, stop_words=stop_words), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("analyzer", "theirs", "ngrams"), [("word", "word", (1, 2)), ("char", "char_wb", (3, 5))]
)
@pytest.mark.parametrize("sublinear", [True, False])
def test_tfidf_equals_scikit_learns_cosine(
    analyzer, theirs: str, ngrams: tuple[int, int], sublinear: bool
) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.metrics.pairwise import cosine_similarity

    random = np.random.default_rng(3)
    documents = [" ".join(random.choice(WORDS, random.integers(3, 15))) for _ in range(30)]
    questions = [" ".join(random.choice(WORDS, 5)) for _ in range(10)] + ["nothing known"]
    vectorizer = TfidfVectorizer(
        analyzer=theirs, ngram_range=ngrams, sublinear_tf=sublinear, max_df=0.92
    )
    expected = cosine_similarity(
        vectorizer.fit(documents).transform(questions), vectorizer.transform(documents)
    )
    ours = Tfidf(
        corpus_of(documents), analyzer=analyzer, ngrams=ngrams, sublinear=sublinear
    ).scores(questions)
    np.testing.assert_allclose(ours, expected, atol=1e-6)
