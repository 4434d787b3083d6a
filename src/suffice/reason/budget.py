"""What one question may cost, what it has cost, and the one hand through which a language model is asked.

Everything is bounded: rounds, calls, tokens, seconds, money. A spent budget is a value, not an error: the meter then answers
None like a model that failed, and the loop goes on without it. A model that fails twice in a row is left alone: each wait
costs.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from suffice.errors import InputError, ModelError
from suffice.ports import LanguageModel
from suffice.types import Call, Cost

__all__ = ["Budget", "Counting", "Meter", "Prices", "Timed", "call_key"]

LONGEST_ANSWER = 20_000  # characters that are read of one; what is longer is cut
LETTERS = 4  # a token's worth, where nobody counted
FAILURES_IN_A_ROW = 2


@runtime_checkable
class Timed(Protocol):
    """A model that can be held to a shorter deadline than its own."""

    def within(self, seconds: float) -> LanguageModel:
        """The same model, with at most so many seconds for one request."""
        ...


@runtime_checkable
class Counting(Protocol):
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
    """What one question may cost. None: not bounded. `documents` is how many may be held at once.

    A round is a look beyond the first: a search again for a weak step, or a round of expansion.
    """

    rounds: int = 12
    calls: int = 40
    tokens: int = 100_000
    seconds: float | None = None
    money: float | None = None
    documents: int = 10
    prices: Prices = Prices()

    def __post_init__(self) -> None:
        for name, least in (("rounds", 0), ("calls", 0), ("tokens", 0), ("documents", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"budget: {name} is {value!r}, expected a whole number of at least {least}")
        amounts = {"seconds": self.seconds, "money": self.money, "price in": self.prices.tokens_in}
        for name, amount in {**amounts, "price out": self.prices.tokens_out}.items():
            if amount is not None and (isinstance(amount, bool) or not isinstance(amount, int | float) or not amount >= 0):
                raise InputError(f"budget: {name} is {amount!r}, expected a number of at least 0")
        if self.money is not None and self.prices == Prices():
            raise InputError(
                "a budget of money needs prices", hint="for example prices=Prices(0.15, 0.60), for a million tokens"
            )


class Meter:
    """Asks the model, counts what it takes, and keeps every call for the trace."""

    def __init__(self, model: LanguageModel | None, budget: Budget, clock: Callable[[], float] | None = None) -> None:
        if budget.seconds is not None and clock is None:
            raise InputError("a budget of seconds needs a clock", hint="pass clock=time.monotonic")
        self.model, self.budget, self.clock = model, budget, clock
        self.calls: list[Call] = []
        self.ticks: list[float] = []
        self.notes: list[str] = []
        self.rounds = 0
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
        tokens_in, tokens_out = (sum(getattr(call, name) for call in self.calls) for name in ("tokens_in", "tokens_out"))
        prices = self.budget.prices
        money = (tokens_in * prices.tokens_in + tokens_out * prices.tokens_out) / 1e6
        seconds = self.ticks[-1] if self.ticks else 0.0
        return Cost(self.rounds, len(self.calls), tokens_in + tokens_out, seconds, round(money, 9))

    def late(self) -> bool:
        """Is the time spent?"""
        return self.budget.seconds is not None and self.seconds() >= self.budget.seconds

    @property
    def rounds_left(self) -> int:
        return max(self.budget.rounds - self.rounds, 0)

    def asks(self) -> bool:
        """Is there a model that still answers?"""
        return self.model is not None and self._failures < FAILURES_IN_A_ROW

    # ------------------------------------------------------------------------------------------------- the call

    def complete(self, prompt: str, *, purpose: str, schema: Mapping[str, Any]) -> str | None:
        """The model's answer, at most LONGEST_ANSWER characters; None where there is no model, no budget or no answer."""
        if not self.asks():
            return None
        if lack := self._lacks(prompt):
            self._note(f"the budget of {lack} is spent: the model was asked no more")
            return None
        model: Any = self.model
        left = None if self.budget.seconds is None else self.budget.seconds - (self.ticks[-1] if self.ticks else 0.0)
        if left is not None and isinstance(model, Timed):
            model = model.within(left)
        answer, error = _answer(model, prompt, schema)
        tokens_in, tokens_out = _counted(model, prompt, answer)
        self.calls.append(
            Call(purpose, call_key(prompt, schema), answer and answer[:LONGEST_ANSWER], error, tokens_in, tokens_out)
        )
        self.seconds()
        if error is not None:
            self._failures += 1
            self._note(f"the model did not answer ({purpose}): {error}")
            if not self.asks():
                self._note("the model failed twice in a row: what follows was done without it")
            return None
        self._failures = 0
        return self.calls[-1].answer

    def _lacks(self, prompt: str) -> str:
        """Which part of the budget is spent; empty where all have something left."""
        late, spent = self.late(), self.spent
        if spent.calls >= self.budget.calls:
            return "calls"
        if spent.tokens + math.ceil(len(prompt) / LETTERS) > self.budget.tokens:
            return "tokens"
        if late:
            return "seconds"
        if self.budget.money is not None and spent.money >= self.budget.money:
            return "money"
        return ""

    def _note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)


def _answer(model: LanguageModel | None, prompt: str, schema: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """What the model said, or what went wrong. Only a model's own failure is one: our mistakes stay loud."""
    if model is None:
        return None, "no model"
    try:
        said = model.complete([prompt], schema=schema)
    except ModelError as error:
        return None, str(error)[:300]
    if len(said) != 1 or not isinstance(said[0], str):
        return None, "it did not return one text"
    return said[0], None


def _counted(model: Any, prompt: str, answer: str | None) -> tuple[int, int]:
    if isinstance(model, Counting) and model.last_tokens is not None:
        return int(model.last_tokens[0]), int(model.last_tokens[1])
    return math.ceil(len(prompt) / LETTERS), math.ceil(len(answer or "") / LETTERS)


def call_key(prompt: str, schema: Mapping[str, Any]) -> str:
    """The hash under which a call stands in a trace."""
    text = json.dumps([prompt, schema], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
