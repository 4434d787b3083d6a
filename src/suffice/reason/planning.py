"""Who makes the plan: a model that is shown plans of the same complexity, or the rules, which also stand in where it fails."""

from __future__ import annotations

from dataclasses import replace

from suffice.errors import InputError
from suffice.reason.budget import Meter
from suffice.reason.exemplars import Bank, Exemplar, shown
from suffice.reason.plan import LONGEST, PLAN_SCHEMA, Plan, SubQuestion, fill, read_plan
from suffice.reason.prompting import json_object, prompt
from suffice.reason.rules import plan_by_rules
from suffice.reason.spans import expected

__all__ = ["make_plan", "refined"]

REFINED_SCHEMA = {
    "type": "object",
    "properties": {"question": {"type": "string", "minLength": 5, "maxLength": LONGEST}},
    "required": ["question"],
    "additionalProperties": False,
}


def make_plan(
    question: str, meter: Meter, bank: Bank | None, *, hops: float | None = None, exemplars: int = 3, alike: bool = True
) -> Plan:
    """A plan that holds. The model is shown exemplars of as many `hops`, and of the kind that the rules take it for.

    Where nobody foresees the hops, the rules' plan has as many as it looks things up. With `alike` off the exemplars are the
    same for every question, whatever its complexity.
    """
    by_rules = plan_by_rules(question)
    if not meter.asks():
        return by_rules
    chosen: tuple[Exemplar, ...] = ()
    if bank is not None:
        steps = by_rules.hops if hops is None else round(hops)
        like, steps, kind = (question, steps, by_rules.kind) if alike else ("", 1, "")
        chosen = bank.like(like, hops=steps, kind=kind, count=exemplars)
    asked = prompt("plan", fenced={"question": " ".join(question.split())}, examples=shown(chosen))
    said = meter.complete(asked, purpose="plan", schema=PLAN_SCHEMA)
    try:
        return read_plan(question, json_object(said), kind=by_rules.kind)
    except InputError as error:
        why = f"the model's plan does not hold: {error}" if said is not None else "the model made no plan"
        return replace(by_rules, notes=(f"{why}; the rules' plan is followed",))


def refined(plan: Plan, number: int, answers: dict[int, str], meter: Meter) -> SubQuestion | None:
    """The sub-question of this number as the model would ask it after a correction; None where it stays as it is.

    It may not drop what the sub-question names: only the words around an answer change.
    """
    step = plan.steps[number - 1]
    if not meter.asks() or step.join:
        return None
    known = "; ".join(f"#{at} is {answer}" for at, answer in sorted(answers.items()))
    filled = fill(step.text, answers)
    fenced = {"whole": plan.question, "known": known, "question": filled}
    said = json_object(meter.complete(prompt("refine", fenced=fenced), purpose="refine", schema=REFINED_SCHEMA))
    text = said.get("question") if said is not None else None
    if not isinstance(text, str) or not all(answers[need] in text for need in step.needs if need in answers):
        return None
    text = " ".join(text.split())[:LONGEST]
    return SubQuestion(text, expected(text)) if text != filled and "#" not in text else None
