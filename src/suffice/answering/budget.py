"""What may be spent, what has been spent, and the one hand through which a question's model is asked.

Everything is bounded: rounds, calls, tokens, seconds, money. A `Bill` counts what a model takes, for one question here and for
a whole run elsewhere. For a question a spent budget is a value, not an error: the meter then answers None like a model that
failed, and the loop goes on without it. A model that fails twice in a row is left alone: each wait costs.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from suffice.errors import InputError, ModelError
from suffice.protocols import LanguageModel
from suffice.types import Call, Cost

__all__ = [
    "Budget",
    "MeteredModel",
    "Prices",
    "SupportsDeadline",
    "SupportsTokenCount",
    "Usage",
    "call_key",
    "estimate_tokens",
]

MAX_FAILURES_IN_A_ROW = 2  # after which a model is not asked again: each wait costs a time-out
MAX_ANSWER_CHARS = 20_000
CHARS_PER_TOKEN = 4  # a token's worth of English, where nobody counted


@runtime_checkable
class SupportsDeadline(Protocol):
    """A model that can be held to a shorter deadline than its own."""

    def within(self, seconds: float) -> LanguageModel:
        """The same model, with at most so many seconds for one request."""
        ...


@runtime_checkable
class SupportsTokenCount(Protocol):
    """A model that knows how many tokens its last completion took, in and out; None where its server did not say."""

    @property
    def last_tokens(self) -> tuple[int, int] | None: ...


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost, in any one currency."""

    tokens_in: float = 0.0
    tokens_out: float = 0.0


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent; the defaults are for one question. None: not bounded. `documents` is how many may be held at once.

    A round is a look beyond the first: a search again for a weak step, or a round of expansion. A call is one thing asked of
    a model; where its client tries again, or asks once more for sound JSON, that is within the call.
    """

    rounds: int = 12
    calls: int | None = 40
    tokens: int | None = 100_000
    seconds: float | None = None
    money: float | None = None
    documents: int = 10
    prices: Prices = Prices()

    def __post_init__(self) -> None:
        for name, least in (("rounds", 0), ("calls", 0), ("tokens", 0), ("documents", 1)):
            value = getattr(self, name)
            if value is None and name in ("calls", "tokens"):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(
                    f"budget: {name} is {value!r}, expected a whole number of at least {least}"
                )
        amounts = {"seconds": self.seconds, "money": self.money, "price in": self.prices.tokens_in}
        for name, amount in {**amounts, "price out": self.prices.tokens_out}.items():
            if amount is not None and (
                isinstance(amount, bool) or not isinstance(amount, int | float) or not amount >= 0
            ):
                raise InputError(f"budget: {name} is {amount!r}, expected a number of at least 0")
        if self.money is not None and self.prices == Prices():
            raise InputError(
                "a budget of money needs the prices of a million tokens",
                hint="for example prices=Prices(0.15, 0.60), or --prices 0.15,0.60",
            )


class Usage:
    """What a model was asked, what that took, and whether one more prompt is within the budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.calls = self.tokens_in = self.tokens_out = 0
        self.last = (0, 0)  # tokens of the last call, in and out

    @property
    def money(self) -> float:
        return self._price(self.tokens_in, self.tokens_out)

    def lacks(self, prompt: str) -> str:
        """Which part of the budget this prompt would overdraw; empty where there is enough of all."""
        coming = estimate_tokens(prompt)
        needed = {
            "calls": self.calls + 1,
            "tokens": self.tokens_in + self.tokens_out + coming,
            "money": self.money + self._price(coming, 0),
        }
        for name, amount in needed.items():
            limit = getattr(self.budget, name)
            if limit is not None and amount > limit:
                return name
        return ""

    def ask(self, model: LanguageModel, prompt: str, schema: Mapping[str, Any] | None) -> str:
        """The model's answer to one prompt. What fails is counted, too: it may have been paid for."""
        said: list[str] = []
        try:
            said = model.complete([prompt], schema=schema)
            if len(said) != 1 or not isinstance(said[0], str):
                said = []
                raise ModelError("it did not return one text")
            return said[0]
        finally:
            self.last = _count_tokens(model, prompt, "".join(said))
            self.calls += 1
            self.tokens_in += self.last[0]
            self.tokens_out += self.last[1]

    def _price(self, tokens_in: int, tokens_out: int) -> float:
        prices = self.budget.prices
        return (tokens_in * prices.tokens_in + tokens_out * prices.tokens_out) / 1e6


class MeteredModel:
    """Asks one question's model, within the question's budget, and keeps every call for the trace."""

    def __init__(
        self, model: LanguageModel | None, budget: Budget, clock: Callable[[], float] | None = None
    ) -> None:
        if budget.seconds is not None and clock is None:
            raise InputError("a budget of seconds needs a clock", hint="pass clock=time.monotonic")
        if budget.prices == Prices() and isinstance(
            known := getattr(model, "prices", None), Prices
        ):
            budget = replace(budget, prices=known)
        self.model, self.budget, self.clock = model, budget, clock
        self.calls: list[Call] = []
        self.ticks: list[float] = []
        self.notes: list[str] = []
        self.rounds = 0
        self._bill = Usage(budget)
        self._failures = 0
        self._begun = clock() if clock is not None else 0.0

    # ------------------------------------------------------------------------------------------------- what is left

    def seconds(self) -> float:
        """Since the question was asked; 0 without a clock. Every look at the clock is kept: a replay sees the same times."""
        if self.clock is None:
            return 0.0
        self.ticks.append(round(float(self.clock() - self._begun), 6))
        return self.ticks[-1]

    @property
    def spent(self) -> Cost:
        """What it has cost up to the last look at the clock."""
        bill, seconds = self._bill, self.ticks[-1] if self.ticks else 0.0
        return Cost(
            self.rounds, bill.calls, bill.tokens_in + bill.tokens_out, seconds, round(bill.money, 9)
        )

    def late(self) -> bool:
        """Is the time spent?"""
        return self.budget.seconds is not None and self.seconds() >= self.budget.seconds

    @property
    def rounds_left(self) -> int:
        return max(self.budget.rounds - self.rounds, 0)

    def asks(self) -> bool:
        """Is there a model that still answers?"""
        return self.model is not None and self._failures < MAX_FAILURES_IN_A_ROW

    # ------------------------------------------------------------------------------------------------- the call

    def complete(self, prompt: str, *, purpose: str, schema: Mapping[str, Any]) -> str | None:
        """The model's answer, at most LONGEST_ANSWER characters; None where there is no model, no budget or no answer."""
        if self.model is None or not self.asks():
            return None
        late = self.late()
        if lack := self._bill.lacks(prompt) or ("seconds" if late else ""):
            self._note(f"the budget of {lack} is spent: the model was asked no more")
            return None
        answer = error = None
        try:
            answer = self._bill.ask(self._hurried(self.model), prompt, schema)[:MAX_ANSWER_CHARS]
        except ModelError as failure:  # only a model's own failure is one: our mistakes stay loud
            error = str(failure)[:300]
        self.calls.append(Call(purpose, call_key(prompt, schema), answer, error, *self._bill.last))
        self.seconds()
        if error is None:
            self._failures = 0
            return answer
        self._failures += 1
        self._note(f"the model did not answer ({purpose}): {error}")
        if not self.asks():
            self._note("the model failed twice in a row: what follows was done without it")
        return None

    def _hurried(self, model: LanguageModel) -> LanguageModel:
        """The model, held to the time that is left, where it can be."""
        if self.budget.seconds is None or not isinstance(model, SupportsDeadline):
            return model
        return model.within(self.budget.seconds - (self.ticks[-1] if self.ticks else 0.0))

    def _note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)


def _count_tokens(model: LanguageModel, prompt: str, answer: str) -> tuple[int, int]:
    if isinstance(model, SupportsTokenCount) and model.last_tokens is not None:
        return int(model.last_tokens[0]), int(model.last_tokens[1])
    return estimate_tokens(prompt), estimate_tokens(answer)


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


def call_key(prompt: str, schema: Mapping[str, Any]) -> str:
    """The hash under which a call stands in a trace."""
    text = json.dumps([prompt, schema], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
