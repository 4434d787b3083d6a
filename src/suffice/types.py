"""Frozen records that all parts of suffice share: document, question, hit, verdict, trace.

A Hit refers to a Document by id and has no copy; a library's search adds it. Gold labels are in
`suffice.datasets.gold`, so that retrieval and gate cannot import them.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any, Literal

DocId = str
QuestionId = str

Field = Literal["source", "category", "entities", "published_at"]
FIELDS: tuple[Field, ...] = ("source", "category", "entities", "published_at")
Operator = Literal["$in", "$nin", "$gte", "$lte"]


@dataclass(frozen=True, slots=True)
class Document:
    """The unit of retrieval. A chunk is a document whose `parent` is the id of the whole."""

    doc_id: DocId
    text: str
    title: str = ""
    source: str | None = None
    category: str | None = None
    published_at: date | None = None
    entities: tuple[str, ...] = ()
    parent: DocId | None = None
    # JSON values that are stored but never used
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Question:
    question_id: QuestionId
    text: str


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a filter. Dates are ISO dates; `$gte` and `$lte` have one value, inclusive.

    A document without the field passes `$nin`, and the others only if the filter is lenient.
    """

    field: Field
    operator: Operator
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that must all hold. A lenient filter passes documents that lack the field."""

    conditions: tuple[Condition, ...] = ()
    lenient: bool = False

    def __bool__(self) -> bool:
        return bool(self.conditions)

    def __str__(self) -> str:
        words = {"$in": "is", "$nin": "is not", "$gte": "from", "$lte": "until"}
        parts = (
            f"{one.field} {words[one.operator]} {' or '.join(one.values)}"
            for one in self.conditions
        )
        return ", and ".join(parts)


@dataclass(frozen=True, slots=True)
class Extraction:
    """The filter a question asks for, who extracted it, and notes on what was corrected."""

    filter: Filter
    by: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrieverScore:
    """The score one retriever gave a hit, on its own scale."""

    name: str
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    doc_id: DocId
    score: float | None = None  # higher is better; None if the retriever gives none
    parts: tuple[RetrieverScore, ...] = ()  # the retrievers that found it
    matched: tuple[str, ...] = ()  # metadata it shares with the question: "source: The Verge"
    relaxed: bool = False  # found only after the question's filter was relaxed

    def as_json(self) -> dict[str, Any]:
        """The hit as JSON values, without its document."""
        return {
            "doc_id": self.doc_id,
            "score": self.score,
            "parts": [asdict(part) for part in self.parts],
            "matched": list(self.matched),
            "relaxed": self.relaxed,
        }


@dataclass(frozen=True, slots=True)
class LibraryHit(Hit):
    """A hit of a library's search, with its document; None if it was deleted meanwhile."""

    document: Document | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        return self.document.text if self.document else ""

    @property
    def title(self) -> str:
        return self.document.title if self.document else ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Hits in rank order without duplicates, and their documents if known."""

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
    """One feature that moved the probability: its name, by how much, and a sentence."""

    feature: str
    effect: float
    words: str

    @property
    def sign(self) -> str:
        """ "+" or "-"; "*" if it explains the action, not the probability."""
        return "+" if self.effect > 0 else "-" if self.effect < 0 else "*"


LOW_FAMILIARITY = 0.1  # below it, a verdict says why the question is unfamiliar


@dataclass(frozen=True, slots=True)
class Quote:
    """The most relevant sentence of a hit."""

    doc_id: str
    p_needed: float  # that the question needs this hit
    text: str

    def __str__(self) -> str:
        return f'evidence ({self.p_needed:.2f}) in {self.doc_id}: "{self.text}"'


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """What a judge said about a verdict, and what the gate alone would have said."""

    judge: str  # its name
    p_before: float  # the gate's own p_complete
    action_before: Action
    p_judge: float | None  # probability of complete evidence; None: no usable answer, see notes

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "action_before": str(self.action_before)}

    def __str__(self) -> str:
        before = f"the gate alone said {self.action_before.upper()}, {self.p_before:.2f}"
        if self.p_judge is None:
            return f"the judge {self.judge} said nothing usable; {before}"
        said = "yes" if self.p_judge >= 0.5 else "no"
        return f"the judge {self.judge} said {said} ({self.p_judge:.2f}); {before}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's answer for one question and its evidence.

    `familiarity` says how similar the question and hits are to the training data, from 0 to 1. If
    it is low, `unfamiliar` says why; p_complete and action then say little, and the interval is
    wide. `quotes` are the sentences that seem to be evidence, if a reader has read the hits.
    `notes` list what it has not read: hits, or parts of them, that are too long or too many.
    `judged` has a judge's opinion and its effect, or None if no judge was asked.
    """

    estimate: Estimate
    action: Action
    missing: tuple[str, ...] = ()
    next_queries: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    familiarity: float = 1.0
    unfamiliar: tuple[str, ...] = ()
    quotes: tuple[Quote, ...] = ()
    notes: tuple[str, ...] = ()
    judged: JudgeReport | None = None

    @property
    def p_complete(self) -> float:
        return self.estimate.p_complete

    def as_json(self) -> dict[str, Any]:
        """The verdict as JSON values, the same for commands, HTTP and integrations."""
        return {
            "action": str(self.action),
            "p_complete": self.p_complete,
            "low": self.estimate.low,
            "high": self.estimate.high,
            "missing": list(self.missing),
            "next_queries": list(self.next_queries),
            "reasons": [asdict(one) for one in self.reasons],
            "familiarity": self.familiarity,
            "unfamiliar": list(self.unfamiliar),
            "quotes": [asdict(one) for one in self.quotes],
            "notes": list(self.notes),
            "judged": None if self.judged is None else self.judged.as_json(),
        }

    def __str__(self) -> str:
        """For a terminal, without unprintable characters: names come from untrusted texts."""
        interval = f"{self.estimate.low:.2f} to {self.estimate.high:.2f}"
        lines = [f"{self.action.upper()}  p_complete {self.p_complete:.2f} ({interval})"]
        lines += [f"  {one.sign} {printable(one.words)}" for one in self.reasons]
        lines += [f"  {printable(str(one))}" for one in self.quotes]
        lines += [f"  missing: {', '.join(map(printable, self.missing))}"] if self.missing else []
        lines += [f"  look for: {printable(query)}" for query in self.next_queries]
        if self.unfamiliar:
            lines.append(f"  {self._familiarity_line()}")
        lines += [f"  {printable(str(self.judged))}"] if self.judged is not None else []
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _familiarity_line(self) -> str:
        why = printable(" ".join(self.unfamiliar))
        return f"familiarity {self.familiarity:.2f}: {why} The probability may be far off."

    def _repr_html_(self) -> str:
        """For a notebook, with everything from a text escaped."""
        low, high = f"{self.estimate.low:.2f}", f"{self.estimate.high:.2f}"
        rows = [(one.sign.replace("-", "&minus;"), _safe(one.words)) for one in self.reasons]
        rows += [("evidence", _safe(str(one))) for one in self.quotes]
        rows += [("missing", _safe(name)) for name in self.missing]
        rows += [("look for", _safe(query)) for query in self.next_queries]
        if self.unfamiliar:
            rows.append(("unfamiliar", _safe(self._familiarity_line())))
        rows += [("judged", _safe(str(self.judged)))] if self.judged is not None else []
        rows += [("note", _safe(note)) for note in self.notes]
        body = "".join(
            f"<tr><td>{left}</td><td style='text-align:left'>{right}</td></tr>"
            for left, right in rows
        )
        head = f"<b>{self.action.upper()}</b> p_complete {self.p_complete:.2f} ({low} to {high})"
        return f"<div>{head}<table>{body}</table></div>" if rows else f"<div>{head}</div>"


def printable(text: str) -> str:
    """Replace control characters, line ends and direction marks, which could spoof a terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


def _safe(text: str) -> str:
    return html.escape(printable(text))


# --- traces


@dataclass(frozen=True, slots=True)
class Citation:
    """A sentence of a document, with its index (from 0)."""

    doc_id: DocId
    sentence: int
    text: str


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """What a gate's reader found in some texts: a part of one of them, or "yes" or "no"."""

    text: str  # empty: nothing
    place: int  # index of the text that contains or supports it
    start: int  # of the answer or of its support, in characters
    end: int
    p: float  # probability that it is right
    p_if_complete: float | None = None  # the same, were the texts complete; None: unknown


class Support(StrEnum):
    """Whether the cited sentences state an answer, leave it open or contradict it."""

    ATTRIBUTABLE = "attributable"
    EXTRAPOLATORY = "extrapolatory"
    CONTRADICTORY = "contradictory"


@dataclass(frozen=True, slots=True)
class Review:
    """How far to trust an answer: `confidence` weighs accuracy and support of its citations."""

    confidence: float
    accuracy: float
    support: Support
    by: str  # "model", "reader", "citations" (no model judged them), or "none" without an answer


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of something. A round is a search beyond the first; tokens are in and out."""

    rounds: int = 0
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    money: float = 0.0


@dataclass(frozen=True, slots=True)
class Opinion:
    """A judge's opinion on one list of hits; without `log_odds`, `error` says why."""

    log_odds: float | None  # that the hits are complete; None: no usable answer
    needed: tuple[float, ...] = ()  # log-odds that the question needs each hit; (): not said
    error: str = ""
    notes: tuple[str, ...] = ()  # what of the hits it has not read


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a language model; `key` is the hash of its prompt."""

    purpose: str
    key: str
    answer: str | None
    error: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One step: question, hits, answer. `number` counts sub-questions; 0: the whole question."""

    question: str
    hits: tuple[Hit, ...]
    verdict: Verdict | None = None
    note: str = ""
    number: int = 0
    answer: str | None = None
    citations: tuple[Citation, ...] = ()
    review: Review | None = None
    revision: int = 0  # how often the answer was revised
    by: str = ""  # "reader" (of the gate), "model", or "joined" from earlier steps
    cost: Cost = Cost()


@dataclass(frozen=True, slots=True)
class Trace:
    """How a question was answered; after ABSTAIN, `answer` is None and `missing` says why."""

    question: Question
    steps: tuple[Step, ...]
    answer: str | None = None
    action: Action | None = None
    plan: tuple[str, ...] = ()  # the sub-questions, numbered from 1
    citations: tuple[Citation, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cost: Cost = Cost()
    calls: tuple[Call, ...] = ()
    ticks: tuple[float, ...] = ()  # each reading of the clock
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
