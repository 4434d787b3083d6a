"""Ask: plan, search, read, review, and answer only if the gate says the evidence is complete.

    trace = ask("When did Lothair II's mother die?", library, gate)        the gate's reader reads
    trace = ask("When did Lothair II's mother die?", library, gate, model, clock=time.monotonic)
    trace.answer, trace.citations, trace.action, trace.missing

Read `ask` first; `_AskRun` has a method for each of its lines. Whatever the model does (fail,
stall, loop), the budget bounds it and the trace records it. Documents are read and cited; their
text never changes the plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Protocol, runtime_checkable

from suffice.answering import expand as expansion
from suffice.answering.budget import Budget, MeteredModel
from suffice.answering.expand import strip_scores
from suffice.answering.plan import (
    Plan,
    SubQuestion,
    combine,
    fill_answers,
    supporting_steps,
    whole_question_step,
)
from suffice.answering.planner import ExemplarBank, make_plan, refine_step
from suffice.answering.review import NO_REVIEW, review
from suffice.answering.span_reader import FindAnswer, Reading, SpanReader, answer_finder
from suffice.answering.step import (
    DocumentSource,
    EvidenceCache,
    FilterableSource,
    FilteredSource,
    FilterOption,
    LinkedSource,
    StepReader,
)
from suffice.errors import InputError, NotReadyError, known_arguments
from suffice.protocols import GateLike, LanguageModel, Retriever, component_name
from suffice.types import (
    Action,
    Citation,
    Cost,
    DocId,
    Filter,
    Hit,
    Question,
    Review,
    Step,
    Support,
    Trace,
    Verdict,
)

TraceCallback = Callable[[Trace], None]  # receives the trace so far after every step


@runtime_checkable
class HopEstimator(Protocol):
    """A gate that also estimates from a question how many documents it needs."""

    def hops(self, questions: Sequence[str]) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True)
class AskPolicy:
    """How to answer a question. Each of the last five options turns one part off."""

    retriever: str | None = None  # for sub-questions; None: the library's default
    survey_retriever: str | None = "bridge"  # for the whole question; None: same as above
    repair_retriever: str | None = "bm25"  # for weak steps: keywords may find what vectors missed
    k: int = 5  # hits per sub-question
    exemplars: int = 3  # plans shown to the model
    max_passage_chars: int = 6000  # shown to the model at once
    repair_below: float = 0.6  # confidence below which a step is repaired
    min_confidence: float = 0.3  # needed to answer, if a model reads
    min_probability: float = 0.76  # the same if the gate's reader reads: P(answer is right)
    max_repairs: int = 1  # per step
    require_attribution: bool = True  # answer only what the cited sentences state
    use_gate: bool = True  # answer only if the gate agrees
    repair_steps: bool = True  # search again for weak steps
    match_complexity: bool = True  # show exemplars of the question's complexity
    accuracy_weight: float | None = None  # of accuracy in the confidence; None: falls with hops


@known_arguments
def ask(
    question: str,
    library: DocumentSource,
    gate: GateLike,
    model: LanguageModel | None = None,
    *,
    policy: AskPolicy = AskPolicy(),  # noqa: B008 - frozen
    budget: Budget = Budget(),  # noqa: B008 - frozen
    bank: ExemplarBank | None = None,
    clock: Callable[[], float] | None = None,
    on_update: TraceCallback | None = None,
    filter: FilterOption = None,
    strict: bool | None = None,
    today: date | None = None,
) -> Trace:
    """Answer with citations, or abstain and name what is missing; never exceed the budget.

    Without a model, rules plan the steps and the gate's reader reads; NotReadyError if the gate has
    none. `bank` holds exemplar plans for the model, by default the shipped ones. A limit in seconds
    needs a `clock`; a search that has started is finished.

    A metadata `filter` applies to every search and every link: nothing else is read, quoted or
    cited. With "auto" the filter is parsed from the question, with `today` as the date for words
    like "yesterday". That is a guess, so other documents follow if the evidence needs them. Set
    `strict` to allow or forbid that for both kinds of filter.
    """
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"the question is {question!r}, expected a text", hint="ask something")
    if not callable(getattr(library, "retriever", None)):
        where = repr(str(library)) if isinstance(library, str | Path) else "PATH"
        hint = f"suffice.Library.open({where}), or suffice.Library.build(PATH, documents)"
        kind = type(library).__name__
        raise InputError(f"the library is of type {kind}, expected a suffice.Library", hint=hint)
    expansion.check_gate(gate)
    _check_options(model, policy, budget)
    find = answer_finder(gate)
    if model is None and find is None:
        raise NotReadyError(
            "nothing can read the documents: no language model, and a gate without a reader",
            hint="use a gate of preset standard (--preset standard), or a model (--model NAME)",
        )
    filtered = _filtered(library, filter, question, strict, today)
    if filtered is not None and filtered.filter:
        library = filtered
    meter = MeteredModel(model, budget, clock)
    bank = ExemplarBank.load() if bank is None and model is not None else bank
    hops = float(gate.hops([question])[0]) if isinstance(gate, HopEstimator) else None
    plan = make_plan(
        question,
        meter,
        bank,
        hops=hops,
        exemplars=policy.exemplars,
        match_complexity=policy.match_complexity,
    )
    hops = plan.hops if hops is None else hops
    cache = EvidenceCache(library)
    run = _AskRun(question, cache, gate, meter, policy, on_update, plan, hops, find, filtered)
    run.search_question()
    run.answer_steps()
    verdict = run.check_evidence()
    incomplete = verdict is not None and verdict.action is not Action.ANSWER
    if incomplete and meter.rounds_left and not meter.out_of_time():
        verdict = run.expand()
    return run.finish(verdict)


def _check_options(model: object, policy: object, budget: object) -> None:
    if model is not None and not callable(getattr(model, "complete", None)):
        hint = "suffice.integrations.openai.OpenAIModel(NAME), or any object with `complete`"
        raise InputError(f"the model is {model!r:.80}, expected a language model", hint=hint)
    for value, kind in ((policy, AskPolicy), (budget, Budget)):
        if not isinstance(value, kind):
            name = kind.__name__
            hint = f"pass {name}(...), or leave it out"
            raise InputError(f"expected {name}, not {value!r:.80}", hint=hint)


def _filtered(
    library: DocumentSource,
    filter: FilterOption,
    question: str,
    strict: bool | None,
    today: date | None,
) -> FilteredSource | None:
    """The library with the filter applied; None without a filter."""
    if filter is None:
        return None
    if not isinstance(library, FilterableSource):
        raise InputError(
            f"{component_name(library)} cannot be filtered", hint="ask a suffice.Library"
        )
    return library.filtered(filter, question, strict=strict, today=today)


@dataclass(slots=True)
class _AskRun:
    """The state of one question while it is answered."""

    question: str
    cache: EvidenceCache
    gate: GateLike
    meter: MeteredModel
    policy: AskPolicy
    on_update: TraceCallback | None
    plan: Plan
    hops: float  # that the question needs, if known
    find: FindAnswer | None = None  # the gate's reader, if it has one
    filtered: FilteredSource | None = None  # the library with the filter applied, if there is one
    question_hits: tuple[Hit, ...] = ()  # for the whole question; every step may read them
    steps: list[Step] = field(default_factory=list)
    latest: dict[int, Step] = field(default_factory=dict)  # by sub-question; 0: the whole question

    # --- steps

    def search_question(self) -> None:
        if self.filtered is not None:
            none = "none, the question names no known source or date"
            self.meter.note(f"filter: {self.filtered.filter or none}")
        self.meter.notes += self.plan.notes
        self._publish()
        self.question_hits = self.cache.search(
            self.question, k=self.meter.budget.documents, retriever=self._survey_retriever()
        )

    def _survey_retriever(self) -> str | None:
        survey = self.policy.survey_retriever
        return survey if self.cache.has_retriever(survey) else self.policy.retriever

    def answer_steps(self) -> None:
        """Answer the sub-questions in turn, then the whole question if the plan gave no answer."""
        reworded: dict[int, SubQuestion] = {}
        steps = self.plan.steps
        for number, step in enumerate(steps, start=1):
            if self.meter.out_of_time():
                self.meter.note("the budget of seconds is spent: some steps were skipped")
                break
            if step.combine:
                self._record(self._combine(number, step))
                continue
            revised = self._answer_step(number, reworded.get(number, step))
            if revised and number < len(steps) and number in steps[number].depends_on:
                better = refine_step(self.plan, number + 1, self._answers(), self.meter)
                if better is not None:
                    reworded[number + 1] = better
        final = self.latest.get(len(steps))
        unanswered = final is None or final.answer is None
        again = unanswered or self.meter.model is None
        if len(steps) > 1 and again and not self.meter.out_of_time():
            note = "the plan gave no answer: " if unanswered else ""
            note += "the question is read as a whole"
            self._answer_step(0, whole_question_step(self.question), note=note)

    def _answers(self) -> dict[int, str]:
        steps = self.latest.items()
        return {number: step.answer for number, step in steps if step.answer is not None}

    def _answer_step(self, number: int, step: SubQuestion, note: str = "") -> bool:
        """Search, read, review, and repair if the answer is weak. Return whether it was revised."""
        before, answers = self.meter.cost, self._answers()
        text = fill_answers(step.text, answers)
        if lacking := [need for need in step.depends_on if need not in answers]:
            why = f"not asked: it needs the answer to step {lacking[0]}"
            self._record(Step(text, (), note=why, number=number))
            return False
        hits = self._step_hits(number, step, text)
        reading, judged = self._read(text, step, hits)
        revision = 0
        for _ in range(self.policy.max_repairs if self.policy.repair_steps else 0):
            good = judged.confidence >= self.policy.repair_below
            if good or not self.meter.rounds_left or self.meter.out_of_time():
                break
            self.meter.rounds += 1
            more = self.cache.search(text, k=self.policy.k, retriever=self.policy.repair_retriever)
            known = {hit.doc_id for hit in (*hits, *self.question_hits)}
            fresh = [hit for hit in more if hit.doc_id not in known]
            if not fresh and not self.meter.available():
                break  # the gate's reader would give the same reading again
            hits = (*hits, *fresh)
            other, weighed = self._read(text, step, hits)
            if weighed.confidence > judged.confidence:
                revision += other.answer != reading.answer
                reading, judged = other, weighed
        if judged.by == SpanReader.name:  # right only if the answers it depends on are
            chain = [judged, *(self.latest[need].review or NO_REVIEW for need in step.depends_on)]
            judged = replace(
                judged,
                confidence=math.prod(one.confidence for one in chain),
                accuracy=math.prod(one.accuracy for one in chain),
            )
        if reading.rivals:
            note = f"one says {reading.answer}, another {', '.join(reading.rivals)}"
        self._record(
            Step(
                text,
                hits,
                note=note,
                number=number,
                answer=reading.answer,
                citations=reading.citations,
                review=judged,
                revision=revision,
                by=reading.by,
                cost=_cost_between(before, self.meter.cost),
            )
        )
        return revision > 0

    def _step_hits(self, number: int, step: SubQuestion, text: str) -> tuple[Hit, ...]:
        """What a step reads first: documents linked from earlier citations, then its own hits."""
        if number == 0:
            return self.question_hits
        answers = self._answers()
        citations = (one for need in step.depends_on for one in self.latest[need].citations)
        cited = list(dict.fromkeys(one.doc_id for one in citations))
        linked = self.cache.linked_titles(cited, [answers[need] for need in step.depends_on])
        found = self.cache.search(text, k=self.policy.k, retriever=self.policy.retriever)
        return _unique_hits((*linked, *found, *map(Hit, cited)))

    def _read(self, text: str, step: SubQuestion, hits: Sequence[Hit]) -> tuple[Reading, Review]:
        policy = self.policy
        passages = self.cache.passages((*hits, *self.question_hits))
        reader = StepReader(
            self.meter,
            self.find,
            max_chars=policy.max_passage_chars,
            sure=policy.min_probability,
        )
        reading = reader.read(text, step.answer_type, passages)
        judged = review(
            text,
            reading,
            passages,
            hops=self.hops,
            meter=self.meter if policy.repair_steps else None,
            weight=policy.accuracy_weight,
        )
        return reading, judged

    def _combine(self, number: int, step: SubQuestion) -> Step:
        """Combine earlier answers; the confidence is the lowest of those it depends on."""
        needed = [self.latest[need] for need in step.depends_on if need in self.latest]
        answers = [one.answer for one in needed] + [None] * (len(step.depends_on) - len(needed))
        reviews = [one.review or NO_REVIEW for one in needed]
        accuracies = [one.accuracy for one in reviews]
        answer = combine(step.combine, step.choices, answers, accuracies)
        judged = None
        if answer is not None and needed:
            scored_answers = [(one.answer, seen.confidence) for one, seen in zip(needed, reviews)]
            basis = supporting_steps(step.combine, step.choices, answer, scored_answers)
            rests_on = [reviews[at] for at in basis]
            judged = min(rests_on, key=lambda one: one.confidence, default=NO_REVIEW)
        return Step(
            fill_answers(step.text, self._answers()),
            (),
            note="" if answer is not None else "the earlier answers do not decide it",
            number=number,
            answer=answer,
            citations=_citations(needed),
            review=judged,
            by="joined",
        )

    # --- evidence

    def _held(self) -> tuple[Hit, ...]:
        """The evidence: cited documents, first hits of each step, then hits of the question."""
        taken = self.latest.values()
        cited = [Hit(one.doc_id) for step in taken for one in step.citations]
        first = [hit for step in taken for hit in step.hits[:1]]
        return _unique_hits((*cited, *first, *self.question_hits))[: self.meter.budget.documents]

    def check_evidence(self) -> Verdict | None:
        """The gate's verdict on the evidence; None if the policy does not use the gate."""
        if not self.policy.use_gate:
            return None
        evidence = strip_scores(self._held())
        left = 0 if self.meter.out_of_time() else self.meter.rounds_left
        (verdict,) = self.gate.check_batch(
            [(self.question, evidence)], documents=self.cache.documents, rounds_left=left
        )
        self._record(Step(self.question, evidence, verdict, "the gate checks the evidence"))
        return verdict

    def expand(self) -> Verdict:
        """Expand until the gate is satisfied, then answer the steps again with the new evidence."""
        evidence, budget, library = self._held(), self.meter.budget, self.cache.library
        limits = expansion.ExpansionBudget(
            rounds=self.meter.rounds_left,
            documents=budget.documents,
            seconds=(
                None if budget.seconds is None else max(budget.seconds - self.meter.elapsed(), 0.0)
            ),
        )
        (found,) = expansion.expand(
            [self.question],
            _HeldFirstRetriever(
                self.question, evidence, library.retriever(self._survey_retriever())
            ),
            self.gate,
            library.get,
            follow=library.links().out if isinstance(library, LinkedSource) else None,
            budget=limits,
            clock=self.meter.elapsed if self.meter.clock is not None else None,
        )
        self.meter.rounds += min(max(len(found.trace.steps) - 1, 0), self.meter.rounds_left)
        for step in found.trace.steps:
            self._record(replace(step, number=0))
        self.meter.note(f"expansion ended: {found.stopped}")
        self.cache.fetch(hit.doc_id for hit in found.hits)
        new = {hit.doc_id for hit in found.hits} - {hit.doc_id for hit in evidence}
        self.question_hits = _unique_hits((*found.hits, *self.question_hits))
        if found.complete and new and not self.meter.out_of_time():
            self.answer_steps()
        return found.verdict

    # --- the end

    def finish(self, verdict: Verdict | None) -> Trace:
        """Answer if the gate agrees and the last step is sure; otherwise name what is missing."""
        self.meter.elapsed()
        if verdict is not None:
            self._count_verdict(verdict)
        final = final_step(self.latest, len(self.plan.steps), self.policy.min_probability)
        missing: list[str] = []
        found_nothing = not self.question_hits and not any(step.hits for step in self.steps)
        if self.filtered is not None and self.filtered.filter and found_nothing:
            missing.append(f"documents that pass the filter: {self.filtered.filter}")
            self.meter.note("nothing that passes the filter was found")
        if verdict is not None and verdict.action is not Action.ANSWER:
            queries = [f"what this would find: {query}" for query in verdict.next_queries]
            missing += verdict.missing or queries or ["something that the gate cannot name"]
            self.meter.note(
                f"the gate says that the evidence is incomplete: {verdict.p_complete:.2f}"
            )
        ordered = [step for _, step in sorted(self.latest.items())]
        if final is None:
            sub_steps = [step for step in ordered if step.number and step.by not in ("", "joined")]
            unanswered = [step.question for step in sub_steps if step.answer is None]
            missing += unanswered or [self.question]
        elif final.review is not None and final.review.support is Support.CONTRADICTORY:
            missing.append(f"which document is right: {final.note or final.question}")
        elif not self._is_trusted(final.review):
            missing.append(
                f'a sentence that confirms "{final.answer}" as the answer to: {final.question}'
            )
        answered = final is not None and not missing
        trace = replace(
            self._trace(),
            answer=final.answer if final is not None and answered else None,
            action=Action.ANSWER if answered else Action.ABSTAIN,
            citations=_citations(ordered),
            missing=tuple(dict.fromkeys(missing)),
        )
        if self.on_update is not None:
            self.on_update(trace)
        return trace

    def _count_verdict(self, verdict: Verdict) -> None:
        """Replace the reader's own view of whether the evidence is complete by the gate's."""
        for at, step in enumerate(self.steps):
            judged = step.review if step is self.latest.get(step.number) else None
            if judged and judged.by == SpanReader.name and judged.confidence < judged.accuracy:
                judged = replace(judged, confidence=verdict.p_complete * judged.accuracy)
                self.steps[at] = self.latest[step.number] = replace(step, review=judged)

    def _is_trusted(self, judged: Review | None) -> bool:
        if judged is None:
            return False
        if judged.by == SpanReader.name:
            sure = judged.confidence >= self.policy.min_probability
            return sure and judged.support is not Support.CONTRADICTORY
        if judged.confidence < self.policy.min_confidence:
            return False
        if self.policy.require_attribution:
            return judged.support is Support.ATTRIBUTABLE
        return judged.support is not Support.CONTRADICTORY

    def _record(self, step: Step) -> None:
        self.steps.append(step)
        if step.verdict is None:
            self.latest[step.number] = step
        self._publish()

    def _publish(self) -> None:
        if self.on_update is not None:
            self.on_update(self._trace())

    def _trace(self) -> Trace:
        model, filtered = self.meter.model, self.filtered
        applied: dict[str, object] = {}
        if filtered is not None:
            # Lists rather than tuples, because a replay reads them from JSON.
            conditions = [
                asdict(one) | {"values": [*one.values]} for one in filtered.filter.conditions
            ]
            lenient = filtered.filter.lenient
            applied = {
                "filter": {"conditions": conditions, "lenient": lenient},
                "strict": filtered.strict,
            }
        return Trace(
            Question("", self.question),
            tuple(self.steps),
            plan=tuple(step.text for step in self.plan.steps),
            notes=tuple(self.meter.notes),
            cost=self.meter.cost,
            calls=tuple(self.meter.calls),
            ticks=tuple(self.meter.ticks),
            settings={
                "policy": asdict(self.policy),
                "budget": asdict(self.meter.budget),
                "model": None if model is None else component_name(model),
                "planned_by": self.plan.by,
                "kind": self.plan.kind,
                "hops": round(self.hops, 3),
                **applied,
            },
        )


def final_step(latest: Mapping[int, Step], steps: int, level: float) -> Step | None:
    """The step that answers the question: the plan's last step, or the whole question.

    The whole question wins if the plan gave no answer, or if the plan's answer is below `level`
    and the whole question's is likelier. It does not win with the answer of an intermediate step:
    a reader that stops half way gives such an answer.
    """
    found = [one for one in (latest.get(steps), latest.get(0)) if one and one.answer]
    on_the_way = {latest[at].answer for at in range(1, steps) if at in latest}
    if len(found) == 2 and found[1].answer in on_the_way:
        del found[1]
    sure = [one.review.confidence if one.review else 0.0 for one in found]
    if len(found) == 2 and found[1].by == SpanReader.name and sure[0] < min(level, sure[1]):
        return found[1]
    return found[0] if found else None


class _HeldFirstRetriever:
    """A retriever whose hits for the question start with the documents already held."""

    def __init__(self, question: str, first_hits: Sequence[Hit], retriever: Retriever) -> None:
        self.question, self.first_hits, self.retriever = question, tuple(first_hits), retriever

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        found = self.retriever.search(questions, k=k, filters=filters)
        return [
            _unique_hits((*self.first_hits, *hits))[:k] if one == self.question else tuple(hits)
            for one, hits in zip(questions, found)
        ]


def _unique_hits(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Each document once, at its first position."""
    kept: dict[DocId, Hit] = {}
    for hit in hits:
        kept.setdefault(hit.doc_id, hit)
    return tuple(kept.values())


def _citations(steps: Sequence[Step]) -> tuple[Citation, ...]:
    return tuple(dict.fromkeys(one for step in steps for one in step.citations))


def _cost_between(before: Cost, after: Cost) -> Cost:
    return Cost(
        after.rounds - before.rounds,
        after.calls - before.calls,
        after.tokens - before.tokens,
        round(after.seconds - before.seconds, 6),
        round(after.money - before.money, 9),
    )
