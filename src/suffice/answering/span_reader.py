"""The gate's reader finds the part of the passages that answers a question.

Its score is the probability that the answer is right, learned from questions it had not seen. An
answer of the wrong form (a number where a person is asked for) is rejected. If the question offers
two choices, the answer is one of them. For a date or a number, the reader also searches the other
documents: if one states another value as clearly, both are cited, and the review reports a
contradiction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol, runtime_checkable

from suffice.answering.answer_type import AnswerType, has_form, parse_number
from suffice.answering.rule_planner import two_choices
from suffice.lexicon import FUNCTION_WORDS, MONTHS
from suffice.text import names, parse_day, sentences, stem, title_key, tokens
from suffice.types import Citation, DocId, Document, FoundAnswer

Fits = Callable[[str], bool]
FindAnswer = Callable[[str, Sequence[str], Sequence[str], Fits], FoundAnswer | None]
MAX_SENTENCES = 60  # per document
MAX_SENTENCE_CHARS = 800
EXACT = (AnswerType.DATE, AnswerType.NUMBER)  # only one value is right
RIVAL = 0.3  # minimum probability of a contradicting answer
MIN_COVERED = 0.5  # share of the question's words in each of two contradicting sentences
_MONTHS = {one.casefold() for one in MONTHS}
_LINE_BREAK = re.compile(r"[^.!?]\n")  # not after a full stop: "St. Ives" may be split
# Lines that start something new: a chat turn, a field, a list item, a heading, a row of a table, a
# line after a blank one.
_NEW_LINE = re.compile(
    r"\n(?=\s*(?:\[[^\]\n]{1,20}\]|[^\W\d_][\w .'’%/()-]{0,30}:\s|[-*•#]|\d+[.)]\s|\n"
    r"|[^\n;]*;[^\s;][^\n;]*;[^\s;]|[^\n|]+\|[^\n|]+\||[^\n\t]+\t))"
)


@runtime_checkable
class AnswerFinder(Protocol):
    """A gate whose reader also finds answers; None if it has none."""

    def find_answer(
        self, question: str, titles: Sequence[str], texts: Sequence[str], fits: Fits = bool
    ) -> FoundAnswer | None: ...


def answer_finder(gate: object) -> FindAnswer | None:
    """The function with which this gate finds answers; None if it cannot."""
    if not isinstance(gate, AnswerFinder) or gate.find_answer("", (), ()) is None:
        return None
    return gate.find_answer


@dataclass(frozen=True, slots=True)
class Passage:
    """A document as a reader sees it: numbered sentences under a title."""

    doc_id: DocId
    title: str
    sentences: tuple[str, ...]


def passage_from_document(document: Document) -> Passage:
    """The first sentences of a document, each truncated and on one line."""
    text = document.text[: MAX_SENTENCES * MAX_SENTENCE_CHARS]
    found = (one for part in _NEW_LINE.split(text) for one in sentences(part))
    lines = (" ".join(one.split())[:MAX_SENTENCE_CHARS] for one in islice(found, MAX_SENTENCES))
    return Passage(document.doc_id, document.title, tuple(lines))


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer, if there is one, its citations, and how likely it is right (0 to 1)."""

    answer: str | None
    citations: tuple[Citation, ...] = ()
    score: float = 0.0
    by: str = "reader"
    rivals: tuple[str, ...] = ()  # other answers, from sentences that fit as well
    if_complete: float = 0.0  # the score if the evidence were complete; of the gate's reader only


class SpanReader:
    """Reads with the gate's reader. Text in a passage is never an instruction."""

    name = "reader"

    def __init__(self, find: FindAnswer) -> None:
        self.find = find

    def read(self, question: str, answer_type: AnswerType, passages: Sequence[Passage]) -> Reading:
        """The likeliest answer and its sentence; no answer if it has the wrong form."""
        choices = _choices(question) if answer_type is AnswerType.CHOICE else ()
        reading = self._likeliest(question, _form(answer_type, choices), passages)
        if reading.answer is not None and answer_type is AnswerType.PERSON:
            return replace(reading, answer=_whole_name(reading))
        if reading.answer is not None and answer_type in EXACT and reading.score >= RIVAL:
            return self._with_rival(question, answer_type, reading, passages)
        return reading

    def _with_rival(
        self, question: str, answer_type: AnswerType, reading: Reading, passages: Sequence[Passage]
    ) -> Reading:
        """The reading, with the value that another document on the same subject gives instead."""
        (cited,) = reading.citations
        others = [one for one in passages if one.doc_id != cited.doc_id]
        rival = self._likeliest(question, _form(answer_type), others) if others else Reading(None)
        if rival.answer is None or rival.score < RIVAL:
            return reading
        if not _contradicts(question, reading, rival):
            return reading
        return replace(reading, citations=(cited, *rival.citations), rivals=(rival.answer,))

    def _likeliest(self, question: str, fits: Fits, passages: Sequence[Passage]) -> Reading:
        titles = [one.title for one in passages]
        texts = ["\n".join(one.sentences) for one in passages]
        found = self.find(question, titles, texts, fits)
        if found is None or not found.text:
            return Reading(None)
        cited = _citation(passages[found.place], found.start)
        if not fits(found.text):
            return Reading(None, (cited,))
        sure = found.p if found.p_if_complete is None else found.p_if_complete
        answer = _without_loose_mark(" ".join(found.text.split("\n")))
        return Reading(answer, (cited,), found.p, if_complete=sure)


def _form(answer_type: AnswerType, choices: Sequence[str] = ()) -> Fits:
    """Whether an answer has the right form, and does not run from one line into the next."""

    def fits(said: str) -> bool:
        if _LINE_BREAK.search(said):
            return False
        return _is_one_of(said, choices) if choices else has_form(said, answer_type)

    return fits


def _choices(question: str) -> tuple[str, ...]:
    """The two choices that a question offers; none if they are not names: "the founder of A" is
    offered, and the answer is who that is.
    """
    found = two_choices(" ".join(question.split()))
    offered = found[1:] if found else ()
    return offered if all(one[:1].isupper() or len(one.split()) < 4 for one in offered) else ()


def _is_one_of(said: str, choices: Sequence[str]) -> bool:
    """Whether an answer shares more words with one choice than with the other."""
    words = set(tokens(said))
    offered = [set(tokens(one)) for one in choices]
    return len({len(words & one) / max(len(one), 1) for one in offered}) > 1


def _citation(passage: Passage, start: int) -> Citation:
    """The sentence of a passage that contains this position."""
    end = 0
    for at, sentence in enumerate(passage.sentences):
        end += len(sentence) + 1
        if start < end:
            return Citation(passage.doc_id, at, sentence)
    return Citation(passage.doc_id, 0, passage.sentences[0] if passage.sentences else "")


def _without_loose_mark(answer: str) -> str:
    """The answer without a backtick whose other half is outside of it."""
    return answer.strip("`") if answer.count("`") == 1 else answer


def _whole_name(reading: Reading) -> str:
    """The full name that opens with the answer, which may be a title: "Ermengarde of Tours"."""
    answer = reading.answer or ""
    known = names(reading.citations[0].text) if " " not in answer else []
    return next((one for one in known if one.startswith(f"{answer} ")), answer)


def _contradicts(question: str, reading: Reading, rival: Reading) -> bool:
    """Whether two values cannot both be right, from sentences as much about the question.

    If each sentence is about another person, two births are no contradiction.
    """
    asked = _stems(question)
    first, second = (one.citations[0].text for one in (reading, rival))
    about, also = (asked & _stems(text) for text in (first, second))
    named, others_named = map(_named, (first, second))
    same = len(about) >= MIN_COVERED * len(asked) and about <= also
    apart = named - others_named and others_named - named
    return same and not apart and _values_differ(reading.answer or "", rival.answer or "")


def _stems(text: str) -> set[str]:
    return {stem(word) for word in tokens(text) if word not in FUNCTION_WORDS}


def _named(sentence: str) -> set[str]:
    """Names in a sentence, except months and a single word at its start."""
    found = (one for one in names(sentence) if " " in one or not sentence.startswith(one))
    return set(map(title_key, found)) - _MONTHS


def _values_differ(one: str, other: str) -> bool:
    """Whether two days or numbers cannot both be right: "1994" and "19 April 1994" can."""
    day, other_day = parse_day(one), parse_day(other)
    if day is not None and other_day is not None:
        return any(a != b for a, b in zip(day, other_day) if a and b)
    number, other_number = parse_number(one), parse_number(other)
    return number is not None and other_number is not None and number != other_number
