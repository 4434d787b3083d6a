"""A language model that judges whether hits are complete, for the lists a gate is unsure of.

    judge = ModelJudge(OpenAIModel("qwen", base_url="http://127.0.0.1:8080/v1"))
    gate = suffice.Gate.load("my-gate", judge=judge)

Each list is one request: the question, and the hits quoted as untrusted text. If the server returns
log-probabilities of yes and no, they give the log-odds; otherwise the answer's word or probability
does. Any other answer is no opinion. `suffice.gate.judge` decides which lists are sent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from suffice.answering.prompting import quote_inline, render_prompt
from suffice.errors import InputError, ModelError
from suffice.gate.gate import Gate
from suffice.gate.gate_ref import GateRef
from suffice.integrations.openai import Completion, OpenAIModel
from suffice.protocols import HitTexts
from suffice.types import Opinion, printable

__all__ = ["ModelJudge", "answer_log_odds", "judge_prompt", "open_judge", "open_judged_gate"]

MAX_CHARS, MAX_TITLE, MAX_QUESTION = 9_000, 200, 1_000  # of all passages, of a title, of a question
MAX_TOKENS, TIMEOUT_S = 8, 10.0
FAILURES_IN_A_ROW = 3  # then the rest of a batch is not sent
DEFAULT_MODEL = "default"  # servers with a single model ignore the name
SAID = 2.0  # log-odds of a yes without log-probabilities: right 88 times in 100
MAX_PROBABILITY = 0.99  # of one that is said in the answer
_WORD = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
_PROBABILITY = re.compile(r"[^\w.]*(?:(0?\.\d+|[01](?:\.\d+)?)(?![\d%])|(\d{1,3}(?:\.\d+)?)\s*%)")


def judge_prompt(question: str, titles: Sequence[str], texts: Sequence[str]) -> str:
    """The request about one list; the hits share the characters equally."""
    share = MAX_CHARS // max(len(texts), 1)
    passages = [
        f"[{at}] {title[:MAX_TITLE]}: {text[:share]}" if title else f"[{at}] {text[:share]}"
        for at, (title, text) in enumerate(zip(titles, texts, strict=True), start=1)
    ]
    shown = "\n".join(passages) or "(no passage was found)"
    asked = quote_inline(question, longest=MAX_QUESTION)
    return render_prompt("judge", fenced={"passages": shown}, question=asked)


def answer_log_odds(answer: Completion) -> float | None:
    """The log-odds of yes against no; None if the answer says neither."""
    said = _WORD.match(answer.text)
    if said is not None:
        scored = _token_log_odds(answer.logprobs)
        return (SAID if said[1].lower() == "yes" else -SAID) if scored is None else scored
    if (number := _PROBABILITY.match(answer.text)) is None:
        return None
    p = float(number[1]) if number[1] else float(number[2]) / 100
    if p > 1:
        return None
    p = min(max(p, 1 - MAX_PROBABILITY), MAX_PROBABILITY)
    return math.log(p / (1 - p))


def _token_log_odds(logprobs: Any) -> float | None:
    """From the first token that is yes or no, with its alternatives; None without usable ones."""
    try:
        for token in logprobs.content:
            if _yes_or_no(token.token):
                found = {"yes": 0.0, "no": 0.0}
                for other in token.top_logprobs:
                    if word := _yes_or_no(other.token):
                        found[word] += math.exp(min(other.logprob, 0.0))
                # A word that is not listed is less likely than each listed one.
                least = math.exp(min(other.logprob for other in token.top_logprobs))
                yes, no = (max(one or least, 1e-6) for one in found.values())
                return math.log(yes / no)
    except (AttributeError, TypeError, ValueError, OverflowError):
        pass  # the server gives none, or none that makes sense
    return None


def _yes_or_no(token: str) -> str:
    word = token.strip(" \t\n\"'*`.,:;▁Ġ").lower()
    return word if word in ("yes", "no") else ""


class ModelJudge:
    """A language model as a `suffice.protocols.Judge`; calibrations refer to it by `name`."""

    def __init__(self, model: OpenAIModel, *, name: str | None = None) -> None:
        if not callable(getattr(model, "iter_completions", None)):
            hint = 'for example OpenAIModel("qwen", base_url="http://127.0.0.1:8080/v1")'
            raise InputError(f"the model of a judge is a {type(model).__name__}", hint=hint)
        self.model, self.name = model, name or model.name

    def __repr__(self) -> str:
        return f"ModelJudge({self.name!r})"

    def judge(self, lists: Sequence[HitTexts]) -> list[Opinion]:
        """An opinion on each list. After several failures in a row, the rest is not sent."""
        found = [Opinion(None, error="it failed several times in a row")] * len(lists)
        prompts, failures = [judge_prompt(*one) for one in lists], 0
        for at, answer in self.model.iter_completions(prompts, logprobs=True):
            failed = isinstance(answer, ModelError)
            found[at] = _opinion(answer)
            failures = failures + 1 if failed else 0
            if failures == FAILURES_IN_A_ROW:
                break
        return found


def _opinion(answer: Completion | ModelError) -> Opinion:
    if isinstance(answer, ModelError):
        # Short, in one line: a server's message may repeat the prompt, and so a hit.
        return Opinion(None, error=" ".join(printable(str(answer)).split())[:120])
    log_odds = answer_log_odds(answer)
    problem = "its answer is neither yes or no nor a probability" if log_odds is None else ""
    return Opinion(log_odds, error=problem)


def open_judge(address: str, *, timeout_s: float = TIMEOUT_S) -> ModelJudge:
    """The judge of `--judge`: http://host:8080/v1#model, or the name of a model."""
    url, _, model = address.partition("#") if "://" in address else ("", "", address)
    name = model or DEFAULT_MODEL
    return ModelJudge(
        OpenAIModel(
            name, base_url=url or None, timeout_s=timeout_s, retries=1, max_tokens=MAX_TOKENS
        )
    )


def open_judged_gate(ref: GateRef, judge: str) -> Gate:
    """A gate opened by reference, in any process, with this judge behind it."""
    return ref.open().with_judge(open_judge(judge))
