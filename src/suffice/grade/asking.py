"""Asking a language model, one thing after another, without trusting it with the run.

An answer is JSON that fits a schema, read by whoever asked. One that cannot be read is asked for once more with a reminder, and
then given up: one lost item is no reason to stop. A server that fails several times in a row is: the run ends with an error
that says so, and since answers are kept as they come (`integrations.openai.CachedModel`), the same command goes on where it
was. Every request is counted, and a budget ends the run before it is overdrawn.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from string import Template
from typing import Any, TypeVar

from suffice.errors import ModelError
from suffice.ports import LanguageModel, Progress, name_of
from suffice.reason.budget import Bill, Budget, Prices

__all__ = ["Asker", "Metered", "Prompt", "SpentError"]

T = TypeVar("T")
SILENT_IN_A_ROW = 3  # time-outs and dead connections: each costs a whole wait
UNREAD_IN_A_ROW = 12  # failures of any kind: the model, or something in front of its server, only rambles
EVERY = "every stage"
REMINDER = "\n(Answer with that JSON alone.)"


# ------------------------------------------------------------------------------------------------------ prompts


@dataclass(frozen=True)
class Prompt:
    """A prompt from its file in `grade/prompts`, and the schema of the answer."""

    name: str
    schema: Mapping[str, Any]

    @property
    def template(self) -> str:
        return resources.files("suffice.grade").joinpath(f"prompts/{self.name}.txt").read_text(encoding="utf-8")

    def filled(self, **parts: str) -> str:
        """The prompt with its blanks filled; texts of others must be fenced before (`reason.prompting.inline`)."""
        return Template(self.template).substitute(parts)

    @property
    def signature(self) -> str:
        """What tells this prompt from an earlier version of it."""
        return sha256(f"{self.template}\0{json.dumps(self.schema, sort_keys=True)}".encode()).hexdigest()[:12]


# ------------------------------------------------------------------------------------------------------ costs


class Metered:
    """A language model whose requests are counted, and that is not asked beyond its budget: SpentError then.

    It belongs inside a cache, not around one: what is remembered costs nothing.
    """

    def __init__(self, model: LanguageModel, budget: Budget | None = None) -> None:
        self.model, self.bill = model, Bill(budget or Budget(calls=None, tokens=None))
        self.name = name_of(model)

    def complete(self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None) -> list[str]:
        return [self._complete(prompt, schema) for prompt in prompts]

    def _complete(self, prompt: str, schema: Mapping[str, Any] | None) -> str:
        if lack := self.bill.lacks(prompt):
            raise SpentError(
                f"the budget for the model is spent: {lack} {getattr(self.bill.budget, lack):g}",
                hint="what is done is kept: raise the budget and run the same command again, or add --fallback",
            )
        return self.bill.ask(self.model, prompt, schema)

    def line(self) -> str:
        """For a terminal."""
        bill = self.bill
        price = f", cost {bill.money:.4f}" if bill.budget.prices != Prices() else ""
        return f"asked {self.name} {bill.calls:,} times, about {bill.tokens_in:,} tokens in and {bill.tokens_out:,} out{price}"


class SpentError(ModelError):
    """The budget for the model is spent."""


# ------------------------------------------------------------------------------------------------------ asking


class Asker:
    """Asks a model and reads what it says. `fallback`: where the model fails or the budget is spent, rules go on."""

    def __init__(
        self, model: LanguageModel, *, fallback: bool = False, retries: int = 1, progress: Progress | None = None
    ) -> None:
        self.model, self.fallback, self.retries, self.progress = model, fallback, retries, progress
        self.name = name_of(model)
        self.given_up: Counter[str] = Counter()  # prompt -> items without an answer that could be read
        self.down: dict[str, str] = {}  # prompt -> why the model is no longer asked that
        self._silent = 0  # waits for nothing, in a row
        self._unread: list[tuple[Prompt, str]] = []  # failures of any kind, in a row

    @property
    def signature(self) -> str:
        """Who answers: what rules may have filled in is not the same as what the model said."""
        return f"{self.name}, or rules" if self.fallback else self.name

    def ask(self, prompt: Prompt, text: str, read: Callable[[Any], T]) -> T | None:
        """What `read` makes of the answer; None where none could be read, or where rules go on.

        `read` raises ValueError, KeyError or TypeError at an answer that it cannot use. ModelError: the server does not
        answer, or the budget is spent.
        """
        if self._unread and self._unread[0][0].name != prompt.name:
            self._unread.clear()  # who rambles in one stage may do well in another
        for attempt in range(self.retries + 1):
            if prompt.name in self.down or EVERY in self.down:
                return None
            asked = text + REMINDER * attempt
            self._unread.append((prompt, asked))
            try:
                (answer,) = self.model.complete([asked], schema=prompt.schema)
                found = read(json.loads(answer))
            except ModelError as error:
                self._failed(error)
            except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
                self._failed(ModelError(f"{self.name} answered what cannot be used: {error!r:.80}"))
            else:
                self._silent = 0
                self._unread.clear()
                return found
        self.given_up[prompt.name] += 1
        return None

    def over(self, what: str, items: Sequence[T]) -> Iterator[T]:
        """The items one by one, with progress."""
        for done, item in enumerate(items, 1):
            yield item
            if self.progress is not None:
                self.progress(what, done, len(items))

    def _failed(self, error: ModelError) -> None:
        """Count it; too many in a row end the run, unless rules may go on."""
        self._silent = self._silent + 1 if error.retryable else 0
        count = len(self._unread)
        if not (isinstance(error, SpentError) or self._silent >= SILENT_IN_A_ROW or count >= UNREAD_IN_A_ROW):
            return
        prompt, _ = self._unread[-1]
        self._forget()
        if self.fallback:
            rambles = not isinstance(error, SpentError) and self._silent < SILENT_IN_A_ROW
            self.down[prompt.name if rambles else EVERY] = str(error)
        elif isinstance(error, SpentError):
            raise error
        else:
            raise ModelError(
                f"the model failed {count} times in a row, the last time so: {error}",
                hint="what is done is kept: run the same command again when the server is well, or add --fallback",
                retryable=True,
            ) from error

    def _forget(self) -> None:
        """A cache must not hold what made the run end, or it would end so again."""
        forget = getattr(self.model, "forget", None)
        if forget is not None:
            for prompt, asked in self._unread:
                forget([asked], schema=prompt.schema)
        self._unread.clear()
