"""Gold: the documents that a question needs. Labels and their splits are defined only here.

`retrieval`, `gate` and `answering` are lower layers and cannot import this module.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from suffice.errors import InputError
from suffice.types import DocId, Hit, Question, QuestionId


@dataclass(frozen=True, slots=True)
class Gold:
    """The documents that a question needs, and what its data set says about it."""

    question_id: QuestionId
    doc_ids: frozenset[DocId]  # empty: a null question that the corpus does not answer
    answer: str | None = None
    kind: str | None = None  # the question type, as the data set names it
    hops: int = 0
    labels: tuple[str, ...] = ()  # FRAMES' reasoning types
    facts: tuple[str, ...] = ()  # evidence sentences, if the data set quotes them


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question with its gold and, if hits were already retrieved, the ranked hits."""

    question: Question
    gold: Gold
    hits: tuple[Hit, ...] | None = None


@dataclass(frozen=True, slots=True)
class Split:
    fit: tuple[GoldQuestion, ...]
    calibrate: tuple[GoldQuestion, ...]
    test: tuple[GoldQuestion, ...]


def split(
    questions: Iterable[GoldQuestion],
    *,
    seed: int = 42,
    shares: Sequence[float] = (0.70, 0.15, 0.15),
) -> Split:
    """Split into three disjoint parts with the same mix of question kinds, in input order.

    A hash of the question's text and the seed decides its part, so it is the same on every machine
    and for every input order. Questions with the same text go to the same part, to prevent leaks.
    """
    in_range = len(shares) == 3 and all(0 <= share <= 1 for share in shares)
    if not in_range or abs(sum(shares) - 1) > 1e-9:
        raise InputError(
            f"shares are {tuple(shares)}, expected three numbers from 0 to 1 that add up to 1"
        )
    listed = list(questions)
    # A question without text (a TREC run without topics) is identified by its id.
    texts = [one.question.text or f"\0{one.question.question_id}" for one in listed]
    strata: dict[str, set[str]] = {}
    kind_of: dict[str, str] = {}
    for text, one in zip(texts, listed):
        strata.setdefault(kind_of.setdefault(text, one.gold.kind or ""), set()).add(text)
    part_of: dict[str, int] = {}
    for members in strata.values():
        size = len(members)
        ends = [round(size * shares[0]), round(size * (shares[0] + shares[1]))]
        for at, text in enumerate(sorted(members, key=lambda text: draw_key(seed, text))):
            part_of[text] = sum(at >= end for end in ends)
    parts = (
        tuple(one for text, one in zip(texts, listed) if part_of[text] == part) for part in range(3)
    )
    return Split(*parts)


def draw_key(seed: int, text: str) -> bytes:
    """Sort key for a seeded random order that does not depend on the other items."""
    return hashlib.sha256(f"{seed}\0{text}".encode("utf-8", "surrogatepass")).digest()
