"""The records that benchmark stages exchange, and the protocol of each stage.

    documents ▸ claims ▸ triples ▸ equivalences ▸ paths ▸ questions ▸ judgements

Every stage that a language model could do has one method, batch in and batch out. The rule-based
stages need no model (`claims.RuleClaims`, `triples.RuleTriples`, ...); those with a model are in
`llm`. You can mix them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from suffice.errors import InputError
from suffice.storage.fields import is_text
from suffice.types import DocId, Document


@dataclass(frozen=True, slots=True)
class Claim:
    """One fact from a document, worded to stand alone."""

    claim_id: str  # the document's id, '#', and the number of the sentence
    doc_id: DocId
    subject: str  # the document's title, or a name; "" if unknown
    text: str
    sentence: str  # as in the document


@dataclass(frozen=True, slots=True)
class Triple:
    """Subject, relation, object and the document that states it. Names are titles if possible."""

    subject: str
    relation: str
    object: str
    doc_id: DocId
    claim_id: str
    several: bool = False  # the sentence names several objects, so none is *the* object
    link: str = ""  # "exact" or "context": an equivalence renamed an end; "": as in the text
    phrase: str = ""  # the text between subject and object
    object_kind: str = ""  # person, place, organisation, date, amount, version, id, thing, or ""


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Names of one thing, the main one first; valid `always` or only in one cluster of claims."""

    names: tuple[str, ...]
    always: bool
    cluster: int = -1


@dataclass(frozen=True, slots=True)
class ReasoningPath:
    """A chain of triples: the object of each is the subject of the next."""

    triples: tuple[Triple, ...]

    @property
    def ends(self) -> tuple[str, str]:
        return self.triples[0].subject, self.triples[-1].object

    @property
    def doc_ids(self) -> tuple[DocId, ...]:
        return tuple(triple.doc_id for triple in self.triples)


@dataclass(frozen=True, slots=True)
class GeneratedQuestion:
    """A question with its answer, the chains of facts behind it, and their documents."""

    question_id: str
    text: str
    answer: str
    kind: str  # chain, comparison, temporal, intersection, bridge_comparison, ...
    hops: int  # facts to combine
    paths: tuple[ReasoningPath, ...]
    doc_ids: tuple[DocId, ...]  # in the order of the facts, each once
    without: DocId | None = None  # an unanswerable twin: its corpus lacks this document


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a question is valid; `why` names the check that failed."""

    valid: bool
    why: str = ""


class ClaimExtractor(Protocol):
    def claims(self, documents: Sequence[Document]) -> list[tuple[Claim, ...]]:
        """The claims of each document, in text order."""
        ...


class TripleExtractor(Protocol):
    def triples(self, claims: Sequence[Claim]) -> list[tuple[Triple, ...]]:
        """The triples of each claim."""
        ...


class EquivalenceFinder(Protocol):
    def equivalences(
        self, cluster: int, triples: Sequence[Triple], claims: Sequence[Claim]
    ) -> list[Equivalence]:
        """Which names in the triples of one cluster mean the same thing."""
        ...


class QuestionWriter(Protocol):
    def write(
        self, paths: Sequence[ReasoningPath], claims: Sequence[Sequence[Claim]]
    ) -> list[GeneratedQuestion | None]:
        """A chain question for each path and its claims; None if it cannot be worded."""
        ...


class Judge(Protocol):
    def judge(self, questions: Sequence[GeneratedQuestion]) -> list[Judgement]:
        """Whether each question is self-contained, unambiguous, and needs all its documents."""
        ...


def question_to_record(question: GeneratedQuestion) -> dict[str, Any]:
    """A question as a JSON object that `suffice.datasets.jsonl` loads with its gold."""
    record: dict[str, Any] = {
        "question_id": question.question_id,
        "question": question.text,
        "gold": list(question.doc_ids),
        "answer": question.answer,
        "kind": question.kind,
        "hops": question.hops,
        "path": [[asdict(triple) for triple in path.triples] for path in question.paths],
    }
    return record | ({} if question.without is None else {"without": question.without})


def question_from_record(record: dict[str, Any]) -> GeneratedQuestion:
    """The question in such a JSON object; InputError if it is invalid."""
    try:
        paths = tuple(ReasoningPath(tuple(map(_triple, one))) for one in record.get("path") or ())
        gold, hops, without = record["gold"], record.get("hops"), record.get("without")
        question_id, text = record["question_id"], record["question"]
        answer, kind = record.get("answer") or "", record.get("kind") or "chain"
        texts = (question_id, text, answer, kind, without or "")
        if not isinstance(gold, list) or not all(map(is_text, (*texts, *gold))):
            raise TypeError("a field is not a text")
        if hops is not None and type(hops) is not int:
            raise TypeError("hops is not a whole number")
        hops = hops or len(gold)
        return GeneratedQuestion(question_id, text, answer, kind, hops, paths, tuple(gold), without)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"not a generated question: {error!r:.200}", hint="`suffice grade` writes them"
        ) from error


def _triple(record: Mapping[str, Any]) -> Triple:
    for name, value in record.items():
        if not (isinstance(value, bool) if name == "several" else is_text(value)):
            raise TypeError(f"the field {name!r} of a triple has the wrong type")
    return Triple(**record)
