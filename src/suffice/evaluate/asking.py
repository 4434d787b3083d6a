"""What asking is worth: the loop beside readers that look once, with the same reader, over a data set's own corpus.

    single passage    the first hit is read
    fixed k           the first k hits are read, as plain RAG does
    ask               plan, act, review, and the gate; with one part switched off for each ablation

Each answer counts by exact match and F1, no answer as wrong; beside it stand how many were answered, how right those were,
whether all gold documents were held (without the gate: cited), and what it took. Without a model everyone reads by rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import Example
from suffice.errors import InputError, nearest
from suffice.evaluate.cases import draw_key
from suffice.evaluate.compare import interval_of_mean
from suffice.evaluate.metrics import ANSWERS
from suffice.evaluate.searching import encoder_for, factories, indexed, opened
from suffice.evaluate.tables import Cell, Table
from suffice.ports import LanguageModel, Progress, Retriever
from suffice.reason.act import Desk, ModelReader
from suffice.reason.budget import Budget, Meter
from suffice.reason.expand import Judge
from suffice.reason.loop import AskPolicy, ask
from suffice.reason.plan import as_it_stands
from suffice.retrieve.links import Links, TitleIndex, mention_links
from suffice.retrieve.memory import MemoryStore
from suffice.types import Cost, DocId, Document

__all__ = ["POLICIES", "SYSTEMS", "Outcome", "asking_table", "chosen_examples", "compare_asking", "shelved"]

POLICIES: Mapping[str, AskPolicy] = {
    "ask": AskPolicy(),
    "ask, no gate": AskPolicy(gated=False),
    "ask, no gate, whatever is cited": AskPolicy(gated=False, attributed=False, answer_from=0.0),
    "ask, no review": AskPolicy(reviewed=False),
    "ask, fixed alpha": AskPolicy(alpha=0.5),
    "ask, any exemplars": AskPolicy(alike=False),
}
SYSTEMS = ("single passage", "fixed k", *POLICIES)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one system made of one question."""

    answer: str | None
    held: frozenset[DocId]
    cost: Cost


@dataclass(slots=True)
class _Shelves:
    """A data set's corpus as `ask` takes it: named retrievers, documents, links."""

    store: MemoryStore
    searchers: Mapping[str, Retriever]
    usual: str
    _links: Links | None = field(default=None)

    def retriever(self, name: str | None = None) -> Retriever:
        return self.searchers[name or self.usual]

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        return self.store.get(doc_ids)

    def links(self) -> Links:
        if self._links is None:
            documents = list(self.store.documents())
            self._links = mention_links(documents, TitleIndex.of(documents))
        return self._links


def shelved(
    dataset: Dataset, *, retriever: str = "hybrid", encoder: str = "wordllama", progress: Progress | None = None
) -> _Shelves:
    """The data set's documents in memory, searched by this retriever, and by words for a second look."""
    chosen = factories(dict.fromkeys([retriever, "bm25"]))
    vectors = encoder_for(chosen, encoder)
    store = indexed(dataset.documents(), vectors, progress)
    return _Shelves(store, opened(chosen, store, vectors), retriever)


def compare_asking(
    examples: Sequence[Example],
    shelves: _Shelves,
    gate: Judge,
    *,
    systems: Sequence[str] = SYSTEMS[:4],
    model: LanguageModel | None = None,
    budget: Budget = Budget(),  # noqa: B008 - frozen
    clock: Callable[[], float] | None = None,
    progress: Progress | None = None,
) -> dict[str, list[Outcome]]:
    """What each system makes of each question."""
    if unknown := [name for name in systems if name not in SYSTEMS]:
        raise InputError(f"no system is named {unknown[0]!r}", hint=nearest(unknown[0], SYSTEMS))
    found: dict[str, list[Outcome]] = {name: [] for name in systems}
    for done, example in enumerate(examples, start=1):
        for name in systems:
            if name in POLICIES:
                found[name].append(_asked(example.question.text, shelves, gate, model, POLICIES[name], budget, clock))
            else:
                k = 1 if name == "single passage" else budget.documents
                found[name].append(_read_once(example.question.text, shelves, model, k, budget, clock))
        if progress is not None:
            progress("asking", done, len(examples))
    return found


def _asked(text: str, shelves: _Shelves, gate: Judge, model: Any, policy: AskPolicy, budget: Budget, clock: Any) -> Outcome:
    trace = ask(text, shelves, gate, model, policy=policy, budget=budget, clock=clock)
    judged = [step for step in trace.steps if step.verdict is not None]
    held = {hit.doc_id for hit in judged[-1].hits} if judged else {one.doc_id for one in trace.citations}
    return Outcome(trace.answer, frozenset(held), trace.cost)


def _read_once(text: str, shelves: _Shelves, model: Any, k: int, budget: Budget, clock: Any) -> Outcome:
    desk, meter = Desk(shelves), Meter(model, budget, clock)
    step = as_it_stands(text)
    hits = desk.look(step.text, k=k, retriever=None)
    reading = ModelReader(meter).read(step.text, step.expects, desk.passages(hits))
    meter.seconds()
    return Outcome(reading.answer, frozenset(hit.doc_id for hit in hits), meter.spent)


def chosen_examples(dataset: Dataset, *, limit: int | None, seed: int = 42, part: str = "all") -> list[Example]:
    """Questions with an answer in an order drawn by seed; "even" and "odd" are halves that share none."""
    known = [one for one in dataset.examples() if one.gold.answer]
    drawn = sorted(known, key=lambda one: draw_key(seed, one.question.text))
    if part not in ("all", "even", "odd"):
        raise InputError(f"part is {part!r}, expected all, even or odd")
    halves = {"all": drawn, "even": drawn[::2], "odd": drawn[1::2]}
    return list(islice(halves[part], limit))


def asking_table(
    title: str, examples: Sequence[Example], found: Mapping[str, Sequence[Outcome]], *, kind: str | None = None
) -> Table:
    """A row a system, over all questions or one kind."""
    at = [place for place, one in enumerate(examples) if kind is None or one.gold.kind == kind]
    rows: list[tuple[Cell, ...]] = []
    for name, outcomes in found.items():
        chosen, gold = [outcomes[place] for place in at], [examples[place].gold for place in at]
        said, truth = [one.answer or "" for one in chosen], [[one.answer or ""] for one in gold]
        answered = np.array([one.answer is not None for one in chosen])
        f1 = np.where(answered, ANSWERS["token_f1"](said, truth), 0.0)
        exact = np.where(answered, ANSWERS["em"](said, truth), 0.0)
        complete = np.array([one.doc_ids <= outcome.held for one, outcome in zip(gold, chosen)])
        unsupported = float((~complete[answered]).mean()) if answered.any() else None
        mean = {
            part: float(np.mean([getattr(one.cost, part) for one in chosen]))
            for part in ("rounds", "calls", "tokens", "seconds")
        }
        rows.append(
            (
                name,
                len(at),
                interval_of_mean(exact),
                interval_of_mean(f1),
                float(answered.mean()),
                float(f1[answered].mean()) if answered.any() else None,
                float(complete.mean()),
                unsupported,
                float(np.mean([len(one.held) for one in chosen])),
                *mean.values(),
            )
        )
    columns = (
        "system",
        "n",
        "exact match",
        "F1",
        "answered",
        "F1 of answered",
        "complete",
        "answered but incomplete",
        "documents",
    )
    note = "No answer counts as wrong. Complete: all gold documents are held. In brackets: 95 % bootstrap interval."
    return Table(
        title if kind is None else f"{title}: {kind}", (*columns, "rounds", "calls", "tokens", "seconds"), tuple(rows), note
    )
