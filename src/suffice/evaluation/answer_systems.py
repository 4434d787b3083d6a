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

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.answering.ask import AskPolicy, HopEstimator, ask
from suffice.answering.budget import Budget, MeteredModel
from suffice.answering.plan import whole_question_step
from suffice.answering.review import review
from suffice.answering.step import EvidenceCache, ModelReader
from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import GoldQuestion, draw_key
from suffice.errors import InputError, ModelError, NotReadyError, did_you_mean
from suffice.evaluation.answers import AnswerOutcome, AnswerRun, make_answer_run
from suffice.evaluation.expansion import BRIDGE, held_set, partial_sets
from suffice.evaluation.gate_evaluation import (
    FITTED,
    PolicyChoice,
    count_seen,
    gate_fitter,
    require_fit_extra,
    with_seen_questions,
)
from suffice.evaluation.searching import (
    CachedRetriever,
    index_documents,
    open_retrievers,
    retriever_factories,
)
from suffice.gate.featurize import NO_ENCODERS
from suffice.gate.gate_ref import FAST, open_gate
from suffice.protocols import (
    Encoder,
    GateLike,
    LanguageModel,
    Progress,
    Retriever,
    component_name,
    documents_by_id,
)
from suffice.registry import ENCODERS
from suffice.retrieval.bridge import WeightedRanker
from suffice.retrieval.corpus import chunk_documents
from suffice.retrieval.links import MentionLinks, TitleIndex, mention_links
from suffice.retrieval.memory import MemoryStore
from suffice.types import Action, DocId, Document, Estimate, Hit, Step, Trace, Verdict

if TYPE_CHECKING:
    from suffice.gate.gate import Gate

__all__ = [
    "DEFAULT_SYSTEMS",
    "HALVES",
    "MODEL_ONLY",
    "MOST_TRAINING_QUESTIONS",
    "SYSTEMS",
    "AlwaysComplete",
    "AnswerSettings",
    "AnswerSetup",
    "InMemoryCorpus",
    "compare_answers",
    "draw_questions",
    "gates_for_questions",
    "open_corpus",
    "parse_systems",
    "run_systems",
]


HALVES = ("all", "even", "odd")
INTERLEAVED = 3  # documents that each sentence may add
_AT_ONCE = 256

System = Callable[["InMemoryCorpus", str, GateLike], AnswerOutcome]


# ------------------------------------------------------------------------------------------------------ the corpus


@dataclass(slots=True)
class InMemoryCorpus:
    """A data set's corpus as `ask` takes it: named retrievers, documents, links.

    The bridge is opened when somebody asks for it, with the weights set by hand: the ranker that ships has seen the questions.
    """

    store: MemoryStore
    searchers: dict[str, Retriever]
    usual: str
    encoder: Encoder
    remember: bool = False  # search for nothing twice: quicker, but then nobody's seconds count
    _links: MentionLinks | None = field(default=None)

    def retriever(self, name: str | None = None) -> Retriever:
        name = name or self.usual
        if name not in self.searchers:
            if name != BRIDGE:
                raise NotReadyError(
                    f"nothing here is searched by {name}", hint="choose it with --retriever"
                )
            made = retriever_factories([BRIDGE])[BRIDGE](
                self.store, encoder=self.encoder, ranker=WeightedRanker()
            )
            self.searchers[BRIDGE] = CachedRetriever(made) if self.remember else made
        return self.searchers[name]

    def foresee(self, questions: Sequence[str], *, k: int) -> None:
        """Search for all of them at once, where what was found is remembered."""
        if self.remember:
            for name in (self.usual, BRIDGE):
                self.retriever(name).search(questions, k=k)

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        return self.store.get(doc_ids)

    def links(self) -> MentionLinks:
        if self._links is None:
            documents = list(self.store.documents())
            self._links = mention_links(documents, TitleIndex.of(documents))
        return self._links

    def wholes(self, doc_ids: Iterable[DocId]) -> tuple[DocId, ...]:
        """The documents that these are, or are chunks of, each once: what gold names."""
        ids = list(doc_ids)
        whole = [
            one.parent or one.doc_id if one is not None else doc_id
            for doc_id, one in zip(ids, self.get(ids))
        ]
        return tuple(dict.fromkeys(whole))


def open_corpus(
    dataset: Dataset,
    *,
    retriever: str = "hybrid",
    encoder: str = "wordllama",
    chunk_tokens: int = 0,
    chunk_overlap: int = 32,
    remember: bool = False,
    progress: Progress | None = None,
) -> InMemoryCorpus:
    """The data set's documents in memory, searched by this retriever, by words for a second look, and along links."""
    chosen = retriever_factories(dict.fromkeys([retriever, "bm25"]))
    vectors = ENCODERS.get(encoder)()
    documents: Iterable[Document] = dataset.documents()
    if chunk_tokens:
        documents = chunk_documents(documents, tokens=chunk_tokens, overlap=chunk_overlap)
    store = index_documents(documents, vectors, progress)
    made = open_retrievers(chosen, store, vectors)
    searchers: dict[str, Retriever] = (
        {name: CachedRetriever(one) for name, one in made.items()} if remember else made
    )
    return InMemoryCorpus(store, searchers, retriever, vectors, remember)


def draw_questions(
    dataset: Dataset, *, limit: int | None = None, seed: int = 42, part: str = "all"
) -> list[GoldQuestion]:
    """Questions with an answer in an order drawn by seed; "even" and "odd" are halves that share no question's words."""
    if part not in HALVES:
        raise InputError(
            f"part is {part!r}, expected {', '.join(HALVES)}", hint="for example --part odd"
        )
    known = sorted(
        (one for one in dataset.questions() if one.gold.answer),
        key=lambda one: draw_key(seed, one.question.text),
    )
    place = {
        text: at % 2 for at, text in enumerate(dict.fromkeys(one.question.text for one in known))
    }
    halves = {"even": (0,), "odd": (1,), "all": (0, 1)}[part]
    return list(islice((one for one in known if place[one.question.text] in halves), limit))


# ------------------------------------------------------------------------------------------------------ the systems


@dataclass(frozen=True)
class AnswerSetup:
    """What every system works with: the same shelves, reader, budget and clock."""

    shelves: InMemoryCorpus
    model: LanguageModel | None = None
    budget: Budget = Budget()  # noqa: RUF009 - frozen
    k: int = 5  # hits that naive RAG reads
    letters: int = 6000  # characters of passages that a model is shown at once
    clock: Callable[[], float] | None = None

    def begun(self) -> tuple[EvidenceCache, MeteredModel]:
        return EvidenceCache(self.shelves), MeteredModel(self.model, self.budget, self.clock)

    def read(
        self, text: str, hits: Sequence[Hit], desk: EvidenceCache, meter: MeteredModel
    ) -> AnswerOutcome:
        """What the reader makes of the question as it stands and of these hits."""
        step, passages = whole_question_step(text), desk.passages(hits)
        reading = ModelReader(meter, letters=self.letters).read(step.text, step.expects, passages)
        judged = review(step.text, reading, passages, hops=1)
        meter.seconds()
        sure = {"review": judged.confidence, "reader": judged.accuracy, "hit": _first_score(hits)}
        held = tuple(hit.doc_id for hit in hits)
        error = next((call.error for call in meter.calls if call.error), None)
        return AnswerOutcome(reading.answer, held, meter.spent, reading.answer, sure, error)


def _first_score(hits: Sequence[Hit]) -> float:
    return next((float(hit.score) for hit in hits if hit.score is not None), 0.0)


def _read_once(hits: Callable[[AnswerSetup], int], retriever: str | None = None) -> System:
    def system(bench: AnswerSetup, text: str, _: GateLike) -> AnswerOutcome:
        desk, meter = bench.begun()
        return bench.read(text, desk.look(text, k=hits(bench), retriever=retriever), desk, meter)

    return system


def _read_interleaved(bench: AnswerSetup, text: str, _: GateLike) -> AnswerOutcome:
    """Read, look for the sentence that was read, read what is new, until nothing new comes or the shelf is full."""
    desk, meter = bench.begun()
    reader, step = ModelReader(meter, letters=bench.letters), whole_question_step(text)
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
        fresh = [hit for hit in found if hit.doc_id not in known][
            : min(INTERLEAVED, bench.budget.documents - len(held))
        ]
        held += fresh
    return bench.read(text, held, desk, meter)


class AlwaysComplete:
    """Stands for no gate: whatever is held is enough, and the trace still tells what was held."""

    def check_batch(self, pairs: Iterable[Any], **_: Any) -> list[Verdict]:
        return [Verdict(Estimate(1.0, 1.0, 1.0), Action.ANSWER) for _ in pairs]


class _AlwaysCompleteWithHops(AlwaysComplete):
    """... but the hops that the gate foresees are still known."""

    def __init__(self, gate: HopEstimator) -> None:
        self.hops = gate.hops


def _ask_system(policy: AskPolicy, *, gated: bool = True, always: bool = False) -> System:
    def system(bench: AnswerSetup, text: str, gate: GateLike) -> AnswerOutcome:
        free = _AlwaysCompleteWithHops(gate) if isinstance(gate, HopEstimator) else AlwaysComplete()
        judge: GateLike = gate if gated else free
        shown = replace(policy, letters=bench.letters)
        trace = ask(
            text,
            bench.shelves,
            judge,
            bench.model,
            policy=shown,
            budget=bench.budget,
            clock=bench.clock,
        )
        outcome = _trace_outcome(trace, gated=gated)
        return replace(outcome, answer=outcome.candidate) if always else outcome

    return system


def _trace_outcome(trace: Trace, *, gated: bool) -> AnswerOutcome:
    last: dict[int, Step] = {step.number: step for step in trace.steps if step.verdict is None}
    final = next(
        (one for one in (last.get(len(trace.plan)), last.get(0)) if one and one.answer), None
    )
    (*_, judged) = (step for step in trace.steps if step.verdict is not None)
    sure = {
        "hit": min((_first_score(step.hits) for step in last.values() if step.hits), default=0.0)
    }
    if final is not None and final.review is not None:
        sure |= {"review": final.review.confidence, "reader": final.review.accuracy}
    if gated and judged.verdict is not None:
        sure["gate"] = judged.verdict.p_complete
    held = tuple(hit.doc_id for hit in judged.hits)
    error = next((call.error for call in trace.calls if call.error), None)
    return AnswerOutcome(
        trace.answer, held, trace.cost, final.answer if final else None, sure, error
    )


_REVISE_ALWAYS = AskPolicy(repair_below=1.1, repairs=3, attributed=False, answer_from=0.0)

SYSTEMS: Mapping[str, System] = {
    "single passage": _read_once(lambda _: 1),
    "naive": _read_once(lambda bench: bench.k),
    "fixed k": _read_once(lambda bench: bench.budget.documents),
    "along links": _read_once(lambda bench: bench.budget.documents, BRIDGE),
    "interleaved": _read_interleaved,
    "max rounds": _ask_system(_REVISE_ALWAYS, gated=False, always=True),
    "always": _ask_system(AskPolicy(), gated=False, always=True),
    "always, no review": _ask_system(AskPolicy(reviewed=False), gated=False, always=True),
    "ask": _ask_system(AskPolicy()),
    "ask, no gate": _ask_system(AskPolicy(), gated=False),
    "ask, no review": _ask_system(AskPolicy(reviewed=False)),
    "ask, fixed alpha": _ask_system(AskPolicy(alpha=0.5)),
    "ask, any exemplars": _ask_system(AskPolicy(alike=False)),
}
DEFAULT_SYSTEMS = (
    "single passage",
    "naive",
    "fixed k",
    "along links",
    "interleaved",
    "max rounds",
    "always",
    "ask",
)
MODEL_ONLY = ("ask, any exemplars",)  # the rules are shown no exemplars


def run_systems(
    examples: Sequence[GoldQuestion],
    bench: AnswerSetup,
    gates: Sequence[GateLike],
    *,
    systems: Sequence[str] = DEFAULT_SYSTEMS,
    progress: Progress | None = None,
) -> dict[str, list[AnswerOutcome]]:
    """What each system makes of each question. `gates`: who judges each question, one that was not fitted on it.

    A language model that fails a question is noted, and the rules read; one that never answers at all is an error.
    """
    if unknown := [name for name in systems if name not in SYSTEMS]:
        raise InputError(
            f"no system is named {unknown[0]!r}", hint=did_you_mean(unknown[0], SYSTEMS)
        )
    found: dict[str, list[AnswerOutcome]] = {name: [] for name in systems}
    bench.shelves.foresee([one.question.text for one in examples], k=bench.budget.documents)
    for done, (example, gate) in enumerate(zip(examples, gates, strict=True), start=1):
        for name in systems:
            found[name].append(SYSTEMS[name](bench, example.question.text, gate))
        if progress is not None:
            progress("answering", done, len(examples))
    every = [one for outcomes in found.values() for one in outcomes]
    if bench.model is not None and every and all(one.error for one in every):
        raise ModelError(
            f"the model answered nothing: {every[0].error}",
            hint="check the server, its address and its name",
        )
    return {
        name: _add_gate_confidence(examples, outcomes, gates, bench.shelves)
        for name, outcomes in found.items()
    }


def _add_gate_confidence(
    examples: Sequence[GoldQuestion],
    outcomes: Sequence[AnswerOutcome],
    gates: Sequence[GateLike],
    shelves: InMemoryCorpus,
) -> list[AnswerOutcome]:
    """Each with the gate's probability that what is held is complete (those that asked it have it), and held in wholes."""
    weighed = list(outcomes)
    rows = [at for at, one in enumerate(outcomes) if "gate" not in one.sure and one.held]
    by_gate: dict[int, list[int]] = {}
    for at in rows:
        by_gate.setdefault(id(gates[at]), []).append(at)
    for same in by_gate.values():
        for start in range(0, len(same), _AT_ONCE):
            some = same[start : start + _AT_ONCE]
            pairs = [
                (examples[at].question.text, [Hit(one) for one in outcomes[at].held or ()])
                for at in some
            ]
            documents = documents_by_id(
                shelves.get, (hit.doc_id for _, hits in pairs for hit in hits)
            )
            verdicts = gates[same[0]].check_batch(pairs, documents=documents, explain=False)
            for at, verdict in zip(some, verdicts, strict=True):
                weighed[at] = replace(
                    weighed[at], sure={**weighed[at].sure, "gate": verdict.p_complete}
                )
    return [replace(one, held=shelves.wholes(one.held or ())) for one in weighed]


# --- answer_gates: Gates that may judge: no question is judged by a gate that was fitted on it.

MOST_TRAINING_QUESTIONS = 300  # questions of a half that a gate learns from, at most
_SEARCHED_AT_ONCE = 64
_OTHER_HALF = {"even": "odd", "odd": "even"}


def gates_for_questions(
    dataset: Dataset,
    examples: Sequence[GoldQuestion],
    bench: AnswerSetup,
    *,
    gate: str = FITTED,
    preset: str = "fast",
    seed: int = 42,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> tuple[list[Gate], int]:
    """Who judges each question, and how many of them their judge was fitted on (none, if "fitted")."""
    texts = [one.question.text for one in examples]
    if gate != FITTED:
        opened = open_gate(gate, preset)
        return [opened] * len(examples), count_seen(opened, texts)
    if any(one.parent for one in bench.shelves.store.documents()):
        raise InputError(
            "a gate is fitted on whole documents",
            hint="leave chunks out, or name a gate: --gate default",
        )
    half_of = {
        one.question.text: half
        for half in _OTHER_HALF
        for one in draw_questions(dataset, seed=seed, part=half)
    }
    made: dict[str, Gate] = {}
    for half in dict.fromkeys(half_of[text] for text in texts):
        lessons = draw_questions(
            dataset, seed=seed, part=_OTHER_HALF[half], limit=MOST_TRAINING_QUESTIONS
        )
        made[half] = _cached_gate(lessons, bench, seed, cache, progress)
    return [made[half_of[text]] for text in texts], sum(
        count_seen(made[half_of[text]], [text]) for text in texts
    )


def _cached_gate(
    examples: Sequence[GoldQuestion],
    bench: AnswerSetup,
    seed: int,
    cache: Path | None,
    progress: Progress | None,
) -> Gate:
    """The gate of these questions: from the folder, or made and kept there."""
    if cache is None:
        return _fit_gate(examples, bench, seed, progress)
    told = hashlib.sha256(json.dumps([asdict(bench.budget), bench.shelves.usual, seed]).encode())
    for text in (
        *(one.question.text for one in examples),
        *(one.text for one in bench.shelves.store.documents()),
    ):
        told.update(b"\0" + text.encode("utf-8", "surrogatepass"))
    folder = Path(cache) / f"gate-{told.hexdigest()[:16]}"
    if not folder.is_dir():
        _fit_gate(examples, bench, seed, progress).save(folder)
    return open_gate(str(folder))


def _link_lists(
    texts: Sequence[str], bench: AnswerSetup, progress: Progress | None
) -> list[tuple[Hit, ...]]:
    """Lists along links, as the loop holds documents: the bridge's, with the weights set by hand, which saw no question.

    One look alone hardly ever holds all of four documents, and a gate that never saw that would not believe it.
    """
    searcher, found = bench.shelves.retriever(BRIDGE), list[tuple[Hit, ...]]()
    for start in range(0, len(texts), _SEARCHED_AT_ONCE):
        found += searcher.search(texts[start : start + _SEARCHED_AT_ONCE], k=bench.budget.documents)
        if progress is not None:
            progress("gathering lists", len(found), len(texts))
    return found


def _fit_gate(
    examples: Sequence[GoldQuestion], bench: AnswerSetup, seed: int, progress: Progress | None
) -> Gate:
    known = [one for one in examples if one.gold.doc_ids]
    texts = [one.question.text for one in known]
    documents = {one.doc_id: one for one in bench.shelves.store.documents()}
    lessons = partial_sets(known, _link_lists(texts, bench, progress), documents, seed=seed)
    free = AnswerSetup(
        bench.shelves, budget=bench.budget
    )  # by rules, whoever reads later: what is held hardly differs
    for done, one in enumerate(known, start=1):
        held = SYSTEMS["always"](free, one.question.text, AlwaysComplete()).held or ()
        lessons.append(held_set(one, held, documents))
        if progress is not None:
            progress("gathering lessons", done, len(known))
    fit = gate_fitter(PolicyChoice(), NO_ENCODERS, seed, k=bench.budget.documents)
    return with_seen_questions(fit(lessons), texts)


# --- answering: The experiment of answers: systems with the same reader over a data set's own corpus, judged by gates that did not see it.


@dataclass(frozen=True)
class AnswerSettings:
    """What can be chosen. `part` and `limit` choose the questions, see `answer_systems.drawn`."""

    systems: tuple[str, ...] = DEFAULT_SYSTEMS
    part: str = "all"
    limit: int | None = None
    gate: str = FITTED
    preset: str = FAST
    retriever: str = "hybrid"
    encoder: str = "wordllama"
    k: int = 5  # hits that naive RAG reads
    documents: int = 10  # most that the others may hold
    letters: int = 6000  # characters of passages that a model is shown at once
    chunk_tokens: int = 0  # 0: documents stay whole
    chunk_overlap: int = 32
    seed: int = 42


def parse_systems(text: str | None, *, with_model: bool) -> tuple[str, ...]:
    """Names with semicolons, since some have a comma; "all" are those that make sense without or with a model."""
    named = tuple(one.strip() for one in (text or "").split(";") if one.strip()) or DEFAULT_SYSTEMS
    return (
        tuple(one for one in SYSTEMS if with_model or one not in MODEL_ONLY)
        if named == ("all",)
        else named
    )


def compare_answers(
    dataset: Dataset,
    settings: AnswerSettings,
    *,
    model: LanguageModel | None = None,
    clock: Callable[[], float] | None = None,
    cache: Path | None = None,
    data: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> AnswerRun:
    """What each system says to each question. Without a `clock` nobody's seconds are counted, and nothing is searched twice.

    `cache` keeps fitted gates.
    """
    examples = draw_questions(dataset, limit=settings.limit, seed=settings.seed, part=settings.part)
    if not examples:
        raise InputError(
            f"no question of {dataset.name!r} has a gold answer",
            hint="choose a data set with answers",
        )
    if settings.gate == FITTED:  # what is missing is said before the corpus is encoded
        require_fit_extra()
    shelves = open_corpus(
        dataset,
        retriever=settings.retriever,
        encoder=settings.encoder,
        chunk_tokens=settings.chunk_tokens,
        chunk_overlap=settings.chunk_overlap,
        remember=clock is None,
        progress=progress,
    )
    bench = AnswerSetup(
        shelves, model, Budget(documents=settings.documents), settings.k, settings.letters, clock
    )
    gates, seen = gates_for_questions(
        dataset,
        examples,
        bench,
        gate=settings.gate,
        preset=settings.preset,
        seed=settings.seed,
        cache=cache,
        progress=progress,
    )
    found = run_systems(examples, bench, gates, systems=settings.systems, progress=progress)
    name = None if model is None else component_name(model)
    told = {**asdict(settings), "model": name, "seen": seen, "corpus": len(shelves.store)}
    return make_answer_run(
        dataset.name, examples, found, seed=settings.seed, settings=told, data=dict(data or {})
    )
