"""Systems for the PAR-RAG study, in addition to those of `suffice evaluate answers`.

interleaved       each sentence that was read is the next query, like IRCoT's thoughts
max rounds        `ask` without a gate; every step is searched again, however confident it is
dense first       `ask` searches sub-questions by vectors alone, as the paper does
hybrid survey     `ask` searches the whole question by words and vectors, not along links
..., no review    and so on: `ask` with one part switched off
model alone       the language model answers without documents
gate, then loop   one search; if the gate finds it complete, it is read once, else the loop runs
..., reader       the loop without the language model: the gate's reader reads
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from suffice.answering.ask import AskPolicy
from suffice.answering.expand import strip_scores
from suffice.answering.plan import whole_question_step
from suffice.answering.prompting import object_schema, parse_json_object, quote_inline
from suffice.answering.step import StepReader
from suffice.protocols import GateLike
from suffice.text import title_key
from suffice.types import Action, Hit
from suffice_research.answer_systems import BRIDGE, AnswerSetup, System, ask_system
from suffice_research.answers import AnswerOutcome

__all__ = ["SYSTEMS", "paper_systems"]

INTERLEAVED = 3  # documents added per sentence
ALONE = (
    "Answer the question from what you know, with as few words as possible: a name, a date, a "
    'number, yes or no. If you do not know it, the answer is "unknown".\n'
    'Answer in JSON: {{"answer": "..."}}\n\nQuestion: <<<{question}>>>\nAnswer:'
)


def read_interleaved(setup: AnswerSetup, question: str, gate: GateLike) -> AnswerOutcome:
    """Read, search for the sentence that was read, read new hits, until there are none."""
    evidence, meter = setup.start()
    step = whole_question_step(question)
    reader = StepReader(meter, setup.finder(gate), max_chars=setup.max_chars)
    fresh: Sequence[Hit] = evidence.search(question, k=INTERLEAVED, retriever=None)
    hits, searched, limit = list(fresh), {question}, setup.budget.documents
    while fresh and len(hits) < limit and meter.rounds_left and not meter.out_of_time():
        cited = reader.read(step.text, step.answer_type, evidence.passages(fresh)).citations
        sentence = next((one.text for one in cited if one.text not in searched), None)
        if sentence is None:
            break
        searched.add(sentence)
        meter.rounds += 1
        known = {hit.doc_id for hit in hits}
        found = evidence.search(sentence, k=2 * INTERLEAVED, retriever=None)
        new = [hit for hit in found if hit.doc_id not in known]
        fresh = new[: min(INTERLEAVED, limit - len(hits))]
        hits += fresh
    return setup.read(question, hits, evidence, meter, gate)


def answer_alone(setup: AnswerSetup, question: str, gate: GateLike) -> AnswerOutcome:
    """The model's answer without documents; none without a model."""
    _, meter = setup.start()
    prompt = ALONE.format(question=quote_inline(question))
    schema = object_schema(answer={"type": "string"})
    said = parse_json_object(meter.complete(prompt, purpose="answer", schema=schema)) or {}
    answer = said.get("answer")
    known = isinstance(answer, str) and title_key(answer) not in ("unknown", "")
    meter.elapsed()
    error = next((call.error for call in meter.calls if call.error), None)
    text = " ".join(answer.split()) if isinstance(answer, str) and known else None
    return AnswerOutcome(text, (), meter.cost, text, error=error)


def loop_if_incomplete(setup: AnswerSetup, question: str, gate: GateLike) -> AnswerOutcome:
    """Read the hits of one search if the gate finds them complete; else run the loop that always
    answers.
    """
    evidence, meter = setup.start()
    hits = evidence.search(question, k=setup.budget.documents, retriever=BRIDGE)
    (verdict,) = gate.check_batch([(question, strip_scores(hits))], documents=evidence.documents)
    if verdict.action is Action.ANSWER:
        return setup.read(question, hits, evidence, meter, gate)
    before = meter.elapsed()
    outcome = _ALWAYS(setup, question, gate)
    seconds = outcome.cost.seconds + before
    return replace(outcome, cost=replace(outcome.cost, seconds=seconds))


def without_model(system: System) -> System:
    """The same system without a language model."""
    return lambda setup, question, gate: system(replace(setup, model=None), question, gate)


_ALWAYS = ask_system(AskPolicy(), gated=False, always=True)
_REVISE_ALWAYS = AskPolicy(
    repair_below=1.1, max_repairs=3, require_attribution=False, min_confidence=0.0
)
SYSTEMS: Mapping[str, System] = {
    "interleaved": read_interleaved,
    "max rounds": ask_system(_REVISE_ALWAYS, gated=False, always=True),
    "always, no review": ask_system(AskPolicy(repair_steps=False), gated=False, always=True),
    "ask, no review": ask_system(AskPolicy(repair_steps=False)),
    "ask, fixed alpha": ask_system(AskPolicy(accuracy_weight=0.5)),
    "ask, dense first": ask_system(AskPolicy(retriever="dense")),
    "ask, hybrid survey": ask_system(AskPolicy(survey_retriever=None)),
    "ask, any exemplars": ask_system(AskPolicy(match_complexity=False)),
    "model alone": answer_alone,
    "gate, then loop": loop_if_incomplete,
    "always, reader": without_model(_ALWAYS),
    "ask, reader": without_model(ask_system(AskPolicy())),
}


def paper_systems() -> Mapping[str, System]:
    return SYSTEMS
