"""The nouns of the house, frozen: what a question, a document, a hit, a verdict is. No behaviour beyond reading them.

The retrieved thing is not the stored thing: a Hit points at a Document by id, it does not carry a copy that drifts.
Gold labels are not here on purpose: they live in `suffice.datasets.gold`, out of reach of whatever retrieves or assesses.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any, Literal

__all__ = [
    "FIELDS",
    "Action",
    "Call",
    "Citation",
    "Condition",
    "Cost",
    "DocId",
    "Document",
    "Estimate",
    "Evidence",
    "Extraction",
    "Field",
    "Filter",
    "Hit",
    "Operator",
    "Part",
    "Question",
    "QuestionId",
    "Reason",
    "Review",
    "Step",
    "Support",
    "Trace",
    "Verdict",
    "printable",
]

DocId = str
QuestionId = str

Field = Literal["source", "category", "entities", "published_at"]
FIELDS: tuple[Field, ...] = ("source", "category", "entities", "published_at")
Operator = Literal["$in", "$nin", "$gte", "$lte"]


@dataclass(frozen=True, slots=True)
class Document:
    """The unit that is retrieved. A chunk is a document whose `parent` is the id of the whole."""

    doc_id: DocId
    text: str
    title: str = ""
    source: str | None = None
    category: str | None = None
    published_at: date | None = None
    entities: tuple[str, ...] = ()
    parent: DocId | None = None
    extra: Mapping[str, Any] = field(
        default_factory=dict, hash=False
    )  # JSON values we keep but do not read


@dataclass(frozen=True, slots=True)
class Question:
    question_id: QuestionId
    text: str


@dataclass(frozen=True, slots=True)
class Condition:
    """One line of a filter. Values of `published_at` are ISO dates; `$gte` and `$lte` hold one value and include it.

    A document without the field fails `$in`, `$gte` and `$lte` unless the filter is lenient, and passes `$nin`.
    """

    field: Field
    operator: Operator
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that must all hold. No conditions: everything passes.

    A lenient filter lets a document through wherever it lacks the field: nobody knows what it would have said.
    """

    conditions: tuple[Condition, ...] = ()
    lenient: bool = False

    def __bool__(self) -> bool:
        return bool(self.conditions)


@dataclass(frozen=True, slots=True)
class Extraction:
    """The filter that was read out of a question, by whom, and what had to be left out or mended on the way."""

    filter: Filter
    by: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """One retriever's share in a hit: its name and the score it gave, on its own scale."""

    name: str
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    doc_id: DocId
    score: float | None = None  # higher is better; None where the retriever gives none
    parts: tuple[Part, ...] = ()  # who found it
    matched: tuple[
        str, ...
    ] = ()  # the metadata of the question that it carries, like "source: The Verge"
    relaxed: bool = False  # it does not pass the question's filter, which was softened to let it in


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is held for a question: hits in rank order without duplicates, and their documents where known."""

    question: Question
    hits: tuple[Hit, ...]
    documents: Mapping[DocId, Document] = field(default_factory=dict, hash=False)


class Action(StrEnum):
    ANSWER = "answer"
    EXPAND = "expand"
    ABSTAIN = "abstain"


@dataclass(frozen=True, slots=True)
class Estimate:
    """The probability that the evidence is complete, with its interval."""

    p_complete: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Reason:
    """One feature that moved the probability: its name, by how much, and the same in words."""

    feature: str
    effect: float
    words: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's answer for one question and its evidence."""

    estimate: Estimate
    action: Action
    missing: tuple[str, ...] = ()
    next_queries: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @property
    def p_complete(self) -> float:
        return self.estimate.p_complete

    def as_json(self) -> dict[str, Any]:
        """As plain values, the same ones at every door."""
        return {
            "action": str(self.action),
            "p_complete": self.p_complete,
            "low": self.estimate.low,
            "high": self.estimate.high,
            "missing": list(self.missing),
            "next_queries": list(self.next_queries),
            "reasons": [
                {"feature": one.feature, "effect": one.effect, "words": one.words}
                for one in self.reasons
            ],
        }

    def __str__(self) -> str:
        """For a terminal. Names come out of strangers' texts, so that nothing unprintable passes."""
        interval = f"{self.estimate.low:.2f} to {self.estimate.high:.2f}"
        lines = [f"{self.action.upper()}  p_complete {self.p_complete:.2f} ({interval})"]
        lines += [
            f"  {'+' if one.effect >= 0 else '-'} {printable(one.words)}" for one in self.reasons
        ]
        lines += [f"  missing: {', '.join(map(printable, self.missing))}"] if self.missing else []
        lines += [f"  look for: {printable(query)}" for query in self.next_queries]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """For a notebook, with everything that came from a text escaped."""
        low, high = f"{self.estimate.low:.2f}", f"{self.estimate.high:.2f}"
        rows = [("+" if one.effect >= 0 else "&minus;", _safe(one.words)) for one in self.reasons]
        rows += [("missing", _safe(name)) for name in self.missing]
        rows += [("look for", _safe(query)) for query in self.next_queries]
        body = "".join(
            f"<tr><td>{left}</td><td style='text-align:left'>{right}</td></tr>"
            for left, right in rows
        )
        head = f"<b>{self.action.upper()}</b> p_complete {self.p_complete:.2f} ({low} to {high})"
        return f"<div>{head}<table>{body}</table></div>" if rows else f"<div>{head}</div>"


def printable(text: str) -> str:
    """Control characters, line ends and direction marks as blanks: they could repaint a terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


def _safe(text: str) -> str:
    return html.escape(printable(text))


# ------------------------------------------------------------------------------------------------------- a journey


@dataclass(frozen=True, slots=True)
class Citation:
    """A sentence of a document, by its number there (the first is 0), in the words that were read."""

    doc_id: DocId
    sentence: int
    text: str


class Support(StrEnum):
    """What the cited sentences say of an answer: they state it, they leave it open, they deny it."""

    ATTRIBUTABLE = "attributable"
    EXTRAPOLATORY = "extrapolatory"
    CONTRADICTORY = "contradictory"


@dataclass(frozen=True, slots=True)
class Review:
    """How far an answer is to be trusted: `confidence` weighs its accuracy against the support of what it cites."""

    confidence: float
    accuracy: float
    support: Support
    by: str  # "model", "cross-encoder" or "rules"


@dataclass(frozen=True, slots=True)
class Cost:
    """What something took. A round is a look beyond the first one; tokens are the model's, in and out."""

    rounds: int = 0
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    money: float = 0.0


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a language model: what for, the hash of what was asked, and its answer or what went wrong."""

    purpose: str
    key: str
    answer: str | None
    error: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a journey: what was asked, what was found, and what was made of it.

    `number` is that of the sub-question in the plan, 0 where the question as a whole was asked.
    """

    question: str
    hits: tuple[Hit, ...]
    verdict: Verdict | None = None
    note: str = ""
    number: int = 0
    answer: str | None = None
    citations: tuple[Citation, ...] = ()
    review: Review | None = None
    revision: int = 0  # how often the answer was read anew
    by: str = ""  # who read: "model", "extractive" (the rules), "both" alike, or "joined" from earlier answers
    cost: Cost = Cost()


@dataclass(frozen=True, slots=True)
class Trace:
    """The journey of one question; `answer` is None when suffice abstained, and `missing` then says for want of what."""

    question: Question
    steps: tuple[Step, ...]
    answer: str | None = None
    action: Action | None = None
    plan: tuple[str, ...] = ()  # the sub-questions, the first is number 1
    citations: tuple[Citation, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cost: Cost = Cost()
    calls: tuple[Call, ...] = ()
    ticks: tuple[float, ...] = ()  # what the clock said each time it was read
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
