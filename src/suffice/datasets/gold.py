"""Gold: what a question truly needs. The only home of labels, and of the splits that keep them apart.

Whatever retrieves, assesses or reasons stands to the left of this module and cannot import it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from suffice.errors import InputError
from suffice.types import DocId, Hit, Question, QuestionId

__all__ = ["Gold", "GoldQuestion", "Split", "draw_key", "split"]


@dataclass(frozen=True, slots=True)
class Gold:
    """The documents a question needs, and what its data set says about it."""

    question_id: QuestionId
    doc_ids: frozenset[DocId]  # empty: a null question, nothing in the corpus answers it
    answer: str | None = None
    kind: str | None = None  # the question type, in the data set's word
    hops: int = 0
    labels: tuple[str, ...] = ()  # FRAMES' reasoning types
    facts: tuple[str, ...] = ()  # the sentences of the evidence, where the data set quotes them


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question with its gold and, where someone else has retrieved for it, the hits in rank order."""

    question: Question
    gold: Gold
    hits: tuple[Hit, ...] | None = None


@dataclass(frozen=True, slots=True)
class Split:
    fit: tuple[GoldQuestion, ...]
    calibrate: tuple[GoldQuestion, ...]
    test: tuple[GoldQuestion, ...]


def split(
    examples: Iterable[GoldQuestion],
    *,
    seed: int = 42,
    shares: Sequence[float] = (0.70, 0.15, 0.15),
) -> Split:
    """Three disjoint parts with the same mix of question kinds; each part keeps the order of the input.

    The same seed gives the same parts on every machine and for every order of the input: a question's place follows from a
    hash of its words. Questions with the same words go to the same part, so that a repeated one cannot leak.
    """
    if (
        len(shares) != 3
        or not all(0 <= share <= 1 for share in shares)
        or abs(sum(shares) - 1) > 1e-9
    ):
        raise InputError(
            f"shares are {tuple(shares)}, expected three numbers from 0 to 1 that add up to 1"
        )
    held = list(examples)
    strata: dict[str, set[str]] = {}
    kind_of: dict[str, str] = {}
    for example in held:
        kind = kind_of.setdefault(_words(example), example.gold.kind or "")
        strata.setdefault(kind, set()).add(_words(example))
    part_of: dict[str, int] = {}
    for texts in strata.values():
        ends = [round(len(texts) * shares[0]), round(len(texts) * (shares[0] + shares[1]))]
        for at, text in enumerate(sorted(texts, key=lambda text: draw_key(seed, text))):
            part_of[text] = sum(at >= end for end in ends)
    parts = [
        tuple(example for example in held if part_of[_words(example)] == part) for part in range(3)
    ]
    return Split(*parts)


def _words(example: GoldQuestion) -> str:
    # A question whose words are not known (a TREC run without topics) is told apart by its id.
    return example.question.text or f"\0{example.question.question_id}"


def draw_key(seed: int, text: str) -> bytes:
    """Where a text comes in a draw: the same on every machine, whatever else is drawn."""
    return hashlib.sha256(f"{seed}\0{text}".encode("utf-8", "surrogatepass")).digest()
