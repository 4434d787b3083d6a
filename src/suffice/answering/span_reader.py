"""The reader that reads: the part of the passages that answers, as the gate's transformer finds it.

Its score is the probability that the answer is right, learned from questions that it had not seen.
An answer of another form than the question asks for (a person, and a number is found) is none. One
that is unlikely, but that the rules find as well, is judged as theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from suffice.answering.answer_type import AnswerType, find_spans, has_form
from suffice.answering.extractive_reader import ExtractiveReader, Passage, Reading
from suffice.text import title_key
from suffice.types import Citation, FoundAnswer

Fits = Callable[[str], bool]
FindAnswer = Callable[[str, Sequence[str], Sequence[str], Fits], FoundAnswer | None]
LIKELY = 0.5  # below, an answer that the rules find as well is judged as theirs


@runtime_checkable
class AnswerFinder(Protocol):
    """A gate whose reader also finds answers; None where it has none."""

    def find_answer(
        self, question: str, titles: Sequence[str], texts: Sequence[str], fits: Fits = bool
    ) -> FoundAnswer | None: ...


def answer_finder(gate: object) -> FindAnswer | None:
    """How this gate finds answers; None where it cannot."""
    if not isinstance(gate, AnswerFinder) or gate.find_answer("", (), ()) is None:
        return None
    return gate.find_answer


class SpanReader:
    """Reads with the gate's reader. Nothing that a passage says is an instruction."""

    name = "reader"

    def __init__(self, find: FindAnswer) -> None:
        self.find, self.rules = find, ExtractiveReader()

    def read(self, question: str, answer_type: AnswerType, passages: Sequence[Passage]) -> Reading:
        """The likeliest answer with its sentence; none where its form is not the one asked for."""
        titles = [one.title for one in passages]
        texts = [" ".join(one.sentences) for one in passages]
        found = self.find(question, titles, texts, lambda said: has_form(said, answer_type))
        if found is None or not found.text:
            return Reading(None, by=self.name)
        cited = _citation(passages[found.place], found.start)
        if not has_form(found.text, answer_type):
            return Reading(None, (cited,), 0.0, self.name)
        answer = found.text
        if answer_type is AnswerType.PERSON:
            answer = _whole_name(answer, cited.text)
        if found.p < LIKELY:  # the rules may vouch for it
            by_rules = self.rules.read(question, answer_type, passages)
            if title_key(by_rules.answer or "") == title_key(answer):
                return replace(by_rules, by="both")
        return Reading(answer, (cited,), found.p, self.name)


def _citation(passage: Passage, start: int) -> Citation:
    """The sentence of a passage in which a place lies."""
    end = 0
    for at, sentence in enumerate(passage.sentences):
        end += len(sentence) + 1
        if start < end:
            return Citation(passage.doc_id, at, sentence)
    return Citation(passage.doc_id, 0, passage.sentences[0] if passage.sentences else "")


def _whole_name(answer: str, sentence: str) -> str:
    """The name that an answer is a part of: "Ermengarde" of "Ermengarde of Tours"."""
    whole = (one.text for one in find_spans(sentence, AnswerType.PERSON))
    return next((one for one in whole if one.startswith(f"{answer} ")), answer)
