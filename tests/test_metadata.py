from __future__ import annotations

import numpy as np
import pytest
from tests.corpora import documents

from suffice.retrieval.corpus import Corpus
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.metadata import Mentions, Vocabulary, matching_metadata
from suffice.types import Document
from suffice_research.retrievers.signals import Agreement

NEWSROOM = documents("metadata")
FOX = ("FOX News - Lifestyle", "FOX News - Health")
INDEPENDENT = ("The Independent - Sports", "The Independent - Travel")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.of(Corpus(NEWSROOM))


def read(question: str, vocabulary: Vocabulary) -> Mentions:
    return vocabulary.mentions([question])[0]


@pytest.mark.parametrize(
    ("question", "sources"),
    [
        ("What does The Verge say?", ("The Verge",)),
        ("What does 'The Verge' say?", ("The Verge",)),
        ("What is “The Verge”’s view?", ("The Verge",)),
        ("What was THE VERGE'S view?", ("The Verge",)),
        ("Does the Verge article agree?", ("The Verge",)),
        ("A report by Verge said so.", ("The Verge",)),
        ("Did Fox News report it?", FOX),
        ("Did FOX News - Health report it?", ("FOX News - Health",)),
        ("Did FOX News, Health report it?", ("FOX News - Health",)),
        ("Did The Independent and the Age report agree?", (*INDEPENDENT, "The Age")),
        ("Both CBS Sports and CBSSports.com wrote it.", ("CBSSports.com",)),
        ("Did CBSSports say so?", ("CBSSports.com",)),
        ("As Globes English reported", ("Globes English | Israel Business Arena",)),
        ("A Live Science piece", ("Live Science: The Most Interesting Articles",)),
        ("Circuit and Code or Circuit Code", ("Circuit & Code",)),
        ("what did the verge report about ftx?", ("The Verge",)),
    ],
)
def test_sources_are_found_however_they_are_written(
    question: str, sources: tuple[str, ...], vocabulary: Vocabulary
) -> None:
    assert read(question, vocabulary).sources == sources


@pytest.mark.parametrize(
    "question",
    [
        "What was decided at the age of thirty?",
        "Who was on the verge of ruin?",
        "He made a fortune in the business world.",
        "Which Fortune 500 company was it?",
        "Who runs the independent press?",
        "What is live science about?",
        "The Times of India wrote it.",
        "",
    ],
)
def test_common_words_and_unknown_papers_are_no_sources(
    question: str, vocabulary: Vocabulary
) -> None:
    assert read(question, vocabulary).sources == ()


def test_a_source_behind_a_not_is_excluded(vocabulary: Vocabulary) -> None:
    mentions = read("Who was praised by some but not by The Verge, as Fortune wrote?", vocabulary)
    assert mentions.excluded == ("The Verge",)
    assert mentions.sources == ("Fortune",)


def test_whole_names_are_told_from_heads(vocabulary: Vocabulary) -> None:
    mentions = read("Do Fox News and The Independent - Sports agree?", vocabulary)
    assert mentions.sources == (*FOX, "The Independent - Sports")
    assert mentions.in_full == ("The Independent - Sports",)


@pytest.mark.parametrize(
    ("question", "categories"),
    [
        ("Which business article says so?", ("business",)),
        ("Is it in the Sports section?", ("sports",)),
        ("Look under category: science", ("science",)),
        ("Health news of the week", ("health",)),
        ("How did it change its business practices?", ()),
        ("Does BBC Sports report it?", ()),
        ("Does 'Science News For Students' say so?", ()),
        ("Does the Globes English | Israel Business Arena article say so?", ()),
    ],
)
def test_a_category_counts_beside_a_word_about_news(
    question: str, categories: tuple[str, ...], vocabulary: Vocabulary
) -> None:
    assert read(question, vocabulary).categories == categories


def test_entities_and_titles_are_named_longest_first(vocabulary: Vocabulary) -> None:
    mentions = read(
        "After the FTX trial begins, what did Sam Bankman Fried tell Travis Kelce?", vocabulary
    )
    assert mentions.entities == ("Sam Bankman-Fried", "Travis Kelce")
    assert mentions.titles == ("The FTX trial begins",) or mentions.titles == ()
    assert read("What about The FTX Trial Begins?", vocabulary).titles == ("The FTX trial begins",)
    assert read("What about FTX?", vocabulary).entities == ("FTX",)


def test_a_corpus_without_dates_has_no_date_mentions() -> None:
    plain = Vocabulary({"source": ["The Verge"]})
    assert not read("in October 2023, on October 4, 2023", plain)


def test_a_store_gives_the_same_vocabulary_but_for_titles(vocabulary: Vocabulary) -> None:
    stored = Vocabulary.of_store(MemoryStore(NEWSROOM))
    question = "Did The Verge or Fox News write on FTX in the business section on October 4, 2023?"
    assert read(question, stored) == read(question, vocabulary)


def test_an_empty_vocabulary_finds_nothing() -> None:
    assert read("Did The Verge write it?", Vocabulary({})) == Mentions()


def test_a_question_of_100_000_characters_is_read(vocabulary: Vocabulary) -> None:
    long = "What does The Verge say about FTX? " * 3000
    assert read(long, vocabulary).entities == ("FTX",)


def test_agreement_adds_up_as_in_the_paper() -> None:
    agreement = Agreement(Corpus(NEWSROOM))
    scores = agreement.scores(
        [
            "What does the business article of The Verge on FTX say on October 4, 2023?",
            "Did Fox News report it?",
            "Did FOX News: Health report it?",
            "Which company was it?",
        ]
    )
    ids = [document.doc_id for document in NEWSROOM]
    assert scores.dtype == np.float32
    assert scores.shape == (4, len(NEWSROOM))
    assert scores[0, ids.index("ftx")] == pytest.approx(0.35 + 0.10 + 0.15 + 0.40 + 0.20)
    assert scores[0, ids.index("globes")] == pytest.approx(0.15)
    assert scores[1, [ids.index("fox-life"), ids.index("fox-health")]].tolist() == pytest.approx(
        [0.35, 0.35]
    )
    assert scores[2, [ids.index("fox-life"), ids.index("fox-health")]].tolist() == pytest.approx(
        [0.0, 0.45]
    )
    assert not scores[3].any()


def test_a_named_title_agrees_like_an_entity() -> None:
    corpus = Corpus(
        [Document("a", "", title="Ada Lovelace"), Document("b", "", title="Charles Babbage")]
    )
    assert Agreement(corpus).scores(["Who taught Ada Lovelace?"]).tolist() == [
        [pytest.approx(0.40), 0.0]
    ]


def test_agreement_of_nothing_is_nothing() -> None:
    assert Agreement(Corpus([])).scores(["Who?"]).shape == (1, 0)
    assert Agreement(Corpus(NEWSROOM)).scores([]).shape == (0, len(NEWSROOM))


def test_a_document_says_what_it_carries(vocabulary: Vocabulary) -> None:
    mentions = read(
        "What did The Verge's business article say of FTX on October 4, 2023 and in October 2023?",
        vocabulary,
    )
    assert matching_metadata(mentions, NEWSROOM[0]) == (
        "source: The Verge",
        "category: business",
        "entity: FTX",
        "date: 2023-10-04",
        "date: 2023-10-01 to 2023-10-31",
    )
    assert matching_metadata(mentions, NEWSROOM[-1]) == ()
