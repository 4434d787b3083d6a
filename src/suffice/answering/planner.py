"""Make a plan, with a model that is shown exemplars of similar complexity, or by rules.

The shipped exemplars are text from MuSiQue (CC BY 4.0) and 2WikiMultiHopQA (Apache-2.0), see their
card; `ExemplarBank.from_exemplars` takes your own. A question is never shown its own plan, so you
can evaluate on questions from the bank.
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
from suffice.answering.prompting import object_schema, parse_json_object, render_prompt
from suffice.answering.rule_planner import plan_by_rules
from suffice.errors import InputError
from suffice.lexicon import FUNCTION_WORDS
from suffice.storage import BadRecords, read_jsonl
from suffice.text import tokens

SHIPPED_PLANS = Path(__file__).parent.parent / "models" / "plans" / "plans.jsonl"
DUPLICATE_OVERLAP = 0.7  # share of common words from which two questions count as duplicates

REFINE_SCHEMA = object_schema(
    question={"type": "string", "minLength": 5, "maxLength": MAX_STEP_CHARS}
)


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A question and the steps that answer it; "#1" stands for the answer to the first."""

    question: str
    steps: tuple[str, ...]
    kind: str = "bridge"
    hops: int = 2
    source: str = ""


@dataclass(frozen=True)
class ExemplarBank:
    """Exemplar plans, each checked like any other plan."""

    exemplars: tuple[Exemplar, ...]
    _words: tuple[frozenset[str], ...] = field(default=(), repr=False)

    @classmethod
    def from_exemplars(cls, exemplars: Iterable[Exemplar]) -> ExemplarBank:
        """Build a bank; InputError if the steps of an exemplar are not a valid plan."""
        known = tuple(exemplars)
        for number, one in enumerate(known, start=1):
            steps = [SubQuestion(text, expected_answer_type(text)) for text in one.steps]
            try:
                build_plan(one.question, steps)
            except InputError as error:
                place = f"exemplar {number} ({one.question[:60]!r})"
                raise InputError(f"{place}: {error}") from error
        return cls(known, tuple(_content_words(one.question) for one in known))

    @classmethod
    def load(cls, path: Path | str | None = None) -> ExemplarBank:
        """The shipped bank, or a JSON Lines file with question, steps and optional fields."""
        if path is None:
            return _shipped_bank()
        found = []
        for record in read_jsonl(Path(path), BadRecords()):
            value = record.value
            question, steps = value.get("question"), value.get("steps")
            if (
                not isinstance(question, str)
                or not isinstance(steps, list)
                or not all(isinstance(one, str) for one in steps)
            ):
                raise InputError(
                    f"{record.where}: expected a 'question' and a list of 'steps'",
                    hint='like {"question": "Who taught Ada\'s teacher?",'
                    ' "steps": ["Who taught Ada?", "Who taught #1?"]}',
                )
            hops = value.get("hops")
            hops = hops if isinstance(hops, int) else len(steps)
            kind, source = str(value.get("kind", "bridge")), str(value.get("source", ""))
            found.append(Exemplar(question, tuple(steps), kind, hops, source))
        return cls.from_exemplars(found)

    def most_similar(
        self, question: str, *, hops: int, kind: str, count: int = 3
    ) -> tuple[Exemplar, ...]:
        """The nearest exemplars by hops, then kind, then words, without the question itself."""
        words = _content_words(question)
        ranked = []
        for at, (one, own) in enumerate(zip(self.exemplars, self._words)):
            overlap = len(words & own) / (len(words | own) or 1)
            if overlap < DUPLICATE_OVERLAP:
                ranked.append((abs(one.hops - hops), one.kind != kind, -overlap, at))
        return tuple(self.exemplars[at] for *_, at in sorted(ranked)[: max(count, 0)])


@cache
def _shipped_bank() -> ExemplarBank:
    return ExemplarBank.load(SHIPPED_PLANS)


def _content_words(text: str) -> frozenset[str]:
    return frozenset(tokens(text)) - FUNCTION_WORDS


def format_exemplars(exemplars: Sequence[Exemplar]) -> str:
    """The exemplars as text for a prompt."""
    answers = [json.dumps({"steps": list(one.steps)}, ensure_ascii=False) for one in exemplars]
    return "".join(
        f"Question: {one.question}\nAnswer: {answer}\n\n" for one, answer in zip(exemplars, answers)
    )


def make_plan(
    question: str,
    meter: MeteredModel,
    bank: ExemplarBank | None,
    *,
    hops: float | None = None,
    exemplars: int = 3,
    match_complexity: bool = True,
) -> Plan:
    """A checked plan. The model is shown exemplars with the same `hops` and the rules' kind.

    `hops` defaults to that of the rules' plan. Without `match_complexity`, every question gets the
    same exemplars.
    """
    by_rules = plan_by_rules(question)
    if not meter.available():
        return by_rules
    chosen: tuple[Exemplar, ...] = ()
    if bank is not None:
        wanted = by_rules.hops if hops is None else round(hops)
        like, wanted, kind = (question, wanted, by_rules.kind) if match_complexity else ("", 1, "")
        chosen = bank.most_similar(like, hops=wanted, kind=kind, count=exemplars)
    prompt = render_prompt(
        "plan",
        fenced={"question": " ".join(question.split())},
        examples=format_exemplars(chosen),
    )
    answer = meter.complete(prompt, purpose="plan", schema=PLAN_SCHEMA)
    try:
        return parse_plan(question, parse_json_object(answer), kind=by_rules.kind)
    except InputError as error:
        why = "the model made no plan"
        if answer is not None:
            why = f"the model's plan is invalid: {error}"
        return replace(by_rules, notes=(f"{why}; the rules' plan is used",))


def refine_step(
    plan: Plan, number: int, answers: dict[int, str], meter: MeteredModel
) -> SubQuestion | None:
    """Let the model reword a sub-question after a correction; None if it keeps the wording.

    The new wording must contain the answers that the sub-question depends on.
    """
    step = plan.steps[number - 1]
    if not meter.available() or step.combine:
        return None
    known = "; ".join(f"#{at} is {answer}" for at, answer in sorted(answers.items()))
    filled = fill_answers(step.text, answers)
    fenced = {"whole": plan.question, "known": known, "question": filled}
    prompt = render_prompt("refine", fenced=fenced)
    parsed = parse_json_object(meter.complete(prompt, purpose="refine", schema=REFINE_SCHEMA))
    text = parsed.get("question") if parsed is not None else None
    needed = [answers[need] for need in step.depends_on if need in answers]
    if not isinstance(text, str) or not all(answer in text for answer in needed):
        return None
    text = " ".join(text.split())[:MAX_STEP_CHARS]
    if text == filled or "#" in text:
        return None
    return SubQuestion(text, expected_answer_type(text))
