"""Who answers: the loop, and others with the same reader who look once, or look on without knowing when to stop.

    single passage    the first hit is read
    naive             the first k hits are read: plain RAG
    fixed k           ... and as many of them as the loop may hold
    along links       fixed k, but by the bridge, which follows names from document to document
    interleaved       each sentence that was read is the next query, as IRCoT's thoughts are; then everything is read
    max rounds        the loop without a gate; every step is looked at again, however sure it is
    always            the loop without a gate that says whatever it has found
    ask               plan, act, review, and the gate
    ask, no gate      ... and so on: with one part switched off

Without a model everyone reads by the same rules. What each would have said, had it had to answer, and how sure it is, stands
beside what it said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import Example, draw_key
from suffice.errors import InputError, ModelError, NotReadyError, nearest
from suffice.evaluate.answers import Outcome
from suffice.evaluate.expansion import BRIDGE
from suffice.evaluate.searching import Remembered, factories, indexed, opened
from suffice.ports import ENCODERS, Encoder, LanguageModel, Progress, Retriever, by_id
from suffice.reason.act import Desk, ModelReader
from suffice.reason.budget import Budget, Meter
from suffice.reason.expand import Judge
from suffice.reason.loop import AskPolicy, Foresees, ask
from suffice.reason.plan import as_it_stands
from suffice.reason.review import review
from suffice.retrieve.chunks import chunked
from suffice.retrieve.links import Links, TitleIndex, mention_links
from suffice.retrieve.memory import MemoryStore
from suffice.retrieve.ranker import HandRanker
from suffice.types import Action, DocId, Document, Estimate, Hit, Step, Trace, Verdict

__all__ = [
    "MODEL_ONLY",
    "PARTS",
    "SYSTEMS",
    "USUAL",
    "Bench",
    "Content",
    "Shelved",
    "answered_by",
    "drawn",
    "shelved",
]

PARTS = ("all", "even", "odd")
INTERLEAVED = 3  # documents that each sentence may add
_AT_ONCE = 256

System = Callable[["Bench", str, Judge], Outcome]


# ------------------------------------------------------------------------------------------------------ the corpus


@dataclass(slots=True)
class Shelved:
    """A data set's corpus as `ask` takes it: named retrievers, documents, links.

    The bridge is opened when somebody asks for it, with the weights set by hand: the ranker that ships has seen the questions.
    """

    store: MemoryStore
    searchers: dict[str, Retriever]
    usual: str
    encoder: Encoder
    remember: bool = False  # search for nothing twice: quicker, but then nobody's seconds count
    _links: Links | None = field(default=None)

    def retriever(self, name: str | None = None) -> Retriever:
        name = name or self.usual
        if name not in self.searchers:
            if name != BRIDGE:
                raise NotReadyError(f"nothing here is searched by {name}", hint="choose it with --retriever")
            made = factories([BRIDGE])[BRIDGE](self.store, encoder=self.encoder, ranker=HandRanker())
            self.searchers[BRIDGE] = Remembered(made) if self.remember else made
        return self.searchers[name]

    def foresee(self, questions: Sequence[str], *, k: int) -> None:
        """Search for all of them at once, where what was found is remembered."""
        if self.remember:
            for name in (self.usual, BRIDGE):
                self.retriever(name).search(questions, k=k)

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        return self.store.get(doc_ids)

    def links(self) -> Links:
        if self._links is None:
            documents = list(self.store.documents())
            self._links = mention_links(documents, TitleIndex.of(documents))
        return self._links

    def wholes(self, doc_ids: Iterable[DocId]) -> tuple[DocId, ...]:
        """The documents that these are, or are chunks of, each once: what gold names."""
        ids = list(doc_ids)
        whole = [one.parent or one.doc_id if one is not None else doc_id for doc_id, one in zip(ids, self.get(ids))]
        return tuple(dict.fromkeys(whole))


def shelved(
    dataset: Dataset,
    *,
    retriever: str = "hybrid",
    encoder: str = "wordllama",
    chunk_tokens: int = 0,
    chunk_overlap: int = 32,
    remember: bool = False,
    progress: Progress | None = None,
) -> Shelved:
    """The data set's documents in memory, searched by this retriever, by words for a second look, and along links."""
    chosen = factories(dict.fromkeys([retriever, "bm25"]))
    vectors = ENCODERS.get(encoder)()
    documents: Iterable[Document] = dataset.documents()
    if chunk_tokens:
        documents = chunked(documents, tokens=chunk_tokens, overlap=chunk_overlap)
    store = indexed(documents, vectors, progress)
    made = opened(chosen, store, vectors)
    searchers: dict[str, Retriever] = {name: Remembered(one) for name, one in made.items()} if remember else made
    return Shelved(store, searchers, retriever, vectors, remember)


def drawn(dataset: Dataset, *, limit: int | None = None, seed: int = 42, part: str = "all") -> list[Example]:
    """Questions with an answer in an order drawn by seed; "even" and "odd" are halves that share no question's words."""
    if part not in PARTS:
        raise InputError(f"part is {part!r}, expected {', '.join(PARTS)}", hint="for example --part odd")
    known = sorted((one for one in dataset.examples() if one.gold.answer), key=lambda one: draw_key(seed, one.question.text))
    place = {text: at % 2 for at, text in enumerate(dict.fromkeys(one.question.text for one in known))}
    halves = {"even": (0,), "odd": (1,), "all": (0, 1)}[part]
    return list(islice((one for one in known if place[one.question.text] in halves), limit))


# ------------------------------------------------------------------------------------------------------ the systems


@dataclass(frozen=True)
class Bench:
    """What every system works with: the same shelves, reader, budget and clock."""

    shelves: Shelved
    model: LanguageModel | None = None
    budget: Budget = Budget()  # noqa: RUF009 - frozen
    k: int = 5  # hits that naive RAG reads
    letters: int = 6000  # characters of passages that a model is shown at once
    clock: Callable[[], float] | None = None

    def begun(self) -> tuple[Desk, Meter]:
        return Desk(self.shelves), Meter(self.model, self.budget, self.clock)

    def read(self, text: str, hits: Sequence[Hit], desk: Desk, meter: Meter) -> Outcome:
        """What the reader makes of the question as it stands and of these hits."""
        step, passages = as_it_stands(text), desk.passages(hits)
        reading = ModelReader(meter, letters=self.letters).read(step.text, step.expects, passages)
        judged = review(step.text, reading, passages, hops=1)
        meter.seconds()
        sure = {"review": judged.confidence, "reader": judged.accuracy, "hit": _score(hits)}
        held = tuple(hit.doc_id for hit in hits)
        error = next((call.error for call in meter.calls if call.error), None)
        return Outcome(reading.answer, held, meter.spent, reading.answer, sure, error)


def _score(hits: Sequence[Hit]) -> float:
    return next((float(hit.score) for hit in hits if hit.score is not None), 0.0)


def _once(hits: Callable[[Bench], int], retriever: str | None = None) -> System:
    def system(bench: Bench, text: str, _: Judge) -> Outcome:
        desk, meter = bench.begun()
        return bench.read(text, desk.look(text, k=hits(bench), retriever=retriever), desk, meter)

    return system


def _interleaved(bench: Bench, text: str, _: Judge) -> Outcome:
    """Read, look for the sentence that was read, read what is new, until nothing new comes or the shelf is full."""
    desk, meter = bench.begun()
    reader, step = ModelReader(meter, letters=bench.letters), as_it_stands(text)
    fresh: Sequence[Hit] = desk.look(text, k=INTERLEAVED, retriever=None)
    held, asked = list(fresh), {text}
    while fresh and len(held) < bench.budget.documents and meter.rounds_left and not meter.late():
        cited = reader.read(step.text, step.expects, desk.passages(fresh)).citations
        sentence = next((one.text for one in cited if one.text not in asked), None)
        if sentence is None:
            break
        asked.add(sentence)
        meter.rounds += 1
        known = {hit.doc_id for hit in held}
        found = desk.look(sentence, k=2 * INTERLEAVED, retriever=None)
        fresh = [hit for hit in found if hit.doc_id not in known][: min(INTERLEAVED, bench.budget.documents - len(held))]
        held += fresh
    return bench.read(text, held, desk, meter)


class Content:
    """Stands for no gate: whatever is held is enough, and the trace still tells what was held."""

    def check_batch(self, pairs: Iterable[Any], **_: Any) -> list[Verdict]:
        return [Verdict(Estimate(1.0, 1.0, 1.0), Action.ANSWER) for _ in pairs]


class _Foreseeing(Content):
    """... but the hops that the gate foresees are still known."""

    def __init__(self, gate: Foresees) -> None:
        self.hops = gate.hops


def _loop(policy: AskPolicy, *, gated: bool = True, always: bool = False) -> System:
    def system(bench: Bench, text: str, gate: Judge) -> Outcome:
        free = _Foreseeing(gate) if isinstance(gate, Foresees) else Content()
        judge: Judge = gate if gated else free
        shown = replace(policy, letters=bench.letters)
        trace = ask(text, bench.shelves, judge, bench.model, policy=shown, budget=bench.budget, clock=bench.clock)
        outcome = _told(trace, gated=gated)
        return replace(outcome, answer=outcome.candidate) if always else outcome

    return system


def _told(trace: Trace, *, gated: bool) -> Outcome:
    last: dict[int, Step] = {step.number: step for step in trace.steps if step.verdict is None}
    final = next((one for one in (last.get(len(trace.plan)), last.get(0)) if one and one.answer), None)
    (*_, judged) = (step for step in trace.steps if step.verdict is not None)
    sure = {"hit": min((_score(step.hits) for step in last.values() if step.hits), default=0.0)}
    if final is not None and final.review is not None:
        sure |= {"review": final.review.confidence, "reader": final.review.accuracy}
    if gated and judged.verdict is not None:
        sure["gate"] = judged.verdict.p_complete
    held = tuple(hit.doc_id for hit in judged.hits)
    error = next((call.error for call in trace.calls if call.error), None)
    return Outcome(trace.answer, held, trace.cost, final.answer if final else None, sure, error)


_AGAIN = AskPolicy(repair_below=1.1, repairs=3, attributed=False, answer_from=0.0)

SYSTEMS: Mapping[str, System] = {
    "single passage": _once(lambda _: 1),
    "naive": _once(lambda bench: bench.k),
    "fixed k": _once(lambda bench: bench.budget.documents),
    "along links": _once(lambda bench: bench.budget.documents, BRIDGE),
    "interleaved": _interleaved,
    "max rounds": _loop(_AGAIN, gated=False, always=True),
    "always": _loop(AskPolicy(), gated=False, always=True),
    "always, no review": _loop(AskPolicy(reviewed=False), gated=False, always=True),
    "ask": _loop(AskPolicy()),
    "ask, no gate": _loop(AskPolicy(), gated=False),
    "ask, no review": _loop(AskPolicy(reviewed=False)),
    "ask, fixed alpha": _loop(AskPolicy(alpha=0.5)),
    "ask, any exemplars": _loop(AskPolicy(alike=False)),
}
USUAL = ("single passage", "naive", "fixed k", "along links", "interleaved", "max rounds", "always", "ask")
MODEL_ONLY = ("ask, any exemplars",)  # the rules are shown no exemplars


def answered_by(
    examples: Sequence[Example],
    bench: Bench,
    gates: Sequence[Judge],
    *,
    systems: Sequence[str] = USUAL,
    progress: Progress | None = None,
) -> dict[str, list[Outcome]]:
    """What each system makes of each question. `gates`: who judges each question, one that was not fitted on it.

    A language model that fails a question is noted, and the rules read; one that never answers at all is an error.
    """
    if unknown := [name for name in systems if name not in SYSTEMS]:
        raise InputError(f"no system is named {unknown[0]!r}", hint=nearest(unknown[0], SYSTEMS))
    found: dict[str, list[Outcome]] = {name: [] for name in systems}
    bench.shelves.foresee([one.question.text for one in examples], k=bench.budget.documents)
    for done, (example, gate) in enumerate(zip(examples, gates, strict=True), start=1):
        for name in systems:
            found[name].append(SYSTEMS[name](bench, example.question.text, gate))
        if progress is not None:
            progress("answering", done, len(examples))
    every = [one for outcomes in found.values() for one in outcomes]
    if bench.model is not None and every and all(one.error for one in every):
        raise ModelError(f"the model answered nothing: {every[0].error}", hint="check the server, its address and its name")
    return {name: _weighed(examples, outcomes, gates, bench.shelves) for name, outcomes in found.items()}


def _weighed(
    examples: Sequence[Example], outcomes: Sequence[Outcome], gates: Sequence[Judge], shelves: Shelved
) -> list[Outcome]:
    """Each with the gate's probability that what is held is complete (those that asked it have it), and held in wholes."""
    weighed = list(outcomes)
    rows = [at for at, one in enumerate(outcomes) if "gate" not in one.sure and one.held]
    by_gate: dict[int, list[int]] = {}
    for at in rows:
        by_gate.setdefault(id(gates[at]), []).append(at)
    for same in by_gate.values():
        for start in range(0, len(same), _AT_ONCE):
            some = same[start : start + _AT_ONCE]
            pairs = [(examples[at].question.text, [Hit(one) for one in outcomes[at].held or ()]) for at in some]
            documents = by_id(shelves.get, (hit.doc_id for _, hits in pairs for hit in hits))
            verdicts = gates[same[0]].check_batch(pairs, documents=documents, explain=False)
            for at, verdict in zip(some, verdicts, strict=True):
                weighed[at] = replace(weighed[at], sure={**weighed[at].sure, "gate": verdict.p_complete})
    return [replace(one, held=shelves.wholes(one.held or ())) for one in weighed]
