"""One step of a plan: fill in the earlier answers, look, and read what was found.

The look is the library's; where a document that is held already names the answer that was filled in, the document of that name
comes first: a known link needs no search. Who reads is a language model or the rules; either cites sentences by number, and
whatever a model cites or answers is held against the sentences it was shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from suffice.answering.answer_type import AnswerType, parse_number
from suffice.answering.budget import MeteredModel
from suffice.answering.extractive_reader import (
    CONFIDENT,
    ExtractiveReader,
    Passage,
    Reading,
    passage_from_document,
)
from suffice.answering.prompting import parse_json_object, render_prompt
from suffice.answering.question_cues import mentions_cue
from suffice.answering.review import classify_support, mentions_answer
from suffice.errors import NotReadyError
from suffice.protocols import Retriever, documents_by_id
from suffice.text import title_key, tokens
from suffice.types import Citation, DocId, Document, Hit, Support

__all__ = ["DocumentSource", "EvidenceCache", "LinkedSource", "ModelReader", "Reader"]

MAX_LINKS = 32  # links of one held document that are looked at
MAX_READ_ANSWER_CHARS = 200  # characters of an answer
MAX_CITATIONS = 6

READING_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "maxLength": MAX_READ_ANSWER_CHARS},
        "sentences": {
            "type": "array",
            "items": {"type": "integer", "minimum": 1},
            "maxItems": MAX_CITATIONS,
        },
    },
    "required": ["answer", "sentences"],
    "additionalProperties": False,
}


class DocumentSource(Protocol):
    """What is asked of a library: who searches it, and its documents by id."""

    def retriever(self, name: str | None = None) -> Retriever:
        """The retriever of this name; None: the one that suits this library."""
        ...

    def get(self, doc_ids: Sequence[DocId]) -> Sequence[Document | None]:
        """The documents of these ids, None where there is none."""
        ...


class _LinkTable(Protocol):
    def out(self, doc_ids: Sequence[DocId]) -> Sequence[Iterable[DocId]]: ...


@runtime_checkable
class LinkedSource(Protocol):
    """A library that knows which documents each document names."""

    def links(self) -> _LinkTable: ...


class Reader(Protocol):
    """Whoever reads an answer out of passages."""

    def read(self, question: str, expects: AnswerType, passages: Sequence[Passage]) -> Reading:
        """The answer with what it rests on; an answer of None where the passages hold none."""
        ...


@dataclass(slots=True)
class EvidenceCache:
    """Where one question is worked on: the library, and what was taken from its shelves, each document once."""

    library: DocumentSource
    documents: dict[DocId, Document] = field(default_factory=dict)
    _passages: dict[DocId, Passage] = field(default_factory=dict)

    def can(self, retriever: str | None) -> bool:
        """Has the library what this retriever takes, say vectors?"""
        if retriever is None:
            return False
        try:
            self.library.retriever(retriever)
        except NotReadyError:
            return False
        return True

    def look(self, question: str, *, k: int, retriever: str | None) -> tuple[Hit, ...]:
        """The best k hits for one question, with their documents on the desk."""
        (hits,) = self.library.retriever(retriever).search([question], k=k)
        self.fetch(hit.doc_id for hit in hits)
        return tuple(hits)

    def fetch(self, doc_ids: Iterable[DocId]) -> None:
        """Put these documents on the desk; one that is gone by now stays a hit without a text."""
        self.documents |= documents_by_id(
            self.library.get, (one for one in doc_ids if one not in self.documents)
        )

    def named_by(self, held: Sequence[DocId], answers: Iterable[str]) -> tuple[Hit, ...]:
        """The documents that a held one names and whose title is one of the answers."""
        keys = {title_key(answer) for answer in answers} - {""}
        if not keys or not held or not isinstance(self.library, LinkedSource):
            return ()
        links: _LinkTable = self.library.links()
        named = list(
            dict.fromkeys(one for some in links.out(held) for one in list(some)[:MAX_LINKS])
        )
        self.fetch(named)
        known = [self.documents[one] for one in named if one in self.documents]
        return tuple(Hit(one.doc_id) for one in known if title_key(one.title) in keys)

    def passages(self, hits: Iterable[Hit]) -> list[Passage]:
        """The documents of these hits in sentences, each once."""
        found = []
        for doc_id in dict.fromkeys(hit.doc_id for hit in hits):
            if doc_id in self.documents:
                if doc_id not in self._passages:
                    self._passages[doc_id] = passage_from_document(self.documents[doc_id])
                found.append(self._passages[doc_id])
        return found


class ModelReader:
    """A language model reads, at most so many `letters` of passages at once. It proposes, the sentences decide.

    The rules read, too. What both read needs no judge. Where the model fails, or says what its sentences do not state, what
    the rules are sure of stands: a document that talks a model out of an answer, or into one, gains nothing by it.
    """

    def __init__(self, meter: MeteredModel, *, letters: int = 6000) -> None:
        self.meter, self.letters, self.otherwise = meter, letters, ExtractiveReader()

    def read(self, question: str, expects: AnswerType, passages: Sequence[Passage]) -> Reading:
        """The model's answer with the sentences it names, or the rules' reading."""
        shown = _select_sentences(passages, self.letters)
        if not shown or not self.meter.asks():
            return self.otherwise.read(question, expects, passages)
        lines = "\n".join(
            f"[{number}] {_title_prefix(one, passages)}{one.text}"
            for number, one in enumerate(shown, start=1)
        )
        asked = render_prompt(
            "read",
            fenced={"passages": lines},
            question=" ".join(question.split()),
            expects=expects.value,
        )
        said = parse_json_object(self.meter.complete(asked, purpose="read", schema=READING_SCHEMA))
        reading = self._taken(said, shown)
        by_rules = self.otherwise.read(question, expects, passages)
        if reading is None:
            return by_rules
        if not _has_expected_form(reading.answer, expects, question):
            reading = Reading(None, (), 0.0, "model")
        if not _is_confident(question, by_rules, passages):
            return reading
        if title_key(reading.answer or "") == title_key(by_rules.answer or ""):
            return replace(by_rules, by="both")
        return (
            reading
            if classify_support(question, reading, passages) is Support.ATTRIBUTABLE
            else by_rules
        )

    def _taken(self, said: Mapping[str, Any] | None, shown: Sequence[Citation]) -> Reading | None:
        """What the model said as a reading: citations only of what it was shown. None where it said nothing of use."""
        answer = said.get("answer") if said is not None else None
        if said is None or not isinstance(answer, str):
            return None
        answer = " ".join(answer.split())[:MAX_READ_ANSWER_CHARS]
        numbers = said.get("sentences")
        listed = (
            [one for one in numbers if isinstance(one, int)] if isinstance(numbers, list) else []
        )
        cited = tuple(
            shown[number - 1] for number in dict.fromkeys(listed) if 1 <= number <= len(shown)
        )
        if title_key(answer) in ("unknown", "insufficient information", "none", ""):
            return Reading(None, (), 0.0, "model")
        cited = tuple(one for one in cited if mentions_answer(one.text, answer))[:MAX_CITATIONS]
        return Reading(answer, cited, 1.0 if cited else 0.5, "model")


def _has_expected_form(answer: str | None, expects: AnswerType, question: str) -> bool:
    """Has an answer the form that is asked for, where a form tells?"""
    if answer is None or expects is AnswerType.YES_NO:
        return answer is None or title_key(answer) in ("yes", "no")
    if expects is AnswerType.CHOICE:
        return not set(tokens(answer)).isdisjoint(tokens(question))
    return expects not in (AnswerType.DATE, AnswerType.NUMBER) or parse_number(answer) is not None


def _is_confident(question: str, reading: Reading, passages: Sequence[Passage]) -> bool:
    """Do the rules vouch for a reading? Where no word is known that would say it, the sentence must fit all the better."""
    knows = not mentions_cue(question, "")
    return (knows or reading.score >= CONFIDENT) and classify_support(
        question, reading, passages
    ) is Support.ATTRIBUTABLE


def _select_sentences(passages: Sequence[Passage], most: int) -> list[Citation]:
    """The sentences that a model is shown: whole ones, in order, as many as fit. The first of each passage go first."""
    order = sorted(
        ((at, rank) for rank, one in enumerate(passages) for at in range(len(one.sentences))),
        key=lambda place: (place[0] // 3, place[1], place[0]),
    )
    chosen, letters = [], 0
    for at, rank in order:
        letters += len(passages[rank].sentences[at]) + len(passages[rank].title)
        if letters > most:
            break
        chosen.append((rank, at))
    return [
        Citation(passages[rank].doc_id, at, passages[rank].sentences[at])
        for rank, at in sorted(chosen)
    ]


def _title_prefix(citation: Citation, passages: Sequence[Passage]) -> str:
    title = next((one.title for one in passages if one.doc_id == citation.doc_id), "")
    return f"({' '.join(title.split())[:120]}) " if title else ""
