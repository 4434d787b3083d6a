"""The reader that finds answers: forms, sentences, and what `ask` makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.small_world import BRIDGE, TinyLibrary, Wants

from suffice.answering.answer_type import AnswerType, has_form
from suffice.answering.ask import AskPolicy, ask
from suffice.answering.review import review
from suffice.answering.span_reader import (
    Fits,
    Passage,
    SpanReader,
    answer_finder,
    passage_from_document,
)
from suffice.errors import NotReadyError
from suffice.gate.gate import Gate
from suffice.types import Action, Document, FoundAnswer, Support

LEASE = Passage("lease", "Lease", ("Rent is due on the first.", "The deposit is two rents."))
PETS = Passage("pets", "", ("Dogs need a permit.",))


def finds(text: str, place: int = 0, start: int = 0, p: float = 0.9) -> SpanReader:
    return SpanReader(lambda *_: FoundAnswer(text, place, start, start + len(text), p))


def test_an_answer_cites_the_sentence_it_stands_in() -> None:
    start = len("Rent is due on the first. The deposit is ")
    reading = finds("two rents", 0, start).read(
        "How much is the deposit?", AnswerType.NUMBER, [LEASE, PETS]
    )
    assert (reading.answer, reading.score, reading.by) == ("two rents", 0.9, "reader")
    (cited,) = reading.citations
    assert (cited.doc_id, cited.sentence) == ("lease", 1)
    judged = review("How much is the deposit?", reading, [LEASE, PETS], hops=1)
    assert (judged.confidence, judged.support, judged.by) == (0.9, Support.ATTRIBUTABLE, "reader")


def test_an_answer_has_no_half_of_a_pair_of_marks_or_of_a_name() -> None:
    def answer(said: str, kind: AnswerType, text: str) -> str | None:
        passage = Passage("doc", "", (text,))
        return finds(said, 0, text.index(said)).read("What is asked?", kind, [passage]).answer

    command = "Roll back with `make rollback`."
    assert answer("make rollback`", AnswerType.THING, command) == "make rollback"
    assert answer("with `make rollback`", AnswerType.THING, command) == "with `make rollback`"
    assert answer("Ermengarde", AnswerType.PERSON, "Ermengarde of Tours.") == "Ermengarde of Tours"


@pytest.mark.parametrize(
    ("answer", "kind", "fits"),
    [
        ("Nora Lind", AnswerType.PERSON, True),
        ("the caretaker", AnswerType.PERSON, True),
        ("1984", AnswerType.PERSON, False),
        ("12 May 1984", AnswerType.PLACE, False),
        ("Bruges", AnswerType.PLACE, True),
        ("Encoding", AnswerType.NUMBER, False),
        ("two rents", AnswerType.NUMBER, True),
        ("on Friday", AnswerType.DATE, True),
        ("the caretaker", AnswerType.DATE, False),
        ("yes", AnswerType.YES_NO, True),
        ("no", AnswerType.THING, False),
        ("a lock", AnswerType.YES_NO, False),
        ("dogs need a permit", AnswerType.YES_NO, True),
        ("a lock", AnswerType.THING, True),
    ],
)
def test_an_answer_of_another_form_is_none(answer: str, kind: AnswerType, fits: bool) -> None:
    assert has_form(answer, kind) is fits
    reading = finds(answer).read("?", kind, [LEASE])
    assert (reading.answer is not None) is fits


def test_nothing_found_and_no_passages_are_no_answer() -> None:
    assert finds("").read("Who?", AnswerType.PERSON, [LEASE]).answer is None
    assert SpanReader(lambda *_: None).read("Who?", AnswerType.PERSON, []).answer is None


POOL = (
    Passage("old", "Pool 2023", ("The pool opens at 7 in the morning.",)),
    Passage("new", "Pool 2024", ("The pool opens at 9 in the morning.",)),
    Passage("dogs", "", ("Dogs stay outside.",)),
)


def opens(
    question: str, titles: Sequence[str], texts: Sequence[str], fits: Fits = bool
) -> FoundAnswer:
    """The first hour in these texts."""
    for place, text in enumerate(texts):
        if "at " in text:
            start = text.index("at ") + 3
            return FoundAnswer(text[start:-1], place, start, len(text) - 1, 0.8)
    return FoundAnswer("", -1, 0, 0, 0.0)


def test_what_another_document_says_as_plainly_is_a_contradiction() -> None:
    question = "When does the pool open?"
    reading = SpanReader(opens).read(question, AnswerType.DATE, POOL)
    assert (reading.answer, reading.rivals) == ("7 in the morning", ("9 in the morning",))
    assert [one.doc_id for one in reading.citations] == ["old", "new"]
    assert review(question, reading, POOL, hops=1).support is Support.CONTRADICTORY
    alone = SpanReader(opens).read(question, AnswerType.DATE, POOL[1:])
    assert (alone.answer, alone.rivals) == ("9 in the morning", ())
    bath = Passage("bath", "", ("The sauna of Bad Elm opens at 9 in the morning.",))
    assert not SpanReader(opens).read(question, AnswerType.DATE, [POOL[0], bath]).rivals


def test_of_two_things_one_is_the_answer() -> None:
    films = [Passage("a", "Dog Law", ("It came out in 1928.",)), PETS]
    which = "Which film came out first, Dog Law or Storm?"
    assert finds("Dog Law").read(which, AnswerType.CHOICE, films).answer == "Dog Law"
    assert finds("1928").read(which, AnswerType.CHOICE, films).answer is None


class Splitting(Wants):
    """A gate whose reader doubts that the evidence is complete."""

    p = 0.45


def test_a_chain_is_as_likely_right_as_its_steps_and_complete_as_the_gate_says() -> None:
    def last(policy: AskPolicy) -> tuple[float, float]:
        trace = ask(BRIDGE, TinyLibrary(), Splitting("lothair", "ermengarde"), policy=policy)
        found = [one.review for one in trace.steps if one.number == 2][-1]
        assert found is not None
        return found.confidence, found.accuracy

    assert last(AskPolicy()) == pytest.approx((0.95**3, 0.95**2))  # the gate's p_complete is 0.95
    assert last(AskPolicy(use_gate=False)) == pytest.approx((0.45**2, 0.95**2))


def test_below_the_level_it_abstains_and_says_what_it_would_need() -> None:
    gate = Wants("lothair", "ermengarde")
    policy = AskPolicy(min_probability=0.95)
    trace = ask(BRIDGE, TinyLibrary(), gate, policy=policy)
    assert (trace.action, trace.answer) == (Action.ABSTAIN, None)
    assert trace.missing[-1].startswith(
        'a sentence that confirms "20 March 851" as the answer to: '
    )
    assert ask(BRIDGE, TinyLibrary(), gate, policy=replace(policy, min_probability=0.5)).answer


def test_ask_needs_a_reader_or_a_model() -> None:
    fast = Gate.load(preset="fast")
    assert answer_finder(object()) is None
    assert answer_finder(fast) is None
    assert answer_finder(Wants()) is not None
    with pytest.raises(NotReadyError, match="nothing can read") as caught:
        ask(BRIDGE, TinyLibrary(), fast)
    assert "--preset standard" in caught.value.hint


def test_an_answer_does_not_run_into_the_next_line() -> None:
    mail = passage_from_document(
        Document("mail", "To: Bettina Krahl\nDate: 9 May 2024\nSubject: the roof of St. Ives Hall")
    )
    assert mail.sentences[:2] == ("To: Bettina Krahl", "Date: 9 May 2024")
    offered = ["Bettina Krahl\nDate", "Bettina Krahl"]

    def find(*given: Any) -> FoundAnswer:
        said = next(one for one in offered if given[3](one))
        return FoundAnswer(said, 0, 4, 4 + len(said), 0.9, p_if_complete=0.9)

    reading = SpanReader(find).read("Who mends the roof?", AnswerType.PERSON, [mail])
    assert reading.answer == "Bettina Krahl"


def test_rows_of_a_table_are_lines() -> None:
    for mark in (";", " | ", "\t"):
        rows = [mark.join(one) for one in (("article", "price", "stock"), ("Oak", "64.90", "yes"))]
        read = passage_from_document(Document("prices", "\n".join(rows))).sentences
        assert read == tuple(" ".join(one.split()) for one in rows)
    wrapped = "It is red; it is\nnot blue; it is not green; and it is old."
    assert len(passage_from_document(Document("prose", wrapped)).sentences) == 1
