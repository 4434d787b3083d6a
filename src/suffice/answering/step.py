"""One step of a plan: fetch its documents, and extract an answer from them.

If a held document links to one whose title is an earlier answer, that one is read without a search.
The gate's reader or a language model reads. Both cite sentences by number, and a model's answers
and citations are checked against the sentences it was shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal, Protocol, runtime_checkable

from suffice.answering.answer_type import AnswerType, has_form
from suffice.answering.budget import MeteredModel
from suffice.answering.prompting import object_schema, parse_json_object, render_prompt
from suffice.answering.review import mentions_answer
from suffice.answering.span_reader import (
    FindAnswer,
    Passage,
    Reading,
    SpanReader,
    passage_from_document,
)
from suffice.errors import NotReadyError
from suffice.protocols import Retriever, documents_by_id
from suffice.text import title_key, tokens
from suffice.types import Citation, DocId, Document, Filter, Hit

MAX_LINKS = 32  # per held document
MAX_READ_ANSWER_CHARS = 200
MAX_CITATIONS = 6

READING_SCHEMA = object_schema(
    answer={"type": "string", "maxLength": MAX_READ_ANSWER_CHARS},
    sentences={
        "type": "array",
        "items": {"type": "integer", "minimum": 1},
        "maxItems": MAX_CITATIONS,
    },
)
_NO_ANSWER = ("unknown", "insufficient information", "none", "")


FilterOption = Filter | Mapping[str, Any] | Literal["auto"] | None


class DocumentSource(Protocol):
    """The part of a library that answering needs."""

    def retriever(self, name: str | None = None) -> Retriever:
        """The retriever of this name; None: the library's default."""
        ...

    def get(self, doc_ids: Sequence[DocId]) -> Sequence[Document | None]:
        """The documents with these ids, None where there is none."""
        ...


class _LinkTable(Protocol):
    def out(self, doc_ids: Sequence[DocId]) -> Sequence[Iterable[DocId]]: ...


@runtime_checkable
class LinkedSource(Protocol):
    """A library that knows which documents each document links to."""

    def links(self) -> _LinkTable: ...


class FilteredSource(DocumentSource, Protocol):
    """A library with a filter; if it is `strict`, nothing else can be found or fetched."""

    @property
    def filter(self) -> Filter: ...

    @property
    def strict(self) -> bool: ...


@runtime_checkable
class FilterableSource(Protocol):
    """A library that can be filtered by metadata."""

    def filtered(
        self,
        filter: FilterOption,
        question: str,
        *,
        strict: bool | None = None,
        today: date | None = None,
    ) -> FilteredSource:
        """The library with a filter; with "auto", the filter that the question implies."""
        ...


@dataclass(slots=True)
class EvidenceCache:
    """One question's library, and the documents fetched from it, each once."""

    library: DocumentSource
    documents: dict[DocId, Document] = field(default_factory=dict)
    _passages: dict[DocId, Passage] = field(default_factory=dict)

    def has_retriever(self, name: str | None) -> bool:
        """Whether the library has what this retriever needs, such as vectors."""
        if name is None:
            return False
        try:
            self.library.retriever(name)
        except NotReadyError:
            return False
        return True

    def search(self, question: str, *, k: int, retriever: str | None) -> tuple[Hit, ...]:
        """The best k hits for a question; also fetches their documents."""
        (hits,) = self.library.retriever(retriever).search([question], k=k)
        self.fetch(hit.doc_id for hit in hits)
        return tuple(hits)

    def fetch(self, doc_ids: Iterable[DocId]) -> None:
        """Fetch unknown documents; a document that no longer exists stays a hit without text."""
        unknown = (one for one in doc_ids if one not in self.documents)
        self.documents |= documents_by_id(self.library.get, unknown)

    def linked_titles(self, doc_ids: Sequence[DocId], titles: Iterable[str]) -> tuple[Hit, ...]:
        """The documents with one of these titles that a held document links to."""
        keys = {title_key(title) for title in titles} - {""}
        if not keys or not doc_ids or not isinstance(self.library, LinkedSource):
            return ()
        links: _LinkTable = self.library.links()
        targets = list(
            dict.fromkeys(one for out in links.out(doc_ids) for one in list(out)[:MAX_LINKS])
        )
        self.fetch(targets)
        known = [self.documents[one] for one in targets if one in self.documents]
        return tuple(Hit(one.doc_id) for one in known if title_key(one.title) in keys)

    def passages(self, hits: Iterable[Hit]) -> list[Passage]:
        """The documents of these hits as sentences, each document once."""
        doc_ids = [
            one for one in dict.fromkeys(hit.doc_id for hit in hits) if one in self.documents
        ]
        for doc_id in doc_ids:
            if doc_id not in self._passages:
                self._passages[doc_id] = passage_from_document(self.documents[doc_id])
        return [self._passages[doc_id] for doc_id in doc_ids]


class StepReader:
    """Reads with the language model, or with the gate's reader (`find`) if there is no model.

    Up to `max_chars` of passages are shown to the model. The gate's reader takes over if the model
    fails, and if it is `sure` of an answer that the model does not give or cite: a document gains
    little by manipulating a model into an answer or out of one.
    """

    def __init__(
        self,
        meter: MeteredModel,
        find: FindAnswer | None,
        *,
        max_chars: int = 6000,
        sure: float = 0.76,
    ) -> None:
        self.meter, self.max_chars, self.sure = meter, max_chars, sure
        self.spans = None if find is None else SpanReader(find)

    def read(self, question: str, answer_type: AnswerType, passages: Sequence[Passage]) -> Reading:
        """The answer with the sentences that support it."""
        found = self._by_model(question, answer_type, passages)
        if self.spans is None:
            return found or Reading(None, by="")
        own = self.spans.read(question, answer_type, passages)
        if found is None:
            return own
        words, others = set(tokens(own.answer or "")), set(tokens(found.answer or ""))
        agree = bool(others) and (words <= others or others <= words)
        sure = own.answer is not None and own.if_complete >= self.sure
        return own if sure and not (agree and found.citations) else found

    def _by_model(
        self, question: str, answer_type: AnswerType, passages: Sequence[Passage]
    ) -> Reading | None:
        """The model's answer; None without a model or a usable answer."""
        shown = _select_sentences(passages, self.max_chars)
        if not shown or not self.meter.available():
            return None
        lines = "\n".join(
            f"[{number}] {_title_prefix(one, passages)}{one.text}"
            for number, one in enumerate(shown, start=1)
        )
        prompt = render_prompt(
            "read",
            fenced={"passages": lines},
            question=" ".join(question.split()),
            expects=answer_type.value,
        )
        answer = self.meter.complete(prompt, purpose="read", schema=READING_SCHEMA)
        reading = _parse_reading(parse_json_object(answer), shown)
        if reading is None or _fits(reading.answer, answer_type, question):
            return reading
        return Reading(None, by="model")


def _parse_reading(parsed: Mapping[str, Any] | None, shown: Sequence[Citation]) -> Reading | None:
    """A model's answer as a reading that cites only what it was shown; None if it is unusable."""
    answer = parsed.get("answer") if parsed is not None else None
    if parsed is None or not isinstance(answer, str):
        return None
    answer = " ".join(answer.split())[:MAX_READ_ANSWER_CHARS]
    if title_key(answer) in _NO_ANSWER:
        return Reading(None, by="model")
    numbers = parsed.get("sentences")
    listed = [one for one in numbers if isinstance(one, int)] if isinstance(numbers, list) else []
    cited = [shown[one - 1] for one in dict.fromkeys(listed) if 1 <= one <= len(shown)]
    cited = [one for one in cited if mentions_answer(one.text, answer)][:MAX_CITATIONS]
    return Reading(answer, tuple(cited), 1.0 if cited else 0.5, "model")


def _fits(answer: str | None, answer_type: AnswerType, question: str) -> bool:
    """Whether a model's answer has the right form; a choice must be one of those offered."""
    if answer is None:
        return True
    offered = not set(tokens(answer)).isdisjoint(tokens(question))
    return has_form(answer, answer_type) and (offered or answer_type is not AnswerType.CHOICE)


def _select_sentences(passages: Sequence[Passage], max_chars: int) -> list[Citation]:
    """Whole sentences to show a model, in order, as many as fit; early ones are preferred."""
    order = sorted(
        ((at, rank) for rank, one in enumerate(passages) for at in range(len(one.sentences))),
        key=lambda place: (place[0] // 3, place[1], place[0]),
    )
    chosen, chars = [], 0
    for at, rank in order:
        chars += len(passages[rank].sentences[at]) + len(passages[rank].title)
        if chars > max_chars:
            break
        chosen.append((rank, at))
    return [
        Citation(passages[rank].doc_id, at, passages[rank].sentences[at])
        for rank, at in sorted(chosen)
    ]


def _title_prefix(citation: Citation, passages: Sequence[Passage]) -> str:
    title = next((one.title for one in passages if one.doc_id == citation.doc_id), "")
    return f"({' '.join(title.split())[:120]}) " if title else ""
