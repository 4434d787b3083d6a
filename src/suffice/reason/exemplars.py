"""Plans to learn from: questions that people or data sets have taken apart, to be shown to a model before it plans.

Those are chosen that are as complex as the question (as many hops, of the same kind), and among them the ones in words most
like it. The bank that ships is text from MuSiQue (CC BY 4.0) and 2WikiMultiHopQA (Apache-2.0), see its card; `Bank.of` takes
yours. A question's own plan is never shown to it: whoever measures on the questions of the bank would measure copying.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from suffice.errors import InputError
from suffice.files import BadRecords, read_jsonl
from suffice.reason.plan import SubQuestion, plan_of
from suffice.reason.spans import expected
from suffice.text import EMPTY_WORDS, tokens

__all__ = ["SHIPPED", "Bank", "Exemplar", "shown"]

SHIPPED = Path(__file__).parent.parent / "models" / "plans" / "plans.jsonl"
SAME = 0.7  # share of words in common from which on two questions count as the same one


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A question with the steps that answer it, of which later ones hold "#1" for earlier answers."""

    question: str
    steps: tuple[str, ...]
    kind: str = "bridge"
    hops: int = 2
    source: str = ""


@dataclass(frozen=True)
class Bank:
    """Exemplars, each checked like any plan."""

    exemplars: tuple[Exemplar, ...]
    _words: tuple[frozenset[str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, exemplars: Iterable[Exemplar]) -> Bank:
        """InputError where the steps of one are not a plan."""
        held = tuple(exemplars)
        for at, one in enumerate(held):
            try:
                plan_of(one.question, [SubQuestion(text, expected(text)) for text in one.steps])
            except InputError as error:
                raise InputError(f"exemplar {at + 1} ({one.question[:60]!r}): {error}") from error
        return cls(held, tuple(_content(one.question) for one in held))

    @classmethod
    def load(cls, path: Path | str | None = None) -> Bank:
        """The bank that ships, or a JSON Lines file of question, steps and where known kind, hops and source."""
        if path is None:
            return _shipped()
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

    def and_more(self, others: Iterable[Exemplar]) -> Bank:
        """This bank and these."""
        return Bank.of((*self.exemplars, *others))

    def like(self, question: str, *, hops: int, kind: str, count: int = 3) -> tuple[Exemplar, ...]:
        """The exemplars nearest in complexity, then in kind, then in words; the question's own is left out."""
        words = _content(question)
        near = [_share(words, own) for own in self._words]
        places = [at for at, share in enumerate(near) if share < SAME]
        order = sorted(places, key=lambda at: (*_apart(self.exemplars[at], hops, kind), -near[at], at))
        return tuple(self.exemplars[at] for at in order[: max(count, 0)])


@cache
def _shipped() -> Bank:
    return Bank.load(SHIPPED)


def _apart(one: Exemplar, hops: int, kind: str) -> tuple[int, bool]:
    return abs(one.hops - hops), one.kind != kind


def _content(text: str) -> frozenset[str]:
    return frozenset(tokens(text)) - EMPTY_WORDS


def _share(some: frozenset[str], others: frozenset[str]) -> float:
    return len(some & others) / (len(some | others) or 1)


def shown(exemplars: Sequence[Exemplar]) -> str:
    """Exemplars as a prompt shows them."""
    return "".join(
        f"Question: {one.question}\nAnswer: {json.dumps({'steps': list(one.steps)}, ensure_ascii=False)}\n\n"
        for one in exemplars
    )
