"""Spending limits for a question, and the metered access to its language model.

Rounds, calls, tokens, seconds and money are bounded. Running out of budget is not an error: the
metered model returns None, as if it had failed, and answering continues without it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from suffice.errors import InputError, ModelError
from suffice.protocols import LanguageModel
from suffice.types import Call, Cost

CHARS_PER_TOKEN = 4  # for English text, if the model does not report tokens
MAX_ANSWER_CHARS = 20_000
MAX_FAILURES_IN_A_ROW = 2  # then the model is not called again: each wait costs a time-out


@dataclass(frozen=True, slots=True)
class Prices:
    """The cost of a million tokens, in any currency."""

    tokens_in: float = 0.0
    tokens_out: float = 0.0

    def __post_init__(self) -> None:
        for name, value in {"price_in": self.tokens_in, "price_out": self.tokens_out}.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and 0 <= value < math.inf):
                raise InputError(f"budget: {name} is {value!r}, expected a number of at least 0")


@dataclass(frozen=True, slots=True)
class Budget:
    """Spending limits; the defaults are for one question. None: no limit.

    A round is a search beyond the first one: for a weak step, or to expand. A call is one prompt,
    with the client's retries. `documents` is how many may be held at once.
    """

    rounds: int = 12
    calls: int | None = 40
    tokens: int | None = 100_000
    seconds: float | None = None
    money: float | None = None
    documents: int = 10
    prices: Prices = Prices()

    def __post_init__(self) -> None:
        check_whole(rounds=self.rounds)
        limits = {"calls": self.calls, "tokens": self.tokens}
        check_whole(**{name: value for name, value in limits.items() if value is not None})
        check_whole(1, documents=self.documents)
        check_amounts(seconds=self.seconds, money=self.money)
        if self.money is not None and self.prices == Prices():
            raise InputError(
                "a budget of money needs the prices of a million tokens",
                hint="for example prices=Prices(0.15, 0.60), or --prices 0.15,0.60",
            )


def check_whole(least: int = 0, **limits: Any) -> None:
    """Raise InputError unless each limit is a whole number of at least `least`."""
    for name, value in limits.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(
                f"budget: {name} is {value!r}, expected a whole number of at least {least}"
            )


def check_amounts(**limits: float | None) -> None:
    """Raise InputError unless each limit is None or a number of at least 0."""
    for name, value in limits.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and value >= 0):
            raise InputError(f"budget: {name} is {value!r}, expected a number of at least 0")


class Usage:
    """Count the calls, tokens and costs of a model against a budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.calls = self.tokens_in = self.tokens_out = 0
        self.last = (0, 0)  # input and output tokens of the last call

    @property
    def money(self) -> float:
        return self._price(self.tokens_in, self.tokens_out)

    def exceeded_by(self, prompt: str) -> str:
        """The limit that this prompt would exceed; empty if it exceeds none."""
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

    def complete(self, model: LanguageModel, prompt: str, schema: Mapping[str, Any] | None) -> str:
        """The model's answer to one prompt. Failed calls count too, because they may be billed."""
        answers: list[str] = []
        try:
            answers = model.complete([prompt], schema=schema)
            if len(answers) != 1 or not isinstance(answers[0], str):
                answers = []
                raise ModelError("it did not return one text")
            return answers[0]
        finally:
            self.last = count_tokens(model, prompt, "".join(answers))
            self.calls += 1
            self.tokens_in += self.last[0]
            self.tokens_out += self.last[1]

    def _price(self, tokens_in: int, tokens_out: int) -> float:
        prices = self.budget.prices
        return (tokens_in * prices.tokens_in + tokens_out * prices.tokens_out) / 1e6


class MeteredModel:
    """Call the model of one question within its budget, and record every call.

    A model may offer `within(seconds)`, which returns the same model with a deadline, and
    `last_tokens`, the input and output tokens of its last completion.
    """

    def __init__(
        self,
        model: LanguageModel | None,
        budget: Budget,
        clock: Callable[[], float] | None = None,
    ) -> None:
        if budget.seconds is not None and clock is None:
            raise InputError("a budget of seconds needs a clock", hint="pass clock=time.monotonic")
        self.model, self.budget, self.clock = model, budget, clock
        self.calls: list[Call] = []
        self.ticks: list[float] = []
        self.notes: list[str] = []
        self.rounds = 0
        self._usage = Usage(budget)
        self._failures = 0
        self._started = clock() if clock is not None else 0.0

    def elapsed(self) -> float:
        """Seconds since the start; 0 without a clock. Each reading is recorded for replay."""
        if self.clock is None:
            return 0.0
        self.ticks.append(round(float(self.clock() - self._started), 6))
        return self.ticks[-1]

    @property
    def _last_tick(self) -> float:
        return self.ticks[-1] if self.ticks else 0.0

    @property
    def cost(self) -> Cost:
        """The cost up to the last reading of the clock."""
        used = self._usage
        tokens, money = used.tokens_in + used.tokens_out, round(used.money, 9)
        return Cost(self.rounds, used.calls, tokens, self._last_tick, money)

    def out_of_time(self) -> bool:
        return self.budget.seconds is not None and self.elapsed() >= self.budget.seconds

    @property
    def rounds_left(self) -> int:
        return max(self.budget.rounds - self.rounds, 0)

    def available(self) -> bool:
        """Whether there is a model that still responds."""
        return self.model is not None and self._failures < MAX_FAILURES_IN_A_ROW

    def complete(self, prompt: str, *, purpose: str, schema: Mapping[str, Any]) -> str | None:
        """The model's answer, cut to MAX_ANSWER_CHARS; None without a model, budget or answer."""
        if self.model is None or not self.available():
            return None
        late = self.out_of_time()
        if exceeded := self._usage.exceeded_by(prompt) or ("seconds" if late else ""):
            self.note(f"the budget of {exceeded} is spent: the model was not asked again")
            return None
        model = self.model
        if self.budget.seconds is not None and hasattr(model, "within"):
            model = model.within(self.budget.seconds - self._last_tick)
        answer = error = None
        try:
            answer = self._usage.complete(model, prompt, schema)[:MAX_ANSWER_CHARS]
        except ModelError as failure:  # anything else is a bug of ours and must surface
            error = str(failure)[:300]
        key = call_key(prompt, schema)
        self.calls.append(Call(purpose, key, answer, error, *self._usage.last))
        self.elapsed()
        if error is None:
            self._failures = 0
            return answer
        self._failures += 1
        self.note(f"the model did not answer ({purpose}): {error}")
        if not self.available():
            self.note("the model failed twice in a row: the rest was done without it")
        return None

    def note(self, words: str) -> None:
        """Add a note for the trace, once."""
        if words not in self.notes:
            self.notes.append(words)


def estimate_tokens(text: str) -> int:
    return math.ceil(len(text) / CHARS_PER_TOKEN)


def count_tokens(model: LanguageModel, prompt: str, answer: str) -> tuple[int, int]:
    """Input and output tokens of the last call: the model's counts, or estimates without them.

    A model is third-party code: a negative count or NaN would switch the budget off.
    """
    try:
        used_in, used_out = map(int, getattr(model, "last_tokens", None) or ())
    except (TypeError, ValueError, OverflowError):
        used_in = used_out = -1
    if min(used_in, used_out) < 0:
        return estimate_tokens(prompt), estimate_tokens(answer)
    return used_in, used_out


def call_key(prompt: str, schema: Mapping[str, Any]) -> str:
    """The hash that identifies a call in a trace."""
    text = json.dumps([prompt, schema], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
