"""The reader that uses the gate's transformer to find the part of the passages that answers.

Its score is the probability that the answer is right, learned from questions it had not seen. An
answer of the wrong form (a number where a person is asked for) is rejected, and so is one that its
sentence contradicts (`roles`). If the question offers two choices, the answer is one of them. For a
date or a number, the reader also searches the other documents: if one states another value as
clearly, both are cited, and the review reports a contradiction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from suffice.answering.answer_type import (
    AnswerType,
    find_spans,
    has_form,
    parse_day,
    parse_number,
)
from suffice.answering.extractive_reader import (
    Passage,
    QuestionCues,
    Reading,
    said_plainly,
    stem,
)
from suffice.answering.roles import Agreement, agreement, may_state, title_agrees
from suffice.answering.rule_planner import two_choices
from suffice.text import names, title_key, tokens
from suffice.types import Citation, FoundAnswer

Fits = Callable[[str], bool]
FindAnswer = Callable[[str, Sequence[str], Sequence[str], Fits], FoundAnswer | None]
_ASKS_USE = re.compile(
    r"^what (?:does|do|did)\b.* do\W*$|\bpurpose of\b|\b(?:used|good|meant) for\W*$", re.IGNORECASE
)
_LINE_BREAK = re.compile(r"[^.!?]\n")  # not after a full stop: "St. Ives" may be split
EXACT = (AnswerType.DATE, AnswerType.NUMBER)  # only one value is right
RIVAL = 0.3  # minimum probability of a contradicting answer
MIN_COVERED = 0.5  # share of the question's words in each of two contradicting sentences
STATED = 0.85  # minimum probability of an answer that its sentence states plainly
UNLIKELY = 0.05  # below it, the sentence is about something similar


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


class SpanReader:
    """Reads with the gate's reader. Text in a passage is never an instruction."""

    name = "reader"

    def __init__(self, find: FindAnswer) -> None:
        self.find = find

    def read(self, question: str, answer_type: AnswerType, passages: Sequence[Passage]) -> Reading:
        """The likeliest answer and its sentence.

        There is no answer if it has the wrong form, or if the sentence contradicts it.
        """
        titles = [one.title for one in passages]
        texts = ["\n".join(one.sentences) for one in passages]
        choices = _choices(question) if answer_type is AnswerType.CHOICE else ()
        fits = _form(answer_type, choices)
        if answer_type is AnswerType.YES_NO and (said := said_plainly(question, passages)):
            return Reading(*said, STATED, self.name, if_complete=STATED)
        found = self.find(question, titles, texts, fits)
        if found is None or not found.text:
            return Reading(None, by=self.name)
        cited = _citation(passages[found.place], found.start)
        if not fits(found.text):
            return Reading(None, (cited,), 0.0, self.name)
        reading = _reading(found, cited)
        if not choices:
            reading = self._checked(question, reading, passages, fits)
        (cited,), answer = reading.citations, reading.answer
        if answer is None:
            return reading
        if answer_type is AnswerType.PERSON:
            reading = replace(reading, answer=_whole_name(answer, cited.text))
        elif _ASKS_USE.search(question):
            reading = replace(reading, answer=_whole_clause(answer, cited.text))
            if _describes(question, answer, cited, passages):
                reading = _as_stated(reading)
        others = [one for one in passages if one.doc_id != cited.doc_id]
        if answer_type in EXACT and reading.score >= RIVAL and others:
            return self._with_rival(question, answer_type, reading, others)
        return reading

    def _checked(
        self, question: str, reading: Reading, passages: Sequence[Passage], fits: Fits
    ) -> Reading:
        """Check a reading against its sentence.

        Raise the score if the sentence states the answer. If it is doubtful, prefer an answer that
        some sentence states. Drop it if the sentence contradicts it.
        """
        (cited,), answer = reading.citations, reading.answer or ""
        said = Agreement.UNKNOWN  # for yes, no, and most titles
        if answer in cited.text:
            said = agreement(question, cited.text, answer)
        elif title_agrees(question, answer, cited.text):
            said = Agreement.STATED
        if said is Agreement.STATED:
            return _as_stated(reading)
        if said is Agreement.UNKNOWN and reading.score >= STATED:
            return reading
        none = Reading(None, (cited,), 0.0, self.name)
        other = self._stated(question, passages, fits)
        return other or (none if said is Agreement.CONTRADICTED else reading)

    def _stated(self, question: str, passages: Sequence[Passage], fits: Fits) -> Reading | None:
        """The likeliest answer that a sentence states plainly."""
        able = [
            (one, at, sentence)
            for one in passages
            for at, sentence in enumerate(one.sentences)
            if may_state(question, sentence)
        ]
        if not able:
            return None

        def stating(said: str) -> Citation | None:
            for one, at, sentence in able:
                if said in sentence and agreement(question, sentence, said) is Agreement.STATED:
                    return Citation(one.doc_id, at, sentence)
            return None

        titles, texts = (one.title for one, *_ in able), (sentence for *_, sentence in able)
        found = self.find(
            question, [*titles], [*texts], lambda said: fits(said) and bool(stating(said))
        )
        if found is None or not (cited := stating(found.text)) or not fits(found.text):
            return None
        if found.p < UNLIKELY:
            return None
        return _as_stated(_reading(found, cited))

    def _with_rival(
        self,
        question: str,
        answer_type: AnswerType,
        reading: Reading,
        others: Sequence[Passage],
    ) -> Reading:
        """The reading, with the value that another document on the same subject gives instead."""
        titles, texts = (one.title for one in others), ("\n".join(one.sentences) for one in others)
        fits = _form(answer_type)
        found = self.find(question, [*titles], [*texts], fits)
        if found is None or found.p < RIVAL or not fits(found.text):
            return reading
        (first,), second = reading.citations, _citation(others[found.place], found.start)
        cues = QuestionCues.from_question(question)
        about, also = (
            cues.covered_by(frozenset(map(stem, tokens(one.text)))) for one in (first, second)
        )
        # If each sentence is about another person, two births are no contradiction.
        named, others_named = map(_named, (first.text, second.text))
        apart = named - others_named and others_named - named
        same = len(about) >= MIN_COVERED * len(cues.stems) and about <= also and not apart
        if not same or not _values_differ(reading.answer or "", found.text):
            return reading
        return replace(reading, citations=(first, second), rivals=(found.text,))


def _form(answer_type: AnswerType, choices: Sequence[str] = ()) -> Fits:
    """Whether an answer has the right form, and does not run from one line into the next."""

    def fits(said: str) -> bool:
        if _LINE_BREAK.search(said):
            return False
        return _is_one_of(said, choices) if choices else has_form(said, answer_type)

    return fits


def _reading(found: FoundAnswer, cited: Citation) -> Reading:
    sure = found.p if found.p_if_complete is None else found.p_if_complete
    answer = _without_loose_mark(" ".join(found.text.split("\n")))
    return Reading(answer, (cited,), found.p, SpanReader.name, if_complete=sure)


def _as_stated(reading: Reading) -> Reading:
    """The reading of an answer whose sentence states it: this is evidence enough."""
    sure = max(reading.if_complete, STATED)
    return replace(reading, score=sure, if_complete=sure)


def _describes(question: str, answer: str, cited: Citation, passages: Sequence[Passage]) -> bool:
    """Whether an answer opens the text whose title the question names: "concatenate files", under
    the title "cat".
    """
    title = next((title_key(one.title) for one in passages if one.doc_id == cited.doc_id), "")
    named = title and f" {title} " in f" {title_key(question)} "
    return bool(named) and cited.sentence == 0 and cited.text.startswith(answer)


def _named(sentence: str) -> set[str]:
    """Names in a sentence, except a single word at its start."""
    found = (one for one in names(sentence) if " " in one or not sentence.startswith(one))
    return set(map(title_key, found))


def _values_differ(one: str, other: str) -> bool:
    """Whether two days or numbers cannot both be right: "1994" and "19 April 1994" can."""
    day, other_day = parse_day(one), parse_day(other)
    if day is not None and other_day is not None:
        return any(a != b for a, b in zip(day, other_day) if a and b)
    number, other_number = parse_number(one), parse_number(other)
    return number is not None and other_number is not None and number != other_number


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


def _whole_name(answer: str, sentence: str) -> str:
    """The full name that contains the answer: "Ermengarde of Tours" for "Ermengarde"."""
    if " " in answer:
        return answer
    whole = (one.text for one in find_spans(sentence, AnswerType.PERSON))
    return next((one for one in whole if one.startswith(f"{answer} ")), answer)


def _whole_clause(answer: str, sentence: str) -> str:
    """The rest of the clause, for questions about what something does: not just "concatenate"."""
    start = sentence.find(answer)
    end = re.search(r"[.;:](?:\s|$)|$", sentence[start + len(answer) :])
    if start < 0 or end is None:
        return answer
    return sentence[start : start + len(answer) + end.start()].rstrip(" ,")
