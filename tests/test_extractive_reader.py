"""The reader without a model: which sentence it cites, which span it answers with."""

from __future__ import annotations

import time

import pytest
from tests.small_world import FILMS

from suffice.answering.answer_type import AnswerType, expected_answer_type
from suffice.answering.extractive_reader import (
    MAX_SENTENCES,
    ExtractiveReader,
    Passage,
    Reading,
    passage_from_document,
)
from suffice.types import Document

PASSAGES = [passage_from_document(document) for document in FILMS]
DOG = PASSAGES[0]


def read(question: str, expects: AnswerType, passages: list[Passage] = PASSAGES) -> Reading:
    return ExtractiveReader().read(question, expects, passages)


@pytest.mark.parametrize(
    ("question", "expects", "answer", "cited"),
    [
        ("Who is the director of the film Dog Law?", AnswerType.PERSON, "Jerome Storm", ("dog", 0)),
        ("When was Jerome Storm born?", AnswerType.DATE, "November 11, 1890", ("storm", 0)),
        ("When did Jerome Storm die?", AnswerType.DATE, "July 10, 1958", ("storm", 0)),
        ("When did Ermengarde of Tours die?", AnswerType.DATE, "20 March 851", ("ermengarde", 0)),
        (
            "Who is the mother of Lothair II?",
            AnswerType.PERSON,
            "Ermengarde of Tours",
            ("lothair", 1),
        ),
        ("Which country is Aki Kaurismäki from?", AnswerType.COUNTRY, "Finnish", ("aki", 0)),
        ("When was Dog Law released?", AnswerType.DATE, "1928", ("dog", 0)),
    ],
)
def test_the_answer_is_a_span_of_the_sentence_that_says_it(
    question: str, expects: AnswerType, answer: str, cited: tuple[str, int]
) -> None:
    reading = read(question, expects)
    (citation,) = reading.citations
    assert reading.answer == answer
    assert (citation.doc_id, citation.sentence) == cited
    assert answer in citation.text


def test_the_roles_in_its_sentence_can_speak_against_an_answer() -> None:
    vera = Passage("holm", "Vera Holm", ("Vera Holm taught Silas Byron.",))
    assert read("Who taught Silas Byron?", AnswerType.PERSON, [vera]).answer == "Vera Holm"
    assert read("Who taught Vera Holm?", AnswerType.PERSON, [vera]).answer is None


def test_a_sentence_with_all_words_of_the_question_says_yes_or_no() -> None:
    leave = Passage("leave", "Leave", ("Unused leave cannot be carried over into the next year.",))
    vera = Passage("holm", "Vera Holm", ("Vera Holm, a cellist, once taught Silas Byron.",))
    assert read("Can unused leave be carried over?", AnswerType.YES_NO, [leave]).answer == "no"
    assert read("Did Vera Holm teach Silas Byron?", AnswerType.YES_NO, [vera]).answer == "yes"


def test_a_sentence_about_somebody_else_is_not_an_answer() -> None:
    reading = read("When did Maclean Rogers die?", AnswerType.DATE)
    assert reading.answer is None
    assert reading.score < 0.5


def test_a_death_is_not_dated_by_a_birth() -> None:
    assert read("When did Aki Kaurismäki die?", AnswerType.DATE).answer is None


def test_yes_needs_nearly_every_word_in_one_sentence() -> None:
    assert read("Is Dog Law a silent western?", AnswerType.YES_NO).answer == "yes"
    assert read("Is Dog Law a musical comedy opera?", AnswerType.YES_NO).answer == "no"


def test_no_needs_a_sentence_about_the_subject() -> None:
    besson = passage_from_document(
        Document("besson", "Luc Besson is a French film director.", "Luc Besson")
    )
    stevens = passage_from_document(
        Document("stevens", "George Stevens was an American cinematographer.", "George Stevens")
    )
    reading = read("Is Luc Besson American cinematographers?", AnswerType.YES_NO, [stevens, besson])
    assert (reading.answer, reading.citations[0].doc_id) == ("no", "besson")
    assert (
        read("Is Ada Byron American cinematographers?", AnswerType.YES_NO, [stevens]).answer is None
    )
    denied = passage_from_document(
        Document("x", "Luc Besson is not a French film director.", "Luc Besson")
    )
    assert read("Is Luc Besson a French film director?", AnswerType.YES_NO, [denied]).answer == "no"


LIVED = "Al Lee (April 8, 1908 in Mendoza – January 11, 1987 in Tigre) sang."
RANK = "Al Lee is the daughter of Eve Roe, the former U.S. Ambassador."


@pytest.mark.parametrize(
    ("question", "expects", "text", "answer"),
    [
        ("When did Al Lee die?", AnswerType.DATE, LIVED, "January 11, 1987"),
        ("Where did Al Lee die?", AnswerType.PLACE, LIVED, "Tigre"),
        ("Where was Al Lee born?", AnswerType.PLACE, LIVED, "Mendoza"),
        ("Where was Al Lee born?", AnswerType.PLACE, ("Al Lee holds the title of People's " "Artist of Ukraine."), None),
        ("When was Al Lee born?", AnswerType.DATE, ("Al Lee (May 30, 1896 December 26, 1977) " "was a director."), "May 30, 1896"),
        ("When was Al Lee born?", AnswerType.DATE, "Al Lee published a book in 1903.", None),
        (("How many acts does Al Lee " "have?"), AnswerType.NUMBER, ("Al Lee is a 1882 opera in " "three acts."), "three"),
        (("How many acts does Al Lee " "have?"), AnswerType.NUMBER, ("Al Lee is an opera of 1882 " "that 40 people saw."), None),
        (("Who is the father of Al " "Lee?"), AnswerType.PERSON, ("Al Lee is the son of " "Croatian-American sculptor Al Rex."), "Al Rex"),
        (("Who is the founder of Al " "Lee?"), AnswerType.PERSON, ("Founded in 1948 by Ann Pinzón, " "Al Lee is a school."), "Ann Pinzón"),
        ("Who is the mother of Al Lee?", AnswerType.PERSON, RANK, "Eve Roe"),
        (("Which country is Al Lee " "from?"), AnswerType.COUNTRY, ("Al Lee (born in Germany) was " "an Australian painter."), "Australian"),
        ("What profession is Al Lee?", AnswerType.KIND, ("Al Lee was a French painter " "who sang."), "French painter"),
    ],
)  # fmt: skip
def test_lives_counts_and_kinship_are_read_as_encyclopaedias_write_them(
    question: str, expects: AnswerType, text: str, answer: str | None
) -> None:
    assert (
        read(question, expects, [passage_from_document(Document("x", text, "Al Lee"))]).answer
        == answer
    )


def test_a_films_country_is_not_its_directors() -> None:
    film = passage_from_document(
        Document(
            "f", "How Sweet It Is is an American film directed by Brian Herz.", "How Sweet It Is"
        )
    )
    assert read("Which country is Brian Herz from?", AnswerType.COUNTRY, [film]).answer is None


def test_of_namesakes_the_one_with_the_exact_title_answers() -> None:
    old = passage_from_document(
        Document("old", "Body and Soul is a 1927 silent film.", "Body and Soul (1927 film)")
    )
    new = passage_from_document(
        Document("new", "On Body and Soul is a 2017 Hungarian film.", "On Body and Soul")
    )
    reading = read("When was On Body And Soul released?", AnswerType.DATE, [old, new])
    assert (reading.answer, reading.rivals) == ("2017", ())


def test_the_title_of_a_document_of_the_asked_kind_can_be_the_answer() -> None:
    morris = Document(
        "m",
        "Garrett Morris is an American comedian. He played Stan Winters in the sitcom Martin.",
        "Garrett Morris",
    )
    show = Document(
        "s", "Saturday Night Live is a show created by Lorne Michaels.", "Saturday Night Live"
    )
    question = (
        "Which American comedian starred in Saturday Night Live and played Stan Winters in Martin?"
    )
    assert (
        read(
            question, AnswerType.THING, [passage_from_document(show), passage_from_document(morris)]
        ).answer
        == "Garrett Morris"
    )


@pytest.mark.parametrize(
    "text", ["", "   ", "\x00" * 50, "word " * 200_000, "‮" * 10, "a" * 100_000]
)
def test_odd_documents_are_read_without_errors(text: str) -> None:
    passage = passage_from_document(Document("x", text, text[:300]))
    assert len(passage.sentences) <= MAX_SENTENCES
    assert (
        read("Who is the director of Dog Law?", AnswerType.PERSON, [passage, DOG]).answer
        == "Jerome Storm"
    )
    assert (
        read(text[:2000], AnswerType.THING, [passage]).citations
        == read(text[:2000], AnswerType.THING, [passage]).citations
    )


@pytest.mark.parametrize(
    "shape",
    ["A ", "A, ", '"Aa b ', "is a ", "(1900 – ", "183127 October 1888 ", "A, 1st Duke of ", "A-"],
)
def test_a_page_of_nonsense_is_read_quickly(shape: str) -> None:
    page = passage_from_document(Document("x", ". \n".join([(shape * 800)[:790]] * 12), "Al Lee"))
    begun = time.process_time()
    for question in (
        "Who is the mother of Al Lee?",
        "Where was Al Lee born?",
        "What profession is Al Lee?",
    ):
        read(question, expected_answer_type(question), [page])
    assert time.process_time() - begun < 2


def test_no_passages_give_no_answer() -> None:
    assert read("Who?", AnswerType.PERSON, []) == Reading(None)


def test_turns_of_a_chat_items_and_headings_are_sentences_of_their_own() -> None:
    chat = "[09:05] Sam: they come on Thursday\n[09:07] Nora: thanks\nMum: Petra bakes it\n- one\n- two"
    assert len(passage_from_document(Document("chat", chat)).sentences) == 5
    prose = "A line that is wrapped\nin the middle. And a second."
    assert len(passage_from_document(Document("prose", prose)).sentences) == 2
