"""BM25 and TF-IDF on small corpora: what scores, what does not, and hostile texts."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from suffice.errors import InputError
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.memory import Bm25, MemoryStore
from suffice.retrieval.search import SignalRetriever, TextSearch
from suffice.types import Document, RetrieverScore
from suffice_research.retrievers.signals import Tfidf

VILLAGE = Corpus(
    [
        Document(
            "ada", "Ada Lovelace was taught mathematics by Mary Somerville.", title="Ada Lovelace"
        ),
        Document("mary", "Mary Somerville wrote about astronomy.", title="Mary Somerville"),
        Document("cook", "The soup of the day is leek and potato.", title="Menu"),
    ]
)

SIGNALS = {
    "bm25": lambda corpus: Bm25(corpus),
    "word": lambda corpus: Tfidf(corpus),
    "char": lambda corpus: Tfidf(corpus, analyzer="char", ngrams=(3, 5)),
}
every_signal = pytest.mark.parametrize("make", SIGNALS.values(), ids=SIGNALS)


@every_signal
def test_the_document_that_shares_words_wins_and_a_stranger_scores_zero(make) -> None:
    scores = make(VILLAGE).scores(["astronomy of Mary Somerville", "quux zyzzyva"])
    assert scores.shape == (2, 3)
    assert scores.dtype == np.float32
    assert scores[0].argmax() == 1
    assert scores[1].tolist() == [0, 0, 0]


@every_signal
def test_an_empty_question_finds_nothing(make) -> None:
    assert not make(VILLAGE).scores(["", "   ", "?!"]).any()
    assert make(VILLAGE).scores([]).shape == (0, 3)


@every_signal
@pytest.mark.parametrize(
    "texts",
    [
        [],
        [""],
        ["", "..."],
        ["the of and"],
        ["same"],
        ["same", "same"],
        ["\x00\x01", "\ud800 broken"],
    ],
)
def test_a_corpus_of_no_or_few_words_does_not_crash(make, texts: list[str]) -> None:
    corpus = Corpus(Document(str(at), text) for at, text in enumerate(texts))
    scores = make(corpus).scores(["same the ..."])
    assert scores.shape == (1, len(texts))
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()


@every_signal
def test_a_question_of_100_000_characters_is_answered(make) -> None:
    question = ("Mary Somerville and the soup " * 4000)[:100_000]
    assert (make(VILLAGE).scores([question]) > 0).all()


@every_signal
def test_a_document_of_10_megabytes_is_indexed_beside_a_small_one(make) -> None:
    huge = "lorem ipsum dolor sit amet " * 400_000
    corpus = Corpus(
        [
            Document("huge", huge),
            Document("small", "ipsum of the village"),
            Document("other", "village"),
        ]
    )
    scores = make(corpus).scores(["village", "dolor"])
    assert scores[0].argmax() == 2
    assert scores[1].argmax() == 0


@every_signal
@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("תורת היחסות של איינשטיין", "איינשטיין"),
        ("نظرية النسبية لأينشتاين", "النسبية"),
        ("tab\tnew\nline\x07bell caf\u00e9", "line bell"),
        ("🙂 emoji Ω ß straße", "straße"),
    ],
)
def test_right_to_left_accented_and_control_characters_are_found(
    make, text: str, question: str
) -> None:
    corpus = Corpus(
        [Document("a", text), Document("b", "something else"), Document("c", "and more")]
    )
    assert make(corpus).scores([question])[0].argmax() == 0
    assert make(corpus).scores([question])[0, 0] > 0


def test_a_chinese_word_is_found_inside_a_sentence_without_spaces() -> None:
    corpus = Corpus([Document("a", "相对论是爱因斯坦提出的"), Document("b", "今天的汤是土豆汤")])
    assert Bm25(corpus).scores(["爱因斯坦"])[0].argmax() == 0
    assert Tfidf(corpus, analyzer="char", ngrams=(3, 5)).scores(["爱因斯坦提"])[0].argmax() == 0


def test_a_word_counts_once_however_often_the_question_repeats_it() -> None:
    scores = Bm25(VILLAGE).scores(["mary soup", "mary mary mary soup soup"])
    assert scores[0].tolist() == scores[1].tolist()


def test_stop_words_find_nothing_unless_the_list_is_emptied() -> None:
    assert not Bm25(VILLAGE).scores(["the of and"]).any()
    assert Bm25(VILLAGE, stop_words=()).scores(["the of and"])[0, 2] > 0


def test_accents_do_not_matter_to_tfidf() -> None:
    corpus = Corpus(
        [
            Document("a", "Charlotte Brontë"),
            Document("b", "Charlotte Church"),
            Document("c", "Emil Nolde"),
        ]
    )
    assert Tfidf(corpus).scores(["bronte"])[0].argmax() == 0


def test_character_grams_forgive_a_misspelling() -> None:
    scores = Tfidf(VILLAGE, analyzer="char", ngrams=(3, 5)).scores(["Sommervile astronmy"])[0]
    assert scores.argmax() == 1
    assert not Tfidf(VILLAGE).scores(["Sommervile astronmy"]).any()


@pytest.mark.parametrize("bad", [{"k1": -1}, {"k1": float("nan")}, {"b": 1.5}, {"b": float("nan")}])
def test_bm25_refuses_impossible_settings(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match="expected a number"):
        Bm25(VILLAGE, **bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad",
    [{"analyzer": "byte"}, {"ngrams": (2, 1)}, {"ngrams": (0, 1)}, {"max_df": 0.0}, {"max_df": 2}],
)
def test_tfidf_refuses_impossible_settings(bad) -> None:
    with pytest.raises(InputError, match="expected"):
        Tfidf(VILLAGE, **bad)


def test_making_an_index_says_nothing(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO):
        Bm25(VILLAGE).scores(["ada"])
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_a_signal_as_a_retriever_names_itself_in_its_hits() -> None:
    ((hit, *_),) = SignalRetriever(VILLAGE, [Bm25(VILLAGE)]).search(["ada"], k=2)
    assert hit.doc_id == "ada"
    assert hit.parts == (RetrieverScore("bm25", hit.score),)  # type: ignore[arg-type]


def test_text_search_through_a_store_equals_the_signal() -> None:
    questions = ["who taught Ada mathematics", "", "soup"]
    through = TextSearch(MemoryStore(VILLAGE.documents)).search(questions, k=3)
    assert through == SignalRetriever(VILLAGE, [Bm25(VILLAGE)]).search(questions, k=3)
