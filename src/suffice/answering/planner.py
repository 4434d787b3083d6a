"""Plans to learn from: questions that people or data sets have taken apart, to be shown to a model before it plans.

Those are chosen that are as complex as the question (as many hops, of the same kind), and among them the ones in words most
like it. The bank that ships is text from MuSiQue (CC BY 4.0) and 2WikiMultiHopQA (Apache-2.0), see its card; `Bank.of` takes
yours. A question's own plan is never shown to it: whoever measures on the questions of the bank would measure copying.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from suffice.answering.answer_type import expected_answer_type
from suffice.answering.budget import MeteredModel
from suffice.answering.plan import (
    MAX_STEP_CHARS,
    PLAN_SCHEMA,
    Plan,
    SubQuestion,
    build_plan,
    fill_answers,
    parse_plan,
)
from suffice.answering.prompting import parse_json_object, render_prompt
from suffice.answering.rule_planner import plan_by_rules
from suffice.errors import InputError
from suffice.lexicon import FUNCTION_WORDS
from suffice.storage import BadRecords, read_jsonl
from suffice.text import tokens

__all__ = [
    "SHIPPED_PLANS",
    "Exemplar",
    "ExemplarBank",
    "format_exemplars",
    "make_plan",
    "refine_step",
]


SHIPPED_PLANS = Path(__file__).parent.parent / "models" / "plans" / "plans.jsonl"
DUPLICATE_OVERLAP = (
    0.7  # share of words in common from which on two questions count as the same one
)


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A question with the steps that answer it, of which later ones hold "#1" for earlier answers."""

    question: str
    steps: tuple[str, ...]
    kind: str = "bridge"
    hops: int = 2
    source: str = ""


@dataclass(frozen=True)
class ExemplarBank:
    """Exemplars, each checked like any plan."""

    exemplars: tuple[Exemplar, ...]
    _words: tuple[frozenset[str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, exemplars: Iterable[Exemplar]) -> ExemplarBank:
        """InputError where the steps of one are not a plan."""
        held = tuple(exemplars)
        for at, one in enumerate(held):
            try:
                build_plan(
                    one.question,
                    [SubQuestion(text, expected_answer_type(text)) for text in one.steps],
                )
            except InputError as error:
                raise InputError(f"exemplar {at + 1} ({one.question[:60]!r}): {error}") from error
        return cls(held, tuple(_content_words(one.question) for one in held))

    @classmethod
    def load(cls, path: Path | str | None = None) -> ExemplarBank:
        """The bank that ships, or a JSON Lines file of question, steps and where known kind, hops and source."""
        if path is None:
            return _shipped_bank()
        found = []
        for record in read_jsonl(Path(path), BadRecords()):
            value = record.value
            question, steps = value.get("question"), value.get("steps")
            texts = isinstance(steps, list) and all(isinstance(one, str) for one in steps)
            if not isinstance(question, str) or not isinstance(steps, list) or not texts:
                raise InputError(
                    f"{record.where}: expected a 'question' and a list of 'steps'",
                    hint='like {"question": "Who taught Ada\'s teacher?", "steps": ["Who taught Ada?", "Who taught #1?"]}',
                )
            kind, hops = str(value.get("kind", "bridge")), value.get("hops", len(steps))
            hops = hops if isinstance(hops, int) else len(steps)
            found.append(Exemplar(question, tuple(steps), kind, hops, str(value.get("source", ""))))
        return cls.of(found)

    def and_more(self, others: Iterable[Exemplar]) -> ExemplarBank:
        """This bank and these."""
        return ExemplarBank.of((*self.exemplars, *others))

    def like(self, question: str, *, hops: int, kind: str, count: int = 3) -> tuple[Exemplar, ...]:
        """The exemplars nearest in complexity, then in kind, then in words; the question's own is left out."""
        words = _content_words(question)
        near = [_jaccard(words, own) for own in self._words]
        places = [at for at, share in enumerate(near) if share < DUPLICATE_OVERLAP]
        order = sorted(
            places, key=lambda at: (*_distance(self.exemplars[at], hops, kind), -near[at], at)
        )
        return tuple(self.exemplars[at] for at in order[: max(count, 0)])


@cache
def _shipped_bank() -> ExemplarBank:
    return ExemplarBank.load(SHIPPED_PLANS)


def _distance(one: Exemplar, hops: int, kind: str) -> tuple[int, bool]:
    return abs(one.hops - hops), one.kind != kind


def _content_words(text: str) -> frozenset[str]:
    return frozenset(tokens(text)) - FUNCTION_WORDS


def _jaccard(some: frozenset[str], others: frozenset[str]) -> float:
    return len(some & others) / (len(some | others) or 1)


def format_exemplars(exemplars: Sequence[Exemplar]) -> str:
    """Exemplars as a prompt shows them."""
    return "".join(
        f"Question: {one.question}\nAnswer: {json.dumps({'steps': list(one.steps)}, ensure_ascii=False)}\n\n"
        for one in exemplars
    )


# --- planning: Who makes the plan: a model that is shown plans of the same complexity, or the rules, which also stand in where it fails.

REFINE_SCHEMA = {
    "type": "object",
    "properties": {"question": {"type": "string", "minLength": 5, "maxLength": MAX_STEP_CHARS}},
    "required": ["question"],
    "additionalProperties": False,
}


def make_plan(
    question: str,
    meter: MeteredModel,
    bank: ExemplarBank | None,
    *,
    hops: float | None = None,
    exemplars: int = 3,
    alike: bool = True,
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
    asked = render_prompt(
        "plan", fenced={"question": " ".join(question.split())}, examples=format_exemplars(chosen)
    )
    said = meter.complete(asked, purpose="plan", schema=PLAN_SCHEMA)
    try:
        return parse_plan(question, parse_json_object(said), kind=by_rules.kind)
    except InputError as error:
        why = (
            f"the model's plan does not hold: {error}"
            if said is not None
            else "the model made no plan"
        )
        return replace(by_rules, notes=(f"{why}; the rules' plan is followed",))


def refine_step(
    plan: Plan, number: int, answers: dict[int, str], meter: MeteredModel
) -> SubQuestion | None:
    """The sub-question of this number as the model would ask it after a correction; None where it stays as it is.

    It may not drop what the sub-question names: only the words around an answer change.
    """
    step = plan.steps[number - 1]
    if not meter.asks() or step.join:
        return None
    known = "; ".join(f"#{at} is {answer}" for at, answer in sorted(answers.items()))
    filled = fill_answers(step.text, answers)
    fenced = {"whole": plan.question, "known": known, "question": filled}
    said = parse_json_object(
        meter.complete(
            render_prompt("refine", fenced=fenced), purpose="refine", schema=REFINE_SCHEMA
        )
    )
    text = said.get("question") if said is not None else None
    if not isinstance(text, str) or not all(
        answers[need] in text for need in step.needs if need in answers
    ):
        return None
    text = " ".join(text.split())[:MAX_STEP_CHARS]
    return (
        SubQuestion(text, expected_answer_type(text))
        if text != filled and "#" not in text
        else None
    )
