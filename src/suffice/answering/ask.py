"""Ask: plan, look, read, review, and answer only where the gate agrees that the evidence is complete.

    trace = ask("When did Lothair II's mother die?", library, gate)                       rules plan and read
    trace = ask("When did Lothair II's mother die?", library, gate, model, clock=time.monotonic)
    trace.answer, trace.citations, trace.action, trace.missing

Start with `ask`; the rest of the file is what its lines say. Whatever the model does (fail, dawdle, babble, loop), the budget
bounds it and the trace tells of it. Documents are read and cited; nothing that they say changes the plan or the form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from suffice.answering import expand as expansion
from suffice.answering.budget import Budget, MeteredModel
from suffice.answering.combine_answers import combine, supporting_steps
from suffice.answering.expand import strip_scores
from suffice.answering.extractive_reader import Reading
from suffice.answering.plan import Plan, SubQuestion, fill_answers, whole_question_step
from suffice.answering.planner import ExemplarBank, make_plan, refine_step
from suffice.answering.review import NO_REVIEW, review
from suffice.answering.step import DocumentSource, EvidenceCache, LinkedSource, ModelReader
from suffice.errors import InputError
from suffice.protocols import GateLike, LanguageModel, Reranker, Retriever, component_name
from suffice.types import (
    Action,
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

__all__ = ["AskPolicy", "HopEstimator", "TraceCallback", "ask"]

TraceCallback = Callable[[Trace], None]  # is shown the journey after every step


@runtime_checkable
class HopEstimator(Protocol):
    """A gate that also tells from a question's words how many documents it will need."""

    def hops(self, questions: Sequence[str]) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True)
class AskPolicy:
    """How a question is worked on. The defaults are the whole of it; each of the last five switches one part off."""

    look: str | None = None  # the retriever of a first look; None: the one that suits the library
    survey: str | None = (
        "bridge"  # ... of the look at the question as a whole, where the library can; None: the same
    )
    again: str | None = (
        "bm25"  # ... and of another look, when a step is weak: words, where vectors did not help
    )
    k: int = 5  # hits of one sub-question
    exemplars: int = 3  # plans that the model is shown
    letters: int = 6000  # characters of passages that the model is shown at once
    repair_below: float = 0.6  # confidence below which a step is looked at again
    answer_from: float = 0.3  # confidence below which nothing is answered
    repairs: int = 1  # looks again for one step
    attributed: bool = True  # answer only what the cited sentences state; off: also what a model's review has passed
    gated: bool = True  # answer only where the gate agrees
    reviewed: bool = True  # look again at weak steps
    alike: bool = True  # exemplars of the question's complexity
    alpha: float | None = None  # a fixed weight of accuracy; None: falling with hops


def ask(
    question: str,
    library: DocumentSource,
    gate: GateLike,
    model: LanguageModel | None = None,
    *,
    policy: AskPolicy = AskPolicy(),  # noqa: B008 - frozen
    budget: Budget = Budget(),  # noqa: B008 - frozen
    bank: ExemplarBank | None = None,
    reranker: Reranker | None = None,
    clock: Callable[[], float] | None = None,
    watch: TraceCallback | None = None,
) -> Trace:
    """The answer with the evidence it rests on, or an abstention that names what is missing; never more than the budget.

    Without a model the rules plan, and the best supporting sentences are read. `bank` holds exemplars for the model's plan, by
    default those that ship. With a `reranker`, a cross-encoder, credibility is its judgement beside what the words cover. The
    budget's seconds need a `clock`; a search that has begun is finished.
    """
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"the question is {question!r}, expected a text", hint="ask something")
    meter = MeteredModel(model, budget, clock)
    bank = ExemplarBank.load() if bank is None and model is not None else bank
    foreseen = float(gate.hops([question])[0]) if isinstance(gate, HopEstimator) else None
    plan = make_plan(
        question, meter, bank, hops=foreseen, exemplars=policy.exemplars, alike=policy.alike
    )
    hops = plan.hops if foreseen is None else foreseen
    journey = _AskRun(
        question, EvidenceCache(library), gate, meter, policy, watch, plan, hops, reranker
    )
    journey.look()
    journey.walk()
    verdict = journey.judged()
    if (
        verdict is not None
        and verdict.action is not Action.ANSWER
        and meter.rounds_left
        and not meter.late()
    ):
        verdict = journey.expand()
    return journey.ended(verdict)


@dataclass(slots=True)
class _AskRun:
    """One question on its way."""

    question: str
    desk: EvidenceCache
    gate: GateLike
    meter: MeteredModel
    policy: AskPolicy
    watch: TraceCallback | None
    plan: Plan
    hops: float  # that the question needs, as far as anyone foresees
    reranker: Reranker | None = None
    whole: tuple[Hit, ...] = ()  # what the question as a whole finds
    steps: list[Step] = field(default_factory=list)
    last: dict[int, Step] = field(
        default_factory=dict
    )  # the latest step of each sub-question; 0: of the question itself

    # ---------------------------------------------------------------------------------------------------- acting

    def look(self) -> None:
        """A first look with the question as it stands: what every step may read besides its own hits."""
        self.meter.notes += self.plan.notes
        self._show()
        self.whole = self.desk.look(
            self.question, k=self.meter.budget.documents, retriever=self._surveyor()
        )

    def _surveyor(self) -> str | None:
        """Who looks for the question as a whole: along links where the library can, else whoever looks at all."""
        return self.policy.survey if self.desk.can(self.policy.survey) else self.policy.look

    def walk(self) -> None:
        """Every sub-question in turn; where the plan leads nowhere, the question as a whole."""
        reworded: dict[int, SubQuestion] = {}
        for number, step in enumerate(self.plan.steps, start=1):
            if self.meter.late():
                self._note("the budget of seconds is spent: not every step was taken")
                break
            if step.join:
                self._take(self._joined(number, step))
                continue
            revised = self._act(number, reworded.get(number, step))
            needed = (
                revised
                and number < len(self.plan.steps)
                and number in self.plan.steps[number].needs
            )
            if (
                needed
                and (better := refine_step(self.plan, number + 1, self._answers(), self.meter))
                is not None
            ):
                reworded[number + 1] = better
        final = self.last.get(len(self.plan.steps))
        if (
            len(self.plan.steps) > 1
            and (final is None or final.answer is None)
            and not self.meter.late()
        ):
            self._act(
                0,
                whole_question_step(self.question),
                note="the plan led to no answer: read as a whole",
            )

    def _answers(self) -> dict[int, str]:
        return {
            number: step.answer for number, step in self.last.items() if step.answer is not None
        }

    def _act(self, number: int, step: SubQuestion, note: str = "") -> bool:
        """Look, read, review, and look again where that is weak. Was the answer revised?"""
        before, answers = self.meter.spent, self._answers()
        text = fill_answers(step.text, answers)
        if lacking := [need for need in step.needs if need not in answers]:
            self._take(
                Step(
                    text,
                    (),
                    note=f"not asked: it needs the answer to step {lacking[0]}",
                    number=number,
                )
            )
            return False
        hits = self._hits(number, step, text)
        reading, judged = self._read(text, step, hits, whole=number == 0)
        revision = 0
        for _ in range(self.policy.repairs if self.policy.reviewed else 0):
            if (
                judged.confidence >= self.policy.repair_below
                or not self.meter.rounds_left
                or self.meter.late()
            ):
                break
            self.meter.rounds += 1
            more = self.desk.look(text, k=self.policy.k, retriever=self.policy.again)
            fresh = [
                hit
                for hit in more
                if hit.doc_id not in {one.doc_id for one in (*hits, *self.whole)}
            ]
            if not fresh and not self.meter.asks():
                break  # the rules would read the same again
            hits = (*hits, *fresh)
            other, weighed = self._read(text, step, hits, whole=number == 0)
            if weighed.confidence > judged.confidence:
                revision += other.answer != reading.answer
                reading, judged = other, weighed
        cost = _cost_between(before, self.meter.spent)
        self._take(
            Step(
                text,
                hits,
                None,
                note,
                number,
                reading.answer,
                reading.citations,
                judged,
                revision,
                reading.by,
                cost,
            )
        )
        return revision > 0

    def _hits(self, number: int, step: SubQuestion, text: str) -> tuple[Hit, ...]:
        """What this step may read first: documents that a known link leads to, then its own look."""
        if number == 0:
            return self.whole
        answers = self._answers()
        earlier = [one.doc_id for need in step.needs for one in self.last[need].citations]
        linked = self.desk.named_by(
            list(dict.fromkeys(earlier)), [answers[need] for need in step.needs]
        )
        found = self.desk.look(text, k=self.policy.k, retriever=self.policy.look)
        cited = [Hit(doc_id) for doc_id in dict.fromkeys(earlier)]
        return _unique_hits((*linked, *found, *cited))

    def _read(
        self, text: str, step: SubQuestion, hits: Sequence[Hit], *, whole: bool
    ) -> tuple[Reading, Review]:
        passages = self.desk.passages((*hits, *self.whole))
        reading = ModelReader(self.meter, letters=self.policy.letters).read(
            text, step.expects, passages
        )
        meter = self.meter if self.policy.reviewed else None
        # Where two were to be looked up and were not, a sentence about one of them does not answer for both.
        every = whole and self.plan.kind in ("comparison", "intersection")
        judged = review(
            text,
            reading,
            passages,
            hops=self.hops,
            meter=meter,
            weight=self.policy.alpha,
            every=every,
            reranker=self.reranker,
        )
        return reading, judged

    def _joined(self, number: int, step: SubQuestion) -> Step:
        """What the answers of earlier steps say together; as sure as the least sure of those that it rests on."""
        needed = [self.last[need] for need in step.needs if need in self.last]
        answers = [one.answer for one in needed] + [None] * (len(step.needs) - len(needed))
        reviews = [one.review or NO_REVIEW for one in needed]
        answer = combine(step.join, step.choices, answers, [one.accuracy for one in reviews])
        judged = None
        if answer is not None and needed:
            said = [(one.answer, seen.confidence) for one, seen in zip(needed, reviews)]
            on = [reviews[at] for at in supporting_steps(step.join, step.choices, answer, said)]
            judged = min(on, key=lambda one: one.confidence, default=NO_REVIEW)
        cited = tuple(dict.fromkeys(one for step in needed for one in step.citations))
        note = "" if answer is not None else "the earlier answers do not say"
        text = fill_answers(step.text, self._answers())
        return Step(text, (), None, note, number, answer, cited, judged, by="joined")

    # ---------------------------------------------------------------------------------------------------- evidence

    def held(self) -> tuple[Hit, ...]:
        """What is held for the question: what was cited, what the question found, what each step found first."""
        taken = self.last.values()
        cited = [Hit(one.doc_id) for step in taken for one in step.citations]
        first = [hit for step in taken for hit in step.hits[:1]]
        return _unique_hits((*cited, *first, *self.whole))[: self.meter.budget.documents]

    def judged(self) -> Verdict | None:
        """What the gate says of what is held; None where it is not asked."""
        if not self.policy.gated:
            return None
        held = strip_scores(self.held())
        left = 0 if self.meter.late() else self.meter.rounds_left
        (verdict,) = self.gate.check_batch(
            [(self.question, held)], documents=self.desk.documents, rounds_left=left
        )
        self._take(Step(self.question, held, verdict, "the gate looks at what is held"))
        return verdict

    def expand(self) -> Verdict:
        """Look for what is missing until the gate says enough; then read once more what was weak, with what was found."""
        held = self.held()
        seconds = self.meter.budget.seconds
        allowed = expansion.ExpansionBudget(
            rounds=self.meter.rounds_left,
            documents=self.meter.budget.documents,
            seconds=None if seconds is None else max(seconds - self.meter.seconds(), 0.0),
        )
        searcher = _HeldFirstRetriever(
            self.question, held, self.desk.library.retriever(self._surveyor())
        )
        links = self.desk.library.links() if isinstance(self.desk.library, LinkedSource) else None
        clock = self.meter.seconds if self.meter.clock is not None else None
        follow = None if links is None else links.out
        (found,) = expansion.expand(
            [self.question],
            searcher,
            self.gate,
            self.desk.library.get,
            follow=follow,
            budget=allowed,
            clock=clock,
        )
        self.meter.rounds += min(max(len(found.trace.steps) - 1, 0), self.meter.rounds_left)
        for step in found.trace.steps:
            self._take(replace(step, number=0))
        self._note(f"expansion ended: {found.stopped}")
        self.desk.fetch(hit.doc_id for hit in found.hits)
        new = {hit.doc_id for hit in found.hits} - {hit.doc_id for hit in held}
        self.whole = _unique_hits((*found.hits, *self.whole))
        if found.complete and new and not self.meter.late():
            self.walk()
        return found.verdict

    # ---------------------------------------------------------------------------------------------------- the end

    def ended(self, verdict: Verdict | None) -> Trace:
        """An answer where the gate agrees and the last step has one that holds; otherwise what is missing."""
        self.meter.seconds()
        final = next(
            (
                one
                for one in (self.last.get(len(self.plan.steps)), self.last.get(0))
                if one and one.answer
            ),
            None,
        )
        missing: list[str] = []
        if verdict is not None and verdict.action is not Action.ANSWER:
            looked_for = [f"what this would find: {query}" for query in verdict.next_queries]
            missing += verdict.missing or looked_for or ["something that the gate cannot name"]
            self._note(
                f"the gate does not take the evidence for complete: {verdict.p_complete:.2f}"
            )
        if final is None:
            asked = [
                (number, step) for number, step in sorted(self.last.items()) if number and step.by
            ]
            missing += [
                step.question for _, step in asked if step.answer is None and step.by != "joined"
            ] or [self.question]
        elif not self._holds(final):
            missing.append(f"sentences that say: {final.question} {final.answer}")
        answered = (
            final is not None
            and not missing
            and (verdict is None or verdict.action is Action.ANSWER)
        )
        action = Action.ANSWER if answered else Action.ABSTAIN
        cited = tuple(
            dict.fromkeys(one for _, step in sorted(self.last.items()) for one in step.citations)
        )
        told = replace(
            self._told(),
            answer=final.answer if answered and final is not None else None,
            action=action,
            citations=cited,
            missing=tuple(dict.fromkeys(missing)),
        )
        if self.watch is not None:
            self.watch(told)
        return told

    def _holds(self, step: Step) -> bool:
        judged = step.review
        if (
            judged is None
            or judged.confidence < self.policy.answer_from
            or judged.support is Support.CONTRADICTORY
        ):
            return False
        return judged.support is Support.ATTRIBUTABLE or not self.policy.attributed

    def _take(self, step: Step) -> None:
        self.steps.append(step)
        if step.verdict is None:
            self.last[step.number] = step
        self._show()

    def _note(self, words: str) -> None:
        if words not in self.meter.notes:
            self.meter.notes.append(words)

    def _show(self) -> None:
        if self.watch is not None:
            self.watch(self._told())

    def _told(self) -> Trace:
        settings: dict[str, Any] = {
            "policy": asdict(self.policy),
            "budget": asdict(self.meter.budget),
            "model": None if self.meter.model is None else component_name(self.meter.model),
            "planned_by": self.plan.by,
            "kind": self.plan.kind,
            "hops": round(self.hops, 3),
            "reranker": None if self.reranker is None else component_name(self.reranker),
        }
        return Trace(
            Question("", self.question),
            tuple(self.steps),
            plan=tuple(step.text for step in self.plan.steps),
            notes=tuple(self.meter.notes),
            cost=self.meter.spent,
            calls=tuple(self.meter.calls),
            ticks=tuple(self.meter.ticks),
            settings=settings,
        )


class _HeldFirstRetriever:
    """A retriever whose list for the question starts with what is held already."""

    def __init__(self, question: str, held: Sequence[Hit], retriever: Retriever) -> None:
        self.question, self.held_, self.retriever = question, tuple(held), retriever

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        found = self.retriever.search(questions, k=k, filters=filters)
        return [
            _unique_hits((*self.held_, *hits))[:k] if one == self.question else tuple(hits)
            for one, hits in zip(questions, found)
        ]


def _unique_hits(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Each document once, at its first place."""
    kept: dict[DocId, Hit] = {}
    for hit in hits:
        kept.setdefault(hit.doc_id, hit)
    return tuple(kept.values())


def _cost_between(before: Cost, after: Cost) -> Cost:
    return Cost(
        after.rounds - before.rounds,
        after.calls - before.calls,
        after.tokens - before.tokens,
        round(after.seconds - before.seconds, 6),
        round(after.money - before.money, 9),
    )
