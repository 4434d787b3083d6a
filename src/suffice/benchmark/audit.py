"""An audit of a made benchmark: what a careful reader would hold against it, counted and with examples.

    duplicates           the same words, or the same documents and answer, twice
    answer leakage       the answer stands in the question, where the question does not offer it as a choice
    one document         one document alone holds the answer and every name of the question
    lexical shortcuts    BM25 alone finds all the evidence, or the answer in its first hit
    balance              hops, kinds, answers, and how questions begin

None of these makes a question wrong by itself: a benchmark that BM25 solves is sound, and says nothing. They are shown, so that
whoever reads a score knows what it was a score of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from suffice.benchmark.stage_protocols import GeneratedQuestion
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.memory import MemoryStore
from suffice.text import names, tokens
from suffice.types import DocId, Document

__all__ = ["CHOICES", "Audit", "Finding", "audit"]

CHOICES = frozenset(
    {"comparison", "temporal", "bridge_comparison"}
)  # the answer stands in the question
EXAMPLES = 3
MOST_ANSWERS = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """How many of how many questions, and the first of them."""

    name: str
    means: str
    count: int
    of: int
    examples: tuple[str, ...] = ()  # question ids

    @property
    def share(self) -> float | None:
        return self.count / self.of if self.of else None


@dataclass(frozen=True)
class Audit:
    """What was found, and how the questions are spread."""

    questions: int
    findings: tuple[Finding, ...]
    balance: Mapping[str, Mapping[str, int]] = field(
        default_factory=dict
    )  # what -> value -> questions

    def finding(self, name: str) -> Finding:
        return next(one for one in self.findings if one.name == name)

    def lines(self) -> list[str]:
        """For a terminal, one line a finding."""
        shown = [f"audit of {self.questions:,} questions"]
        for one in self.findings:
            share = (
                "none to look at"
                if one.share is None
                else f"{one.count:,} of {one.of:,} ({one.share:.1%})"
            )
            first = f", like {', '.join(one.examples)}" if one.examples else ""
            shown.append(f"  {one.name}: {share}: {one.means}{first}")
        for what, counts in self.balance.items():
            shown.append(
                f"  {what}: " + ", ".join(f"{value} {count:,}" for value, count in counts.items())
            )
        return shown

    def as_json(self) -> dict[str, Any]:
        return {
            "questions": self.questions,
            "findings": [{**asdict(one), "share": one.share} for one in self.findings],
            "balance": {what: dict(counts) for what, counts in self.balance.items()},
        }


def audit(
    questions: Sequence[GeneratedQuestion], documents: Iterable[Document], *, k: int = 10
) -> Audit:
    """Look at every question against the corpus; `k`: hits that BM25 may show."""
    store = MemoryStore(documents)
    ranked = (
        store.search_text([one.text for one in questions], k=k)
        if questions and len(store)
        else [()] * len(questions)
    )
    found = [[hit.doc_id for hit in hits] for hits in ranked]
    words = _Words(store)
    answered = [_spaced(one.answer) for one in questions]
    asked = [_spaced(one.text) for one in questions]
    open_ended = [one.kind not in CHOICES and not _is_word(one.answer) for one in questions]
    complete = [set(one.doc_ids) <= set(ids) for one, ids in zip(questions, found)]
    findings = [
        _finding(questions, "duplicates", "the same words as an earlier question", _again(asked)),
        _finding(
            questions,
            "same evidence",
            "the same documents and answer as an earlier question",
            _again(
                [
                    (frozenset(one.doc_ids), answer, one.kind)
                    for one, answer in zip(questions, answered)
                ]
            ),
        ),
        _finding(
            questions,
            "answer leakage",
            "the answer stands in the question (choices and yes or no left out)",
            [answer in text for answer, text in zip(answered, asked)],
            among=open_ended,
        ),
        _finding(
            questions,
            "one document",
            "one document alone holds the answer and every name of the question",
            [words.alone(one, ids) for one, ids in zip(questions, found)],
            among=open_ended,
        ),
        _finding(
            questions, "lexical shortcut", f"all the evidence is among BM25's first {k}", complete
        ),
        _finding(
            questions,
            "answer in the first hit",
            "BM25's first hit holds the answer",
            [bool(ids) and words.holds(ids[0], answer) for ids, answer in zip(found, answered)],
            among=open_ended,
        ),
    ]
    return Audit(len(questions), tuple(findings), _balance(questions))


def _finding(
    questions: Sequence[GeneratedQuestion],
    name: str,
    means: str,
    which: Sequence[bool],
    *,
    among: Sequence[bool] | None = None,
) -> Finding:
    kept = among or [True] * len(questions)
    ids = [
        one.question_id for one, chosen, looked in zip(questions, which, kept) if chosen and looked
    ]
    return Finding(name, means, len(ids), sum(kept), tuple(ids[:EXAMPLES]))


def _again(keys: Sequence[Any]) -> list[bool]:
    seen: set[Any] = set()
    return [key in seen or bool(seen.add(key)) for key in keys]  # type: ignore[func-returns-value]


def _spaced(text: str) -> str:
    """The words between blanks, so that one text can be looked for in another without cutting words."""
    return f" {' '.join(tokens(text))} "


def _is_word(answer: str) -> bool:
    return answer.strip().casefold() in ("yes", "no")


class _Words:
    """The documents' words, each spelled out once."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self._known: dict[DocId, str] = {}

    def holds(self, doc_id: DocId, spaced: str) -> bool:
        if doc_id not in self._known:
            (document,) = self.store.get([doc_id])
            self._known[doc_id] = (
                _spaced(searchable_text(document)) if document is not None else " "
            )
        return bool(spaced.strip()) and spaced in self._known[doc_id]

    def alone(self, made: GeneratedQuestion, found: Sequence[DocId]) -> bool:
        """Whether one document, of the evidence or that BM25 finds, has the answer beside everything that is named."""
        wanted = [_spaced(made.answer), *map(_spaced, names(made.text))]
        if len(wanted) < 2:
            return False
        return any(
            all(self.holds(doc_id, one) for one in wanted)
            for doc_id in dict.fromkeys([*made.doc_ids, *found])
        )


def _balance(questions: Sequence[GeneratedQuestion]) -> dict[str, dict[str, int]]:
    answers = Counter(one.answer.strip().casefold() for one in questions)
    common = dict(answers.most_common(MOST_ANSWERS))
    return {
        "hops": {
            str(hops): n for hops, n in sorted(Counter(one.hops for one in questions).items())
        },
        "kinds": dict(Counter(one.kind for one in questions).most_common()),
        "begin with": dict(
            Counter(" ".join(tokens(one.text)[:1]) for one in questions).most_common(MOST_ANSWERS)
        ),
        "answers, the most frequent": common,
        "answers, different": {"answers": len(answers)} if answers else {},
    }
