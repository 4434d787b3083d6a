"""Systems that answer questions: `ask`, and baselines with the same reader.

    single passage    read the first hit
    naive             read the first k hits: plain RAG
    fixed k           read as many hits as `ask` may hold
    along links       fixed k with the bridge retriever, which follows names between documents
    always            `ask` without a gate, which answers with whatever it found
    ask               plan, act, review, and the gate
    ask, no gate      ... without the gate

Plug-ins named `systems.NAME` add more. Without a model, the gate's reader reads, or the shipped one
if it has none. No question is judged by a gate that was fitted on it: "fitted" fits two gates, one
on each half of the questions, and each judges the other half.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.answering.ask import AskPolicy, HopEstimator, ask, final_step
from suffice.answering.budget import Budget, MeteredModel
from suffice.answering.expand import gate_for_expansion
from suffice.answering.plan import whole_question_step
from suffice.answering.review import review
from suffice.answering.span_reader import FindAnswer, answer_finder
from suffice.answering.step import EvidenceCache, StepReader
from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import GoldQuestion, draw_key
from suffice.errors import DataError, InputError, ModelError, NotReadyError, did_you_mean
from suffice.evaluation.gate_evaluation import (
    FITTED,
    PolicyChoice,
    count_seen,
    gate_fitter,
    require_fit_extra,
    with_seen_questions,
)
from suffice.evaluation.searching import (
    index_documents,
    open_retrievers,
    retriever_factories,
)
from suffice.gate.gate import FAST, STANDARD
from suffice.gate.gate_ref import open_gate
from suffice.gate.reader import SHIPPED_READER, Reader
from suffice.gate.training import LabelledQuestion
from suffice.protocols import (
    Encoder,
    GateLike,
    LanguageModel,
    Progress,
    Retriever,
    component_name,
    documents_by_id,
)
from suffice.registry import ENCODERS, Registry
from suffice.retrieval.bridge import WeightedRanker
from suffice.retrieval.corpus import chunk_documents
from suffice.retrieval.links import MentionLinks, TitleIndex, mention_links
from suffice.retrieval.memory import MemoryStore
from suffice.storage.fields import dataclass_from_json
from suffice.types import Action, DocId, Document, Estimate, Hit, Step, Trace, Verdict
from suffice_research.answers import AnswerOutcome, AnswerRun, make_answer_run
from suffice_research.cached_retriever import CachedRetriever

if TYPE_CHECKING:
    from suffice.gate.gate import Gate

__all__ = [
    "AnswerExperiment",
    "AnswerSettings",
    "compare_answers",
    "draw_questions",
    "open_experiment",
    "parse_systems",
    "questions_at_once",
]

BRIDGE = "bridge"
# The bridge uses hand-set weights: the shipped ranker has seen these data sets.
OPENED_ON_USE: Mapping[str, dict[str, Any]] = {BRIDGE: {"ranker": WeightedRanker()}, "dense": {}}
PREFIXES = (2, 3, 4, 5, 6, 8)  # lengths of the lists that a fitted gate is trained on
THINNED = 8  # ranks that a thinned list is drawn from
SETS = 2  # lists of each kind per question
HALVES = {"all": (0, 1), "even": (0,), "odd": (1,)}
OTHER_HALF = {"even": "odd", "odd": "even"}
MAX_TRAINING_QUESTIONS = 300  # per half
_CHECK_BATCH, _SEARCH_BATCH = 256, 64


# ------------------------------------------------------------------------------------ the corpus


@dataclass(slots=True)
class InMemoryCorpus:
    """A data set's corpus as `ask` needs it: named retrievers, documents, links.

    The bridge uses hand-set weights: the shipped ranker has seen the questions.
    """

    store: MemoryStore
    retrievers: dict[str, Retriever]
    default: str
    encoder: Encoder
    cached: bool = False  # cache searches: faster, but timings then mean nothing
    _links: MentionLinks | None = field(default=None)

    def retriever(self, name: str | None = None) -> Retriever:
        name = name or self.default
        if name not in self.retrievers:
            if name not in OPENED_ON_USE:
                hint = "choose it with --retriever"
                raise NotReadyError(f"nothing here is searched by {name}", hint=hint)
            factory = retriever_factories([name])[name]
            opened = factory(self.store, encoder=self.encoder, **OPENED_ON_USE[name])
            self.retrievers[name] = CachedRetriever(opened) if self.cached else opened
        return self.retrievers[name]

    def prefetch(self, questions: Sequence[str], *, k: int) -> None:
        """Search for all questions at once, if results are cached."""
        for name in (self.default, BRIDGE) if self.cached else ():
            self.retriever(name).search(questions, k=k)

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        return self.store.get(doc_ids)

    def links(self) -> MentionLinks:
        if self._links is None:
            documents = list(self.store.documents())
            self._links = mention_links(documents, TitleIndex.of(documents))
        return self._links

    def parents(self, doc_ids: Iterable[DocId]) -> tuple[DocId, ...]:
        """The documents these are, or are chunks of, without duplicates: the ids that gold uses."""
        ids = list(doc_ids)
        pairs = zip(ids, self.get(ids))
        return tuple(dict.fromkeys((one.parent if one else None) or at for at, one in pairs))


def open_corpus(
    dataset: Dataset,
    *,
    retriever: str = "hybrid",
    encoder: str = "wordllama",
    chunk_tokens: int = 0,
    chunk_overlap: int = 32,
    cached: bool = False,
    progress: Progress | None = None,
) -> InMemoryCorpus:
    """The data set's documents in memory, with this retriever, keyword search and links."""
    factories = retriever_factories(dict.fromkeys([retriever, "bm25"]))
    opened = ENCODERS.get(encoder)()
    documents: Iterable[Document] = dataset.documents()
    if chunk_tokens:
        documents = chunk_documents(documents, tokens=chunk_tokens, overlap=chunk_overlap)
    store = index_documents(documents, opened, progress)
    retrievers = open_retrievers(factories, store, opened)
    if cached:
        retrievers = {name: CachedRetriever(one) for name, one in retrievers.items()}
    return InMemoryCorpus(store, retrievers, retriever, opened, cached)


def draw_questions(
    dataset: Dataset,
    *,
    limit: int | None = None,
    seed: int = 42,
    part: str = "all",
    keep: Callable[[GoldQuestion], bool] | None = None,
) -> list[GoldQuestion]:
    """Questions with an answer in seeded order; "even" and "odd" never share a question text.

    `keep` filters the questions, for example to exclude those that a gate was trained on.
    """
    if part not in HALVES:
        known = ", ".join(HALVES)
        raise InputError(f"part is {part!r}, expected {known}", hint="for example --part odd")
    answered = [one for one in dataset.questions() if one.gold.answer]
    answered.sort(key=lambda one: draw_key(seed, one.question.text))
    texts = dict.fromkeys(one.question.text for one in answered)
    half = {text: at % 2 for at, text in enumerate(texts)}
    chosen = (one for one in answered if half[one.question.text] in HALVES[part])
    return list(islice(filter(keep, chosen) if keep else chosen, limit))


# ------------------------------------------------------------------------------------ the systems


@dataclass(frozen=True)
class AnswerSetup:
    """What all systems share: corpus, reader, budget and clock."""

    corpus: InMemoryCorpus
    model: LanguageModel | None = None
    budget: Budget = Budget()  # noqa: RUF009 - frozen
    k: int = 5  # hits read by naive RAG
    max_chars: int = 6000  # characters of passages shown to a model at once
    clock: Callable[[], float] | None = None
    find: FindAnswer | None = None  # reads for gates without a reader; None: the shipped reader

    def finder(self, gate: object) -> FindAnswer:
        """The gate's own reader, or the one for gates without."""
        return answer_finder(gate) or self.find or _shipped_reader().answer

    def start(self) -> tuple[EvidenceCache, MeteredModel]:
        return EvidenceCache(self.corpus), MeteredModel(self.model, self.budget, self.clock)

    def read(
        self,
        question: str,
        hits: Sequence[Hit],
        evidence: EvidenceCache,
        meter: MeteredModel,
        gate: object = None,
    ) -> AnswerOutcome:
        """The answer to the question from these hits, by the model or the gate's reader."""
        step, passages = whole_question_step(question), evidence.passages(hits)
        reader = StepReader(meter, self.finder(gate), max_chars=self.max_chars)
        reading = reader.read(step.text, step.answer_type, passages)
        reviewed = review(step.text, reading, passages, hops=1)
        meter.elapsed()
        sure = {"review": reviewed.confidence, "reader": reviewed.accuracy}
        sure["hit"] = _first_score(hits)
        doc_ids = tuple(hit.doc_id for hit in hits)
        error = next((call.error for call in meter.calls if call.error), None)
        return AnswerOutcome(reading.answer, doc_ids, meter.cost, reading.answer, sure, error)


@cache
def _shipped_reader() -> Reader:
    return Reader(SHIPPED_READER)


System = Callable[[AnswerSetup, str, GateLike], AnswerOutcome]  # (setup, question, gate)


def _first_score(hits: Sequence[Hit]) -> float:
    return next((float(hit.score) for hit in hits if hit.score is not None), 0.0)


def read_once(k: Callable[[AnswerSetup], int], retriever: str | None = None) -> System:
    """A system that searches once and reads k hits."""

    def system(setup: AnswerSetup, question: str, gate: GateLike) -> AnswerOutcome:
        evidence, meter = setup.start()
        hits = evidence.search(question, k=k(setup), retriever=retriever)
        return setup.read(question, hits, evidence, meter, gate)

    return system


class AlwaysComplete:
    """A stand-in for no gate: everything is complete. It still returns the gate's expected hops."""

    def __init__(self, gate: object = None) -> None:
        if isinstance(gate, HopEstimator):
            self.hops = gate.hops

    def check_batch(self, pairs: Iterable[Any], **_: Any) -> list[Verdict]:
        return [Verdict(Estimate(1.0, 1.0, 1.0), Action.ANSWER) for _ in pairs]


class _Judge:
    """A gate with a reader, its own or another."""

    def __init__(self, gate: GateLike, find: FindAnswer) -> None:
        self._gate, self.check_batch, self.find_answer = gate, gate.check_batch, find
        if isinstance(gate, HopEstimator):
            self.hops = gate.hops

    def for_expansion(self) -> GateLike:
        found = gate_for_expansion(self._gate)
        return self if found is self._gate else found


def without_gate(setup: AnswerSetup, gate: GateLike) -> GateLike:
    """Everything is complete; what would read behind the gate reads."""
    return _Judge(AlwaysComplete(gate), setup.finder(gate))


def ask_system(policy: AskPolicy, *, gated: bool = True, always: bool = False) -> System:
    """`ask` with this policy; `always`: answer with whatever was found."""

    def system(setup: AnswerSetup, question: str, gate: GateLike) -> AnswerOutcome:
        judge = _Judge(gate, setup.finder(gate)) if gated else without_gate(setup, gate)
        options: Any = {"budget": setup.budget, "clock": setup.clock}
        options["policy"] = replace(policy, max_passage_chars=setup.max_chars)
        outcome = _outcome(ask(question, setup.corpus, judge, setup.model, **options), gated=gated)
        return replace(outcome, answer=outcome.candidate) if always else outcome

    return system


def _outcome(trace: Trace, *, gated: bool) -> AnswerOutcome:
    last: dict[int, Step] = {step.number: step for step in trace.steps if step.verdict is None}
    final = final_step(last, len(trace.plan), trace.settings["policy"]["min_probability"])
    (*_, checked) = (step for step in trace.steps if step.verdict is not None)
    scores = (_first_score(step.hits) for step in last.values() if step.hits)
    sure = {"hit": min(scores, default=0.0)}
    if final is not None and final.review is not None:
        sure |= {"review": final.review.confidence, "reader": final.review.accuracy}
    if gated and checked.verdict is not None:
        sure["gate"] = checked.verdict.p_complete
    doc_ids = tuple(hit.doc_id for hit in checked.hits)
    error = next((call.error for call in trace.calls if call.error), None)
    candidate = final.answer if final else None
    return AnswerOutcome(trace.answer, doc_ids, trace.cost, candidate, sure, error)


SYSTEMS: Mapping[str, System] = {
    "single passage": read_once(lambda _: 1),
    "naive": read_once(lambda setup: setup.k),
    "fixed k": read_once(lambda setup: setup.budget.documents),
    "along links": read_once(lambda setup: setup.budget.documents, BRIDGE),
    "always": ask_system(AskPolicy(), gated=False, always=True),
    "ask": ask_system(AskPolicy()),
    "ask, no gate": ask_system(AskPolicy(), gated=False),
}
MORE_SYSTEMS: Registry[Mapping[str, System]] = Registry("systems")
# The default systems; those that no plug-in provides are skipped.
DEFAULT_SYSTEMS = (
    *("single passage", "naive", "fixed k", "along links", "interleaved", "max rounds"),
    *("always", "ask"),
)
# These need a model: the rules use no exemplars and cannot answer without documents.
MODEL_ONLY = ("ask, any exemplars", "model alone")


def all_systems() -> dict[str, System]:
    """The built-in systems, then those from plug-ins."""
    systems = dict(SYSTEMS)
    for name in MORE_SYSTEMS.names():
        systems |= MORE_SYSTEMS.get(name)()
    return systems


def parse_systems(text: str | None, *, with_model: bool) -> tuple[str, ...]:
    """Names separated by semicolons, since some contain a comma; "all"; or None for the default."""
    named = tuple(one.strip() for one in (text or "").split(";") if one.strip())
    known = all_systems()
    if named == ("all",):
        return tuple(one for one in known if with_model or one not in MODEL_ONLY)
    return named or tuple(one for one in DEFAULT_SYSTEMS if one in known)


class OutcomeFile:
    """Outcomes as JSON Lines, each written as soon as it is known.

    An interrupted run resumes where it stopped, with the cost of each answer. Questions where the
    model failed are tried again.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._lock = Path(path), threading.Lock()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = self.path.read_bytes() if self.path.exists() else b""
        whole = content.rfind(b"\n") + 1  # the last line may be incomplete
        if whole < len(content):
            with self.path.open("r+b") as file:
                file.truncate(whole)
        self._known: dict[tuple[str, str], AnswerOutcome] = {}
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                row = json.loads(line)
                outcome = dataclass_from_json(AnswerOutcome, row["outcome"])
                self._known[row["system"], row["question"]] = outcome
            except (ValueError, LookupError, TypeError) as error:
                raise DataError(
                    f"{self.path}:{number} is not an outcome: {error}",
                    hint="remove the line, or the file to answer everything again",
                ) from None

    def __len__(self) -> int:
        return len(self._known)

    def outcome(
        self, system: str, question: str, answer: Callable[[], AnswerOutcome]
    ) -> AnswerOutcome:
        """The stored outcome, or that of `answer`, which is then stored."""
        found = self._known.get((system, question))
        if found is None:
            found = answer()
            if found.error is None:
                row = {"system": system, "question": question, "outcome": asdict(found)}
                with self._lock, self.path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
        return found


@contextmanager
def questions_at_once(workers: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """A `map` that processes this many questions at a time."""
    if workers == 1:
        yield map
        return
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)  # after an error, start nothing new


def run_systems(
    questions: Sequence[GoldQuestion],
    setup: AnswerSetup,
    gates: Sequence[GateLike],
    *,
    systems: Sequence[str],
    workers: int = 1,
    kept: OutcomeFile | None = None,
    confidence: bool = True,
    progress: Progress | None = None,
) -> dict[str, list[AnswerOutcome]]:
    """The outcome of each system for each question; `gates` has a gate for each question.

    If a language model fails on a question, the gate's reader reads. A model that never answers is
    an error.
    `workers` questions run at a time. `kept` has the known outcomes and receives the new ones. With
    `confidence` the gate also judges the documents of the systems without a gate.
    """
    known = all_systems()
    for name in systems:
        if name not in known:
            raise InputError(f"no system is named {name!r}", hint=did_you_mean(name, known))
    found: dict[str, list[AnswerOutcome]] = {name: [] for name in systems}
    setup.corpus.prefetch([one.question.text for one in questions], k=setup.budget.documents)
    if workers > 1:  # build once, before several workers need them
        setup.corpus.retriever(BRIDGE)
        setup.corpus.links()

    def answer(text: str, gate: GateLike) -> dict[str, AnswerOutcome]:
        # A model reports the cost of its last answer, so each question needs its own copy.
        mine = setup if workers == 1 else replace(setup, model=copy(setup.model))
        make = {name: partial(known[name], mine, text, gate) for name in systems}
        if kept is None:
            return {name: one() for name, one in make.items()}
        return {name: kept.outcome(name, text, one) for name, one in make.items()}

    with questions_at_once(workers) as each:
        rows = each(answer, [one.question.text for one in questions], gates)
        for done, row in enumerate(rows, start=1):
            for name, outcome in row.items():
                found[name].append(outcome)
            if progress is not None:
                progress("answering", done, len(questions))
    every = [one for outcomes in found.values() for one in outcomes if one.cost.calls or one.error]
    if every and all(one.error for one in every):
        raise ModelError(
            f"the model answered nothing: {every[0].error}",
            hint="check the server, its address and its name",
        )
    if confidence:
        texts = [one.question.text for one in questions]
        found = {
            name: _with_gate_confidence(texts, outcomes, gates, setup.corpus)
            for name, outcomes in found.items()
        }
    return {
        name: [replace(one, held=setup.corpus.parents(one.held or ())) for one in outcomes]
        for name, outcomes in found.items()
    }


def _with_gate_confidence(
    texts: Sequence[str],
    outcomes: Sequence[AnswerOutcome],
    gates: Sequence[GateLike],
    corpus: InMemoryCorpus,
) -> list[AnswerOutcome]:
    """Each outcome with the gate's probability that its documents are complete."""
    found = list(outcomes)
    by_gate: dict[int, list[int]] = {}
    for at, one in enumerate(outcomes):
        if "gate" not in one.sure and one.held:
            by_gate.setdefault(id(gates[at]), []).append(at)
    for same in by_gate.values():
        for start in range(0, len(same), _CHECK_BATCH):
            some = same[start : start + _CHECK_BATCH]
            pairs = [(texts[at], [Hit(one) for one in outcomes[at].held or ()]) for at in some]
            doc_ids = (hit.doc_id for _, hits in pairs for hit in hits)
            documents = documents_by_id(corpus.get, doc_ids)
            verdicts = gates[same[0]].check_batch(pairs, documents=documents, explain=False)
            for at, verdict in zip(some, verdicts, strict=True):
                sure = {**found[at].sure, "gate": verdict.p_complete}
                found[at] = replace(found[at], sure=sure)
    return found


# ------------------------------------------------------------------------------------ their gates


def gates_for_questions(
    dataset: Dataset,
    questions: Sequence[GoldQuestion],
    setup: AnswerSetup,
    *,
    gate: str = FITTED,
    preset: str = STANDARD,
    seed: int = 42,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> tuple[list[Gate], int]:
    """A gate for each question, and how many of the questions their gate was fitted on."""
    texts = [one.question.text for one in questions]
    if gate != FITTED:
        opened = open_gate(gate, preset)
        return [opened] * len(questions), count_seen(opened, texts)
    if any(one.parent for one in setup.corpus.store.documents()):
        raise InputError(
            "a gate is fitted on whole documents",
            hint="leave chunks out, or name a gate: --gate default",
        )
    half_of: dict[str, str] = {}
    for half in OTHER_HALF:
        drawn = draw_questions(dataset, seed=seed, part=half)
        half_of |= {one.question.text: half for one in drawn}
    fitted: dict[str, Gate] = {}
    for half in dict.fromkeys(half_of[text] for text in texts):
        limit = MAX_TRAINING_QUESTIONS
        training = draw_questions(dataset, seed=seed, part=OTHER_HALF[half], limit=limit)
        fitted[half] = _cached_gate(training, setup, seed, cache, progress)
    gates = [fitted[half_of[text]] for text in texts]
    return gates, sum(count_seen(one, [text]) for one, text in zip(gates, texts))


def _cached_gate(
    questions: Sequence[GoldQuestion],
    setup: AnswerSetup,
    seed: int,
    cache: Path | None,
    progress: Progress | None,
) -> Gate:
    """The gate for these questions, from the cache folder or fitted and stored there."""
    if cache is None:
        return _fit_gate(questions, setup, seed, progress)
    key = json.dumps([asdict(setup.budget), setup.corpus.default, seed])
    digest = hashlib.sha256(key.encode())
    texts = [one.question.text for one in questions]
    for text in (*texts, *(one.text for one in setup.corpus.store.documents())):
        digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
    folder = Path(cache) / f"gate-{digest.hexdigest()[:16]}"
    if not folder.is_dir():
        _fit_gate(questions, setup, seed, progress).save(folder)
    return open_gate(str(folder))


def _fit_gate(
    questions: Sequence[GoldQuestion], setup: AnswerSetup, seed: int, progress: Progress | None
) -> Gate:
    """Fit a gate on intermediate evidence sets, and on what `always` holds at the end.

    The lists come from the bridge, as in `ask`: one search alone rarely finds all of four
    documents, and a gate that never saw a complete list of four would not accept one.
    """
    known = [one for one in questions if one.gold.doc_ids]
    texts = [one.question.text for one in known]
    bridge, lists = setup.corpus.retriever(BRIDGE), list[tuple[Hit, ...]]()
    for start in range(0, len(texts), _SEARCH_BATCH):
        some = texts[start : start + _SEARCH_BATCH]
        lists += bridge.search(some, k=setup.budget.documents)
        if progress is not None:
            progress("gathering lists", len(lists), len(texts))
    documents = {one.doc_id: one for one in setup.corpus.store.documents()}
    examples = partial_sets(known, lists, documents, seed=seed)
    # A model would hold nearly the same.
    alone = AnswerSetup(setup.corpus, budget=setup.budget, find=setup.find)
    for done, one in enumerate(known, start=1):
        doc_ids = SYSTEMS["always"](alone, one.question.text, AlwaysComplete()).held or ()
        examples.append(held_set(one, doc_ids, documents))
        if progress is not None:
            progress("gathering examples", done, len(known))
    fit = gate_fitter(PolicyChoice(), FAST, seed, k=setup.budget.documents)
    return with_seen_questions(fit(examples), texts)


def partial_sets(
    questions: Sequence[GoldQuestion],
    lists: Sequence[Sequence[Hit]],
    documents: Mapping[DocId, Document],
    *,
    seed: int = 42,
) -> list[LabelledQuestion]:
    """Intermediate evidence sets: prefixes of a list, and thinned lists that keep its first hit."""
    examples = []
    for one, hits in zip(questions, lists, strict=True):
        key = draw_key(seed, one.question.text)
        draw = np.random.default_rng(int.from_bytes(key[:8], "big"))
        places = [list(range(size)) for size in draw.choice(PREFIXES, SETS, replace=False).tolist()]
        for size in draw.choice(PREFIXES[:-1], SETS, replace=False).tolist():
            places.append(sorted([0, *(1 + draw.permutation(THINNED - 1)[: size - 1]).tolist()]))
        for chosen in places:
            doc_ids = [hits[at].doc_id for at in chosen if at < len(hits)]
            examples.append(held_set(one, doc_ids, documents))
    return examples


def held_set(
    question: GoldQuestion, doc_ids: Sequence[DocId], documents: Mapping[DocId, Document]
) -> LabelledQuestion:
    """A training example from a set held for a question, without scores."""
    gold = question.gold
    known = [doc_id for doc_id in sorted(gold.doc_ids) if doc_id in documents]
    return LabelledQuestion(
        question.question.text,
        tuple(map(Hit, doc_ids)),
        gold.doc_ids,
        titles={doc_id: documents[doc_id].title for doc_id in known},
        hops=float(gold.hops),
        documents={doc_id: documents[doc_id] for doc_id in doc_ids},
    )


# ------------------------------------------------------------------------------------ experiment


@dataclass(frozen=True)
class AnswerSettings:
    """The settings of a comparison. `part` and `limit` choose the questions: `draw_questions`."""

    systems: tuple[str, ...] = tuple(SYSTEMS)
    part: str = "all"
    limit: int | None = None
    gate: str = FITTED
    preset: str = STANDARD
    retriever: str = "hybrid"
    encoder: str = "wordllama"
    k: int = 5  # hits read by naive RAG
    documents: int = 10  # limit for the other systems
    max_chars: int = 6000  # characters of passages shown to a model at once
    chunk_tokens: int = 0  # 0: whole documents
    chunk_overlap: int = 32
    seed: int = 42


def compare_answers(
    dataset: Dataset,
    settings: AnswerSettings,
    *,
    model: LanguageModel | None = None,
    clock: Callable[[], float] | None = None,
    cache: Path | None = None,
    data: Mapping[str, str] | None = None,
    keep: Callable[[GoldQuestion], bool] | None = None,
    workers: int = 1,
    outcomes: Path | None = None,
    confidence: bool = True,
    progress: Progress | None = None,
) -> AnswerRun:
    """The outcome of each system for each question, `workers` questions at a time.

    `cache` is the folder for fitted gates, `outcomes` the folder for outcomes, so that an
    interrupted run can resume. `keep` filters questions; `confidence` is as for `run_systems`.
    Without a `clock`, seconds are not counted and searches are cached.
    """
    experiment = open_experiment(
        dataset, settings, model=model, clock=clock, cache=cache, keep=keep, progress=progress
    )
    return experiment.compare(
        data=data, workers=workers, outcomes=outcomes, confidence=confidence, progress=progress
    )


@dataclass(frozen=True)
class AnswerExperiment:
    """A draw of questions with their corpus and a gate for each, ready for any system."""

    dataset: str
    settings: AnswerSettings
    questions: Sequence[GoldQuestion]
    setup: AnswerSetup
    gates: Sequence[Gate]
    seen: int  # questions that their gate was fitted on

    def compare(
        self,
        *,
        data: Mapping[str, str] | None = None,
        workers: int = 1,
        outcomes: Path | None = None,
        confidence: bool = True,
        progress: Progress | None = None,
    ) -> AnswerRun:
        """Each system's outcome for each question; options as for `compare_answers`."""
        model, corpus = self.setup.model, self.setup.corpus
        name, kept = None if model is None else component_name(model), None
        if outcomes is not None:
            digest = _run_digest(corpus, self.settings, name, self.gates[0].card)
            kept = OutcomeFile(Path(outcomes) / f"outcomes-{digest}.jsonl")
        found = run_systems(
            self.questions,
            self.setup,
            self.gates,
            systems=self.settings.systems,
            workers=workers,
            kept=kept,
            confidence=confidence,
            progress=progress,
        )
        size = len(corpus.store)
        chosen = {**asdict(self.settings), "model": name, "seen": self.seen, "corpus": size}
        return make_answer_run(
            self.dataset,
            self.questions,
            found,
            seed=self.settings.seed,
            settings=chosen,
            data=dict(data or {}),
        )


def open_experiment(
    dataset: Dataset,
    settings: AnswerSettings,
    *,
    model: LanguageModel | None = None,
    clock: Callable[[], float] | None = None,
    cache: Path | None = None,
    keep: Callable[[GoldQuestion], bool] | None = None,
    progress: Progress | None = None,
) -> AnswerExperiment:
    """Draw the questions, index the corpus, and fit or open the gates.

    Options as for `compare_answers`.
    """
    seed = settings.seed
    questions = draw_questions(
        dataset, limit=settings.limit, seed=seed, part=settings.part, keep=keep
    )
    if not questions:
        raise InputError(
            f"no question of {dataset.name!r} has a gold answer",
            hint="choose a data set with answers",
        )
    if settings.gate == FITTED:  # report a missing extra before encoding the corpus
        require_fit_extra()
    corpus = open_corpus(
        dataset,
        retriever=settings.retriever,
        encoder=settings.encoder,
        chunk_tokens=settings.chunk_tokens,
        chunk_overlap=settings.chunk_overlap,
        cached=clock is None,
        progress=progress,
    )
    budget = Budget(documents=settings.documents)
    setup = AnswerSetup(corpus, model, budget, settings.k, settings.max_chars, clock)
    options: Any = {"gate": settings.gate, "preset": settings.preset, "cache": cache}
    gates, seen = gates_for_questions(
        dataset, questions, setup, seed=seed, progress=progress, **options
    )
    return AnswerExperiment(dataset.name, settings, questions, setup, gates, seen)


def _run_digest(
    corpus: InMemoryCorpus, settings: AnswerSettings, model: str | None, card: Mapping[str, Any]
) -> str:
    """A hash of corpus, model, gate and settings, but not of the questions and systems."""
    chosen = {**asdict(settings), "systems": None, "part": None, "limit": None}
    text = json.dumps([chosen, model, card], sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode())
    for one in corpus.store.documents():
        digest.update(b"\0" + one.text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]
