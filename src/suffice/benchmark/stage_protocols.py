"""The seams of grade: what each stage hands to the next, and what whoever does a stage must do.

    documents ▸ claims ▸ triples ▸ equivalences ▸ paths ▸ questions ▸ judgements

Every stage that a language model could do has one method, batch in and batch out. The rules that need no model stand beside
the noun they make (`claims.RuleClaims`, `triples.RuleTriples`, ...); an implementation that asks a model fits the same seam,
and stages can be mixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from suffice.errors import InputError
from suffice.storage.fields import is_text
from suffice.types import DocId, Document

__all__ = [
    "Claim",
    "ClaimExtractor",
    "Equivalence",
    "EquivalenceFinder",
    "GeneratedQuestion",
    "Judge",
    "Judgement",
    "QuestionWriter",
    "ReasoningPath",
    "Triple",
    "TripleExtractor",
    "question_from_record",
    "question_to_record",
]


@dataclass(frozen=True, slots=True)
class Claim:
    """One fact of a document, in words that stand alone."""

    claim_id: str  # the document's id, '#', and the number of the sentence
    doc_id: DocId
    subject: str  # whom it is about: the document's title, or a name; "" where nobody knows
    text: str
    sentence: str  # as the document has it


@dataclass(frozen=True, slots=True)
class Triple:
    """Subject, relation, object, and the document that says so. Names are as titles write them, where one does."""

    subject: str
    relation: str
    object: str
    doc_id: DocId
    claim_id: str
    several: bool = False  # the sentence names more than one object, so that none is *the* object
    link: str = ""  # "exact" or "context": the missing link that brought an end of it here; "" where the text names it


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Names of one thing, the chosen one first. `always`: in any context; otherwise only inside its cluster of claims."""

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
        return tuple(one.doc_id for one in self.triples)


@dataclass(frozen=True, slots=True)
class GeneratedQuestion:
    """A made question: its answer, the chains of facts that give it, and the documents that hold them."""

    question_id: str
    text: str
    answer: str
    kind: str  # chain, comparison, temporal, intersection, bridge_comparison, ...
    hops: int  # facts that must be joined
    paths: tuple[ReasoningPath, ...]
    doc_ids: tuple[DocId, ...]  # in the order of the facts, each once
    without: DocId | None = None  # an unanswerable twin: its corpus lacks this document


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a made question may stay; `why` names the check that it failed."""

    valid: bool
    why: str = ""


class ClaimExtractor(Protocol):
    def claims(self, documents: Sequence[Document]) -> list[tuple[Claim, ...]]:
        """The claims of each document, in its order."""
        ...


class TripleExtractor(Protocol):
    def triples(self, claims: Sequence[Claim]) -> list[tuple[Triple, ...]]:
        """The triples of each claim."""
        ...


class EquivalenceFinder(Protocol):
    def equivalences(
        self, cluster: int, triples: Sequence[Triple], claims: Sequence[Claim]
    ) -> list[Equivalence]:
        """Which names among the triples of one cluster stand for the same thing."""
        ...


class QuestionWriter(Protocol):
    def write(
        self, paths: Sequence[ReasoningPath], claims: Sequence[Sequence[Claim]]
    ) -> list[GeneratedQuestion | None]:
        """A logical-chaining question for each path, whose claims are given hop by hop; None where it has no words for one."""
        ...


class Judge(Protocol):
    def judge(self, questions: Sequence[GeneratedQuestion]) -> list[Judgement]:
        """Whether each question is self-contained and unambiguous, and needs all its documents."""
        ...


def question_to_record(made: GeneratedQuestion) -> dict[str, Any]:
    """A made question as a JSON object that `suffice.datasets.jsonl` reads as a labelled example."""
    record: dict[str, Any] = {
        "question_id": made.question_id,
        "question": made.text,
        "gold": list(made.doc_ids),
        "answer": made.answer,
        "kind": made.kind,
        "hops": made.hops,
        "path": [[asdict(triple) for triple in path.triples] for path in made.paths],
    }
    return record | ({"without": made.without} if made.without is not None else {})


def question_from_record(record: dict[str, Any]) -> GeneratedQuestion:
    """The made question of such an object; InputError where it is none."""
    try:
        paths = tuple(
            ReasoningPath(tuple(_triple(triple) for triple in path))
            for path in record.get("path") or ()
        )
        gold, hops, without = record["gold"], record.get("hops"), record.get("without")
        name, text = record["question_id"], record["question"]
        answer, kind = record.get("answer") or "", record.get("kind") or "chain"
        if not isinstance(gold, list) or not all(
            map(is_text, (name, text, answer, kind, without or "", *gold))
        ):
            raise TypeError("a field holds no text")
        if hops is not None and type(hops) is not int:
            raise TypeError("hops is no whole number")
        return GeneratedQuestion(
            name, text, answer, kind, hops or len(gold), paths, tuple(gold), without
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"this is no made question: {error!r:.200}", hint="`suffice grade` writes them"
        ) from error


def _triple(record: Mapping[str, Any]) -> Triple:
    if not all(
        isinstance(value, bool) if name == "several" else is_text(value)
        for name, value in record.items()
    ):
        raise TypeError("a field of a triple holds something of another kind")
    return Triple(**record)
