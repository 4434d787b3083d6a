"""An audit of a benchmark: count its possible weaknesses, with examples.

    duplicates           the same text, or the same documents and answer, twice
    answer leakage       the question contains its answer, without offering it as a choice
    one document         one document alone has the answer and every name in the question
    lexical shortcuts    BM25 alone finds all the evidence, or the answer in its first hit
    balance              hops, kinds, answers, how questions begin, and how varied the chains are

None of these alone makes a question wrong: a benchmark that BM25 solves is valid but tells you
little. The audit shows what a score measures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.memory import MemoryStore
from suffice.text import names, tokens
from suffice.types import DocId, Document
from suffice_grade.stage_protocols import GeneratedQuestion
from suffice_grade.validation import CHOICE_KINDS

EXAMPLES = 3
MOST_COMMON = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """How many of the questions are affected, and the first of them."""

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
    """The findings, and the distribution of the questions."""

    questions: int
    findings: tuple[Finding, ...]
    balance: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # what -> value -> count

    def finding(self, name: str) -> Finding:
        return next(one for one in self.findings if one.name == name)

    def lines(self) -> list[str]:
        """The audit for a terminal, one line per finding."""
        shown = [f"audit of {self.questions:,} questions"]
        for one in self.findings:
            share = f"{one.count:,} of {one.of:,} ({one.share:.1%})" if one.of else "not applicable"
            first = f", like {', '.join(one.examples)}" if one.examples else ""
            shown.append(f"  {one.name}: {share}: {one.means}{first}")
        for what, counts in self.balance.items():
            listed = ", ".join(f"{value} {count:,}" for value, count in counts.items())
            shown.append(f"  {what}: {listed}")
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
    """Check every question against the corpus; `k` is how many hits BM25 returns."""
    store = MemoryStore(documents)
    texts = [one.text for one in questions]
    ranked = store.search_text(texts, k=k) if texts and len(store) else [()] * len(texts)
    found = [[hit.doc_id for hit in hits] for hits in ranked]
    words = _DocumentWords(store)
    answers = [_spaced(one.answer) for one in questions]
    spaced = [_spaced(text) for text in texts]
    yes_no = [one.answer.strip().casefold() in ("yes", "no") for one in questions]
    is_open = [
        one.kind not in CHOICE_KINDS and not choice for one, choice in zip(questions, yes_no)
    ]
    everything = [True] * len(questions)
    evidence = [
        (frozenset(one.doc_ids), answer, one.kind) for one, answer in zip(questions, answers)
    ]
    rows = (
        ("duplicates", "the same words as an earlier question", _repeated(spaced), everything),
        (
            "same evidence",
            "the same documents and answer as an earlier question",
            _repeated(evidence),
            everything,
        ),
        (
            "answer leakage",
            "the answer is in the question (choices and yes or no left out)",
            [answer in text for answer, text in zip(answers, spaced)],
            is_open,
        ),
        (
            "one document",
            "one document alone has the answer and every name of the question",
            [words.has_all(one, ids) for one, ids in zip(questions, found)],
            is_open,
        ),
        (
            "lexical shortcut",
            f"all the evidence is among BM25's first {k}",
            [set(one.doc_ids) <= set(ids) for one, ids in zip(questions, found)],
            everything,
        ),
        (
            "answer in the first hit",
            "BM25's first hit has the answer",
            [bool(ids) and words.has(ids[0], answer) for ids, answer in zip(found, answers)],
            is_open,
        ),
    )
    findings = []
    for name, means, which, among in rows:
        marked = zip(questions, which, among)
        ids = [one.question_id for one, chosen, counted in marked if chosen and counted]
        findings.append(Finding(name, means, len(ids), sum(among), tuple(ids[:EXAMPLES])))
    return Audit(len(questions), tuple(findings), _balance(questions))


def _repeated(keys: Sequence[Hashable]) -> list[bool]:
    first: dict[Hashable, int] = {}
    return [first.setdefault(key, at) != at for at, key in enumerate(keys)]


def _spaced(text: str) -> str:
    """The words with spaces around them, so that a search never matches part of a word."""
    return f" {' '.join(tokens(text))} "


class _DocumentWords:
    """The documents' words, each tokenized once."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self._known: dict[DocId, str] = {}

    def has(self, doc_id: DocId, spaced: str) -> bool:
        if doc_id not in self._known:
            (document,) = self.store.get([doc_id])
            self._known[doc_id] = " " if document is None else _spaced(searchable_text(document))
        return bool(spaced.strip()) and spaced in self._known[doc_id]

    def has_all(self, question: GeneratedQuestion, found: Sequence[DocId]) -> bool:
        """Whether one document, gold or retrieved, has the answer and all the names."""
        wanted = [_spaced(question.answer), *map(_spaced, names(question.text))]
        doc_ids = dict.fromkeys([*question.doc_ids, *found])
        return len(wanted) > 1 and any(
            all(self.has(doc_id, one) for one in wanted) for doc_id in doc_ids
        )


def _balance(questions: Sequence[GeneratedQuestion]) -> dict[str, dict[str, int]]:
    answers = Counter(one.answer.strip().casefold() for one in questions)
    hops = Counter(one.hops for one in questions)
    begins = Counter(" ".join(tokens(one.text)[:1]) for one in questions)
    return {
        "hops": {str(number): count for number, count in sorted(hops.items())},
        "kinds": dict(Counter(one.kind for one in questions).most_common()),
        "begin with": dict(begins.most_common(MOST_COMMON)),
        "answers, the most frequent": dict(answers.most_common(MOST_COMMON)),
        "answers, different": {"answers": len(answers)} if answers else {},
        **{f"chains, {which} by hops": counts for which, counts in variety(questions).items()},
    }


def variety(questions: Iterable[GeneratedQuestion]) -> dict[str, dict[str, int]]:
    """How many different first and last facts the chains of each number of hops have.

    A thousand chains that all end at the mayor of one city test little.
    """
    chains = [one for one in questions if one.kind == "chain" and one.paths]
    found: dict[str, dict[str, int]] = {}
    for which, at in (("different first facts", 0), ("different last facts", -1)):
        facts = {(one.hops, one.paths[0].triples[at].claim_id) for one in chains}
        counts = Counter(hops for hops, _ in facts)
        found[which] = {str(hops): count for hops, count in sorted(counts.items())}
    return found if chains else {}
